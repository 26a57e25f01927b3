/*
 * world.c: the caller of the core. It keeps the duties of core.h: every call gets one answer,
 * the lease's ups and downs reach the election first, claims go to both, timers are delivered.
 * Whatever the core does passes the rules here.
 */
#include <string.h>

#include "model.h"
#include "text.h"

/* More steps at one instant, without an answer from outside, than any sane machine makes. */
#define SETTLE_MAX 32

static void tell_election(struct world *w, unsigned c, const struct event *ev);
static void tell_lease(struct world *w, unsigned c, const struct event *ev);

void cand_init(struct world *w, unsigned c)
{
	const struct setup *s = trial.setup;
	struct cand *x = &w->cands[c];
	uint8_t inc = x->inc;

	memset(x, 0, sizeof(*x));
	lease_init(&x->lease, &s->timing[c], s->own);
	election_init(&x->election, c + 1, &s->options);
	x->inc = inc;
	x->up = true;
}

void world_init(struct world *w, const struct setup *s)
{
	memset(w, 0, sizeof(*w));
	w->now_ns = BASE_NS;
	memcpy(w->bounds, s->bounds, sizeof(w->bounds));
	for (unsigned c = 0; c < N_CANDS; c++)
		cand_init(w, c);
}

/* ---- actions ---- */

static void send(struct world *w, unsigned c, unsigned slot, const struct action *a)
{
	struct slot *s = &w->cands[c].slots[slot];

	if (s->phase != PHASE_NONE) {
		rule_break(RULE_CALLS);
		return;
	}
	*s = (struct slot){.phase = PHASE_REQUEST};
	s->msg = (struct message){
		.lease = {(uint8_t)(c + 1), w->cands[c].inc, (uint8_t)a->epoch},
		.kind = a->kind,
		.nonce = (uint8_t)a->nonce,
		.term = (uint8_t)a->term,
		.floor = (uint8_t)a->floor,
		.target = (uint8_t)a->target,
		.hold = (uint8_t)((a->hold_ns + TICK_NS - 1) / TICK_NS),
	};
	/* An observer asks with the lease that it has. */
	if (a->kind == ACT_OBSERVE)
		s->msg.lease.epoch = (uint8_t)w->cands[c].lease.epoch;
}

static void hear_note(struct world *w, unsigned c, const struct action *a)
{
	struct cand *x = &w->cands[c];

	if (a->note == NOTE_BECAME) {
		x->leads = true;
		x->works = true;
		x->last_term = (uint8_t)a->term;
	} else if (a->note == NOTE_LOST) {
		x->leads = false;
	}
}

static void take_action(struct world *w, unsigned c, const struct action *a)
{
	struct event ev = {.now_ns = w->now_ns};
	char text[128];

	if (trial.story != NULL) {
		text_action(a, text, sizeof(text));
		(void)fprintf(trial.story, "    %c: %s\n", name_of(c), text);
	}
	rules_action(w, c, a);
	switch (a->kind) {
	case ACT_OPEN:
	case ACT_RENEW:
	case ACT_CLOSE: send(w, c, SLOT_LEASE, a); break;
	case ACT_CLAIMS: send(w, c, SLOT_CLAIMS, a); break;
	case ACT_LEASE_UP:
	case ACT_LEASE_DOWN:
		ev.kind = a->kind == ACT_LEASE_UP ? EV_LEASE_UP : EV_LEASE_DOWN;
		tell_election(w, c, &ev);
		break;
	case ACT_NOTE: hear_note(w, c, a); break;
	default: send(w, c, SLOT_ELECTION, a); break;
	}
}

/* While its lease lives, the work may count on all of it; when it is lost, nothing is added. */
static void update_work_end(struct world *w, unsigned c)
{
	struct cand *x = &w->cands[c];
	const struct election *e = &x->election;

	if (!x->works)
		x->work_end_ns = 0;
	else if (e->overdue_ns != NEVER && e->state == ELECTION_RESIGNING)
		x->work_end_ns = e->overdue_ns;
	else if (x->lease.state == LEASE_LIVE && e->epoch == x->lease.epoch)
		x->work_end_ns = x->lease.end_ns;
}

static void tell_election(struct world *w, unsigned c, const struct event *ev)
{
	struct cand *x = &w->cands[c];
	struct actions out;

	out.n = 0;
	election_step(&x->election, &x->lease, ev, &out);
	for (uint64_t i = 0; i < out.n; i++)
		take_action(w, c, &out.list[i]);
	update_work_end(w, c);
	/* A reminder of work that doesn't end is a word, no deed: the search does without. */
	x->election.remind_ns = NEVER;
}

static void tell_lease(struct world *w, unsigned c, const struct event *ev)
{
	struct cand *x = &w->cands[c];
	struct actions out;

	out.n = 0;
	lease_step(&x->lease, ev, &out);
	update_work_end(w, c);
	for (uint64_t i = 0; i < out.n; i++)
		take_action(w, c, &out.list[i]);
}

void world_settle(struct world *w, unsigned c)
{
	struct cand *x = &w->cands[c];
	const struct event ev = {.now_ns = w->now_ns, .kind = EV_TIMER};
	unsigned n = 0;

	if (!x->up || x->paused || x->lagging)
		return;
	for (;;) {
		if (lease_wake_ns(&x->lease) <= w->now_ns)
			tell_lease(w, c, &ev);
		else if (election_wake_ns(&x->election, &x->lease) <= w->now_ns)
			tell_election(w, c, &ev);
		else
			break;
		if (trial.broken != RULE_NONE)
			break;
		if (++n > SETTLE_MAX) {
			rule_break(RULE_L4_LIVELOCK);
			break;
		}
	}
}

/* ---- events ---- */

