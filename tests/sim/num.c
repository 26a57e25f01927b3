/*
 * num.c: random numbers and clocks, in integers only: no compiler may round them differently.
 *
 * The generator is splitmix64. Every use has a stream of its own (one per process, one per
 * message), so that leaving out one fault leaves the draws of all others as they were. That is what
 * makes shrinking work.
 */
#include "sim.h"

#define ONE ((uint64_t)1 << 20)
#define MASK (ONE - 1)

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t rng_next(struct rng *r)
{
	r->state += 0x9e3779b97f4a7c15u;
	return mix(r->state);
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	uint64_t v = rng_next(r);

	return n == 0 ? 0 : v % n;
}

uint64_t rng_range(struct rng *r, uint64_t lo, uint64_t hi)
{
	return hi <= lo ? lo : lo + rng_below(r, hi - lo + 1);
}

bool rng_chance(struct rng *r, unsigned permille)
{
	return (rng_next(r) >> 32) % 1000 < permille;
}

struct rng rng_stream(uint64_t seed, uint64_t a, uint64_t b)
{
	return (struct rng){
		.state = mix(mix(seed + 0x632be59bd9b4e019u) ^ mix(a * 0xd1342543de82ef95u + b))};
}

uint64_t clock_local(const struct clock *c, uint64_t true_ns)
{
	uint64_t d = true_ns - c->base_true;

	return c->base_local + (d >> 20) * c->num + (((d & MASK) * c->num) >> 20);
}

uint64_t clock_true(const struct clock *c, uint64_t local_ns)
{
	if (local_ns <= c->base_local)
		return c->base_true;
	uint64_t d = local_ns - c->base_local;

	if (d >= (uint64_t)1 << 60)
		return NEVER;
	return c->base_true + ((d / c->num) << 20) + (((d % c->num) << 20) + c->num - 1) / c->num;
}

void clock_set_rate(struct clock *c, uint64_t true_ns, uint64_t num)
{
	c->base_local = clock_local(c, true_ns);
	c->base_true = true_ns;
	c->num = num;
}
