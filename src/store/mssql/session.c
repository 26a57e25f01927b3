/*
 * session.c: sets a connection up before its first request, and has the sentences for errors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sybdb.h>
#include <sybfront.h>

#include "base/clock.h"
#include "base/secret.h"
#include "store/mssql/mssql.h"

static const struct {
	int error;
	int code;
	const char *advice;
} errors[] = {
	{MSSQL_E_LOGIN, BATON_E_DENIED, ""},
	{MSSQL_E_NO_DATABASE, BATON_E_DENIED,
	 "; create the database, or name another one in the URL"},
	{MSSQL_E_DENIED, BATON_E_DENIED, "; grant what `baton schema mssql` lists"},
	{MSSQL_E_MAY_NOT_CREATE, BATON_E_DENIED, "; let an administrator run `baton schema mssql`"},
	{MSSQL_E_READ_ONLY, BATON_E_DENIED, "; connect to the primary, not to a secondary"},
	{MSSQL_E_DEADLOCK, BATON_E_BUSY, ""},
	{MSSQL_E_LOCK_TIMEOUT, BATON_E_BUSY, ""},
	{MSSQL_E_NO_OBJECT, BATON_E_UNAVAILABLE, "; the tables are made anew"},
};

/* The library's own sentences about TLS say little, so ours say what we know. */
static void tell_library(const struct mssql_lane *lane, struct baton_error *err,
			 const struct mssql_answer *a)
{
	const struct option_host *host = &lane->store->options.login.hosts[lane->host];

	switch (a->said.library_error) {
	case SYBEUHST:
	case SYBEINTF:
		(void)store_fail(err, BATON_E_UNAVAILABLE,
				 "can't find the address of %.120s, or the settings of db-lib",
				 host->name);
		break;
	case SYBECONN:
		(void)store_fail(err, BATON_E_UNAVAILABLE,
				 "the server %.120s:%s can't be reached: %s", host->name,
				 host->port,
				 a->said.os_error != 0 ? strerror(a->said.os_error)
						       : "the connection ended at once");
		break;
	case SYBEFCON:
		(void)store_fail(err, BATON_E_UNAVAILABLE,
				 lane->store->options.encryption == MSSQL_PLAIN
					 ? "the server has refused the login: it may want TLS, "
					   "which encrypt=off forbids"
					 : "no TLS with the server: its certificate is not signed "
					   "by ca=, is expired or names another host, or the "
					   "server speaks no TLS");
		break;
	case 0:
		(void)store_fail(err, BATON_E_UNAVAILABLE, "the server has closed the connection");
		break;
	default:
		(void)store_fail(err, BATON_E_UNAVAILABLE, "the client library says: %.120s (%d)",
				 a->said.text, a->said.library_error);
	}
}

/* Notes whether the tables are there. If not, the next request looks for them, and makes them. */
static void note_table(struct mssql_store *store, bool is_there)
{
	store_lock(&store->base);
	store->has_table = is_there;
	store_unlock(&store->base);
}

void mssql_tell(const struct mssql_lane *lane, struct baton_error *err,
		const struct mssql_answer *a)
{
	const char *advice = "";
	int code = BATON_E_UNAVAILABLE;

	if (a->is_late) {
		(void)store_fail(err, BATON_E_TIMEOUT,
				 "the server did not answer in time; the connection is given up");
		return;
	}
	if (a->said.error == 0) {
		tell_library(lane, err, a);
		return;
	}
	if (a->said.error == MSSQL_E_NO_OBJECT)
		note_table(lane->store, false);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].error == a->said.error) {
			code = errors[i].code;
			advice = errors[i].advice;
		}
	}
	(void)store_fail(err, code, "the server says: %.150s (%d)%s", a->said.text, a->said.error,
			 advice);
}

/* ---- one request ---- */

static int run_on(struct mssql_lane *lane, struct mssql_line *line, struct baton_call *call,
		  const struct mssql_request *request, struct mssql_answer *answer)
{
	*answer = (struct mssql_answer){.end = MSSQL_UNSENT};
	if (clock_boot_ns() >= call->deadline_ns) {
		(void)store_fail(&call->error, BATON_E_TIMEOUT, "there was no time for a request");
		return MSSQL_UNSENT;
	}
	if (!mssql_worker_ask(line->worker, request)) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
		mssql_line_close(line);
		return MSSQL_UNSENT;
	}
	mssql_line_wait(line, call->deadline_ns, answer);
	lane->error = answer->said.error;
	if (answer->end != MSSQL_DONE)
		mssql_tell(lane, &call->error, answer);
	return answer->end;
}

