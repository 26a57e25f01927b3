/*
 * observe.c: the verb observe. An election's row and the lease that holds it become a record. The
 * lease is noted if it is another process's, and its end is watched from then on (expiry.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/postgres/postgres.h"

/* The columns of PG_OBSERVE. */
enum column {
	COL_INDEX,
	COL_TERM,
	COL_NONCE,
	COL_SINCE,
	COL_METADATA,
	COL_PRIORITY,
	COL_SCORE,
	COL_PAUSED,
	COL_RESERVED_FOR,
	COL_RESERVED_US,
	COL_ORDER_ID,
	COL_ORDER_TERM,
	COL_ORDER_KIND,
	COL_ORDER_QUIET,
	COL_ORDER_TARGET,
	COL_TARGET_OK,
	COL_LEASE,
	COL_OWNER,
	COL_ADDRESS,
	COL_SEQ,
	COL_TTL,
	COL_EXPIRES,
	COL_NOW,
	COL_BEACON,
	COL_CROWD,
	COL_FUNCTIONS,
};

/* ---- what is known of others' leases ---- */

bool pg_watched_ids(struct pg_store *store, struct pg_text *ids)
{
	pg_array_begin(ids);
	store_lock(&store->base);
	size_t n = store->watched_leases.n;

	for (size_t i = 0; i < n; i++)
		pg_array_text(ids, store->watched_leases.list[i].id);
	store_unlock(&store->base);
	pg_array_end(ids);
	return n > 0 && !ids->failed;
}

bool pg_watched_ended(struct pg_store *store, struct pg_text *ids, struct pg_text *seqs)
{
	uint64_t now_ns = clock_boot_ns();
	bool any = false;

	pg_array_begin(ids);
	pg_array_begin(seqs);
	store_lock(&store->base);
	for (size_t i = 0; i < store->watched_leases.n; i++) {
		const struct watched_lease *s = &store->watched_leases.list[i];

		if (s->gone || expiry_end_ns(s, &store->clock, now_ns) > now_ns)
			continue;
		pg_array_text(ids, s->id);
		pg_array_number(seqs, s->seq);
		any = true;
	}
	store_unlock(&store->base);
	pg_array_end(ids);
	pg_array_end(seqs);
	return any && !ids->failed && !seqs->failed;
}

/* When the lease in the row will surely have ended, on our clock. */
static uint64_t note_lease(struct pg_store *store, const char *id, int64_t seq, int64_t expires_us,
			   int64_t ttl_ms, const char *beacon)
{
	uint64_t now_ns = clock_boot_ns();
	uint64_t ttl_ns = (uint64_t)(ttl_ms > 0 ? ttl_ms : 0) * CLOCK_NS_PER_MS;
	uint64_t end_ns = EXPIRY_NEVER;
	bool sooner = false;

	store_lock(&store->base);
	struct watched_lease *s =
		expiry_note(&store->watched_leases, id, seq, expires_us, ttl_ns, now_ns);

	if (s != NULL) {
		end_ns = expiry_end_ns(s, &store->clock, now_ns);
		sooner = end_ns < store->sleeps_ns;
	}
	store_unlock(&store->base);
	if (store->info.fast && beacon[0] != '\0')
		(void)pg_waiter_ask(store, true, id, strtoll(beacon, NULL, 10));
	if (sooner)
		pg_watch_nudge(store);
	return end_ns;
}

void pg_watched_seen(struct pg_lane *lane, const PGresult *r, uint64_t asked_ns)
{
	struct pg_store *store = lane->store;

	for (int i = 0; i < PQntuples(r); i++)
		(void)note_lease(store, PQgetvalue(r, i, 0), pg_number(r, i, 1), pg_number(r, i, 3),
				 pg_number(r, i, 2), PQgetvalue(r, i, 4));
	store_lock(&store->base);
	bool missed = expiry_missed(&store->watched_leases, asked_ns);

	/* The watch lane forgets leases that are gone after it has given their hints. It gives no
	 * hints behind a pooler; and if it has just lost its connection, all elections will get a
	 * hint. */
	if (!atomic_load(&store->listening))
		expiry_drop_gone(&store->watched_leases);
	store_unlock(&store->base);
	if (missed)
		pg_watch_nudge(store);
}

/* ---- records ---- */

/* How long until the election can be taken. */
static uint64_t record_free_in(struct pg_store *store, const PGresult *r, int row,
			       const char *asker)
{
	const char *id = PQgetvalue(r, row, COL_LEASE);
	int64_t expires_us = pg_number(r, row, COL_EXPIRES);
	int64_t left_us = expires_us - pg_number(r, row, COL_NOW);

	/* For an observer, and for the holder itself, the server's clock is good enough. */
	if (asker[0] == '\0' || strcmp(asker, id) == 0)
		return left_us > 0 ? (uint64_t)left_us * 1000 : 0;
	uint64_t end_ns = note_lease(store, id, pg_number(r, row, COL_SEQ), expires_us,
				     pg_number(r, row, COL_TTL), PQgetvalue(r, row, COL_BEACON));
	uint64_t now_ns = clock_boot_ns();

	if (end_ns == EXPIRY_NEVER)
		return BATON_STORE_NEVER;
	return end_ns > now_ns ? end_ns - now_ns : 0;
}

