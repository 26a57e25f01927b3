/*
 * store.c: the model store. Exact unless told otherwise: every request is one atomic step at one
 * instant of the store's clock, a lease is never shorter than asked for, and the term is minted in
 * the same step that takes the claim. Its weaknesses are functions of their own at the end.
 *
 * An own lease comes into being with the campaign that wins, and goes with the release.
 */
#include "sim.h"

#include <string.h>

/* ---- leases ---- */

static struct store_lease *find(struct store *s, unsigned proc, uint32_t inc, unsigned idx,
				uint64_t epoch)
{
	struct store_leases *of = &s->of[proc];

	for (uint64_t i = 0; i < of->n; i++)
		if (of->list[i].epoch == epoch && of->list[i].inc == inc && of->list[i].idx == idx)
			return &of->list[i];
	return NULL;
}

const struct store_lease *store_find(const struct store *s, unsigned proc, uint32_t inc,
				     unsigned idx, uint64_t epoch)
{
	const struct store_leases *of = &s->of[proc];

	for (uint64_t i = 0; i < of->n; i++)
		if (of->list[i].epoch == epoch && of->list[i].inc == inc && of->list[i].idx == idx)
			return &of->list[i];
	return NULL;
}

static struct store_lease *find_living(struct world *w, const struct msg *m)
{
	struct store_lease *l = find(&w->store, m->proc, m->inc, m->idx, m->act.epoch);

	return l != NULL && w->now_ns < l->dies_ns ? l : NULL;
}

bool store_holds(const struct store *s, unsigned x, uint64_t now_ns)
{
	const struct store_record *r = &s->record[x];

	if (!r->held)
		return false;
	const struct store_lease *l = store_find(s, r->proc, r->inc, r->idx, r->epoch);

	return l != NULL && now_ns < l->dies_ns;
}

/* One alarm per process: it sweeps all of its leases, and is set again. */
static void arm(struct world *w, unsigned proc, uint64_t at_ns)
{
	struct store_leases *of = &w->store.of[proc];

	if (of->armed_ns > w->now_ns && of->armed_ns <= at_ns)
		return;
	of->armed_ns = at_ns;
	queue_push(w, at_ns, Q_EXPIRE, (uint16_t)proc, NO_ELECTION, 0);
}

static void prolong(struct world *w, struct store_lease *l, unsigned proc, struct rng *r)
{
	uint64_t late_ns = 0;

	l->expires_ns = w->now_ns + l->ttl_ns;
	/* Some stores look for expired leases only now and then, in quiet times, too. */
	if (w->params.expiry_late_ns != 0) {
		late_ns = rng_below(r, w->params.expiry_late_ns);
		fault_happened(w, FAULT_LATE_EXPIRY, 0);
	}
	l->dies_ns = l->expires_ns + late_ns;
	arm(w, proc, l->dies_ns);
}

static bool holds_record(const struct world *w, unsigned x, const struct msg *m)
{
	const struct store_record *r = &w->store.record[x];

	return r->held && r->proc == m->proc && r->inc == m->inc && r->idx == m->idx &&
	       r->epoch == m->act.epoch;
}

static void free_record(struct world *w, unsigned x, bool push)
{
	w->store.record[x].held = false;
	w->n_changes[x]++;
	if (push)
		net_push(w, x);
}

/* A lease ends: all that it carries is free. Not every store pushes when one just runs out. */
static void end_lease(struct world *w, unsigned proc, uint64_t i, bool push)
{
	struct store_leases *of = &w->store.of[proc];
	struct store_lease l = of->list[i];

	of->list[i] = of->list[--of->n];
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		const struct store_record *r = &w->store.record[x];

		if (r->held && r->proc == proc && r->inc == l.inc && r->idx == l.idx &&
		    r->epoch == l.epoch)
			free_record(w, x, push);
	}
}

static struct store_lease *new_lease(struct world *w, const struct msg *m, struct rng *r)
{
	struct store_leases *of = &w->store.of[m->proc];
	struct store_lease *l = find(&w->store, m->proc, m->inc, m->idx, m->act.epoch);

