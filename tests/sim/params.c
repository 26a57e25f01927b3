/*
 * params.c: what a world is like, drawn from its seed. Not every fault in every world: each is on
 * or off and weak or strong by itself ("swarm"), because faults hide each other. In some worlds all
 * times are multiples of one unit and no clock drifts, so that ties happen.
 */
#include "sim.h"

#define DAY_NS (86400 * NS_PER_S)

static void draw_sizes(struct world *w, struct rng *r);
static void draw_network(struct world *w, struct rng *r);
static void draw_faults(struct world *w, struct rng *r);
static uint64_t on_lattice(const struct world *w, uint64_t ns);

void params_draw(struct world *w)
{
	struct rng *r = &w->rng;

	w->params = (struct params){0};
	draw_sizes(w, r);
	draw_network(w, r);
	draw_faults(w, r);
}

/* Evenly over the orders of magnitude. */
static uint64_t log_range(struct rng *r, uint64_t lo, uint64_t hi)
{
	uint64_t n = 0, d = lo;

	while (d < hi / 2) {
		d *= 2;
		n++;
	}
	d = lo << rng_below(r, n + 1);
	return min_ns(hi, d + rng_below(r, d));
}

static void draw_sizes(struct world *w, struct rng *r)
{
	struct params *q = &w->params;
	uint64_t kind = rng_below(r, 100), crowd = rng_below(r, 1000);

	q->n_procs = 2 + (uint32_t)rng_below(r, rng_chance(r, 700) ? 4 : 8);
	q->n_elections = rng_chance(r, 500) ? 1 : 2 + (uint32_t)rng_below(r, 2);
	if (kind < 70)
		q->lease_ns = log_range(r, NS_PER_S, 60 * NS_PER_S);
	else if (kind < 85)
		q->lease_ns = log_range(r, 10 * NS_PER_MS, NS_PER_S);
	else
		q->lease_ns = log_range(r, 60 * NS_PER_S, 3600 * NS_PER_S);
	q->safety_ns = q->lease_ns * rng_range(r, 8, 40);
	if (crowd < 5) {
		q->n_procs = 50 + (uint32_t)rng_below(r, PROCS_MAX - 49);
		q->n_elections = 1;
		q->lease_ns = min_ns(q->lease_ns, 60 * NS_PER_S);
		q->safety_ns = q->lease_ns * 4;
	} else if (crowd < 25) {
		q->safety_ns *= 8;
	}
	if (rng_chance(r, 200)) {
		q->lease_ns = max_ns(q->lease_ns, 120 * NS_PER_MS);
		q->lattice_ns = q->lease_ns / 120;
		q->lease_ns = 120 * q->lattice_ns;
	}
	q->own = rng_chance(r, 300);
	q->watched = rng_chance(r, 400);
	q->tells_expiry = rng_chance(r, 750);
	q->provable = rng_chance(r, 300);
	q->weak = rng_chance(r, 250);
	q->corrupt = q->weak && rng_chance(r, 250);
	q->bad_app = rng_chance(r, 100);
	q->spurious_timers = rng_chance(r, 200);
	q->pause_at_end = rng_chance(r, 50);
	q->term_start = rng_chance(r, 800) ? 0 : rng_below(r, 1000);
	q->safety_ns = on_lattice(w, q->safety_ns);
}

static uint64_t on_lattice(const struct world *w, uint64_t ns)
{
	return w->params.lattice_ns != 0 ? ns - ns % w->params.lattice_ns : ns;
}

/* The network is fast enough for the shortest lease of the world: a call takes less than half of
 * what it may. Slower times are a fault. The shortest grace is 1/20 of the shortest lease. */
