/*
 * schedule.c: what comes from outside: the operator, the machine, the application's wishes. All
 * of it is planned before the world starts, so that one entry can be left out and the rest stays.
 */
#include "sim.h"

#include <stdio.h>

#define ONE ((uint64_t)1 << 20)

static bool apply(struct world *w, const struct scheduled *s);

static void add(struct world *w, struct rng *r, enum fault f)
{
	struct scheduled s = {.kind = (uint8_t)f};

	if (w->n_scheduled == SCHEDULE_MAX)
		return;
	s.at_ns = rng_below(r, w->params.safety_ns);
	if (w->params.lattice_ns != 0)
		s.at_ns -= s.at_ns % w->params.lattice_ns;
	s.proc = (uint16_t)rng_below(r, w->params.n_procs);
	s.elec = (uint8_t)rng_below(r, w->params.n_elections);
	s.a = rng_next(r);
	s.b = rng_next(r);
	w->schedule[w->n_scheduled] = s;
	queue_push(w, s.at_ns, Q_SCHEDULED, s.proc, s.elec, w->n_scheduled);
	w->n_scheduled++;
}

void schedule_draw(struct world *w)
{
	for (unsigned f = FAULT_PAUSE; f < N_FAULTS; f++) {
		struct rng r = rng_stream(w->seed, 6, f);
		uint64_t leases = w->params.safety_ns / w->params.lease_ns;
		uint64_t n = w->params.strength[f] * leases;

		if (f == FAULT_PROVEN_DEATH || n == 0)
			continue;
		n = n / 100 + rng_chance(&r, (unsigned)(n % 100 * 10));
		if (f == FAULT_FAILOVER || f == FAULT_LOSS || f == FAULT_TERM_END)
			n = min_ns(n, 3);
		while (n-- > 0)
			add(w, &r, (enum fault)f);
	}
}

void schedule_run(struct world *w, uint32_t index)
{
	const struct scheduled *s = &w->schedule[index];
	struct proc *p = &w->proc[s->proc];
	uint64_t id = SKIP_SCHEDULED | index;

	if (is_quiet(w) || p->absent || (w->skips.n > 0 && skips_has(&w->skips, id)))
		return;
	if (apply(w, s))
		fault_happened(w, (enum fault)s->kind, id);
}

/* ---- to the machine ---- */

static bool sleep_process(struct world *w, struct proc *p, const struct scheduled *s)
{
	uint64_t until_ns = w->now_ns + s->a % (2 * w->params.lease_ns);

	if (p->inc == 0)
		return false;
	if (w->params.lattice_ns != 0)
		until_ns -= until_ns % w->params.lattice_ns;
	until_ns = min_ns(until_ns, w->params.safety_ns);
	p->asleep_until_ns = max_ns(p->asleep_until_ns, until_ns);
	trace(w, p, "fault: %s", s->kind == FAULT_PAUSE ? "paused" : "suspended");
	/* Connections don't survive a suspend: what is under way is never heard of. */
	for (unsigned x = 0; s->kind == FAULT_SUSPEND && x < w->n_msgs; x++)
		if (w->msgs[x].inc == p->inc)
			w->msgs[x].lost_reply = true;
	return true;
}

static bool crash(struct world *w, struct proc *p, const struct scheduled *s)
{
	if (p->inc == 0)
		return false;
	trace(w, p, "fault: crashes");
	if (w->params.provable && (s->a & 1) != 0) {
		store_prove_death(w, p);
		fault_happened(w, FAULT_PROVEN_DEATH, SKIP_SCHEDULED);
	}
	proc_crash(w, p);
	if (s->kind == FAULT_RESTART || s->b % 4 != 0)
		queue_push(w, w->now_ns + s->b % (w->params.lease_ns), Q_BOOT, p->slot, NO_ELECTION,
			   0);
	return true;
}

static bool change_rate(struct world *w, struct proc *p, const struct scheduled *s)
{
	uint64_t most = ONE - p->worst_num;

	if (most < 2)
		return false;
	if (p->inc != 0 && w->now_ns >= p->asleep_until_ns)
		proc_wake(w, p);
	clock_set_rate(&p->clock, w->now_ns, p->worst_num + 1 + s->a % (2 * most - 2));
	p->timer_ns = NEVER; /* the alarm was set for another rate */
	if (p->inc != 0)
		proc_settle(w, p);
	return true;
}

static bool store_fault(struct world *w, const struct scheduled *s)
{
	uint64_t span_ns = s->a % (2 * w->params.lease_ns);
	int64_t step_ns = (int64_t)(s->b % (2 * w->params.lease_ns));

	trace(w, NULL, "fault: %s", fault_name((enum fault)s->kind));
	switch (s->kind) {
	case FAULT_OUTAGE: w->outage_until_ns = w->now_ns + span_ns; break;
	case FAULT_SLOW:
		w->slow_until_ns = w->now_ns + span_ns;
		w->slow_factor = 2 + s->b % 40;
		break;
	case FAULT_FAILOVER: store_fail_over(w); break;
	case FAULT_LOSS: store_lose_all(w); break;
	case FAULT_TERM_END:
		w->store.record[s->elec] = (struct store_record){.term = TERM_MAX - s->a % 3};
		w->faulty_terms = true;
		w->n_changes[s->elec]++;
		net_push(w, s->elec);
		break;
	default: store_step_clock(w, (s->a & 1) != 0 ? step_ns : -step_ns); break;
	}
	return true;
}

