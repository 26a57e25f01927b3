/*
 * xml.c: XML answers of servers, element by element: see xml.h. What it must never do is to guess:
 * a byte that has no place where it stands makes the whole document bad.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/web/xml.h"

#define BLANKS " \t\r\n"
#define CODE_MAX 0x10ffff
#define ENTITY_MAX 10 /* "#x10ffff" and what ends it */

void xml_init(struct xml *x, const char *text, size_t n)
{
	x->name = "";
	x->text[0] = '\0';
	x->at = text;
	x->end = text + n;
	x->names[0][0] = '\0';
	x->depth = 0;
	x->n_text = 0;
	x->has_root = x->has_child = x->is_closing = x->is_closed = x->is_bad = false;
	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) /* what marks UTF-8 */
		x->at += 3;
}

static bool starts(const struct xml *x, const char *with)
{
	size_t n = strlen(with);

	return (size_t)(x->end - x->at) >= n && memcmp(x->at, with, n) == 0;
}

/* Goes on behind the next `what`. */
static bool skip_past(struct xml *x, const char *what)
{
	for (; x->at < x->end; x->at++)
		if (starts(x, what)) {
			x->at += strlen(what);
			return true;
		}
	return false;
}

static bool is_blank(char c)
{
	return c != '\0' && strchr(BLANKS, c) != NULL;
}

static void skip_blanks(struct xml *x)
{
	while (x->at < x->end && is_blank(*x->at))
		x->at++;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.' || c == ':' || (unsigned char)c >= 0x80;
}

/* A name, whole. False: there is none, or no room for it. */
static bool read_name(struct xml *x, char out[XML_NAME_MAX])
{
	size_t n = 0;

	while (x->at < x->end && is_name_char(*x->at)) {
		if (n + 1 >= XML_NAME_MAX)
			return false;
		out[n++] = *x->at++;
	}
	out[n] = '\0';
	return n > 0 && strchr("-.:0123456789", out[0]) == NULL;
}

static const char *without_prefix(const char *name)
{
	const char *colon = strrchr(name, ':');

	return colon != NULL ? colon + 1 : name;
}

static bool add_text(struct xml *x, char c)
{
	if (c == '\0' || x->n_text + 1 >= sizeof(x->text))
		return false;
	x->text[x->n_text++] = c;
	return true;
}

static bool add_code(struct xml *x, uint32_t code)
{
	if (code == 0 || code > CODE_MAX || (code >= 0xd800 && code <= 0xdfff))
		return false;
	if (code < 0x80)
		return add_text(x, (char)code);
	if (code < 0x800)
		return add_text(x, (char)(0xc0 | code >> 6)) &&
		       add_text(x, (char)(0x80 | (code & 0x3f)));
	if (code < 0x10000)
		return add_text(x, (char)(0xe0 | code >> 12)) &&
		       add_text(x, (char)(0x80 | (code >> 6 & 0x3f))) &&
		       add_text(x, (char)(0x80 | (code & 0x3f)));
	return add_text(x, (char)(0xf0 | code >> 18)) &&
	       add_text(x, (char)(0x80 | (code >> 12 & 0x3f))) &&
	       add_text(x, (char)(0x80 | (code >> 6 & 0x3f))) &&
	       add_text(x, (char)(0x80 | (code & 0x3f)));
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/* "#65" and "#x41", without what stands around it. */
static bool add_number(struct xml *x, const char *text)
{
	int base = text[1] == 'x' ? 16 : 10;
	const char *at = text + (base == 16 ? 2 : 1);
	uint32_t code = 0;

	if (*at == '\0')
		return false;
	for (; *at != '\0'; at++) {
		if (digit_of(*at) >= base || code > CODE_MAX)
			return false;
		code = code * (uint32_t)base + (uint32_t)digit_of(*at);
	}
	return add_code(x, code);
}

/* At the '&'. */
static bool read_entity(struct xml *x)
{
	static const struct {
		const char *name;
		char c;
	} known[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
	char name[ENTITY_MAX];
	size_t n = 0;

	for (x->at++; x->at < x->end && *x->at != ';' && n + 1 < sizeof(name); x->at++)
		name[n++] = *x->at;
	name[n] = '\0';
	if (x->at >= x->end || *x->at != ';' || strlen(name) != n)
		return false;
	x->at++;
	if (name[0] == '#')
		return add_number(x, name);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].name, name) == 0)
			return add_text(x, known[i].c);
	return false;
}

