/*
 * timing.h: the numbers of a lease and of an election, what follows from them, and the
 * rules that they must keep. A contradiction is refused with a reason of its own,
 * before anything starts: a setting that can't be safe is never half-used.
 *
 *      t_send                 deadline             end            lease
 *        |---- renew ----|------ grace ------|---- drain ----|- drift -|
 *        | leads                             | the work stops| no work |
 *
 * All is counted from the moment *before* the last good renewal was sent (S2).
 */
#ifndef BATON_TIMING_H
#define BATON_TIMING_H

#include "core/core.h"

#define NS_PER_MS ((uint64_t)1000000)
#define NS_PER_S ((uint64_t)1000000000)

/* Belongs to the lease: shared by all elections on it. */
struct timing {
	uint64_t lease_ns;
	uint64_t renew_ns; /* from send to send */
	uint64_t grace_ns; /* how long a renewal that is due may keep failing */
	uint64_t retry_ns; /* the first backoff */
	uint64_t retry_max_ns;
	uint64_t drift_ppm; /* how much two clocks' rates may differ (A1) */
};

/* Belongs to one election. */
struct options {
	uint64_t work_timeout_ns; /* 0: off */
	uint64_t preempt_ns;      /* 0: never takes over from a healthy leader */
	int32_t priority;
	uint16_t min_score;
	bool check_health;
	bool step_down_unhealthy;
	bool release_on_stop;
	bool observe_only;
	bool manual; /* campaigns only when asked to */
	uint8_t pad[5];
};

/* Why a setting can't be used; the texts live in the library. */
enum timing_fault {
	TIMING_OK,
	TIMING_WARN_RENEW,     /* allowed, but survives one lost renewal less: renew > lease/3 */
	TIMING_LEASE_RANGE,    /* 10 ms to 24 h */
	TIMING_LEASE_STORE,    /* below the store's minimum */
	TIMING_DRIFT_RANGE,    /* 0 to 50 % */
	TIMING_RENEW_RANGE,    /* 1 ms or more */
	TIMING_RENEW_HALF,     /* renew > lease/2 */
	TIMING_GRACE_RANGE,    /* 3 ms or more, less than the lease */
	TIMING_NO_DRAIN,       /* renew + grace > lease * (1 - drift): no time to stop in */
	TIMING_SHORT_DRAIN,    /* what is left for the work to stop in is below lease/20 */
	TIMING_RETRY_RANGE,    /* 1 ms or more, not above the lease */
	TIMING_RETRY_MAX,      /* below retry, or above 24 h */
	TIMING_WORK_TIMEOUT,   /* shorter than 1 ms, or above 24 h */
	TIMING_PREEMPT,        /* above 24 h, or shorter than the lease: it would flap */
	TIMING_SCORE_RANGE,    /* the minimum score is above 1.0 */
	TIMING_PRIORITY_RANGE, /* beyond a million either way */
	TIMING_OBSERVE_MANUAL, /* a candidate that only observes can't acquire */
};

/*
 * Fills in what was not given (0): lease 15 s, renew and grace a third of the lease, retry 2 s or a
 * sixth of the lease if that is less, retry_max five times retry. A drift that was not given is
 * NEVER, because 0 % is a valid choice; it becomes 10 %.
 */
void timing_fill(struct timing *t);
enum timing_fault timing_check(const struct timing *t, uint64_t store_min_lease_ns);

void options_init(struct options *o);
enum timing_fault options_check(const struct options *o, const struct timing *t);

/* lease * (1 - drift): how long after its send a renewal is good for, on our own clock. */
uint64_t timing_end_ns(const struct timing *t);
/* lease * (1 + drift): how long after it landed another process's renewal may still be good. */
uint64_t timing_gone_ns(const struct timing *t);
/* What is left for the work to stop in. */
uint64_t timing_drain_ns(const struct timing *t);
/* How long one call may take: two failed ones are survived inside the grace. */
uint64_t timing_call_ns(const struct timing *t);
/* How long a released election is kept for a named successor; and how long the candidate that
 * released it stays away, for the others. */
uint64_t timing_hold_ns(const struct timing *t);
/* Exponential backoff, full jitter: between 0 and retry * 2^attempt, at most retry_max (L4). */
uint64_t timing_backoff_ns(const struct timing *t, unsigned attempt, uint64_t random);
/* How long a standby waits before it follows a hint. If more than a few stand by, chance picks a
 * few that don't wait (L2). The others follow one after the other: each has 0.5 ms on average, and
 * all of them together have at most a 32nd of the retry period (L4). */
uint64_t timing_stagger_ns(const struct timing *t, unsigned crowd, uint64_t random);
/* When to look again where no push tells of a claim's end: after a half to all of retry_max. */
uint64_t timing_poll_ns(const struct timing *t, uint64_t random);

#endif
