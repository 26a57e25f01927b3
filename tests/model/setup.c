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

/* deadline 2, end 3, and the store's lease ends with the third tick: for an exact clock only */
static const struct timing tiny_lease = {
	.lease_ns = TICKS(3),
	.renew_ns = TICKS(1),
	.grace_ns = TICKS(1),
	.retry_ns = TICKS(1),
	.retry_max_ns = TICKS(1),
	.drift_ppm = 10000,
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
	if (s->exact)
		return 0;
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

/* ---- what can go wrong ---- */

#define KIND(bound) (1u << (bound))
#define NETWORK (KIND(BOUND_LOSS) | KIND(BOUND_DUP) | KIND(BOUND_LATE))
#define PROCESSES \
	(KIND(BOUND_PAUSE) | KIND(BOUND_PAUSE_2) | KIND(BOUND_CRASH) | KIND(BOUND_CRASH_2))
#define CRASHING (KIND(BOUND_CRASH) | KIND(BOUND_CRASH_2) | KIND(BOUND_LATE))
#define ROUGHNESS (KIND(BOUND_SLOW) | KIND(BOUND_LOSS) | KIND(BOUND_HINT) | KIND(BOUND_ORDER))
#define PEOPLE (KIND(BOUND_STOP) | KIND(BOUND_ORDER) | KIND(BOUND_HEALTH))

/*
 * The network loses two messages, repeats one, and delivers one late. Each process is paused once
 * and crashes once. Somebody stops, turns unhealthy, or orders something. In five ways, because
 * all of it at once, at any moment, would be more worlds than can be searched:
 *  - each family by itself, as far as it goes;
 *  - all of them together, up to a number of faults;
 *  - all eleven in one world, one after the other, in coarse steps: a fault happens when the one
 *    before it is over, or has left nothing but its consequences (choices.c), and people and
 *    processes act between the ticks, not in the middle of a call;
 *  - what processes and people do, in the same coarse steps, but any number of times, at any
 *    moment and on top of each other: these worlds come to an end by themselves. In the large
 *    size with a loss, too;
 *  - what the network does, likewise, with one message at a time that is a copy or late. In the
 *    large size with orders, too.
 * And rough worlds: any one fault, and any two of what the others don't have; in the large size
 * any two of all. Through worlds with all of them at any moment there are walks.
 */
static const struct family {
	const char *name;
	unsigned kinds;
	uint8_t faults; /* of all kinds together */
} all = {"all faults", ~0u, 11}, one = {"any fault", ~0u, 1}, two = {"any two faults", ~0u, 2},
  three = {"any three faults", ~0u, 3}, in_turn = {"all eleven faults, in turn", ~0u, 11},
  in_pairs = {"all eleven faults, two at a time", ~0u, 11}, network = {"the network", NETWORK, 4},
  processes = {"the processes", PROCESSES, 4}, people = {"the people", PEOPLE, 3},
  endless = {"processes and people, without end", PROCESSES | PEOPLE, 1},
  lossy = {"processes and people, without end, and a loss", PROCESSES | PEOPLE | KIND(BOUND_LOSS),
	   1},
  restless = {"the network, without end", NETWORK, 1},
  crashing = {"a crash, and what it had sent lands late", CRASHING, 2},
  belated = {"a late write, and an order or a pause", KIND(BOUND_LATE) | KIND(BOUND_ORDER), 2},
  roughness = {"any two of slow, lost and failed calls, hints, orders and pauses", ROUGHNESS, 2},
  ordered = {"the network and orders, without end", NETWORK | KIND(BOUND_ORDER), 1};

static struct setup basic(const char *name)
{
	struct setup s = {
		.name = name,
		.timing = {short_lease, short_lease},
		.bounds = {[BOUND_LOSS] = 2,
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
		.equal = true,
	};

	options_init(&s.options);
	return s;
}

enum { SHARED, WATCHED, OWN, LENGTHS, N_STORES };

static void fill_stores(struct setup stores[N_STORES])
{
	stores[SHARED] = basic("shared lease");
	stores[WATCHED] = basic("shared lease, every end is pushed");
	stores[WATCHED].watched = true;
	stores[OWN] = basic("a lease of one's own");
	stores[OWN].own = true;
	stores[LENGTHS] = basic("leases of different lengths");
	stores[LENGTHS].timing[1] = long_lease;
	stores[LENGTHS].equal = false;
}

/*
 * The same store with all that stores and networks do besides: calls that take time or fail at
 * once, hints that mean nothing and pushes that are overtaken, waits of any length, ends that are
 * told, deaths that are proven, an election that is paused. In every search above that would be too
 * much, so these have their own, with fewer faults.
 */
static struct setup rough(struct setup s, const char *name)
{
	s.name = name;
	s.bounds[BOUND_SLOW] = 2;
	s.bounds[BOUND_HINT] = 1;
	s.refusals = true;
	s.freezes = true;
	s.jitter = true;
	s.tells_end = true;
	s.lazy_push = true;
	s.provable = true;
	return s;
}

static void fill_rough(const struct setup stores[N_STORES], struct setup list[N_STORES])
{
	list[SHARED] = rough(stores[SHARED], "shared lease, a rough world");
	list[WATCHED] = rough(stores[WATCHED], "every end is pushed, a rough world");
	list[OWN] = rough(stores[OWN], "a lease of one's own, a rough world");
	list[LENGTHS] = rough(stores[LENGTHS], "different lengths, a rough world");
}

/* The claim of who stops is left to end by itself, and so is the lease. */
static struct setup keeping(struct setup s, const char *name)
{
	s.name = name;
	s.options.release_on_stop = false;
	return s;
}

static struct setup limit(struct setup s, const struct family *f)
{
	s.faults = f->name;
	s.bounds[BOUND_ALL] = f->faults;
	for (unsigned i = BOUND_ALL + 1; i < N_BOUNDS; i++)
		if ((f->kinds & KIND(i)) == 0)
			s.bounds[i] = 0;
		else if (s.bounds[i] > f->faults)
			s.bounds[i] = f->faults;
	return s;
}

static struct setup coarse(struct setup s, const struct family *f)
{
	s.timing[0] = tiny_lease;
	s.timing[1] = tiny_lease;
	s.exact = true;
	s.brisk = true;
	if (f == &endless || f == &lossy)
		s.endless = PROCESSES | PEOPLE;
	if (f == &restless || f == &ordered) {
		s.endless = f->kinds;
		s.strays_max = 1;
	}
	s.at_once = f == &in_turn ? 1 : f == &in_pairs ? 2 : 0;
	return limit(s, f);
}

size_t setups_walked(struct setup *list)
{
	fill_stores(list);
	fill_rough(list, list + N_STORES);
	for (unsigned i = 0; i < 2 * N_STORES; i++)
		list[i] = limit(list[i], &all);
	return 2 * N_STORES;
}

/* Any fault, and any two of what only rough worlds have; in the large size any two of all. */
static size_t add_rough(enum size size, const struct setup stores[N_STORES], struct setup *list)
{
	struct setup worlds[N_STORES];
	size_t n = 0;

	fill_rough(stores, worlds);
	for (unsigned i = 0; i < N_STORES; i++) {
		if (size == SIZE_SMALL && i != OWN && i != WATCHED)
			continue;
		list[n++] = limit(worlds[i], size == SIZE_LARGE ? &two : &one);
		if (size == SIZE_TEST)
			list[n++] = limit(worlds[i], &roughness);
		/* Where every end is pushed, nobody looks again by himself. */
		if (size == SIZE_TEST && i == WATCHED)
			list[n++] = limit(worlds[i], &belated);
	}
	return n;
}

static size_t add_keeping(enum size size, const struct setup stores[N_STORES], struct setup *list)
{
	const struct family *f = size == SIZE_SMALL ? &one : &people;

	list[0] = limit(keeping(stores[SHARED], "shared lease that is left to end"), f);
	list[1] = limit(keeping(stores[OWN], "a lease of one's own that is left to end"), f);
	return 2;
}

size_t setups_get(enum size size, struct setup *list)
{
	const struct family *together = size == SIZE_SMALL  ? &one
					: size == SIZE_TEST ? &two
							    : &three;
	struct setup stores[N_STORES];
	size_t n = 0;

	fill_stores(stores);
	for (unsigned i = 0; i < N_STORES; i++) {
		if (size == SIZE_SMALL && i == LENGTHS)
			continue;
		list[n++] = limit(stores[i], together);
		if (size == SIZE_SMALL && i == OWN) /* takes two: void without it */
			list[n++] = limit(stores[i], &crashing);
		if (size == SIZE_SMALL)
			continue;
		if (size == SIZE_LARGE || i != LENGTHS)
			list[n++] = limit(stores[i], &network);
		list[n++] = limit(stores[i], &people);
		/* Thirteen million states: all of them are for the large size. */
		if (size == SIZE_LARGE || i == OWN || i == SHARED)
			list[n++] = limit(stores[i], &processes);
		if (i == LENGTHS)
			continue;
		if (size == SIZE_LARGE || i != WATCHED) {
			list[n++] = coarse(stores[i], &endless);
			list[n++] = coarse(stores[i], &in_turn);
		}
		if (i == OWN)
			list[n++] = coarse(stores[i], &restless);
		/* A hundred million; of a shared lease there would be several times as many. */
		if (size == SIZE_LARGE && i == OWN) {
			list[n++] = coarse(stores[i], &ordered);
			list[n++] = coarse(stores[i], &lossy);
			list[n++] = coarse(stores[i], &in_pairs);
		}
	}
	n += add_keeping(size, stores, list + n);
	return n + add_rough(size, stores, list + n);
}
