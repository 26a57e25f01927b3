/*
 * file_steps.c: every verb of the file store, interrupted at every one of its system calls.
 *
 * killed   the process is dead. Another must lead at once, in a higher term, and a sweep must
 *          leave nothing of the dead one behind.
 * frozen   the process stands still, its locks held. Another must lead when the lease has
 *          expired; woken up, the frozen one must not believe that it leads, and must not
 *          disturb who does.
 * failed   the call fails: no space, no descriptors, a broken disk, no permission. What the verb
 *          then says must be true: OK and REFUSED as in the store, FAILED only if nothing stands.
 *
 * By default each call fails in one way; with the variable BATON_STEPS=all in every way.
 * A RAM file system does: what is asked here is the order of things, not what the disk keeps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/rig.h"
#include "store/stepper.h"

#define OK BATON_OUTCOME_OK
#define LONG_MS 60000 /* a lease that doesn't end by itself here */
#define SHORT_MS 40
#define CALLS_MAX 400
#define LIMIT_MS 5000

/* What the child tells, through shared memory. */
struct report {
	int outcome;
	int code;
	uint64_t term;
	uint64_t deadline_ns; /* until when it may believe, counted from before the send */
	bool done;
	bool has_text;
};

struct child {
	struct rig rig;
	const struct scenario *scenario;
	struct report *report;
	uint64_t ttl_ms;
	char dir[256];
};

struct scenario {
	const char *name;
	bool (*prepare)(struct child *c); /* NULL: nothing; the lease is open */
	int (*run)(struct child *c);
	bool claims;    /* it makes a claim, or has one */
	bool own_lease; /* it opens its own lease */
};

/* ---- the verbs ---- */

static bool lead(struct child *c)
{
	c->report->term = 0;
	if (rig_campaign(&c->rig, "job", 0) != OK)
		return false;
	c->report->term = c->rig.term;
	return true;
}

static bool lead_and_show(struct child *c)
{
	struct baton_order order = {.id = 5, .kind = BATON_ORDER_TRANSFER};

	if (!lead(c))
		return false;
	order.term = c->rig.term;
	(void)snprintf(order.target, sizeof(order.target), "alice");
	return rig_publish(&c->rig, "job", 900, true, "m") == OK &&
	       baton_file_driver.order(c->rig.campaign, rig_call(&c->rig, LIMIT_MS), "job",
				       &order) == OK;
}

static int run_open(struct child *c)
{
	return rig_lease(&c->rig, c->ttl_ms);
}

static int run_renew(struct child *c)
{
	uint32_t n;
	uint64_t sent_ns = clock_boot_ns();
	int outcome = rig_renew(&c->rig, &n);

	if (outcome == OK)
		c->report->deadline_ns = sent_ns + c->ttl_ms * CLOCK_NS_PER_MS;
	return outcome;
}

static int run_campaign(struct child *c)
{
	int outcome = rig_campaign(&c->rig, "job", 0);

	if (outcome == OK)
		c->report->term = c->rig.term;
	return outcome;
}

static int run_release(struct child *c)
{
	return rig_release(&c->rig, "job", NULL, 0);
}

static int run_close(struct child *c)
{
	return rig_lease_close(&c->rig);
}

static int run_observe(struct child *c)
{
	return rig_observe(&c->rig, "job");
}

static int run_claims(struct child *c)
{
	return rig_claims(&c->rig) >= 0 ? OK : BATON_OUTCOME_FAILED;
}

static int run_publish(struct child *c)
{
	return rig_publish(&c->rig, "job", 950, true, "n");
}

static int run_withdraw(struct child *c)
{
	return baton_file_driver.withdraw(c->rig.campaign, rig_call(&c->rig, LIMIT_MS),
					  &c->rig.lease, "job");
}

static void ignore_candidate(void *arg, const struct baton_candidate *candidate)
{
	(void)arg;
	(void)candidate;
}

static void ignore_past(void *arg, const struct baton_leadership *leadership)
{
	(void)arg;
	(void)leadership;
}

static int run_candidates(struct child *c)
{
	return baton_file_driver.candidates(c->rig.campaign, rig_call(&c->rig, LIMIT_MS), "job",
					    ignore_candidate, NULL);
}

static int run_history(struct child *c)
{
	return baton_file_driver.history(c->rig.campaign, rig_call(&c->rig, LIMIT_MS), "job", 10,
					 ignore_past, NULL);
}

static int run_order(struct child *c)
{
	struct baton_order order = {
		.id = 9, .term = c->rig.term, .kind = BATON_ORDER_RESIGN, .quiet_ms = 1};

	return baton_file_driver.order(c->rig.campaign, rig_call(&c->rig, LIMIT_MS), "job", &order);
}

static int run_pause(struct child *c)
{
	int outcome =
		baton_file_driver.pause(c->rig.campaign, rig_call(&c->rig, LIMIT_MS), "job", true);

	return outcome != OK ? outcome
			     : baton_file_driver.pause(c->rig.campaign, rig_call(&c->rig, LIMIT_MS),
						       "job", false);
}

