/*
 * lane.c: the lease of a candidate, as the core counts on it.
 */
#include "model/record/host.h"

int free_slot(const struct world *w)
{
	uint8_t *refs[REFS_MAX];
	int n = refs_slot((struct world *)(uintptr_t)w, refs);
	unsigned used = 0;

	for (int i = 0; i < n; i++)
		used |= 1u << *refs[i];
	for (int slot = 1; slot <= setup->leases; slot++)
		if ((used >> slot & 1u) == 0 && w->store.leases[slot].w == 0 &&
		    w->copy.leases[slot].w == 0)
			return slot;
	return SLOT_NONE;
}

/* S5, S7: nobody leads on it any more, and nothing brings it back. */
void host_over(struct world *w, int c)
{
	struct cand *a = &w->cands[c];

	a->life = LIFE_OVER;
	a->left = 0;
	for (int e = 0; e < setup->elections; e++) {
		a->seats[e].role = ROLE_NONE;
		a->seats[e].nonce = a->seats[e].term = a->seats[e].version = 0;
		a->seats[e].locked = a->seats[e].keep = 0;
	}
}

/* The locks of its claims are kept before the record is written. */
static void locks_keep(struct world *w, int c, uint8_t fate)
{
	struct cand *a = &w->cands[c];

	for (int e = 0; e < setup->elections; e++) {
		struct seat *s = &a->seats[e];

		s->bid.late = s->bid.stage != STAGE_NONE;
		s->keep = 0;
		if (s->locked && s->role != ROLE_FORFEIT)
			s->keep = (uint8_t)host_lock(w, e, a->lease, fate, false);
	}
}

/* ... and judged after it. */
static int locks_judge(struct world *w, int c, int outcome)
{
	struct cand *a = &w->cands[c];
	bool is_renewed = outcome == BATON_OUTCOME_OK;

	for (int e = 0; e < setup->elections; e++) {
		struct seat *s = &a->seats[e];
		/* When it was last said to be ours, the server began to count anew. */
		int age = setup->ttl - (w->locks[e].lease == a->lease ? w->locks[e].left : 0);
		int verdict = record_lock_judge(s->keep, NOW_NS - (uint64_t)age * TICK_NS,
						setup->ttl * TICK_NS, NOW_NS, is_renewed);

		if (s->keep == 0 || !s->locked)
			continue;
		if (verdict == RECORD_LOCK_UNSURE && is_renewed)
			outcome = s->keep;
		if (verdict == RECORD_LOCK_LOST)
			s->role = ROLE_FORFEIT;
		s->keep = 0;
	}
	return outcome;
}

/* S2: counted from before the first send. */
static void prolong(struct world *w, int c, uint8_t drift)
{
	struct cand *a = &w->cands[c];
	int left = setup->last - a->lane.age - drift;

	if (a->lane.intent == RECORD_OPEN && left <= 0) {
		host_over(w, c);
	} else if (a->lane.intent == RECORD_OPEN) {
		a->life = LIFE_LIVE;
		a->left = (uint8_t)left;
	} else if (a->life == LIFE_LIVE && left > 0) {
		a->left = (uint8_t)left;
	}
}

static void lane_done(struct world *w, int c, int outcome, uint8_t drift)
{
	struct cand *a = &w->cands[c];

	if (setup->locks && a->life == LIFE_LIVE)
		outcome = locks_judge(w, c, outcome);
	if (outcome == BATON_OUTCOME_OK)
		prolong(w, c, drift);
	else if (a->lane.intent == RECORD_OPEN ||
		 (a->life == LIFE_LIVE && outcome == BATON_OUTCOME_REFUSED))
		host_over(w, c);
	a->lane = (struct lane){0};
}

static struct put lane_put(const struct cand *a)
{
	return (struct put){.act = a->lane.intent == RECORD_OPEN ? ACT_OPEN : ACT_RENEW,
			    .slot = a->lease,
			    .expected = a->lane.expected,
			    .l = {.w = a->lane.w}};
}

/* Goes on with a task of the renewing lane until it has sent something, or has ended. */
static void lane_go(struct world *w, int c, struct record_keep *k, struct record_turn *t,
		    uint8_t drift)
{
	struct cand *a = &w->cands[c];
	int op = record_keep_step(k, t);

	while (op == RECORD_READ_FRESH) {
		show_lease(&w->store.leases[a->lease]);
		answer(t, BATON_OUTCOME_OK, w->store.leases[a->lease].w);
		op = record_keep_step(k, t);
	}
	if (op == RECORD_DONE) {
		a->version = id_of(&k->own->version);
		lane_done(w, c, k->task.outcome, drift);
		return;
	}
	a->lane.stage = STAGE_SENT;
	a->lane.phase = (uint8_t)k->task.phase;
	a->lane.refused = k->task.was_refused;
	a->lane.expected = id_of(&k->task.version);
	a->lane.w = small(lease.w);
}

