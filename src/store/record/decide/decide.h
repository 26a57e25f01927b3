/*
 * decide.h: decides what is written to a record store, and when a request is refused. Rules R1 to
 * R12.
 *
 * Everything here is pure: no I/O, no clock, no memory, no random numbers. A call of the driver is
 * one or several *tasks*, one for each record that the call is about. A task is a small struct and
 * one function. The function is given what the store answered, and says what to ask next, with the
 * reason.
 *
 *     begin ----> step ----> READ, LOOK, WRITE or BURY ----> the store ----> step ... ----> DONE
 *                   ^                                                          |
 *                   +------------------------ struct record_turn --------------+
 *
 * The layer above does the I/O. This is how it runs one batch of tasks:
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
 * What the layer owes the tasks:
 *  1. now_ns is CLOCK_BOOTTIME, read after the answer was received; `random` is 64 new random bits.
 *  2. The answer is UNKNOWN unless it is sure that the write never lands. A write is sent once for
 *     each ask, and no library below repeats it.
 *  3. READ_FRESH is linearizable. READ may be old, or may be answered from memory (R8).
 *  4. A value that is not valid, or that names another election, ends its task with FAILED (S9):
 *     the layer answers FAILED, and says why.
 *  5. `election` is the record as last read or told, also while the answer is about a lease. If
 *     there is no record, `election` is empty but for its name. After WRITE it is what is to be
 *     written.
 *  6. LOOK is answered from the table of sights. If the table has no sight of the lease, or one
 *     that is older than two polls, the layer first reads the lease's record and notes it with
 *     record_sight_note(). If the sight is then unsure, the layer reads the record again, fresh. A
 *     sight is kept only while an election that is looked at names its lease.
 *  7. Claims that were won, or that may have landed, stand in a book, one struct record_claim each.
 *     A claim in doubt stays there until its lease is given up, or until settling it ends with OK
 *     or REFUSED. When a new lease is opened, the claims of the old one are dropped.
 *  8. A lease that was opened is forgotten only after it was closed, or after another one was
 *     opened in its place. The first task of lease_open opens the new lease, and the second ends
 *     the old one (R12). Only the first decides how the call ends.
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

/* Why a task asks, or why it has ended so. */
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
	X(UNKNOWN, "it is not known whether it was written")                          \
	X(TIME, "there was no time for more")

enum record_why {
#define X(name, text) RECORD_WHY_##name,
	RECORD_WHYS(X)
#undef X
};

/* A sight of a lease: which version of its record we know, and since when (R3). All zero: no
 * sight. */
struct record_sight {
	struct record_version version; /* n = 0: no record, which is watched like a version */
	uint64_t ttl_ns;               /* from the record, not from our settings (rule 6) */
	uint64_t since_ns;             /* when that version was first received; NEVER: unsure */
	uint64_t noted_ns;             /* ... and when last */
	uint32_t death;                /* enum record_death */
	bool is_known;
};

/* Since when we know a reservation, on our own clock (R11). All zero: no reservation. */
struct record_hold {
	uint64_t term; /* its identity */
	uint64_t since_ns;
};

/* The own clock and the age of a store that forgets (memcached, some NATS). */
struct record_weak {
	uint64_t uptime_ns;
	uint64_t max_lease_ns; /* no claim before it is that old */
	uint64_t server_ms;    /* its wall clock: a lower bound of terms */
};

/* What a step is given. All but the first three fields are about the answer to the task's last
 * ask. */
struct record_turn {
	uint64_t now_ns;
	int64_t wall_ms; /* for people */
	uint64_t random;
	int outcome;                   /* enum baton_outcome; the first turn has none */
	struct record_version version; /* READ: found. WRITE, BURY: the new one. REFUSED: theirs */
	bool is_told;               /* REFUSED: version and value of what was in the way are here */
	struct record_lease *lease; /* READ or told: found. WRITE, BURY: to be written */
	struct record_election *election; /* likewise */
	struct record_sight *sight;       /* LOOK, BURY: of the lease that `rival` names */
	struct record_hold *hold;         /* of this election; the task updates it */
	const struct record_weak *weak;   /* NULL: the store forgets nothing */
};

