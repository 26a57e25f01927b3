/*
 * rules.c: what must hold in every state, and whenever a write lands.
 */
#include "model/record/model.h"

enum rule broken;

static const char *const names[] = {"none",
#define X(name, word, text) word,
				    RULES(X)
#undef X
};

static const char *const texts[] = {"nothing is wrong",
#define X(name, word, text) text,
				    RULES(X)
#undef X
};

void rule_break(enum rule rule)
{
	if (broken == RULE_NONE)
		broken = rule;
}

const char *rule_name(enum rule rule)
{
	return names[rule];
}

const char *rule_text(enum rule rule)
{
	return texts[rule];
}

/* As is_leader() has it: no step has to be taken for a leadership to end. */
bool cand_leads(const struct world *w, int c, int e)
{
	const struct cand *a = &w->cands[c];

	return a->life == LIFE_LIVE && a->left > 0 && a->seats[e].role == ROLE_LEADS;
}

static bool counts_on(const struct world *w, int slot)
{
	for (int c = 0; c < setup->cands; c++)
		if (w->cands[c].lease == slot && w->cands[c].life == LIFE_LIVE &&
		    w->cands[c].left > 0)
			return true;
	return false;
}

void rules_lease(const struct world *w, const struct put *p)
{
	const struct lrec *l = &w->store.leases[p->slot];

	if (p->act == ACT_RENEW && l->w == 0)
		rule_break(RULE_R1_CREATE);
	if (l->dead && !p->l.dead)
		rule_break(RULE_R4_FINAL);
	if (p->l.dead && counts_on(w, p->slot))
		rule_break(RULE_R4_TOMBSTONE);
}

void rules_election(const struct world *w, const struct put *p)
{
	const struct erec *e = &w->store.elections[p->slot];
	bool is_weak = setup->forgets || setup->evicts;

	if ((p->act == ACT_RELEASE || p->act == ACT_SHOW) &&
	    (e->lease != p->by_lease || e->nonce != p->by_nonce))
		rule_break(RULE_S6_FOREIGN);
	if (!is_weak && (p->e.term < e->term || p->e.w == 0))
		rule_break(RULE_R9_GONE);
	if (p->act != ACT_CLAIM)
		return;
	/* Where S1 is not promised, terms are still granted once, and in their order. */
	if (setup->evicts && p->e.term <= w->led[p->slot])
		rule_break(RULE_S3_TERMS);
	if (e->paused)
		rule_break(RULE_R5_PAUSED);
	if (e->reserved != 0 && e->reserved != p->by_cand + 1 && w->hold_age[p->slot] < setup->hold)
		rule_break(RULE_R11_HOLD);
}

/* Somebody will give it back, or lead on it. */
static bool is_known(const struct world *w, int c, int e)
{
	const struct seat *s = &w->cands[c].seats[e];

	return s->role != ROLE_NONE || s->bid.stage != STAGE_NONE;
}

/* A lock is dropped with its claim. What a crash leaves, or a lease that is over, its time ends. */
static void check_lock(const struct world *w, int e)
{
	for (int c = 0; c < setup->cands; c++) {
		const struct cand *a = &w->cands[c];

		if (a->life == LIFE_LIVE && w->locks[e].lease == a->lease && !is_known(w, c, e))
			rule_break(RULE_LOCK_LEFT);
	}
}

static void check_claims(const struct world *w, int e)
{
	const struct erec *r = &w->store.elections[e];
	bool forgets = setup->forgets || setup->evicts;
	int leaders = 0;

	for (int c = 0; c < setup->cands; c++) {
		const struct cand *a = &w->cands[c];
		const struct seat *s = &a->seats[e];

		if (a->life == LIFE_LIVE && a->lease == r->lease && !is_known(w, c, e))
			rule_break(RULE_L3_ORPHAN);
		if (!cand_leads(w, c, e))
			continue;
		leaders++;
		if (!forgets &&
		    (r->lease != a->lease || r->nonce != s->nonce || r->term != s->term))
			rule_break(RULE_S1_RECORD);
	}
	if (leaders > 1 && !setup->evicts)
		rule_break(RULE_S1_EXCLUSION);
	if (leaders > 0 && w->locks[e].foreign && !setup->breaks)
		rule_break(RULE_LOCK_FOREIGN);
	check_lock(w, e);
}

void rules_check(const struct world *w)
{
	for (int e = 0; e < setup->elections; e++)
		check_claims(w, e);
	for (int slot = 1; slot <= setup->leases; slot++)
		if (w->store.leases[slot].dead && counts_on(w, slot))
			rule_break(RULE_R4_TOMBSTONE);
}