static void draw_network(struct world *w, struct rng *r)
{
	struct params *q = &w->params;
	uint64_t call_ns = q->lease_ns / 4 / 20 / 3;

	q->lat_max_ns = call_ns / 5 / (1 + rng_below(r, 64));
	q->lat_min_ns = q->lat_max_ns / (1 + rng_below(r, 10));
	q->push_max_ns = q->lat_max_ns * (1 + rng_below(r, 8));
	q->late_ns = rng_chance(r, 500) ? 0 : q->lat_max_ns / 4;
	if (q->lattice_ns != 0) {
		q->lat_min_ns = 0;
		q->lat_max_ns = q->lattice_ns * rng_below(r, 3) + 1;
		q->push_max_ns = q->lattice_ns * rng_below(r, 4) + 1;
		q->late_ns = 0;
	}
	q->late_spike_ns = log_range(r, q->lease_ns / 100 + 1, q->lease_ns);
	q->drain_max_ns = q->lease_ns * (1 + rng_below(r, 6));
	if (rng_chance(r, 200))
		q->expiry_late_ns = log_range(r, q->lease_ns / 100 + 1, q->lease_ns);
}

static void draw_faults(struct world *w, struct rng *r)
{
	static const uint16_t levels[] = {5, 20, 60, 200};
	static const uint16_t rates[] = {5, 10, 20, 40};
	struct params *q = &w->params;
	bool calm = rng_chance(r, 150);

	for (unsigned f = 0; f < N_FAULTS; f++) {
		bool scheduled = f >= FAULT_PAUSE;
		uint16_t level = scheduled ? rates[rng_below(r, 4)] : levels[rng_below(r, 4)];

		q->strength[f] = rng_chance(r, calm ? 150 : 450) ? level : 0;
	}
	if (!q->weak) {
		q->strength[FAULT_FAILOVER] = 0;
		q->strength[FAULT_LOSS] = 0;
		q->strength[FAULT_CLOCK_STEP] = 0;
	}
	if (!q->corrupt) {
		q->strength[FAULT_CORRUPT] = 0;
		q->strength[FAULT_NO_FLOOR] = 0;
		q->strength[FAULT_TERM_END] = 0;
	}
	/* What was stopped or paused mostly goes on again: else nothing happens any more. */
	if (q->strength[FAULT_STOP] != 0 || q->strength[FAULT_DESTROY] != 0)
		q->strength[FAULT_START] = 40;
	if (q->strength[FAULT_PAUSE_ELECTION] != 0)
		q->strength[FAULT_RESUME_ELECTION] = 40;
	/* These strike only who leads, or is manual: so more of them. */
	q->strength[FAULT_STALL] = (uint16_t)(3 * q->strength[FAULT_STALL]);
	q->strength[FAULT_ACQUIRE] = (uint16_t)(5 * q->strength[FAULT_ACQUIRE]);
	if (q->bad_app && q->strength[FAULT_OVERRUN] == 0)
		q->strength[FAULT_OVERRUN] = 200;
	if (!q->bad_app)
		q->strength[FAULT_OVERRUN] = 0;
	if (q->watched)
		q->strength[FAULT_LOST_HINT] = 0;
	if (q->lattice_ns != 0)
		q->strength[FAULT_RATE] = 0;
	q->strength[FAULT_LATE_TIMER] =
		q->strength[FAULT_LATE_TIMER] > 60 ? 60 : q->strength[FAULT_LATE_TIMER];
}

/* ---- one process ---- */

static void draw_lattice_timing(struct world *w, struct rng *r, struct timing *t)
{
	uint64_t u = w->params.lattice_ns;

	t->lease_ns = 120 * u * (rng_chance(r, 700) ? 1 : 2);
	t->renew_ns = u * (rng_chance(r, 500) ? 40 : 30);
	t->grace_ns = u * (rng_chance(r, 500) ? 36 : 30);
	t->retry_ns = u * (1 + rng_below(r, 20));
	t->retry_max_ns = t->retry_ns * (1 + rng_below(r, 6));
	t->drift_ppm = rng_chance(r, 500) ? 0 : 100000;
}