const char *record_why_text(int why);

/* What all tasks have. */
struct record_task {
	struct record_version version; /* of the record as last read; WRITE: expected */
	uint32_t phase;
	bool was_refused; /* one of its writes was refused, and a copy of it may have landed */
	int why;          /* of the last ask, or of the outcome */
	int outcome;      /* DONE: as the driver's call */
};

/* ---- expiry.c: when a lease is over (R2, R3, R4), when a reservation is (R11) ---- */

/* Notes that the lease's record was received at read_ns, with that version; lease NULL: it is
 * missing. ttl_ns counts only then: it is the lease's ttl as an election tells it, or 0 if no
 * election does. is_fresh: the read was linearizable. */
void record_sight_note(struct record_sight *s, const struct record_version *version,
		       const struct record_lease *lease, uint64_t ttl_ns, bool is_fresh,
		       uint64_t read_ns);
/* The record is missing, and no wait has begun: the read may be older than the lease, or no
 * election names the lease. */
bool record_sight_is_unsure(const struct record_sight *s);
/* When the wait for the lease's end is over; 0: it is dead. RECORD_NEVER: nothing is known. */
uint64_t record_sight_end_ns(const struct record_sight *s);
/* R2: the lease is known dead. */
bool record_sight_is_dead(const struct record_sight *s);
/* R4: the lease may be buried, from the version of the sight. */
bool record_sight_is_over(const struct record_sight *s, uint64_t now_ns);

/* Notes the reservation of an election that was received at read_ns. */
void record_hold_note(struct record_hold *h, const struct record_election *e, uint64_t read_ns);
/* When the election is free for `id`: 0, or the end of the reservation. */
uint64_t record_hold_end_ns(const struct record_hold *h, const struct record_election *e,
			    const char *id);

/* ---- lease.c: records that only we write ---- */

enum record_intent {
	RECORD_OPEN = 1, /* makes our lease's record */
	RECORD_RENEW,    /* R1: never makes the record, never revives the lease */
	RECORD_CLOSE,    /* marks our lease as dead: lease_close, and R12 */
	RECORD_PUBLISH,  /* c/LEASE: only the version is decided here; the caller has the value */
};

/* What we know of such a record: the version that we wrote last, as far as we can tell. */
struct record_own {
	struct record_version version;
	uint64_t beat;
};

struct record_keep {
	/* asked for */
	uint32_t intent;
	uint32_t death;                  /* CLOSE: why */
	const struct baton_lease *lease; /* not for PUBLISH */
	struct record_own *own;
	/* the task's */
	struct record_task task; /* its outcome is REFUSED if the lease is over */
	uint64_t beat;
};

int record_keep_step(struct record_keep *k, struct record_turn *t);
void record_keep_give_up(struct record_keep *k);

/* ---- campaign.c: claims (R2, R4, R5, R11), and settling claims in doubt (R7) ---- */

enum record_standing {
	RECORD_NO_CLAIM,
	RECORD_IN_DOUBT, /* it may have landed, or may still land: unsettled */
	RECORD_STANDS,   /* it is ours: counted by lease_renew, given back by release */
	RECORD_FORFEIT,  /* its lock is lost: it isn't led by, and settling gives it back */
};

/* An entry of the book. */
struct record_claim {
	uint64_t nonce;
	uint64_t term;
	struct record_version
		version; /* STANDS: the claim's. IN_DOUBT: the one that it was written from */
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
	struct record_task task;        /* OK: the claim is ours, in `term`. REFUSED: it is not */
	struct record_version expected; /* is_sent: the version that the claim was written from */
	char rival[BATON_LEASE_ID_MAX + 1];
	uint64_t term; /* of the claim that was sent or won */
	bool settles;
	bool is_sent;    /* a claim was sent, and it may have landed, or may still land */
	bool has_lock;   /* the lock was taken, or perhaps was; the caller keeps or drops it */
	bool gives_back; /* settling: a claim of ours that stands there is freed, not adopted */
};

