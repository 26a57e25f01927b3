/*
 * campaign.c: claims, and settling those in doubt.
 *
 *   READ --> free ------------------> (LOCK) ---> CLAIM --> won
 *     |        ^ dead, or waited for and buried     |
 *     +--> LOOK at the lease that it names          | conflict: may it have landed?
 *            |                                      v
 *            v alive                        CHECK, fresh --> ours: ADOPT, by a write --> won
 *          held                               |    |
 *                                             |    +--> as it was before: KILL, by a write
 *                                             v
 *                                          it never lands: READ again
 *
 * Settling (R7) begins at CHECK, and ends where a campaign would begin again. What this must never
 * do: take a conflict for "the claim has not landed", since a copy of the claim may have landed
 * before (L3); adopt a claim by reading alone (R8); bury a lease from any other version than the
 * one that was waited for (R4).
 *
 * If the store has native locks, a claim is sent or adopted only with the election's lock. The lock
 * replaces no rule above: it is taken last, when the record could be claimed.
 */
#include "store/record/decide/parts.h"

enum {
	PHASE_CLAIM = PHASE_WRITE,
	PHASE_LOOK = PHASE_OWN,
	PHASE_BURY,
	PHASE_MAKE,
	PHASE_CHECK,
	PHASE_ADOPT,
	PHASE_KILL,
	PHASE_LOCK,
};

static int campaign_judge(struct record_campaign *c, struct record_turn *t);
static int campaign_looked(struct record_campaign *c, struct record_turn *t);
static int campaign_buried(struct record_campaign *c, struct record_turn *t);
static int campaign_made(struct record_campaign *c, struct record_turn *t);
static int campaign_claimed(struct record_campaign *c, struct record_turn *t);
static int campaign_check(struct record_campaign *c, struct record_turn *t);
static int campaign_rewritten(struct record_campaign *c, struct record_turn *t);
static int campaign_locked(struct record_campaign *c, struct record_turn *t);
static int campaign_claim(struct record_campaign *c, struct record_turn *t, const char *ended,
			  int why);

static int ask(struct record_campaign *c, uint32_t phase, int op, int why)
{
	return record_task_ask(&c->task, phase, op, why);
}

static int end(struct record_campaign *c, int outcome, int why)
{
	return record_task_end(&c->task, outcome, why);
}

/* FAILED promises that nothing lands, so it is only for a campaign that has nothing under way. */
static int end_unsure(struct record_campaign *c, int why)
{
	return end(c, c->is_sent ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED, why);
}

int record_campaign_step(struct record_campaign *c, struct record_turn *t)
{
	bool is_read = c->task.phase == PHASE_READ || c->task.phase == PHASE_CHECK;

	if (is_read && t->outcome != BATON_OUTCOME_OK)
		return end_unsure(c, RECORD_WHY_FAILED);
	switch (c->task.phase) {
	case PHASE_BEGIN:
		if (c->settles)
			return ask(c, PHASE_CHECK, RECORD_READ_FRESH, RECORD_WHY_BEGUN);
		return ask(c, PHASE_READ, RECORD_READ, RECORD_WHY_BEGUN);
	case PHASE_READ: c->task.version = t->version; return campaign_judge(c, t);
	case PHASE_LOOK: return campaign_looked(c, t);
	case PHASE_BURY: return campaign_buried(c, t);
	case PHASE_MAKE: return campaign_made(c, t);
	case PHASE_CLAIM: return campaign_claimed(c, t);
	case PHASE_CHECK: return campaign_check(c, t);
	case PHASE_LOCK: return campaign_locked(c, t);
	default: return campaign_rewritten(c, t);
	}
}

void record_campaign_give_up(struct record_campaign *c)
{
	(void)end_unsure(c, RECORD_WHY_TIME);
}

void record_settle_begin(struct record_campaign *c, const struct baton_lease *lease,
			 const struct record_claim *claim, bool locks)
{
	*c = (struct record_campaign){.lease = lease,
				      .nonce = claim->nonce,
				      .term = claim->term,
				      .expected = claim->version,
				      .locks = locks,
				      .settles = true,
				      .is_sent = true,
				      .gives_back = claim->standing == RECORD_FORFEIT};
}

void record_campaign_book(const struct record_campaign *c, struct record_claim *out)
{
	out->nonce = c->nonce;
	out->term = c->term;
	out->standing = RECORD_NO_CLAIM;
	if (c->task.outcome == BATON_OUTCOME_OK) {
		out->standing = RECORD_STANDS;
		out->version = c->task.version;
	} else if (c->is_sent) {
		out->standing = c->gives_back ? RECORD_FORFEIT : RECORD_IN_DOUBT;
		out->version = c->expected;
	}
}

