/*
 * connect.c: a connection to the server, and one request on it. It uses libmariadb's non-blocking
 * functions and poll(), so that everything ends by the call's deadline (L7).
 *
 * Names are looked up first (base/lookup.h), because the library's own lookup knows no deadline.
 * The addresses are tried one after the other. With TLS the library must be given the name, since
 * it compares the certificate with it. The library then looks the name up again, which is quick
 * right after the first lookup, and tries the addresses by itself. We only end its wait for one
 * that drops what comes. One that stays silent is beyond us: then no other address is tried.
 */
#include <arpa/inet.h>
#include <errmsg.h>
#include <mysqld_error.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/secret.h"
#include "store/mysql/mysql.h"

/* How many steps the library may take to end a request that is given up. */
#define GIVE_UP_STEPS 64
#define ER_WRONG_BINLOG_FORMAT 1665

/* ---- what went wrong ---- */

unsigned mysql_code(const struct mysql_lane *lane)
{
	return lane->session != NULL ? mysql_errno(lane->session) : 0;
}

static int code_of(unsigned error)
{
	switch (error) {
	case ER_ACCESS_DENIED_ERROR:
	case ER_DBACCESS_DENIED_ERROR:
	case ER_TABLEACCESS_DENIED_ERROR:
	case ER_COLUMNACCESS_DENIED_ERROR:
	case ER_SPECIFIC_ACCESS_DENIED_ERROR:
	case ER_BAD_DB_ERROR:
	case ER_HOST_NOT_PRIVILEGED:
	case ER_OPTION_PREVENTS_STATEMENT: /* the server is read-only: perhaps a replica */
	case ER_MUST_CHANGE_PASSWORD:
	case ER_WRONG_BINLOG_FORMAT: return BATON_E_DENIED;
	case ER_LOCK_WAIT_TIMEOUT:
	case ER_LOCK_DEADLOCK: return BATON_E_BUSY;
	case ER_BAD_FIELD_ERROR:
	case ER_DATA_TOO_LONG: return BATON_E_CORRUPT;
	default: return BATON_E_UNAVAILABLE;
	}
}

static const char *advice_for(unsigned error)
{
	switch (error) {
	case ER_TABLEACCESS_DENIED_ERROR:
	case ER_COLUMNACCESS_DENIED_ERROR: return "; grant what `baton schema mysql` lists";
	case ER_OPTION_PREVENTS_STATEMENT: return "; connect to the primary, not to a replica";
	case ER_BAD_DB_ERROR: return "; create the database, or name another one in the URL";
	case ER_NO_SUCH_TABLE: return "; the tables are made anew";
	case ER_WRONG_BINLOG_FORMAT: return "; set binlog_format to MIXED or ROW";
	case ER_CON_COUNT_ERROR: return "; raise max_connections";
	default: return "";
	}
}

static void tell_error(struct mysql_lane *lane)
{
	unsigned error = mysql_code(lane);

	(void)store_fail(&lane->call->error, code_of(error), "the server says: %.150s (%u)%s",
			 mysql_error(lane->session), error, advice_for(error));
}

static void tell_late(struct mysql_lane *lane)
{
	(void)store_fail(&lane->call->error, BATON_E_TIMEOUT,
			 "the server did not answer in time; the connection is given up");
}

/* ---- waiting ---- */

/* Waits for the socket. Returns what has happened, for the library; 0: that time has passed. */
static int await_socket(const struct mysql_lane *lane, int wanted, uint64_t until_ns)
{
	struct pollfd fd = {.fd = mysql_get_socket(lane->session)};
	uint64_t now_ns = clock_boot_ns();
	uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	uint64_t left_ms = left_ns / CLOCK_NS_PER_MS;

	fd.events = (short)(((wanted & MYSQL_WAIT_READ) != 0 ? POLLIN : 0) |
			    ((wanted & MYSQL_WAIT_WRITE) != 0 ? POLLOUT : 0) |
			    ((wanted & MYSQL_WAIT_EXCEPT) != 0 ? POLLPRI : 0));
	if (left_ns == 0 || poll(&fd, 1, left_ms < 60000 ? (int)left_ms + 1 : 60000) < 0)
		return 0;
	return ((fd.revents & (POLLIN | POLLHUP | POLLERR)) != 0 ? wanted & MYSQL_WAIT_READ : 0) |
	       ((fd.revents & (POLLOUT | POLLHUP | POLLERR)) != 0 ? wanted & MYSQL_WAIT_WRITE : 0) |
	       ((fd.revents & POLLPRI) != 0 ? wanted & MYSQL_WAIT_EXCEPT : 0);
}

