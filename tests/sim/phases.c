/*
 * phases.c: after the faults, the quiet; and what must come true in it.
 *
 *   0  faults        until safety_ns
 *   1  quiet         somebody leads every election within the bound (L1); every question has its
 *                    answer; claims that nobody knows of are found and given back (L3)
 *      preemption    in some worlds: who ranks higher gets its place in the end (L9)
 *   2  handover      each leader resigns: the next one is there within a push (L2)
 *   3  last survivor all but one crash: it takes over all that it is a candidate for (L8)
 *
 * The bounds are computed from the world: they are sums of what the promise names.
 */
#include "sim.h"

static void begin_quiet(struct world *w);
static void begin_preemption(struct world *w);
static void begin_handover(struct world *w);
static void begin_last(struct world *w);
static void end(struct world *w);

void phase_next(struct world *w)
{
	switch (w->phase) {
	case 0:
		if (w->quiet_ns == NEVER)
			begin_quiet(w);
		else if (w->seed % 8 == 0 && !w->preempted && w->params.n_procs < 10)
			begin_preemption(w);
		else
			begin_handover(w);
		break;
	case 1: begin_last(w); break;
	default: end(w); break;
	}
}

/* ---- what the bounds are made of ---- */

/* How long a local duration can take in true time. */
static uint64_t slowly(const struct proc *p, uint64_t local_ns)
{
	return local_ns / p->worst_num * ((uint64_t)1 << 20) +
	       ((local_ns % p->worst_num) << 20) / p->worst_num + 1;
}

static uint64_t left_ns(const struct proc *p, uint64_t until_ns)
{
	return until_ns > p->now_ns && until_ns != NEVER ? slowly(p, until_ns - p->now_ns) : 0;
}

static uint64_t rtt_ns(const struct world *w)
{
	return 2 * w->params.lat_max_ns + 2 * w->params.late_ns + 2;
}

static bool is_candidate(const struct world *w, const struct proc *p, unsigned x)
{
	const struct election_box *e = &p->election[x];

	return p->inc != 0 && e->exists && e->app.wanted && !e->core.options.observe_only &&
	       !e->core.options.manual && app_is_healthy(w, p, x);
}

static bool is_ready(const struct world *w, struct proc *p, unsigned x)
{
	const struct election_box *e = &p->election[x];

	return is_candidate(w, p, x) && e->core.state == ELECTION_STANDBY && !e->core.paused &&
	       lease_ready(&proc_lease(w, p, x)->core, p->now_ns);
}

/* L1, for a world that the faults have left in any state: leases run out, own ones are
 * drained, closed and opened again, each with its backoff, and quiet periods pass. */
static uint64_t bound_leader(struct world *w)
{
	uint64_t most_ns = 0, quiet_ns = 0, lease_ns = 0;

	for (unsigned i = 0; i < w->params.n_procs; i++) {
		struct proc *p = &w->proc[i];
		const struct timing *t = &p->timing;

		p->now_ns = clock_local(&p->clock, w->now_ns);
		lease_ns = max_ns(lease_ns, t->lease_ns);
		most_ns = max_ns(most_ns,
				 slowly(p, 2 * t->lease_ns + 3 * t->retry_max_ns + t->retry_ns +
						   8 * timing_call_ns(t) + timing_hold_ns(t)));
		for (unsigned x = 0; x < w->params.n_elections; x++)
			quiet_ns = max_ns(quiet_ns, left_ns(p, p->election[x].core.quiet_ns));
	}
	for (unsigned x = 0; x < w->params.n_elections; x++)
		quiet_ns = max_ns(quiet_ns, 2 * w->store.record[x].order_quiet_ns);
	return lease_ns + most_ns + quiet_ns + w->params.expiry_late_ns + w->params.push_max_ns +
	       8 * rtt_ns(w);
}

/* ---- 1: quiet ---- */

