/*
 * candidates.c: the verb candidates. Without tables the leader is the only candidate that can be
 * seen.
 */
#include <stdio.h>
#include <stdlib.h>

#include "store/postgres/tableless/tableless.h"

/* Finds the leader only. */
int tableless_candidates(struct pg_lane *l, struct baton_call *call, const char *name,
			 void (*found)(void *arg, const struct baton_candidate *candidate),
			 void *arg)
{
	struct baton_record *record = calloc(1, sizeof(*record));
	struct baton_observation o = {.name = name, .lease_id = "", .id = "", .record = record};
	struct baton_candidate c = {.is_leader = true, .is_healthy = true};

	if (record == NULL) {
		l->call = call;
		return pg_no_memory(l);
	}
	tableless_observe(l, call, &o, 1);
	if (o.outcome == BATON_OUTCOME_OK && record->held) {
		(void)snprintf(c.id, sizeof(c.id), "%s", record->leader);
		(void)snprintf(c.address, sizeof(c.address), "%s", record->address);
		(void)snprintf(c.metadata, sizeof(c.metadata), "%s", record->metadata);
		c.priority = record->priority;
		c.score_permille = record->score_permille;
		c.updated_ms = record->since_ms;
		found(arg, &c);
	}
	free(record);
	return o.outcome;
}