int mssql_run(struct mssql_lane *lane, struct baton_call *call, const struct mssql_request *request,
	      mssql_row_found *found, void *arg, uint64_t *n_changed)
{
	struct mssql_answer answer;
	int end = run_on(lane, &lane->line, call, request, &answer);

	if (end == MSSQL_DONE && found != NULL)
		mssql_rows_each(&answer.rows, found, arg);
	if (n_changed != NULL)
		*n_changed = answer.n_changed;
	bytes_done(&answer.rows);
	return end;
}

/* ---- connecting ---- */

/* Starts a worker. It connects with its first request, which sets the session up. */
static bool log_in_at(struct mssql_lane *lane, struct mssql_line *line, struct baton_call *call,
		      size_t host)
{
	static const struct mssql_request set_up = {.sql = mssql_sql_set_up};
	const struct mssql_options *o = &lane->store->options;
	char password[MSSQL_TEXT_MAX];
	struct mssql_answer answer;

	if (!option_password(&o->login, password, sizeof(password), &call->error))
		return false;
	struct mssql_login login = {o->sections[host], o->login.user, password, o->database};
	int failed = mssql_worker_start(line, &login, &call->error);

	explicit_bzero(password, sizeof(password));
	if (failed != 0)
		return false;
	lane->host = host;
	bool is_good = run_on(lane, line, call, &set_up, &answer) == MSSQL_DONE;

	bytes_done(&answer.rows);
	if (!is_good)
		mssql_line_close(line);
	return is_good;
}

/* Tries the hosts one after the other, beginning with the one that worked last. Each has its share
 * of the time. */
static bool log_in(struct mssql_lane *lane, struct mssql_line *line, struct baton_call *call)
{
	const struct mssql_options *o = &lane->store->options;

	for (size_t left = o->login.n_hosts; left > 0; left--) {
		uint64_t now_ns = clock_boot_ns();
		struct baton_call try = *call;

		if (now_ns < call->deadline_ns)
			try.deadline_ns = now_ns + (call->deadline_ns - now_ns) / left;
		bool is_good = log_in_at(lane, line, &try, line->turn % o->login.n_hosts);

		call->error = try.error;
		if (is_good)
			return true;
		line->turn++;
	}
	return false;
}

static void note_layout(void *arg, const char *const *columns, const size_t *sizes)
{
	(void)sizes;
	*(long *)arg = columns[0] != NULL ? strtol(columns[0], NULL, 10) : 0;
}

static bool run_text(struct mssql_lane *lane, struct baton_call *call, const char *sql,
		     mssql_row_found *found, void *arg)
{
	struct mssql_request request = {.sql = sql};

	return mssql_run(lane, call, &request, found, arg, NULL) == MSSQL_DONE;
}

/* The first process that has the right makes the tables. A user without that right works once the
 * tables are there. */
static bool see_to_table(struct mssql_lane *lane, struct baton_call *call)
{
	long layout = 0;

	store_lock(&lane->store->base);
	bool is_seen = lane->store->has_table;

	store_unlock(&lane->store->base);
	if (is_seen)
		return true;
	bool is_told = run_text(lane, call, mssql_sql_layout, note_layout, &layout);
	/* No layout: another process is making the tables at this moment. */
	bool is_there = is_told && layout != 0;

	if (!is_told && lane->error != MSSQL_E_NO_OBJECT)
		return false;
	for (size_t i = 0; !is_there && mssql_schema_statements[i] != NULL; i++) {
		if (!run_text(lane, call, mssql_schema_statements[i], NULL, NULL) &&
		    lane->error != MSSQL_E_EXISTS && lane->error != MSSQL_E_DUPLICATE)
			return false; /* any other failure means that another process was faster */
	}
	if (!is_there && !run_text(lane, call, mssql_sql_layout, note_layout, &layout))
		return false;
	if (layout != MSSQL_LAYOUT) {
		(void)store_fail(&call->error, BATON_E_CORRUPT,
				 "the tables have layout %ld, and this baton knows layout %d: use "
				 "a newer baton",
				 layout, MSSQL_LAYOUT);
		return false;
	}
	call->error = (struct baton_error){0};
	note_table(lane->store, true);
	return true;
}

bool mssql_connect(struct mssql_lane *lane, struct mssql_line *line, struct baton_call *call,
		   bool with_table)
{
	if (line->worker != NULL && mssql_worker_is_lost(line->worker))
		mssql_line_close(line);
	if (line->worker == NULL && !log_in(lane, line, call))
		return false;
	return !with_table || see_to_table(lane, call);
}