static void fill_order(const PGresult *r, int row, struct baton_order *order)
{
	*order = (struct baton_order){.kind = BATON_ORDER_NONE};
	if (PQgetisnull(r, row, COL_ORDER_ID))
		return;
	order->id = pg_unsigned(r, row, COL_ORDER_ID);
	order->term = pg_unsigned(r, row, COL_ORDER_TERM);
	order->kind = (int)pg_number(r, row, COL_ORDER_KIND);
	order->quiet_ms = pg_unsigned(r, row, COL_ORDER_QUIET);
	order->target_ok = pg_is_true(r, row, COL_TARGET_OK);
	pg_copy(order->target, sizeof(order->target), r, row, COL_ORDER_TARGET);
}

static void fill_holder(const PGresult *r, int row, struct baton_record *out)
{
	out->held = true;
	out->nonce = pg_unsigned(r, row, COL_NONCE);
	out->since_ms = pg_number(r, row, COL_SINCE);
	out->priority = (int32_t)pg_number(r, row, COL_PRIORITY);
	out->score_permille = (uint32_t)pg_number(r, row, COL_SCORE);
	out->n_candidates = (uint32_t)pg_number(r, row, COL_CROWD);
	pg_copy(out->lease_id, sizeof(out->lease_id), r, row, COL_LEASE);
	pg_copy(out->leader, sizeof(out->leader), r, row, COL_OWNER);
	pg_copy(out->address, sizeof(out->address), r, row, COL_ADDRESS);
	pg_copy(out->metadata, sizeof(out->metadata), r, row, COL_METADATA);
	fill_order(r, row, &out->order);
}

static void record_clear(struct pg_store *store, struct baton_record *out)
{
	*out = (struct baton_record){.free_in_ns = BATON_STORE_NEVER,
				     .watched = atomic_load(&store->listening)};
}

static void record_fill(struct pg_store *store, const PGresult *r, int row,
			struct baton_observation *o)
{
	struct baton_record *out = o->record;

	out->term = pg_unsigned(r, row, COL_TERM);
	out->paused = pg_is_true(r, row, COL_PAUSED);
	out->functions = pg_is_true(r, row, COL_FUNCTIONS);
	if (!PQgetisnull(r, row, COL_LEASE)) {
		fill_holder(r, row, out);
		out->free_in_ns = record_free_in(store, r, row, o->lease_id);
		return;
	}
	int64_t left_us = pg_number(r, row, COL_RESERVED_US);

	if (!PQgetisnull(r, row, COL_RESERVED_FOR) && left_us > 0 &&
	    strcmp(PQgetvalue(r, row, COL_RESERVED_FOR), o->id) != 0) {
		out->reserved = true;
		out->free_in_ns = (uint64_t)left_us * 1000;
	}
}

static int observe_ask(struct pg_lane *l, struct baton_call *call, struct baton_observation *list,
		       size_t n)
{
	struct pg_text names = {0};

	l->call = call;
	pg_array_names(&names, list, n);
	int outcome = names.failed ? pg_no_memory(l) : pg_begin(l, call, n);

	if (outcome != 0) {
		pg_text_done(&names);
		return outcome;
	}
	pg_push(l, PG_OBSERVE, 1, (const char *const[]){names.at});
	if (l->store->info.advisory)
		pg_push(l, PG_LOCKED, 1, (const char *const[]){names.at});
	if (list[0].lease_id[0] != '\0') /* a candidate, not an observer */
		pg_push_rehearse(l, NULL);
	outcome = pg_run(l);
	pg_text_done(&names);
	return outcome;
}

static void observe_elections(struct pg_lane *l, struct baton_call *call,
			      struct baton_observation *list, size_t n)
{
	int outcome = observe_ask(l, call, list, n);

	if (pg_may_repeat(l, outcome))
		outcome = observe_ask(l, call, list, n);
	for (size_t i = 0; i < n; i++) {
		list[i].outcome = outcome;
		list[i].code = outcome == BATON_OUTCOME_OK ? 0 : call->error.code;
		record_clear(l->store, list[i].record);
	}
	const PGresult *r = outcome == BATON_OUTCOME_OK ? pg_result(l, 0) : NULL;

	for (int row = 0; r != NULL && row < PQntuples(r); row++) {
		int64_t at = pg_number(r, row, COL_INDEX);

		if (at >= 1 && (size_t)at <= n)
			record_fill(l->store, r, row, &list[at - 1]);
	}
	if (r != NULL)
		pg_fill_locked(l, pg_result_of(l, PG_LOCKED), list, n);
	pg_results_clear(l);
}

void pg_observe(void *lane, struct baton_call *call, struct baton_observation *list, size_t n)
{
	struct pg_store *store = ((struct pg_lane *)lane)->store;

	if (pg_is_tableless(store)) {
		tableless_observe(lane, call, list, n);
		return;
	}
	struct pg_lane *l = pg_session_take(lane, call);

	for (size_t i = 0; l == NULL && i < n; i++) {
		list[i].outcome = BATON_OUTCOME_FAILED;
		list[i].code = call->error.code;
		record_clear(store, list[i].record);
	}
	if (l == NULL)
		return;
	observe_elections(l, call, list, n);
	pg_session_give(lane, l);
}
