/*
 * file_verbs.c: every verb of the file store's driver, one candidate against another, in this one
 * process: two handles are to each other what two processes are. What happens when a process is
 * killed or stopped in the middle of a verb is in file_steps.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/pair.h"

/* ---- claims and terms ---- */

static void one_wins_and_the_other_is_told(void **state)
{
	(void)state;
	both_open(60000);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	assert_int_equal(a.term, 1);
	assert_int_equal(rig_campaign(&b, "job", 0), REFUSED);
	assert_true(b.record.held);
	assert_string_equal(b.record.leader, "alice");
	assert_string_equal(b.record.address, "here:1");
	assert_string_equal(b.record.metadata, "of the claim");
	assert_int_equal(b.record.term, 1);
	assert_int_equal(b.record.nonce, a.nonce);
	assert_int_equal(b.record.priority, 3);
	assert_int_equal(b.record.score_permille, 900);
	assert_true(b.record.free_in_ns > 0 && b.record.free_in_ns <= 60000 * CLOCK_NS_PER_MS);
	uint64_t nonce = a.nonce;

	assert_int_equal(rig_campaign(&a, "job", 0), REFUSED); /* by itself, and it says so */
	assert_int_equal(a.record.nonce, nonce);
	assert_string_equal(a.record.lease_id, a.lease.id);
}

static void terms_grow_over_everything(void **state)
{
	uint64_t last = 0;

	(void)state;
	both_open(60000);
	for (int i = 0; i < 10; i++) {
		struct rig *r = i % 2 == 0 ? &a : &b;

		assert_int_equal(rig_campaign(r, "job", i == 5 ? 1000 : 0), OK);
		assert_true(r->term > last);
		last = r->term;
		assert_int_equal(rig_release(r, "job", NULL, 0), OK);
	}
	assert_true(last > 1000);
	assert_true(rig_count(dir, "elections/job") <= 2 * 3); /* history=3 */
	assert_int_equal(rig_observe(&a, "job"), OK);
	assert_false(a.record.held);
	/* Free for good, not "about to end": a candidate that sees it campaigns at once (L2). */
	assert_int_equal(a.record.free_in_ns, BATON_STORE_NEVER);
	assert_int_equal(rig_observe(&a, "never"), OK);
	assert_int_equal(a.record.free_in_ns, BATON_STORE_NEVER);
	assert_int_equal(rig_observe(&a, "job"), OK);
	assert_int_equal(a.record.term, last);
	assert_int_equal(rig_campaign(&a, "job", last + ((uint64_t)1 << 49)), FAILED);
	assert_int_equal(a.call.error.code, BATON_E_CORRUPT);
	assert_int_equal(rig_campaign(&a, "edge", (uint64_t)1 << 48), OK);
}

static void only_the_owner_releases(void **state)
{
	(void)state;
	both_open(60000);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	b.nonce = a.nonce;
	b.term = a.term;
	assert_int_equal(rig_release(&b, "job", NULL, 0), REFUSED);
	a.term++;
	assert_int_equal(rig_release(&a, "job", NULL, 0), REFUSED);
	a.term--;
	a.nonce++;
	assert_int_equal(rig_release(&a, "job", NULL, 0), REFUSED);
	a.nonce--;
	assert_int_equal(rig_release(&a, "job", NULL, 0), OK);
	assert_int_equal(rig_release(&a, "job", NULL, 0), REFUSED);
	assert_int_equal(rig_release(&a, "never", NULL, 0), REFUSED);
}

static void a_reservation_keeps_others_away(void **state)
{
	(void)state;
	both_open(60000);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	assert_int_equal(rig_release(&a, "job", "bob", 60000), OK);
	assert_int_equal(rig_campaign(&a, "job", 0), REFUSED);
	assert_true(a.record.reserved && !a.record.held && a.record.free_in_ns > 0);
	assert_int_equal(rig_observe(&b, "job"), OK);
	assert_false(b.record.reserved);
	assert_int_equal(rig_campaign(&b, "job", 0), OK);
	assert_int_equal(rig_release(&b, "job", "nobody", 60), OK);
	rig_wait_until(clock_boot_ns() + 61 * CLOCK_NS_PER_MS);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
}

