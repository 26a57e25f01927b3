/* world.h: what the files of the simulation share. Private to src/simulate. */
#ifndef BATON_SIMULATE_WORLD_H
#define BATON_SIMULATE_WORLD_H

#include "core/election.h"
#include "simulate/simulate.h"

#define MESSAGES_MAX 16

/* A request on its way to the store, then its answer on the way back. */
struct message {
	uint64_t at_ns;     /* when it arrives */
	uint64_t travel_ns; /* one way */
	struct action act;
	struct view view;
	uint32_t life;
	uint32_t n_held;
	uint8_t outcome;
	bool is_answer;
};

/* A call that has no answer yet. */
struct pending {
	uint64_t call;
	uint64_t limit_ns;
	uint8_t kind;
};

enum { PENDING_LEASE, PENDING_CLAIMS, PENDING_ELECTION, PENDINGS };

struct candidate {
	struct lease lease;
	struct election election;
	struct pending pending[PENDINGS];
	struct message messages[MESSAGES_MAX];
	size_t n_messages;
	uint32_t number; /* as the core knows it: from 1 */
	uint32_t life;
	bool is_up;
	uint64_t next_ns; /* when anything happens to it, as far as is known */
	uint64_t hint_ns;
	uint64_t drained_ns;  /* when the work of its last leadership ends */
	uint64_t crash_ns;    /* the next one; while it is down: when it is back */
	uint64_t freeze_ns;   /* the next one */
	uint64_t frozen_ns;   /* it stands still, or stood still, until then */
	uint64_t deadline_ns; /* of its leadership, and when the renewal behind it was sent */
	uint64_t sent_ns;
};

/* The store: exact, and every request is one step. */
struct record {
	uint64_t term;
	uint64_t epoch;
	uint64_t nonce;
	uint64_t ends_ns; /* with the lease that it was claimed on */
	uint32_t holder;  /* NOBODY: free */
	uint32_t life;
};

struct store_lease {
	uint64_t epoch;
	uint64_t ends_ns; /* 0: closed */
	uint32_t life;
};

struct world {
	const struct simulate_setup *setup;
	struct simulate_result *result;
	uint64_t now_ns;
	uint64_t random;
	uint64_t outage_ns;      /* the next one */
	uint64_t outage_ends_ns; /* the store is away, or was away, until then */
	uint64_t gap_ns;         /* since when there is no leader */
	uint32_t leader;         /* NOBODY: none */
	struct record record;
	struct store_lease leases[SIMULATE_CANDIDATES_MAX];
	struct candidate candidates[SIMULATE_CANDIDATES_MAX];
};

/* ---- world.c ---- */

uint64_t world_random(struct world *w);
/* One way of a round trip. */
uint64_t world_travel_ns(struct world *w);
uint64_t world_exponential_ns(struct world *w, double mean_ns);
bool world_is_store_away(const struct world *w);

/* ---- candidate.c ---- */

void candidate_boot(struct world *w, struct candidate *c);
/* Does what is due for the candidate now. */
void candidate_act(struct world *w, struct candidate *c);
void candidate_hint(struct world *w, struct candidate *c);

/* ---- store.c ---- */

/* Carries the request out, and makes the message its answer. */
void store_answer(struct world *w, struct candidate *c, struct message *m);

/* ---- tally.c ---- */

void tally_became(struct world *w, const struct candidate *c);
void tally_lost(struct world *w, const struct candidate *c);
void tally_crashed(struct world *w, const struct candidate *c);
/* Counts the time from the last loss to the end, in which there was no leader. */
void tally_end(struct world *w);

#endif
