/*
 * sha256.h: SHA-256 of a few bytes at once (FIPS 180-4), for names that are too long to be keys. It
 * is not for secrets, and not fast.
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

#endif
