/*
 * lock_waiters.c: sessions that wait for a lock that another session holds. When a session ends,
 * PostgreSQL tells only the sessions that wait for one of its locks. So one session of ours waits,
 * in shared mode like all other waiters, gets the lock for a moment, and gives it back. That is a
 * reason to observe, never a proof.
 *
 * A statement that waits keeps old rows from being vacuumed, so it gives up after a while and is
 * sent again. There are only a few such sessions; a lock that gets none is looked at by timers.
 *
 * What is asked for belongs to the store, under its lock. The sessions belong to the watch lane's
 * thread.
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

struct pg_waiter {
	struct pg_lane *lane;
	char *label; /* NULL: not in use */
	int64_t key;
	bool is_lease;
	bool armed;       /* the server has been asked */
	uint64_t rest_ns; /* since when its session has nothing to wait for */
	PGresult *answer; /* its last answer */
};

bool pg_waiter_ask(struct pg_store *store, bool is_lease, const char *label, int64_t key)
{
	struct pg_waiter *free_one = NULL;
	bool armed = false;
	bool known = false;

	store_lock(&store->base);
	for (size_t i = 0; i < PG_WAITERS_MAX && !known; i++) {
		struct pg_waiter *w = store->waiters[i];

		if (w == NULL || w->label == NULL) {
			if (w == NULL)
				w = store->waiters[i] = calloc(1, sizeof(*w));
			if (free_one == NULL)
				free_one = w;
			continue;
		}
		known = w->key == key && w->is_lease == is_lease && strcmp(w->label, label) == 0;
		armed = known && w->armed;
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

static void waiter_push_limits(struct pg_lane *l)
{
	pg_push(l, PG_LIMITS, 5,
		(const char *const[]){"0", WAIT_MS, "force_generic_plan", "off", "true"});
}

/* Sends the statement once that is needed when time counts, so that it is planned by then. It has a
 * transaction of its own, because a session that waits must not keep tables locked. False: that
 * can't be done now. */
static bool waiter_rehearse(struct pg_waiter *w)
{
	if (!w->is_lease || w->lane->conn.prepared[PG_AWAITED])
		return true;
	waiter_push_limits(w->lane);
	pg_push(w->lane, PG_AWAITED, 1, (const char *const[]){w->label});
	int outcome = pg_run(w->lane);

	pg_results_clear(w->lane);
	if (outcome != BATON_OUTCOME_OK)
		pg_conn_close(w->lane);
	return outcome == BATON_OUTCOME_OK;
}

/* Begins to wait at the server; false: that can't be done now. */
static bool waiter_arm(struct pg_waiter *w, struct pg_store *store)
{
	struct baton_call call = {.deadline_ns = clock_boot_ns() + CALL_NS};
	char key[24];

	if (w->lane == NULL)
		w->lane = pg_lane_new(store);
	if (w->lane == NULL)
		return false;
	w->lane->is_apart = true;
	w->lane->repeats = true;
	w->lane->call = &call;
	w->lane->begun_ns = clock_boot_ns();
	pg_results_clear(w->lane);
	if (!pg_is_connected(w->lane) && pg_connect(w->lane) != 0)
		return false;
	if (!waiter_rehearse(w))
		return false;
	w->lane->n_taken = 0;
	(void)snprintf(key, sizeof(key), "%" PRId64, w->key);
	waiter_push_limits(w->lane);
	pg_push(w->lane, PG_AWAIT, 1, (const char *const[]){key});
	if (w->is_lease) /* sent now, because time counts later */
		pg_push(w->lane, PG_AWAITED, 1, (const char *const[]){w->label});
	if (!w->lane->push_failed && PQpipelineSync(w->lane->conn.pg) == 1 &&
	    PQflush(w->lane->conn.pg) >= 0)
		return true;
	pg_conn_close(w->lane);
	return false;
}

enum { HEARD_NOTHING, HEARD_LOCK, HEARD_TIMEOUT, HEARD_END };

static int waiter_listen(struct pg_waiter *w)
{
	struct pg_lane *l = w->lane;
	struct baton_call call = {.deadline_ns = clock_boot_ns() + CALL_NS};
	bool failed = false;

	l->call = &call;
	if (PQconsumeInput(l->conn.pg) == 1 && PQisBusy(l->conn.pg))
		return HEARD_NOTHING;
	/* The first answers come at once, and the last one with the lock. */
	while (PQstatus(l->conn.pg) == CONNECTION_OK && !PQisBusy(l->conn.pg) && !failed) {
		PGresult *r = PQgetResult(l->conn.pg);
		const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
		bool synced = PQresultStatus(r) == PGRES_PIPELINE_SYNC;

		/* lock_timeout (55P03) or a cancelled statement (57014): the lock was not got.
		 * After any other error it doesn't help to ask again. */
		l->waited_out = l->waited_out || state != NULL;
		if (r != NULL && !synced)
			pg_note_prepared(l, r);
		failed =
			state != NULL && strcmp(state, "55P03") != 0 && strcmp(state, "57014") != 0;
		if (PQresultStatus(r) == PGRES_TUPLES_OK) {
			PQclear(w->answer);
			w->answer = r;
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

/* No process waits for its own lock: we may have got the lock before the waiter. */
static bool waiter_is_for_others(const struct pg_waiter *w, struct pg_store *store)
{
	return w->is_lease || !pg_is_tableless(store) || tableless_is_other(store, w->label);
}

/* True: the election or lease is to be looked at; a lease only if its lock was really got. */
static bool waiter_attend(struct pg_waiter *w, struct pg_store *store, bool *is_free)
{
	bool was_armed = w->armed;
	int heard = was_armed ? waiter_listen(w) : HEARD_TIMEOUT;

	*is_free = heard == HEARD_LOCK;
	if (heard == HEARD_NOTHING)
		return false;
	if (heard == HEARD_TIMEOUT && waiter_is_for_others(w, store) && waiter_arm(w, store)) {
		store_lock(&store->base);
		w->armed = true;
		store_unlock(&store->base);
		/* The lock is watched from now on: subscribe, then read. */
		return !was_armed && !w->is_lease;
	}
	store_lock(&store->base);
	free(w->label);
	w->label = NULL;
	w->armed = false;
	store_unlock(&store->base);
	w->rest_ns = clock_boot_ns();
	/* The lock is no longer watched. A look shows that to the elections that were told that it
	 * is. */
	return *is_free || (was_armed && !w->is_lease);
}

bool pg_waiters_attend(struct pg_lane *watcher, pg_lock_freed *freed, bool arms)
{
	struct pg_store *store = watcher->store;
	bool any = false;

	for (size_t i = 0; i < PG_WAITERS_MAX; i++) {
		store_lock(&store->base);
		struct pg_waiter *w = store->waiters[i];
		bool is_due = w != NULL && w->label != NULL && w->armed != arms;
		char *label = is_due ? strdup(w->label) : NULL;

		store_unlock(&store->base);
		bool is_free = false;

		if (label != NULL && waiter_attend(w, store, &is_free)) {
			freed(watcher, label, w->is_lease ? w->answer : NULL, is_free);
			any = true;
		}
		free(label);
	}
	return any;
}

uint64_t pg_waiters_rest(struct pg_store *store)
{
	uint64_t now_ns = clock_boot_ns();
	uint64_t next_ns = UINT64_MAX;

	for (size_t i = 0; i < PG_WAITERS_MAX; i++) {
		store_lock(&store->base);
		struct pg_waiter *w = store->waiters[i];
		bool rests = w != NULL && w->label == NULL;

		store_unlock(&store->base);
		if (!rests || w->lane == NULL || w->lane->conn.pg == NULL)
			continue;
		if (now_ns - w->rest_ns >= PG_REST_NS)
			pg_conn_free(&w->lane->conn);
		else if (w->rest_ns + PG_REST_NS < next_ns)
			next_ns = w->rest_ns + PG_REST_NS;
	}
	return next_ns;
}

size_t pg_waiters_poll(struct pg_store *store, struct pollfd *fds)
{
	size_t n = 0;

	store_lock(&store->base);
	for (size_t i = 0; i < PG_WAITERS_MAX; i++) {
		const struct pg_waiter *w = store->waiters[i];

		if (w != NULL && w->armed && w->lane->conn.pg != NULL)
			fds[n++] =
				(struct pollfd){.fd = PQsocket(w->lane->conn.pg), .events = POLLIN};
	}
	store_unlock(&store->base);
	return n;
}

void pg_waiters_free(struct pg_store *store)
{
	for (size_t i = 0; i < PG_WAITERS_MAX; i++) {
		store_lock(&store->base);
		struct pg_waiter *w = store->waiters[i];

		store->waiters[i] = NULL;
		store_unlock(&store->base);
		if (w == NULL)
			continue;
		pg_lane_free(w->lane);
		PQclear(w->answer);
		free(w->label);
		free(w);
	}
}
