/*
 * lock_session.c: mode=lock. Beside each claim we hold a named lock (GET_LOCK), so that programs
 * that know nothing of our records can contend, too. One session of its own holds all locks of a
 * store.
 *
 * That session must end with its holder's lease, and not before (rule 3). The server ends it after
 * a silence as long as the lease (wait_timeout). We don't give it up because an answer is late: the
 * request stays under way, and the next call waits for its answer first.
 *
 * Each renewal asks for ownership, not for liveness (rule 4): once, for all locks in one statement.
 * A lock that was lost is never taken again for the same claim. What this must never do: count on a
 * lock that the server did not name as this session's.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/name_table.h"
#include "base/sha256.h"
#include "store/mysql/mysql.h"

#define NAME_MAX_OF_SERVER 64
#define ANSWER_NS (CLOCK_NS_PER_S) /* for the rest of an answer that has begun to come */
#define MANY_LOCKS 50705           /* the first MySQL with more than one lock per session */

/* A lock that was taken for the lease of the session. */
struct taken {
	struct name_node node; /* by the election's name */
	bool is_held;          /* what the server said last */
	char name[];
};

struct mysql_locks {
	struct store_turn turn; /* which lane may use all this */
	struct mysql_lane *lane;
	bool is_pending; /* a request is under way */
	struct name_table taken;
	uint64_t asked_ns; /* the deadline of the call that last asked about all locks */
	char lease[BATON_LEASE_ID_MAX + 1];
};

struct mysql_locks *mysql_locks_new(struct mysql_store *store, struct baton_error *err)
{
	struct mysql_locks *k = calloc(1, sizeof(*k));

	if (k != NULL && store_turn_init(&k->turn) == 0) {
		k->lane = mysql_lane_new(store, NULL);
		if (k->lane != NULL && name_table_init(&k->taken) == 0)
			return k;
		mysql_locks_free(k);
		k = NULL;
	}
	(void)store_fail(err, BATON_E_MEMORY, "no memory for the store");
	free(k);
	return NULL;
}

/* ---- requests that may stay under way ---- */

static void forget_all(struct mysql_locks *k)
{
	name_table_free_all(&k->taken);
	k->asked_ns = 0;
	k->lease[0] = '\0';
}

/* Ends the session, and with it all its locks. */
static void cut_session(struct mysql_locks *k)
{
	struct baton_call over = {.deadline_ns = 0};

	if (k->is_pending)
		(void)mysql_finish(k->lane, &over, NULL, NULL, NULL);
	k->is_pending = false;
	mysql_disconnect(k->lane);
	forget_all(k);
}

void mysql_locks_free(struct mysql_locks *k)
{
	if (k == NULL)
		return;
	if (k->lane != NULL && !k->lane->store->base.forgotten)
		cut_session(k);
	mysql_lane_free(k->lane);
	name_table_done(&k->taken);
	store_turn_done(&k->turn);
	free(k);
}

static bool is_answered(const struct mysql_locks *k, uint64_t deadline_ns)
{
	struct pollfd fd = {.fd = mysql_get_socket(k->lane->session), .events = POLLIN};
	uint64_t now_ns = clock_boot_ns();
	uint64_t left_ms = deadline_ns > now_ns ? (deadline_ns - now_ns) / CLOCK_NS_PER_MS : 0;

	return k->lane->waits_for == 0 || poll(&fd, 1, left_ms < 60000 ? (int)left_ms : 60000) > 0;
}

/* Waits for the answer to the request under way. MYSQL_NO_ANSWER: the session has ended.
 * MYSQL_UNSENT: there is no answer yet, and the request stays under way. */
static int await_answer(struct mysql_locks *k, struct baton_call *call, mysql_row_found *found,
			void *arg)
{
	struct baton_call rest = {.deadline_ns = clock_boot_ns() + ANSWER_NS};

	if (!is_answered(k, call->deadline_ns)) {
		(void)store_fail(&call->error, BATON_E_TIMEOUT,
				 "the server did not answer about a lock in time");
		return MYSQL_UNSENT;
	}
	if (call->deadline_ns > rest.deadline_ns)
		rest.deadline_ns = call->deadline_ns;
	int end = mysql_finish(k->lane, &rest, found, arg, NULL);

	k->is_pending = false;
	if (end != MYSQL_DONE)
		call->error = rest.error;
	if (end == MYSQL_NO_ANSWER)
		cut_session(k);
	return end;
}

/* Carries out the statement in lane->sql. */
static int ask(struct mysql_locks *k, struct baton_call *call, mysql_row_found *found, void *arg)
{
	if (mysql_begin(k->lane, call) != MYSQL_DONE)
		return MYSQL_UNSENT;
	k->is_pending = true;
	return await_answer(k, call, found, arg);
}

/* Waits until no request is under way. False: a request still is. */
static bool settle(struct mysql_locks *k, struct baton_call *call)
{
	if (!k->is_pending)
		return true;
	return await_answer(k, call, NULL, NULL) != MYSQL_UNSENT;
}

