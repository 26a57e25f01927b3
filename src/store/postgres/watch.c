/*
 * watch.c: hints. Changes are pushed by NOTIFY, with the election's name. No process pushes the
 * end of a dead holder's lease, so this lane keeps a timer for it (expiry.h), and asks the server
 * once when the time has come. While leases are renewed, our own renewals bring the news of that:
 * the timer moves on, and this lane asks nothing.
 *
 * Subscribe, then read: after LISTEN, and so after every break, all elections get a hint.
 *
 * Behind a pooler there is no LISTEN: then records say that nothing is watched, and the elections
 * keep timers of their own.
 *
 * A store whose session holds locks listens on that session, in turn with the lanes that renew and
 * campaign. With more sessions a takeover would be slower: the server takes milliseconds of a core
 * to end a session of a dead process, and a waiter for that process's lock waits for a core
 * meanwhile.
 *
 * `names` belongs to the watch lane's thread alone; other threads use `woken` and wake_fd.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/postgres/postgres.h"
#include "store/watch_index.h"

/* A connection that was silent for this long is tested. */
#define SILENCE_NS (25 * CLOCK_NS_PER_S)

struct pg_watch {
	struct watch_index names;
	uint64_t troubles; /* the store's count when this connection was last known to be well */
	uint64_t idle_ns;  /* since when there is nothing to listen for; 0: there is something */
	bool look_at_all;
	bool listens;
	bool is_current; /* nothing has happened since we last looked */
};

struct pg_watch *pg_watch_new(void)
{
	struct pg_watch *w = calloc(1, sizeof(*w));

	if (w != NULL && watch_index_init(&w->names, sizeof(struct watched)) != 0) {
		free(w);
		return NULL;
	}
	return w;
}

void pg_watch_free(struct pg_watch *w)
{
	if (w == NULL)
		return;
	watch_index_done(&w->names);
	free(w);
}

/* ---- names ---- */

int pg_watch_add(void *lane, const char *name, uint64_t cookie)
{
	struct pg_watch *w = ((struct pg_lane *)lane)->watch;

	return watch_index_add(&w->names, name, cookie, true) != NULL ? BATON_OK : BATON_E_MEMORY;
}

void pg_watch_remove(void *lane, const char *name, uint64_t cookie)
{
	struct pg_watch *w = ((struct pg_lane *)lane)->watch;
	struct watched *n = watch_index_find(&w->names, name);

	if (n != NULL && watch_index_unwatch(&w->names, n, cookie) && !watch_index_is_watched(n))
		watch_index_drop(&w->names, n);
}

/* Gives a hint for that election, if it is watched. */
static void watch_hint(struct pg_watch *w, const char *name)
{
	const struct watched *n = watch_index_find(&w->names, name);

	if (n != NULL)
		watch_index_hint(&w->names, n);
}

/* ---- waking up ---- */

static void watch_signal(struct pg_lane *l)
{
	uint64_t one = 1;
	ssize_t rc = write(l->wake_fd, &one, sizeof(one));

	(void)rc; /* the counter is full: the lane will wake up anyway */
}

void pg_watch_wake(void *lane)
{
	struct pg_lane *l = lane;

	atomic_store(&l->woken, true);
	watch_signal(l);
}

void pg_watch_nudge(struct pg_store *store)
{
	store_lock(&store->base);
	if (store->watcher != NULL)
		watch_signal(store->watcher);
	store_unlock(&store->base);
}

/* ---- the ends of leases ---- */

static uint64_t expiry_due_ns(const struct pg_store *store, const struct watched_lease *s,
			      uint64_t now_ns)
{
	return s->told ? EXPIRY_NEVER : expiry_end_ns(s, &store->clock, now_ns);
}

/* When the first lease is due; notes for the other lanes that we sleep until then. */
static uint64_t next_expiry_ns(struct pg_store *store, uint64_t limit_ns)
{
	uint64_t now_ns = clock_boot_ns();

	store_lock(&store->base);
	for (size_t i = 0; i < store->watched_leases.n; i++) {
		uint64_t due = expiry_due_ns(store, &store->watched_leases.list[i], now_ns);

		limit_ns = due < limit_ns ? due : limit_ns;
	}
	store->sleeps_ns = limit_ns;
	store_unlock(&store->base);
	return limit_ns;
}

