/*
 * test_handle.c: what a handle tells of itself: its timings as they really are, the lock for work,
 * until when work may go on, and the drivers there are.
 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "baton-memory.h"
#include "baton.h"
#include "runtime/runtime.h"

#define S ((uint64_t)1000000000)
#define MS ((uint64_t)1000000)
#define SOON_MS 20000

static struct baton *open_with(const char *url, uint64_t lease_ms, uint32_t drift_permille)
{
	struct baton_options o;
	struct baton *b = NULL;

	baton_options_init(&o);
	o.lease_ms = lease_ms;
	o.drift_permille = drift_permille;
	assert_int_equal(baton_open(url, &o, &b, NULL), 0);
	return b;
}

static void timings_are_filled_in(void **state)
{
	struct baton *b = open_with("memory:handle", 15000, 100);
	struct baton_timings t;

	(void)state;
	assert_int_equal(baton_get_timings(b, &t), 0);
	assert_int_equal(t.size, sizeof(t));
	assert_int_equal(t.lease_ns, 15 * S);
	assert_int_equal(t.renew_ns, 5 * S);
	assert_int_equal(t.grace_ns, 5 * S);
	assert_int_equal(t.end_ns, 13500 * MS);
	assert_int_equal(t.drain_ns, 3500 * MS);
	assert_int_equal(t.gone_ns, 16500 * MS);
	assert_int_equal(t.retry_ns, 2 * S);
	assert_int_equal(t.retry_max_ns, 10 * S);
	assert_int_equal(t.call_ns, 5 * S / 3);
	assert_int_equal(t.drift_permille, 100);
	assert_false(t.proves_death);
	baton_close(b);
}

/* A program that was compiled with less than we know gets that; nothing is written behind it. */
static void timings_know_their_size(void **state)
{
	struct baton *b = open_with("memory:handle", 3000, 0);
	struct baton_timings t;

	(void)state;
	(void)memset(&t, 0xee, sizeof(t));
	assert_int_equal(baton_get_timings_sized(b, &t, offsetof(struct baton_timings, grace_ns)),
			 0);
	assert_int_equal(t.size, offsetof(struct baton_timings, grace_ns));
	assert_int_equal(t.lease_ns, 3 * S);
	assert_int_equal(t.renew_ns, 1 * S);
	assert_int_equal(t.grace_ns, 0xeeeeeeeeeeeeeeee);
	struct {
		struct baton_timings known;
		uint64_t more;
	} newer = {.more = 1};

	assert_int_equal(baton_get_timings_sized(b, &newer.known, sizeof(newer)), 0);
	assert_int_equal(newer.known.size, sizeof(newer.known));
	assert_int_equal(newer.more, 0);
	assert_int_equal(baton_get_timings_sized(b, NULL, sizeof(t)), BATON_E_INVALID);
	assert_int_equal(baton_get_timings_sized(b, &t, 1), BATON_E_INVALID);
	assert_int_equal(baton_get_timings(NULL, &t), BATON_E_INVALID);
	baton_close(b);
}

static void work_lock_of_a_directory(void **state)
{
	struct baton *b = open_with("file:/nonexistent/a%20b/?mode=0770", 15000, 100);
	struct baton_error err = {0};
	char path[4096];
	uint32_t mode = 0;

	(void)state;
	assert_int_equal(baton_work_lock(b, "Nightly/job", path, sizeof(path), &mode, &err), 0);
	assert_string_equal(path, "/nonexistent/a b/elections/%4eightly%2fjob/work");
	assert_int_equal(mode, 0660);
	assert_int_equal(baton_work_lock(b, "n", path, sizeof("/nonexistent/a b/elections/n/work"),
					 &mode, &err),
			 0);
	assert_int_equal(baton_work_lock(b, "n", path, strlen("/nonexistent/a b/elections/n/work"),
					 &mode, &err),
			 BATON_E_INVALID);
	assert_int_equal(baton_work_lock(b, "a\nb", path, sizeof(path), &mode, &err),
			 BATON_E_INVALID);
	assert_int_equal(baton_work_lock(NULL, "n", path, sizeof(path), &mode, NULL),
			 BATON_E_INVALID);
	baton_close(b);
}

