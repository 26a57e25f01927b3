/*
 * test_advice.c: timings from what was measured, by the rules of advice.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/advice.h"

#define N 1000

static double samples[N];

/* All take 10 ms but for the last few. */
static struct measured make(size_t n_slow, double slow_ms)
{
	for (size_t i = 0; i < N; i++)
		samples[i] = i + n_slow < N ? 10 : slow_ms;
	return (struct measured){.samples = samples,
				 .n = N,
				 .pause_ms = 5,
				 .stop_ms = 2000,
				 .floor_ms = 100,
				 .drift = 0.1};
}

static void test_quantiles(void **state)
{
	struct measured m = make(2, 80);

	(void)state;
	assert_true(advice_quantile(&m, 0.5) == 10);
	assert_true(advice_quantile(&m, 0.99) == 10);
	assert_true(advice_quantile(&m, 0.999) == 80);
	assert_true(advice_quantile(&m, 1) == 80);
	m.n = 0;
	assert_true(advice_quantile(&m, 0.5) == 0);
}

static void test_rules(void **state)
{
	static const struct {
		size_t n_slow;
		double slow_ms, outage_ms, stop_ms, floor_ms, drift;
	} cases[] = {{0, 0, 0, 2000, 100, 0.1},   {2, 80, 0, 2000, 100, 0.1},
		     {1, 900, 0, 2000, 100, 0.1}, {2, 80, 6000, 2000, 100, 0.1},
		     {0, 0, 0, 20000, 100, 0.1},  {0, 0, 0, 100, 10000, 0.1},
		     {0, 0, 0, 2000, 100, 0.4}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct measured m = make(cases[i].n_slow, cases[i].slow_ms);
		struct advice rows[ADVICE_ROWS];

		m.outage_ms = cases[i].outage_ms;
		m.stop_ms = cases[i].stop_ms;
		m.floor_ms = cases[i].floor_ms;
		m.drift = cases[i].drift;
		advice_compute(&m, rows);
		const struct advice *a = &rows[0];
		double worst = advice_quantile(&m, 1);
		double p999 = advice_quantile(&m, 0.999);

		assert_true(a->call_ms + 1 >= 4 * p999 && a->call_ms + 1 >= 2 * worst);
		assert_true(a->grace_ms + 1 >= 1.5 * m.outage_ms);
		assert_true(a->drain_ms + 1 >= m.stop_ms + 2 * m.pause_ms);
		assert_true(a->renew_ms <= a->lease_ms / 3);
		assert_true(a->lease_ms >= m.floor_ms);
		assert_true(a->false_a_year == 0);
	}
}

/* A profile whose calls are too short for this store says so. */
static void test_false_failovers(void **state)
{
	struct measured m = make(100, 400);
	struct advice rows[ADVICE_ROWS];

	(void)state;
	advice_compute(&m, rows);
	assert_string_equal(rows[1].name, "fast");
	/* A tenth of the calls takes longer than 333 ms: one in a thousand renewals. */
	assert_true(rows[1].false_a_year > 31000 && rows[1].false_a_year < 32000);
	assert_true(rows[1].false_at_most > rows[1].false_a_year);
	assert_true(rows[2].false_a_year == 0 && rows[2].false_at_most > 0);
	assert_false(rows[1].is_enough);
	assert_true(rows[2].is_enough);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_false_failovers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
