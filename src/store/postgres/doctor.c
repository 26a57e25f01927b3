/*
 * doctor.c: examines the PostgreSQL server: whether it answers and keeps what it commits, which
 * standbys have that too, whether a pooler stands in between, and whether our role has the rights
 * that the statements need. It makes no tables.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/doctor.h"
#include "store/postgres/postgres.h"

#define N_TABLES 5
/* The listening session sends something every 25 seconds. */
#define IDLE_MIN_MS 60000
#define WORD_SIZE 128

/* Columns of PG_EXAMINE. */
enum {
	VERSION,
	IS_STANDBY,
	FSYNC,
	SYNCHRONOUS_COMMIT,
	STANDBY_NAMES,
	N_STANDBYS,
	N_SESSIONS,
	MAX_SESSIONS,
	READ_ONLY,
	ISOLATION,
	IDLE_TIMEOUT_MS,
	MAY_CREATE,
};

/* Columns of PG_EXAMINE_FUNCTIONS. */
enum { HAS_FUNCTIONS, N_MARKED, MARKED };

/* Columns of PG_EXAMINE_TABLES. */
enum { TABLE, IS_UNLOGGED, MISSING_RIGHTS, HAS_USAGE };

struct visit {
	struct pg_lane *lane;
	struct doctor doctor;
	bool is_unfit;
	bool has_tables; /* ... and this role may use them */
	bool has_functions;
};

#define TELL(v, level, ...) doctor_tell(&(v)->doctor, BATON_FINDING_##level, __VA_ARGS__)

static void word(const PGresult *r, int row, int column, char out[WORD_SIZE])
{
	pg_copy(out, WORD_SIZE, r, row, column);
}

static bool is(const PGresult *r, int column, const char *value)
{
	char text[WORD_SIZE];

	word(r, 0, column, text);
	return strcmp(text, value) == 0;
}

/* ---- the server ---- */

static void look_at_server(struct visit *v, const PGresult *r)
{
	PGconn *pg = v->lane->conn.pg;
	const char *host = PQhost(pg);
	char version[WORD_SIZE];

	word(r, 0, VERSION, version);
	TELL(v, OK, "reachability", NULL, "PostgreSQL answers at %s, port %s, database %s.",
	     host != NULL ? host : "", PQport(pg), PQdb(pg));
	TELL(v, OK, "version", NULL, "The version is %s.", version);
	if (PQsslInUse(pg) != 0)
		TELL(v, OK, "encryption", NULL, "TLS (sslmode %s).",
		     pg_conninfo_get(&v->lane->store->info, "sslmode"));
	else if (doctor_is_local(host))
		TELL(v, OK, "encryption", NULL, "No encryption, and nothing leaves this machine.");
	else
		TELL(v, WARNING, "encryption",
		     "Take sslmode= out of the URL, so that it is verify-full.",
		     "No encryption: a machine in between can read and change everything.");
	if (v->lane->conn.pooled)
		TELL(v, WARNING, "pooler", "Let candidates connect to the server itself.",
		     "A pooler (such as PgBouncer) stands in between: there are no pushes, so a "
		     "handoff takes up to a poll instead of milliseconds.");
	else
		TELL(v, OK, "pooler", NULL,
		     "Nothing stands in between: standbys are told of changes.");
	doctor_tell_connections(&v->doctor, pg_number(r, 0, N_SESSIONS),
				pg_number(r, 0, MAX_SESSIONS), "Raise max_connections.");
}

static void look_at_settings(struct visit *v, const PGresult *r)
{
	int64_t idle_ms = pg_number(r, 0, IDLE_TIMEOUT_MS);
	char isolation[WORD_SIZE];

	word(r, 0, ISOLATION, isolation);
	if (is(r, READ_ONLY, "on")) {
		v->is_unfit = true;
		TELL(v, ERROR, "read only",
		     "ALTER ROLE ... SET default_transaction_read_only = off, or "
		     "connect to the primary.",
		     "Nothing can be written in this session.");
	}
	if (strcmp(isolation, "read committed") != 0) {
		v->is_unfit = true;
		TELL(v, ERROR, "isolation",
		     "ALTER ROLE ... SET default_transaction_isolation = 'read committed'.",
		     "Transactions are %s: statements that belong together would see the past.",
		     isolation);
	}
	if (idle_ms > 0 && idle_ms < IDLE_MIN_MS)
		TELL(v, WARNING, "timeouts", "ALTER ROLE ... SET idle_session_timeout = 0.",
		     "The server ends sessions that are idle for %.3g s (idle_session_timeout): "
		     "they are made anew, and hints wait meanwhile.",
		     (double)idle_ms / 1000);
}

