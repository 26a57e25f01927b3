/*
 * test_own_leases.c: elections that have a lease each, as on Kubernetes and on locks of PostgreSQL.
 * Threads that still hold the election may ask it things after the loop has let go of its lease.
 * The sanitizers' build sees whether they read what is gone. The store is the memory store, which a
 * test tells to open a lease with each campaign.
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "baton-memory.h"
#include "baton.h"
#include "runtime/runtime.h"

#define SOON_MS 20000
#define ROUNDS 30

extern const struct baton_driver baton_memory_driver;

static void campaign_with_lease(void *lane, struct baton_call *call,
				const struct baton_lease *lease, struct baton_campaign *list,
				size_t n)
{
	(void)baton_memory_driver.lease_open(lane, call, lease);
	baton_memory_driver.campaign(lane, call, lease, list, n);
}

/* Before the first election: from then on the threads of the library read this. */
static struct baton *open_own(const char *url)
{
	struct baton_options o;
	struct baton *b = NULL;

	baton_options_init(&o);
	o.id = "a";
	o.dispatchers = 1;
	o.lease_ms = 2000;
	assert_int_equal(baton_open(url, &o, &b, NULL), 0);
	b->traits_known.own_leases = true;
	b->driver_table.campaign = campaign_with_lease;
	return b;
}

static struct baton_election *make(struct baton *b, const char *name,
				   void (*handler)(void *arg, const struct baton_event *ev),
				   void *arg)
{
	struct baton_election_options o;
	struct baton_election *e = NULL;

	baton_election_options_init(&o);
	o.handler = handler;
	o.handler_arg = arg;
	assert_int_equal(baton_election_new(b, name, &o, &e, NULL), 0);
	return e;
}

/* All that is left of it is the references of the test. */
static void until_refs(struct baton_election *e, uint32_t n)
{
	uint64_t limit_ns = clock_boot_ns() + SOON_MS * CLOCK_NS_PER_MS;

	while (atomic_load(&e->refs) != n) {
		assert_true(clock_boot_ns() < limit_ns);
		(void)poll(NULL, 0, 1);
	}
}

/* As baton_metrics() does beside baton_election_free(). */
static void what_is_gone_can_be_asked(void **state)
{
	struct baton *b = open_own("memory:own-asked");
	struct baton_election *e = make(b, "asked", NULL, NULL);
	struct baton_status status;

	(void)state;
	assert_int_equal(baton_election_start(e), 0);
	assert_int_equal(baton_try_acquire(e, SOON_MS, NULL), 1);
	(void)election_ref(e);
	baton_election_free(e);
	until_refs(e, 1);
	assert_int_equal(baton_get_status(e, &status), 0);
	assert_false(status.is_leader);
	assert_int_equal(status.time_left_ms, 0);
	assert_false(baton_is_leader(e));
	/* Its place among the deadlines is another one's now. */
	struct baton_election *next = make(b, "next", NULL, NULL);

	assert_int_equal(baton_election_start(next), 0);
	assert_int_equal(baton_try_acquire(next, SOON_MS, NULL), 1);
	assert_false(baton_is_leader(e));
	assert_int_equal(baton_time_left_ms(e), 0);
	election_unref(e);
	baton_close(b);
}

struct busy {
	sem_t runs;
	sem_t gate;
};

static void wait_at_gate(void *arg, const struct baton_event *ev)
{
	struct busy *busy = arg;

	if (ev->kind != BATON_EVENT_BECAME)
		return;
	(void)sem_post(&busy->runs);
	(void)sem_wait(&busy->gate);
}

static void hear_nothing(void *arg, const struct baton_event *ev)
{
	(void)arg;
	(void)ev;
}

/* The news of an election that was freed are dropped, after the loop has let go of it. */
static void old_news_are_dropped(void **state)
{
	struct baton *b = open_own("memory:own-dropped");
	struct busy busy;
	struct baton_election *holder = make(b, "holder", wait_at_gate, &busy);
	struct baton_election *e = make(b, "dropped", hear_nothing, NULL);

	(void)state;
	assert_int_equal(sem_init(&busy.runs, 0, 0), 0);
	assert_int_equal(sem_init(&busy.gate, 0, 0), 0);
	assert_int_equal(baton_election_start(holder), 0);
	assert_int_equal(sem_wait(&busy.runs), 0);
	assert_int_equal(baton_election_start(e), 0);
	assert_int_equal(baton_try_acquire(e, SOON_MS, NULL), 1);
	uint64_t term = baton_term(e);

	(void)baton_election_stop(e, 0);
	assert_int_equal(baton_drained(e, term), 0);
	(void)election_ref(e);
	baton_election_free(e);
	until_refs(e, 2); /* the queue's, and ours */
	assert_true(e->left);
	assert_int_equal(sem_post(&busy.gate), 0);
	until_refs(e, 1);
	election_unref(e);
	baton_close(b);
	(void)sem_destroy(&busy.runs);
	(void)sem_destroy(&busy.gate);
}

struct counter {
	struct baton *b;
	_Atomic bool ends;
	bool fails;
};

static void count_one(void *arg, const struct baton_metric *m)
{
	(void)m;
	++*(int *)arg;
}

static void *count_on(void *arg)
{
	struct counter *c = arg;
	int n = 0;

	while (!atomic_load(&c->ends))
		c->fails |= baton_metrics(c->b, count_one, &n) <= 0;
	return NULL;
}

static void metrics_beside_elections(void **state)
{
	struct counter c = {.b = open_own("memory:own-metrics")};
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, count_on, &c), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct baton_election *e = make(c.b, "counted", NULL, NULL);

		assert_int_equal(baton_election_start(e), 0);
		assert_int_equal(baton_try_acquire(e, SOON_MS, NULL), 1);
		baton_election_free(e);
	}
	atomic_store(&c.ends, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(c.fails);
	baton_close(c.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_gone_can_be_asked),
		cmocka_unit_test(old_news_are_dropped),
		cmocka_unit_test(metrics_beside_elections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
