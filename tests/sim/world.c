/*
 * world.c: one world from its seed to its end. A queue of events, ordered by time and then by
 * the order in which they were made, so that ties have one outcome.
 */
#include "sim.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of any world, however short: hints, storms and starts come on top of what L4 allows. */
#define EVENTS_MIN 1000000
/* A call is sent, lands and is answered; L4 allows four of them in a retry period. */
#define EVENTS_PER_RETRY 12

static void dispatch(struct world *w, const struct item *it);
static void reset(struct world *w, uint64_t seed);
static void populate(struct world *w);
static struct item queue_pop(struct world *w);

static sigjmp_buf on_trap;

/* What L4 allows all candidates together by now: a world of many days needs tens of millions. */
static uint64_t events_allowed(const struct world *w)
{
	uint64_t n = EVENTS_MIN;

	for (unsigned i = 0; i < w->params.n_procs; i++)
		n += EVENTS_PER_RETRY * (w->params.n_elections + 1) *
		     (w->now_ns / w->proc[i].timing.retry_ns);
	return n;
}

/* True: more happens than time can pass by. The bound is computed when the last one is reached. */
static bool spins(struct world *w)
{
	if (++w->n_events <= w->events_max)
		return false;
	w->events_max = events_allowed(w);
	return w->n_events > w->events_max;
}

static void trapped(int sig)
{
	siglongjmp(on_trap, sig);
}

void world_run(struct world *w, uint64_t seed)
{
	struct sigaction sa = {.sa_handler = trapped, .sa_flags = SA_NODEFER};

	/* CORE_ASSERT() traps: SIGILL on x86, SIGTRAP elsewhere. */
	(void)sigaction(SIGILL, &sa, NULL);
	(void)sigaction(SIGTRAP, &sa, NULL);
	reset(w, seed);
	populate(w);
	if (sigsetjmp(on_trap, 0) != 0) {
		violate(w, INV_ASSERT, "an assertion of the core failed");
		w->stop = true;
	}
	while (w->n_heap > 0 && !w->stop) {
		struct item it = queue_pop(w);

		if (it.at_ns > w->end_ns)
			break;
		w->now_ns = it.at_ns;
		if (spins(w)) {
			violate(w, INV_ADVANCE, "too many events: something spins");
			break;
		}
		dispatch(w, &it);
	}
	hash_mix(w, w->now_ns);
	trace(w, NULL, "the end");
}

void world_done(struct world *w)
{
	free(w->heap);
	free(w->msgs);
	free(w->applied);
	w->heap = NULL;
	w->msgs = NULL;
	w->applied = NULL;
}

static void reset(struct world *w, uint64_t seed)
{
	w->violation.inv = -1;
	w->rng = rng_stream(seed, 1, 0);
	w->seed = seed;
	w->now_ns = 0;
	w->end_ns = NEVER;
	w->quiet_ns = NEVER;
	w->hash = seed;
	w->outage_until_ns = 0;
	w->slow_until_ns = 0;
	w->order_serial = 0;
	for (unsigned x = 0; x < ELECTIONS_MAX; x++) {
		w->n_changes[x] = 0;
		w->last_led_ns[x] = 0;
		w->due_ns[x] = NEVER;
		w->unknown_since_ns[x] = NEVER;
		w->highest_term[x] = 0;
		w->resource_term[x] = 0;
		w->resource_owner[x] = 0;
		w->n_led[x] = 0;
	}
	w->n_scheduled = 0;
	w->phase = 0;
	w->n_events = 0;
	w->events_max = EVENTS_MIN;
	w->n_faults = 0;
	w->n_leaderships = 0;
	w->preempted = false;
	w->faulty_terms = false;
	w->stop = false;
	w->n_heap = 0;
	w->seq = 0;
	w->n_msgs = 0;
	w->free_msg = UINT32_MAX;
	w->n_applied = 0;
}

static void populate(struct world *w)
{
	struct rng r;

	params_draw(w);
	store_init(w);
	for (unsigned i = 0; i < w->params.n_procs; i++) {
		struct proc *p = &w->proc[i];

		memset(p, 0, sizeof(*p));
		p->slot = (uint16_t)i;
		p->timer_ns = NEVER;
		params_timing(w, p);
		params_options(w, p);
		p->absent = skips_has(&w->skips, SKIP_PROC | i);
		r = rng_stream(w->seed, 2, i);
		uint64_t at_ns = rng_chance(&r, 500) ? 0 : rng_below(&r, 2 * w->params.lease_ns);

		if (w->params.lattice_ns != 0)
			at_ns -= at_ns % w->params.lattice_ns;
		if (!p->absent)
			queue_push(w, at_ns, Q_BOOT, p->slot, NO_ELECTION, 0);
	}
	schedule_draw(w);
	trace_world(w);
	w->snapshot_ns = w->params.lease_ns / 2 + rng_below(&w->rng, 2 * w->params.lease_ns);
	if (w->params.strength[FAULT_STALE] != 0 || w->params.strength[FAULT_FAILOVER] != 0) {
		store_snapshot(w);
		queue_push(w, w->snapshot_ns, Q_SNAPSHOT, 0, NO_ELECTION, 0);
	}
	queue_push(w, w->params.safety_ns, Q_PHASE, 0, NO_ELECTION, 0);
}

