/*
 * state.c: see memory.h. What a server would keep: leases, their claims and candidates, terms,
 * reservations, orders and history.
 *
 * A term belongs to the election, not to the claim, so it survives release, expiry and closing
 * (S3). A lease never ends here before its time, except by a switch of a test.
 */
#include "store/memory/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void history_begin(struct memory *m, struct memory_election *e);
static void history_end(struct memory *m, struct memory_election *e, struct memory_word *ended);
static void history_clear(struct memory_election *e);
static void reservation_clear(struct memory_election *e);

/* ---- leases ---- */

void memory_sweep(struct memory *m)
{
	uint64_t now_ns = memory_now_ns(m);
	struct memory_lease *l, *next;

	if (now_ns < m->earliest_ns)
		return;
	m->earliest_ns = BATON_STORE_NEVER;
	for (l = LIST_FIRST(&m->all); l != NULL; l = next) {
		next = LIST_NEXT(l, all);
		if (l->expires_ns <= now_ns)
			memory_lease_end(m, l, MEMORY_END_EXPIRED);
		else if (l->expires_ns < m->earliest_ns)
			m->earliest_ns = l->expires_ns;
	}
}

struct memory_lease *memory_lease_find(const struct memory *m, const char *id)
{
	return (struct memory_lease *)name_table_find(&m->leases, id);
}

struct memory_lease *memory_lease_new(struct memory *m, const struct baton_lease *lease)
{
	size_t size = strlen(lease->id) + 1;
	struct memory_lease *l = calloc(1, sizeof(*l) + size);

	if (l == NULL)
		return NULL;
	l->owner = memory_word_new(lease->owner);
	l->address = memory_word_new(lease->address);
	if (l->owner == NULL || l->address == NULL) {
		memory_word_unref(l->owner);
		memory_word_unref(l->address);
		free(l);
		return NULL;
	}
	memcpy(l->id, lease->id, size);
	LIST_INIT(&l->claims);
	LIST_INIT(&l->candidates);
	name_table_add(&m->leases, &l->node, l->id);
	LIST_INSERT_HEAD(&m->all, l, all);
	memory_lease_prolong(m, l, lease->ttl_ns);
	return l;
}

void memory_lease_prolong(struct memory *m, struct memory_lease *l, uint64_t ttl_ns)
{
	uint64_t now_ns = memory_now_ns(m);

	l->expires_ns = ttl_ns > BATON_STORE_NEVER - now_ns ? BATON_STORE_NEVER : now_ns + ttl_ns;
	if (l->expires_ns < m->earliest_ns) {
		m->earliest_ns = l->expires_ns;
		memory_hint_sooner(m);
	}
}

void memory_lease_end(struct memory *m, struct memory_lease *l, int end)
{
	struct memory_candidate *c, *next;

	while (!LIST_EMPTY(&l->claims))
		memory_unclaim(m, LIST_FIRST(&l->claims), m->ends[end]);
	for (c = LIST_FIRST(&l->candidates); c != NULL; c = next) {
		next = LIST_NEXT(c, of_lease);
		memory_candidate_free(m, c);
	}
	LIST_REMOVE(l, all);
	name_table_remove(&m->leases, &l->node);
	memory_word_unref(l->owner);
	memory_word_unref(l->address);
	free(l);
}

/* ---- elections ---- */

struct memory_election *memory_election_find(const struct memory *m, const char *name)
{
	return (struct memory_election *)name_table_find(&m->elections, name);
}

struct memory_election *memory_election_get(struct memory *m, const char *name)
{
	struct memory_election *e = memory_election_find(m, name);
	size_t size = strlen(name) + 1;

	if (e != NULL)
		return e;
	e = calloc(1, sizeof(*e) + size);
	if (e == NULL)
		return NULL;
	memcpy(e->name, name, size);
	LIST_INIT(&e->candidates);
	LIST_INIT(&e->watches);
	name_table_add(&m->elections, &e->node, e->name);
	return e;
}

void memory_election_tidy(struct memory *m, struct memory_election *e)
{
	/* S3: an election that has had a term is remembered for ever. */
	if (e->term != 0 || e->holder != NULL || e->paused || e->rig.times != 0 ||
	    !LIST_EMPTY(&e->candidates) || !LIST_EMPTY(&e->watches))
		return;
	name_table_remove(&m->elections, &e->node);
	reservation_clear(e);
	history_clear(e);
	free(e->order);
	free(e);
}

/* ---- claims ---- */

int memory_profile_copy(struct memory_profile *to, const struct baton_profile *from)
{
	*to = (struct memory_profile){
		.priority = from->priority,
		.score_permille = from->score_permille,
		.is_healthy = from->is_healthy,
	};
	if (from->metadata[0] == '\0')
		return 0;
	to->metadata = strdup(from->metadata);
	return to->metadata != NULL ? 0 : BATON_E_MEMORY;
}

