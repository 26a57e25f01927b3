/*
 * pack.c: a world in as few bytes as its setup needs. What is always 0 there is left out.
 */
#include <string.h>

#include "model/record/model.h"

struct bits {
	uint8_t *bytes;
	size_t at; /* bits */
	bool reads;
};

#define SLOT_BITS 3
#define NONCE_BITS 4
#define TERM_BITS 4
#define VERSION_BITS 4
#define PHASE_BITS 4

static inline void bits_do(struct bits *b, uint8_t *value, unsigned n)
{
	size_t byte = b->at / 8;
	unsigned shift = b->at % 8;

	if (b->reads) {
		unsigned two = b->bytes[byte] | (unsigned)b->bytes[byte + 1] << 8;

		*value = (uint8_t)(two >> shift & ((1u << n) - 1));
	} else {
		unsigned two = (unsigned)*value << shift;

		b->bytes[byte] |= (uint8_t)two;
		b->bytes[byte + 1] |= (uint8_t)(two >> 8);
	}
	b->at += n;
}

static inline void do_erec(struct bits *b, struct erec *r)
{
	bits_do(b, &r->w, VERSION_BITS);
	bits_do(b, &r->lease, SLOT_BITS);
	bits_do(b, &r->nonce, NONCE_BITS);
	bits_do(b, &r->term, TERM_BITS);
	if (setup->pauses)
		bits_do(b, &r->paused, 1);
	if (setup->hold != 0) {
		bits_do(b, &r->reserved, 2);
		bits_do(b, &r->hold_term, TERM_BITS);
	}
}

static inline void do_store(struct bits *b, struct store *s)
{
	for (int slot = 1; slot <= setup->leases; slot++) {
		bits_do(b, &s->leases[slot].w, VERSION_BITS);
		bits_do(b, &s->leases[slot].dead, 1);
	}
	for (int e = 0; e < setup->elections; e++)
		do_erec(b, &s->elections[e]);
}

static inline void do_put(struct bits *b, struct put *p)
{
	bits_do(b, &p->act, setup->shows ? 4 : 3);
	if (p->act == ACT_NONE)
		return;
	bits_do(b, &p->slot, SLOT_BITS);
	bits_do(b, &p->expected, VERSION_BITS);
	if (p->act < ACT_CLAIM) {
		bits_do(b, &p->l.w, VERSION_BITS);
		bits_do(b, &p->l.dead, 1);
		return;
	}
	bits_do(b, &p->by_lease, SLOT_BITS);
	bits_do(b, &p->by_nonce, NONCE_BITS);
	bits_do(b, &p->by_cand, 2);
	do_erec(b, &p->e);
}

static inline void do_seat(struct bits *b, struct seat *s)
{
	bits_do(b, &s->role, setup->locks ? 3 : 2);
	if (s->role != ROLE_NONE) {
		bits_do(b, &s->nonce, NONCE_BITS);
		bits_do(b, &s->term, TERM_BITS);
		bits_do(b, &s->version, VERSION_BITS);
	}
	bits_do(b, &s->bid.stage, 2);
	if (s->bid.stage != STAGE_NONE) {
		bits_do(b, &s->bid.phase, PHASE_BITS);
		bits_do(b, &s->bid.lease, SLOT_BITS);
		bits_do(b, &s->bid.nonce, NONCE_BITS);
		bits_do(b, &s->bid.term, TERM_BITS);
		bits_do(b, &s->bid.expected, VERSION_BITS);
		bits_do(b, &s->bid.w, VERSION_BITS);
		if (setup->locks) {
			bits_do(b, &s->bid.locked, 1);
			bits_do(b, &s->bid.late, 1);
		}
		do_erec(b, &s->bid.e);
	}
	bits_do(b, &s->seen, SLOT_BITS);
	if (s->seen != SLOT_NONE) {
		bits_do(b, &s->seen_version, VERSION_BITS);
		bits_do(b, &s->seen_age, 2);
		bits_do(b, &s->seen_dead, 1);
	}
	if (setup->hold != 0) {
		bits_do(b, &s->hold_term, TERM_BITS);
		bits_do(b, &s->hold_age, 2);
	}
	if (setup->forgets || setup->evicts)
		bits_do(b, &s->floor, TERM_BITS);
	if (setup->locks) {
		bits_do(b, &s->locked, 1);
		bits_do(b, &s->keep, 3);
	}
}

static inline void do_cand(struct bits *b, struct cand *a)
{
	bits_do(b, &a->life, 2);
	bits_do(b, &a->lease, SLOT_BITS);
	bits_do(b, &a->left, 2);
	bits_do(b, &a->version, VERSION_BITS);
	bits_do(b, &a->lane.stage, 2);
	if (a->lane.stage != STAGE_NONE) {
		bits_do(b, &a->lane.intent, 3);
		bits_do(b, &a->lane.phase, PHASE_BITS);
		bits_do(b, &a->lane.refused, 1);
		bits_do(b, &a->lane.age, 2);
		bits_do(b, &a->lane.expected, VERSION_BITS);
		bits_do(b, &a->lane.w, VERSION_BITS);
	}
	for (int e = 0; e < setup->elections; e++)
		do_seat(b, &a->seats[e]);
}

static inline void do_world(struct bits *b, struct world *w)
{
	do_store(b, &w->store);
	if (setup->old_reads)
		do_store(b, &w->copy);
	for (int i = 0; i < setup->strays; i++)
		do_put(b, &w->strays[i]);
	for (int c = 0; c < setup->cands; c++)
		do_cand(b, &w->cands[c]);
	for (int e = 0; e < setup->elections; e++) {
		bits_do(b, &w->led[e], TERM_BITS);
		if (setup->hold != 0)
			bits_do(b, &w->hold_age[e], 2);
		if (setup->forgets || setup->evicts)
			bits_do(b, &w->clock[e], TERM_BITS);
		if (setup->locks) {
			bits_do(b, &w->locks[e].lease, SLOT_BITS);
			bits_do(b, &w->locks[e].left, 2);
			bits_do(b, &w->locks[e].foreign, 1);
		}
	}
	bits_do(b, &w->uptime, 2);
}

size_t world_pack(const struct world *w, uint8_t *out)
{
	struct bits b = {.bytes = out};

	memset(out, 0, PACKED_MAX);
	do_world(&b, (struct world *)(uintptr_t)w);
	return (b.at + 7) / 8;
}

void world_unpack(struct world *w, const uint8_t *in)
{
	struct bits b = {.bytes = (uint8_t *)(uintptr_t)in, .reads = true};

	memset(w, 0, sizeof(*w));
	do_world(&b, w);
}
