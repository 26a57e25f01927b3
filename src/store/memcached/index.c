/*
 * index.c: an index of the keys, because memcached has no list. See memcached.h. Before a record is
 * made, its key is noted in one of a few index records of its kind: a line is appended, which is
 * atomic. To list records, the index is read, and then the records themselves; a line without a
 * record is passed over. What this must never do: take out the line of a record that may be about
 * to be made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/memcached/memcached.h"

#define SHARDS 64

static unsigned shard_of(const char *key)
{
	uint32_t h = 2166136261u;

	for (; *key != '\0'; key++)
		h = (h ^ (unsigned char)*key) * 16777619u;
	return (h ^ h >> 16) % SHARDS;
}

static void shard_key(const struct memcached_lane *l, char kind, unsigned shard,
		      char out[MEMCACHED_KEY_ROOM])
{
	char key[16];

	(void)snprintf(key, sizeof(key), "x/%c/%02u", kind, shard);
	memcached_key(l, key, out);
}

static bool is_indexed(const char *key)
{
	return key[0] == 'e' || key[0] == 'l' || key[0] == 'c';
}

static bool is_made(const struct record_item *item)
{
	return item->version.n == 0 && is_indexed(item->key);
}

/* ---- adding ---- */

/* Lines to be added to one index record. */
struct shard {
	struct bytes lines;
	char kind;
	unsigned number;
};

/* One command for each index record that has new lines. Mode A appends to one that exists, and E
 * makes one that doesn't. */
static size_t add_put(struct memcached_lane *l, const struct shard *shards, size_t n, char mode)
{
	char key[MEMCACHED_KEY_ROOM];
	size_t n_put = 0;

	bytes_clear(&l->out);
	for (size_t i = 0; i < n; i++) {
		if (shards[i].lines.n == 0)
			continue;
		shard_key(l, shards[i].kind, shards[i].number, key);
		bytes_print(&l->out, "ms %s %zu M%c\r\n%s\r\n", key, shards[i].lines.n, mode,
			    shards[i].lines.at);
		n_put++;
	}
	return n_put;
}

/* Reads the replies. NS: the index record doesn't exist yet, or another process has made it
 * meanwhile. Its lines stay, and the caller tries the other mode. */
static bool add_hear(struct memcached_lane *l, struct shard *shards, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct memcached_reply r;

		if (shards[i].lines.n == 0)
			continue;
		if (!memcached_read(l, &r))
			return false;
		if (memcached_is(&r, "HD")) {
			bytes_clear(&shards[i].lines);
		} else if (!memcached_is(&r, "NS")) {
			(void)memcached_refuse(l, &r);
			memcached_disconnect(l);
			return false;
		}
	}
	return true;
}

/* An index record that exists, and takes no line: a server without room answers NS to an append, as
 * it does where there is nothing to append to. */
static void add_fail(struct memcached_lane *l, const struct shard *shards)
{
	char key[MEMCACHED_KEY_ROOM];
	struct memcached_reply r;

	while (shards->lines.n == 0)
		shards++;
	shard_key(l, shards->kind, shards->number, key);
	bytes_clear(&l->out);
	bytes_print(&l->out, "mg %s\r\n", key);
	if (!memcached_send(l) || !memcached_read(l, &r))
		return;
	(void)store_fail(
		&l->call->error, BATON_E_UNAVAILABLE, "%s",
		memcached_is(&r, "HD")
			? MEMCACHED_NO_ROOM
			: "the index of keys can't be written: another program deletes it");
}

static bool add_send(struct memcached_lane *l, struct shard *shards, size_t n)
{
	for (int i = 0; i < 4; i++) {
		if (add_put(l, shards, n, i % 2 == 0 ? 'A' : 'E') == 0)
			return true;
		if (!memcached_send(l) || !add_hear(l, shards, n))
			return false;
	}
	if (add_put(l, shards, n, 'A') == 0)
		return true;
	add_fail(l, shards);
	return false;
}

bool memcached_index_add(struct memcached_lane *l, const struct record_item *items, size_t n)
{
	static const char kinds[] = "elc";
	struct shard *shards = calloc(3 * SHARDS, sizeof(*shards));
	bool is_ok = shards != NULL;

	for (size_t i = 0; is_ok && i < 3 * SHARDS; i++) {
		shards[i].kind = kinds[i / SHARDS];
		shards[i].number = (unsigned)(i % SHARDS);
	}
	for (size_t i = 0; is_ok && i < n; i++) {
		if (!is_made(&items[i]))
			continue;
		size_t kind = (size_t)(strchr(kinds, items[i].key[0]) - kinds);
		struct bytes *lines = &shards[kind * SHARDS + shard_of(items[i].key)].lines;

		bytes_print(lines, "%s\n", items[i].key);
		is_ok = !lines->has_failed;
	}
	if (!is_ok)
		(void)store_fail(&l->call->error, BATON_E_MEMORY, "no memory for a request");
	is_ok = is_ok && add_send(l, shards, 3 * SHARDS);
	for (size_t i = 0; shards != NULL && i < 3 * SHARDS; i++)
		bytes_done(&shards[i].lines);
	free(shards);
	return is_ok;
}

