/*
 * doctor.c: examines a SQL Server: whether it keeps what it commits, whether it is one of several,
 * and whether the tables are there. It writes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/mssql/mssql.h"

#define TELL(v, level, ...) doctor_tell(&(v)->doctor, BATON_FINDING_##level, __VA_ARGS__)
#define COMPATIBILITY 130 /* OPENJSON */

enum fact { VERSION, EDITION, LEVEL, UPDATES, DURABILITY, GROUP, SNAPSHOT, FACTS };

struct visit {
	struct mssql_lane *lane;
	struct doctor doctor;
	char facts[FACTS][128];
	bool is_unfit; /* the store can't be used, so nothing is tried */
};

static void note_facts(void *arg, const char *const *columns, const size_t *sizes)
{
	struct visit *v = arg;

	for (int i = 0; i < FACTS; i++)
		if (columns[i] != NULL)
			(void)snprintf(v->facts[i], sizeof(v->facts[i]), "%.*s", (int)sizes[i],
				       columns[i]);
}

static void tell_server(struct visit *v)
{
	const struct mssql_options *o = &v->lane->store->options;
	long level = strtol(v->facts[LEVEL], NULL, 10);

	TELL(v, OK, "reachability", NULL, "The server answers, database %s.", o->database);
	TELL(v, OK, "version", NULL, "The version is %s, %s.", v->facts[VERSION],
	     v->facts[EDITION]);
	doctor_tell_encryption(
		&v->doctor, o->encryption == MSSQL_MANDATORY,
		doctor_is_local(o->login.hosts[0].name),
		o->login.password[0] != '\0' || o->login.password_file[0] != '\0' ? "password"
										  : NULL,
		"Leave encrypt= out, and say ca= with the authority that signed the server's "
		"certificate.");
	if (level < COMPATIBILITY)
		TELL(v, ERROR, "compatibility",
		     "ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = 130, or higher.",
		     "The database's level is %ld, which lacks OPENJSON.", level);
	if (strcmp(v->facts[UPDATES], "READ_WRITE") != 0)
		TELL(v, ERROR, "role", "Name the primary in the URL.",
		     "The database is read-only: a secondary, perhaps.");
	TELL(v, OK, "isolation", NULL, "READ_COMMITTED_SNAPSHOT is %s; either will do.",
	     strcmp(v->facts[SNAPSHOT], "1") == 0 ? "on" : "off");
	v->is_unfit = level < COMPATIBILITY || strcmp(v->facts[UPDATES], "READ_WRITE") != 0;
}

static void tell_durability(struct visit *v)
{
	if (strcmp(v->facts[DURABILITY], "FORCED") == 0)
		TELL(v, WARNING, "persistence",
		     "ALTER DATABASE CURRENT SET DELAYED_DURABILITY = DISABLED.",
		     "Durability is delayed: a crash of the server may lose the last commits, and "
		     "two may lead until a lease is over.");
	else
		TELL(v, OK, "persistence", NULL, "What is committed is on the disk.");
	if (strcmp(v->facts[GROUP], "group") == 0)
		TELL(v, NOTE, "replication",
		     "Use synchronous commit for every replica that may become the primary.",
		     "The database is in an availability group: a failover to a replica with "
		     "asynchronous commit may lose the last commits.");
	else
		TELL(v, NOTE, "replication", DOCTOR_ACROSS_LOSS,
		     "The database is in no availability group: without this server no candidate "
		     "leads.");
}

static void tell_rights(struct visit *v, struct baton_call *call)
{
	struct mssql_request nothing = {.sql = mssql_sql_rights};
	int end = mssql_run(v->lane, call, &nothing, NULL, NULL, NULL);

	if (end == MSSQL_DONE)
		TELL(v, OK, "rights", NULL, "The tables can be written to.");
	else
		TELL(v, ERROR, "rights", "Grant what `baton schema mssql` lists.",
		     "The tables can't be written to: %s.", call->error.text);
	v->is_unfit = v->is_unfit || end != MSSQL_DONE;
}

static void tell_tables(struct visit *v, struct baton_call *call)
{
	struct mssql_request layout = {.sql = mssql_sql_layout};
	int end = mssql_run(v->lane, call, &layout, NULL, NULL, NULL);

	v->is_unfit = v->is_unfit || end != MSSQL_DONE;
	if (end == MSSQL_DONE)
		TELL(v, OK, "tables", NULL, "The tables exist.");
	else if (end == MSSQL_REFUSED && v->lane->error == MSSQL_E_NO_OBJECT)
		TELL(v, NOTE, "tables", "Run `baton schema mssql`, or let baton make them.",
		     "The tables don't exist yet.");
	else
		TELL(v, ERROR, "tables", "Grant what `baton schema mssql` lists.",
		     "The tables can't be read: %s.", call->error.text);
	if (end == MSSQL_DONE)
		tell_rights(v, call);
}

int mssql_examine(void *lane, struct baton_call *call,
		  void (*found)(void *arg, const struct baton_finding *finding), void *arg)
{
	struct visit v = {.lane = lane, .doctor = {.found = found, .arg = arg}};
	struct mssql_request facts = {.sql = mssql_sql_doctor};

	if (!mssql_connect(v.lane, &v.lane->line, call, false) ||
	    mssql_run(v.lane, call, &facts, note_facts, &v, NULL) != MSSQL_DONE)
		return BATON_OUTCOME_FAILED; /* the caller reports the call's error */
	tell_server(&v);
	tell_durability(&v);
	tell_tables(&v, call);
	return v.is_unfit ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_OK;
}
