/*
 * keys.c: names as keys, tokens as versions, and random bits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "store/record/layer.h"

/* Marks a key that is a hash. No key that stands for a name in full has a "=-" in it: see
 * record_write_key(). */
#define HASHED "=-"

struct record_key record_key_of(const struct record_store *s, int kind, const char *name)
{
	struct record_key key = {.text = ""};
	char hash[SHA256_HEX_SIZE];
	size_t size = (size_t)s->adapter->key_max + 1;

	if (size > sizeof(key.text))
		size = sizeof(key.text);
	if (record_write_key(kind, name, key.text, size) != 0)
		return key;
	sha256_hex(name, strlen(name), hash);
	(void)snprintf(key.text, sizeof(key.text), "%c/" HASHED "%s", kind, hash);
	return key;
}

struct record_key record_page_key(const char *lease_id, size_t page)
{
	struct record_key key = {.text = ""};

	(void)snprintf(key.text, sizeof(key.text), "%c/%s", RECORD_CANDIDATES, lease_id);
	if (page > 0)
		(void)snprintf(key.text, sizeof(key.text), "%c/%s.%zu", RECORD_CANDIDATES, lease_id,
			       page + 1);
	return key;
}

void record_lease_of_key(const char *key, char id[BATON_LEASE_ID_MAX + 1])
{
	size_t n = strlen(key) > 2 ? strcspn(key + 2, ".") : 0;

	if (n > BATON_LEASE_ID_MAX)
		n = 0;
	(void)memcpy(id, key + (n > 0 ? 2 : 0), n);
	id[n] = '\0';
}

uint64_t record_random(void)
{
	uint64_t bits;

	if (getrandom(&bits, sizeof(bits), 0) == (ssize_t)sizeof(bits))
		return bits;
	/* Still different for each write of this process, and hardly ever the same as another's. */
	return clock_boot_ns() * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)clock_wall_ms();
}

/* ---- versions ---- */

struct record_version record_version_of(const void *token, size_t n)
{
	struct record_version v = {.n = 0};
	uint8_t hash[SHA256_SIZE];

	if (n > RECORD_VERSION_MAX) {
		sha256(token, n, hash);
		token = hash;
		n = sizeof(hash);
	}
	v.n = (uint8_t)n;
	(void)memcpy(v.bytes, token, n);
	return v;
}

struct record_version record_version_of_value(const char *value, size_t n)
{
	static const char begin[] = "{\"w\":\"";
	size_t at = sizeof(begin) - 1;
	size_t end = at;

	if (n < at || memcmp(value, begin, at) != 0)
		return (struct record_version){.n = 0};
	while (end < n && end < at + 20 && value[end] >= '0' && value[end] <= '9')
		end++;
	return record_version_of(value + at, end - at);
}

void record_items_end(struct record_item *items, size_t n, int outcome, int code)
{
	for (size_t i = 0; i < n; i++) {
		if (items[i].outcome != 0)
			continue;
		items[i].outcome = outcome;
		items[i].code = code;
	}
}