void memory_claim(struct memory *m, struct memory_election *e, struct memory_lease *l,
		  const struct memory_profile *profile)
{
	e->holder = l;
	e->since_ms = memory_wall_ms(m);
	e->profile = *profile;
	LIST_INSERT_HEAD(&l->claims, e, claim);
	l->n_claims++;
	reservation_clear(e);
	history_begin(m, e);
	memory_hint(e);
}

void memory_unclaim(struct memory *m, struct memory_election *e, struct memory_word *ended)
{
	history_end(m, e, ended);
	LIST_REMOVE(e, claim);
	e->holder->n_claims--;
	e->holder = NULL;
	e->nonce = 0;
	free(e->profile.metadata);
	e->profile = (struct memory_profile){0};
	free(e->order); /* rule 10: it was meant for this leadership */
	e->order = NULL;
	memory_hint(e);
}

static void reservation_clear(struct memory_election *e)
{
	memory_word_unref(e->reserved_for);
	e->reserved_for = NULL;
}

/* ---- candidates ---- */

struct memory_candidate *memory_candidate_find(const struct memory_election *e,
					       const struct memory_lease *l)
{
	struct memory_candidate *c;

	for (c = LIST_FIRST(&e->candidates); c != NULL; c = LIST_NEXT(c, of_election))
		if (c->lease == l)
			break;
	return c;
}

struct memory_candidate *memory_candidate_new(struct memory_election *e, struct memory_lease *l)
{
	struct memory_candidate *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->lease = l;
	c->election = e;
	LIST_INSERT_HEAD(&l->candidates, c, of_lease);
	LIST_INSERT_HEAD(&e->candidates, c, of_election);
	return c;
}

void memory_candidate_free(struct memory *m, struct memory_candidate *c)
{
	LIST_REMOVE(c, of_lease);
	LIST_REMOVE(c, of_election);
	memory_election_tidy(m, c->election);
	free(c->profile.metadata);
	free(c);
}

/* ---- records ---- */

static bool has_healthy(const struct memory_election *e, const char *id)
{
	struct memory_candidate *c;

	for (c = LIST_FIRST(&e->candidates); c != NULL; c = LIST_NEXT(c, of_election))
		if (strcmp(c->lease->owner->text, id) == 0 && c->profile.is_healthy)
			return true;
	return false;
}

static void copy_text(char *to, size_t size, const char *from)
{
	(void)snprintf(to, size, "%s", from != NULL ? from : "");
}

static uint32_t count_candidates(const struct memory_election *e)
{
	const struct memory_candidate *c;
	uint32_t n = 0;

	LIST_FOREACH(c, &e->candidates, of_election)
	n++;
	return n;
}

static void record_claim(const struct memory_election *e, uint64_t now_ns, struct baton_record *out)
{
	const struct memory_lease *l = e->holder;

	out->held = true;
	out->nonce = e->nonce;
	out->since_ms = e->since_ms;
	out->priority = e->profile.priority;
	out->score_permille = e->profile.score_permille;
	if (l->expires_ns != BATON_STORE_NEVER)
		out->free_in_ns = l->expires_ns > now_ns ? l->expires_ns - now_ns : 0;
	copy_text(out->lease_id, sizeof(out->lease_id), l->id);
	copy_text(out->leader, sizeof(out->leader), l->owner->text);
	copy_text(out->address, sizeof(out->address), l->address->text);
	copy_text(out->metadata, sizeof(out->metadata), e->profile.metadata);
	out->n_candidates = count_candidates(e);
	if (e->order != NULL) {
		out->order = *e->order;
		out->order.target_ok = has_healthy(e, e->order->target);
	}
}

void memory_record(const struct memory *m, const struct memory_election *e, const char *id,
		   struct baton_record *out)
{
	uint64_t now_ns = memory_now_ns(m);

