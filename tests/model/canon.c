/*
 * canon.c: worlds that behave alike are made to look alike.
 *
 * Numbers that are only compared for being equal (incarnations, epochs, nonces, orders) are renamed
 * by rank. Requests that can't have an effect any more are forgotten, and so are leases that
 * nobody will ask for, and fields that the core won't read before it writes them. That this is
 * right is not taken on trust: see selfcheck.c.
 */
#include <string.h>

#include "model.h"

#define N_NAMES 16

struct names {
	uint8_t list[N_NAMES];
	unsigned n;
};

/* ---- what nobody needs ---- */

static bool in_flight(const struct world *w, struct lease_id id, uint8_t kind)
{
	for (unsigned i = 0; i < w->n_strays; i++)
		if (w->strays[i].kind == kind && same_lease(w->strays[i].lease, id))
			return true;
	for (unsigned i = 0; i < N_SLOTS; i++) {
		const struct slot *s = &w->cands[id.cand - 1u].slots[i];

		if (s->phase == PHASE_REQUEST && s->msg.kind == kind &&
		    same_lease(s->msg.lease, id))
			return true;
	}
	return false;
}

static bool is_current(const struct world *w, struct lease_id id)
{
	const struct cand *c = &w->cands[id.cand - 1u];

	return c->up && c->inc == id.inc && c->lease.epoch == id.epoch &&
	       c->lease.state != LEASE_CLOSED;
}

static bool is_needed(const struct world *w, struct lease_id id)
{
	return same_lease(w->store.holder, id) || is_current(w, id) ||
	       in_flight(w, id, ACT_CAMPAIGN);
}

static bool has_effect(const struct world *w, const struct message *m)
{
	const struct store *s = &w->store;
	bool exists = store_find(s, m->lease) != NULL;

	switch (m->kind) {
	case ACT_OPEN: return is_needed(w, m->lease);
	case ACT_CAMPAIGN: return exists || trial.setup->own || in_flight(w, m->lease, ACT_OPEN);
	case ACT_RELEASE:
		return same_lease(s->holder, m->lease) && s->nonce == m->nonce &&
		       s->term == m->term;
	default: /* ACT_RENEW, ACT_CLOSE */
		return is_needed(w, m->lease) &&
		       (exists || in_flight(w, m->lease, ACT_OPEN) ||
			(trial.setup->own && in_flight(w, m->lease, ACT_CAMPAIGN)));
	}
}

static void forget(struct world *w)
{
	for (unsigned i = 0; i < w->n_strays;) {
		if (has_effect(w, &w->strays[i])) {
			i++;
			continue;
		}
		w->strays[i] = w->strays[--w->n_strays];
		i = 0; /* others may have depended on it */
	}
	memset(&w->strays[w->n_strays], 0, sizeof(w->strays[0]) * (N_STRAYS - w->n_strays));
	for (int i = w->store.n_leases - 1; i >= 0; i--)
		if (!is_needed(w, w->store.leases[i].id))
			store_drop(&w->store, w->store.leases[i].id);
}

/* ---- names by rank ---- */

static void add_name(struct names *n, uint64_t name)
{
	unsigned i = 0;

	if (name == 0)
		return;
	while (i < n->n && n->list[i] < name)
		i++;
	if (i < n->n && n->list[i] == name)
		return;
	if (n->n == N_NAMES) {
		rule_break(RULE_MODEL);
		return;
	}
	memmove(&n->list[i + 1], &n->list[i], n->n - i);
	n->list[i] = (uint8_t)name;
	n->n++;
}

static uint8_t rank(const struct names *n, uint64_t name)
{
	for (unsigned i = 0; i < n->n; i++)
		if (n->list[i] == name)
			return (uint8_t)(i + 1);
	return 0;
}

/* Calls fn for every place outside of the core where a lease of this candidate is named. */
static void each_lease(struct world *w, unsigned c, void (*fn)(struct lease_id *, void *),
		       void *arg)
{
	uint8_t cand = (uint8_t)(c + 1);

	for (unsigned i = 0; i < w->store.n_leases; i++)
		if (w->store.leases[i].id.cand == cand)
			fn(&w->store.leases[i].id, arg);
	if (w->store.holder.cand == cand)
		fn(&w->store.holder, arg);
	for (unsigned i = 0; i < w->n_strays; i++)
		if (w->strays[i].lease.cand == cand)
			fn(&w->strays[i].lease, arg);
	for (unsigned i = 0; i < N_SLOTS; i++)
		if (w->cands[c].slots[i].phase == PHASE_REQUEST)
			fn(&w->cands[c].slots[i].msg.lease, arg);
}

struct renaming {
	struct names names;
	uint8_t inc;
};

static void collect_inc(struct lease_id *id, void *arg)
{
	add_name(arg, id->inc + 1u);
}

static void rename_inc(struct lease_id *id, void *arg)
{
	id->inc = (uint8_t)(rank(arg, id->inc + 1u) - 1);
}

