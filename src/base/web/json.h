/*
 * json.h: what drivers need of JSON beyond jansson itself: reading what a server says without
 * trusting it, and base64, in which some servers wrap keys and values.
 *
 * What isn't there, or is of another kind than expected, reads as nothing: "" or 0 or NULL.
 */
#ifndef BATON_JSON_H
#define BATON_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A value, to be given back with json_decref(); NULL: not JSON. If an integer is too large for
 * jansson, long integers are texts. */
json_t *js_parse(const char *text, size_t n);
/* Of an object: a member. */
const json_t *js_get(const json_t *object, const char *key);
const char *js_text(const json_t *object, const char *key);
/* A number, or a text of digits only: JSON's numbers end at 2^53, so 64 bits often come as text. */
bool js_u64(const json_t *object, const char *key, uint64_t *out);
bool js_i64(const json_t *object, const char *key, int64_t *out);
/* The text that a base64 member stands for. False: it isn't there, is not base64, has a NUL in it,
 * or there is no room. */
bool js_base64(const json_t *object, const char *key, char *out, size_t size);

/* How much room base64 of n bytes takes, with the NUL. */
#define BASE64_SIZE(n) (((n) + 2) / 3 * 4 + 1)

/* out has BASE64_SIZE(n) bytes. */
void base64_encode(const void *from, size_t n, char *out);
/* The number of bytes, a NUL behind them; or -1: not base64, or no room. */
long base64_decode(const char *from, size_t n, char *out, size_t size);

#pragma GCC visibility pop

#endif
