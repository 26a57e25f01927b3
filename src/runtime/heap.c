/* heap.c: see heap.h. */
#include "runtime/heap.h"

#include <stdlib.h>

static void heap_sift(struct heap *h, uint32_t i, struct heap_item *item);

void heap_set(struct heap *h, struct heap_item *item, uint64_t when_ns)
{
	uint32_t i = item->place;

	if (i != 0 && item->when_ns == when_ns)
		return;
	item->when_ns = when_ns;
	if (when_ns != UINT64_MAX) {
		heap_sift(h, i != 0 ? i : ++h->n, item);
	} else if (i != 0) {
		struct heap_item *last = h->items[h->n--];

		item->place = 0;
		if (last != item)
			heap_sift(h, i, last);
	}
}

struct heap_item *heap_first(const struct heap *h)
{
	return h->n > 0 ? h->items[1] : NULL;
}

static void put(struct heap *h, uint32_t i, struct heap_item *item)
{
	h->items[i] = item;
	item->place = i;
}

/* Puts the item at i or where it belongs from there: up or down. */
static void heap_sift(struct heap *h, uint32_t i, struct heap_item *item)
{
	while (i > 1 && item->when_ns < h->items[i / 2]->when_ns) {
		put(h, i, h->items[i / 2]);
		i /= 2;
	}
	for (uint32_t child = 2 * i; child <= h->n; child = 2 * i) {
		if (child < h->n && h->items[child + 1]->when_ns < h->items[child]->when_ns)
			child++;
		if (h->items[child]->when_ns >= item->when_ns)
			break;
		put(h, i, h->items[child]);
		i = child;
	}
	put(h, i, item);
}

bool heap_reserve(struct heap *h, uint32_t n)
{
	uint32_t room = h->room != 0 ? h->room : 16;

	if (n < h->room)
		return true;
	while (room <= n) {
		if (room > UINT32_MAX / 2)
			return false;
		room *= 2;
	}
	struct heap_item **items = realloc(h->items, room * sizeof(*items));

	if (items == NULL)
		return false;
	h->items = items;
	h->room = room;
	return true;
}

void heap_done(struct heap *h)
{
	free(h->items);
	*h = (struct heap){0};
}