/* Until when one of n tries may last that share the call's time. */
static uint64_t share_ns(const struct baton_call *call, size_t n)
{
	uint64_t now_ns = clock_boot_ns();

	return now_ns < call->deadline_ns ? now_ns + (call->deadline_ns - now_ns) / n
					  : call->deadline_ns;
}

/* Until when the library may stay with what it does: with an address of several, not for all of the
 * time. */
static uint64_t patience_ns(const struct mysql_lane *lane)
{
	return lane->n_addresses > 1 ? lane->address_ns : lane->call->deadline_ns;
}

/* Drives one call of the library to its end. `again` is its _cont function. An address that takes
 * more than its share of the time is left for the next one. False: the call was late, and was ended
 * by cutting the connection. */
static bool drive_call(struct mysql_lane *lane, int status,
		       int (*again)(struct mysql_lane *lane, int events, void *arg), void *arg)
{
	bool is_late = false;

	for (int steps = 0; status != 0 && steps < GIVE_UP_STEPS; steps += is_late) {
		int events = is_late ? 0 : await_socket(lane, status, patience_ns(lane));
		bool is_over = events == 0 && !is_late && clock_boot_ns() >= patience_ns(lane);

		if (is_over && lane->n_addresses > 1) {
			lane->address_ns = share_ns(lane->call, --lane->n_addresses);
			events = MYSQL_WAIT_TIMEOUT;
		} else if (is_over) {
			is_late = true;
			(void)shutdown(mysql_get_socket(lane->session), SHUT_RDWR);
		}
		if (events != 0 || is_late)
			status = again(lane, is_late ? MYSQL_WAIT_TIMEOUT : events, arg);
	}
	return !is_late;
}

/* ---- connecting ---- */

void mysql_disconnect(struct mysql_lane *lane)
{
	if (lane->session != NULL)
		mysql_close(lane->session);
	lane->session = NULL;
}

static int connect_again(struct mysql_lane *lane, int events, void *arg)
{
	return mysql_real_connect_cont(arg, lane->session, events);
}

