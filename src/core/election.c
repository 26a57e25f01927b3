/*
 * election.c: the machine of election.h. Every step looks at the clock first, then takes the
 * event, then does what is due. At most one call is under way at a time.
 */
#include "core/election.h"
#include "core/step.h"

static void take_event(struct step *s);
static void heed_hint(struct step *s);
static void act(struct step *s);
static void check(const struct election *e, const struct lease *l);

void election_init(struct election *e, uint32_t self, const struct options *o)
{
	*e = (struct election){
		.options = *o,
		.self = self,
		.score = SCORE_MAX,
		.work_ns = NEVER,
		.overdue_ns = NEVER,
		.preempt_ns = NEVER,
	};
}

void election_step(struct election *e, struct lease *l, const struct event *ev, struct actions *out)
{
	struct step s = {.e = e, .l = l, .ev = ev, .out = out, .now_ns = ev->now_ns};

	claim_settle(&s);
	take_event(&s);
	heed_hint(&s);
	act(&s);
	lease_tally(l, &e->tally, e->state == ELECTION_LEADING || e->claimed,
		    e->state == ELECTION_CAMPAIGNING || e->state == ELECTION_SEEKING ||
			    e->state == ELECTION_RELEASING,
		    e->work && e->epoch == l->epoch);
	check(e, l);
}

bool election_leads(const struct election *e, const struct lease *l, uint64_t now_ns)
{
	return e->state == ELECTION_LEADING && now_ns < e->work_ns &&
	       lease_bears(l, e->epoch, now_ns);
}

/* ---- small words ---- */

struct action *step_note(struct step *s, uint8_t note, uint8_t why)
{
	struct action *a = actions_add(s->out, ACT_NOTE, why);

	a->note = note;
	return a;
}

void step_answer(struct step *s, uint8_t note, uint8_t why)
{
	if (s->e->asked)
		step_note(s, note, why);
	s->e->asked = false;
}

void step_plan(struct step *s, uint64_t when_ns, uint8_t why)
{
	s->e->next_ns = when_ns;
	s->e->cause = why;
}

void step_retry(struct step *s, uint8_t why)
{
	struct election *e = s->e;

	step_plan(s, s->now_ns + timing_backoff_ns(&s->l->timing, e->attempt, s->ev->random), why);
	count_up(&e->attempt);
}

bool step_is_healthy(const struct step *s)
{
	return !s->e->options.check_health || s->e->score >= s->e->options.min_score;
}

uint8_t step_unwilling(const struct step *s)
{
	const struct election *e = s->e;

	if (!e->wanted)
		return WHY_STOPPED;
	if (e->options.observe_only)
		return WHY_NOT_STARTED;
	if (e->options.manual && !e->asked)
		return WHY_UNWANTED;
	if (!step_is_healthy(s))
		return WHY_UNHEALTHY;
	if (e->paused)
		return WHY_PAUSED;
	return e->floor < TERM_MAX ? WHY_NONE : WHY_TERM_END;
}

uint64_t step_unquiet_ns(const struct step *s)
{
	return s->e->asked ? s->now_ns : max_ns(s->now_ns, s->e->quiet_ns);
}

bool step_may_campaign(const struct step *s)
{
	return step_unwilling(s) == WHY_NONE && step_unquiet_ns(s) <= s->now_ns &&
	       lease_ready(s->l, s->now_ns);
}

/* Observers need no lease; a candidate without one has nothing to look for yet. */
static bool may_look(const struct election *e, const struct lease *l)
{
	return e->options.observe_only || lease_stands(l, l->epoch);
}

static struct action *call(struct step *s, uint8_t kind, uint8_t why)
{
	struct election *e = s->e;
	struct action *a = actions_add(s->out, kind, why);

	CORE_ASSERT(e->call == 0);
	e->call = ++s->l->calls;
	e->call_kind = kind;
	e->call_ns = s->now_ns;
	a->call = e->call;
	a->limit_ns = s->now_ns + timing_call_ns(&s->l->timing);
	return a;
}

/* ---- answers ---- */

static void failed(struct step *s, uint8_t why)
{
	step_note(s, NOTE_ERROR, why);
	observation_calm(s, NEWS_NONE);
	step_retry(s, WHY_RETRY);
}