/* Attributes are skipped; they must look like some. Ends at the '>', or at the '/' before it. */
static bool skip_attributes(struct xml *x)
{
	char name[XML_NAME_MAX];

	for (;;) {
		const char *before = x->at;

		skip_blanks(x);
		if (x->at >= x->end)
			return false;
		if (*x->at == '>' || *x->at == '/')
			return true;
		if (x->at == before || !read_name(x, name))
			return false;
		skip_blanks(x);
		if (!starts(x, "=") || (x->at++, skip_blanks(x), x->at >= x->end))
			return false;
		const char quote[2] = {*x->at, '\0'};

		if (quote[0] != '"' && quote[0] != '\'')
			return false;
		x->at++;
		if (!skip_past(x, quote))
			return false;
	}
}

static bool open_element(struct xml *x)
{
	if (x->depth >= XML_DEPTH_MAX || (x->depth == 0 && x->has_root))
		return false;
	if (!read_name(x, x->names[x->depth + 1]) || !skip_attributes(x))
		return false;
	if (starts(x, "/>"))
		x->is_closing = true; /* it ends with the next event */
	else if (!starts(x, ">"))
		return false;
	x->at += x->is_closing ? 2 : 1;
	x->depth++;
	x->has_root = true;
	x->has_child = false;
	x->n_text = 0;
	x->text[0] = '\0';
	x->name = without_prefix(x->names[x->depth]);
	return true;
}

static bool close_element(struct xml *x)
{
	char name[XML_NAME_MAX];

	if (!read_name(x, name))
		return false;
	skip_blanks(x);
	if (!starts(x, ">") || x->depth == 0 || strcmp(name, x->names[x->depth]) != 0)
		return false;
	x->at++;
	return true;
}

static int closed(struct xml *x)
{
	if (x->has_child)
		x->n_text = 0;
	x->text[x->n_text] = '\0';
	x->name = without_prefix(x->names[x->depth]);
	x->depth--; /* the name stays where it is until the next event */
	x->is_closed = true;
	return XML_CLOSE;
}

static int read_event(struct xml *x)
{
	while (x->at < x->end) {
		if (starts(x, "<!--")) {
			x->at += 4;
			if (!skip_past(x, "-->"))
				return XML_BAD;
		} else if (starts(x, "<?")) {
			if (!skip_past(x, "?>"))
				return XML_BAD;
		} else if (starts(x, "</")) {
			x->at += 2;
			return close_element(x) ? closed(x) : XML_BAD;
		} else if (starts(x, "<")) {
			x->at++;
			return open_element(x) ? XML_OPEN : XML_BAD;
		} else if (x->depth == 0 || x->has_child) {
			if (!is_blank(*x->at)) /* text between elements: not in our answers */
				return XML_BAD;
			x->at++;
		} else if (starts(x, "&")) {
			if (!read_entity(x))
				return XML_BAD;
		} else if (!add_text(x, *x->at++)) {
			return XML_BAD;
		}
	}
	return x->has_root && x->depth == 0 ? XML_DONE : XML_BAD;
}

int xml_next(struct xml *x)
{
	if (x->is_bad)
		return XML_BAD;
	if (x->is_closing) {
		x->is_closing = false;
		return closed(x);
	}
	if (x->is_closed) { /* what goes on is the element around it */
		x->is_closed = false;
		x->has_child = true;
		x->n_text = 0;
	}
	int event = read_event(x);

	x->is_bad = event == XML_BAD;
	return event;
}

bool xml_is(const struct xml *x, const char *parent, const char *name)
{
	unsigned above = x->is_closed ? x->depth : x->depth - 1;

	return strcmp(x->name, name) == 0 &&
	       (parent == NULL || strcmp(without_prefix(x->names[above]), parent) == 0);
}

bool xml_find(const char *text, size_t n, const char *name, char *out, size_t size)
{
	struct xml x;
	int event;
	bool is_found = false;

	out[0] = '\0';
	xml_init(&x, text, n);
	while ((event = xml_next(&x)) == XML_OPEN || event == XML_CLOSE)
		if (event == XML_CLOSE && !is_found && xml_is(&x, NULL, name) &&
		    x.text[0] != '\0') {
			is_found = true;
			if (x.n_text >= size)
				break;
			(void)memcpy(out, x.text, x.n_text + 1);
		}
	if (event != XML_DONE)
		out[0] = '\0';
	return event == XML_DONE && is_found;
}
