/*
 * parse.c: takes targets and bodies apart. It must never read beyond what was given, nor take
 * something that it doesn't understand for something that it does.
 */
#include <string.h>

#include "serve/answer/parse.h"

/* ---- targets ---- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_one_of(char c, const char *set)
{
	for (; *set != '\0'; set++)
		if (*set == c)
			return true;
	return false;
}

/* Decodes up to one of the letters that end it, or the end. NULL: a wrong %xx. */
static const char *decode_part(const char *from, const char *ends, char **to, bool plus)
{
	for (; *from != '\0' && !is_one_of(*from, ends); from++) {
		char c = *from;

		if (c == '%') {
			int high = hex_digit(from[1]);
			int low = high >= 0 ? hex_digit(from[2]) : -1;

			if (low < 0 || (high == 0 && low == 0))
				return NULL;
			c = (char)(high * 16 + low);
			from += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		*(*to)++ = c;
	}
	*(*to)++ = '\0';
	return from;
}

static bool parse_pairs(const char *from, char *to, struct parsed *out)
{
	while (from != NULL && *from != '\0' && *from != '#') {
		if (out->n_pairs == PARSE_PAIRS)
			return false;
		out->keys[out->n_pairs] = to;
		from = decode_part(from, "=&#", &to, true);
		if (from == NULL)
			return false;
		out->values[out->n_pairs] = "";
		if (*from == '=') {
			out->values[out->n_pairs] = to;
			from = decode_part(from + 1, "&#", &to, true);
		}
		out->n_pairs++;
		if (from != NULL && *from == '&')
			from++;
	}
	return from != NULL;
}

bool parse_target(const char *target, struct parsed *out)
{
	char *to = out->room;
	const char *from = target;

	out->n_segments = 0;
	out->n_pairs = 0;
	if (target[0] != '/' || strlen(target) > SERVE_TARGET_MAX)
		return false;
	while (*from == '/') {
		if (is_one_of(from[1], "?#") || from[1] == '\0') {
			from++; /* a slash at the end names nothing */
			break;
		}
		if (out->n_segments == PARSE_SEGMENTS)
			return false;
		out->segments[out->n_segments++] = to;
		from = decode_part(from + 1, "/?#", &to, false);
		if (from == NULL)
			return false;
	}
	return *from != '?' || parse_pairs(from + 1, to, out);
}

const char *parse_query(const struct parsed *p, const char *key)
{
	for (size_t i = 0; i < p->n_pairs; i++)
		if (strcmp(p->keys[i], key) == 0)
			return p->values[i];
	return NULL;
}

/* ---- numbers ---- */

/* Reads digits only; returns what follows them. NULL: there are none, or too many. */
static const char *parse_digits(const char *text, uint64_t *n)
{
	const char *from = text;

	*n = 0;
	for (; *text >= '0' && *text <= '9'; text++) {
		uint64_t digit = (uint64_t)(*text - '0');

		if (*n > (UINT64_MAX - digit) / 10)
			return NULL;
		*n = *n * 10 + digit;
	}
	return text != from ? text : NULL;
}

bool parse_unsigned(const char *text, uint64_t *n)
{
	const char *end = parse_digits(text, n);

	return end != NULL && *end == '\0';
}

bool parse_time(const char *text, int64_t *ms)
{
	static const struct {
		const char *unit;
		uint64_t factor;
	} units[] = {{"", 1}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
	const uint64_t day = 86400000;
	uint64_t n;
	const char *end = parse_digits(text, &n);

	for (size_t i = 0; end != NULL && i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) != 0 || n > day / units[i].factor)
			continue;
		*ms = (int64_t)(n * units[i].factor);
		return true;
	}
	return false;
}

bool parse_part(const char *text, int64_t *permille)
{
	uint64_t whole;
	const char *end = parse_digits(text, &whole);
	int64_t part = 0;
	int64_t unit = 100;

	if (end == NULL || whole > 1)
		return false;
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9'; end++, unit /= 10)
			part += unit * (*end - '0');
	if (*end != '\0' || (int64_t)whole * 1000 + part > 1000)
		return false;
	*permille = (int64_t)whole * 1000 + part;
	return true;
}

/* ---- JSON ---- */

struct cursor {
	const char *at;
	const char *end;
};

static char peek(struct cursor *c)
{
	while (c->at < c->end && is_one_of(*c->at, " \t\r\n"))
		c->at++;
	if (c->at == c->end)
		return '\0';
	return *c->at;
}

static bool take_char(struct cursor *c, char wanted)
{
	if (peek(c) != wanted)
		return false;
	c->at++;
	return true;
}

