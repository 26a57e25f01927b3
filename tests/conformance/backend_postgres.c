/*
 * backend_postgres.c: a PostgreSQL server, as its administrator with psql treats it, and the
 * network in front of it (proxy.h). Each case has a role without any rights and a schema that
 * belongs to it, and reaches the server through a proxy of its own.
 *
 * It knows the tables and locks that baton-postgres(7) describes, and uses nothing of the driver.
 * Each of the four modes is a backend, told by the options of the URL.
 */
#include "backend.h"

#ifdef WITH_POSTGRES /* libpq is there */

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy.h"

#define SQL_SIZE 2048

/* The requests by the comment that stands in them. */
static const char *const words[N_VERBS] = {
	[VERB_OPEN] = "baton_open",       [VERB_RENEW] = "baton_renew",
	[VERB_CAMPAIGN] = "baton_claim",  [VERB_RELEASE] = "baton_release",
	[VERB_OBSERVE] = "baton_observe",
};

struct hand {
	struct proxy *proxy; /* first: see proxy.h */
	PGconn *admin;
	PGconn *pulse;  /* the meter's thread's own */
	PGconn *thief;  /* another program that wants a lock; NULL: none */
	char place[64]; /* role and schema */
	char base[256]; /* the server's URL without options */
};

/* ---- SQL ---- */

static bool exec(PGconn *c, const char *sql)
{
	PGresult *r = PQexec(c, sql);
	ExecStatusType status = PQresultStatus(r);
	bool ok = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;

	if (!ok)
		fprintf(stderr, "conformance: %s: %s", sql, PQerrorMessage(c));
	PQclear(r);
	return ok;
}

/* As the administrator; %1$s is the case's schema. */
static bool admin(struct testcase *t, const char *format)
{
	struct hand *h = t->hand;
	char sql[SQL_SIZE];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(sql, sizeof(sql), format, h->place);
#pragma GCC diagnostic pop
	return exec(h->admin, sql);
}

/* The first value of the first row, as a number; -1: none. $1 and $2 are the parameters. */
static long ask(struct testcase *t, const char *format, const char *one, const char *two)
{
	struct hand *h = t->hand;
	const char *params[] = {one, two};
	char sql[SQL_SIZE];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(sql, sizeof(sql), format, h->place);
#pragma GCC diagnostic pop
	PGresult *r = PQexecParams(h->admin, sql, two != NULL ? 2 : 1, NULL, params, NULL, NULL, 0);
	long value = -1;

	if (PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) > 0)
		value = strtol(PQgetvalue(r, 0, 0), NULL, 10);
	else if (PQresultStatus(r) != PGRES_TUPLES_OK)
		fprintf(stderr, "conformance: %s: %s", sql, PQerrorMessage(h->admin));
	PQclear(r);
	return value;
}

/* ---- places ---- */

/* "postgres://user@127.0.0.1:port/database?options": the port, and what follows it. */
static unsigned port_of(const char *url, const char **rest)
{
	const char *at = strchr(url, '@');
	const char *colon = at != NULL ? strchr(at, ':') : NULL;
	char *end;
	unsigned long port = colon != NULL ? strtoul(colon + 1, &end, 10) : 0;

	if (port == 0 || port > UINT16_MAX)
		return 0;
	*rest = end;
	return (unsigned)port;
}

static bool has(const char *url, const char *option)
{
	return strstr(url, option) != NULL;
}

static bool is_lease(const char *url)
{
	return !has(url, "mode=advisory") && !has(url, "fast=1");
}

static bool is_fast(const char *url)
{
	return !has(url, "mode=advisory") && has(url, "fast=1");
}

static bool is_advisory(const char *url)
{
	return has(url, "mode=advisory") && !has(url, "fast=1");
}

static bool is_tableless(const char *url)
{
	return has(url, "mode=advisory") && has(url, "fast=1");
}

static void name_place(char *place, size_t size, const char *label)
{
	snprintf(place, size, "c_%s", label);
	for (char *c = place; *c != '\0'; c++)
		if (*c == '-')
			*c = '_';
}

static PGconn *connect_as_admin(const char *url)
{
	char plain[256];

	snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(url, "?"), url);
	PGconn *c = PQconnectdb(plain);

	if (PQstatus(c) == CONNECTION_OK && exec(c, "SET client_min_messages = error"))
		return c;
	fprintf(stderr, "conformance: %s", PQerrorMessage(c));
	PQfinish(c);
	return NULL;
}