	if (l == NULL) {
		if (of->n == STORE_LEASES_MAX)
			return NULL;
		l = &of->list[of->n++];
		*l = (struct store_lease){.epoch = m->act.epoch, .inc = m->inc, .idx = m->idx};
	}
	l->ttl_ns = w->proc[m->proc].timing.lease_ns;
	prolong(w, l, m->proc, r);
	return l;
}

void store_expire(struct world *w, struct proc *p)
{
	struct store_leases *of = &w->store.of[p->slot];
	uint64_t next_ns = NEVER;

	for (uint64_t i = of->n; i-- > 0;) {
		if (w->now_ns < of->list[i].dies_ns) {
			next_ns = min_ns(next_ns, of->list[i].dies_ns);
			continue;
		}
		trace(w, NULL, "store: a lease of %s expires", trace_name(p));
		end_lease(w, p->slot, i, w->params.watched);
	}
	if (w->now_ns >= of->armed_ns && next_ns != NEVER)
		arm(w, p->slot, next_ns);
}

/* ---- views ---- */

static void fill_view(const struct world *w, const struct store *s, uint64_t now_ns, unsigned x,
		      const struct msg *m, uint64_t epoch, struct view *v)
{
	const struct store_record *r = &s->record[x];
	const struct store_lease *l = store_find(s, r->proc, r->inc, r->idx, r->epoch);

	*v = (struct view){.term = r->term,
			   .free_in_ns = NEVER,
			   .paused = r->paused,
			   .order = r->order,
			   .order_id = r->order_id,
			   .order_term = r->order_term,
			   .order_quiet_ns = r->order_quiet_ns,
			   .order_target = r->order_target,
			   /* Two are few; three count for many, so that crowds are seen. */
			   .crowd = (uint16_t)(w->params.n_procs > 2 ? 40 * w->params.n_procs : 0),
			   .watched = w->params.watched};
	if (r->held && l != NULL && now_ns < l->dies_ns) {
		const struct proc *p = &w->proc[r->proc];

		v->held = true;
		v->leader = r->inc;
		v->mine = r->proc == m->proc && r->inc == m->inc && r->idx == m->idx &&
			  r->epoch == epoch;
		v->nonce = v->mine ? r->nonce : 0;
		if (w->params.tells_expiry)
			v->free_in_ns = l->expires_ns > now_ns ? l->expires_ns - now_ns : 0;
		v->priority = w->options[r->proc].o[x].priority;
		v->score = p->inc == r->inc ? p->election[x].app.score : 0;
	} else if (r->reserved_until_ns > now_ns && r->reserved_for != m->inc) {
		v->free_in_ns = r->reserved_until_ns - now_ns;
	}
}

static void view_now(struct world *w, unsigned x, struct msg *m, struct view *v)
{
	fill_view(w, &w->store, w->now_ns, x, m, m->act.epoch, v);
	if (v->order == ORDER_TRANSFER)
		v->target_ok = proc_is_target(w, v->order_target, x);
}

/* ---- requests ---- */

static void answer(struct msg *m, uint8_t outcome)
{
	m->outcome = outcome;
}

static uint32_t count_claims(const struct world *w, const struct msg *m)
{
	uint32_t n = 0;

	for (unsigned x = 0; x < w->params.n_elections; x++)
		n += holds_record(w, x, m);
	return n;
}

static void do_renew(struct world *w, struct msg *m, struct rng *r)
{
	struct store_lease *l = find_living(w, m);

	answer(m, l != NULL ? OUTCOME_OK : OUTCOME_REFUSED);
	if (l == NULL)
		return;
	prolong(w, l, m->proc, r);
	m->n_held = count_claims(w, m);
}

static void do_close(struct world *w, struct msg *m)
{
	struct store_lease *l = find(&w->store, m->proc, m->inc, m->idx, m->act.epoch);

	answer(m, l != NULL ? OUTCOME_OK : OUTCOME_REFUSED);
	if (l != NULL)
		end_lease(w, m->proc, (uint64_t)(l - w->store.of[m->proc].list), true);
}

