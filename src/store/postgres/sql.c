/*
 * sql.c: the statements. Values are always parameters. A '@' is the schema, which was checked when
 * the URL was read. Each statement is one atomic step on one snapshot (READ COMMITTED), and
 * statements that are sent together are one transaction.
 *
 * What looks roundabout has a reason:
 *  - `lease` rows decide who lives, so a statement that takes a lease away locks its row and
 *    compares `seq`.
 *  - SKIP LOCKED wherever many rows are touched: an open transaction on one of them must not
 *    stall the others. Rows that were skipped are found out afterwards, and tried again.
 *  - A claim reads what is free from its snapshot, then locks rows *of the same seq* only. Without
 *    the `seq`, a row that was claimed meanwhile would be judged by its new lease, which this
 *    snapshot can't see, and the row would look free.
 *  - clock_timestamp() and not now(), which stands still in a transaction. The server's clock
 *    decides nothing about leases (expiry.h). Reservations may go wrong with it: they are only a
 *    courtesy.
 *  - The history's numbers go on from its last one: the election's row may have been deleted by
 *    hand.
 *  - The "instants" of the history are positions in the write-ahead log: they only grow.
 *  - Session locks are not rolled back with a transaction: PG_KEEP puts them right.
 */
#include "store/postgres/postgres.h"

#define EPOCH "(extract(epoch FROM "
#define AS_MS ") * 1000)::bigint"
#define AS_US ") * 1000000)::bigint"
#define NOW_US EPOCH "clock_timestamp()" AS_US
#define WAL "(pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
/* An order is meant for one leadership, and is deleted with it (rule 10). */
#define NO_ORDER                                                                   \
	"order_id = NULL, order_term = NULL, order_kind = 0, order_quiet_ms = 0, " \
	"order_target = '', order_note = ''"
/* From this number of candidates on, the exact number doesn't matter: they react to a hint one
 * after the other. */
#define CROWD_MAX_DIGITS "200"
#define IS_FREE "(e.lease IS NULL OR NOT EXISTS (SELECT FROM @lease l WHERE l.id = e.lease))"

/* The key of an election's lock, which other programs can compute, too; and that of a lease's
 * beacon. */
#define KEY(name) "coalesce(nullif('#', '')::bigint, hashtextextended('~/' || " name ", 0))"
#define BEACON(id) "hashtextextended('~ lease ' || " id ", 0)"
/* Exclusive session locks that are held, as 64-bit keys. */
#define LOCKS                                                                        \
	"SELECT (classid::bigint << 32) | objid::bigint AS key, pid FROM pg_locks "  \
	"WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND database = "   \
	"(SELECT oid FROM pg_database WHERE datname = current_database()) AND mode " \
	"= 'ExclusiveLock'"

/* WHO_HAS: the sessions that have the locks of the names $1. OWN_LOCK: whether this session has the
 * lock $1. */
#define WHO_HAS                                                                       \
	"WITH held AS MATERIALIZED (" LOCKS ") SELECT w.i, h.key, h.pid, a.usename, " \
	"a.application_name, host(a.client_addr), a.query, " EPOCH                    \
	"clock_timestamp() - a.state_change" AS_US " FROM unnest($1::text[]) WITH "   \
	"ORDINALITY AS w(name, i) JOIN held h ON h.key = " KEY(                       \
		"w.name") " LEFT JOIN pg_stat_activity a ON a.pid = h.pid"
#define OWN_LOCK                                                                  \
	"SELECT count(*) FROM (" LOCKS " AND pid = pg_backend_pid()) AS h WHERE " \
	"h.key = $1::bigint"

