/*
 * setup.c: what is searched: timings as short as the rules of timing.h allow, in ticks, and the
 * bounds of each size.
 */
#include <string.h>

#include "model.h"

#define TICKS(n) ((n)*TICK_NS)

/* deadline 3, end 4, and the store's lease ends 4 to 6 ticks after it was granted */
static const struct timing short_lease = {
	.lease_ns = TICKS(5),
	.renew_ns = TICKS(1),
	.grace_ns = TICKS(2),
	.retry_ns = TICKS(1),
	.retry_max_ns = TICKS(2),
	.drift_ppm = 200000,
};

/* deadline 5, end 7, and the store's lease ends 7 to 9 ticks after it was granted */
static const struct timing long_lease = {
	.lease_ns = TICKS(8),
	.renew_ns = TICKS(2),
	.grace_ns = TICKS(3),
	.retry_ns = TICKS(1),
	.retry_max_ns = TICKS(2),
	.drift_ppm = 125000,
};

static unsigned ticks_up(uint64_t ns)
{
	return (unsigned)((ns + TICK_NS - 1) / TICK_NS);
}

unsigned setup_limit_ticks(const struct setup *s, unsigned c)
{
	return ticks_up(timing_call_ns(&s->timing[c]));
}

unsigned setup_lease_ticks(const struct setup *s, unsigned c)
{
	return ticks_up(s->timing[c].lease_ns);
}

unsigned setup_drift_ticks(const struct setup *s, unsigned c)
{
	return ticks_up(timing_gone_ns(&s->timing[c]) - s->timing[c].lease_ns);
}

unsigned setup_patience_ticks(const struct setup *s)
{
	unsigned max = 0;

	for (unsigned c = 0; c < N_CANDS; c++) {
		const struct timing *t = &s->timing[c];
		unsigned n = ticks_up(timing_gone_ns(t) + t->retry_max_ns + timing_hold_ns(t)) +
			     2 * setup_limit_ticks(s, c);

		max = n > max ? n : max;
	}
	return max;
}

/*
 * The kinds of faults, how often each, and how many of all of them together: any two of the whole
 * list in the tests, any three in the large size.
 */
static struct setup basic(const char *name, uint8_t faults)
{
	struct setup s = {
		.name = name,
		.timing = {short_lease, short_lease},
		.bounds = {[BOUND_ALL] = faults,
			   [BOUND_LOSS] = 2,
			   [BOUND_DUP] = 1,
			   [BOUND_LATE] = 1,
			   [BOUND_ORDER] = 1,
			   [BOUND_PAUSE] = 1,
			   [BOUND_PAUSE_2] = 1,
			   [BOUND_CRASH] = 1,
			   [BOUND_CRASH_2] = 1,
			   [BOUND_STOP] = 1,
			   [BOUND_HEALTH] = 1},
		.term_max = 3,
		.strays_max = 2,
	};

	options_init(&s.options);
	return s;
}

size_t setups_get(enum size size, struct setup *list)
{
	uint8_t faults = size == SIZE_SMALL ? 1 : size == SIZE_TEST ? 2 : 3;
	size_t n = 0;

	list[n++] = basic("shared lease", faults);
	list[n] = basic("shared lease, every end is pushed", faults);
	list[n++].watched = true;
	list[n] = basic("a lease of one's own", faults);
	list[n++].own = true;
	if (size == SIZE_SMALL)
		return n;
	list[n] = basic("leases of different lengths", faults);
	list[n++].timing[1] = long_lease;
	return n;
}
