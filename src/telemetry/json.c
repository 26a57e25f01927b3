/* json.c: see json.h. */
#include "telemetry/json.h"

#include <string.h>

#define TEXT_MAX ((size_t)1 << 30)

/* The length of the character at `at` if it is UTF-8, else 0. */
static size_t utf8_length(const unsigned char *at)
{
	size_t n = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;

	if (n == 0 || at[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong, half of a surrogate pair, or beyond the last character. */
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return n;
}

void json_string(struct bytes *out, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	(void)bytes_add(out, "\"", 1, TEXT_MAX);
	while (*at != '\0') {
		size_t n = utf8_length(at);

		if (n == 0) {
			bytes_print(out, "\\ufffd");
			n = 1;
		} else if (*at == '"' || *at == '\\') {
			bytes_print(out, "\\%c", *at);
		} else if (*at < 0x20) {
			bytes_print(out, "\\u%04x", *at);
		} else {
			(void)bytes_add(out, (const char *)at, n, TEXT_MAX);
		}
		at += n;
	}
	(void)bytes_add(out, "\"", 1, TEXT_MAX);
}

void json_member(struct bytes *out, const char *key, const char *text)
{
	if (out->n > 0 && strchr("{[", out->at[out->n - 1]) == NULL)
		(void)bytes_add(out, ",", 1, TEXT_MAX);
	json_string(out, key);
	(void)bytes_add(out, ":", 1, TEXT_MAX);
	json_string(out, text);
}
