/*
 * pack.c: a world as few bytes. One description serves both directions, so that what is written
 * and what is read can't differ. Times are relative to now, in ticks: a moment that has passed is
 * as good as now, and what was long ago is as good as what was longer ago.
 */
#include <string.h>

#include "model.h"

/* A new field of the core is a new part of the state: add it below, then here. */
_Static_assert(offsetof(struct lease, pad) == 48 + 15 * 8 + 6 * 4 + 11 &&
		       sizeof(struct lease) == offsetof(struct lease, pad) + 5,
	       "the lease is packed whole");
_Static_assert(offsetof(struct election, crowd) == 32 + 16 + 20 * 8 + 5 * 4 + 2 * 2 + 14 &&
		       sizeof(struct election) == offsetof(struct election, crowd) + 2,
	       "the election is packed whole");

struct io {
	struct packed *out; /* NULL: reading */
	const struct packed *in;
	unsigned at;
	uint64_t now_ns;
};

/* Inlined, so that the compiler makes a writer and a reader of it: most of the time goes here. */
#define INLINE static inline __attribute__((always_inline))

INLINE void io_u8(struct io *io, uint8_t *v)
{
	if (io->out != NULL)
		io->out->bytes[io->at++] = *v;
	else
		*v = io->in->bytes[io->at++];
}

INLINE void io_u32(struct io *io, uint32_t *v)
{
	uint8_t byte = (uint8_t)*v;

	io_u8(io, &byte);
	*v = byte;
}

INLINE void io_u64(struct io *io, uint64_t *v)
{
	uint8_t byte = (uint8_t)*v;

	io_u8(io, &byte);
	*v = byte;
}

/* Four statements in half a byte. */
INLINE void io_bits(struct io *io, bool *const *bits, unsigned n)
{
	uint8_t nibble = 0;

	if (io->out != NULL)
		for (unsigned i = 0; i < n; i++)
			nibble |= (uint8_t)(*bits[i] << i);
	io_u8(io, &nibble);
	if (io->out == NULL)
		for (unsigned i = 0; i < n; i++)
			*bits[i] = (nibble >> i) & 1;
}

/* A moment to come. */
INLINE void io_future(struct io *io, uint64_t *t)
{
	uint8_t ticks = 0;

	if (*t == NEVER)
		ticks = NO_TICK;
	else if (*t > io->now_ns)
		ticks = (uint8_t)((*t - io->now_ns + TICK_NS - 1) / TICK_NS);
	io_u8(io, &ticks);
	*t = ticks == NO_TICK ? NEVER : io->now_ns + ticks * TICK_NS;
}

/* A moment in the past, no further back than matters. */
INLINE void io_past(struct io *io, uint64_t *t, uint64_t matters_ns)
{
	uint64_t age = (io->now_ns - *t) / TICK_NS;
	uint64_t max = (matters_ns + TICK_NS - 1) / TICK_NS;

	age = age < max ? age : max;
	io_u64(io, &age);
	*t = io->now_ns - age * TICK_NS;
}

/* How many failures in a row make a difference. */
static uint8_t attempts_max(const struct timing *t)
{
	uint8_t n = 0;

	while (t->retry_ns << n < t->retry_max_ns)
		n++;
	return n;
}

INLINE void io_attempt(struct io *io, uint8_t *attempt, unsigned max)
{
	uint8_t n = *attempt < max ? *attempt : (uint8_t)max;

	io_u8(io, &n);
	*attempt = n;
}

INLINE void io_lease_times(struct io *io, struct lease *l)
{
	const struct timing *t = &l->timing;
	uint64_t none = io->now_ns;
	bool ran = l->state == LEASE_LIVE || l->state == LEASE_DEAD;

	io_future(io, l->state == LEASE_LIVE ? &l->deadline_ns : &none);
	if (l->state != LEASE_LIVE)
		l->deadline_ns = 0;
	else if (l->deadline_ns <= io->now_ns) /* keeps it before the end */
		l->deadline_ns = io->now_ns - TICK_NS;
	io_future(io, ran ? &l->end_ns : &none);
	none = io->now_ns;
	/* Only for one that is to be closed it matters when it will have ended. */
	io_past(io, l->opened || l->state == LEASE_OPENING ? &l->tried_ns : &none,
		timing_gone_ns(t));
	io_future(io, &l->next_ns);
	if (l->call == 0 && l->attempt == 0)
		l->call_ns = io->now_ns;
	io_past(io, &l->call_ns, max_ns(t->renew_ns + t->grace_ns, t->retry_ns));
	io_future(io, &l->claims_next_ns);
}

