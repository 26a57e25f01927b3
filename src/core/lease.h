/*
 * lease.h: what a process keeps alive in a store, and what its elections are held on.
 *
 * One lease carries any number of elections, so that keeping them costs one renewal per
 * interval whatever their number. Where a store ties the lease to one object, each election
 * has a lease of its own (`own`): it is granted together with the claim and spent with its
 * release; same code, same rules.
 *
 *            open              answered in time                  deadline, or refused
 *   CLOSED ------> OPENING ----------------------> LIVE ------------------------------> DEAD
 *     ^ ^             |                           ^  |                                  |
 *     | |  no answer  |      own: a claim was won |  | own: released       drained, or  |
 *     | +-------------+                           |  v                     `end` passed |
 *     |                  own: nothing to open   READY                                   |
 *     |                                                                                 v
 *     +---------- closed: confirmed, or told once more when it has surely ended ----- CLOSING
 *
 * What it must never do: count a renewal from its answer instead of its send (S2); come back
 * after its deadline (S5); close before the work of its elections is over, or had its time (S7);
 * leave a lease unclosed that was opened, because the caller keeps something of each (duty 5).
 */
#ifndef BATON_LEASE_H
#define BATON_LEASE_H

#include "core/core.h"
#include "core/timing.h"

enum lease_state {
	LEASE_CLOSED,
	LEASE_OPENING,
	LEASE_READY, /* own leases only: a campaign may open it */
	LEASE_LIVE,
	LEASE_DEAD, /* no candidate leads on it any longer; the work is stopping */
	LEASE_CLOSING,
};

struct lease {
	struct timing timing;
	uint64_t epoch;           /* one per incarnation: the identity of the lease in the store */
	uint64_t sent_ns;         /* LIVE: when the last good renewal was sent */
	uint64_t deadline_ns;     /* LIVE: no leadership from here on (S2); else 0 */
	uint64_t end_ns;          /* the work's time is up; set with the deadline */
	uint64_t tried_ns;        /* when anything that can prolong it was last sent */
	uint64_t next_ns;         /* when to open, renew or close next */
	uint64_t serial;          /* numbers the calls */
	uint64_t calls;           /* numbers those of its elections: no nonce twice (rule 2) */
	uint64_t call;            /* the open, renewal or close under way; 0: none */
	uint64_t call_epoch;      /* of that call */
	uint64_t call_ns;         /* when it was sent */
	uint64_t claims_call;     /* the question for claims under way; 0: none */
	uint64_t claims_epoch;    /* of that question */
	uint64_t claims_next_ns;  /* when to ask next */
	uint64_t claims_answered; /* the last question with an answer that counts */
	uint32_t n_started;       /* elections that need this lease */
	uint32_t n_sure;          /* claims that we hold on it */
	uint32_t n_maybe;         /* claims being made, given back or looked for */
	uint32_t n_work;          /* elections whose work runs or drains on it */
	uint32_t least_held;      /* since the renewal was sent: fewer can't be held ... */
	uint32_t most_held;       /* ... nor more, unless something went wrong */
	uint8_t state;
	uint8_t call_kind;
	uint8_t attempt; /* failed tries in a row */
	uint8_t claims_attempt;
	uint8_t why_down; /* DEAD, CLOSING: why */
	uint8_t why_ask;  /* ask: why */
	bool own;
	bool opened; /* it exists in the store, or may: it must be closed */
	bool ended;  /* the close under way is the last one: the lease has ended by itself */
	bool keep;   /* a claim is left on it on purpose: it is closed after its end */
	bool ask;    /* the store must be asked what is held on it */
	uint8_t pad[5];
};

/* What one election adds to the counts of its lease. */
struct tally {
	uint64_t epoch;
	bool sure;
	bool maybe;
	bool work;
	uint8_t pad[5];
};

void lease_init(struct lease *l, const struct timing *t, bool own);
void lease_step(struct lease *l, const struct event *ev, struct actions *out);
uint64_t lease_wake_ns(const struct lease *l);

/* For elections: they hold no pointer to their lease, but are handed it with each step. */
void lease_enlist(struct lease *l);
void lease_leave(struct lease *l);
/* A claim stays on the lease on purpose: unless an election needs the lease again, it is closed
 * only after it has expired. */
void lease_keep(struct lease *l);
/* Whether the lease only waits to expire: nothing is to be given back. */
bool lease_is_left(const struct lease *l);
/* Whether a claim won on that incarnation may be led now. */
bool lease_bears(const struct lease *l, uint64_t epoch, uint64_t now_ns);
/* Whether a campaign may be sent now. */
bool lease_ready(const struct lease *l, uint64_t now_ns);
/* Whether a claim on that incarnation needs its own release; else the close gives it back. */
bool lease_stands(const struct lease *l, uint64_t epoch);
/* An own lease was granted by a campaign sent at sent_ns. If that is too late, the lease is closed,
 * which gives it back. */
void lease_grant(struct lease *l, uint64_t sent_ns, uint64_t now_ns);
/* A campaign ended UNKNOWN: the own lease that comes with its claim may exist. */
void lease_doubt(struct lease *l, uint64_t now_ns);
/* The release of its claim has ended an own lease. */
void lease_spend(struct lease *l);
/* Ask the store what is held on it. */
void lease_ask(struct lease *l, uint8_t why);
void lease_tally(struct lease *l, struct tally *was, bool sure, bool maybe, bool work);

#endif
