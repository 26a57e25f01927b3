/*
 * model.h: a world small enough to be searched completely: two candidates of one election, each
 * with the real core inside, an exact store, and a network that loses, repeats and delays.
 *
 *   search.c   breadth first, fewest faults first; the log that stories are rebuilt from
 *   table.c    what has been visited: 8 bytes a state
 *   pack.c     a world as few bytes: times relative to now, numbers renamed, the dead forgotten
 *   choices.c  what can happen next in a world, and making it happen
 *   world.c    the caller of the core: events in, actions out, timers; watches S5 to S8
 *   store.c    the store; watches S1 and S7 wherever a claim is granted or freed
 *   rules.c    the invariants of a state, and their names
 *   live.c     liveness: from here on without faults, does somebody lead in time?
 *   setup.c    the searches of each size: timings, kind of store, bounds
 *   main.c     the command line
 *
 * Time goes in ticks. The core sees nanoseconds, and its times are rounded up to ticks between
 * steps; that only lets timers fire later, which the core must bear (core.h, duty 5).
 */
#ifndef BATON_MODEL_H
#define BATON_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/election.h"
#include "core/lease.h"

#define TICK_NS (4 * NS_PER_MS)
/* Every world is unpacked at this moment: far enough from 0 to look back from. */
#define BASE_NS (64 * TICK_NS)

#define N_CANDS 2
#define N_STRAYS 4
#define N_LEASES 6

/* ---- what is searched ---- */

/* The bounds. Each fault uses up one; what is left is part of the state. */
enum bound {
	BOUND_ALL,  /* faults of any kind */
	BOUND_SLOW, /* calls that take any time at all; the others take none */
	BOUND_LOSS,
	BOUND_DUP,
	BOUND_LATE,
	BOUND_ORDER,
	BOUND_HINT,
	BOUND_PAUSE, /* and the next: one for each candidate */
	BOUND_PAUSE_2,
	BOUND_CRASH,
	BOUND_CRASH_2,
	BOUND_STOP,
	BOUND_HEALTH,
	N_BOUNDS
};

struct setup {
	const char *name;   /* the store and the leases */
	const char *faults; /* what goes wrong */
	struct timing timing[N_CANDS];
	struct options options;
	uint8_t bounds[N_BOUNDS];
	uint8_t term_max;
	bool own;
	bool watched;
	bool tells_end;   /* the store says when a claim can end */
	bool lazy_push;   /* what is pushed may be overtaken */
	bool equal;       /* the candidates are alike */
	bool provable;    /* the store can prove that a holder's process is gone */
	bool jitter;      /* both ends of every random span; else the longest */
	bool refusals;    /* a loss may also be a connection refused: FAILED, at once */
	bool freezes;     /* an order may also pause the election */
	bool exact;       /* the store's clock runs like the candidates' */
	bool brisk;       /* what is sent arrives, and work ends, before anything else happens */
	unsigned endless; /* a bit for each bound that is never used up */
	uint8_t at_once;  /* how many faults may be under way at one time; 0: any number */
	uint8_t strays_max;
};

/* ---- a world ---- */

/* Which lease: candidate 1 or 2 (0: none), incarnation of the process, epoch of the lease. */
struct lease_id {
	uint8_t cand;
	uint8_t inc;
	uint8_t epoch;
};

struct message {
	struct lease_id lease;
	uint8_t kind;
	uint8_t nonce;
	uint8_t term;
	uint8_t floor;
	uint8_t target;
	uint8_t hold; /* ticks */
};

struct reply {
	uint8_t outcome;
	uint8_t n_held;
	uint8_t term;
	uint8_t nonce;
	uint8_t free_in; /* ticks; NO_TICK: never */
	uint8_t order;
	uint8_t order_id;
	uint8_t order_term;
	uint8_t order_target;
	uint8_t leader;
	uint8_t flags;
};

enum reply_flag {
	REPLY_HELD = 1,
	REPLY_MINE = 2,
	REPLY_PAUSED = 4,
	REPLY_TARGET_OK = 8,
};