static void rename_incs(struct world *w, unsigned c)
{
	struct cand *x = &w->cands[c];
	struct names names = {.n = 0};

	/* A dead process's number matters too: the next one must not be mistaken for it. */
	add_name(&names, x->inc + 1u);
	each_lease(w, c, collect_inc, &names);
	each_lease(w, c, rename_inc, &names);
	x->inc = (uint8_t)(rank(&names, x->inc + 1u) - 1);
}

static void collect_epoch(struct lease_id *id, void *arg)
{
	struct renaming *r = arg;

	if (id->inc == r->inc)
		add_name(&r->names, id->epoch);
}

static void rename_epoch(struct lease_id *id, void *arg)
{
	struct renaming *r = arg;

	if (id->inc == r->inc)
		id->epoch = rank(&r->names, id->epoch);
}

static void rename_epochs(struct world *w, unsigned c)
{
	struct cand *x = &w->cands[c];
	struct lease *l = &x->lease;
	struct election *e = &x->election;

	for (uint8_t inc = 0; inc <= x->inc; inc++) {
		struct renaming r = {.inc = inc};

		each_lease(w, c, collect_epoch, &r);
		if (inc == x->inc && x->up) {
			add_name(&r.names, l->epoch);
			add_name(&r.names, l->call_epoch);
			add_name(&r.names, l->claims_epoch);
			add_name(&r.names, e->epoch);
			add_name(&r.names, x->has_epoch);
			x->has_epoch = rank(&r.names, x->has_epoch);
			l->epoch = rank(&r.names, l->epoch);
			l->call_epoch = rank(&r.names, l->call_epoch);
			l->claims_epoch = rank(&r.names, l->claims_epoch);
			e->epoch = rank(&r.names, e->epoch);
			e->tally.epoch = l->epoch;
		}
		each_lease(w, c, rename_epoch, &r);
	}
}

static bool is_ours(const struct world *w, unsigned c, uint8_t inc)
{
	return w->store.holder.cand == c + 1 && w->store.holder.inc == inc;
}

/* The nonces of one process, wherever they are; those of the core last. */
static void each_nonce(struct world *w, unsigned c, uint8_t inc, void (*fn)(uint8_t *, void *),
		       void *arg)
{
	struct cand *x = &w->cands[c];

	if (is_ours(w, c, inc))
		fn(&w->store.nonce, arg);
	for (unsigned i = 0; i < w->n_strays; i++)
		if (w->strays[i].lease.cand == c + 1 && w->strays[i].lease.inc == inc)
			fn(&w->strays[i].nonce, arg);
	if (inc != x->inc || !x->up)
		return;
	for (unsigned i = 0; i < N_SLOTS; i++) {
		fn(&x->slots[i].msg.nonce, arg);
		fn(&x->slots[i].reply.nonce, arg);
	}
}

static void collect_nonce(uint8_t *nonce, void *arg)
{
	add_name(arg, *nonce);
}

static void rename_nonce(uint8_t *nonce, void *arg)
{
	*nonce = rank(arg, *nonce);
}

static void rename_calls(struct election *e, struct lease *l, const struct slot *s,
			 struct names *names)
{
	bool campaign = s->phase != PHASE_NONE && s->msg.kind == ACT_CAMPAIGN;

	if (rank(names, e->doubt) == 0 && !(campaign && e->doubt == e->call))
		e->doubt = 0; /* nothing of it is left */
	add_name(names, e->nonce);
	if (campaign)
		add_name(names, e->call);
	e->nonce = rank(names, e->nonce);
	e->doubt = rank(names, e->doubt);
	l->calls = names->n;
	if (campaign)
		e->call = rank(names, e->call);
	else if (e->call != 0)
		e->call = ++l->calls;
}

static void rename_nonces(struct world *w, unsigned c)
{
	struct cand *x = &w->cands[c];

	for (uint8_t inc = 0; inc <= x->inc; inc++) {
		struct names names = {.n = 0};

		each_nonce(w, c, inc, collect_nonce, &names);
		if (inc == x->inc && x->up)
			rename_calls(&x->election, &x->lease, &x->slots[SLOT_ELECTION], &names);
		each_nonce(w, c, inc, rename_nonce, &names);
	}
}

/* Of the numbers of the lease's calls only this is ever asked: was it before the mark? */
static void rename_lease_calls(struct lease *l, struct election *e)
{
	bool old = l->claims_call != 0 && l->claims_call <= e->mark;

	e->mark = old ? 2 : 1;
	l->claims_call = l->claims_call != 0 ? 2 : 0;
	l->call = l->call != 0 ? 3 : 0;
	l->claims_answered = 0;
	l->serial = 3;
}

/* ---- what the core won't read ---- */

static bool has_terms(const struct election *e)
{
	return e->state == ELECTION_LEADING || e->state == ELECTION_RESIGNING ||
	       e->state == ELECTION_RELEASING;
}

