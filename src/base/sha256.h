/*
 * sha256.h: SHA-256 of a few bytes at once (FIPS 180-4), and a code that proves the knowledge of a
 * key (HMAC, RFC 2104): for names that are too long to be keys, and for requests that are signed.
 * The code is not fast.
 */
#ifndef BATON_SHA256_H
#define BATON_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32
#define SHA256_HEX_SIZE (2 * SHA256_SIZE + 1)

void sha256(const void *bytes, size_t n, uint8_t out[SHA256_SIZE]);
/* In lower case, with a NUL. */
void sha256_hex(const void *bytes, size_t n, char out[SHA256_HEX_SIZE]);
/* HMAC-SHA-256 of a message. `key` and `message` may be the same as `out`. */
void sha256_hmac(const void *key, size_t key_size, const void *message, size_t n,
		 uint8_t out[SHA256_SIZE]);

#endif