static int run_watch(struct child *c)
{
	uint64_t cookies[4];

	(void)baton_file_driver.watch_add(c->rig.watch, "job", 1);
	return baton_file_driver.watch_wait(c->rig.watch, rig_call(&c->rig, LIMIT_MS), cookies,
					    4) >= 0
		       ? OK
		       : BATON_OUTCOME_FAILED;
}

static const struct scenario scenarios[] = {
	{"lease_open", NULL, run_open, false, true},
	{"lease_renew", lead, run_renew, true, false},
	{"campaign", NULL, run_campaign, true, false},
	{"release", lead, run_release, true, false},
	{"lease_close", lead_and_show, run_close, true, false},
	{"observe", lead_and_show, run_observe, true, false},
	{"claims", lead, run_claims, true, false},
	{"publish", NULL, run_publish, false, false},
	{"withdraw", lead_and_show, run_withdraw, true, false},
	{"candidates", lead_and_show, run_candidates, true, false},
	{"history", lead, run_history, true, false},
	{"order", lead, run_order, true, false},
	{"pause", NULL, run_pause, false, false},
	{"watch", lead, run_watch, true, false},
};

/* ---- the child ---- */

/* On a busy machine a short lease may end before all is prepared: then once more, with another. */
static void prepare(void *arg)
{
	struct child *c = arg;
	bool done = false;

	for (int i = 0; i < 50 && !done; i++) {
		rig_open(&c->rig, c->dir, "?history=1", "alice");
		c->report->deadline_ns = clock_boot_ns() + c->ttl_ms * CLOCK_NS_PER_MS;
		c->rig.lease.ttl_ns = c->ttl_ms * CLOCK_NS_PER_MS;
		done = (c->scenario->own_lease || rig_lease(&c->rig, c->ttl_ms) == OK) &&
		       (c->scenario->prepare == NULL || c->scenario->prepare(c));
		if (done)
			break;
		(void)rig_lease_close(&c->rig);
		rig_close(&c->rig);
	}
	if (!done)
		abort();
}

static void run(void *arg)
{
	struct child *c = arg;

	c->report->outcome = c->scenario->run(c);
	c->report->code = c->rig.call.error.code;
	c->report->has_text = c->rig.call.error.text[0] != '\0';
	c->report->done = true;
}

/* ---- one run ---- */

struct run {
	struct child child;
	struct stepper stepper;
	struct rig bob;
	uint64_t top; /* the highest term that anybody was told */
};

/* A store in which bob has led twice, and leads no more. */
static void begin(struct run *r, const struct scenario *scenario, uint64_t ttl_ms)
{
	static struct report *shared;

	if (shared == NULL)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	memset(r, 0, sizeof(*r));
	memset(shared, 0, sizeof(*shared));
	r->child.scenario = scenario;
	r->child.report = shared;
	r->child.ttl_ms = ttl_ms;
	rig_make_dir(r->child.dir, sizeof(r->child.dir));
	rig_open(&r->bob, r->child.dir, "?history=1", "bob");
	assert_int_equal(rig_lease(&r->bob, LONG_MS), OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rig_campaign(&r->bob, "job", 0), OK);
		assert_int_equal(rig_release(&r->bob, "job", NULL, 0), OK);
	}
	stepper_start(&r->stepper, prepare, run, &r->child);
	r->top = r->bob.term > shared->term ? r->bob.term : shared->term;
}

/* Bob leads, within a time that only a machine under load needs. */
static void bob_leads(struct run *r, const char *where)
{
	uint64_t limit_ns = clock_boot_ns() + LIMIT_MS * CLOCK_NS_PER_MS;
	int outcome;

	if (r->child.report->done && r->child.report->outcome == OK &&
	    r->child.report->term > r->top)
		r->top = r->child.report->term;
	do {
		outcome = rig_campaign(&r->bob, "job", 0);
		if (outcome != OK && r->bob.record.paused)
			(void)baton_file_driver.pause(r->bob.campaign, rig_call(&r->bob, LIMIT_MS),
						      "job", false);
	} while (outcome != OK && clock_boot_ns() < limit_ns);
	if (outcome != OK)
		fail_msg("%s: nobody can lead: %d %s", where, outcome, r->bob.call.error.text);
	if (r->bob.term <= r->top)
		fail_msg("%s: term %llu after %llu", where, (unsigned long long)r->bob.term,
			 (unsigned long long)r->top);
}

/* Who opens its first lease sweeps. Then only the living have files: bob, and the new one. */
static void end(struct run *r, const char *where)
{
	struct rig carol;

	stepper_kill(&r->stepper);
	rig_open(&carol, r->child.dir, "", "carol");
	rig_age(r->child.dir, "tmp");
	assert_int_equal(rig_lease(&carol, LONG_MS), OK);
	int leases = rig_count(r->child.dir, "leases");
	int tmp = rig_count(r->child.dir, "tmp");

	if (leases != 4 || tmp != 0)
		fail_msg("%s: %d entries in leases, %d in tmp", where, leases, tmp);
	rig_close(&carol);
	rig_close(&r->bob);
	rig_remove_dir(r->child.dir);
}

