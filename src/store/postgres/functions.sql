-- Elections for programs that call SQL: see FUNCTIONS in baton-postgres(7).
--
-- Any program that can call SQL contends with these functions, beside the programs that use baton
-- itself. The functions work on baton's own tables, by its rules.
--
-- Each leadership has a lease of its own, whose id is "sql-" and a hexadecimal number; the ids of
-- baton's own leases have no letter beyond "f". Such a lease has a row exactly as long as it holds
-- its election: the caller that takes over deletes the row, so the former holder finds nothing to
-- renew (S5). The caller's timeout is the length of the caller's own lease, and stands in the row
-- of that lease (rule 6). Functions renew and release only leases that functions made, and only for
-- their owner (S6).
--
-- Candidates of baton judge such a lease as any other lease, on their own clocks. A function has
-- only the server's clock. By that clock a function ends a lease that functions made. It ends a
-- lease of baton only in an election that an administrator has marked. Then it takes the election
-- and leaves the lease alone, because the lease may carry elections that are not marked. The row of
-- the lease is locked while the lease is judged: a renewal comes before that and counts, or comes
-- later, when its sender has given up (S2).
--
-- Functions run in the transactions of their callers, which may stay open. So functions never wait
-- longer than lock_timeout, a candidate that is refused has locked nothing, and the server ends a
-- session that idles in such a transaction for the length of a lease.
BEGIN;
SET LOCAL client_min_messages = warning;
DO $$ BEGIN
	IF to_regclass('baton.election') IS NULL THEN
		RAISE EXCEPTION 'baton''s tables are not in the schema baton; run what '
			'"baton schema postgres" prints first';
	END IF;
END $$;

