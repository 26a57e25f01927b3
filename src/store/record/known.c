/*
 * known.c: what this process knows: elections that are watched or claimed; other processes' leases,
 * and since when their versions are known; its own leases, and the claims on them. Everything here
 * is called with the store's lock held.
 *
 * What this must never do: let an old read replace what was written after it, or forget a claim
 * that may have landed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/record/layer.h"

/* Leases that no election in the table names are dropped only when there are more than this. */
#define SEEN_MIN 64

/* ---- elections ---- */

struct record_known *record_known_find(struct record_store *s, const char *key)
{
	return (struct record_known *)watch_index_find(&s->elections, key);
}

struct record_known *record_known_get(struct record_store *s, const char *key, const char *name)
{
	struct record_known *k = record_known_find(s, key);

	if (k != NULL)
		return k;
	k = (struct record_known *)watch_index_get(&s->elections, key);
	if (k == NULL)
		return NULL;
	k->name = strdup(name);
	if (k->name != NULL)
		return k;
	watch_index_drop(&s->elections, &k->watched);
	return NULL;
}

static void known_unsee(struct record_known *k)
{
	if (k->seen != NULL)
		LIST_REMOVE(k, of_seen);
	k->seen = NULL;
}

void record_known_tidy(struct record_store *s, struct record_known *k)
{
	if (watch_index_is_watched(&k->watched) || k->ours != NULL)
		return;
	known_unsee(k);
	free(k->text);
	free(k->name);
	watch_index_drop(&s->elections, &k->watched);
}

/* Notes which lease the election names, if that is another process's. */
static void known_see(struct record_store *s, struct record_known *k,
		      const struct record_election *e)
{
	bool is_named = e != NULL && e->lease[0] != '\0' && record_ours_find(s, e->lease) == NULL;
	struct record_seen *seen = is_named ? record_seen_get(s, e->lease, e->ttl_ns) : NULL;

	if (seen == k->seen)
		return;
	known_unsee(k);
	k->seen = seen;
	if (seen == NULL)
		return;
	if (LIST_EMPTY(&seen->elections))
		record_watch_wake(s); /* there is a new lease to listen for */
	LIST_INSERT_HEAD(&seen->elections, k, of_seen);
}

bool record_known_note(struct record_store *s, struct record_known *k,
		       const struct record_version *version, const struct record_election *e,
		       const struct bytes *text, uint64_t sent_ns)
{
	bool is_same = k->noted_ns != 0 && record_same_version(&k->version, version);

	if (sent_ns < k->noted_ns)
		return false;
	k->noted_ns = sent_ns;
	if (is_same)
		return true;
	free(k->text);
	k->text = version->n != 0 && e != NULL ? malloc(text->n) : NULL;
	k->version = *version;
	k->n = k->text != NULL ? text->n : 0;
	if (k->text != NULL)
		(void)memcpy(k->text, text->at, k->n);
	else if (version->n != 0)
		k->noted_ns = 0; /* not valid, or no memory for it: to be read again */
	known_see(s, k, e);
	if (e != NULL)
		record_hold_note(&k->hold, e, clock_boot_ns());
	return true;
}

bool record_known_read(const struct record_known *k, struct record_election *out)
{
	if (k->noted_ns == 0)
		return false;
	record_no_election(out, k->name);
	return k->text == NULL || record_parse_election(k->text, k->n, out) == 0;
}

bool record_known_claimed(const struct record_known *k, struct record_election *out)
{
	if (k->ours != NULL && k->claim.standing == RECORD_STANDS &&
	    record_same_version(&k->claim.version, &k->version) && record_known_read(k, out))
		return true;
	record_no_election(out, k->name);
	return false;
}

void record_known_hint(struct record_store *s, struct record_known *k)
{
	watch_index_hint(&s->elections, &k->watched);
}

void record_known_claim(struct record_store *s, struct record_known *k, struct record_ours *ours,
			const struct record_claim *claim)
{
	bool is_over = claim == NULL || claim->standing == RECORD_NO_CLAIM;

	if (k->lock_ns != 0 && (is_over || k->ours != ours)) {
		record_lock_spend(s, k->name, k->ours->id);
		k->lock_ns = 0;
	}
	if (k->ours != NULL) {
		LIST_REMOVE(k, of_ours);
		k->ours->n_stand -= k->claim.standing == RECORD_STANDS;
		k->ours->n_owed -= k->owes_loss;
	}
	k->owes_loss = false;
	k->ours = claim != NULL && !is_over ? ours : NULL;
	if (k->ours == NULL)
		return;
	k->claim = *claim;
	ours->was_claimed_on = true;
	LIST_INSERT_HEAD(&ours->claims, k, of_ours);
	ours->n_stand += claim->standing == RECORD_STANDS;
}

bool record_known_is_watched(const struct record_store *s, const struct record_known *k)
{
	return s->is_live && k != NULL && k->is_told && watch_index_is_watched(&k->watched);
}

/* ---- leases of others ---- */

struct record_seen *record_seen_find(struct record_store *s, const char *id)
{
	return (struct record_seen *)name_table_find(&s->leases, id);
}

struct record_seen *record_seen_other(struct record_store *s, const char *id)
{
	return record_ours_find(s, id) == NULL ? record_seen_find(s, id) : NULL;
}