static void no_work_lock_elsewhere(void **state)
{
	struct baton *b = open_with("memory:handle", 15000, 100);
	struct baton_error err = {0};
	char path[64];
	uint32_t mode;

	(void)state;
	assert_int_equal(baton_work_lock(b, "n", path, sizeof(path), &mode, &err),
			 BATON_E_UNSUPPORTED);
	assert_true(err.text[0] != '\0');
	assert_int_equal(baton_work_lock(b, "n", path, sizeof(path), &mode, NULL),
			 BATON_E_UNSUPPORTED);
	baton_close(b);
}

/* Waits until it leads, or its lease was renewed after `since_ns`; never for long. */
static struct baton_status status_when(const struct baton_election *e, bool leads, int64_t since_ns)
{
	struct baton_status status;

	for (int i = 0; i < 20000; i++) {
		assert_int_equal(baton_get_status(e, &status), 0);
		if (status.is_leader == leads && status.last_renewal_boot_ns > since_ns)
			return status;
		(void)poll(NULL, 0, 1);
	}
	fail_msg("waited in vain");
	return status;
}

/* Nobody has pulled an event yet: by the time they do, another lease may have been opened. */
static void work_ends_with_its_own_lease(void **state)
{
	struct baton *b = open_with("memory:work-end", 1000, 100);
	struct baton_timings t;
	struct baton_election *e = NULL;
	struct baton_memory *m = NULL;

	(void)state;
	assert_int_equal(baton_get_timings(b, &t), 0);
	assert_int_equal(baton_memory_open("memory:work-end", &m, NULL), 0);
	assert_int_equal(baton_election_new(b, "n", NULL, &e, NULL), 0);
	struct baton_event none;

	assert_int_equal(baton_wait(b, 0, &none), 0); /* somebody will listen */
	assert_int_equal(baton_election_start(e), 0);
	struct baton_status led = status_when(e, true, 0);
	struct baton_status renewed = status_when(e, true, led.last_renewal_boot_ns);

	assert_true(led.work_end_boot_ns > led.last_renewal_boot_ns);
	assert_true(renewed.work_end_boot_ns > led.work_end_boot_ns);
	assert_true(renewed.work_end_boot_ns <= (int64_t)(clock_boot_ns() + t.end_ns));
	(void)baton_memory_expire(m, NULL);
	(void)status_when(e, false, 0);
	struct baton_status anew = status_when(e, false, (int64_t)clock_boot_ns());

	assert_int_equal(anew.work_end_boot_ns, 0);
	baton_memory_close(m);
	baton_close(b);
}

/* ---- the end of an election ---- */

struct slow {
	_Atomic int n_told;
	_Atomic bool is_stopped;
};

static void tell_slowly(void *arg, const struct baton_event *event)
{
	struct slow *s = arg;

	(void)poll(NULL, 0, 50);
	atomic_fetch_add(&s->n_told, 1);
	if (event->kind == BATON_EVENT_STOPPED)
		atomic_store(&s->is_stopped, true);
}

/* S8: what a handler uses may go when a stop has returned; also if it is the second one. */
static void stop_waits_for_the_handler(void **state)
{
	struct baton *b = open_with("memory:slow", 2000, 100);
	struct baton_election_options o;
	struct baton_election *e = NULL;
	struct slow slow = {0};

	(void)state;
	baton_election_options_init(&o);
	o.handler = tell_slowly;
	o.handler_arg = &slow;
	assert_int_equal(baton_election_new(b, "slow", &o, &e, NULL), 0);
	assert_int_equal(baton_election_start(e), 0);
	while (atomic_load(&slow.n_told) < 1)
		(void)poll(NULL, 0, 1);
	assert_int_equal(baton_election_stop(e, 0), BATON_E_TIMEOUT);
	while (baton_election_stop(e, 1) != 0)
		;
	baton_election_free(e);
	int n_told = atomic_load(&slow.n_told);

	assert_true(atomic_load(&slow.is_stopped));
	(void)poll(NULL, 0, 120);
	assert_int_equal(atomic_load(&slow.n_told), n_told);
	baton_close(b);
}

static void *leave_at_loss(void *arg)
{
	struct baton_context *ctx = arg;

	(void)baton_context_wait(ctx, -1);
	baton_leave(ctx);
	return NULL;
}

static int stop_inside(struct baton_context *ctx, void *arg)
{
	(void)ctx;
	return baton_election_stop(arg, SOON_MS) == BATON_E_TIMEOUT;
}

