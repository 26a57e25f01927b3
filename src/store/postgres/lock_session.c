/*
 * lock_session.c: the session that holds locks, for mode=advisory and for fast=1. It belongs to no
 * lane: all lanes take turns on it, because a session lock belongs to its session, and because
 * there should be no other session. When a process dies, the server ends all of its sessions at
 * once, and needs some three milliseconds of a core for each: a successor that was told of the lock
 * waits for a core all that time. So a renewal may find a campaign, a look or the watch lane before
 * it. It waits for one of these at most, and each has only as much time as one try of a renewal, a
 * third of the grace (L6).
 *
 * The session must not end too soon (S7, rule 3), neither by the server nor by us. The server is
 * told to end this session when it was silent for a whole lease, and that nothing else may end it
 * before. We ask a session again that doesn't answer in time, and then *park* it: it is neither
 * used nor closed until its lease is over, or until another session of ours has the locks.
 * Meanwhile a fresh session renews. The fresh session ends the old ones at the server, inside a
 * transaction that has renewed the row before: a process that was waiting for the lock, and gets it
 * for a moment, finds a lease that was renewed. The transaction waits for the beacon: no session
 * can have the beacon before the old session has ended, and all its locks with it.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "store/postgres/postgres.h"

/* How long a request of the watch lane may take at most: no caller waits for it. */
#define WATCH_NS (2 * CLOCK_NS_PER_S)
/* The time to read what is there already. */
#define GLANCE_NS CLOCK_NS_PER_MS

uint64_t pg_watch_call_ns(const struct pg_store *store)
{
	uint64_t patience_ns = atomic_load(&store->patience_ns);

	/* A renewal waits no longer for the watch lane than for others. 0: no other lane has needed
	 * the session yet. A lane that does will need what the watch lane is waiting for: that the
	 * session is there. */
	return patience_ns > 0 && patience_ns < WATCH_NS ? patience_ns : WATCH_NS;
}

/* Waits for an answer that is late, for half of the call's time; then the session is parked. */
static void session_settle(struct pg_store *store, struct baton_call *call)
{
	uint64_t now_ns = clock_boot_ns();
	struct baton_call half = {.deadline_ns = now_ns};

	if (!store->lock_lane->owes)
		return;
	if (call->deadline_ns > now_ns)
		half.deadline_ns += (call->deadline_ns - now_ns) / 2;
	store->lock_lane->call = &half;
	store->lock_lane->begun_ns = now_ns;
	if (!pg_drain(store->lock_lane))
		pg_conn_close(store->lock_lane);
	store->lock_lane->owes = false;
}

/* For the watch lane, which may be the only user of the session: reads what has come, without
 * waiting, and gives up an answer that is late by a whole call. False: the answer is still to
 * come. */
static bool session_is_settled(struct pg_store *store)
{
	struct pg_lane *h = store->lock_lane;
	uint64_t now_ns = clock_boot_ns();
	uint64_t until_ns = h->begun_ns + 2 * pg_watch_call_ns(store);
	struct baton_call glance = {.deadline_ns = now_ns + GLANCE_NS};

	store->owed_ns = 0;
	if (!h->owes)
		return true;
	h->call = &glance;
	if (pg_drain(h))
		return true;
	if (now_ns < until_ns && h->conn.pg != NULL && PQstatus(h->conn.pg) == CONNECTION_OK) {
		store->owed_ns = until_ns;
		return false;
	}
	pg_conn_close(h);
	h->owes = false;
	return true;
}

struct pg_lane *pg_session_take(struct pg_lane *lane, struct baton_call *call)
{
	struct pg_store *store = lane->store;

	if (store->lock_lane == NULL)
		return lane;
	uint64_t now_ns = clock_boot_ns();

	if (call->deadline_ns > now_ns)
		atomic_store(&store->patience_ns, call->deadline_ns - now_ns);
	if (store_turn_take(&store->lock_turn, call->deadline_ns, lane->renews)) {
		session_settle(store, call);
		return store->lock_lane;
	}
	store_fail(&call->error, BATON_E_TIMEOUT,
		   "the session that holds the locks was busy until the call's time was up");
	return NULL;
}

struct pg_lane *pg_session_take_idle(struct pg_lane *lane)
{
	struct pg_store *store = lane->store;

	if (store->lock_lane == NULL)
		return lane;
	atomic_store(&store->watch_waits, true);
	if (!store_turn_take(&store->lock_turn, 0, false))
		return NULL;
	atomic_store(&store->watch_waits, false);
	store->lock_lane->user = lane;
	if (session_is_settled(store))
		return store->lock_lane;
	pg_session_give(lane, store->lock_lane);
	return NULL;
}

