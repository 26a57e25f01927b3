/*
 * model.h: record stores as a small world that can be searched to its end. What decides in it is
 * the code of src/store/record/decide itself.
 *
 * A few candidates, an election or two, and records that can be compared and set. Around the
 * tasks of decide.h stands what the runtime and the core would be: a lease that counts from before
 * its send, a seat in each election. Everything may happen at any time, or never: so a candidate
 * that is paused is one that takes no step for a while.
 *
 * What travels. A renewal, an opening and a claim are sent, land, and are answered, with anything
 * in between, because their answer is counted from their send, or on the lease that they were
 * sent for. All else is sent, lands and is answered in one step: a write that lands from the
 * version that it expects could as well have been decided when it lands, and one that conflicts
 * has changed nothing. Any write can be lost, carried out unanswered, refused because its own
 * copy came first, or land at any later time: then it is a *stray*.
 *
 * How it ends. Time is counted in ticks, and only differences are kept: how long a lease has left
 * for its owner, how long a version has been in sight. None grows beyond a ttl. Versions, nonces
 * and leases are names, of which nobody asks more than whether they are equal, so they are given
 * anew in every state, in the order in which they are met; terms are ranked. (canon.c)
 */
#ifndef BATON_MODEL_RECORD_H
#define BATON_MODEL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CANDS 3
#define ELECTIONS 2
#define LEASES 4 /* a lease is a number from 1 on; 0: none */
#define STRAYS 2
#define REFS_MAX 64

/* A version that nobody has had yet: what is written next. */
#define FRESH 15
#define SLOT_NONE 0

/* ---- what is searched ---- */

struct setup {
	const char *name;
	uint8_t cands;
	uint8_t elections;
	uint8_t leases;
	uint8_t strays;
	uint8_t ttl;   /* ticks that whoever waits for a lease's end waits: the fastest clock */
	uint8_t last;  /* ticks that its owner counts on it: the slowest clock */
	uint8_t depth; /* not 0: only so many steps deep */
	uint8_t hold;  /* ticks of a reservation; 0: there is none */
	bool travels;  /* what is sent may land after anything else has happened */
	bool crashes;
	bool closes; /* leases are given up while they could go on */
	bool orders; /* somebody writes on elections; a record changes, and nothing else */
	bool pauses;
	bool shows;     /* leaders have news of themselves, and write them on their record */
	bool sweeps;    /* a sweeper's sight is kept, and decides; else it knows who is gone */
	bool drifts;    /* an owner's clock may be faster, for each renewal anew */
	bool deletes;   /* somebody deletes the record of a living lease by hand */
	bool old_reads; /* from a copy of the store that lags behind */
	bool forgets;   /* a weak store begins anew, and knows nothing */
	bool evicts;    /* a weak store loses an election's record: S1 is not promised */
	bool locks;     /* native locks with a duration beside the records, and others take them */
	bool breaks;    /* ... and somebody ends them by hand: others are not kept away */
};

enum size { SIZE_SMALL, SIZE_TEST, SIZE_LARGE };

const struct setup *setups_get(enum size size, size_t *n);

extern const struct setup *setup;

/* ---- the world ---- */

/* e/NAME. w 0: absent. */
struct erec {
	uint8_t w;
	uint8_t lease;
	uint8_t nonce;
	uint8_t term;
	uint8_t paused;
	uint8_t reserved; /* a candidate and one */
	uint8_t hold_term;
};

/* l/LEASE. w 0: absent. */
struct lrec {
	uint8_t w;
	uint8_t dead;
};

enum act {
	ACT_NONE,
	ACT_OPEN,
	ACT_RENEW,
	ACT_CLOSE,
	ACT_BURY,
	ACT_CLAIM,
	ACT_AGAIN, /* a record written as it was: to adopt, to kill, to begin with, an order */
	ACT_RELEASE,
	ACT_SHOW, /* the leader's new profile, which no rule asks for */
};

/* A write on its way. */
struct put {
	uint8_t act;
	uint8_t slot; /* a lease, or an election */
	uint8_t expected;
	uint8_t by_lease; /* CLAIM, RELEASE, SHOW: whose */
	uint8_t by_nonce;
	uint8_t by_cand;
	struct erec e;
	struct lrec l;
};

enum life { LIFE_NONE, LIFE_OPENING, LIFE_LIVE, LIFE_OVER };
enum role { ROLE_NONE, ROLE_LEADS, ROLE_LEAVES, ROLE_SEEKS, ROLE_FORFEIT };
enum stage { STAGE_NONE, STAGE_SENT, STAGE_LANDED };

/* The renewal or opening under way. */
struct lane {
	uint8_t stage;
	uint8_t intent;
	uint8_t phase;
	uint8_t refused;
	uint8_t age; /* ticks since the call's first send */
	uint8_t expected;
	uint8_t w; /* FRESH; LANDED: the version */
};

