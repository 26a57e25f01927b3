/* name_table.c: see name_table.h. */
#include "base/name_table.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_MIN 16

static void name_table_grow(struct name_table *t);

/* FNV-1a, and its high bits folded in, since only the low ones choose the slot. */
static uint64_t hash_of(const char *key)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *key != '\0'; key++)
		h = (h ^ (unsigned char)*key) * 0x100000001b3u;
	return h ^ (h >> 32);
}

int name_table_init(struct name_table *t)
{
	*t = (struct name_table){0};
	return name_table_reserve(t);
}

int name_table_reserve(struct name_table *t)
{
	if (t->room == 0)
		name_table_grow(t);
	return t->room != 0 ? 0 : -1;
}

void name_table_done(struct name_table *t)
{
	free((void *)t->slots);
	*t = (struct name_table){0};
}

struct name_node *name_table_find(const struct name_table *t, const char *key)
{
	uint64_t hash = hash_of(key);
	struct name_node *node = t->room != 0 ? t->slots[hash & (t->room - 1)] : NULL;

	while (node != NULL && (node->hash != hash || strcmp(node->key, key) != 0))
		node = node->next;
	return node;
}

struct name_node *name_table_more(const struct name_node *node)
{
	struct name_node *more = node->next;

	while (more != NULL && (more->hash != node->hash || strcmp(more->key, node->key) != 0))
		more = more->next;
	return more;
}

void name_table_add(struct name_table *t, struct name_node *node, const char *key)
{
	if (t->n >= t->room)
		name_table_grow(t);
	node->key = key;
	node->hash = hash_of(key);
	size_t at = node->hash & (t->room - 1);

	if (at < t->first)
		t->first = at;
	node->next = t->slots[at];
	t->slots[at] = node;
	t->n++;
}

void name_table_remove(struct name_table *t, struct name_node *node)
{
	struct name_node **at = &t->slots[node->hash & (t->room - 1)];

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	t->n--;
}

/* Without memory the chains just get longer. */
static void name_table_grow(struct name_table *t)
{
	size_t room = t->room != 0 ? t->room * 2 : ROOM_MIN;
	struct name_node **slots = calloc(room, sizeof(struct name_node *));

	if (slots == NULL)
		return;
	for (size_t i = 0; i < t->room; i++) {
		while (t->slots[i] != NULL) {
			struct name_node *node = t->slots[i];
			struct name_node **slot = &slots[node->hash & (room - 1)];

			t->slots[i] = node->next;
			node->next = *slot;
			*slot = node;
		}
	}
	free((void *)t->slots);
	t->slots = slots;
	t->room = room;
	t->first = 0;
}

struct name_node *name_table_next(const struct name_table *t, const struct name_node *node)
{
	size_t i = node != NULL ? (node->hash & (t->room - 1)) + 1 : 0;

	if (node != NULL && node->next != NULL)
		return node->next;
	while (i < t->room && t->slots[i] == NULL)
		i++;
	return i < t->room ? t->slots[i] : NULL;
}

struct name_node *name_table_pop(struct name_table *t)
{
	if (t->n == 0)
		return NULL;
	while (t->slots[t->first] == NULL)
		t->first++;
	struct name_node *node = t->slots[t->first];

	name_table_remove(t, node);
	return node;
}

void name_table_free_all(struct name_table *t)
{
	for (struct name_node *node; (node = name_table_pop(t)) != NULL;)
		free(node);
}