static void lane_begin(struct world *w, int c, uint32_t intent)
{
	struct cand *a = &w->cands[c];
	struct baton_lease l = lease_of(a->lease, c);
	struct record_own own = {.version = version_of(a->version)};
	struct record_keep k = {.intent = intent, .lease = &l, .own = &own};
	struct record_turn t;

	a->lane = (struct lane){.intent = (uint8_t)intent};
	begin_turn(&t, w, NULL, 0);
	lane_go(w, c, &k, &t, 0);
}

void host_open(struct world *w, int c)
{
	w->cands[c].lease = (uint8_t)free_slot(w);
	w->cands[c].life = LIFE_OPENING;
	w->cands[c].version = 0;
	lane_begin(w, c, RECORD_OPEN);
}

void host_renew(struct world *w, int c, const struct course *how)
{
	if (setup->locks)
		locks_keep(w, c, how->lock);
	lane_begin(w, c, RECORD_RENEW);
}

void host_lane_answer(struct world *w, int c, int outcome, const struct course *how)
{
	struct cand *a = &w->cands[c];
	struct baton_lease l = lease_of(a->lease, c);
	struct record_own own = {.version = version_of(a->version)};
	struct record_keep k = {.intent = a->lane.intent, .lease = &l, .own = &own};
	struct record_turn t;

	k.task.phase = a->lane.phase;
	k.task.was_refused = a->lane.refused;
	k.task.version = version_of(a->lane.expected);
	begin_turn(&t, w, NULL, 0);
	answer(&t, outcome, a->lane.w);
	if (outcome == BATON_OUTCOME_REFUSED) {
		show_lease(&w->store.leases[a->lease]);
		answer(&t, outcome, w->store.leases[a->lease].w);
		t.is_told = true;
	}
	lane_go(w, c, &k, &t, how->drift);
}

void host_lane_land(struct world *w, int c)
{
	struct cand *a = &w->cands[c];
	struct put p = lane_put(a);

	if (store_put(w, &p)) {
		a->lane.stage = STAGE_LANDED;
		a->lane.w = store_version(w, &p);
		a->lane.expected = 0;
		return;
	}
	host_lane_answer(w, c, BATON_OUTCOME_REFUSED, &(struct course){0});
}

/* What doesn't travel. */
void host_lane_carry(struct world *w, int c, const struct course *how)
{
	struct cand *a = &w->cands[c];
	uint8_t fate = how->fate;

	while (a->lane.stage == STAGE_SENT) {
		struct put p = lane_put(a);
		int outcome = carry_out(w, &p, &fate);

		if (outcome == BATON_OUTCOME_OK) {
			a->lane.stage = STAGE_LANDED;
			a->lane.w = store_version(w, &p);
			a->lane.expected = 0;
			return;
		}
		host_lane_answer(w, c, outcome, how);
	}
}

bool host_lane_stray(struct world *w, int c)
{
	struct put p = lane_put(&w->cands[c]);

	return add_stray(w, &p);
}

void host_close(struct world *w, int c, const struct course *how)
{
	struct cand *a = &w->cands[c];
	struct baton_lease l = lease_of(a->lease, c);
	struct record_own own = {.version = version_of(a->version)};
	struct record_keep k = {
		.intent = RECORD_CLOSE, .death = RECORD_CLOSED, .lease = &l, .own = &own};
	uint8_t fate = how->fate;
	struct record_turn t;
	struct put p = {.act = ACT_CLOSE, .slot = a->lease};

	begin_turn(&t, w, NULL, 0);
	for (int op = record_keep_step(&k, &t); op != RECORD_DONE; op = record_keep_step(&k, &t)) {
		int outcome = BATON_OUTCOME_OK;

		if (op == RECORD_WRITE) {
			p.expected = id_of(&k.task.version);
			p.l = (struct lrec){.w = small(lease.w), .dead = lease.death != 0};
			outcome = carry_out(w, &p, &fate);
		}
		if (op == RECORD_READ_FRESH)
			show_lease(&w->store.leases[a->lease]);
		answer(&t, outcome, w->store.leases[a->lease].w);
	}
	for (int e = 0; e < setup->elections; e++)
		host_unlock(w, e, a->lease);
	a->life = LIFE_NONE;
	a->lease = SLOT_NONE;
	a->version = 0;
}
