/*
 * connect.c: opens and closes connections. It uses libpq's asynchronous functions and poll(), so
 * that names, TLS and authentication all end by the call's deadline (L7).
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/postgres/postgres.h"

#define SESSION_VERSION_MIN 140000 /* idle_session_timeout */
#define STATE_LENGTH 5
/*
 * A call with little time may end before a slow server has let us in. Then the attempt goes on with
 * the next call, for this time in all: if each call began anew, none would get there, and the
 * server would become slower still.
 */
#define PATIENCE_NS CLOCK_NS_PER_S
/* An attempt may have got there between two calls, so each call looks at it for at least this
 * time. */
#define GLANCE_NS (PATIENCE_NS / 4)
#define ROUNDS_MAX 4

/* Takes the server's notices, so that none goes to the application's stderr. A warning that comes
 * with a commit matters. */
static void notice_heed(void *arg, const PGresult *notice)
{
	struct pg_conn *c = arg;
	const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);

	/* Warnings about a commit have details; warnings about a lock or a session have none. */
	if (severity != NULL && strcmp(severity, "WARNING") == 0 &&
	    PQresultErrorField(notice, PG_DIAG_MESSAGE_DETAIL) != NULL)
		c->warned = true;
	/* So the server announces the end of an idle session. */
	if (severity != NULL && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0))
		c->ended = true;
}

/* Forgets all that was known of a session that is gone. */
static void conn_clear(struct pg_conn *c)
{
	c->pg = NULL;
	c->connecting = false;
	c->ended = false;
	c->has_locks = false;
	c->may_have_locks = false;
	c->unsure = false;
	c->listens = false;
	c->limit_ms = 0;
	atomic_store(&c->fd, -1);
	(void)memset(c->prepared, 0, sizeof(c->prepared));
}

void pg_conn_free(struct pg_conn *c)
{
	if (c->pg == NULL)
		return;
	/* PQfinish() sends a last message, which must not wait for a peer that doesn't listen. */
	if (PQsocket(c->pg) >= 0 && PQtransactionStatus(c->pg) != PQTRANS_IDLE)
		(void)shutdown(PQsocket(c->pg), SHUT_RDWR);
	PQfinish(c->pg);
	conn_clear(c);
}

static void notice_ignore(void *arg, const PGresult *notice)
{
	(void)arg;
	(void)notice;
}

PGconn *pg_conn_take(struct pg_conn *c)
{
	PGconn *pg = c->pg;

	(void)PQsetNoticeReceiver(pg, notice_ignore, NULL);
	conn_clear(c);
	return pg;
}

void pg_conn_move(struct pg_conn *to, struct pg_conn *from)
{
	to->pg = from->pg;
	to->pooled = from->pooled;
	to->heard_ns = from->heard_ns;
	to->pid = from->pid;
	to->start_us = from->start_us;
	to->limit_ms = 0;
	(void)memcpy(to->prepared, from->prepared, sizeof(to->prepared));
	atomic_store(&to->fd, atomic_exchange(&from->fd, -1));
	from->pg = NULL;
	(void)memset(from->prepared, 0, sizeof(from->prepared));
	(void)PQsetNoticeReceiver(to->pg, notice_heed, to);
}

uint64_t pg_spare_rest(struct pg_store *store)
{
	struct pg_conn ended = {.fd = -1};
	uint64_t next_ns = UINT64_MAX;

	if (store->lock_lane == NULL)
		return next_ns;
	store_lock(&store->base);
	if (store->spare.pg != NULL)
		next_ns = store->spare_ns + PG_REST_NS;
	if (next_ns <= clock_boot_ns()) {
		pg_conn_move(&ended, &store->spare);
		next_ns = UINT64_MAX;
	}
	store_unlock(&store->base);
	pg_conn_free(&ended);
	return next_ns;
}

