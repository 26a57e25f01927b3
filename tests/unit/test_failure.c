/*
 * test_failure.c: what is logged of a failure that lasts: its begin, each new cause, a reminder at
 * growing intervals, and its end, once; never a line for each retry.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "baton.h"
#include "runtime/failure.h"

#define S CLOCK_NS_PER_S
#define BEGAN (1000 * S)

/* Fails once a second, from one moment up to another; counts what is said of it. */
static unsigned fail_for(struct failure *f, unsigned source, int code, uint64_t from_s,
			 uint64_t to_s)
{
	unsigned n = 0;

	for (uint64_t s = from_s; s < to_s; s++)
		n += failure_add(f, source, code, BEGAN + s * S) != FAILURE_OLD;
	return n;
}

static void test_one_line_and_its_end(void **state)
{
	struct failure f = {0};

	(void)state;
	assert_false(failure_remove(&f, FAILURE_CAMPAIGN, BEGAN)); /* nothing has failed */
	assert_int_equal(fail_for(&f, FAILURE_CAMPAIGN, BATON_E_DENIED, 0, 35), 1);
	assert_true(failure_remove(&f, FAILURE_CAMPAIGN, BEGAN + 35 * S));
	assert_int_equal(failure_seconds(&f), 35);
	assert_false(failure_remove(&f, FAILURE_CAMPAIGN, BEGAN + 36 * S)); /* said once */
}

static void test_reminders_grow(void **state)
{
	struct failure f = {0};

	(void)state;
	assert_int_equal(fail_for(&f, FAILURE_LEASE, BATON_E_UNAVAILABLE, 0, 60), 1);
	assert_int_equal(failure_add(&f, FAILURE_LEASE, BATON_E_UNAVAILABLE, BEGAN + 60 * S),
			 FAILURE_GOES_ON);
	assert_int_equal(failure_seconds(&f), 60);
	assert_int_equal(fail_for(&f, FAILURE_LEASE, BATON_E_UNAVAILABLE, 61, 180), 0);
	assert_int_equal(fail_for(&f, FAILURE_LEASE, BATON_E_UNAVAILABLE, 180, 420), 1);
	/* In a day: after 1, 2, 4, 8, 16, 32 minutes, then every hour. */
	assert_int_equal(fail_for(&f, FAILURE_LEASE, BATON_E_UNAVAILABLE, 420, 86400), 4 + 22);
}

static void test_a_new_cause_is_told(void **state)
{
	struct failure f = {0};

	(void)state;
	assert_int_equal(fail_for(&f, FAILURE_LEASE, BATON_E_UNAVAILABLE, 0, 10), 1);
	assert_int_equal(fail_for(&f, FAILURE_LEASE, BATON_E_DENIED, 10, 20), 1);
	/* They take turns: both are known. */
	assert_int_equal(fail_for(&f, FAILURE_LEASE, BATON_E_UNAVAILABLE, 20, 21), 0);
	assert_int_equal(fail_for(&f, FAILURE_LEASE, BATON_E_DENIED, 21, 22), 0);
	assert_true(failure_remove(&f, FAILURE_LEASE, BEGAN + 22 * S));
}

/* One thing works and another doesn't: it goes on. */
static void test_over_when_all_work(void **state)
{
	struct failure f = {0};

	(void)state;
	assert_int_equal(fail_for(&f, FAILURE_CAMPAIGN, BATON_E_DENIED, 0, 1), 1);
	assert_int_equal(fail_for(&f, FAILURE_OBSERVE, BATON_E_DENIED, 1, 2), 0);
	assert_false(failure_remove(&f, FAILURE_OBSERVE, BEGAN + 2 * S));
	assert_false(failure_remove(&f, FAILURE_OBSERVE | FAILURE_TWIN, BEGAN + 3 * S));
	assert_int_equal(fail_for(&f, FAILURE_CAMPAIGN, BATON_E_DENIED, 3, 9), 0);
	assert_true(failure_remove(&f, FAILURE_OBSERVE | FAILURE_CAMPAIGN, BEGAN + 9 * S));
}

/* A watch has no end that is told, and keeps no other failure from ending. */
static void test_watch(void **state)
{
	struct failure f = {0};

	(void)state;
	assert_int_equal(fail_for(&f, FAILURE_WATCH, BATON_E_SYSTEM, 0, 10), 1);
	assert_false(failure_remove(&f, FAILURE_CAMPAIGN, BEGAN + 10 * S));
	assert_int_equal(fail_for(&f, FAILURE_CAMPAIGN, BATON_E_UNAVAILABLE, 11, 20), 1);
	assert_true(failure_remove(&f, FAILURE_CAMPAIGN, BEGAN + 20 * S));
	/* That a call fails is more than that, and says it, too. */
	f = (struct failure){0};
	assert_int_equal(fail_for(&f, FAILURE_WATCH, BATON_E_DENIED, 0, 10), 1);
	assert_int_equal(fail_for(&f, FAILURE_CAMPAIGN, BATON_E_DENIED, 10, 20), 1);
	f = (struct failure){0};
	assert_int_equal(fail_for(&f, FAILURE_CAMPAIGN, BATON_E_DENIED, 0, 10), 1);
	assert_int_equal(fail_for(&f, FAILURE_WATCH, BATON_E_DENIED, 10, 20), 0);
	/* Alone, and long after: it is another one. */
	f = (struct failure){0};
	assert_int_equal(fail_for(&f, FAILURE_WATCH, BATON_E_SYSTEM, 0, 10), 1);
	assert_int_equal(fail_for(&f, FAILURE_WATCH, BATON_E_SYSTEM, 500, 510), 1);
	assert_int_equal(failure_seconds(&f), 9);
}

/* What comes and goes is told once; and its end when it stays away. */
static void test_flapping(void **state)
{
	struct failure f = {0};
	unsigned n = 0;

	(void)state;
	for (uint64_t s = 0; s < 50; s += 2) {
		n += fail_for(&f, FAILURE_LEASE, BATON_E_UNAVAILABLE, s, s + 1);
		n += failure_remove(&f, FAILURE_LEASE, BEGAN + (s + 1) * S);
	}
	assert_int_equal(n, 2); /* its begin, and its first end */
	assert_false(failure_remove(&f, FAILURE_LEASE, BEGAN + 100 * S));
	assert_true(failure_remove(&f, FAILURE_LEASE, BEGAN + 108 * S));
	assert_int_equal(failure_seconds(&f), 108);
	/* After that, it is another one. */
	assert_int_equal(fail_for(&f, FAILURE_LEASE, BATON_E_UNAVAILABLE, 200, 210), 1);
	assert_true(failure_remove(&f, FAILURE_LEASE, BEGAN + 210 * S));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_line_and_its_end),
		cmocka_unit_test(test_reminders_grow),
		cmocka_unit_test(test_a_new_cause_is_told),
		cmocka_unit_test(test_over_when_all_work),
		cmocka_unit_test(test_watch),
		cmocka_unit_test(test_flapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