#define NO_TICK 255

enum phase {
	PHASE_NONE,
	PHASE_REQUEST, /* on its way to the store */
	PHASE_REPLY,   /* on its way back */
	PHASE_LOST,    /* at its limit the caller will learn that it doesn't know */
};

/* At most one call of each kind is under way. */
enum slot_kind { SLOT_LEASE, SLOT_CLAIMS, SLOT_ELECTION, N_SLOTS };

struct slot {
	uint8_t phase;
	uint8_t age; /* ticks since it was sent, at most the limit */
	struct message msg;
	struct reply reply;
};

struct cand {
	struct lease lease;
	struct election election;
	struct slot slots[N_SLOTS];
	uint64_t work_end_ns; /* until when the application may count on being alone */
	uint8_t inc;
	uint8_t last_term; /* of the last "became" */
	uint8_t has_epoch; /* the lease that the caller has something of; 0: none */
	bool up;
	bool paused;
	bool lagging; /* timers are due, but answers may come first */
	bool leads;   /* the application was told "became", and not "lost" */
	bool works;   /* ... and its work has not ended */
	bool sick;
	bool pushed; /* a hint that is sure to arrive */
};

struct stored_lease {
	struct lease_id id;
	uint8_t left; /* ticks until it has surely ended */
};

struct store {
	struct stored_lease leases[N_LEASES];
	struct lease_id holder;
	uint8_t n_leases;
	uint8_t nonce;
	uint8_t term;
	uint8_t order;
	uint8_t order_id;
	uint8_t order_term;
	uint8_t order_target;
	uint8_t kept_for; /* a candidate */
	uint8_t kept;     /* ticks */
	bool paused;
};

struct world {
	uint64_t now_ns;
	struct cand cands[N_CANDS];
	struct store store;
	/* Requests that nobody waits for any more, and that may still land. */
	struct message strays[N_STRAYS];
	uint8_t n_strays;
	bool begun; /* somebody was started */
	uint8_t bounds[N_BOUNDS];
};

/* Candidates are called A and B in stories. */
static inline char name_of(unsigned c)
{
	return (char)('A' + c);
}

/* ---- rules.c ---- */

#define RULES(X)                                                                      \
	X(S1_EXCLUSION, "S1-exclusion", "two candidates lead")                        \
	X(S1_CLAIM, "S1-claim", "leads without a claim in the store")                 \
	X(S1_GRANT, "S1-grant", "the store could grant it while another still leads") \
	X(S2_MARGIN, "S2-margin", "the lease can end in the store before the work")   \
	X(S3_TERMS, "S3-terms", "a term is led in twice, or after a higher one")      \
	X(S5_LATE, "S5-late", "reported as leader without leading")                   \
	X(S6_FOREIGN, "S6-foreign", "releases what is not its own")                   \
	X(S7_ORDER, "S7-order", "gives back before the work has ended")               \
	X(S7_OVERLAP, "S7-overlap", "the work of two leaders overlaps")               \
	X(S8_EVENTS, "S8-events", "became and lost don't alternate")                  \
	X(S8_STOPPED, "S8-stopped", "stopped is told while something is owed")        \
	X(L1_LEADER, "L1-leader", "nobody leads in time after the faults")            \
	X(L1_PAUSE, "L1-pause", "a paused election still has a leader")               \
	X(ORDER, "R10-order", "an order to resign is never obeyed")                   \
	X(L3_ORPHAN, "L3-orphan", "a claim stays that nobody leads on")               \
	X(L4_LIVELOCK, "L4-livelock", "endless steps at one instant")                 \
	X(CLOSED, "closed-once", "a lease that was opened is not closed, or twice")   \
	X(WAKE, "wake-late", "would sleep beyond the end of its leadership")          \
	X(CALLS, "calls", "a call while another of its kind is under way")            \
	X(ASSERT, "assert", "an assertion of the core fails")                         \
	X(MODEL, "model", "the search itself is too small for this")