/* This connection did not end well: others of the store may be dead, too, and not know it yet. */
void pg_conn_close(struct pg_lane *lane)
{
	struct pg_conn *c = &lane->conn;

	if (c->pg == NULL)
		return;
	if (lane == lane->store->lock_lane)
		pg_session_lose(lane->store,
				c->may_have_locks && !c->ended && PQstatus(c->pg) == CONNECTION_OK);
	if (c->pg != NULL)
		(void)shutdown(PQsocket(c->pg), SHUT_RDWR);
	pg_conn_free(c);
	lane->owes = false;
	atomic_fetch_add(&lane->store->troubles, 1);
	pg_watch_nudge(lane->store);
}

bool pg_is_connected(struct pg_lane *lane)
{
	struct pg_store *store = lane->store;
	struct pg_conn *c = &lane->conn;

	if (c->pg == NULL && lane->is_plain) {
		store_lock(&store->base);
		if (store->spare.pg != NULL)
			pg_conn_move(c, &store->spare);
		store_unlock(&store->base);
	}
	if (c->pg == NULL || c->connecting)
		return false;
	/* The first function reads what has come meanwhile; the second one interprets it. */
	if (PQconsumeInput(c->pg) == 1 && PQisBusy(c->pg) == 0 && !c->ended &&
	    PQstatus(c->pg) == CONNECTION_OK)
		return true;
	pg_conn_close(lane);
	return false;
}

/* The reason in libpq's own message about the network or TLS. It is the last line, apart from lines
 * that begin with a tab: these are questions that libpq puts behind the reason. */
static const char *last_reason(const char *text)
{
	const char *reason = text;

	for (const char *end = strchr(text, '\n'); end != NULL; end = strchr(end + 1, '\n'))
		if (end[1] != '\0' && end[1] != '\t')
			reason = end + 1;
	return reason;
}

/* libpq's text has the SQLSTATE in it, because it was asked to be verbose: "FATAL:  28P01: ...". */
static void connect_failed(struct pg_lane *lane, const char *text)
{
	static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char state[STATE_LENGTH + 1] = "";
	const char *words = text;

	for (const char *at = strstr(text, ":  "); at != NULL; at = strstr(at + 1, ":  ")) {
		if (strspn(at + 3, letters) == STATE_LENGTH && at[3 + STATE_LENGTH] == ':') {
			(void)memcpy(state, at + 3, STATE_LENGTH);
			state[STATE_LENGTH] = '\0';
			words = at + 3 + STATE_LENGTH + 2;
			break;
		}
	}
	if (state[0] != '\0') {
		pg_refused(lane, state, words);
		return;
	}
	if (PQconnectionNeedsPassword(lane->conn.pg) != 0) {
		store_fail(&lane->call->error, BATON_E_DENIED,
			   "PostgreSQL at %.60s asks for a password, and none was given: say "
			   "password_file= in the URL, or set PGPASSWORD",
			   PQhost(lane->conn.pg));
		return;
	}
	const char *reason = last_reason(text);
	int n = (int)strcspn(reason, "\r\n");

	store_fail(&lane->call->error, BATON_E_UNAVAILABLE, "can't connect to PostgreSQL: %.*s",
		   n > 190 ? 190 : n, reason);
}

/* Begins to connect, with the addresses that pg_resolve() found in place of names. */
static PGconn *connect_start(const struct pg_conninfo *info, const struct pg_text hosts[3],
			     const char *password)
{
	const char *keywords[PG_KEYWORDS_MAX + 5];
	const char *values[PG_KEYWORDS_MAX + 5];
	static const char *const names[3] = {"host", "hostaddr", "port"};
	size_t n = 0;

	for (size_t i = 0; i < info->n; i++) {
		const char *key = info->keywords[i];
		bool replaced = hosts[0].at != NULL &&
				(strcmp(key, names[0]) == 0 || strcmp(key, names[1]) == 0 ||
				 strcmp(key, names[2]) == 0);

		if (replaced)
			continue;
		keywords[n] = key;
		values[n++] = info->values[i];
	}
	for (size_t i = 0; hosts[0].at != NULL && i < 3; i++) {
		keywords[n] = names[i];
		values[n++] = hosts[i].at;
	}
	if (password != NULL) {
		keywords[n] = "password";
		values[n++] = password;
	}
	keywords[n] = NULL;
	values[n] = NULL;
	return PQconnectStartParams(keywords, values, 0);
}

