/*
 * keys.c: names as keys of records, and back. No two names share a key: rule 5.
 */
#include <string.h>

#include "store/record/decide/codec.h"
#include "store/record/decide/parts.h"

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

/* Whether the character at `at` stands for itself. */
static bool stands(const char *name, size_t at)
{
	bool is_first = at == 0 || name[at - 1] == '/';

	if (name[at] == '.')
		return !is_first;
	if (name[at] == '/')
		return !is_first && name[at + 1] != '\0';
	return is_plain(name[at]);
}

size_t record_write_key(int kind, const char *name, char *out, size_t size)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t n = 2;

	if (size < 3)
		return 0;
	out[0] = (char)kind;
	out[1] = '/';
	for (size_t i = 0; name[i] != '\0'; i++) {
		unsigned char c = (unsigned char)name[i];
		bool is_itself = stands(name, i);

		if (n + (is_itself ? 1 : 3) >= size)
			return 0;
		out[n++] = (char)(is_itself ? name[i] : '=');
		if (!is_itself) {
			out[n++] = hex[c >> 4];
			out[n++] = hex[c & 15];
		}
	}
	out[n] = '\0';
	return n;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int record_parse_key(int kind, const char *key, char name[BATON_NAME_MAX + 1])
{
	char again[3 * BATON_NAME_MAX + 3];
	size_t n = 0;

	if (key[0] != (char)kind || key[1] != '/')
		return -1;
	for (const char *p = key + 2; *p != '\0'; p++) {
		if (n == BATON_NAME_MAX)
			return -1;
		name[n] = *p;
		if (*p == '=') {
			int high = digit(p[1]);
			int low = high < 0 ? -1 : digit(p[2]);

			if (low < 0 || high + low == 0)
				return -1;
			name[n] = (char)(high << 4 | low);
			p += 2;
		}
		n++;
	}
	name[n] = '\0';
	/* A second spelling of a name is not its key. */
	(void)record_write_key(kind, name, again, sizeof(again));
	return n > 0 && record_same_text(key, again) ? 0 : -1;
}
