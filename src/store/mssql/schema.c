/*
 * schema.c: every statement that is ever sent, the tables, and the guard for a resource that checks
 * terms.
 *
 * All statements are constant. Those with parameters are sent with sp_executesql. A column of
 * OPENJSON has the collation of the database, so each comparison with one of our columns names the
 * collation that counts.
 */
#include <stddef.h>

#include "store/mssql/mssql.h"

#define BIN2 " COLLATE Latin1_General_BIN2"
#define AGE "DATEDIFF_BIG(microsecond, r.at, SYSUTCDATETIME())"
#define ITEMS                                                            \
	"OPENJSON(@j) WITH (k varchar(384) '$.k', w varchar(64) '$.w', " \
	"n varchar(64) '$.n', v nvarchar(max) '$.v') AS n"
/* READPAST skips rows that a transaction has locked: they aren't committed yet. The watch tells
 * them later, because the row versions of a transaction that is open don't count as seen. With
 * READ_COMMITTED_SNAPSHOT on, as on Azure SQL, READPAST needs READCOMMITTEDLOCK beside it. */
#define ELECTIONS                                                        \
	"FROM dbo.baton_record AS r WITH (READPAST, READCOMMITTEDLOCK) " \
	"WHERE r.k >= @a AND r.k < @b"
#define CHANGED ELECTIONS " AND r.rv > CONVERT(binary(8), @seen)"

/* Sent as a batch: within sp_executesql these settings would end with the statement. */
const char mssql_sql_set_up[] =
	"SET NOCOUNT OFF; SET XACT_ABORT OFF; SET IMPLICIT_TRANSACTIONS OFF; "
	"SET ANSI_NULLS, ANSI_PADDING, ANSI_WARNINGS, ARITHABORT, CONCAT_NULL_YIELDS_NULL, "
	"QUOTED_IDENTIFIER ON; SET TEXTSIZE 2147483647; SET LOCK_TIMEOUT 2000; "
	"SET TRANSACTION ISOLATION LEVEL READ COMMITTED";

/* Also finds out whether the other table is there. */
const char mssql_sql_layout[] = "SELECT MAX(version) FROM dbo.baton_version "
				"WHERE NOT EXISTS (SELECT 1 FROM dbo.baton_record WHERE 1 = 0)";

const char mssql_sql_get[] =
	"SELECT r.k, r.w, r.value, " AGE " FROM OPENJSON(@j) WITH (k varchar(384) '$') AS n "
	"JOIN dbo.baton_record AS r ON r.k = n.k" BIN2;

const char mssql_sql_list[] = "SELECT r.k, r.w, CASE WHEN @v = 1 THEN r.value END, " AGE
			      " FROM dbo.baton_record AS r WHERE r.k >= @a AND r.k < @b";

const char mssql_sql_update[] = "UPDATE dbo.baton_record SET w = @n, value = @v, "
				"at = SYSUTCDATETIME() WHERE k = @k AND w = @w";

const char mssql_sql_insert[] = "INSERT INTO dbo.baton_record (k, w, value) VALUES (@k, @n, @v)";

const char mssql_sql_update_many[] =
	"UPDATE r SET w = n.n, value = n.v, at = SYSUTCDATETIME() OUTPUT inserted.k FROM " ITEMS
	" JOIN dbo.baton_record AS r ON r.k = n.k" BIN2 " AND r.w = n.w" BIN2;

const char mssql_sql_insert_many[] =
	"INSERT INTO dbo.baton_record (k, w, value) OUTPUT inserted.k "
	"SELECT n.k, n.n, n.v FROM " ITEMS
	" WHERE NOT EXISTS (SELECT 1 FROM dbo.baton_record AS r WHERE r.k = n.k" BIN2 ")";

const char mssql_sql_drop[] = "DELETE r OUTPUT deleted.k FROM " ITEMS
			      " JOIN dbo.baton_record AS r ON r.k = n.k" BIN2 " AND r.w = n.w" BIN2;

const char mssql_sql_watch[] =
	"DECLARE @i int = 0; WHILE @i < @t AND NOT EXISTS (SELECT 1 " CHANGED
	") BEGIN WAITFOR DELAY '00:00:00.050'; SET @i += 1; END; "
	"DECLARE @next bigint = CONVERT(bigint, MIN_ACTIVE_ROWVERSION()) - 1; "
	"SELECT NULL, @next, COUNT_BIG(*) " ELECTIONS
	" UNION ALL SELECT r.k, CONVERT(bigint, r.rv), 0 " CHANGED;

/* The server counts how often a session has taken a lock, so the lock is not taken twice. */
const char mssql_sql_lock_take[] =
	"DECLARE @r int = 0; IF APPLOCK_MODE('public', @res, 'Session') <> 'Exclusive' "
	"EXEC @r = sys.sp_getapplock @Resource = @res, @LockMode = 'Exclusive', "
	"@LockOwner = 'Session', @LockTimeout = @ms; SELECT @r";

const char mssql_sql_lock_modes[] = "SELECT n.k, APPLOCK_MODE('public', n.k, 'Session') "
				    "FROM OPENJSON(@j) WITH (k nvarchar(255) '$') AS n";

const char mssql_sql_lock_drop[] = "DECLARE @r int; EXEC @r = sys.sp_releaseapplock "
				   "@Resource = @res, @LockOwner = 'Session'; SELECT @r";