INLINE void io_lease(struct io *io, struct lease *l)
{
	io_u8(io, &l->state);
	io_bits(io, (bool *const[]){&l->keep, &l->ask, &l->opened, &l->ended}, 4);
	io_u64(io, &l->call);
	io_u8(io, &l->call_kind);
	io_attempt(io, &l->attempt, attempts_max(&l->timing) + 1u);
	io_attempt(io, &l->claims_attempt, attempts_max(&l->timing));
	io_lease_times(io, l);
	io_u64(io, &l->calls);
	io_u64(io, &l->epoch);
	io_u64(io, &l->call_epoch);
	io_u64(io, &l->claims_call);
	io_u64(io, &l->claims_epoch);
	io_u32(io, &l->n_started);
	io_u32(io, &l->n_sure);
	io_u32(io, &l->n_maybe);
	io_u32(io, &l->n_work);
	io_u32(io, &l->least_held);
	io_u32(io, &l->most_held);
	l->serial = 3;
}

INLINE void io_election_times(struct io *io, struct election *e, const struct lease *l)
{
	if (e->call == 0)
		e->call_ns = io->now_ns;
	io_past(io, &e->call_ns, max_ns(l->timing.renew_ns + l->timing.grace_ns, TICK_NS));
	if (e->doubt != 0 && l->own)
		io_past(io, &e->doubt_ns, l->timing.renew_ns + l->timing.grace_ns);
	io_future(io, &e->next_ns);
	io_future(io, &e->calm_ns);
	io_future(io, &e->quiet_ns);
	io_future(io, &e->work_ns);
	io_future(io, &e->overdue_ns);
	e->remind_ns = NEVER;
	e->preempt_ns = NEVER;
}

INLINE void io_election(struct io *io, struct election *e, const struct lease *l)
{
	uint8_t sick = e->score < SCORE_MAX;
	/* Orders matter in the highest term that is known, and there is no later one. */
	uint8_t ordered = e->ordered_term >= e->floor;

	io_u8(io, &e->state);
	io_u64(io, &e->call);
	io_u8(io, &e->call_kind);
	io_u64(io, &e->doubt);
	io_election_times(io, e, l);
	io_u64(io, &e->term);
	io_u64(io, &e->nonce);
	io_u64(io, &e->epoch);
	io_u64(io, &e->floor);
	io_u64(io, &e->barred);
	io_u64(io, &e->mark);
	io_u64(io, &e->order_done);
	io_u32(io, &e->leader);
	io_u32(io, &e->successor);
	io_u8(io, &sick);
	io_u8(io, &ordered);
	io_attempt(io, &e->attempt, attempts_max(&l->timing));
	io_bits(io, (bool *const[]){&e->wanted, &e->enlisted, &e->claimed, &e->work}, 4);
	io_bits(io, (bool *const[]){&e->hinted, &e->asked, &e->stopping, &e->paused}, 4);
	io_bits(io, (bool *const[]){&e->tally.sure, &e->tally.maybe, &e->tally.work, &e->restart},
		4);
	e->tally.epoch = l->epoch;
	e->score = sick ? 0 : SCORE_MAX;
	e->leader_score = SCORE_MAX;
	e->ordered_term = ordered ? e->floor : 0;
	e->idle = 0; /* a calm of any length ends with the tick */
}

INLINE void io_message(struct io *io, struct message *m)
{
	io_u8(io, &m->kind);
	io_u8(io, &m->lease.cand);
	io_u8(io, &m->lease.inc);
	io_u8(io, &m->lease.epoch);
	if (m->kind != ACT_CAMPAIGN && m->kind != ACT_RELEASE)
		return;
	io_u8(io, &m->nonce);
	io_u8(io, &m->term);
	io_u8(io, &m->floor);
	io_u8(io, &m->target);
	io_u8(io, &m->hold);
}

INLINE void io_reply(struct io *io, struct reply *r)
{
	io_u8(io, &r->outcome);
	io_u8(io, &r->n_held);
	io_u8(io, &r->term);
	io_u8(io, &r->nonce);
	io_u8(io, &r->free_in);
	io_u8(io, &r->order);
	io_u8(io, &r->order_id);
	io_u8(io, &r->order_term);
	io_u8(io, &r->order_target);
	io_u8(io, &r->leader);
	io_u8(io, &r->flags);
}

