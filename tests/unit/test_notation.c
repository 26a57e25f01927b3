/*
 * test_notation.c: the notation that stories, timelines and counterexamples share. Every word of
 * the core has a name, no two of a kind have the same, and what doesn't fit is cut cleanly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/election.h"
#include "text.h"

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))

static void every_word_has_its_own_name(void **state)
{
	static const struct {
		const char *(*text)(uint8_t);
		uint8_t last;
	} tables[] = {
		{text_why_name, WHY_DRAINING},
		{text_why, WHY_DRAINING},
		{text_outcome, OUTCOME_UNKNOWN},
		{text_event_kind, EV_ORDERED},
		{text_action_kind, ACT_NOTE},
		{text_note, NOTE_ERROR},
		{text_election_state, ELECTION_RELEASING},
		{text_lease_state, LEASE_CLOSING},
	};

	(void)state;
	for (size_t t = 0; t < N_OF(tables); t++) {
		uint8_t i = 0;

		for (; tables[t].text(i) != NULL; i++)
			assert_int_equal(text_find(tables[t].text, tables[t].text(i)), i);
		assert_true(i > tables[t].last);
		assert_int_equal(text_find(tables[t].text, "no such word"), -1);
	}
}

static void times(void **state)
{
	static const struct {
		uint64_t ns;
		const char *span;
		const char *time;
	} cases[] = {
		{0, "0s", "0.000s"},
		{1, "0.000000001s", "0.000000001s"},
		{1500000000, "1.5s", "1.500s"},
		{12345000000, "12.345s", "12.345s"},
		{100000000000, "100s", "100.000s"},
		{NEVER, "never", "never"},
		{NEVER - 1, "18446744073.709551614s", "18446744073.709551614s"},
	};
	char buf[40];

	(void)state;
	for (size_t i = 0; i < N_OF(cases); i++) {
		text_span(cases[i].ns, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].span);
		text_time(cases[i].ns, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].time);
	}
}

static void candidates(void **state)
{
	static const struct {
		uint32_t who;
		const char *name;
	} cases[] = {{NOBODY, "nobody"}, {1, "A"}, {26, "Z"}, {27, "c27"}, {4000, "c4000"}};
	char buf[40];

	(void)state;
	for (size_t i = 0; i < N_OF(cases); i++) {
		text_candidate(cases[i].who, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].name);
	}
}

static void notes(void **state)
{
	static const struct {
		struct action action;
		const char *text;
	} cases[] = {
		{{.note = NOTE_BECAME, .term = 4, .why = WHY_WON}, "became leader in term 4 (won)"},
		{{.note = NOTE_LOST, .term = 4, .why = WHY_RESIGNED}, "lost term 4 (resigned)"},
		{{.note = NOTE_CHANGED, .term = 4, .target = 2, .why = WHY_HELD},
		 "leader is B in term 4 (held)"},
		{{.note = NOTE_CHANGED, .term = 4, .why = WHY_FREE},
		 "nobody leads after term 4 (free)"},
		{{.note = NOTE_STOPPED, .why = WHY_STOPPED}, "stopped (stopped)"},
		{{.note = NOTE_ERROR, .target = 2, .why = WHY_TRANSFER_REFUSED},
		 "error about B (the target of the transfer is absent, or not healthy)"},
	};
	char buf[200];

	(void)state;
	for (size_t i = 0; i < N_OF(cases); i++) {
		struct action a = cases[i].action;

		a.kind = ACT_NOTE;
		text_action(&a, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].text);
	}
}

static void calls(void **state)
{
	static const struct {
		struct action action;
		const char *text;
	} cases[] = {
		{{.kind = ACT_OPEN, .epoch = 2, .why = WHY_STARTED}, "open lease 2 (started)"},
		{{.kind = ACT_LEASE_UP, .epoch = 2, .why = WHY_OPENED},
		 "lease 2 is up (the lease is open)"},
		{{.kind = ACT_LEASE_DOWN, .epoch = 2, .why = WHY_EXPIRED},
		 "lease 2 is down (the deadline has passed)"},
		{{.kind = ACT_CAMPAIGN, .epoch = 2, .nonce = 7, .floor = 3, .why = WHY_DUE},
		 "campaign #7 floor 3 (due)"},
		{{.kind = ACT_OBSERVE, .why = WHY_HINTED}, "observe (a hint)"},
		{{.kind = ACT_RELEASE, .epoch = 2, .nonce = 7, .term = 4, .why = WHY_DRAINED},
		 "release #7 term 4 (the work has ended)"},
		{{.kind = ACT_RELEASE, .nonce = 7, .term = 4, .target = 2, .hold_ns = 2000000000},
		 "release #7 term 4 for B held back 2s (no reason)"},
		{{.kind = ACT_ORDER, .term = 4, .target = 1, .why = WHY_PREEMPT},
		 "order term 4 for A (a candidate that ranks higher asks for the leadership)"},
	};
	char buf[200];

	(void)state;
	for (size_t i = 0; i < N_OF(cases); i++) {
		text_action(&cases[i].action, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].text);
	}
}

static void what_does_not_fit_is_cut(void **state)
{
	struct action a = {.kind = ACT_OPEN, .epoch = 2, .why = WHY_STARTED};
	char buf[8];

	(void)state;
	memset(buf, 'x', sizeof(buf));
	text_action(&a, buf, sizeof(buf));
	assert_string_equal(buf, "open le");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_word_has_its_own_name),
		cmocka_unit_test(times),
		cmocka_unit_test(candidates),
		cmocka_unit_test(notes),
		cmocka_unit_test(calls),
		cmocka_unit_test(what_does_not_fit_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
