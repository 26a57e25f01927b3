/*
 * mongodb.c: the protocol of MongoDB. Every message has its length at the front. A request's kind
 * is its command (find, update, hello), and that of a reply is "reply".
 */
#include <stdint.h>
#include <string.h>

#include "protocols.h"

#define HEADER 16
#define SIZE_MAX_OF_ONE ((size_t)48 << 20)
#define OP_MSG 2013u
#define OP_QUERY 2004u

static uint32_t little_endian(const char *at)
{
	const unsigned char *b = (const unsigned char *)at;

	return (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

/* The name of the first field of the document at `at`; NULL: there is none. */
static const char *first_field(const char *data, size_t at, size_t n, size_t *size)
{
	const char *name =
		at + 5 < n ? data + at + 5 : NULL; /* a length and a type are before it */
	const char *end = name != NULL ? memchr(name, '\0', n - (at + 5)) : NULL;

	*size = end != NULL ? (size_t)(end - name) : 0;
	return *size > 0 ? name : NULL;
}

static bool message(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	m->is_push = false;
	if (n < HEADER)
		return false;
	m->n = little_endian(data);
	if (m->n < HEADER || m->n > SIZE_MAX_OF_ONE) {
		s->is_opaque = true; /* TLS, perhaps */
		m->n = n;
		protocol_kind(m, "bytes", 5);
		return true;
	}
	return m->n <= n;
}

static bool request(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	const char *word = NULL;
	size_t size = 0;

	if (!message(s, data, n, m))
		return false;
	if (s->is_opaque)
		return true;
	if (little_endian(data + 12) == OP_MSG) /* flags, and a section of kind 0 */
		word = first_field(data, HEADER + 5, m->n, &size);
	else if (little_endian(data + 12) == OP_QUERY)
		word = "query", size = 5;
	protocol_kind(m, word != NULL ? word : "message", word != NULL ? size : 7);
	return true;
}

static bool reply(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	if (!message(s, data, n, m))
		return false;
	if (!s->is_opaque)
		protocol_kind(m, "reply", 5);
	return true;
}

const struct protocol protocol_mongodb = {.name = "mongodb", .request = request, .reply = reply};
