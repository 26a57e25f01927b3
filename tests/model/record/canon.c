/*
 * canon.c: of worlds that differ in nothing but names, the same one.
 *
 * Nothing is left out that the searched code could look at: what is folded here follows from the
 * store, and from what could still be written there. A version that a record no longer has never
 * comes back on it; so all such versions of one record are one, unless an old copy can still be
 * read. A write that expects one of them never lands. A lease that no record could name again is
 * forgotten. Candidates are alike.
 */
#include <string.h>

#include "model/record/model.h"

static bool is_weak(void)
{
	return setup->forgets || setup->evicts;
}

/* ---- where names stand ---- */

int refs_slot(struct world *w, uint8_t **out)
{
	int n = 0;

	for (int c = 0; c < setup->cands; c++) {
		out[n++] = &w->cands[c].lease;
		for (int e = 0; e < setup->elections; e++) {
			out[n++] = &w->cands[c].seats[e].bid.lease;
			out[n++] = &w->cands[c].seats[e].bid.e.lease;
			out[n++] = &w->cands[c].seats[e].seen;
		}
	}
	for (int e = 0; e < setup->elections; e++) {
		out[n++] = &w->store.elections[e].lease;
		out[n++] = &w->copy.elections[e].lease;
		out[n++] = &w->locks[e].lease;
	}
	for (int i = 0; i < setup->strays; i++) {
		if (w->strays[i].act < ACT_CLAIM)
			out[n++] = &w->strays[i].slot;
		out[n++] = &w->strays[i].by_lease;
		out[n++] = &w->strays[i].e.lease;
	}
	return n;
}

int refs_lease(struct world *w, int slot, uint8_t **out)
{
	int n = 0;

	out[n++] = &w->store.leases[slot].w;
	out[n++] = &w->copy.leases[slot].w;
	for (int c = 0; c < setup->cands; c++) {
		struct cand *a = &w->cands[c];

		if (a->lease == slot) {
			out[n++] = &a->version;
			out[n++] = &a->lane.expected;
			out[n++] = &a->lane.w;
		}
		for (int e = 0; e < setup->elections; e++)
			if (a->seats[e].seen == slot)
				out[n++] = &a->seats[e].seen_version;
	}
	for (int i = 0; i < setup->strays; i++) {
		if (w->strays[i].act < ACT_CLAIM && w->strays[i].slot == slot) {
			out[n++] = &w->strays[i].expected;
			out[n++] = &w->strays[i].l.w;
		}
	}
	return n;
}

int refs_election(struct world *w, int e, uint8_t **out)
{
	int n = 0;

	out[n++] = &w->store.elections[e].w;
	out[n++] = &w->copy.elections[e].w;
	for (int c = 0; c < setup->cands; c++) {
		struct seat *s = &w->cands[c].seats[e];

		out[n++] = &s->version;
		out[n++] = &s->bid.expected;
		out[n++] = &s->bid.w;
		out[n++] = &s->bid.e.w;
	}
	for (int i = 0; i < setup->strays; i++) {
		if (w->strays[i].act >= ACT_CLAIM && w->strays[i].slot == e) {
			out[n++] = &w->strays[i].expected;
			out[n++] = &w->strays[i].e.w;
		}
	}
	return n;
}

static int refs_nonce(struct world *w, int e, uint8_t **out)
{
	int n = 0;

	out[n++] = &w->store.elections[e].nonce;
	out[n++] = &w->copy.elections[e].nonce;
	for (int c = 0; c < setup->cands; c++) {
		struct seat *s = &w->cands[c].seats[e];

		out[n++] = &s->nonce;
		out[n++] = &s->bid.nonce;
		out[n++] = &s->bid.e.nonce;
	}
	for (int i = 0; i < setup->strays; i++) {
		if (w->strays[i].act >= ACT_CLAIM && w->strays[i].slot == e) {
			out[n++] = &w->strays[i].by_nonce;
			out[n++] = &w->strays[i].e.nonce;
		}
	}
	return n;
}

static int refs_term(struct world *w, int e, uint8_t **out)
{
	int n = 0;

	out[n++] = &w->store.elections[e].term;
	out[n++] = &w->store.elections[e].hold_term;
	out[n++] = &w->copy.elections[e].term;
	out[n++] = &w->copy.elections[e].hold_term;
	out[n++] = &w->led[e];
	out[n++] = &w->clock[e];
	for (int c = 0; c < setup->cands; c++) {
		struct seat *s = &w->cands[c].seats[e];

		out[n++] = &s->term;
		out[n++] = &s->floor;
		out[n++] = &s->hold_term;
		out[n++] = &s->bid.term;
		out[n++] = &s->bid.e.term;
		out[n++] = &s->bid.e.hold_term;
	}
	for (int i = 0; i < setup->strays; i++) {
		if (w->strays[i].act >= ACT_CLAIM && w->strays[i].slot == e) {
			out[n++] = &w->strays[i].e.term;
			out[n++] = &w->strays[i].e.hold_term;
		}
	}
	return n;
}

