/*
 * lease.c: a lease is a row. Renewing it is one statement, however many elections stand on it; the
 * same request asks how the leases of others are that we wait for, so that a standby has no traffic
 * of its own.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/postgres/postgres.h"

/* An id, one byte that no id has, and the end. */
#define BOUND_SIZE (BATON_LEASE_ID_MAX + 3)

/* Ends the leases from `from` up to `to` that are older than `than`; what they held is free. */
static void push_end(struct pg_lane *l, const char *from, const char *to, const char *than,
		     const char *word)
{
	const char *params[] = {from, to, than, word, l->store->info.schema};

	pg_push(l, PG_LEASE_END, 3, params);
	pg_push(l, PG_LEASE_FREE, 5, params);
}

int pg_lease_open(void *lane, struct baton_call *call, const struct baton_lease *lease)
{
	struct pg_lane *l = lane;
	char ttl_ms[24], from[BOUND_SIZE], to[BOUND_SIZE];
	const char *params[] = {lease->id, lease->owner, lease->address, ttl_ms};
	const char *dash = strrchr(lease->id, '-');
	int who = dash != NULL ? (int)(dash - lease->id) : (int)strlen(lease->id);
	int outcome = pg_begin(l, call);

	if (outcome != 0)
		return outcome;
	(void)snprintf(ttl_ms, sizeof(ttl_ms), "%" PRIu64,
		       (lease->ttl_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS);
	/* Older incarnations of it: "who-which-" and anything; '.' comes next after '-'. */
	(void)snprintf(from, sizeof(from), "%.*s-", who, lease->id);
	(void)snprintf(to, sizeof(to), "%.*s.", who, lease->id);
	push_end(l, from, to, lease->id, "expired");
	pg_push(l, PG_LEASE_OPEN, 4, params);
	pg_push(l, PG_LEASE_STALE, 0, NULL);
	pg_push(l, PG_LEASE_SWEEP, 0, NULL);
	outcome = pg_run(l);
	if (outcome == BATON_OUTCOME_OK)
		pg_clock_seen(l, pg_number(pg_result(l, 2), 0, 0));
	return outcome;
}

static int renew(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
		 uint32_t *n_held)
{
	char ttl_ms[24];
	const char *params[] = {lease->id, ttl_ms};
	struct pg_text ids = {0};
	int outcome = pg_begin(l, call);

	if (outcome != 0)
		return outcome;
	uint64_t asked_ns = clock_boot_ns();
	bool asks = pg_sights_ids(l->store, &ids);

	(void)snprintf(ttl_ms, sizeof(ttl_ms), "%" PRIu64,
		       (lease->ttl_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS);
	pg_push(l, PG_LEASE_RENEW, 2, params);
	if (asks)
		pg_push(l, PG_LEASES_SEEN, 1, (const char *const[]){ids.at});
	outcome = pg_run(l);
	pg_text_done(&ids);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	const PGresult *r = pg_result(l, 0);

	pg_clock_seen(l, pg_number(r, 0, 2));
	if (asks)
		pg_sights_seen(l, pg_result(l, 1), asked_ns);
	if (pg_number(r, 0, 0) == 0)
		return BATON_OUTCOME_REFUSED; /* its row is gone: it was ended, or taken */
	*n_held = (uint32_t)pg_number(r, 0, 1);
	return BATON_OUTCOME_OK;
}

int pg_lease_renew(void *lane, struct baton_call *call, const struct baton_lease *lease,
		   uint32_t *n_held)
{
	int outcome = renew(lane, call, lease, n_held);

	/* The session was ended from the other side just then; to renew twice does no harm. */
	if (pg_may_repeat(lane, outcome))
		outcome = renew(lane, call, lease, n_held);
	return outcome;
}

int pg_lease_close(void *lane, struct baton_call *call, const struct baton_lease *lease)
{
	struct pg_lane *l = lane;
	char to[BOUND_SIZE];
	int outcome = pg_begin(l, call);

	if (outcome != 0)
		return outcome;
	(void)snprintf(to, sizeof(to), "%s\x01", lease->id);
	push_end(l, lease->id, to, to, "closed"); /* this one alone, which is shorter than `to` */
	return pg_run(l);
}

int pg_claims(void *lane, struct baton_call *call, const struct baton_lease *lease,
	      void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term), void *arg)
{
	struct pg_lane *l = lane;
	int outcome = pg_begin(l, call);

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
