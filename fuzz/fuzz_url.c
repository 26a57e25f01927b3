/* fuzz_url.c: URLs from outside. What is split lies inside the text; what is decoded fits. */
#include <string.h>

#include "base/url.h"
#include "fuzz.h"

static bool is_inside(const char *text, struct url_part part)
{
	return part.n == 0 || (part.at >= text && part.at + part.n <= text + strlen(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1);
	char key[16];
	char value[32];
	struct url url;

	MUST(text != NULL);
	if (size > 0)
		(void)memcpy(text, data, size);
	if (url_split(text, &url)) {
		MUST(is_inside(text, url.scheme) && is_inside(text, url.authority));
		MUST(is_inside(text, url.path) && is_inside(text, url.query));
		if (url_decode(url.path, value, sizeof(value)))
			MUST(strlen(value) <= url.path.n);
		size_t left = url.query.n + 1;

		while (url_next_option(&url.query, key, sizeof(key), value, sizeof(value)) == 1) {
			MUST(url.query.n < left); /* it comes to an end */
			left = url.query.n;
		}
	}
	free(text);
	return 0;
}
