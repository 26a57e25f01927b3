/*
 * lock_waiters.c: sessions that wait for a lock that somebody else holds. PostgreSQL tells nobody
 * when a session ends, except those who wait for one of its locks: so one session of ours waits,
 * shared with all others who wait, gets the lock for a moment, and lets go. That is the bell: a
 * reason to look, never a proof.
 *
 * A statement that waits keeps old rows from being vacuumed, so it gives up after a while and is
 * sent again. There are a few such sessions at most; what finds none is looked for by timers.
 *
 * What is asked for is the store's, under its lock; the sessions are the watch lane's thread's.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/postgres/postgres.h"

#define WAIT_MS "30000"
#define CALL_NS CLOCK_NS_PER_S

struct pg_bell {
	struct pg_lane *lane;
	char *label; /* NULL: not in use */
	int64_t key;
	bool is_lease;
	bool armed;       /* the server has been asked */
	uint64_t rest_ns; /* since when its session has nothing to wait for */
	PGresult *answer; /* the last one that it gave */
};

bool pg_bell_ask(struct pg_store *store, bool is_lease, const char *label, int64_t key)
{
	struct pg_bell *free_one = NULL;
	bool armed = false;
	bool known = false;

	store_lock(&store->base);
	for (size_t i = 0; i < PG_BELLS_MAX && !known; i++) {
		struct pg_bell *b = store->bells[i];

		if (b == NULL || b->label == NULL) {
			if (b == NULL)
				b = store->bells[i] = calloc(1, sizeof(*b));
			if (free_one == NULL)
				free_one = b;
			continue;
		}
		known = b->key == key && b->is_lease == is_lease && strcmp(b->label, label) == 0;
		armed = known && b->armed;
	}
	if (!known && free_one != NULL) {
		free_one->label = strdup(label);
		free_one->key = key;
		free_one->is_lease = is_lease;
		free_one->armed = false;
	}
	store_unlock(&store->base);
	if (!known && free_one != NULL)
		pg_watch_nudge(store);
	return armed;
}

static void push_limits(struct pg_lane *l)
{
	pg_push(l, PG_LIMITS, 5,
		(const char *const[]){"0", WAIT_MS, "force_generic_plan", "off", "true"});
}

/* Asks once what is to be asked when time counts, so that it is planned by then; in a transaction
 * of its own, because who waits must not keep tables locked. False: not now. */
static bool rehearse(struct pg_bell *b)
{
	if (!b->is_lease || b->lane->conn.prepared[PG_AWAITED])
		return true;
	push_limits(b->lane);
	pg_push(b->lane, PG_AWAITED, 1, (const char *const[]){b->label});
	int outcome = pg_run(b->lane);

	pg_results_clear(b->lane);
	if (outcome != BATON_OUTCOME_OK)
		pg_conn_close(b->lane);
	return outcome == BATON_OUTCOME_OK;
}

/* Asks the server; false: not now. */
static bool arm(struct pg_bell *b, struct pg_store *store)
{
	struct baton_call call = {.deadline_ns = clock_boot_ns() + CALL_NS};
	char key[24];

	if (b->lane == NULL)
		b->lane = pg_lane_new(store);
	if (b->lane == NULL)
		return false;
	b->lane->is_apart = true;
	b->lane->repeats = true;
	b->lane->call = &call;
	b->lane->begun_ns = clock_boot_ns();
	pg_results_clear(b->lane);
	if (!pg_is_connected(b->lane) && pg_connect(b->lane) != 0)
		return false;
	if (!rehearse(b))
		return false;
	b->lane->n_taken = 0;
	(void)snprintf(key, sizeof(key), "%" PRId64, b->key);
	push_limits(b->lane);
	pg_push(b->lane, PG_AWAIT, 1, (const char *const[]){key});
	if (b->is_lease) /* so that it needn't be asked for when time counts */
		pg_push(b->lane, PG_AWAITED, 1, (const char *const[]){b->label});
	if (!b->lane->push_failed && PQpipelineSync(b->lane->conn.pg) == 1 &&
	    PQflush(b->lane->conn.pg) >= 0)
		return true;
	pg_conn_close(b->lane);
	return false;
}

enum { HEARD_NOTHING, HEARD_LOCK, HEARD_TIMEOUT, HEARD_END };