static void set_habits(MYSQL *session, const struct mysql_options *o)
{
	my_bool on = 1, off = 0;
	unsigned no_file = 0;
	/* Else the library takes "localhost" for a socket of its choice. */
	unsigned protocol = o->socket[0] != '\0' ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;

	(void)mysql_options(session, MYSQL_OPT_NONBLOCK, NULL);
	(void)mysql_options(session, MYSQL_OPT_RECONNECT, &off);
	(void)mysql_options(session, MYSQL_OPT_LOCAL_INFILE, &no_file);
	(void)mysql_options(session, MYSQL_OPT_PROTOCOL, &protocol);
	(void)mysql_options(session, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	if (o->tls) {
		(void)mysql_options(session, MYSQL_OPT_SSL_ENFORCE, &on);
		(void)mysql_options(session, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &on);
		(void)mysql_ssl_set(session, o->files.key[0] != '\0' ? o->files.key : NULL,
				    o->files.cert[0] != '\0' ? o->files.cert : NULL,
				    o->files.ca[0] != '\0' ? o->files.ca : NULL, NULL, NULL);
	} else {
		(void)mysql_options(session, MYSQL_OPT_SSL_ENFORCE, &off);
		(void)mysql_options(session, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &off);
	}
}

/* The addresses of a host; NULL: there are none. */
static struct addrinfo *find_host(struct mysql_lane *lane, const struct option_host *h)
{
	struct addrinfo *list = NULL;
	int code = lookup(&lane->lookup, h->name, h->port, lane->call->deadline_ns, -1, &list);

	if (code == 0)
		return list;
	(void)store_fail(
		&lane->call->error, code == EAI_INPROGRESS ? BATON_E_TIMEOUT : BATON_E_UNAVAILABLE,
		"can't find the address of %.100s: %s", h->name,
		code == EAI_INPROGRESS ? "the name service does not answer" : gai_strerror(code));
	return NULL;
}

/* Several statements in one request are allowed, because a batch needs that. They are our own, and
 * no text of others stands in them. */
static bool log_in(struct mysql_lane *lane, const char *host, const char *port)
{
	const struct mysql_options *o = &lane->store->options;
	char password[MYSQL_TEXT_MAX];
	MYSQL *done = NULL;

	if (!option_password(&o->login, password, sizeof(password), &lane->call->error))
		return false;
	lane->session = mysql_init(NULL);
	if (lane->session == NULL) {
		(void)store_fail(&lane->call->error, BATON_E_MEMORY, "no memory for a connection");
		return false;
	}
	set_habits(lane->session, o);
	bool in_time = drive_call(
		lane,
		mysql_real_connect_start(&done, lane->session, host, o->login.user, password,
					 o->database, (unsigned)strtoul(port, NULL, 10),
					 o->socket[0] != '\0' ? o->socket : NULL,
					 CLIENT_MULTI_STATEMENTS | CLIENT_FOUND_ROWS),
		connect_again, &done);

	explicit_bzero(password, sizeof(password));
	lane->n_addresses = 0;
	if (in_time && done != NULL)
		return true;
	if (in_time)
		tell_error(lane);
	else
		tell_late(lane);
	mysql_disconnect(lane);
	return false;
}

/* ---- a request ---- */

struct request {
	MYSQL_RES *rows;
	mysql_row_found *found;
	void *arg;
};

static int query_again(struct mysql_lane *lane, int events, void *arg)
{
	return mysql_real_query_cont(arg, lane->session, events);
}

static int next_again(struct mysql_lane *lane, int events, void *arg)
{
	return mysql_next_result_cont(arg, lane->session, events);
}

static int rows_again(struct mysql_lane *lane, int events, void *arg)
{
	return mysql_store_result_cont(arg, lane->session, events);
}

/* Reads all rows of one statement into memory, so that later reads never wait. */
static bool take_rows(struct mysql_lane *lane, struct request *r, uint64_t *n_changed)
{
	MYSQL_ROW row;

	r->rows = NULL;
	if (!drive_call(lane, mysql_store_result_start(&r->rows, lane->session), rows_again,
			&r->rows) ||
	    mysql_code(lane) != 0)
		return false;
	if (r->rows == NULL) {
		*n_changed += mysql_affected_rows(lane->session);
		return true;
	}
	while (r->found != NULL && (row = mysql_fetch_row(r->rows)) != NULL)
		r->found(r->arg, row, mysql_fetch_lengths(r->rows));
	mysql_free_result(r->rows);
	return true;
}

/* Notes whether the tables are there. If not, the next request looks for them, and makes them. */
static void note_table(struct mysql_store *store, bool is_there)
{
	store_lock(&store->base);
	store->has_table = is_there;
	store_unlock(&store->base);
}

/* The server ends the session, whatever it was doing. */
static bool is_of_ended_session(unsigned error)
{
	return error == ER_SERVER_SHUTDOWN || error == ER_CONNECTION_KILLED ||
	       error == ER_ABORTING_CONNECTION || error == ER_NEW_ABORTING_CONNECTION ||
	       (error >= ER_NET_READ_ERROR && error <= ER_NET_WRITE_INTERRUPTED);
}

/* The server gave up the statement, which may have been the one that commits. */
static bool is_of_ended_statement(unsigned error)
{
	return error == ER_QUERY_INTERRUPTED || error == ER_STATEMENT_TIMEOUT ||
	       error == ER_ERROR_DURING_COMMIT;
}

/* Nearly every error of the server is an answer: nothing was committed. The caller ends a
 * transaction that it has begun. */
static int end_badly(struct mysql_lane *lane, bool in_time)
{
	unsigned error = mysql_code(lane);
	bool is_answer =
		in_time && error != 0 && error < CR_MIN_ERROR && !is_of_ended_session(error);

	if (!in_time)
		tell_late(lane);
	else
		tell_error(lane);
	/* If a primary has become a replica, another host is the primary now. */
	bool is_elsewhere = is_answer && error == ER_OPTION_PREVENTS_STATEMENT &&
			    lane->store->options.login.n_hosts > 1;

	if (is_answer && error == ER_NO_SUCH_TABLE)
		note_table(lane->store, false);
	lane->turn += is_elsewhere;
	if (!is_answer || is_elsewhere)
		mysql_disconnect(lane);
	if (is_answer && is_of_ended_statement(error))
		return MYSQL_UNSURE;
	return is_answer ? MYSQL_REFUSED : MYSQL_NO_ANSWER;
}

int mysql_begin(struct mysql_lane *lane, struct baton_call *call)
{
	lane->call = call;
	if (lane->sql.has_failed || lane->session == NULL) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
		return MYSQL_UNSENT;
	}
	if (clock_boot_ns() >= call->deadline_ns) {
		(void)store_fail(&call->error, BATON_E_TIMEOUT, "there was no time for a request");
		return MYSQL_UNSENT;
	}
	lane->waits_for =
		mysql_real_query_start(&lane->has_failed, lane->session, lane->sql.at, lane->sql.n);
	return MYSQL_DONE;
}

