/*
 * lease.c: leases. A lease is a row. Renewing it is one statement, however many elections hang on
 * it. The same request asks about the leases of others that we wait for, so that a standby has no
 * traffic of its own.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/postgres/postgres.h"

/* An id, one byte that no id has, and the end. */
#define BOUND_SIZE (BATON_LEASE_ID_MAX + 3)

/* Ends the leases from `from` up to `to` that are older than `than`, and frees what they held. */
static void push_end(struct pg_lane *l, const char *from, const char *to, const char *than,
		     const char *word)
{
	const char *params[] = {from, to, than, word, l->store->info.schema};

	pg_push(l, PG_LEASE_END, 3, params);
	pg_push(l, PG_LEASE_FREE, 5, params);
}

static int open_lease(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease)
{
	char ttl_ms[24], from[BOUND_SIZE], to[BOUND_SIZE];
	bool has_locks = pg_session_could_be_for(l, lease);
	/* A lease must not be judged by a lock if it has no lock of its own, or if it has
	 * `outlive`. */
	bool fast = l->store->info.fast && has_locks && !lease->outlive;
	const char *params[] = {lease->id, lease->owner, lease->address, ttl_ms, fast ? "t" : "f"};
	const char *dash = strrchr(lease->id, '-');
	int who = dash != NULL ? (int)(dash - lease->id) : (int)strlen(lease->id);
	int outcome = pg_begin(l, call, 0);

	if (outcome != 0)
		return outcome;
	pg_lease_ms(lease, ttl_ms);
	/* Older incarnations of this lease: their ids begin with "who-which-", and '.' is the
	 * character after '-'. */
	(void)snprintf(from, sizeof(from), "%.*s-", who, lease->id);
	(void)snprintf(to, sizeof(to), "%.*s.", who, lease->id);
	push_end(l, from, to, lease->id, "expired");
	pg_push(l, PG_LEASE_OPEN, 5, params);
	pg_push(l, PG_LEASE_STALE, 0, NULL);
	pg_push(l, PG_LEASE_SWEEP, 0, NULL);
	if (has_locks) {
		pg_push_unlock(l);
		pg_push_lock_session(l, lease);
	}
	outcome = pg_run(l);
	if (outcome == BATON_OUTCOME_OK) {
		pg_clock_seen(l, pg_number(pg_result_of(l, PG_LEASE_OPEN), 0, 0));
		pg_session_is_locked(l, lease);
	}
	return outcome;
}

int pg_lease_open(void *lane, struct baton_call *call, const struct baton_lease *lease)
{
	struct pg_lane *l = pg_session_take(lane, call);
	int outcome = l != NULL ? open_lease(l, call, lease) : BATON_OUTCOME_FAILED;

	if (l != NULL)
		pg_session_give(lane, l);
	return outcome;
}

void pg_push_keep(struct pg_lane *l, const struct baton_lease *lease)
{
	l->conn.unsure = false;
	if (l->store->info.advisory)
		pg_push(l, PG_KEEP, 1, (const char *const[]){lease->id});
}

/* n_lost: the claims whose locks another program has; it is left as it was if there is no
 * answer. */
static int renew_lease(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
		       uint32_t *n_held, int64_t *n_lost)
{
	char ttl_ms[24];
	const char *params[] = {lease->id, ttl_ms};
	struct pg_text ids = {0};
	int outcome = pg_begin(l, call, 0);

	if (outcome != 0)
		return outcome;
	uint64_t asked_ns = clock_boot_ns();
	bool asks = pg_watched_ids(l->store, &ids);

	pg_lease_ms(lease, ttl_ms);
	pg_push(l, PG_LEASE_RENEW, 2, params);
	if (pg_session_is_for(l, lease)) {
		pg_push_lock_session(l, lease);
		pg_push_keep(l, lease);
	}
	if (asks) { /* there are leaders that we may replace */
		pg_push(l, PG_LEASES_SEEN, 1, (const char *const[]){ids.at});
		pg_push_rehearse(l, lease);
	}
	outcome = pg_run(l);
	pg_text_done(&ids);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	const PGresult *r = pg_result(l, 0);
	const PGresult *kept = pg_result_of(l, PG_KEEP);

	pg_session_is_locked(l, lease);
	pg_clock_seen(l, pg_number(r, 0, 2));
	if (asks)
		pg_watched_seen(l, pg_result_of(l, PG_LEASES_SEEN), asked_ns);
	if (pg_number(r, 0, 0) == 0)
		return BATON_OUTCOME_REFUSED; /* the lease's row is gone: it was ended, or taken */
	*n_held = (uint32_t)pg_number(r, 0, 1);
	*n_lost = kept != NULL ? pg_number(kept, 0, 0) : 0;
	return BATON_OUTCOME_OK;
}