PGnotify *pg_next_heard(struct pg_store *store, struct pg_conn *c)
{
	PGnotify *n = c->pg != NULL ? PQnotifies(c->pg) : NULL;

	/* No hint is needed for what our own campaign has written: its caller is about to get the
	 * answer. */
	while (n != NULL && n->be_pid == atomic_load(&store->claimer_pid) &&
	       store_is_asked(&store->base, n->extra)) {
		PQfreemem(n);
		n = PQnotifies(c->pg);
	}
	return n;
}

/* Notifications that came meanwhile are for the watch lane, which is told that there is one. */
static bool session_has_heard(struct pg_store *store)
{
	if (store->heard == NULL)
		store->heard = pg_next_heard(store, &store->lock_lane->conn);
	return store->heard != NULL;
}

void pg_session_give(struct pg_lane *lane, const struct pg_lane *taken)
{
	struct pg_store *store = lane->store;

	if (taken == lane)
		return;
	bool heard = lane->watch == NULL && session_has_heard(store);

	store->lock_lane->user = NULL;
	store_turn_give(&store->lock_turn);
	if (atomic_exchange(&store->watch_waits, false) || heard)
		pg_watch_nudge(store);
}

/* ---- sessions that were lost ---- */

static void session_finish(PGconn *pg)
{
	if (pg == NULL)
		return;
	(void)shutdown(PQsocket(pg), SHUT_RDWR); /* else its last message may take long */
	PQfinish(pg);
}

void pg_session_end_lost(struct pg_store *store)
{
	for (size_t i = 0; i < PG_LOST_MAX; i++) {
		session_finish(store->parked[i]);
		store->parked[i] = NULL;
		store->lost_pids[i] = 0;
	}
}

void pg_session_lose(struct pg_store *store, bool park)
{
	struct pg_conn *c = &store->lock_lane->conn;
	size_t at = 0;

	if (c->pg == NULL || c->connecting)
		return;
	while (at < PG_LOST_MAX && (store->lost_pids[at] != 0 || store->parked[at] != NULL))
		at++;
	if (at == PG_LOST_MAX) { /* the oldest has surely been silent for too long */
		session_finish(store->parked[0]);
		for (at = 0; at + 1 < PG_LOST_MAX; at++) {
			store->parked[at] = store->parked[at + 1];
			store->lost_pids[at] = store->lost_pids[at + 1];
			store->lost_starts[at] = store->lost_starts[at + 1];
		}
	}
	store->lost_pids[at] = c->pid;
	store->lost_starts[at] = c->start_us;
	store->parked[at] = park ? pg_conn_take(c) : NULL;
}

/* ---- what it says ---- */

