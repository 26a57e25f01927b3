/*
 * sha256.c: see sha256.h.
 */
#include "base/sha256.h"

#include <string.h>

#define BLOCK 64

/* The first bits of the cube roots of the first 64 primes, behind the point. */
static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static void sha256_schedule(const uint8_t *block, uint32_t w[64])
{
	for (size_t i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (size_t i = 16; i < 64; i++) {
		uint32_t a = w[i - 15];
		uint32_t b = w[i - 2];

		w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
		       (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
}

static void sha256_block(uint32_t state[8], const uint8_t *block)
{
	uint32_t w[64];
	uint32_t s[8];

	sha256_schedule(block, w);
	(void)memcpy(s, state, sizeof(s));
	for (size_t i = 0; i < 64; i++) {
		uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
		uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
		uint32_t one = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
			       choice + constants[i] + w[i];
		uint32_t two = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) + majority;

		(void)memmove(&s[1], &s[0], 7 * sizeof(s[0]));
		s[4] += one;
		s[0] = one + two;
	}
	for (size_t i = 0; i < 8; i++)
		state[i] += s[i];
}

/* A message in pieces. The bytes that do not fill a block yet wait in `rest`. */
struct hash {
	uint32_t state[8];
	uint8_t rest[BLOCK];
	uint64_t n;
};

static void hash_begin(struct hash *h)
{
	/* The same for the square roots of the first 8 primes. */
	static const uint32_t first[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};

	(void)memcpy(h->state, first, sizeof(first));
	h->n = 0;
}

static void hash_add(struct hash *h, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	while (n > 0) {
		size_t used = h->n % BLOCK;
		size_t take = n < BLOCK - used ? n : BLOCK - used;

		(void)memcpy(h->rest + used, at, take);
		at += take;
		n -= take;
		h->n += take;
		if (used + take == BLOCK)
			sha256_block(h->state, h->rest);
	}
}

static void hash_end(struct hash *h, uint8_t out[SHA256_SIZE])
{
	uint8_t last[BLOCK + 8] = {0x80};
	uint64_t bits = h->n * 8;
	size_t used = h->n % BLOCK;
	size_t size = (used < BLOCK - 8 ? BLOCK : 2 * BLOCK) - used;

	for (size_t i = 0; i < 8; i++)
		last[size - 1 - i] = (uint8_t)(bits >> 8 * i);
	hash_add(h, last, size);
	for (size_t i = 0; i < SHA256_SIZE; i++)
		out[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256(const void *bytes, size_t n, uint8_t out[SHA256_SIZE])
{
	struct hash h;

	hash_begin(&h);
	hash_add(&h, bytes, n);
	hash_end(&h, out);
}

void sha256_hmac(const void *key, size_t key_size, const void *message, size_t n,
		 uint8_t out[SHA256_SIZE])
{
	uint8_t pad[BLOCK] = {0};
	uint8_t inner[SHA256_SIZE];
	struct hash h;

	if (key_size > BLOCK)
		sha256(key, key_size, pad);
	else if (key_size > 0)
		(void)memcpy(pad, key, key_size);
	for (size_t i = 0; i < BLOCK; i++)
		pad[i] ^= 0x36;
	hash_begin(&h);
	hash_add(&h, pad, BLOCK);
	hash_add(&h, message, n);
	hash_end(&h, inner);
	for (size_t i = 0; i < BLOCK; i++)
		pad[i] ^= 0x36 ^ 0x5c;
	hash_begin(&h);
	hash_add(&h, pad, BLOCK);
	hash_add(&h, inner, sizeof(inner));
	hash_end(&h, out);
}

void sha256_hex(const void *bytes, size_t n, char out[SHA256_HEX_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t hash[SHA256_SIZE];

	sha256(bytes, n, hash);
	for (size_t i = 0; i < SHA256_SIZE; i++) {
		out[2 * i] = digits[hash[i] >> 4];
		out[2 * i + 1] = digits[hash[i] & 15];
	}
	out[SHA256_HEX_SIZE - 1] = '\0';
}