/* ---- may it be claimed? ---- */

/* R2, R5: the election must be free or on a dead lease, and neither paused nor kept for another. */
static int campaign_judge(struct record_campaign *c, struct record_turn *t)
{
	const struct record_election *e = t->election;

	record_hold_note(t->hold, e, t->now_ns);
	if (e->paused)
		return end(c, BATON_OUTCOME_REFUSED, RECORD_WHY_PAUSED);
	if (record_same_text(e->lease, c->lease->id))
		return end(c, BATON_OUTCOME_REFUSED, RECORD_WHY_MINE);
	if (t->now_ns < record_hold_end_ns(t->hold, e, c->lease->owner))
		return end(c, BATON_OUTCOME_REFUSED, RECORD_WHY_RESERVED);
	if (e->lease[0] == '\0')
		return campaign_claim(c, t, "", RECORD_WHY_FREE);
	record_copy_text(c->rival, sizeof(c->rival), e->lease);
	return ask(c, PHASE_LOOK, RECORD_LOOK, RECORD_WHY_NAMED);
}

static int campaign_looked(struct record_campaign *c, struct record_turn *t)
{
	if (t->outcome != BATON_OUTCOME_OK)
		return end_unsure(c, RECORD_WHY_FAILED);
	if (record_sight_is_dead(t->sight))
		return campaign_claim(c, t, record_death_words[t->sight->death], RECORD_WHY_DEAD);
	if (!record_sight_is_over(t->sight, t->now_ns))
		return end(c, BATON_OUTCOME_REFUSED, RECORD_WHY_HELD);
	record_tombstone(t->lease, RECORD_EXPIRED, t->sight->ttl_ns, t->election->leader,
			 t->random);
	return ask(c, PHASE_BURY, RECORD_BURY, RECORD_WHY_WAITED);
}

/* R4: the write itself has proved that nothing changed. */
static int campaign_buried(struct record_campaign *c, struct record_turn *t)
{
	bool is_there = t->version.n != 0;

	switch (t->outcome) {
	case BATON_OUTCOME_OK:
		t->sight->version = t->version;
		t->sight->death = RECORD_EXPIRED;
		return campaign_claim(c, t, record_death_words[RECORD_EXPIRED], RECORD_WHY_DEAD);
	case BATON_OUTCOME_REFUSED:
		if (!t->is_told) {
			*t->sight = (struct record_sight){0};
			return ask(c, PHASE_LOOK, RECORD_LOOK, RECORD_WHY_CONFLICT);
		}
		record_sight_note(t->sight, &t->version, is_there ? t->lease : NULL,
				  t->election->ttl_ns, false, t->now_ns);
		if (record_sight_is_unsure(t->sight))
			return ask(c, PHASE_LOOK, RECORD_LOOK, RECORD_WHY_CONFLICT);
		t->outcome = BATON_OUTCOME_OK;
		return campaign_looked(c, t);
	default: return end_unsure(c, RECORD_WHY_FAILED);
	}
}

/* ---- claiming ---- */

uint64_t record_next_term(uint64_t stored, uint64_t floor, const struct record_weak *weak, int *why)
{
	/* On a store that forgets, terms are not below its clock in milliseconds: that is above all
	 * terms that it can have granted before. */
	uint64_t least = weak != NULL ? weak->server_ms : 0;
	enum term_fault fault;
	uint64_t term = term_next(stored, floor, least, &fault);

	*why = fault == TERM_END ? RECORD_WHY_TERM_END : RECORD_WHY_FLOOR_JUMP;
	return term;
}

static int campaign_claim(struct record_campaign *c, struct record_turn *t, const char *ended,
			  int why)
{
	const struct record_weak *weak = t->weak;
	int wrong;

	if (weak != NULL && weak->uptime_ns < weak->max_lease_ns)
		return end(c, BATON_OUTCOME_FAILED, RECORD_WHY_YOUNG);
	/* A record that such a store has forgotten is absent *again*. So no candidate
	 * claims from "absent". */
	if (weak != NULL && c->task.version.n == 0) {
		t->election->w = t->random;
		return ask(c, PHASE_MAKE, RECORD_WRITE, RECORD_WHY_MISSING);
	}
	c->term = record_next_term(t->election->term, c->floor, weak, &wrong);
	if (c->term == 0)
		return end(c, BATON_OUTCOME_FAILED, wrong);
	if (c->locks && !c->has_lock)
		return ask(c, PHASE_LOCK, RECORD_LOCK, why);
	record_election_claim(t->election, c, ended, t);
	c->expected = c->task.version;
	c->is_sent = true;
	return ask(c, PHASE_CLAIM, RECORD_WRITE, why);
}

