/*
 * test_news.c: what an application hears, and when: the order of events where it takes them by
 * hand or ends its work by itself, LOST before all else, and starts while a stop is under way.
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "baton-memory.h"
#include "baton.h"
#include "lists.h"
#include "runtime/runtime.h"

#define SOON_MS 20000
#define A_WHILE_MS 150
#define HEARD_MAX 16

static struct baton *open_for(const char *url, const char *id, uint64_t lease_ms)
{
	struct baton_options o;
	struct baton *b = NULL;

	baton_options_init(&o);
	o.id = id;
	o.dispatchers = 1;
	o.lease_ms = lease_ms;
	assert_int_equal(baton_open(url, &o, &b, NULL), 0);
	return b;
}

/* Each test has a store of its own: one that fails leaves its candidates behind. */
static struct baton *open_it(const char *url, const char *id)
{
	return open_for(url, id, 2000);
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

static void until_leader(struct baton_election *e, bool leads)
{
	uint64_t limit_ns = clock_boot_ns() + SOON_MS * CLOCK_NS_PER_MS;

	while (baton_is_leader(e) != leads) {
		assert_true(clock_boot_ns() < limit_ns);
		(void)poll(NULL, 0, 1);
	}
}

/* The next event that is about leading or not. */
static struct baton_event next_of(struct baton *b)
{
	struct baton_event ev;

