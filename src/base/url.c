/* url.c: see url.h. One pass from left to right; no allocation. */
#include "base/url.h"

#include <stdint.h>
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

bool url_take_login(struct url_part *authority, char *user, size_t user_size, char *password,
		    size_t password_size)
{
	const char *at = authority->n > 0 ? memrchr(authority->at, '@', authority->n) : NULL;

	if (at == NULL)
		return true;
	struct url_part login = {authority->at, (size_t)(at - authority->at)};
	const char *colon = memchr(login.at, ':', login.n);
	struct url_part secret = {at, 0};

	if (colon != NULL) {
		secret = (struct url_part){colon + 1, (size_t)(at - colon - 1)};
		login.n = (size_t)(colon - login.at);
	}
	authority->n -= (size_t)(at - authority->at) + 1;
	authority->at = at + 1;
	return url_decode(login, user, user_size) && url_decode(secret, password, password_size);
}

/* "host", "host:port", "[::1]:port" into name and port; false: it is none of these. */
static bool split_host(struct url_part text, struct url_part *name, struct url_part *port)
{
	const char *end = text.at + text.n;
	const char *colon;

	*name = text;
	if (text.n > 0 && text.at[0] == '[') {
		const char *close = memchr(text.at, ']', text.n);

		if (close == NULL || (close + 1 < end && close[1] != ':'))
			return false;
		*name = (struct url_part){text.at + 1, (size_t)(close - text.at - 1)};
		colon = close + 1 < end ? close + 1 : NULL;
	} else {
		colon = text.n > 0 ? memchr(text.at, ':', text.n) : NULL;
		if (colon != NULL)
			name->n = (size_t)(colon - text.at);
	}
	if (colon != NULL)
		*port = (struct url_part){colon + 1, (size_t)(end - colon - 1)};
	return name->n > 0;
}

int url_next_host(struct url_part *list, char *name, size_t size, char *port)
{
	if (list->n == 0)
		return 0;
	const char *comma = memchr(list->at, ',', list->n);
	struct url_part one = {list->at, comma != NULL ? (size_t)(comma - list->at) : list->n};
	size_t skip = one.n + (comma != NULL ? 1 : 0);
	struct url_part host, number = {NULL, 0};
	uint32_t value = 0;

	list->at += skip;
	list->n -= skip;
	if ((comma != NULL && list->n == 0) || !split_host(one, &host, &number) ||
	    !url_decode(host, name, size))
		return -1;
	if (number.at == NULL)
		return 1;
	for (size_t i = 0; i < number.n && value < 65536; i++) {
		if (number.at[i] < '0' || number.at[i] > '9')
			return -1;
		value = 10 * value + (uint32_t)(number.at[i] - '0');
	}
	if (value == 0 || value > 65535 || !url_decode(number, port, 8))
		return -1;
	return 1;
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