/* Events of a process that sleeps wait for it, in their order. True: it is put off. */
static bool put_off(struct world *w, struct proc *p, const struct item *it)
{
	if (w->now_ns >= p->asleep_until_ns)
		return false;
	queue_push(w, p->asleep_until_ns, it->kind, it->proc, it->elec, it->arg);
	if (it->kind == Q_TIMER)
		p->timer_seq = w->seq;
	return true;
}

static void dispatch_proc(struct world *w, struct proc *p, const struct item *it)
{
	struct event ev = {.kind = EV_HINT};

	if (it->kind == Q_TIMER && it->seq != p->timer_seq)
		return; /* the alarm was set anew since */
	if (p->inc == 0 || put_off(w, p, it))
		return;
	proc_wake(w, p);
	switch (it->kind) {
	case Q_TIMER: proc_timer(w, p); break;
	case Q_HINT:
		if (p->election[it->elec].exists)
			proc_tell(w, p, it->elec, &ev);
		break;
	case Q_RECONNECT: proc_tell_lease(w, p, it->elec, &ev); break;
	case Q_DRAIN: app_drain(w, p, it->elec, it->arg); break;
	default: app_alive(w, p, it->elec, it->arg); break;
	}
	proc_settle(w, p);
}

static void dispatch_reply(struct world *w, const struct item *it)
{
	struct msg *m = &w->msgs[it->arg];
	struct proc *p = &w->proc[m->proc];

	if (p->inc == m->inc && put_off(w, p, it))
		return;
	if (p->inc == m->inc && !m->lost_reply) {
		proc_wake(w, p);
		proc_reply(w, p, m);
		proc_settle(w, p);
	}
	net_free(w, it->arg);
}

static void dispatch(struct world *w, const struct item *it)
{
	struct proc *p = &w->proc[it->proc];

	switch (it->kind) {
	case Q_REQUEST: net_request(w, it->arg); break;
	case Q_REPLY: dispatch_reply(w, it); break;
	case Q_BOOT:
		if (p->inc == 0)
			proc_boot(w, p);
		break;
	case Q_SCHEDULED: schedule_run(w, it->arg); break;
	case Q_EXPIRE: store_expire(w, p); break;
	case Q_SNAPSHOT:
		store_snapshot(w);
		queue_push(w, w->now_ns + w->snapshot_ns, Q_SNAPSHOT, 0, NO_ELECTION, 0);
		break;
	case Q_PHASE: phase_next(w); break;
	case Q_CHECK: phase_check(w); break;
	default: dispatch_proc(w, p, it); break;
	}
}

/* ---- faults ---- */

bool skips_has(const struct skips *s, uint64_t id)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->id[mid] == id)
			return true;
		if (s->id[mid] < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

void fault_happened(struct world *w, enum fault f, uint64_t id)
{
	w->n_faults++;
	cover_fault(f);
	hash_mix(w, (uint64_t)f << 8);
	if (!w->record)
		return;
	if (w->n_applied == w->applied_size) {
		w->applied_size = w->applied_size == 0 ? 256 : 2 * w->applied_size;
		w->applied = realloc(w->applied, w->applied_size * sizeof(*w->applied));
		if (w->applied == NULL)
			abort();
	}
	w->applied[w->n_applied++] = id;
}

bool fault_strikes(struct world *w, struct rng *r, enum fault f, uint64_t id)
{
	if (w->params.strength[f] == 0)
		return false;
	if (!rng_chance(r, w->params.strength[f]) || is_quiet(w))
		return false;
	if (w->skips.n > 0 && skips_has(&w->skips, id))
		return false;
	fault_happened(w, f, id);
	return true;
}

/* ---- the queue: a binary heap ---- */

static bool is_before(const struct item *a, const struct item *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

void queue_push(struct world *w, uint64_t at_ns, uint8_t kind, uint16_t proc, uint8_t elec,
		uint32_t arg)
{
	if (w->n_heap == w->heap_size) {
		w->heap_size = w->heap_size == 0 ? 1024 : 2 * w->heap_size;
		w->heap = realloc(w->heap, w->heap_size * sizeof(*w->heap));
		if (w->heap == NULL)
			abort();
	}
	struct item it = {.at_ns = at_ns < w->now_ns ? w->now_ns : at_ns,
			  .seq = ++w->seq,
			  .arg = arg,
			  .proc = proc,
			  .kind = kind,
			  .elec = elec};
	size_t i = w->n_heap++;

	while (i > 0 && is_before(&it, &w->heap[(i - 1) / 2])) {
		w->heap[i] = w->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	w->heap[i] = it;
}

static struct item queue_pop(struct world *w)
{
	struct item top = w->heap[0], last = w->heap[--w->n_heap];
	size_t i = 0, n = w->n_heap;

	while (2 * i + 1 < n) {
		size_t c = 2 * i + 1;

		if (c + 1 < n && is_before(&w->heap[c + 1], &w->heap[c]))
			c++;
		if (!is_before(&w->heap[c], &last))
			break;
		w->heap[i] = w->heap[c];
		i = c;
	}
	w->heap[i] = last;
	return top;
}
