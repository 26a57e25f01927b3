-- Elections for programs that call SQL: see FUNCTIONS in baton-mysql(7).
--
-- Any program that can call SQL contends with these functions, beside the programs that use baton
-- itself. The functions work on baton's own records, by its rules, on MariaDB 10.6 or newer and
-- MySQL 8.0 or newer.
--
-- Each leadership has a lease of its own, whose id begins with "f--"; the ids of baton's own leases
-- begin with 32 digits. Such a lease has a record exactly as long as it holds its election: the
-- caller that takes over deletes the record, and a candidate of baton writes the record's tombstone
-- (R4), so the former holder finds nothing to renew (S5). The caller's timeout is the ttl in the
-- record (rule 6). Functions renew and release only leases that functions made, and only for their
-- owner (S6).
--
-- Candidates of baton judge such a lease as any other lease, on their own clocks. A function has
-- only the server's clock. By that clock a function ends a lease that functions made. It ends a
-- lease of baton only in an election that an administrator has marked. Then it takes the election
-- and leaves the lease alone, because the lease may carry elections that are not marked. The row of
-- the lease is locked while the lease is judged: a renewal comes before that and counts, or comes
-- later, when its sender has given up (S2) and the answer revives nothing.
--
-- Every write has a new w, and a record is written only with its row locked: so each write is a
-- compare-and-set. What is read without a lock only says whether to try. All values are written
-- exactly as baton's codec writes them, because the codec reads nothing else (S9).
--
-- Functions run in the transactions of their callers, which may stay open. So they never wait
-- longer than a second, and a candidate that is refused has locked nothing. A caller can't choose
-- the time: SYSDATE() is the server's clock, whatever the variable `timestamp` says.
SET @baton_sql_mode = @@sql_mode;
SET NAMES utf8mb4;
SET sql_mode = 'STRICT_ALL_TABLES';
DELIMITER //

DROP PROCEDURE IF EXISTS baton_functions_server //
CREATE PROCEDURE baton_functions_server()
BEGIN
	DECLARE number INT DEFAULT SUBSTRING_INDEX(VERSION(), '.', 1) * 100
		+ SUBSTRING_INDEX(SUBSTRING_INDEX(VERSION(), '.', 2), '.', -1);
	DECLARE has_tables, is_fixed BOOLEAN DEFAULT TRUE;
	IF number < IF(VERSION() LIKE '%MariaDB%', 1006, 800) THEN
		SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =
			'baton''s functions need MariaDB 10.6 or MySQL 8.0, or newer';
	END IF;
	IF @@log_bin AND NOT @@log_bin_trust_function_creators THEN
		SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the server has a binary log; '
			'SET GLOBAL log_bin_trust_function_creators = 1 while this runs';
	END IF;
	BEGIN
		DECLARE CONTINUE HANDLER FOR 1146 SET has_tables = FALSE;
		SELECT COUNT(*) > 0 INTO is_fixed FROM baton_record WHERE FALSE;
	END;
	IF NOT has_tables THEN
		SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'baton''s tables are not in this '
			'database; run what "baton schema mysql" prints first';
	END IF;
	BEGIN -- if callers may not set the time, all is well
		DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
		SET timestamp = 1000000;
		SET is_fixed = SYSDATE() < '2000-01-01';
		SET timestamp = DEFAULT;
	END;
	IF is_fixed THEN
		SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the server runs with --sysdate-is-now, '
			'so that a caller could choose the time; start it without that';
	END IF;
END //
CALL baton_functions_server() //
DROP PROCEDURE baton_functions_server //

-- ---- what the functions share; programs don't call these ----

-- What all keys begin with. With prefix=NAME in the URL: 'NAME/'.
DROP FUNCTION IF EXISTS baton_functions_prefix //
CREATE FUNCTION baton_functions_prefix() RETURNS VARBINARY(129) DETERMINISTIC
	RETURN '' //

