/* server_postgres.c: a PostgreSQL server as the measurements see it, through libpq. */
#ifdef WITH_POSTGRES
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"
#include "store/postgres/postgres.h"

#define BATCH 1000 /* of the runtime */

struct postgres {
	PGconn *work;   /* in the store's database */
	PGconn *watch;  /* in another one, so that it doesn't count itself */
	bool has_calls; /* the server counts calls of statements */
};

static PGresult *ask(PGconn *pg, const char *text)
{
	PGresult *r = PQexec(pg, text);

	if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK)
		bench_die("PostgreSQL says: %s", PQerrorMessage(pg));
	return r;
}

static void tell(PGconn *pg, const char *text)
{
	PQclear(ask(pg, text));
}

static long long number(PGconn *pg, const char *text)
{
	PGresult *r = ask(pg, text);
	long long n = PQntuples(r) > 0 ? strtoll(PQgetvalue(r, 0, 0), NULL, 10) : 0;

	PQclear(r);
	return n;
}

static PGconn *dial(const char *url, const char *database)
{
	const char *const keys[] = {"dbname", "dbname", NULL};
	const char *const values[] = {url, database, NULL};
	PGconn *pg = database == NULL ? PQconnectdb(url) : PQconnectdbParams(keys, values, 1);

	if (PQstatus(pg) != CONNECTION_OK)
		bench_die("There is no PostgreSQL: %s", PQerrorMessage(pg));
	return pg;
}

static void ignore(void *arg, const char *notice)
{
	(void)arg;
	(void)notice;
}

