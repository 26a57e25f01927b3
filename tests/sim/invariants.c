/*
 * invariants.c: what must hold, checked after every event by what the simulator knows itself: true
 * time, the store's own records, what was sent and answered and told. The core's fields
 * are read only where the promise is about them.
 */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Rounding of clocks and drift: a few nanoseconds. */
#define SLACK_NS 8
/* L4 is about averages: jitter may bunch calls. So it is counted over this many retry periods. */
#define WINDOW 16

static void check_truth(struct world *w, struct proc *p, unsigned x);
static void check_resource(struct world *w, struct proc *p, unsigned x);
static void see(struct election_box *e, uint64_t term);
static void check_margin(struct world *w, struct proc *p, unsigned idx);

static const char *const names[] = {
#define X(name, text) text,
	INVARIANTS(X)
#undef X
};

const char *invariant_name(enum invariant inv)
{
	return names[inv];
}

int invariant_find(const char *name)
{
	for (int i = 0; i < N_INVARIANTS; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

void violate(struct world *w, enum invariant inv, const char *fmt, ...)
{
	va_list ap;

	if (w->all)
		cover_violation(inv);
	if (w->violation.inv >= 0)
		return;
	w->violation.inv = (int)inv;
	w->violation.at_ns = w->now_ns;
	va_start(ap, fmt);
	(void)vsnprintf(w->violation.text, sizeof(w->violation.text), fmt, ap);
	va_end(ap);
	trace(w, NULL, "VIOLATION %s: %s", names[inv], w->violation.text);
	w->stop = !w->all;
}

/* ---- before a step: what the store says, in our own books ---- */

uint64_t good_until_ns(const struct proc *p, const struct lease_box *l, uint64_t epoch)
{
	if (l->good_epoch != epoch)
		return 0;
	return l->good_sent_ns + p->timing.renew_ns + p->timing.grace_ns;
}

static void mark_good(struct proc *p, struct lease_box *l, uint64_t epoch, uint64_t sent_ns)
{
	/* A renewal of one that was given back is answered when the next one is there already. */
	if (epoch < l->good_epoch)
		return;
	/* What comes after the end doesn't count any more (S5). */
	if (l->good_epoch == epoch && p->now_ns >= good_until_ns(p, l, epoch))
		return;
	if (l->good_epoch == epoch && sent_ns <= l->good_sent_ns)
		return;
	l->good_epoch = epoch;
	l->good_sent_ns = sent_ns;
	l->n_bad = 0;
	l->n_sent = 0;
	/* An old grant that was found late: its first renewal is overdue at once. */
	l->excused = p->now_ns > sent_ns + p->timing.renew_ns;
}

static void has_opened(struct world *w, struct proc *p, struct lease_box *l, uint64_t epoch)
{
	if (l->has_epoch != 0 && l->has_epoch != epoch)
		violate(w, INV_CLOSED, "%s has another lease before the last one is closed",
			trace_name(p));
	l->has_epoch = epoch;
}

void check_lease_heard(struct world *w, struct proc *p, unsigned idx, const struct event *ev,
		       const struct pending *call)
{
	struct lease_box *l = &p->lease[idx];
	bool done = ev->outcome == OUTCOME_OK || ev->outcome == OUTCOME_REFUSED;

	if (ev->kind == EV_OPENED && ev->outcome == OUTCOME_OK)
		has_opened(w, p, l, call->epoch);
	if (ev->kind == EV_CLOSED && (done || call->ended))
		l->has_epoch = 0;
	if (ev->kind != EV_OPENED && ev->kind != EV_RENEWED)
		return;
	l->refused_epoch = ev->outcome == OUTCOME_REFUSED ? call->epoch : 0;
	if (ev->outcome == OUTCOME_OK)
		mark_good(p, l, call->epoch, call->sent_ns);
	else if (call->epoch == l->good_epoch && ev->outcome != OUTCOME_REFUSED)
		l->n_bad++;
}

static struct sent *find_sent(struct election_box *e, uint64_t nonce, uint64_t epoch)
{
	for (unsigned i = 0; i < SENT_MAX; i++)
		if (e->sent[i].nonce == nonce && e->sent[i].epoch == epoch && nonce != 0)
			return &e->sent[i];
	if (e->doubt.nonce == nonce && e->doubt.epoch == epoch && nonce != 0)
		return &e->doubt;
	return NULL;
}

static void hear_claim(struct world *w, struct proc *p, unsigned x, uint64_t epoch, uint64_t nonce,
		       uint64_t term)
{
	struct election_box *e = &p->election[x];
	const struct sent *s = find_sent(e, nonce, epoch);

	if (e->told[0].epoch != epoch || e->told[0].nonce != nonce || e->told[0].term != term)
		e->told[1] = e->told[0];
	e->told[0] = (struct told){.epoch = epoch, .nonce = nonce, .term = term};
	if (!w->params.own || s == NULL)
		return;
	struct lease_box *l = proc_lease(w, p, x);

	/* One that lives is renewed as before, and that may have been failing already. One that
	 * was never led on may have come and gone by itself: each grant makes it anew. */
	if (l->core.state == LEASE_READY)
		l->good_epoch = 0;
	if (l->core.state == LEASE_LIVE && l->core.epoch == epoch)
		l->excused = true;
	else
		mark_good(p, l, epoch, s->sent_ns);
}

/* An own lease comes with its claim, or with what may be one, and goes with it. */
static void hear_own_lease(struct world *w, struct proc *p, unsigned x, const struct event *ev,
			   const struct pending *call)
{
	struct lease_box *l = proc_lease(w, p, x);
	bool done = ev->outcome == OUTCOME_OK || ev->outcome == OUTCOME_REFUSED;

	if (ev->kind == EV_RELEASED && done && call->epoch == l->has_epoch &&
	    p->election[x].core.state == ELECTION_RELEASING)
		l->has_epoch = 0;
	if (ev->kind == EV_CAMPAIGNED &&
	    (ev->outcome == OUTCOME_OK || ev->outcome == OUTCOME_UNKNOWN ||
	     (ev->outcome == OUTCOME_REFUSED && ev->view.mine)))
		has_opened(w, p, l, call->epoch);
	if (ev->kind == EV_CLAIM && ev->view.held && call->epoch == l->core.epoch)
		has_opened(w, p, l, call->epoch);
}

void check_heard(struct world *w, struct proc *p, unsigned x, const struct event *ev,
		 const struct pending *call)
{
	struct election_box *e = &p->election[x];
	const struct view *v = &ev->view;
	struct sent *s = find_sent(e, ev->call, call->epoch);

	if (w->params.own)
		hear_own_lease(w, p, x, ev, call);
	if (ev->kind == EV_CLAIM && v->held)
		hear_claim(w, p, x, call->epoch, v->nonce, v->term);
	if (ev->kind != EV_CAMPAIGNED)
		return;
	if (ev->outcome == OUTCOME_OK)
		hear_claim(w, p, x, call->epoch, ev->call, v->term);
	else if (ev->outcome == OUTCOME_REFUSED && v->mine)
		hear_claim(w, p, x, call->epoch, v->nonce, v->term);
	/* Rule 8: only such a one may be adopted; one carried out twice says so itself. */
	if (s != NULL)
		s->unknown = ev->outcome == OUTCOME_UNKNOWN ||
			     (ev->outcome == OUTCOME_REFUSED && v->mine && v->nonce == ev->call);
	if (s != NULL && s->unknown)
		e->doubt = *s; /* it may land long after the others are forgotten */
}

/* ---- after a step of an election ---- */

static void check_leader(struct world *w, struct proc *p, unsigned x)
{
	const struct election_box *e = &p->election[x];
	const struct options *o = &e->core.options;
	const struct lease_box *l = proc_lease(w, p, x);

	if (p->now_ns >= good_until_ns(p, l, e->core.epoch))
		violate(w, INV_S2_EARLY, "%s leads election %u past t_send + renew + grace",
			trace_name(p), x);
	if (o->work_timeout_ns != 0 && p->now_ns >= e->app.alive_ns + o->work_timeout_ns)
		violate(w, INV_L5, "%s leads election %u without a sign of life", trace_name(p), x);
	if (!e->app.wanted || o->observe_only ||
	    (o->step_down_unhealthy && !app_is_healthy(w, p, x)))
		violate(w, INV_ELIGIBLE, "%s leads election %u and must not", trace_name(p), x);
	for (unsigned i = 0; w->n_led[x] > 1 && !w->params.weak && i < w->params.n_procs; i++)
		if (&w->proc[i] != p && proc_leads(w, &w->proc[i], x))
			violate(w, INV_S1, "%s and %s both lead election %u", trace_name(p),
				trace_name(&w->proc[i]), x);
	check_truth(w, p, x);
	check_resource(w, p, x);
}

/* S9: on an exact store a leader is whom the store has. */
static void check_truth(struct world *w, struct proc *p, unsigned x)
{
	const struct election_box *e = &p->election[x];
	const struct store_record *r = &w->store.record[x];
	uint64_t term = e->core.term;

	if (w->params.weak)
		return;
	if (!store_holds(&w->store, x, w->now_ns) || r->proc != p->slot || r->inc != p->inc ||
	    r->epoch != e->core.epoch || r->nonce != e->core.nonce || r->term != term)
		violate(w, INV_S9, "%s leads election %u, but the store knows nothing of it",
			trace_name(p), x);
}

/*
 * S4: on an exact store the resource accepts every leader, and each in a term of its own. On one
 * that forgets it may meet an older term, or one term in two hands, but only of candidates that
 * never heard of the newer one: see check_term().
 */
static void check_resource(struct world *w, struct proc *p, unsigned x)
{
	const struct election_box *e = &p->election[x];
	uint64_t term = e->core.term;
	bool older = term < w->resource_term[x];
	bool shared = term == w->resource_term[x] && w->resource_owner[x] != p->inc;

	if (!w->params.weak && (older || shared))
		violate(w, INV_S4, "the resource of election %u refuses term %llu of its leader %s",
			x, (unsigned long long)term, trace_name(p));
	cover_fence(older, shared);
	if (term > w->resource_term[x])
		w->resource_owner[x] = p->inc;
	w->resource_term[x] = max_ns(w->resource_term[x], term);
}

/* S5: whether the store has just said that the claim isn't ours. */
static bool says_not_yours(const struct election_box *e, const struct event *ev)
{
	const struct view *v = &ev->view;

	if (e->state_before != ELECTION_LEADING || ev->call == 0)
		return false;
	if (ev->kind == EV_OBSERVED && ev->outcome == OUTCOME_OK && v->term >= e->app.term)
		return !v->held || !v->mine || v->term != e->app.term;
	return false;
}

static void check_seen(struct world *w, struct proc *p, unsigned x, const struct event *ev)
{
	struct election_box *e = &p->election[x];
	const struct view *v = &ev->view;
	bool won = ev->kind == EV_CAMPAIGNED && ev->outcome == OUTCOME_OK;
	bool refused = ev->kind == EV_CAMPAIGNED && ev->outcome == OUTCOME_REFUSED;
	bool looked = ev->kind == EV_OBSERVED && ev->outcome == OUTCOME_OK;

	(void)w;
	if (!won && !refused && !looked)
		return;
	see(e, v->term);
	/* Free in that term is another's as well: our own claim in it, if any, has ended. */
	if (!won && !v->mine && v->term == e->seen_term)
		e->heard_term = v->term;
}

/* The highest credible term that this candidate was told of. */
static void see(struct election_box *e, uint64_t term)
{
	/* A list of claims may have set the floor, too; it only rules out. */
	uint64_t base = e->seen_term != 0 ? e->seen_term : e->core.floor;

	if (term > TERM_MAX || (base != 0 && term > base + TERM_JUMP_MAX))
		return;
	e->seen_term = max_ns(e->seen_term, term);
}

void check_election_step(struct world *w, struct proc *p, unsigned x, const struct event *ev)
{
	const struct election_box *e = &p->election[x];
	bool leads = election_leads(&e->core, &proc_lease(w, p, x)->core, p->now_ns);

	check_seen(w, p, x, ev);
	if (w->params.own)
		check_margin(w, p, x);
	if (leads != e->app.led || (leads && e->core.term != e->app.term))
		violate(w, INV_S8_TOLD, "%s %s election %u, but the application was told otherwise",
			trace_name(p), leads ? "leads" : "doesn't lead", x);
	if (!leads)
		return;
	if (says_not_yours(e, ev))
		violate(w, INV_S5_LOSS, "%s heard that election %u isn't its own, and leads on",
			trace_name(p), x);
	if (ev->kind == EV_OBSERVED && ev->outcome == OUTCOME_OK && ev->view.paused &&
	    ev->view.term == e->app.term && e->state_before == ELECTION_LEADING)
		violate(w, INV_ELIGIBLE, "%s heard that election %u is paused, and leads on",
			trace_name(p), x);
	check_leader(w, p, x);
}

/* ---- the notes ---- */

/* S9: only a grant makes a leader: one that was just answered, or one that was in doubt. */
static bool is_granted(struct election_box *e, const struct action *a, const struct event *ev)
{
	const struct view *v = &ev->view;
	const struct sent *s = find_sent(e, v->nonce, e->core.epoch);

	if (a->term != v->term)
		return false;
	if (ev->kind == EV_CAMPAIGNED && ev->outcome == OUTCOME_OK)
		return true;
	if (ev->kind == EV_CAMPAIGNED && ev->outcome == OUTCOME_REFUSED)
		return v->mine && s != NULL && s->unknown;
	return ev->kind == EV_CLAIM && v->held && s != NULL && s->unknown;
}

/*
 * S4, on every store, whatever it forgets: nobody leads in a term that is not above all that it
 * has heard of. Its own claim it may have seen before it is adopted; another's term is never its
 * own.
 */
static void check_term(struct world *w, struct proc *p, unsigned x, uint64_t term, bool won)
{
	const struct election_box *e = &p->election[x];

	if (term > TERM_MAX || term < e->seen_term || term <= e->heard_term ||
	    (won && term == e->seen_term))
		violate(w, INV_S4,
			"%s leads election %u in term %llu, has seen %llu, and %llu as another's",
			trace_name(p), x, (unsigned long long)term,
			(unsigned long long)e->seen_term, (unsigned long long)e->heard_term);
}

void check_became(struct world *w, struct proc *p, unsigned x, const struct action *a,
		  const struct event *ev)
{
	struct election_box *e = &p->election[x];
	bool won = ev->kind == EV_CAMPAIGNED && ev->outcome == OUTCOME_OK;

	if (e->app.led)
		violate(w, INV_S8, "%s became leader of election %u twice", trace_name(p), x);
	if (e->app.working)
		violate(w, INV_S7_ORDER, "%s leads election %u again before its work has ended",
			trace_name(p), x);
	if (!is_granted(e, a, ev))
		violate(w, INV_S9, "%s became leader of election %u without a grant", trace_name(p),
			x);
	if (p->now_ns >= good_until_ns(p, proc_lease(w, p, x), e->core.epoch))
		violate(w, INV_S5_LATE, "%s reports a grant of election %u that came too late",
			trace_name(p), x);
	if (!app_is_healthy(w, p, x) || (e->core.options.manual && !e->app.asked))
		violate(w, INV_ELIGIBLE, "%s became leader of election %u and must not",
			trace_name(p), x);
	check_term(w, p, x, a->term, won);
	if (a->term <= e->app.last_term || (!w->params.weak && a->term <= w->highest_term[x]))
		violate(w, INV_S3, "%s leads election %u in term %llu, which is not higher",
			trace_name(p), x, (unsigned long long)a->term);
	w->highest_term[x] = max_ns(w->highest_term[x], a->term);
	see(e, a->term);
	for (unsigned i = 0; i < w->params.n_procs; i++)
		if (&w->proc[i] != p && !w->params.weak && !w->params.bad_app &&
		    app_works(w, &w->proc[i], x))
			violate(w, INV_S7_WORK, "the works of %s and %s in election %u overlap",
				trace_name(p), trace_name(&w->proc[i]), x);
}

void check_lost(struct world *w, struct proc *p, unsigned x, const struct action *a,
		const struct event *ev)
{
	const struct election_box *e = &p->election[x];
	const struct view *v = &ev->view;
	bool observed = ev->kind == EV_OBSERVED && ev->outcome == OUTCOME_OK;

	if (!e->app.led || a->term != e->app.term)
		violate(w, INV_S8,
			"%s lost term %llu of election %u and had not become leader in it",
			trace_name(p), (unsigned long long)a->term, x);
	if (a->why == WHY_ORDERED &&
	    !(observed && v->order == ORDER_RESIGN && v->order_term == a->term))
		violate(w, INV_ORDER, "%s obeys an order that is not for term %llu", trace_name(p),
			(unsigned long long)a->term);
	if (a->why == WHY_TRANSFER &&
	    !(ev->kind == EV_TRANSFER && ev->target_ok && ev->target != p->inc) &&
	    !(observed && v->order == ORDER_TRANSFER && v->order_term == a->term && v->target_ok))
		violate(w, INV_ORDER, "%s transfers election %u without a good reason",
			trace_name(p), x);
}

/* S7: one reminder per lease while the work doesn't end. */
void check_drained(struct world *w, struct proc *p, unsigned x)
{
	const struct app *a = &p->election[x].app;
	uint64_t n = (p->now_ns - a->lost_ns) / p->timing.lease_ns;

	if (a->n_reminded > n + 1)
		violate(w, INV_S7_REMIND, "%s: %u reminders in %llu leases", trace_name(p),
			a->n_reminded, (unsigned long long)n);
	if (!a->excused && !a->stalled && a->n_reminded + 1 < n)
		violate(w, INV_S7_REMIND, "%s: only %u reminders in %llu leases", trace_name(p),
			a->n_reminded, (unsigned long long)n);
}

/* ---- actions of an election ---- */

static void check_rate(struct world *w, struct proc *p, unsigned x)
{
	struct window *v = &p->election[x].window;
	uint64_t elapsed = (p->now_ns - v->since_ns) / p->timing.retry_ns;
	uint64_t changes = v->changes + w->n_changes[x] - v->others;

	v->calls++;
	if (v->calls > 16 + 4 * elapsed + 8 * changes)
		violate(w, INV_L4_RATE, "%s: %llu calls of election %u in %llu retry periods",
			trace_name(p), (unsigned long long)v->calls, x,
			(unsigned long long)elapsed);
	if (elapsed >= WINDOW)
		*v = (struct window){.since_ns = p->now_ns, .others = w->n_changes[x]};
}

static void check_campaign(struct world *w, struct proc *p, unsigned x, const struct action *a)
{
	struct election_box *e = &p->election[x];
	const struct options *o = &e->core.options;

	e->sent[e->n_sent++ % SENT_MAX] =
		(struct sent){.nonce = a->nonce, .epoch = a->epoch, .sent_ns = p->now_ns};
	if (a->floor < e->seen_term)
		violate(w, INV_S4_FLOOR, "%s campaigns with floor %llu, and has seen %llu",
			trace_name(p), (unsigned long long)a->floor,
			(unsigned long long)e->seen_term);
	if (!e->app.wanted || o->observe_only || !app_is_healthy(w, p, x) ||
	    (o->manual && !e->app.asked) || (!e->app.asked && p->now_ns < e->app.quiet_ns))
		violate(w, INV_ELIGIBLE, "%s campaigns for election %u and must not", trace_name(p),
			x);
}

static void check_release(struct world *w, struct proc *p, unsigned x, const struct action *a)
{
	const struct election_box *e = &p->election[x];
	const struct app *app = &e->app;
	bool known = false;

	for (unsigned i = 0; i < 2; i++)
		known = known || (e->told[i].epoch == a->epoch && e->told[i].nonce == a->nonce &&
				  e->told[i].term == a->term);
	if (!known)
		violate(w, INV_S6, "%s gives back what it was never given in election %u",
			trace_name(p), x);
	if (app->led)
		violate(w, INV_S7_ORDER, "%s gives back election %u before it has told of the loss",
			trace_name(p), x);
	if (app->working &&
	    !(app->stalled && p->now_ns >= app->lost_ns + timing_drain_ns(&p->timing)))
		violate(w, INV_S7_ORDER, "%s gives back election %u while the work runs",
			trace_name(p), x);
	if (a->term == app->term && app->target != NOBODY && app->why == WHY_TRANSFER &&
	    (a->target != app->target || a->hold_ns == 0))
		violate(w, INV_TRANSFER, "%s gives back election %u without its successor",
			trace_name(p), x);
}

static void check_order(struct world *w, struct proc *p, unsigned x, const struct action *a)
{
	struct election_box *e = &p->election[x];
	const struct options *o = &e->core.options;

	if (o->preempt_ns == 0 || a->target != p->inc || !e->app.wanted ||
	    !app_is_healthy(w, p, x) ||
	    (e->app.ordered_ns != 0 && p->now_ns < e->app.ordered_ns + o->preempt_ns))
		violate(w, INV_PREEMPT, "%s asks for the place in election %u and must not",
			trace_name(p), x);
	e->app.ordered_ns = p->now_ns;
}

void check_action(struct world *w, struct proc *p, unsigned x, const struct action *a)
{
	check_rate(w, p, x);
	if (a->kind == ACT_CAMPAIGN)
		check_campaign(w, p, x, a);
	else if (a->kind == ACT_RELEASE)
		check_release(w, p, x, a);
	else if (a->kind == ACT_ORDER)
		check_order(w, p, x, a);
}

/* ---- the lease ---- */

static void check_close(struct world *w, struct proc *p, unsigned idx, const struct action *a)
{
	if (p->lease[idx].has_epoch != a->epoch)
		violate(w, INV_CLOSED, "%s closes a lease that it doesn't have", trace_name(p));
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		const struct app *app = &p->election[x].app;

		if ((w->params.own && idx != x) || app->epoch != a->epoch || !app->working)
			continue;
		if (app->led || p->now_ns < app->kill_ns)
			violate(w, INV_S7_ORDER, "%s closes its lease while the work of %u runs",
				trace_name(p), x);
	}
}

void check_closed(struct world *w, struct proc *p, unsigned idx)
{
	struct lease_box *l = &p->lease[idx];
	bool over = l->core.state == LEASE_CLOSED || l->core.state == LEASE_OPENING;

	if (l->has_epoch != 0 && (over || l->has_epoch != l->core.epoch))
		violate(w, INV_CLOSED, "%s doesn't close a lease that it had", trace_name(p));
	if (l->core.n_started > 0)
		l->unused_ns = NEVER;
	else if (l->unused_ns == NEVER)
		l->unused_ns = w->now_ns;
}

void check_lease_action(struct world *w, struct proc *p, unsigned idx, const struct action *a)
{
	struct lease_box *l = &p->lease[idx];
	struct window *v = &l->window;
	uint64_t retries = (p->now_ns - v->since_ns) / p->timing.retry_ns;
	uint64_t renewals = (p->now_ns - v->since_ns) / p->timing.renew_ns;

	if (a->kind == ACT_RENEW)
		l->n_sent++;
	if (a->kind == ACT_CLOSE)
		check_close(w, p, idx, a);
	if (a->epoch == 0 || (a->kind == ACT_RENEW && a->epoch != l->good_epoch))
		violate(w, INV_S6, "%s renews a lease that it was never given", trace_name(p));
	v->calls++;
	if (v->calls > 12 + 2 * renewals + 4 * retries + 6 * v->changes)
		violate(w, INV_L4_LEASE, "%s: %llu calls of its lease in %llu retry periods",
			trace_name(p), (unsigned long long)v->calls, (unsigned long long)retries);
	if (retries >= WINDOW)
		*v = (struct window){.since_ns = p->now_ns};
}

/* S2: by the worst rate that the bound allows, the work's end comes before the store's. */
static void check_margin(struct world *w, struct proc *p, unsigned idx)
{
	struct lease_box *l = &p->lease[idx];
	const struct store_lease *s;
	uint64_t left_ns, worst_ns;

	if (l->core.state != LEASE_LIVE || w->params.weak ||
	    (l->checked_end_ns == l->core.end_ns && l->checked_deadline_ns == l->core.deadline_ns))
		return;
	l->checked_end_ns = l->core.end_ns;
	l->checked_deadline_ns = l->core.deadline_ns;
	s = store_find(&w->store, p->slot, p->inc, idx, l->core.epoch);
	left_ns = max_ns(l->core.end_ns, l->core.deadline_ns) - p->now_ns;
	worst_ns = (left_ns / p->worst_num << 20) + (left_ns % p->worst_num << 20) / p->worst_num;
	/* An own lease is gone with its claim, when the release has landed but isn't answered. */
	if (s == NULL && w->params.own && !proc_leads(w, p, idx))
		return;
	if (s == NULL || w->now_ns + worst_ns > s->expires_ns + SLACK_NS)
		violate(w, INV_S2_MARGIN, "%s counts on its lease longer than the store does",
			trace_name(p));
	if (l->core.end_ns < l->core.deadline_ns + timing_drain_ns(&p->timing))
		violate(w, INV_S2_MARGIN, "%s leaves less than the drain time", trace_name(p));
}

/* L6: lost by the clock, although nothing was late and nothing failed, or not enough of it. */
static void check_loss(struct world *w, struct proc *p, unsigned idx)
{
	const struct lease_box *l = &p->lease[idx];
	const struct pending *c = &l->pending[0];
	uint32_t n_bad = l->n_bad;

	if (l->excused || l->core.why_down != WHY_EXPIRED)
		return;
	if (c->call != 0 && c->kind == ACT_RENEW && p->now_ns >= c->limit_ns)
		n_bad++;
	if (n_bad == 0)
		violate(w, INV_L6, "%s lost its lease, and the store had answered in time",
			trace_name(p));
	else if (l->n_sent < 3)
		violate(w, INV_L6_RETRY, "%s lost its lease after %u tries only", trace_name(p),
			l->n_sent);
}

void check_lease_step(struct world *w, struct proc *p, unsigned idx, const struct event *ev,
		      uint8_t state_before)
{
	const struct lease_box *l = &p->lease[idx];

	check_margin(w, p, idx);
	if (state_before == LEASE_LIVE && l->core.state != LEASE_LIVE)
		check_loss(w, p, idx);
	if (ev->kind != EV_RENEWED || ev->outcome != OUTCOME_REFUSED || state_before != LEASE_LIVE)
		return;
	for (unsigned x = 0; x < w->params.n_elections; x++)
		if ((!w->params.own || x == idx) && proc_leads(w, p, x) &&
		    p->election[x].core.epoch == l->refused_epoch)
			violate(w, INV_S5_LOSS, "%s heard that its lease is gone, and leads %u on",
				trace_name(p), x);
}

/* ---- time ---- */

void check_wakes(struct world *w, struct proc *p, uint64_t wake_ns)
{
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		const struct election_box *e = &p->election[x];
		uint64_t end_ns;

		if (!e->app.led)
			continue;
		end_ns = good_until_ns(p, proc_lease(w, p, x), e->core.epoch);
		if (e->core.options.work_timeout_ns != 0)
			end_ns = min_ns(end_ns, e->app.alive_ns + e->core.options.work_timeout_ns);
		if (wake_ns > end_ns)
			violate(w, INV_WAKE, "%s would sleep past the end of its leadership",
				trace_name(p));
	}
}

void check_instant(struct world *w, struct proc *p)
{
	if (p->instant_ns != w->now_ns)
		p->n_at_instant = 0;
	p->instant_ns = w->now_ns;
	if (++p->n_at_instant == 1000) {
		violate(w, INV_ADVANCE, "%s: time doesn't advance", trace_name(p));
		w->stop = true;
	}
}
