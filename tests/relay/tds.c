/*
 * tds.c: the protocol of SQL Server. A message is all packets up to the one that says that it is
 * the last; its kind is that of its packets. Statements are in UTF-16: rules see every second byte,
 * which is the text of those that are ASCII. Who asks for encryption is passed on as bytes from the
 * prelogin's answer on.
 */
#include <stdlib.h>
#include <string.h>

#include "protocols.h"

#define HEAD 8
#define LAST 1 /* in a packet's second byte */
#define NOT_SUPPORTED 2

/* An answer: error 50000 of level 16, "refused by the test's proxy", and its end. */
static const unsigned char refusal[] = {
	0x04, 0x01, 0x00, 0x5e, 0x00, 0x00, 0x01, 0x00, 0xaa, 0x46, 0x00, 0x50, 0xc3, 0x00,
	0x00, 0x01, 0x10, 0x1b, 0x00, 0x72, 0x00, 0x65, 0x00, 0x66, 0x00, 0x75, 0x00, 0x73,
	0x00, 0x65, 0x00, 0x64, 0x00, 0x20, 0x00, 0x62, 0x00, 0x79, 0x00, 0x20, 0x00, 0x74,
	0x00, 0x68, 0x00, 0x65, 0x00, 0x20, 0x00, 0x74, 0x00, 0x65, 0x00, 0x73, 0x00, 0x74,
	0x00, 0x27, 0x00, 0x73, 0x00, 0x20, 0x00, 0x70, 0x00, 0x72, 0x00, 0x6f, 0x00, 0x78,
	0x00, 0x79, 0x00, 0x01, 0x74, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0xfd, 0x02, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

/* The length of the message that begins there; 0: it isn't complete yet. */
static size_t message_size(const char *data, size_t n)
{
	const unsigned char *b = (const unsigned char *)data;
	size_t at = 0;

	while (n - at >= HEAD) {
		size_t size = (size_t)b[at + 2] << 8 | b[at + 3];
		bool is_last = (b[at + 1] & LAST) != 0;

		if (size < HEAD || n - at < size)
			return 0;
		at += size;
		if (is_last)
			return at;
	}
	return 0;
}

static const char *kind_of(unsigned char type)
{
	switch (type) {
	case 1: return "batch";
	case 3: return "rpc";
	case 4: return "reply";
	case 6: return "attention";
	case 0x10: return "login";
	case 0x12: return "prelogin";
	default: return "other";
	}
}

static bool message(const char *data, size_t n, struct message *m)
{
	m->n = message_size(data, n);
	m->is_push = false;
	if (m->n == 0)
		return false;
	const char *kind = kind_of((unsigned char)data[0]);

	protocol_kind(m, kind, strlen(kind));
	return true;
}

static bool request(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	if (!message(data, n, m))
		return false;
	char *text = realloc(s->own, m->n / 2 + 1);

	if (text == NULL)
		return true;
	/* Texts begin at even places: so do packets, and what stands before the texts in them. */
	for (size_t i = 0; i < m->n / 2; i++)
		text[i] = data[2 * i];
	s->own = text;
	m->data = data;
	m->size = m->n;
	m->text = text;
	m->text_n = m->n / 2;
	return true;
}

/* The option of the prelogin's answer that says whether bytes follow that nobody can read. */
static bool is_encrypted(const unsigned char *b, size_t n)
{
	for (size_t at = HEAD; at + 5 <= n && b[at] != 0xff; at += 5) {
		size_t offset = HEAD + ((size_t)b[at + 1] << 8 | b[at + 2]);

		if (b[at] == 1 && offset < n)
			return b[offset] != NOT_SUPPORTED;
	}
	return false;
}

static bool reply(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	if (!message(data, n, m))
		return false;
	if (s->step++ == 0) /* the first one is the prelogin's */
		s->is_opaque = is_encrypted((const unsigned char *)data, m->n);
	return true;
}

static void forget(struct protocol_state *s)
{
	free(s->own);
	s->own = NULL;
}

const struct protocol protocol_tds = {.name = "tds",
				      .request = request,
				      .reply = reply,
				      .refusal = (const char *)refusal,
				      .refusal_n = sizeof(refusal),
				      .forget = forget};
