/*
 * proto.h: protocol buffers as they go over a wire: messages are made, and read without trust in
 * the sender. This file knows no message: a reader says first what a message must look like (a
 * shape), and has proto_fits() look through all of it. From then on no reading can go wrong.
 *
 *     static const struct proto_shape kv[] = {{1, PROTO_BYTES}, {2, PROTO_NUMBER}, {0}};
 *     struct proto m = {data, n};
 *     if (proto_fits(m, kv))
 *             revision = proto_number(m, 2);
 *
 * A field that isn't there reads as 0, or as nothing: that is what protocol buffers mean by it.
 */
#ifndef BATON_PROTO_H
#define BATON_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#pragma GCC visibility push(hidden)

/* ---- making: what fails is remembered in the bytes ---- */

void proto_put_number(struct bytes *b, unsigned field, uint64_t value);
void proto_put_text(struct bytes *b, unsigned field, const char *text);
/* A message in a message: what is put between the two calls. */
size_t proto_begin(struct bytes *b, unsigned field);
void proto_end(struct bytes *b, size_t begin);

/* ---- reading ---- */

/* A message, or the bytes of a field; at NULL: it isn't there. */
struct proto {
	const char *at;
	size_t n;
};

enum proto_kind { PROTO_NUMBER = 1, PROTO_BYTES, PROTO_MESSAGE };

/* A list of fields that ends with field 0. Those that it doesn't name may be anything. */
struct proto_shape {
	unsigned field;
	enum proto_kind kind;
	const struct proto_shape *of; /* a message's */
};

/* True: the message is whole, and each field that the shape names is of its kind, at every
 * depth. */
bool proto_fits(struct proto m, const struct proto_shape *shape);

/* The last field of that number, as protocol buffers want it. */
uint64_t proto_number(struct proto m, unsigned field);
struct proto proto_get(struct proto m, unsigned field);
/* The i-th field of that number. */
struct proto proto_item(struct proto m, unsigned field, size_t i);
size_t proto_count(struct proto m, unsigned field);
/* One after the other: *rest begins as the message. False: there are no more. */
bool proto_next(struct proto *rest, unsigned field, struct proto *item);
/* As a text. False: it has a NUL in it, or there is no room; then out is "". */
bool proto_text(struct proto m, unsigned field, char *out, size_t size);

#pragma GCC visibility pop

#endif