/* Frees the elections that `which` finds held; `word` is for the history. */
#define FREE(which, word)                                                            \
	"now AS MATERIALIZED (SELECT clock_timestamp() AS t, " WAL " AS wal), "      \
	"locked AS MATERIALIZED (SELECT e.name FROM @election e WHERE " which        \
	" ORDER BY e.name FOR NO KEY UPDATE SKIP LOCKED), "                          \
	"freed AS (UPDATE @election e SET lease = NULL, nonce = NULL, "              \
	"seq = e.seq + 1, since = NULL, " NO_ORDER                                   \
	" FROM locked WHERE e.name = locked.name RETURNING e.name, e.led), "         \
	"ended AS (UPDATE @history h SET until = now.t, until_wal = now.wal, ended " \
	"= " word " FROM freed, now WHERE h.name = freed.name AND h.n = freed.led "  \
	"AND h.ended = '')"

#define FREE_ENDED                                                                               \
	FREE("e.lease >= $1 AND e.lease < $2 AND (length(e.lease), e.lease) < (length($3), $3)", \
	     "$4")
#define KEY_OF_E KEY("e.name")
#define KEY_OF_NAME KEY("$1::text")
#define OWN_BEACON BEACON("$1::text")
#define BEACON_IF_FAST "CASE WHEN l.fast THEN " BEACON("l.id") " END"

/*
 * S3: a new row begins with the transaction's own number. That is above all terms that the server
 * ever gave, since each took a transaction: tables that are lost and made anew repeat no term.
 */
#define NEXT_TERM                                                                     \
	"greatest(e.term + 1, l.floor + 1, CASE WHEN e.term = 0 THEN txid_current() " \
	"END)"

/* `unless`: what else must be true of a row `l` that we are about to take. */
#define CLAIM(unless)                                                                \
	"WITH want AS MATERIALIZED (SELECT * FROM unnest($4::text[], $5::bigint[], " \
	"$6::bigint[], $7::text[], $8::int[], $9::int[]) WITH ORDINALITY AS "        \
	"w(name, nonce, floor, metadata, priority, score, i)), "                     \
	"now AS MATERIALIZED (SELECT clock_timestamp() AS t, " WAL " AS wal), "      \
	"free AS MATERIALIZED (SELECT w.*, e.seq FROM want w JOIN @election e ON "   \
	"e.name = w.name WHERE NOT e.paused AND " IS_FREE                            \
	" AND (e.reserved_for IS NULL OR e.reserved_for = $2 OR "                    \
	"e.reserved_until <= clock_timestamp()) "                                    \
	"AND greatest(e.term, w.floor) < " TERM_MAX_DIGITS " "                       \
	"AND (e.term = 0 OR w.floor <= e.term OR "                                   \
	"w.floor - e.term <= " TERM_JUMP_MAX_DIGITS ") "                             \
	"AND EXISTS (SELECT FROM @lease l WHERE l.id = $1)), "                       \
	"locked AS MATERIALIZED (SELECT f.* FROM free f JOIN @election e ON "        \
	"e.name = f.name AND e.seq = f.seq ORDER BY f.name "                         \
	"FOR NO KEY UPDATE OF e SKIP LOCKED), "                                      \
	"ours AS MATERIALIZED (SELECT l.* FROM locked l WHERE " unless "), "         \
	"won AS (UPDATE @election e SET term = " NEXT_TERM ", "                      \
	"seq = e.seq + 1, led = greatest(e.led, (SELECT max(h.n) FROM @history h "   \
	"WHERE h.name = e.name)) + 1, lease = $1, nonce = l.nonce, since = now.t, "  \
	"metadata = l.metadata, priority = l.priority, score = l.score, " NO_ORDER   \
	", reserved_for = NULL, reserved_until = NULL "                              \
	"FROM ours l, now WHERE e.name = l.name RETURNING e.name, e.term, e.led, "   \
	"l.i), "                                                                     \
	"ended AS (UPDATE @history h SET until = now.t, until_wal = now.wal, "       \
	"ended = 'expired' FROM won, now WHERE h.name = won.name AND "               \
	"h.n = won.led - 1 AND h.ended = ''), "                                      \
	"begun AS (INSERT INTO @history (name, n, term, leader, since, since_wal) "  \
	"SELECT won.name, won.led, won.term, $2, now.t, now.wal FROM won, now), "    \
	"pruned AS (DELETE FROM @history h USING won WHERE h.name = won.name AND "   \
	"h.n <= won.led - 100) "                                                     \
	"SELECT i, term, pg_notify($3, name) FROM won"