static void campaign_refused(struct step *s)
{
	struct election *e = s->e;
	const struct view *v = &s->ev->view;

	if (v->mine && lease_stands(s->l, e->epoch)) {
		if (v->nonce == s->ev->call) { /* it was carried out twice */
			e->doubt = s->ev->call;
			e->doubt_ns = e->call_ns;
		}
		e->paused = v->paused;
		claim_found(s, v);
		return;
	}
	observation_hear(s, v);
	/* Refused although the election is free (our lease was gone): no push will come, so try
	 * again. */
	if (!v->held && v->free_in_ns == NEVER && !v->paused)
		step_retry(s, WHY_RETRY);
	step_answer(s, NOTE_NOT_ACQUIRED, v->paused ? WHY_PAUSED : WHY_HELD);
}

static void election_campaigned(struct step *s)
{
	struct election *e = s->e;

	e->state = ELECTION_STANDBY;
	e->mark = s->l->serial;
	/* An own lease is closed, and another one opened, only after this answer. */
	CORE_ASSERT(!s->l->own || e->epoch == s->l->epoch);
	if (s->ev->outcome == OUTCOME_UNKNOWN && s->l->own)
		lease_doubt(s->l, s->now_ns);
	if (s->ev->outcome == OUTCOME_OK) {
		claim_won(s);
	} else if (s->ev->outcome == OUTCOME_REFUSED) {
		campaign_refused(s);
	} else if (s->ev->outcome == OUTCOME_UNKNOWN && lease_stands(s->l, e->epoch)) {
		e->doubt = s->ev->call;
		e->doubt_ns = e->call_ns;
		e->state = ELECTION_SEEKING;
		lease_ask(s->l, WHY_UNKNOWN);
		failed(s, WHY_UNKNOWN);
	} else {
		failed(s, WHY_FAILED);
		step_answer(s, NOTE_NOT_ACQUIRED, WHY_FAILED);
	}
}

static void election_observed(struct step *s)
{
	struct election *e = s->e;
	const struct view *v = &s->ev->view;

	if (e->state != ELECTION_STANDBY && e->state != ELECTION_LEADING) {
		if (s->ev->outcome == OUTCOME_OK && observation_is_credible(e, v->term)) {
			e->floor = max_ns(e->floor, v->term); /* S4: whatever is seen, counts */
			e->barred = v->mine ? e->barred : max_ns(e->barred, v->term);
		}
		return;
	}
	if (s->ev->outcome != OUTCOME_OK) {
		failed(s, WHY_FAILED);
		return;
	}
	if (e->state == ELECTION_LEADING) {
		observation_inspect(s, v);
		return;
	}
	/* L2: `free`: no candidate leads, and the election is not reserved for another one. A
	 * candidate in its turn looks where it would otherwise campaign. So it campaigns after the
	 * look even if it only sees that a lease is over, or if the answer is older than what it
	 * knows. */
	bool turn = e->cause == WHY_IN_TURN;
	bool old = v->term < e->floor;
	bool free = (!v->held && v->free_in_ns == NEVER) || (turn && v->free_in_ns == 0);

	observation_hear(s, v);
	if (v->mine) /* a claim that we don't know of, or old news: ask who knows */
		lease_ask(s->l, WHY_STRANGE);
	if ((old ? turn : free) && step_may_campaign(s))
		step_plan(s, s->now_ns, old ? WHY_STRANGE : WHY_FREE);
}

/* A candidate that has led lets the others go first. */
static void others_first(struct step *s)
{
	s->e->quiet_ns = max_ns(s->e->quiet_ns, s->now_ns + timing_hold_ns(&s->l->timing));
}

/*
 * L3: a release is tried until the store confirms it or says that the claim was no longer ours, or
 * until the lease ends.
 */
static void claim_released(struct step *s)
{
	struct election *e = s->e;

	if (e->state != ELECTION_RELEASING)
		return;
	if (s->ev->outcome == OUTCOME_OK || s->ev->outcome == OUTCOME_REFUSED) {
		if (s->l->own)
			lease_spend(s->l);
		if (e->barred == e->term)
			others_first(s);
		claim_let_go(s);
	} else {
		failed(s, WHY_FAILED);
	}
}

/* The application waits to hear whether we can lead now. */
static void try_asked(struct step *s)
{
	struct election *e = s->e;

	if (!e->asked)
		return;
	if (step_unwilling(s) != WHY_NONE)
		step_answer(s, NOTE_NOT_ACQUIRED, step_unwilling(s));
	else if (e->state == ELECTION_STANDBY && lease_ready(s->l, s->now_ns))
		step_plan(s, s->now_ns, WHY_ASKED);
}