-- What the functions share. Programs don't call these.
CREATE OR REPLACE FUNCTION baton.functions_check(service text, candidate text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	word text;
BEGIN
	FOREACH word IN ARRAY ARRAY[service, candidate] LOOP
		IF word IS NULL OR word ~ '[\u0001-\u001f\u007f-\u009f]'
			OR octet_length(convert_to(word, 'UTF8')) NOT BETWEEN 1 AND 253 THEN
			RAISE EXCEPTION 'invalid service or candidate: expected 1 to 253 bytes '
				'without control characters' USING ERRCODE = 'BATON';
		END IF;
	END LOOP;
	-- A transaction with an old snapshot does not see later claims.
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		RAISE EXCEPTION 'the transaction isolation is %: expected read committed',
			current_setting('transaction_isolation') USING ERRCODE = 'BATON';
	END IF;
END $$;

-- A transaction that stays open keeps rows locked. If it idles for the length of the lease, what it
-- has claimed or renewed is over. The server then ends the session, or earlier if that is set.
CREATE OR REPLACE FUNCTION baton.functions_limit(lease_ms bigint)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	idle_ms numeric := extract(epoch FROM
		current_setting('idle_in_transaction_session_timeout')::interval) * 1000;
BEGIN
	IF idle_ms = 0 OR idle_ms > lease_ms THEN
		PERFORM set_config('idle_in_transaction_session_timeout', lease_ms::text, true);
	END IF;
END $$;

-- Whether the candidate may claim this election, judged by the rows of the election and of its
-- lease. An election is free if its lease's row is gone. By the server's clock, functions end a
-- lease that functions made, and any other lease only in an election that is marked.
CREATE OR REPLACE FUNCTION baton.functions_may_claim(e baton.election, l baton.lease, candidate text)
RETURNS boolean LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	SELECT NOT e.paused AND e.term < 9223372036854775807
		AND (e.reserved_for IS NULL OR e.reserved_for = candidate
			OR e.reserved_until <= clock_timestamp())
		AND (l.id IS NULL OR l.expires <= clock_timestamp()
			AND (starts_with(l.id, 'sql-') OR e.functions))
$$;

-- Renews the lease of a leader, and never makes the lease shorter. Returns the term that the
-- candidate leads in, or NULL: the candidate doesn't lead, its lease is over, or an order or a
-- pause told it to step down.
CREATE OR REPLACE FUNCTION baton.functions_renew(service text, candidate text, for_term bigint,
	lease_ms bigint)
RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	renewed record;
BEGIN
	UPDATE baton.lease l SET seq = l.seq + 1, ttl_ms = greatest(l.ttl_ms, lease_ms),
		expires = clock_timestamp() + greatest(l.ttl_ms, lease_ms) * interval '1 ms'
		FROM baton.election e
		WHERE e.name = service AND l.id = e.lease AND starts_with(l.id, 'sql-')
			AND l.owner = candidate AND e.term = coalesce(for_term, e.term)
			AND l.expires > clock_timestamp()
			AND NOT e.paused AND e.order_term IS DISTINCT FROM e.term
		RETURNING e.term, l.ttl_ms INTO renewed;
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	PERFORM baton.functions_limit(renewed.ttl_ms);
	RETURN renewed.term;
END $$;

-- Takes the election in a new term. The rows of the election and of its lease are locked.
CREATE OR REPLACE FUNCTION baton.functions_claim(e baton.election, l baton.lease, candidate text,
	lease_ms bigint)
RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	began timestamptz := clock_timestamp();
	wal bigint := pg_current_wal_insert_lsn() - '0/0'::pg_lsn;
	new_term bigint := greatest(e.term + 1, CASE WHEN e.term = 0 THEN txid_current() END);
	new_led bigint := 1 + greatest(e.led,
		(SELECT max(h.n) FROM baton.history h WHERE h.name = e.name));
	random_bits text := md5(concat_ws('/', e.name, new_term, txid_current(), random(), began));
	new_lease text := 'sql-' || random_bits;
BEGIN
	-- A lease that functions made goes with its only election. Other leases may carry several.
	DELETE FROM baton.candidate c WHERE c.lease = l.id AND starts_with(l.id, 'sql-');
	DELETE FROM baton.lease x WHERE x.id = l.id AND starts_with(l.id, 'sql-');
	INSERT INTO baton.lease (id, owner, address, ttl_ms, seq, expires)
		VALUES (new_lease, candidate, '', lease_ms, 1, began + lease_ms * interval '1 ms');
	INSERT INTO baton.candidate VALUES (e.name, new_lease, '', 0, 1000, true, began);
	UPDATE baton.election x SET term = new_term, seq = x.seq + 1, led = new_led,
		lease = new_lease, nonce = ('x' || left(random_bits, 16))::bit(64)::bigint,
		since = began, metadata = '', priority = 0, score = 1000,
		order_id = NULL, order_term = NULL, order_kind = 0, order_quiet_ms = 0,
		order_target = '', order_note = '', reserved_for = NULL, reserved_until = NULL
		WHERE x.name = e.name;
	UPDATE baton.history h SET until = began, until_wal = wal, ended = 'expired'
		WHERE h.name = e.name AND h.n = new_led - 1 AND h.ended = '';
	INSERT INTO baton.history (name, n, term, leader, since, since_wal)
		VALUES (e.name, new_led, new_term, candidate, began, wal);
	DELETE FROM baton.history h WHERE h.name = e.name AND h.n <= new_led - 100;
	PERFORM pg_notify('baton', e.name);
	RETURN new_term;
END $$;

-- Gives the leadership back; the term stays. Carries out an order that the leader had.
CREATE OR REPLACE FUNCTION baton.functions_release(service text, candidate text, for_term bigint)
RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	e baton.election;
	kind int;
	ended_at timestamptz;
BEGIN
	SELECT x.* INTO e FROM baton.election x JOIN baton.lease l ON l.id = x.lease
		WHERE x.name = service AND starts_with(l.id, 'sql-') AND l.owner = candidate
			AND x.term = coalesce(for_term, x.term)
		FOR UPDATE OF l FOR NO KEY UPDATE OF x;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	PERFORM baton.functions_limit((SELECT l.ttl_ms FROM baton.lease l WHERE l.id = e.lease));
	kind := CASE WHEN e.order_term = e.term THEN e.order_kind ELSE 0 END;
	ended_at := clock_timestamp();
	DELETE FROM baton.candidate c WHERE c.lease = e.lease;
	DELETE FROM baton.lease l WHERE l.id = e.lease;
	UPDATE baton.election x SET lease = NULL, nonce = NULL, seq = x.seq + 1, since = NULL,
		order_id = NULL, order_term = NULL, order_kind = 0, order_quiet_ms = 0,
		order_target = '', order_note = '',
		reserved_for = CASE WHEN kind = 2 THEN e.order_target END,
		reserved_until = CASE WHEN kind = 2 THEN ended_at + interval '2 s' END
		WHERE x.name = e.name;
	UPDATE baton.history h SET until = ended_at,
		until_wal = pg_current_wal_insert_lsn() - '0/0'::pg_lsn,
		ended = CASE kind WHEN 0 THEN 'released' WHEN 1 THEN 'ordered'
			ELSE 'transferred' END,
		note = CASE WHEN kind > 0 THEN e.order_note ELSE '' END
		WHERE h.name = e.name AND h.n = e.led AND h.ended = '';
	PERFORM pg_notify('baton', e.name);
	RETURN true;
END $$;

-- Returns the term that the candidate leads in, or NULL: another candidate leads. The timeout is
-- the length of the candidate's own lease: the candidate leads for that long, counted from before
-- this call was sent, unless it renews the lease. A leader that calls this renews its lease, in the
-- same term.
CREATE OR REPLACE FUNCTION baton.try_become_leader_term(p_service_name varchar,
	p_candidate_id varchar, p_timeout_seconds integer DEFAULT 30)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
	lease_ms bigint := p_timeout_seconds::bigint * 1000;
	e baton.election;
	l baton.lease;
BEGIN
	PERFORM baton.functions_check(p_service_name, p_candidate_id);
	IF lease_ms IS NULL OR lease_ms NOT BETWEEN 1000 AND 86400000 THEN
		RAISE EXCEPTION 'invalid timeout: expected 1 to 86400 seconds'
			USING ERRCODE = 'BATON';
	END IF;
	-- A look first: a candidate that is refused has locked nothing.
	SELECT x.* INTO e FROM baton.election x WHERE x.name = p_service_name;
	IF FOUND THEN
		SELECT x.* INTO l FROM baton.lease x WHERE x.id = e.lease;
		IF starts_with(l.id, 'sql-') AND l.owner = p_candidate_id
			AND l.expires > clock_timestamp() THEN
			RETURN baton.functions_renew(p_service_name, p_candidate_id, NULL, lease_ms);
		END IF;
		IF NOT baton.functions_may_claim(e, l, p_candidate_id) THEN
			RETURN NULL;
		END IF;
	ELSE
		PERFORM baton.functions_limit(lease_ms);
		BEGIN
			INSERT INTO baton.election (name) VALUES (p_service_name)
				ON CONFLICT DO NOTHING;
		EXCEPTION WHEN lock_not_available THEN -- another's row, which isn't committed
			RETURN NULL;
		END;
	END IF;
	-- From here on rows are locked. Rows that others have locked are not waited for.
	PERFORM baton.functions_limit(lease_ms);
	SELECT x.* INTO e FROM baton.election x WHERE x.name = p_service_name
		FOR NO KEY UPDATE SKIP LOCKED;
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	SELECT x.* INTO l FROM baton.lease x WHERE x.id = e.lease FOR UPDATE SKIP LOCKED;
	IF NOT FOUND AND EXISTS (SELECT FROM baton.lease x WHERE x.id = e.lease)
		OR NOT baton.functions_may_claim(e, l, p_candidate_id) THEN
		RETURN NULL;
	END IF;
	RETURN baton.functions_claim(e, l, p_candidate_id, lease_ms);
END $$;

CREATE OR REPLACE FUNCTION baton.try_become_leader(p_service_name varchar,
	p_candidate_id varchar, p_timeout_seconds integer DEFAULT 30)
RETURNS boolean LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT baton.try_become_leader_term(p_service_name, p_candidate_id, p_timeout_seconds)
		IS NOT NULL
$$;

-- Renews the lease: it lasts as long again. False: the caller no longer leads and must stop its
-- work.
CREATE OR REPLACE FUNCTION baton.leader_heartbeat(p_service_name varchar, p_leader_id varchar)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
BEGIN
	PERFORM baton.functions_check(p_service_name, p_leader_id);
	RETURN baton.functions_renew(p_service_name, p_leader_id, NULL, NULL) IS NOT NULL;
END $$;

-- The same in that term only.
CREATE OR REPLACE FUNCTION baton.leader_heartbeat(p_service_name varchar, p_leader_id varchar,
	p_term bigint)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
BEGIN
	PERFORM baton.functions_check(p_service_name, p_leader_id);
	RETURN p_term IS NOT NULL
		AND baton.functions_renew(p_service_name, p_leader_id, p_term, NULL) IS NOT NULL;
END $$;

-- Gives the leadership back, when the work has ended. False: there was no leadership.
CREATE OR REPLACE FUNCTION baton.step_down(p_service_name varchar, p_leader_id varchar)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
BEGIN
	PERFORM baton.functions_check(p_service_name, p_leader_id);
	RETURN baton.functions_release(p_service_name, p_leader_id, NULL);
END $$;

-- The same in that term only.
CREATE OR REPLACE FUNCTION baton.step_down(p_service_name varchar, p_leader_id varchar,
	p_term bigint)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
BEGIN
	PERFORM baton.functions_check(p_service_name, p_leader_id);
	RETURN p_term IS NOT NULL
		AND baton.functions_release(p_service_name, p_leader_id, p_term);
END $$;

-- For an administrator: in a marked election the functions also take over a lease that they did
-- not make, when it is over by the clock of this server. See "Functions" in baton-postgres(7).
CREATE OR REPLACE FUNCTION baton.mark_for_functions(p_service_name varchar,
	p_marked boolean DEFAULT true)
RETURNS void LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	INSERT INTO baton.election AS e (name, functions) VALUES (p_service_name, p_marked)
		ON CONFLICT (name) DO UPDATE SET functions = excluded.functions, seq = e.seq + 1
$$;

-- What a text says as JSON; one that is not JSON is a string. Any text will do, and no table is read.
CREATE OR REPLACE FUNCTION baton.functions_json(said text)
RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN said::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN -- also a number or a depth too large
	RETURN to_jsonb(said);
END $$;

-- One row for each service that has a leader.
CREATE OR REPLACE VIEW baton.leader_election AS
	SELECT e.name AS service_name, l.owner AS leader_id, e.term,
		l.expires - l.ttl_ms * interval '1 ms' AS last_heartbeat,
		CASE WHEN e.metadata = '' THEN '{}'::jsonb ELSE baton.functions_json(e.metadata)
			END AS metadata
	FROM baton.election e JOIN baton.lease l ON l.id = e.lease;

REVOKE ALL ON FUNCTION baton.functions_check(text, text), baton.functions_limit(bigint),
	baton.functions_may_claim(baton.election, baton.lease, text),
	baton.functions_renew(text, text, bigint, bigint),
	baton.functions_claim(baton.election, baton.lease, text, bigint),
	baton.functions_release(text, text, bigint),
	baton.try_become_leader_term(varchar, varchar, integer),
	baton.try_become_leader(varchar, varchar, integer),
	baton.leader_heartbeat(varchar, varchar), baton.leader_heartbeat(varchar, varchar, bigint),
	baton.step_down(varchar, varchar), baton.step_down(varchar, varchar, bigint),
	baton.mark_for_functions(varchar, boolean) FROM PUBLIC;
-- A view calls functions with the rights of its reader.
GRANT EXECUTE ON FUNCTION baton.functions_json(text) TO PUBLIC;
COMMIT;
-- What a caller's role needs; the last line lets it call them without the name of the schema:
-- GRANT USAGE ON SCHEMA baton TO myapp;
-- GRANT SELECT ON baton.leader_election TO myapp;
-- GRANT EXECUTE ON FUNCTION baton.try_become_leader_term(varchar, varchar, integer),
--	baton.try_become_leader(varchar, varchar, integer),
--	baton.leader_heartbeat(varchar, varchar), baton.leader_heartbeat(varchar, varchar, bigint),
--	baton.step_down(varchar, varchar), baton.step_down(varchar, varchar, bigint) TO myapp;
-- ALTER ROLE myapp SET search_path = baton, public;
-- An election in which functions may end the lease of `baton run` by the server's clock:
-- SELECT baton.mark_for_functions('nightly-report');
