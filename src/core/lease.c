/*
 * lease.c: the machine of lease.h. Every step looks at the clock first, then takes the
 * event, then sends what is due. At most one of open, renew and close is under way.
 */
#include "core/lease.h"

static void expire(struct lease *l, const struct event *ev, struct actions *out);
static void lease_opened(struct lease *l, const struct event *ev, struct actions *out);
static void lease_renewed(struct lease *l, const struct event *ev, struct actions *out);
static void closed(struct lease *l, const struct event *ev);
static void told_claims(struct lease *l, const struct event *ev);
static void lease_act(struct lease *l, const struct event *ev, struct actions *out);
static void check(const struct lease *l);

void lease_init(struct lease *l, const struct timing *t, bool own)
{
	*l = (struct lease){.timing = *t, .own = own};
}

void lease_step(struct lease *l, const struct event *ev, struct actions *out)
{
	bool answer = ev->call != 0 && ev->call == l->call;

	expire(l, ev, out);
	switch (ev->kind) {
	case EV_OPENED:
		if (answer && l->call_kind == ACT_OPEN)
			lease_opened(l, ev, out);
		break;
	case EV_RENEWED:
		if (answer && l->call_kind == ACT_RENEW)
			lease_renewed(l, ev, out);
		break;
	case EV_CLOSED:
		if (answer && l->call_kind == ACT_CLOSE)
			closed(l, ev);
		break;
	case EV_CLAIMS:
		if (ev->call != 0 && ev->call == l->claims_call)
			told_claims(l, ev);
		break;
	case EV_HINT: /* the store may be there again: don't sit out a long backoff (L4) */
		if (l->attempt > 0)
			l->next_ns = min_ns(l->next_ns, l->call_ns + l->timing.retry_ns);
		break;
	default: break;
	}
	lease_act(l, ev, out);
	check(l);
}

static void die(struct lease *l, uint8_t why, struct actions *out)
{
	l->state = LEASE_DEAD;
	l->deadline_ns = 0;
	l->why_down = why;
	l->attempt = 0;
	actions_add(out, ACT_LEASE_DOWN, why)->epoch = l->epoch;
}

/* S2: the deadline ends the lease, whatever else this event brings. */
static void expire(struct lease *l, const struct event *ev, struct actions *out)
{
	if (l->state == LEASE_LIVE && ev->now_ns >= l->deadline_ns)
		die(l, WHY_EXPIRED, out);
}

/* Rule 1: the holder counts from before the send. False: too late to be of use (S5). */
static bool lease_prolong(struct lease *l, uint64_t sent_ns, uint64_t now_ns)
{
	uint64_t deadline_ns = sent_ns + l->timing.renew_ns + l->timing.grace_ns;

	l->attempt = 0;
	if (now_ns >= deadline_ns)
		return false;
	l->state = LEASE_LIVE;
	l->sent_ns = sent_ns;
	l->deadline_ns = deadline_ns;
	l->end_ns = sent_ns + timing_end_ns(&l->timing);
	l->next_ns = sent_ns + l->timing.renew_ns;
	return true;
}

static void begin_close(struct lease *l)
{
	l->state = LEASE_CLOSING;
	l->deadline_ns = 0;
	l->attempt = 0;
	l->next_ns = 0;
}

static void lease_opened(struct lease *l, const struct event *ev, struct actions *out)
{
	l->call = 0;
	l->opened = ev->outcome == OUTCOME_OK;
	if (!l->opened) {
		l->state = LEASE_CLOSED;
		l->next_ns = ev->now_ns + timing_backoff_ns(&l->timing, l->attempt, ev->random);
		count_up(&l->attempt);
		actions_add(out, ACT_NOTE, WHY_FAILED)->note = NOTE_ERROR;
		actions_add(out, ACT_LEASE_DOWN, WHY_FAILED)->epoch = l->epoch;
	} else if (lease_prolong(l, l->call_ns, ev->now_ns)) {
		actions_add(out, ACT_LEASE_UP, WHY_OPENED)->epoch = l->epoch;
	} else {
		l->why_down = WHY_LATE;
		begin_close(l);
	}
}

/*
 * The first retry follows at once, on a fresh connection, because a dead one is the usual cause.
 * Later retries back off, but another try must still fit before the deadline. So two failed tries
 * are always survived, even where each took its whole time and a little more (L6).
 */
static void retry_renewal(struct lease *l, const struct event *ev)
{
	uint64_t last_ns = l->deadline_ns - timing_call_ns(&l->timing);
	uint64_t next_ns = ev->now_ns;

	if (l->attempt > 0)
		next_ns += timing_backoff_ns(&l->timing, l->attempt - 1u, ev->random);
	if (l->attempt < 2 || ev->now_ns < last_ns)
		next_ns = min_ns(next_ns, max_ns(ev->now_ns, last_ns));
	l->next_ns = next_ns;
	count_up(&l->attempt);
}

