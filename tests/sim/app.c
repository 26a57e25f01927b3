/*
 * app.c: the application beside the core. Its work runs from "became" on; after "lost" it drains,
 * at once, slowly, or until it is killed. The kill time is what a guard process would enforce:
 * the end of the lease by the last good renewal, even while the process itself sleeps.
 * A bad application overruns that; then only S1 is checked, not the work.
 */
#include "sim.h"

bool app_is_healthy(const struct world *w, const struct proc *p, unsigned x)
{
	const struct options *o = &w->options[p->slot].o[x];

	return !o->check_health || p->election[x].app.score >= o->min_score;
}

bool app_works(const struct world *w, const struct proc *p, unsigned x)
{
	const struct app *a = &p->election[x].app;

	return p->inc != 0 && a->working && clock_local(&p->clock, w->now_ns) < a->kill_ns;
}

/* ---- what the application says ---- */

static void started(struct app *a)
{
	if (!a->wanted)
		a->quiet_ns = 0;
	a->wanted = true;
	a->stopped = false;
}

void app_event(struct world *w, struct proc *p, unsigned x, const struct event *ev)
{
	struct election_box *e = &p->election[x];
	bool leads = election_leads(&e->core, &proc_lease(w, p, x)->core, p->now_ns);

	switch (ev->kind) {
	case EV_START:
		e->app.restart = e->app.stopping;
		if (!e->app.stopping)
			started(&e->app);
		break;
	case EV_STOP:
		e->app.stopping = e->app.stopping || e->app.wanted;
		e->app.restart = false;
		e->app.wanted = false;
		break;
	case EV_HEALTH: e->app.score = ev->score; break;
	case EV_ACQUIRE:
		e->app.asked = true;
		e->app.asked_ns = w->now_ns;
		break;
	case EV_RESIGN:
		if (leads)
			e->app.quiet_ns = p->now_ns + ev->quiet_ns;
		break;
	case EV_ALIVE:
		if (leads)
			e->app.alive_ns = p->now_ns;
		return;
	case EV_RELEASED: /* the successor had its chance */
		if (ev->outcome == OUTCOME_OK || ev->outcome == OUTCOME_REFUSED)
			e->app.target = NOBODY;
		return;
	case EV_LEASE_DOWN: e->app.target = NOBODY; return;
	case EV_CLAIM: /* what is gone can't be handed over; found again, it is an orphan */
		if (!ev->view.held || ev->view.term != e->app.term)
			e->app.target = NOBODY;
		return;
	case EV_TRANSFER:
	case EV_DRAINED: break;
	default: return;
	}
	e->window.changes++;
}

/* ---- what it is told ---- */

static void became(struct world *w, struct proc *p, unsigned x, const struct action *n,
		   const struct event *ev)
{
	struct election_box *e = &p->election[x];
	struct app *a = &e->app;

	check_became(w, p, x, n, ev);
	a->led = true;
	a->working = true;
	a->frozen = false;
	a->stalled = false;
	a->lively = true;
	a->excused = false;
	a->term = n->term;
	a->last_term = n->term;
	a->epoch = e->core.epoch;
	a->kill_ns = proc_lease(w, p, x)->core.end_ns;
	a->alive_ns = p->now_ns;
	a->became_ns = p->now_ns;
	a->serial++;
	a->n_reminded = 0;
	e->window.changes++;
	w->n_led[x]++;
	w->n_leaderships++;
	w->last_led_ns[x] = w->now_ns;
	phase_became(w, x);
	if (e->core.options.work_timeout_ns != 0)
		queue_push(w,
			   clock_true(&p->clock, p->now_ns + e->core.options.work_timeout_ns / 3),
			   Q_ALIVE, p->slot, (uint8_t)x, a->serial);
}

static bool is_voluntary(uint8_t why)
{
	return why == WHY_STOPPED || why == WHY_RESIGNED || why == WHY_ORDERED ||
	       why == WHY_TRANSFER || why == WHY_UNHEALTHY || why == WHY_PAUSED;
}

/* How long the work takes to end by itself, if nobody kills it. */
static uint64_t draw_drain_ns(struct world *w, struct proc *p, bool voluntary)
{
	uint64_t id = SKIP_MESSAGE | (uint64_t)p->slot << 44 | p->n_messages << 8;
	uint64_t kind = rng_below(&p->rng, 3);

	p->n_messages++;
	if (w->phase > 0)
		return 0;
	if (is_quiet(w))
		return kind * p->timing.lease_ns / 50;
	if (fault_strikes(w, &p->rng, FAULT_SLOW_DRAIN, id | FAULT_SLOW_DRAIN))
		return voluntary && kind == 0 ? NEVER : rng_below(&p->rng, w->params.drain_max_ns);
	return kind == 0 ? 0 : rng_below(&p->rng, p->timing.lease_ns / (kind == 1 ? 200 : 10));
}

