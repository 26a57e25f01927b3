/*
 * doctor.c: examines a MySQL or MariaDB server: whether it keeps what it commits, whether it is one
 * of several, what stands in between, and whether the tables are there. It writes nothing.
 */
#include <mysqld_error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/mysql/mysql.h"

#define TELL(v, level, ...) doctor_tell(&(v)->doctor, BATON_FINDING_##level, __VA_ARGS__)
#define N_SETTINGS (sizeof(names) / sizeof(names[0]))

/* The variables that are asked for. A server leaves out those that it doesn't know. */
static const char *const names[] = {
	"version",
	"read_only",
	"innodb_flush_log_at_trx_commit",
	"binlog_format",
	"log_bin",
	"wsrep_on",
	"rpl_semi_sync_master_enabled",
	"rpl_semi_sync_source_enabled",
	"max_connections",
	"wait_timeout",
	"tx_isolation",
	"transaction_isolation",
};

struct visit {
	struct mysql_lane *lane;
	struct doctor doctor;
	char values[N_SETTINGS][64];
	long n_sessions;
	bool is_unfit; /* the store can't be used, so nothing is tried */
};

static const char *setting(const struct visit *v, const char *name)
{
	for (size_t i = 0; i < N_SETTINGS; i++)
		if (strcmp(names[i], name) == 0)
			return v->values[i];
	return "";
}

static bool is_on(const struct visit *v, const char *name)
{
	return strcmp(setting(v, name), "ON") == 0 || strcmp(setting(v, name), "1") == 0;
}

static void note_setting(void *arg, MYSQL_ROW row, const unsigned long *sizes)
{
	struct visit *v = arg;

	for (size_t i = 0; i < N_SETTINGS; i++)
		if (row[0] != NULL && row[1] != NULL && strcmp(row[0], names[i]) == 0)
			(void)snprintf(v->values[i], sizeof(v->values[i]), "%.*s", (int)sizes[1],
				       row[1]);
	if (row[0] != NULL && row[1] != NULL && strcmp(row[0], "Threads_connected") == 0)
		v->n_sessions = strtol(row[1], NULL, 10);
}

static int ask_settings(struct visit *v, struct baton_call *call)
{
	struct bytes *sql = &v->lane->sql;

	bytes_clear(sql);
	bytes_print(sql, "SHOW VARIABLES WHERE Variable_name IN (");
	for (size_t i = 0; i < N_SETTINGS; i++)
		bytes_print(sql, "%s'%s'", i == 0 ? "" : ",", names[i]);
	bytes_print(sql, ");SHOW STATUS LIKE 'Threads_connected'");
	return mysql_run(v->lane, call, note_setting, v, NULL);
}

static void tell_server(struct visit *v)
{
	const struct mysql_options *o = &v->lane->store->options;

	TELL(v, OK, "reachability", NULL, "The server answers, database %s.", o->database);
	TELL(v, OK, "version", NULL, "It is %s.", setting(v, "version"));
	doctor_tell_encryption(
		&v->doctor, o->tls, o->socket[0] != '\0' || doctor_is_local(o->login.hosts[0].name),
		o->login.password[0] != '\0' || o->login.password_file[0] != '\0' ? "password"
										  : NULL,
		"Say tls=1, and ca= with the authority that signed the server's certificate.");
	doctor_tell_connections(&v->doctor, v->n_sessions,
				strtol(setting(v, "max_connections"), NULL, 10),
				"Raise max_connections.");
	const char *isolation = setting(v, "transaction_isolation");

	if (isolation[0] == '\0')
		isolation = setting(v, "tx_isolation");
	TELL(v, OK, "isolation", NULL, "Sessions are set to %s.", isolation);
	if (is_on(v, "read_only"))
		TELL(v, ERROR, "role", "Name the primary in the URL.",
		     "The server is read-only; it may be a replica.");
	v->is_unfit = is_on(v, "read_only");
	if (is_on(v, "log_bin") && strcmp(setting(v, "binlog_format"), "STATEMENT") == 0)
		TELL(v, ERROR, "binlog_format", "Set binlog_format to MIXED or ROW.",
		     "binlog_format is STATEMENT, which forbids writes at READ COMMITTED.");
}

