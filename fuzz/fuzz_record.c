/*
 * fuzz_record.c: the records of record stores. The first byte chooses the kind. What is parsed is
 * written again and must be the same text: the parsers take exactly what the writers make.
 */
#include <string.h>

#include "fuzz.h"
#include "store/record/decide/codec.h"

static void try_lease(const char *text, size_t n)
{
	char again[RECORD_TEXT_MAX];
	struct record_lease lease;

	if (record_parse_lease(text, n, &lease) != 0)
		return;
	MUST(record_write_lease(&lease, again, sizeof(again)) == n);
	MUST(memcmp(text, again, n) == 0);
}

static void try_election(const char *text, size_t n)
{
	char again[RECORD_TEXT_MAX];
	struct record_election election;

	if (record_parse_election(text, n, &election) != 0)
		return;
	MUST(record_write_election(&election, again, sizeof(again)) == n);
	MUST(memcmp(text, again, n) == 0);
}

/* The page is filled to its last byte. */
static void try_candidates(const char *text, size_t n)
{
	struct record_candidates parsed;
	struct record_profile profile;
	struct record_page page;
	char name[BATON_NAME_MAX + 1];
	size_t number;
	size_t at = 0;

	if (record_parse_candidates(text, n, &parsed) != 0)
		return;
	size_t room = n + sizeof("],\"names\":[") - 1; /* as it is kept free for the end */
	char *again = malloc(room);

	MUST(again != NULL);
	record_page_begin(&page, again, room, parsed.w, parsed.owner, parsed.address);
	for (size_t i = 0; i < parsed.n_profiles; i++) {
		record_candidates_profile(&parsed, i, &profile);
		MUST(record_page_add_profile(&page, &profile));
	}
	while (record_candidates_name(&parsed, &at, name, &number))
		MUST(record_page_add_name(&page, name, number));
	MUST(page.n_names == parsed.n_names);
	MUST(record_page_end(&page) == n);
	MUST(memcmp(text, again, n) == 0);
	free(again);
}

static void try_key(const char *text, size_t n)
{
	char again[3 * BATON_NAME_MAX + 3];
	char name[BATON_NAME_MAX + 1];

	if (n > 0 && strlen(text) == n && record_parse_key(text[0], text, name) == 0) {
		MUST(record_write_key(text[0], name, again, sizeof(again)) == n);
		MUST(strcmp(text, again) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(const char *text, size_t n) = {try_lease, try_election,
								    try_candidates, try_key};

	if (size < 1)
		return 0;
	size_t n = size - 1;
	char *text = malloc(n + (data[0] % 4 == 3)); /* of its own: reading past it shows */

	MUST(text != NULL);
	(void)memcpy(text, data + 1, n);
	if (data[0] % 4 == 3) /* a string; the others are bytes */
		text[n] = '\0';
	tries[data[0] % 4](text, n);
	free(text);
	return 0;
}
