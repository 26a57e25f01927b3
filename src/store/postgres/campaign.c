/*
 * campaign.c: the verb campaign, a batch in one transaction. sql.c has the statements and their
 * reasons.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/postgres/postgres.h"

enum { C_NAME, C_NONCE, C_FLOOR, C_METADATA, C_PRIORITY, C_SCORE, C_COLUMNS };

static void fill_campaigns(struct pg_text *t, const struct baton_campaign *list, size_t n)
{
	for (size_t i = 0; i < C_COLUMNS; i++)
		pg_array_begin(&t[i]);
	for (size_t i = 0; i < n; i++) {
		uint64_t floor = list[i].floor < TERM_MAX ? list[i].floor : TERM_MAX;

		pg_array_text(&t[C_NAME], list[i].name);
		pg_array_number(&t[C_NONCE], (int64_t)list[i].nonce);
		pg_array_number(&t[C_FLOOR], (int64_t)floor);
		pg_array_text(&t[C_METADATA], list[i].profile.metadata);
		pg_array_number(&t[C_PRIORITY], list[i].profile.priority);
		pg_array_number(&t[C_SCORE], list[i].profile.score_permille);
	}
	for (size_t i = 0; i < C_COLUMNS; i++)
		pg_array_end(&t[i]);
}

/* A new session gets the locks of the lease. A session that may have too many gives these back
 * first: locks are counted, and one that is taken twice must be given back twice. */
static void push_locks(struct pg_lane *l, const struct baton_lease *lease)
{
	if (!pg_session_could_be_for(l, lease))
		return; /* the lease is over, and the claim will be refused */
	bool is_new = !l->conn.has_locks || !pg_session_is_for(l, lease);

	if (is_new)
		pg_push_lock_session(l, lease);
	if (is_new || l->conn.unsure)
		pg_push_keep(l, lease);
	l->store->session_campaigns = true;
}

void pg_push_rehearse(struct pg_lane *l, const struct baton_lease *lease)
{
	static const char none[] = "{}";

	if (!l->store->info.fast || l != l->store->lock_lane)
		return;
	if (!l->conn.prepared[PG_KILL])
		pg_push(l, PG_KILL, 2, (const char *const[]){none, none});
	if (lease != NULL && !l->conn.prepared[PG_CLAIM])
		pg_push(l, PG_CLAIM, 9,
			(const char *const[]){lease->id, lease->owner, l->store->info.schema, none,
					      none, none, none, none, none});
}

/* The transaction of a claim; its last statement's result lists the elections that are won. make:
 * it also makes rows for new elections. */
static int campaign_claim(struct pg_lane *l, struct baton_call *call,
			  const struct baton_lease *lease, const struct baton_campaign *list,
			  size_t n, bool make)
{
	struct pg_text t[C_COLUMNS] = {{0}};
	struct pg_text dead[2] = {{0}};

	l->call = call;
	fill_campaigns(t, list, n);
	bool kills = pg_watched_ended(l->store, &dead[0], &dead[1]);
	int outcome = pg_texts_failed(t, C_COLUMNS) ? pg_no_memory(l) : pg_begin(l, call, n);

	if (outcome == 0) {
		const char *const kill[] = {dead[0].at, dead[1].at};
		const char *const params[] = {
			lease->id,        lease->owner,     l->store->info.schema,
			t[C_NAME].at,     t[C_NONCE].at,    t[C_FLOOR].at,
			t[C_METADATA].at, t[C_PRIORITY].at, t[C_SCORE].at};

		atomic_store(&l->store->claimer_pid, l->conn.pid);
		push_locks(l, lease);
		pg_push(l, PG_PIN, 1, params);
		if (make)
			pg_push(l, PG_MAKE, 1, (const char *const[]){t[C_NAME].at});
		if (kills)
			pg_push(l, PG_KILL, 2, kill);
		pg_push(l, l->store->info.advisory ? PG_CLAIM_LOCKED : PG_CLAIM, 9, params);
		outcome = pg_run(l);
		if (outcome == BATON_OUTCOME_OK)
			pg_session_is_locked(l, lease);
		else
			l->conn.unsure = true; /* the rollback doesn't give locks back */
	}
	pg_texts_done(t, C_COLUMNS);
	pg_texts_done(dead, 2);
	return outcome;
}

/* For an election that was not won: if the record doesn't say why, reports why the free election
 * could not be had (S3, S4). */
static void campaign_explain(struct baton_call *call, struct baton_campaign *c)
{
	struct baton_record *r = c->record;
	enum term_fault fault = term_check(r->term, c->floor);

	if (r->held || r->reserved || r->paused)
		return;
	if (fault != TERM_FINE)
		(void)store_fail_term(call, c, fault);
	else
		r->free_in_ns = 0; /* another transaction was busy with it: try again soon */
}

/* Looks at the elections that were not won. */
static void campaign_observe_lost(struct pg_lane *l, struct baton_call *call,
				  const struct baton_lease *lease, struct baton_campaign *list,
				  size_t n)
{
	struct baton_observation *o = calloc(n, sizeof(*o));
	size_t n_asked = 0;

	for (size_t i = 0; i < n; i++) {
		if (list[i].outcome == BATON_OUTCOME_OK)
			continue;
		list[i].outcome = BATON_OUTCOME_FAILED;
		list[i].code = BATON_E_MEMORY;
		if (o != NULL)
			o[n_asked++] = (struct baton_observation){.name = list[i].name,
								  .lease_id = lease->id,
								  .id = lease->owner,
								  .record = list[i].record};
	}
	if (n_asked > 0)
		pg_observe(l, call, o, n_asked);
	for (size_t i = 0, k = 0; i < n && k < n_asked; i++) {
		if (list[i].record != o[k].record)
			continue;
		/* Even if we could not look, nothing was written. */
		bool seen = o[k].outcome == BATON_OUTCOME_OK;

		list[i].outcome = seen ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_FAILED;
		list[i].code = o[k++].code;
		if (seen)
			campaign_explain(call, &list[i]);
	}
	free(o);
}

