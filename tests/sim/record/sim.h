/*
 * sim.h: sim-record: random worlds for the layer of the record stores. All of src/store/record runs
 * in them as it is, over records in memory: three candidates, three elections, real verbs.
 *
 * The search (tests/model/record) has all that can happen in small worlds, and only what decides.
 * These worlds are larger and last longer, and the part that does things is in them, too: rounds,
 * batches, the book of claims, the watch lane, sweeping, native locks.
 *
 * A world is a number, the seed. It has one clock, which stands still while code runs. Each lane of
 * a candidate is a coroutine; it sleeps in the adapter's calls, and in its own. What is sent lands
 * later, or never, or twice, and is answered later, or never. Every candidate's clock has a rate
 * and an origin of its own.
 *
 *   world.c  time, coroutines, random numbers, what happens next
 *   store.c  the records, and the adapter that the layer is given
 *   cand.c   a candidate: the lanes around the layer, as small as the core can be
 *   others.c what administrators, other programs and a weak store do
 *   rules.c  what must hold; the names are those of the search
 */
#ifndef BATON_SIM_RECORD_H
#define BATON_SIM_RECORD_H

#include <ucontext.h>

#include "base/clock.h"
#include "baton-store.h"
#include "store/record/layer.h"

#define CANDS 3
#define ELECTIONS 3
#define COROUTINES_MAX 32
#define STACK_SIZE ((size_t)256 * 1024)
/* How much faster the fastest clock is than the slowest: what the traits of record stores say. */
#define DRIFT_PERMILLE 200
#define NEVER UINT64_MAX

/* ---- one world ---- */

/* Probabilities are per mille. */
struct weather {
	uint32_t lost;
	uint32_t late;
	uint32_t doubled;
	uint32_t silent; /* carried out, and nobody is told */
	uint32_t failed;
	uint32_t conflict; /* "not written, but no verdict" */
	uint32_t stale;
	uint32_t paused;
	uint32_t crashed;
	uint64_t slow_ns; /* a request takes up to twice that long */
};

struct params {
	uint64_t ttl_ns;
	uint64_t poll_ns;
	uint64_t last_ns; /* faults end */
	uint64_t end_ns;
	struct weather weather;
	uint32_t server_rate;
	bool pushes;
	bool deletes;  /* records of living leases, by hand */
	bool pauses;   /* elections */
	bool orders;   /* with transfers: reservations */
	bool locks;    /* native ones, with a duration, and other programs take them */
	bool breaks;   /* ... and somebody ends them by hand */
	bool forgets;  /* a weak store begins anew */
	bool evicts;   /* a weak store loses an election's record: S1 is not promised */
	bool restarts; /* candidates crash */
};

struct cand;

enum verb {
	VERB_NONE,
	VERB_OPEN,
	VERB_RENEW,
	VERB_CLOSE,
	VERB_CAMPAIGN,
	VERB_RELEASE,
	VERB_PUBLISH,
	VERB_OTHER
};

/* What a lane is doing, for what it sends: whoever checks a write knows what it is for. */
struct errand {
	enum verb verb;
	int cand; /* its number */
	uint64_t nonces[ELECTIONS];
	char lease[BATON_LEASE_ID_MAX + 1];
};

struct coroutine {
	ucontext_t context;
	void *stack;
	uint64_t due_ns;
	uint64_t order; /* of those that are due at once, the first to be so */
	struct cand *cand;
	void (*run)(struct cand *cand);
	struct errand errand;
	bool is_used;
};

enum role { ROLE_NONE, ROLE_LEADS, ROLE_LEAVES, ROLE_SEEKS };

struct seat {
	enum role role;
	uint64_t nonce;
	uint64_t term;
	uint64_t floor;
	uint64_t next_ns; /* on the world's clock */
	bool asks;        /* a campaign is under way */
	bool is_hinted;
	uint32_t score;  /* of the last profile that was to be shown ... */
	bool is_unshown; /* ... and it is still to be */
	int heir;        /* whom it is reserved for when it is given back; -1: nobody */
	char lease[BATON_LEASE_ID_MAX + 1];
};

/* One incarnation of a candidate. */
struct cand {
	int number; /* CANDS: the administrator */
	uint32_t rate;
	uint64_t origin_ns;
	uint64_t paused_ns; /* until then, on the world's clock */
	void *store;
	void *lanes[3];
	struct coroutine *coroutines[3];
	int n_running;
	bool has_ended; /* crashed: nothing that it sends is carried out any more */
	/* What the core has. */
	struct baton_lease lease;
	uint32_t n_leases;
	uint64_t deadline_ns; /* on its own clock */
	bool is_live;
	bool wants_claims;
	struct seat seats[ELECTIONS];
	char id[8];
};

