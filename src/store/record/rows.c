/*
 * rows.c: for adapters whose store answers with rows: finds the item of a row by its key, and
 * copies the row into it. What this must never do: take a row for an item with another key.
 */
#include <stdlib.h>
#include <string.h>

#include "store/base.h"
#include "store/record/adapter.h"

#define US_NS 1000

static int by_key(const void *a, const void *b)
{
	return strcmp((*(struct record_item *const *)a)->key,
		      (*(struct record_item *const *)b)->key);
}

bool record_sort(struct record_sorted *s, struct baton_call *call, struct record_item *items,
		 size_t n)
{
	*s = (struct record_sorted){.n = n};
	s->items = calloc(n > 0 ? n : 1, sizeof(struct record_item *));
	if (s->items == NULL) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
		return false;
	}
	for (size_t i = 0; i < n; i++)
		s->items[i] = &items[i];
	qsort((void *)s->items, n, sizeof(struct record_item *), by_key);
	return true;
}

void record_sorted_done(struct record_sorted *s)
{
	free((void *)s->items);
	s->items = NULL;
}

struct record_item *record_sorted_find(const struct record_sorted *s, const char *key, size_t n,
				       size_t *at)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		size_t m = strlen(s->items[middle]->key);
		int order = memcmp(key, s->items[middle]->key, n < m ? n : m);

		if (order == 0 && n == m) {
			if (at != NULL)
				*at = middle;
			return s->items[middle];
		}
		if (order < 0 || (order == 0 && n < m))
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

struct record_version record_row_version(const char *w, size_t n)
{
	if (w == NULL || n == 0 || n > RECORD_VERSION_MAX)
		return (struct record_version){.n = 0};
	return record_version_of(w, n);
}

uint64_t record_row_age_ns(const char *us)
{
	long long age_us = us != NULL ? strtoll(us, NULL, 10) : -1;

	return age_us < 0 ? RECORD_NEVER : (uint64_t)age_us * US_NS;
}

void record_row_take(struct record_item *item, const char *value, size_t n, size_t max)
{
	bytes_clear(&item->value);
	if (value != NULL)
		(void)bytes_add(&item->value, value, n, max);
	item->outcome = item->version.n > 0 && !item->value.has_failed ? BATON_OUTCOME_OK
								       : BATON_OUTCOME_FAILED;
	item->code = item->outcome == BATON_OUTCOME_OK ? 0 : BATON_E_CORRUPT;
}

void record_items_end_all(struct record_item *items, size_t n, int outcome, int code)
{
	for (size_t i = 0; i < n; i++)
		items[i].outcome = 0;
	record_items_end(items, n, outcome, code);
}
