/*
 * test_advice.c: timings from what was measured, by the rules of advice.h; and what the kernel
 * tells of the machine meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/advice.h"
#include "cli/machine.h"

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

static bool is_near(double a, double b)
{
	return a > b - 0.001 && a < b + 0.001;
}

static void test_machine(void **state)
{
	struct machine before = {.boot_ns = 1000000000};
	struct machine after = {.boot_ns = 3000000000};

	(void)state;
	machine_read_pressure(&before, "some avg10=1.00 avg60=2.00 avg300=3.00 total=1000\n"
				       "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
	machine_read_pressure(&after, "some avg10=9.00 avg60=9.00 avg300=9.00 total=501000\n");
	assert_true(is_near(machine_pressure(&before, &after), 25));
	machine_read_stat(&before, "cpu  10 20 30 40 50 60 70 80 5 5\ncpu0 1 2 3 4 5 6 7 8 0 0\n");
	machine_read_stat(&after, "cpu  20 20 30 40 50 60 70 120 5 5\n");
	assert_true(is_near(machine_steal(&before, &after), 80));
	assert_true(machine_steal(&before, &before) == 0);
	assert_true(machine_steal(&after, &before) == MACHINE_NOT_TOLD); /* it went back */
	assert_true(machine_pressure(&after, &before) == MACHINE_NOT_TOLD);
}

/* Kernels without them, old ones, and what is no number. */
static void test_machine_not_told(void **state)
{
	static const char *const pressures[] = {NULL, "", "full total=7\n", "some total=x\n"};
	static const char *const stats[] = {NULL, "", "cpu  1 2 3 4 5 6 7\n", "intr 1 2 3\n"};
	struct machine told = {.has_pressure = true, .has_steal = true, .boot_ns = 1};
	struct machine m = {.boot_ns = 2};

	(void)state;
	for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); i++) {
		machine_read_pressure(&m, pressures[i]);
		machine_read_stat(&m, stats[i]);
		assert_true(machine_pressure(&told, &m) == MACHINE_NOT_TOLD);
		assert_true(machine_steal(&m, &told) == MACHINE_NOT_TOLD);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantiles),        cmocka_unit_test(test_rules),
		cmocka_unit_test(test_false_failovers),  cmocka_unit_test(test_machine),
		cmocka_unit_test(test_machine_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
