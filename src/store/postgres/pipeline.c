/*
 * pipeline.c: calls on a connection. All statements of a call are sent as one pipeline that ends in
 * one Sync: one transaction and one round trip, which take until the call's deadline at most.
 *
 * The outcome of a call: before the Sync is sent, nothing can be committed, so a failure up to
 * there is FAILED (the connection is closed, which rolls back). An error of the server rolls back,
 * too: FAILED. If the answer to the Sync doesn't come, or the server ends the session, the commit
 * may have happened: UNKNOWN.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/postgres/postgres.h"

int pg_no_memory(struct pg_lane *lane)
{
	store_fail(&lane->call->error, BATON_E_MEMORY, "no memory for a call to PostgreSQL");
	return BATON_OUTCOME_FAILED;
}

/* ---- waiting ---- */

/* If the runtime wants the watch lane back, the lane's call may take this long in all. */
#define WOKEN_NS (100 * CLOCK_NS_PER_MS)
#define FEW 4
#define LIMIT_MAX_MS (1u << 30)

/* The lane that a wake is for: the watch lane may be using the lock lane. */
static struct pg_lane *user_of(struct pg_lane *lane)
{
	return lane->user != NULL ? lane->user : lane;
}

bool pg_is_woken(struct pg_lane *lane)
{
	return atomic_load(&user_of(lane)->woken);
}

