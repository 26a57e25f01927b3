/*
 * rules.c: what must hold in every state and at every step, each rule under its name. They are
 * stronger than what an application could notice: not only may no two lead, the store may not
 * even be able to grant a claim while another candidate still counts on its own.
 */
#include <string.h>

#include "model.h"

struct trial trial;

static const char *const names[] = {"none",
#define X(name, word, text) word,
				    RULES(X)
#undef X
};

static const char *const texts[] = {"nothing is broken",
#define X(name, word, text) text,
				    RULES(X)
#undef X
};

const char *rule_name(enum rule rule)
{
	return names[rule];
}

const char *rule_text(enum rule rule)
{
	return texts[rule];
}

void rule_break(enum rule rule)
{
	if (trial.broken == RULE_NONE)
		trial.broken = rule;
}

bool decide(void)
{
	if (trial.calm)
		return false;
	bool yes = (trial.answers >> trial.n_asked) & 1u;

	if (++trial.n_asked > 8)
		rule_break(RULE_MODEL);
	return yes;
}

static bool leads(const struct world *w, unsigned c)
{
	const struct cand *x = &w->cands[c];

	return x->up && election_leads(&x->election, &x->lease, w->now_ns);
}

/* Its work may be going on, and it may count on being alone. */
static bool works(const struct world *w, unsigned c)
{
	const struct cand *x = &w->cands[c];

	return x->up && x->works && w->now_ns < x->work_end_ns;
}

static struct lease_id id_of(const struct world *w, unsigned c)
{
	return (struct lease_id){(uint8_t)(c + 1), w->cands[c].inc,
				 (uint8_t)w->cands[c].lease.epoch};
}

/* S2, in ticks of true time: what the candidate counts on ends before the lease can. */
static bool has_margin(const struct world *w, unsigned c)
{
	const struct lease *l = &w->cands[c].lease;
	const struct stored_lease *stored = store_find(&w->store, id_of(w, c));
	unsigned slack = 2 * setup_drift_ticks(trial.setup, c);

	/* An own lease goes with its claim, which is known only when the answer comes. */
	if (l->state != LEASE_LIVE || w->now_ns >= l->deadline_ns || (l->own && !w->cands[c].works))
		return true;
	if (stored == NULL || stored->left < slack)
		return false;
	return l->end_ns <= w->now_ns + (stored->left - slack) * TICK_NS;
}

static bool has_claim(const struct world *w, unsigned c)
{
	const struct election *e = &w->cands[c].election;

	return same_lease(w->store.holder, id_of(w, c)) && w->store.nonce == e->nonce &&
	       w->store.term == e->term;
}

/* Duty 5: what is over, or another one by now, has been closed. */
static bool is_closed(const struct cand *x)
{
	uint8_t state = x->lease.state;

	if (state == LEASE_CLOSED || state == LEASE_OPENING)
		return x->has_epoch == 0;
	return x->has_epoch == 0 || x->has_epoch == x->lease.epoch;
}

/* Who was told that it leads is woken when that ends, or before, whatever is under way. */
static bool is_woken(const struct cand *x)
{
	const struct lease *l = &x->lease;
	uint64_t wake_ns = min_ns(lease_wake_ns(l), election_wake_ns(&x->election, l));

	return !x->leads || l->state != LEASE_LIVE || wake_ns <= l->deadline_ns;
}

void rules_opened(struct world *w, unsigned c, uint64_t epoch)
{
	struct cand *x = &w->cands[c];

	if (x->has_epoch != 0 && x->has_epoch != epoch)
		rule_break(RULE_CLOSED);
	x->has_epoch = (uint8_t)epoch;
}

void rules_closed(struct world *w, unsigned c, uint64_t epoch)
{
	struct cand *x = &w->cands[c];

	if (x->has_epoch != epoch)
		rule_break(RULE_CLOSED);
	x->has_epoch = 0;
}

void rules_check(const struct world *w)
{
	unsigned n_leaders = 0;

	for (unsigned c = 0; c < N_CANDS; c++) {
		if (!w->cands[c].up)
			continue;
		if (!is_closed(&w->cands[c]))
			rule_break(RULE_CLOSED);
		if (!is_woken(&w->cands[c]))
			rule_break(RULE_WAKE);
		if (!has_margin(w, c))
			rule_break(RULE_S2_MARGIN);
		if (!leads(w, c))
			continue;
		n_leaders++;
		if (!has_claim(w, c))
			rule_break(RULE_S1_CLAIM);
		if (!w->cands[c].leads)
			rule_break(RULE_S8_EVENTS);
	}
	if (n_leaders > 1)
		rule_break(RULE_S1_EXCLUSION);
}

void rules_granted(const struct world *w, struct lease_id to)
{
	for (unsigned c = 0; c < N_CANDS; c++) {
		if (c + 1 == to.cand)
			continue;
		if (leads(w, c))
			rule_break(RULE_S1_GRANT);
		if (works(w, c))
			rule_break(RULE_S7_OVERLAP);
	}
}

void rules_freed(const struct world *w, struct lease_id from)
{
	unsigned c = from.cand - 1u;

	if (w->cands[c].inc == from.inc && (leads(w, c) || works(w, c)))
		rule_break(RULE_S7_ORDER);
}

static void check_release(const struct world *w, unsigned c, const struct action *a)
{
	const struct store *s = &w->store;
	struct lease_id id = {(uint8_t)(c + 1), w->cands[c].inc, (uint8_t)a->epoch};
	bool ours = same_lease(s->holder, id) && s->nonce == a->nonce;

	/* A term names one claim for ever. */
	if (a->term > s->term || (a->term == s->term && s->holder.cand != 0 && !ours))
		rule_break(RULE_S6_FOREIGN);
	if (leads(w, c) || works(w, c))
		rule_break(RULE_S7_ORDER);
}

static void check_note(const struct world *w, unsigned c, const struct action *a)
{
	const struct cand *x = &w->cands[c];

	switch (a->note) {
	case NOTE_BECAME:
		if (x->leads || x->works)
			rule_break(RULE_S8_EVENTS);
		if (a->term <= x->last_term || a->term < w->store.term)
			rule_break(RULE_S3_TERMS);
		if (!leads(w, c) || !has_claim(w, c) || a->term != x->election.term)
			rule_break(RULE_S5_LATE);
		break;
	case NOTE_LOST:
		if (!x->leads || a->term != x->last_term)
			rule_break(RULE_S8_EVENTS);
		if (leads(w, c))
			rule_break(RULE_S5_LATE);
		break;
	case NOTE_STOPPED:
		if (x->leads || x->works)
			rule_break(RULE_S8_STOPPED);
		break;
	default: break;
	}
}

void rules_action(const struct world *w, unsigned c, const struct action *a)
{
	switch (a->kind) {
	case ACT_RELEASE: check_release(w, c, a); break;
	case ACT_CLOSE:
		if (leads(w, c) || works(w, c))
			rule_break(RULE_S7_ORDER);
		if (w->cands[c].has_epoch != a->epoch)
			rule_break(RULE_CLOSED);
		break;
	case ACT_NOTE: check_note(w, c, a); break;
	default: break;
	}
}