static void trim_election(struct election *e, const struct lease *l)
{
	if (!has_terms(e)) {
		e->term = 0;
		e->nonce = 0;
		if (e->state != ELECTION_CAMPAIGNING)
			e->epoch = 0;
	}
	if (e->state != ELECTION_LEADING) {
		e->work_ns = NEVER;
		if (e->barred < e->floor)
			e->barred = 0;
	}
	if (e->state != ELECTION_RESIGNING)
		e->overdue_ns = NEVER;
	if (e->state != ELECTION_RESIGNING && e->state != ELECTION_RELEASING)
		e->successor = NOBODY;
	if (e->state == ELECTION_STOPPED || e->state == ELECTION_CAMPAIGNING ||
	    e->state == ELECTION_RESIGNING)
		e->next_ns = 0; /* planned anew when that ends */
	if (e->tally.epoch != l->epoch)
		e->tally = (struct tally){0};
	if (e->doubt == 0 || !l->own)
		e->doubt_ns = 0;
	if (e->call == 0)
		e->call_kind = 0;
}

static void trim_lease(struct lease *l)
{
	if (l->call == 0) {
		l->call_kind = 0;
		l->call_epoch = 0;
	}
	l->ended = l->ended && l->call_kind == ACT_CLOSE;
	if (l->call == 0 || l->call_kind != ACT_RENEW) {
		l->least_held = 0;
		l->most_held = 0;
	}
	if (l->claims_call == 0)
		l->claims_epoch = 0;
}

static void trim_slot(struct slot *s)
{
	if (s->phase == PHASE_NONE)
		*s = (struct slot){0};
	if (s->phase == PHASE_REPLY || s->phase == PHASE_LOST)
		s->msg = (struct message){.kind = s->msg.kind};
	if (s->phase != PHASE_REPLY)
		s->reply = (struct reply){.outcome = s->phase == PHASE_LOST ? OUTCOME_UNKNOWN : 0};
	if (s->msg.kind == ACT_CLAIMS)
		s->reply = (struct reply){
			.outcome = s->reply.outcome,
			.term = (s->reply.flags & REPLY_MINE) != 0 ? s->reply.term : 0,
			.nonce = s->reply.nonce,
			.flags = s->reply.flags & REPLY_MINE,
		};
}

/* Orders that are told, or on their way; the next one's number must differ from theirs. */
static void rename_orders(struct world *w)
{
	struct store *s = &w->store;
	struct names names = {.n = 0};

	if (s->order != ORDER_NONE)
		add_name(&names, s->order_id);
	for (unsigned c = 0; c < N_CANDS; c++)
		for (unsigned i = 0; i < N_SLOTS; i++)
			add_name(&names, w->cands[c].slots[i].reply.order_id);
	for (unsigned c = 0; c < N_CANDS; c++) {
		struct election *e = &w->cands[c].election;

		e->order_done = rank(&names, e->order_done);
		for (unsigned i = 0; i < N_SLOTS; i++) {
			uint8_t *id = &w->cands[c].slots[i].reply.order_id;

			*id = rank(&names, *id);
		}
	}
	s->order_id = (uint8_t)names.n;
}

static int compare_strays(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct message));
}

static void sort_strays(struct world *w)
{
	for (unsigned i = 1; i < w->n_strays; i++)
		for (unsigned j = i; j > 0; j--) {
			struct message *a = &w->strays[j - 1];
			struct message m = *a;

			if (compare_strays(a, a + 1) <= 0)
				break;
			a[0] = a[1];
			a[1] = m;
		}
}

static int compare_leases(const struct stored_lease *a, const struct stored_lease *b)
{
	return memcmp(&a->id, &b->id, sizeof(a->id));
}

static void sort_leases(struct store *s)
{
	for (unsigned i = 1; i < s->n_leases; i++)
		for (unsigned j = i; j > 0; j--) {
			struct stored_lease *a = &s->leases[j - 1];
			struct stored_lease l = *a;

			if (compare_leases(a, a + 1) <= 0)
				break;
			a[0] = a[1];
			a[1] = l;
		}
}

void world_tidy(struct world *w)
{
	forget(w);
	sort_strays(w);
	sort_leases(&w->store);
}

void world_canon(struct world *w)
{
	forget(w);
	for (unsigned c = 0; c < N_CANDS; c++)
		for (unsigned i = 0; i < N_SLOTS; i++)
			trim_slot(&w->cands[c].slots[i]);
	rename_orders(w);
	for (unsigned c = 0; c < N_CANDS; c++) {
		struct cand *x = &w->cands[c];

		if (!x->leads && x->last_term < w->store.term)
			x->last_term = 0;
		if (!x->works)
			x->work_end_ns = 0;
		if (x->up) {
			trim_lease(&x->lease);
			trim_election(&x->election, &x->lease);
			rename_lease_calls(&x->lease, &x->election);
		}
		rename_incs(w, c);
		rename_epochs(w, c);
		rename_nonces(w, c);
	}
	sort_strays(w);
	sort_leases(&w->store);
}