static void take_answer(struct step *s)
{
	struct election *e = s->e;

	if (s->ev->call == 0 || s->ev->call != e->call)
		return;
	e->call = 0;
	switch (e->call_kind) {
	case ACT_CAMPAIGN: election_campaigned(s); break;
	case ACT_OBSERVE: election_observed(s); break;
	case ACT_RELEASE: claim_released(s); break;
	default: /* ACT_ORDER: whether it was heard shows in what the leader does */ break;
	}
	try_asked(s);
}

/* ---- what the application says ---- */

static void election_start(struct step *s)
{
	struct election *e = s->e;

	e->restart = e->stopping; /* first things first */
	if (e->stopping)
		return;
	e->wanted = true;
	if (!e->enlisted && !e->options.observe_only) {
		e->enlisted = true;
		lease_enlist(s->l);
	}
	if (e->state == ELECTION_STOPPED) {
		e->state = ELECTION_STANDBY;
		e->quiet_ns = 0;
		step_plan(s, s->now_ns, WHY_STARTED);
	}
}

static void stop(struct step *s)
{
	struct election *e = s->e;

	e->stopping = e->stopping || e->wanted;
	e->restart = false;
	e->wanted = false;
	step_answer(s, NOTE_NOT_ACQUIRED, WHY_STOPPED);
	if (e->state == ELECTION_LEADING)
		claim_step_down(s, WHY_STOPPED);
}

static void acquire(struct step *s)
{
	struct election *e = s->e;

	e->asked = true;
	if (!e->wanted)
		step_answer(s, NOTE_NOT_ACQUIRED, WHY_NOT_STARTED);
	else if (e->state == ELECTION_LEADING)
		step_answer(s, NOTE_ACQUIRED, WHY_WON);
	else
		try_asked(s);
}

static void resign(struct step *s)
{
	if (s->e->state != ELECTION_LEADING)
		return;
	s->e->quiet_ns = after_ns(s->now_ns, s->ev->quiet_ns);
	claim_step_down(s, WHY_RESIGNED);
}

static void election_health(struct step *s)
{
	struct election *e = s->e;
	bool was_healthy = step_is_healthy(s);

	e->score = s->ev->score;
	if (e->state == ELECTION_LEADING) {
		if (!step_is_healthy(s) && e->options.step_down_unhealthy)
			claim_step_down(s, WHY_UNHEALTHY);
		return;
	}
	observation_weigh(s);
	try_asked(s);
	if (e->state == ELECTION_STANDBY && !was_healthy && step_is_healthy(s))
		step_plan(s, step_unquiet_ns(s), WHY_RECOVERED);
}

static void take_event(struct step *s)
{
	struct election *e = s->e;

	switch (s->ev->kind) {
	case EV_START: election_start(s); break;
	case EV_STOP: stop(s); break;
	case EV_ACQUIRE: acquire(s); break;
	case EV_RESIGN: resign(s); break;
	case EV_TRANSFER:
		if (e->state == ELECTION_LEADING)
			claim_transfer(s, s->ev->target, s->ev->target_ok);
		break;
	case EV_HEALTH: election_health(s); break;
	case EV_ALIVE: /* claim_settle() has made sure that it is in time */
		if (e->state == ELECTION_LEADING && e->options.work_timeout_ns != 0)
			e->work_ns = s->now_ns + e->options.work_timeout_ns;
		break;
	case EV_DRAINED: e->work = e->work && e->state == ELECTION_LEADING; break;
	case EV_HINT: e->hinted = true; break;
	case EV_LEASE_UP:
		if (e->state == ELECTION_STANDBY)
			step_plan(s, step_unquiet_ns(s), WHY_OPENED);
		break;
	case EV_LEASE_DOWN: claim_lease_down(s); break;
	case EV_CLAIM: claim_listed(s); break;
	default: /* EV_TIMER, or an answer */ take_answer(s); break;
	}
}

/* A hint is followed as soon as that is possible, also a hint that overtook an answer. */
static void heed_hint(struct step *s)
{
	struct election *e = s->e;

	if (!e->hinted || e->call != 0 ||
	    (e->state != ELECTION_STANDBY && e->state != ELECTION_LEADING))
		return;
	e->hinted = false;
	observation_hint(s);
}

/* ---- what is due ---- */