static bool is_for_lease(uint8_t kind)
{
	return kind == EV_OPENED || kind == EV_RENEWED || kind == EV_CLOSED || kind == EV_CLAIMS;
}

static void tell(struct world *w, unsigned c, const struct event *ev)
{
	struct event claim = *ev;

	if (is_for_lease(ev->kind) || ev->kind == EV_HINT)
		tell_lease(w, c, ev);
	if (!is_for_lease(ev->kind))
		tell_election(w, c, ev);
	if (ev->kind == EV_CLAIMS && ev->outcome == OUTCOME_OK) {
		claim.kind = EV_CLAIM;
		claim.view.held = ev->view.mine;
		tell_election(w, c, &claim);
	}
}

/* Whether the random bits of this event make a difference. */
static bool is_random(const struct world *w, unsigned c, const struct event *ev)
{
	struct cand a = w->cands[c];
	struct cand b = w->cands[c];
	struct event low = *ev;
	struct event high = *ev;
	struct actions out;

	low.random = 0;
	high.random = UINT64_MAX;
	out.n = 0;
	if (is_for_lease(ev->kind)) {
		lease_step(&a.lease, &low, &out);
		out.n = 0;
		lease_step(&b.lease, &high, &out);
	}
	if (ev->kind == EV_CLAIMS && ev->outcome == OUTCOME_OK) {
		low.kind = high.kind = EV_CLAIM;
		low.view.held = high.view.held = ev->view.mine;
	}
	if (!is_for_lease(low.kind)) {
		out.n = 0;
		election_step(&a.election, &a.lease, &low, &out);
		out.n = 0;
		election_step(&b.election, &b.lease, &high, &out);
	}
	return memcmp(&a.lease, &b.lease, sizeof(a.lease)) != 0 ||
	       memcmp(&a.election, &b.election, sizeof(a.election)) != 0;
}

void world_tell(struct world *w, unsigned c, struct event *ev)
{
	ev->now_ns = w->now_ns;
	ev->random = UINT64_MAX;
	if (trial.setup->jitter && ev->call != 0 && is_random(w, c, ev) && decide())
		ev->random = 0;
	if (trial.story != NULL && ev->call != 0)
		(void)fprintf(trial.story, "    %c <- %s %s\n", name_of(c),
			      text_event_kind(ev->kind), text_outcome(ev->outcome));
	tell(w, c, ev);
	world_settle(w, c);
}

static uint8_t answer_kind(uint8_t action)
{
	switch (action) {
	case ACT_OPEN: return EV_OPENED;
	case ACT_RENEW: return EV_RENEWED;
	case ACT_CLOSE: return EV_CLOSED;
	case ACT_CLAIMS: return EV_CLAIMS;
	case ACT_CAMPAIGN: return EV_CAMPAIGNED;
	case ACT_OBSERVE: return EV_OBSERVED;
	case ACT_RELEASE: return EV_RELEASED;
	default: return EV_ORDERED;
	}
}

static struct view view_of(const struct reply *r)
{
	return (struct view){
		.term = r->term,
		.nonce = r->nonce,
		.free_in_ns = r->free_in == NO_TICK ? NEVER : r->free_in * TICK_NS,
		.order_id = r->order_id,
		.order_term = r->order_term,
		.leader = r->leader,
		.order_target = r->order_target,
		.score = SCORE_MAX,
		.held = (r->flags & REPLY_HELD) != 0,
		.mine = (r->flags & REPLY_MINE) != 0,
		.watched = trial.setup->watched,
		.paused = (r->flags & REPLY_PAUSED) != 0,
		.target_ok = (r->flags & REPLY_TARGET_OK) != 0,
		.order = r->order,
	};
}

static uint64_t call_of(const struct cand *x, unsigned slot)
{
	if (slot == SLOT_LEASE)
		return x->lease.call;
	return slot == SLOT_CLAIMS ? x->lease.claims_call : x->election.call;
}

/* What this answer says of the lease that the caller has; it knows before the core does. */
static void note_lease(struct world *w, unsigned c, const struct event *ev)
{
	const struct cand *x = &w->cands[c];
	const struct lease *l = &x->lease;
	bool ok = ev->outcome == OUTCOME_OK;
	bool done = ok || ev->outcome == OUTCOME_REFUSED;

	switch (ev->kind) {
	case EV_OPENED:
		if (ok)
			rules_opened(w, c, l->call_epoch);
		break;
	case EV_CLOSED:
		if (done || l->ended)
			rules_closed(w, c, l->call_epoch);
		break;
	case EV_CAMPAIGNED: /* an own lease comes with its claim ... */
		if (l->own && (ok || ev->outcome == OUTCOME_UNKNOWN || ev->view.mine))
			rules_opened(w, c, x->election.epoch);
		break;
	case EV_CLAIMS:
		if (l->own && ev->view.mine && l->claims_epoch == l->epoch)
			rules_opened(w, c, l->epoch);
		break;
	case EV_RELEASED: /* ... and goes with it */
		if (l->own && done && x->election.state == ELECTION_RELEASING)
			rules_closed(w, c, x->election.epoch);
		break;
	default: break;
	}
}

void world_answer(struct world *w, unsigned c, unsigned slot, uint8_t outcome)
{
	struct cand *x = &w->cands[c];
	struct slot s = x->slots[slot];
	struct event ev = {
		.kind = answer_kind(s.msg.kind),
		.outcome = outcome,
		.call = call_of(x, slot),
	};

	x->slots[slot] = (struct slot){0};
	if (outcome == OUTCOME_OK || outcome == OUTCOME_REFUSED) {
		ev.view = view_of(&s.reply);
		ev.n_held = s.reply.n_held;
	}
	note_lease(w, c, &ev);
	world_tell(w, c, &ev);
}