/* A transaction that failed has not given back the locks that it took. If this fails as well, the
 * next claim or renewal does it: the session can't be closed instead, because it has the locks of
 * other claims (S7). */
static void campaign_put_locks_right(struct pg_lane *l, const struct baton_lease *lease,
				     uint64_t deadline_ns)
{
	struct baton_call inner = {.deadline_ns = deadline_ns};

	if (l->conn.pg == NULL || pg_begin(l, &inner, 0) != 0)
		return; /* the session is gone, and its locks with it */
	pg_push_keep(l, lease);
	if (pg_run(l) != BATON_OUTCOME_OK)
		l->conn.unsure = true;
	pg_results_clear(l);
}

static void campaign_take_winners(struct pg_store *store, struct baton_campaign *list, size_t n,
				  const PGresult *r)
{
	for (int row = 0; r != NULL && row < PQntuples(r); row++) {
		int64_t at = pg_number(r, row, 0);

		if (at < 1 || (size_t)at > n)
			continue;
		list[at - 1].outcome = BATON_OUTCOME_OK;
		list[at - 1].term = pg_unsigned(r, row, 1);
		list[at - 1].record->watched = atomic_load(&store->listening);
	}
}

static bool all_won(const struct baton_campaign *c, size_t n)
{
	bool won = true;

	for (size_t i = 0; i < n; i++)
		won = won && c[i].outcome == BATON_OUTCOME_OK;
	return won;
}

/* True: all are won, or the call failed. An election that was won before stays won: its row is not
 * free for us, either. The outcome of the others is 0 for now: answered, and not won. */
static bool campaign_try(struct pg_lane *lane, struct baton_call *call,
			 const struct baton_lease *lease, struct baton_campaign *list, size_t n,
			 bool make)
{
	bool locks = lane->store->info.advisory;
	struct pg_lane *l = pg_session_take(lane, call);
	int outcome =
		l != NULL ? campaign_claim(l, call, lease, list, n, make) : BATON_OUTCOME_FAILED;
	bool answered = outcome == BATON_OUTCOME_OK;

	for (size_t i = 0; i < n; i++) {
		if (list[i].outcome == BATON_OUTCOME_OK)
			continue;
		list[i].outcome = answered ? 0 : outcome;
		list[i].code = answered ? 0 : call->error.code;
		list[i].term = 0;
	}
	if (l == NULL)
		return true;
	if (answered)
		campaign_take_winners(l->store, list, n,
				      pg_result_of(l, locks ? PG_CLAIM_LOCKED : PG_CLAIM));
	pg_results_clear(l);
	if (locks && outcome == BATON_OUTCOME_FAILED)
		campaign_put_locks_right(l, lease, call->deadline_ns);
	pg_session_give(lane, l);
	return !answered || all_won(list, n);
}

/* In mode=advisory all waiters for a lock get it for a moment when it becomes free. A claim at that
 * moment is refused, and tries again. */
#define TRIES 8
#define TRY_MS 2

static bool is_worth_another(const struct baton_campaign *c, size_t n)
{
	bool worth = true;

	for (size_t i = 0; i < n; i++)
		worth = worth && c[i].outcome == BATON_OUTCOME_REFUSED && !c[i].record->held &&
			c[i].record->free_in_ns == 0;
	return worth;
}

/* True: of one of them we have not seen a term yet, and so perhaps no row. */
static bool any_unseen(const struct baton_campaign *c, size_t n)
{
	bool unseen = false;

	for (size_t i = 0; i < n; i++)
		unseen = unseen || c[i].floor == 0;
	return unseen;
}

/* True: the row of one of them is gone, or was never there. */
static bool any_missing(const struct baton_campaign *c, size_t n)
{
	bool missing = false;

	for (size_t i = 0; i < n; i++)
		missing = missing ||
			  (c[i].outcome == BATON_OUTCOME_REFUSED && c[i].record->term == 0);
	return missing;
}

void pg_campaign(void *lane, struct baton_call *call, const struct baton_lease *lease,
		 struct baton_campaign *list, size_t n)
{
	struct pg_lane *l = lane;
	bool make = any_unseen(list, n);

	if (pg_is_tableless(l->store)) {
		tableless_campaign(l, call, lease, list, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		list[i].outcome = 0;
	store_ask(&l->store->base, list, n);
	for (unsigned i = 0; i < TRIES && !campaign_try(l, call, lease, list, n, make); i++) {
		campaign_observe_lost(l, call, lease, list, n);
		if (!make && any_missing(list, n)) {
			make = true;
			continue;
		}
		if (!l->store->info.advisory || !is_worth_another(list, n) ||
		    clock_boot_ns() >= call->deadline_ns)
			break;
		(void)poll(NULL, 0, TRY_MS << i);
	}
	store_ask(&l->store->base, NULL, 0);
}