INLINE void io_slot(struct io *io, struct slot *s)
{
	io_u8(io, &s->phase);
	if (s->phase == PHASE_NONE)
		return;
	io_u8(io, &s->age);
	io_message(io, &s->msg);
	if (s->phase == PHASE_REPLY)
		io_reply(io, &s->reply);
	else if (s->phase == PHASE_LOST)
		s->reply.outcome = OUTCOME_UNKNOWN;
}

INLINE void io_cand(struct io *io, struct cand *x, unsigned c)
{
	io_bits(io, (bool *const[]){&x->up, &x->paused, &x->lagging, &x->pushed}, 4);
	io_bits(io, (bool *const[]){&x->leads, &x->works, &x->sick}, 3);
	io_u8(io, &x->inc);
	if (!x->up)
		return;
	if (io->out == NULL) {
		lease_init(&x->lease, &trial.setup->timing[c], trial.setup->own);
		election_init(&x->election, c + 1, &trial.setup->options);
	}
	io_u8(io, &x->last_term);
	io_u8(io, &x->has_epoch);
	if (x->works)
		io_future(io, &x->work_end_ns);
	io_lease(io, &x->lease);
	io_election(io, &x->election, &x->lease);
	for (unsigned i = 0; i < N_SLOTS; i++)
		io_slot(io, &x->slots[i]);
}

INLINE void io_store(struct io *io, struct store *s)
{
	io_u8(io, &s->n_leases);
	for (unsigned i = 0; i < s->n_leases; i++) {
		io_u8(io, &s->leases[i].id.cand);
		io_u8(io, &s->leases[i].id.inc);
		io_u8(io, &s->leases[i].id.epoch);
		io_u8(io, &s->leases[i].left);
	}
	io_u8(io, &s->holder.cand);
	io_u8(io, &s->holder.inc);
	io_u8(io, &s->holder.epoch);
	io_u8(io, &s->nonce);
	io_u8(io, &s->term);
	io_u8(io, &s->order);
	io_u8(io, &s->order_id);
	io_u8(io, &s->order_term);
	io_u8(io, &s->order_target);
	io_u8(io, &s->kept_for);
	io_u8(io, &s->kept);
	io_bits(io, (bool *const[]){&s->paused}, 1);
}

INLINE void io_world(struct io *io, struct world *w)
{
	for (unsigned c = 0; c < N_CANDS; c++)
		io_cand(io, &w->cands[c], c);
	io_store(io, &w->store);
	io_bits(io, (bool *const[]){&w->begun}, 1);
	io_u8(io, &w->n_strays);
	for (unsigned i = 0; i < w->n_strays; i++)
		io_message(io, &w->strays[i]);
}

void world_pack(struct world *w, struct packed *p)
{
	struct io io = {.out = p, .now_ns = w->now_ns};

	world_canon(w);
	io_world(&io, w);
	p->n = (uint16_t)io.at;
	if (p->n > PACKED_MAX)
		rule_break(RULE_MODEL);
}

void world_unpack(struct world *w, const struct packed *p)
{
	struct io io = {.in = p, .now_ns = BASE_NS};

	memset(w, 0, sizeof(*w));
	w->now_ns = BASE_NS;
	io_world(&io, w);
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 wide;
	wide p = (wide)a * b;

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

void packed_hash(const struct packed *p, uint64_t hash[2])
{
	uint64_t a = 0x9e3779b97f4a7c15u ^ p->n;
	uint64_t b = 0xd6e8feb86659fd93u;

	for (unsigned i = 0; i < p->n; i += 8) {
		uint64_t word = 0;

		memcpy(&word, p->bytes + i, p->n - i < 8 ? p->n - i : 8u);
		a = mix(a ^ word, 0xa0761d6478bd642fu);
		b = mix(b + word, 0xe7037ed1a0b428dbu) ^ a;
	}
	hash[0] = mix(a ^ 0x8ebc6af09c88c6e3u, b ^ 0x589965cc75374cc3u);
	hash[1] = mix(b ^ 0x1d8e4e27c47d124fu, a ^ 0xeb44accab455d165u);
}
