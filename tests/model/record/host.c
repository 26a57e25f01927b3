/*
 * host.c: between the small numbers of the model and the real structs that the tasks are given;
 * and what becomes of a write.
 */
#include "model/record/host.h"

#include <string.h>

const char *const cand_ids[] = {"a", "b", "c"};
const char *const lease_ids[] = {"", "1", "2", "3", "4"};

struct record_election election = {.name = "e"};
struct record_lease lease;
struct record_sight sight;
struct record_hold hold;

static struct record_weak weak;

/* ---- between the model's small numbers and the real structs ---- */

struct record_version version_of(uint8_t id)
{
	return (struct record_version){.n = id != 0, .bytes = {id}};
}

uint8_t id_of(const struct record_version *v)
{
	return v->n == 0 ? 0 : v->bytes[0];
}

uint8_t slot_of(const char *id)
{
	return id[0] == '\0' ? SLOT_NONE : (uint8_t)(id[0] - '0');
}

uint8_t small(uint64_t n)
{
	if (n > FRESH)
		rule_break(RULE_MODEL);
	return (uint8_t)(n & FRESH);
}

struct baton_lease lease_of(int slot, int c)
{
	struct baton_lease l = {
		.ttl_ns = setup->ttl * TICK_NS, .owner = cand_ids[c], .address = ""};

	l.id[0] = lease_ids[slot][0];
	return l;
}

void show_election(const struct erec *r)
{
	election.w = r->w;
	election.term = r->term;
	election.nonce = r->nonce;
	election.ttl_ns = r->lease != 0 ? setup->ttl * TICK_NS : 0;
	election.hold_ns = r->reserved != 0 ? setup->hold * TICK_NS : 0;
	election.hold_term = r->hold_term;
	election.paused = r->paused;
	election.n_past = 0;
	election.order_id = 0;
	election.score_permille = 0;
	election.lease[0] = lease_ids[r->lease][0];
	election.lease[1] = '\0';
	election.reserved_for[0] = (char)(r->reserved != 0 ? cand_ids[r->reserved - 1][0] : '\0');
	election.reserved_for[1] = '\0';
}

void take_election(struct erec *r)
{
	r->w = small(election.w);
	r->lease = slot_of(election.lease);
	r->nonce = small(election.nonce);
	r->term = small(election.term);
	r->paused = election.paused;
	r->hold_term = small(election.hold_term);
	r->reserved = 0;
	for (uint8_t c = 0; c < setup->cands; c++)
		if (election.reserved_for[0] == cand_ids[c][0])
			r->reserved = c + 1u;
}

void show_lease(const struct lrec *l)
{
	lease.w = l->w;
	lease.ttl_ns = setup->ttl * TICK_NS;
	lease.beat = 0;
	lease.death = l->dead ? RECORD_EXPIRED : RECORD_ALIVE;
}

void show_sight(const struct seat *s, int slot)
{
	sight = (struct record_sight){0};
	if (s->seen == SLOT_NONE || s->seen != slot)
		return;
	sight.is_known = true;
	sight.version = version_of(s->seen_version);
	sight.ttl_ns = setup->ttl * TICK_NS;
	sight.since_ns = NOW_NS - s->seen_age * TICK_NS;
	sight.noted_ns = sight.since_ns;
	sight.death = s->seen_dead ? RECORD_EXPIRED : RECORD_ALIVE;
}

/* Of the dead nothing is kept but that they are. Whoever is unsure looks again at once. */
void take_sight(struct seat *s, int slot)
{
	bool is_dead = record_sight_is_dead(&sight);
	bool is_known = sight.is_known && !record_sight_is_unsure(&sight);
	bool is_watched = is_known && !is_dead;

	s->seen = is_known ? (uint8_t)slot : SLOT_NONE;
	s->seen_version = is_watched ? id_of(&sight.version) : 0;
	s->seen_age = is_watched ? (uint8_t)((NOW_NS - sight.since_ns) / TICK_NS) : 0;
	s->seen_dead = is_dead;
}