static bool has_expired_lease(struct pg_store *store)
{
	uint64_t now_ns = clock_boot_ns();
	bool any = false;

	store_lock(&store->base);
	for (size_t i = 0; i < store->watched_leases.n; i++)
		any = any || expiry_due_ns(store, &store->watched_leases.list[i], now_ns) <= now_ns;
	store_unlock(&store->base);
	return any;
}

/* Gives hints for the elections whose lease has ended. */
static void hint_ended(struct pg_lane *l, const PGresult *elections)
{
	struct pg_store *store = l->store;
	uint64_t now_ns = clock_boot_ns();

	for (int i = 0; i < PQntuples(elections); i++) {
		store_lock(&store->base);
		const struct watched_lease *s =
			expiry_find(&store->watched_leases, PQgetvalue(elections, i, 1));
		bool ended = s == NULL || expiry_end_ns(s, &store->clock, now_ns) <= now_ns;

		store_unlock(&store->base);
		if (ended)
			watch_hint(l->watch, PQgetvalue(elections, i, 0));
	}
}

/* Marks leases that have ended as told, so that each is told once. A lease that is gone, or holds
 * none of our elections, is forgotten. */
static void settle_ended(struct pg_lane *l, const PGresult *elections)
{
	struct pg_store *store = l->store;
	uint64_t now_ns = clock_boot_ns();

	store_lock(&store->base);
	for (size_t i = store->watched_leases.n; i > 0; i--) {
		struct watched_lease *s = &store->watched_leases.list[i - 1];
		bool holds = false;

		if (expiry_due_ns(store, s, now_ns) > now_ns)
			continue;
		for (int row = 0; row < PQntuples(elections) && !holds; row++)
			holds = strcmp(PQgetvalue(elections, row, 1), s->id) == 0;
		s->told = true;
		if (s->gone || !holds)
			expiry_drop(&store->watched_leases, s->id);
	}
	store_unlock(&store->base);
}

/* Some leases may have ended: asks about them once more, and gives hints for those that have. */
static int ask_about_ended(struct pg_lane *l, struct pg_lane *s, struct baton_call *call)
{
	struct pg_text ids = {0};
	uint64_t asked_ns = 0;
	int outcome = BATON_OUTCOME_OK;

	if (has_expired_lease(l->store) && pg_watched_ids(l->store, &ids)) {
		outcome = pg_begin(s, call, 0);
		if (outcome == 0) {
			const char *const params[] = {ids.at};

			asked_ns = clock_boot_ns();
			pg_push(s, PG_LEASES_SEEN, 1, params);
			pg_push(s, PG_HELD_BY, 1, params);
			outcome = pg_run(s);
		}
	}
	if (outcome == BATON_OUTCOME_OK && asked_ns != 0) {
		pg_watched_seen(s, pg_result(s, 0), asked_ns);
		hint_ended(l, pg_result(s, 1));
		settle_ended(l, pg_result(s, 1));
	}
	pg_text_done(&ids);
	pg_results_clear(s);
	return outcome;
}

/* ---- the connection ---- */

static void stop_listening(struct pg_lane *l)
{
	atomic_store(&l->store->listening, false);
	l->watch->listens = false;
}

/* Without tables there is nothing to hear of an election that we lead: it has no orders, and it
 * ends with its session. So a process that leads all its elections has no other session than
 * theirs. */
static bool has_to_listen(struct pg_lane *l)
{
	struct pg_watch *w = l->watch;
	bool is_tableless = pg_is_tableless(l->store);
	const struct watched *n = watch_index_next(&w->names, NULL);

	while (is_tableless && n != NULL && !tableless_is_other(l->store, n->node.key))
		n = watch_index_next(&w->names, n);
	if (is_tableless)
		w->idle_ns = n != NULL ? 0 : w->idle_ns != 0 ? w->idle_ns : clock_boot_ns();
	if (w->idle_ns != 0 && clock_boot_ns() - w->idle_ns >= PG_REST_NS && l->conn.pg != NULL) {
		stop_listening(l);
		pg_conn_free(&l->conn);
		pg_waiters_free(l->store); /* no process waits for its own lock */
	}
	return n != NULL;
}

