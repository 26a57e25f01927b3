/*
 * driver.c: the postgres driver: its functions, its store and its lanes. A lane is a connection
 * that is opened when it is first needed. A command (baton status) asks on lanes that live for one
 * call; the connection of such a lane is kept for the next lane.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/postgres/postgres.h"

/* The shortest lease that can be renewed three times in time over a network, with TLS. */
#define MIN_LEASE_NS ((uint64_t)300000000)

/* The server's clock decides here, and nowhere else (expiry.h). */
#define FUNCTIONS_END                                                                      \
	" Programs that call SQL functions (baton schema postgres --functions) go by the " \
	"server's clock: leases that functions made, and all leases in elections that "    \
	"are marked for functions, end by it, so that a jump can let two lead there."

static const char promises[] =
	"At most one leader at a time and terms that only grow, among all processes that use the "
	"same database and schema, as long as the server keeps what it committed: through its "
	"crashes and restarts, and through jumps of its clock. This also holds through a "
	"failover, but only with synchronous replication: with asynchronous replication the last "
	"commits may be lost, and with them a claim, so that two may lead for a moment. Terms "
	"still grow then as long as one candidate lives that saw the highest one: check them "
	"where it matters." FUNCTIONS_END;

static const char advisory_promises[] =
	"At most one leader at a time and terms that only grow, as with mode=lease. Beyond that "
	"the leader holds the advisory lock of its election: other programs that take the same "
	"lock are kept out, and keep the leader out. The lock lasts until the server ends the "
	"leader's session. The server does so when the session was silent for a lease, when it is "
	"terminated, or when the server itself ends. Other programs get the lock when the leader's "
	"process dies, and don't wait for a deadline that it told others (outlive)." FUNCTIONS_END;

static const char fast_promises[] =
	"A dead leader is replaced at once, and terms only grow, as with mode=lease. There is "
	"one leader at a time only while the server keeps its sessions: if it ends a leader's "
	"session (pg_terminate_backend, a restart, a failover), another candidate can lead "
	"before the old leader knows. Check terms where it matters." FUNCTIONS_END;

static void store_free(struct pg_store *s)
{
	for (size_t i = 0; i < PG_STATEMENTS; i++)
		free(s->sql[i]);
	if (!s->base.forgotten) {
		pg_conn_free(&s->spare);
		pg_lookups_free(s->lookups);
		pg_session_end_lost(s);
	}
	tableless_sessions_end(s);
	tableless_terms_done(s);
	pg_waiters_free(s);
	PQfreemem(s->heard);
	pg_lane_free(s->lock_lane);
	expiry_done(&s->watched_leases);
	pg_conninfo_done(&s->info);
	if (!s->base.forgotten)
		store_turn_done(&s->lock_turn);
	store_base_done(&s->base);
	free(s);
}

static bool make_statements(struct pg_store *s)
{
	for (size_t i = 0; i < PG_STATEMENTS; i++) {
		struct pg_text text = {0};

		pg_text_add(&text, "/* ");
		pg_text_add(&text, pg_statement_names[i]);
		pg_text_add(&text, " */ ");
		pg_text_add(&text, pg_statements[i]);
		s->sql[i] = text.failed ? NULL : pg_sql(text.at, &s->info);
		pg_text_done(&text);
		if (s->sql[i] == NULL)
			return false;
	}
	return true;
}

/* No lock lane is made without tables, because there each claim has a session of its own. */
static bool make_lock_lane(struct pg_store *s)
{
	if (pg_is_tableless(s) || (!s->info.advisory && !s->info.fast))
		return true;
	s->lock_lane = pg_lane_new(s);
	return s->lock_lane != NULL;
}

static int store_open(const struct baton_store_config *config, void **store,
		      struct baton_error *err)
{
	struct pg_store *s;

	if (config == NULL || config->size < sizeof(*config)) {
		store_fail(err, BATON_E_INVALID, "the store's configuration is not valid");
		return BATON_E_INVALID;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL) {
		store_fail(err, BATON_E_MEMORY, "no memory for the store");
		return BATON_E_MEMORY;
	}
	int code = pg_conninfo_parse(&s->info, config->url, err);

	(void)store_base_init(&s->base);
	(void)store_turn_init(&s->lock_turn);
	atomic_store(&s->spare.fd, -1);
	if (code == 0 && (!make_statements(s) || !make_lock_lane(s))) {
		store_fail(err, BATON_E_MEMORY, "no memory for the store");
		code = BATON_E_MEMORY;
	}
	if (code != 0) {
		store_free(s);
		return code;
	}
	*store = s;
	return 0;
}

static void store_close(void *store)
{
	if (store != NULL)
		store_free(store);
}