/* Vacuum comes by itself, and would be counted. */
static void *open_postgres(const char *url)
{
	struct postgres *p = calloc(1, sizeof(*p));

	if (p == NULL)
		bench_die("Out of memory.");
	p->work = dial(url, NULL);
	p->watch = dial(url, "postgres");
	(void)PQsetNoticeProcessor(p->work, ignore, NULL);
	(void)PQsetNoticeProcessor(p->watch, ignore, NULL);
	p->has_calls = number(p->watch, "SELECT count(*) FROM pg_settings WHERE name = "
					"'shared_preload_libraries' AND setting = "
					"'pg_stat_statements'") > 0;
	if (p->has_calls)
		tell(p->watch, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
	tell(p->watch, "ALTER SYSTEM SET autovacuum = off");
	tell(p->watch, "SELECT pg_reload_conf()");
	tell(p->work, "CREATE TABLE IF NOT EXISTS bench_raw (id int PRIMARY KEY, n bigint)");
	tell(p->work, "INSERT INTO bench_raw VALUES (1, 0) ON CONFLICT DO NOTHING");
	PQclear(PQprepare(p->work, "raw", "UPDATE bench_raw SET n = n + 1 WHERE id = 1", 0, NULL));
	return p;
}

static void close_postgres(void *server)
{
	struct postgres *p = server;

	tell(p->work, "DROP TABLE bench_raw");
	tell(p->watch, "ALTER SYSTEM RESET autovacuum");
	tell(p->watch, "SELECT pg_reload_conf()");
	PQfinish(p->work);
	PQfinish(p->watch);
	free(p);
}

static void write_postgres(void *server)
{
	const struct postgres *p = server;
	PGresult *r = PQexecPrepared(p->work, "raw", 0, NULL, NULL, NULL, 0);

	if (PQresultStatus(r) != PGRES_COMMAND_OK)
		bench_die("PostgreSQL says: %s", PQerrorMessage(p->work));
	PQclear(r);
}

static uint64_t counter(void *server, const char *what)
{
	const struct postgres *p = server;
	char text[256];

	(void)snprintf(text, sizeof(text), "SELECT %s FROM pg_stat_database WHERE datname = '%s'",
		       what, PQdb(p->work));
	return (uint64_t)number(p->watch, text);
}

/* Transactions in the store's database. */
static uint64_t requests(void *server)
{
	return counter(server, "xact_commit + xact_rollback");
}

/*
 * A session tells of its transactions seconds later, and each that listens counts one for what it
 * is told. So where the server counts calls of statements, as it does for `make bench`, those are
 * counted of which each request of a candidate has one: all that we send begin with their names.
 */
static uint64_t at_once(void *server)
{
	const struct postgres *p = server;

	if (!p->has_calls)
		return UINT64_MAX;
	return (uint64_t)number(
		p->watch, "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements "
			  "WHERE query ~ '^/. baton_(open|renew|claim|release|observe|publish|"
			  "withdraw|seen|end) ./'");
}

static uint64_t connections(void *server)
{
	return counter(server, "sessions");
}

static int64_t left_us(void *server, const char *election)
{
	const struct postgres *p = server;
	char text[512];

	(void)snprintf(
		text, sizeof(text),
		"SELECT (extract(epoch FROM l.expires - clock_timestamp()) * 1000000)::bigint "
		"FROM baton.lease l JOIN baton.election e ON e.lease = l.id "
		"WHERE e.name = '%s'",
		election);
	return number(p->work, text);
}

/* ---- its own benchmark ---- */

/* A statement of the driver with values in place of its parameters. */
static void write_statement(FILE *f, int statement, const char *const *values)
{
	static const struct pg_conninfo info = {.schema = "baton"};
	char *text = pg_sql(pg_statements[statement], &info);

	if (text == NULL)
		bench_die("Out of memory.");
	for (const char *c = text; *c != '\0'; c++) {
		if (c[0] == '$')
			(void)fputs(values[*++c - '1'], f);
		else
			(void)fputc(*c, f);
	}
	(void)fputs(";\n", f);
	free(text);
}

#define ALL(what) "(SELECT array_agg(" what ") FROM generate_series(1, 1000) AS g)"

/* As pg_campaign() sends it: one pipeline, one transaction; every name is a new one. */
static void write_script(const char *path)
{
	static const char names[] = ALL("'tool-' || :k || '-' || g");
	const char *const claim[] = {"'bench-0-1'",   "'tool'", "'baton'",
				     names,           ALL("g"), ALL("0"),
				     ALL("''::text"), ALL("0"), ALL("1000")};
	const char *const kill[] = {"'{}'", "'{}'"};
	FILE *f = fopen(path, "we");

	if (f == NULL)
		bench_die("%s can't be written.", path);
	(void)fputs("\\set k random(1, 2000000000)\n\\startpipeline\n", f);
	write_statement(f, PG_PIN, claim);
	write_statement(f, PG_MAKE, (const char *const[]){names});
	write_statement(f, PG_KILL, kill);
	write_statement(f, PG_CLAIM, claim);
	(void)fputs("\\endpipeline\n", f);
	(void)fclose(f);
}

static double campaigns(void *server, const char *url, int n)
{
	const struct postgres *p = server;
	char path[512];
	char times[16];
	char *const argv[] = {"pgbench",
			      "-n",
			      "-M",
			      "prepared",
			      "-c",
			      "1",
			      "-t",
			      times,
			      "-f",
			      path,
			      (char *)(uintptr_t)url,
			      NULL};

	(void)snprintf(path, sizeof(path), "%s/campaign.sql", bench_dir());
	(void)snprintf(times, sizeof(times), "%d", n / BATCH);
	write_script(path);
	tell(p->work, "INSERT INTO baton.lease VALUES ('bench-0-1', 'tool', '', 3600000, 1, "
		      "clock_timestamp() + interval '1 hour')");
	double rate = bench_tool(argv, " (without initial connection time)");
	long long won =
		number(p->work, "SELECT count(*) FROM baton.election WHERE lease = 'bench-0-1'");

	tell(p->work, "DELETE FROM baton.lease WHERE id = 'bench-0-1'");
	if (won < n * 9LL / 10)
		bench_die("pgbench won %lld of %d campaigns.", won, n);
	return rate * BATCH;
}

const struct bench_server bench_postgres = {
	.name = "postgres",
	.raw = "one durable write of a row",
	.tool = "pgbench",
	.probe = "a probe",
	.settle_s = 12, /* a session that is idle tells of its last transaction after ten */
	.fast = {"fast=1", "mode=advisory&fast=1"},
	.open = open_postgres,
	.close = close_postgres,
	.write = write_postgres,
	.requests = requests,
	.at_once = at_once,
	.connections = connections,
	.left_us = left_us,
	.campaigns = campaigns,
};
#endif
