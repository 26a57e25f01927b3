/*
 * net.c: what is between a process and the store. A request takes its time, happens at one instant
 * in the store, and its reply takes its time again. Each of its misfortunes is drawn from a
 * stream that belongs to this one message.
 */
#include "sim.h"

#include <stdlib.h>

static uint64_t latency(struct world *w, struct rng *r);
static void draw_faults(struct world *w, struct msg *m, struct rng *r, uint64_t *delay_ns);
static void spoil(struct world *w, struct msg *m, struct rng *r);

static uint32_t net_alloc(struct world *w)
{
	uint32_t m = w->free_msg;

	if (m != UINT32_MAX) {
		w->free_msg = w->msgs[m].next_free;
		return m;
	}
	if (w->n_msgs == 0 && w->msgs == NULL) {
		w->msgs = malloc(65536 * sizeof(*w->msgs));
		if (w->msgs == NULL)
			abort();
	}
	if (w->n_msgs == 65536)
		abort(); /* no world has that many under way */
	return w->n_msgs++;
}

void net_free(struct world *w, uint32_t m)
{
	w->msgs[m].next_free = w->free_msg;
	w->free_msg = m;
}

static uint64_t message_id(struct proc *p)
{
	return SKIP_MESSAGE | (uint64_t)p->slot << 44 | p->n_messages++ << 8;
}

static uint64_t id_of(const struct msg *m, enum fault f)
{
	return m->fault_id | (uint64_t)f;
}

void net_send(struct world *w, struct proc *p, unsigned idx, unsigned x, const struct action *a,
	      bool from_glue)
{
	uint32_t i = net_alloc(w);
	struct msg *m = &w->msgs[i];
	uint64_t delay_ns;

	*m = (struct msg){.act = *a,
			  .fault_id = message_id(p),
			  .inc = p->inc,
			  .proc = p->slot,
			  .idx = (uint8_t)idx,
			  .elec = (uint8_t)x,
			  .from_glue = from_glue};
	if (x != NO_ELECTION)
		m->gen = p->election[x].gen;
	/* The asker's lease is the driver's to know; the core names it only where it matters. */
	if (a->kind == ACT_OBSERVE)
		m->act.epoch = p->lease[idx].core.epoch;

	struct rng r = rng_stream(w->seed, m->fault_id, 0);

	delay_ns = latency(w, &r);
	if (fault_strikes(w, &r, FAULT_LOST_REQUEST, id_of(m, FAULT_LOST_REQUEST))) {
		trace(w, p, "fault: the request is lost");
		net_free(w, i);
		return;
	}
	if (fault_strikes(w, &r, FAULT_DOUBLE_REQUEST, id_of(m, FAULT_DOUBLE_REQUEST))) {
		uint32_t twin = net_alloc(w);
		uint64_t late_ns = delay_ns + rng_below(&r, 2 * w->params.lease_ns);

		w->msgs[twin] = *m;
		w->msgs[twin].lost_reply = true;
		trace(w, p, "fault: the request will be carried out twice");
		queue_push(w, min_ns(w->now_ns + late_ns, w->params.safety_ns), Q_REQUEST, p->slot,
			   NO_ELECTION, twin);
	}
	draw_faults(w, m, &r, &delay_ns);
	queue_push(w, w->now_ns + delay_ns, Q_REQUEST, p->slot, NO_ELECTION, i);
}

static uint64_t latency(struct world *w, struct rng *r)
{
	const struct params *q = &w->params;
	uint64_t d = rng_range(r, q->lat_min_ns, q->lat_max_ns);

	if (q->lattice_ns != 0)
		d -= d % q->lattice_ns;
	if (w->now_ns < w->slow_until_ns && !is_quiet(w))
		d = d * w->slow_factor;
	return d;
}