	do
		assert_int_equal(baton_wait(b, SOON_MS, &ev), 1);
	while (ev.kind != BATON_EVENT_BECAME && ev.kind != BATON_EVENT_LOST);
	return ev;
}

/* Whether somebody has it, by the store's word. */
static bool is_held(struct baton *b, const char *name)
{
	struct baton_observed status;

	assert_int_equal(baton_observe(b, name, &status, NULL), 0);
	return status.leader[0] != '\0';
}

/* A wait whose end is known is no error. It is told once, and shown until somebody leads. */
static void a_wait_is_told_once(void **state)
{
	struct baton *b = open_it("memory:waits", "a");
	struct baton_election *e = make(b, "waits", NULL, NULL);
	struct baton_memory *m = NULL;
	struct baton_status status;
	struct baton_event ev;

	(void)state;
	assert_int_equal(baton_memory_open("memory:waits", &m, NULL), 0);
	baton_memory_bar(m, 3600000, "it is too early");
	assert_int_equal(baton_election_start(e), 0);
	assert_int_equal(baton_wait(b, SOON_MS, &ev), 1);
	assert_int_equal(ev.kind, BATON_EVENT_WAITS);
	assert_string_equal(ev.text, "it is too early");
	assert_in_range(ev.wait_ms, 3500000, 3600000);
	assert_int_equal(baton_get_status(e, &status), 0);
	assert_in_range(status.wait_ms, 3500000, 3600000);
	assert_string_equal(status.wait, "it is too early");
	struct baton_observed observed;

	assert_int_equal(baton_observe(b, "waits", &observed, NULL), 0);
	assert_in_range(observed.wait_ms, 3500000, 3600000);
	assert_string_equal(observed.wait, "it is too early");
	assert_int_equal(baton_try_acquire(e, SOON_MS, NULL), 0); /* asks again: the same wait */
	baton_memory_bar(m, 0, NULL);
	do
		assert_int_equal(baton_wait(b, SOON_MS, &ev), 1);
	while (ev.kind == BATON_EVENT_CHANGED);
	assert_int_equal(ev.kind, BATON_EVENT_BECAME);
	assert_int_equal(baton_get_status(e, &status), 0);
	assert_int_equal(status.wait_ms, 0);
	assert_string_equal(status.wait, "");
	baton_memory_close(m);
	baton_close(b);
}

/* S7: who says that its work has ended says that of the leadership that it was told of. */
static void an_old_loss_drains_nothing_new(void **state)
{
	struct baton *b = open_it("memory:drains", "a");
	struct baton_election *e = make(b, "drains", NULL, NULL);

	(void)state;
	assert_int_equal(baton_election_start(e), 0);
	uint64_t first = next_of(b).term;

	assert_int_equal(baton_resign(e, 0), 0);
	assert_int_equal(next_of(b).kind, BATON_EVENT_LOST);
	assert_int_equal(baton_drained(e, first),
			 0); /* and goes on with what it does about the loss */
	until_leader(e, true);
	uint64_t term = baton_term(e);

	assert_int_equal(baton_resign(e, 60000), 0);
	struct baton_event ev = next_of(b);

	assert_int_equal(ev.kind, BATON_EVENT_BECAME);
	assert_int_equal(ev.term, term);
	for (uint64_t until_ns = clock_boot_ns() + A_WHILE_MS * CLOCK_NS_PER_MS;
	     clock_boot_ns() < until_ns; (void)poll(NULL, 0, 5))
		assert_true(is_held(b, "drains"));
	ev = next_of(b);
	assert_int_equal(ev.kind, BATON_EVENT_LOST);
	assert_int_equal(ev.term, term);
	baton_close(b);
}

/* S8: what waits to be taken is in order, and of leaderships of which nothing was heard nothing. */
static void events_wait_in_order(void **state)
{
	struct baton *b = open_it("memory:order", "a");
	struct baton_election *e = make(b, "order", NULL, NULL);
	uint64_t terms[4];

	(void)state;
	assert_int_equal(baton_election_start(e), 0);
	terms[0] = next_of(b).term;
	struct baton_event none;

	(void)baton_wait(b, 0, &none); /* that is dealt with */
	for (int i = 1; i < 4; i++) {
		assert_int_equal(baton_resign(e, 0), 0);
		assert_int_equal(baton_drained(e, terms[i - 1]), 0);
		until_leader(e, true);
		terms[i] = baton_term(e);
	}
	struct baton_event ev = next_of(b);

	assert_int_equal(ev.kind, BATON_EVENT_LOST);
	assert_int_equal(ev.term, terms[0]);
	ev = next_of(b);
	assert_int_equal(ev.kind, BATON_EVENT_BECAME);
	assert_int_equal(ev.term, terms[3]);
	baton_close(b);
}

/* A new lease says nothing of work that an earlier one carried: nor when it is opened, nor when it
 * is renewed. */
static void a_new_lease_renews_no_old_work(void **state)
{
	struct baton *b = open_for("memory:renewed", "a", 1000);
	struct baton_election_options o;
	struct baton_election *e = NULL;
	struct baton_memory *m = NULL;
	struct baton_event ev = {0};
	uint64_t limit_ns = clock_boot_ns() + SOON_MS * CLOCK_NS_PER_MS;

	(void)state;
	assert_int_equal(baton_memory_open("memory:renewed", &m, NULL), 0);
	baton_election_options_init(&o);
	o.tell_renewals = true;
	o.drain_by_hand = true;
	assert_int_equal(baton_election_new(b, "renewed", &o, &e, NULL), 0);
	assert_int_equal(baton_election_start(e), 0);
	uint64_t term = next_of(b).term;

	while (ev.kind != BATON_EVENT_RENEWED)
		assert_int_equal(baton_wait(b, SOON_MS, &ev), 1);
	assert_int_equal(ev.term, term);
	assert_int_equal(baton_memory_expire(m, "a"), 1);
	assert_int_equal(next_of(b).kind, BATON_EVENT_LOST);
	uint64_t n_renewals = baton_memory_calls(m, BATON_MEMORY_RENEW);

	/* The last of them may still be on its way to the loop. */
	while (baton_memory_calls(m, BATON_MEMORY_RENEW) < n_renewals + 3) {
		assert_true(clock_boot_ns() < limit_ns);
		if (baton_wait(b, 1, &ev) == 1)
			assert_int_not_equal(ev.kind, BATON_EVENT_RENEWED);
	}
	assert_int_equal(baton_drained(e, term), 0);
	baton_memory_close(m);
	baton_close(b);
}

/* ---- threads that come and go ---- */

#define STACK_BYTES (1u << 20)

/* A thread that asks for the next event about leading, or looks whether there is any. */
struct asker {
	struct baton *b;
	struct baton_event ev;
	bool only_looks;
	int n; /* events that were taken */
};

static void *ask(void *arg)
{
	struct asker *a = arg;

	do
		a->n = baton_wait(a->b, a->only_looks ? 0 : SOON_MS, &a->ev);
	while (!a->only_looks && a->n == 1 && a->ev.kind == BATON_EVENT_CHANGED);
	return NULL;
}

/* The C library finds a thread's name on its stack: a new thread on it has the name of the last. */
static void ask_on(void *stack, struct asker *a)
{
	pthread_attr_t attr;
	pthread_t thread;

	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setstack(&attr, stack, STACK_BYTES), 0);
	assert_int_equal(pthread_create(&thread, &attr, ask, a), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)pthread_attr_destroy(&attr);
}