static bool storm(struct world *w, struct proc *p, const struct scheduled *s)
{
	uint64_t span_ns = p->timing.retry_ns * (1 + s->a % 20);
	unsigned n = 50 + (unsigned)(s->b % 200);

	if (p->inc == 0 || span_ns > w->params.safety_ns - w->now_ns)
		return false;
	for (unsigned i = 0; i < n; i++)
		queue_push(w, w->now_ns + span_ns / n * i, i % 16 == 0 ? Q_RECONNECT : Q_HINT,
			   p->slot, i % 16 == 0 && !w->params.own ? 0 : s->elec, 0);
	return true;
}

/* ---- from the operator ---- */

static bool order(struct world *w, const struct scheduled *s)
{
	const struct store_record *r = &w->store.record[s->elec];
	const struct proc *target = &w->proc[s->a % w->params.n_procs];
	uint64_t quiet_ns = s->b % (2 * w->params.lease_ns);
	bool old = s->kind == FAULT_OLD_ORDER;
	bool resign = s->kind == FAULT_ORDER_RESIGN || (old && (s->b & 1) != 0);

	if (r->term < 2 || target->inc == 0)
		return false;
	trace(w, NULL, "operator: orders election %u, term %llu: %s", s->elec,
	      (unsigned long long)(r->term - old), resign ? "resign" : "transfer");
	store_order(w, s->elec, resign ? ORDER_RESIGN : ORDER_TRANSFER, r->term - old,
		    resign ? NOBODY : target->inc, quiet_ns);
	return true;
}

/* ---- from the application ---- */

static bool destroy(struct world *w, struct proc *p, unsigned x)
{
	struct election_box *e = &p->election[x];

	if (!e->exists) {
		proc_create(w, p, x);
		return true;
	}
	if (!e->app.stopped || e->core.state != ELECTION_STOPPED)
		return false;
	trace(w, p, "election %u is freed", x);
	e->exists = false;
	e->pending.call = 0;
	return true;
}

static bool wish(struct world *w, struct proc *p, const struct scheduled *s)
{
	struct election_box *e = &p->election[s->elec];
	struct event ev = {0};

	if (!e->exists && s->kind == FAULT_START)
		proc_create(w, p, s->elec);
	if (!e->exists)
		return false;
	switch (s->kind) {
	case FAULT_STOP: ev.kind = EV_STOP; break;
	case FAULT_START: ev.kind = EV_START; break;
	case FAULT_ACQUIRE: ev.kind = EV_ACQUIRE; break;
	case FAULT_RESIGN:
		ev.kind = EV_RESIGN;
		ev.quiet_ns = s->a % (3 * p->timing.lease_ns);
		break;
	case FAULT_TRANSFER:
		ev.kind = EV_TRANSFER;
		ev.target = w->proc[s->a % w->params.n_procs].inc;
		ev.target_ok = proc_is_target(w, ev.target, s->elec);
		if (ev.target == NOBODY)
			return false;
		break;
	default:
		ev.kind = EV_HEALTH;
		ev.score = (uint16_t)(s->a % 3 == 0 ? SCORE_MAX : s->b % (SCORE_MAX + 1));
		break;
	}
	proc_tell(w, p, s->elec, &ev);
	return true;
}

static bool apply_to_process(struct world *w, struct proc *p, const struct scheduled *s)
{
	struct election_box *e = &p->election[s->elec];
	bool done = true;

	if (p->inc == 0 || w->now_ns < p->asleep_until_ns)
		return false;
	proc_wake(w, p);
	switch (s->kind) {
	case FAULT_DESTROY: done = destroy(w, p, s->elec); break;
	case FAULT_STALL:
		done = e->app.led && e->core.options.work_timeout_ns != 0;
		e->app.lively = e->app.lively && !done;
		break;
	default: done = wish(w, p, s); break;
	}
	proc_settle(w, p);
	return done;
}

static bool apply(struct world *w, const struct scheduled *s)
{
	struct proc *p = &w->proc[s->proc];

	switch (s->kind) {
	case FAULT_PAUSE:
	case FAULT_SUSPEND: return sleep_process(w, p, s);
	case FAULT_CRASH:
	case FAULT_RESTART: return crash(w, p, s);
	case FAULT_RATE: return change_rate(w, p, s);
	case FAULT_OUTAGE:
	case FAULT_SLOW:
	case FAULT_FAILOVER:
	case FAULT_LOSS:
	case FAULT_TERM_END:
	case FAULT_CLOCK_STEP: return store_fault(w, s);
	case FAULT_HINT_STORM: return storm(w, p, s);
	case FAULT_ORDER_RESIGN:
	case FAULT_ORDER_TRANSFER:
	case FAULT_OLD_ORDER: return order(w, s);
	case FAULT_PAUSE_ELECTION: store_pause(w, s->elec, true); return true;
	case FAULT_RESUME_ELECTION: store_pause(w, s->elec, false); return true;
	default: return apply_to_process(w, p, s);
	}
}