int mysql_finish(struct mysql_lane *lane, struct baton_call *call, mysql_row_found *found,
		 void *arg, uint64_t *n_changed)
{
	struct request r = {.found = found, .arg = arg};
	uint64_t changed = 0;
	int more = 0;

	lane->call = call;
	bool in_time = drive_call(lane, lane->waits_for, query_again, &lane->has_failed);

	while (in_time && lane->has_failed == 0 && more == 0) {
		if (!take_rows(lane, &r, &changed))
			return end_badly(lane, clock_boot_ns() < call->deadline_ns);
		/* more is -1: that was the last result; 0: there is another; else: an error */
		in_time = drive_call(lane, mysql_next_result_start(&more, lane->session),
				     next_again, &more);
	}
	if (!in_time || lane->has_failed != 0 || more > 0)
		return end_badly(lane, in_time);
	if (n_changed != NULL)
		*n_changed = changed;
	return MYSQL_DONE;
}

int mysql_run(struct mysql_lane *lane, struct baton_call *call, mysql_row_found *found, void *arg,
	      uint64_t *n_changed)
{
	int end = mysql_begin(lane, call);

	return end == MYSQL_DONE ? mysql_finish(lane, call, found, arg, n_changed) : end;
}

/* ---- the session ---- */

static const char set_up[] =
	"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;"
	"SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES', innodb_lock_wait_timeout = 5;"
	"SHOW VARIABLES WHERE Variable_name IN "
	"('tx_isolation', 'transaction_isolation', 'read_only')";

struct state {
	char isolation[32];
	bool is_read_only;
};

static void note_state(void *arg, MYSQL_ROW row, const unsigned long *sizes)
{
	struct state *s = arg;

	(void)sizes;
	if (row[0] == NULL || row[1] == NULL)
		return;
	if (strcmp(row[0], "read_only") == 0)
		s->is_read_only = strcmp(row[1], "OFF") != 0 && strcmp(row[1], "0") != 0;
	else
		(void)snprintf(s->isolation, sizeof(s->isolation), "%s", row[1]);
}

static void note_version(void *arg, MYSQL_ROW row, const unsigned long *sizes)
{
	(void)sizes;
	*(long *)arg = row[0] != NULL ? strtol(row[0], NULL, 10) : 0;
}

static bool run_text(struct mysql_lane *lane, const char *text, mysql_row_found *found, void *arg)
{
	bytes_clear(&lane->sql);
	bytes_print(&lane->sql, "%s", text);
	return mysql_run(lane, lane->call, found, arg, NULL) == MYSQL_DONE;
}

static bool make_tables(struct mysql_lane *lane)
{
	const char *database = lane->store->options.database;

	for (size_t i = 0; mysql_schema_statements[i] != NULL; i++) {
		if (run_text(lane, mysql_schema_statements[i], NULL, NULL))
			continue;
		if (lane->call->error.code == BATON_E_DENIED &&
		    mysql_code(lane) == ER_TABLEACCESS_DENIED_ERROR)
			(void)store_fail(
				&lane->call->error, BATON_E_DENIED,
				"baton's tables are not in \"%.64s\", and this user may not make "
				"them; let an administrator run `baton schema mysql | mariadb "
				"%.64s`",
				database, database);
		return false;
	}
	return true;
}

/* The first process that has the right makes the tables. A user without that right works once the
 * tables are there. */
static bool see_to_table(struct mysql_lane *lane)
{
	long version = 0;

	store_lock(&lane->store->base);
	bool is_seen = lane->store->has_table;

	store_unlock(&lane->store->base);
	if (is_seen)
		return true;
	static const char ask[] = "SELECT MAX(version) FROM baton_version;"
				  "SELECT NULL FROM baton_record LIMIT 0";
	bool is_told = run_text(lane, ask, note_version, &version);
	/* No version: another process is making the tables at this moment. */
	bool is_there = is_told && version != 0;

	if (!is_told && mysql_code(lane) != ER_NO_SUCH_TABLE)
		return false;
	if (!is_there && !make_tables(lane))
		return false;
	if (!is_there && !run_text(lane, ask, note_version, &version))
		return false;
	if (version != MYSQL_LAYOUT) {
		(void)store_fail(
			&lane->call->error, BATON_E_CORRUPT,
			"the tables have layout %ld, and this baton knows layout %d: use a "
			"newer baton",
			version, MYSQL_LAYOUT);
		return false;
	}
	lane->call->error = (struct baton_error){0};
	note_table(lane->store, true);
	return true;
}

