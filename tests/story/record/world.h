/*
 * world.h: the world of a story about a record store: a few candidates, one election, and records
 * that can be compared and set. What decides is src/store/record/decide itself. README.md has the
 * notation.
 *
 *   world.c  records, and what becomes of a write
 *   tasks.c  carries out what the tasks ask for, and tells each of it
 *   play.c   one line of a story
 */
#ifndef BATON_STORY_RECORD_WORLD_H
#define BATON_STORY_RECORD_WORLD_H

#include "store/record/decide/decide.h"

#define LEASES_MAX 3u /* of one candidate */

enum fate { FATE_NONE, FATE_LOST, FATE_UNANSWERED, FATE_COPIED, FATE_LATE, FATE_FAILED, FATE_OLD };

/* A record: its version is 0 while it isn't there. */
struct lease_record {
	struct record_lease value;
	uint64_t version;
};

struct election_record {
	struct record_election value;
	uint64_t version;
};

/* A write on its way. */
struct write {
	bool is_there;
	size_t owner, lease; /* whose lease; owner CANDIDATES_MAX: the election */
	uint64_t expected;
	struct record_lease l;
	struct record_election e;
};

struct someone {
	size_t n_leases; /* the newest is its lease */
	struct record_own own;
	struct record_claim claim;
	struct record_sight sights[CANDIDATES_MAX][LEASES_MAX];
	struct record_hold hold;
};

struct world {
	struct someone candidates[CANDIDATES_MAX];
	struct lease_record leases[CANDIDATES_MAX][LEASES_MAX];
	struct election_record election;
	struct election_record old; /* what an old read shows */
	struct write late;
	uint64_t versions; /* that were given */
	uint64_t nonces;
	uint64_t now_ns;
	uint64_t ttl_ns;
	struct record_weak weak;
	uint64_t weak_since_ns;
	struct lines trace;
	enum fate fate; /* of the next write that is meant */
	char fated;     /* 'e', 'l' or 0: any */
	size_t told;    /* conflicts tell what was in the way */
	bool reads_old;
	bool is_weak;
	bool has_locks;
	bool foreign; /* another program has the lock */
	bool broken;
};

void world_init(struct world *w);
void world_begin(struct world *w);
void world_done(struct world *w);
void world_settle(struct world *w);
uint64_t world_wake_ns(const struct world *w);

/* "A1" */
const char *lease_name(size_t c, size_t i, char out[4]);
/* Whose lease it is, by its id. */
void lease_find(const char *id, size_t *c, size_t *i);
struct baton_lease lease_of(const struct world *w, size_t c);
/* The outcome, for whoever has sent it. */
int world_write(struct world *w, const struct write *p);
void world_land_late(struct world *w);
struct record_version version_of(uint64_t number);
uint64_t number_of(const struct record_version *v);

/* One call of a candidate each. */
void task_open(struct world *w, size_t c);
void task_keep(struct world *w, size_t c, uint32_t intent);
void task_campaign(struct world *w, size_t c, uint64_t floor);
void task_settle(struct world *w, size_t c);
void task_show(struct world *w, size_t c, uint32_t score);
void task_release(struct world *w, size_t c, const char *reserve_for, uint64_t hold_ns);
void task_order(struct world *w, uint64_t term);
void task_pause(struct world *w, bool pause);
void task_sweep(struct world *w, size_t by);
void task_observe(struct world *w, size_t c);

#endif
