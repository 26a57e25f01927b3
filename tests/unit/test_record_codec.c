/*
 * test_record_codec.c: records as text, and names as keys: what is written is read back, and
 * nothing else is taken for a record (S9), however little it differs from one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/record/decide/codec.h"
#include "store/record/decide/decide.h"

static char text[RECORD_TEXT_MAX];
static char again[RECORD_TEXT_MAX];

static struct record_election full_election(void)
{
	struct record_election e = {.w = UINT64_MAX,
				    .term = TERM_MAX,
				    .nonce = 7,
				    .ttl_ns = 15,
				    .order_id = 9,
				    .order_term = 3,
				    .order_quiet_ms = 1000,
				    .order_kind = BATON_ORDER_TRANSFER,
				    .hold_ns = 5,
				    .hold_term = 2,
				    .since_ms = -1,
				    .priority = INT32_MIN,
				    .score_permille = 1000,
				    .n_past = 2,
				    .paused = true};

	strcpy(e.name, "e \"\\ \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
	strcpy(e.lease, "0af-9-1");
	strcpy(e.leader, "a");
	strcpy(e.address, "h:1");
	strcpy(e.metadata, "{}");
	strcpy(e.order_target, "b");
	strcpy(e.reserved_for, "c");
	for (unsigned i = 0; i < 2; i++) {
		e.past[i].term = 2 - i;
		strcpy(e.past[i].leader, "a");
		strcpy(e.past[i].ended, i == 0 ? "" : "closed");
	}
	return e;
}

/* ---- elections ---- */

static void test_elections_round_trip(void **state)
{
	struct record_election e = full_election();
	struct record_election back;
	size_t n = record_write_election(&e, text, sizeof(text));

	(void)state;
	assert_true(n > 0);
	assert_int_equal(record_parse_election(text, n, &back), 0);
	assert_memory_equal(&e, &back, sizeof(e));
	for (size_t size = 0; size < n; size++)
		assert_int_equal(record_write_election(&e, again, size), 0);
	struct record_election none = {.term = 0};

	n = record_write_election(&none, text, sizeof(text));
	assert_int_equal(record_parse_election(text, n, &back), 0);
	assert_memory_equal(&none, &back, sizeof(none));
}

/* Whatever one byte is changed to: it isn't taken, or it is exactly what the writer makes of it. */
static void changed_election(size_t n)
{
	static struct record_election back;

	if (record_parse_election(text, n, &back) != 0)
		return;
	assert_int_equal(record_write_election(&back, again, sizeof(again)), n);
	assert_memory_equal(text, again, n);
}

static void test_elections_that_differ(void **state)
{
	static const char bytes[] = {'\0', '\x1f', '"', '\\', '0', '9', '-', 'n',    't',
				     'f',  ']',    ',', 'x',  '{', '}', ' ', '\x80', '\xff'};
	struct record_election e = full_election();
	struct record_election back;
	size_t n = record_write_election(&e, text, sizeof(text));

	(void)state;
	for (size_t i = 0; i < n; i++) {
		char was = text[i];

		assert_int_equal(record_parse_election(text, i, &back), -1);
		for (size_t k = 0; k < sizeof(bytes); k++) {
			text[i] = bytes[k];
			changed_election(n);
		}
		text[i] = was;
	}
	text[n] = ' ';
	assert_int_equal(record_parse_election(text, n + 1, &back), -1);
}

/* One piece of a record replaced by another. */
static int parse_with(const char *from, const char *to)
{
	struct record_election e = full_election();
	struct record_election back;
	size_t n = record_write_election(&e, text, sizeof(text) - 1);

	text[n] = '\0';
	char *at = strstr(text, from);

	assert_non_null(at);
	int size = snprintf(again, sizeof(again), "%.*s%s%s", (int)(at - text), text, to,
			    at + strlen(from));

	return record_parse_election(again, (size_t)size, &back);
}

