/*
 * test_timing.c: the numbers. Every contradiction is refused with a reason of its own, at its very
 * edge and not before; and nothing that follows from accepted numbers overflows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/timing.h"

#define MS NS_PER_MS
#define S NS_PER_S
#define DAY (86400 * S)
#define N_OF(a) (sizeof(a) / sizeof((a)[0]))

/* The defaults, with what a case wants otherwise. */
static struct timing defaults(void)
{
	struct timing t = {.drift_ppm = NEVER};

	timing_fill(&t);
	return t;
}

static void fills_in_what_was_not_given(void **state)
{
	static const struct {
		struct timing given;
		struct timing filled;
	} cases[] = {
		{{.drift_ppm = NEVER}, {15 * S, 5 * S, 5 * S, 2 * S, 10 * S, 100000}},
		/* 0 % is a wish, too. */
		{{.drift_ppm = 0}, {15 * S, 5 * S, 5 * S, 2 * S, 10 * S, 0}},
		/* A third each; retry is a sixth where that is less than 2 s. */
		{{.lease_ns = 6 * S, .drift_ppm = 0}, {6 * S, 2 * S, 2 * S, S, 5 * S, 0}},
		{{.lease_ns = 12 * S, .drift_ppm = 0}, {12 * S, 4 * S, 4 * S, 2 * S, 10 * S, 0}},
		{{.lease_ns = DAY, .drift_ppm = 0}, {DAY, DAY / 3, DAY / 3, 2 * S, 10 * S, 0}},
		/* What was given stays. */
		{{60 * S, 7 * S, 8 * S, 3 * S, 4 * S, 5}, {60 * S, 7 * S, 8 * S, 3 * S, 4 * S, 5}},
		{{.retry_ns = 3 * S, .drift_ppm = 0}, {15 * S, 5 * S, 5 * S, 3 * S, 15 * S, 0}},
		/* Nonsense in, no overflow: the check will refuse it. */
		{{.retry_ns = NEVER, .drift_ppm = 0}, {15 * S, 5 * S, 5 * S, NEVER, NEVER, 0}},
		{{.retry_ns = NEVER / 5 + 1, .drift_ppm = 0},
		 {15 * S, 5 * S, 5 * S, NEVER / 5 + 1, NEVER, 0}},
		{{.lease_ns = NEVER, .drift_ppm = 0},
		 {NEVER, NEVER / 3, NEVER / 3, 2 * S, 10 * S, 0}},
	};

	(void)state;
	for (size_t i = 0; i < N_OF(cases); i++) {
		struct timing t = cases[i].given;

		timing_fill(&t);
		assert_memory_equal(&t, &cases[i].filled, sizeof(t));
	}
}

static void accepts_the_defaults(void **state)
{
	struct timing t = defaults();

	(void)state;
	assert_int_equal(timing_check(&t, 0), TIMING_OK);
	assert_int_equal(timing_check(&t, 15 * S), TIMING_OK);
}

/* Which number a case changes. */
enum field { LEASE, RENEW, GRACE, RETRY, RETRY_MAX, DRIFT };

static void set(struct timing *t, enum field field, uint64_t value)
{
	switch (field) {
	case LEASE: t->lease_ns = value; break;
	case RENEW: t->renew_ns = value; break;
	case GRACE: t->grace_ns = value; break;
	case RETRY: t->retry_ns = value; break;
	case RETRY_MAX: t->retry_max_ns = value; break;
	case DRIFT: t->drift_ppm = value; break;
	}
}

