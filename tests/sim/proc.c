/*
 * proc.c: one process, and the glue round the core that core.h asks for: each call is answered
 * exactly once, at its limit with UNKNOWN; the lease's ups and downs reach all elections before
 * anything else; the list of claims goes to all elections; an orphan of an election that no longer
 * exists is given back here; and the alarm clock rings when a machine wants it, or later.
 */
#include "sim.h"

static void carry_out(struct world *w, struct proc *p, unsigned idx, unsigned x,
		      const struct action *a, const struct event *ev);

struct lease_box *proc_lease(const struct world *w, struct proc *p, unsigned x)
{
	return &p->lease[w->params.own ? x : 0];
}

bool proc_leads(const struct world *w, const struct proc *p, unsigned x)
{
	uint64_t now_ns = clock_local(&p->clock, w->now_ns);

	return p->inc != 0 && p->election[x].exists &&
	       election_leads(&p->election[x].core, &p->lease[w->params.own ? x : 0].core, now_ns);
}

struct proc *proc_by_inc(struct world *w, uint32_t inc)
{
	for (unsigned i = 0; i < w->params.n_procs; i++)
		if (w->proc[i].inc == inc && inc != 0)
			return &w->proc[i];
	return NULL;
}

bool proc_is_target(struct world *w, uint32_t inc, unsigned x)
{
	const struct proc *p = proc_by_inc(w, inc);

	return p != NULL && p->election[x].exists && p->election[x].app.wanted &&
	       !p->election[x].core.options.observe_only && app_is_healthy(w, p, x);
}

static bool is_on(const struct world *w, unsigned idx, unsigned x)
{
	return !w->params.own || idx == x;
}

static unsigned n_leases(const struct world *w)
{
	return w->params.own ? w->params.n_elections : 1;
}

/* Ties need jitter that is a round number, too. */
static uint64_t random_bits(const struct world *w, struct proc *p)
{
	static const uint64_t round[] = {0, 0x4000, 0x8000, 0xc000, 0xffff};
	uint64_t r = rng_next(&p->rng);

	return w->params.lattice_ns != 0 ? round[r % 5] : r;
}

/* ---- life and death ---- */

void proc_create(struct world *w, struct proc *p, unsigned x)
{
	struct election_box *e = &p->election[x];
	uint32_t gen = e->gen, serial = e->app.serial;

	*e = (struct election_box){.gen = gen + 1, .exists = true};
	e->app.serial = serial; /* an old alarm must not ring for a new work */
	e->app.score = SCORE_MAX;
	election_init(&e->core, p->inc, &w->options[p->slot].o[x]);
	hearing_init(w, p, x);
	e->window.since_ns = p->now_ns;
	e->window.others = w->n_changes[x];
	trace(w, p, "election %u is made", x);
}

void proc_boot(struct world *w, struct proc *p)
{
	struct event ev;

	p->inc = p->slot + 1u + 1000u * p->life++; /* C, c1003, c2003: always of C */
	p->asleep_until_ns = 0;
	p->timer_ns = NEVER;
	p->timer_seq = 0;
	proc_wake(w, p);
	trace(w, p, "starts, for the %u. time", p->life);
	for (unsigned i = 0; i < ELECTIONS_MAX; i++) {
		p->lease[i] = (struct lease_box){0};
		lease_init(&p->lease[i].core, &p->timing, w->params.own);
		p->lease[i].unused_ns = NEVER;
		p->lease[i].window.since_ns = p->now_ns;
	}
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		proc_create(w, p, x);
		ev = (struct event){.kind = EV_START};
		if (!rng_chance(&p->rng, 50))
			proc_tell(w, p, x, &ev);
	}
	proc_settle(w, p);
}

void proc_crash(struct world *w, struct proc *p)
{
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		if (p->election[x].app.led) {
			w->n_led[x]--;
			w->last_led_ns[x] = w->now_ns;
		}
		p->election[x].app = (struct app){.serial = p->election[x].app.serial};
		p->election[x].exists = false;
	}
	p->inc = 0;
	p->timer_ns = NEVER;
	p->timer_seq = 0;
}

/* After a sleep, or when its alarm is overdue, whatever comes late has an excuse. */
void proc_wake(struct world *w, struct proc *p)
{
	bool slept = p->asleep_until_ns != 0;

	p->now_ns = clock_local(&p->clock, w->now_ns);
	p->asleep_until_ns = 0;
	if (!slept &&
	    (p->timer_ns == NEVER || p->now_ns <= p->wake_ns + timing_call_ns(&p->timing) / 16))
		return;
	for (unsigned i = 0; i < ELECTIONS_MAX; i++) {
		p->lease[i].excused = true;
		p->election[i].app.excused = true;
	}
}

/* ---- steps ---- */

static const struct event *prepare(struct world *w, struct proc *p, struct event *ev)
{
	ev->now_ns = p->now_ns;
	ev->random = random_bits(w, p);
	cover_event(ev);
	if (ev->kind != EV_HINT) /* any number of them may have waited for a sleeper */
		check_instant(w, p);
	return ev;
}

