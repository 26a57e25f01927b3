/*
 * test_options.c: the options of a store's URL. An unknown option and a value that is not valid
 * have sentences of their own: each says what would be right, and none shows a possible secret.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/nearest.h"
#include "store/options.h"

struct options {
	uint32_t wait;
	bool is_on;
	char path[OPTION_PATH_MAX];
	char address[OPTION_PATH_MAX];
	char key[64]; /* as set() saw it */
};

static bool set(void *options, const char *key, const char *value)
{
	struct options *o = options;

	(void)strncpy(o->key, key, sizeof(o->key) - 1);
	if (strcmp(key, "wait") == 0)
		return option_number(value, 16, &o->wait);
	if (strcmp(key, "isOn") == 0)
		return option_flag(value, &o->is_on);
	if (strcmp(key, "address") == 0)
		return strchr(value, '@') == NULL &&
		       option_text(value, o->address, sizeof(o->address));
	return option_path(value, o->path, sizeof(o->path));
}

static const struct option_known known[] = {
	{"wait", OPTION_IS_NUMBER(0, 16) " replicas"},
	{"isOn", OPTION_IS_FLAG},
	{"password_file", OPTION_IS_PATH},
	{"address", "host:port"},
	{NULL, NULL},
};

static const struct option_known also[] = {
	{"caFile", OPTION_IS_PATH},
	{NULL, NULL},
};

static struct option_list list = {
	.store = "a test store",
	.page = "baton-test(7)",
	.known = known,
	.also = also,
	.set = set,
};

static int parse(const char *query, struct options *o, struct baton_error *err)
{
	*o = (struct options){0};
	*err = (struct baton_error){0};
	return option_each((struct url_part){query, strlen(query)}, &list, o, err);
}

static void assert_says(const char *query, const char *sentence)
{
	struct options o;
	struct baton_error err;

	assert_int_equal(parse(query, &o, &err), -1);
	assert_int_equal(err.code, BATON_E_URL);
	assert_string_equal(err.text, sentence);
}

static void test_options_are_set(void **state)
{
	struct options o;
	struct baton_error err;

	(void)state;
	assert_int_equal(parse("", &o, &err), 0);
	assert_int_equal(parse("wait=3&isOn=1&password_file=/a%26b&address=h", &o, &err), 0);
	assert_int_equal(o.wait, 3);
	assert_true(o.is_on);
	assert_string_equal(o.path, "/a&b");
	assert_string_equal(o.address, "h");
	assert_int_equal(parse("caFile=/ca", &o, &err), 0);
	assert_string_equal(o.path, "/ca");
}

static void test_unknown_option(void **state)
{
	(void)state;
	assert_says("pasword_file=canary",
		    "unknown option \"pasword_file\" of a test store; did you mean "
		    "\"password_file\"?");
	assert_says("password=canary", "unknown option \"password\" of a test store; did you mean "
				       "\"password_file\"?");
	assert_says("wait=1&colour=canary",
		    "unknown option \"colour\"; a test store has wait, isOn, password_file, "
		    "address");
	assert_says("a%0Ab%7F=1",
		    "unknown option \"a?b?\"; a test store has wait, isOn, password_file, "
		    "address");
	/* Not by the case of its letters alone. */
	assert_says("ISON=1", "unknown option \"ISON\"; a test store has wait, isOn, "
			      "password_file, address");
}

static void test_bad_value(void **state)
{
	(void)state;
	assert_says("wait=17", "invalid value for \"wait\": \"17\"; expected 0 to 16 replicas");
	assert_says("isOn=1&wait=", "invalid value for \"wait\": \"\"; expected 0 to 16 replicas");
	assert_says("isOn=yes%0A", "invalid value for \"isOn\": \"yes?\"; expected 0 or 1");
	assert_says("wait=1234567890123456789012345678901234567890X",
		    "invalid value for \"wait\": \"1234567890123456789012345678901234567890\"; "
		    "expected 0 to 16 replicas");
}

/* A password instead of the path to it, and a login in an address. */
static void test_no_secret_is_shown(void **state)
{
	(void)state;
	assert_says("password_file=canary",
		    "invalid value for \"password_file\"; expected the full path of a file");
	assert_says("caFile=canary",
		    "invalid value for \"caFile\"; expected the full path of a file");
	assert_says("address=me:canary@host", "invalid value for \"address\"; expected host:port");
}

static void test_case_of_keys(void **state)
{
	struct options o;
	struct baton_error err;

	(void)state;
	list.ignores_case = true;
	assert_int_equal(parse("ISON=1", &o, &err), 0);
	assert_string_equal(o.key, "isOn");
	assert_int_equal(parse("cafile=/ca", &o, &err), 0);
	assert_string_equal(o.key, "caFile");
	assert_says("ison=2", "invalid value for \"isOn\": \"2\"; expected 0 or 1");
	list.ignores_case = false;
}

static void test_what_cannot_be_read(void **state)
{
	char query[OPTION_PATH_MAX + 16] = "password_file=/";

	(void)state;
	const char *sentence = "an option of the URL can't be read; write key=value&key=value, "
			       "values of up to 511 bytes, and special characters as %XX; see "
			       "baton-test(7)";

	assert_says("wait", sentence);
	assert_says("wait=%zz", sentence);
	(void)memset(query + strlen(query), 'x', sizeof(query) - strlen(query) - 1);
	assert_says(query, sentence);
}

/* As many names as there is room for; the sentence ends as it should. */
static void test_many_options(void **state)
{
	static const struct option_known many[] = {
		{"the_first_of_many_options", ""},   {"the_second_of_many_options", ""},
		{"the_third_of_many_options", ""},   {"the_fourth_of_many_options", ""},
		{"the_fifth_of_many_options", ""},   {"the_sixth_of_many_options", ""},
		{"the_seventh_of_many_options", ""}, {NULL, NULL},
	};
	struct baton_error err;
	struct options o;

	(void)state;
	list.known = many;
	assert_int_equal(parse("x123456789012345678901234567890123456789=1", &o, &err), -1);
	list.known = known;
	assert_true(strlen(err.text) < sizeof(err.text) - 1);
	assert_non_null(strstr(err.text, "the_fifth_of_many_options, ..."));
	assert_string_equal(strstr(err.text, "..."), "...");
}

static void test_nearest_word(void **state)
{
	static const char *const words[] = {"lease", "renew", "health-cmd", NULL};

	(void)state;
	assert_string_equal(nearest_word("leese", words), "lease");
	assert_string_equal(nearest_word("elase", words), "lease"); /* swapped */
	assert_string_equal(nearest_word("health", words), "health-cmd");
	assert_string_equal(nearest_word("renews", words), "renew");
	assert_null(nearest_word("colour", words));
	assert_null(nearest_word("", words));
	assert_null(nearest_word("a-word-that-is-longer-than-all-options-are", words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options_are_set), cmocka_unit_test(test_unknown_option),
		cmocka_unit_test(test_bad_value),       cmocka_unit_test(test_no_secret_is_shown),
		cmocka_unit_test(test_case_of_keys),    cmocka_unit_test(test_what_cannot_be_read),
		cmocka_unit_test(test_many_options),    cmocka_unit_test(test_nearest_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