/* A sight is kept only while an election that is looked at names its lease. */
void drop_sight(struct seat *s)
{
	if (slot_of(election.lease) == s->seen)
		return;
	sight = (struct record_sight){0};
	take_sight(s, SLOT_NONE);
}

void begin_turn(struct record_turn *t, const struct world *w, const struct seat *s, int e)
{
	*t = (struct record_turn){.now_ns = NOW_NS,
				  .random = FRESH,
				  .lease = &lease,
				  .election = &election,
				  .sight = &sight,
				  .hold = &hold};
	if (s != NULL) {
		hold.term = s->hold_term;
		hold.since_ns = NOW_NS - s->hold_age * TICK_NS;
	}
	if (setup->forgets || setup->evicts) {
		weak.uptime_ns = w->uptime * TICK_NS;
		weak.max_lease_ns = setup->ttl * TICK_NS;
		weak.server_ms = w->clock[e];
		t->weak = &weak;
	}
}

void end_turn(struct seat *s)
{
	uint8_t age = (uint8_t)((NOW_NS - hold.since_ns) / TICK_NS);

	s->hold_term = small(hold.term);
	s->hold_age = hold.term != 0 ? age : 0;
}

void answer(struct record_turn *t, int outcome, uint8_t version)
{
	t->outcome = outcome;
	t->version = version_of(version);
	t->is_told = false;
}

/*
 * A conflict, with what was in the way; or without, and it is read: both are the same for whoever
 * does all of it in one step, so each is tried in half of the worlds.
 */
void answer_election(struct record_turn *t, const struct world *w, int c, int e, int outcome)
{
	answer(t, outcome, w->store.elections[e].w);
	if (outcome != BATON_OUTCOME_REFUSED || w->cands[c].left % 2 == 0)
		return;
	show_election(&w->store.elections[e]);
	t->is_told = true;
}

/* ---- native locks ---- */

int host_lock(struct world *w, int e, int slot, uint8_t fate, bool takes)
{
	struct lock *lock = &w->locks[e];
	bool is_ours = lock->lease == slot;
	bool is_free = lock->lease == SLOT_NONE && !lock->foreign;

	if (fate == LOCK_FAILS)
		return BATON_OUTCOME_FAILED;
	if (!is_ours && !(takes && is_free))
		return BATON_OUTCOME_REFUSED;
	*lock = (struct lock){.lease = (uint8_t)slot, .left = setup->ttl};
	return fate == LOCK_SILENT ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_OK;
}

void host_unlock(struct world *w, int e, int slot)
{
	if (slot != SLOT_NONE && w->locks[e].lease == slot)
		w->locks[e] = (struct lock){0};
}

/* ---- writes that don't travel ---- */

bool add_stray(struct world *w, const struct put *p)
{
	for (int i = 0; i < setup->strays; i++) {
		if (w->strays[i].act == ACT_NONE) {
			w->strays[i] = *p;
			return true;
		}
	}
	return false;
}

/* How it ended, for whoever has sent it. The fate is used up by the first that could be written. */
int carry_out(struct world *w, const struct put *p, uint8_t *fate)
{
	uint8_t how = *fate;

	if (how == FATE_LOST && p->act == ACT_BURY) { /* nobody knows what it would have met */
		*fate = FATE_OK;
		return BATON_OUTCOME_UNKNOWN;
	}
	if (store_version(w, p) != p->expected)
		return BATON_OUTCOME_REFUSED;
	*fate = FATE_OK;
	switch (how) {
	case FATE_OK: return store_put(w, p) ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
	case FATE_SILENT: (void)store_put(w, p); return BATON_OUTCOME_UNKNOWN;
	case FATE_COPY: (void)store_put(w, p); return BATON_OUTCOME_REFUSED;
	case FATE_LATE:
		if (!add_stray(w, p))
			rule_break(RULE_MODEL);
		return BATON_OUTCOME_UNKNOWN;
	case FATE_LOST: return BATON_OUTCOME_UNKNOWN;
	default: return BATON_OUTCOME_FAILED;
	}
}