/* One number of the defaults (15, 5, 5, 2, 10 s, 10 %) is changed: both sides of every edge. */
static void refuses_each_contradiction_with_its_own_reason(void **state)
{
	static const struct {
		uint64_t value;
		enum field field;
		enum timing_fault fault;
	} cases[] = {
		{DAY, LEASE, TIMING_OK},
		{DAY + 1, LEASE, TIMING_LEASE_RANGE},
		{NEVER, LEASE, TIMING_LEASE_RANGE},
		{0, LEASE, TIMING_LEASE_RANGE},
		{10 * MS - 1, LEASE, TIMING_LEASE_RANGE},
		{0, DRIFT, TIMING_OK},
		/* 15 s - 10 s - 28.3 % leaves just 0.75 s, a twentieth of the lease. */
		{283333, DRIFT, TIMING_OK},
		{283334, DRIFT, TIMING_SHORT_DRAIN},
		{333333, DRIFT, TIMING_SHORT_DRAIN},
		{333334, DRIFT, TIMING_NO_DRAIN},
		{500000, DRIFT, TIMING_NO_DRAIN},
		{500001, DRIFT, TIMING_DRIFT_RANGE},
		{NEVER, DRIFT, TIMING_DRIFT_RANGE},
		{0, RENEW, TIMING_RENEW_RANGE},
		{MS - 1, RENEW, TIMING_RENEW_RANGE},
		{MS, RENEW, TIMING_OK},
		{5 * S, RENEW, TIMING_OK},
		{5 * S + 1, RENEW, TIMING_WARN_RENEW},
		{7500 * MS, RENEW, TIMING_WARN_RENEW},
		{7500 * MS + 1, RENEW, TIMING_RENEW_HALF},
		{NEVER, RENEW, TIMING_RENEW_HALF},
		{0, GRACE, TIMING_GRACE_RANGE},
		{3 * MS - 1, GRACE, TIMING_GRACE_RANGE},
		{3 * MS, GRACE, TIMING_OK},
		{7750 * MS, GRACE, TIMING_OK},
		{7750 * MS + 1, GRACE, TIMING_SHORT_DRAIN},
		{8500 * MS, GRACE, TIMING_SHORT_DRAIN},
		{8500 * MS + 1, GRACE, TIMING_NO_DRAIN},
		{15 * S - 1, GRACE, TIMING_NO_DRAIN},
		{15 * S, GRACE, TIMING_GRACE_RANGE},
		{NEVER, GRACE, TIMING_GRACE_RANGE},
		{0, RETRY, TIMING_RETRY_RANGE},
		{MS - 1, RETRY, TIMING_RETRY_RANGE},
		{MS, RETRY, TIMING_OK},
		{10 * S, RETRY, TIMING_OK},
		{10 * S + 1, RETRY, TIMING_RETRY_MAX},
		{15 * S, RETRY, TIMING_RETRY_MAX},
		{15 * S + 1, RETRY, TIMING_RETRY_RANGE},
		{NEVER, RETRY, TIMING_RETRY_RANGE},
		{0, RETRY_MAX, TIMING_RETRY_MAX},
		{2 * S - 1, RETRY_MAX, TIMING_RETRY_MAX},
		{2 * S, RETRY_MAX, TIMING_OK},
		{DAY, RETRY_MAX, TIMING_OK},
		{DAY + 1, RETRY_MAX, TIMING_RETRY_MAX},
		{NEVER, RETRY_MAX, TIMING_RETRY_MAX},
	};

	(void)state;
	for (size_t i = 0; i < N_OF(cases); i++) {
		struct timing t = defaults();

		set(&t, cases[i].field, cases[i].value);
		if (timing_check(&t, 0) != cases[i].fault)
			fail_msg("case %zu: fault %d instead of %d", i, (int)timing_check(&t, 0),
				 (int)cases[i].fault);
	}
}

static void the_smallest_lease_that_works(void **state)
{
	struct timing t = {.lease_ns = 10 * MS, .drift_ppm = NEVER};

	(void)state;
	timing_fill(&t);
	assert_int_equal(timing_check(&t, 0), TIMING_OK);
}

static void the_store_has_a_say(void **state)
{
	struct timing t = defaults();

	(void)state;
	assert_int_equal(timing_check(&t, 15 * S + 1), TIMING_LEASE_STORE);
	assert_int_equal(timing_check(&t, NEVER), TIMING_LEASE_STORE);
	/* Out of range is out of range, whatever the store thinks. */
	t.lease_ns = 0;
	assert_int_equal(timing_check(&t, 0), TIMING_LEASE_RANGE);
}

static void options_start_as_documented(void **state)
{
	struct options o;

	(void)state;
	options_init(&o);
	assert_int_equal(o.work_timeout_ns, 0);
	assert_int_equal(o.preempt_ns, 0);
	assert_int_equal(o.priority, 0);
	assert_int_equal(o.min_score, 800);
	assert_true(o.check_health && o.step_down_unhealthy && o.release_on_stop);
	assert_false(o.observe_only || o.manual);
}