#define RELEASE(more)                                                              \
	"WITH want AS MATERIALIZED (SELECT * FROM unnest($2::text[], $3::text[], " \
	"$4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::bigint[]) WITH "  \
	"ORDINALITY AS w(name, lease, nonce, term, reason, target, hold_ms, i)), " \
	"now AS MATERIALIZED (SELECT clock_timestamp() AS t, " WAL " AS wal), "    \
	"locked AS MATERIALIZED (SELECT w.*, CASE WHEN w.reason IN ('ordered', "   \
	"'transferred') THEN e.order_note ELSE '' END AS note FROM want w JOIN "   \
	"@election e ON "                                                          \
	"e.name = w.name AND e.lease = w.lease AND e.nonce = w.nonce AND "         \
	"e.term = w.term ORDER BY w.name FOR NO KEY UPDATE OF e SKIP LOCKED), "    \
	"done AS (UPDATE @election e SET lease = NULL, nonce = NULL, "             \
	"seq = e.seq + 1, since = NULL, " NO_ORDER ", reserved_for = l.target, "   \
	"reserved_until = now.t + l.hold_ms * interval '1 ms' "                    \
	"FROM locked l, now WHERE e.name = l.name RETURNING e.name, e.led, "       \
	"l.reason, l.note, l.i), "                                                 \
	"ended AS (UPDATE @history h SET until = now.t, until_wal = now.wal, "     \
	"ended = done.reason, note = done.note FROM done, now WHERE "              \
	"h.name = done.name AND "                                                  \
	"h.n = done.led AND h.ended = '') "                                        \
	"SELECT i, pg_notify($1, name)" more " FROM done"

const char *const pg_statement_names[PG_STATEMENTS] = {
#define X(word, name) [PG_##word] = (name),
	PG_STATEMENT_LIST(X)
#undef X
};