/* S7: first the work ends, then the claim is given back. */
static void election_drain(struct step *s)
{
	struct election *e = s->e;

	if (e->state != ELECTION_RESIGNING)
		return;
	if (e->work && s->now_ns >= e->remind_ns) {
		step_note(s, NOTE_ERROR, WHY_DRAINING)->term = e->term;
		e->remind_ns = s->now_ns + s->l->timing.lease_ns;
	}
	if (e->claimed && !e->work && !e->wanted && !e->options.release_on_stop) {
		e->claimed = false;
		lease_keep(s->l);
	}
	if (e->claimed && (!e->work || s->now_ns >= e->overdue_ns)) {
		e->state = ELECTION_RELEASING;
		e->claimed = false;
		others_first(s);
		step_plan(s, s->now_ns, e->work ? WHY_OVERDUE : WHY_DRAINED);
	} else if (!e->claimed && !e->work) {
		e->state = ELECTION_STANDBY;
		step_plan(s, step_unquiet_ns(s), WHY_DRAINED);
	}
}

/* S6: the store releases the claim only if lease, nonce and term match. */
static void release_claim(struct step *s)
{
	struct election *e = s->e;

	if (e->state != ELECTION_RELEASING || e->call != 0 || s->now_ns < e->next_ns)
		return;
	struct action *a = call(s, ACT_RELEASE, e->cause);

	a->epoch = e->epoch;
	a->nonce = e->nonce;
	a->term = e->term;
	a->target = e->successor;
	a->hold_ns = e->successor != NOBODY ? timing_hold_ns(&s->l->timing) : 0;
}

static void campaign(struct step *s)
{
	struct election *e = s->e;
	struct action *a = call(s, ACT_CAMPAIGN, e->cause);

	e->state = ELECTION_CAMPAIGNING;
	e->epoch = s->l->epoch;
	a->epoch = e->epoch;
	a->nonce = e->call;
	a->floor = e->floor;
}

static void ask_for_place(struct step *s)
{
	struct election *e = s->e;
	struct action *a = call(s, ACT_ORDER, WHY_PREEMPT);

	a->term = e->leader_term;
	a->target = e->self;
	e->preempt_ns = s->now_ns + e->options.preempt_ns;
}

static void finish_stop(struct step *s)
{
	struct election *e = s->e;

	e->state = ELECTION_STOPPED;
	e->preempt_ns = NEVER;
	if (e->enlisted)
		lease_leave(s->l);
	e->enlisted = false;
	if (e->stopping)
		step_note(s, NOTE_STOPPED, WHY_STOPPED);
	e->stopping = false;
	if (e->restart)
		election_start(s);
}

static void stand_by(struct step *s)
{
	struct election *e = s->e;

	if (e->state != ELECTION_STANDBY)
		return;
	if (!e->wanted)
		finish_stop(s);
	else if (e->call != 0 || !may_look(e, s->l))
		return;
	else if (s->now_ns >= e->preempt_ns)
		ask_for_place(s);
	else if (s->now_ns < e->next_ns)
		return;
	else if (step_may_campaign(s) && e->cause != WHY_IN_TURN)
		campaign(s);
	else
		call(s, ACT_OBSERVE, e->cause);
}

static void act(struct step *s)
{
	struct election *e = s->e;

	election_drain(s);
	release_claim(s);
	stand_by(s);
	if (e->state == ELECTION_LEADING && e->call == 0 && s->now_ns >= e->next_ns)
		call(s, ACT_OBSERVE, e->cause);
}

uint64_t election_wake_ns(const struct election *e, const struct lease *l)
{
	uint64_t next_ns = e->call != 0 ? NEVER : e->next_ns;

	switch (e->state) {
	case ELECTION_STANDBY:
		if (e->call != 0 || !may_look(e, l))
			return NEVER;
		return min_ns(next_ns, e->preempt_ns);
	case ELECTION_LEADING: return min_ns(next_ns, e->work_ns);
	case ELECTION_RESIGNING: return min_ns(e->remind_ns, e->claimed ? e->overdue_ns : NEVER);
	case ELECTION_RELEASING: return next_ns;
	default: /* an answer is awaited, or nothing */ return NEVER;
	}
}

static void check(const struct election *e, const struct lease *l)
{
	CORE_ASSERT(e->state != ELECTION_LEADING || (e->work && e->barred == e->term));
	CORE_ASSERT(e->state != ELECTION_LEADING || (e->wanted && e->term <= e->floor));
	CORE_ASSERT(e->state != ELECTION_STOPPED || (!e->work && !e->wanted && !e->enlisted));
	CORE_ASSERT(e->state != ELECTION_CAMPAIGNING || e->call != 0);
	CORE_ASSERT(!e->claimed || e->state == ELECTION_RESIGNING);
	CORE_ASSERT(e->state != ELECTION_RESIGNING || e->claimed || e->work);
	CORE_ASSERT(e->call <= l->calls && e->doubt <= l->calls);
}
