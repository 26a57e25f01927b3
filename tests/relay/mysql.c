/*
 * mysql.c: the protocol of MySQL and MariaDB. A request is one command, or one step of a login; a
 * reply is everything up to the end of the last result of that command, or the server's next
 * question in a login. The server speaks first: nobody has asked for its greeting. Who asks for
 * encryption is passed on as bytes from then on, and so is a command of which nobody knows where
 * its answer ends.
 */
#include <stdint.h>
#include <string.h>

#include "protocols.h"

#define HEAD 4                     /* of a packet: its length in three bytes, its number */
#define LONGEST ((size_t)0xffffff) /* then another packet follows, with the rest */
#define CLIENT_SSL 0x800u          /* what a client says in its login */
#define CLIENT_NO_EOF 0x1000000u   /* ... no packet stands between columns and rows */
#define MORE_RESULTS 8u            /* what a server says at the end of a result */
#define COM_QUIT 1
#define COM_QUERY 3
#define COM_PING 14
#define OK 0x00
#define MORE_DATA 0x01
#define END 0xfe
#define ERROR 0xff

enum step { GREETING, LOGIN, COMMANDS };

/* An error packet, the first after the request: 1105, "unknown error". */
static const char refusal[] = "\x24\0\0\1\xff\x51\4#HY000refused by the test's proxy";

struct packet {
	const unsigned char *at; /* its content */
	size_t n;
	size_t next; /* where the one after it begins */
};

/* The packet that begins there; false: it isn't complete yet. */
static bool take_packet(const char *data, size_t n, size_t begin, struct packet *p)
{
	const unsigned char *b = (const unsigned char *)data + begin;
	size_t size = n - begin >= HEAD ? b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 : 0;

	if (n - begin < HEAD || n - begin - HEAD < size)
		return false;
	*p = (struct packet){.at = b + HEAD, .n = size, .next = begin + HEAD + size};
	return true;
}

static unsigned first_byte(const struct packet *p)
{
	return p->n > 0 ? p->at[0] : 0;
}

static uint32_t number_of(const struct packet *p, size_t at, size_t size)
{
	uint32_t value = 0;

	for (size_t i = 0; i < size && at + i < p->n; i++)
		value |= (uint32_t)p->at[at + i] << 8 * i;
	return value;
}

/* One whole message that ends there. */
static bool name(struct message *m, size_t n, const char *kind)
{
	m->n = n;
	protocol_kind(m, kind, strlen(kind));
	return true;
}

static bool as_bytes(struct protocol_state *s, size_t n, struct message *m)
{
	s->is_opaque = true;
	return name(m, n, "bytes");
}

/* ---- requests ---- */

/* The first one of a session tells what the client wants; those that follow are its answers. */
static bool login(struct protocol_state *s, const struct packet *p, const char *data,
		  struct message *m)
{
	bool is_first = data[3] == 1;
	uint32_t wants = number_of(p, 0, 4);

	if (is_first && (wants & CLIENT_SSL) != 0)
		return as_bytes(s, p->next, m);
	if (is_first)
		s->is_terse = (wants & CLIENT_NO_EOF) != 0;
	return name(m, p->next, "login");
}

static bool request(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	struct packet p;

	m->is_push = false;
	if (!take_packet(data, n, 0, &p))
		return false;
	if (s->step != COMMANDS && data[3] != 0)
		return login(s, &p, data, m);
	unsigned command = first_byte(&p);

	while (p.n == LONGEST)
		if (!take_packet(data, n, p.next, &p))
			return false;
	switch (command) {
	case COM_QUERY: return name(m, p.next, "query");
	case COM_PING: return name(m, p.next, "ping");
	case COM_QUIT: return name(m, p.next, "quit");
	default: return as_bytes(s, n, m);
	}
}

/* ---- replies ---- */

static bool login_reply(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	struct packet p;

	if (!take_packet(data, n, 0, &p))
		return false;
	/* "Your password is fine": the verdict follows by itself. */
	if (first_byte(&p) == MORE_DATA && p.n == 2 && p.at[1] == 3 &&
	    !take_packet(data, n, p.next, &p))
		return false;
	if (first_byte(&p) == OK)
		s->step = COMMANDS;
	return name(m, p.next,
		    first_byte(&p) == OK      ? "ok"
		    : first_byte(&p) == ERROR ? "error"
					      : "question");
}

/* Skips a number of at most nine bytes: its first one tells how many. */
static size_t after_number(const struct packet *p, size_t at)
{
	unsigned first = at < p->n ? p->at[at] : 0;

	return at + (first == 0xfc ? 3 : first == 0xfd ? 4 : first == 0xfe ? 9 : 1);
}

static bool ends_rows(const struct protocol_state *s, const struct packet *p)
{
	return first_byte(p) == END && p->n < (s->is_terse ? LONGEST : 9);
}

/* What the server's flags are in a packet that ends something. */
static uint32_t flags_of(const struct protocol_state *s, const struct packet *p)
{
	bool is_eof = first_byte(p) == END && !s->is_terse;

	return is_eof ? number_of(p, 3, 2) : number_of(p, after_number(p, after_number(p, 1)), 2);
}

/* From the packet after the number of columns on, to the one that ends the rows. */
static bool skip_rows(const struct protocol_state *s, const char *data, size_t n, size_t columns,
		      struct packet *p)
{
	for (size_t i = 0; i < columns + !s->is_terse; i++)
		if (!take_packet(data, n, p->next, p))
			return false;
	do {
		if (!take_packet(data, n, p->next, p))
			return false;
	} while (!ends_rows(s, p) && first_byte(p) != ERROR);
	return true;
}

static bool reply(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	struct packet p = {.next = 0};
	const char *kind = "ok";

	m->is_push = s->step == GREETING;
	if (s->step == GREETING) {
		if (!take_packet(data, n, 0, &p))
			return false;
		s->step = LOGIN;
		return name(m, p.next, first_byte(&p) == ERROR ? "error" : "greeting");
	}
	if (s->step == LOGIN)
		return login_reply(s, data, n, m);
	for (;;) {
		if (!take_packet(data, n, p.next, &p))
			return false;
		unsigned first = first_byte(&p);

		if (first != OK && first != ERROR) {
			kind = "rows";
			if (!skip_rows(s, data, n, number_of(&p, 0, 1), &p))
				return false;
		}
		if (first_byte(&p) == ERROR)
			return name(m, p.next, "error");
		if ((flags_of(s, &p) & MORE_RESULTS) == 0)
			return name(m, p.next, kind);
	}
}

const struct protocol protocol_mysql = {.name = "mysql",
					.request = request,
					.reply = reply,
					.refusal = refusal,
					.refusal_n = sizeof(refusal) - 1};