const char *const pg_statements[PG_STATEMENTS] = {
	/* $1 and $2: milliseconds. $3 and $4: see push_limits(). $5: for this transaction only. jit
	 * is off: where sequential scans are off, a plan that needs one looks expensive enough to
	 * be compiled. */
	[PG_LIMITS] = "SELECT set_config('statement_timeout', $1, $5::boolean), "
		      "set_config('lock_timeout', $2, $5::boolean), "
		      "set_config('plan_cache_mode', $3, $5::boolean), "
		      "set_config('enable_seqscan', $4, $5::boolean), "
		      "set_config('jit', 'off', $5::boolean)",
	[PG_HELLO] = "SELECT pg_backend_pid(), " NOW_US ", (SELECT " EPOCH "backend_start" AS_US
		     " FROM pg_stat_get_activity(pg_backend_pid())), "
		     "current_setting('transaction_isolation')",
	[PG_TABLES] = "SELECT EXISTS (SELECT FROM pg_class c JOIN "
		      "pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND "
		      "c.relname = 'version')",
	[PG_VERSION] = "SELECT max(version) FROM @version",

	/* $1 id, $2 owner, $3 address, $4 ttl, $5 fast. A conflict: this was sent before, and the
	 * answer was lost. */
	[PG_LEASE_OPEN] =
		"INSERT INTO @lease AS l (id, owner, address, ttl_ms, seq, expires, fast) VALUES "
		"($1, $2, $3, $4::bigint, 1, clock_timestamp() + $4::bigint * interval '1 ms', "
		"$5::boolean) "
		"ON CONFLICT (id) DO UPDATE SET seq = l.seq + 1, expires = excluded.expires "
		"RETURNING " NOW_US,
	[PG_LEASE_RENEW] =
		"WITH r AS (UPDATE @lease SET seq = seq + 1, expires = clock_timestamp() + "
		"$2::bigint * interval '1 ms' WHERE id = $1 RETURNING id) "
		"SELECT (SELECT count(*) FROM r), "
		"(SELECT count(*) FROM @election WHERE lease = $1), " NOW_US,
	/* Ends the ids from $1 up to $2 that are older than $3: an incarnation is a hexadecimal
	 * number, so a shorter id is older. A late request must not end a lease that was opened
	 * since. */
	[PG_LEASE_END] = "DELETE FROM @lease WHERE id >= $1 AND id < $2 AND "
			 "(length(id), id) < (length($3), $3)",
	/* Frees what these leases held: $4 is the word for the history, $5 the channel. */
	[PG_LEASE_FREE] = "WITH " FREE_ENDED ", left_behind AS (DELETE FROM @candidate WHERE "
			  "lease >= $1 AND lease < $2 AND (length(lease), lease) < (length($3), "
			  "$3)) SELECT count(pg_notify($5, name)) FROM freed",
	/*
	 * Rows of processes that went long ago, but none that holds an election, which needs a
	 * proof. This statement locks them, and the next one looks at them: its snapshot shows
	 * every claim of a transaction that had them locked before. A row that can't be locked
	 * stays: its process may be claiming. The list is kept in a setting of this transaction.
	 */
	[PG_LEASE_STALE] =
		"SELECT set_config('baton.stale', coalesce(array_agg(id), '{}')::text, true) FROM "
		"(SELECT id FROM @lease WHERE expires < clock_timestamp() - interval '1 day' "
		"FOR UPDATE SKIP LOCKED) AS s",
	[PG_LEASE_SWEEP] = "WITH swept AS (DELETE FROM @lease l WHERE "
			   "l.id = ANY(current_setting('baton.stale')::text[]) AND NOT EXISTS "
			   "(SELECT FROM @election e WHERE e.lease = l.id) RETURNING l.id) "
			   "DELETE FROM @candidate c USING swept WHERE c.lease = swept.id",
	[PG_LEASES_SEEN] = "SELECT id, seq, ttl_ms, " EPOCH "expires" AS_US ", " BEACON_IF_FAST
			   " FROM @lease l WHERE id = ANY($1::text[])",
	[PG_CLAIMS] =
		"SELECT e.name, e.nonce, e.term FROM @election e JOIN @lease l ON l.id = e.lease "
		"WHERE e.lease = $1",

	[PG_PIN] = "SELECT 1 FROM @lease WHERE id = $1 FOR KEY SHARE",
	[PG_MAKE] = "INSERT INTO @election (name) SELECT w.name FROM unnest($1::text[]) AS w(name) "
		    "WHERE NOT EXISTS (SELECT FROM @election e WHERE e.name = w.name) "
		    "ORDER BY w.name ON CONFLICT DO NOTHING",
	/* $1 and $2: leases that have surely ended, each with the `seq` that was proven dead. */
	[PG_KILL] =
		"WITH dead AS MATERIALIZED (SELECT l.id FROM @lease l JOIN "
		"unnest($1::text[], $2::bigint[]) AS p(id, seq) ON l.id = p.id AND l.seq = p.seq "
		"FOR UPDATE OF l SKIP LOCKED), "
		"killed AS (DELETE FROM @lease l USING dead WHERE l.id = dead.id RETURNING l.id) "
		"DELETE FROM @candidate c USING killed WHERE c.lease = killed.id",
	/* $1 lease, $2 owner, $3 channel; then per election: name, nonce, floor, metadata,
	 * priority, score. */
	[PG_CLAIM] = CLAIM("true"),
	[PG_CLAIM_LOCKED] = CLAIM("pg_try_advisory_lock(" KEY("l.name") ")"),
	/* $1 channel; then per election: name, lease, nonce, term (S6), reason, whom it is kept
	 * for, for how many ms. */
	[PG_RELEASE] = RELEASE(""),
	[PG_RELEASE_LOCKED] = RELEASE(", pg_advisory_unlock(" KEY("name") ")"),
	/* Which of these claims still stand: another transaction had locked their rows. */
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
		", " BEACON_IF_FAST ", (SELECT count(*) FROM (SELECT FROM @candidate c WHERE "
		"c.name = e.name LIMIT " CROWD_MAX_DIGITS ") AS crowd), e.functions"
		" FROM unnest($1::text[]) WITH ORDINALITY AS w(name, i) JOIN "
		"@election e ON e.name = w.name LEFT JOIN @lease l ON l.id = e.lease",
	[PG_LISTEN] = "LISTEN ^",
	[PG_HELD_BY] = "SELECT name, lease FROM @election WHERE lease = ANY($1::text[])",

	/* ---- session locks (lock_session.c) ---- */

	/* $1 and $2: names of settings and their values, for the whole session. */
	[PG_SESSION] = "SELECT set_config(w.name, w.value, false) FROM unnest($1::text[], "
		       "$2::text[]) AS w(name, value)",
	/* $1 and $2: our own lost sessions, which may still hold locks. */
	[PG_END_OLD] =
		"SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a JOIN "
		"unnest($1::int[], $2::bigint[]) AS o(pid, start) ON a.pid = o.pid AND " EPOCH
		"a.backend_start" AS_US " = o.start WHERE a.pid <> pg_backend_pid()",
	/* Waits until the old session has ended, and until other waiters have had the beacon for a
	 * moment. It may wait for the whole call: a timeout would roll back the renewal in the same
	 * transaction. */
	[PG_BEACON] = "WITH s AS MATERIALIZED (SELECT set_config('lock_timeout', '0', true)) "
		      "SELECT pg_advisory_lock(" OWN_BEACON ") FROM s",
	[PG_UNLOCK_ALL] = "SELECT pg_advisory_unlock_all()",
	/* The locks of this session become those of the claims of the lease $1. Returns how many of
	 * these another session has. The rows of those claims stay: their leader's work isn't over
	 * yet (S7). */
	[PG_KEEP] =
		"WITH own AS MATERIALIZED (SELECT " KEY_OF_E " AS key FROM @election e "
		"WHERE e.lease = $1), held AS MATERIALIZED (" LOCKS " AND pid = pg_backend_pid()), "
		"extra AS MATERIALIZED (SELECT pg_advisory_unlock(key) FROM held WHERE key NOT IN "
		"(SELECT key FROM own) AND key <> " OWN_BEACON "), "
		"lost AS MATERIALIZED (SELECT FROM own WHERE key NOT IN (SELECT key FROM held) "
		"AND NOT pg_try_advisory_lock(key)) "
		"SELECT (SELECT count(*) FROM lost), (SELECT count(*) FROM extra)",
	[PG_LOCKED] = WHO_HAS,
	[PG_AWAIT] = "SELECT pg_advisory_xact_lock_shared($1::bigint)",
	/* The lease as it was when its lock was free, and what it holds. No process can have
	 * renewed it with a new beacon by then: that beacon waits for the end of this
	 * transaction. */
	[PG_AWAITED] = "SELECT l.seq, l.ttl_ms, " EPOCH "l.expires" AS_US ", e.name FROM @lease l "
		       "LEFT JOIN @election e ON e.lease = l.id WHERE l.id = $1",
	/* ---- without tables (tableless/) ---- */
	[PG_TABLELESS_FIND] = WHO_HAS,
	[PG_TABLELESS_TELL] = "SELECT pg_notify($1, $2)",
	/* The term is drawn after the lock was got. If the transaction did nothing else, the server
	 * would not flush its number to the disk at the commit, and could give it again after a
	 * crash (S3). So the transaction also writes a message, which is never read. */
	[PG_TABLELESS_TAKE] =
		"WITH t AS MATERIALIZED (SELECT k, pg_try_advisory_lock(k) AS got FROM "
		"(SELECT " KEY_OF_NAME " AS k) AS n) SELECT got, k, "
		"CASE WHEN got THEN txid_current() END, "
		"CASE WHEN got THEN pg_logical_emit_message(true, 'baton', ''::text) END FROM t",
	[PG_TABLELESS_RENEW] = OWN_LOCK,
	[PG_TABLELESS_OWN] = OWN_LOCK,
	[PG_TABLELESS_RELEASE] = "SELECT pg_advisory_unlock($1::bigint), pg_notify($2, $3)",

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
	/* The holder's profile stands in its claim, too, and a change of it causes a hint. $6: the
	 * channel. */
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

	/* $1 name, $2 term, $3 id, $4 kind, $5 quiet ms, $6 target, $7 channel,
	 * $8 note. */
	[PG_ORDER] = "WITH done AS (UPDATE @election e SET order_id = $3::bigint, "
		     "order_term = $2::bigint, order_kind = $4::int, order_quiet_ms = $5::bigint, "
		     "order_target = $6, order_note = $8, seq = e.seq + 1 WHERE e.name = $1 "
		     "AND e.term = $2::bigint "
		     "AND EXISTS (SELECT FROM @lease l WHERE l.id = e.lease) RETURNING e.name) "
		     "SELECT pg_notify($7, name) FROM done",
	[PG_PAUSE] =
		"WITH done AS (INSERT INTO @election AS e (name, paused) VALUES ($1, $2::boolean) "
		"ON CONFLICT (name) DO UPDATE SET paused = excluded.paused, seq = e.seq + 1 "
		"WHERE e.paused <> excluded.paused RETURNING name) "
		"SELECT pg_notify($3, name) FROM done",
	[PG_HISTORY] = "SELECT term, leader, " EPOCH "since" AS_MS ", " EPOCH "until" AS_MS ", "
		       "ended, since_wal, until_wal, note FROM @history WHERE name = $1 "
		       "ORDER BY n DESC LIMIT $2::bigint",

	/* $1 prefix, $2 after, $3 how many. */
	[PG_LIST] = "SELECT name FROM @election WHERE name >= $1 COLLATE \"C\" AND name > $2 "
		    "COLLATE \"C\" AND starts_with(name, $1) AND (term > 0 OR paused) "
		    "ORDER BY name LIMIT $3::bigint",

	/* Not every version has idle_session_timeout. */
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
	/* $1: the schema. For each table that is there: whether it is unlogged, and which rights we
	 * lack. */
	[PG_EXAMINE_TABLES] =
		"SELECT c.relname, c.relpersistence = 'u', "
		"(SELECT coalesce(string_agg(p, ', ' ORDER BY p), '') FROM "
		"unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p "
		"WHERE NOT has_table_privilege(c.oid, p)), "
		"has_schema_privilege(n.oid, 'USAGE') FROM pg_class c JOIN pg_namespace n ON "
		"n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname IN "
		"('version', 'lease', 'election', 'candidate', 'history') ORDER BY c.relname",
	/* Whether there are functions, how many elections are marked for them, and the names of the
	 * first ones. */
	[PG_EXAMINE_FUNCTIONS] =
		"SELECT to_regprocedure('@try_become_leader(varchar, varchar, integer)') IS NOT "
		"NULL, (SELECT count(*) FROM @election WHERE functions), coalesce((SELECT "
		"string_agg(m.name, ', ') FROM (SELECT name FROM @election WHERE functions "
		"ORDER BY name LIMIT 3) AS m), '')",
};

/* The text that a letter in the statements stands for; NULL: the letter itself. */
static const char *stands_for(char c, const struct pg_conninfo *info, const char **around)
{
	*around = c == '@' ? "\"." : c == '^' ? "\"" : "";
	switch (c) {
	case '@':
	case '^':
	case '~': return info->schema;
	case '#': return info->lock_id;
	default: return NULL;
	}
}

char *pg_sql(const char *text, const struct pg_conninfo *info)
{
	struct pg_text out = {0};
	char letter[2] = "";

	for (; *text != '\0'; text++) {
		const char *around;
		const char *word = stands_for(*text, info, &around);

		letter[0] = *text;
		if (around[0] != '\0')
			pg_text_add(&out, "\"");
		pg_text_add(&out, word != NULL ? word : letter);
		pg_text_add(&out, around);
	}
	if (!out.failed && out.at != NULL)
		return out.at;
	pg_text_done(&out);
	return NULL;
}
