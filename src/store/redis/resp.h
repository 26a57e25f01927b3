/*
 * resp.h: the protocol of Redis (RESP2), with bounds for everything: what a broken or hostile
 * server sends is refused before memory is allocated for it. It knows nothing of sockets.
 */
#ifndef BATON_RESP_H
#define BATON_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define RESP_LINE_MAX ((size_t)4096)
#define RESP_BULK_MAX ((int64_t)1 << 20)
#define RESP_ITEMS_MAX ((int64_t)65536)
#define RESP_NODES_MAX ((size_t)1 << 18)
#define RESP_REPLY_MAX ((size_t)16 << 20)
#define RESP_DEPTH_MAX 4

enum resp_type { RESP_NIL, RESP_STATUS, RESP_ERROR, RESP_INTEGER, RESP_TEXT, RESP_ARRAY };

struct resp {
	int type;
	int64_t integer;
	const char *text; /* ends with a NUL, and may have others in it */
	size_t n;         /* the length of the text, or the number of items */
	const struct resp *items;
};

/* ---- out ---- */

struct resp_out {
	char *data;
	size_t n;
	size_t room;
	bool failed; /* there was no memory, so this must not be sent */
};

void resp_out_clear(struct resp_out *o);
void resp_out_done(struct resp_out *o);
/* Begins a command. Its words must follow. */
void resp_begin(struct resp_out *o, size_t n_words);
void resp_bytes(struct resp_out *o, const char *data, size_t n);
void resp_text(struct resp_out *o, const char *text);
void resp_number(struct resp_out *o, uint64_t number);
void resp_signed(struct resp_out *o, int64_t number);
/* Adds words that were written elsewhere. */
void resp_words(struct resp_out *o, const struct resp_out *words);

/* ---- in ---- */

struct resp_in {
	char *data;
	size_t n; /* bytes that have come */
	size_t room;
	size_t used; /* bytes of replies that were taken */
	size_t scanned;
	size_t n_nodes;
	size_t depth;
	int64_t left[RESP_DEPTH_MAX + 1]; /* how many replies are missing on each level */
	struct resp *nodes;
	size_t nodes_room;
};

void resp_in_clear(struct resp_in *in);
void resp_in_done(struct resp_in *in);
/* Where to put more bytes, and how many have room; NULL: no memory, or the reply is too large. */
char *resp_in_room(struct resp_in *in, size_t *n);
void resp_in_got(struct resp_in *in, size_t n);
/* 1: a reply, which is valid until the next call of any of these functions. 0: more bytes are
 * needed. -1: not a valid reply, or it exceeds the bounds, or there is no memory for it. */
int resp_take(struct resp_in *in, const struct resp **reply);

/* ---- what stands in a reply ---- */

/* The text of an item; "" if the item is not a text. */
const char *resp_get(const struct resp *list, size_t i);
/* A number, which was sent as a number or as text. False: not a number, or too large. */
bool resp_get_u64(const struct resp *list, size_t i, uint64_t *out);
bool resp_get_i64(const struct resp *list, size_t i, int64_t *out);
bool resp_is(const struct resp *list, size_t i, const char *text);

#pragma GCC visibility pop

#endif