static int start_listening(struct pg_lane *l, struct pg_lane *s, struct baton_call *call)
{
	struct pg_watch *w = l->watch;
	int outcome = pg_begin(s, call, 0);

	w->troubles = atomic_load(&l->store->troubles);
	if (outcome != 0)
		return outcome;
	if (!s->conn.pooled)
		pg_push(s, PG_LISTEN, 0, NULL);
	outcome = pg_run(s);
	pg_results_clear(s);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	s->conn.listens = true;
	w->listens = true;
	w->look_at_all = true;
	atomic_store(&l->store->listening, !s->conn.pooled);
	return outcome;
}

/* Tests the connection by an empty transaction. */
static int ping(struct pg_lane *l, struct pg_lane *s, struct baton_call *call)
{
	uint64_t troubles = atomic_load(&l->store->troubles);
	int outcome = pg_begin(s, call, 0);

	if (outcome == 0)
		outcome = pg_run(s);
	pg_results_clear(s);
	l->watch->troubles = troubles;
	return outcome;
}

static void take_notifications(struct pg_lane *l, struct pg_lane *s)
{
	PGnotify *n = l->store->heard;

	l->store->heard = NULL;
	if (n == NULL)
		n = pg_next_heard(l->store, &s->conn);
	while (n != NULL) {
		watch_hint(l->watch, n->extra);
		PQfreemem(n);
		n = pg_next_heard(l->store, &s->conn);
	}
}

/* The lock of a lease's session was free, and at that moment the lease was as in the answer to
 * PG_AWAITED. If it has been renewed since, a claim on its elections finds another `seq`. */
static void lease_freed(struct pg_lane *l, const char *id, const PGresult *r)
{
	bool is_there = PQntuples(r) > 0;
	struct watched_lease *s;

	store_lock(&l->store->base);
	if (is_there)
		s = expiry_note(&l->store->watched_leases, id, pg_number(r, 0, 0),
				pg_number(r, 0, 2), (uint64_t)pg_number(r, 0, 1) * CLOCK_NS_PER_MS,
				clock_boot_ns());
	else
		s = expiry_find(&l->store->watched_leases, id);
	if (s != NULL) {
		s->freed = true;
		s->told = is_there;
	}
	store_unlock(&l->store->base);
	for (int i = 0; i < PQntuples(r); i++)
		if (!PQgetisnull(r, i, 3))
			watch_hint(l->watch, PQgetvalue(r, i, 3));
}

static void lock_freed(struct pg_lane *l, const char *label, const PGresult *lease, bool is_free)
{
	if (lease != NULL) {
		lease_freed(l, label, lease);
		return;
	}
	if (is_free)
		tableless_lock_freed(l->store, label);
	watch_hint(l->watch, label);
}

/* s: the session that listens. */
static int watch_catch_up(struct pg_lane *l, struct pg_lane *s, struct baton_call *call)
{
	struct pg_watch *w = l->watch;
	int outcome = BATON_OUTCOME_OK;

	if (w->listens && !(pg_is_connected(s) && s->conn.listens))
		stop_listening(l);
	if (!w->listens)
		outcome = start_listening(l, s, call);
	else if (w->troubles != atomic_load(&l->store->troubles) ||
		 clock_boot_ns() - s->conn.heard_ns > SILENCE_NS)
		outcome = ping(l, s, call);
	if (outcome == BATON_OUTCOME_OK && !s->conn.pooled)
		outcome = ask_about_ended(l, s, call);
	take_notifications(l, s);
	return outcome;
}

/* Brings everything up to date. OK, or why not. */
static int watch_attend(struct pg_lane *l, struct baton_call *call)
{
	/* A standby that hears of a dead leader needs the session that we would use here. */
	if (pg_waiters_attend(l, lock_freed, false) && watch_index_has_hints(&l->watch->names))
		return BATON_OUTCOME_OK;
	if (l->watch->is_current && l->watch->listens)
		return BATON_OUTCOME_OK;
	struct pg_lane *s = pg_session_take_idle(l);

	if (s == NULL) /* we are nudged when it is free */
		return BATON_OUTCOME_OK;
	struct baton_call inner = {.deadline_ns = clock_boot_ns() + pg_watch_call_ns(l->store)};

	l->nudged = false;
	int outcome = watch_catch_up(l, s, &inner);

	/* The session has just been ended. We try to open another one: if that fails, its reason
	 * counts. */
	if (pg_may_repeat(s, outcome))
		outcome = watch_catch_up(l, s, &inner);
	if (outcome != BATON_OUTCOME_OK) {
		call->error = inner.error;
		stop_listening(l);
		/* S7: a candidate that may still lead keeps its lock. */
		if (s == l && !s->conn.connecting)
			pg_conn_close(s);
	}
	l->watch->is_current = outcome == BATON_OUTCOME_OK && !l->nudged;
	pg_session_give(l, s);
	return outcome;
}