	out->term = e != NULL ? e->term : 0;
	out->nonce = 0;
	out->free_in_ns = BATON_STORE_NEVER;
	out->since_ms = 0;
	out->priority = 0;
	out->score_permille = 0;
	out->held = false;
	out->reserved = false;
	out->paused = e != NULL && e->paused;
	/* Every change gives a hint, and a watch lane wakes up for expiries, too. */
	out->watched = true;
	out->lease_id[0] = '\0';
	out->leader[0] = '\0';
	out->address[0] = '\0';
	out->metadata[0] = '\0';
	out->wait[0] = '\0';
	out->n_candidates = 0;
	out->order.id = 0;
	out->order.term = 0;
	out->order.quiet_ms = 0;
	out->order.kind = BATON_ORDER_NONE;
	out->order.target[0] = '\0';
	out->order.target_ok = false;
	if (e != NULL && e->holder != NULL) {
		record_claim(e, now_ns, out);
	} else if (now_ns < m->barred_ns && !out->paused) {
		out->free_in_ns = m->barred_ns - now_ns;
		(void)strcpy(out->wait, m->barred);
	} else if (e != NULL && e->reserved_for != NULL && now_ns < e->reserved_until_ns &&
		   strcmp(e->reserved_for->text, id) != 0) {
		out->reserved = true;
		out->free_in_ns = e->reserved_until_ns - now_ns;
	}
}

/* ---- history ---- */

struct memory_past *memory_past_at(const struct memory_election *e, uint8_t i)
{
	size_t at = (size_t)e->past_first + i;

	return &e->past[at < e->past_room ? at : at - e->past_room];
}

/* Doubles the room, up to the most that is kept. If there is no memory, the oldest leadership is
 * dropped early. */
static void history_grow(struct memory_election *e)
{
	size_t room = e->past_room == 0 ? 1 : (size_t)e->past_room * 2;
	struct memory_past *past;

	if (e->past_n < e->past_room || e->past_room == MEMORY_HISTORY_MAX)
		return;
	if (room > MEMORY_HISTORY_MAX)
		room = MEMORY_HISTORY_MAX;
	past = calloc(room, sizeof(*past));
	if (past == NULL)
		return;
	for (uint8_t i = 0; i < e->past_n; i++)
		past[i] = *memory_past_at(e, i);
	free(e->past);
	e->past = past;
	e->past_room = (uint8_t)room;
	e->past_first = 0;
}

static void history_begin(struct memory *m, struct memory_election *e)
{
	struct memory_past *p;

	history_grow(e);
	if (e->past_room == 0)
		return;
	if (e->past_n == e->past_room) {
		p = &e->past[e->past_first];
		memory_word_unref(p->leader);
		memory_word_unref(p->ended);
		memory_word_unref(p->note);
		e->past_first = e->past_first + 1 < e->past_room ? (uint8_t)(e->past_first + 1) : 0;
		e->past_n--;
	}
	p = memory_past_at(e, e->past_n);
	*p = (struct memory_past){
		.term = e->term,
		.since_ns = memory_now_ns(m),
		.since_ms = e->since_ms,
		.leader = memory_word_ref(e->holder->owner),
	};
	e->past_n++;
}

static void history_end(struct memory *m, struct memory_election *e, struct memory_word *ended)
{
	struct memory_past *p;

	if (e->past_n == 0)
		return;
	p = memory_past_at(e, (uint8_t)(e->past_n - 1));
	if (p->ended != NULL)
		return;
	p->until_ns = memory_now_ns(m);
	p->until_ms = memory_wall_ms(m);
	p->ended = memory_word_ref(ended);
	/* If there is no memory for the note, it is left out. */
	if (e->order != NULL && e->order->note[0] != '\0' && store_is_by_order(ended->text))
		p->note = memory_word_new(e->order->note);
}

static void history_clear(struct memory_election *e)
{
	for (uint8_t i = 0; i < e->past_n; i++) {
		struct memory_past *p = memory_past_at(e, i);

		memory_word_unref(p->leader);
		memory_word_unref(p->ended);
		memory_word_unref(p->note);
	}
	free(e->past);
	e->past = NULL;
	e->past_room = 0;
	e->past_n = 0;
	e->past_first = 0;
}

/* ---- the end of everything ---- */

/* Only watchers survive: they belong to the lanes, and get a hint. */
void memory_forget_all(struct memory *m)
{
	struct memory_lease *l, *next_lease;

	for (l = LIST_FIRST(&m->all); l != NULL; l = next_lease) {
		next_lease = LIST_NEXT(l, all);
		memory_lease_end(m, l, MEMORY_END_DESTROYED);
	}
	for (size_t i = 0; i < m->elections.room; i++) {
		struct name_node *node = m->elections.slots[i], *next;

		for (; node != NULL; node = next) {
			struct memory_election *e = (struct memory_election *)node;

			next = node->next;
			e->term = 0;
			e->paused = false;
			reservation_clear(e);
			history_clear(e);
			memory_hint(e);
			memory_election_tidy(m, e);
		}
	}
}

void memory_free_all(struct memory *m)
{
	for (size_t i = 0; i < m->elections.room; i++) {
		struct name_node *node = m->elections.slots[i];

		for (; node != NULL; node = node->next)
			((struct memory_election *)node)->rig.times = 0;
	}
	memory_forget_all(m);
}
