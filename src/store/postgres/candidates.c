/*
 * candidates.c: the verbs publish, withdraw and candidates. Nothing here decides who leads: rows
 * are only written and read.
 */
#include "store/postgres/postgres.h"

enum { P_NAME, P_METADATA, P_PRIORITY, P_SCORE, P_HEALTHY, P_COLUMNS };

static int candidates_write(struct pg_lane *l, struct baton_call *call,
			    const struct baton_lease *lease, const struct baton_publication *list,
			    size_t n)
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

static int candidates_publish(struct pg_lane *lane, struct baton_call *call,
			      const struct baton_lease *lease, const struct baton_publication *list,
			      size_t n)
{
	struct pg_lane *l = pg_session_take(lane, call);

	if (l == NULL)
		return BATON_OUTCOME_FAILED;
	int outcome = candidates_write(l, call, lease, list, n);

	/* All are published or none, because all depend on whether the lease lives. */
	if (outcome == BATON_OUTCOME_OK && PQntuples(pg_result(l, 0)) == 0)
		outcome = BATON_OUTCOME_REFUSED;
	pg_results_clear(l);
	pg_session_give(lane, l);
	return outcome;
}

void pg_publish(void *lane, struct baton_call *call, const struct baton_lease *lease,
		struct baton_publication *list, size_t n)
{
	/* Without tables only the leader can be seen (tableless/). */
	bool tableless = pg_is_tableless(((struct pg_lane *)lane)->store);
	int outcome = tableless ? BATON_OUTCOME_OK : candidates_publish(lane, call, lease, list, n);

	call->is_unasked = tableless;
	for (size_t i = 0; i < n; i++) {
		list[i].outcome = outcome;
		list[i].code = outcome == BATON_OUTCOME_OK || outcome == BATON_OUTCOME_REFUSED
				       ? 0
				       : call->error.code;
	}
}

int pg_withdraw(void *lane, struct baton_call *call, const struct baton_lease *lease,
		const char *name)
{
	call->is_unasked = pg_is_tableless(((struct pg_lane *)lane)->store);
	if (call->is_unasked)
		return BATON_OUTCOME_OK;
	struct pg_lane *l = pg_session_take(lane, call);

	if (l == NULL)
		return BATON_OUTCOME_FAILED;
	int outcome = pg_ask(l, call, PG_WITHDRAW, 2, (const char *const[]){name, lease->id});

	pg_session_give(lane, l);
	return outcome;
}

int pg_candidates(void *lane, struct baton_call *call, const char *name,
		  void (*found)(void *arg, const struct baton_candidate *candidate), void *arg)
{
	struct pg_lane *l = lane;

	if (pg_is_tableless(l->store))
		return tableless_candidates(l, call, name, found, arg);
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