static void lost(struct world *w, struct proc *p, unsigned x, const struct action *n,
		 const struct event *ev)
{
	struct election_box *e = &p->election[x];
	struct app *a = &e->app;
	bool voluntary = is_voluntary(n->why);
	uint64_t drain_ns = draw_drain_ns(w, p, voluntary);
	uint64_t id = SKIP_MESSAGE | (uint64_t)p->slot << 44 | p->n_messages++ << 8;

	check_lost(w, p, x, n, ev);
	a->led = false;
	a->lost_ns = p->now_ns;
	a->why = n->why;
	w->n_led[x]--;
	w->last_led_ns[x] = w->now_ns;
	e->window.changes++;
	if (n->why == WHY_ORDERED)
		a->quiet_ns = p->now_ns + ev->view.order_quiet_ns;
	if (n->why == WHY_TRANSFER)
		a->target = ev->kind == EV_TRANSFER ? ev->target : ev->view.order_target;
	else
		a->target = NOBODY;
	if (n->why == WHY_STALLED) {
		/* It may tell long after it was ended that it has; or never, until the quiet. */
		a->stalled = true;
		drain_ns = rng_chance(&p->rng, 500) ? drain_ns : NEVER;
		a->kill_ns = min_ns(a->kill_ns, p->now_ns + timing_drain_ns(&p->timing));
	} else if (fault_strikes(w, &p->rng, FAULT_OVERRUN, id | FAULT_OVERRUN)) {
		drain_ns = rng_below(&p->rng, 4 * p->timing.lease_ns);
	} else if (!voluntary) {
		a->frozen = true;
		drain_ns = min_ns(drain_ns, a->kill_ns > p->now_ns ? a->kill_ns - p->now_ns : 0);
	}
	if (drain_ns != NEVER)
		queue_push(w, clock_true(&p->clock, p->now_ns + drain_ns), Q_DRAIN, p->slot,
			   (uint8_t)x, a->serial);
}

void app_note(struct world *w, struct proc *p, unsigned x, const struct action *n,
	      const struct event *ev)
{
	struct app *a = &p->election[x].app;

	if (a->stopped && n->note != NOTE_ERROR && n->note != NOTE_NOT_ACQUIRED)
		violate(w, INV_S8, "%s: told something of election %u after it was stopped",
			trace_name(p), x);
	switch (n->note) {
	case NOTE_BECAME: became(w, p, x, n, ev); break;
	case NOTE_LOST: lost(w, p, x, n, ev); break;
	case NOTE_STOPPED:
		if (a->led || a->working || a->wanted)
			violate(w, INV_S8, "%s: told stopped while election %u goes on",
				trace_name(p), x);
		a->stopped = true;
		a->stopping = false;
		a->target = NOBODY;
		if (a->restart) /* what comes from here on belongs to the new start */
			started(a);
		a->restart = false;
		break;
	case NOTE_ACQUIRED:
	case NOTE_NOT_ACQUIRED:
		if (!a->asked || (n->note == NOTE_ACQUIRED && !a->led))
			violate(w, INV_ANSWER, "%s: an answer to no question, or a wrong one",
				trace_name(p));
		a->asked = false;
		break;
	case NOTE_ERROR: a->n_reminded += n->why == WHY_DRAINING; break;
	default: break;
	}
	hearing_note(w, p, x, n);
}

/* ---- the work ---- */

/* The kill time moves with every good renewal, as long as the claim is held. */
void app_refresh(struct world *w, struct proc *p)
{
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		struct app *a = &p->election[x].app;
		const struct lease *l = &proc_lease(w, p, x)->core;

		if (!a->working || a->frozen || a->stalled)
			continue;
		if (l->state == LEASE_LIVE && l->epoch == a->epoch) {
			a->kill_ns = l->end_ns;
			continue;
		}
		a->frozen = true;
		if (!a->led && !w->params.bad_app)
			queue_push(w, clock_true(&p->clock, a->kill_ns), Q_DRAIN, p->slot,
				   (uint8_t)x, a->serial);
	}
}

void app_drain(struct world *w, struct proc *p, unsigned x, uint32_t serial)
{
	struct app *a = &p->election[x].app;
	struct event ev = {.kind = EV_DRAINED};

	if (!a->working || a->led || a->serial != serial)
		return;
	a->working = false;
	check_drained(w, p, x);
	if (hearing_drained(w, p, x))
		proc_tell(w, p, x, &ev);
}

void app_alive(struct world *w, struct proc *p, unsigned x, uint32_t serial)
{
	struct app *a = &p->election[x].app;
	struct event ev = {.kind = EV_ALIVE};

	if (!a->led || a->serial != serial || !a->lively)
		return;
	proc_tell(w, p, x, &ev);
	queue_push(
		w,
		clock_true(&p->clock, p->now_ns + p->election[x].core.options.work_timeout_ns / 3),
		Q_ALIVE, p->slot, (uint8_t)x, serial);
}
