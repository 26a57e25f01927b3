/*
 * history.c: the verb history. It reads the rows that claims and their ends have left, the newest
 * first. Instants are positions in the write-ahead log, which only grow.
 */
#include <stdio.h>

#include "store/postgres/postgres.h"

int pg_history(void *lane, struct baton_call *call, const char *name, size_t max,
	       void (*found)(void *arg, const struct baton_leadership *leadership), void *arg)
{
	struct pg_lane *l = lane;
	char limit[24];

	if (pg_is_tableless(l->store))
		return tableless_refuse(call);
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
		struct baton_leadership past = {.size = sizeof(past), .clock = "wal"};

		past.term = pg_unsigned(r, i, 0);
		pg_copy(past.leader, sizeof(past.leader), r, i, 1);
		past.since_ms = pg_number(r, i, 2);
		past.until_ms = pg_number(r, i, 3);
		pg_copy(past.ended, sizeof(past.ended), r, i, 4);
		past.since_ns = pg_unsigned(r, i, 5);
		past.until_ns = pg_unsigned(r, i, 6);
		pg_copy(past.note, sizeof(past.note), r, i, 7);
		found(arg, &past);
	}
	pg_results_clear(l);
	return BATON_OUTCOME_OK;
}
