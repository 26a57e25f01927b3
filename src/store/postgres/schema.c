/*
 * schema.c: the tables. If they are not there, the first process that has the right makes them; a
 * role without the right to create tables works once another role has made them. Tables of another
 * version than ours are refused: half-understood rows are worse than none.
 *
 * Why they look like this: leases and elections are updated in place over and over. So pages have
 * room for that (fillfactor), nothing that changes with a renewal is indexed (so that it stays a
 * HOT update), and vacuum comes early. The collation is "C", because names are bytes, and because
 * an index must not break when a new C library sorts differently. The tables are never UNLOGGED: a
 * crash would empty them, and terms would begin anew (S3).
 */
#include <stdlib.h>

#include "store/postgres/postgres.h"

/* `at` is the schema and a dot. */
#define TABLES(at)                                                                 \
	"CREATE TABLE IF NOT EXISTS " at "version (version int PRIMARY KEY);\n"    \
	"CREATE TABLE IF NOT EXISTS " at "lease (\n"                               \
	"	id text COLLATE \"C\" PRIMARY KEY,\n"                                    \
	"	owner text NOT NULL,\n"                                                  \
	"	address text NOT NULL,\n"                                                \
	"	ttl_ms bigint NOT NULL,\n"                                               \
	"	seq bigint NOT NULL,\n"                                                  \
	"	expires timestamptz NOT NULL,\n"                                         \
	"	fast boolean NOT NULL DEFAULT false\n"                                   \
	") WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0,\n"           \
	"	autovacuum_vacuum_threshold = 1000);\n"                                  \
	"CREATE TABLE IF NOT EXISTS " at "election (\n"                            \
	"	name text COLLATE \"C\" PRIMARY KEY,\n"                                  \
	"	term bigint NOT NULL DEFAULT 0 CHECK (term >= 0),\n"                     \
	"	seq bigint NOT NULL DEFAULT 0,\n"                                        \
	"	led bigint NOT NULL DEFAULT 0,\n"                                        \
	"	lease text COLLATE \"C\",\n"                                             \
	"	nonce bigint,\n"                                                         \
	"	since timestamptz,\n"                                                    \
	"	metadata text NOT NULL DEFAULT '',\n"                                    \
	"	priority int NOT NULL DEFAULT 0,\n"                                      \
	"	score int NOT NULL DEFAULT 0,\n"                                         \
	"	paused boolean NOT NULL DEFAULT false,\n"                                \
	"	order_id bigint,\n"                                                      \
	"	order_term bigint,\n"                                                    \
	"	order_kind int NOT NULL DEFAULT 0,\n"                                    \
	"	order_quiet_ms bigint NOT NULL DEFAULT 0,\n"                             \
	"	order_target text NOT NULL DEFAULT '',\n"                                \
	"	order_note text NOT NULL DEFAULT '',\n"                                  \
	"	reserved_for text,\n"                                                    \
	"	reserved_until timestamptz,\n"                                           \
	"	functions boolean NOT NULL DEFAULT false\n"                              \
	") WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05,\n"        \
	"	autovacuum_vacuum_threshold = 1000);\n"                                  \
	"CREATE INDEX IF NOT EXISTS election_lease ON " at                         \
	"election (lease) WHERE lease IS NOT NULL;\n"                              \
	"CREATE TABLE IF NOT EXISTS " at "candidate (\n"                           \
	"	name text COLLATE \"C\",\n"                                              \
	"	lease text COLLATE \"C\",\n"                                             \
	"	metadata text NOT NULL,\n"                                               \
	"	priority int NOT NULL,\n"                                                \
	"	score int NOT NULL,\n"                                                   \
	"	healthy boolean NOT NULL,\n"                                             \
	"	updated timestamptz NOT NULL,\n"                                         \
	"	PRIMARY KEY (name, lease)\n"                                             \
	");\n"                                                                     \
	"CREATE INDEX IF NOT EXISTS candidate_lease ON " at "candidate (lease);\n" \
	"CREATE TABLE IF NOT EXISTS " at "history (\n"                             \
	"	name text COLLATE \"C\",\n"                                              \
	"	n bigint,\n"                                                             \
	"	term bigint NOT NULL,\n"                                                 \
	"	leader text NOT NULL,\n"                                                 \
	"	since timestamptz NOT NULL,\n"                                           \
	"	until timestamptz,\n"                                                    \
	"	ended text NOT NULL DEFAULT '',\n"                                       \
	"	note text NOT NULL DEFAULT '',\n"                                        \
	"	since_wal bigint NOT NULL,\n"                                            \
	"	until_wal bigint,\n"                                                     \
	"	PRIMARY KEY (name, n)\n"                                                 \
	");\n"                                                                     \
	"INSERT INTO " at "version VALUES (1) ON CONFLICT DO NOTHING;\n"