static void tell_durability(struct visit *v)
{
	if (strcmp(setting(v, "innodb_flush_log_at_trx_commit"), "1") == 0)
		TELL(v, OK, "persistence", NULL, "What is committed is on the disk.");
	else
		TELL(v, WARNING, "persistence", "Set innodb_flush_log_at_trx_commit to 1.",
		     "A crash of the server's machine may lose the last commits: two may lead "
		     "until a lease is over.");
	if (is_on(v, "wsrep_on"))
		TELL(v, WARNING, "cluster",
		     "Name one node in the URL, the same for all candidates.",
		     "The server is a node of a Galera cluster: candidates on different nodes "
		     "may both be told that they have won, until one of the two commits fails.");
	else if (is_on(v, "rpl_semi_sync_master_enabled") ||
		 is_on(v, "rpl_semi_sync_source_enabled"))
		TELL(v, OK, "replication", NULL,
		     "Semi-synchronous: a replica has what was committed.");
	else
		TELL(v, NOTE, "replication", DOCTOR_ACROSS_LOSS,
		     "A failover to a replica may lose the last commits.");
}

/* Tells of a proxy between us and the server, and of other nodes beside it. */
static void tell_way(struct visit *v, struct baton_call *call)
{
	const struct mysql_options *o = &v->lane->store->options;
	bool is_galera = false, is_ours = false;
	bool is_known = mysql_try_locks(v->lane, call, &is_galera, &is_ours);

	if (is_known && !is_ours)
		TELL(v, WARNING, "proxy", "Name the server itself in the URL.",
		     "A proxy stands in front of the server: standbys are not woken and only look, "
		     "mode=lock is refused, and the proxy must send all candidates to the same "
		     "primary.");
	if (is_known && o->has_locks && (is_galera || !is_ours)) {
		TELL(v, ERROR, "locks", "Leave mode=lock out.",
		     "Named locks keep no other program away here: they belong to %s.",
		     is_galera ? "one node" : "the proxy's sessions");
		v->is_unfit = true;
	}
	if (o->login.n_hosts > 1)
		TELL(v, NOTE, "hosts",
		     "Name servers of which at most one can be written to at any time.",
		     "The URL names %zu servers: a candidate uses the first one that answers and "
		     "is not read-only.",
		     o->login.n_hosts);
}

static void tell_rights(struct visit *v, struct baton_call *call)
{
	struct bytes *sql = &v->lane->sql;

	bytes_clear(sql); /* these statements touch no row */
	bytes_print(sql, "UPDATE baton_record SET w = w WHERE FALSE;"
			 "DELETE FROM baton_record WHERE FALSE;"
			 "INSERT INTO baton_record SELECT * FROM baton_record WHERE FALSE");
	int end = mysql_run(v->lane, call, NULL, NULL, NULL);

	if (end == MYSQL_DONE)
		TELL(v, OK, "rights", NULL, "The tables can be written to.");
	else
		TELL(v, ERROR, "rights", "Grant what `baton schema mysql` lists.",
		     "The tables can't be written to: %s.", call->error.text);
	v->is_unfit = v->is_unfit || end != MYSQL_DONE;
}

/* ---- the functions ---- */

struct marks {
	bool has_functions; /* as far as this user may see */
	long n;
	struct bytes names;
};

static void note_functions(void *arg, MYSQL_ROW row, const unsigned long *sizes)
{
	struct marks *m = arg;

	if (row[0] == NULL) /* a marked election: its name */
		bytes_print(&m->names, "%s%.*s", m->names.n > 0 ? ", " : "", (int)sizes[1], row[1]);
	else if (strcmp(row[0], "marks") == 0)
		m->n = strtol(row[1], NULL, 10);
	else
		m->has_functions = strtol(row[1], NULL, 10) > 0;
}