static void refuses_options_that_contradict(void **state)
{
	static const struct {
		uint64_t work_ns;
		uint64_t preempt_ns;
		int32_t priority;
		uint16_t min_score;
		bool observe;
		bool manual;
		enum timing_fault fault;
	} cases[] = {
		{0, 0, 0, 800, false, false, TIMING_OK},
		{1, 0, 0, 800, false, false, TIMING_WORK_TIMEOUT},
		{MS - 1, 0, 0, 800, false, false, TIMING_WORK_TIMEOUT},
		{MS, 0, 0, 800, false, false, TIMING_OK},
		{DAY, 0, 0, 800, false, false, TIMING_OK},
		{DAY + 1, 0, 0, 800, false, false, TIMING_WORK_TIMEOUT},
		{NEVER, 0, 0, 800, false, false, TIMING_WORK_TIMEOUT},
		{0, 1, 0, 800, false, false, TIMING_PREEMPT},
		{0, 15 * S - 1, 0, 800, false, false, TIMING_PREEMPT},
		{0, 15 * S, 0, 800, false, false, TIMING_OK},
		{0, DAY, 0, 800, false, false, TIMING_OK},
		{0, DAY + 1, 0, 800, false, false, TIMING_PREEMPT},
		{0, NEVER, 0, 800, false, false, TIMING_PREEMPT},
		{0, 0, 1000000, 800, false, false, TIMING_OK},
		{0, 0, 1000001, 800, false, false, TIMING_PRIORITY_RANGE},
		{0, 0, INT32_MAX, 800, false, false, TIMING_PRIORITY_RANGE},
		{0, 0, -1000000, 800, false, false, TIMING_OK},
		{0, 0, -1000001, 800, false, false, TIMING_PRIORITY_RANGE},
		{0, 0, INT32_MIN, 800, false, false, TIMING_PRIORITY_RANGE},
		{0, 0, 0, 0, false, false, TIMING_OK},
		{0, 0, 0, 1000, false, false, TIMING_OK},
		{0, 0, 0, 1001, false, false, TIMING_SCORE_RANGE},
		{0, 0, 0, UINT16_MAX, false, false, TIMING_SCORE_RANGE},
		{0, 0, 0, 800, true, false, TIMING_OK},
		{0, 0, 0, 800, false, true, TIMING_OK},
		{0, 0, 0, 800, true, true, TIMING_OBSERVE_MANUAL},
	};
	struct timing t = defaults();

	(void)state;
	for (size_t i = 0; i < N_OF(cases); i++) {
		struct options o;

		options_init(&o);
		o.work_timeout_ns = cases[i].work_ns;
		o.preempt_ns = cases[i].preempt_ns;
		o.priority = cases[i].priority;
		o.min_score = cases[i].min_score;
		o.observe_only = cases[i].observe;
		o.manual = cases[i].manual;
		if (options_check(&o, &t) != cases[i].fault)
			fail_msg("case %zu: fault %d", i, (int)options_check(&o, &t));
	}
}

/* S2, as architecture: 15/5/5 s and 10 % say no at 10 s, end at 13.5 s, and are gone at 16.5 s. */
static void the_moments_of_a_lease(void **state)
{
	struct timing t = defaults();

	(void)state;
	assert_int_equal(timing_end_ns(&t), 13500 * MS);
	assert_int_equal(timing_gone_ns(&t), 16500 * MS);
	assert_int_equal(timing_drain_ns(&t), 3500 * MS);
	assert_int_equal(timing_call_ns(&t), 5 * S / 3);
	assert_int_equal(timing_hold_ns(&t), 2 * S);
	t.drift_ppm = 0;
	assert_int_equal(timing_end_ns(&t), 15 * S);
	assert_int_equal(timing_gone_ns(&t), 15 * S);
	assert_int_equal(timing_drain_ns(&t), 5 * S);
	t.renew_ns = 300 * MS;
	assert_int_equal(timing_hold_ns(&t), 300 * MS);
}

/* No product of what the check accepts overflows, and no nanosecond is lost to rounding. */
static void the_moments_at_the_extremes(void **state)
{
	struct timing t = {.lease_ns = DAY, .drift_ppm = 500000};

	(void)state;
	assert_int_equal(timing_end_ns(&t), DAY / 2);
	assert_int_equal(timing_gone_ns(&t), DAY + DAY / 2);
	t = (struct timing){.lease_ns = 10 * MS + 7, .drift_ppm = 333333};
	assert_int_equal(timing_end_ns(&t), 10000007 - 3333332);
	assert_int_equal(timing_gone_ns(&t), 10000007 + 3333332);
}

static void backoff_doubles_up_to_its_cap(void **state)
{
	static const struct {
		unsigned attempt;
		uint64_t top_ns; /* the whole, before the dice */
	} cases[] = {
		{0, 2 * S},  {1, 4 * S},   {2, 8 * S},    {3, 10 * S},
		{4, 10 * S}, {64, 10 * S}, {255, 10 * S}, {UINT32_MAX, 10 * S},
	};
	struct timing t = defaults();

	(void)state;
	for (size_t i = 0; i < N_OF(cases); i++) {
		unsigned n = cases[i].attempt;
		uint64_t top_ns = cases[i].top_ns;

		assert_int_equal(timing_backoff_ns(&t, n, 0), 0);
		assert_int_equal(timing_backoff_ns(&t, n, 0x8000), top_ns / 2);
		assert_true(timing_backoff_ns(&t, n, 0xffff) < top_ns);
		assert_true(timing_backoff_ns(&t, n, 0xffff) > top_ns - top_ns / 60000);
		/* Only its low bits are dice. */
		assert_int_equal(timing_backoff_ns(&t, n, 0xabcdef8000), top_ns / 2);
	}
}

