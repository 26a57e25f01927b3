/*
 * lock_session.c: mode=applock. Beside each claim we hold an application lock (sp_getapplock), so
 * that programs that know nothing of our records can contend, too. One session of its own, on a
 * connection of its own, holds all locks of a store.
 *
 * The end of that session frees the locks. So the session is not given up because an answer is
 * late: the request stays under way, and the next call waits for its answer first.
 *
 * Each renewal asks for ownership (APPLOCK_MODE), not for liveness: once, for all locks in one
 * statement. A lock that was lost is never taken again for the same claim. What this must never do:
 * count on a lock that the server did not name as this session's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/name_table.h"
#include "base/sha256.h"
#include "store/mssql/mssql.h"

#define RESOURCE_MAX 255 /* sp_getapplock cuts off a longer name */
/* How long a lock is waited for. Not 0: with 0 some servers of this protocol say "error" for
 * "busy". */
#define PATIENCE_MS 1

struct resource {
	char text[sizeof("baton:") + BATON_NAME_MAX];
};

/* A lock that was taken for the lease of the session. */
struct taken {
	struct name_node node; /* by the resource */
	bool is_held;          /* what the server said last */
	struct resource resource;
	char name[BATON_NAME_MAX + 1];
};

struct mssql_locks {
	struct store_turn turn; /* which lane may use all this */
	struct mssql_lane lane; /* for its connection: no other lane's */
	bool is_pending;        /* a request is under way */
	struct name_table taken;
	uint64_t asked_ns; /* the deadline of the call that last asked about all locks */
	char lease[BATON_LEASE_ID_MAX + 1];
};

struct mssql_locks *mssql_locks_new(struct mssql_store *store, struct baton_error *err)
{
	struct mssql_locks *k = calloc(1, sizeof(*k));

	if (k != NULL && store_turn_init(&k->turn) == 0) {
		k->lane.store = store;
		if (name_table_init(&k->taken) == 0)
			return k;
		store_turn_done(&k->turn);
	}
	free(k);
	(void)store_fail(err, BATON_E_MEMORY, "no memory for the store");
	return NULL;
}

/* ---- requests that may stay under way ---- */

static void forget_locks(struct mssql_locks *k)
{
	name_table_free_all(&k->taken);
	k->asked_ns = 0;
	k->lease[0] = '\0';
}

/* Ends the session, and with it all its locks. */
static void cut_session(struct mssql_locks *k)
{
	k->is_pending = false;
	mssql_line_close(&k->lane.line);
	forget_locks(k);
}

void mssql_locks_free(struct mssql_locks *k)
{
	if (k == NULL)
		return;
	if (!k->lane.store->base.forgotten)
		mssql_line_done(&k->lane.line);
	forget_locks(k);
	bytes_done(&k->lane.json);
	name_table_done(&k->taken);
	store_turn_done(&k->turn);
	free(k);
}

void mssql_locks_forget(struct mssql_locks *k)
{
	if (k != NULL)
		mssql_line_forget(&k->lane.line);
}

/* Waits for the answer to the request under way. MSSQL_NO_ANSWER: the session has ended.
 * MSSQL_UNSENT: there is no answer yet, and the request stays under way. */
static int await_answer(struct mssql_locks *k, struct baton_call *call, mssql_row_found *found,
			void *arg)
{
	struct mssql_answer answer = {0};

	if (!mssql_worker_await(k->lane.line.worker, call->deadline_ns, &answer)) {
		(void)store_fail(&call->error, BATON_E_TIMEOUT,
				 "the server did not answer about a lock in time");
		return MSSQL_UNSENT;
	}
	k->is_pending = false;
	if (answer.end == MSSQL_DONE && found != NULL)
		mssql_rows_each(&answer.rows, found, arg);
	if (answer.end != MSSQL_DONE)
		mssql_tell(&k->lane, &call->error, &answer);
	bytes_done(&answer.rows);
	if (answer.end == MSSQL_DONE || answer.end == MSSQL_REFUSED)
		return answer.end;
	cut_session(k);
	return MSSQL_NO_ANSWER;
}

static int ask_session(struct mssql_locks *k, struct baton_call *call,
		       const struct mssql_request *request, mssql_row_found *found, void *arg)
{
	if (!mssql_worker_ask(k->lane.line.worker, request)) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
		cut_session(k);
		return MSSQL_NO_ANSWER;
	}
	k->is_pending = true;
	return await_answer(k, call, found, arg);
}

/* Waits until no request is under way. False: a request still is. */
static bool settle_session(struct mssql_locks *k, struct baton_call *call)
{
	return !k->is_pending || await_answer(k, call, NULL, NULL) != MSSQL_UNSENT;
}

