/*
 * file_troubles.c: what goes wrong with directories in real life: a full disk, one that is mounted
 * read-only, no inotify left, files that are damaged or missing. Nobody leads by mistake; whoever
 * is told, is told the file and what to do; and when the trouble is over, all works again.
 *
 * The first three need a mount or a limit of their own, so they are children in a namespace of
 * their own; where the system allows none the tests say that they were skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/pair.h"

#define SKIPPED 77

/* ---- what is said ---- */

static bool says(const struct rig *r, int code, const char *file, const char *advice)
{
	const struct baton_error *e = &r->call.error;

	if (e->code == code && strstr(e->text, file) != NULL && strstr(e->text, advice) != NULL)
		return true;
	print_message("%d: \"%s\" doesn't speak of %s and %s\n", e->code, e->text, file, advice);
	return false;
}

/* For children: the parent knows only that something went wrong. */
static bool is(int outcome, int wanted, const char *what)
{
	if (outcome != wanted)
		print_message("%s: outcome %d, not %d: %s\n", what, outcome, wanted,
			      a.call.error.text);
	return outcome == wanted;
}

/* ---- a world of one's own ---- */

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		(void)close(fd);
	return done;
}

/* Root of a user namespace may mount, and set limits for itself. */
static bool enter_namespace(void)
{
	char map[64];
	unsigned uid = geteuid();
	unsigned gid = getegid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		return false;
	(void)snprintf(map, sizeof(map), "0 %u 1", uid);
	if (!write_text("/proc/self/uid_map", map) || !write_text("/proc/self/setgroups", "deny"))
		return false;
	(void)snprintf(map, sizeof(map), "0 %u 1", gid);
	return write_text("/proc/self/gid_map", map);
}

