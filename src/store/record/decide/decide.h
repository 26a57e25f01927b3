/*
 * decide.h: what a record store is asked to write, and when it is refused. Rules R1 to R12.
 *
 * Everything here is pure: no I/O, no clock, no memory, no random numbers. A call of the driver
 * is one or several *tasks*, one for each record that it is about. A task is a small struct and
 * one function: it is given what the store answered, and says what to ask next, with the reason.
 *
 *     begin ----> step ----> READ, LOOK, WRITE or BURY ----> the store ----> step ... ----> DONE
 *                   ^                                                          |
 *                   +------------------------ struct record_turn --------------+
 *
 * How the part that does things calls it, for one batch of tasks:
 *
 *     for each task: fill in what it is asked for, all else zero
 *     until all are DONE, and while there is time:
 *         for each task: op = record_..._step(task, &turn)
 *         carry out all asks of the round, as few requests as the store can do them with
 *         for each task: fill in `turn` with its answer; now_ns after the answer was there (R3)
 *     for each that is not DONE, because time is up: record_..._give_up(task)
 *
 * Tasks of one batch know nothing of each other: a conflict of one undoes no other.
 *
 * What it owes the tasks:
 *  1. now_ns is CLOCK_BOOTTIME, read after the answer was received; `random` is 64 new random bits.
 *  2. Whoever isn't sure that a write never lands says UNKNOWN. A write is sent once for each
 *     ask, and is never repeated by a library below.
 *  3. READ_FRESH is linearizable. READ may be old, or come from what is in sight already (R8).
 *  4. A value that is not understood, or that names another election, ends its task with FAILED
 *     (S9): the caller gives the answer FAILED, and says why.
 *  5. `election` is the record as last read or told, also while the answer is about a lease; where
 *     there is none it is empty but for its name. After WRITE it is what is to be written.
 *  6. LOOK is answered from the table of sights; where that has no sight of the lease, or one
 *     that is older than a poll, its record is read and noted with record_sight_note() first;
 *     and read again, fresh, if the sight is unsure.
 *     A sight is kept only while an election that is looked at names its lease.
 *  7. Claims that were won, or that may have landed, stand in a book, one struct record_claim
 *     each. A claim in doubt stays there until its lease is given up, or until record_settle
 *     says OK or REFUSED. Who opens a new lease drops the claims of the old one.
 *  8. A lease that was opened is forgotten only when it was closed, or when another was opened in
 *     its place; the first task of lease_open is the new lease, the second ends the old one
 *     (R12), and only the first decides how the call ends.
 */
#ifndef BATON_RECORD_DECIDE_H
#define BATON_RECORD_DECIDE_H

#include "store/record/decide/record.h"

/* ---- asking ---- */

enum record_op {
	RECORD_DONE,       /* the task's `outcome` says how it ended */
	RECORD_READ,       /* the task's record */
	RECORD_READ_FRESH, /* the same, linearizable */
	RECORD_WRITE,      /* the task's record, if its version is the task's `version` */
	RECORD_LOOK,       /* at the lease that the task's `rival` names */
	RECORD_BURY,       /* write turn->lease to l/`rival`, if its version is that of the sight */
	RECORD_LOCK,       /* take the election's native lock; one that is ours is prolonged */
};

/* Why it asks, or why it ended so. */
#define RECORD_WHYS(X)                                                                \
	X(NONE, "no reason")                                                          \
	X(BEGUN, "begun")                                                             \
	X(FREE, "free")                                                               \
	X(DEAD, "its lease is dead")                                                  \
	X(WAITED, "its lease was unchanged for its whole ttl")                        \
	X(LOCKED, "another has its lock")                                             \
	X(MISSING, "there is no record yet, and a store that forgets needs one")      \
	X(NAMED, "it names a lease")                                                  \
	X(HELD, "held")                                                               \
	X(MINE, "held on our own lease")                                              \
	X(PAUSED, "paused")                                                           \
	X(RESERVED, "reserved for another")                                           \
	X(YOUNG, "the store has just begun, and may have forgotten leases")           \
	X(TERM_END, "there is no higher term")                                        \
	X(FLOOR_JUMP, "the term is impossibly far below the highest one seen")        \
	X(CONFLICT, "another version was in the way")                                 \
	X(LANDED, "our claim stands in the record")                                   \
	X(PENDING, "our claim may still land, unless something is written before it") \
	X(OVER, "our claim never lands")                                              \
	X(WRITTEN, "written")                                                         \
	X(FOREIGN, "it is not ours any more")                                         \
	X(GONE, "it is gone")                                                         \
	X(ENDED, "that leadership is over")                                           \
	X(FAILED, "the store failed")                                                 \
	X(UNKNOWN, "nobody knows whether it was written")                             \
	X(TIME, "there was no time for more")