/* An administrator reads and runs this; for another schema the administrator replaces the name. */
#define IN_BATON "baton."
#define BEFORE                                                        \
	"-- The tables of baton, version 1: see baton-postgres(7).\n" \
	"BEGIN;\n"                                                    \
	"SET LOCAL client_min_messages = warning;\n"                  \
	"CREATE SCHEMA IF NOT EXISTS baton;\n"
#define AFTER                                        \
	"COMMIT;\n"                                  \
	"-- What a candidate's role needs:\n"        \
	"-- GRANT USAGE ON SCHEMA baton TO myapp;\n" \
	"-- GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA baton TO myapp;\n"
const char pg_schema_script[] = BEFORE TABLES(IN_BATON) AFTER;

/*
 * Two processes that make the tables at once would collide in the catalogue, so a lock lets one
 * after the other do it. The second one finds them made, and doesn't make them again: that would
 * wait for the tables' users. All of this is one message, and so one transaction that ends without
 * its client: a candidate that is frozen holds up no other process.
 */
#define IF_MISSING                                                               \
	"SELECT pg_advisory_xact_lock(hashtextextended('baton schema ^', 0));\n" \
	"DO $baton$ BEGIN\n"                                                     \
	"IF to_regnamespace('^') IS NULL THEN CREATE SCHEMA ^; END IF;\n"        \
	"IF to_regclass('@version') IS NULL THEN\n"
#define END_IF      \
	"END IF;\n" \
	"END $baton$"
static const char make_alone[] = IF_MISSING TABLES("@") END_IF;

static int schema_exec(struct pg_lane *lane, const char *text)
{
	char *sql = pg_sql(text, &lane->store->info);
	int rc = sql != NULL ? pg_exec(lane, sql) : pg_no_memory(lane);

	free(sql);
	return rc;
}

/* Finds out whether the tables are there. 0, or FAILED. */
static int schema_find(struct pg_lane *lane, bool *has_tables)
{
	const char *params[] = {lane->store->info.schema};

	pg_results_clear(lane);
	pg_push(lane, PG_TABLES, 1, params);
	if (pg_run(lane) != BATON_OUTCOME_OK)
		return BATON_OUTCOME_FAILED;
	*has_tables = pg_is_true(pg_result(lane, 0), 0, 0);
	pg_results_clear(lane);
	return 0;
}

/* Makes the tables. 0, or FAILED, also if the outcome is unknown: to make a table twice does no
 * harm. */
static int schema_make(struct pg_lane *lane)
{
	if (schema_exec(lane, make_alone) == 0)
		return 0;
	if (lane->call->error.code == BATON_E_DENIED)
		store_fail(
			&lane->call->error, BATON_E_DENIED,
			"baton's tables are not in the schema \"%s\", and this role may not make "
			"them; let an administrator run `baton schema postgres | psql`",
			lane->store->info.schema);
	pg_conn_close(lane); /* its transaction has failed */
	return BATON_OUTCOME_FAILED;
}

static int schema_check_version(struct pg_lane *lane)
{
	pg_push(lane, PG_VERSION, 0, NULL);
	if (pg_run(lane) != BATON_OUTCOME_OK)
		return BATON_OUTCOME_FAILED;
	int64_t version = pg_number(pg_result(lane, 0), 0, 0);

	pg_results_clear(lane);
	if (version == PG_SCHEMA_VERSION)
		return 0;
	store_fail(&lane->call->error, BATON_E_UNSUPPORTED,
		   "the tables in the schema \"%s\" are of version %d, not %d; upgrade %s",
		   lane->store->info.schema, (int)version, PG_SCHEMA_VERSION,
		   version > PG_SCHEMA_VERSION ? "baton" : "them");
	return BATON_OUTCOME_FAILED;
}

int pg_schema_check(struct pg_lane *lane, struct baton_call *call)
{
	bool has_tables;

	lane->call = call;
	if (schema_find(lane, &has_tables) != 0 || (!has_tables && schema_make(lane) != 0))
		return BATON_OUTCOME_FAILED;
	if (schema_check_version(lane) != 0)
		return BATON_OUTCOME_FAILED;
	atomic_store(&lane->store->has_schema, true);
	return 0;
}
