/*
 * record.h: what stands in the records of a record store, as flat structs.
 *
 * A record store has one primitive: compare-and-set on one record. Three kinds of records carry
 * all of baton-store.h:
 *
 *   l/LEASE    written by its owner; ended by its owner, or by the candidate that proves it dead
 *   e/NAME     written by any process with the right; never deleted (R9)
 *   c/LEASE    the candidates of one lease; written by its owner
 *
 * Every value begins with `w`: 64 random bits, new for every *attempt* to write. So no two attempts
 * have equal bytes, and a version that is made from the bytes never comes back.
 *
 * codec.h turns the structs into text and back; decide.h says what is written when.
 */
#ifndef BATON_RECORD_H
#define BATON_RECORD_H

#include <baton-store.h>

#include "base/term.h"

#define RECORD_NEVER BATON_STORE_NEVER
#define RECORD_VERSION_MAX 63
/* The number of past leaderships that an election remembers. */
#define RECORD_PAST_MAX 16
#define RECORD_WORD_MAX 31

/*
 * The store's token for one write of one record: an ETag, a revision, a row's version, or `w`
 * itself. It must never come back on a record that exists. n = 0 is the version of a record that
 * is not there.
 */
struct record_version {
	uint8_t n;
	uint8_t bytes[RECORD_VERSION_MAX];
};

bool record_same_version(const struct record_version *a, const struct record_version *b);

/* Why a lease is dead. Dead is final. */
enum record_death {
	RECORD_ALIVE,
	RECORD_CLOSED,   /* by its owner */
	RECORD_REPLACED, /* by its owner, which has opened another one (R12) */
	RECORD_EXPIRED,  /* by a standby, after the wait (R3, R4) */
	RECORD_IDLE,     /* by a sweeper (R10) */
	RECORD_DEATHS,
};

/* l/LEASE */
struct record_lease {
	uint64_t w;
	uint64_t ttl_ns;
	uint64_t beat; /* renewals; for people */
	uint32_t death;
	char owner[BATON_NAME_MAX + 1];
	char address[BATON_NAME_MAX + 1];
};

/* One leadership of the history. */
struct record_past {
	uint64_t term;
	int64_t since_ms;
	int64_t until_ms; /* 0: it still lasts, or is not known */
	char leader[BATON_NAME_MAX + 1];
	char ended[RECORD_WORD_MAX + 1]; /* how it ended; "": no end was written down */
	char note[BATON_NOTE_MAX + 1];   /* of the order that ended it; "": none */
};

/* e/NAME. lease "": the election is free. */
struct record_election {
	uint64_t w;
	uint64_t term; /* the highest ever, also when it is free (S3) */
	uint64_t nonce;
	uint64_t ttl_ns;         /* that of `lease`; needed if the lease's record is missing (R4) */
	uint64_t order_id;       /* 0: there is no order */
	uint64_t order_term;     /* the leadership that it is meant for */
	uint64_t order_quiet_ms; /* for how long the leader that obeys doesn't campaign */
	uint64_t hold_ns;        /* how long the election is kept for `reserved_for` ... */
	uint64_t hold_term;      /* ... since the release of this term: its identity (R11) */
	int64_t since_ms;
	int32_t priority;
	uint32_t score_permille;
	uint32_t order_kind; /* enum baton_order_kind */
	uint32_t n_past;
	bool paused;
	bool functions; /* no part of the text: the store has a mark beside the record */
	char name[BATON_NAME_MAX + 1]; /* in full, and compared: a key may be a hash (rule 5) */
	char lease[BATON_LEASE_ID_MAX + 1];
	char leader[BATON_NAME_MAX + 1];
	char address[BATON_NAME_MAX + 1];
	char metadata[BATON_METADATA_MAX + 1];
	char order_target[BATON_NAME_MAX + 1];
	char order_note[BATON_NOTE_MAX + 1];
	char reserved_for[BATON_NAME_MAX + 1];    /* "": no reservation */
	struct record_past past[RECORD_PAST_MAX]; /* the newest first */
};

#endif