/* ---- names ---- */

static void put_lock(struct mysql_locks *k, const char *name)
{
	const char *chosen = k->lane->store->options.lock;
	char text[sizeof("baton:") + BATON_NAME_MAX];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s%s", chosen[0] != '\0' ? "" : "baton:",
				    chosen[0] != '\0' ? chosen : name);

	if (n > NAME_MAX_OF_SERVER) {
		char hash[SHA256_HEX_SIZE];

		sha256_hex(text, n, hash);
		n = (size_t)snprintf(text, sizeof(text), "baton:%.40s", hash);
	}
	bytes_print(&k->lane->sql, "CONVERT(");
	mysql_literal(&k->lane->sql, text, n);
	bytes_print(&k->lane->sql, " USING utf8mb4)");
}

static struct taken *add_taken(struct mysql_locks *k, const char *name)
{
	struct taken *t = (struct taken *)name_table_find(&k->taken, name);
	size_t n = strlen(name) + 1;

	if (t != NULL)
		return t;
	t = calloc(1, sizeof(*t) + n);
	if (t == NULL)
		return NULL;
	(void)memcpy(t->name, name, n);
	name_table_add(&k->taken, &t->node, t->name);
	return t;
}

static void remove_taken(struct mysql_locks *k, struct taken *t)
{
	if (t == NULL)
		return;
	name_table_remove(&k->taken, &t->node);
	free(t);
}

/* ---- the session ---- */

static bool is_fit(struct mysql_locks *k, struct baton_call *call)
{
	bool is_galera = false, is_ours = false;

	if (!mysql_try_locks(k->lane, call, &is_galera, &is_ours))
		return false;
	if (is_galera || !is_ours)
		(void)store_fail(&call->error, BATON_E_UNSUPPORTED,
				 is_galera
					 ? "mode=lock: a Galera cluster has named locks of one "
					   "node only; leave mode=lock out"
					 : "mode=lock: a proxy stands in front of the server, and "
					   "its sessions are not ours; name the server itself");
	return !is_galera && is_ours;
}

/* Begins a session for the locks of that lease, unless there is one. The server ends it after so
 * long a silence. */
static bool begin_session(struct mysql_locks *k, struct baton_call *call, const char *lease_id,
			  uint64_t ttl_ns)
{
	if (k->lane->session != NULL && strcmp(k->lease, lease_id) == 0)
		return true;
	cut_session(k); /* the session of an older lease */
	if (!mysql_connect(k->lane, call, false) || !is_fit(k, call)) {
		mysql_disconnect(k->lane);
		return false;
	}
	bytes_clear(&k->lane->sql);
	bytes_print(&k->lane->sql, "SET SESSION wait_timeout = %llu",
		    (unsigned long long)((ttl_ns + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S));
	if (ask(k, call, NULL, NULL) != MYSQL_DONE) {
		cut_session(k);
		return false;
	}
	(void)snprintf(k->lease, sizeof(k->lease), "%s", lease_id);
	return true;
}

/* ---- the verbs ---- */

static void note_answer(void *arg, MYSQL_ROW row, const unsigned long *sizes)
{
	(void)sizes;
	*(long *)arg = row[0] != NULL ? strtol(row[0], NULL, 10) : -1;
}

static int take_lock(struct mysql_locks *k, struct baton_call *call, const char *name,
		     const char *lease_id, uint64_t ttl_ns)
{
	long answer = -1;

	if (!settle(k, call) || !begin_session(k, call, lease_id, ttl_ns))
		return BATON_OUTCOME_FAILED;
	if (mysql_get_server_version(k->lane->session) < MANY_LOCKS && k->taken.n > 0 &&
	    name_table_find(&k->taken, name) == NULL) {
		(void)store_fail(&call->error, BATON_E_UNSUPPORTED,
				 "mode=lock: this server has one named lock in a session: use one "
				 "election, or MySQL 5.7.5 or later");
		return BATON_OUTCOME_FAILED;
	}
	struct taken *t = add_taken(k, name);

	if (t == NULL) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a lock");
		return BATON_OUTCOME_FAILED;
	}
	bytes_clear(&k->lane->sql); /* the server counts how often a lock is taken: so not twice */
	bytes_print(&k->lane->sql, "SELECT IF(COALESCE(IS_USED_LOCK(");
	put_lock(k, name);
	bytes_print(&k->lane->sql, "), 0) = CONNECTION_ID(), 1, GET_LOCK(");
	put_lock(k, name);
	bytes_print(&k->lane->sql, ", 0))");
	int end = ask(k, call, note_answer, &answer);

	if (end == MYSQL_UNSENT)
		return k->is_pending ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED;
	if (end == MYSQL_DONE && answer == 1) {
		t->is_held = true;
		return BATON_OUTCOME_OK;
	}
	if (end != MYSQL_NO_ANSWER) /* else the session has ended, with all its locks */
		remove_taken(k, t);
	if (end == MYSQL_DONE && answer == 0)
		return BATON_OUTCOME_REFUSED;
	if (end == MYSQL_DONE)
		(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
				 "the server could not take a named lock");
	return BATON_OUTCOME_FAILED;
}