static bool killed_at(const struct scenario *scenario, int n)
{
	struct run r;
	char where[64];

	(void)snprintf(where, sizeof(where), "%s, killed at call %d", scenario->name, n);
	begin(&r, scenario, LONG_MS);
	bool more = stepper_goto(&r.stepper, n);

	stepper_kill(&r.stepper);
	bob_leads(&r, where);
	end(&r, where);
	return more;
}

static bool frozen_at(const struct scenario *scenario, int n)
{
	struct run r;
	char where[64];

	(void)snprintf(where, sizeof(where), "%s, frozen at call %d", scenario->name, n);
	begin(&r, scenario, SHORT_MS);
	bool more = stepper_goto(&r.stepper, n);

	bob_leads(&r, where);
	stepper_finish(&r.stepper);
	const struct report *report = r.child.report;

	/* What is_leader() would say: bob leads, so alice's time must be over. */
	if (!report->done || (scenario->claims && report->outcome == OK && report->term > r.top &&
			      clock_boot_ns() < report->deadline_ns))
		fail_msg("%s: woken up, it believes", where);
	if (rig_observe(&r.bob, "job") != OK || !r.bob.record.held ||
	    strcmp(r.bob.record.leader, "bob") != 0 || r.bob.record.term != r.bob.term)
		fail_msg("%s: woken up, it disturbs who leads", where);
	end(&r, where);
	return more;
}

/* The child lives and stands still: is what it was told true? */
static void check_answer(struct run *r, const char *where)
{
	const struct report *report = r->child.report;
	const char *name = r->child.scenario->name;

	assert_int_equal(rig_observe(&r->bob, "job"), OK);
	bool holds = r->bob.record.held && strcmp(r->bob.record.leader, "alice") == 0;

	if (report->outcome == OK && strcmp(name, "campaign") == 0 &&
	    (!holds || r->bob.record.term != report->term))
		fail_msg("%s: told that it won, but didn't", where);
	if ((report->outcome == BATON_OUTCOME_FAILED || report->outcome == BATON_OUTCOME_REFUSED) &&
	    strcmp(name, "campaign") == 0 && holds)
		fail_msg("%s: told that it failed, but holds it", where);
	if (report->outcome == OK && strcmp(name, "release") == 0 && holds)
		fail_msg("%s: told that it released, but didn't", where);
	if (report->outcome == BATON_OUTCOME_FAILED && strcmp(name, "release") == 0 && !holds)
		fail_msg("%s: told that nothing happened, but it did", where);
	if (report->outcome == BATON_OUTCOME_FAILED && (report->code == 0 || !report->has_text))
		fail_msg("%s: fails without a word", where);
}

static bool failed_at(const struct scenario *scenario, int n, int error)
{
	struct run r;
	char where[80];

	(void)snprintf(where, sizeof(where), "%s, errno %d at call %d", scenario->name, error, n);
	begin(&r, scenario, LONG_MS);
	bool more = stepper_goto(&r.stepper, n);

	if (more)
		(void)stepper_fail(&r.stepper, error);
	stepper_finish(&r.stepper);
	if (!r.child.report->done)
		fail_msg("%s: it crashed", where);
	check_answer(&r, where);
	stepper_kill(&r.stepper);
	bob_leads(&r, where);
	end(&r, where);
	return more;
}

/* ---- all runs ---- */

static size_t n_runs;

static void at_every_call(bool (*one)(const struct scenario *scenario, int n))
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		for (int n = 1; n < CALLS_MAX && one(&scenarios[i], n); n++)
			n_runs++;
}

static void killed_everywhere(void **state)
{
	(void)state;
	at_every_call(killed_at);
}

static void frozen_everywhere(void **state)
{
	(void)state;
	at_every_call(frozen_at);
}

static void failing_everywhere(void **state)
{
	static const int errors[] = {ENOSPC, EIO, EMFILE, EACCES, ENOMEM};
	const size_t n_errors = sizeof(errors) / sizeof(errors[0]);
	const char *how = getenv("BATON_STEPS");
	bool all = how != NULL && strcmp(how, "all") == 0;

	(void)state;
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		bool more = true;

		for (int n = 1; n < CALLS_MAX && more; n++)
			for (size_t k = 0; k < (all ? n_errors : 1) && more; k++, n_runs++)
				more = failed_at(&scenarios[i], n,
						 errors[((size_t)n + i + k) % n_errors]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_everywhere),
		cmocka_unit_test(frozen_everywhere),
		cmocka_unit_test(failing_everywhere),
	};

	if (getenv("TMPDIR") == NULL && access("/dev/shm", W_OK) == 0)
		(void)setenv("TMPDIR", "/dev/shm", 1);
	int failed = cmocka_run_group_tests_name("file_steps", tests, NULL, NULL);

	(void)printf("file_steps: %zu runs\n", n_runs);
	return failed;
}