struct world {
	struct params params;
	uint64_t seed;
	uint64_t random;
	uint64_t now_ns;
	uint64_t n_orders;
	uint64_t n_steps;
	uint64_t n_faults;
	uint64_t n_leaderships;
	uint64_t hash;
	uint64_t respawn_ns[CANDS];
	struct cand *cands[CANDS + 1];
	struct coroutine coroutines[COROUTINES_MAX];
	struct coroutine *current;
	ucontext_t context;
	uint64_t n_incarnations;
	bool is_quiet; /* faults are over: somebody must come to lead */
	bool is_over;
	bool is_told; /* a timeline is wanted */
};

extern struct world world;
extern const char *const election_names[ELECTIONS];

void world_run(uint64_t seed);
uint64_t world_random(uint64_t below);
/* With that probability. Counts what happens as a fault. */
bool world_fault(uint32_t permille);
/* Until then, on the world's clock, or until somebody wakes it. */
void sleep_until(uint64_t when_ns);
void wake(struct coroutine *c);
struct coroutine *coroutine_start(struct cand *cand, void (*run)(struct cand *cand));
uint64_t cand_clock_ns(const struct cand *cand, uint64_t now_ns);
/* When a candidate's clock will show that. */
uint64_t world_when_ns(const struct cand *cand, uint64_t clock_ns);
/* For the timeline. */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- store.c ---- */

struct lock {
	uint64_t until_ns;
	bool is_foreign;
	char lease[BATON_LEASE_ID_MAX + 1];
	/* Of each candidate: the lease whose lock was broken by hand, and not taken since. */
	char broken[CANDS][BATON_LEASE_ID_MAX + 1];
	uint64_t broken_ns[CANDS];
};

extern struct record_adapter sim_adapter;
extern struct lock locks[ELECTIONS];
extern struct record_election elections[ELECTIONS]; /* as they are in the store */

void store_begin(void);
void store_end(void);
/* When the next request lands or is answered. */
uint64_t store_next_ns(void);
void store_land(void);
/* By hand, whatever its version is. False: there is none. */
bool store_delete(const char *key);
void store_forget(void);
/* The record of a lease: 0 absent, 1 alive, 2 dead. */
int store_lease(const char *id);
bool lock_is_taken(int e);

/* ---- cand.c, others.c ---- */

void cand_start(int number);
void cand_end(struct cand *cand);
void others_start(void);

/* ---- rules.c ---- */

#define RULES(X)                                                                             \
	X(S1_EXCLUSION, "S1-exclusion", "two candidates lead")                               \
	X(S1_RECORD, "S1-record", "a leader's record does not name it")                      \
	X(S3_TERMS, "S3-terms", "a term is led in twice, or after a higher one")             \
	X(S4_FLOOR, "S4-floor", "a term is granted that is not above the highest seen")      \
	X(S6_FOREIGN, "S6-foreign", "a release or profile changes what is not its own")      \
	X(L1_PROGRESS, "L1-progress", "nobody leads, though all faults are long over")       \
	X(L3_ORPHAN, "L3-orphan", "a claim stays on a living lease, and nobody knows it")    \
	X(R1_CREATE, "R1-create", "a renewal makes a record")                                \
	X(R4_TOMBSTONE, "R4-tombstone", "a lease is buried that its owner counts on")        \
	X(R4_FINAL, "R4-final", "a dead lease comes back to life")                           \
	X(R5_PAUSED, "R5-paused", "a paused election is claimed")                            \
	X(R9_GONE, "R9-gone", "an election's record is deleted, or its term falls")          \
	X(R11_HOLD, "R11-hold", "an election is claimed that is reserved for another")       \
	X(SHOWN, "shown", "a leader's record does not show its profile in the end")          \
	X(LOCK_FOREIGN, "lock-foreign", "a leader leads while another program has its lock") \
	X(LOCK_LEFT, "lock-left", "a lock is kept that no claim needs")                      \
	X(LOCK_LOST, "lock-lost", "a renewal counts a claim whose lock is gone")             \
	X(WORLD, "world", "the simulator itself is too small for this")

enum rule {
	RULE_NONE,
#define X(name, word, text) RULE_##name,
	RULES(X)
#undef X
		N_RULES
};

extern enum rule broken; /* the first one that the world breaks */

void rules_begin(void);
void rule_break(enum rule rule);
const char *rule_name(enum rule rule);
const char *rule_text(enum rule rule);
/* A seat begins to lead. */
void rules_led(const struct cand *cand, int e);
/* A renewal that was begun then went well. */
void rules_renewed(const struct cand *cand, uint64_t begun_ns);
/* A write is about to be carried out, on an election or a lease; NULL: it is absent. */
void rules_election(const struct errand *by, int e, const struct record_election *before,
		    const struct record_election *after);
void rules_lease(const struct errand *by, const char *id, const struct record_lease *before,
		 const struct record_lease *after);
/* After every step, and at the end. */
void rules_check(void);
void rules_check_end(void);
bool cand_leads(const struct cand *cand, int e);

#endif