-- The key of a name below e/ and m/. Letters, digits, "-", "_" and most "." and "/" stand for
-- themselves; any other byte is "=XX". A hash stands for a name with too long a key (rule 5).
DROP FUNCTION IF EXISTS baton_functions_key //
CREATE FUNCTION baton_functions_key(name VARCHAR(255) CHARACTER SET utf8mb4)
RETURNS VARBINARY(240) DETERMINISTIC
BEGIN
	DECLARE bytes VARBINARY(1020) DEFAULT CAST(name AS BINARY);
	DECLARE made VARBINARY(800) DEFAULT '';
	DECLARE at INT DEFAULT 1;
	DECLARE n INT DEFAULT COALESCE(LENGTH(bytes), 0);
	DECLARE code, before_it INT DEFAULT 0;
	DECLARE is_first, is_bad BOOLEAN;
	SET is_bad = n NOT BETWEEN 1 AND 253;
	WHILE at <= n AND NOT is_bad DO
		SET is_first = at = 1 OR code = 47;
		SET before_it = code;
		SET code = ORD(SUBSTRING(bytes, at, 1));
		SET is_bad = code < 32 OR code = 127
			OR before_it = 194 AND code BETWEEN 128 AND 159;
		SET made = CONCAT(made, IF(code BETWEEN 97 AND 122 OR code BETWEEN 65 AND 90
				OR code BETWEEN 48 AND 57 OR code IN (45, 95)
				OR NOT is_first AND (code = 46 OR code = 47 AND at < n),
			CHAR(code), CONCAT('=', LPAD(HEX(code), 2, '0'))));
		SET at = at + 1;
	END WHILE;
	IF is_bad THEN
		SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'invalid service or candidate: expected '
			'1 to 253 bytes without control characters';
	END IF;
	RETURN IF(LENGTH(made) > 238, CONCAT('=-', SHA2(bytes, 256)), made);
END //

-- 64 random bits, as a number, never the same again.
DROP FUNCTION IF EXISTS baton_functions_random //
CREATE FUNCTION baton_functions_random() RETURNS VARCHAR(20) CHARACTER SET utf8mb4 NO SQL
BEGIN
	DECLARE unique_text VARCHAR(80) DEFAULT UUID();
	SET unique_text = CONCAT(unique_text, RAND(), RAND());
	RETURN CONV(LEFT(SHA2(unique_text, 256), 16), 16, 10);
END //