/* ---- what nobody can ask for any more ---- */

/* It expects what is not there, and never comes back. Absent does, where records are deleted. */
static bool is_doomed(const struct world *w, const struct put *p)
{
	if (p->act >= ACT_CLAIM)
		return p->expected != w->store.elections[p->slot].w &&
		       (p->expected != 0 || !is_weak());
	return p->expected != w->store.leases[p->slot].w && p->expected != 0;
}

static void forget_seat(const struct world *w, struct seat *s, int e)
{
	bool is_pending =
		s->bid.stage == STAGE_SENT &&
		(s->bid.expected == w->store.elections[e].w || (s->bid.expected == 0 && is_weak()));

	if (s->bid.stage == STAGE_NONE)
		s->bid = (struct bid){0};
	if (!is_pending)
		s->bid.e = (struct erec){0};
	if (s->bid.stage == STAGE_SENT)
		s->bid.w = 0;
	if (setup->hold == 0 || s->hold_term == 0)
		s->hold_term = s->hold_age = 0;
}

/*
 * A lease that has no record, and that nothing names but sights, is never named again. So nobody
 * looks at such a sight. If it were kept, it would keep the number of its lease; there are few, and
 * a candidate that is left alone could not open a lease.
 */
static void forget_sights(struct world *w)
{
	uint8_t *refs[REFS_MAX];
	int n = refs_slot(w, refs);
	int names[LEASES + 1] = {0}; /* without the sights */

	for (int i = 0; i < n; i++)
		names[*refs[i]]++;
	for (int c = 0; c < setup->cands; c++)
		for (int e = 0; e < setup->elections; e++)
			names[w->cands[c].seats[e].seen]--;
	for (int c = 0; c < setup->cands; c++) {
		for (int e = 0; e < setup->elections; e++) {
			struct seat *s = &w->cands[c].seats[e];
			bool is_named = names[s->seen] > 0 || w->store.leases[s->seen].w != 0 ||
					w->copy.leases[s->seen].w != 0;

			if (s->seen == SLOT_NONE || !is_named)
				s->seen = s->seen_version = s->seen_age = s->seen_dead = 0;
		}
	}
}

static void forget(struct world *w)
{
	for (int c = 0; c < setup->cands; c++)
		for (int e = 0; e < setup->elections; e++)
			forget_seat(w, &w->cands[c].seats[e], e);
	for (int e = 0; e < setup->elections; e++)
		if (w->store.elections[e].reserved == 0)
			w->hold_age[e] = 0;
	for (int i = 0; i < setup->strays; i++)
		if (w->strays[i].act != ACT_NONE && is_doomed(w, &w->strays[i]))
			w->strays[i] = (struct put){0};
	forget_sights(w);
}

/* ---- new names ---- */

/* Renumbers by first use: 0 stays, and so does FRESH. is_one: all but the first are one. */
static void rename_refs(uint8_t **refs, int n, bool is_one)
{
	uint8_t to[FRESH + 1] = {0};
	uint8_t next = 1;

	to[FRESH] = FRESH;
	for (int i = 0; i < n; i++) {
		uint8_t id = *refs[i];

		if (id == 0 || id == FRESH)
			continue;
		if (to[id] == 0)
			to[id] = is_one && i > 0 ? 2 : next++;
		*refs[i] = to[id];
	}
}

static void rank_refs(uint8_t **refs, int n)
{
	unsigned used = 0;

	for (int i = 0; i < n; i++)
		used |= 1u << *refs[i];
	for (int i = 0; i < n; i++)
		*refs[i] = (uint8_t)(__builtin_popcount(used & ((1u << *refs[i]) - 1) & ~1u) +
				     (*refs[i] != 0));
}

static void rename_slots(struct world *w)
{
	uint8_t *refs[REFS_MAX];
	int n = refs_slot(w, refs);
	uint8_t to[LEASES + 1] = {0};
	uint8_t next = 1;
	struct store was[2] = {w->store, w->copy};

	for (int i = 0; i < n; i++) {
		if (*refs[i] != SLOT_NONE && to[*refs[i]] == 0)
			to[*refs[i]] = next++;
		*refs[i] = to[*refs[i]];
	}
	/* Records that nobody names: by what they are. */
	for (int dead = 0; dead < 4; dead++)
		for (int slot = 1; slot <= setup->leases; slot++)
			if (to[slot] == 0 &&
			    (was[0].leases[slot].w != 0 || was[1].leases[slot].w != 0) &&
			    was[0].leases[slot].dead + 2 * was[1].leases[slot].dead == dead)
				to[slot] = next++;
	memset(w->store.leases, 0, sizeof(w->store.leases));
	memset(w->copy.leases, 0, sizeof(w->copy.leases));
	for (int slot = 1; slot <= setup->leases; slot++) {
		if (to[slot] != 0) {
			w->store.leases[to[slot]] = was[0].leases[slot];
			w->copy.leases[to[slot]] = was[1].leases[slot];
		}
	}
}

