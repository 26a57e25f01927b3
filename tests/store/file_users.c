/*
 * file_users.c: the file store between users: strangers are denied, a group shares what it is
 * given, and everybody shares what is for everybody. Each user is a child of its own. Needs root,
 * who alone can become somebody else; else the tests say that they were skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/rig.h"

#define OK BATON_OUTCOME_OK
#define REFUSED BATON_OUTCOME_REFUSED
#define FAILED BATON_OUTCOME_FAILED

/* Numbers that stand in no list of users: any will do. */
#define ALICE 64101
#define BOB 64102
#define CAROL 64103
#define TEAM 64100
/* Its path is longer than a folder's name may be, so that there are folders in between. */
#define LONG_NAME "a#######################################################################b"

static char base[256];
static char dir[300];
static const char *options = "?mode=0770&history=2";

static int set_up(void **state)
{
	(void)state;
	if (geteuid() != 0)
		return 0;
	rig_make_dir(base, sizeof(base));
	(void)snprintf(dir, sizeof(dir), "%s/shared", base);
	return chmod(base, 0711);
}

static int tear_down(void **state)
{
	(void)state;
	if (geteuid() == 0)
		rig_remove_dir(base);
	return 0;
}

static void need_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("not root: this needs a second user\n");
	skip();
}

/* ---- somebody else ---- */

/* Never comes back. The umask is the strictest there is, which takes even the owner's bits: it must
 * not matter. */
static void be(uid_t uid, gid_t gid, bool in_team, bool (*fn)(void))
{
	gid_t team = TEAM;

	(void)umask(0777);
	if (setgroups(in_team ? 1 : 0, &team) != 0 || setresgid(gid, gid, gid) != 0 ||
	    setresuid(uid, uid, uid) != 0) {
		perror("can't become somebody else");
		_exit(2);
	}
	_exit(fn() ? 0 : 1);
}

static void as(uid_t uid, gid_t gid, bool in_team, bool (*fn)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0)
		be(uid, gid, in_team, fn);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Says which step of a child went wrong, for the parent knows only that one did. */
static bool is(int outcome, int wanted, const char *what, const struct rig *r)
{
	if (outcome == wanted)
		return true;
	print_message("%s: outcome %d, not %d: %s\n", what, outcome, wanted, r->call.error.text);
	return false;
}

static bool start(struct rig *r, const char *owner)
{
	rig_open(r, dir, options, owner);
	return is(rig_lease(r, 60000), OK, "lease", r) &&
	       is(rig_publish(r, "job", 900, true, "here"), OK, "publish", r) &&
	       is(rig_publish(r, LONG_NAME, 900, true, "here"), OK, "publish", r);
}

/* ---- what each of them does ---- */

static bool takes_turns(void)
{
	struct rig r;
	char owner[16];

	(void)snprintf(owner, sizeof(owner), "%u", (unsigned)geteuid());
	if (!start(&r, owner))
		return false;
	for (int i = 0; i < 5; i++)
		if (!is(rig_campaign(&r, "job", 0), OK, "campaign", &r) ||
		    !is(rig_release(&r, "job", NULL, 0), OK, "release", &r) ||
		    !is(rig_campaign(&r, LONG_NAME, 0), OK, "campaign", &r) ||
		    !is(rig_release(&r, LONG_NAME, NULL, 0), OK, "release", &r))
			return false;
	return is(rig_lease_close(&r), OK, "close", &r);
}

static bool leads_and_freezes(void)
{
	struct rig r;

	return start(&r, "alice") && is(rig_campaign(&r, "job", 0), OK, "campaign", &r) &&
	       raise(SIGSTOP) == 0;
}

static bool sees_alice(void)
{
	struct rig r;

	return start(&r, "bob") && is(rig_campaign(&r, "job", 0), REFUSED, "campaign", &r) &&
	       strcmp(r.record.leader, "alice") == 0 && r.record.held &&
	       is(rig_lease_close(&r), OK, "close", &r);
}

static bool follows_alice(void)
{
	struct rig r;

	return start(&r, "bob") && is(rig_campaign(&r, "job", 0), OK, "campaign", &r) &&
	       r.term == 2 && is(rig_lease_close(&r), OK, "close", &r);
}