static void in_namespace(bool (*fn)(void))
{
	int status;

	(void)fflush(NULL);
	pid_t child = fork();

	if (child == 0)
		_exit(!enter_namespace() ? SKIPPED : fn() ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
		print_message("this system allows no namespaces\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static bool mount_small(unsigned long flags, const char *options)
{
	if (mount("tmpfs", dir, "tmpfs", flags, options) == 0)
		return true;
	perror("mount");
	return false;
}

/* ---- the disk is full ---- */

static void fill(void)
{
	static const char block[4096] = "full";
	int fd = open(in_dir("ballast"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	while (fd >= 0 && write(fd, block, sizeof(block)) > 0)
		;
	if (fd >= 0)
		(void)close(fd);
}

static bool lives_with_a_full_disk(void)
{
	uint32_t n;

	if (!mount_small(0, "size=256k") || !is(rig_lease(&a, 60000), OK, "lease") ||
	    !is(rig_campaign(&a, "job", 0), OK, "campaign"))
		return false;
	uint64_t nonce = a.nonce;

	fill();
	/* The leader can't renew, and says so; nobody else can do anything, either. */
	if (!is(rig_renew(&a, &n), FAILED, "renew") ||
	    !says(&a, BATON_E_UNAVAILABLE, "tmp/", "No space left on device; free some space") ||
	    !is(rig_lease(&b, 60000), FAILED, "lease") ||
	    !says(&b, BATON_E_UNAVAILABLE, dir, "free some space") ||
	    !is(rig_campaign(&a, "other", 0), FAILED, "campaign") ||
	    !says(&a, BATON_E_UNAVAILABLE, "tmp/", "free some space"))
		return false;
	/* But what is there can be read, and given back. */
	if (!is(rig_observe(&b, "job"), OK, "observe") || !b.record.held || b.record.term != 1 ||
	    !is(rig_claims(&a), 1, "claims"))
		return false;
	(void)unlink(in_dir("ballast"));
	a.nonce = nonce;
	return is(rig_renew(&a, &n), OK, "renew") && n == 1 &&
	       is(rig_lease(&b, 60000), OK, "lease") &&
	       is(rig_release(&a, "job", NULL, 0), OK, "release") &&
	       is(rig_campaign(&b, "job", 0), OK, "campaign") && b.term == 2;
}

static void a_full_disk(void **state)
{
	(void)state;
	in_namespace(lives_with_a_full_disk);
}

static bool lives_without_inodes(void)
{
	uint32_t n;
	int fd = -1;

	if (!mount_small(0, "nr_inodes=24") || !is(rig_lease(&a, 60000), OK, "lease") ||
	    !is(rig_campaign(&a, "job", 0), OK, "campaign"))
		return false;
	for (int i = 0; i < 32; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "ballast-%d", i);
		fd = open(in_dir(name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		if (fd >= 0)
			(void)close(fd);
	}
	return fd < 0 && is(rig_renew(&a, &n), FAILED, "renew") &&
	       says(&a, BATON_E_UNAVAILABLE, "can't make tmp/", "free some space") &&
	       is(rig_campaign(&a, "other", 0), FAILED, "campaign") &&
	       says(&a, BATON_E_UNAVAILABLE, "elections/other", "free some space");
}

static void no_more_files(void **state)
{
	(void)state;
	in_namespace(lives_without_inodes);
}

/* ---- read-only ---- */

static bool lives_read_only(void)
{
	if (!mount_small(0, "size=1m") || !is(rig_lease(&a, 60000), OK, "lease") ||
	    !is(rig_campaign(&a, "job", 0), OK, "campaign") ||
	    !is(rig_release(&a, "job", NULL, 0), OK, "release") ||
	    !is(rig_lease_close(&a), OK, "close"))
		return false;
	if (mount(NULL, dir, NULL, MS_REMOUNT | MS_RDONLY, "size=1m") != 0) {
		perror("remount");
		return false;
	}
	if (!is(rig_lease(&b, 60000), FAILED, "lease") ||
	    !says(&b, BATON_E_DENIED, "tmp/", "Read-only file system; mount it for writing") ||
	    baton_file_driver.pause(b.campaign, rig_call(&b, 1000), "job", true) != FAILED ||
	    !says(&b, BATON_E_DENIED, dir, "mount it for writing, or choose another directory"))
		return false;
	struct rig c;

	/* Whoever only wants to know who led is told, also where a mode can't be put right. */
	rig_open(&c, dir, "?mode=0770", "carol");
	if (!is(rig_observe(&c, "job"), OK, "observe") || c.record.term != 1) {
		print_message("%s\n", c.call.error.text);
		return false;
	}
	rig_close(&c);
	return is(rig_observe(&b, "job"), OK, "observe") && b.record.term == 1 && !b.record.held &&
	       mount(NULL, dir, NULL, MS_REMOUNT, "size=1m") == 0 &&
	       is(rig_lease(&b, 60000), OK, "lease") &&
	       is(rig_campaign(&b, "job", 0), OK, "campaign") && b.term == 2;
}

static void a_read_only_directory(void **state)
{
	(void)state;
	in_namespace(lives_read_only);
}

/* ---- no inotify ---- */

static bool is_hinted_by_polling(const char *limit)
{
	uint64_t cookies[4];

	if (baton_file_driver.watch_add(a.watch, "job", 7) != BATON_OK ||
	    baton_file_driver.watch_wait(a.watch, rig_call(&a, 2000), cookies, 4) >= 0 ||
	    !says(&a, BATON_E_SYSTEM, limit, "raise that limit"))
		return false;
	/* It can be lived with: nothing is promised, and everything is hinted at now and then. */
	return is(rig_lease(&a, 60000), OK, "lease") &&
	       is(rig_campaign(&a, "job", 0), OK, "campaign") && !a.record.watched &&
	       rig_hinted(&a, 7, 5000);
}

static bool lives_without_instances(void)
{
	return write_text("/proc/sys/user/max_inotify_instances", "0") &&
	       is_hinted_by_polling("fs.inotify.max_user_instances");
}

/* Enough for the directory and its leases. */
static bool lives_without_watches(void)
{
	return write_text("/proc/sys/user/max_inotify_watches", "2") &&
	       is_hinted_by_polling("fs.inotify.max_user_watches");
}

static void no_inotify_instances(void **state)
{
	(void)state;
	in_namespace(lives_without_instances);
}

static void no_inotify_watches(void **state)
{
	(void)state;
	in_namespace(lives_without_watches);
}

/* ---- damaged and missing files ---- */

static void rewrite(const char *path, const char *text)
{
	int fd = open(in_dir(path), O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(close(fd), 0);
}

/* Puts another text into a file's place; the old one is kept. */
static void damage(const char *path, const char *text, char old[4096])
{
	int fd = open(in_dir(path), O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, old, 4095);

	assert_true(n > 0);
	old[n] = '\0';
	assert_int_equal(close(fd), 0);
	rewrite(path, text);
}

static void a_damaged_lease(void **state)
{
	char path[128];
	char old[4096];

	(void)state;
	assert_int_equal(rig_lease(&a, 60000), OK);
	assert_int_equal(rig_lease(&b, 60000), OK);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	(void)snprintf(path, sizeof(path), "leases/%s", a.lease.id);
	damage(path, "baton lease 1\nserial 1\n", old);
	/* It can't be told whether its owner is alive: then it is. */
	assert_int_equal(rig_campaign(&b, "job", 0), FAILED);
	assert_true(says(&b, BATON_E_CORRUPT, path, "restore it or move it away"));
	rewrite(path, old);
	assert_int_equal(rig_campaign(&b, "job", 0), REFUSED);
}

static void a_damaged_order(void **state)
{
	struct baton_order order = {.id = 5, .term = 1, .kind = BATON_ORDER_RESIGN};
	static const char path[] = "elections/job/order-00000000000000000001-00000000000000000005";
	char old[4096];

	(void)state;
	assert_int_equal(rig_lease(&a, 60000), OK);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	assert_int_equal(baton_file_driver.order(b.campaign, rig_call(&b, 1000), "job", &order),
			 OK);
	damage(path, "sudo resign", old);
	assert_int_equal(rig_observe(&a, "job"), FAILED);
	assert_true(says(&a, BATON_E_CORRUPT, path + strlen("elections/"), "is damaged"));
	rewrite(path, old);
	assert_int_equal(rig_observe(&a, "job"), OK);
	assert_int_equal(a.record.order.id, 5);
}

/* A candidate that can't be understood isn't there; nobody else is held up by it. */
static void a_damaged_candidate(void **state)
{
	char path[128];
	char old[4096];

	(void)state;
	assert_int_equal(rig_lease(&a, 60000), OK);
	assert_int_equal(rig_publish(&a, "job", 900, true, "here"), OK);
	(void)snprintf(path, sizeof(path), "leases/%s.candidate/job", a.lease.id);
	damage(path, "baton candidate 1\n", old);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	assert_int_equal(rig_observe(&a, "job"), OK);
	assert_string_equal(a.record.metadata, "of the claim");
}

static void a_missing_directory(void **state)
{
	struct rig c;
	char path[300];
	uint32_t n;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/not/there", dir);
	rig_open(&c, path, "", "carol");
	assert_int_equal(rig_lease(&c, 60000), FAILED);
	assert_true(says(&c, BATON_E_UNAVAILABLE, path, "make that first"));
	rig_close(&c);
	/* Removed under a leader: it has lost, and is told what happened. */
	assert_int_equal(rig_lease(&a, 60000), OK);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	rig_remove_dir(dir);
	assert_int_equal(rig_renew(&a, &n), REFUSED);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(rig_lease(&b, 60000), OK);
	assert_int_equal(rig_campaign(&b, "job", 7), OK); /* S4: above what it has seen */
	assert_int_equal(b.term, 8);
}

static void something_else_in_its_place(void **state)
{
	struct rig c;
	char path[300];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/file", dir);
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	rig_open(&c, path, "", "carol");
	assert_int_equal(rig_lease(&c, 60000), FAILED);
	assert_true(says(&c, BATON_E_CORRUPT, path, "something else stands in its place"));
	rig_close(&c);
	assert_int_equal(rig_lease(&a, 60000), OK);
	assert_int_equal(symlink("/tmp", in_dir("elections/job")), 0);
	assert_int_equal(rig_campaign(&a, "job", 0), FAILED);
	assert_true(says(&a, BATON_E_CORRUPT, "elections/job", "move it away"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(a_full_disk),           T(no_more_files),
		T(a_read_only_directory), T(no_inotify_instances),
		T(no_inotify_watches),    T(a_damaged_lease),
		T(a_damaged_order),       T(a_damaged_candidate),
		T(a_missing_directory),   T(something_else_in_its_place),
#undef T
	};

	return cmocka_run_group_tests_name("file_troubles", tests, NULL, NULL);
}