/* Taking the lock does not touch the record, so the task goes on with what it has read. If others
 * have written meanwhile, the claim ends in a conflict. */
static int campaign_locked(struct record_campaign *c, struct record_turn *t)
{
	c->has_lock = t->outcome == BATON_OUTCOME_OK || t->outcome == BATON_OUTCOME_UNKNOWN;
	c->gives_back = c->settles && t->outcome == BATON_OUTCOME_REFUSED;
	t->version = c->task.version;
	if (c->gives_back || (c->settles && t->outcome == BATON_OUTCOME_OK))
		return campaign_check(c, t);
	if (t->outcome == BATON_OUTCOME_OK)
		return campaign_judge(c, t);
	if (t->outcome == BATON_OUTCOME_REFUSED)
		return end(c, BATON_OUTCOME_REFUSED, RECORD_WHY_LOCKED);
	return end_unsure(c, RECORD_WHY_FAILED);
}

static int campaign_made(struct record_campaign *c, struct record_turn *t)
{
	if (t->outcome == BATON_OUTCOME_REFUSED && !t->is_told)
		return ask(c, PHASE_READ, RECORD_READ_FRESH, RECORD_WHY_CONFLICT);
	if (t->outcome != BATON_OUTCOME_OK && t->outcome != BATON_OUTCOME_REFUSED)
		return end_unsure(c, RECORD_WHY_FAILED);
	c->task.version = t->version;
	return campaign_judge(c, t);
}

static int campaign_claimed(struct record_campaign *c, struct record_turn *t)
{
	switch (t->outcome) {
	case BATON_OUTCOME_OK:
		c->is_sent = false;
		c->task.version = t->version;
		return end(c, BATON_OUTCOME_OK, RECORD_WHY_WRITTEN);
	case BATON_OUTCOME_FAILED: c->is_sent = false; return end_unsure(c, RECORD_WHY_FAILED);
	case BATON_OUTCOME_REFUSED:
		if (t->is_told)
			return campaign_check(c, t);
		return ask(c, PHASE_CHECK, RECORD_READ_FRESH, RECORD_WHY_CONFLICT);
	default: return end_unsure(c, RECORD_WHY_UNKNOWN);
	}
}

/* ---- has it landed? ---- */

/*
 * R7: versions don't come back. So a claim can land only while the record has the version that the
 * claim was written from, and any write on the record kills it.
 */
static int campaign_check(struct record_campaign *c, struct record_turn *t)
{
	struct record_election *e = t->election;

	c->task.version = t->version;
	if (record_same_text(e->lease, c->lease->id) && e->nonce == c->nonce) {
		c->term = e->term;
		if (c->locks && !c->has_lock && !c->gives_back)
			return ask(c, PHASE_LOCK, RECORD_LOCK, RECORD_WHY_LANDED);
		e->w = t->random;
		if (!c->gives_back)
			return ask(c, PHASE_ADOPT, RECORD_WRITE, RECORD_WHY_LANDED);
		record_election_free(e, &(struct baton_release){.reason = "unlocked"}, t);
		return ask(c, PHASE_KILL, RECORD_WRITE, RECORD_WHY_LOCKED);
	}
	if (record_same_version(&c->task.version, &c->expected)) {
		e->w = t->random;
		return ask(c, PHASE_KILL, RECORD_WRITE, RECORD_WHY_PENDING);
	}
	c->is_sent = false;
	if (c->settles)
		return end(c, BATON_OUTCOME_REFUSED, RECORD_WHY_OVER);
	return campaign_judge(c, t);
}

/* The record was written again, as it was: to adopt our claim, or to kill it. */
static int campaign_rewritten(struct record_campaign *c, struct record_turn *t)
{
	bool is_ours = c->task.phase == PHASE_ADOPT;

	if (t->outcome == BATON_OUTCOME_REFUSED && t->is_told)
		return campaign_check(c, t);
	if (t->outcome == BATON_OUTCOME_REFUSED)
		return ask(c, PHASE_CHECK, RECORD_READ_FRESH, RECORD_WHY_CONFLICT);
	if (t->outcome != BATON_OUTCOME_OK)
		return end_unsure(c, RECORD_WHY_UNKNOWN);
	c->is_sent = false;
	c->task.version = t->version;
	if (is_ours)
		return end(c, BATON_OUTCOME_OK, RECORD_WHY_LANDED);
	if (c->settles)
		return end(c, BATON_OUTCOME_REFUSED, RECORD_WHY_OVER);
	return campaign_judge(c, t);
}
