/*
 * heap.h: timers. A binary heap of items that live inside what they belong to, so that setting a
 * timer never allocates once the heap has room for all of them.
 */
#ifndef BATON_HEAP_H
#define BATON_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_item {
	uint64_t when_ns;
	uint32_t place; /* 1 and above: where it is in the heap; 0: not in it */
	uint32_t kind;  /* the owner's: what it is part of */
};

struct heap {
	struct heap_item **items; /* [0] is not used */
	uint32_t n;
	uint32_t room;
};

/* Makes room for n items in all; false: no memory. */
bool heap_reserve(struct heap *h, uint32_t n);
void heap_done(struct heap *h);
/* Sets, moves or (with UINT64_MAX) takes out the item. */
void heap_set(struct heap *h, struct heap_item *item, uint64_t when_ns);
/* The earliest item, or NULL. */
struct heap_item *heap_first(const struct heap *h);

#endif