/* Sets the session up, and closes it if it is not as it must be. A read-only host is skipped if
 * there are others. */
static bool set_up_session(struct mysql_lane *lane)
{
	struct state s = {.isolation = ""};
	bool is_fit = run_text(lane, set_up, note_state, &s);

	if (is_fit && strcmp(s.isolation, "READ-COMMITTED") != 0) {
		is_fit = false;
		(void)store_fail(&lane->call->error, BATON_E_UNSUPPORTED,
				 "the session's isolation level is %s, although READ COMMITTED was "
				 "asked for; name the server itself, without a proxy",
				 s.isolation);
	}
	if (is_fit && s.is_read_only && lane->store->options.login.n_hosts > 1) {
		is_fit = false;
		(void)store_fail(&lane->call->error, BATON_E_DENIED,
				 "the server is read-only: a replica, perhaps; the next one of the "
				 "URL is tried");
	}
	if (!is_fit)
		mysql_disconnect(lane);
	return is_fit;
}

/* Tries one address, or a name that the library looks up. */
static bool try_address(struct mysql_lane *lane, const char *host, const char *port)
{
	return log_in(lane, host, port) && set_up_session(lane);
}

/* With TLS the library walks through the addresses, for it wants the name: n of them. */
static bool try_name(struct mysql_lane *lane, const struct option_host *h, size_t n)
{
	lane->n_addresses = n;
	lane->address_ns = share_ns(lane->call, n);
	return try_address(lane, h->name, h->port);
}

/* Tries the addresses of a host, beginning with the one that worked last. They share the time:
 * neither one that drops what comes nor one that stays silent may take it all. */
static bool try_addresses(struct mysql_lane *lane, const struct option_host *h,
			  const struct addrinfo *list, size_t n)
{
	struct baton_call *call = lane->call;
	bool is_open = false;

	for (size_t i = 0; i < n && !is_open; i++) {
		const struct addrinfo *a = list;
		char address[NI_MAXHOST];
		struct baton_call try = *call;

		for (size_t k = lane->address % n; k > 0; k--)
			a = a->ai_next;
		try.deadline_ns = share_ns(call, n - i);
		lane->call = &try;
		is_open = getnameinfo(a->ai_addr, a->ai_addrlen, address, sizeof(address), NULL, 0,
				      NI_NUMERICHOST) == 0 &&
			  try_address(lane, address, h->port);
		call->error = try.error;
		lane->address += !is_open;
	}
	lane->call = call;
	return is_open;
}

static bool try_host(struct mysql_lane *lane, const struct option_host *h)
{
	struct addrinfo *list = find_host(lane, h);
	size_t n = 0;

	for (const struct addrinfo *a = list; a != NULL; a = a->ai_next)
		n++;
	bool is_open = n > 0 && (lane->store->options.tls ? try_name(lane, h, n)
							  : try_addresses(lane, h, list, n));

	if (list != NULL)
		freeaddrinfo(list);
	return is_open;
}

/* Tries each host once, beginning with the one that worked last. They share the time, too. */
static bool open_session(struct mysql_lane *lane)
{
	const struct mysql_options *o = &lane->store->options;
	struct baton_call *call = lane->call;
	bool is_open = false;

	if (o->socket[0] != '\0')
		return try_address(lane, NULL, "0");
	for (size_t left = o->login.n_hosts; left > 0 && !is_open; left--) {
		struct baton_call try = *call;

		try.deadline_ns = share_ns(call, left);
		lane->call = &try;
		is_open = try_host(lane, &o->login.hosts[lane->turn % o->login.n_hosts]);
		call->error = try.error;
		lane->turn += !is_open;
	}
	lane->call = call;
	return is_open;
}

bool mysql_connect(struct mysql_lane *lane, struct baton_call *call, bool with_table)
{
	lane->call = call;
	if (lane->session == NULL && !open_session(lane))
		return false;
	return !with_table || see_to_table(lane);
}

void mysql_literal(struct bytes *sql, const void *at, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *from = at;
	char piece[256];
	size_t used = 0;

	bytes_print(sql, "x'");
	for (size_t i = 0; i < n; i++) {
		piece[used++] = digits[from[i] >> 4];
		piece[used++] = digits[from[i] & 15];
		if (used == sizeof(piece) || i + 1 == n) {
			bytes_print(sql, "%.*s", (int)used, piece);
			used = 0;
		}
	}
	bytes_print(sql, "'");
}