/* The claim under way. */
struct bid {
	uint8_t stage;
	uint8_t phase;
	uint8_t lease;
	uint8_t nonce;
	uint8_t term;
	uint8_t expected;
	uint8_t w; /* LANDED: the version */
	uint8_t locked;
	uint8_t late; /* a renewal was sent since the lock was taken */
	struct erec e;
};

struct seat {
	uint8_t role;
	uint8_t nonce; /* of the claim: the book */
	uint8_t term;
	uint8_t version;
	uint8_t floor;
	struct bid bid;
	uint8_t seen; /* the lease in sight, or none */
	uint8_t seen_version;
	uint8_t seen_age;
	uint8_t seen_dead;
	uint8_t hold_term;
	uint8_t hold_age;
	uint8_t locked; /* the book: its lock is ours */
	uint8_t keep;   /* enum baton_outcome: what the renewal under way has heard */
};

struct cand {
	uint8_t life;
	uint8_t lease;
	uint8_t left;    /* ticks to its deadline, on the true clock */
	uint8_t version; /* of its lease's record, as it knows it */
	struct lane lane;
	struct seat seats[ELECTIONS];
};

struct lock {
	uint8_t lease;
	uint8_t left;
	uint8_t foreign; /* another program has it */
};

struct store {
	struct lrec leases[LEASES + 1];
	struct erec elections[ELECTIONS];
};

struct world {
	struct store store;
	struct store copy; /* old_reads: an earlier state of it */
	struct put strays[STRAYS];
	struct cand cands[CANDS];
	struct lock locks[ELECTIONS];
	uint8_t led[ELECTIONS];      /* the highest term that was led in */
	uint8_t hold_age[ELECTIONS]; /* ticks since it was reserved */
	uint8_t clock[ELECTIONS];    /* the server's, as a term */
	uint8_t uptime;
};

/* ---- rules.c: what must hold ---- */

#define RULES(X)                                                                             \
	X(S1_EXCLUSION, "S1-exclusion", "two candidates lead")                               \
	X(S1_RECORD, "S1-record", "a leader's record does not name it")                      \
	X(S3_TERMS, "S3-terms", "a term is led in twice, or after a higher one")             \
	X(S4_FLOOR, "S4-floor", "a term is granted that is not above the highest seen")      \
	X(S6_FOREIGN, "S6-foreign", "a release or profile changes what is not its own")      \
	X(L1_PROGRESS, "L1-progress", "a candidate that is left alone never leads")          \
	X(L3_ORPHAN, "L3-orphan", "a claim stays on a living lease, and nobody knows it")    \
	X(R1_CREATE, "R1-create", "a renewal makes a record")                                \
	X(R4_TOMBSTONE, "R4-tombstone", "a lease is buried that its owner counts on")        \
	X(R4_FINAL, "R4-final", "a dead lease comes back to life")                           \
	X(R5_PAUSED, "R5-paused", "a paused election is claimed")                            \
	X(R9_GONE, "R9-gone", "an election's record is deleted, or its term falls")          \
	X(R11_HOLD, "R11-hold", "an election is claimed that is reserved for another")       \
	X(LOCK_FOREIGN, "lock-foreign", "a leader leads while another program has its lock") \
	X(LOCK_LEFT, "lock-left", "a lock is kept that no claim needs")                      \
	X(MODEL, "model", "the search itself is too small for this")

enum rule {
	RULE_NONE,
#define X(name, word, text) RULE_##name,
	RULES(X)
#undef X
		N_RULES
};

extern enum rule broken; /* the first one that this transition breaks */
void rule_break(enum rule rule);
const char *rule_name(enum rule rule);
const char *rule_text(enum rule rule);
bool cand_leads(const struct world *w, int c, int e);
/* What must hold in every state. */
void rules_check(const struct world *w);
/* What must hold when a write lands; the record as it is before. */
void rules_lease(const struct world *w, const struct put *p);
void rules_election(const struct world *w, const struct put *p);

/* ---- store.c ---- */

/* True: it was written. */
bool store_put(struct world *w, const struct put *p);
uint8_t store_version(const struct world *w, const struct put *p);
void store_restart(struct world *w);

/* ---- host.h: a candidate, around the code that is searched ---- */

/* How a write of a task that doesn't travel ends. */
enum fate {
	FATE_OK,
	FATE_SILENT, /* carried out, and nobody is told */
	FATE_COPY,   /* carried out by a copy of it, which makes itself a conflict */
	FATE_LOST,
	FATE_LATE, /* a stray */
	FATE_FAILED,
	FATES,
};

enum look {
	LOOK_READ,
	LOOK_TABLE, /* the sight as it is */
	LOOK_OLD,   /* ... from the copy */
};

