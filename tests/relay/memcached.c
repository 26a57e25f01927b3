/*
 * memcached.c: the text protocol of memcached, as far as baton speaks it. A request is one line,
 * and for those that store something the value behind it; a reply is one line, a value behind its
 * line, or a list of STAT lines with its END. Who speaks TLS is passed on as bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "protocols.h"

#define LINE_MAX_SIZE 4096

static const char refusal[] = "SERVER_ERROR refused by the test's proxy\r\n";

/* The length of the line that begins there, with its end; 0: it isn't complete yet. */
static size_t line_size(const char *data, size_t n)
{
	const char *end = n > 0 ? memchr(data, '\n', n) : NULL;

	return end != NULL ? (size_t)(end - data) + 1 : 0;
}

/* The number that is the i-th word of the line, from 0 on. */
static size_t word_number(const char *line, size_t size, unsigned i)
{
	size_t at = 0;

	for (; i > 0 && at < size; at++)
		i -= line[at] == ' ';
	return at < size ? strtoul(line + at, NULL, 10) : 0;
}

static bool begins(const char *line, size_t size, const char *word)
{
	size_t n = strlen(word);

	return size > n && memcmp(line, word, n) == 0 && strchr(" \r", line[n]) != NULL;
}

static bool is_no_text(struct protocol_state *s, const char *data, size_t n, size_t size,
		       struct message *m)
{
	if (!s->is_opaque && n > 0 && (data[0] == 0x16 || (size == 0 && n > LINE_MAX_SIZE)))
		s->is_opaque = true;
	m->n = n;
	protocol_kind(m, "bytes", 5);
	return s->is_opaque;
}

static bool request(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	size_t size = line_size(data, n);

	m->is_push = false;
	if (is_no_text(s, data, n, size, m))
		return n > 0;
	if (size == 0)
		return false;
	m->n = size;
	if (begins(data, size, "ms"))
		m->n = size + word_number(data, size, 2) + 2;
	else if (begins(data, size, "set"))
		m->n = size + word_number(data, size, 4) + 2;
	protocol_kind(m, data, strcspn(data, " \r"));
	return m->n <= n;
}

static bool reply(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	size_t size = line_size(data, n);
	const char *line = data;

	m->is_push = false;
	if (is_no_text(s, data, n, size, m))
		return n > 0;
	if (size == 0)
		return false;
	protocol_kind(m, data, strcspn(data, " \r"));
	m->n = size;
	if (begins(data, size, "VA"))
		m->n = size + word_number(data, size, 1) + 2;
	while (m->n <= n && begins(line, size, "STAT")) {
		line = data + m->n;
		size = line_size(line, n - m->n);
		if (size == 0)
			return false;
		m->n += size;
	}
	return m->n <= n;
}

const struct protocol protocol_memcached = {.name = "memcached",
					    .request = request,
					    .reply = reply,
					    .refusal = refusal,
					    .refusal_n = sizeof(refusal) - 1};