DROP FUNCTION IF EXISTS baton_functions_text //
CREATE FUNCTION baton_functions_text(text VARCHAR(2000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
RETURNS VARCHAR(4002) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DETERMINISTIC
	RETURN CONCAT('"', REPLACE(REPLACE(text, '\\', '\\\\'), '"', '\\"'), '"') //

-- A field of a record.
DROP FUNCTION IF EXISTS baton_functions_field //
CREATE FUNCTION baton_functions_field(v LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	path VARCHAR(40) CHARACTER SET utf8mb4)
RETURNS VARCHAR(2000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DETERMINISTIC
	RETURN JSON_UNQUOTE(JSON_EXTRACT(v, path)) //

-- A field that is a number: as a text it would be compared as a floating point number.
DROP FUNCTION IF EXISTS baton_functions_number //
CREATE FUNCTION baton_functions_number(v LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	path VARCHAR(40) CHARACTER SET utf8mb4)
RETURNS BIGINT UNSIGNED DETERMINISTIC
	RETURN CAST(JSON_UNQUOTE(JSON_EXTRACT(v, path)) AS UNSIGNED) //

DROP FUNCTION IF EXISTS baton_functions_same //
CREATE FUNCTION baton_functions_same(a VARCHAR(2000) CHARACTER SET utf8mb4,
	b VARCHAR(2000) CHARACTER SET utf8mb4)
RETURNS BOOLEAN DETERMINISTIC
	RETURN COALESCE(CAST(a AS BINARY) = CAST(b AS BINARY), FALSE) //

-- Whether so many nanoseconds have passed since that time.
DROP FUNCTION IF EXISTS baton_functions_is_over //
CREATE FUNCTION baton_functions_is_over(since DATETIME(6), ns BIGINT UNSIGNED)
RETURNS BOOLEAN NO SQL
	RETURN COALESCE(since + INTERVAL (ns DIV 1000 + 1) MICROSECOND <= SYSDATE(6), FALSE) //

DROP FUNCTION IF EXISTS baton_functions_ms //
CREATE FUNCTION baton_functions_ms() RETURNS BIGINT NO SQL
	RETURN FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000) //

-- Writes a record; `rest` is its value without the w. The caller has locked or makes the row.
DROP PROCEDURE IF EXISTS baton_functions_write //
CREATE PROCEDURE baton_functions_write(whole_key VARBINARY(384),
	rest LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA
BEGIN
	DECLARE new_w VARCHAR(20) CHARACTER SET utf8mb4 DEFAULT baton_functions_random();
	DECLARE new_v LONGBLOB DEFAULT CAST(CONCAT('{"w":"', new_w, '",', rest) AS BINARY);
	DECLARE wall TIMESTAMP(6) DEFAULT SYSDATE(6);
	INSERT INTO baton_record (k, w, v, at) VALUES (whole_key, new_w, new_v, wall)
		ON DUPLICATE KEY UPDATE w = new_w, v = new_v, at = wall;
END //

-- An election's record without its w. `claim` is the part from "lease" to "since".
DROP FUNCTION IF EXISTS baton_functions_election //
CREATE FUNCTION baton_functions_election(
	name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, term BIGINT UNSIGNED,
	claim TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, paused VARCHAR(5) CHARACTER SET utf8mb4,
	reserved TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	past LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
RETURNS LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DETERMINISTIC
	RETURN CONCAT('"name":', baton_functions_text(name), ',"term":"', term, '",', claim,
		',"paused":', paused, ',"order":null,"reserved":', reserved, ',"past":[', past,
		']}') //

DROP FUNCTION IF EXISTS baton_functions_claim //
CREATE FUNCTION baton_functions_claim(lease VARCHAR(64) CHARACTER SET utf8mb4,
	nonce VARCHAR(20) CHARACTER SET utf8mb4, ttl BIGINT UNSIGNED,
	leader VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, score INT, since BIGINT)
RETURNS TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DETERMINISTIC
	RETURN CONCAT('"lease":"', lease, '","nonce":"', nonce, '","ttl":"', ttl, '","leader":',
		baton_functions_text(leader), ',"address":"","metadata":"","priority":0,"score":',
		score, ',"since":"', since, '"') //

-- The leaderships of a record, the newest first, without the brackets. If the newest has no end
-- yet, it ends now. Quotes inside a string are escaped, so the text that is looked for here can't
-- stand inside one.
DROP FUNCTION IF EXISTS baton_functions_past //
CREATE FUNCTION baton_functions_past(v LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	ended VARCHAR(31) CHARACTER SET utf8mb4,
	note VARCHAR(2000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
RETURNS LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT DETERMINISTIC NO SQL
BEGIN
	DECLARE list LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
		DEFAULT SUBSTRING(v, LOCATE(',"past":[', v) + 9);
	DECLARE newest TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
	SET list = LEFT(list, CHAR_LENGTH(list) - 2);
	SET newest = SUBSTRING_INDEX(list, ',{"term":', 1);
	IF newest = '' OR baton_functions_field(v, '$.past[0].ended') <> '' THEN
		RETURN list;
	END IF;
	RETURN CONCAT('{"term":"', baton_functions_field(v, '$.past[0].term'), '","leader":',
		baton_functions_text(baton_functions_field(v, '$.past[0].leader')), ',"since":"',
		baton_functions_field(v, '$.past[0].since'), '","until":"', baton_functions_ms(),
		'","ended":"', ended, '","note":', baton_functions_text(note), '}',
		SUBSTRING(list, CHAR_LENGTH(newest) + 1));
END //

-- Makes an election's record, unless it is there.
DROP PROCEDURE IF EXISTS baton_functions_make //
CREATE PROCEDURE baton_functions_make(service VARCHAR(255) CHARACTER SET utf8mb4,
	e_key VARBINARY(384))
MODIFIES SQL DATA
BEGIN
	DECLARE new_w VARCHAR(20) CHARACTER SET utf8mb4 DEFAULT baton_functions_random();
	INSERT INTO baton_record (k, w, v) VALUES (e_key, new_w, CONCAT('{"w":"', new_w, '",',
		baton_functions_election(service, 0, baton_functions_claim('', 0, 0, '', 0, 0),
			'false', 'null', ''))) ON DUPLICATE KEY UPDATE k = k;
END //

-- Reads an election and the lease that it names: the value of each, and when it was written. A
-- value is NULL if there is no record. with_lock: both rows are locked; a row that another
-- transaction has locked is not waited for, and counts as missing.
DROP PROCEDURE IF EXISTS baton_functions_look //
CREATE PROCEDURE baton_functions_look(service VARCHAR(255) CHARACTER SET utf8mb4,
	e_key VARBINARY(384), with_lock BOOLEAN,
	OUT e LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT e_at DATETIME(6),
	OUT l LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT l_at DATETIME(6))
READS SQL DATA
BEGIN
	DECLARE l_key VARBINARY(384);
	DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
	IF with_lock THEN
		SELECT CONVERT(r.v USING utf8mb4), r.at INTO e, e_at FROM baton_record r
			WHERE r.k = e_key FOR UPDATE SKIP LOCKED;
	ELSE
		SELECT CONVERT(r.v USING utf8mb4), r.at INTO e, e_at FROM baton_record r
			WHERE r.k = e_key;
	END IF;
	IF e IS NOT NULL AND NOT baton_functions_same(baton_functions_field(e, '$.name'), service)
	THEN
		SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =
			'the record of this service is damaged: it names another one';
	END IF;
	SET l_key = CONCAT(baton_functions_prefix(), 'l/', baton_functions_field(e, '$.lease'));
	IF with_lock AND baton_functions_field(e, '$.lease') <> '' THEN
		SELECT CONVERT(r.v USING utf8mb4), r.at INTO l, l_at FROM baton_record r
			WHERE r.k = l_key FOR UPDATE SKIP LOCKED;
	ELSE
		SELECT CONVERT(r.v USING utf8mb4), r.at INTO l, l_at FROM baton_record r
			WHERE r.k = l_key;
	END IF;
END //

-- Whether the candidate may claim this election, judged by the records of the election and of the
-- lease that it names. By the server's clock, functions end a lease that functions made, and any
-- other lease only in an election that is marked.
DROP FUNCTION IF EXISTS baton_functions_may_claim //
CREATE FUNCTION baton_functions_may_claim(e LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	e_at DATETIME(6), l LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, l_at DATETIME(6),
	candidate VARCHAR(255) CHARACTER SET utf8mb4, name_key VARBINARY(240))
RETURNS BOOLEAN READS SQL DATA
BEGIN
	DECLARE kept_for VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
		DEFAULT baton_functions_field(e, '$.reserved.for');
	IF baton_functions_field(e, '$.paused') <> 'false'
		OR baton_functions_number(e, '$.term') >= 9223372036854775807 THEN
		RETURN FALSE;
	END IF;
	IF kept_for IS NOT NULL AND NOT baton_functions_same(kept_for, candidate)
		AND NOT baton_functions_is_over(e_at, baton_functions_number(e, '$.reserved.hold')) THEN
		RETURN FALSE;
	END IF;
	IF baton_functions_field(e, '$.lease') = '' THEN
		RETURN TRUE;
	END IF;
	IF l IS NULL OR baton_functions_field(l, '$.dead') <> 'false' THEN
		RETURN l IS NOT NULL;
	END IF;
	RETURN baton_functions_is_over(l_at, baton_functions_number(l, '$.ttl'))
		AND (baton_functions_field(e, '$.lease') LIKE 'f--%' OR EXISTS (SELECT 1
			FROM baton_record WHERE k = CONCAT(baton_functions_prefix(), 'm/', name_key)));
END //

-- Renews the lease of a leader, and never makes the lease shorter. Returns the term that the
-- candidate leads in, or NULL: the candidate doesn't lead, its lease is over, or an order or a
-- pause told it to step down.
DROP FUNCTION IF EXISTS baton_functions_renew //
CREATE FUNCTION baton_functions_renew(service VARCHAR(255) CHARACTER SET utf8mb4,
	candidate VARCHAR(255) CHARACTER SET utf8mb4, for_term BIGINT, ask_ns BIGINT UNSIGNED)
RETURNS BIGINT MODIFIES SQL DATA
BEGIN
	DECLARE e_key, l_key VARBINARY(384);
	DECLARE e, l, rest LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
	DECLARE e_at, l_at DATETIME(6);
	DECLARE ttl_ns BIGINT UNSIGNED;
	DECLARE lease VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
	DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
	SET e_key = CONCAT(baton_functions_prefix(), 'e/', baton_functions_key(service));
	CALL baton_functions_look(service, e_key, FALSE, e, e_at, l, l_at);
	IF l IS NULL OR baton_functions_field(e, '$.lease') NOT LIKE 'f--%' THEN
		RETURN NULL;
	END IF;
	SET lease = baton_functions_field(e, '$.lease');
	-- A new, longer ttl is also written into the election (R4), whose row is locked first.
	IF ask_ns > baton_functions_number(e, '$.ttl') THEN
		SELECT CONVERT(v USING utf8mb4) INTO e FROM baton_record WHERE k = e_key FOR UPDATE;
	END IF;
	SET l_key = CONCAT(baton_functions_prefix(), 'l/', lease);
	SET l = NULL;
	SELECT CONVERT(v USING utf8mb4), at INTO l, l_at FROM baton_record WHERE k = l_key
		FOR UPDATE;
	IF l IS NULL OR baton_functions_field(e, '$.lease') <> lease
		OR baton_functions_field(l, '$.dead') <> 'false'
		OR NOT baton_functions_same(baton_functions_field(l, '$.owner'), candidate)
		OR baton_functions_is_over(l_at, baton_functions_number(l, '$.ttl'))
		OR baton_functions_number(e, '$.term')
			<> COALESCE(for_term, baton_functions_number(e, '$.term'))
		OR baton_functions_field(e, '$.paused') <> 'false'
		OR COALESCE(baton_functions_number(e, '$.order.term')
			= baton_functions_number(e, '$.term'), FALSE) THEN
		RETURN NULL;
	END IF;
	SET ttl_ns = GREATEST(ask_ns, baton_functions_number(l, '$.ttl'));
	IF ttl_ns > baton_functions_number(e, '$.ttl') THEN
		SET rest = SUBSTRING(e, LOCATE('"name":', e));
		CALL baton_functions_write(e_key, CONCAT(SUBSTRING_INDEX(rest, ',"ttl":"', 1),
			',"ttl":"', ttl_ns, '"', SUBSTRING(rest, LOCATE(',"leader":', rest))));
	END IF;
	CALL baton_functions_write(l_key, baton_functions_lease(ttl_ns,
		baton_functions_number(l, '$.beat') + 1, candidate));
	RETURN baton_functions_number(e, '$.term');
END //

-- A lease's record without its w.
DROP FUNCTION IF EXISTS baton_functions_lease //
CREATE FUNCTION baton_functions_lease(ttl BIGINT UNSIGNED, beat BIGINT UNSIGNED,
	owner VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
RETURNS TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DETERMINISTIC
	RETURN CONCAT('"ttl":"', ttl, '","beat":"', beat, '","owner":', baton_functions_text(owner),
		',"address":"","dead":false}') //

-- Deletes a lease that functions made and that no election names any longer (R10).
DROP PROCEDURE IF EXISTS baton_functions_drop //
CREATE PROCEDURE baton_functions_drop(lease VARCHAR(64) CHARACTER SET utf8mb4)
MODIFIES SQL DATA
BEGIN
	IF lease LIKE 'f--%' THEN
		DELETE FROM baton_record WHERE k = CONCAT(baton_functions_prefix(), 'c/', lease);
		DELETE FROM baton_record WHERE k = CONCAT(baton_functions_prefix(), 'l/', lease);
	END IF;
END //

-- Takes the election in a new term. The rows of the election and of its lease are locked.
DROP FUNCTION IF EXISTS baton_functions_take //
CREATE FUNCTION baton_functions_take(service VARCHAR(255) CHARACTER SET utf8mb4,
	name_key VARBINARY(240), e LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	l LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	candidate VARCHAR(255) CHARACTER SET utf8mb4, ttl_ns BIGINT UNSIGNED)
RETURNS BIGINT MODIFIES SQL DATA
BEGIN
	DECLARE new_term BIGINT DEFAULT baton_functions_number(e, '$.term') + 1;
	DECLARE wall_ms BIGINT DEFAULT baton_functions_ms();
	DECLARE lease VARCHAR(64) CHARACTER SET utf8mb4 DEFAULT UUID();
	DECLARE past LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
	DECLARE prefix VARBINARY(129) DEFAULT baton_functions_prefix();
	SET lease = CONCAT('f--', LEFT(SHA2(CONCAT(lease, baton_functions_random()), 256), 32));
	SET past = baton_functions_past(e, CASE WHEN l IS NULL THEN ''
		WHEN baton_functions_field(l, '$.dead') <> 'false'
			THEN baton_functions_field(l, '$.dead') ELSE 'expired' END, '');
	-- The sixteen newest are kept.
	SET past = SUBSTRING_INDEX(past, ',{"term":', 15);
	SET past = CONCAT('{"term":"', new_term, '","leader":', baton_functions_text(candidate),
		',"since":"', wall_ms, '","until":"0","ended":"","note":""}',
		IF(past = '', '', ','), past);
	CALL baton_functions_write(CONCAT(prefix, 'l/', lease),
		baton_functions_lease(ttl_ns, 1, candidate));
	CALL baton_functions_write(CONCAT(prefix, 'c/', lease), CONCAT('"owner":',
		baton_functions_text(candidate), ',"address":"","profiles":[{"metadata":"",'
		'"priority":0,"score":1000,"healthy":true,"updated":"', wall_ms,
		'"}],"names":[[', baton_functions_text(service), ',0]]}'));
	CALL baton_functions_write(CONCAT(prefix, 'e/', name_key),
		baton_functions_election(service, new_term, baton_functions_claim(lease,
			baton_functions_random(), ttl_ns, candidate, 1000, wall_ms), 'false',
			'null', past));
	CALL baton_functions_drop(baton_functions_field(e, '$.lease'));
	RETURN new_term;
END //

-- Claims the election, or renews the lease of a candidate that leads already.
DROP FUNCTION IF EXISTS baton_functions_try //
CREATE FUNCTION baton_functions_try(service VARCHAR(255) CHARACTER SET utf8mb4,
	candidate VARCHAR(255) CHARACTER SET utf8mb4, ttl_ns BIGINT UNSIGNED)
RETURNS BIGINT MODIFIES SQL DATA
BEGIN
	DECLARE name_key VARBINARY(240) DEFAULT baton_functions_key(service);
	DECLARE e_key VARBINARY(384) DEFAULT CONCAT(baton_functions_prefix(), 'e/', name_key);
	DECLARE e, l LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
	DECLARE e_at, l_at DATETIME(6);
	-- A look first: a candidate that is refused has locked nothing.
	CALL baton_functions_look(service, e_key, FALSE, e, e_at, l, l_at);
	IF e IS NULL THEN
		BEGIN -- another's row, which isn't committed
			DECLARE EXIT HANDLER FOR 1205 RETURN NULL;
			CALL baton_functions_make(service, e_key);
		END;
	ELSEIF l IS NOT NULL AND baton_functions_field(e, '$.lease') LIKE 'f--%'
		AND baton_functions_field(l, '$.dead') = 'false'
		AND baton_functions_same(baton_functions_field(l, '$.owner'), candidate)
		AND NOT baton_functions_is_over(l_at, baton_functions_number(l, '$.ttl')) THEN
		RETURN baton_functions_renew(service, candidate, NULL, ttl_ns);
	ELSEIF NOT baton_functions_may_claim(e, e_at, l, l_at, candidate, name_key) THEN
		RETURN NULL;
	END IF;
	CALL baton_functions_look(service, e_key, TRUE, e, e_at, l, l_at);
	IF e IS NULL OR NOT baton_functions_may_claim(e, e_at, l, l_at, candidate, name_key) THEN
		RETURN NULL;
	END IF;
	RETURN baton_functions_take(service, name_key, e, l, candidate, ttl_ns);
END //

-- Gives the leadership back; the term stays. Carries out an order that the leader had.
DROP FUNCTION IF EXISTS baton_functions_release //
CREATE FUNCTION baton_functions_release(service VARCHAR(255) CHARACTER SET utf8mb4,
	candidate VARCHAR(255) CHARACTER SET utf8mb4, for_term BIGINT)
RETURNS BOOLEAN MODIFIES SQL DATA
BEGIN
	DECLARE e_key VARBINARY(384);
	DECLARE e, l LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
	DECLARE e_at, l_at DATETIME(6);
	DECLARE lease VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
	DECLARE kind VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT '';
	DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
	SET e_key = CONCAT(baton_functions_prefix(), 'e/', baton_functions_key(service));
	CALL baton_functions_look(service, e_key, FALSE, e, e_at, l, l_at);
	IF l IS NULL OR baton_functions_field(e, '$.lease') NOT LIKE 'f--%' THEN
		RETURN FALSE;
	END IF;
	SELECT CONVERT(v USING utf8mb4) INTO e FROM baton_record WHERE k = e_key FOR UPDATE;
	SET lease = baton_functions_field(e, '$.lease');
	SET l = NULL;
	SELECT CONVERT(v USING utf8mb4) INTO l FROM baton_record
		WHERE k = CONCAT(baton_functions_prefix(), 'l/', lease) AND lease LIKE 'f--%'
		FOR UPDATE;
	IF l IS NULL OR baton_functions_field(l, '$.dead') <> 'false'
		OR NOT baton_functions_same(baton_functions_field(l, '$.owner'), candidate)
		OR baton_functions_number(e, '$.term')
			<> COALESCE(for_term, baton_functions_number(e, '$.term')) THEN
		RETURN FALSE;
	END IF;
	IF baton_functions_number(e, '$.order.term') = baton_functions_number(e, '$.term') THEN
		SET kind = baton_functions_field(e, '$.order.kind');
	END IF;
	CALL baton_functions_write(e_key, baton_functions_election(service,
		baton_functions_number(e, '$.term'), baton_functions_claim('', 0, 0, '', 0, 0),
		baton_functions_field(e, '$.paused'),
		IF(kind = 'transfer', CONCAT('{"for":', baton_functions_text(baton_functions_field(e,
			'$.order.target')), ',"hold":"2000000000","term":"',
			baton_functions_number(e, '$.term'), '"}'), 'null'),
		baton_functions_past(e, CASE kind WHEN '' THEN 'released' WHEN 'transfer'
			THEN 'transferred' ELSE 'ordered' END,
			IF(kind = '', '', baton_functions_field(e, '$.order.note')))));
	CALL baton_functions_drop(lease);
	RETURN TRUE;
END //

-- ---- what programs call ----

-- Returns the term that the candidate leads in, or NULL: another candidate leads. The timeout is
-- the length of the candidate's own lease: the candidate leads for that long, counted from before
-- this call was sent, unless it renews the lease. A leader that calls this renews its lease, in the
-- same term.
DROP FUNCTION IF EXISTS try_become_leader_term //
CREATE FUNCTION try_become_leader_term(p_service_name VARCHAR(255) CHARACTER SET utf8mb4,
	p_candidate_id VARCHAR(255) CHARACTER SET utf8mb4, p_timeout_seconds INT)
RETURNS BIGINT MODIFIES SQL DATA
BEGIN
	DECLARE wait_s BIGINT DEFAULT @@innodb_lock_wait_timeout;
	DECLARE zone VARCHAR(64) CHARACTER SET utf8mb4 DEFAULT @@time_zone;
	DECLARE term BIGINT;
	DECLARE checked VARBINARY(240);
	DECLARE EXIT HANDLER FOR SQLEXCEPTION
	BEGIN
		SET innodb_lock_wait_timeout = wait_s, time_zone = zone;
		RESIGNAL;
	END;
	SET innodb_lock_wait_timeout = 1, time_zone = '+00:00';
	IF p_timeout_seconds IS NULL OR p_timeout_seconds NOT BETWEEN 1 AND 86400 THEN
		SIGNAL SQLSTATE '45000'
			SET MESSAGE_TEXT = 'invalid timeout: expected 1 to 86400 seconds';
	END IF;
	SET checked = baton_functions_key(p_candidate_id);
	SET term = baton_functions_try(p_service_name, p_candidate_id,
		p_timeout_seconds * 1000000000);
	SET innodb_lock_wait_timeout = wait_s, time_zone = zone;
	RETURN term;
END //

DROP FUNCTION IF EXISTS try_become_leader //
CREATE FUNCTION try_become_leader(p_service_name VARCHAR(255) CHARACTER SET utf8mb4,
	p_candidate_id VARCHAR(255) CHARACTER SET utf8mb4, p_timeout_seconds INT)
RETURNS BOOLEAN MODIFIES SQL DATA
	RETURN try_become_leader_term(p_service_name, p_candidate_id, p_timeout_seconds)
		IS NOT NULL //

-- Does what the functions below do, and then restores the settings of the session.
DROP FUNCTION IF EXISTS baton_functions_act //
CREATE FUNCTION baton_functions_act(service VARCHAR(255) CHARACTER SET utf8mb4,
	candidate VARCHAR(255) CHARACTER SET utf8mb4, for_term BIGINT, releases BOOLEAN)
RETURNS BOOLEAN MODIFIES SQL DATA
BEGIN
	DECLARE wait_s BIGINT DEFAULT @@innodb_lock_wait_timeout;
	DECLARE zone VARCHAR(64) CHARACTER SET utf8mb4 DEFAULT @@time_zone;
	DECLARE is_done BOOLEAN;
	DECLARE checked VARBINARY(240);
	DECLARE EXIT HANDLER FOR SQLEXCEPTION
	BEGIN
		SET innodb_lock_wait_timeout = wait_s, time_zone = zone;
		RESIGNAL;
	END;
	SET innodb_lock_wait_timeout = 1, time_zone = '+00:00';
	SET checked = baton_functions_key(candidate);
	IF releases THEN
		SET is_done = baton_functions_release(service, candidate, for_term);
	ELSE
		SET is_done = baton_functions_renew(service, candidate, for_term, 0) IS NOT NULL;
	END IF;
	SET innodb_lock_wait_timeout = wait_s, time_zone = zone;
	RETURN is_done;
END //

-- Renews the lease: it lasts as long again. False: the caller no longer leads and must stop its
-- work.
DROP FUNCTION IF EXISTS leader_heartbeat //
CREATE FUNCTION leader_heartbeat(p_service_name VARCHAR(255) CHARACTER SET utf8mb4,
	p_leader_id VARCHAR(255) CHARACTER SET utf8mb4)
RETURNS BOOLEAN MODIFIES SQL DATA
	RETURN baton_functions_act(p_service_name, p_leader_id, NULL, FALSE) //

-- The same in that term only.
DROP FUNCTION IF EXISTS leader_heartbeat_term //
CREATE FUNCTION leader_heartbeat_term(p_service_name VARCHAR(255) CHARACTER SET utf8mb4,
	p_leader_id VARCHAR(255) CHARACTER SET utf8mb4, p_term BIGINT)
RETURNS BOOLEAN MODIFIES SQL DATA
	RETURN baton_functions_act(p_service_name, p_leader_id, COALESCE(p_term, -1), FALSE) //

-- Gives the leadership back, when the work has ended. False: there was no leadership.
DROP FUNCTION IF EXISTS step_down //
CREATE FUNCTION step_down(p_service_name VARCHAR(255) CHARACTER SET utf8mb4,
	p_leader_id VARCHAR(255) CHARACTER SET utf8mb4)
RETURNS BOOLEAN MODIFIES SQL DATA
	RETURN baton_functions_act(p_service_name, p_leader_id, NULL, TRUE) //

-- The same in that term only.
DROP FUNCTION IF EXISTS step_down_term //
CREATE FUNCTION step_down_term(p_service_name VARCHAR(255) CHARACTER SET utf8mb4,
	p_leader_id VARCHAR(255) CHARACTER SET utf8mb4, p_term BIGINT)
RETURNS BOOLEAN MODIFIES SQL DATA
	RETURN baton_functions_act(p_service_name, p_leader_id, COALESCE(p_term, -1), TRUE) //

-- For an administrator: in a marked election the functions also take over a lease that they did
-- not make, when it is over by the clock of this server. See "Whose clock" in baton-mysql(7).
DROP PROCEDURE IF EXISTS mark_for_functions //
CREATE PROCEDURE mark_for_functions(p_service_name VARCHAR(255) CHARACTER SET utf8mb4,
	p_marked BOOLEAN)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
	DECLARE mark VARBINARY(384) DEFAULT CONCAT(baton_functions_prefix(), 'm/',
		baton_functions_key(p_service_name));
	DELETE FROM baton_record WHERE k = mark;
	IF p_marked THEN
		CALL baton_functions_make(p_service_name, CONCAT(baton_functions_prefix(), 'e/',
			baton_functions_key(p_service_name)));
		INSERT INTO baton_record (k, w, v) VALUES (mark, baton_functions_random(),
			CAST(p_service_name AS BINARY));
	END IF;
END //
DELIMITER ;

-- One row for each service that has a leader. A view can't call functions that its readers may not
-- call, so the prefix is written into the view. Metadata that is JSON is shown as it stands, other
-- metadata as a JSON string. MySQL fails at JSON with more than 100 levels, so a text with more than
-- 100 brackets is a string unseen.
SET @baton_view = REPLACE("CREATE OR REPLACE VIEW leader_election AS
	SELECT JSON_UNQUOTE(JSON_EXTRACT(e.v, '$.name')) AS service_name,
		JSON_UNQUOTE(JSON_EXTRACT(CONVERT(l.v USING utf8mb4), '$.owner')) AS leader_id,
		CAST(JSON_UNQUOTE(JSON_EXTRACT(e.v, '$.term')) AS SIGNED) AS term,
		l.at AS last_heartbeat,
		CASE WHEN CHAR_LENGTH(e.said) = 0 THEN '{}'
			WHEN CHAR_LENGTH(e.said) - CHAR_LENGTH(REPLACE(REPLACE(e.said, '[', ''),
				'{', '')) > 100 THEN JSON_EXTRACT(e.v, '$.metadata')
			WHEN JSON_VALID(e.said) THEN e.said
			ELSE JSON_EXTRACT(e.v, '$.metadata') END AS metadata
	FROM (SELECT r.v, JSON_UNQUOTE(JSON_EXTRACT(r.v, '$.metadata')) AS said
		FROM (SELECT CONVERT(v USING utf8mb4) AS v FROM baton_record
			WHERE k >= 'PREFIXe/' AND k < 'PREFIXe0') r) e
	JOIN baton_record l
		ON l.k = CONCAT('PREFIXl/', JSON_UNQUOTE(JSON_EXTRACT(e.v, '$.lease')))
	WHERE JSON_UNQUOTE(JSON_EXTRACT(CONVERT(l.v USING utf8mb4), '$.dead')) = 'false'",
	'PREFIX', CONVERT(baton_functions_prefix() USING utf8mb4));
PREPARE baton_view FROM @baton_view;
EXECUTE baton_view;
DEALLOCATE PREPARE baton_view;
SET sql_mode = @baton_sql_mode;
-- What a caller's user needs, without any right on a table:
-- GRANT SELECT ON mydb.leader_election TO 'myapp'@'%';
-- GRANT EXECUTE ON FUNCTION mydb.try_become_leader TO 'myapp'@'%';
-- GRANT EXECUTE ON FUNCTION mydb.try_become_leader_term TO 'myapp'@'%';
-- GRANT EXECUTE ON FUNCTION mydb.leader_heartbeat TO 'myapp'@'%';
-- GRANT EXECUTE ON FUNCTION mydb.leader_heartbeat_term TO 'myapp'@'%';
-- GRANT EXECUTE ON FUNCTION mydb.step_down TO 'myapp'@'%';
-- GRANT EXECUTE ON FUNCTION mydb.step_down_term TO 'myapp'@'%';
-- An election in which functions may end the lease of `baton run` by the server's clock:
-- CALL mark_for_functions('report', TRUE);
