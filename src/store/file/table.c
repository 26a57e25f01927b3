/* table.c: see table.h. Chains; doubled when as many nodes as buckets are in. */
#include "store/file/table.h"

#include <stdlib.h>

static size_t bucket_of(const struct file_table *t, uint64_t key)
{
	return (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (t->n_buckets - 1);
}

int file_table_reserve(struct file_table *t)
{
	size_t n = t->n_buckets == 0 ? 16 : t->n_buckets * 2;

	if (t->n < t->n_buckets)
		return 0;
	struct file_table next = {.buckets = calloc(n, sizeof(next.buckets[0])), .n_buckets = n};

	if (next.buckets == NULL)
		return -1;
	while (t->n > 0) {
		struct file_node *node = file_table_pop(t);
		file_table_add(&next, node, node->key);
	}
	free(t->buckets);
	*t = next;
	return 0;
}

void file_table_add(struct file_table *t, struct file_node *node, uint64_t key)
{
	size_t bucket = bucket_of(t, key);
	struct file_node **at = &t->buckets[bucket];

	if (t->n == 0 || bucket < t->first)
		t->first = bucket;
	node->key = key;
	node->next = *at;
	*at = node;
	t->n++;
}

void file_table_remove(struct file_table *t, struct file_node *node)
{
	struct file_node **at = &t->buckets[bucket_of(t, node->key)];

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	node->next = NULL;
	t->n--;
}

struct file_node *file_table_find(const struct file_table *t, uint64_t key)
{
	struct file_node *node = t->n_buckets == 0 ? NULL : t->buckets[bucket_of(t, key)];

	while (node != NULL && node->key != key)
		node = node->next;
	return node;
}

struct file_node *file_table_more(const struct file_node *node)
{
	uint64_t key = node->key;
	struct file_node *more = node->next;

	while (more != NULL && more->key != key)
		more = more->next;
	return more;
}

struct file_node *file_table_each(const struct file_table *t, const struct file_node *node)
{
	if (node != NULL && node->next != NULL)
		return node->next;
	for (size_t i = node == NULL ? 0 : bucket_of(t, node->key) + 1; i < t->n_buckets; i++)
		if (t->buckets[i] != NULL)
			return t->buckets[i];
	return NULL;
}

struct file_node *file_table_pop(struct file_table *t)
{
	if (t->n == 0)
		return NULL;
	while (t->buckets[t->first] == NULL)
		t->first++;
	struct file_node *node = t->buckets[t->first];

	file_table_remove(t, node);
	return node;
}

void file_table_done(struct file_table *t)
{
	free(t->buckets);
	*t = (struct file_table){0};
}

/* FNV-1a. A collision costs a comparison, nothing more (rule 5). */
uint64_t file_table_key(const char *text)
{
	uint64_t key = 0xcbf29ce484222325u;

	for (; *text != '\0'; text++)
		key = (key ^ (unsigned char)*text) * 0x100000001b3u;
	return key;
}
