/*
 * test_text.c: every code, fault and reason has words of its own, and names are taken or refused
 * by one strict rule (N30).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "baton.h"
#include "lib/messages.h"
#include "runtime/messages.h"

static void test_every_code_has_its_own_words(void **state)
{
	(void)state;
	assert_string_equal(baton_strerror(BATON_OK), "success");
	for (int i = BATON_E_DUPLICATE_ID; i <= BATON_OK; i++) {
		assert_non_null(baton_strerror(i));
		assert_string_not_equal(baton_strerror(i), "unknown error");
		for (int j = BATON_E_DUPLICATE_ID; j < i; j++)
			assert_string_not_equal(baton_strerror(i), baton_strerror(j));
	}
	assert_string_equal(baton_strerror(1), "unknown error");
	assert_string_equal(baton_strerror(BATON_E_DUPLICATE_ID - 1), "unknown error");
	assert_string_equal(baton_strerror(INT32_MIN), "unknown error");
	assert_string_equal(baton_strerror(INT32_MAX), "unknown error");
}

static void test_every_timing_fault_has_a_sentence(void **state)
{
	const char *unknown = text_timing((enum timing_fault)1000);

	(void)state;
	for (int i = TIMING_OK; i <= TIMING_OBSERVE_MANUAL; i++) {
		const char *text = text_timing((enum timing_fault)i);

		assert_string_not_equal(text, unknown);
		/* For the command, too: nobody there has heard of the names of fields. */
		assert_null(strstr(text, "_ms"));
		assert_int_not_equal(text[strlen(text) - 1], '.');
		/* It must fit where it is shown, uncut. */
		assert_true(strlen(text) < sizeof(((struct baton_error *)0)->text));
		for (int j = TIMING_OK; j < i; j++)
			assert_string_not_equal(text, text_timing((enum timing_fault)j));
	}
}

/* The sentences quote limits that timing.c keeps: they must not drift apart. */
static void test_timing_sentences_tell_the_truth(void **state)
{
	struct timing t = {.drift_ppm = NEVER};

	(void)state;
	timing_fill(&t);
	assert_int_equal(timing_check(&t, 0), TIMING_OK);
	t = (struct timing){.lease_ns = 10 * NS_PER_MS - 1, .drift_ppm = 0};
	timing_fill(&t);
	assert_int_equal(timing_check(&t, 0), TIMING_LEASE_RANGE);
	assert_non_null(strstr(text_timing(TIMING_LEASE_RANGE), "10 ms to 24 hours"));
	t = (struct timing){.drift_ppm = 500001};
	timing_fill(&t);
	assert_int_equal(timing_check(&t, 0), TIMING_DRIFT_RANGE);
	assert_non_null(strstr(text_timing(TIMING_DRIFT_RANGE), "0 to 500"));
	t = (struct timing){.drift_ppm = 0, .lease_ns = NS_PER_S, .renew_ns = NS_PER_S / 2 + 1};
	timing_fill(&t);
	assert_int_equal(timing_check(&t, 0), TIMING_RENEW_HALF);
	assert_non_null(strstr(text_timing(TIMING_RENEW_HALF), "half"));
}