static void lead(struct baton_election *e)
{
	assert_int_equal(baton_election_start(e), 0);
	assert_int_equal(baton_try_acquire(e, SOON_MS, NULL), 1);
}

/* Any thread may leave a context: the one that entered it may so wait for another to leave it. */
static void stop_waits_for_work_elsewhere(void **state)
{
	struct baton *b = open_with("memory:elsewhere", 2000, 100);
	struct baton_election *e = NULL;
	struct baton_context *ctx = NULL;
	pthread_t worker;

	(void)state;
	assert_int_equal(baton_election_new(b, "elsewhere", NULL, &e, NULL), 0);
	lead(e);
	assert_int_equal(baton_enter(e, &ctx, NULL), 0);
	assert_int_equal(pthread_create(&worker, NULL, leave_at_loss, ctx), 0);
	assert_int_equal(baton_election_stop(e, SOON_MS), 0);
	assert_int_equal(pthread_join(worker, NULL), 0);
	/* Without a limit, a thread could wait for itself for ever. */
	lead(e);
	assert_int_equal(baton_enter(e, &ctx, NULL), 0);
	assert_int_equal(baton_election_stop(e, -1), BATON_E_TIMEOUT);
	baton_leave(ctx);
	assert_int_equal(baton_election_stop(e, SOON_MS), 0);
	/* A function that runs on this thread ends only after its stop. */
	lead(e);
	assert_int_equal(baton_run_if_leader(e, stop_inside, e), 1);
	baton_close(b);
}

struct fate {
	_Atomic int n_became;
	_Atomic int n_lost;
};

static void note_fate(void *arg, const struct baton_event *event)
{
	struct fate *f = arg;

	atomic_fetch_add(&f->n_became, event->kind == BATON_EVENT_BECAME);
	atomic_fetch_add(&f->n_lost, event->kind == BATON_EVENT_LOST);
}

static void stand_still(int sig)
{
	(void)sig;
	(void)poll(NULL, 0, 600);
}

/* S8: a machine may keep the loop from running for longer than a lease; lost is told even so. */
static void close_waits_for_lost(void **state)
{
	const struct sigaction frozen = {.sa_handler = stand_still, .sa_flags = SA_RESTART};
	struct baton *b = open_with("memory:fate", 200, 100);
	struct baton_election_options o;
	struct baton_election *e = NULL;
	struct fate fate = {0};

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &frozen, NULL), 0);
	baton_election_options_init(&o);
	o.handler = note_fate;
	o.handler_arg = &fate;
	assert_int_equal(baton_election_new(b, "fate", &o, &e, NULL), 0);
	assert_int_equal(baton_election_start(e), 0);
	while (atomic_load(&fate.n_became) < 1)
		(void)poll(NULL, 0, 1);
	assert_int_equal(pthread_kill(b->loop_thread, SIGUSR1), 0);
	baton_close(b);
	assert_int_equal(atomic_load(&fate.n_lost), atomic_load(&fate.n_became));
}

static void note_driver(void *arg, const struct baton_driver_info *info)
{
	char *seen = arg;

	assert_int_equal(info->size, sizeof(*info));
	assert_null(info->error);
	assert_null(info->module);
	assert_true(strlen(info->promises) > 40);
	assert_string_equal(info->schemes[0], info->name);
	assert_null(info->schemes[1]);
	assert_int_equal(info->proves_death, strcmp(info->name, "file") == 0);
	size_t n = strlen(seen);

	(void)snprintf(seen + n, 100 - n, "%s ", info->name);
}

static void drivers_are_listed(void **state)
{
	char seen[100] = "";

	(void)state;
	assert_int_equal(baton_list_drivers(note_driver, seen), 2);
	assert_string_equal(seen, "file memory ");
	assert_int_equal(baton_list_drivers(NULL, NULL), BATON_E_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timings_are_filled_in),
		cmocka_unit_test(timings_know_their_size),
		cmocka_unit_test(work_lock_of_a_directory),
		cmocka_unit_test(no_work_lock_elsewhere),
		cmocka_unit_test(work_ends_with_its_own_lease),
		cmocka_unit_test(stop_waits_for_the_handler),
		cmocka_unit_test(stop_waits_for_work_elsewhere),
		cmocka_unit_test(close_waits_for_lost),
		cmocka_unit_test(drivers_are_listed),
	};

	/* None but those that are built in. */
	(void)setenv("BATON_MODULE_DIR", "/nonexistent", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
