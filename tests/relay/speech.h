/*
 * speech.h: how the fault proxy understands a protocol: where a message ends, and what kind it is.
 * A protocol is one file with one table; to add one, write it and put it into the list in speech.c.
 *
 * It must never judge: what isn't understood is passed on as bytes.
 */
#ifndef BATON_RELAY_SPEECH_H
#define BATON_RELAY_SPEECH_H

#include <stdbool.h>
#include <stddef.h>

#define KIND_SIZE 24

/* What must be remembered of one connection to understand what follows. */
struct speech_state {
	bool is_opaque;     /* from here on it is bytes: encrypted, or not understood */
	bool awaits_letter; /* the next answer is one letter, without a length */
};

struct message {
	size_t n;             /* its length in bytes */
	char kind[KIND_SIZE]; /* one word, as rules use it */
	bool is_push;         /* nobody asked for it */
};

struct speech {
	const char *name;
	/* The first message in the bytes; false: it isn't complete yet. A request is all that one
	 * answer is given to, and a reply all of that answer. */
	bool (*request)(struct speech_state *s, const char *data, size_t n, struct message *m);
	bool (*reply)(struct speech_state *s, const char *data, size_t n, struct message *m);
	/* The server's own words for "not now", and their length; NULL: it has none. */
	const char *refusal;
	size_t refusal_n;
};

extern const struct speech speech_resp, speech_postgres, speech_http, speech_bytes;

/* By its name; NULL: there is none. */
const struct speech *speech_find(const char *name);
/* Sets the kind, cut to its size. */
void speech_kind(struct message *m, const char *word, size_t n);

#endif
