/*
 * observe.c: observes elections: reads their records, and the leases that the records name.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/record/layer.h"

/* A batch of observations on its way. */
struct observing {
	struct record_lane *lane;
	struct baton_call *call;
	struct baton_observation *list;
	size_t n;
	struct record_key *keys;
	struct record_election *elections;
	struct record_item *items;
	size_t *which; /* the observation that an item is for */
	struct record_look *looks;
};

static bool observe_begin(struct observing *o, size_t max)
{
	o->keys = calloc(max, sizeof(*o->keys));
	o->elections = calloc(max, sizeof(*o->elections));
	o->items = record_items_new(o->call, max);
	o->which = calloc(max, sizeof(*o->which));
	o->looks = calloc(max, sizeof(*o->looks));
	return o->keys != NULL && o->elections != NULL && o->items != NULL && o->which != NULL &&
	       o->looks != NULL;
}

static void observe_done(struct observing *o, size_t max)
{
	record_items_free(o->items, max);
	free(o->keys);
	free(o->elections);
	free(o->which);
	free(o->looks);
}

/* Answers from memory. If many elections are observed at once, they had hints, so the watch has
 * read them. */
static bool observe_known(struct observing *o, size_t i, bool is_many, bool *is_ours)
{
	struct record_store *s = o->lane->store;

	store_lock(&s->base);
	const struct record_known *k = record_known_find(s, o->keys[i].text);
	bool is_known = is_many && record_known_is_watched(s, k) && !k->is_stale &&
			record_known_read(k, &o->elections[i]);

	*is_ours = *is_ours || (k != NULL && k->ours != NULL);
	store_unlock(&s->base);
	return is_known;
}

/* After a fresh read: drops our claim if the record no longer shows it. */
static void observe_own(struct observing *o, size_t i)
{
	const struct record_election *e = &o->elections[i];
	struct record_store *s = o->lane->store;

	store_lock(&s->base);
	struct record_known *k = record_known_find(s, o->keys[i].text);
	bool is_over = k != NULL && k->ours != NULL && k->claim.standing == RECORD_STANDS &&
		       (strcmp(e->lease, k->ours->id) != 0 || e->nonce != k->claim.nonce ||
			e->term != k->claim.term);

	if (is_over) {
		record_known_claim(s, k, NULL, NULL);
		record_known_tidy(s, k);
	}
	store_unlock(&s->base);
}

static void observe_note(struct observing *o, size_t i, const struct record_item *item,
			 uint64_t sent_ns)
{
	struct record_store *s = o->lane->store;

	store_lock(&s->base);
	struct record_known *k = record_known_find(s, o->keys[i].text);

	if (k != NULL)
		(void)record_known_note(s, k, &item->version, &o->elections[i], &item->value,
					sent_ns);
	store_unlock(&s->base);
}

static void observe_read(struct observing *o)
{
	bool is_ours = false;
	size_t n = 0;

	for (size_t i = 0; i < o->n; i++) {
		o->list[i].outcome = BATON_OUTCOME_OK;
		o->list[i].code = 0;
		o->keys[i] = record_key_of(o->lane->store, RECORD_ELECTIONS, o->list[i].name);
		if (observe_known(o, i, o->n > RECORD_FEW, &is_ours))
			continue;
		o->items[n].key = o->keys[i].text;
		o->which[n++] = i;
	}
	o->call->is_unasked = n == 0;
	uint64_t sent_ns = clock_boot_ns();

	record_get(o->lane, o->call, o->items, n, is_ours);
	for (size_t at = 0; at < n; at++) {
		struct record_item *item = &o->items[at];
		size_t i = o->which[at];

		if (item->outcome == BATON_OUTCOME_OK &&
		    record_read_election(o->call, item, o->list[i].name, &o->elections[i])) {
			o->elections[i].functions = item->is_marked;
			observe_note(o, i, item, sent_ns);
			if (is_ours)
				observe_own(o, i);
		}
		o->list[i].outcome = item->outcome;
		o->list[i].code = item->code;
	}
}

