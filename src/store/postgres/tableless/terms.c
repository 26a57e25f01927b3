/*
 * terms.c: notes for each election the highest term that was seen, because a free election has no
 * record that tells it. Also notes whether the election's lock was just found free.
 */
#include <stdlib.h>
#include <string.h>

#include "store/postgres/tableless/tableless.h"

struct tableless_term {
	struct tableless_term *next;
	uint64_t term;
	bool was_free; /* a lock waiter has said so, and no campaign has used it since */
	char name[];
};

static struct tableless_term *term_find(const struct pg_store *store, const char *name)
{
	struct tableless_term *s = store->seen;

	while (s != NULL && strcmp(s->name, name) != 0)
		s = s->next;
	return s;
}

uint64_t tableless_term_highest(struct pg_store *store, const char *name, uint64_t term)
{
	size_t size = strlen(name) + 1;

	store_lock(&store->base);
	struct tableless_term *s = term_find(store, name);

	if (s == NULL && term > 0 && (s = calloc(1, sizeof(*s) + size)) != NULL) {
		(void)memcpy(s->name, name, size);
		s->next = store->seen;
		store->seen = s;
	}
	if (s != NULL && s->term < term)
		s->term = term;
	if (s != NULL)
		term = s->term;
	store_unlock(&store->base);
	return term;
}

void tableless_lock_freed(struct pg_store *store, const char *name)
{
	store_lock(&store->base);
	struct tableless_term *s = term_find(store, name);

	if (s != NULL)
		s->was_free = true;
	store_unlock(&store->base);
}

bool tableless_term_was_free(struct pg_store *store, const char *name)
{
	store_lock(&store->base);
	struct tableless_term *s = term_find(store, name);
	bool was = s != NULL && s->was_free;

	if (s != NULL)
		s->was_free = false;
	store_unlock(&store->base);
	return was;
}

void tableless_terms_done(struct pg_store *store)
{
	while (store->seen != NULL) {
		struct tableless_term *s = store->seen;

		store->seen = s->next;
		free(s);
	}
}
