/*
 * claim.c: the life of one claim: won or found, led or given back, lost or stepped down from.
 * S1, S5, S6, S7 and S8 are decided here.
 */
#include "core/step.h"

/* ---- the end of a leadership ---- */

void claim_lose(struct step *s, uint8_t why, bool claimed)
{
	struct election *e = s->e;

	CORE_ASSERT(e->state == ELECTION_LEADING && e->work);
	e->state = ELECTION_RESIGNING;
	e->claimed = claimed;
	e->leader = NOBODY;
	e->overdue_ns = NEVER;
	e->remind_ns = s->now_ns + s->l->timing.lease_ns;
	step_note(s, NOTE_LOST, why)->term = e->term;
}

/* A voluntary end: the claim is kept, and the lease renewed, until the work has ended (S7). */
void claim_step_down(struct step *s, uint8_t why)
{
	claim_lose(s, why, true);
}

/*
 * L5: work that has stalled won't tell us when it has ended. It gets the time that it would have
 * after any other loss; then its claim is given back. The other claims on the lease are not
 * affected.
 */
static void stall(struct step *s)
{
	claim_lose(s, WHY_STALLED, true);
	s->e->overdue_ns = s->now_ns + timing_drain_ns(&s->l->timing);
}

void claim_settle(struct step *s)
{
	struct election *e = s->e;

	if (e->state != ELECTION_LEADING || election_leads(e, s->l, s->now_ns))
		return;
	if (lease_bears(s->l, e->epoch, s->now_ns))
		stall(s);
	else
		claim_lose(s, s->l->state == LEASE_DEAD ? s->l->why_down : WHY_EXPIRED, false);
}

void claim_transfer(struct step *s, uint32_t target, bool target_ok)
{
	if (target == s->e->self)
		return;
	if (!target_ok) {
		step_note(s, NOTE_ERROR, WHY_TRANSFER_REFUSED)->target = target;
		return;
	}
	s->e->successor = target;
	claim_step_down(s, WHY_TRANSFER);
}

/* ---- winning and finding ---- */

/* Gives the claim back. If the lease is down, the close of the lease does that. */
static void give_back(struct step *s, uint8_t why)
{
	struct election *e = s->e;

	e->successor = NOBODY;
	step_answer(s, NOTE_NOT_ACQUIRED, why);
	if (!lease_stands(s->l, e->epoch)) {
		e->state = ELECTION_STANDBY;
		step_retry(s, why);
		return;
	}
	if (!e->enlisted) {
		e->enlisted = true;
		lease_enlist(s->l);
	}
	e->state = ELECTION_RELEASING;
	step_plan(s, s->now_ns, why);
}

/*
 * S3, S9: a grant with such a term makes no leader. A store that makes such grants is not asked
 * again soon.
 */
static void refuse(struct step *s, uint8_t why)
{
	step_note(s, NOTE_ERROR, why)->term = s->e->term;
	s->e->quiet_ns = max_ns(s->e->quiet_ns, s->now_ns + s->l->timing.retry_max_ns);
	give_back(s, why);
}

static void claim_lead(struct step *s, uint8_t why)
{
	struct election *e = s->e;

	e->state = ELECTION_LEADING;
	e->barred = e->term;
	e->work = true;
	e->attempt = 0;
	e->successor = NOBODY;
	e->preempt_ns = NEVER;
	if (e->options.work_timeout_ns != 0)
		e->work_ns = s->now_ns + e->options.work_timeout_ns;
	step_note(s, NOTE_BECAME, why)->term = e->term;
	observation_leader(s, e->self, e->term);
	observation_calm(s, NEWS_OF_TERM);
	observation_poll(s, &s->ev->view);
	/* An order for it may have been pushed before any process knew that it is ours. */
	if (why == WHY_ADOPTED)
		step_plan(s, s->now_ns, why);
	step_answer(s, NOTE_ACQUIRED, why);
}