/* When a session ends, all waiters for its locks get these for a moment: so we try several
 * times. */
#define TRIES 6
#define TRY_MS 2

/*
 * S5: a lock that is still missing after all tries is another program's for good. The core only
 * knows a refusal of a whole lease, so all elections on the lease are lost. But no other candidate
 * leads one of the other elections before our work is over, because the lease's row is there until
 * the lease is closed (S7).
 */
static int renew_and_keep_locks(struct pg_lane *l, struct baton_call *call,
				const struct baton_lease *lease, uint32_t *n_held)
{
	int64_t n_lost = 0;
	int outcome = renew_lease(l, call, lease, n_held, &n_lost);

	/* The server has just ended the session; to renew twice does no harm. */
	if (pg_may_repeat(l, outcome))
		outcome = renew_lease(l, call, lease, n_held, &n_lost);
	for (unsigned i = 0; i < TRIES && n_lost > 0 && clock_boot_ns() < call->deadline_ns; i++) {
		(void)poll(NULL, 0, TRY_MS << i);
		outcome = renew_lease(l, call, lease, n_held, &n_lost);
	}
	return n_lost > 0 ? BATON_OUTCOME_REFUSED : outcome;
}

int pg_lease_renew(void *lane, struct baton_call *call, const struct baton_lease *lease,
		   uint32_t *n_held)
{
	if (pg_is_tableless(((struct pg_lane *)lane)->store))
		return tableless_renew(lane, call, lease, n_held);
	struct pg_lane *l = pg_session_take(lane, call);

	if (l == NULL)
		return BATON_OUTCOME_FAILED;
	int outcome = renew_and_keep_locks(l, call, lease, n_held);

	pg_session_give(lane, l);
	return outcome;
}

static int close_lease(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease)
{
	char to[BOUND_SIZE];
	bool has_locks = pg_session_is_for(l, lease);
	int outcome = pg_begin(l, call, 0);

	if (outcome != 0)
		return outcome;
	(void)snprintf(to, sizeof(to), "%s\x01", lease->id);
	push_end(l, lease->id, to, to, "closed"); /* this one alone: its id is shorter than `to` */
	if (has_locks)
		pg_push_unlock(l);
	outcome = pg_run(l);
	if (outcome == BATON_OUTCOME_OK && has_locks)
		pg_unlocked(l);
	return outcome;
}

int pg_lease_close(void *lane, struct baton_call *call, const struct baton_lease *lease)
{
	if (pg_is_tableless(((struct pg_lane *)lane)->store))
		return tableless_close(lane, call, lease);
	struct pg_lane *l = pg_session_take(lane, call);
	int outcome = l != NULL ? close_lease(l, call, lease) : BATON_OUTCOME_FAILED;

	if (l != NULL)
		pg_session_give(lane, l);
	return outcome;
}

static int list_claims(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
		       void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		       void *arg)
{
	int outcome = pg_begin(l, call, 0);

	if (outcome != 0)
		return outcome;
	pg_push(l, PG_CLAIMS, 1, (const char *const[]){lease->id});
	outcome = pg_run(l);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	const PGresult *r = pg_result(l, 0);

	for (int i = 0; i < PQntuples(r); i++)
		found(arg, PQgetvalue(r, i, 0), pg_unsigned(r, i, 1), pg_unsigned(r, i, 2));
	pg_results_clear(l);
	return BATON_OUTCOME_OK;
}

int pg_claims(void *lane, struct baton_call *call, const struct baton_lease *lease,
	      void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term), void *arg)
{
	if (pg_is_tableless(((struct pg_lane *)lane)->store))
		return tableless_claims(lane, call, lease, found, arg);
	struct pg_lane *l = pg_session_take(lane, call);

	if (l == NULL)
		return BATON_OUTCOME_FAILED;
	int outcome = list_claims(l, call, lease, found, arg);

	pg_session_give(lane, l);
	return outcome;
}