static void test_values_out_of_range(void **state)
{
	(void)state;
	assert_int_equal(parse_with("{\"w\":", "{\"w\":"), 0);
	assert_int_equal(parse_with("18446744073709551615", "18446744073709551616"), -1);
	assert_int_equal(parse_with("18446744073709551615", "184467440737095516150"), -1);
	assert_int_equal(parse_with("18446744073709551615", "01"), -1);
	assert_int_equal(parse_with("18446744073709551615", ""), -1);
	assert_int_equal(parse_with("9223372036854775807", "9223372036854775808"), -1);
	assert_int_equal(parse_with("\"since\":\"-1\"", "\"since\":\"-0\""), -1);
	assert_int_equal(parse_with("-2147483648", "-2147483649"), -1);
	assert_int_equal(parse_with("-2147483648", "2147483648"), -1);
	assert_int_equal(parse_with("\"score\":1000", "\"score\":4294967296"), -1);
	assert_int_equal(parse_with("transfer", "obey"), -1);
	assert_int_equal(parse_with("0af-9-1", "0ag-9-1"), -1);
	assert_int_equal(parse_with("0af-9-1", "0a/-9-1"), -1);
	assert_int_equal(parse_with("0af-9-1", "0a:-9-1"), -1);
	assert_int_equal(parse_with("0af-9-1", "0aZ-9-1"), -1);
	assert_int_equal(parse_with("\"ttl\":\"15\"", "\"ttl\":\"0\""), -1);
	assert_int_equal(parse_with("{\"for\":\"c\"", "{\"for\":\"\""), -1);
	assert_int_equal(parse_with("\"leader\":\"a\"", "\"leader\":\"\\a\""), -1);
	assert_int_equal(parse_with("\"leader\":\"a\"", "\"leader\":\"\\\xc3\xa9\""), -1);
}

/* S9: what isn't text is no name. */
static void test_not_utf8(void **state)
{
	static const char *const bad[] = {"\x01",
					  "\x7f",
					  "\xc2\x80", /* a control character */
					  "\x80",     /* the middle of one */
					  "\xc3",     /* half of one */
					  "\xc3\x61", /* and no second one behind it */
					  "\xc0\xaf", /* longer than it needs to be */
					  "\xe0\x80\xaf",
					  "\xf0\x80\x80\xaf",
					  "\xed\xa0\x80",     /* half of a pair */
					  "\xf4\x90\x80\x80", /* beyond the last one */
					  "\xf8\x88\x80\x80\x80"};
	struct record_lease lease = {.ttl_ns = 1};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char to[40];

		strcpy(lease.owner, bad[i]);
		assert_int_equal(record_write_lease(&lease, text, sizeof(text)), 0);
		snprintf(to, sizeof(to), "\"leader\":\"%s\"", bad[i]);
		assert_int_equal(parse_with("\"leader\":\"a\"", to), -1);
	}
	strcpy(lease.owner, "\xee\x80\x80\xc2\xa0~");
	assert_true(record_write_lease(&lease, text, sizeof(text)) > 0);
}

static void test_too_much(void **state)
{
	static struct record_election e;
	static char long_one[2000];
	char to[2100];

	(void)state;
	e = full_election();
	e.n_past = RECORD_PAST_MAX + 1;
	for (unsigned i = 0; i < RECORD_PAST_MAX; i++)
		e.past[i].term = 1;
	assert_int_equal(record_write_election(&e, text, sizeof(text)), 0);
	e.n_past = RECORD_PAST_MAX;
	assert_true(record_write_election(&e, text, sizeof(text)) > 0);
	e.order_kind = 7;
	assert_int_equal(record_write_election(&e, text, sizeof(text)), 0);
	e = full_election();
	e.term = TERM_MAX + 1;
	assert_int_equal(record_write_election(&e, text, sizeof(text)), 0);
	memset(long_one, 'x', sizeof(long_one) - 1);
	snprintf(to, sizeof(to), "\"leader\":\"%s\"", long_one);
	assert_int_equal(parse_with("\"leader\":\"a\"", to), -1);
}

/* ---- leases ---- */

static void test_leases(void **state)
{
	struct record_lease lease = {.w = 1, .ttl_ns = 5, .beat = 3};
	struct record_lease back;

	(void)state;
	for (uint32_t death = 0; death <= RECORD_DEATHS; death++) {
		lease.death = death;
		size_t n = record_write_lease(&lease, text, sizeof(text));

		assert_int_equal(n > 0, death < RECORD_DEATHS);
		if (n == 0)
			continue;
		assert_int_equal(record_parse_lease(text, n, &back), 0);
		assert_memory_equal(&lease, &back, sizeof(lease));
		for (size_t i = 0; i < n; i++)
			assert_int_equal(record_parse_lease(text, i, &back), -1);
	}
}

/* ---- candidates ---- */

