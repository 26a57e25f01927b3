/* json.c: see json.h. */
#include "base/web/json.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* The most digits of an integer that jansson always takes. */
#define DIGITS_SURE 18

/* The end of the string that begins at `at`, behind its quote. */
static size_t skip_string(const char *text, size_t n, size_t at)
{
	for (at++; at < n && text[at] != '"'; at++)
		at += text[at] == '\\';
	return at < n ? at + 1 : n;
}

/* How many bytes of a number begin at `at`, and (is_integer) whether it is a whole one. */
static size_t number_size(const char *text, size_t n, size_t at, bool *is_integer)
{
	size_t size = 0;

	*is_integer = true;
	for (; at + size < n && memchr("0123456789+-.eE", text[at + size], 15) != NULL; size++)
		*is_integer = *is_integer && memchr(".eE", text[at + size], 3) == NULL;
	return size;
}

/* Copies the text, with long integers in quotes. */
static void quote_integers(const char *text, size_t n, struct bytes *out)
{
	for (size_t at = 0, size; at < n; at += size) {
		bool is_integer = false;

		size = text[at] == '"' ? skip_string(text, n, at) - at
				       : number_size(text, n, at, &is_integer);
		size = size > 0 ? size : 1;
		const char *quote = is_integer && size > DIGITS_SURE ? "\"" : "";

		bytes_print(out, "%s", quote);
		(void)bytes_add(out, text + at, size, SIZE_MAX);
		bytes_print(out, "%s", quote);
	}
}

/* jansson refuses a whole text because of one integer above 2^63, even if no caller wants that one.
 * Then long integers are read as texts, as other servers write them. */
json_t *js_parse(const char *text, size_t n)
{
	struct bytes quoted = {0};
	json_error_t error;
	json_t *j = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);

	if (j == NULL && json_error_code(&error) == json_error_numeric_overflow)
		quote_integers(text, n, &quoted);
	if (quoted.n > 0 && !quoted.has_failed)
		j = json_loadb(quoted.at, quoted.n, JSON_REJECT_DUPLICATES, NULL);
	bytes_done(&quoted);
	return j;
}

const json_t *js_get(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

const char *js_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

bool js_u64(const json_t *object, const char *key, uint64_t *out)
{
	const json_t *v = json_object_get(object, key);
	const char *text = json_string_value(v);
	char *end;

	*out = 0;
	if (json_is_integer(v)) {
		json_int_t i = json_integer_value(v);

		*out = i >= 0 ? (uint64_t)i : 0;
		return i >= 0;
	}
	if (text == NULL || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);

	if (*end != '\0' || errno != 0)
		return false;
	*out = n;
	return true;
}

bool js_i64(const json_t *object, const char *key, int64_t *out)
{
	const json_t *v = json_object_get(object, key);
	const char *text = json_string_value(v);
	char *end;

	*out = 0;
	if (json_is_integer(v)) {
		*out = json_integer_value(v);
		return true;
	}
	if (text == NULL || ((text[0] < '0' || text[0] > '9') && text[0] != '-'))
		return false;
	errno = 0;
	long long n = strtoll(text, &end, 10);

	if (*end != '\0' || end == text || errno != 0)
		return false;
	*out = n;
	return true;
}

bool js_base64(const json_t *object, const char *key, char *out, size_t size)
{
	const json_t *v = json_object_get(object, key);
	long n = json_is_string(v)
			 ? base64_decode(json_string_value(v), json_string_length(v), out, size)
			 : -1;

	return n >= 0 && strlen(out) == (size_t)n;
}

/* ---- base64 ---- */

#define PAD 64

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

void base64_encode(const void *from, size_t n, char *out)
{
	const unsigned char *in = from;

	for (size_t i = 0; i < n; i += 3) {
		unsigned bits = (unsigned)in[i] << 16;

		if (i + 1 < n)
			bits |= (unsigned)in[i + 1] << 8;
		if (i + 2 < n)
			bits |= in[i + 2];
		*out++ = digits[bits >> 18];
		*out++ = digits[bits >> 12 & 63];
		*out++ = digits[i + 1 < n ? bits >> 6 & 63 : PAD];
		*out++ = digits[i + 2 < n ? bits & 63 : PAD];
	}
	*out = '\0';
}

static int digit(char c)
{
	const char *at = c != '\0' ? strchr(digits, c) : NULL;

	return at != NULL && at < digits + PAD ? (int)(at - digits) : -1;
}

long base64_decode(const char *from, size_t n, char *out, size_t size)
{
	size_t used = 0;
	unsigned bits = 0;
	size_t pad = 0;

	if (n % 4 != 0)
		return -1;
	while (pad < 2 && pad < n && from[n - 1 - pad] == '=')
		pad++;
	if (size == 0 || n / 4 * 3 - pad >= size)
		return -1;
	for (size_t i = 0; i < n; i++) {
		int d = i < n - pad ? digit(from[i]) : 0;

		if (d < 0)
			return -1;
		bits = bits << 6 | (unsigned)d;
		if (i % 4 != 3)
			continue;
		for (int k = 16; k >= 0 && used < n / 4 * 3 - pad; k -= 8)
			out[used++] = (char)(bits >> k & 255);
		bits = 0;
	}
	out[used] = '\0';
	return (long)used;
}