void pg_lease_ms(const struct baton_lease *lease, char text[24])
{
	(void)snprintf(text, 24, "%" PRIu64,
		       (lease->ttl_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS);
}

/* A session with one purpose gets no limits, and forgets the limits of the lane that had it
 * before. */
void pg_push_session(struct pg_lane *l, const struct baton_lease *lease)
{
	uint64_t ms = (lease->ttl_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;
	char values[96];

	if (ms > INT_MAX)
		ms = INT_MAX;
	/* A session that falls silent has a whole lease; TCP gives up no sooner. */
	(void)snprintf(values, sizeof(values), "{%" PRIu64 ",%" PRIu64 ",%" PRIu64 "%s}", ms, ms,
		       ms / 1000 + 1, l->is_apart ? ",0,0" : "");
	pg_push(l, PG_SESSION, 2,
		(const char *const[]){
			l->is_apart ? "{idle_session_timeout,tcp_user_timeout,tcp_keepalives_idle,"
				      "statement_timeout,lock_timeout}"
				    : "{idle_session_timeout,tcp_user_timeout,tcp_keepalives_idle}",
			values});
}

static void push_end_lost(struct pg_lane *l)
{
	const struct pg_store *store = l->store;
	struct pg_text pids = {0}, starts = {0};
	bool any = false;

	pg_array_begin(&pids);
	pg_array_begin(&starts);
	for (size_t i = 0; i < PG_LOST_MAX; i++) {
		if (store->lost_pids[i] == 0)
			continue;
		pg_array_number(&pids, store->lost_pids[i]);
		pg_array_number(&starts, store->lost_starts[i]);
		any = true;
	}
	pg_array_end(&pids);
	pg_array_end(&starts);
	if (any && !pids.failed && !starts.failed)
		pg_push(l, PG_END_OLD, 2, (const char *const[]){pids.at, starts.at});
	pg_text_done(&pids);
	pg_text_done(&starts);
}

/* ---- whose locks ---- */

/* The session holds the locks of one lease, the one that campaigns. A lease that is opened beside
 * it, as baton_examine() does, gets no locks, and doesn't take these away. */
bool pg_session_is_for(const struct pg_lane *l, const struct baton_lease *lease)
{
	return l == l->store->lock_lane && strcmp(l->store->session_lease_id, lease->id) == 0;
}

/* For two leases of one owner. Their ids are "who-which-" and a hexadecimal number: the shorter id
 * is older. */
static bool is_older(const char *id, const char *than)
{
	size_t n = strlen(id), m = strlen(than);

	return n != m ? n < m : strcmp(id, than) < 0;
}

static bool is_same_owner(const char *a, const char *b)
{
	const char *dash = strrchr(a, '-');

	return dash != NULL && strncmp(a, b, (size_t)(dash - a) + 1) == 0 &&
	       strrchr(b, '-') == b + (dash - a);
}

bool pg_session_could_be_for(const struct pg_lane *l, const struct baton_lease *lease)
{
	const struct pg_store *store = l->store;

	if (l != store->lock_lane)
		return false;
	return is_same_owner(store->session_lease_id, lease->id)
		       ? !is_older(lease->id, store->session_lease_id)
		       : !store->session_campaigns;
}

void pg_push_lock_session(struct pg_lane *l, const struct baton_lease *lease)
{
	struct pg_store *store = l->store;
	char ttl_ms[24];

	if (l != store->lock_lane || (l->conn.has_locks && pg_session_is_for(l, lease)))
		return;
	if (!pg_session_is_for(l, lease))
		store->session_campaigns = false;
	(void)snprintf(store->session_lease_id, sizeof(store->session_lease_id), "%s", lease->id);
	l->conn.has_locks = false;
	l->conn.may_have_locks = true;
	pg_lease_ms(lease, ttl_ms);
	if (!pg_is_pushed(l, PG_LEASE_RENEW) && !pg_is_pushed(l, PG_LEASE_OPEN))
		pg_push(l, PG_LEASE_RENEW, 2, (const char *const[]){lease->id, ttl_ms});
	pg_push_session(l, lease);
	push_end_lost(l);
	/* Needed even if no other session waits for the beacon: we get it only when the old session
	 * has ended. */
	pg_push(l, PG_BEACON, 1, (const char *const[]){lease->id});
}

void pg_session_is_locked(struct pg_lane *l, const struct baton_lease *lease)
{
	if (!pg_session_is_for(l, lease) || l->conn.has_locks)
		return;
	l->conn.has_locks = true;
	pg_session_end_lost(l->store);
}

void pg_push_unlock(struct pg_lane *l)
{
	l->conn.has_locks = false;
	pg_push(l, PG_UNLOCK_ALL, 0, NULL);
}

void pg_unlocked(struct pg_lane *l)
{
	l->conn.may_have_locks = false;
	l->conn.unsure = false;
	l->store->session_lease_id[0] = '\0';
	l->store->session_campaigns = false;
	pg_session_end_lost(l->store);
}

/* ---- locks that no row tells of ---- */

bool pg_is_ours(const PGresult *r, int row)
{
	static const char begin[] = "/* baton_";

	return strncmp(PQgetvalue(r, row, PG_LOCK_QUERY), begin, sizeof(begin) - 1) == 0;
}

void pg_name_session(const PGresult *r, int row, char *out, size_t size)
{
	bool has_app = PQgetvalue(r, row, PG_LOCK_APP)[0] != '\0';
	bool has_address = PQgetvalue(r, row, PG_LOCK_ADDRESS)[0] != '\0';

	(void)snprintf(out, size, "session %s of %.63s%s%.60s%s%.60s",
		       PQgetvalue(r, row, PG_LOCK_PID), PQgetvalue(r, row, PG_LOCK_USER),
		       has_app ? ", " : "", PQgetvalue(r, row, PG_LOCK_APP),
		       has_address ? ", " : "", PQgetvalue(r, row, PG_LOCK_ADDRESS));
}

void pg_fill_locked(struct pg_lane *l, const PGresult *r, struct baton_observation *list, size_t n)
{
	struct pg_store *store = l->store;
	int own = atomic_load(&store->lock_pid);

	for (int row = 0; r != NULL && row < PQntuples(r); row++) {
		int64_t at = pg_number(r, row, PG_LOCK_INDEX);
		int pid = (int)pg_number(r, row, PG_LOCK_PID);

		if (at < 1 || (size_t)at > n || list[at - 1].record->held || pid == own)
			continue;
		struct baton_record *out = list[at - 1].record;
		bool waits = pg_waiter_ask(store, false, list[at - 1].name,
					   pg_number(r, row, PG_LOCK_KEY));

		out->watched = waits && atomic_load(&store->listening);
		if (pg_is_ours(r, row)) {
			/* A session of baton that is about to hold the election, or has just lost
			 * it. */
			out->reserved = true;
			out->free_in_ns = out->watched ? BATON_STORE_NEVER : CLOCK_NS_PER_MS;
		} else {
			out->held = true;
			out->free_in_ns = BATON_STORE_NEVER;
			pg_name_session(r, row, out->leader, sizeof(out->leader));
		}
	}
}
