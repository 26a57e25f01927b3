/*
 * fuzz_file.c: the file store's records. The first byte chooses the kind. What is parsed is written
 * again and must be the same text: the parsers take exactly what the writers make.
 */
#include <string.h>

#include "fuzz.h"
#include "store/file/text.h"

#define TRY(kind)                                                     \
	do {                                                          \
		struct file_##kind parsed;                            \
		if (file_parse_##kind(text, n, &parsed) == 0) {       \
			MUST(file_write_##kind(&parsed, again) == n); \
			MUST(memcmp(text, again, n) == 0);            \
		}                                                     \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char again[FILE_TEXT_MAX];

	if (size < 1)
		return 0;
	size_t n = size - 1;
	char *text = malloc(n + 1); /* of its exact size, so that reading past it shows */

	MUST(text != NULL);
	(void)memcpy(text, data + 1, n);
	switch (data[0] % 5) {
	case 0: TRY(claim); break;
	case 1: TRY(end); break;
	case 2: TRY(lease); break;
	case 3: TRY(candidate); break;
	default: TRY(order); break;
	}
	free(text);
	return 0;
}