static void do_claims(struct world *w, struct msg *m)
{
	bool lives = find_living(w, m) != NULL;

	answer(m, OUTCOME_OK);
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		view_now(w, x, m, &m->view[x]);
		if (!lives || !m->view[x].mine)
			m->view[x].held = false;
	}
}

static bool may_grant(struct world *w, unsigned x, const struct msg *m, uint64_t floor)
{
	const struct store_record *r = &w->store.record[x];

	if (!w->params.own && find_living(w, m) == NULL)
		return false;
	if (r->paused || store_holds(&w->store, x, w->now_ns))
		return false;
	if (r->reserved_until_ns > w->now_ns && r->reserved_for != m->inc)
		return false;
	if (r->term > 0 && floor > r->term && floor - r->term > TERM_JUMP_MAX)
		return false; /* corrupt, and not believed */
	return max_ns(r->term, floor) < TERM_MAX;
}

static void do_campaign(struct world *w, struct msg *m, struct rng *rng)
{
	unsigned x = m->elec;
	struct store_record *r = &w->store.record[x];
	uint64_t floor = m->no_floor ? 0 : m->act.floor;

	if (!may_grant(w, x, m, floor) || (w->params.own && new_lease(w, m, rng) == NULL)) {
		answer(m, OUTCOME_REFUSED);
		view_now(w, x, m, &m->view[0]);
		return;
	}
	r->term = max_ns(r->term, floor) + 1;
	r->held = true;
	r->proc = m->proc;
	r->inc = m->inc;
	r->idx = m->idx;
	r->epoch = m->act.epoch;
	r->nonce = m->act.nonce;
	r->reserved_until_ns = 0;
	w->n_changes[x]++;
	trace(w, NULL, "store: election %u goes to %s in term %llu", x,
	      trace_name(&w->proc[m->proc]), (unsigned long long)r->term);
	answer(m, OUTCOME_OK);
	view_now(w, x, m, &m->view[0]);
}

static void do_observe(struct world *w, struct msg *m)
{
	answer(m, OUTCOME_OK);
	if (m->stale) { /* from a replica that lags; such a one doesn't promise to push */
		fill_view(w, &w->snapshot, w->snapshot.at_ns, m->elec, m, m->act.epoch,
			  &m->view[0]);
		m->view[0].watched = false;
		/* Old news are news, and are taken back by the next look. */
		const struct store_record *r = &w->store.record[m->elec];
		bool held = store_holds(&w->store, m->elec, w->now_ns);

		w->n_changes[m->elec] += m->view[0].paused != r->paused ||
					 m->view[0].held != held || m->view[0].term != r->term;
	} else {
		view_now(w, m->elec, m, &m->view[0]);
	}
}

static void do_release(struct world *w, struct msg *m)
{
	unsigned x = m->elec;
	struct store_record *r = &w->store.record[x];
	struct store_lease *l = find_living(w, m);

	if (l == NULL || !holds_record(w, x, m) || r->nonce != m->act.nonce ||
	    r->term != m->act.term) {
		answer(m, OUTCOME_REFUSED);
		return;
	}
	trace(w, NULL, "store: %s gives back election %u", trace_name(&w->proc[m->proc]), x);
	r->reserved_for = m->act.target;
	r->reserved_until_ns = m->act.target != NOBODY ? w->now_ns + m->act.hold_ns : 0;
	answer(m, OUTCOME_OK);
	if (w->params.own)
		end_lease(w, m->proc, (uint64_t)(l - w->store.of[m->proc].list), true);
	else
		free_record(w, x, true);
}

static void do_order(struct world *w, struct msg *m)
{
	const struct store_record *r = &w->store.record[m->elec];

	answer(m, OUTCOME_OK);
	if (r->term == m->act.term && store_holds(&w->store, m->elec, w->now_ns))
		store_order(w, m->elec, ORDER_TRANSFER, m->act.term, m->act.target, 0);
	else
		answer(m, OUTCOME_REFUSED);
}