int mysql_lock_take(void *lane, struct baton_call *call, const char *name, const char *lease_id,
		    uint64_t ttl_ns, uint64_t *free_in_ns)
{
	struct mysql_locks *k = ((struct mysql_lane *)lane)->store->locks;

	(void)free_in_ns; /* the server doesn't tell */
	if (!store_turn_take(&k->turn, call->deadline_ns, false)) {
		(void)store_fail(&call->error, BATON_E_TIMEOUT, "there was no time for a lock");
		return BATON_OUTCOME_FAILED;
	}
	int outcome = take_lock(k, call, name, lease_id, ttl_ns);

	store_turn_give(&k->turn);
	return outcome;
}

struct asked {
	struct mysql_locks *locks;
	struct name_node *at;
};

static void held_found(void *arg, MYSQL_ROW row, const unsigned long *sizes)
{
	struct asked *a = arg;

	(void)sizes;
	if (a->at == NULL)
		return;
	((struct taken *)a->at)->is_held = row[0] != NULL && strcmp(row[0], "1") == 0;
	a->at = name_table_next(&a->locks->taken, a->at);
}

/* Asks about all locks in one statement. */
static int ask_all(struct mysql_locks *k, struct baton_call *call)
{
	struct asked a = {k, name_table_next(&k->taken, NULL)};

	bytes_clear(&k->lane->sql);
	for (struct name_node *node = a.at; node != NULL; node = name_table_next(&k->taken, node)) {
		bytes_print(&k->lane->sql, "%sSELECT IS_USED_LOCK(",
			    node == a.at ? "" : " UNION ALL ");
		put_lock(k, ((struct taken *)node)->name);
		bytes_print(&k->lane->sql, ") = CONNECTION_ID()");
	}
	return ask(k, call, held_found, &a);
}

static int keep_lock(struct mysql_locks *k, struct baton_call *call, const char *name,
		     const char *lease_id)
{
	if (!settle(k, call))
		return BATON_OUTCOME_UNKNOWN;
	const struct taken *t = (struct taken *)name_table_find(&k->taken, name);

	if (k->lane->session == NULL || strcmp(k->lease, lease_id) != 0 || t == NULL)
		return BATON_OUTCOME_REFUSED;
	if (k->asked_ns != call->deadline_ns) {
		int end = ask_all(k, call);

		if (end != MYSQL_DONE)
			return end == MYSQL_NO_ANSWER ? BATON_OUTCOME_REFUSED
						      : BATON_OUTCOME_UNKNOWN;
		k->asked_ns = call->deadline_ns;
	}
	return t->is_held ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
}

int mysql_lock_keep(void *lane, struct baton_call *call, const char *name, const char *lease_id,
		    uint64_t ttl_ns)
{
	struct mysql_locks *k = ((struct mysql_lane *)lane)->store->locks;

	(void)ttl_ns; /* it was given to the session */
	if (!store_turn_take(&k->turn, call->deadline_ns, true)) {
		(void)store_fail(&call->error, BATON_E_TIMEOUT, "there was no time for a lock");
		return BATON_OUTCOME_FAILED;
	}
	int outcome = keep_lock(k, call, name, lease_id);

	store_turn_give(&k->turn);
	return outcome;
}

static int drop_lock(struct mysql_locks *k, struct baton_call *call, const char *name,
		     const char *lease_id)
{
	if (!settle(k, call)) {
		cut_session(k); /* frees this lock, and all others */
		return BATON_OUTCOME_UNKNOWN;
	}
	struct taken *t = (struct taken *)name_table_find(&k->taken, name);

	if (k->lane->session == NULL || strcmp(k->lease, lease_id) != 0 || t == NULL)
		return BATON_OUTCOME_OK;
	bytes_clear(&k->lane->sql);
	bytes_print(&k->lane->sql, "DO RELEASE_LOCK(");
	put_lock(k, name);
	bytes_print(&k->lane->sql, ")");
	remove_taken(k, t);
	int end = ask(k, call, NULL, NULL);

	if (end == MYSQL_UNSENT)
		cut_session(k);
	return end == MYSQL_DONE ? BATON_OUTCOME_OK : BATON_OUTCOME_UNKNOWN;
}

int mysql_lock_drop(void *lane, struct baton_call *call, const char *name, const char *lease_id)
{
	struct mysql_locks *k = ((struct mysql_lane *)lane)->store->locks;

	if (!store_turn_take(&k->turn, call->deadline_ns, false)) {
		(void)store_fail(&call->error, BATON_E_TIMEOUT, "there was no time for a lock");
		return BATON_OUTCOME_FAILED;
	}
	int outcome = drop_lock(k, call, name, lease_id);

	store_turn_give(&k->turn);
	return outcome;
}