static void a_batch_is_many_campaigns(void **state)
{
	enum { N = 40 };
	static struct baton_campaign list[N];
	static struct baton_record records[N];
	static char names[N][16];

	(void)state;
	both_open(60000);
	assert_int_equal(rig_campaign(&b, "n7", 0), OK);
	for (size_t i = 0; i < N; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "n%zu", i);
		list[i] = (struct baton_campaign){
			.name = names[i], .nonce = i + 1, .record = &records[i]};
		list[i].profile.metadata = "";
	}
	baton_file_driver.campaign(a.campaign, rig_call(&a, 5000), &a.lease, list, N);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(list[i].outcome, i == 7 ? REFUSED : OK);
	uint32_t n = 0;

	assert_int_equal(rig_renew(&a, &n), OK);
	assert_int_equal(n, N - 1);
	assert_int_equal(rig_claims(&a), N - 1);
}

/* More claims than one renewal looks at: each has its turn. */
static void lost_claims_are_found_in_turn(void **state)
{
	enum { N = 150 };
	char path[64];
	uint32_t n = 0;
	uint32_t last = N;

	(void)state;
	assert_int_equal(rig_lease(&a, 60000), OK);
	for (int i = 0; i < N; i++) {
		(void)snprintf(path, sizeof(path), "n%d", i);
		assert_int_equal(rig_campaign(&a, path, 0), OK);
	}
	assert_int_equal(rig_renew(&a, &n), OK);
	assert_int_equal(n, N);
	for (int i = 0; i < N; i += 3) {
		(void)snprintf(path, sizeof(path), "elections/n%d/00000000000000000001", i);
		assert_int_equal(unlink(in_dir(path)), 0);
	}
	for (int i = 0; i < 6; i++, last = n) {
		assert_int_equal(rig_renew(&a, &n), OK);
		assert_true(n <= last);
	}
	assert_int_equal(n, N - N / 3);
	assert_int_equal(rig_claims(&a), N - N / 3);
}

/* ---- leases ---- */

static void a_lease_ends_by_the_clock(void **state)
{
	uint32_t n;

	(void)state;
	both_open(800);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	uint64_t end_ns = clock_boot_ns() + 800 * CLOCK_NS_PER_MS;

	assert_int_equal(rig_lease(&b, 800), FAILED); /* the same id a second time */
	rig_wait_until(end_ns);
	b.lease.id[0] = b.lease.id[0] == 'a' ? 'b' : 'a';
	assert_int_equal(rig_lease(&b, 60000), OK);
	assert_int_equal(rig_campaign(&b, "job", 0), OK);
	assert_int_equal(b.term, 2);
	assert_int_equal(rig_renew(&a, &n), REFUSED); /* late renewals never resurrect */
	assert_int_equal(rig_campaign(&a, "job", 0), FAILED);
	assert_int_equal(rig_campaign(&a, "other", 0), FAILED);
	assert_int_equal(rig_release(&a, "job", NULL, 0), REFUSED);
	assert_int_equal(rig_lease_close(&a), OK);
	assert_int_equal(rig_lease_close(&a), OK);
}

static void renewals_keep_it(void **state)
{
	uint32_t n;

	(void)state;
	both_open(1000);
	uint64_t end_ns = clock_boot_ns() + 1500 * CLOCK_NS_PER_MS;

	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	while (clock_boot_ns() < end_ns) {
		assert_int_equal(rig_renew(&a, &n), OK);
		assert_int_equal(n, 1);
		assert_int_equal(rig_renew(&b, &n), OK);
		assert_int_equal(rig_campaign(&b, "job", 0), REFUSED);
		rig_wait_until(clock_boot_ns() + 50 * CLOCK_NS_PER_MS);
	}
}

static void a_closed_lease_gives_all_back(void **state)
{
	(void)state;
	both_open(60000);
	assert_int_equal(rig_campaign(&a, "one", 0), OK);
	assert_int_equal(rig_campaign(&a, "two", 0), OK);
	assert_int_equal(rig_publish(&a, "one", 1000, true, "x"), OK);
	assert_int_equal(rig_lease_close(&a), OK);
	assert_int_equal(rig_campaign(&b, "one", 0), OK);
	assert_int_equal(rig_campaign(&b, "two", 0), OK);
	assert_int_equal(rig_count(dir, "leases"), 2); /* bob's two files */
	assert_int_equal(rig_count(dir, "tmp"), 0);
}

