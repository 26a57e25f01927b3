/*
 * driver.c: the postgres driver: its functions, its store and its lanes. A lane is a connection
 * that is made when it is first needed. The questions of people (baton status) come on lanes that
 * live for one call; the connection of such a lane is kept for the next one.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "store/postgres/postgres.h"

/* What a lease must have to be renewed three times over a network, with TLS, in time. */
#define MIN_LEASE_NS ((uint64_t)300000000)

static const char promises[] =
	"At most one leader at a time and terms that only grow, among all processes that use the "
	"same database and schema, as long as the server keeps what it committed: through its "
	"crashes and restarts, and through jumps of its clock. Through a failover only with "
	"synchronous replication: with asynchronous replication the last commits may be lost, and "
	"with them a claim, so that two may lead for a moment. Terms still grow then as long as "
	"one candidate lives that saw the highest one: check them where it matters.";

static void store_free(struct pg_store *s)
{
	for (size_t i = 0; i < PG_STATEMENTS; i++)
		free(s->sql[i]);
	if (!s->forgotten)
		pg_conn_free(&s->spare);
	if (!s->forgotten)
		pg_lookups_free(s->lookups);
	sights_done(&s->sights);
	pg_conninfo_done(&s->info);
	(void)pthread_mutex_destroy(&s->lock);
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
		s->sql[i] = text.failed ? NULL : pg_sql(text.at, s->info.schema);
		pg_text_done(&text);
		if (s->sql[i] == NULL)
			return false;
	}
	return true;
}

static int store_open(const struct baton_store_config *config, void **store,
		      struct baton_error *err)
{
	struct pg_store *s;

	if (config == NULL || config->size < sizeof(*config)) {
		pg_error(err, BATON_E_INVALID, "The store's configuration is not one.");
		return BATON_E_INVALID;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL) {
		pg_error(err, BATON_E_MEMORY, "There is no memory for the store.");
		return BATON_E_MEMORY;
	}
	int code = pg_conninfo_parse(&s->info, config->url, err);

	(void)pthread_mutex_init(&s->lock, NULL);
	atomic_store(&s->spare.fd, -1);
	if (code == 0 && !make_statements(s)) {
		pg_error(err, BATON_E_MEMORY, "There is no memory for the store.");
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

	(void)store;
	return &traits;
}

/* ---- lanes ---- */

static int lane_open(void *store, int kind, void **lane, struct baton_error *err)
{
	struct pg_store *s = store;
	struct pg_lane *l = calloc(1, sizeof(*l));
	bool watches = kind == BATON_LANE_WATCH;

	if (l != NULL) {
		l->wake_fd = watches ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
		l->watch = watches ? pg_watch_new() : NULL;
	}
	if (l == NULL || (watches && (l->watch == NULL || l->wake_fd < 0))) {
		if (l != NULL && l->wake_fd >= 0)
			(void)close(l->wake_fd);
		if (l != NULL)
			pg_watch_free(l->watch);
		free(l);
		pg_error(err, BATON_E_MEMORY, "There is no memory for a lane of the store.");
		return BATON_E_MEMORY;
	}
	l->store = s;
	atomic_store(&l->conn.fd, -1);
	(void)pthread_mutex_lock(&s->lock);
	l->next = s->lanes;
	s->lanes = l;
	if (watches)
		s->watcher = l;
	(void)pthread_mutex_unlock(&s->lock);
	*lane = l;
	return 0;
}

static void unlink_lane(struct pg_lane *l)
{
	struct pg_store *s = l->store;

	(void)pthread_mutex_lock(&s->lock);
	struct pg_lane **at = &s->lanes;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	if (s->watcher == l)
		s->watcher = NULL;
	/* A well one is left for whoever comes next. */
	if (l->conn.pg != NULL && l->watch == NULL && s->spare.pg == NULL &&
	    PQtransactionStatus(l->conn.pg) == PQTRANS_IDLE)
		pg_conn_move(&s->spare, &l->conn);
	(void)pthread_mutex_unlock(&s->lock);
}

static void lane_close(void *lane)
{
	struct pg_lane *l = lane;

	if (l == NULL)
		return;
	pg_results_clear(l);
	if (!l->store->forgotten) {
		unlink_lane(l);
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

/* In a child of fork(): the sessions are the parent's, so no goodbye may be said on them (S10). */
static void forget(void *store)
{
	struct pg_store *s = store;

	s->forgotten = true;
	for (struct pg_lane *l = s->lanes; l != NULL; l = l->next) {
		forget_fd(&l->conn.fd);
		if (l->wake_fd >= 0)
			(void)close(l->wake_fd);
		l->wake_fd = -1;
	}
	forget_fd(&s->spare.fd);
}

static const char *const schemes[] = {"postgres", "postgresql", NULL};

__attribute__((visibility("default"))) extern const struct baton_driver baton_driver;

const struct baton_driver baton_driver = {
	.abi = BATON_STORE_ABI,
	.name = "postgres",
	.schemes = schemes,
	.open = store_open,
	.close = store_close,
	.traits = store_traits,
	.lane_open = lane_open,
	.lane_close = lane_close,
	.forget = forget,
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
};