/* A claim is ours. S5: we lead on it only if we want to and are in time; else we give it back. */
static void claim_hold(struct step *s, uint8_t why)
{
	struct election *e = s->e;

	e->floor = max_ns(e->floor, e->term);
	if (e->floor == TERM_MAX)
		refuse(s, WHY_TERM_END);
	else if (step_unwilling(s) != WHY_NONE)
		give_back(s, step_unwilling(s));
	else if (!lease_bears(s->l, e->epoch, s->now_ns))
		give_back(s, WHY_LATE);
	else
		claim_lead(s, why);
}

void claim_won(struct step *s)
{
	struct election *e = s->e;

	e->term = s->ev->view.term;
	e->nonce = s->ev->call;
	if (s->l->own)
		lease_grant(s->l, e->call_ns, s->now_ns);
	if (e->term > e->floor && observation_is_credible(e, e->term)) {
		claim_hold(s, WHY_WON);
		return;
	}
	refuse(s, e->term > e->floor ? WHY_FLOOR_JUMP : WHY_BAD_TERM);
}

/*
 * Rule 8: we adopt a claim only if its campaign ended UNKNOWN, and its term was neither reported
 * before nor seen as another candidate's. All other claims go back (L3).
 */
void claim_found(struct step *s, const struct view *v)
{
	struct election *e = s->e;
	bool ours = v->nonce == e->doubt && v->term > e->barred && v->term >= e->floor;
	bool credible = observation_is_credible(e, v->term);

	e->epoch = s->l->epoch;
	e->term = v->term;
	e->nonce = v->nonce;
	if (credible)
		e->floor = max_ns(e->floor, v->term);
	if (s->l->own)
		lease_grant(s->l, v->nonce == e->doubt ? e->doubt_ns : 0, s->now_ns);
	e->doubt = 0;
	if (ours && credible) {
		claim_hold(s, WHY_ADOPTED);
		return;
	}
	/* More such claims may come: do not turn them over as fast as the store answers (L4). */
	e->quiet_ns = max_ns(e->quiet_ns, s->now_ns + s->l->timing.retry_ns);
	give_back(s, WHY_ORPHAN);
}

/* ---- letting go ---- */

void claim_let_go(struct step *s)
{
	struct election *e = s->e;

	e->claimed = false;
	e->attempt = 0;
	e->mark = s->l->serial;
	e->handed = e->successor;
	e->state = e->work ? ELECTION_RESIGNING : ELECTION_STANDBY;
	step_plan(s, step_unquiet_ns(s), WHY_DUE);
}

void claim_listed(struct step *s)
{
	struct election *e = s->e;
	const struct view *v = &s->ev->view;
	bool known = v->held && v->nonce == e->nonce && v->term == e->term;

	/* The question is older than what we know now, or its lease no longer exists. */
	if (s->ev->call != s->l->claims_answered || s->ev->call <= e->mark ||
	    !lease_stands(s->l, s->l->epoch))
		return;
	switch (e->state) {
	case ELECTION_LEADING:
		if (!known)
			claim_lose(s, WHY_GONE, false);
		break;
	case ELECTION_RESIGNING: e->claimed = e->claimed && known; break;
	case ELECTION_SEEKING:
		e->state = ELECTION_STANDBY;
		if (v->held)
			claim_found(s, v);
		else
			step_answer(s, NOTE_NOT_ACQUIRED, WHY_FAILED);
		break;
	case ELECTION_STOPPED:
	case ELECTION_STANDBY:
		if (v->held)
			claim_found(s, v);
		break;
	default: /* an answer is under way that says more */ break;
	}
}

void claim_lease_down(struct step *s)
{
	struct election *e = s->e;

	step_answer(s, NOTE_NOT_ACQUIRED, WHY_FAILED);
	e->doubt = 0; /* nothing can land on a dead lease */
	e->claimed = false;
	if (e->state == ELECTION_SEEKING)
		e->state = ELECTION_STANDBY;
	if (e->state == ELECTION_RELEASING)
		claim_let_go(s);
}