/* S7: a thread takes LOST, hands the event on, and ends. No other thread is taken for that one. */
static void a_new_thread_is_another_one(void **state)
{
	struct baton *b = open_it("memory:threads", "a");
	struct baton_election *e = make(b, "threads", NULL, NULL);
	struct asker first = {.b = b};
	struct asker next = {.b = b, .only_looks = true};
	void *stack = NULL;

	(void)state;
	assert_int_equal(posix_memalign(&stack, 4096, STACK_BYTES), 0);
	assert_int_equal(baton_election_start(e), 0);
	ask_on(stack, &first);
	assert_int_equal(first.ev.kind, BATON_EVENT_BECAME);
	assert_int_equal(baton_event_done(b, first.ev.token), 0);
	assert_int_equal(baton_resign(e, 0), 0);
	ask_on(stack, &first);
	assert_int_equal(first.ev.kind, BATON_EVENT_LOST);
	ask_on(stack, &next);
	assert_int_equal(next.n, 0);
	assert_true(is_held(b, "threads")); /* no standby can lead yet */
	assert_int_equal(baton_event_done(b, first.ev.token), 0);
	until_leader(e, true); /* the claim was given back */
	baton_close(b);
	free(stack);
}

/* What belongs to a stop comes before what belongs to the start behind it. */
static void a_stop_is_told_in_order(void **state)
{
	struct baton *b = open_it("memory:stop", "a");
	struct baton_election *e = make(b, "stop", NULL, NULL);
	static const int order[] = {BATON_EVENT_LOST, BATON_EVENT_STOPPED, BATON_EVENT_BECAME};
	struct baton_event ev;
	size_t n = 0;

	(void)state;
	assert_int_equal(baton_election_start(e), 0);
	assert_int_equal(next_of(b).kind, BATON_EVENT_BECAME);
	(void)baton_wait(b, 0, &ev); /* that is dealt with */
	(void)baton_election_stop(e, 0);
	assert_int_equal(baton_election_start(e), 0);
	until_leader(e, true);
	while (n < 3) {
		assert_int_equal(baton_wait(b, SOON_MS, &ev), 1);
		if (ev.kind != BATON_EVENT_CHANGED)
			assert_int_equal(ev.kind, order[n++]);
	}
	baton_close(b);
}

/* ---- with handlers ---- */

struct listener {
	const char *name;
	struct listener *all; /* the first of them has the list */
	sem_t *gate;          /* BECAME waits for it */
	sem_t *heard;
	char list[HEARD_MAX][16];
	int n;
};

static void listen_to(void *arg, const struct baton_event *ev)
{
	struct listener *l = arg;

	if (ev->kind != BATON_EVENT_BECAME && ev->kind != BATON_EVENT_LOST)
		return;
	if (l->all->n < HEARD_MAX)
		(void)snprintf(l->all->list[l->all->n++], sizeof(l->list[0]), "%s%s",
			       ev->kind == BATON_EVENT_BECAME ? "+" : "-", l->name);
	(void)sem_post(l->heard);
	if (ev->kind == BATON_EVENT_BECAME && l->gate != NULL)
		(void)sem_wait(l->gate);
}

static void heard(sem_t *s)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SOON_MS / 1000;
	assert_int_equal(sem_timedwait(s, &until), 0);
}

/* One dispatcher, which is busy: the loss of one goes before the news of all others. */
static void lost_goes_first(void **state)
{
	sem_t gate, said;
	struct listener l[4] = {{.name = "kept", .heard = &said},
				{.name = "busy", .heard = &said, .gate = &gate},
				{.name = "one", .heard = &said},
				{.name = "two", .heard = &said}};
	static const char *const order[] = {"+kept", "+busy", "-kept", "+one", "+two"};
	struct baton *b = open_it("memory:first", "a");
	struct baton_election *e[4];

	(void)state;
	assert_int_equal(sem_init(&gate, 0, 0), 0);
	assert_int_equal(sem_init(&said, 0, 0), 0);
	for (int i = 0; i < 4; i++) {
		l[i].all = &l[0];
		e[i] = make(b, l[i].name, listen_to, &l[i]);
		assert_int_equal(baton_election_start(e[i]), 0);
		until_leader(e[i], true);
		if (i < 2)
			heard(&said);
	}
	assert_int_equal(baton_resign(e[0], 60000), 0);
	(void)sem_post(&gate);
	for (int i = 2; i < 5; i++)
		heard(&said);
	for (int i = 0; i < 5; i++)
		assert_string_equal(l[0].list[i], order[i]);
	baton_close(b);
	(void)sem_destroy(&gate);
	(void)sem_destroy(&said);
}