static uint64_t polls_ns(const struct record_store *s)
{
	return 2 * s->options.poll_ms * CLOCK_NS_PER_MS;
}

/* Drops leases that were not looked at for so long that what we know of them is useless. */
static void seen_prune(struct record_store *s)
{
	uint64_t now_ns = clock_boot_ns();
	struct name_node *next;

	for (struct name_node *node = name_table_next(&s->leases, NULL); node != NULL;
	     node = next) {
		struct record_seen *seen = (struct record_seen *)node;
		uint64_t kept_ns = seen->sight.ttl_ns + polls_ns(s);

		next = name_table_next(&s->leases, node);
		if (!LIST_EMPTY(&seen->elections) || seen->n_users != 0 ||
		    now_ns - seen->sight.noted_ns < kept_ns)
			continue;
		name_table_remove(&s->leases, node);
		free(seen);
	}
	s->n_seen_max = 2 * s->leases.n + SEEN_MIN;
}

struct record_seen *record_seen_get(struct record_store *s, const char *id, uint64_t ttl_ns)
{
	struct record_seen *seen = record_seen_find(s, id);
	size_t n = strlen(id);

	if (seen == NULL && n <= BATON_LEASE_ID_MAX) {
		if (s->leases.n >= s->n_seen_max)
			seen_prune(s);
		seen = calloc(1, sizeof(*seen));
		if (seen != NULL)
			name_table_add(&s->leases, &seen->node, memcpy(seen->id, id, n + 1));
	}
	if (seen != NULL && (!seen->sight.is_known || record_sight_is_unsure(&seen->sight)))
		seen->sight.ttl_ns = ttl_ns != 0 ? ttl_ns : seen->sight.ttl_ns;
	return seen;
}

void record_seen_hint(struct record_store *s, struct record_seen *seen)
{
	struct record_known *k;

	for (k = LIST_FIRST(&seen->elections); k != NULL; k = LIST_NEXT(k, of_seen))
		record_known_hint(s, k);
}

void record_seen_note(struct record_store *s, struct record_seen *seen,
		      const struct record_version *version, const struct record_lease *lease,
		      bool is_fresh, uint64_t now_ns)
{
	bool was_dead = record_sight_is_dead(&seen->sight);

	if (!record_same_version(&seen->sight.version, version))
		seen->is_over_told = false;
	record_sight_note(&seen->sight, version, lease, seen->sight.ttl_ns, is_fresh, now_ns);
	if (!was_dead && record_sight_is_dead(&seen->sight))
		record_seen_hint(s, seen);
}

bool record_seen_is_recent(const struct record_store *s, const struct record_seen *seen,
			   uint64_t now_ns)
{
	const struct record_sight *sight = &seen->sight;

	return sight->is_known && !record_sight_is_unsure(sight) &&
	       (record_sight_is_dead(sight) || now_ns < sight->noted_ns + polls_ns(s));
}

/* ---- our own ---- */

struct record_ours *record_ours_find(struct record_store *s, const char *id)
{
	struct record_ours *ours = s->ours;

	while (ours != NULL && strcmp(ours->id, id) != 0)
		ours = ours->next;
	return ours;
}

struct record_ours *record_ours_add(struct record_store *s, const struct baton_lease *lease)
{
	struct record_ours *ours = record_ours_find(s, lease->id);

	if (ours != NULL)
		return ours;
	ours = calloc(1, sizeof(*ours));
	if (ours == NULL || name_table_init(&ours->shown) != 0) {
		free(ours);
		return NULL;
	}
	ours->ttl_ns = lease->ttl_ns;
	(void)snprintf(ours->id, sizeof(ours->id), "%s", lease->id);
	(void)snprintf(ours->owner, sizeof(ours->owner), "%s", lease->owner);
	(void)snprintf(ours->address, sizeof(ours->address), "%s", lease->address);
	ours->next = s->ours;
	s->ours = ours;
	return ours;
}

void record_ours_remove(struct record_store *s, struct record_ours *ours)
{
	struct record_ours **at = &s->ours;
	struct record_known *k;

	while (*at != ours)
		at = &(*at)->next;
	*at = ours->next;
	while ((k = LIST_FIRST(&ours->claims)) != NULL) {
		record_known_claim(s, k, NULL, NULL);
		k->is_stale = s->has_stale = true; /* its lease is no longer ours */
		k->noted_ns = 0;
		record_known_tidy(s, k);
	}
	record_shown_done(ours);
	free(ours);
}

void record_tables_done(struct record_store *s)
{
	struct name_node *node;

	while (s->ours != NULL)
		record_ours_remove(s, s->ours);
	for (struct watched *w = watch_index_next(&s->elections, NULL); w != NULL;
	     w = watch_index_next(&s->elections, w)) {
		struct record_known *k = (struct record_known *)w;

		free(k->text);
		free(k->name);
	}
	watch_index_done(&s->elections);
	while ((node = name_table_pop(&s->leases)) != NULL)
		free(node);
	while (s->spent != NULL) {
		struct record_spent_lock *spent = s->spent;

		s->spent = spent->next;
		free(spent);
	}
	name_table_done(&s->leases);
}