int record_campaign_step(struct record_campaign *c, struct record_turn *t);
/* There is no time for more. The outcome is UNKNOWN if a claim may have landed or may still land,
 * else FAILED. */
void record_campaign_give_up(struct record_campaign *c);
/* How the claim stands in the book after the task has ended. */
void record_campaign_book(const struct record_campaign *c, struct record_claim *out);
/* R7: makes the task that settles a claim in doubt. OK: the claim is ours. REFUSED: it never lands,
 * or was given back. With any other outcome it stays in doubt. */
void record_settle_begin(struct record_campaign *c, const struct baton_lease *lease,
			 const struct record_claim *claim, bool locks);
/* S3, S4: the term of the next claim; 0: there is none, and *why says why. */
uint64_t record_next_term(uint64_t stored, uint64_t floor, const struct record_weak *weak,
			  int *why);

/* ---- lock.c: native locks, which stand beside the records and never replace one ---- */

enum record_lock_verdict {
	RECORD_LOCK_KEPT,
	RECORD_LOCK_UNSURE, /* the renewal doesn't count */
	RECORD_LOCK_LOST,   /* its claim is forfeit */
};

/* outcome: what keeping the lock has come to. kept_ns: when the last request that took or kept it
 * with success was sent. */
int record_lock_judge(int outcome, uint64_t kept_ns, uint64_t ttl_ns, uint64_t now_ns,
		      bool is_renewed);
/* Whether a claim may count on a lock that was taken at taken_ns. It may not if a renewal was sent
 * since: that renewal lasts longer than the lock, and did not keep it. */
bool record_lock_counts(uint64_t taken_ns, uint64_t renewed_ns);

/* ---- edit.c: what changes an election without claiming it ---- */

/* A claim, and the present profile of the leader that it makes. */
struct record_show {
	const char *lease_id;
	uint64_t nonce;
	uint64_t term;
	const struct baton_profile *profile;
};

struct record_edit {
	/* asked for: one of the three; if all are NULL, a pause or its end */
	const struct baton_release *release; /* R6 */
	const struct record_show *show;
	const struct baton_order *order;
	bool pause;
	/* The version of `election` in the first turn, if the record is known; else empty. A
	 * release and a profile begin with their claim's version. */
	struct record_version known;
	/* the task's */
	struct record_task task; /* REFUSED: not our claim (S6), or that term no longer leads */
};

/* turn->sight: that of the lease that holds the election, or NULL if there is none. */
int record_edit_step(struct record_edit *d, struct record_turn *t);
void record_edit_give_up(struct record_edit *d);

/* ---- observe.c: what others are told ---- */

/* sight: of the lease that e names, or NULL. The caller fills in `watched` and `target_ok`. */
void record_observe(const struct record_election *e, const struct record_sight *sight,
		    const struct record_hold *hold, const char *id, uint64_t now_ns,
		    struct baton_record *out);
/* A candidate is shown while its lease may live. That follows from the record's age, if the store
 * tells it, or from our sight. */
bool record_is_shown(uint64_t age_ns, const struct record_sight *sight, uint64_t now_ns);

/* ---- sweep.c: R10. Never an e/ record (R9) ---- */

enum record_sweep {
	RECORD_LEAVE,
	RECORD_END,  /* bury the lease, from the version of the sight */
	RECORD_DROP, /* delete the record, if it has the version of the sight */
};

/* How long a lease must be unchanged before a sweeper ends it. */
uint64_t record_idle_ns(uint64_t ttl_ns);
/* is_named: an election names the lease, in a list that was read after the sight. */
int record_sweep_lease(const struct record_sight *s, bool is_named, uint64_t idle_ns,
		       uint64_t now_ns);
/* For a record c/LEASE. sight: that of the lease. */
int record_sweep_candidate(const struct record_sight *s);
/* What is written over a lease that has ended. */
void record_tombstone(struct record_lease *out, uint32_t death, uint64_t ttl_ns, const char *owner,
		      uint64_t random);

#endif