/* L4, full jitter: never above the cap, and growing with the dice. */
static void backoff_is_spread_over_the_whole(void **state)
{
	struct timing t = defaults();

	(void)state;
	for (unsigned n = 0; n < 6; n++) {
		uint64_t before_ns = 0;

		for (uint64_t dice = 0; dice <= 0xffff; dice += 0xff) {
			uint64_t ns = timing_backoff_ns(&t, n, dice);

			assert_true(ns >= before_ns && ns < t.retry_max_ns);
			before_ns = ns;
		}
	}
}

/* L4: a few set out at once; more of them one after the other, within a bound (L2). Of every crowd
 * about eight don't wait. */
static void crowds_are_staggered(void **state)
{
	struct timing t = defaults();

	(void)state;
	for (unsigned n = 0; n <= 8; n++)
		assert_int_equal(timing_stagger_ns(&t, n, 0xffff), 0);
	assert_int_equal(timing_stagger_ns(&t, 9, 0), 0);
	assert_int_equal(timing_stagger_ns(&t, 9, 0x8000), 0);
	assert_in_range(timing_stagger_ns(&t, 9, 0xffff), 499000, 500000);
	assert_int_equal(timing_stagger_ns(&t, 100, 0x8000), 21000000);
	assert_int_equal(timing_stagger_ns(&t, 100, 0x147a), 0); /* 8 % */
	assert_in_range(timing_stagger_ns(&t, 100, 0x147c), 1, 2000);
	assert_in_range(timing_stagger_ns(&t, UINT16_MAX, 0x8000), t.retry_ns / 64 - 10000,
			t.retry_ns / 64);
	assert_true(timing_stagger_ns(&t, UINT16_MAX, 0xffff) < t.retry_ns / 32);
}

static void backoff_at_the_extremes(void **state)
{
	struct timing t = {.retry_ns = 1, .retry_max_ns = DAY};

	(void)state;
	/* A day in nanoseconds is below 2^47: 47 doublings of the smallest retry reach the cap. */
	assert_true(timing_backoff_ns(&t, 46, UINT64_MAX) < DAY);
	assert_true(timing_backoff_ns(&t, UINT32_MAX, UINT64_MAX) < DAY);
	assert_true(timing_backoff_ns(&t, UINT32_MAX, UINT64_MAX) > DAY - DAY / 60000);
	t.retry_ns = DAY;
	assert_int_equal(timing_backoff_ns(&t, 0, 0x8000), DAY / 2);
	assert_int_equal(timing_backoff_ns(&t, 255, 0x8000), DAY / 2);
	/* Odd numbers: no bit of the small ones is lost. */
	t = (struct timing){.retry_ns = 3, .retry_max_ns = 3};
	assert_int_equal(timing_backoff_ns(&t, 0, 0xffff), 2);
}

static void polls_between_half_and_all_of_retry_max(void **state)
{
	struct timing t = defaults();

	(void)state;
	assert_int_equal(timing_poll_ns(&t, 0), 5 * S);
	assert_int_equal(timing_poll_ns(&t, 0x8000), 7500 * MS);
	assert_true(timing_poll_ns(&t, UINT64_MAX) < 10 * S);
	assert_true(timing_poll_ns(&t, UINT64_MAX) > 9999 * MS);
}

static void times_that_do_not_come(void **state)
{
	(void)state;
	assert_int_equal(after_ns(5, 7), 12);
	assert_int_equal(after_ns(5, NEVER), NEVER);
	assert_int_equal(after_ns(5, NEVER - 5), NEVER);
	assert_int_equal(after_ns(5, NEVER - 6), NEVER - 1);
	assert_int_equal(after_ns(NEVER, 0), NEVER);
	assert_int_equal(after_ns(0, NEVER), NEVER);
	assert_int_equal(min_ns(3, NEVER), 3);
	assert_int_equal(max_ns(3, NEVER), NEVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fills_in_what_was_not_given),
		cmocka_unit_test(accepts_the_defaults),
		cmocka_unit_test(refuses_each_contradiction_with_its_own_reason),
		cmocka_unit_test(the_smallest_lease_that_works),
		cmocka_unit_test(the_store_has_a_say),
		cmocka_unit_test(options_start_as_documented),
		cmocka_unit_test(refuses_options_that_contradict),
		cmocka_unit_test(the_moments_of_a_lease),
		cmocka_unit_test(the_moments_at_the_extremes),
		cmocka_unit_test(backoff_doubles_up_to_its_cap),
		cmocka_unit_test(backoff_is_spread_over_the_whole),
		cmocka_unit_test(backoff_at_the_extremes),
		cmocka_unit_test(crowds_are_staggered),
		cmocka_unit_test(polls_between_half_and_all_of_retry_max),
		cmocka_unit_test(times_that_do_not_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
