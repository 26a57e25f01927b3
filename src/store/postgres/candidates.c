/*
 * candidates.c: candidates, orders, pause and history. What they decide is decided above; here it
 * is written and read.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/postgres/postgres.h"

/* ---- candidates ---- */

enum { P_NAME, P_METADATA, P_PRIORITY, P_SCORE, P_HEALTHY, P_COLUMNS };

static int show(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
		const struct baton_publication *list, size_t n)
{
	struct pg_text t[P_COLUMNS] = {{0}};
	bool failed = false;

	l->call = call;
	for (size_t i = 0; i < P_COLUMNS; i++)
		pg_array_begin(&t[i]);
	for (size_t i = 0; i < n; i++) {
		pg_array_text(&t[P_NAME], list[i].name);
		pg_array_text(&t[P_METADATA], list[i].profile.metadata);
		pg_array_number(&t[P_PRIORITY], list[i].profile.priority);
		pg_array_number(&t[P_SCORE], list[i].profile.score_permille);
		pg_array_text(&t[P_HEALTHY], list[i].profile.is_healthy ? "t" : "f");
	}
	for (size_t i = 0; i < P_COLUMNS; i++) {
		pg_array_end(&t[i]);
		failed = failed || t[i].failed;
	}
	int outcome = failed ? pg_no_memory(l) : pg_begin(l, call, n);

	if (outcome == 0) {
		const char *const params[] = {lease->id,        t[P_NAME].at,  t[P_METADATA].at,
					      t[P_PRIORITY].at, t[P_SCORE].at, t[P_HEALTHY].at};
		const char *const held[] = {lease->id,        t[P_NAME].at,  t[P_METADATA].at,
					    t[P_PRIORITY].at, t[P_SCORE].at, l->store->info.schema};

		pg_push(l, PG_PUBLISH, 6, params);
		pg_push(l, PG_PUBLISH_HELD, 6, held);
		outcome = pg_run(l);
	}
	for (size_t i = 0; i < P_COLUMNS; i++)
		pg_text_done(&t[i]);
	return outcome;
}

static int publish(struct pg_lane *lane, struct baton_call *call, const struct baton_lease *lease,
		   const struct baton_publication *list, size_t n)
{
	struct pg_lane *l = pg_hold(lane, call);

	if (l == NULL)
		return BATON_OUTCOME_FAILED;
	int outcome = show(l, call, lease, list, n);

	/* All or none: it is the lease that lives or doesn't. */
	if (outcome == BATON_OUTCOME_OK && PQntuples(pg_result(l, 0)) == 0)
		outcome = BATON_OUTCOME_REFUSED;
	pg_results_clear(l);
	pg_let_go(lane, l);
	return outcome;
}

void pg_publish(void *lane, struct baton_call *call, const struct baton_lease *lease,
		struct baton_publication *list, size_t n)
{
	/* Without tables nobody can be seen but the leader (bare.c). */
	bool bare = pg_is_bare(((struct pg_lane *)lane)->store);
	int outcome = bare ? BATON_OUTCOME_OK : publish(lane, call, lease, list, n);

	call->is_unasked = bare;
	for (size_t i = 0; i < n; i++) {
		list[i].outcome = outcome;
		list[i].code = outcome == BATON_OUTCOME_OK || outcome == BATON_OUTCOME_REFUSED
				       ? 0
				       : call->error.code;
	}
}

/* One statement, whose result is in lane->results. */
static int ask(struct pg_lane *l, struct baton_call *call, int statement, size_t n,
	       const char *const *params)
{
	int outcome = pg_begin(l, call, 0);

	if (outcome != 0)
		return outcome;
	pg_push(l, statement, n, params);
	return pg_run(l);
}

int pg_withdraw(void *lane, struct baton_call *call, const struct baton_lease *lease,
		const char *name)
{
	call->is_unasked = pg_is_bare(((struct pg_lane *)lane)->store);
	if (call->is_unasked)
		return BATON_OUTCOME_OK;
	struct pg_lane *l = pg_hold(lane, call);

	if (l == NULL)
		return BATON_OUTCOME_FAILED;
	int outcome = ask(l, call, PG_WITHDRAW, 2, (const char *const[]){name, lease->id});

	pg_let_go(lane, l);
	return outcome;
}