void proc_tell(struct world *w, struct proc *p, unsigned x, struct event *ev)
{
	struct election_box *e = &p->election[x];
	struct lease_box *l = proc_lease(w, p, x);
	struct actions out;

	out.n = 0;
	prepare(w, p, ev);
	trace_event(w, p, -1, (int)x, ev);
	app_event(w, p, x, ev);
	hearing_before(w, p, x, ev->kind);
	e->state_before = e->core.state;
	election_step(&e->core, &l->core, ev, &out);
	cover_election(e->state_before, e->core.state);
	for (uint64_t i = 0; i < out.n; i++)
		carry_out(w, p, w->params.own ? x : 0, x, &out.list[i], ev);
	hearing_after(w, p, x, ev->kind);
	check_election_step(w, p, x, ev);
	check_closed(w, p, w->params.own ? x : 0);
}

void proc_tell_lease(struct world *w, struct proc *p, unsigned idx, struct event *ev)
{
	struct lease_box *l = &p->lease[idx];
	uint8_t before = l->core.state;
	struct actions out;

	out.n = 0;
	prepare(w, p, ev);
	trace_event(w, p, (int)idx, -1, ev);
	lease_step(&l->core, ev, &out);
	cover_lease(before, l->core.state);
	for (uint64_t i = 0; i < out.n; i++)
		carry_out(w, p, idx, NO_ELECTION, &out.list[i], ev);
	check_lease_step(w, p, idx, ev, before);
	check_closed(w, p, idx);
}

static void fan_out(struct world *w, struct proc *p, unsigned idx, uint8_t kind)
{
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		struct event ev = {.kind = kind};

		if (!is_on(w, idx, x) || !p->election[x].exists)
			continue;
		p->election[x].window.changes++;
		proc_tell(w, p, x, &ev);
	}
	p->lease[idx].window.changes++;
}

static void call(struct world *w, struct proc *p, unsigned idx, unsigned x, const struct action *a)
{
	struct pending *c;

	if (x != NO_ELECTION) {
		c = &p->election[x].pending;
		check_action(w, p, x, a);
	} else {
		c = &p->lease[idx].pending[a->kind == ACT_CLAIMS];
		check_lease_action(w, p, idx, a);
	}
	if (c->call != 0 || a->call == 0 || a->limit_ns <= p->now_ns ||
	    a->limit_ns > p->now_ns + p->timing.lease_ns)
		violate(w, INV_ONE_CALL, "%s: a second call, or one without a sane limit",
			trace_name(p));
	*c = (struct pending){.call = a->call,
			      .limit_ns = a->limit_ns,
			      .sent_ns = p->now_ns,
			      .epoch = a->epoch,
			      .kind = a->kind,
			      .ended = a->ended};
	net_send(w, p, idx, x, a, false);
}

static void carry_out(struct world *w, struct proc *p, unsigned idx, unsigned x,
		      const struct action *a, const struct event *ev)
{
	cover_action(a);
	trace_action(w, p, (int)idx, x == NO_ELECTION ? -1 : (int)x, a);
	switch (a->kind) {
	case ACT_LEASE_UP: fan_out(w, p, idx, EV_LEASE_UP); break;
	case ACT_LEASE_DOWN: fan_out(w, p, idx, EV_LEASE_DOWN); break;
	case ACT_NOTE:
		if (x != NO_ELECTION)
			app_note(w, p, x, a, ev);
		break;
	default: call(w, p, idx, x, a); break;
	}
}

/* ---- answers ---- */

static uint8_t answer_to(uint8_t action)
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

static void give_back_stray(struct world *w, struct proc *p, unsigned idx, unsigned x,
			    const struct pending *c, const struct view *v)
{
	struct action a = {.kind = ACT_RELEASE,
			   .epoch = c->epoch,
			   .nonce = v->nonce,
			   .term = v->term,
			   .why = WHY_ORPHAN};

	trace(w, p, "gives back a claim of election %u, which no longer exists", x);
	net_send(w, p, idx, x, &a, true);
}

static void answer_lease(struct world *w, struct proc *p, unsigned idx, struct pending *c,
			 uint8_t outcome, const struct msg *m)
{
	struct pending was = *c;
	struct event ev = {.kind = answer_to(c->kind),
			   .call = c->call,
			   .outcome = outcome,
			   .n_held = m != NULL ? m->n_held : 0};

	c->call = 0;
	check_lease_heard(w, p, idx, &ev, &was);
	proc_tell_lease(w, p, idx, &ev);
	if (was.kind != ACT_CLAIMS || outcome != OUTCOME_OK)
		return;
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		if (!is_on(w, idx, x))
			continue;
		if (!p->election[x].exists) {
			if (m->view[x].held)
				give_back_stray(w, p, idx, x, &was, &m->view[x]);
			continue;
		}
		struct event claim = {.kind = EV_CLAIM, .call = was.call, .view = m->view[x]};

		check_heard(w, p, x, &claim, &was);
		proc_tell(w, p, x, &claim);
	}
}