int pg_wait(struct pg_lane *lane, short events, uint64_t deadline_ns)
{
	int wake_fd = user_of(lane)->wake_fd;
	struct pollfd fds[2] = {{.fd = PQsocket(lane->conn.pg), .events = events},
				{.fd = wake_fd, .events = POLLIN}};
	uint64_t now_ns = clock_boot_ns();
	uint64_t nudges;

	if (pg_is_woken(lane) && !lane->conn.connecting && deadline_ns > lane->begun_ns + WOKEN_NS)
		deadline_ns = lane->begun_ns + WOKEN_NS;
	if (now_ns >= deadline_ns)
		return 0;
	uint64_t ms = (deadline_ns - now_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;
	int n = poll(fds, wake_fd >= 0 ? 2 : 1, ms > 60000 ? 60000 : (int)ms);

	if (n > 0 && fds[1].revents != 0) {
		user_of(lane)->nudged = true;
		if (read(wake_fd, &nudges, sizeof(nudges)) < 0)
			return 0;
	}
	if (n > 0 && fds[0].revents != 0)
		return 1;
	if (pg_is_woken(lane) && lane->conn.connecting)
		return 0; /* the attempt goes on later */
	return clock_boot_ns() < deadline_ns ? 1 : 0;
}

/* ---- errors ---- */

/* The length of the first line: libpq may add others. */
static int line_length(const char *words)
{
	return (int)strcspn(words, "\r\n");
}

static int code_of_state(const char *state)
{
	static const struct {
		const char *prefix;
		int code;
	} codes[] = {
		{"42501", BATON_E_DENIED},  /* insufficient privilege */
		{"25006", BATON_E_DENIED},  /* read-only: a standby, perhaps */
		{"28", BATON_E_DENIED},     /* credentials */
		{"3D000", BATON_E_DENIED},  /* no such database */
		{"57014", BATON_E_TIMEOUT}, /* statement_timeout */
		{"55P03", BATON_E_TIMEOUT}, /* lock_timeout */
		{"53200", BATON_E_MEMORY},  /* the server's */
		{"42", BATON_E_CORRUPT},    /* tables that are not ours */
		{"22", BATON_E_CORRUPT},    /* values that don't fit them */
		{"23", BATON_E_CORRUPT},    /* constraints that are not ours */
		{"", BATON_E_UNAVAILABLE},
	};
	size_t i = 0;

	while (strncmp(state, codes[i].prefix, strlen(codes[i].prefix)) != 0)
		i++;
	return codes[i].code;
}

static const char *advice_for_state(const char *state)
{
	if (strcmp(state, "42501") == 0)
		return "; grant what `baton schema postgres` lists";
	if (strcmp(state, "25006") == 0)
		return "; it is a standby: connect to the primary, or name all hosts in the URL";
	if (strcmp(state, "55P03") == 0)
		return "; another transaction keeps a row locked";
	if (strcmp(state, "53300") == 0)
		return "; raise max_connections";
	return "";
}

void pg_refused(struct pg_lane *lane, const char *state, const char *words)
{
	/* The tables are gone: the next call makes them anew, or says why it can't. */
	if (strcmp(state, "42P01") == 0 || strcmp(state, "3F000") == 0) {
		atomic_store(&lane->store->has_schema, false);
		store_fail(
			&lane->call->error, BATON_E_UNAVAILABLE,
			"PostgreSQL: the tables in the schema \"%s\" are gone; they are made anew",
			lane->store->info.schema);
		return;
	}
	store_fail(&lane->call->error, code_of_state(state), "PostgreSQL says: %.*s%s",
		   line_length(words) > 150 ? 150 : line_length(words), words,
		   advice_for_state(state));
}

void pg_broken(struct pg_lane *lane, const char *words)
{
	if (words[0] == '\0')
		words = "the server gives no reason";
	int n = line_length(words);

	store_fail(&lane->call->error, BATON_E_UNAVAILABLE,
		   "the connection to PostgreSQL is lost: %.*s", n > 170 ? 170 : n, words);
	pg_conn_close(lane);
}

static void too_late(struct pg_lane *lane)
{
	store_fail(&lane->call->error, BATON_E_TIMEOUT,
		   "PostgreSQL did not answer in time; the connection is given up");
	/* S7: a candidate that may still lead keeps its lock. */
	lane->owes =
		lane->is_apart || (lane == lane->store->lock_lane && lane->conn.may_have_locks);
	if (!lane->owes)
		pg_conn_close(lane);
}

/* ---- a call ---- */

void pg_results_clear(struct pg_lane *lane)
{
	for (size_t i = 0; i < lane->n_pushed; i++) {
		PQclear(lane->results[i]);
		lane->results[i] = NULL;
	}
	if (!lane->owes) /* else it tells the owed answers apart */
		lane->n_pushed = 0;
	lane->push_failed = false;
}

/*
 * To plan a claim takes longer than to carry it out. So the plan for a few elections is made once,
 * and always uses the indexes: it must still be good when the tables have grown. Many elections
 * share one plan, which is made for just that number each time.
 */
static const struct plan {
	const char *cache_mode;
	const char *seqscan;
} plans[] = {{"auto", "on"}, {"force_generic_plan", "off"}, {"force_custom_plan", "on"}};

/* The time that is left, rounded up to a power of two, so that it seldom changes. */
static uint64_t limit_of(const struct baton_call *call)
{
	uint64_t now_ns = clock_boot_ns();
	uint64_t left_ns = call->deadline_ns > now_ns ? call->deadline_ns - now_ns : 0;
	uint64_t limit_ms = 4;

	while (limit_ms <= left_ns / CLOCK_NS_PER_MS && limit_ms < LIMIT_MAX_MS)
		limit_ms *= 2;
	return limit_ms;
}

/*
 * A session keeps its limits, so they are only sent when they change. Nothing relies on them: they
 * end statements that their caller has given up. A statement waits for a lock for no longer than
 * half of the call.
 */
static void push_limits(struct pg_lane *lane, size_t n)
{
	struct pg_conn *c = &lane->conn;
	uint64_t limit_ms = limit_of(lane->call);
	/* Between two claims, the calls of the lock lane are about one lease, so it needn't switch
	 * plans. */
	bool is_about_few = n > 0 || lane == lane->store->lock_lane;
	size_t plan = n > FEW ? 2 : is_about_few ? 1 : 0;
	char statement[24], lock[24];
	const char *params[] = {statement, lock, plans[plan].cache_mode, plans[plan].seqscan,
				c->pooled ? "true" : "false"};

	if (c->limit_ms == limit_ms && c->plan == plan)
		return;
	(void)snprintf(statement, sizeof(statement), "%" PRIu64, limit_ms);
	(void)snprintf(lock, sizeof(lock), "%" PRIu64, limit_ms / 4);
	pg_push(lane, PG_LIMITS, 5, params);
	c->limit_ms = c->pooled ? 0 : limit_ms;
	c->plan = plan;
}

int pg_begin(struct pg_lane *lane, struct baton_call *call, size_t n)
{
	lane->call = call;
	lane->begun_ns = clock_boot_ns();
	pg_results_clear(lane);
	if (lane->store->base.forgotten) {
		store_fail(&call->error, BATON_E_FORKED,
			   "the connection belongs to the parent process");
		return BATON_OUTCOME_FAILED;
	}
	if (!pg_is_connected(lane) && pg_connect(lane) != 0)
		return BATON_OUTCOME_FAILED;
	if (!pg_is_tableless(lane->store) && !atomic_load(&lane->store->has_schema) &&
	    pg_schema_check(lane, call) != 0)
		return BATON_OUTCOME_FAILED;
	if (clock_boot_ns() >= call->deadline_ns) {
		store_fail(&call->error, BATON_E_TIMEOUT,
			   "connecting to PostgreSQL took all of the call's time");
		return BATON_OUTCOME_FAILED;
	}
	if (!lane->is_apart) /* is_apart: its last statement shows its purpose */
		push_limits(lane, n);
	return 0;
}

/* The session has that statement prepared, or was sent it to prepare. */
static bool is_prepared(const struct pg_lane *lane, int statement)
{
	return lane->conn.prepared[statement] || pg_is_pushed(lane, ~statement);
}

static bool send_one(struct pg_lane *lane, int statement, size_t n, const char *const *params)
{
	struct pg_conn *c = &lane->conn;
	const char *text = lane->store->sql[statement];
	const char *name = pg_statement_names[statement];

	/* Behind a pooler the next transaction may be on another session, so nothing is
	 * prepared. */
	if (c->pooled || (lane->is_apart && !lane->repeats && !c->prepared[statement]))
		return PQsendQueryParams(c->pg, text, (int)n, NULL, params, NULL, NULL, 0) == 1;
	pg_push_prepare(lane, statement);
	return !lane->push_failed &&
	       PQsendQueryPrepared(c->pg, name, (int)n, params, NULL, NULL, 0) == 1;
}

void pg_push(struct pg_lane *lane, int statement, size_t n, const char *const *params)
{
	if (lane->push_failed || lane->n_pushed + 2 > PG_PUSHED_MAX ||
	    !send_one(lane, statement, n, params)) {
		lane->push_failed = true;
		return;
	}
	lane->pushed[lane->n_pushed++] = statement;
}

void pg_push_prepare(struct pg_lane *lane, int statement)
{
	struct pg_conn *c = &lane->conn;

	if (lane->push_failed || c->pooled || is_prepared(lane, statement))
		return;
	if (lane->n_pushed == PG_PUSHED_MAX ||
	    PQsendPrepare(c->pg, pg_statement_names[statement], lane->store->sql[statement], 0,
			  NULL) != 1) {
		lane->push_failed = true;
		return;
	}
	lane->pushed[lane->n_pushed++] = ~statement;
}

void pg_push_text(struct pg_lane *lane, const char *text, size_t n, const char *const *params)
{
	if (lane->push_failed || lane->n_pushed == PG_PUSHED_MAX ||
	    PQsendQueryParams(lane->conn.pg, text, (int)n, NULL, params, NULL, NULL, 0) != 1) {
		lane->push_failed = true;
		return;
	}
	lane->pushed[lane->n_pushed++] = PG_STATEMENTS;
}

bool pg_is_pushed(const struct pg_lane *lane, int statement)
{
	bool is = false;

	for (size_t i = 0; i < lane->n_pushed; i++)
		is = is || lane->pushed[i] == statement;
	return is;
}

const PGresult *pg_result_of(const struct pg_lane *lane, int statement)
{
	for (size_t i = 0; i < lane->n_pushed; i++)
		if (lane->pushed[i] == statement)
			return lane->results[i];
	return NULL;
}

const PGresult *pg_result(const struct pg_lane *lane, size_t i)
{
	size_t at = 0;

	for (size_t seen = 0; at < lane->n_pushed; at++)
		if (lane->pushed[at] >= 0 && lane->pushed[at] != PG_LIMITS && seen++ == i)
			break;
	return at < lane->n_pushed ? lane->results[at] : NULL;
}

/* False: too late, or woken. */
static bool flush(struct pg_lane *lane)
{
	while (PQflush(lane->conn.pg) == 1) {
		if (pg_wait(lane, POLLIN | POLLOUT, lane->call->deadline_ns) != 1)
			return false;
		if (PQconsumeInput(lane->conn.pg) != 1)
			return true; /* next_result() will say why */
	}
	return true;
}

/* False: too late, or woken. *r may be NULL. */
static bool next_result(struct pg_lane *lane, PGresult **r)
{
	while (PQisBusy(lane->conn.pg)) {
		/* Something of a call that was given up may still be left to send. */
		short events = PQflush(lane->conn.pg) == 1 ? POLLIN | POLLOUT : POLLIN;

		if (pg_wait(lane, events, lane->call->deadline_ns) != 1)
			return false;
		if (PQconsumeInput(lane->conn.pg) != 1)
			break;
	}
	*r = PQgetResult(lane->conn.pg);
	return true;
}

void pg_note_prepared(struct pg_lane *lane, const PGresult *r)
{
	int statement = lane->n_taken < lane->n_pushed ? lane->pushed[lane->n_taken] : 0;

	lane->n_taken++;
	if (statement < 0 && PQresultStatus(r) == PGRES_COMMAND_OK)
		lane->conn.prepared[~statement] = true;
}

/* Takes the result of one statement. True: the session is still well. */
static bool take_result(struct pg_lane *lane, size_t at, PGresult *r, bool *refused)
{
	ExecStatusType status = PQresultStatus(r);

	lane->results[at] = r;
	pg_note_prepared(lane, r);
	if (status == PGRES_PIPELINE_ABORTED || status == PGRES_COMMAND_OK ||
	    status == PGRES_TUPLES_OK)
		return true;
	const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
	const char *severity = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
	const char *words = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);

	if (state == NULL || (severity != NULL && strcmp(severity, "ERROR") != 0)) {
		pg_broken(lane, words != NULL ? words : PQresultErrorMessage(r));
		return false;
	}
	if (!*refused)
		pg_refused(lane, state, words != NULL ? words : "");
	*refused = true;
	return true;
}