static void a_dead_process_is_replaced_at_once(void **state)
{
	int status;

	(void)state;
	assert_int_equal(rig_lease(&b, 60000), OK);
	pid_t child = fork();

	if (child == 0) {
		struct rig c;

		rig_open(&c, dir, "", "carol");
		bool fine = rig_lease(&c, 60000) == OK && rig_campaign(&c, "job", 0) == OK &&
			    rig_publish(&c, "job", 1000, true, "") == OK;
		_exit(fine ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(rig_campaign(&b, "job", 0), OK);
	assert_int_equal(b.term, 2);
	assert_int_equal(rig_lease(&a, 60000), OK); /* the first one of a handle sweeps */
	assert_int_equal(rig_count(dir, "leases"), 4);
}

/* Who has made a file and not locked it yet is alive, however long it has to wait for its turn. */
static void young_files_are_not_swept(void **state)
{
	(void)state;
	assert_int_equal(rig_lease(&b, 60000), OK);
	int young = open(in_dir("tmp/young"), O_CREAT | O_WRONLY, 0600);
	int old = open(in_dir("tmp/old"), O_CREAT | O_WRONLY, 0600);

	assert_true(young >= 0 && old >= 0);
	rig_age(dir, "tmp/old");
	assert_int_equal(rig_lease(&a, 60000), OK);
	assert_int_equal(access(in_dir("tmp/young"), F_OK), 0);
	assert_int_not_equal(access(in_dir("tmp/old"), F_OK), 0);
	assert_int_equal(close(young) | close(old), 0);
}

/* ---- what others do to the files ---- */

static void removed_files_are_a_loss(void **state)
{
	char path[256];
	uint32_t n;

	(void)state;
	both_open(60000);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	assert_int_equal(unlink(in_dir("elections/job/00000000000000000001")), 0);
	assert_int_equal(rig_renew(&a, &n), OK);
	assert_int_equal(n, 0);
	assert_int_equal(rig_claims(&a), 0);
	(void)snprintf(path, sizeof(path), "leases/%s.alive", a.lease.id);
	assert_int_equal(unlink(in_dir(path)), 0);
	assert_int_equal(rig_renew(&a, &n), REFUSED);
	(void)snprintf(path, sizeof(path), "leases/%s", b.lease.id);
	assert_int_equal(unlink(in_dir(path)), 0);
	assert_int_equal(rig_renew(&b, &n), REFUSED);
	assert_int_equal(b.call.error.code, BATON_E_CORRUPT);
}

static void a_replaced_directory_is_a_loss(void **state)
{
	char old[300];
	uint32_t n;

	(void)state;
	both_open(60000);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	(void)snprintf(old, sizeof(old), "%s.old", dir);
	assert_int_equal(rename(dir, old), 0);
	assert_int_equal(rig_observe(&b, "job"), FAILED);
	assert_int_equal(b.call.error.code, BATON_E_UNAVAILABLE);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(rig_renew(&a, &n), REFUSED);
	assert_int_equal(rig_campaign(&b, "job", 0), FAILED); /* bob's lease is in the old one */
	rig_remove_dir(old);
}

static void lost_data_is_begun_anew(void **state)
{
	static const char *const parts[] = {"leases", "elections", "tmp"};
	uint32_t n;

	(void)state;
	both_open(60000);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		rig_remove_dir(in_dir(parts[i]));
	assert_int_equal(rig_renew(&a, &n), REFUSED);
	assert_int_equal(rig_lease_close(&a), OK);
	a.lease.id[0] = a.lease.id[0] == 'a' ? 'b' : 'a';
	assert_int_equal(rig_lease(&a, 60000), OK);
	assert_int_equal(rig_campaign(&a, "job", 1), OK);
	assert_int_equal(a.term, 2); /* N34: above the floor */
}

static void a_missing_lease_is_waited_out(void **state)
{
	char path[256];

	(void)state;
	assert_int_equal(rig_lease(&a, 800), OK);
	assert_int_equal(rig_lease(&b, 60000), OK);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	(void)snprintf(path, sizeof(path), "leases/%s", a.lease.id);
	assert_int_equal(unlink(in_dir(path)), 0);
	assert_int_equal(rig_campaign(&b, "job", 0), REFUSED); /* alice may still believe */
	rig_wait_until(clock_boot_ns() + 801 * CLOCK_NS_PER_MS);
	assert_int_equal(rig_campaign(&b, "job", 0), OK);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(in_dir(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(close(fd), 0);
}

static void damaged_files_stop_us(void **state)
{
	(void)state;
	both_open(60000);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	write_file("elections/job/00000000000000000002", "baton claim 1\nseq 2\n");
	assert_int_equal(rig_observe(&b, "job"), FAILED);
	assert_int_equal(b.call.error.code, BATON_E_CORRUPT);
	assert_non_null(strstr(b.call.error.text, "00000000000000000002"));
	assert_int_equal(rig_campaign(&b, "job", 0), FAILED);
	assert_int_equal(unlink(in_dir("elections/job/00000000000000000002")), 0);
	assert_int_equal(rig_campaign(&b, "job", 0), REFUSED);
	/* A folder that was moved makes no leader of another election. */
	assert_int_equal(rig_release(&a, "job", NULL, 0), OK);
	char from[1024];

	(void)snprintf(from, sizeof(from), "%s", in_dir("elections/job"));
	assert_int_equal(rename(from, in_dir("elections/other")), 0);
	assert_int_equal(rig_campaign(&b, "other", 0), FAILED);
	assert_int_equal(b.call.error.code, BATON_E_CORRUPT);
	/* An end counts by its name alone: only its owner makes it. */
	assert_int_equal(rename(in_dir("elections/other"), from), 0);
	write_file("elections/job/00000000000000000001.end", "");
	assert_int_equal(rig_campaign(&b, "job", 0), OK);
}

static void a_pipe_in_a_file_s_place_hangs_nobody(void **state)
{
	(void)state;
	both_open(60000);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	assert_int_equal(mkfifo(in_dir("elections/job/00000000000000000002"), 0600), 0);
	assert_int_equal(rig_observe(&b, "job"), FAILED);
	assert_int_equal(b.call.error.code, BATON_E_CORRUPT);
}

/* ---- candidates, orders, history ---- */

struct found {
	struct baton_candidate list[8];
	struct baton_leadership past[8];
	size_t n;
};

static void keep_candidate(void *arg, const struct baton_candidate *candidate)
{
	struct found *f = arg;

	if (f->n < 8)
		f->list[f->n++] = *candidate;
}

static void keep_past(void *arg, const struct baton_leadership *leadership)
{
	struct found *f = arg;

	if (f->n < 8)
		f->past[f->n++] = *leadership;
}

static void candidates_show_themselves(void **state)
{
	static struct found f;

	(void)state;
	both_open(60000);
	f.n = 0;
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	assert_int_equal(rig_publish(&a, "job", 100, true, "new \n words"), OK);
	assert_int_equal(rig_publish(&b, "job", 900, false, ""), OK);
	assert_int_equal(rig_publish(&b, "elsewhere", 500, true, ""), OK);
	assert_int_equal(baton_file_driver.candidates(a.campaign, rig_call(&a, 1000), "job",
						      keep_candidate, &f),
			 OK);
	assert_int_equal(f.n, 2);
	const struct baton_candidate *first = &f.list[strcmp(f.list[0].id, "alice") != 0];
	const struct baton_candidate *second = &f.list[strcmp(f.list[0].id, "alice") == 0];

	assert_true(first->is_leader && first->is_healthy && !second->is_leader);
	assert_string_equal(first->metadata, "new \n words");
	assert_string_equal(second->id, "bob");
	assert_false(second->is_healthy);
	assert_int_equal(rig_observe(&b, "job"), OK); /* the leader's newest words */
	assert_string_equal(b.record.metadata, "new \n words");
	assert_int_equal(b.record.score_permille, 100);
	assert_int_equal(
		baton_file_driver.withdraw(b.campaign, rig_call(&b, 1000), &b.lease, "job"), OK);
	assert_int_equal(rig_lease_close(&a), OK);
	f.n = 0;
	assert_int_equal(baton_file_driver.candidates(b.campaign, rig_call(&b, 1000), "job",
						      keep_candidate, &f),
			 OK);
	assert_int_equal(f.n, 0);
}

/* A process that shows itself in this election. */
static void add_candidate(unsigned number, const char *name)
{
	char path[160];

	(void)snprintf(path, sizeof(path), "leases/%032x-0-1.candidate", number);
	assert_int_equal(mkdir(in_dir(path), 0700), 0);
	(void)snprintf(path, sizeof(path), "leases/%032x-0-1.candidate/%s", number, name);
	int fd = open(in_dir(path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	(void)close(fd);
}

/* L4: who is told how many stand by, sets out in its turn. */
static void a_crowd_is_counted(void **state)
{
	(void)state;
	both_open(60000);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	assert_int_equal(rig_publish(&b, "job", 1000, true, ""), OK);
	/* A few are no crowd: whether they are counted depends on the file system. */
	assert_int_equal(rig_observe(&b, "job"), OK);
	assert_in_range(b.record.n_candidates, 0, 1);
	for (unsigned i = 1; i < 20; i++)
		add_candidate(i, "job");
	assert_int_equal(rig_observe(&b, "job"), OK);
	assert_int_equal(b.record.n_candidates, 20);
	assert_int_equal(rig_campaign(&b, "job", 0), REFUSED);
	assert_int_equal(b.record.n_candidates, 20);
	/* Some of very many are asked: all of them are candidates here, and none there. */
	for (unsigned i = 20; i < 100; i++)
		add_candidate(i, "job");
	assert_int_equal(rig_observe(&b, "job"), OK);
	assert_int_equal(b.record.n_candidates, 100);
	assert_int_equal(rig_campaign(&a, "other", 0), OK);
	assert_int_equal(rig_observe(&b, "other"), OK);
	assert_int_equal(b.record.n_candidates, 0);
	/* Nobody need know how many wait for what is free. */
	assert_int_equal(rig_release(&a, "other", NULL, 0), OK);
	assert_int_equal(rig_observe(&b, "other"), OK);
	assert_int_equal(b.record.n_candidates, 0);
}

static void orders_name_their_term(void **state)
{
	struct baton_order order = {.id = 77, .term = 2, .kind = BATON_ORDER_TRANSFER};

	(void)state;
	both_open(60000);
	(void)snprintf(order.target, sizeof(order.target), "bob");
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	assert_int_equal(baton_file_driver.order(b.campaign, rig_call(&b, 1000), "job", &order),
			 REFUSED);
	order.term = 1;
	assert_int_equal(baton_file_driver.order(b.campaign, rig_call(&b, 1000), "job", &order),
			 OK);
	assert_int_equal(rig_observe(&a, "job"), OK);
	assert_int_equal(a.record.order.id, 77);
	assert_int_equal(a.record.order.kind, BATON_ORDER_TRANSFER);
	assert_string_equal(a.record.order.target, "bob");
	assert_false(a.record.order.target_ok);
	assert_int_equal(rig_publish(&b, "job", 900, true, ""), OK);
	assert_int_equal(rig_observe(&a, "job"), OK);
	assert_true(a.record.order.target_ok);
	assert_int_equal(rig_release(&a, "job", NULL, 0), OK);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	assert_int_equal(rig_observe(&a, "job"), OK);
	assert_int_equal(a.record.order.id, 0); /* rule 10 */
	assert_int_equal(rig_count(dir, "elections/job"), 3);
}

static void nobody_wins_while_paused(void **state)
{
	(void)state;
	both_open(60000);
	assert_int_equal(baton_file_driver.pause(b.campaign, rig_call(&b, 1000), "job", true), OK);
	assert_int_equal(rig_campaign(&a, "job", 0), REFUSED);
	assert_true(a.record.paused && !a.record.held);
	assert_int_equal(baton_file_driver.pause(b.campaign, rig_call(&b, 1000), "job", false), OK);
	assert_int_equal(baton_file_driver.pause(b.campaign, rig_call(&b, 1000), "job", false), OK);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
}

static void history_tells_who_led(void **state)
{
	static struct found f;

	(void)state;
	both_open(60000);
	f.n = 0;
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	assert_int_equal(rig_release(&a, "job", NULL, 0), OK);
	assert_int_equal(rig_campaign(&b, "job", 0), OK);
	assert_int_equal(rig_lease_close(&b), OK);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	assert_int_equal(
		baton_file_driver.history(a.campaign, rig_call(&a, 1000), "job", 8, keep_past, &f),
		OK);
	assert_int_equal(f.n, 3);
	assert_int_equal(f.past[0].term, 3);
	assert_string_equal(f.past[0].leader, "alice");
	assert_string_equal(f.past[0].ended, "");
	assert_string_equal(f.past[1].leader, "bob");
	assert_string_equal(f.past[1].ended, "closed");
	assert_string_equal(f.past[2].ended, "resigned");
	assert_true(f.past[2].until_ms >= f.past[2].since_ms && f.past[2].since_ms > 0);
	/* By the boot clock: each began after the end of the one before it. */
	for (size_t i = 2; i > 0; i--) {
		assert_true(f.past[i].since_ns > 0 && f.past[i].until_ns > f.past[i].since_ns);
		assert_true(f.past[i - 1].since_ns > f.past[i].until_ns);
		assert_string_equal(f.past[i].clock, f.past[0].clock);
	}
	assert_int_equal(f.past[0].until_ns, 0);
}

/* ---- push ---- */

static void hints_come_at_once(void **state)
{
	struct baton_order order = {.id = 1, .term = 1, .kind = BATON_ORDER_RESIGN};

	(void)state;
	both_open(1500);
	assert_int_equal(baton_file_driver.watch_add(b.watch, "job", 42), BATON_OK);
	assert_true(rig_hinted(&b, 42, 1000)); /* it is watched now */
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	assert_true(rig_hinted(&b, 42, 1000));
	assert_int_equal(rig_observe(&b, "job"), OK);
	assert_true(b.record.watched);
	while (rig_hinted(&b, 42, 20))
		;
	assert_int_equal(baton_file_driver.order(b.campaign, rig_call(&b, 1000), "job", &order),
			 OK);
	assert_true(rig_hinted(&b, 42, 1000));
	assert_int_equal(rig_release(&a, "job", NULL, 0), OK);
	assert_true(rig_hinted(&b, 42, 1000));
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	assert_true(rig_hinted(&b, 42, 1000));
	assert_int_equal(rig_observe(&b, "job"), OK);
	/* Nothing more comes from alice: the expiry of her lease is hinted at, too. */
	assert_true(rig_hinted(&b, 42, 4000));
	assert_int_equal(rig_observe(&b, "job"), OK);
	assert_false(b.record.held);
	baton_file_driver.watch_remove(b.watch, "job", 42);
}

static void a_death_is_hinted_at(void **state)
{
	int status;
	int ready[2];
	char byte;

	(void)state;
	assert_int_equal(rig_lease(&b, 60000), OK);
	assert_int_equal(baton_file_driver.watch_add(b.watch, "job", 42), BATON_OK);
	assert_true(rig_hinted(&b, 42, 1000));
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t child = fork();

	if (child == 0) {
		struct rig c;

		rig_open(&c, dir, "", "carol");
		bool fine = rig_lease(&c, 60000) == OK && rig_campaign(&c, "job", 0) == OK;
		(void)!write(ready[1], fine ? "y" : "n", 1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	(void)rig_hinted(&b, 42, 100);
	assert_int_equal(rig_observe(&b, "job"), OK);
	assert_true(b.record.held && b.record.watched);
	assert_int_equal(kill(child, SIGKILL), 0);
	uint64_t killed_ns = clock_boot_ns();

	assert_true(rig_hinted(&b, 42, 2000));
	uint64_t heard_ns = clock_boot_ns();

	assert_int_equal(rig_campaign(&b, "job", 0), OK);
	print_message("death heard of after %.2f ms, led after %.2f ms\n",
		      (double)(heard_ns - killed_ns) / 1e6,
		      (double)(clock_boot_ns() - killed_ns) / 1e6);
	assert_int_equal(waitpid(child, &status, 0), child);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(one_wins_and_the_other_is_told),
		T(terms_grow_over_everything),
		T(only_the_owner_releases),
		T(a_reservation_keeps_others_away),
		T(a_batch_is_many_campaigns),
		T(lost_claims_are_found_in_turn),
		T(a_lease_ends_by_the_clock),
		T(renewals_keep_it),
		T(a_closed_lease_gives_all_back),
		T(a_dead_process_is_replaced_at_once),
		T(young_files_are_not_swept),
		T(removed_files_are_a_loss),
		T(a_replaced_directory_is_a_loss),
		T(lost_data_is_begun_anew),
		T(a_missing_lease_is_waited_out),
		T(damaged_files_stop_us),
		T(a_pipe_in_a_file_s_place_hangs_nobody),
		T(candidates_show_themselves),
		T(a_crowd_is_counted),
		T(orders_name_their_term),
		T(nobody_wins_while_paused),
		T(history_tells_who_led),
		T(hints_come_at_once),
		T(a_death_is_hinted_at),
#undef T
	};

	return cmocka_run_group_tests_name("file_verbs", tests, NULL, NULL);
}