static void draw_timing(struct world *w, struct rng *r, struct timing *t)
{
	static const uint32_t drifts[] = {0, 1000, 10000, 100000, 200000, 300000};
	bool same = (w->seed & 1) != 0;

	*t = (struct timing){.lease_ns = w->params.lease_ns, .drift_ppm = NEVER};
	if (!same)
		t->lease_ns = w->params.lease_ns / 4 + rng_below(r, 4 * w->params.lease_ns);
	t->lease_ns = min_ns(max_ns(t->lease_ns, 10 * NS_PER_MS), DAY_NS);
	if (rng_chance(r, 400))
		t->drift_ppm = drifts[rng_below(r, 6)];
	if (rng_chance(r, 400)) {
		t->renew_ns = rng_range(r, t->lease_ns / 10, t->lease_ns / 2);
		t->grace_ns = rng_range(r, t->lease_ns / 10, t->lease_ns / 2);
	}
	if (rng_chance(r, 400)) {
		t->retry_ns = rng_range(r, t->lease_ns / 30, t->lease_ns / 3);
		t->retry_max_ns = t->retry_ns * (1 + rng_below(r, 8));
	}
	timing_fill(t);
}

/* Rates up to what the bound allows, less a hair that the rounding of a clock may cost. */
static void draw_clock(struct world *w, struct rng *r, struct proc *p)
{
	uint64_t one = (uint64_t)1 << 20;
	uint64_t most = one * p->timing.drift_ppm / 1000000;
	uint64_t kind = rng_below(r, 4), by = most > 0 ? rng_below(r, most) : 0;

	p->worst_num = one - most;
	most = most > 0 ? most - 1 : 0;
	p->clock = (struct clock){.base_local = 1 + rng_below(r, 1000 * DAY_NS), .num = one};
	if (w->params.lattice_ns != 0) {
		p->clock.base_local -= p->clock.base_local % w->params.lattice_ns;
		return;
	}
	if (kind == 0)
		p->clock.num = one - most;
	else if (kind == 1)
		p->clock.num = one + most;
	else if (kind == 2)
		p->clock.num = rng_chance(r, 500) ? one + by : one - by;
}

void params_timing(struct world *w, struct proc *p)
{
	struct rng r = rng_stream(w->seed, 3, p->slot);
	unsigned tries = 20;

	do {
		if (w->params.lattice_ns != 0)
			draw_lattice_timing(w, &r, &p->timing);
		else
			draw_timing(w, &r, &p->timing);
	} while (timing_check(&p->timing, 0) > TIMING_WARN_RENEW && --tries > 0);
	if (tries == 0) {
		p->timing = (struct timing){.lease_ns = w->params.lease_ns, .drift_ppm = NEVER};
		timing_fill(&p->timing);
	}
	p->rng = rng_stream(w->seed, 4, p->slot);
	draw_clock(w, &r, p);
}

static void draw_options(struct world *w, struct rng *r, struct proc *p, struct options *o)
{
	uint64_t kind = rng_below(r, 100);

	options_init(o);
	if (rng_chance(r, 300))
		o->priority = (int32_t)rng_below(r, 4) - 1;
	if (rng_chance(r, 300))
		o->preempt_ns = min_ns(p->timing.lease_ns * rng_range(r, 1, 4), DAY_NS);
	if (rng_chance(r, 300))
		o->work_timeout_ns =
			max_ns(p->timing.lease_ns / 4, 4 * NS_PER_MS) * rng_range(r, 1, 8);
	if (o->work_timeout_ns > DAY_NS)
		o->work_timeout_ns = DAY_NS;
	if (rng_chance(r, 200))
		o->min_score = (uint16_t)rng_below(r, SCORE_MAX + 1);
	o->check_health = !rng_chance(r, 200);
	o->step_down_unhealthy = !rng_chance(r, 200);
	o->release_on_stop = !rng_chance(r, 200);
	o->observe_only = kind < 5;
	o->manual = kind >= 5 && kind < 20;
	if (options_check(o, &p->timing) != TIMING_OK) {
		violate(w, INV_ELIGIBLE, "the simulator drew options that are refused");
		options_init(o);
	}
}

void params_options(struct world *w, struct proc *p)
{
	struct rng r = rng_stream(w->seed, 5, p->slot);

	for (unsigned x = 0; x < ELECTIONS_MAX; x++)
		draw_options(w, &r, p, &w->options[p->slot].o[x]);
}
