/*
 * core.h: the words that the machines of the core share: what can happen
 * (events), what is to be done (actions), and why.
 *
 * The core decides everything and does nothing. It is three state machines: lease.h, election.h,
 * and audience.h between the election and the application. Each is one function: (state, event) ->
 * (state, actions). The core makes no system call, reads no clock, allocates nothing, keeps no
 * pointer and writes no log: time and random bits come in with the event. That is what lets the
 * simulator run it through years in minutes, and the search visit all of its states.
 *
 * What the caller owes the core:
 *  1. Time never goes back, and counts suspend (CLOCK_BOOTTIME; A4).
 *  2. Every action that is a call gets exactly one event with its `call` number as the
 *     answer, at the latest soon after its limit, whatever happens. A caller that doesn't know the
 *     outcome says OUTCOME_UNKNOWN.
 *  3. ACT_LEASE_UP and ACT_LEASE_DOWN are told to every election on that lease as
 *     EV_LEASE_UP and EV_LEASE_DOWN, before any other event.
 *  4. An answer to ACT_CLAIMS goes to the lease as EV_CLAIMS and then, when it is OK, to
 *     every election on that lease as EV_CLAIM, held or not. (The caller releases a claim of an
 *     election that no longer exists.)
 *  5. Every lease that was opened is closed by ACT_CLOSE before the next one is opened. The caller
 *     drops all that it has of the lease (a lock, a session, a descriptor) when the store confirms
 *     the close, and in any case when the action says `ended`, because no other close follows. A
 *     lease whose opening ended UNKNOWN is not closed: the next ACT_OPEN ends what is left of it.
 *  6. After each step the caller asks lease_wake_ns() and election_wake_ns(), and delivers EV_TIMER
 *     at that time or later. An EV_TIMER too many does no harm.
 */
#ifndef BATON_CORE_H
#define BATON_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/term.h" /* TERM_MAX, TERM_JUMP_MAX */

/* A time that never comes; an unknown duration. */
#define NEVER UINT64_MAX
/* Candidates are small numbers here; their names live in the runtime. */
#define NOBODY 0u
/* Health is counted in thousandths: 1000 is perfectly well. */
#define SCORE_MAX 1000u

/*
 * A contract inside the core, on its own data and never on data from outside. It stays on in
 * every build. Under coverage it is left out, because its failing branch can't be taken.
 */
#ifdef BATON_COVERAGE
#define CORE_ASSERT(x) ((void)0)
#else
#define CORE_ASSERT(x) ((x) ? (void)0 : __builtin_trap())
#endif

/* How a call ended. FAILED promises that nothing was and nothing will be written. */
enum outcome {
	OUTCOME_OK = 1,
	OUTCOME_REFUSED, /* the store answered, and the answer is no */
	OUTCOME_FAILED,
	OUTCOME_UNKNOWN, /* unknown whether it was written, or will be later */
};

enum event_kind {
	EV_TIMER = 1,
	EV_HINT, /* something may have changed, or the store is reachable again */
	/* answers for the lease */
	EV_OPENED,
	EV_RENEWED, /* OK: n_held claims are on this lease */
	EV_CLOSED,
	EV_CLAIMS,
	/* from the application, for one election */
	EV_START,
	EV_STOP,
	EV_ACQUIRE,  /* try now, and say how it went */
	EV_RESIGN,   /* quiet_ns: how long to keep away */
	EV_TRANSFER, /* target, target_ok */
	EV_HEALTH,   /* score */
	EV_ALIVE,    /* the work's sign of life (L5) */
	EV_DRAINED,  /* the work of the last leadership has ended */
	/* from the lease, for each of its elections */
	EV_LEASE_UP,
	EV_LEASE_DOWN, /* it died, or could not be opened */
	EV_CLAIM,      /* view: held with nonce and term, or not held */
	/* answers for the election */
	EV_CAMPAIGNED, /* OK: won, in view.term. REFUSED: held, view says by whom */
	EV_OBSERVED,   /* OK: view */
	EV_RELEASED,   /* REFUSED: it was no longer ours */
	EV_ORDERED,
};

enum action_kind {
	/* calls for the lease */
	ACT_OPEN = 1,
	ACT_RENEW,
	ACT_CLOSE, /* gives back all that the lease carries; ended: it no longer carries a claim */
	ACT_CLAIMS,
	/* for all elections on the lease */
	ACT_LEASE_UP,
	ACT_LEASE_DOWN,
	/* calls for the election */
	ACT_CAMPAIGN, /* epoch, nonce = call, floor */
	ACT_OBSERVE,
	ACT_RELEASE, /* epoch, nonce, term; target and hold_ns: reserved for a successor */
	ACT_ORDER,   /* term, target: hand over to the target */
	/* for the application */
	ACT_NOTE,
};

enum note {
	NOTE_BECAME = 1, /* term */
	NOTE_LOST,       /* term, why */
	NOTE_CHANGED,    /* target leads in term, or NOBODY does */
	NOTE_STOPPED,    /* nothing more is owed to the store or to the application */
	NOTE_ACQUIRED,   /* the answer to EV_ACQUIRE: yes */
	NOTE_NOT_ACQUIRED,
	NOTE_ERROR, /* why */
};

