/*
 * orders.c: the verbs order and pause. An order stands in the election's row, with the term that it
 * is meant for (rule 10). The core decides what follows from orders and pauses.
 */
#include <inttypes.h>
#include <stdio.h>

#include "store/postgres/postgres.h"

int pg_order(void *lane, struct baton_call *call, const char *name, const struct baton_order *order)
{
	const struct pg_store *store = ((struct pg_lane *)lane)->store;
	char term[24], id[24], kind[12], quiet_ms[24];
	const char *const params[] = {
		name, term, id, kind, quiet_ms, order->target, store->info.schema, order->note};

	if (pg_is_tableless(store))
		return tableless_refuse(call);
	struct pg_lane *l = pg_session_take(lane, call);

	if (l == NULL)
		return BATON_OUTCOME_FAILED;
	(void)snprintf(term, sizeof(term), "%" PRIu64, order->term);
	(void)snprintf(id, sizeof(id), "%" PRId64, (int64_t)order->id);
	(void)snprintf(kind, sizeof(kind), "%d", order->kind);
	(void)snprintf(quiet_ms, sizeof(quiet_ms), "%" PRIu64,
		       order->quiet_ms < INT64_MAX ? order->quiet_ms : INT64_MAX);
	int outcome = pg_ask(l, call, PG_ORDER, 8, params);

	/* Rule 10: the leadership is of another term, or there is none. */
	if (outcome == BATON_OUTCOME_OK && PQntuples(pg_result(l, 0)) == 0)
		outcome = BATON_OUTCOME_REFUSED;
	pg_results_clear(l);
	pg_session_give(lane, l);
	return outcome;
}

int pg_pause(void *lane, struct baton_call *call, const char *name, bool paused)
{
	struct pg_lane *l = lane;
	const char *const params[] = {name, paused ? "t" : "f", l->store->info.schema};

	if (pg_is_tableless(l->store))
		return tableless_refuse(call);
	return pg_ask(l, call, PG_PAUSE, 3, params);
}
