/* world.c: the time of the simulation: whatever comes next happens next. See simulate.h. */
#include <math.h>
#include <stdlib.h>

#include "simulate/world.h"

#define YEAR_NS (365.25 * 86400e9)

/* SplitMix64: short, and good enough for jitter and faults. */
uint64_t world_random(struct world *w)
{
	uint64_t z = w->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint64_t world_travel_ns(struct world *w)
{
	const struct simulate_setup *s = w->setup;
	double ms = s->round_trips_ms[world_random(w) % s->n_round_trips];

	return (uint64_t)(ms * 5e5) + 1;
}

uint64_t world_exponential_ns(struct world *w, double mean_ns)
{
	double part =
		((double)(world_random(w) >> 11) + 1) / 9007199254740992.0; /* 0 < part <= 1 */

	return (uint64_t)(-log(part) * mean_ns);
}

bool world_is_store_away(const struct world *w)
{
	return w->now_ns < w->outage_ends_ns;
}

static uint64_t next_outage_ns(struct world *w)
{
	double a_year = w->setup->outages_a_year;

	return a_year > 0 ? w->now_ns + world_exponential_ns(w, YEAR_NS / a_year) : NEVER;
}

static void begin_outage(struct world *w)
{
	w->outage_ends_ns = w->now_ns + world_exponential_ns(w, (double)w->setup->outage_ns);
	w->outage_ns = next_outage_ns(w);
}

static struct candidate *find_next(struct world *w)
{
	struct candidate *next = &w->candidates[0];

	for (uint32_t i = 1; i < w->setup->n_candidates; i++)
		if (w->candidates[i].next_ns < next->next_ns)
			next = &w->candidates[i];
	return next;
}

bool simulate_run(const struct simulate_setup *setup, struct simulate_result *result)
{
	struct world *w = calloc(1, sizeof(*w));

	*result = (struct simulate_result){0};
	if (w == NULL)
		return false;
	w->setup = setup;
	w->result = result;
	w->random = setup->seed;
	w->now_ns = w->gap_ns = NS_PER_S; /* 0 means "not yet" in places */
	w->outage_ns = next_outage_ns(w);
	for (uint32_t i = 0; i < setup->n_candidates; i++) {
		w->candidates[i].number = i + 1;
		candidate_boot(w, &w->candidates[i]);
		candidate_act(w, &w->candidates[i]);
	}
	uint64_t end_ns = w->now_ns + (uint64_t)(setup->years * YEAR_NS);

	for (;;) {
		struct candidate *c = find_next(w);
		uint64_t at_ns = min_ns(c->next_ns, w->outage_ns);

		if (at_ns >= end_ns)
			break;
		w->now_ns = max_ns(w->now_ns, at_ns);
		if (w->now_ns >= w->outage_ns)
			begin_outage(w);
		else
			candidate_act(w, c);
	}
	w->now_ns = end_ns;
	tally_end(w);
	free(w);
	return true;
}