/* Reads all results, up to the Sync. 0, or the outcome. */
static int collect_results(struct pg_lane *lane)
{
	bool refused = false;
	PGresult *r = NULL;

	for (size_t i = 0; i <= lane->n_pushed; i++) {
		if (!next_result(lane, &r)) {
			too_late(lane);
			return BATON_OUTCOME_UNKNOWN;
		}
		if (i == lane->n_pushed)
			break;
		if (r == NULL) {
			pg_broken(lane, PQerrorMessage(lane->conn.pg));
			return BATON_OUTCOME_UNKNOWN;
		}
		if (!take_result(lane, i, r, &refused))
			return BATON_OUTCOME_UNKNOWN;
		if (!next_result(lane, &r)) {
			too_late(lane);
			return BATON_OUTCOME_UNKNOWN;
		}
		if (r != NULL) { /* a second result: the connection broke */
			PQclear(r);
			pg_broken(lane, PQerrorMessage(lane->conn.pg));
			return BATON_OUTCOME_UNKNOWN;
		}
	}
	bool synced = PQresultStatus(r) == PGRES_PIPELINE_SYNC;

	PQclear(r);
	if (!synced) {
		/* The commit failed, for example by a deferred constraint, or the session has
		 * ended. */
		pg_broken(lane, PQerrorMessage(lane->conn.pg));
		return BATON_OUTCOME_UNKNOWN;
	}
	lane->conn.heard_ns = clock_boot_ns();
	return refused ? BATON_OUTCOME_FAILED : 0;
}