enum rule {
	RULE_NONE,
#define X(name, word, text) RULE_##name,
	RULES(X)
#undef X
		N_RULES
};

const char *rule_name(enum rule rule);
const char *rule_text(enum rule rule);
/* Notes the first rule that this transition breaks. */
void rule_break(enum rule rule);
/* What must hold in every state. */
void rules_check(const struct world *w);
/* What must hold when a claim passes to a candidate, or is given back. */
void rules_granted(const struct world *w, struct lease_id to);
void rules_freed(const struct world *w, struct lease_id from);
/* What must hold when a candidate hears that it has a lease, or has it no more. */
void rules_opened(struct world *w, unsigned c, uint64_t epoch);
void rules_closed(struct world *w, unsigned c, uint64_t epoch);
/* What must hold when a candidate acts. */
void rules_action(const struct world *w, unsigned c, const struct action *a);

/* ---- the transition under way ---- */

/*
 * A choice can have several outcomes: has that lease expired by now, how long is that backoff?
 * Such questions are put to decide(), and the search runs the choice once for every answer.
 */
struct trial {
	const struct setup *setup;
	FILE *story; /* NULL: silent */
	uint32_t answers;
	uint32_t n_asked;
	enum rule broken;
	bool beyond; /* the bound on terms was met: not part of this search */
	bool calm;   /* live.c: no questions, the slow answer to all of them */
};

extern struct trial trial;

bool decide(void);

/* ---- setup.c ---- */

enum size { SIZE_SMALL, SIZE_TEST, SIZE_LARGE };

/* Fills in the searches of that size; returns their number. */
#define SETUPS_MAX 64
size_t setups_get(enum size size, struct setup *list);
/* The same stores with every fault of the bounds in one world: too many for a search. */
size_t setups_walked(struct setup *list);
unsigned setup_limit_ticks(const struct setup *s, unsigned c);
/* How far the store's clock can be ahead of or behind a candidate's over one lease. */
unsigned setup_drift_ticks(const struct setup *s, unsigned c);
unsigned setup_lease_ticks(const struct setup *s, unsigned c);
/* L1, in ticks. */
unsigned setup_patience_ticks(const struct setup *s);

/* ---- store.c ---- */

bool same_lease(struct lease_id a, struct lease_id b);
const struct stored_lease *store_find(const struct store *s, struct lease_id id);
void store_drop(struct store *s, struct lease_id id);
void store_process(struct world *w, const struct message *m, struct reply *r);
void store_tick(struct world *w);
void store_push(struct world *w);

/* ---- world.c ---- */

void world_init(struct world *w, const struct setup *s);
void cand_init(struct world *w, unsigned c);
/* Gives one event to the election of a candidate, or to its lease. */
void world_tell(struct world *w, unsigned c, struct event *ev);
/* The answer to the call in that slot. */
void world_answer(struct world *w, unsigned c, unsigned slot, uint8_t outcome);
/* Lets a candidate do all that is due. */
void world_settle(struct world *w, unsigned c);

/* ---- choices.c ---- */

#define N_SLOT_OPS 9
#define N_CAND_OPS 15
#define N_WORLD_OPS 4
#define CHOICE_TICK 0u
#define CHOICE_SLOTS 1u
#define CHOICE_STRAYS (CHOICE_SLOTS + N_CANDS * N_SLOTS * N_SLOT_OPS)
#define CHOICE_CANDS (CHOICE_STRAYS + N_STRAYS)
#define CHOICE_WORLD (CHOICE_CANDS + N_CANDS * N_CAND_OPS)
#define N_CHOICES (CHOICE_WORLD + N_WORLD_OPS)

enum slot_op {
	OP_LAND,      /* the store processes the request, and the caller has the answer */
	OP_LAND_SLOW, /* ... the answer is on its way */
	OP_LAND_LOST, /* ... the answer is lost */
	OP_LAND_KEEP, /* ... and a copy of the request is still out there */
	OP_LAND_COPY, /* ... but it was a copy: the request itself is still on its way */
	OP_ANSWER,
	OP_LOSE,
	OP_LATE, /* the caller won't learn how it went, and the request will still land */
	OP_FAIL,
};

