/*
 * table.c: see memory.h. Chained hash tables that hold a hundred thousand names as well as
 * ten, and strings that many share. Names are compared in full: a hash only finds the chain.
 */
#include "store/memory/memory.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_MIN 16

static void table_grow(struct memory_table *t);

/* FNV-1a, and its high bits folded in, since only the low ones choose the slot. */
static uint64_t hash_of(const char *key)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *key != '\0'; key++)
		h = (h ^ (unsigned char)*key) * 0x100000001b3u;
	return h ^ (h >> 32);
}

int memory_table_init(struct memory_table *t)
{
	t->slots = calloc(ROOM_MIN, sizeof(struct memory_node *));
	t->room = ROOM_MIN;
	t->n = 0;
	return t->slots != NULL ? 0 : BATON_E_MEMORY;
}

void memory_table_done(struct memory_table *t)
{
	free((void *)t->slots);
	*t = (struct memory_table){0};
}

struct memory_node *memory_table_find(const struct memory_table *t, const char *key)
{
	uint64_t hash = hash_of(key);
	struct memory_node *node = t->slots[hash & (t->room - 1)];

	while (node != NULL && (node->hash != hash || strcmp(node->key, key) != 0))
		node = node->next;
	return node;
}

void memory_table_add(struct memory_table *t, struct memory_node *node, const char *key)
{
	if (t->n >= t->room)
		table_grow(t);
	node->key = key;
	node->hash = hash_of(key);
	struct memory_node **slot = &t->slots[node->hash & (t->room - 1)];

	node->next = *slot;
	*slot = node;
	t->n++;
}

void memory_table_remove(struct memory_table *t, struct memory_node *node)
{
	struct memory_node **at = &t->slots[node->hash & (t->room - 1)];

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	t->n--;
}

/* Without memory the chains just get longer. */
static void table_grow(struct memory_table *t)
{
	size_t room = t->room * 2;
	struct memory_node **slots = calloc(room, sizeof(struct memory_node *));

	if (slots == NULL)
		return;
	for (size_t i = 0; i < t->room; i++) {
		while (t->slots[i] != NULL) {
			struct memory_node *node = t->slots[i];
			struct memory_node **slot = &slots[node->hash & (room - 1)];

			t->slots[i] = node->next;
			node->next = *slot;
			*slot = node;
		}
	}
	free((void *)t->slots);
	t->slots = slots;
	t->room = room;
}

struct memory_word *memory_word_new(const char *text)
{
	size_t size = strlen(text) + 1;
	struct memory_word *w = malloc(sizeof(*w) + size);

	if (w == NULL)
		return NULL;
	w->refs = 1;
	memcpy(w->text, text, size);
	return w;
}

struct memory_word *memory_word_ref(struct memory_word *w)
{
	w->refs++;
	return w;
}

void memory_word_unref(struct memory_word *w)
{
	if (w != NULL && --w->refs == 0)
		free(w);
}