static void lease_renewed(struct lease *l, const struct event *ev, struct actions *out)
{
	l->call = 0;
	/* A late answer doesn't bring back the dead, nor speak for a successor. */
	if (l->state != LEASE_LIVE || l->call_epoch != l->epoch)
		return;
	if (ev->outcome == OUTCOME_OK) {
		/* expire() has seen to it that this is in time. */
		lease_prolong(l, l->call_ns, ev->now_ns);
		/* L3: a claim that landed late, or was taken from outside, shows here. */
		if (ev->n_held < l->least_held || ev->n_held > l->most_held)
			lease_ask(l, WHY_COUNT);
	} else if (ev->outcome == OUTCOME_REFUSED) {
		die(l, WHY_REFUSED, out);
	} else {
		retry_renewal(l, ev);
		actions_add(out, ACT_NOTE, WHY_FAILED)->note = NOTE_ERROR;
	}
}

static void end_close(struct lease *l)
{
	l->state = LEASE_CLOSED;
	l->opened = false;
	l->next_ns = 0;
	l->attempt = 0;
}

static void closed(struct lease *l, const struct event *ev)
{
	l->call = 0;
	if (ev->outcome == OUTCOME_OK || ev->outcome == OUTCOME_REFUSED || l->ended) {
		end_close(l);
		return;
	}
	l->next_ns = ev->now_ns + timing_backoff_ns(&l->timing, l->attempt, ev->random);
	count_up(&l->attempt);
}

static void told_claims(struct lease *l, const struct event *ev)
{
	uint64_t call = l->claims_call;

	l->claims_call = 0;
	if (l->claims_epoch != l->epoch)
		return;
	if (ev->outcome == OUTCOME_OK) {
		l->claims_answered = call;
		l->claims_attempt = 0;
		return;
	}
	l->ask = true;
	l->claims_next_ns =
		ev->now_ns + timing_backoff_ns(&l->timing, l->claims_attempt, ev->random);
	count_up(&l->claims_attempt);
}

static void lease_send(struct lease *l, const struct event *ev, uint8_t kind, uint8_t why,
		       struct actions *out)
{
	struct action *a = actions_add(out, kind, why);

	l->call = ++l->serial;
	l->call_kind = kind;
	l->call_epoch = l->epoch;
	l->call_ns = ev->now_ns;
	if (kind != ACT_CLOSE)
		l->tried_ns = ev->now_ns;
	l->least_held = l->n_sure;
	l->most_held = l->n_sure + l->n_maybe;
	a->call = l->call;
	a->epoch = l->epoch;
	a->limit_ns = ev->now_ns + timing_call_ns(&l->timing);
}

/* A new incarnation: nothing of the old one is valid here, nor counted (rule 7). */
static void renew_identity(struct lease *l)
{
	l->epoch++;
	l->n_sure = 0;
	l->n_maybe = 0;
	l->n_work = 0;
	l->ask = false;
	l->claims_attempt = 0;
	l->claims_next_ns = 0;
	l->opened = false;
	l->keep = false;
}

static void open_lease(struct lease *l, const struct event *ev, struct actions *out)
{
	renew_identity(l);
	if (l->own) {
		l->state = LEASE_READY;
		actions_add(out, ACT_LEASE_UP, WHY_STARTED)->epoch = l->epoch;
		return;
	}
	l->state = LEASE_OPENING;
	lease_send(l, ev, ACT_OPEN, l->attempt > 0 ? WHY_RETRY : WHY_STARTED, out);
}

/*
 * L3: the close is tried until it is confirmed, or until the lease has surely ended by itself. Then
 * it is sent once more, so that the caller drops what it has of the lease. A lease that is to keep
 * its claim is closed only when it has ended.
 */
static void close_lease(struct lease *l, const struct event *ev, struct actions *out)
{
	uint64_t gone_ns = l->tried_ns + timing_gone_ns(&l->timing);

	l->ended = ev->now_ns >= gone_ns;
	if (!l->opened) {
		end_close(l);
	} else if (lease_is_left(l) && !l->ended) {
		l->next_ns = gone_ns;
	} else {
		lease_send(l, ev, ACT_CLOSE, l->why_down, out);
		out->list[out->n - 1].ended = l->ended;
	}
}

static void ask_claims(struct lease *l, const struct event *ev, struct actions *out)
{
	struct action *a = actions_add(out, ACT_CLAIMS, l->why_ask);

	l->ask = false;
	l->claims_call = ++l->serial;
	l->claims_epoch = l->epoch;
	a->call = l->claims_call;
	a->epoch = l->epoch;
	a->limit_ns = ev->now_ns + timing_call_ns(&l->timing);
}

static bool asks_claims(const struct lease *l)
{
	return l->ask && l->claims_call == 0 && (l->state == LEASE_LIVE || l->state == LEASE_READY);
}

static bool is_unused(const struct lease *l)
{
	return l->n_started == 0 && (l->state == LEASE_LIVE || l->state == LEASE_READY);
}

/*
 * S7: the dead lease is kept until the work on it is over, or had its time. An own lease is also
 * kept until its campaign is answered: that campaign may make the lease anew, and then the close
 * gives that back, too (L3).
 */
static uint64_t close_due_ns(const struct lease *l)
{
	if (l->call != 0 || (l->own && l->n_maybe > 0))
		return NEVER;
	return l->n_work == 0 ? 0 : l->end_ns;
}