void store_carry_out(struct world *w, struct msg *m)
{
	struct rng r = rng_stream(w->seed, m->fault_id, 7);

	switch (m->act.kind) {
	case ACT_OPEN: answer(m, new_lease(w, m, &r) != NULL ? OUTCOME_OK : OUTCOME_FAILED); break;
	case ACT_RENEW: do_renew(w, m, &r); break;
	case ACT_CLOSE: do_close(w, m); break;
	case ACT_CLAIMS: do_claims(w, m); break;
	case ACT_CAMPAIGN: do_campaign(w, m, &r); break;
	case ACT_OBSERVE: do_observe(w, m); break;
	case ACT_RELEASE: do_release(w, m); break;
	default: do_order(w, m); break;
	}
}

/* ---- the operator ---- */

void store_order(struct world *w, unsigned x, uint8_t kind, uint64_t term, uint32_t target,
		 uint64_t quiet_ns)
{
	struct store_record *r = &w->store.record[x];

	r->order = kind;
	r->order_id = ++w->order_serial;
	r->order_term = term;
	r->order_target = target;
	r->order_quiet_ns = quiet_ns;
	w->n_changes[x]++;
	net_push(w, x);
}

void store_pause(struct world *w, unsigned x, bool paused)
{
	if (w->store.record[x].paused == paused)
		return;
	w->store.record[x].paused = paused;
	w->n_changes[x]++;
	net_push(w, x);
}

/* ---- start, weaknesses ---- */

void store_init(struct world *w)
{
	for (unsigned x = 0; x < ELECTIONS_MAX; x++)
		w->store.record[x] = (struct store_record){.term = w->params.term_start};
	for (unsigned i = 0; i < w->params.n_procs; i++) {
		w->store.of[i].n = 0;
		w->store.of[i].armed_ns = 0;
	}
}

/* The server saw the connection of a dead process end, and knows that it is dead. */
void store_prove_death(struct world *w, struct proc *p)
{
	struct store_leases *of = &w->store.of[p->slot];

	for (uint64_t i = of->n; i-- > 0;)
		if (of->list[i].inc == p->inc)
			end_lease(w, p->slot, i, true);
}

static void copy(struct world *w, struct store *to, const struct store *from)
{
	memcpy(to->record, from->record, sizeof(to->record));
	for (unsigned i = 0; i < w->params.n_procs; i++) {
		to->of[i].n = from->of[i].n;
		memcpy(to->of[i].list, from->of[i].list,
		       from->of[i].n * sizeof(struct store_lease));
	}
}

void store_snapshot(struct world *w)
{
	copy(w, &w->snapshot, &w->store);
	w->snapshot.at_ns = w->now_ns;
}

static void changed(struct world *w)
{
	for (unsigned i = 0; i < w->params.n_procs; i++) {
		struct store_leases *of = &w->store.of[i];

		for (uint64_t k = 0; k < of->n; k++)
			arm(w, i, of->list[k].dies_ns);
	}
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		w->n_changes[x]++;
		net_push(w, x);
	}
}

/* The replica that takes over has not heard the last writes. */
void store_fail_over(struct world *w)
{
	copy(w, &w->store, &w->snapshot);
	changed(w);
}

void store_lose_all(struct world *w)
{
	for (unsigned x = 0; x < ELECTIONS_MAX; x++)
		w->store.record[x] = (struct store_record){0};
	for (unsigned i = 0; i < w->params.n_procs; i++)
		w->store.of[i].n = 0;
	changed(w);
}

static uint64_t shift(uint64_t t, int64_t by_ns)
{
	if (by_ns >= 0)
		return t > (uint64_t)by_ns ? t - (uint64_t)by_ns : 0;
	return t + (uint64_t)-by_ns;
}

/* A step forward lets everything end earlier; one back, later. */
void store_step_clock(struct world *w, int64_t by_ns)
{
	for (unsigned x = 0; x < ELECTIONS_MAX; x++)
		w->store.record[x].reserved_until_ns =
			shift(w->store.record[x].reserved_until_ns, by_ns);
	for (unsigned i = 0; i < w->params.n_procs; i++) {
		struct store_leases *of = &w->store.of[i];

		for (uint64_t k = 0; k < of->n; k++) {
			of->list[k].expires_ns = shift(of->list[k].expires_ns, by_ns);
			of->list[k].dies_ns = shift(of->list[k].dies_ns, by_ns);
		}
	}
	changed(w);
}