const char mssql_sql_doctor[] =
	"SELECT CONVERT(varchar(128), SERVERPROPERTY('ProductVersion')), "
	"CONVERT(varchar(128), SERVERPROPERTY('Edition')), "
	"CONVERT(varchar(128), d.compatibility_level), "
	"CONVERT(varchar(128), DATABASEPROPERTYEX(d.name, 'Updateability')), "
	"CONVERT(varchar(128), d.delayed_durability_desc), "
	"CASE WHEN d.replica_id IS NULL THEN 'alone' ELSE 'group' END, "
	"CONVERT(varchar(128), d.is_read_committed_snapshot_on) "
	"FROM sys.databases AS d WHERE d.database_id = DB_ID()";

/* They touch no row, and the server checks the rights all the same. */
const char mssql_sql_rights[] =
	"UPDATE dbo.baton_record SET w = w WHERE 1 = 0; DELETE FROM dbo.baton_record WHERE 1 = 0; "
	"INSERT INTO dbo.baton_record (k, w, value) "
	"SELECT k, w, value FROM dbo.baton_record WHERE 1 = 0";

#define RECORD_TABLE                                                          \
	"IF OBJECT_ID(N'dbo.baton_record', N'U') IS NULL\n"                   \
	"CREATE TABLE dbo.baton_record (\n"                                   \
	"	k varchar(384) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,\n" \
	"	w varchar(64) COLLATE Latin1_General_BIN2 NOT NULL,\n"              \
	"	value nvarchar(max) NOT NULL,\n"                                    \
	"	at datetime2(6) NOT NULL DEFAULT SYSUTCDATETIME(),\n"               \
	"	rv rowversion NOT NULL,\n"                                          \
	"	INDEX baton_record_rv (rv)\n"                                       \
	")"
#define VERSION_TABLE                                        \
	"IF OBJECT_ID(N'dbo.baton_version', N'U') IS NULL\n" \
	"CREATE TABLE dbo.baton_version (\n"                 \
	"	version int NOT NULL PRIMARY KEY\n"                \
	")"
#define VERSION_ROW                                         \
	"IF NOT EXISTS (SELECT 1 FROM dbo.baton_version)\n" \
	"INSERT INTO dbo.baton_version VALUES (1)"

const char *const mssql_schema_statements[] = {RECORD_TABLE, VERSION_TABLE, VERSION_ROW, NULL};

const char mssql_schema_script[] =
	"-- The tables of baton, in the database that the URL names. A user that may create\n"
	"-- tables in dbo needs no script: baton makes them when it first comes.\n" RECORD_TABLE
	";\nGO\n" VERSION_TABLE ";\nGO\n" VERSION_ROW ";\nGO\n"
	"-- What the user of the candidates needs, and no more:\n"
	"-- GRANT SELECT, INSERT, UPDATE, DELETE ON dbo.baton_record TO myapp;\n"
	"-- GRANT SELECT ON dbo.baton_version TO myapp;\n";

/* A check counts because of the lock that it leaves behind: a writer that was let through keeps the
 * row locked until its transaction ends, and a writer with a higher term has to wait for that. */
const char mssql_fence_script[] =
	"-- A guard against leaders of the past: see \"Fencing\" in baton-mssql(7).\n"
	"IF OBJECT_ID(N'dbo.baton_fences', N'U') IS NULL\n"
	"CREATE TABLE dbo.baton_fences (\n"
	"	resource nvarchar(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,\n"
	"	term bigint NOT NULL\n"
	");\nGO\n"
	"-- Raises the fence to this term, or refuses a term that is over. Call it first in each\n"
	"-- transaction that writes to the resource. CREATE OR ALTER needs SQL Server 2016 SP1.\n"
	"CREATE OR ALTER PROCEDURE dbo.baton_fence @resource nvarchar(255), @term bigint\n"
	"AS BEGIN\n"
	"	SET NOCOUNT ON;\n"
	"	IF @@TRANCOUNT = 0\n"
	"		THROW 50001, 'call baton_fence in the transaction that it guards', 1;\n"
	"	IF @resource IS NULL OR @term IS NULL OR @term < 1\n"
	"		THROW 50002, 'only a leader may write: it has a term', 1;\n"
	"	DECLARE @highest bigint;\n"
	"	-- First a look without a lasting lock: writers of one term don't wait.\n"
	"	SELECT @highest = term FROM dbo.baton_fences WHERE resource = @resource;\n"
	"	IF @highest IS NULL\n"
	"		INSERT INTO dbo.baton_fences SELECT @resource, @term WHERE NOT EXISTS (\n"
	"			SELECT 1 FROM dbo.baton_fences WITH (UPDLOCK, HOLDLOCK)\n"
	"			WHERE resource = @resource);\n"
	"	ELSE IF @highest < @term\n"
	"		UPDATE dbo.baton_fences SET term = @term\n"
	"			WHERE resource = @resource AND term < @term;\n"
	"	SELECT @highest = term FROM dbo.baton_fences WITH (REPEATABLEREAD, ROWLOCK)\n"
	"		WHERE resource = @resource;\n"
	"	IF @highest > @term\n"
	"		THROW 50003, 'this term is over, a newer one has written', 1;\n"
	"	IF @highest < @term -- another one made the row meanwhile\n"
	"		UPDATE dbo.baton_fences SET term = @term\n"
	"			WHERE resource = @resource AND term < @term;\n"
	"END;\nGO\n"
	"-- What a writer's user needs:\n"
	"-- GRANT EXECUTE ON dbo.baton_fence TO myapp;\n"
	"-- and in each transaction: EXEC dbo.baton_fence N'report', 42;\n";