/* Reads the leases of other processes that the elections name. */
static void observe_leases(struct observing *o)
{
	struct record_store *s = o->lane->store;
	size_t n = 0;

	store_lock(&s->base);
	for (size_t i = 0; i < o->n; i++) {
		const struct record_election *e = &o->elections[i];

		if (o->list[i].outcome == BATON_OUTCOME_OK && e->lease[0] != '\0' &&
		    record_ours_find(s, e->lease) == NULL)
			o->looks[n++] = (struct record_look){e->lease, e->ttl_ns};
	}
	store_unlock(&s->base);
	if (n > 0)
		(void)record_look(o->lane, o->call, o->looks, n, false);
}

struct target {
	const char *id;
	bool is_ok;
};

static void observe_candidate(void *arg, const struct baton_candidate *c)
{
	struct target *t = arg;

	t->is_ok = t->is_ok || (c->is_healthy && strcmp(c->id, t->id) == 0);
}

/* If the leader is ordered to hand over: whether the target is there, and healthy. */
static void observe_target(struct observing *o, size_t i)
{
	struct baton_record *r = o->list[i].record;
	struct target t = {.id = r->order.target};

	if (!r->held || r->order.kind != BATON_ORDER_TRANSFER || r->order.term != r->term ||
	    strcmp(r->lease_id, o->list[i].lease_id) != 0)
		return;
	o->list[i].outcome =
		record_driver_candidates(o->lane, o->call, o->list[i].name, observe_candidate, &t);
	o->list[i].code = o->call->error.code;
	r->order.target_ok = t.is_ok;
}

static void observe_tell(struct observing *o, uint64_t asked_ns)
{
	struct record_store *s = o->lane->store;

	for (size_t i = 0; i < o->n; i++) {
		const struct record_election *e = &o->elections[i];

		if (o->list[i].outcome != BATON_OUTCOME_OK)
			continue;
		store_lock(&s->base);
		struct record_known *k = record_known_find(s, o->keys[i].text);
		struct record_seen *seen = record_seen_other(s, e->lease);
		struct record_hold hold = {.term = 0};

		if (k == NULL)
			record_hold_note(&hold, e, clock_boot_ns());
		record_observe(e, seen != NULL ? &seen->sight : NULL, k != NULL ? &k->hold : &hold,
			       o->list[i].id, clock_boot_ns(), o->list[i].record);
		o->list[i].record->watched = record_known_is_watched(s, k);
		if (k != NULL && k->owes_loss && strcmp(o->list[i].lease_id, e->lease) == 0) {
			o->list[i].record->held = false;
			record_lock_told(k);
		}
		/* The lease could not be read, so nothing is known. */
		if (seen != NULL && !record_seen_is_recent(s, seen, asked_ns)) {
			o->list[i].outcome = BATON_OUTCOME_FAILED;
			o->list[i].code = o->call->error.code;
		}
		store_unlock(&s->base);
		if (o->list[i].outcome == BATON_OUTCOME_OK)
			observe_target(o, i);
	}
}

void record_driver_observe(void *l, struct baton_call *call, struct baton_observation *list,
			   size_t n)
{
	struct observing o = {.lane = l, .call = call};
	size_t max = record_least(n, RECORD_JOBS_MAX);
	bool has_memory = n == 0 || observe_begin(&o, max);

	for (size_t done = 0; done < n && has_memory; done += o.n) {
		uint64_t asked_ns = clock_boot_ns();

		o.list = list + done;
		o.n = record_least(n - done, max);
		observe_read(&o);
		observe_leases(&o);
		observe_tell(&o, asked_ns);
	}
	for (size_t i = 0; i < n && !has_memory; i++) {
		list[i].outcome = record_no_memory(call);
		list[i].code = BATON_E_MEMORY;
	}
	observe_done(&o, max);
}