static int listen_to(struct pg_bell *b)
{
	struct pg_lane *l = b->lane;
	struct baton_call call = {.deadline_ns = clock_boot_ns() + CALL_NS};
	bool failed = false;

	l->call = &call;
	if (PQconsumeInput(l->conn.pg) == 1 && PQisBusy(l->conn.pg))
		return HEARD_NOTHING;
	/* The first answers come at once, the last one with the lock. */
	while (PQstatus(l->conn.pg) == CONNECTION_OK && !PQisBusy(l->conn.pg) && !failed) {
		PGresult *r = PQgetResult(l->conn.pg);
		const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
		bool synced = PQresultStatus(r) == PGRES_PIPELINE_SYNC;

		/* lock_timeout, or told to stop: it was not got. Anything else won't be mended by
		 * asking again. */
		l->waited_out = l->waited_out || state != NULL;
		if (r != NULL && !synced)
			pg_note_prepared(l, r);
		failed =
			state != NULL && strcmp(state, "55P03") != 0 && strcmp(state, "57014") != 0;
		if (PQresultStatus(r) == PGRES_TUPLES_OK) {
			PQclear(b->answer);
			b->answer = r;
		} else {
			PQclear(r);
		}
		if (!synced)
			continue;
		int rc = l->waited_out ? HEARD_TIMEOUT : HEARD_LOCK;

		l->waited_out = false;
		l->n_pushed = 0;
		return rc;
	}
	if (PQstatus(l->conn.pg) == CONNECTION_OK && !failed)
		return HEARD_NOTHING;
	l->waited_out = false;
	pg_conn_close(l);
	return HEARD_END;
}

/* Nobody waits for itself: we may have got there before the bell. */
static bool is_others(const struct pg_bell *b, struct pg_store *store)
{
	return b->is_lease || !pg_is_bare(store) || bare_is_other(store, b->label);
}

/* True: whoever asked is to look; of a lease only when its lock was really got. */
static bool attend(struct pg_bell *b, struct pg_store *store, bool *is_free)
{
	bool was_armed = b->armed;
	int heard = was_armed ? listen_to(b) : HEARD_TIMEOUT;

	*is_free = heard == HEARD_LOCK;
	if (heard == HEARD_NOTHING)
		return false;
	if (heard == HEARD_TIMEOUT && is_others(b, store) && arm(b, store)) {
		store_lock(&store->base);
		b->armed = true;
		store_unlock(&store->base);
		/* It is watched from now on: subscribe, then read. */
		return !was_armed && !b->is_lease;
	}
	store_lock(&store->base);
	free(b->label);
	b->label = NULL;
	b->armed = false;
	store_unlock(&store->base);
	b->rest_ns = clock_boot_ns();
	/* No longer watched: whoever was told that it is finds out. */
	return *is_free || (was_armed && !b->is_lease);
}

bool pg_bells_attend(struct pg_lane *watcher, pg_bell_rung *rung, bool arms)
{
	struct pg_store *store = watcher->store;
	bool any = false;

	for (size_t i = 0; i < PG_BELLS_MAX; i++) {
		store_lock(&store->base);
		struct pg_bell *b = store->bells[i];
		bool is_due = b != NULL && b->label != NULL && b->armed != arms;
		char *label = is_due ? strdup(b->label) : NULL;

		store_unlock(&store->base);
		bool is_free = false;

		if (label != NULL && attend(b, store, &is_free)) {
			rung(watcher, label, b->is_lease ? b->answer : NULL, is_free);
			any = true;
		}
		free(label);
	}
	return any;
}

uint64_t pg_bells_rest(struct pg_store *store)
{
	uint64_t now_ns = clock_boot_ns();
	uint64_t next_ns = UINT64_MAX;

	for (size_t i = 0; i < PG_BELLS_MAX; i++) {
		store_lock(&store->base);
		struct pg_bell *b = store->bells[i];
		bool rests = b != NULL && b->label == NULL;

		store_unlock(&store->base);
		if (!rests || b->lane == NULL || b->lane->conn.pg == NULL)
			continue;
		if (now_ns - b->rest_ns >= PG_REST_NS)
			pg_conn_free(&b->lane->conn);
		else if (b->rest_ns + PG_REST_NS < next_ns)
			next_ns = b->rest_ns + PG_REST_NS;
	}
	return next_ns;
}

size_t pg_bells_poll(struct pg_store *store, struct pollfd *fds)
{
	size_t n = 0;

	store_lock(&store->base);
	for (size_t i = 0; i < PG_BELLS_MAX; i++) {
		const struct pg_bell *b = store->bells[i];

		if (b != NULL && b->armed && b->lane->conn.pg != NULL)
			fds[n++] =
				(struct pollfd){.fd = PQsocket(b->lane->conn.pg), .events = POLLIN};
	}
	store_unlock(&store->base);
	return n;
}

void pg_bells_free(struct pg_store *store)
{
	for (size_t i = 0; i < PG_BELLS_MAX; i++) {
		store_lock(&store->base);
		struct pg_bell *b = store->bells[i];

		store->bells[i] = NULL;
		store_unlock(&store->base);
		if (b == NULL)
			continue;
		pg_lane_free(b->lane);
		PQclear(b->answer);
		free(b->label);
		free(b);
	}
}
