/*
 * fuzz_profile.c: the files that AWS' own tools keep profiles in. A value that is found stands in
 * the file, fits its room, and has no line's end in it.
 */
#include <string.h>

#include "fuzz.h"
#include "store/s3/s3.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const sections[] = {"default", "profile two"};
	static const char *const keys[] = {"aws_access_key_id", "region", "k"};
	const char *text = (const char *)data;
	char out[24];

	for (size_t s = 0; s < 2; s++)
		for (size_t k = 0; k < 3; k++) {
			bool is_found =
				s3_profile_get(text, size, sections[s], keys[k], out, sizeof(out));
			size_t n = strlen(out);

			MUST(n < sizeof(out) && (!is_found || n > 0));
			MUST(!is_found || memmem(text, size, out, n) != NULL);
			MUST(strpbrk(out, "\n") == NULL);
		}
	return 0;
}
