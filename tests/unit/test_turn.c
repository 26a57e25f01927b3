/*
 * test_turn.c: what lanes take turns on: nobody overtakes those who wait, but for those who go
 * first, and nobody waits past its time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "store/base.h"

#define LONG_NS (60 * CLOCK_NS_PER_S)

struct waiter {
	struct store_turn *turn;
	pthread_t thread;
	bool first;
	uint64_t wait_ns;
	bool got;
	unsigned place; /* the how manieth it was to get it */
};

static atomic_uint n_got;

static void *wait_for_it(void *arg)
{
	struct waiter *w = arg;

	w->got = store_turn_take(w->turn, clock_boot_ns() + w->wait_ns, w->first);
	if (w->got) {
		w->place = atomic_fetch_add(&n_got, 1);
		store_turn_give(w->turn);
	}
	return NULL;
}

/* Until that many stand in line. */
static void await_waiting(struct store_turn *turn, size_t n)
{
	size_t there;

	do {
		sched_yield();
		pthread_mutex_lock(&turn->lock);
		there = turn->n_waiting;
		pthread_mutex_unlock(&turn->lock);
	} while (there != n);
}

static void test_order(void **state)
{
	struct store_turn turn;
	struct waiter w[4] = {
		{.first = false}, {.first = false}, {.first = true}, {.first = false}};
	static const unsigned places[4] = {1, 2, 0, 3};

	(void)state;
	atomic_store(&n_got, 0);
	assert_int_equal(store_turn_init(&turn), 0);
	assert_true(store_turn_take(&turn, 0, false));
	for (size_t i = 0; i < 4; i++) {
		w[i].turn = &turn;
		w[i].wait_ns = LONG_NS;
		assert_int_equal(pthread_create(&w[i].thread, NULL, wait_for_it, &w[i]), 0);
		await_waiting(&turn, i + 1);
	}
	store_turn_give(&turn);
	/* It is theirs, also as long as they don't know. */
	assert_false(store_turn_take(&turn, 0, false) && atomic_load(&n_got) < 4);
	for (size_t i = 0; i < 4; i++) {
		pthread_join(w[i].thread, NULL);
		assert_true(w[i].got);
		assert_int_equal(w[i].place, places[i]);
	}
	store_turn_done(&turn);
}

static void test_late(void **state)
{
	struct store_turn turn;
	struct waiter w[2] = {{.wait_ns = CLOCK_NS_PER_MS}, {.wait_ns = LONG_NS}};

	(void)state;
	atomic_store(&n_got, 0);
	assert_int_equal(store_turn_init(&turn), 0);
	assert_true(store_turn_take(&turn, 0, false));
	assert_false(store_turn_take(&turn, 0, false));
	assert_false(store_turn_take(&turn, clock_boot_ns() + CLOCK_NS_PER_MS, true));
	for (size_t i = 0; i < 2; i++) {
		w[i].turn = &turn;
		assert_int_equal(pthread_create(&w[i].thread, NULL, wait_for_it, &w[i]), 0);
	}
	pthread_join(w[0].thread, NULL); /* gone, and not waited for */
	assert_false(w[0].got);
	await_waiting(&turn, 1);
	store_turn_give(&turn);
	pthread_join(w[1].thread, NULL);
	assert_true(w[1].got);
	assert_true(store_turn_take(&turn, 0, false)); /* it is free again */
	store_turn_done(&turn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_order),
					   cmocka_unit_test(test_late)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
