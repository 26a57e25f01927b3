/*
 * resp.h: the protocol of Redis (RESP2), with bounds for everything: what a broken or hostile
 * server sends is refused before memory is taken for it. No knowledge of sockets.
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
	const char *text; /* terminated; may hold NULs of its own */
	size_t n;         /* of the text, or of the items */
	const struct resp *items;
};

/* ---- out ---- */

struct resp_out {
	char *data;
	size_t n;
	size_t room;
	bool failed; /* no memory: what is in here must not be sent */
};

void resp_out_clear(struct resp_out *o);
void resp_out_done(struct resp_out *o);
/* A command is its number of words, then its words. */
void resp_begin(struct resp_out *o, size_t n_words);
void resp_bytes(struct resp_out *o, const char *data, size_t n);
void resp_text(struct resp_out *o, const char *text);
void resp_number(struct resp_out *o, uint64_t number);
void resp_signed(struct resp_out *o, int64_t number);
/* Words that were put down elsewhere. */
void resp_words(struct resp_out *o, const struct resp_out *words);

/* ---- in ---- */

struct resp_in {
	char *data;
	size_t n; /* bytes that are there */
	size_t room;
	size_t used; /* by replies that were taken */
	size_t scanned;
	size_t n_nodes;
	size_t depth;
	int64_t left[RESP_DEPTH_MAX + 1]; /* how many replies are missing on each level */
	struct resp *nodes;
	size_t nodes_room;
};

void resp_in_clear(struct resp_in *in);
void resp_in_done(struct resp_in *in);
/* Where to put more bytes, and how many fit; NULL: no memory, or the reply is too large. */
char *resp_in_room(struct resp_in *in, size_t *n);
void resp_in_got(struct resp_in *in, size_t n);
/* 1: a reply; it lives until the next call of any of these. 0: more bytes are needed. -1: that's
 * no reply, or it is beyond the bounds, or there is no memory for it. */
int resp_take(struct resp_in *in, const struct resp **reply);

/* ---- what stands in a reply ---- */

/* The text of an item; "" if the item is not a text. */
const char *resp_get(const struct resp *list, size_t i);
/* A number, sent as a number or as text. False: not a number, or too large. */
bool resp_get_u64(const struct resp *list, size_t i, uint64_t *out);
bool resp_get_i64(const struct resp *list, size_t i, int64_t *out);
bool resp_is(const struct resp *list, size_t i, const char *text);

#pragma GCC visibility pop

#endif