enum record_why {
#define X(name, text) RECORD_WHY_##name,
	RECORD_WHYS(X)
#undef X
};

/* What a sight of a lease is: which version we know, and since when (R3). All zero: none. */
struct record_sight {
	struct record_version version; /* n = 0: its record is missing, which is watched alike */
	uint64_t ttl_ns;               /* from the record, not from our settings (rule 6) */
	uint64_t since_ns;             /* when that version was first received; NEVER: unsure */
	uint64_t noted_ns;             /* ... and last */
	uint32_t death;                /* enum record_death */
	bool is_known;
};

/* Since when a reservation is known, on our own clock (R11). All zero: none. */
struct record_hold {
	uint64_t term; /* its identity */
	uint64_t since_ns;
};

/* A store that forgets (memcached, some NATS): its own clock and age. */
struct record_weak {
	uint64_t uptime_ns;
	uint64_t max_lease_ns; /* nobody claims before it is that old */
	uint64_t server_ms;    /* its wall clock: a lower bound of terms */
};

/* What a step is given. All but the first three is about the answer to the task's last ask. */
struct record_turn {
	uint64_t now_ns;
	int64_t wall_ms; /* for people */
	uint64_t random;
	int outcome; /* enum baton_outcome; the first turn has none */
	struct record_version
		version;            /* READ: found. WRITE, BURY, OK: the new one. REFUSED: theirs */
	bool is_told;               /* REFUSED: version and value of what was in the way are here */
	struct record_lease *lease; /* READ or told: found. WRITE, BURY: to be written */
	struct record_election *election; /* likewise */
	struct record_sight *sight;       /* LOOK and BURY: of the lease that `rival` names */
	struct record_hold *hold;         /* of this election; the task keeps it true */
	const struct record_weak *weak;   /* NULL: the store forgets nothing */
};

const char *record_why_text(int why);

/* What all tasks have. */
struct record_task {
	struct record_version version; /* of the record as last read; WRITE: expected */
	uint32_t phase;
	bool was_refused; /* a write of it was, so that a copy of that may have landed */
	int why;          /* of the last ask, or of the outcome */
	int outcome;      /* DONE: as the driver's call */
};

/* ---- expiry.c: when a lease is over (R2, R3, R4), when a reservation is (R11) ---- */

/* The record was received at read_ns: found with that version, or missing (lease NULL), when ttl_ns
 * is what the election says, or 0: none does. is_fresh: by a linearizable read. */
void record_sight_note(struct record_sight *s, const struct record_version *version,
		       const struct record_lease *lease, uint64_t ttl_ns, bool is_fresh,
		       uint64_t read_ns);
/* It is missing, and no wait has begun: by a read that may be older than the lease, or no election
 * names it. */
bool record_sight_is_unsure(const struct record_sight *s);
/* When the wait for its end is over; 0: it is dead. RECORD_NEVER: nothing is known. */
uint64_t record_sight_end_ns(const struct record_sight *s);
/* R2: known dead. */
bool record_sight_is_dead(const struct record_sight *s);
/* R4: it may be buried, from the version of the sight. */
bool record_sight_is_over(const struct record_sight *s, uint64_t now_ns);

/* An election was received at read_ns. */
void record_hold_note(struct record_hold *h, const struct record_election *e, uint64_t read_ns);
/* When it is free for `id`: 0, or the end of the reservation. */
uint64_t record_hold_end_ns(const struct record_hold *h, const struct record_election *e,
			    const char *id);

/* ---- lease.c: records that only we write ---- */

enum record_intent {
	RECORD_OPEN = 1, /* our lease, from absent */
	RECORD_RENEW,    /* R1: never creates, never revives */
	RECORD_CLOSE,    /* our lease, to dead: lease_close, and R12 */
	RECORD_PUBLISH,  /* c/LEASE; the caller has its value, only the version is decided here */
};

/* What we know of such a record: the version that we wrote last, as far as we know. */
struct record_own {
	struct record_version version;
	uint64_t beat;
};

struct record_keep {
	/* asked for */
	uint32_t intent;
	uint32_t death;                  /* CLOSE: why */
	const struct baton_lease *lease; /* but for PUBLISH */
	struct record_own *own;
	/* the task's */
	struct record_task task; /* REFUSED: the lease is over */
	uint64_t beat;
};

int record_keep_step(struct record_keep *k, struct record_turn *t);
void record_keep_give_up(struct record_keep *k);

/* ---- campaign.c: claims (R2, R4, R5, R11), and what became of those in doubt (R7) ---- */

enum record_standing {
	RECORD_NO_CLAIM,
	RECORD_IN_DOUBT, /* it may have landed, or may land: unsettled */
	RECORD_STANDS,   /* it is ours: counted by lease_renew, given back by release */
	RECORD_FORFEIT,  /* its lock is lost: nobody leads on it, and settling gives it back */
};

