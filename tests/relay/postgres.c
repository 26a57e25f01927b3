/*
 * postgres.c: the protocol of PostgreSQL. A request is all up to a Sync or a simple Query, or one
 * step of a login; a reply is all up to ReadyForQuery, or the server's next question in a login.
 * Who asks for encryption, and gets it, is passed on as bytes from then on.
 */
#include <stdint.h>
#include <string.h>

#include "protocols.h"

#define SIZE_MAX_OF_ONE ((size_t)1 << 28) /* larger is rubbish */
#define CODE_SSL 80877103u
#define CODE_GSS 80877104u
#define AUTH_OK 0u
#define AUTH_LAST 12u /* the last word of the server's side: no answer is due */

/* ErrorResponse with severity, code and message, then ReadyForQuery, idle. */
static const char refusal[] = "E\0\0\0\x37"
			      "SERROR\0VERROR\0C58000\0Mrefused by the test's proxy\0"
			      "\0Z\0\0\0\x05I";

static uint32_t big_endian(const char *at)
{
	const unsigned char *b = (const unsigned char *)at;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static bool as_bytes(struct protocol_state *s, size_t n, struct message *m)
{
	s->is_opaque = true;
	m->n = n;
	protocol_kind(m, "bytes", 5);
	return true;
}

static void name(struct message *m, const char *kind)
{
	protocol_kind(m, kind, strlen(kind));
}

/* What opens a session has no type, only a length that begins with a zero. */
static bool opening(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	m->n = n >= 8 ? big_endian(data) : 0;
	if (m->n == 0 || m->n > n)
		return false;
	uint32_t code = big_endian(data + 4);

	s->awaits_letter = code == CODE_SSL || code == CODE_GSS;
	name(m, s->awaits_letter ? "encrypt" : "startup");
	return true;
}

static bool request(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	size_t at = 0;

	m->is_push = false;
	if (data[0] == '\0')
		return opening(s, data, n, m);
	while (at + 5 <= n) {
		size_t size = 1 + (size_t)big_endian(data + at + 1);
		char type = data[at];

		if (size < 5 || size > SIZE_MAX_OF_ONE)
			return as_bytes(s, n, m);
		if (size > n - at)
			return false;
		at += size;
		m->n = at;
		switch (type) {
		case 'S': name(m, "batch"); return true;
		case 'Q': name(m, "query"); return true;
		case 'p': name(m, "password"); return true;
		case 'X': name(m, "terminate"); return true;
		default: break;
		}
	}
	return false;
}

/* One letter: S, and it is encrypted from here; N, and it isn't. Or an error of an old server. */
static bool letter(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	s->awaits_letter = false;
	if (data[0] == 'E')
		return as_bytes(s, n, m);
	s->is_opaque = data[0] != 'N';
	m->n = 1;
	name(m, "letter");
	return true;
}

static bool reply(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	size_t at = 0;

	m->is_push = false;
	if (s->awaits_letter)
		return letter(s, data, n, m);
	while (at + 5 <= n) {
		size_t size = 1 + (size_t)big_endian(data + at + 1);
		char type = data[at];
		bool is_first = at == 0;

		if (size < 5 || size > SIZE_MAX_OF_ONE)
			return as_bytes(s, n, m);
		if (size > n - at)
			return false;
		uint32_t code = size >= 9 ? big_endian(data + at + 5) : 0;

		at += size;
		m->n = at;
		if (is_first && (type == 'A' || type == 'N' || type == 'S')) {
			m->is_push = true;
			name(m, type == 'A' ? "notification" : "notice");
			return true;
		}
		if (type == 'Z') {
			name(m, "ready");
			return true;
		}
		if (type == 'R' && code != AUTH_OK && code != AUTH_LAST) {
			name(m, "question");
			return true;
		}
	}
	return false;
}

const struct protocol protocol_postgres = {.name = "postgres",
					   .request = request,
					   .reply = reply,
					   .refusal = refusal,
					   .refusal_n = sizeof(refusal) - 1};
