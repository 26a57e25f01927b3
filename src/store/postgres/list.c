/*
 * list.c: the verb list. It reads names from the elections' rows, in the order of their bytes
 * (collation "C"). A row that has never had a term and isn't paused is left out: that
 * election was only asked for.
 */
#include <stdio.h>

#include "store/postgres/postgres.h"

int pg_list(void *lane, struct baton_call *call, const char *prefix, const char *after, size_t max,
	    void (*found)(void *arg, const char *name), void *arg)
{
	struct pg_lane *l = lane;
	char limit[24];
	const char *const params[] = {prefix, after, limit};

	if (pg_is_tableless(l->store)) {
		store_fail(&call->error, BATON_E_UNSUPPORTED,
			   "without tables (mode=advisory&fast=1) there are no names to list; "
			   "leave fast=1 off to have them");
		return BATON_OUTCOME_FAILED;
	}
	(void)snprintf(limit, sizeof(limit), "%zu", max < PG_LIST_MAX ? max : PG_LIST_MAX);
	int outcome = pg_ask(l, call, PG_LIST, 3, params);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	const PGresult *r = pg_result(l, 0);

	for (int i = 0; i < PQntuples(r); i++)
		found(arg, PQgetvalue(r, i, 0));
	pg_results_clear(l);
	return BATON_OUTCOME_OK;
}