/* An entry of the book. */
struct record_claim {
	uint64_t nonce;
	uint64_t term;
	struct record_version
		version; /* STANDS: of the claim. IN_DOUBT: what it was written from */
	uint32_t standing;
};

struct record_campaign {
	/* asked for */
	const struct baton_lease *lease;
	const struct baton_profile *profile; /* settling: NULL */
	uint64_t nonce;
	uint64_t floor;
	bool locks; /* the store has native locks, which stand beside the records */
	/* the task's */
	struct record_task task;        /* OK: won or found, in `term`. REFUSED: not ours */
	struct record_version expected; /* is_sent: what the claim was written from */
	char rival[BATON_LEASE_ID_MAX + 1];
	uint64_t term; /* of the claim that was sent or won */
	bool settles;
	bool is_sent;    /* a claim was sent, and it may have landed, or may land */
	bool has_lock;   /* the lock was taken, or perhaps was; the caller keeps it or drops it */
	bool gives_back; /* settling: a claim of ours that stands there is freed, not adopted */
};

int record_campaign_step(struct record_campaign *c, struct record_turn *t);
/* UNKNOWN if a claim of it may have landed or may land, else FAILED. */
void record_campaign_give_up(struct record_campaign *c);
/* How the claim stands in the book after the task has ended. */
void record_campaign_book(const struct record_campaign *c, struct record_claim *out);
/* R7: the task that settles a claim in doubt. OK: it is ours. REFUSED: it never lands, or was given
 * back. Else it stays in doubt. */
void record_settle_begin(struct record_campaign *c, const struct baton_lease *lease,
			 const struct record_claim *claim, bool locks);
/* S3, S4: the term of the next claim, or 0, and why not. */
uint64_t record_next_term(uint64_t stored, uint64_t floor, const struct record_weak *weak,
			  int *why);

/* ---- lock.c: native locks, which stand beside the records and never replace one ---- */

enum record_lock_verdict {
	RECORD_LOCK_KEPT,
	RECORD_LOCK_UNSURE, /* the renewal doesn't count */
	RECORD_LOCK_LOST,   /* its claim is forfeit */
};

/* outcome: of keeping it. kept_ns: when the last take or keep that succeeded was sent. */
int record_lock_judge(int outcome, uint64_t kept_ns, uint64_t ttl_ns, uint64_t now_ns,
		      bool is_renewed);
/* Whether a claim may count on a lock that was taken then: no renewal was sent since, which could
 * not know of it, and which lasts longer than it. */
bool record_lock_counts(uint64_t taken_ns, uint64_t renewed_ns);

/* ---- edit.c: what changes an election without claiming it ---- */

struct record_edit {
	/* asked for: one of these; else pause or resume */
	const struct baton_release *release; /* R6 */
	const struct baton_order *order;
	bool pause;
	/* the version that `election` has in the first turn, if it is known; else empty. A release
	 * begins with its claim's. */
	struct record_version known;
	/* the task's */
	struct record_task task; /* REFUSED: it is not ours (S6); or that term leads no more */
};

/* turn->sight: of the lease that holds the election, if there is one; else NULL. */
int record_edit_step(struct record_edit *d, struct record_turn *t);
void record_edit_give_up(struct record_edit *d);

/* ---- observe.c: what others are told ---- */

/* sight: of the lease that e names, or NULL. `watched` and `target_ok` are the caller's. */
void record_observe(const struct record_election *e, const struct record_sight *sight,
		    const struct record_hold *hold, const char *id, uint64_t now_ns,
		    struct baton_record *out);
/* A candidate is shown while its lease may live: by its age, if that is told, or our sight. */
bool record_is_shown(uint64_t age_ns, const struct record_sight *sight, uint64_t now_ns);

/* ---- sweep.c: R10. Never an e/ record (R9) ---- */

enum record_sweep {
	RECORD_LEAVE,
	RECORD_END,  /* bury it, from the version of the sight */
	RECORD_DROP, /* delete it, if it has the version of the sight */
};

/* How long a lease must be unchanged before a sweeper ends it. */
uint64_t record_idle_ns(uint64_t ttl_ns);
/* is_named: by an election of a list that was read after the sight. */
int record_sweep_lease(const struct record_sight *s, bool is_named, uint64_t idle_ns,
		       uint64_t now_ns);
/* c/LEASE. sight: of that lease. */
int record_sweep_candidate(const struct record_sight *s);
/* What is written over a lease that has ended. */
void record_tombstone(struct record_lease *out, uint32_t death, uint64_t ttl_ns, const char *owner,
		      uint64_t random);

#endif