/* ---- the order of candidates and strays ---- */

static uint64_t append(uint64_t key, unsigned value, unsigned bits)
{
	return key << bits | value;
}

/* How a lease stands: named by that election, its record's state. */
static unsigned look_of_lease(const struct world *w, int slot, int e)
{
	const struct lrec *l = &w->store.leases[slot];

	if (slot == SLOT_NONE)
		return 0;
	return 1u + (w->store.elections[e].lease == slot) + 2u * (l->w != 0) + 4u * l->dead;
}

/* What can be told of a candidate without names. */
static uint64_t look_of(const struct world *w, const struct cand *a)
{
	uint64_t k = a->life;

	k = append(k, a->left, 2);
	k = append(k, a->lane.stage, 2);
	k = append(k, a->lane.age, 2);
	k = append(k, a->version == w->store.leases[a->lease].w, 1);
	k = append(k, look_of_lease(w, a->lease, 0), 4);
	for (int e = 0; e < setup->elections; e++) {
		const struct seat *s = &a->seats[e];
		const struct erec *r = &w->store.elections[e];

		k = append(k, s->role, 3);
		k = append(k, s->bid.stage, 2);
		k = append(k, s->bid.lease == a->lease, 1);
		k = append(k, s->bid.nonce == r->nonce || s->nonce == r->nonce, 1);
		k = append(k, s->version == r->w, 1);
		k = append(k, look_of_lease(w, s->bid.lease, e), 4);
		k = append(k, look_of_lease(w, s->seen, e), 4);
		k = append(k, s->seen_version == w->store.leases[s->seen].w, 1);
		k = append(k, s->seen_age, 2);
		k = append(k, s->seen_dead, 1);
	}
	return k;
}

static void order_cands(struct world *w, uint8_t order[CANDS])
{
	uint8_t place[CANDS + 1] = {0}; /* of a candidate and one */
	struct cand was[CANDS];
	uint64_t looks[CANDS];

	for (uint8_t c = 0; c < CANDS; c++) {
		order[c] = c;
		looks[c] = c < setup->cands ? look_of(w, &w->cands[c]) : 0;
	}
	for (int i = 1; i < setup->cands; i++)
		for (int k = i; k > 0 && looks[order[k]] > looks[order[k - 1]]; k--) {
			uint8_t c = order[k];

			order[k] = order[k - 1];
			order[k - 1] = c;
		}
	memcpy(was, w->cands, sizeof(was));
	for (uint8_t i = 0; i < CANDS; i++) {
		w->cands[i] = was[order[i]];
		place[order[i] + 1] = i + 1u;
	}
	for (int e = 0; e < setup->elections; e++) {
		w->store.elections[e].reserved = place[w->store.elections[e].reserved];
		w->copy.elections[e].reserved = place[w->copy.elections[e].reserved];
		for (int c = 0; c < setup->cands; c++) {
			struct erec *r = &w->cands[c].seats[e].bid.e;

			r->reserved = place[r->reserved];
		}
	}
	for (int i = 0; i < setup->strays; i++) {
		struct put *p = &w->strays[i];

		p->e.reserved = place[p->e.reserved];
		if (p->act >= ACT_CLAIM && p->by_lease != 0)
			p->by_cand = (uint8_t)(place[p->by_cand + 1] - 1);
	}
}

static void order_strays(struct world *w)
{
	for (int i = 1; i < setup->strays; i++) {
		struct put p = w->strays[i];

		if (memcmp(&p, &w->strays[i - 1], sizeof(p)) > 0) {
			w->strays[i] = w->strays[i - 1];
			w->strays[i - 1] = p;
		}
	}
}

void world_canon(struct world *w, uint8_t order[CANDS])
{
	uint8_t *refs[REFS_MAX];

	forget(w);
	order_cands(w, order);
	order_strays(w);
	rename_slots(w);
	for (int slot = 1; slot <= setup->leases; slot++)
		rename_refs(refs, refs_lease(w, slot, refs), !setup->old_reads);
	for (int e = 0; e < setup->elections; e++) {
		rename_refs(refs, refs_election(w, e, refs), !setup->old_reads);
		rename_refs(refs, refs_nonce(w, e, refs), false);
		rank_refs(refs, refs_term(w, e, refs));
	}
	order_strays(w);
}