enum cand_op {
	OP_SETTLE,
	OP_PAUSE,
	OP_RESUME,
	OP_CRASH,
	OP_CRASH_LATE, /* what it has sent will still land */
	OP_RESTART,
	OP_START,
	OP_STOP,
	OP_DRAINED,
	OP_SICK,
	OP_WELL,
	OP_RESIGN,
	OP_TRANSFER,
	OP_HINT,
	OP_PUSHED,
};

enum world_op { OP_ORDER_RESIGN, OP_ORDER_TRANSFER, OP_FREEZE, OP_THAW };

/* What kind of thing a choice is, whoever it happens to: a void search never met one of them. */
#define N_OPS (2 + N_SLOT_OPS + N_CAND_OPS + N_WORLD_OPS)
unsigned choice_op(unsigned choice);
const char *op_text(unsigned op);
bool choice_enabled(const struct world *w, unsigned choice);
/* The first choice that may be enabled, from this one on. */
unsigned choice_next(const struct world *w, unsigned choice);
void choice_apply(struct world *w, unsigned choice);
void choice_text(const struct world *w, unsigned choice, char *buf, size_t size);

/* ---- pack.c ---- */

#define PACKED_MAX 384

struct packed {
	uint16_t n;
	uint8_t bytes[PACKED_MAX];
};

/* All but the bounds. The world itself is brought into its canonical form (canon.c). */
void world_canon(struct world *w);
/* Only what lies around the core: its requests and leases. */
void world_tidy(struct world *w);
void world_pack(struct world *w, struct packed *p);
void world_unpack(struct world *w, const struct packed *p);
void packed_hash(const struct packed *p, uint64_t hash[2]);

/* ---- table.c ---- */

struct table {
	uint64_t *slots;
	uint64_t mask;
	uint64_t n;        /* entries */
	uint64_t compared; /* fingerprints: each comparison can be mistaken */
};

enum seen { SEEN_NEW, SEEN_OLD, SEEN_FULL };

bool table_init(struct table *t, unsigned bits);
void table_done(struct table *t);
uint32_t bounds_pack(const uint8_t *bounds);
void bounds_unpack(uint32_t packed, uint8_t *bounds);
/*
 * Whoever can do more can do all that others can do: a state whose bounds are covered by those of
 * a visited one has nothing new to show, and counts as old.
 */
enum seen table_visit(struct table *t, const uint64_t hash[2], uint32_t bounds);
/* Whether it has been covered by another one since. */
bool table_outdone(struct table *t, const uint64_t hash[2], uint32_t bounds);
double table_expected_misses(const struct table *t);

/* ---- queue.c ---- */

struct block;

struct queue {
	struct block *first;
	struct block *last;
	size_t at; /* how far the first one has been read */
};

/* False: no memory. */
bool queue_put(struct queue *q, const struct packed *p, uint32_t bounds, uint64_t number);
/* False: empty. */
bool queue_get(struct queue *q, struct packed *p, uint32_t *bounds, uint64_t *number);
void queue_done(struct queue *q);

/* ---- selfcheck.c ---- */

bool selfcheck(const struct setup *s, unsigned n_walks, uint64_t *n_steps);

/* ---- live.c ---- */

void live_check(const struct world *from);

/* ---- search.c ---- */

struct search_options {
	uint64_t max_states;
	unsigned hash_bits;
	bool go_on; /* after a violation */
	bool verbose;
};

struct search_result {
	uint64_t n_states;
	uint64_t n_live; /* of them, those from which liveness was checked */
	uint64_t n_violations;
	uint64_t first[N_RULES]; /* after how many states it was first broken; 0: never */
	uint32_t ops;            /* a bit for each that was possible somewhere */
	double misses;
	bool complete;
};

void search_run(const struct setup *setup, const struct search_options *o, struct search_result *r);

#endif
