/*
 * observe.c: the verb observe. pg_locks tells which session holds an election's lock, and that
 * session's tag (codec.c) tells who it is.
 */
#include <string.h>

#include "base/clock.h"
#include "store/postgres/tableless/tableless.h"

static void record_clear(struct pg_store *store, struct baton_observation *o)
{
	*o->record = (struct baton_record){.free_in_ns = BATON_STORE_NEVER,
					   .term = tableless_term_highest(store, o->name, 0),
					   .watched = atomic_load(&store->listening)};
}

/* By its tag the session is ours, but we have given it up: it is about to end. */
static bool record_is_given_up(struct pg_store *store, const struct baton_observation *o,
			       const struct baton_record *said)
{
	if (o->lease_id[0] == '\0' || strcmp(said->lease_id, o->lease_id) != 0)
		return false;
	store_lock(&store->base);
	const struct tableless_session *s = store->sessions;

	while (s != NULL && (strcmp(s->lease_id, said->lease_id) != 0 || s->term != said->term))
		s = s->next;
	store_unlock(&store->base);
	return s == NULL;
}

static void record_fill(struct pg_lane *l, const PGresult *r, int row, struct baton_observation *o)
{
	struct baton_record *out = o->record;
	struct baton_record said = *out;
	uint64_t ttl_ns = 0;
	uint64_t silent_ns = pg_unsigned(r, row, PG_LOCK_SILENT) * 1000;
	bool speaks = tableless_tag_read(PQgetvalue(r, row, PG_LOCK_QUERY), &said, &ttl_ns);

	/* No process waits for its own lock. */
	if (!speaks || o->lease_id[0] == '\0' || strcmp(said.lease_id, o->lease_id) != 0)
		out->watched =
			pg_waiter_ask(l->store, false, o->name, pg_number(r, row, PG_LOCK_KEY)) &&
			out->watched;
	said.watched = out->watched;
	if (speaks && !record_is_given_up(l->store, o, &said)) {
		*out = said;
		out->held = true;
		out->free_in_ns = ttl_ns > silent_ns ? ttl_ns - silent_ns : 0;
		out->term = tableless_term_highest(l->store, o->name, out->term);
	} else if (speaks || pg_is_ours(r, row)) {
		out->reserved = true; /* a session that is just taking the lock, or just ending */
		out->free_in_ns = CLOCK_NS_PER_MS;
	} else {
		out->held = true;
		pg_name_session(r, row, out->leader, sizeof(out->leader));
	}
}

static int find_locks(struct pg_lane *l, struct baton_call *call, int statement,
		      struct baton_observation *list, size_t n)
{
	struct pg_text names = {0};

	l->call = call;
	pg_array_names(&names, list, n);
	int outcome = names.failed ? pg_no_memory(l) : pg_begin(l, call, n);

	if (outcome != 0) {
		pg_text_done(&names);
		return outcome;
	}
	pg_push(l, statement, 1, (const char *const[]){names.at});
	if (statement == PG_TABLELESS_FIND) { /* prepares these for a claim, when time counts */
		pg_push_prepare(l, PG_SESSION);
		pg_push_prepare(l, PG_TABLELESS_TAKE);
	}
	outcome = pg_run(l);
	pg_text_done(&names);
	return outcome;
}

void tableless_find(struct pg_lane *l, struct baton_call *call, int statement,
		    struct baton_observation *list, size_t n)
{
	int outcome = find_locks(l, call, statement, list, n);

	if (pg_may_repeat(l, outcome))
		outcome = find_locks(l, call, statement, list, n);
	for (size_t i = 0; i < n; i++) {
		list[i].outcome = outcome;
		list[i].code = outcome == BATON_OUTCOME_OK ? 0 : call->error.code;
		record_clear(l->store, &list[i]);
	}
	const PGresult *r = outcome == BATON_OUTCOME_OK ? pg_result(l, 0) : NULL;

	for (int row = 0; r != NULL && row < PQntuples(r); row++) {
		int64_t at = pg_number(r, row, PG_LOCK_INDEX);

		if (at >= 1 && (size_t)at <= n)
			record_fill(l, r, row, &list[at - 1]);
	}
	pg_results_clear(l);
}

/* Observes a claim of our own on its own session, so that the lane needs none. False: the claim
 * isn't ours, or the session doesn't confirm it. */
static bool observe_own_claim(struct pg_store *store, struct baton_call *call,
			      struct baton_observation *o)
{
	struct tableless_session *s = tableless_session_get(store, o->lease_id);
	struct baton_record *out = o->record;

	if (s == NULL)
		return false;
	record_clear(store, o);
	bool is_held = strcmp(s->name, o->name) == 0 &&
		       tableless_session_check(s, call, s->ask) == BATON_OUTCOME_OK &&
		       tableless_tag_read(s->ask, out, &out->free_in_ns);

	tableless_session_put(store, s);
	out->held = is_held;
	out->watched = true; /* there are no orders, and each renewal checks the lock */
	o->outcome = BATON_OUTCOME_OK;
	o->code = 0;
	return is_held;
}

void tableless_observe(struct pg_lane *l, struct baton_call *call, struct baton_observation *list,
		       size_t n)
{
	if (n != 1 || !observe_own_claim(l->store, call, list))
		tableless_find(l, call, PG_LOCKED, list, n);
}
