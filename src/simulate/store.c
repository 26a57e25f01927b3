/*
 * store.c: the store of the simulation: leases that end by its clock, one record, terms that grow.
 * A release is pushed to all candidates; the end of a lease is told as a time, and not pushed.
 */
#include "simulate/world.h"

static struct store_lease *lease_of(struct world *w, const struct candidate *c,
				    const struct message *m)
{
	struct store_lease *l = &w->leases[c->number - 1];

	return l->life == m->life && l->epoch == m->act.epoch && w->now_ns < l->ends_ns ? l : NULL;
}

static bool is_held(const struct world *w)
{
	return w->record.holder != NOBODY && w->now_ns < w->record.ends_ns;
}

/* Whether the record is held on the lease that the message is about. */
static bool is_mine(const struct world *w, const struct candidate *c, const struct message *m)
{
	return is_held(w) && w->record.holder == c->number && w->record.life == m->life &&
	       w->record.epoch == m->act.epoch;
}

static void look(const struct world *w, const struct candidate *c, struct message *m)
{
	m->view = (struct view){.term = w->record.term, .free_in_ns = NEVER};
	if (!is_held(w))
		return;
	m->view.held = true;
	m->view.leader = w->record.holder;
	m->view.score = SCORE_MAX;
	m->view.mine = is_mine(w, c, m);
	m->view.nonce = m->view.mine ? w->record.nonce : 0;
	m->view.free_in_ns = w->record.ends_ns - w->now_ns;
}

static void set_free(struct world *w)
{
	w->record.holder = NOBODY;
	for (uint32_t i = 0; i < w->setup->n_candidates; i++)
		candidate_hint(w, &w->candidates[i]);
}

static uint8_t renew(struct world *w, const struct candidate *c, struct message *m)
{
	struct store_lease *l = lease_of(w, c, m);

	if (l == NULL)
		return OUTCOME_REFUSED;
	m->n_held = is_mine(w, c, m);
	l->ends_ns = w->now_ns + w->setup->timing.lease_ns;
	if (m->n_held != 0)
		w->record.ends_ns = l->ends_ns;
	w->result->renewals++;
	return OUTCOME_OK;
}

static uint8_t close_lease(struct world *w, const struct candidate *c, struct message *m)
{
	struct store_lease *l = lease_of(w, c, m);

	if (l == NULL)
		return OUTCOME_REFUSED;
	l->ends_ns = 0;
	if (is_mine(w, c, m))
		set_free(w);
	return OUTCOME_OK;
}

static uint8_t decide_campaign(struct world *w, const struct candidate *c, struct message *m)
{
	const struct store_lease *l = lease_of(w, c, m);
	bool is_granted = l != NULL && !is_held(w);

	if (is_granted)
		w->record = (struct record){.term = max_ns(w->record.term, m->act.floor) + 1,
					    .epoch = m->act.epoch,
					    .nonce = m->act.nonce,
					    .ends_ns = l->ends_ns,
					    .holder = c->number,
					    .life = m->life};
	look(w, c, m);
	return is_granted ? OUTCOME_OK : OUTCOME_REFUSED;
}

static uint8_t release(struct world *w, const struct candidate *c, struct message *m)
{
	if (!is_mine(w, c, m) || w->record.nonce != m->act.nonce)
		return OUTCOME_REFUSED;
	set_free(w);
	return OUTCOME_OK;
}

static uint8_t claims(struct world *w, const struct candidate *c, struct message *m)
{
	look(w, c, m);
	m->view.held = m->view.mine;
	return OUTCOME_OK;
}

static uint8_t open_lease(struct world *w, const struct candidate *c, const struct message *m)
{
	w->leases[c->number - 1] =
		(struct store_lease){.epoch = m->act.epoch,
				     .ends_ns = w->now_ns + w->setup->timing.lease_ns,
				     .life = m->life};
	return OUTCOME_OK;
}

void store_answer(struct world *w, struct candidate *c, struct message *m)
{
	switch (m->act.kind) {
	case ACT_OPEN: m->outcome = open_lease(w, c, m); break;
	case ACT_RENEW: m->outcome = renew(w, c, m); break;
	case ACT_CLOSE: m->outcome = close_lease(w, c, m); break;
	case ACT_CLAIMS: m->outcome = claims(w, c, m); break;
	case ACT_CAMPAIGN: m->outcome = decide_campaign(w, c, m); break;
	case ACT_RELEASE: m->outcome = release(w, c, m); break;
	default: /* ACT_OBSERVE; no orders are given here */
		look(w, c, m);
		m->outcome = OUTCOME_OK;
		break;
	}
	m->is_answer = true;
	m->at_ns = w->now_ns + m->travel_ns;
}
