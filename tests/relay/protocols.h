/*
 * protocols.h: how the fault proxy understands a protocol: where a message ends, and what kind it
 * is. A protocol is one file with one table; to add one, write it and put it into the list in
 * protocols.c.
 *
 * Most protocols only look at the bytes. One whose messages depend on those before them (h2.c)
 * writes them anew, so that each can vanish or come twice.
 *
 * It must never judge: what isn't understood is passed on as bytes.
 */
#ifndef BATON_RELAY_SPEECH_H
#define BATON_RELAY_SPEECH_H

#include <stdbool.h>
#include <stddef.h>

#define KIND_SIZE 24

/* What must be remembered of one connection to understand what follows. */
struct protocol_state {
	bool is_opaque;     /* from here on it is bytes: encrypted, or not understood */
	bool awaits_letter; /* the next answer is one letter, without a length */
	bool is_terse;      /* nothing stands between the columns and the rows of an answer */
	unsigned step;      /* how far the beginning of the session has come */
	void *own;          /* more of it, which the protocol's forget() frees */
};

struct message {
	size_t n;             /* its length in bytes, as it came */
	char kind[KIND_SIZE]; /* one word, as rules use it */
	bool is_push;         /* nobody asked for it */
	bool is_aside;        /* of the connection itself: it is passed on, and no rule sees it */
	bool is_unwanted;     /* nobody waits for it: it vanishes */
	/* Only of a protocol that writes messages anew, and valid until the next one: what is
	 * passed on, where rules look for words, the answer "not now", and what the sender must
	 * hear if the message doesn't arrive. NULL: the bytes that came, for both; the protocol's
	 * refusal; nothing. */
	const char *data;
	size_t size;
	const char *text;
	size_t text_n;
	const char *refusal;
	size_t refusal_n;
	const char *lost;
	size_t lost_n;
};

struct protocol {
	const char *name;
	/* The first message in the bytes; false: it isn't complete yet. A request is all that one
	 * answer is given to, and a reply all of that answer. */
	bool (*request)(struct protocol_state *s, const char *data, size_t n, struct message *m);
	bool (*reply)(struct protocol_state *s, const char *data, size_t n, struct message *m);
	/* The server's own words for "not now", and their length; NULL: it has none. */
	const char *refusal;
	size_t refusal_n;
	/* The request that was framed last goes to the server, now, or a copy of it does: its data
	 * are made fit for that. Answers to copies are unwanted. NULL: requests have no numbers. */
	void (*stamp)(struct protocol_state *s, bool is_copy);
	/* The connection has ended. NULL: there is nothing to free. */
	void (*forget)(struct protocol_state *s);
};

extern const struct protocol protocol_resp, protocol_postgres, protocol_http, protocol_h2,
	protocol_mysql, protocol_tds, protocol_mongodb, protocol_memcached, protocol_bytes;

/* By its name; NULL: there is none. */
const struct protocol *protocol_find(const char *name);
/* Sets the kind, cut to its size. */
void protocol_kind(struct message *m, const char *word, size_t n);

#endif
