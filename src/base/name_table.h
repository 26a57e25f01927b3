/*
 * name_table.h: hash tables of things that have a name: chains that hold a hundred thousand as
 * well as ten. Names are compared in full: a hash only finds the chain. The table owns nothing, and
 * locks nothing.
 */
#ifndef BATON_NAME_TABLE_H
#define BATON_NAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* First member of what is kept in a table; the key lies in the same object. */
struct name_node {
	struct name_node *next;
	const char *key;
	uint64_t hash;
};

/* All zeros: an empty table without room. */
struct name_table {
	struct name_node **slots;
	size_t room; /* a power of two, or 0 */
	size_t n;
	size_t first; /* no node is in a slot before it */
};

/* 0, or -1: no memory. */
int name_table_init(struct name_table *t);
/* Room for the first one, in a table of zeros; then adding can't fail. 0, or -1: no memory. */
int name_table_reserve(struct name_table *t);
void name_table_done(struct name_table *t);
/* One with that name, or NULL; and another one with the same name, or NULL. */
struct name_node *name_table_find(const struct name_table *t, const char *key);
struct name_node *name_table_more(const struct name_node *node);
void name_table_add(struct name_table *t, struct name_node *node, const char *key);
void name_table_remove(struct name_table *t, struct name_node *node);
/* The one after `node`, the first after NULL; NULL at the end. Nothing may be added meanwhile, and
 * nothing removed but the node that was left behind. */
struct name_node *name_table_next(const struct name_table *t, const struct name_node *node);
/* Takes any one out; NULL: it is empty. */
struct name_node *name_table_pop(struct name_table *t);
/* Takes all out, and frees them: objects of malloc() that begin with their node. */
void name_table_free_all(struct name_table *t);

/* The object that has this node as a member that is not the first. */
#define name_container(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

#pragma GCC visibility pop

#endif