static void *free_it(void *arg)
{
	struct baton_election **e = arg;

	baton_election_free(*e);
	return NULL;
}

/* S8: whoever has freed an election may free what its handler works with. */
static void free_waits_for_the_handler(void **state)
{
	sem_t gate, said;
	struct listener l = {.name = "slow", .heard = &said, .gate = &gate, .all = &l};
	struct baton *b = open_it("memory:free", "a");
	struct baton_election *e = make(b, "slow", listen_to, &l);
	struct timespec until;
	pthread_t freer;

	(void)state;
	assert_int_equal(sem_init(&gate, 0, 0), 0);
	assert_int_equal(sem_init(&said, 0, 0), 0);
	assert_int_equal(baton_election_start(e), 0);
	heard(&said);
	assert_int_equal(pthread_create(&freer, NULL, free_it, &e), 0);
	/* Longer than it waits for the stop, and for the store. */
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 6;
	assert_int_not_equal(pthread_timedjoin_np(freer, NULL, &until), 0);
	(void)sem_post(&gate);
	assert_int_equal(pthread_join(freer, NULL), 0);
	int n = l.n;

	baton_close(b);
	assert_int_equal(l.n, n);
	(void)sem_destroy(&gate);
	(void)sem_destroy(&said);
}

struct freer {
	sem_t freed;
	struct baton_election *e;
};

static void free_oneself(void *arg, const struct baton_event *ev)
{
	struct freer *f = arg;

	if (ev->kind != BATON_EVENT_BECAME)
		return;
	baton_election_free(f->e); /* which can't wait for the loop here */
	(void)sem_post(&f->freed);
}

/* Who is let go of for the second time has perhaps left already. */
static void free_then_close(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		struct freer f;
		struct baton *b = open_it("memory:free-close", "a");

		assert_int_equal(sem_init(&f.freed, 0, 0), 0);
		f.e = make(b, "gone", free_oneself, &f);
		assert_int_equal(baton_election_start(f.e), 0);
		heard(&f.freed);
		baton_close(b);
		(void)sem_destroy(&f.freed);
	}
}

/* All that is left of it is the test's own reference. */
static void until_unreferenced(struct baton_election *e)
{
	uint64_t limit_ns = clock_boot_ns() + SOON_MS * CLOCK_NS_PER_MS;

	while (atomic_load(&e->refs) != 1) {
		assert_true(clock_boot_ns() < limit_ns);
		(void)poll(NULL, 0, 1);
	}
	election_unref(e);
}

/* Who takes no events need not take those of a freed election, and who does is told nothing of it:
 * what baton_wait() returns names an election that can be used. */
static void a_freed_election_is_not_told_of(void **state)
{
	struct baton *b = open_it("memory:untold", "a");
	struct pollfd readable = {.fd = baton_fd(b), .events = POLLIN};
	struct baton_event ev;

	(void)state;
	for (int n_taken = 0; n_taken < 3; n_taken++) {
		struct baton_election *kept = make(b, "kept", NULL, NULL);
		struct baton_election *e = make(b, "freed", NULL, NULL);

		assert_int_equal(baton_election_start(e), 0);
		until_leader(e, true);
		/* None of its events is taken; one is, and the next is not asked for; all are. */
		if (n_taken > 0)
			assert_int_equal(baton_wait(b, SOON_MS, &ev), 1);
		while (n_taken > 1 && baton_wait(b, A_WHILE_MS, &ev) == 1)
			;
		(void)election_ref(e);
		baton_election_free(e);
		until_unreferenced(e);
		assert_int_equal(poll(&readable, 1, 0), 0);
		assert_int_equal(baton_wait(b, 0, &ev), 0);
		/* Those of others are told as before. */
		assert_int_equal(baton_election_start(kept), 0);
		assert_int_equal(next_of(b).kind, BATON_EVENT_BECAME);
		baton_election_free(kept);
	}
	baton_close(b);
}

