/*
 * election.h: one candidate in one election, from start to stop.
 *
 *              start            due, free, hinted            won
 *    STOPPED --------> STANDBY --------------> CAMPAIGNING ------> LEADING
 *       ^               ^  ^ ^   refused, failed  |  |                |
 *       |   stop        |  | +--------------------+  | unknown        | lost, or stepped down:
 *       +---------------+  |                         v                | "lost" is told first
 *                          +---------------------- SEEKING            v
 *                          |   nothing there         |            RESIGNING  the work drains
 *                          |                         | found:         |
 *                          |  confirmed, or the      | adopted, or    | drained
 *                          +-- lease is down ----- RELEASING <--------+
 *
 * A leadership stands on a claim in the store (lease epoch, nonce, term) and on the deadline
 * of the lease. election_leads() is the whole truth about it and needs no thread to run.
 *
 * What it must never do: report a leadership that election_leads() denies, or one twice
 * (S5, S8); give a claim back before the work has ended (S7), except where the work stalled and had
 * its time; touch a claim that isn't its own (S6); walk away from a claim that it may have (L3);
 * ask the store without need (L4); stop contending by itself (L8).
 */
#ifndef BATON_ELECTION_H
#define BATON_ELECTION_H

#include "core/core.h"
#include "core/lease.h"
#include "core/timing.h"

enum election_state {
	ELECTION_STOPPED,
	ELECTION_STANDBY,
	ELECTION_CAMPAIGNING,
	ELECTION_SEEKING, /* did the campaign with the unknown outcome land? */
	ELECTION_LEADING,
	ELECTION_RESIGNING, /* no longer leader; the work has yet to end */
	ELECTION_RELEASING, /* a claim is being given back */
};

struct election {
	struct options options;
	struct tally tally;      /* how the lease counts us */
	uint64_t term;           /* of the claim; valid from LEADING to RELEASING */
	uint64_t nonce;          /* of the campaign that made it */
	uint64_t epoch;          /* of the lease that it was sent on */
	uint64_t floor;          /* the highest term ever seen (S3) */
	uint64_t barred;         /* up to this term we never lead again: led, or another's (S4) */
	uint64_t doubt;          /* a campaign that ended UNKNOWN and may still land; 0: none */
	uint64_t doubt_ns;       /* when that one was sent */
	uint64_t call;           /* the call under way; 0: none */
	uint64_t call_ns;        /* when it was sent */
	uint64_t mark;           /* claims asked for before this call of the lease say nothing */
	uint64_t next_ns;        /* when to look, campaign or release next */
	uint64_t calm_ns;        /* L4: no hint makes us look before this */
	uint64_t quiet_ns;       /* no campaign before this */
	uint64_t work_ns;        /* L5: without a sign of life no leader from here on */
	uint64_t overdue_ns;     /* a stalled work's time is up: give the claim back */
	uint64_t remind_ns;      /* when to complain of a work that doesn't end */
	uint64_t preempt_ns;     /* when to ask the lesser leader for its place */
	uint64_t leader_term;    /* whom we know as leader: term, ... */
	uint64_t order_done;     /* the last order obeyed or refused */
	uint64_t ordered_term;   /* the last one in which a standby saw an order */
	uint32_t self;           /* our own number */
	uint32_t leader;         /* ... who ... */
	int32_t leader_priority; /* ... and how it ranks */
	uint32_t successor;      /* for whom the claim is given back */
	uint32_t handed;         /* the candidate that should have taken it by now */
	uint16_t leader_score;
	uint16_t score;
	uint8_t state;
	uint8_t call_kind;
	uint8_t cause;   /* why next_ns is when it is */
	uint8_t attempt; /* failed calls in a row */
	uint8_t idle;    /* fruitless looks in a row */
	bool wanted;     /* started, and not told to stop */
	bool enlisted;   /* the lease counts on us */
	bool claimed;    /* RESIGNING: the claim stands and is ours to give back */
	bool work;       /* the application was told "became", and has not drained since */
	bool hinted;     /* a hint came that could not be followed yet */
	bool asked;      /* EV_ACQUIRE waits for its answer */
	bool stopping;   /* EV_STOP waits for NOTE_STOPPED */
	bool restart;    /* EV_START came before that */
	bool paused;
	uint16_t crowd; /* about so many candidates contend; 0: not known */
};

void election_init(struct election *e, uint32_t self, const struct options *o);
void election_step(struct election *e, struct lease *l, const struct event *ev,
		   struct actions *out);
uint64_t election_wake_ns(const struct election *e, const struct lease *l);

/* Whether this candidate leads now: S1 and S2 are about the answer. */
bool election_leads(const struct election *e, const struct lease *l, uint64_t now_ns);

#endif
