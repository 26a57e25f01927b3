/*
 * outbox-postgres: the outbox in a PostgreSQL database, which elects the publisher and also refuses
 * one of the past. Between "I lead" and the commit a process can be stopped for as long as it
 * likes; the guard in the database (S4) is what its write then meets.
 *
 *     cc outbox-postgres.c $(pkg-config --cflags --libs baton libpq)
 *     baton schema postgres --fence | psql mydb
 *     ./a.out [--once | --stale TERM] postgres://myapp@db.example/mydb
 *
 * --once ends when the outbox is empty. --stale publishes in that term without asking anybody: what
 * a leader does that was frozen at the wrong moment.
 */
#include <baton.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t running = 1;

static void on_signal(int sig)
{
	(void)sig;
	running = 0;
}

/* ---- the database ---- */

static bool failed(PGconn *db, PGresult *r)
{
	ExecStatusType status = PQresultStatus(r);

	if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
		return false;
	(void)fprintf(stderr, "refused: %s",
		      PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) != NULL
			      ? PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY)
			      : PQerrorMessage(db));
	(void)fputc('\n', stderr);
	return true;
}

static bool run(PGconn *db, const char *sql)
{
	PGresult *r = PQexec(db, sql);
	bool ok = !failed(db, r);

	PQclear(r);
	return ok;
}

/* Marks the oldest message as sent, and sends it. 1: done, 0: there is none, -1: refused. */
static int publish_one(PGconn *db, uint64_t term)
{
	static const char sql[] = "UPDATE outbox SET published = now() WHERE id = (SELECT id FROM "
				  "outbox WHERE published IS NULL ORDER BY id LIMIT 1) "
				  "RETURNING body";
	char number[24];
	const char *params[] = {number};
	int n = -1;

	(void)snprintf(number, sizeof(number), "%" PRIu64, term);
	if (!run(db, "BEGIN"))
		return -1;
	/* First of all: no newer leader can write from here until the commit. */
	PGresult *r = PQexecParams(db, "SELECT baton.fence('outbox', $1::bigint)", 1, NULL, params,
				   NULL, NULL, 0);
	bool ok = !failed(db, r);

	PQclear(r);
	r = ok ? PQexec(db, sql) : NULL;
	if (ok && !failed(db, r)) {
		n = PQntuples(r);
		/* Sent before the commit: who dies in between leaves it to be sent again. */
		if (n == 1)
			printf("published in term %" PRIu64 ": %s\n", term, PQgetvalue(r, 0, 0));
		(void)fflush(stdout);
	}
	PQclear(r);
	if (!run(db, n >= 0 ? "COMMIT" : "ROLLBACK"))
		return -1;
	return n;
}

/* ---- the program ---- */

static int publish_while_leading(const char *url, PGconn *db, bool once)
{
	struct baton_election *e;
	struct baton_event event;
	struct baton_error err;
	struct baton *b;
	int n = 1;

	if (baton_open(url, NULL, &b, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (baton_election_new(b, "outbox", NULL, &e, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		baton_close(b);
		return 1;
	}
	(void)baton_election_start(e);
	while (running && !(once && n == 0)) {
		uint64_t term;

		while ((term = baton_term(e)) != 0 && (n = publish_one(db, term)) == 1)
			;
		if (baton_wait(b, 200, &event) == 1 && event.kind == BATON_EVENT_ERROR)
			(void)fprintf(stderr, "%s %s\n", event.text, event.detail);
	}
	baton_close(b);
	return 0;
}

int main(int argc, char **argv)
{
	bool once = argc == 3 && strcmp(argv[1], "--once") == 0;
	bool stale = argc == 4 && strcmp(argv[1], "--stale") == 0;

	if (argc != 2 && !once && !stale) {
		(void)fprintf(stderr, "usage: %s [--once | --stale TERM] URL\n", argv[0]);
		return 2;
	}
	(void)signal(SIGTERM, on_signal);
	(void)signal(SIGINT, on_signal);
	const char *url = argv[argc - 1];
	PGconn *db = PQconnectdb(url);
	int rc = 1;

	if (PQstatus(db) != CONNECTION_OK)
		(void)fputs(PQerrorMessage(db), stderr);
	else if (stale)
		rc = publish_one(db, strtoull(argv[2], NULL, 10)) < 0;
	else
		rc = publish_while_leading(url, db, once);
	PQfinish(db);
	return rc;
}