static void answer_election(struct world *w, struct proc *p, unsigned x, uint8_t outcome,
			    const struct msg *m)
{
	struct pending was = p->election[x].pending;
	struct event ev = {.kind = answer_to(was.kind), .call = was.call, .outcome = outcome};

	if (m != NULL && (outcome == OUTCOME_OK || outcome == OUTCOME_REFUSED))
		ev.view = m->view[0];
	p->election[x].pending.call = 0;
	check_heard(w, p, x, &ev, &was);
	proc_tell(w, p, x, &ev);
}

void proc_reply(struct world *w, struct proc *p, const struct msg *m)
{
	struct pending *c;

	if (m->elec != NO_ELECTION) {
		const struct election_box *e = &p->election[m->elec];

		if (e->exists && e->gen == m->gen && e->pending.call == m->act.call)
			answer_election(w, p, m->elec, m->outcome, m);
		return;
	}
	c = &p->lease[m->idx].pending[m->act.kind == ACT_CLAIMS];
	if (c->call == m->act.call)
		answer_lease(w, p, m->idx, c, m->outcome, m);
}

/* ---- the alarm clock ---- */

static void time_out(struct world *w, struct proc *p)
{
	for (unsigned i = 0; i < n_leases(w); i++)
		for (unsigned k = 0; k < 2; k++) {
			struct pending *c = &p->lease[i].pending[k];

			if (c->call != 0 && p->now_ns >= c->limit_ns)
				answer_lease(w, p, i, c, OUTCOME_UNKNOWN, NULL);
		}
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		const struct election_box *e = &p->election[x];

		if (e->exists && e->pending.call != 0 && p->now_ns >= e->pending.limit_ns)
			answer_election(w, p, x, OUTCOME_UNKNOWN, NULL);
	}
}

static void ring_leases(struct world *w, struct proc *p, bool all)
{
	for (unsigned i = 0; i < n_leases(w); i++) {
		struct event ev = {.kind = EV_TIMER};

		if (all || lease_wake_ns(&p->lease[i].core) <= p->now_ns)
			proc_tell_lease(w, p, i, &ev);
	}
}

static void ring_elections(struct world *w, struct proc *p, bool all)
{
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		const struct election_box *e = &p->election[x];
		struct event ev = {.kind = EV_TIMER};

		if (e->exists &&
		    (all || election_wake_ns(&e->core, &proc_lease(w, p, x)->core) <= p->now_ns))
			proc_tell(w, p, x, &ev);
	}
}

void proc_timer(struct world *w, struct proc *p)
{
	uint64_t order = rng_next(&p->rng);
	bool all = w->params.spurious_timers && order % 4 == 0;

	p->timer_ns = NEVER;
	if ((order & 16) != 0) {
		time_out(w, p);
		ring_leases(w, p, all);
		ring_elections(w, p, all);
	} else {
		ring_elections(w, p, all);
		ring_leases(w, p, all);
		time_out(w, p);
	}
}

static uint64_t wake_of(struct world *w, struct proc *p)
{
	uint64_t wake_ns = NEVER;

	for (unsigned i = 0; i < n_leases(w); i++) {
		const struct lease_box *l = &p->lease[i];

		wake_ns = min_ns(wake_ns, lease_wake_ns(&l->core));
		for (unsigned k = 0; k < 2; k++)
			if (l->pending[k].call != 0)
				wake_ns = min_ns(wake_ns, l->pending[k].limit_ns);
	}
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		const struct election_box *e = &p->election[x];

		if (!e->exists)
			continue;
		wake_ns = min_ns(wake_ns, election_wake_ns(&e->core, &proc_lease(w, p, x)->core));
		if (e->pending.call != 0)
			wake_ns = min_ns(wake_ns, e->pending.limit_ns);
	}
	return wake_ns;
}

void proc_settle(struct world *w, struct proc *p)
{
	uint64_t wake_ns, at_ns;

	p->now_ns = clock_local(&p->clock, w->now_ns);
	app_refresh(w, p);
	wake_ns = wake_of(w, p);
	check_wakes(w, p, wake_ns);
	if (wake_ns == NEVER)
		return;
	wake_ns = max_ns(wake_ns, p->now_ns);
	/* An alarm that rings too early does no harm: it is set again then. */
	if (p->timer_ns != NEVER && p->wake_ns <= wake_ns)
		return;
	at_ns = max_ns(w->now_ns, clock_true(&p->clock, wake_ns));
	if (w->params.late_ns != 0)
		at_ns += rng_below(&p->rng, w->params.late_ns);
	if (fault_strikes(w, &p->rng, FAULT_LATE_TIMER,
			  SKIP_MESSAGE | (uint64_t)p->slot << 44 | p->n_messages << 8 |
				  FAULT_LATE_TIMER))
		at_ns += rng_below(&p->rng, w->params.late_spike_ns);
	p->wake_ns = wake_ns;
	p->timer_ns = at_ns;
	queue_push(w, at_ns, Q_TIMER, p->slot, NO_ELECTION, 0);
	p->timer_seq = w->seq;
}
