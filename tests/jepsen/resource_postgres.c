/*
 * resource_postgres.c: the value as a row of a PostgreSQL table, the fence as the function that
 * `baton schema postgres --fence` prints. The fence is a statement of its own, before the one that
 * reads: a statement sees what was there when it began, and the fence may have to wait.
 */
#include "resource.h"

#ifdef WITH_POSTGRES /* libpq is there */

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

static bool postgres_open(struct resource *r, const char *url)
{
	r->connection = PQconnectdb(url);
	return PQstatus(r->connection) == CONNECTION_OK;
}

static void postgres_close(struct resource *r)
{
	PQfinish(r->connection);
	r->connection = NULL;
}

/* One statement; the first value of what it says, unless value is NULL. */
static enum answer ask(struct resource *r, const char *sql, const char *one, const char *two,
		       char *value)
{
	const char *params[] = {one, two};
	PGresult *result = PQexecParams(r->connection, sql,
					one == NULL   ? 0
					: two == NULL ? 1
						      : 2,
					NULL, params, NULL, NULL, 0);
	ExecStatusType status = PQresultStatus(result);
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	enum answer answer = ANSWER_UNKNOWN;

	if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
		answer = ANSWER_OK;
	else if (state != NULL && strcmp(state, "BATON") == 0)
		answer = ANSWER_REFUSED;
	if (value != NULL)
		value[0] = '\0';
	if (value != NULL && PQntuples(result) == 1)
		(void)snprintf(value, VALUE_MAX, "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
	return answer;
}

/* In a transaction, behind the fence if there is one. */
static enum answer guarded(struct resource *r, uint64_t term, const char *sql, const char *given,
			   char *value)
{
	char number[24];
	enum answer answer = ask(r, "BEGIN", NULL, NULL, NULL);

	(void)snprintf(number, sizeof(number), "%" PRIu64, term);
	if (answer == ANSWER_OK && r->is_fenced)
		answer = ask(r, "SELECT baton.fence($1, $2)", r->name, number, NULL);
	if (answer == ANSWER_OK)
		answer = ask(r, sql, r->name, given, value);
	if (answer == ANSWER_OK)
		return ask(r, "COMMIT", NULL, NULL, NULL);
	(void)ask(r, "ROLLBACK", NULL, NULL, NULL);
	return answer;
}

static enum answer postgres_read(struct resource *r, uint64_t term, char *value)
{
	return guarded(r, term, "SELECT value FROM jepsen WHERE name = $1", NULL, value);
}

static enum answer postgres_write(struct resource *r, uint64_t term, const char *value)
{
	return guarded(r, term, "UPDATE jepsen SET value = $2 WHERE name = $1", value, NULL);
}

const struct resource_ops resource_postgres = {.open = postgres_open,
					       .read = postgres_read,
					       .write = postgres_write,
					       .close = postgres_close};

#else

const struct resource_ops resource_postgres = {.open = NULL};

#endif
