/*
 * simulate.h: years of one election in seconds: the core that decides in production, over a store,
 * a network and machines that are numbers. It answers what timings mean on a store with these round
 * trips: how often the leader changes, why, and how long there is no leader.
 *
 * Everything that happens follows from the setup and its seed: no clock is read, nothing is
 * allocated that outlives the call, and the same setup gives the same result.
 *
 * What it must never do: decide. It only carries out what the core asks for, as the runtime does.
 */
#ifndef BATON_SIMULATE_H
#define BATON_SIMULATE_H

#include <stddef.h>
#include <stdint.h>

#include "core/timing.h"

#define SIMULATE_CANDIDATES_MAX 32
/* Gaps by length: eight classes for each doubling, from a millisecond on. */
#define SIMULATE_CLASSES 256

enum simulate_cause {
	SIMULATE_CRASH,  /* the leader's process ended */
	SIMULATE_FROZEN, /* the leader's machine stood still for too long */
	SIMULATE_OUTAGE, /* the store was away for too long */
	SIMULATE_SLOW,   /* nothing happened but slow answers: a false failover */
	SIMULATE_CAUSES,
};

struct simulate_setup {
	struct timing timing;
	const double *round_trips_ms; /* what calls take: one of these at random */
	size_t n_round_trips;
	uint32_t n_candidates;
	double years;
	double crashes_a_year; /* of each candidate; it is back after restart_ns */
	uint64_t restart_ns;
	double freezes_a_year; /* of each candidate, exponential with this mean */
	uint64_t freeze_ns;
	double outages_a_year; /* of the store, exponential with this mean */
	uint64_t outage_ns;
	uint64_t stop_ns; /* what the work needs to end */
	uint64_t seed;
};

struct simulate_result {
	uint64_t failovers[SIMULATE_CAUSES];
	uint64_t renewals;   /* answered with yes */
	uint64_t overlaps;   /* two leaders at one instant: never (S1) */
	uint64_t without_ns; /* how long there was no leader, in all */
	uint64_t longest_ns;
	uint64_t gaps;                      /* leaderships that another one followed, ... */
	uint64_t classes[SIMULATE_CLASSES]; /* ... by how long that took */
};

/* False: no memory. */
bool simulate_run(const struct simulate_setup *setup, struct simulate_result *result);
/* The gap that this part of all gaps doesn't exceed, in milliseconds, to a tenth. */
double simulate_gap_ms(const struct simulate_result *r, double part);
/* How many gaps were shorter than that. */
uint64_t simulate_gaps_below(const struct simulate_result *r, double ms);

#endif