/* How one action goes. */
struct course {
	uint8_t fate;
	uint8_t look;
	uint8_t old_read;
	uint8_t drift;
	uint8_t reserve; /* a candidate and one */
	uint8_t lock;    /* enum lock_fate: of the lock that is taken or kept */
};

enum lock_fate { LOCK_OK, LOCK_SILENT, LOCK_FAILS };

void host_open(struct world *w, int c);
void host_renew(struct world *w, int c, const struct course *how);
void host_close(struct world *w, int c, const struct course *how);
void host_over(struct world *w, int c);
void host_lane_land(struct world *w, int c);
void host_lane_carry(struct world *w, int c, const struct course *how);
void host_lane_answer(struct world *w, int c, int outcome, const struct course *how);
void host_campaign(struct world *w, int c, int e, const struct course *how);
void host_settle(struct world *w, int c, int e, const struct course *how);
void host_release(struct world *w, int c, int e, const struct course *how);
void host_show(struct world *w, int c, int e, const struct course *how);
void host_bid_land(struct world *w, int c, int e, const struct course *how);
void host_bid_answer(struct world *w, int c, int e, int outcome, const struct course *how);
void host_crash(struct world *w, int c);
void host_sweep(struct world *w, int c, int e);
void host_watch(struct world *w, int c, int e, int slot);
void host_drop(struct world *w, int slot);
void host_edit(struct world *w, int e, bool pause);
/* The write that is under way, as a stray. */
/* The native lock of an election, for a lease: taken, or prolonged. An outcome. */
int host_lock(struct world *w, int e, int slot, uint8_t fate, bool takes);
void host_unlock(struct world *w, int e, int slot);
bool host_lane_stray(struct world *w, int c);
bool host_bid_stray(struct world *w, int c, int e);
int free_slot(const struct world *w);

/* ---- choices.c: what can happen ---- */

enum what {
	DO_TICK,
	DO_OPEN,
	DO_RENEW,
	DO_LANE_LAND,
	DO_LANE_ANSWER,
	DO_LANE_LOSE,
	DO_LANE_LATE,
	DO_LANE_COPY,
	DO_CLOSE,
	DO_QUIT, /* a living lease is given up; or a dead one is not closed */
	DO_CAMPAIGN,
	DO_BID_LAND,
	DO_BID_ANSWER,
	DO_BID_LOSE,
	DO_BID_LATE,
	DO_BID_COPY,
	DO_BID_FAIL,
	DO_SETTLE,
	DO_DOWN,
	DO_RELEASE,
	DO_SHOW,
	DO_CRASH,
	DO_SWEEP,
	DO_WATCH,
	DO_STRAY,
	DO_DROP,
	DO_END,
	DO_ORDER,
	DO_PAUSE,
	DO_DELETE,
	DO_SYNC,
	DO_FORGET,
	DO_EVICT,
	DO_FOREIGN,
	DO_BREAK,
	N_WHATS,
};

struct action {
	uint8_t what;
	uint8_t cand;
	uint8_t election; /* or a lease, or a stray */
	struct course how;
};

#define ACTIONS_MAX 256

int world_actions(const struct world *w, struct action *out);
void world_apply(struct world *w, struct action a);
void world_init(struct world *w);
/* What a candidate does that wants to lead, while nobody else does anything. */
bool world_alone(const struct world *w, int c, int e, struct action *a);
const char *what_text(enum what what);
void action_text(struct action a, char *out, size_t size);
void world_text(const struct world *w, char *out, size_t size);

/* ---- canon.c: of worlds that differ in nothing but names, the same one ---- */

/* order[i]: which candidate is now at i. */
void world_canon(struct world *w, uint8_t order[CANDS]);
/* All places where a version of that lease's or election's record stands. */
int refs_lease(struct world *w, int slot, uint8_t **out);
int refs_election(struct world *w, int e, uint8_t **out);
/* All places where a lease stands. */
int refs_slot(struct world *w, uint8_t **out);

/* ---- pack.c ---- */

#define PACKED_MAX 96

size_t world_pack(const struct world *w, uint8_t *out);
void world_unpack(struct world *w, const uint8_t *in);

/* ---- search.c ---- */

struct options {
	uint64_t max_states;
	bool go_on; /* with the other worlds after a violation, without its story */
	bool verbose;
};

struct result {
	uint64_t n_states;
	uint64_t n_violations;
	uint64_t first[N_RULES]; /* after how many states it was first broken; 0: never */
	uint64_t whats;          /* a bit for each that was possible somewhere */
	uint32_t depth;
	bool complete;
	bool progress; /* was looked at, from every state */
};

void search_run(const struct setup *s, const struct options *o, struct result *r);

#endif
