/*
 * sql.c: the statements. Values are parameters, always; a '@' is the schema, which was checked when
 * the URL was read. Each statement is one atomic step on one snapshot (READ COMMITTED), and those
 * that are sent together are one transaction.
 *
 * What looks roundabout has a reason:
 *  - `lease` rows decide who lives, so whoever takes a lease away locks its row and compares `seq`.
 *  - SKIP LOCKED wherever many rows are touched: a stranger's open transaction on one of them must
 *    not stall the others. What was skipped is told apart afterwards, and tried again.
 *  - A claim reads what is free from its snapshot, then locks rows *of the same seq* only. Without
 *    that, a row that somebody claimed meanwhile would be judged by its new lease, which this
 *    snapshot can't see, and would look free.
 *  - clock_timestamp() and not now(), which stands still in a transaction. It decides nothing about
 *    leases (sight.h); reservations, which are a courtesy, may err with it.
 *  - The history counts on from what it has: the election's row may have been deleted by hand.
 *  - The "instants" of the history are positions in the write-ahead log: they only grow.
 */
#include <stdlib.h>
#include <string.h>

#include "store/postgres/postgres.h"

#define EPOCH "(extract(epoch FROM "
#define AS_MS ") * 1000)::bigint"
#define AS_US ") * 1000000)::bigint"
#define NOW_US EPOCH "clock_timestamp()" AS_US
#define WAL "(pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
/* An order is meant for one leadership and goes with it (rule 10). */
#define NO_ORDER \
	"order_id = NULL, order_term = NULL, order_kind = 0, order_quiet_ms = 0, order_target = ''"
#define IS_FREE "(e.lease IS NULL OR NOT EXISTS (SELECT FROM @lease l WHERE l.id = e.lease))"

const char *const pg_statement_names[PG_STATEMENTS] = {
#define X(word, name) [PG_##word] = (name),
	PG_STATEMENT_LIST(X)
#undef X
};