static void lease_act(struct lease *l, const struct event *ev, struct actions *out)
{
	bool due = l->call == 0 && ev->now_ns >= l->next_ns;

	if (asks_claims(l) && ev->now_ns >= l->claims_next_ns)
		ask_claims(l, ev, out);
	if (is_unused(l)) {
		l->why_down = WHY_UNUSED;
		begin_close(l);
		due = l->call == 0;
	}
	if (l->state == LEASE_DEAD && ev->now_ns >= close_due_ns(l)) {
		begin_close(l);
		due = true;
	}
	if (!due)
		return;
	if (l->state == LEASE_CLOSING)
		close_lease(l, ev, out);
	if (l->state == LEASE_CLOSED && l->n_started > 0)
		open_lease(l, ev, out);
	else if (l->state == LEASE_LIVE)
		lease_send(l, ev, ACT_RENEW, l->attempt > 0 ? WHY_RETRY : WHY_DUE, out);
}

uint64_t lease_wake_ns(const struct lease *l)
{
	uint64_t next_ns = l->call != 0 ? NEVER : l->next_ns;
	uint64_t ask_ns = asks_claims(l) ? l->claims_next_ns : NEVER;

	if (is_unused(l))
		return 0;
	switch (l->state) {
	case LEASE_CLOSED: return l->n_started > 0 ? next_ns : NEVER;
	case LEASE_READY: return ask_ns;
	case LEASE_LIVE: return min_ns(l->deadline_ns, min_ns(next_ns, ask_ns));
	case LEASE_DEAD: return close_due_ns(l);
	default: /* OPENING, CLOSING */ return next_ns;
	}
}

void lease_enlist(struct lease *l)
{
	if (lease_is_left(l)) /* close it now: it is in the way of the next one */
		l->next_ns = 0;
	l->n_started++;
}

void lease_leave(struct lease *l)
{
	CORE_ASSERT(l->n_started > 0);
	l->n_started--;
}

void lease_keep(struct lease *l)
{
	l->keep = true;
}

bool lease_is_left(const struct lease *l)
{
	return l->state == LEASE_CLOSING && l->keep && l->n_started == 0;
}

bool lease_bears(const struct lease *l, uint64_t epoch, uint64_t now_ns)
{
	return l->epoch == epoch && l->state == LEASE_LIVE && now_ns < l->deadline_ns;
}

bool lease_ready(const struct lease *l, uint64_t now_ns)
{
	return l->state == LEASE_READY || lease_bears(l, l->epoch, now_ns);
}

bool lease_stands(const struct lease *l, uint64_t epoch)
{
	return l->epoch == epoch && (l->state == LEASE_LIVE || l->state == LEASE_READY);
}

void lease_doubt(struct lease *l, uint64_t now_ns)
{
	CORE_ASSERT(l->own);
	l->opened = true;
	l->tried_ns = now_ns; /* the campaign landed before now, whenever it was sent */
}

void lease_grant(struct lease *l, uint64_t sent_ns, uint64_t now_ns)
{
	lease_doubt(l, now_ns);
	if (l->state != LEASE_READY)
		return;
	if (!lease_prolong(l, sent_ns, now_ns)) {
		l->why_down = WHY_LATE;
		begin_close(l);
	}
}

void lease_spend(struct lease *l)
{
	CORE_ASSERT(l->own && l->state == LEASE_LIVE);
	renew_identity(l);
	l->state = LEASE_READY;
	l->deadline_ns = 0;
}

void lease_ask(struct lease *l, uint8_t why)
{
	l->ask = true;
	l->why_ask = why;
}

/* Keeps the counts true, and notes their extremes since the last renewal was sent. */
void lease_tally(struct lease *l, struct tally *was, bool sure, bool maybe, bool work)
{
	if (was->epoch == l->epoch) {
		l->n_sure -= was->sure;
		l->n_maybe -= was->maybe;
		l->n_work -= was->work;
	}
	*was = (struct tally){.epoch = l->epoch, .sure = sure, .maybe = maybe, .work = work};
	l->n_sure += sure;
	l->n_maybe += maybe;
	l->n_work += work;
	if (l->n_sure < l->least_held)
		l->least_held = l->n_sure;
	if (l->n_sure + l->n_maybe > l->most_held)
		l->most_held = l->n_sure + l->n_maybe;
}

static void check(const struct lease *l)
{
	CORE_ASSERT((l->state == LEASE_LIVE) == (l->deadline_ns != 0));
	CORE_ASSERT(l->state != LEASE_LIVE || l->deadline_ns < l->end_ns);
	CORE_ASSERT(l->state != LEASE_READY || l->own);
	CORE_ASSERT(l->state != LEASE_OPENING || l->call != 0);
	CORE_ASSERT(l->opened || (l->state != LEASE_LIVE && l->state != LEASE_DEAD));
	CORE_ASSERT(!l->opened || (l->state != LEASE_CLOSED && l->state != LEASE_OPENING));
	CORE_ASSERT(l->call <= l->serial && l->claims_call <= l->serial);
}