static void begin_quiet(struct world *w)
{
	uint64_t bound_ns;

	w->quiet_ns = w->now_ns;
	trace(w, NULL, "quiet: the faults stop");
	for (unsigned x = 0; x < w->params.n_elections; x++)
		store_pause(w, x, w->params.pause_at_end && x == 0);
	for (unsigned i = 0; i < w->params.n_procs; i++) {
		struct proc *p = &w->proc[i];

		if (p->inc == 0 && !p->absent && (w->seed + i) % 3 != 0)
			proc_boot(w, p);
		for (unsigned x = 0; x < w->params.n_elections; x++)
			if (p->inc != 0)
				queue_push(w, w->now_ns, Q_DRAIN, p->slot, (uint8_t)x,
					   p->election[x].app.serial);
	}
	bound_ns = bound_leader(w);
	queue_push(w, w->now_ns + bound_ns, Q_PHASE, 0, NO_ELECTION, 0);
	queue_push(w, w->now_ns, Q_CHECK, 0, NO_ELECTION, 0);
}

static bool has_candidate(const struct world *w, unsigned x)
{
	for (unsigned i = 0; i < w->params.n_procs; i++)
		if (is_candidate(w, &w->proc[i], x))
			return true;
	return false;
}

static struct proc *leader_of(struct world *w, unsigned x)
{
	for (unsigned i = 0; i < w->params.n_procs; i++)
		if (proc_leads(w, &w->proc[i], x))
			return &w->proc[i];
	return NULL;
}

/* What nobody has needed for so long has been closed, also if it was to end by itself first. */
static void check_unused(struct world *w)
{
	for (unsigned i = 0; i < w->params.n_procs; i++)
		for (unsigned k = 0; k < ELECTIONS_MAX; k++) {
			const struct lease_box *l = &w->proc[i].lease[k];

			if (w->proc[i].inc != 0 && l->has_epoch != 0 && l->unused_ns < w->quiet_ns)
				violate(w, INV_CLOSED, "%s never closes a lease that nobody needs",
					trace_name(&w->proc[i]));
		}
}

static void check_leaders(struct world *w)
{
	check_unused(w);
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		const struct proc *leader = leader_of(w, x);
		bool paused = w->store.record[x].paused;

		if (paused && leader != NULL)
			violate(w, INV_L1_PAUSE, "%s still leads the paused election %u",
				trace_name(leader), x);
		if (!paused && leader == NULL && w->last_led_ns[x] < w->quiet_ns &&
		    has_candidate(w, x) && !w->faulty_terms)
			violate(w, INV_L1, "nobody leads election %u", x);
		for (unsigned i = 0; i < w->params.n_procs; i++) {
			const struct app *a = &w->proc[i].election[x].app;

			if (w->proc[i].inc != 0 && a->asked && a->asked_ns < w->quiet_ns)
				violate(w, INV_ANSWER, "%s: no answer to an acquire of election %u",
					trace_name(&w->proc[i]), x);
		}
	}
}

/* ---- preemption ---- */

static void begin_preemption(struct world *w)
{
	uint64_t preempt_ns = 0;

	check_leaders(w);
	w->preempted = true;
	for (unsigned i = 0; i < w->params.n_procs; i++)
		for (unsigned x = 0; x < w->params.n_elections; x++)
			preempt_ns = max_ns(preempt_ns,
					    slowly(&w->proc[i], w->options[i].o[x].preempt_ns));
	queue_push(w, w->now_ns + 4 * preempt_ns + 2 * bound_leader(w), Q_PHASE, 0, NO_ELECTION, 0);
}

/* Whether a reservation of the leader's length is enough for this candidate to notice it. */
static bool can_take(const struct world *w, const struct proc *p, const struct proc *leader)
{
	return timing_hold_ns(&leader->timing) >
	       slowly(p, p->timing.retry_ns) + w->params.push_max_ns + 4 * rtt_ns(w);
}

static void check_preempted(struct world *w)
{
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		const struct proc *leader = leader_of(w, x);

		if (leader == NULL || w->params.weak) /* who forgot a term may not be believed */
			continue;
		for (unsigned i = 0; i < w->params.n_procs; i++) {
			struct proc *p = &w->proc[i];
			const struct options *o = &w->options[i].o[x];

			p->now_ns = clock_local(&p->clock, w->now_ns);
			if (o->preempt_ns != 0 && is_ready(w, p, x) && can_take(w, p, leader) &&
			    o->priority > w->options[leader->slot].o[x].priority)
				violate(w, INV_L9, "%s never gets its place in election %u",
					trace_name(p), x);
		}
	}
}

/* ---- 2: handover ---- */