/* ---- dropping ---- */

/* Copies the lines of an index record without those of that key. */
static void drop_copy(struct bytes *out, const char *lines, size_t n, const char *key)
{
	size_t size = strlen(key);

	for (size_t at = 0; at < n;) {
		const char *end = memchr(lines + at, '\n', n - at);
		size_t len = end != NULL ? (size_t)(end - lines) - at + 1 : n - at;

		if (len != size + 1 || memcmp(lines + at, key, size) != 0)
			(void)bytes_add(out, lines + at, len, 2 * MEMCACHED_VALUE_MAX);
		at += len;
	}
}

void memcached_index_drop(struct memcached_lane *l, const struct record_item *items, size_t n)
{
	for (size_t i = 0; i < n && l->net.fd >= 0; i++) {
		char key[MEMCACHED_KEY_ROOM];
		struct memcached_reply r;

		if (items[i].outcome != BATON_OUTCOME_OK || !is_indexed(items[i].key))
			continue;
		shard_key(l, items[i].key[0], shard_of(items[i].key), key);
		bytes_clear(&l->out);
		bytes_print(&l->out, "mg %s v c\r\n", key);
		if (!memcached_send(l) || !memcached_read(l, &r) || !memcached_is(&r, "VA"))
			continue;
		bytes_clear(&l->values);
		drop_copy(&l->values, r.value, r.n, items[i].key);
		bytes_clear(&l->out);
		bytes_print(&l->out, "ms %s %zu C%llu\r\n%s\r\n", key, l->values.n,
			    (unsigned long long)memcached_flag(&r, 'c'),
			    l->values.n > 0 ? l->values.at : "");
		if (!l->values.has_failed && memcached_send(l))
			(void)memcached_read(l, &r);
	}
}

/* ---- listing ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Reads the lines of all index records of a kind into lane->values. */
static bool list_read(struct memcached_lane *l, char kind)
{
	bytes_clear(&l->values);
	bytes_clear(&l->out);
	for (unsigned i = 0; i < SHARDS; i++) {
		char key[MEMCACHED_KEY_ROOM];

		shard_key(l, kind, i, key);
		bytes_print(&l->out, "mg %s v\r\n", key);
	}
	if (!memcached_send(l))
		return false;
	for (unsigned i = 0; i < SHARDS; i++) {
		struct memcached_reply r;

		if (!memcached_read(l, &r))
			return false;
		if (memcached_is(&r, "VA")) {
			(void)bytes_add(&l->values, r.value, r.n, SIZE_MAX / 2);
		} else if (!memcached_is(&r, "EN")) {
			(void)memcached_refuse(l, &r);
			memcached_disconnect(l);
			return false;
		}
	}
	return true;
}

/* One piece of memory: pointers, and behind them the text that they point into. */
static char **list_sort(const struct bytes *lines)
{
	size_t n_lines = 0;

	for (size_t i = 0; i < lines->n; i++)
		n_lines += lines->at[i] == '\n';
	size_t head = (n_lines + 1) * sizeof(char *);
	char **list = malloc(head + lines->n + 1);
	size_t n = 0;

	if (list == NULL)
		return NULL;
	char *text = (char *)list + head;

	if (lines->n > 0)
		(void)memcpy(text, lines->at, lines->n);
	for (char *end; n < n_lines && (end = strchr(text, '\n')) != NULL; text = end + 1) {
		*end = '\0';
		list[n++] = text;
	}
	qsort((void *)list, n, sizeof(char *), by_text);
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (list[i][0] != '\0' && (kept == 0 || strcmp(list[kept - 1], list[i]) != 0))
			list[kept++] = list[i];
	list[kept] = NULL;
	return list;
}

char **memcached_index_list(struct memcached_lane *l, char kind)
{
	if (!list_read(l, kind))
		return NULL;
	char **list = l->values.has_failed ? NULL : list_sort(&l->values);

	if (list == NULL)
		(void)store_fail(&l->call->error, BATON_E_MEMORY, "no memory for a list");
	return list;
}