/* Four hexadecimal digits; -1: they aren't. */
static int32_t take_hex(struct cursor *c)
{
	int32_t code = 0;

	if (c->end - c->at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(*c->at++);

		if (digit < 0)
			return -1;
		code = code * 16 + digit;
	}
	return code;
}

static size_t put_utf8(char *out, uint32_t code)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | (code >> 6));
		out[1] = (char)(0x80 | (code & 63));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | (code >> 12));
		out[1] = (char)(0x80 | (code >> 6 & 63));
		out[2] = (char)(0x80 | (code & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | (code >> 18));
	out[1] = (char)(0x80 | (code >> 12 & 63));
	out[2] = (char)(0x80 | (code >> 6 & 63));
	out[3] = (char)(0x80 | (code & 63));
	return 4;
}

/* What stands behind a backslash, as bytes; 0: nothing that JSON knows. */
static size_t take_escape(struct cursor *c, char out[4])
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	char letter = '\0';

	if (c->at < c->end)
		letter = *c->at++;
	for (size_t i = 0; letter != '\0' && from[i] != '\0'; i++) {
		if (from[i] == letter) {
			out[0] = to[i];
			return 1;
		}
	}
	int32_t code = letter == 'u' ? take_hex(c) : -1;

	if (code <= 0 || (code >= 0xdc00 && code < 0xe000))
		return 0;
	if (code >= 0xd800 && code < 0xdc00) {
		if (c->end - c->at < 6 || c->at[0] != '\\' || c->at[1] != 'u')
			return 0;
		c->at += 2;
		int32_t low = take_hex(c);

		if (low < 0xdc00 || low > 0xdfff)
			return 0;
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	}
	return put_utf8(out, (uint32_t)code);
}

static const char *take_string(struct cursor *c, char *out, size_t size)
{
	size_t n = 0;

	if (!take_char(c, '"'))
		return "a string lacks its first quotation mark";
	while (c->at < c->end && *c->at != '"') {
		char bytes[4] = {*c->at++};
		size_t length = 1;

		if (bytes[0] == '\\')
			length = take_escape(c, bytes);
		else if ((unsigned char)bytes[0] < ' ')
			length = 0;
		if (length == 0)
			return "a string has an escape or a control character that JSON forbids";
		if (n + length >= size)
			return "a string is too long";
		(void)memcpy(out + n, bytes, length);
		n += length;
	}
	out[n] = '\0';
	return take_char(c, '"') ? NULL : "a string has no end";
}

static const char *take_value(struct cursor *c, struct parsed_value *value)
{
	static const char *const words[] = {"true", "false", "null"};
	size_t n = 0;

	if (peek(c) == '"') {
		value->kind = 's';
		return take_string(c, value->text, sizeof(value->text));
	}
	while (c->at < c->end && n < 32 &&
	       ((*c->at >= 'a' && *c->at <= 'z') || is_one_of(*c->at, "0123456789+-.E")))
		value->text[n++] = *c->at++;
	value->text[n] = '\0';
	for (size_t i = 0; i < 3; i++) {
		if (strcmp(value->text, words[i]) == 0) {
			value->kind = i == 2 ? '0' : 'b';
			return NULL;
		}
	}
	value->kind = 'n';
	if (n == 0 || !is_one_of(value->text[0], "-0123456789"))
		return "a value is not a string, a number, true, false or null";
	return NULL;
}

const char *parse_object(const char *body, size_t n,
			 const char *(*take)(void *arg, const char *key,
					     const struct parsed_value *value),
			 void *arg)
{
	struct cursor c = {body, body + n};
	struct parsed_value value;
	char key[64];

	if (peek(&c) == '\0' && c.at == c.end)
		return NULL; /* nothing was said */
	if (!take_char(&c, '{'))
		return "the body is not a JSON object";
	for (bool first = true; peek(&c) != '}'; first = false) {
		if (!first && !take_char(&c, ','))
			return "a comma is missing between two members";
		const char *wrong = take_string(&c, key, sizeof(key));

		if (wrong == NULL && !take_char(&c, ':'))
			wrong = "a colon is missing between a key and its value";
		if (wrong == NULL)
			wrong = take_value(&c, &value);
		if (wrong == NULL)
			wrong = take(arg, key, &value);
		if (wrong != NULL)
			/* take() returns a sentence of its own, never what it was given. */
			return wrong; /* cppcheck-suppress returnDanglingLifetime */
	}
	c.at++;
	return peek(&c) == '\0' && c.at == c.end ? NULL : "something follows the JSON object";
}