static void put_marks(struct visit *v)
{
	const char *prefix = v->lane->store->prefix;
	struct bytes *sql = &v->lane->sql;

	for (char end = '/'; end <= '0'; end++) {
		bytes_print(sql, end == '/' ? " FROM baton_record WHERE k >= CONCAT("
					    : " AND k < CONCAT(");
		mysql_literal(sql, prefix, strlen(prefix));
		bytes_print(sql, ", '%sm%c')", prefix[0] != '\0' ? "/" : "", end);
	}
}

/* In an election that is marked, programs that call the functions take over by the server's
 * clock. */
static void tell_functions(struct visit *v, struct baton_call *call)
{
	struct bytes *sql = &v->lane->sql;
	struct marks m = {.n = 0};

	bytes_clear(sql);
	bytes_print(sql, "SELECT 'functions', COUNT(*) FROM information_schema.ROUTINES WHERE "
			 "ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME = 'try_become_leader';"
			 "SELECT 'marks', COUNT(*)");
	put_marks(v);
	bytes_print(sql, ";SELECT NULL, v");
	put_marks(v);
	bytes_print(sql, " ORDER BY k LIMIT 3");
	int end = mysql_run(v->lane, call, note_functions, &m, NULL);

	if (end == MYSQL_DONE && m.n > 0)
		TELL(v, WARNING, "functions",
		     "Let the server's clock be slewed, never set, while a candidate leads; or "
		     "CALL mark_for_functions(NAME, FALSE).",
		     "Elections are marked for SQL functions (%ld: %.*s%s): there, programs that "
		     "call them take over when a lease is over by the server's clock.",
		     m.n, (int)m.names.n, m.names.at, m.n > 3 ? ", ..." : "");
	else if (end == MYSQL_DONE && m.has_functions)
		TELL(v, OK, "functions", NULL,
		     "SQL functions are installed, and no election is marked for them: by the "
		     "server's clock they end only leases that they made.");
	bytes_done(&m.names);
}

static void note_layout(void *arg, MYSQL_ROW row, const unsigned long *sizes)
{
	(void)sizes;
	*(long *)arg = row[0] != NULL ? strtol(row[0], NULL, 10) : 0;
}

static void tell_tables(struct visit *v, struct baton_call *call)
{
	struct bytes *sql = &v->lane->sql;
	long layout = 0;

	bytes_clear(sql);
	bytes_print(sql, "SELECT MAX(version) FROM baton_version;"
			 "SELECT NULL FROM baton_record LIMIT 0");
	int end = mysql_run(v->lane, call, note_layout, &layout, NULL);

	v->is_unfit = v->is_unfit || end != MYSQL_DONE || layout > MYSQL_LAYOUT;
	if (end == MYSQL_DONE && layout > MYSQL_LAYOUT)
		TELL(v, ERROR, "tables", "Use a newer baton.",
		     "The tables have layout %ld, and this baton knows layout %d.", layout,
		     MYSQL_LAYOUT);
	else if (end == MYSQL_DONE)
		TELL(v, OK, "tables", NULL, "The tables exist.");
	else if (end == MYSQL_REFUSED && mysql_code(v->lane) == ER_NO_SUCH_TABLE)
		TELL(v, NOTE, "tables", "Run `baton schema mysql`, or let baton make them.",
		     "The tables don't exist yet.");
	else
		TELL(v, ERROR, "tables", "Grant what `baton schema mysql` lists.",
		     "The tables can't be read: %s.", call->error.text);
	if (end == MYSQL_DONE) {
		tell_rights(v, call);
		tell_functions(v, call);
	}
}

int mysql_examine(void *lane, struct baton_call *call,
		  void (*found)(void *arg, const struct baton_finding *finding), void *arg)
{
	struct visit v = {.lane = lane, .doctor = {.found = found, .arg = arg}};

	if (!mysql_connect(v.lane, call, false) || ask_settings(&v, call) != MYSQL_DONE)
		return BATON_OUTCOME_FAILED; /* the caller reports the call's error */
	tell_server(&v);
	tell_durability(&v);
	tell_way(&v, call);
	tell_tables(&v, call);
	return v.is_unfit ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_OK;
}