bool pg_drain(struct pg_lane *lane)
{
	PGresult *r;
	bool synced = false;
	unsigned n_ends = 0; /* NULL results in a row: nothing more is to come */

	while (lane->owes && lane->conn.pg != NULL && !synced) {
		if (!next_result(lane, &r) || PQstatus(lane->conn.pg) != CONNECTION_OK ||
		    n_ends > 1)
			return false;
		n_ends = r == NULL ? n_ends + 1 : 0;
		synced = PQresultStatus(r) == PGRES_PIPELINE_SYNC;
		if (r != NULL && !synced)
			pg_note_prepared(lane, r);
		PQclear(r);
	}
	lane->owes = false;
	return lane->conn.pg != NULL;
}

static int run_pipeline(struct pg_lane *lane)
{
	struct pg_conn *c = &lane->conn;

	c->warned = false;
	lane->n_taken = 0;
	if (lane->push_failed) {
		pg_broken(lane, PQerrorMessage(c->pg));
		return BATON_OUTCOME_FAILED;
	}
	if (PQpipelineSync(c->pg) != 1) {
		pg_broken(lane, PQerrorMessage(c->pg));
		return BATON_OUTCOME_UNKNOWN;
	}
	if (!flush(lane)) {
		too_late(lane);
		return BATON_OUTCOME_UNKNOWN;
	}
	int outcome = collect_results(lane);

	if (outcome == 0 && c->warned) {
		/* "committed locally": a standby that should have it, too, may not have it. */
		store_fail(&lane->call->error, BATON_E_UNAVAILABLE,
			   "PostgreSQL warns that the commit may not survive a failover");
		return BATON_OUTCOME_UNKNOWN;
	}
	return outcome == 0 ? BATON_OUTCOME_OK : outcome;
}