static void test_reasons(void **state)
{
	static const struct {
		uint8_t why;
		int reason;
	} table[] = {
		{WHY_EXPIRED, BATON_REASON_EXPIRED},       {WHY_REFUSED, BATON_REASON_REFUSED},
		{WHY_SUPERSEDED, BATON_REASON_SUPERSEDED}, {WHY_GONE, BATON_REASON_GONE},
		{WHY_STALLED, BATON_REASON_STALLED},       {WHY_STOPPED, BATON_REASON_STOPPED},
		{WHY_RESIGNED, BATON_REASON_RESIGNED},     {WHY_ORDERED, BATON_REASON_ORDERED},
		{WHY_TRANSFER, BATON_REASON_TRANSFERRED},  {WHY_UNHEALTHY, BATON_REASON_UNHEALTHY},
		{WHY_PAUSED, BATON_REASON_PAUSED},         {WHY_NONE, BATON_REASON_NONE},
		{WHY_FAILED, BATON_REASON_NONE},           {UINT8_MAX, BATON_REASON_NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(reason_of_why(table[i].why), table[i].reason);
}

static void test_codes_of_error_notes(void **state)
{
	(void)state;
	assert_int_equal(code_of_why(WHY_FAILED), BATON_E_UNAVAILABLE);
	assert_int_equal(code_of_why(WHY_UNKNOWN), BATON_E_UNAVAILABLE);
	assert_int_equal(code_of_why(WHY_BAD_TERM), BATON_E_CORRUPT);
	assert_int_equal(code_of_why(WHY_FLOOR_JUMP), BATON_E_CORRUPT);
	assert_int_equal(code_of_why(WHY_TERM_END), BATON_E_CORRUPT);
	assert_int_equal(code_of_why(WHY_TRANSFER_REFUSED), BATON_E_NO_CANDIDATE);
	assert_int_equal(code_of_why(WHY_TRANSFER_ABORTED), BATON_E_NO_CANDIDATE);
	assert_int_equal(code_of_why(WHY_DRAINING), BATON_E_BUSY);
	/* An error note is never "success", whatever its reason. */
	for (int why = 0; why <= UINT8_MAX; why++)
		assert_true(code_of_why((uint8_t)why) < 0);
}

static void test_texts_of_reasons(void **state)
{
	(void)state;
#define X(name, text) assert_string_equal(text_of_why(WHY_##name), text);
	CORE_WHYS(X)
#undef X
	assert_string_equal(text_of_why(UINT8_MAX), text_of_why(WHY_NONE));
}

static void test_names_that_are_taken(void **state)
{
	static const char *const names[] = {
		"a",
		" ",
		"nightly report",
		"..",
		"a/b",
		"'\"\\;--{}*?#%00",
		"~",
		"\xc2\xa0", /* U+00A0, just behind the control characters */
		"\xc3\xa9t\xc3\xa9",
		"\xdf\xbf",     /* the last of two bytes */
		"\xe0\xa0\x80", /* the first of three bytes */
		"\xed\x9f\xbf", /* just before the surrogates */
		"\xee\x80\x80", /* just behind them */
		"\xef\xbf\xbf",
		"\xf0\x90\x80\x80", /* the first of four bytes */
		"\xf4\x8f\xbf\xbf", /* U+10FFFF */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_true(text_is_name(names[i], BATON_NAME_MAX));
		assert_true(text_is_metadata(names[i]));
	}
}

static void test_names_that_are_refused(void **state)
{
	static const char *const names[] = {
		"\n",
		"a\tb",
		"a\r\nb",
		"\x01",
		"\x1f",
		"\x7f",
		"\xc2\x80", /* U+0080 */
		"\xc2\x85", /* NEXT LINE */
		"\xc2\x9f", /* U+009F */
		"\x80",     /* a continuation of nothing */
		"a\xbf",
		"\xc3", /* cut off */
		"\xc3(",
		"\xe2\x82",
		"\xe2\x28\xa1",
		"\xf0\x9f\x92",
		"\xc0\xaf", /* overlong "/" */
		"\xc1\xbf",
		"\xe0\x80\xaf",
		"\xe0\x9f\xbf",
		"\xf0\x80\x80\xaf",
		"\xf0\x8f\xbf\xbf",
		"\xc0\x80",     /* overlong NUL */
		"\xed\xa0\x80", /* surrogates */
		"\xed\xbf\xbf",
		"\xf4\x90\x80\x80", /* beyond U+10FFFF */
		"\xf5\x80\x80\x80",
		"\xf8\x88\x80\x80\x80", /* five bytes */
		"\xf9\x90\x80\x80",
		"\xfc\x90\x80\x80",
		"\xfe",
		"\xff",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_false(text_is_name(names[i], BATON_NAME_MAX));
		assert_false(text_is_metadata(names[i]));
	}
	assert_false(text_is_name(NULL, BATON_NAME_MAX));
	assert_false(text_is_metadata(NULL));
}

static void test_lengths(void **state)
{
	char text[BATON_METADATA_MAX + 2];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[BATON_NAME_MAX + 1] = '\0';
	assert_false(text_is_name(text, BATON_NAME_MAX));
	text[BATON_NAME_MAX] = '\0';
	assert_true(text_is_name(text, BATON_NAME_MAX));
	/* A character that begins inside the limit and ends outside is too long, not cut. */
	memcpy(text + BATON_NAME_MAX - 1, "\xc3\xa9", 3);
	assert_false(text_is_name(text, BATON_NAME_MAX));
	assert_false(text_is_name("", BATON_NAME_MAX));
	assert_false(text_is_name("ab", 1));

	memset(text, 'x', sizeof(text));
	text[BATON_METADATA_MAX + 1] = '\0';
	assert_false(text_is_metadata(text));
	text[BATON_METADATA_MAX] = '\0';
	assert_true(text_is_metadata(text));
	assert_true(text_is_metadata(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_code_has_its_own_words),
		cmocka_unit_test(test_every_timing_fault_has_a_sentence),
		cmocka_unit_test(test_timing_sentences_tell_the_truth),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_codes_of_error_notes),
		cmocka_unit_test(test_texts_of_reasons),
		cmocka_unit_test(test_names_that_are_taken),
		cmocka_unit_test(test_names_that_are_refused),
		cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
