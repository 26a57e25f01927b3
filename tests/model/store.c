/*
 * store.c: an exact store: every request is one atomic step (A2), nothing is forgotten (A3).
 *
 * Its clock differs from the candidates' by up to the drift bound (A1). A lease that was granted
 * for L ticks ends somewhere between L - drift and L + drift ticks later, and nobody knows when
 * before somebody's request depends on it: only then is it decided. That needs no transition of
 * its own, and covers every moment at which it could have ended.
 */
#include <string.h>

#include "model.h"

bool same_lease(struct lease_id a, struct lease_id b)
{
	return a.cand == b.cand && a.inc == b.inc && a.epoch == b.epoch;
}

static int find(const struct store *s, struct lease_id id)
{
	for (int i = 0; i < s->n_leases; i++)
		if (same_lease(s->leases[i].id, id))
			return i;
	return -1;
}

const struct stored_lease *store_find(const struct store *s, struct lease_id id)
{
	int i = find(s, id);

	return i < 0 ? NULL : &s->leases[i];
}

void store_drop(struct store *s, struct lease_id id)
{
	int i = find(s, id);

	if (i >= 0) {
		memmove(&s->leases[i], &s->leases[i + 1],
			sizeof(s->leases[0]) * (size_t)(s->n_leases - i - 1));
		s->n_leases--;
		memset(&s->leases[s->n_leases], 0, sizeof(s->leases[0]));
	}
}

/* Where a watch is kept, every change of the record is pushed. */
void store_push(struct world *w)
{
	if (!trial.setup->watched)
		return;
	for (unsigned c = 0; c < N_CANDS; c++)
		w->cands[c].pushed = w->cands[c].up;
}

/* An order is meant for one leadership, and goes with it (rule 10). */
static void set_free(struct world *w)
{
	struct store *s = &w->store;

	s->holder = (struct lease_id){0};
	s->nonce = 0;
	s->order = ORDER_NONE;
	s->order_term = 0;
	s->order_target = NOBODY;
	store_push(w);
}

static void end_lease(struct world *w, struct lease_id id)
{
	store_drop(&w->store, id);
	if (same_lease(w->store.holder, id))
		set_free(w);
}

static bool is_gone(const struct world *w, struct lease_id id)
{
	const struct cand *c = &w->cands[id.cand - 1u];

	return !c->up || c->inc != id.inc;
}

/* Whether that lease lives: where it may have ended by now, both are tried. */
static bool lives(struct world *w, struct lease_id id)
{
	const struct stored_lease *l = store_find(&w->store, id);
	bool may_end;

	if (id.cand == 0 || l == NULL)
		return false;
	may_end = l->left <= 2 * setup_drift_ticks(trial.setup, id.cand - 1u) ||
		  (trial.setup->provable && is_gone(w, id));
	if (!may_end || !decide())
		return true;
	if (trial.story != NULL)
		(void)fprintf(trial.story, "    store: the lease of %c has ended\n",
			      name_of(id.cand - 1u));
	end_lease(w, id);
	return false;
}

static void prolong(struct world *w, struct lease_id id)
{
	struct store *s = &w->store;
	int i = find(s, id);
	unsigned c = id.cand - 1u;

	if (i < 0) {
		if (s->n_leases == N_LEASES) {
			rule_break(RULE_MODEL);
			return;
		}
		i = s->n_leases++;
		s->leases[i].id = id;
	}
	s->leases[i].left =
		(uint8_t)(setup_lease_ticks(trial.setup, c) + setup_drift_ticks(trial.setup, c));
}

static bool is_fit(const struct world *w, unsigned cand)
{
	const struct cand *c = &w->cands[cand - 1u];

	return cand != 0 && c->up && !c->sick && c->election.wanted;
}