/* Begins a session for the locks of that lease, unless there is one. */
static bool begin_session(struct mssql_locks *k, struct baton_call *call, const char *lease_id)
{
	if (k->lane.line.worker != NULL && strcmp(k->lease, lease_id) == 0)
		return true;
	cut_session(k); /* the session of an older lease */
	if (!mssql_connect(&k->lane, &k->lane.line, call, false))
		return false;
	(void)snprintf(k->lease, sizeof(k->lease), "%s", lease_id);
	return true;
}

/* ---- names ---- */

static struct resource resource_of(const struct mssql_locks *k, const char *name)
{
	const char *chosen = k->lane.store->options.resource;
	struct resource r;
	char hash[SHA256_HEX_SIZE];
	int n = snprintf(r.text, sizeof(r.text), "%s%s",
			 chosen[0] != '\0' ? "" : "baton:", chosen[0] != '\0' ? chosen : name);

	if (n > RESOURCE_MAX) {
		sha256_hex(r.text, (size_t)n, hash);
		(void)snprintf(r.text, sizeof(r.text), "baton:%.64s", hash);
	}
	return r;
}

static struct taken *find_taken(const struct mssql_locks *k, const char *name)
{
	struct resource r = resource_of(k, name);

	return (struct taken *)name_table_find(&k->taken, r.text);
}

static struct taken *add_taken(struct mssql_locks *k, const char *name)
{
	struct taken *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->resource = resource_of(k, name);
	(void)snprintf(t->name, sizeof(t->name), "%s", name);
	name_table_add(&k->taken, &t->node, t->resource.text);
	return t;
}

static void remove_taken(struct mssql_locks *k, struct taken *t)
{
	name_table_remove(&k->taken, &t->node);
	free(t);
}

/* ---- the verbs ---- */

static void note_answer(void *arg, const char *const *columns, const size_t *sizes)
{
	(void)sizes;
	if (columns[0] != NULL)
		*(long *)arg = strtol(columns[0], NULL, 10);
}

/* The outcome for sp_getapplock's answer. 0 and 1: granted; -1: another has the lock; else: the
 * lock could not be taken. */
static int judge_answer(struct baton_call *call, long answer)
{
	if (answer >= 0)
		return BATON_OUTCOME_OK;
	if (answer == -1)
		return BATON_OUTCOME_REFUSED;
	(void)store_fail(&call->error, answer == -3 ? BATON_E_BUSY : BATON_E_UNAVAILABLE,
			 "sp_getapplock says %ld: %s", answer,
			 answer == -2   ? "it was cancelled"
			 : answer == -3 ? "a deadlock, in which it was chosen as the victim"
					: "an error");
	return BATON_OUTCOME_FAILED;
}

static int take_lock(struct mssql_locks *k, struct baton_call *call, const char *name,
		     const char *lease_id)
{
	long answer = -999;

	if (!settle_session(k, call) || !begin_session(k, call, lease_id))
		return BATON_OUTCOME_FAILED;
	struct taken *t = find_taken(k, name);

	if (t != NULL && strcmp(t->name, name) != 0)
		return BATON_OUTCOME_REFUSED; /* resource= is in use for another election of ours */
	if (t == NULL)
		t = add_taken(k, name);
	if (t == NULL) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a lock");
		return BATON_OUTCOME_FAILED;
	}
	struct mssql_request request = {
		.sql = mssql_sql_lock_take,
		.declared = "@res nvarchar(255), @ms int",
		.params = {{"@res", t->resource.text, strlen(t->resource.text), 0},
			   {"@ms", NULL, 0, PATIENCE_MS}},
		.n_params = 2,
	};
	int end = ask_session(k, call, &request, note_answer, &answer);

	if (end == MSSQL_UNSENT)
		return BATON_OUTCOME_UNKNOWN;
	if (end == MSSQL_NO_ANSWER) /* the session has ended, with all its locks */
		return BATON_OUTCOME_FAILED;
	int outcome = end == MSSQL_DONE ? judge_answer(call, answer) : BATON_OUTCOME_FAILED;

	t->is_held = outcome == BATON_OUTCOME_OK;
	if (!t->is_held)
		remove_taken(k, t);
	return outcome;
}

static void mode_found(void *arg, const char *const *columns, const size_t *sizes)
{
	struct mssql_locks *k = arg;
	struct resource r;

	if (columns[0] == NULL || columns[1] == NULL || sizes[0] >= sizeof(r.text))
		return;
	(void)memcpy(r.text, columns[0], sizes[0]);
	r.text[sizes[0]] = '\0';
	struct taken *t = (struct taken *)name_table_find(&k->taken, r.text);

	if (t != NULL)
		t->is_held = strncmp(columns[1], "Exclusive", sizes[1]) == 0 && sizes[1] == 9;
}