int pg_run(struct pg_lane *lane)
{
	int outcome = run_pipeline(lane);

	if (outcome != BATON_OUTCOME_OK)
		lane->conn.limit_ms = 0; /* the settings may be rolled back */
	return outcome;
}

bool pg_may_repeat(const struct pg_lane *lane, int outcome)
{
	return outcome == BATON_OUTCOME_UNKNOWN && lane->conn.pg == NULL &&
	       lane->call->error.code == BATON_E_UNAVAILABLE &&
	       clock_boot_ns() < lane->call->deadline_ns;
}

int pg_exec(struct pg_lane *lane, const char *text)
{
	PGconn *pg = lane->conn.pg;
	PGresult *r;
	int outcome = 0;

	if (PQexitPipelineMode(pg) != 1 || PQsendQuery(pg, text) != 1) {
		pg_broken(lane, PQerrorMessage(pg));
		return BATON_OUTCOME_FAILED;
	}
	if (!flush(lane)) {
		too_late(lane);
		return BATON_OUTCOME_UNKNOWN;
	}
	for (;;) {
		if (!next_result(lane, &r)) {
			too_late(lane);
			return BATON_OUTCOME_UNKNOWN;
		}
		if (r == NULL)
			break;
		const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
		const char *words = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);

		if (state != NULL && PQresultStatus(r) == PGRES_FATAL_ERROR) {
			pg_refused(lane, state, words != NULL ? words : "");
			outcome = BATON_OUTCOME_FAILED;
		}
		PQclear(r);
	}
	if (PQstatus(pg) != CONNECTION_OK || PQenterPipelineMode(pg) != 1) {
		pg_broken(lane, PQerrorMessage(pg));
		return BATON_OUTCOME_UNKNOWN;
	}
	return outcome;
}

void pg_clock_seen(struct pg_lane *lane, int64_t server_us)
{
	store_lock(&lane->store->base);
	expiry_clock_add(&lane->store->clock, lane->begun_ns, clock_boot_ns(), server_us);
	store_unlock(&lane->store->base);
}

int pg_ask(struct pg_lane *l, struct baton_call *call, int statement, size_t n,
	   const char *const *params)
{
	int outcome = pg_begin(l, call, 0);

	if (outcome != 0)
		return outcome;
	pg_push(l, statement, n, params);
	return pg_run(l);
}