static int connect_begin(struct pg_lane *lane)
{
	struct pg_text hosts[3] = {{0}};
	struct pg_conn *c = &lane->conn;
	const struct pg_conninfo *info = &lane->store->info;
	char *password = pg_conninfo_password(info);

	c->pid = 0;
	c->n_places = 1;
	c->turn = atomic_load(&lane->store->turn);
	int code = pg_resolve(lane, hosts);

	if (password == NULL && info->password_file != NULL) {
		store_fail(&lane->call->error, BATON_E_DENIED,
			   "the password file %.100s is empty, or can't be read",
			   info->password_file);
		code = BATON_E_DENIED;
	}
	if (code == 0) {
		c->pg = connect_start(info, hosts, password);
		if (c->pg == NULL) {
			(void)pg_no_memory(lane);
			code = BATON_E_MEMORY;
		}
	}
	for (size_t i = 0; i < 3; i++)
		pg_text_done(&hosts[i]);
	if (password != NULL)
		explicit_bzero(password, strlen(password));
	free(password);
	if (code != 0)
		return code;
	(void)PQsetErrorVerbosity(c->pg, PQERRORS_VERBOSE);
	(void)PQsetNoticeReceiver(c->pg, notice_heed, c);
	c->polling = PGRES_POLLING_WRITING;
	c->connecting = true;
	c->began_ns = clock_boot_ns();
	return 0;
}

/* libpq would wait for ever for a silent host, and never try the next one. Each time that all hosts
 * in turn were silent, they may only be slow: then each gets twice as long. */
static uint64_t connect_patience_ns(const struct pg_lane *lane)
{
	int n_silent = (int)(lane->conn.turn - atomic_load(&lane->store->good_turn));
	size_t rounds = n_silent > 0 ? (size_t)n_silent / lane->conn.n_places : 0;

	return PATIENCE_NS << (rounds < ROUNDS_MAX ? rounds : ROUNDS_MAX);
}

/* Until when this call stays with the attempt: if there are other addresses, not for all of its
 * time. */
static uint64_t connect_until_ns(const struct pg_lane *lane)
{
	uint64_t deadline_ns = lane->call->deadline_ns;
	uint64_t end_ns = lane->conn.began_ns + connect_patience_ns(lane);

	if (end_ns < lane->begun_ns + GLANCE_NS)
		end_ns = lane->begun_ns + GLANCE_NS;
	return lane->conn.n_places == 1 || deadline_ns < end_ns ? deadline_ns : end_ns;
}

/* The attempt took too long: the next attempt begins with another host. True: that is still in this
 * call. */
static bool connect_move_on(struct pg_lane *lane)
{
	struct pg_conn *c = &lane->conn;
	unsigned turn = c->turn;

	if (c->n_places == 1)
		return false;
	/* If several lanes have found that out, only one moves the turn. */
	(void)atomic_compare_exchange_strong(&lane->store->turn, &turn, turn + 1);
	return clock_boot_ns() < lane->call->deadline_ns && !pg_is_woken(lane);
}

/* 0: there is a session. Else a code: with c->connecting the attempt goes on in the next call,
 * otherwise it is over. */
static int connect_dial(struct pg_lane *lane)
{
	struct pg_conn *c = &lane->conn;
	int code = c->connecting ? 0 : connect_begin(lane);

	while (code == 0 && PQstatus(c->pg) != CONNECTION_BAD && c->polling != PGRES_POLLING_OK &&
	       c->polling != PGRES_POLLING_FAILED) {
		atomic_store(&c->fd, PQsocket(c->pg));
		if (pg_wait(lane, c->polling == PGRES_POLLING_READING ? POLLIN : POLLOUT,
			    connect_until_ns(lane)) == 1) {
			c->polling = PQconnectPoll(c->pg);
			continue;
		}
		c->connecting = clock_boot_ns() - c->began_ns < connect_patience_ns(lane);
		if (c->connecting || !connect_move_on(lane)) {
			store_fail(&lane->call->error, BATON_E_TIMEOUT,
				   "PostgreSQL did not let us connect in time");
			return BATON_E_TIMEOUT;
		}
		pg_conn_free(c);
		code = connect_begin(lane);
	}
	if (code != 0)
		return code;
	c->connecting = false;
	if (PQstatus(c->pg) == CONNECTION_OK)
		return 0;
	connect_failed(lane, PQerrorMessage(c->pg));
	return lane->call->error.code;
}