/* Asks about all locks in one statement. */
static int ask_modes(struct mssql_locks *k, struct baton_call *call)
{
	struct name_node *first = name_table_next(&k->taken, NULL);
	struct mssql_request request = {
		.sql = mssql_sql_lock_modes, .declared = "@j nvarchar(max)", .n_params = 1};

	bytes_clear(&k->lane.json);
	for (struct name_node *node = first; node != NULL;
	     node = name_table_next(&k->taken, node)) {
		struct taken *t = (struct taken *)node;

		t->is_held = false;
		bytes_print(&k->lane.json, node == first ? "[" : ",");
		mssql_put_text(&k->lane.json, t->resource.text, strlen(t->resource.text));
	}
	bytes_print(&k->lane.json, "]");
	if (k->lane.json.has_failed)
		return MSSQL_REFUSED;
	request.params[0] = (struct mssql_param){"@j", k->lane.json.at, k->lane.json.n, 0};
	return ask_session(k, call, &request, mode_found, k);
}

static int keep_lock(struct mssql_locks *k, struct baton_call *call, const char *name,
		     const char *lease_id)
{
	if (!settle_session(k, call))
		return BATON_OUTCOME_UNKNOWN;
	const struct taken *t = find_taken(k, name);

	if (k->lane.line.worker == NULL || strcmp(k->lease, lease_id) != 0 || t == NULL ||
	    strcmp(t->name, name) != 0)
		return BATON_OUTCOME_REFUSED;
	if (k->asked_ns != call->deadline_ns) {
		int end = ask_modes(k, call);

		if (end != MSSQL_DONE)
			return end == MSSQL_NO_ANSWER ? BATON_OUTCOME_REFUSED
						      : BATON_OUTCOME_UNKNOWN;
		k->asked_ns = call->deadline_ns;
	}
	return t->is_held ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
}

static int drop_lock(struct mssql_locks *k, struct baton_call *call, const char *name,
		     const char *lease_id)
{
	if (!settle_session(k, call)) {
		cut_session(k); /* frees this lock, and all others */
		return BATON_OUTCOME_UNKNOWN;
	}
	struct taken *t = find_taken(k, name);

	if (k->lane.line.worker == NULL || strcmp(k->lease, lease_id) != 0 || t == NULL ||
	    strcmp(t->name, name) != 0)
		return BATON_OUTCOME_OK;
	struct resource r = t->resource;
	struct mssql_request request = {
		.sql = mssql_sql_lock_drop,
		.declared = "@res nvarchar(255)",
		.params = {{"@res", r.text, strlen(r.text), 0}},
		.n_params = 1,
	};

	remove_taken(k, t);
	int end = ask_session(k, call, &request, NULL, NULL);

	if (end == MSSQL_UNSENT)
		cut_session(k);
	return end == MSSQL_DONE ? BATON_OUTCOME_OK : BATON_OUTCOME_UNKNOWN;
}

/* ---- one at a time ---- */

static struct mssql_locks *locks_begin(void *lane, struct baton_call *call, bool first)
{
	struct mssql_locks *k = ((struct mssql_lane *)lane)->store->locks;

	if (store_turn_take(&k->turn, call->deadline_ns, first))
		return k;
	(void)store_fail(&call->error, BATON_E_TIMEOUT, "there was no time for a lock");
	return NULL;
}

int mssql_lock_take(void *lane, struct baton_call *call, const char *name, const char *lease_id,
		    uint64_t ttl_ns, uint64_t *free_in_ns)
{
	struct mssql_locks *k = locks_begin(lane, call, false);

	(void)ttl_ns; /* such a lock has no duration */
	(void)free_in_ns;
	if (k == NULL)
		return BATON_OUTCOME_FAILED;
	int outcome = take_lock(k, call, name, lease_id);

	store_turn_give(&k->turn);
	return outcome;
}

int mssql_lock_keep(void *lane, struct baton_call *call, const char *name, const char *lease_id,
		    uint64_t ttl_ns)
{
	struct mssql_locks *k = locks_begin(lane, call, true);

	(void)ttl_ns;
	if (k == NULL)
		return BATON_OUTCOME_FAILED;
	int outcome = keep_lock(k, call, name, lease_id);

	store_turn_give(&k->turn);
	return outcome;
}

int mssql_lock_drop(void *lane, struct baton_call *call, const char *name, const char *lease_id)
{
	struct mssql_locks *k = locks_begin(lane, call, false);

	if (k == NULL)
		return BATON_OUTCOME_FAILED;
	int outcome = drop_lock(k, call, name, lease_id);

	store_turn_give(&k->turn);
	return outcome;
}