/* The same for one that the store keeps from leaving in time: it stops after the free. */
static void a_freed_election_ends_untold(void **state)
{
	struct baton *b = open_it("memory:untold-late", "a");
	struct baton_election *e = make(b, "freed", NULL, NULL);
	struct baton_memory *m = NULL;
	struct baton_event ev;

	(void)state;
	assert_int_equal(baton_memory_open("memory:untold-late", &m, NULL), 0);
	assert_int_equal(baton_election_start(e), 0);
	assert_int_equal(next_of(b).kind, BATON_EVENT_BECAME);
	baton_memory_fail(m, BATON_MEMORY_ANY, BATON_MEMORY_ALWAYS, BATON_E_UNAVAILABLE, "down");
	(void)election_ref(e);
	baton_election_free(e);
	assert_int_equal(baton_wait(b, A_WHILE_MS, &ev), 0);
	baton_memory_heal(m);
	until_unreferenced(e);
	assert_int_equal(baton_wait(b, 0, &ev), 0);
	baton_memory_close(m);
	baton_close(b);
}

/* A start while a stop is under way comes after it, and can be stopped like any other. */
static void starts_behind_a_stop(void **state)
{
	struct baton *b = open_it("memory:behind", "a");
	struct baton *other = open_it("memory:behind", "b");
	struct baton_election *e = make(b, "again", NULL, NULL);

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(baton_election_start(e), 0);
		until_leader(e, true);
		(void)baton_election_stop(e, 0);
		assert_false(baton_is_leader(e));
		assert_int_equal(baton_election_start(e), 0);
		until_leader(e, true);
		assert_int_equal(baton_election_stop(e, SOON_MS), 0);
		assert_false(baton_is_leader(e));
		assert_false(is_held(other, "again"));
	}
	baton_close(other);
	baton_close(b);
}

/* ---- what others see ---- */

/* Who has stopped is a candidate no more, also if the store didn't answer when it said so. */
static void withdraws_again(void **state)
{
	struct baton *b = open_it("memory:withdraws", "a");
	struct baton *other = open_it("memory:withdraws", "b");
	struct baton_election *kept = make(b, "kept", NULL, NULL);
	struct baton_election *e = make(b, "left", NULL, NULL);
	struct baton_memory *m = NULL;
	uint64_t limit_ns = clock_boot_ns() + SOON_MS * CLOCK_NS_PER_MS;

	(void)state;
	assert_int_equal(baton_memory_open("memory:withdraws", &m, NULL), 0);
	assert_int_equal(baton_election_start(kept), 0);
	assert_int_equal(baton_election_start(e), 0);
	until_leader(kept, true);
	until_leader(e, true);
	while (test_candidates(other, "left", NULL, 0, NULL) != 1)
		assert_true(clock_boot_ns() < limit_ns);
	baton_memory_fail(m, BATON_MEMORY_WITHDRAW, 1, BATON_E_UNAVAILABLE, "not now");
	uint64_t n_calls = baton_memory_calls(m, BATON_MEMORY_WITHDRAW);

	assert_int_equal(baton_election_stop(e, SOON_MS), 0);
	while (baton_memory_calls(m, BATON_MEMORY_WITHDRAW) < n_calls + 2)
		assert_true(clock_boot_ns() < limit_ns);
	while (test_candidates(other, "left", NULL, 0, NULL) != 0)
		assert_true(clock_boot_ns() < limit_ns);
	baton_memory_close(m);
	baton_close(other);
	baton_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_is_told_once),
		cmocka_unit_test(an_old_loss_drains_nothing_new),
		cmocka_unit_test(events_wait_in_order),
		cmocka_unit_test(a_new_lease_renews_no_old_work),
		cmocka_unit_test(a_new_thread_is_another_one),
		cmocka_unit_test(a_stop_is_told_in_order),
		cmocka_unit_test(lost_goes_first),
		cmocka_unit_test(free_waits_for_the_handler),
		cmocka_unit_test(free_then_close),
		cmocka_unit_test(a_freed_election_is_not_told_of),
		cmocka_unit_test(a_freed_election_ends_untold),
		cmocka_unit_test(starts_behind_a_stop),
		cmocka_unit_test(withdraws_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