static void look_at_persistence(struct visit *v, const PGresult *r)
{
	char commit[WORD_SIZE];

	word(r, 0, SYNCHRONOUS_COMMIT, commit);
	if (!is(r, FSYNC, "on"))
		TELL(v, ERROR, "persistence", "Set fsync = on.",
		     "The server doesn't wait for its disk (fsync off): a crash can lose claims "
		     "and terms, or all of it.");
	else if (strcmp(commit, "off") == 0)
		TELL(v, ERROR, "persistence", "ALTER ROLE ... SET synchronous_commit = on.",
		     "A commit is acknowledged before it is on the disk (synchronous_commit "
		     "off): a crash can lose a claim, and two may lead.");
	else
		TELL(v, OK, "persistence", NULL,
		     "What is committed is on its disk (synchronous_commit %s).", commit);
}

static void look_at_replication(struct visit *v, const PGresult *r)
{
	bool waits = !is(r, STANDBY_NAMES, "");
	bool is_for_us = !is(r, SYNCHRONOUS_COMMIT, "local") && !is(r, SYNCHRONOUS_COMMIT, "off");
	long long n = pg_number(r, 0, N_STANDBYS);

	if (pg_is_true(r, 0, IS_STANDBY)) {
		v->is_unfit = true;
		TELL(v, ERROR, "replication", "Name all hosts in the URL, separated by commas.",
		     "This server is a standby.");
	} else if (waits && n == 0) {
		v->is_unfit = true;
		TELL(v, ERROR, "replication",
		     "Start the standby, or empty synchronous_standby_names.",
		     "Each commit waits for a synchronous standby, and none is connected.");
	} else if (waits && is_for_us) {
		TELL(v, OK, "replication", NULL,
		     "A synchronous standby has each commit: exclusion survives the loss of this "
		     "server, if one that was synchronous is promoted.");
	} else if (n > 0) {
		TELL(v, WARNING, "replication",
		     "Set synchronous_standby_names, and leave synchronous_commit on; check "
		     "terms at the resource. " DOCTOR_ACROSS_LOSS,
		     "The server has standbys (%lld) that follow it later: a failover can lose "
		     "what was acknowledged, and two may lead.",
		     n);
	} else {
		TELL(v, NOTE, "replication", DOCTOR_ACROSS_LOSS,
		     "The server has no standby: while it is down no candidate leads, and what it "
		     "loses is lost.");
	}
}

/* ---- the tables ---- */

/* True: it has told of a fault of this table. */
static bool look_at_table(struct visit *v, const PGresult *r, int row)
{
	const char *schema = v->lane->store->info.schema;
	char name[WORD_SIZE], missing[WORD_SIZE];

	word(r, row, TABLE, name);
	word(r, row, MISSING_RIGHTS, missing);
	if (pg_is_true(r, row, IS_UNLOGGED)) {
		TELL(v, ERROR, "tables", "ALTER TABLE ... SET LOGGED.",
		     "The table %s.%s is UNLOGGED: a crash empties it, and terms begin anew.",
		     schema, name);
		return true;
	}
	/* The table of the version is only read. */
	bool may = strcmp(name, "version") == 0 ? strstr(missing, "SELECT") == NULL
						: missing[0] == '\0';

	if (may && pg_is_true(r, row, HAS_USAGE))
		return false;
	v->is_unfit = true;
	TELL(v, ERROR, "rights",
	     "GRANT USAGE ON SCHEMA ... and SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN "
	     "SCHEMA ... to this role.",
	     "This role may not use the table %s.%s (missing: %s).", schema, name,
	     may ? "USAGE on its schema" : missing);
	return true;
}