static const struct baton_traits *store_traits(const void *store)
{
	static const struct baton_traits traits = {
		.min_lease_ns = MIN_LEASE_NS,
		.pushes = true,
		.keeps_history = true,
		.promises = promises,
	};
	static const struct baton_traits advisory_traits = {
		.min_lease_ns = MIN_LEASE_NS,
		.pushes = true,
		.keeps_history = true,
		.promises = advisory_promises,
	};
	static const struct baton_traits fast_traits = {
		.size = sizeof(struct baton_traits),
		.min_lease_ns = MIN_LEASE_NS,
		.pushes = true,
		.proves_death = true,
		.keeps_history = true,
		.promises = fast_promises,
		.outlives = true,
	};
	const struct pg_store *s = store;

	if (s != NULL && pg_is_tableless(s))
		return &tableless_traits;
	if (s != NULL && s->info.fast)
		return &fast_traits;
	return s != NULL && s->info.advisory ? &advisory_traits : &traits;
}

/* ---- lanes ---- */

/* The store knows all its lanes, for store_forget(). */
struct pg_lane *pg_lane_new(struct pg_store *store)
{
	struct pg_lane *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->store = store;
	l->wake_fd = -1;
	atomic_store(&l->conn.fd, -1);
	store_lane_add(&store->base, &l->link);
	return l;
}

static bool make_watcher(struct pg_lane *l)
{
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->watch = pg_watch_new();
	if (l->watch == NULL || l->wake_fd < 0)
		return false;
	store_lock(&l->store->base);
	l->store->watcher = l;
	store_unlock(&l->store->base);
	return true;
}

static int lane_open(void *store, int kind, void **lane, struct baton_error *err)
{
	struct pg_lane *l = pg_lane_new(store);

	if (l == NULL || (kind == BATON_LANE_WATCH && !make_watcher(l))) {
		pg_lane_free(l);
		store_fail(err, BATON_E_MEMORY, "no memory for a lane of the store");
		return BATON_E_MEMORY;
	}
	l->is_plain = kind != BATON_LANE_WATCH;
	l->renews = kind == BATON_LANE_RENEW;
	*lane = l;
	return 0;
}

static void lane_unlink(struct pg_lane *l)
{
	struct pg_store *s = l->store;

	store_lane_remove(&s->base, &l->link);
	store_lock(&s->base);
	if (s->watcher == l)
		s->watcher = NULL;
	/* A connection that is well is left for the next lane. */
	if (l->conn.pg != NULL && l->is_plain && s->spare.pg == NULL &&
	    PQtransactionStatus(l->conn.pg) == PQTRANS_IDLE) {
		pg_conn_move(&s->spare, &l->conn);
		s->spare_ns = clock_boot_ns();
	}
	store_unlock(&s->base);
	if (s->lock_lane != NULL)
		pg_watch_nudge(s);
}

static void lane_close(void *lane)
{
	pg_lane_free(lane);
}

void pg_lane_free(struct pg_lane *l)
{
	if (l == NULL)
		return;
	pg_results_clear(l);
	if (!l->store->base.forgotten) {
		lane_unlink(l);
		pg_conn_free(&l->conn);
		if (l->wake_fd >= 0)
			(void)close(l->wake_fd);
	}
	pg_watch_free(l->watch);
	free(l);
}

static void forget_fd(_Atomic int *fd)
{
	int old = atomic_exchange(fd, -1);

	if (old >= 0)
		(void)close(old);
}

/* Called in a child of fork(). The sessions are the parent's, so nothing may be sent on them
 * (S10). */
static void store_forget(void *store)
{
	struct pg_store *s = store;

	s->base.forgotten = true;
	for (struct store_lane *at = s->base.lanes; at != NULL; at = at->next) {
		struct pg_lane *l = (struct pg_lane *)at;

		forget_fd(&l->conn.fd);
		if (l->wake_fd >= 0)
			(void)close(l->wake_fd);
		l->wake_fd = -1;
	}
	forget_fd(&s->spare.fd);
	for (size_t i = 0; i < PG_LOST_MAX; i++)
		if (s->parked[i] != NULL)
			(void)close(PQsocket(s->parked[i]));
}

static const char *const schemes[] = {"postgres", "postgresql", NULL};

__attribute__((visibility("default"))) extern const struct baton_driver baton_driver;

const struct baton_driver baton_driver = {
	.abi = BATON_STORE_ABI,
	.size = sizeof(struct baton_driver),
	.name = "postgres",
	.schemes = schemes,
	.open = store_open,
	.close = store_close,
	.traits = store_traits,
	.lane_open = lane_open,
	.lane_close = lane_close,
	.forget = store_forget,
	.lease_open = pg_lease_open,
	.lease_renew = pg_lease_renew,
	.lease_close = pg_lease_close,
	.claims = pg_claims,
	.campaign = pg_campaign,
	.release = pg_release,
	.observe = pg_observe,
	.watch_add = pg_watch_add,
	.watch_remove = pg_watch_remove,
	.watch_wait = pg_watch_wait,
	.watch_wake = pg_watch_wake,
	.publish = pg_publish,
	.withdraw = pg_withdraw,
	.candidates = pg_candidates,
	.order = pg_order,
	.pause = pg_pause,
	.history = pg_history,
	.examine = pg_examine,
	.schema = pg_schema_script,
	.fence = pg_fence_script,
	.list = pg_list,
	.functions = pg_functions_script,
};