static bool place(struct testcase *t, const char *base_url, const char *label)
{
	struct hand *h = calloc(1, sizeof(*h));
	const char *rest = NULL;
	unsigned port = port_of(base_url, &rest);

	t->hand = h;
	if (h == NULL || port == 0)
		return false;
	name_place(h->place, sizeof(h->place), label);
	snprintf(h->base, sizeof(h->base), "%.*s", (int)strcspn(base_url, "?"), base_url);
	h->admin = connect_as_admin(base_url);
	h->pulse = connect_as_admin(base_url);
	h->proxy = proxy_new(port, &protocol_postgres, words);
	if (h->admin == NULL || h->pulse == NULL || h->proxy == NULL)
		return false;
	snprintf(t->url, sizeof(t->url), "postgres://%s@127.0.0.1:%u%s%sschema=%s", h->place,
		 proxy_port(h->proxy), rest, strchr(rest, '?') != NULL ? "&" : "?", h->place);
	return admin(t, "CREATE ROLE %1$s LOGIN") &&
	       admin(t, "CREATE SCHEMA %1$s AUTHORIZATION %1$s") &&
	       admin(t, "CREATE TABLE pulse_%1$s (n bigint)") &&
	       admin(t, "INSERT INTO pulse_%1$s VALUES (0)");
}

static void clean(const char *base_url, const char *label)
{
	char name[64];
	char sql[SQL_SIZE];
	PGconn *c = connect_as_admin(base_url);

	if (c == NULL)
		return;
	name_place(name, sizeof(name), label);
	snprintf(sql, sizeof(sql),
		 "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '%s'",
		 name);
	exec(c, sql);
	snprintf(sql, sizeof(sql), "DROP SCHEMA IF EXISTS %s CASCADE", name);
	exec(c, sql);
	snprintf(sql, sizeof(sql), "DROP TABLE IF EXISTS pulse_%s", name);
	exec(c, sql);
	snprintf(sql, sizeof(sql), "DROP ROLE IF EXISTS %s", name);
	exec(c, sql);
	PQfinish(c);
}

static void pulse(struct testcase *t)
{
	struct hand *h = t->hand;
	char sql[SQL_SIZE];

	snprintf(sql, sizeof(sql), "UPDATE pulse_%s SET n = n + 1", h->place);
	exec(h->pulse, sql);
}

/* ---- claims that end ---- */

static bool overwrite(struct testcase *t, const char *name)
{
	char ttl_ms[24];

	snprintf(ttl_ms, sizeof(ttl_ms), "%" PRIu64, t->lease_ms);
	return ask(t,
		   "WITH l AS (INSERT INTO %1$s.lease VALUES ('0123456789abcdef-1-1', "
		   "'somebody-else', '', $2::bigint, 1, clock_timestamp() + $2::bigint * "
		   "interval '1 ms')) UPDATE %1$s.election SET term = term + 1, seq = seq + 1, "
		   "lease = '0123456789abcdef-1-1', nonce = 1 WHERE name = $1 RETURNING 1",
		   name, ttl_ms) == 1;
}

static bool unlock(struct testcase *t, const char *name)
{
	return ask(t,
		   "UPDATE %1$s.election SET lease = NULL, seq = seq + 1 WHERE name = $1 "
		   "RETURNING 1",
		   name, NULL) == 1;
}

static bool destroy(struct testcase *t, const char *name, enum way way)
{
	switch (way) {
	case WAY_DELETED:
		return ask(t, "DELETE FROM %1$s.election WHERE name = $1 RETURNING 1", name,
			   NULL) == 1;
	case WAY_OVERWRITTEN: return overwrite(t, name);
	case WAY_SESSION:
		return ask(t,
			   "DELETE FROM %1$s.lease l USING %1$s.election e WHERE e.name = $1 AND "
			   "l.id = e.lease RETURNING 1",
			   name, NULL) == 1;
	default: return false;
	}
}

/* ---- faults ---- */

/* Those who work on the tables at the moment may be in the way: a deadlock, once or twice. */
static bool forget(struct testcase *t)
{
	for (unsigned i = 0; i < 5; i++) {
		if (admin(t, "DROP SCHEMA IF EXISTS %1$s CASCADE; "
			     "CREATE SCHEMA %1$s AUTHORIZATION %1$s"))
			return true;
	}
	return false;
}

/* Whoever is logged in is thrown out, and may not come back. */
static bool deny(struct testcase *t, bool is_denied)
{
	if (!is_denied)
		return admin(t, "ALTER ROLE %1$s LOGIN");
	return admin(t, "ALTER ROLE %1$s NOLOGIN") &&
	       admin(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
			"WHERE usename = '%1$s'");
}