/* Each sees what the one before has done, and does the opposite. */
static bool pauses(bool paused)
{
	struct rig r;

	if (!start(&r, "somebody"))
		return false;
	for (int i = 0; i < 5; i++) {
		if (!is(rig_observe(&r, "job"), OK, "observe", &r) || r.record.paused == paused ||
		    !is(rig_pause(&r, "job", paused), OK, "pause", &r) ||
		    !is(rig_pause(&r, "job", paused), OK, "pause again", &r) ||
		    !is(rig_campaign(&r, "job", 0), paused ? REFUSED : OK, "campaign", &r) ||
		    (!paused && !is(rig_release(&r, "job", NULL, 0), OK, "release", &r)) ||
		    !is(rig_observe(&r, "job"), OK, "observe", &r) || r.record.paused != paused)
			return false;
		paused = !paused;
	}
	return is(rig_lease_close(&r), OK, "close", &r);
}

static bool pauses_at_last(void)
{
	return pauses(true);
}

static bool resumes_at_last(void)
{
	return pauses(false);
}

static bool leads_often(void)
{
	struct rig r;

	if (!start(&r, "often"))
		return false;
	for (int i = 0; i < 70; i++)
		if (!is(rig_campaign(&r, "job", 0), OK, "campaign", &r) ||
		    !is(rig_release(&r, "job", NULL, 0), OK, "release", &r))
			return false;
	return true;
}

static bool is_denied(void)
{
	struct rig r;

	rig_open(&r, dir, options, "carol");
	return is(rig_lease(&r, 1000), FAILED, "lease", &r) &&
	       r.call.error.code == BATON_E_DENIED &&
	       strstr(r.call.error.text, "owner, group and mode") != NULL;
}

static bool is_denied_job(void)
{
	struct rig r;

	rig_open(&r, dir, options, "bob");
	return is(rig_lease(&r, 60000), OK, "lease", &r) &&
	       is(rig_campaign(&r, "job", 0), FAILED, "campaign", &r) &&
	       r.call.error.code == BATON_E_DENIED &&
	       strstr(r.call.error.text, "elections/job") != NULL;
}

/* ---- the tests ---- */

static void expect_folder(const char *path, mode_t mode, gid_t gid)
{
	char full[1024];
	struct stat st;

	(void)snprintf(full, sizeof(full), "%s/%s", dir, path);
	assert_int_equal(stat(full, &st), 0);
	assert_int_equal(st.st_mode & 07777, mode);
	assert_int_equal(st.st_gid, gid);
}

static void the_team_takes_turns(void)
{
	as(ALICE, ALICE, true, takes_turns);
	as(BOB, BOB, true, takes_turns);
	as(ALICE, ALICE, true, takes_turns);
	expect_folder("leases", 03770, TEAM);
	expect_folder("tmp", 03770, TEAM);
	expect_folder("elections", 03770, TEAM);
	expect_folder("elections/job", 03770, TEAM);
	as(CAROL, CAROL, false, is_denied);
	/* history=2, and each removes its own: Alice's last two stay until she is back. */
	as(BOB, BOB, true, takes_turns);
	assert_true(rig_count(dir, "elections/job") <= 2 * (2 + 2));
	assert_int_equal(rig_count(dir, "leases"), 0);
	assert_int_equal(rig_count(dir, "tmp"), 0);
}

/* As an administrator sets it up who has read the manual. */
static void a_group_shares_a_directory(void **state)
{
	(void)state;
	need_root();
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chown(dir, 0, TEAM), 0);
	assert_int_equal(chmod(dir, 02770), 0);
	the_team_takes_turns();
}

/* As one who hasn't, and doesn't know of set-group-ID. */
static void a_group_shares_without_a_bit(void **state)
{
	(void)state;
	need_root();
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chown(dir, ALICE, TEAM), 0);
	assert_int_equal(chmod(dir, 0770), 0);
	the_team_takes_turns();
}

/* Nobody has set up anything: the first one makes it, in the group that it works as. */
static void a_group_shares_what_the_first_makes(void **state)
{
	(void)state;
	need_root();
	assert_int_equal(chmod(base, 0777), 0);
	as(ALICE, TEAM, false, takes_turns);
	expect_folder("", 03770, TEAM);
	the_team_takes_turns();
}

