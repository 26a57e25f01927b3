/*
 * tableless.h: mode=advisory&fast=1: session locks and nothing else. No table, no right to make
 * one. What the files in this folder share; the verbs stand in postgres.h.
 *
 *   driver.c      what it promises, what it refuses
 *   codec.c       the tag: what a session tells of itself
 *   session.c     the sessions of this process, one for each claim
 *   terms.c       the highest terms that were seen
 *   lease.c       renew, close, claims
 *   campaign.c    campaign
 *   release.c     release
 *   observe.c     observe
 *   candidates.c  candidates
 *
 *  - Each claim has a session of its own (own_leases), which has the election's lock. The session's
 *    end is the claim's end: a claim is never carried over to another session, because nobody could
 *    tell who has led in between.
 *  - The lease is the server's patience: the server ends a session that was silent for so long
 *    (idle_session_timeout), and each renewal is a statement on that session, which checks that the
 *    session really has the lock (rule 4).
 *  - The term is the server's 64-bit transaction id, which only grows. It is drawn after the lock
 *    was taken, so that a later holder has a higher one, and it is on the disk before it is used
 *    (S3). A server that is behind a term that was seen is another one, or was restored: refused
 *    (S4).
 *  - Who leads, the session tells itself: the text of its last statement, which pg_stat_activity
 *    shows to others of the same role, begins with a comment that has id, nonce and term.
 *
 * Releases are pushed by NOTIFY, all other ends by a lock waiter (lock_waiters.c).
 */
#ifndef BATON_POSTGRES_TABLELESS_H
#define BATON_POSTGRES_TABLELESS_H

#include "store/postgres/postgres.h"

#define TAG_MAX 900 /* of the 1,024 bytes of a statement's text that a server shows */
#define TAG_SIZE (TAG_MAX / 3 * 4 + 8)

struct tableless_session {
	struct tableless_session *next;
	struct pg_lane *lane;
	pthread_mutex_t lock; /* of the lane's use; the rest changes under the store's lock, too */
	char lease_id[BATON_LEASE_ID_MAX + 1];
	char name[BATON_NAME_MAX + 1];
	char key[24];
	uint64_t nonce;
	uint64_t term; /* 0: not yet */
	int pid;       /* of the session that has the lock */
	char *renew;   /* the statement with its tag */
	char *ask;     /* ... likewise */
	unsigned users;
};

/* ---- codec.c ---- */

void tableless_tag_make(const struct tableless_session *s, const struct baton_lease *lease,
			const struct baton_profile *p, char tag[TAG_SIZE]);
/* The statement behind that tag, for free(). NULL: no memory. */
char *tableless_tag_add(const char *tag, const char *sql);
/* What the holder says of itself; false: it says nothing. */
bool tableless_tag_read(const char *query, struct baton_record *out, uint64_t *ttl_ns);

/* ---- session.c ---- */

/* In no list yet; its user is the caller. NULL: no memory. */
struct tableless_session *tableless_session_new(struct pg_store *store);
/* A session that a call had no time to finish; its user is the caller. NULL: there is none. */
struct tableless_session *tableless_session_half_made(struct pg_store *store, const char *name);
/* For as long as tableless_session_put() isn't called; NULL: that lease has no session, and so it
 * has no lock. */
struct tableless_session *tableless_session_get(struct pg_store *store, const char *lease_id);
void tableless_session_put(struct pg_store *store, struct tableless_session *s);
void tableless_session_list(struct tableless_session **list, struct tableless_session *s);
/* Nobody finds it any more; its last user closes it. */
void tableless_session_unlist(struct pg_store *store, struct tableless_session *s);
void tableless_session_drop(struct pg_store *store, struct tableless_session *s);
/* A statement of the session; its result is in lane->results. REFUSED: the session has ended. */
int tableless_session_say(struct tableless_session *s, struct baton_call *call, const char *text,
			  size_t n, const char *const *params);
/* Rule 4: whether the session has its lock is what the session is asked. */
int tableless_session_check(struct tableless_session *s, struct baton_call *call, const char *text);

/* ---- terms.c ---- */

/* The highest of this one and those before it. */
uint64_t tableless_term_highest(struct pg_store *store, const char *name, uint64_t term);
/* Told once: then the lock is somebody's, or was. */
bool tableless_term_was_free(struct pg_store *store, const char *name);

/* ---- observe.c ---- */

/* By this statement, PG_LOCKED or PG_TABLELESS_FIND. */
void tableless_find(struct pg_lane *l, struct baton_call *call, int statement,
		    struct baton_observation *list, size_t n);

#endif