static void test_candidates(void **state)
{
	struct record_profile profiles[2] = {{.updated_ms = 1, .priority = -3, .is_healthy = true},
					     {.metadata = "x"}};
	struct record_candidates found;
	struct record_profile back;
	struct record_page page;
	char name[BATON_NAME_MAX + 1];
	size_t at = 0;
	size_t profile;

	(void)state;
	record_page_begin(&page, text, 400, 5, "a", "h:1");
	assert_false(record_page_add_name(&page, "e", 0)); /* it has no profile yet */
	assert_true(record_page_add_profile(&page, &profiles[0]));
	assert_true(record_page_add_profile(&page, &profiles[1]));
	assert_true(record_page_add_name(&page, "e", 1));
	assert_true(record_page_add_name(&page, "f", 0));
	assert_false(record_page_add_name(&page, "g", 2));
	size_t n = record_page_end(&page);

	assert_int_equal(record_parse_candidates(text, n, &found), 0);
	assert_int_equal(found.n_profiles, 2);
	assert_int_equal(found.n_names, 2);
	record_candidates_profile(&found, 1, &back);
	assert_string_equal(back.metadata, "x");
	assert_true(record_candidates_name(&found, &at, name, &profile));
	assert_string_equal(name, "e");
	assert_int_equal(profile, 1);
	assert_true(record_candidates_name(&found, &at, name, &profile));
	assert_false(record_candidates_name(&found, &at, name, &profile));
	for (size_t i = 0; i < n; i++)
		assert_int_equal(record_parse_candidates(text, i, &found), -1);
	static const char no_profile[] = "{\"w\":\"1\",\"owner\":\"\",\"address\":\"\","
					 "\"profiles\":[],\"names\":[[\"e\",0]]}";

	assert_int_equal(record_parse_candidates(no_profile, sizeof(no_profile) - 1, &found), -1);
}

static void test_pages_that_are_full(void **state)
{
	struct record_profile profile = {.metadata = "a long one"};
	struct record_candidates found;
	struct record_page page;

	(void)state;
	for (size_t size = 0; size < 300; size++) {
		record_page_begin(&page, text, size, 5, "a", "h:1");
		bool has_profile = record_page_add_profile(&page, &profile);
		bool has_name = has_profile && record_page_add_name(&page, "e", 0);
		size_t n = record_page_end(&page);

		assert_true(n <= size);
		if (n > 0)
			assert_int_equal(record_parse_candidates(text, n, &found), 0);
		assert_int_equal(has_name, n > 0 && found.n_names == 1);
	}
}

/* ---- keys ---- */

static void test_keys(void **state)
{
	static const char *const names[][2] = {
		{"plain-Name_09", "e/plain-Name_09"}, {"a/b.c", "e/a/b.c"},
		{".hidden/.x", "e/=2Ehidden/=2Ex"},   {"/a//b/", "e/=2Fa/=2Fb=2F"},
		{"[@`{:", "e/=5B=40=60=7B=3A"},       {"\xc3\xa9 =", "e/=C3=A9=20=3D"},
	};
	char key[100];
	char name[BATON_NAME_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i][1]);

		assert_int_equal(record_write_key('e', names[i][0], key, sizeof(key)), n);
		assert_string_equal(key, names[i][1]);
		assert_int_equal(record_parse_key('e', key, name), 0);
		assert_string_equal(name, names[i][0]);
		for (size_t size = 0; size <= n; size++)
			assert_int_equal(record_write_key('e', names[i][0], key, size), 0);
	}
}

static void test_not_keys(void **state)
{
	static const char *const keys[] = {"l/a",   "ea",    "e/",    "e/=",   "e/=4",  "e/=4x",
					   "e/=x4", "e/=00", "e/=41", "e/.a",  "e/a//", "e/=2f",
					   "e/=/1", "e/=:1", "e/=@1", "e/=G1", "e/a b"};
	char name[BATON_NAME_MAX + 1];
	char key[2 * BATON_NAME_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_int_equal(record_parse_key('e', keys[i], name), -1);
	memset(key, 'x', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	memcpy(key, "e/", 2);
	assert_int_equal(record_parse_key('e', key, name), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elections_round_trip),
		cmocka_unit_test(test_elections_that_differ),
		cmocka_unit_test(test_values_out_of_range),
		cmocka_unit_test(test_not_utf8),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_leases),
		cmocka_unit_test(test_candidates),
		cmocka_unit_test(test_pages_that_are_full),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_not_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
