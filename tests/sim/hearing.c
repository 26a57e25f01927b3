/*
 * hearing.c: the third machine in the simulator: between the core and the application of app.c
 * stands the real core/audience.c. Notes of the core go in, the application takes its events late
 * or at once, and EV_DRAINED comes only from the machine's word. What is heard is checked: BECAME
 * and LOST in pairs (S8-heard), "drained" when the work has ended and not before (S7-heard).
 *
 * Applications differ, by dice of their own, so that no other draw of a world changes: one has a
 * handler, one pulls events, one enters contexts, two drain by hand. All keep their word.
 */
#include "sim.h"

enum manner {
	BY_HANDLER, /* the handler of LOST returns when the work has ended */
	BY_PULLING, /* LOST is done when the work has ended */
	BY_CONTEXT, /* the work is a context, left when it has ended */
	BY_HAND,    /* the same, and events are pumped meanwhile */
	BY_WORD,    /* the work's end is said with its term */
	N_MANNERS,
};

void hearing_init(struct world *w, struct proc *p, unsigned x)
{
	struct hearing *h = &p->election[x].hearing;
	uint64_t life = (uint64_t)p->inc << 16 | p->election[x].gen << 4 | x;

	*h = (struct hearing){.rng = rng_stream(w->seed, UINT64_C(0x68656172), life)};
	h->manner = (uint8_t)rng_below(&h->rng, N_MANNERS);
	audience_init(&h->machine, h->manner == BY_HANDLER,
		      h->manner == BY_HAND || h->manner == BY_WORD, h->manner == BY_HAND);
}

static struct audience_result step(struct world *w, struct proc *p, unsigned x,
				   const struct audience_event *ev)
{
	struct election_box *e = &p->election[x];
	struct audience_result r = audience_step(&e->hearing.machine, ev);

	if (r.drained && e->app.working)
		violate(w, INV_S7_HEARD, "%s: the work of election %u counts as ended, and runs",
			trace_name(p), x);
	e->hearing.drained = e->hearing.drained || r.drained;
	return r;
}

static void say(struct world *w, struct proc *p, unsigned x, uint8_t kind)
{
	(void)step(w, p, x, &(struct audience_event){.kind = kind});
}

/* ---- what the application hears ---- */

static void heard(struct world *w, struct proc *p, unsigned x, const struct audience_result *r)
{
	struct hearing *h = &p->election[x].hearing;
	bool ok = true;

	if (r->news == NEWS_BECAME) {
		ok = !h->told_leads && r->term > h->told_term;
		h->told_leads = true;
		h->told_term = r->term;
	} else if (r->news == NEWS_LOST) {
		ok = h->told_leads && r->term == h->told_term;
		h->told_leads = false;
	} else if (r->news == NEWS_STOPPED) {
		ok = !h->told_leads;
	} else if (r->news == NEWS_RENEWED) {
		ok = h->manner == BY_HAND;
	}
	if (!ok)
		violate(w, INV_S8_HEARD, "%s: election %u: news %u of term %llu out of turn",
			trace_name(p), x, r->news, (unsigned long long)r->term);
}

/* Takes one event; whoever works on holds on to LOST. False: there is none, or one is held. */
static bool take_one(struct world *w, struct proc *p, unsigned x)
{
	struct hearing *h = &p->election[x].hearing;
	uint64_t token = ++h->tokens;
	struct audience_result r =
		step(w, p, x, &(struct audience_event){.kind = AUDIENCE_TAKE, .token = token});

	if (r.refused)
		return false;
	heard(w, p, x, &r);
	h->held = 0;
	if (r.news == NEWS_LOST && p->election[x].app.working &&
	    (h->manner == BY_HANDLER || h->manner == BY_PULLING)) {
		h->held = token;
		return false;
	}
	(void)step(w, p, x, &(struct audience_event){.kind = AUDIENCE_DONE, .token = token});
	return true;
}

static void pump(struct world *w, struct proc *p, unsigned x, unsigned permille)
{
	struct hearing *h = &p->election[x].hearing;

	while (h->held == 0 && rng_chance(&h->rng, permille) && take_one(w, p, x))
		;
}

/* ---- what the core says ---- */

