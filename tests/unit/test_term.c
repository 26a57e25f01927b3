/*
 * test_term.c: which term comes next, where there is none, and what a driver says then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/term.h"
#include "baton-store.h"
#include "store/base.h"

static void test_sum(void **state)
{
	(void)state;
	assert_int_equal(term_sum(0, 0), 0);
	assert_int_equal(term_sum(3, 4), 7);
	assert_int_equal(term_sum(TERM_MAX - 1, 0), TERM_MAX - 1);
	assert_int_equal(term_sum(TERM_MAX - 2, 1), TERM_MAX - 1);
	assert_int_equal(term_sum(TERM_MAX - 1, 1), TERM_MAX);
	assert_int_equal(term_sum(TERM_MAX - 1, 2), TERM_MAX);
	assert_int_equal(term_sum(1, TERM_MAX), TERM_MAX);
	assert_int_equal(term_sum(UINT64_MAX, UINT64_MAX), TERM_MAX);
}

static void test_next(void **state)
{
	static const struct {
		uint64_t stored, floor, least;
		uint64_t next; /* 0: none */
		enum term_fault fault;
	} cases[] = {
		{0, 0, 0, 1, TERM_FINE},
		{5, 3, 0, 6, TERM_FINE},
		{3, 5, 0, 6, TERM_FINE},
		{5, 5, 0, 6, TERM_FINE},
		/* A store that counts time. */
		{3, 5, 6, 6, TERM_FINE},
		{3, 5, 1000, 1000, TERM_FINE},
		{3, 5, TERM_MAX, TERM_MAX, TERM_FINE},
		{3, 5, TERM_MAX + 1, 0, TERM_END},
		/* The end of the range (C21). */
		{TERM_MAX - 1, 0, 0, TERM_MAX, TERM_FINE},
		{0, TERM_MAX - 1, 0, TERM_MAX, TERM_FINE},
		{TERM_MAX, 0, 0, 0, TERM_END},
		{0, TERM_MAX, 0, 0, TERM_END},
		{1, TERM_MAX, 0, 0, TERM_END},
		{UINT64_MAX, 0, 0, 0, TERM_END},
		{0, UINT64_MAX, 0, 0, TERM_END},
		/* Too far above what the store knows; where it knows none, nothing is. */
		{7, 7 + TERM_JUMP_MAX, 0, 8 + TERM_JUMP_MAX, TERM_FINE},
		{7, 8 + TERM_JUMP_MAX, 0, 0, TERM_JUMP},
		{7, 8 + TERM_JUMP_MAX, 1000, 0, TERM_JUMP},
		{0, 8 + TERM_JUMP_MAX, 0, 9 + TERM_JUMP_MAX, TERM_FINE},
		{8 + TERM_JUMP_MAX, 7, 0, 9 + TERM_JUMP_MAX, TERM_FINE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum term_fault fault;

		assert_int_equal(term_next(cases[i].stored, cases[i].floor, cases[i].least, &fault),
				 cases[i].next);
		assert_int_equal(fault, cases[i].fault);
	}
}

static void test_digits(void **state)
{
	char text[32];

	(void)state;
	snprintf(text, sizeof(text), "%" PRIu64, TERM_MAX);
	assert_string_equal(text, TERM_MAX_DIGITS);
	snprintf(text, sizeof(text), "%" PRIu64, TERM_JUMP_MAX);
	assert_string_equal(text, TERM_JUMP_MAX_DIGITS);
}

static void test_sentences(void **state)
{
	static const struct {
		enum term_fault fault;
		int code;
		const char *text;
	} cases[] = {
		{TERM_END, BATON_E_CORRUPT, "the election \"e\" has no higher term"},
		{TERM_JUMP, BATON_E_CORRUPT, "the election \"e\" has a term in the store that is "},
		{TERM_BEHIND, BATON_E_STALE, "the election \"e\" had higher terms than"},
		{TERM_LOW, BATON_E_UNAVAILABLE, "the election \"e\" was won in a term that isn't"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct baton_call call = {0};
		struct baton_campaign c = {.name = "e", .outcome = BATON_OUTCOME_OK};

		assert_int_equal(store_fail_term(&call, &c, cases[i].fault), -1);
		assert_int_equal(c.outcome, BATON_OUTCOME_FAILED);
		assert_int_equal(c.code, cases[i].code);
		assert_int_equal(call.error.code, cases[i].code);
		assert_memory_equal(call.error.text, cases[i].text, strlen(cases[i].text));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sum),
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_digits),
		cmocka_unit_test(test_sentences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