static void draw_faults(struct world *w, struct msg *m, struct rng *r, uint64_t *delay_ns)
{
	const struct proc *p = &w->proc[m->proc];

	if (fault_strikes(w, r, FAULT_LATE_REQUEST, id_of(m, FAULT_LATE_REQUEST))) {
		*delay_ns += rng_below(r, 2 * w->params.lease_ns);
		if (w->now_ns + *delay_ns > w->params.safety_ns)
			*delay_ns = w->params.safety_ns - w->now_ns;
		trace(w, p, "fault: the request will land late");
	}
	if (fault_strikes(w, r, FAULT_SWAP, id_of(m, FAULT_SWAP)))
		*delay_ns += rng_below(r, 8 * w->params.lat_max_ns + 1);
	if (fault_strikes(w, r, FAULT_LOST_REPLY, id_of(m, FAULT_LOST_REPLY)))
		m->lost_reply = true;
	if (fault_strikes(w, r, FAULT_FAILED, id_of(m, FAULT_FAILED)))
		m->failed = true;
	else if (fault_strikes(w, r, FAULT_RESET, id_of(m, FAULT_RESET)))
		m->reset = true;
	if (m->act.kind == ACT_OBSERVE && fault_strikes(w, r, FAULT_STALE, id_of(m, FAULT_STALE)))
		m->stale = true;
	if (m->act.kind == ACT_CAMPAIGN &&
	    fault_strikes(w, r, FAULT_NO_FLOOR, id_of(m, FAULT_NO_FLOOR)))
		m->no_floor = true;
	if ((m->act.kind == ACT_CAMPAIGN || m->act.kind == ACT_OBSERVE) &&
	    fault_strikes(w, r, FAULT_CORRUPT, id_of(m, FAULT_CORRUPT)))
		m->corrupt = true;
}

void net_request(struct world *w, uint32_t i)
{
	struct msg *m = &w->msgs[i];
	struct rng r = rng_stream(w->seed, m->fault_id, 1);

	if (w->now_ns < w->outage_until_ns && !is_quiet(w)) {
		if (rng_chance(&r, 500)) {
			net_free(w, i);
			return;
		}
		m->outcome = OUTCOME_FAILED;
	} else if (m->failed) {
		m->outcome = OUTCOME_FAILED;
	} else {
		store_carry_out(w, m);
		spoil(w, m, &r);
	}
	if (m->lost_reply || m->from_glue) {
		if (m->lost_reply)
			trace(w, &w->proc[m->proc], "fault: the reply is lost");
		net_free(w, i);
		return;
	}
	struct proc *p = &w->proc[m->proc];

	if (p->inc != 0 && m->elec != NO_ELECTION &&
	    fault_strikes(w, &r, FAULT_SPURIOUS_HINT, id_of(m, FAULT_SPURIOUS_HINT)))
		net_hint(w, p, m->elec);
	queue_push(w, w->now_ns + latency(w, &r), Q_REPLY, m->proc, NO_ELECTION, i);
}

/* What the caller hears need not be what happened. */
static void spoil(struct world *w, struct msg *m, struct rng *r)
{
	static const uint64_t bad[] = {TERM_MAX, TERM_MAX + 1, UINT64_MAX, 0, 1};

	if (m->corrupt) {
		uint64_t n = rng_below(r, 6);

		w->faulty_terms = true;
		m->view[0].term = n < 5 ? bad[n] : m->view[0].term + 2 * TERM_JUMP_MAX;
		trace(w, &w->proc[m->proc], "fault: the reply will speak of term %llu",
		      (unsigned long long)m->view[0].term);
	}
	if (m->reset) {
		m->outcome = OUTCOME_UNKNOWN;
		trace(w, &w->proc[m->proc], "fault: the connection is reset");
	}
}

void net_hint(struct world *w, struct proc *p, unsigned x)
{
	uint64_t id = message_id(p);
	struct rng r = rng_stream(w->seed, id, 2);
	uint64_t delay_ns = rng_below(&r, w->params.push_max_ns + 1);

	if (w->params.lattice_ns != 0)
		delay_ns -= delay_ns % w->params.lattice_ns;
	if (!w->params.watched && fault_strikes(w, &r, FAULT_LOST_HINT, id | FAULT_LOST_HINT))
		return;
	if (w->now_ns < w->outage_until_ns && !is_quiet(w))
		delay_ns += w->outage_until_ns - w->now_ns;
	queue_push(w, w->now_ns + delay_ns, Q_HINT, p->slot, (uint8_t)x, 0);
}

void net_push(struct world *w, unsigned x)
{
	for (unsigned i = 0; i < w->params.n_procs; i++)
		if (w->proc[i].inc != 0 && w->proc[i].election[x].exists)
			net_hint(w, &w->proc[i], x);
}
