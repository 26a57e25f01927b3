/*
 * test_pace.c: slow renewals are said once, of an hour whose 99.9th percentile is above half of a
 * call's time, and again only after an hour that was not slow.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "runtime/pace.h"

#define S CLOCK_NS_PER_S
#define CALL (2 * S)

/* An hour of renewals every five seconds, of which so many take more than a second. How often it is
 * said. */
static int play_hour(struct pace *p, uint64_t *now_ns, int n_slow, struct pace *last)
{
	int said = 0;

	for (int i = 0; i < 3600 / 5; i++) {
		said += pace_add(p, *now_ns, i >= 9 && i < 9 + n_slow ? S + 1 : S, CALL, last);
		*now_ns += 5 * S;
	}
	return said;
}

static void test_once(void **state)
{
	struct pace p = {0};
	struct pace last = {0};
	uint64_t now_ns = 1000 * S;

	(void)state;
	assert_int_equal(play_hour(&p, &now_ns, 2, &last), 0); /* the hour is not over */
	assert_int_equal(play_hour(&p, &now_ns, 0, &last), 1);
	assert_int_equal(last.n_slow, 2);
	assert_int_equal(last.n, 721);
	assert_int_equal(play_hour(&p, &now_ns, 0, &last), 0);
}

static void test_again_after_a_good_hour(void **state)
{
	struct pace p = {0};
	struct pace last;
	uint64_t now_ns = 1000 * S;
	int said = 0;

	(void)state;
	for (int i = 0; i < 5; i++)
		said += play_hour(&p, &now_ns, 3, &last);
	assert_int_equal(said, 1); /* it stays slow: one line per state */
	for (int i = 0; i < 2; i++)
		said += play_hour(&p, &now_ns, 0, &last);
	assert_int_equal(said, 1);
	for (int i = 0; i < 2; i++)
		said += play_hour(&p, &now_ns, 3, &last);
	assert_int_equal(said, 2);
}

static void test_one_is_not_a_pace(void **state)
{
	struct pace p = {0};
	struct pace last;
	uint64_t now_ns = 1000 * S;
	int said = 0;

	(void)state;
	for (int i = 0; i < 4; i++)
		said += play_hour(&p, &now_ns, 1, &last);
	assert_int_equal(said, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_again_after_a_good_hour),
		cmocka_unit_test(test_one_is_not_a_pace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