/* A maker that was killed before it set the mode puts it right when it comes back. */
static void a_narrow_folder_is_mended(void **state)
{
	char path[1024];

	(void)state;
	need_root();
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chown(dir, 0, TEAM), 0);
	assert_int_equal(chmod(dir, 02770), 0);
	as(ALICE, ALICE, true, takes_turns);
	(void)snprintf(path, sizeof(path), "%s/elections/job", dir);
	assert_int_equal(chmod(path, 0700), 0);
	as(BOB, BOB, true, is_denied_job);
	the_team_takes_turns();
}

static void one_of_the_group_follows_another(void **state)
{
	int status;

	(void)state;
	need_root();
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chown(dir, 0, TEAM), 0);
	assert_int_equal(chmod(dir, 02770), 0);
	pid_t alice = fork();

	if (alice == 0)
		be(ALICE, ALICE, true, leads_and_freezes);
	assert_int_equal(waitpid(alice, &status, WUNTRACED), alice);
	assert_true(WIFSTOPPED(status));
	as(BOB, BOB, true, sees_alice);
	assert_int_equal(kill(alice, SIGKILL), 0);
	assert_int_equal(waitpid(alice, &status, 0), alice);
	as(BOB, BOB, true, follows_alice);
}

/* Nobody may remove another's files, and yet nobody need ask who made a pause to end it. */
static void anybody_ends_a_pause(void **state)
{
	(void)state;
	need_root();
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chown(dir, 0, TEAM), 0);
	assert_int_equal(chmod(dir, 02770), 0);
	for (int i = 0; i < 3; i++) {
		as(ALICE, ALICE, true, pauses_at_last);
		as(BOB, BOB, true, resumes_at_last);
		as(CAROL, CAROL, true, pauses_at_last);
		as(0, 0, false, resumes_at_last);
	}
	/* history=2, of three users and root; and the last pause with its end, of each. */
	assert_true(rig_count(dir, "elections/job") <= 4 * (2 * 2 + 2));
}

/* Nobody but Carol may remove her history; that must not keep Bob from tidying up his. */
static void each_prunes_its_own(void **state)
{
	(void)state;
	need_root();
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chown(dir, 0, TEAM), 0);
	assert_int_equal(chmod(dir, 02770), 0);
	as(ALICE, ALICE, true, takes_turns);
	options = "?mode=0770&history=1000";
	as(CAROL, CAROL, true, leads_often);
	options = "?mode=0770&history=2";
	as(BOB, BOB, true, leads_often);
	assert_true(rig_count(dir, "elections/job") <= 2 * (2 + 70 + 2));
	as(ALICE, ALICE, true, takes_turns); /* she made the folder, and may remove all */
	as(ALICE, ALICE, true, takes_turns);
	assert_int_equal(rig_count(dir, "elections/job"), 2 * 2);
}

static void strangers_are_denied(void **state)
{
	(void)state;
	need_root();
	options = "";
	assert_int_equal(chmod(base, 0777), 0);
	as(ALICE, ALICE, true, takes_turns);
	as(BOB, BOB, true, is_denied);
	options = "?mode=0770&history=2";
}

static void everybody_shares(void **state)
{
	(void)state;
	need_root();
	options = "?mode=0777&history=2";
	assert_int_equal(chmod(base, 0777), 0);
	as(0, 0, false, takes_turns);
	as(ALICE, ALICE, false, takes_turns);
	as(BOB, BOB, false, takes_turns);
	as(0, 0, false, takes_turns);
	expect_folder("elections/job", 03777, 0); /* nobody removes another's files */
	options = "?mode=0770&history=2";
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(a_group_shares_a_directory),
		T(a_group_shares_without_a_bit),
		T(a_group_shares_what_the_first_makes),
		T(a_narrow_folder_is_mended),
		T(one_of_the_group_follows_another),
		T(anybody_ends_a_pause),
		T(each_prunes_its_own),
		T(strangers_are_denied),
		T(everybody_shares),
#undef T
	};

	return cmocka_run_group_tests_name("file_users", tests, NULL, NULL);
}