void hearing_note(struct world *w, struct proc *p, unsigned x, const struct action *n)
{
	struct election_box *e = &p->election[x];
	struct hearing *h = &e->hearing;
	struct audience_event ev = {.kind = AUDIENCE_NOTE,
				    .note = n->note,
				    .term = n->term,
				    .why = n->why,
				    .now_ns = p->now_ns,
				    .drain_ns = timing_drain_ns(&p->timing),
				    .wanted = e->core.wanted,
				    .has_puller = true};

	if (n->note == NOTE_CHANGED || n->note == NOTE_ERROR)
		ev = (struct audience_event){.kind = AUDIENCE_NEWS,
					     .news = n->note == NOTE_CHANGED ? NEWS_CHANGED
									     : NEWS_ERROR};
	else if (n->note != NOTE_BECAME && n->note != NOTE_LOST && n->note != NOTE_STOPPED)
		return;
	(void)step(w, p, x, &ev);
	if (n->note == NOTE_BECAME && (h->manner == BY_CONTEXT || h->manner == BY_HAND)) {
		ev = (struct audience_event){.kind = AUDIENCE_ENTER, .term = n->term};
		h->entered = !step(w, p, x, &ev).refused;
		if (!h->entered)
			violate(w, INV_S7_HEARD, "%s: can't enter election %u, which it leads",
				trace_name(p), x);
	}
	pump(w, p, x, 500);
}

/* ---- what the application says ---- */

void hearing_before(struct world *w, struct proc *p, unsigned x, uint8_t kind)
{
	const struct hearing *h = &p->election[x].hearing;

	if (kind == EV_START)
		say(w, p, x, AUDIENCE_START);
	/* Whoever asks for the stop and enters nothing says that its work has ended: not true of
	 * all. */
	if (kind == EV_STOP &&
	    (h->entered || h->manner == BY_HANDLER || !p->election[x].app.working))
		say(w, p, x, AUDIENCE_STOP);
}

void hearing_after(struct world *w, struct proc *p, unsigned x, uint8_t kind)
{
	struct election_box *e = &p->election[x];

	if (kind == EV_START)
		say(w, p, x, AUDIENCE_START_HEARD);
	if (kind == EV_STOP)
		(void)step(w, p, x,
			   &(struct audience_event){.kind = AUDIENCE_STOP_HEARD,
						    .stopping = e->core.stopping});
	if (e->hearing.machine.stopped && !e->core.stopping &&
	    !audience_has_stopped(&e->hearing.machine, e->hearing.machine.stops_due))
		violate(w, INV_S8_HEARD, "%s: the stop of election %u is over, and not counted",
			trace_name(p), x);
	if (kind == EV_TIMER) /* any time will do */
		(void)step(w, p, x,
			   &(struct audience_event){.kind = AUDIENCE_NEWS, .news = NEWS_RENEWED});
	pump(w, p, x, 200);
}

static void end_work(struct world *w, struct proc *p, unsigned x)
{
	struct hearing *h = &p->election[x].hearing;
	uint64_t term = h->machine.led;

	if (h->entered) {
		h->entered = false;
		say(w, p, x, AUDIENCE_LEAVE);
	} else if (h->manner == BY_WORD) {
		if (!step(w, p, x,
			  &(struct audience_event){.kind = AUDIENCE_DRAINED, .term = term - 1})
			     .refused)
			violate(w, INV_S7_HEARD, "%s: an old term drains election %u",
				trace_name(p), x);
		(void)step(w, p, x,
			   &(struct audience_event){
				   .kind = AUDIENCE_DRAINED, .term = term, .over = true});
	} else {
		(void)step(w, p, x,
			   &(struct audience_event){.kind = AUDIENCE_DONE, .token = h->held});
		h->held = 0;
		pump(w, p, x, 1000); /* LOST may not have been heard of yet */
	}
}

bool hearing_drained(struct world *w, struct proc *p, unsigned x)
{
	struct hearing *h = &p->election[x].hearing;

	h->drained = false;
	end_work(w, p, x);
	if (!h->drained)
		violate(w, INV_S7_HEARD, "%s: the work of election %u has ended, and it isn't told",
			trace_name(p), x);
	return h->drained;
}
