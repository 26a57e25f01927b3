/*
 * file_text.c: the parsers of the file store take what the writers make, and nothing else: not a
 * byte less, none more, none changed into something that the writer would have written otherwise.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/file/codec.h"

#define BOOT "01234567-89ab-cdef-0123-456789abcdef"

/* One kind of file, seen without its type. */
struct kind {
	size_t size;
	int (*parse)(const char *text, size_t n, void *out);
	size_t (*write)(const void *from, char *out);
	const void *example;
};

#define KIND(kind)                                                     \
	static int parse_##kind(const char *text, size_t n, void *out) \
	{                                                              \
		return file_parse_##kind(text, n, out);                \
	}                                                              \
	static size_t write_##kind(const void *from, char *out)        \
	{                                                              \
		return file_write_##kind(from, out);                   \
	}

KIND(claim)
KIND(end)
KIND(lease)
KIND(candidate)
KIND(order)

static const struct file_claim claim = {
	.seq = 7,
	.term = INT64_MAX,
	.nonce = UINT64_MAX,
	.ttl_ns = 1,
	.timens = UINT64_MAX,
	.since_ns = INT64_MAX,
	.since_ms = -5,
	.boot = BOOT,
	.priority = INT32_MIN,
	.score_permille = 1000,
	.lease = "0-f",
	.election = "n%\xc3\xa4 me",
	.owner = "\xf0\x9f\x98\x80",
	.metadata = "a\nb\x01\xff",
	.after = "died",
};
static const struct file_end end_of_claim = {.seq = 1,
					     .boot = BOOT,
					     .reason = "resigned",
					     .reserved_for = "x y",
					     .note = "a note",
					     .until_ms = INT64_MAX};
static const struct file_lease lease = {.serial = 1,
					.expires_ns = 2,
					.ttl_ns = 3,
					.pid = 4,
					.outlive = 1,
					.id = "a",
					.boot = BOOT,
					.owner = "o"};
static const struct file_candidate candidate = {.election = "e", .owner = "o", .is_healthy = 1};
static const struct file_order order = {
	.id = 1, .term = 2, .kind = 2, .target = "t", .note = "\xc3\xa4 b"};

static const struct kind kinds[] = {
	{sizeof(claim), parse_claim, write_claim, &claim},
	{sizeof(end_of_claim), parse_end, write_end, &end_of_claim},
	{sizeof(lease), parse_lease, write_lease, &lease},
	{sizeof(candidate), parse_candidate, write_candidate, &candidate},
	{sizeof(order), parse_order, write_order, &order},
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void what_is_written_is_read(void **state)
{
	static char text[FILE_TEXT_MAX];

	(void)state;
	for (size_t k = 0; k < N_KINDS; k++) {
		void *back = calloc(1, kinds[k].size);
		size_t n = kinds[k].write(kinds[k].example, text);

		assert_non_null(back);
		assert_true(n > 0);
		assert_int_equal(kinds[k].parse(text, n, back), 0);
		assert_memory_equal(back, kinds[k].example, kinds[k].size);
		free(back);
	}
}

static void a_piece_is_refused(void **state)
{
	static char text[FILE_TEXT_MAX + 2];
	static char out[8192];

	(void)state;
	for (size_t k = 0; k < N_KINDS; k++) {
		size_t n = kinds[k].write(kinds[k].example, text);

		for (size_t cut = 0; cut < n; cut++) {
			/* in memory of its own, so that a sanitizer sees a read beyond it */
			char *piece = malloc(cut + 1);

			assert_non_null(piece);
			memcpy(piece, text, cut);
			assert_int_equal(kinds[k].parse(piece, cut, out), -1);
			free(piece);
		}
		text[n] = '\n';
		assert_int_equal(kinds[k].parse(text, n + 1, out), -1);
		for (size_t other = 0; other < N_KINDS; other++)
			if (other != k)
				assert_int_equal(kinds[other].parse(text, n, out), -1);
	}
}

/* Whatever else is accepted is what the writer makes of it: one text for one meaning. */
static void check_meant(size_t k, const char *text, size_t n)
{
	static char again[FILE_TEXT_MAX];
	void *out = calloc(1, kinds[k].size);

	assert_non_null(out);
	if (kinds[k].parse(text, n, out) == 0) {
		assert_int_equal(kinds[k].write(out, again), n);
		assert_memory_equal(text, again, n);
	}
	free(out);
}

static void a_changed_byte_is_refused_or_meant(void **state)
{
	static char text[FILE_TEXT_MAX];

	(void)state;
	for (size_t k = 0; k < N_KINDS; k++) {
		size_t n = kinds[k].write(kinds[k].example, text);

		for (size_t i = 0; i < n; i++) {
			char was = text[i];

			for (int c = 0; c < 256; c++) {
				text[i] = (char)c;
				check_meant(k, text, n);
			}
			text[i] = was;
		}
	}
}

static void what_does_not_fit_is_not_written(void **state)
{
	static char text[FILE_TEXT_MAX];
	struct file_claim bad = claim;

	(void)state;
	memset(bad.metadata, '\xff', BATON_METADATA_MAX);
	memset(bad.owner, 'x', BATON_NAME_MAX);
	assert_true(file_write_claim(&bad, text) > 0); /* the longest that there is */
	bad.term = (uint64_t)INT64_MAX + 1;
	assert_int_equal(file_write_claim(&bad, text), 0);
	bad.term = 1;
	(void)snprintf(bad.lease, sizeof(bad.lease), "../x");
	assert_int_equal(file_write_claim(&bad, text), 0);
	(void)snprintf(bad.lease, sizeof(bad.lease), "a");
	(void)snprintf(bad.owner, sizeof(bad.owner), "\xed\xa0\x80"); /* half of a pair */
	assert_int_equal(file_write_claim(&bad, text), 0);
	(void)snprintf(bad.owner, sizeof(bad.owner), "a\nb");
	assert_int_equal(file_write_claim(&bad, text), 0);
}

static void paths_that_no_name_has_are_refused(void **state)
{
	static const char *const paths[] = {"",    "A",    "%",   "%4",  "%41x+", "%61", "..",
					    "+/a", "a+/b", "a/b", "%00", "%2E",   "a+",  "%C3"};
	char name[BATON_NAME_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (file_name_of(paths[i], name) == 0)
			fail_msg("%s", paths[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(a_piece_is_refused),
		cmocka_unit_test(a_changed_byte_is_refused_or_meant),
		cmocka_unit_test(what_does_not_fit_is_not_written),
		cmocka_unit_test(paths_that_no_name_has_are_refused),
	};

	return cmocka_run_group_tests_name("file_text", tests, NULL, NULL);
}