/* Session locks need sessions, which a pooler doesn't give (N24), and sessions that the server ends
 * (rule 3). */
static int connect_check_session(struct pg_lane *lane)
{
	const struct pg_conninfo *info = &lane->store->info;
	const char *what = info->advisory ? "mode=advisory" : "fast=1";

	if (!info->advisory && !info->fast)
		return 0;
	if (lane->conn.pooled) {
		store_fail(
			&lane->call->error, BATON_E_UNSUPPORTED,
			"a pooler stands between us and PostgreSQL, and %s needs a session of our "
			"own: connect directly, or leave %s out",
			what, what);
		return BATON_E_UNSUPPORTED;
	}
	if (PQserverVersion(lane->conn.pg) < SESSION_VERSION_MIN) {
		store_fail(&lane->call->error, BATON_E_UNSUPPORTED,
			   "the server is PostgreSQL %d; %s needs 14 or newer",
			   PQserverVersion(lane->conn.pg) / 10000, what);
		return BATON_E_UNSUPPORTED;
	}
	return 0;
}

/* A statement has to see what the statements before it did. With one snapshot for the whole
 * transaction it would not. */
static int refuse_isolation(struct pg_lane *lane, const char *isolation)
{
	store_fail(
		&lane->call->error, BATON_E_UNSUPPORTED,
		"transactions of the role %.63s are \"%.20s\", not \"read committed\": ALTER ROLE "
		"... SET default_transaction_isolation = 'read committed'",
		PQuser(lane->conn.pg), isolation);
	return BATON_E_UNSUPPORTED;
}

/* Rule 4 and N24: finds out whether a pooler is in between, which gives out a process id of its own
 * making. */
static int connect_greet(struct pg_lane *lane)
{
	struct pg_conn *c = &lane->conn;

	if (PQserverVersion(c->pg) < PG_SERVER_MIN) {
		store_fail(&lane->call->error, BATON_E_UNSUPPORTED,
			   "the server is PostgreSQL %d; baton needs 12 or newer",
			   PQserverVersion(c->pg) / 10000);
		return BATON_E_UNSUPPORTED;
	}
	if (PQsetnonblocking(c->pg, 1) != 0 || PQenterPipelineMode(c->pg) != 1) {
		store_fail(&lane->call->error, BATON_E_SYSTEM, "libpq has no pipeline mode");
		return BATON_E_SYSTEM;
	}
	c->pooled = true; /* until we know: so nothing is prepared */
	lane->n_pushed = 0;
	lane->push_failed = false;
	pg_push(lane, PG_HELLO, 0, NULL);
	if (pg_run(lane) != BATON_OUTCOME_OK)
		return lane->call->error.code;
	const PGresult *r = pg_result(lane, 0);

	c->pid = (int)pg_number(r, 0, 0);
	c->pooled = c->pid != PQbackendPID(c->pg);
	c->start_us = pg_number(r, 0, 2);
	if (lane == lane->store->lock_lane)
		atomic_store(&lane->store->lock_pid, c->pid);
	pg_clock_seen(lane, pg_number(r, 0, 1));
	char isolation[24];

	pg_copy(isolation, sizeof(isolation), r, 0, 3);
	pg_results_clear(lane);
	return strcmp(isolation, "read committed") == 0 || lane->examines
		       ? connect_check_session(lane)
		       : refuse_isolation(lane, isolation);
}

int pg_connect(struct pg_lane *lane)
{
	int code = connect_dial(lane);

	if (code == 0)
		code = connect_greet(lane);
	if (code == 0)
		atomic_store(&lane->store->good_turn, lane->conn.turn);
	if (code != 0) {
		pg_results_clear(lane);
		if (!lane->conn.connecting)
			pg_conn_close(lane);
	}
	return code;
}