static bool has_ready_standby(struct world *w, unsigned x, const struct proc *leader)
{
	for (unsigned i = 0; i < w->params.n_procs; i++) {
		struct proc *p = &w->proc[i];

		p->now_ns = clock_local(&p->clock, w->now_ns);
		if (p != leader && is_ready(w, p, x) && p->election[x].core.quiet_ns <= p->now_ns)
			return true;
	}
	return false;
}

/* L2: the release, the push, a look that L4 may have put off by one retry period, the campaign. */
static uint64_t bound_handover(struct world *w)
{
	uint64_t retry_ns = 0;

	for (unsigned i = 0; i < w->params.n_procs; i++)
		retry_ns = max_ns(retry_ns, slowly(&w->proc[i], w->proc[i].timing.retry_ns));
	return retry_ns + w->params.push_max_ns + 6 * rtt_ns(w);
}

static void begin_handover(struct world *w)
{
	uint64_t bound_ns = bound_handover(w);

	if (w->preempted)
		check_preempted(w);
	else
		check_leaders(w);
	w->phase = 1;
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		struct proc *p = leader_of(w, x);
		struct event ev = {.kind = EV_RESIGN};

		/* A release is clean only if the store has the claim that the leader thinks of. */
		if (p == NULL || w->store.record[x].paused || w->faulty_terms ||
		    w->store.record[x].nonce != p->election[x].core.nonce ||
		    !has_ready_standby(w, x, p))
			continue;
		w->due_ns[x] = w->now_ns + bound_ns;
		ev.quiet_ns = p->timing.lease_ns;
		proc_wake(w, p);
		proc_tell(w, p, x, &ev);
		proc_settle(w, p);
	}
	queue_push(w, w->now_ns + bound_ns + 1, Q_PHASE, 0, NO_ELECTION, 0);
}

void phase_became(struct world *w, unsigned x)
{
	w->due_ns[x] = NEVER;
}

/* ---- 3: the last survivor ---- */

static struct proc *choose_survivor(struct world *w)
{
	for (unsigned k = 0; k < w->params.n_procs; k++) {
		struct proc *p = &w->proc[(w->seed + k) % w->params.n_procs];

		p->now_ns = clock_local(&p->clock, w->now_ns);
		for (unsigned x = 0; x < w->params.n_elections; x++)
			if (is_ready(w, p, x))
				return p;
	}
	return NULL;
}

/* Whether something is on its way that makes or prolongs a lease, and lands after its death. */
static bool has_sent(const struct world *w, const struct proc *p)
{
	for (unsigned i = 0; i < ELECTIONS_MAX; i++) {
		const struct pending *lease = &p->lease[i].pending[0];
		const struct pending *election = &p->election[i].pending;

		if ((lease->call != 0 && lease->kind != ACT_CLOSE) ||
		    (w->params.own && election->call != 0 && election->kind == ACT_CAMPAIGN))
			return true;
	}
	return false;
}

/* L1 as it is written: what is left of the dead one's lease, a retry period, two round trips. The
 * survivor waits for that end on its own clock, and may have looked before the last renewal. */
static uint64_t bound_last(struct world *w, struct proc *p)
{
	uint64_t dies_ns = w->now_ns, quiet_ns = 0, hold_ns = 0, ttl_ns = 0;

	for (unsigned i = 0; i < w->params.n_procs; i++) {
		const struct proc *dead = &w->proc[i];

		ttl_ns = max_ns(ttl_ns, dead->timing.lease_ns);
		if (dead != p && dead->inc != 0 && has_sent(w, dead))
			dies_ns = max_ns(dies_ns, w->now_ns + w->params.lat_max_ns +
							  dead->timing.lease_ns +
							  w->params.expiry_late_ns);
		for (uint64_t k = 0; k < w->store.of[i].n; k++)
			dies_ns = max_ns(dies_ns, w->store.of[i].list[k].dies_ns);
	}
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		quiet_ns = max_ns(quiet_ns, left_ns(p, p->election[x].core.quiet_ns));
		if (w->store.record[x].reserved_until_ns > w->now_ns)
			hold_ns = max_ns(hold_ns, w->store.record[x].reserved_until_ns - w->now_ns);
	}
	return dies_ns - w->now_ns + slowly(p, ttl_ns) - ttl_ns + quiet_ns + hold_ns +
	       w->params.push_max_ns + 6 * rtt_ns(w) +
	       slowly(p, p->timing.retry_max_ns + 2 * p->timing.retry_ns + NS_PER_MS);
}