static bool set_term(struct testcase *t, const char *name, uint64_t term)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRIu64, term);
	return ask(t,
		   "UPDATE %1$s.election SET term = $2::bigint, seq = seq + 1, lease = NULL "
		   "WHERE name = $1 RETURNING 1",
		   name, number) == 1;
}

static int count_name(struct testcase *t, const char *name, size_t length)
{
	if (strlen(name) != length)
		return -1;
	return (int)ask(t, "SELECT count(*) FROM %1$s.election WHERE name = $1", name, NULL);
}

/* ---- locks ---- */

/* The lock of an election as any program can compute it; $1 is the name. */
#define KEY "hashtextextended('%1$s/' || $1, 0)"
#define HELD                                                                          \
	"FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND " \
	"mode = 'ExclusiveLock' AND (classid::bigint << 32) | objid::bigint = " KEY

/* Nobody can unlock what another session has locked. So it does that itself, by a trigger, when it
 * next renews; and somebody else, who waits in the queue, has it for a moment. */
static bool unlock_inside(struct testcase *t, const char *name)
{
	struct hand *h = t->hand;
	char sql[SQL_SIZE];
	char ms[24];
	const char *params[] = {name, ms};

	snprintf(ms, sizeof(ms), "%" PRIu64, t->lease_ms / 4);
	h->thief = PQconnectdb(h->base);
	snprintf(sql, sizeof(sql),
		 "SELECT pg_advisory_lock(hashtextextended('%s/' || $1, 0)), "
		 "pg_sleep($2::float8 / 1000), "
		 "pg_advisory_unlock(hashtextextended('%s/' || $1, 0))",
		 h->place, h->place);
	if (PQsendQueryParams(h->thief, sql, 2, NULL, params, NULL, NULL, 0) != 1)
		return false;
	while (ask(t,
		   "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND "
		   "(classid::bigint << 32) | objid::bigint = " KEY,
		   name, NULL) == 0)
		pass_time(1);
	return admin(t, "CREATE TABLE %1$s.once AS SELECT 1 AS n") &&
	       admin(t, "CREATE FUNCTION %1$s.unlock() RETURNS trigger LANGUAGE plpgsql SECURITY "
			"DEFINER AS $$ BEGIN DELETE FROM %1$s.once; IF FOUND THEN PERFORM "
			"pg_advisory_unlock_all(); END IF; RETURN NEW; END $$") &&
	       admin(t, "CREATE TRIGGER unlock BEFORE UPDATE ON %1$s.lease FOR EACH ROW EXECUTE "
			"FUNCTION %1$s.unlock()");
}

static bool destroy_tableless(struct testcase *t, const char *name, enum way way)
{
	return way == WAY_SESSION &&
	       ask(t, "SELECT pg_terminate_backend(pid)::int " HELD, name, NULL) == 1;
}

static int count_locks(struct testcase *t, const char *name, size_t length)
{
	if (strlen(name) != length)
		return -1;
	return (int)ask(t, "SELECT count(*) " HELD, name, NULL);
}

/* ---- the modes ---- */

#define ALL_MODES                                                                               \
	.has_processes = true, .has_network = true, .pushes = true, .is_durable = true,         \
	.place = place, .clean = clean, .pulse = pulse, .down = proxy_down, .hole = proxy_hole, \
	.fail = proxy_fail, .mute = proxy_mute, .late = proxy_late, .deny = deny,               \
	.calls = proxy_calls

#define WITH_TABLES                                                                     \
	.shares_leases = true, .keeps_history = true, .destroy = destroy,               \
	.ways = {[WAY_DELETED] = true, [WAY_OVERWRITTEN] = true, [WAY_SESSION] = true}, \
	.forget = forget, .set_term = set_term, .count_name = count_name

const struct backend backend_postgres = {
	.scheme = "postgres",
	.serves = is_lease,
	.unlock = unlock,
	ALL_MODES,
	WITH_TABLES,
};

const struct backend backend_postgres_fast = {
	.scheme = "postgres+fast",
	.serves = is_fast,
	.proves_death = true,
	.unlock = unlock,
	ALL_MODES,
	WITH_TABLES,
};

const struct backend backend_postgres_advisory = {
	.scheme = "postgres+advisory",
	.serves = is_advisory,
	.unlock = unlock_inside,
	ALL_MODES,
	WITH_TABLES,
};

const struct backend backend_postgres_tableless = {
	.scheme = "postgres+tableless",
	.is_mute = true,
	.serves = is_tableless,
	.proves_death = true,
	.destroy = destroy_tableless,
	.ways = {[WAY_SESSION] = true},
	.count_name = count_locks,
	ALL_MODES,
};
#endif