int pg_candidates(void *lane, struct baton_call *call, const char *name,
		  void (*found)(void *arg, const struct baton_candidate *candidate), void *arg)
{
	struct pg_lane *l = lane;

	if (pg_is_bare(l->store))
		return bare_candidates(l, call, name, found, arg);
	int outcome = pg_begin(l, call, 0);

	if (outcome != 0)
		return outcome;
	pg_push(l, PG_CANDIDATES, 1, (const char *const[]){name});
	outcome = pg_run(l);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	const PGresult *r = pg_result(l, 0);

	for (int i = 0; i < PQntuples(r); i++) {
		struct baton_candidate c = {0};

		pg_copy(c.id, sizeof(c.id), r, i, 0);
		pg_copy(c.address, sizeof(c.address), r, i, 1);
		pg_copy(c.metadata, sizeof(c.metadata), r, i, 2);
		c.priority = (int32_t)pg_number(r, i, 3);
		c.score_permille = (uint32_t)pg_number(r, i, 4);
		c.is_healthy = pg_is_true(r, i, 5);
		c.updated_ms = pg_number(r, i, 6);
		c.is_leader = pg_is_true(r, i, 7);
		found(arg, &c);
	}
	pg_results_clear(l);
	return BATON_OUTCOME_OK;
}

/* ---- orders ---- */

int pg_order(void *lane, struct baton_call *call, const char *name, const struct baton_order *order)
{
	const struct pg_store *store = ((struct pg_lane *)lane)->store;
	char term[24], id[24], kind[12], quiet_ms[24];
	const char *const params[] = {
		name, term, id, kind, quiet_ms, order->target, store->info.schema};

	if (pg_is_bare(store))
		return bare_refuse(call);
	struct pg_lane *l = pg_hold(lane, call);

	if (l == NULL)
		return BATON_OUTCOME_FAILED;
	(void)snprintf(term, sizeof(term), "%" PRIu64, order->term);
	(void)snprintf(id, sizeof(id), "%" PRId64, (int64_t)order->id);
	(void)snprintf(kind, sizeof(kind), "%d", order->kind);
	(void)snprintf(quiet_ms, sizeof(quiet_ms), "%" PRIu64,
		       order->quiet_ms < INT64_MAX ? order->quiet_ms : INT64_MAX);
	int outcome = ask(l, call, PG_ORDER, 7, params);

	/* Rule 10: of another term, or of nobody. */
	if (outcome == BATON_OUTCOME_OK && PQntuples(pg_result(l, 0)) == 0)
		outcome = BATON_OUTCOME_REFUSED;
	pg_results_clear(l);
	pg_let_go(lane, l);
	return outcome;
}

int pg_pause(void *lane, struct baton_call *call, const char *name, bool paused)
{
	struct pg_lane *l = lane;
	const char *const params[] = {name, paused ? "t" : "f", l->store->info.schema};

	if (pg_is_bare(l->store))
		return bare_refuse(call);
	return ask(l, call, PG_PAUSE, 3, params);
}

/* ---- history ---- */

int pg_history(void *lane, struct baton_call *call, const char *name, size_t max,
	       void (*found)(void *arg, const struct baton_leadership *leadership), void *arg)
{
	struct pg_lane *l = lane;
	char limit[24];

	if (pg_is_bare(l->store))
		return bare_refuse(call);
	int outcome = pg_begin(l, call, 0);

	if (outcome != 0)
		return outcome;
	(void)snprintf(limit, sizeof(limit), "%zu", max < PG_HISTORY_MAX ? max : PG_HISTORY_MAX);
	pg_push(l, PG_HISTORY, 2, (const char *const[]){name, limit});
	outcome = pg_run(l);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	const PGresult *r = pg_result(l, 0);

	for (int i = 0; i < PQntuples(r); i++) {
		struct baton_leadership past = {.clock = "wal"};

		past.term = pg_unsigned(r, i, 0);
		pg_copy(past.leader, sizeof(past.leader), r, i, 1);
		past.since_ms = pg_number(r, i, 2);
		past.until_ms = pg_number(r, i, 3);
		pg_copy(past.ended, sizeof(past.ended), r, i, 4);
		past.since_ns = pg_unsigned(r, i, 5);
		past.until_ns = pg_unsigned(r, i, 6);
		found(arg, &past);
	}
	pg_results_clear(l);
	return BATON_OUTCOME_OK;
}