static void begin_last(struct world *w)
{
	struct proc *p = choose_survivor(w);
	uint64_t bound_ns;

	for (unsigned x = 0; x < w->params.n_elections; x++)
		if (w->due_ns[x] != NEVER)
			violate(w, INV_L2, "nobody took election %u after a clean release", x);
	w->phase = 2;
	if (p == NULL || w->faulty_terms) {
		end(w);
		return;
	}
	trace(w, p, "is the last survivor");
	bound_ns = bound_last(w, p);
	for (unsigned x = 0; x < w->params.n_elections; x++)
		if (is_ready(w, p, x) && !w->store.record[x].paused)
			w->due_ns[x] = w->now_ns + bound_ns;
		else
			w->due_ns[x] = NEVER;
	for (unsigned i = 0; i < w->params.n_procs; i++)
		if (&w->proc[i] != p && w->proc[i].inc != 0)
			proc_crash(w, &w->proc[i]);
	queue_push(w, w->now_ns + bound_ns + 1, Q_PHASE, 0, NO_ELECTION, 0);
}

static void end(struct world *w)
{
	for (unsigned x = 0; w->phase == 2 && x < w->params.n_elections; x++)
		if (w->due_ns[x] != NEVER)
			violate(w, INV_L8, "the last candidate does not take election %u", x);
	w->end_ns = w->now_ns;
}

/* ---- L3, all through the quiet ---- */

/* Whether the owner has this claim in its books. True also if nobody could: its lease is ending. */
static bool is_known(struct world *w, unsigned x)
{
	const struct store_record *r = &w->store.record[x];
	struct proc *p = &w->proc[r->proc];
	const struct election_box *e = &p->election[x];
	const struct lease *l = &p->lease[r->idx].core;

	if (p->inc != r->inc || l->epoch != r->epoch ||
	    (l->state != LEASE_LIVE && l->state != LEASE_READY))
		return true;
	if (!e->exists)
		return false;
	bool term = e->core.term == r->term || w->faulty_terms;
	bool same = term && (e->core.nonce == r->nonce || w->params.weak);

	/* A store that forgot may make the same term again for a late twin of the campaign;
	 * and a reply that lies about the term of a grant can't be seen through. */
	switch (e->core.state) {
	case ELECTION_LEADING:
	case ELECTION_RELEASING: return same;
	case ELECTION_RESIGNING: return e->core.claimed && same;
	case ELECTION_CAMPAIGNING: return e->core.call == r->nonce;
	default: return e->core.state == ELECTION_SEEKING;
	}
}

/* The next renewal shows that the count is wrong, the claims are asked for, it goes back. */
static uint64_t bound_orphan(const struct world *w, const struct proc *p)
{
	const struct timing *t = &p->timing;

	return slowly(p,
		      4 * t->renew_ns + 8 * timing_call_ns(t) + 2 * t->retry_max_ns + t->retry_ns) +
	       8 * rtt_ns(w);
}

void phase_check(struct world *w)
{
	uint64_t step_ns = w->params.lease_ns / 4 + 1;

	for (unsigned x = 0; x < w->params.n_elections; x++) {
		const struct store_record *r = &w->store.record[x];
		struct told *u = &w->unknown[x];

		if (!store_holds(&w->store, x, w->now_ns) || is_known(w, x)) {
			w->unknown_since_ns[x] = NEVER;
			continue;
		}
		if (w->unknown_since_ns[x] == NEVER || u->nonce != r->nonce || u->term != r->term) {
			*u = (struct told){.epoch = r->epoch, .nonce = r->nonce, .term = r->term};
			w->unknown_since_ns[x] = w->now_ns;
		}
		if (w->now_ns - w->unknown_since_ns[x] > bound_orphan(w, &w->proc[r->proc]))
			violate(w, INV_L3, "%s holds election %u and doesn't know",
				trace_name(&w->proc[r->proc]), x);
	}
	queue_push(w, w->now_ns + step_ns, Q_CHECK, 0, NO_ELECTION, 0);
}
