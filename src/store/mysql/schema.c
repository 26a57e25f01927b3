/*
 * schema.c: the tables, and the guard for a resource that checks terms.
 *
 * The tables use InnoDB, because a table without transactions has no compare-and-set. Keys are
 * VARBINARY, because collations take different names for one (rule 5).
 */
#include <stddef.h>

#include "store/mysql/mysql.h"

#define RECORD_TABLE                                               \
	"CREATE TABLE IF NOT EXISTS baton_record (\n"              \
	"	k VARBINARY(384) NOT NULL PRIMARY KEY,\n"                \
	"	w VARBINARY(64) NOT NULL,\n"                             \
	"	v MEDIUMBLOB NOT NULL,\n"                                \
	"	at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)\n" \
	"		ON UPDATE CURRENT_TIMESTAMP(6)\n"                       \
	") ENGINE=InnoDB ROW_FORMAT=DYNAMIC"
#define VERSION_TABLE                                  \
	"CREATE TABLE IF NOT EXISTS baton_version (\n" \
	"	version INT NOT NULL PRIMARY KEY\n"          \
	") ENGINE=InnoDB"
#define VERSION_ROW "INSERT IGNORE INTO baton_version VALUES (1)"

const char *const mysql_schema_statements[] = {RECORD_TABLE, VERSION_TABLE, VERSION_ROW, NULL};

const char mysql_schema_script[] =
	"-- The tables of baton, in the database that the URL names. A user that may create\n"
	"-- tables needs no script: baton makes them when it first comes.\n" RECORD_TABLE
	";\n" VERSION_TABLE ";\n" VERSION_ROW ";\n"
	"-- What the user of the candidates needs, and no more:\n"
	"-- GRANT SELECT, INSERT, UPDATE, DELETE ON mydb.baton_record TO 'myapp'@'%';\n"
	"-- GRANT SELECT ON mydb.baton_version TO 'myapp'@'%';\n";

/* A check counts because of the lock that it leaves behind: a writer that was let through keeps the
 * row locked in share mode until its transaction ends, and a writer with a higher term has to wait
 * for that. */
const char mysql_fence_script[] =
	"-- A guard against leaders of the past: see \"Fencing\" in baton-mysql(7).\n"
	"CREATE TABLE IF NOT EXISTS baton_fence (\n"
	"	resource VARBINARY(255) NOT NULL PRIMARY KEY,\n"
	"	term BIGINT NOT NULL\n"
	") ENGINE=InnoDB;\n"
	"DROP PROCEDURE IF EXISTS baton_fence;\n"
	"DELIMITER //\n"
	"-- Raises the fence to this term, or refuses a term that is over. Call it first in each\n"
	"-- transaction that writes to the resource.\n"
	"CREATE PROCEDURE baton_fence(IN what VARBINARY(255), IN with_term BIGINT)\n"
	"SQL SECURITY DEFINER\n"
	"BEGIN\n"
	"	DECLARE highest BIGINT DEFAULT NULL;\n"
	"	IF what IS NULL OR with_term IS NULL OR with_term < 1 THEN\n"
	"		SIGNAL SQLSTATE '45000'\n"
	"			SET MESSAGE_TEXT = 'only a leader may write: it has a term';\n"
	"	END IF;\n"
	"	-- A look without a lock first: writers of one term don't wait for each other.\n"
	"	SELECT term INTO highest FROM baton_fence WHERE resource = what;\n"
	"	IF highest IS NULL OR highest < with_term THEN\n"
	"		INSERT INTO baton_fence VALUES (what, with_term)\n"
	"			ON DUPLICATE KEY UPDATE term = GREATEST(term, VALUES(term));\n"
	"	END IF;\n"
	"	SELECT term INTO highest FROM baton_fence\n"
	"		WHERE resource = what LOCK IN SHARE MODE;\n"
	"	IF highest > with_term THEN\n"
	"		SIGNAL SQLSTATE '45000'\n"
	"			SET MESSAGE_TEXT = 'this term is over, a newer one has written';\n"
	"	END IF;\n"
	"END //\n"
	"DELIMITER ;\n"
	"-- What a writer's user needs:\n"
	"-- GRANT EXECUTE ON PROCEDURE mydb.baton_fence TO 'myapp'@'%';\n"
	"-- and in each transaction: CALL baton_fence('report', 42);\n";