/* The reason of an action, for the log, the trace and the application. */
#define CORE_WHYS(X)                                                                \
	X(NONE, "no reason")                                                        \
	X(STARTED, "started")                                                       \
	X(STOPPED, "stopped")                                                       \
	X(UNUSED, "no election needs it")                                           \
	X(OPENED, "the lease is open")                                              \
	X(DUE, "due")                                                               \
	X(RETRY, "retry")                                                           \
	X(HINTED, "a hint")                                                         \
	X(IN_TURN, "its turn after a hint")                                         \
	X(EXPIRED, "the deadline has passed")                                       \
	X(REFUSED, "the store says that the lease is gone")                         \
	X(FAILED, "the call failed")                                                \
	X(UNKNOWN, "the outcome is unknown")                                        \
	X(STRANGE, "the record differs from what is known")                         \
	X(COUNT, "the store counts other claims than are known")                    \
	X(FREE, "free")                                                             \
	X(HELD, "held")                                                             \
	X(WON, "won")                                                               \
	X(ADOPTED, "own claim found after an unknown outcome")                      \
	X(ORPHAN, "own claim found that was not asked for")                         \
	X(LATE, "too late")                                                         \
	X(UNWANTED, "no longer wanted")                                             \
	X(BAD_TERM, "the term is not above the highest one seen")                   \
	X(FLOOR_JUMP, "the term is impossibly high")                                \
	X(TERM_END, "there is no higher term")                                      \
	X(ASKED, "asked to try")                                                    \
	X(NOT_STARTED, "not started, or observing only")                            \
	X(RESIGNED, "resigned")                                                     \
	X(ORDERED, "ordered to resign")                                             \
	X(TRANSFER, "transfer")                                                     \
	X(TRANSFER_REFUSED, "the target of the transfer is absent, or not healthy") \
	X(TRANSFER_ABORTED, "the target of the transfer did not take over")         \
	X(PREEMPT, "a candidate that ranks higher asks for the leadership")         \
	X(UNHEALTHY, "unhealthy")                                                   \
	X(RECOVERED, "healthy again")                                               \
	X(PAUSED, "paused")                                                         \
	X(STALLED, "no sign of life from the work")                                 \
	X(SUPERSEDED, "another candidate leads in a later term")                    \
	X(GONE, "the claim is gone from the store")                                 \
	X(DRAINED, "the work has ended")                                            \
	X(OVERDUE, "the time for the work to end has passed")                       \
	X(DRAINING, "the work has not ended yet")

enum why {
#define X(name, text) WHY_##name,
	CORE_WHYS(X)
#undef X
};

enum order {
	ORDER_NONE,
	ORDER_RESIGN,
	ORDER_TRANSFER,
};

/* What the store says about one election. */
struct view {
	uint64_t term;       /* the highest that the record has seen, also when it is free */
	uint64_t nonce;      /* mine: which of our campaigns made the claim */
	uint64_t free_in_ns; /* when the claim or reservation can end by itself; or NEVER */
	uint64_t order_id;   /* a number of its own for every order */
	uint64_t order_term; /* the leadership that the order is meant for (rule 10) */
	uint64_t order_quiet_ns;
	uint32_t leader; /* NOBODY: free, or reserved for another than the asker */
	uint32_t order_target;
	int32_t priority; /* the leader's */
	uint16_t score;   /* the leader's */
	bool held;        /* the leader's claim stands */
	bool mine;        /* held on the asker's own lease */
	bool watched;     /* the end of this claim is sure to be pushed: no timer is needed */
	bool paused;
	bool target_ok; /* the target of the order is a healthy candidate */
	uint8_t order;
	uint8_t pad[2];
	uint16_t crowd; /* about so many candidates; 0: not known */
};

/* All fields that an event doesn't need are zero. */
struct event {
	uint64_t now_ns;
	uint64_t random; /* 64 random bits */
	uint64_t call;   /* which call this is the answer to */
	uint64_t quiet_ns;
	struct view view;
	uint32_t n_held;
	uint32_t target;
	uint16_t score;
	bool target_ok;
	uint8_t kind;
	uint8_t outcome;
	uint8_t pad[3];
};

struct action {
	uint64_t call;
	uint64_t limit_ns; /* the call is over by then; if its outcome isn't known: UNKNOWN */
	uint64_t epoch;    /* which incarnation of the lease */
	uint64_t nonce;
	uint64_t term;
	uint64_t floor;
	uint64_t hold_ns;
	uint32_t target;
	uint8_t kind;
	uint8_t note;
	uint8_t why;
	bool ended; /* ACT_CLOSE: the lease has surely ended by itself; no other close follows */
};

/* More than one step can ever make. */
#define ACTIONS_MAX 8

struct actions {
	struct action list[ACTIONS_MAX];
	uint64_t n;
};

/* Appends an empty action; the caller fills in what it needs. */
static inline struct action *actions_add(struct actions *out, uint8_t kind, uint8_t why)
{
	CORE_ASSERT(out->n < ACTIONS_MAX);
	struct action *a = &out->list[out->n++];
	*a = (struct action){.kind = kind, .why = why};
	return a;
}

/* Counts failures in a row, up to the highest number that fits. */
static inline void count_up(uint8_t *n)
{
	if (*n < UINT8_MAX)
		(*n)++;
}

static inline uint64_t min_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_ns(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* now + d, where d may be NEVER. */
static inline uint64_t after_ns(uint64_t now_ns, uint64_t d)
{
	return d > NEVER - now_ns ? NEVER : now_ns + d;
}

#endif
