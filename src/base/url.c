/* url.c: see url.h. One pass from left to right; no allocation. */
#include "base/url.h"

#include <string.h>

static bool split_scheme(const char *text, size_t n, struct url *out);
static int hex_value(char c);

bool url_split(const char *text, struct url *out)
{
	size_t n = strlen(text);

	*out = (struct url){0};
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c <= ' ' || c == 0x7f || c == '#')
			return false;
	}
	if (!split_scheme(text, n, out))
		return false;
	const char *rest = text + out->scheme.n + 1;
	size_t left = n - out->scheme.n - 1;
	const char *mark = memchr(rest, '?', left);

	if (mark != NULL) {
		out->query = (struct url_part){mark + 1, left - (size_t)(mark - rest) - 1};
		left = (size_t)(mark - rest);
	}
	if (left >= 2 && rest[0] == '/' && rest[1] == '/') {
		const char *slash = memchr(rest + 2, '/', left - 2);
		size_t end = slash != NULL ? (size_t)(slash - rest) : left;

		out->has_authority = true;
		out->authority = (struct url_part){rest + 2, end - 2};
		rest += end;
		left -= end;
	}
	out->path = (struct url_part){rest, left};
	return true;
}

/* A letter, then letters, digits, '+', '-', '.'. */
static bool split_scheme(const char *text, size_t n, struct url *out)
{
	size_t i = 0;

	while (i < n && text[i] != ':') {
		char c = (char)(text[i] | 0x20);
		bool letter = c >= 'a' && c <= 'z';
		bool digit = text[i] >= '0' && text[i] <= '9';

		if (!letter && (i == 0 || (!digit && strchr("+-.", text[i]) == NULL)))
			return false;
		i++;
	}
	out->scheme = (struct url_part){text, i};
	return i > 0 && i < n;
}

bool url_decode(struct url_part part, char *out, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < part.n; i++) {
		char c = part.at[i];
		if (c == '%') {
			int high = i + 2 < part.n ? hex_value(part.at[i + 1]) : -1;
			int low = i + 2 < part.n ? hex_value(part.at[i + 2]) : -1;

			if (high < 0 || low < 0 || (high == 0 && low == 0))
				return false;
			c = (char)(high * 16 + low);
			i += 2;
		}
		if (used + 1 >= size)
			return false;
		out[used++] = c;
	}
	if (size == 0)
		return false;
	out[used] = '\0';
	return true;
}

int url_next_option(struct url_part *query, char *key, size_t key_size, char *value,
		    size_t value_size)
{
	if (query->n == 0)
		return 0;
	const char *amp = memchr(query->at, '&', query->n);
	struct url_part pair = {query->at, amp != NULL ? (size_t)(amp - query->at) : query->n};
	size_t skip = pair.n + (amp != NULL ? 1 : 0);

	query->at += skip;
	query->n -= skip;
	const char *equals = memchr(pair.at, '=', pair.n);

	if (equals == NULL || equals == pair.at || (amp != NULL && query->n == 0))
		return -1;
	struct url_part k = {pair.at, (size_t)(equals - pair.at)};
	struct url_part v = {equals + 1, pair.n - k.n - 1};

	return url_decode(k, key, key_size) && url_decode(v, value, value_size) ? 1 : -1;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}
