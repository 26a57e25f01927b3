/* lease.c: the leases of this process: see web.h. A process has few of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/web/web.h"

/* With the lock held: finds a lease by the first n bytes of its id. */
static struct web_lease **lease_find(struct web_store *s, const char *id, size_t n)
{
	struct web_lease **at = &s->leases;

	while (*at != NULL && strncmp((*at)->id, id, n) != 0)
		at = &(*at)->next;
	return at;
}

bool web_lease_get(struct web_store *s, const char *id, struct web_lease *out)
{
	store_lock(&s->base);
	const struct web_lease *l = *lease_find(s, id, sizeof(l->id));

	*out = l != NULL ? *l : (struct web_lease){.next = NULL};
	store_unlock(&s->base);
	return l != NULL;
}

bool web_lease_is_ours(struct web_store *s, uint64_t number, const char *name)
{
	store_lock(&s->base);
	const struct web_lease *l = s->leases;

	while (l != NULL && (l->number != number || strcmp(l->name, name) != 0))
		l = l->next;
	store_unlock(&s->base);
	return l != NULL;
}

static bool lease_take(struct web_store *s, const char *id, size_t n, struct web_lease *out)
{
	store_lock(&s->base);
	struct web_lease **at = lease_find(s, id, n);
	struct web_lease *l = *at;

	if (l != NULL)
		*at = l->next;
	store_unlock(&s->base);
	*out = l != NULL ? *l : (struct web_lease){.next = NULL};
	free(l);
	return l != NULL;
}

bool web_lease_take_older(struct web_store *s, const char *id, struct web_lease *out)
{
	const char *dash = strrchr(id, '-');

	return lease_take(s, id, dash != NULL ? (size_t)(dash - id) + 1 : strlen(id) + 1, out);
}

bool web_lease_note(struct web_store *s, const struct web_lease *lease)
{
	struct web_lease *l = malloc(sizeof(*l));

	if (l == NULL)
		return false;
	*l = *lease;
	store_lock(&s->base);
	l->next = s->leases;
	s->leases = l;
	store_unlock(&s->base);
	return true;
}

void web_lease_count(struct web_store *s, const char *id, uint64_t n_claims, uint64_t index)
{
	store_lock(&s->base);
	struct web_lease *l = *lease_find(s, id, sizeof(l->id));

	if (l != NULL && index > l->index) {
		l->n_claims = n_claims;
		l->index = index;
	}
	store_unlock(&s->base);
}

void web_lease_forget(struct web_store *s, const char *id)
{
	struct web_lease gone;

	(void)lease_take(s, id, sizeof(gone.id), &gone);
}

uint64_t web_longest_lease(struct web_store *s)
{
	uint64_t longest_ns = 0;

	store_lock(&s->base);
	for (const struct web_lease *l = s->leases; l != NULL; l = l->next)
		longest_ns = l->ttl_ns > longest_ns ? l->ttl_ns : longest_ns;
	store_unlock(&s->base);
	return longest_ns;
}