/* ---- waiting ---- */

static int watch_take_hints(struct pg_watch *w, uint64_t *cookies, size_t max)
{
	if (!w->look_at_all || max == 0)
		return (int)watch_index_take(&w->names, cookies, max);
	w->look_at_all = false;
	watch_index_forget_hints(&w->names);
	cookies[0] = BATON_HINT_ALL;
	return 1;
}

/* Sleeps until something comes, the lane is woken, or it is time. */
static void watch_doze(struct pg_lane *l, uint64_t until_ns)
{
	const struct pg_store *store = l->store;
	const struct pg_conn *c = store->lock_lane != NULL ? &store->lock_lane->conn : &l->conn;
	bool reads =
		(l->watch->listens || store->owed_ns != 0) && !atomic_load(&store->watch_waits);
	int heard_fd = reads ? atomic_load(&c->fd) : -1; /* else another lane is reading */
	struct pollfd fds[2 + PG_WAITERS_MAX] = {{.fd = l->wake_fd, .events = POLLIN},
						 {.fd = heard_fd, .events = POLLIN}};
	size_t n = 2 + pg_waiters_poll(l->store, fds + 2);
	uint64_t now_ns = clock_boot_ns();
	uint64_t nudges;

	uint64_t us = now_ns < until_ns ? (until_ns - now_ns + 999) / 1000 : 0;
	struct timespec wait = {.tv_sec = (time_t)(us / 1000000),
				.tv_nsec = (long)(us % 1000000) * 1000};
	bool waiter = ppoll(fds, n, &wait, NULL) > 0 && fds[0].revents == 0 && fds[1].revents == 0;

	l->watch->is_current = l->watch->is_current && waiter; /* only a lock waiter has woken us */
	if (fds[0].revents != 0 && read(l->wake_fd, &nudges, sizeof(nudges)) < 0)
		return;
}

/* When to do something again, if nothing comes before. */
static uint64_t watch_next_ns(struct pg_lane *l, uint64_t until_ns)
{
	const struct pg_watch *w = l->watch;
	uint64_t rest_ns = pg_waiters_rest(l->store);
	uint64_t spare_ns = pg_spare_rest(l->store);

	rest_ns = spare_ns < rest_ns ? spare_ns : rest_ns;
	if (w->listens && w->idle_ns != 0 && w->idle_ns + PG_REST_NS < rest_ns)
		rest_ns = w->idle_ns + PG_REST_NS;
	until_ns = rest_ns < until_ns ? rest_ns : until_ns;
	if (l->store->owed_ns != 0 && l->store->owed_ns < until_ns)
		until_ns = l->store->owed_ns;
	/* Without a turn we can't ask about a lease that is due. */
	if (!w->listens || l->conn.pooled || atomic_load(&l->store->watch_waits))
		return until_ns;
	return next_expiry_ns(l->store, until_ns);
}

int pg_watch_wait(void *lane, struct baton_call *call, uint64_t *cookies, size_t max)
{
	struct pg_lane *l = lane;
	struct pg_watch *w = l->watch;

	for (;;) {
		/* If there is nothing to hear, we don't connect; but what comes on an open
		 * connection must be read. */
		bool attends = (has_to_listen(l) || w->listens) && !atomic_load(&l->woken);

		if (attends && watch_attend(l, call) != BATON_OUTCOME_OK && !atomic_load(&l->woken))
			return call->error.code < 0 ? call->error.code : BATON_E_UNAVAILABLE;
		int n = watch_take_hints(w, cookies, max);

		if (n > 0 || atomic_exchange(&l->woken, false) ||
		    clock_boot_ns() >= call->deadline_ns)
			return n;
		/* To wait for a lock takes a connection, so hints that are known already go
		 * first. */
		if (w->listens && !l->conn.pooled && pg_waiters_attend(l, lock_freed, true))
			continue;
		watch_doze(l, watch_next_ns(l, call->deadline_ns));
	}
}
