/*
 * fuzz_file.c: the file store's records. The first byte chooses the kind. What is parsed is written
 * again and must be the same text: the parsers take exactly what the writers make.
 */
#include <string.h>

#include "fuzz.h"
#include "store/file/codec.h"

/* One function for each kind of record. */
#define TRY(kind)                                             \
	static void try_##kind(const char *text, size_t n)    \
	{                                                     \
		char again[FILE_TEXT_MAX];                    \
		struct file_##kind parsed;                    \
		if (file_parse_##kind(text, n, &parsed) != 0) \
			return;                               \
		MUST(file_write_##kind(&parsed, again) == n); \
		MUST(memcmp(text, again, n) == 0);            \
	}

TRY(claim)
TRY(end)
TRY(lease)
TRY(candidate)
TRY(order)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(const char *text, size_t n) = {try_claim, try_end, try_lease,
								    try_candidate, try_order};

	if (size < 1)
		return 0;
	size_t n = size - 1;
	char *text = malloc(n + 1); /* of its own, so that reading past it shows */

	MUST(text != NULL);
	(void)memcpy(text, data + 1, n);
	tries[data[0] % 5](text, n);
	free(text);
	return 0;
}