static void look_at_tables(struct visit *v, const PGresult *r, bool may_create)
{
	const char *schema = v->lane->store->info.schema;
	bool told = false;

	if (PQntuples(r) < N_TABLES) {
		v->is_unfit = true;
		doctor_tell(&v->doctor, may_create ? BATON_FINDING_NOTE : BATON_FINDING_WARNING,
			    "tables",
			    may_create ? NULL
				       : "Let a user with that right run: baton schema postgres "
					 "| psql DATABASE.",
			    "baton's tables are not in the schema %s yet; %s", schema,
			    may_create ? "the first candidate makes them."
				       : "this role may not make a schema for them.");
		return;
	}
	for (int row = 0; row < PQntuples(r); row++)
		told = look_at_table(v, r, row) || told;
	v->has_tables = !told;
	if (!told)
		TELL(v, OK, "rights", NULL, "The tables are there, and this role may use them.");
}

/* ---- the functions ---- */

/* In an election that is marked, programs that call the functions take over by the server's
 * clock. */
static int look_at_functions(struct visit *v)
{
	char marked[WORD_SIZE];

	pg_results_clear(v->lane);
	pg_push(v->lane, PG_EXAMINE_FUNCTIONS, 0, NULL);
	if (pg_run(v->lane) != BATON_OUTCOME_OK)
		return -1;
	const PGresult *r = pg_result(v->lane, 0);
	long long n = pg_number(r, 0, N_MARKED);

	v->has_functions = pg_is_true(r, 0, HAS_FUNCTIONS);
	word(r, 0, MARKED, marked);
	if (v->has_functions && n > 0)
		TELL(v, WARNING, "functions",
		     "Let the server's clock be slewed, never set, while a candidate leads; or "
		     "SELECT "
		     "baton.mark_for_functions(NAME, false).",
		     "Elections are marked for SQL functions (%lld: %s%s): there, programs that "
		     "call them take over when a lease is over by the server's clock.",
		     n, marked, n > 3 ? ", ..." : "");
	else if (v->has_functions)
		TELL(v, OK, "functions", NULL,
		     "SQL functions are installed, and no election is marked for them: by the "
		     "server's clock they end only leases that they made.");
	return 0;
}

/* ---- the way there ---- */

static int look_at_clock(struct visit *v)
{
	struct doctor_trips trips = {.n = 0};

	for (int i = 0; i < DOCTOR_TRIPS; i++) {
		uint64_t began_ns = clock_boot_ns();

		pg_results_clear(v->lane);
		pg_push(v->lane, PG_HELLO, 0, NULL);
		if (pg_run(v->lane) != BATON_OUTCOME_OK)
			return -1;
		doctor_trip_clock(&trips, began_ns, clock_boot_ns(),
				  pg_number(pg_result(v->lane, 0), 0, 1));
	}
	doctor_tell_trips(&v->doctor, &trips, "A request");
	doctor_tell_clock(&v->doctor, &trips,
			  v->has_functions
				  ? "Leases that SQL functions made or may end depend on it, and "
				    "times in the history and reservations."
				  : "No lease depends on it; times in the history and reservations "
				    "do.");
	return 0;
}

static int examine_server(struct visit *v)
{
	const char *params[] = {v->lane->store->info.schema};

	pg_results_clear(v->lane);
	pg_push(v->lane, PG_EXAMINE, 0, NULL);
	pg_push(v->lane, PG_EXAMINE_TABLES, 1, params);
	if (pg_run(v->lane) != BATON_OUTCOME_OK)
		return -1;
	const PGresult *r = pg_result(v->lane, 0);

	look_at_server(v, r);
	look_at_settings(v, r);
	look_at_persistence(v, r);
	look_at_replication(v, r);
	if (pg_is_tableless(v->lane->store))
		TELL(v, OK, "tables", NULL, "mode=advisory&fast=1 needs none.");
	else
		look_at_tables(v, pg_result(v->lane, 1), pg_is_true(r, 0, MAY_CREATE));
	if (v->has_tables && look_at_functions(v) != 0)
		return -1;
	return look_at_clock(v);
}

int pg_examine(void *l, struct baton_call *call, doctor_found *found, void *arg)
{
	struct visit v = {.lane = l, .doctor = {.found = found, .arg = arg}};

	v.lane->examines = true;
	v.lane->call = call;
	v.lane->begun_ns = clock_boot_ns();
	pg_results_clear(v.lane);
	int rc = pg_is_connected(v.lane) || pg_connect(v.lane) == 0 ? examine_server(&v) : -1;

	pg_results_clear(v.lane);
	if (rc != 0)
		return BATON_OUTCOME_FAILED;
	return v.is_unfit ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_OK;
}
