/*
 * tableless.h: mode=advisory&fast=1: session locks and nothing else. It needs no table, and no
 * right to make one. This header has what the files in this folder share; the verbs are declared in
 * postgres.h.
 *
 *   driver.c      what this mode promises, and what it refuses
 *   codec.c       the tag, with which a session tells about itself
 *   session.c     the sessions of this process, one for each claim
 *   terms.c       the highest terms that were seen
 *   lease.c       renew, close, claims
 *   campaign.c    campaign
 *   release.c     release
 *   observe.c     observe
 *   candidates.c  candidates
 *
 *  - Each claim has a session of its own (own_leases), which has the election's lock. The claim
 *    ends with the session. A claim is never carried over to another session, because no
 *    candidate could tell who has led in between.
 *  - The lease is a timeout of the server: the server ends a session that was silent for a whole
 *    lease (idle_session_timeout). Each renewal is a statement on that session, which checks that
 *    the session really has the lock (rule 4).
 *  - The term is the server's 64-bit transaction id, which only grows. The term is drawn after the
 *    lock was taken, so that a later holder has a higher term, and it is on the disk before it is
 *    used (S3). A server that is behind a term that was seen is another one, or was restored: it is
 *    refused (S4).
 *  - The leader's session itself tells who leads: pg_stat_activity shows the text of its last
 *    statement to others of the same role, and that text begins with a comment that has id, nonce
 *    and term.
 *
 * Releases are pushed by NOTIFY; a lock waiter tells of all other ends (lock_waiters.c).
 */
#ifndef BATON_POSTGRES_TABLELESS_H
#define BATON_POSTGRES_TABLELESS_H

#include "store/postgres/postgres.h"

#define TAG_MAX 900 /* for the tag, of the 1,024 bytes of a statement's text that a server shows */
#define TAG_SIZE (TAG_MAX / 3 * 4 + 8)

struct tableless_session {
	struct tableless_session *next;
	struct pg_lane *lane;
	pthread_mutex_t lock; /* for `lane`; the other fields change under the store's lock, too */
	char lease_id[BATON_LEASE_ID_MAX + 1];
	char name[BATON_NAME_MAX + 1];
	char key[24];
	uint64_t nonce;
	uint64_t term; /* 0: there is none yet */
	int pid;       /* of the session that has the lock */
	char *renew;   /* PG_TABLELESS_RENEW with the tag */
	char *ask;     /* PG_TABLELESS_OWN with the same tag */
	unsigned users;
};

/* ---- codec.c ---- */

void tableless_tag_make(const struct tableless_session *s, const struct baton_lease *lease,
			const struct baton_profile *p, char tag[TAG_SIZE]);
/* The statement with that tag in front; the caller frees it. NULL: no memory. */
char *tableless_tag_add(const char *tag, const char *sql);
/* What a holder tells about itself; false: it tells nothing. */
bool tableless_tag_read(const char *query, struct baton_record *out, uint64_t *ttl_ns);

/* ---- session.c ---- */

/* A new session, in no list yet; its user is the caller. NULL: no memory. */
struct tableless_session *tableless_session_new(struct pg_store *store);
/* A session that an earlier try left without a claim; its user is the caller. NULL: there is
 * none. */
struct tableless_session *tableless_session_half_made(struct pg_store *store, const char *name);
/* The session of that lease, for the caller's use until tableless_session_put(). NULL: the lease
 * has no session, and so no lock. */
struct tableless_session *tableless_session_get(struct pg_store *store, const char *lease_id);
void tableless_session_put(struct pg_store *store, struct tableless_session *s);
void tableless_session_list(struct tableless_session **list, struct tableless_session *s);
/* Takes the session out of its list, so that it gets no new users; its last user closes it. */
void tableless_session_unlist(struct pg_store *store, struct tableless_session *s);
void tableless_session_drop(struct pg_store *store, struct tableless_session *s);
/* Sends one statement on the session; its result is in lane->results. REFUSED: the session has
 * ended. */
int tableless_session_say(struct tableless_session *s, struct baton_call *call, const char *text,
			  size_t n, const char *const *params);
/* Rule 4: asks the session itself whether it has its lock. */
int tableless_session_check(struct tableless_session *s, struct baton_call *call, const char *text);

/* ---- terms.c ---- */

/* The highest term that was ever given to this function for that election, `term` included. */
uint64_t tableless_term_highest(struct pg_store *store, const char *name, uint64_t term);
/* True if the lock was found free since the last call. True only once: after that, another
 * session may have the lock. */
bool tableless_term_was_free(struct pg_store *store, const char *name);

/* ---- observe.c ---- */

/* Observes elections by this statement, PG_LOCKED or PG_TABLELESS_FIND. */
void tableless_find(struct pg_lane *l, struct baton_call *call, int statement,
		    struct baton_observation *list, size_t n);

#endif
