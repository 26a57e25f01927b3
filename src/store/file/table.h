/*
 * table.h: a hash table of nodes that live inside the things they find. Several things may have
 * one key: whoever searches compares.
 */
#ifndef BATON_FILE_TABLE_H
#define BATON_FILE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct file_node {
	struct file_node *next;
	uint64_t key;
};

struct file_table {
	struct file_node **buckets;
	size_t n_buckets; /* a power of two, or 0 */
	size_t n;
	size_t first; /* no node is in a bucket before it */
};

#define file_container(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/* Makes room for one more, so that add can't fail. -1: out of memory. */
int file_table_reserve(struct file_table *t);
void file_table_add(struct file_table *t, struct file_node *node, uint64_t key);
void file_table_remove(struct file_table *t, struct file_node *node);
/* The first node with this key, and the next one after it; or NULL. */
struct file_node *file_table_find(const struct file_table *t, uint64_t key);
struct file_node *file_table_more(const struct file_node *node);
/* All of them, in any order, starting with NULL; none may be removed meanwhile. */
struct file_node *file_table_each(const struct file_table *t, const struct file_node *node);
/* Takes any one out, or NULL. */
struct file_node *file_table_pop(struct file_table *t);
void file_table_done(struct file_table *t);
uint64_t file_table_key(const char *text);

#pragma GCC visibility pop

#endif
