/*
 * table.c: the visited states, in 8 bytes each: 46 bits of a hash and 18 bits of bounds. Open
 * addressing; the slot is found by other bits of the hash, so that two states are mistaken for
 * one only if they meet in one run of slots *and* agree in 46 bits.
 */
#include <sys/mman.h>

#include "model.h"

#define BOUND_BITS 18
#define BOUND_MASK (((uint64_t)1 << BOUND_BITS) - 1)
#define N_WIDE 3 /* the first ones count further than to one */

static const unsigned wide_shift[N_WIDE] = {0, 4, 6};
static const unsigned wide_mask[N_WIDE] = {15, 3, 3};

#define NARROW_SHIFT 8

_Static_assert(NARROW_SHIFT + N_BOUNDS - N_WIDE == BOUND_BITS, "the bounds fill their bits");

bool table_init(struct table *t, unsigned bits)
{
	size_t size = sizeof(uint64_t) << bits;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	(void)madvise(p, size, MADV_HUGEPAGE);
	*t = (struct table){.slots = p, .mask = ((uint64_t)1 << bits) - 1};
	return true;
}

void table_done(struct table *t)
{
	if (t->slots != NULL)
		(void)munmap(t->slots, (t->mask + 1) * sizeof(uint64_t));
	t->slots = NULL;
}

uint32_t bounds_pack(const uint8_t *bounds)
{
	uint32_t packed = 0;

	for (unsigned i = 0; i < N_WIDE; i++)
		packed |= (uint32_t)bounds[i] << wide_shift[i];
	for (unsigned i = N_WIDE; i < N_BOUNDS; i++)
		packed |= (uint32_t)bounds[i] << (NARROW_SHIFT + i - N_WIDE);
	return packed;
}

void bounds_unpack(uint32_t packed, uint8_t *bounds)
{
	for (unsigned i = 0; i < N_WIDE; i++)
		bounds[i] = (uint8_t)(packed >> wide_shift[i] & wide_mask[i]);
	for (unsigned i = N_WIDE; i < N_BOUNDS; i++)
		bounds[i] = (packed >> (NARROW_SHIFT + i - N_WIDE)) & 1;
}

/* Whether who has `a` left can do all that who has `b` left can do. */
static bool covers(uint32_t a, uint32_t b)
{
	if ((b & ~a) >> NARROW_SHIFT != 0)
		return false;
	for (unsigned i = 0; i < N_WIDE; i++)
		if ((a >> wide_shift[i] & wide_mask[i]) < (b >> wide_shift[i] & wide_mask[i]))
			return false;
	return true;
}

/* Never 0: that is an empty slot. */
static uint64_t fingerprint(const uint64_t hash[2])
{
	uint64_t f = hash[1] & ~BOUND_MASK;

	return f != 0 ? f : (uint64_t)1 << BOUND_BITS;
}

enum seen table_visit(struct table *t, const uint64_t hash[2], uint32_t bounds)
{
	uint64_t f = fingerprint(hash);
	uint64_t i = hash[0] & t->mask;

	for (; t->slots[i] != 0; i = (i + 1) & t->mask) {
		uint32_t there = (uint32_t)(t->slots[i] & BOUND_MASK);

		t->compared++;
		if ((t->slots[i] ^ there) != f)
			continue;
		if (covers(there, bounds))
			return SEEN_OLD;
		if (covers(bounds, there)) { /* the better one takes its place */
			t->slots[i] = f | bounds;
			return SEEN_NEW;
		}
	}
	if (t->n >= t->mask - t->mask / 8)
		return SEEN_FULL;
	t->slots[i] = f | bounds;
	t->n++;
	return SEEN_NEW;
}

bool table_outdone(struct table *t, const uint64_t hash[2], uint32_t bounds)
{
	uint64_t f = fingerprint(hash);

	for (uint64_t i = hash[0] & t->mask; t->slots[i] != 0; i = (i + 1) & t->mask) {
		uint32_t there = (uint32_t)(t->slots[i] & BOUND_MASK);

		if ((t->slots[i] ^ there) == f && there != bounds && covers(there, bounds))
			return true;
	}
	return false;
}

double table_expected_misses(const struct table *t)
{
	return (double)t->compared / (double)((uint64_t)1 << (64 - BOUND_BITS));
}
