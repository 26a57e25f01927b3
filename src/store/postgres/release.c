/*
 * release.c: the verb release, a batch in one statement. A claim is given back only if lease, nonce
 * and term are all the caller's (S6).
 */
#include <string.h>

#include "base/clock.h"
#include "store/postgres/postgres.h"

#define HOLD_MAX_MS 86400000

enum { R_NAME, R_LEASE, R_NONCE, R_TERM, R_REASON, R_TARGET, R_HOLD, R_COLUMNS };

static void release_fill(struct pg_text *t, const struct baton_release *list, size_t n)
{
	for (size_t i = 0; i < R_COLUMNS; i++)
		pg_array_begin(&t[i]);
	for (size_t i = 0; i < n; i++) {
		const struct baton_release *r = &list[i];
		uint64_t hold_ms = r->hold_ns / CLOCK_NS_PER_MS;
		bool has_reason = r->reason != NULL && r->reason[0] != '\0';

		pg_array_text(&t[R_NAME], r->name);
		pg_array_text(&t[R_LEASE], r->lease_id);
		pg_array_number(&t[R_NONCE], (int64_t)r->nonce);
		pg_array_number(&t[R_TERM], (int64_t)r->term);
		pg_array_text(&t[R_REASON], has_reason ? r->reason : "released");
		pg_array_text(&t[R_TARGET], r->reserve_for);
		pg_array_number(&t[R_HOLD], hold_ms < HOLD_MAX_MS ? (int64_t)hold_ms : HOLD_MAX_MS);
	}
	for (size_t i = 0; i < R_COLUMNS; i++)
		pg_array_end(&t[i]);
}

/* Sends one statement for the whole batch. */
static int release_ask(struct pg_lane *l, struct baton_call *call, const struct baton_release *list,
		       size_t n, int statement)
{
	struct pg_text t[R_COLUMNS] = {{0}};

	l->call = call;
	release_fill(t, list, n);
	int outcome = pg_texts_failed(t, R_COLUMNS) ? pg_no_memory(l) : pg_begin(l, call, n);

	if (outcome == 0) {
		const char *params[R_COLUMNS + 1] = {l->store->info.schema};

		for (size_t i = 0; i < R_COLUMNS; i++)
			params[i + 1] = t[i].at;
		if (statement == PG_STILL_HELD)
			pg_push(l, statement, 4, params + 1);
		else
			pg_push(l, statement, R_COLUMNS + 1, params);
		outcome = pg_run(l);
	}
	pg_texts_done(t, R_COLUMNS);
	return outcome;
}

static size_t release_answer(struct baton_release *list, size_t n, const PGresult *r, int outcome,
			     int code)
{
	int n_rows = PQntuples(r);

	for (int row = 0; row < n_rows; row++) {
		int64_t at = pg_number(r, row, 0);

		if (at < 1 || (size_t)at > n)
			continue;
		list[at - 1].outcome = outcome;
		list[at - 1].code = code;
	}
	return (size_t)n_rows;
}

/* Some claims were not given back. Finds out why: they aren't ours (S6), or another transaction has
 * locked their rows. */
static void release_tell_apart(struct pg_lane *l, struct baton_call *call,
			       struct baton_release *list, size_t n)
{
	int outcome = release_ask(l, call, list, n, PG_STILL_HELD);

	for (size_t i = 0; i < n; i++) {
		if (list[i].outcome == BATON_OUTCOME_OK)
			continue;
		list[i].outcome =
			outcome == BATON_OUTCOME_OK ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_FAILED;
		list[i].code = outcome == BATON_OUTCOME_OK ? 0 : call->error.code;
	}
	if (outcome == BATON_OUTCOME_OK &&
	    release_answer(list, n, pg_result(l, 0), BATON_OUTCOME_FAILED, BATON_E_BUSY) > 0)
		store_fail(&call->error, BATON_E_BUSY,
			   "another transaction keeps an election's row locked");
}

void pg_release(void *lane, struct baton_call *call, struct baton_release *list, size_t n)
{
	if (pg_is_tableless(((struct pg_lane *)lane)->store)) {
		tableless_release(lane, call, list, n);
		return;
	}
	bool locks = ((struct pg_lane *)lane)->store->info.advisory;
	struct pg_lane *l = pg_session_take(lane, call);
	int statement = locks ? PG_RELEASE_LOCKED : PG_RELEASE;
	int outcome = l != NULL ? release_ask(l, call, list, n, statement) : BATON_OUTCOME_FAILED;

	for (size_t i = 0; i < n; i++) {
		list[i].outcome = outcome == BATON_OUTCOME_OK ? 0 : outcome;
		list[i].code = outcome == BATON_OUTCOME_OK ? 0 : call->error.code;
	}
	if (outcome == BATON_OUTCOME_OK &&
	    release_answer(list, n, pg_result(l, 0), BATON_OUTCOME_OK, 0) < n)
		release_tell_apart(l, call, list, n);
	if (l == NULL)
		return;
	pg_results_clear(l);
	pg_session_give(lane, l);
}
