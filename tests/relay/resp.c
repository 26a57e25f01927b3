/*
 * resp.c: the protocol of Redis. A request is one command, and its kind the command's name; a reply
 * is one value with all that is in it, and its kind the type: status, error, number, text or list.
 */
#include <stdlib.h>
#include <string.h>

#include "protocols.h"

#define COUNT_MAX (1L << 24) /* more elements, or bytes, is no value but rubbish */

static const char refusal[] = "-LOADING not now, says the test\r\n";

/* The end of one value, nested or not; 0: it isn't there yet. */
static size_t value_end(struct protocol_state *s, const char *data, size_t n)
{
	size_t at = 0;

	for (long left = 1; left > 0; left--) {
		const char *line = at < n ? memchr(data + at, '\n', n - at) : NULL;

		if (line == NULL)
			return 0;
		char type = data[at];
		long count = strtol(data + at + 1, NULL, 10);

		at = (size_t)(line + 1 - data);
		if (memchr("*~>%|$!=", type, 8) == NULL || count < 0)
			continue;
		if (count > COUNT_MAX || left > COUNT_MAX) {
			s->is_opaque = true;
			return n;
		}
		if (memchr("$!=", type, 3) == NULL) {
			left += type == '%' || type == '|' ? 2 * count : count;
			left += type == '|'; /* an attribute stands before the value */
		} else if (n - at < (size_t)count + 2) {
			return 0;
		} else {
			at += (size_t)count + 2;
		}
	}
	return at;
}

/* The first text of a list. */
static const char *first_word(const char *data, size_t n, size_t *size)
{
	const char *head = memchr(data, '\n', n);
	const char *line =
		head != NULL ? memchr(head + 1, '\n', n - (size_t)(head + 1 - data)) : NULL;

	if (line == NULL || head[1] != '$')
		return NULL;
	*size = strtoul(head + 2, NULL, 10);
	return *size < n - (size_t)(line + 1 - data) ? line + 1 : NULL;
}

static bool request(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	const char *word = data;
	size_t size = 0;

	m->is_push = false;
	if (data[0] == '*') {
		m->n = value_end(s, data, n);
		word = m->n > 0 ? first_word(data, m->n, &size) : NULL;
	} else { /* typed in by hand */
		const char *line = memchr(data, '\n', n);

		m->n = line != NULL ? (size_t)(line + 1 - data) : 0;
		while (size < m->n && memchr(" \r\n", data[size], 3) == NULL)
			size++;
	}
	protocol_kind(m, word != NULL ? word : "bytes", word != NULL ? size : 5);
	for (char *c = m->kind; *c != '\0'; c++)
		if (*c >= 'a' && *c <= 'z')
			*c = (char)(*c - 'a' + 'A');
	return m->n > 0;
}

static bool is_word(const char *word, size_t size, const char *text)
{
	return word != NULL && size == strlen(text) && memcmp(word, text, size) == 0;
}

static bool reply(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	size_t size = 0;
	const char *kind = "text";

	m->n = value_end(s, data, n);
	switch (data[0]) {
	case '+': kind = "status"; break;
	case '-': kind = "error"; break;
	case ':': kind = "number"; break;
	case '*':
	case '>': kind = "list"; break;
	default: break;
	}
	const char *word = m->n > 0 && kind[0] == 'l' ? first_word(data, m->n, &size) : NULL;

	m->is_push = is_word(word, size, "message") || is_word(word, size, "pmessage") ||
		     is_word(word, size, "smessage") || data[0] == '>';
	protocol_kind(m, m->is_push ? "push" : kind, strlen(m->is_push ? "push" : kind));
	return m->n > 0;
}

const struct protocol protocol_resp = {.name = "resp",
				       .request = request,
				       .reply = reply,
				       .refusal = refusal,
				       .refusal_n = sizeof(refusal) - 1};
