/* server_mysql.c: a MySQL or MariaDB server as the measurements see it, through libmariadb. */
#ifdef WITH_MYSQL
#include <mysql.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "server.h"

#define BATCH 256 /* of the layer */
#define VALUE_MAX 4096

struct server {
	MYSQL *session;
	uint64_t own; /* statements of these measurements */
	int n_tools;
};

static MYSQL_RES *ask(struct server *s, const char *text, size_t n)
{
	MYSQL_RES *rows = NULL;
	int more = 0;

	if (mysql_real_query(s->session, text, n) != 0)
		bench_die("The server says: %s", mysql_error(s->session));
	while (more == 0) {
		mysql_free_result(rows);
		rows = mysql_store_result(s->session);
		s->own++;
		more = mysql_next_result(s->session);
	}
	if (more > 0)
		bench_die("The server says: %s", mysql_error(s->session));
	return rows;
}

static void tell(struct server *s, const char *text)
{
	mysql_free_result(ask(s, text, strlen(text)));
}

/* The last column of the first row. */
static long long number(struct server *s, const char *text)
{
	MYSQL_RES *rows = ask(s, text, strlen(text));
	MYSQL_ROW first = rows != NULL ? mysql_fetch_row(rows) : NULL;
	unsigned last = rows != NULL ? mysql_num_fields(rows) - 1 : 0;
	long long n = first != NULL && first[last] != NULL ? strtoll(first[last], NULL, 10) : 0;

	mysql_free_result(rows);
	return n;
}

/* mysql://user@host:port/database */
static void *open_mysql(const char *url)
{
	struct server *s = calloc(1, sizeof(*s));
	char user[64], host[64], port[8], database[64];

	if (s == NULL ||
	    sscanf(url, "mysql://%63[^@]@%63[^:]:%7[0-9]/%63[^?]", user, host, port, database) != 4)
		bench_die("Not the URL of a server of the tests: %s", url);
	s->session = mysql_init(NULL);
	if (s->session == NULL || mysql_real_connect(s->session, host, user, NULL, database,
						     (unsigned)strtoul(port, NULL, 10), NULL,
						     CLIENT_MULTI_STATEMENTS) == NULL)
		bench_die("There is no MySQL server: %s", mysql_error(s->session));
	tell(s, "CREATE TABLE IF NOT EXISTS bench_raw (id INT PRIMARY KEY, n BIGINT)");
	tell(s, "INSERT IGNORE INTO bench_raw VALUES (1, 0)");
	return s;
}

static void close_mysql(void *server)
{
	struct server *s = server;

	mysql_close(s->session);
	free(s);
}

static void write_mysql(void *server)
{
	tell(server, "UPDATE bench_raw SET n = n + 1 WHERE id = 1");
}

/* Statements, without our own; each of a batch is counted. */
static uint64_t requests(void *server)
{
	struct server *s = server;

	return (uint64_t)number(s, "SHOW GLOBAL STATUS LIKE 'Questions'") - s->own;
}

static uint64_t renewals(void *server)
{
	return (uint64_t)number(server, "SHOW GLOBAL STATUS LIKE 'Com_update'");
}

/* The server ends nothing: this is when the time of the last renewal is over. */
static int64_t left_us(void *server, const char *election)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "SELECT JSON_VALUE(CONVERT(l.v USING utf8mb4), '$.ttl') DIV 1000 - "
		       "TIMESTAMPDIFF(MICROSECOND, l.at, NOW(6)) FROM baton_record e "
		       "JOIN baton_record l ON l.k = CONCAT('l/', "
		       "JSON_VALUE(CONVERT(e.v USING utf8mb4), '$.lease')) WHERE e.k = 'e/%s'",
		       election);
	return number(server, text);
}

/* ---- the same statements by a plain client ---- */

static void print(struct bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void print(struct bytes *b, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	bytes_print(b, "%s", text);
}

static void print_keys(struct bytes *b, int tool, int first)
{
	for (int i = 0; i < BATCH; i++)
		print(b, "%s'e/tool-%d-%d'", i == 0 ? "(" : ",", tool, first + i);
	print(b, ")");
}

/* As a campaign of so many new elections is sent: a look, then the claims. */
static void claim_batch(struct server *s, struct bytes *b, const char *value, int tool, int first)
{
	bytes_clear(b);
	print(b, "SELECT k, w, v, TIMESTAMPDIFF(MICROSECOND, at, NOW(6)) FROM baton_record "
		 "WHERE k IN ");
	print_keys(b, tool, first);
	mysql_free_result(ask(s, b->at, b->n));
	bytes_clear(b);
	print(b, "START TRANSACTION;SELECT k, w, NULL FROM baton_record WHERE k IN ");
	print_keys(b, tool, first);
	print(b, " ORDER BY k FOR UPDATE;");
	for (int i = 0; i < BATCH; i++) {
		print(b, "%s'e/tool-%d-%d', '%d',",
		      i == 0 ? "INSERT INTO baton_record (k, w, v) VALUES (" : ",(", tool,
		      first + i, first + i);
		bytes_print(b, "%s)", value);
	}
	print(b, " ON DUPLICATE KEY UPDATE k = k;SELECT k, w, v FROM baton_record WHERE k IN ");
	print_keys(b, tool, first);
	print(b, ";COMMIT");
	mysql_free_result(ask(s, b->at, b->n));
}

static double campaigns(void *server, const char *url, int n)
{
	struct server *s = server;
	struct bytes b = {0};
	char value[2 * VALUE_MAX + 3] = "''";
	const char *text =
		"SELECT CONCAT('x''', HEX(v), '''') FROM baton_record WHERE k LIKE 'e/%' "
		"LIMIT 1";
	MYSQL_RES *rows = ask(s, text, strlen(text));
	MYSQL_ROW first = rows != NULL ? mysql_fetch_row(rows) : NULL;

	(void)url;
	if (first != NULL && first[0] != NULL)
		(void)snprintf(value, sizeof(value), "%s", first[0]);
	mysql_free_result(rows);
	uint64_t began_ns = bench_now_ns();

	s->n_tools++;
	for (int i = 0; i < n; i += BATCH)
		claim_batch(s, &b, value, s->n_tools, i);
	double seconds = (double)(bench_now_ns() - began_ns) / 1e9;

	tell(s, "DELETE FROM baton_record WHERE k LIKE 'e/tool-%'");
	bytes_done(&b);
	return n / seconds;
}

const struct bench_server bench_mysql = {
	.name = "mysql",
	.raw = "one durable write of a row",
	.tool = "a plain client",
	.probe = "two per look",
	.settle_s = 3,
	.poll_ms = 1000,
	.expiry_ms = 1125, /* a look, at the latest */
	.handoff_trips = 8,
	.large = 10000,
	.open = open_mysql,
	.close = close_mysql,
	.write = write_mysql,
	.requests = requests,
	.renewals = renewals,
	.left_us = left_us,
	.campaigns = campaigns,
};
#endif