/* `sure`: the asker's lease is known to live, so that it isn't asked twice in one step. */
static void view(struct world *w, struct lease_id asker, bool sure, struct reply *r)
{
	struct store *s = &w->store;
	bool held = (sure && same_lease(s->holder, asker)) || lives(w, s->holder);

	r->term = s->term;
	r->free_in = NO_TICK;
	r->order = s->order;
	r->order_id = s->order != ORDER_NONE ? s->order_id : 0;
	r->order_term = s->order_term;
	r->order_target = s->order_target;
	r->flags = s->paused ? REPLY_PAUSED : 0;
	if (s->order == ORDER_TRANSFER && is_fit(w, s->order_target))
		r->flags |= REPLY_TARGET_OK;
	if (held) {
		unsigned left = store_find(s, s->holder)->left;
		unsigned drift = setup_drift_ticks(trial.setup, s->holder.cand - 1u);

		r->flags |= REPLY_HELD;
		r->leader = s->holder.cand;
		if (trial.setup->tells_end)
			r->free_in = (uint8_t)(left > drift ? left - drift : 0);
		if (same_lease(s->holder, asker)) {
			r->flags |= REPLY_MINE;
			r->nonce = s->nonce;
		}
	} else if (s->kept > 0 && s->kept_for != asker.cand) {
		r->free_in = s->kept;
	}
}

/* Checking that the lease lives, winning and minting the term are one step. */
static void campaign(struct world *w, const struct message *m, struct reply *r)
{
	struct store *s = &w->store;
	bool alive = trial.setup->own || lives(w, m->lease);

	view(w, m->lease, alive && !trial.setup->own, r);
	r->outcome = OUTCOME_REFUSED;
	if (!alive || (r->flags & (REPLY_HELD | REPLY_PAUSED)) != 0 || r->free_in != NO_TICK)
		return;
	unsigned term = (m->floor > s->term ? m->floor : s->term) + 1u;

	if (term > trial.setup->term_max && !trial.calm) {
		trial.beyond = true;
		return;
	}
	if (trial.setup->own)
		prolong(w, m->lease);
	s->holder = m->lease;
	s->nonce = m->nonce;
	s->term = (uint8_t)term;
	s->kept = 0;
	s->kept_for = 0;
	*r = (struct reply){.outcome = OUTCOME_OK, .term = s->term, .free_in = NO_TICK};
	if (trial.story != NULL)
		(void)fprintf(trial.story, "    store: %c holds term %u\n",
			      name_of(m->lease.cand - 1u), term);
	store_push(w);
	rules_granted(w, m->lease);
}

static void release(struct world *w, const struct message *m, struct reply *r)
{
	struct store *s = &w->store;

	r->outcome = OUTCOME_REFUSED;
	if (!lives(w, m->lease) || !same_lease(s->holder, m->lease) || s->nonce != m->nonce ||
	    s->term != m->term)
		return;
	r->outcome = OUTCOME_OK;
	rules_freed(w, m->lease);
	s->kept = m->target != NOBODY ? m->hold : 0;
	s->kept_for = s->kept > 0 ? m->target : 0;
	if (trial.setup->own)
		end_lease(w, m->lease);
	else
		set_free(w);
	if (trial.story != NULL)
		(void)fprintf(trial.story, "    store: free\n");
}

static void close_lease(struct world *w, const struct message *m, struct reply *r)
{
	bool held = same_lease(w->store.holder, m->lease);

	r->outcome = OUTCOME_REFUSED;
	if (!lives(w, m->lease))
		return;
	r->outcome = OUTCOME_OK;
	if (held)
		rules_freed(w, m->lease);
	end_lease(w, m->lease);
}

void store_process(struct world *w, const struct message *m, struct reply *r)
{
	*r = (struct reply){.outcome = OUTCOME_OK, .free_in = NO_TICK};
	switch (m->kind) {
	case ACT_OPEN: prolong(w, m->lease); break;
	case ACT_RENEW:
		if (!lives(w, m->lease)) {
			r->outcome = OUTCOME_REFUSED;
			break;
		}
		prolong(w, m->lease);
		r->n_held = same_lease(w->store.holder, m->lease);
		break;
	case ACT_CLOSE: close_lease(w, m, r); break;
	case ACT_CLAIMS:
	case ACT_OBSERVE: view(w, m->lease, false, r); break;
	case ACT_CAMPAIGN: campaign(w, m, r); break;
	case ACT_RELEASE: release(w, m, r); break;
	default: /* ACT_ORDER: nobody preempts here */ rule_break(RULE_MODEL); break;
	}
}

void store_tick(struct world *w)
{
	struct store *s = &w->store;

	for (int i = s->n_leases - 1; i >= 0; i--)
		if (--s->leases[i].left == 0)
			end_lease(w, s->leases[i].id);
	if (s->kept > 0 && --s->kept == 0) {
		s->kept_for = 0;
		store_push(w);
	}
}