const char *const pg_statements[PG_STATEMENTS] = {
	/* $1 and $2: milliseconds. */
	[PG_LIMITS] = "SELECT set_config('statement_timeout', $1, true), "
		      "set_config('lock_timeout', $2, true)",
	[PG_HELLO] = "SELECT pg_backend_pid(), " NOW_US,
	[PG_TABLES] = "SELECT to_regnamespace($1) IS NOT NULL, EXISTS (SELECT FROM pg_class c JOIN "
		      "pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND "
		      "c.relname = 'version')",
	[PG_VERSION] = "SELECT max(version) FROM @version",

	/* $1 id, $2 owner, $3 address, $4 ttl. A second time: the first one's answer was lost. */
	[PG_LEASE_OPEN] =
		"INSERT INTO @lease AS l (id, owner, address, ttl_ms, seq, expires) VALUES ($1, "
		"$2, $3, $4::bigint, 1, clock_timestamp() + $4::bigint * interval '1 ms') "
		"ON CONFLICT (id) DO UPDATE SET seq = l.seq + 1, expires = excluded.expires "
		"RETURNING " NOW_US,
	[PG_LEASE_RENEW] =
		"WITH r AS (UPDATE @lease SET seq = seq + 1, expires = clock_timestamp() + "
		"$2::bigint * interval '1 ms' WHERE id = $1 RETURNING id) "
		"SELECT (SELECT count(*) FROM r), "
		"(SELECT count(*) FROM @election WHERE lease = $1), " NOW_US,
	/* Ids from $1 up to $2, older than $3: an incarnation is a hexadecimal number, so a shorter
	 * id is older. A request that comes late must not end a lease that was opened since. */
	[PG_LEASE_END] = "DELETE FROM @lease WHERE id >= $1 AND id < $2 AND "
			 "(length(id), id) < (length($3), $3)",
	/* What they held: $4 is the word for the history, $5 the channel. */
	[PG_LEASE_FREE] =
		"WITH now AS MATERIALIZED (SELECT clock_timestamp() AS t, " WAL " AS wal), "
		"locked AS MATERIALIZED (SELECT e.name FROM @election e WHERE e.lease >= $1 AND "
		"e.lease < $2 AND (length(e.lease), e.lease) < (length($3), $3) "
		"ORDER BY e.name FOR NO KEY UPDATE SKIP LOCKED), "
		"freed AS (UPDATE @election e SET lease = NULL, nonce = NULL, seq = e.seq + 1, "
		"since = NULL, " NO_ORDER " FROM locked WHERE e.name = locked.name "
		"RETURNING e.name, e.led), "
		"ended AS (UPDATE @history h SET until = now.t, until_wal = now.wal, ended = $4 "
		"FROM freed, now WHERE h.name = freed.name AND h.n = freed.led AND h.ended = ''), "
		"left_behind AS (DELETE FROM @candidate WHERE lease >= $1 AND lease < $2 AND "
		"(length(lease), lease) < (length($3), $3)) "
		"SELECT count(pg_notify($5, name)) FROM freed",
	/* Rows of processes that went long ago; not those that hold something, which needs a proof.
	 * Locked first, looked at again by the next statement, on a snapshot of its own. */
	[PG_LEASE_STALE] =
		"SELECT count(*) FROM (SELECT FROM @lease WHERE expires < clock_timestamp() - "
		"interval '1 day' FOR UPDATE SKIP LOCKED) AS s",
	[PG_LEASE_SWEEP] =
		"WITH locked AS MATERIALIZED (SELECT id FROM @lease WHERE expires < "
		"clock_timestamp() - interval '1 day' FOR UPDATE SKIP LOCKED), "
		"swept AS (DELETE FROM @lease l USING locked WHERE l.id = locked.id AND NOT EXISTS "
		"(SELECT FROM @election e WHERE e.lease = l.id) RETURNING l.id) "
		"DELETE FROM @candidate c USING swept WHERE c.lease = swept.id",
	[PG_LEASES_SEEN] = "SELECT id, seq, ttl_ms, " EPOCH "expires" AS_US ", " NOW_US
			   " FROM @lease WHERE id = ANY($1::text[])",
	[PG_CLAIMS] =
		"SELECT e.name, e.nonce, e.term FROM @election e JOIN @lease l ON l.id = e.lease "
		"WHERE e.lease = $1",

	[PG_PIN] = "SELECT 1 FROM @lease WHERE id = $1 FOR KEY SHARE",
	[PG_MAKE] = "INSERT INTO @election (name) SELECT w.name FROM unnest($1::text[]) AS w(name) "
		    "WHERE NOT EXISTS (SELECT FROM @election e WHERE e.name = w.name) "
		    "ORDER BY w.name ON CONFLICT DO NOTHING",
	/* $1 and $2: leases that have surely ended, each with the seq that this was seen of. */
	[PG_KILL] =
		"WITH dead AS MATERIALIZED (SELECT l.id FROM @lease l JOIN "
		"unnest($1::text[], $2::bigint[]) AS p(id, seq) ON l.id = p.id AND l.seq = p.seq "
		"FOR UPDATE OF l SKIP LOCKED), "
		"killed AS (DELETE FROM @lease l USING dead WHERE l.id = dead.id RETURNING l.id) "
		"DELETE FROM @candidate c USING killed WHERE c.lease = killed.id",
	/* $1 lease, $2 owner, $3 channel; then per election: name, nonce, floor, metadata,
	 * priority, score. */
	[PG_CLAIM] =
		"WITH want AS MATERIALIZED (SELECT * FROM unnest($4::text[], $5::bigint[], "
		"$6::bigint[], $7::text[], $8::int[], $9::int[]) WITH ORDINALITY AS "
		"w(name, nonce, floor, metadata, priority, score, i)), "
		"now AS MATERIALIZED (SELECT clock_timestamp() AS t, " WAL " AS wal), "
		"free AS MATERIALIZED (SELECT w.*, e.seq FROM want w JOIN @election e ON "
		"e.name = w.name WHERE NOT e.paused AND " IS_FREE
		" AND (e.reserved_for IS NULL OR e.reserved_for = $2 OR "
		"e.reserved_until <= clock_timestamp()) "
		"AND greatest(e.term, w.floor) < 9223372036854775807 "
		"AND (e.term = 0 OR w.floor <= e.term OR w.floor - e.term <= 281474976710656) "
		"AND EXISTS (SELECT FROM @lease l WHERE l.id = $1)), "
		"locked AS MATERIALIZED (SELECT f.* FROM free f JOIN @election e ON "
		"e.name = f.name AND e.seq = f.seq ORDER BY f.name "
		"FOR NO KEY UPDATE OF e SKIP LOCKED), "
		"won AS (UPDATE @election e SET term = greatest(e.term, l.floor) + 1, "
		"seq = e.seq + 1, led = greatest(e.led, (SELECT max(h.n) FROM @history h WHERE "
		"h.name = e.name)) + 1, lease = $1, nonce = l.nonce, since = now.t, "
		"metadata = l.metadata, priority = l.priority, score = l.score, " NO_ORDER
		", reserved_for = NULL, reserved_until = NULL "
		"FROM locked l, now WHERE e.name = l.name RETURNING e.name, e.term, e.led, l.i), "
		"ended AS (UPDATE @history h SET until = now.t, until_wal = now.wal, "
		"ended = 'expired' FROM won, now WHERE h.name = won.name AND h.n = won.led - 1 AND "
		"h.ended = ''), "
		"begun AS (INSERT INTO @history (name, n, term, leader, since, since_wal) "
		"SELECT won.name, won.led, won.term, $2, now.t, now.wal FROM won, now), "
		"pruned AS (DELETE FROM @history h USING won WHERE h.name = won.name AND "
		"h.n <= won.led - 100) "
		"SELECT i, term, pg_notify($3, name) FROM won",
	/* $1 channel; then per election: name, lease, nonce, term (S6), reason, whom it is kept
	 * for, for how many ms. */
	[PG_RELEASE] =
		"WITH want AS MATERIALIZED (SELECT * FROM unnest($2::text[], $3::text[], "
		"$4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::bigint[]) WITH ORDINALITY "
		"AS w(name, lease, nonce, term, reason, target, hold_ms, i)), "
		"now AS MATERIALIZED (SELECT clock_timestamp() AS t, " WAL " AS wal), "
		"locked AS MATERIALIZED (SELECT w.* FROM want w JOIN @election e ON "
		"e.name = w.name AND e.lease = w.lease AND e.nonce = w.nonce AND e.term = w.term "
		"ORDER BY w.name FOR NO KEY UPDATE OF e SKIP LOCKED), "
		"done AS (UPDATE @election e SET lease = NULL, nonce = NULL, seq = e.seq + 1, "
		"since = NULL, " NO_ORDER ", reserved_for = l.target, "
		"reserved_until = now.t + l.hold_ms * interval '1 ms' "
		"FROM locked l, now WHERE e.name = l.name RETURNING e.name, e.led, l.reason, l.i), "
		"ended AS (UPDATE @history h SET until = now.t, until_wal = now.wal, "
		"ended = done.reason FROM done, now WHERE h.name = done.name AND h.n = done.led "
		"AND h.ended = '') "
		"SELECT i, pg_notify($1, name) FROM done",
	/* Which of them still stand: their rows were locked by somebody else. */
	[PG_STILL_HELD] =
		"SELECT w.i FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) WITH "
		"ORDINALITY AS w(name, lease, nonce, term, i) JOIN @election e ON e.name = w.name "
		"AND e.lease = w.lease AND e.nonce = w.nonce AND e.term = w.term",

	[PG_OBSERVE] =
		"SELECT w.i, e.term, e.nonce, " EPOCH "e.since" AS_MS ", "
		"e.metadata, e.priority, e.score, e.paused, e.reserved_for, " EPOCH
		"e.reserved_until - clock_timestamp()" AS_US ", "
		"e.order_id, e.order_term, e.order_kind, e.order_quiet_ms, e.order_target, "
		"e.order_target <> '' AND EXISTS (SELECT FROM @candidate c JOIN @lease o ON "
		"o.id = c.lease WHERE c.name = e.name AND o.owner = e.order_target AND c.healthy "
		"AND o.expires > clock_timestamp()), "
		"l.id, l.owner, l.address, l.seq, l.ttl_ms, " EPOCH "l.expires" AS_US ", " NOW_US
		" FROM unnest($1::text[]) WITH ORDINALITY AS w(name, i) JOIN @election e ON "
		"e.name = w.name LEFT JOIN @lease l ON l.id = e.lease",
	[PG_LISTEN] = "LISTEN ^",
	[PG_HELD_BY] = "SELECT name, lease FROM @election WHERE lease = ANY($1::text[])",

	/* $1 lease; then per election: name, metadata, priority, score, healthy. */
	[PG_PUBLISH] =
		"INSERT INTO @candidate AS c (name, lease, metadata, priority, score, healthy, "
		"updated) SELECT w.name, $1, w.metadata, w.priority, w.score, w.healthy, "
		"clock_timestamp() FROM unnest($2::text[], $3::text[], $4::int[], $5::int[], "
		"$6::boolean[]) AS w(name, metadata, priority, score, healthy) "
		"WHERE EXISTS (SELECT FROM @lease l WHERE l.id = $1) ORDER BY w.name "
		"ON CONFLICT (name, lease) DO UPDATE SET metadata = excluded.metadata, "
		"priority = excluded.priority, score = excluded.score, healthy = excluded.healthy, "
		"updated = excluded.updated RETURNING 1",
	/* The holder's profile stands in its claim, too, and is worth a hint when it changes. $6:
	 * the channel. */
	[PG_PUBLISH_HELD] =
		"WITH locked AS MATERIALIZED (SELECT w.* FROM unnest($2::text[], $3::text[], "
		"$4::int[], $5::int[]) AS w(name, metadata, priority, score) JOIN @election e ON "
		"e.name = w.name AND e.lease = $1 AND (e.metadata, e.priority, e.score) IS "
		"DISTINCT FROM (w.metadata, w.priority, w.score) ORDER BY w.name "
		"FOR NO KEY UPDATE OF e SKIP LOCKED), "
		"shown AS (UPDATE @election e SET metadata = l.metadata, priority = l.priority, "
		"score = l.score, seq = e.seq + 1 FROM locked l WHERE e.name = l.name "
		"RETURNING e.name) SELECT count(pg_notify($6, name)) FROM shown",
	[PG_WITHDRAW] = "DELETE FROM @candidate WHERE name = $1 AND lease = $2",
	[PG_CANDIDATES] =
		"SELECT l.owner, l.address, c.metadata, c.priority, c.score, c.healthy, " EPOCH
		"c.updated" AS_MS ", e.lease IS NOT NULL AND e.lease = c.lease "
		"FROM @candidate c JOIN @lease l ON l.id = c.lease LEFT JOIN @election e ON "
		"e.name = c.name WHERE c.name = $1 AND l.expires > clock_timestamp() "
		"ORDER BY l.owner, l.id",

	/* $1 name, $2 term, $3 id, $4 kind, $5 quiet ms, $6 target, $7 channel. */
	[PG_ORDER] = "WITH done AS (UPDATE @election e SET order_id = $3::bigint, "
		     "order_term = $2::bigint, order_kind = $4::int, order_quiet_ms = $5::bigint, "
		     "order_target = $6, seq = e.seq + 1 WHERE e.name = $1 AND e.term = $2::bigint "
		     "AND EXISTS (SELECT FROM @lease l WHERE l.id = e.lease) RETURNING e.name) "
		     "SELECT pg_notify($7, name) FROM done",
	[PG_PAUSE] =
		"WITH done AS (INSERT INTO @election AS e (name, paused) VALUES ($1, $2::boolean) "
		"ON CONFLICT (name) DO UPDATE SET paused = excluded.paused, seq = e.seq + 1 "
		"WHERE e.paused <> excluded.paused RETURNING name) "
		"SELECT pg_notify($3, name) FROM done",
	[PG_HISTORY] = "SELECT term, leader, " EPOCH "since" AS_MS ", " EPOCH "until" AS_MS ", "
		       "ended, since_wal, until_wal FROM @history WHERE name = $1 "
		       "ORDER BY n DESC LIMIT $2::bigint",

	/* idle_session_timeout is not in all versions. */
	[PG_EXAMINE] =
		"SELECT current_setting('server_version'), pg_is_in_recovery(), "
		"current_setting('fsync'), current_setting('synchronous_commit'), "
		"current_setting('synchronous_standby_names'), "
		"(SELECT count(*) FROM pg_stat_replication), "
		"(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), "
		"current_setting('max_connections'), current_setting('transaction_read_only'), "
		"current_setting('transaction_isolation'), coalesce((SELECT setting::bigint FROM "
		"pg_settings WHERE name = 'idle_session_timeout'), 0), "
		"has_database_privilege(current_database(), 'CREATE')",
	/* $1: the schema. Of each table that is there: is it kept, what may we not. */
	[PG_EXAMINE_TABLES] =
		"SELECT c.relname, c.relpersistence = 'u', "
		"(SELECT coalesce(string_agg(p, ', ' ORDER BY p), '') FROM "
		"unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p "
		"WHERE NOT has_table_privilege(c.oid, p)), "
		"has_schema_privilege(n.oid, 'USAGE') FROM pg_class c JOIN pg_namespace n ON "
		"n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname IN "
		"('version', 'lease', 'election', 'candidate', 'history') ORDER BY c.relname",
};

char *pg_sql(const char *text, const char *schema)
{
	size_t n = strlen(schema);
	size_t size = 1;

	for (const char *c = text; *c != '\0'; c++)
		size += *c == '@' || *c == '^' ? n + 3 : 1;
	char *out = malloc(size);
	char *to = out;

	if (out == NULL)
		return NULL;
	for (; *text != '\0'; text++) {
		if (*text != '@' && *text != '^') {
			*to++ = *text;
			continue;
		}
		*to++ = '"';
		(void)memcpy(to, schema, n);
		to += n;
		*to++ = '"';
		if (*text == '@')
			*to++ = '.';
	}
	*to = '\0';
	return out;
}
