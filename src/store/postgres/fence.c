/*
 * fence.c: the guard on the resource's side (S4), as SQL for the database that leaders write to.
 * That need not be the database that elects them.
 *
 * A check is safe only because it leaves a lock behind: a writer that was told "yes" keeps the
 * fence's row locked FOR SHARE until its transaction ends, and a higher term has to wait for that.
 * So no write of an older term can be committed after the first write of a newer term. Writers of
 * one term don't wait for each other.
 *
 * The function runs with its owner's rights, so that a leader can raise the fence, and never lower
 * it.
 */
#include "store/postgres/postgres.h"

const char pg_fence_script[] =
	"-- A guard against leaders of the past: see \"Fencing\" in baton-postgres(7).\n"
	"BEGIN;\n"
	"SET LOCAL client_min_messages = warning;\n"
	"CREATE SCHEMA IF NOT EXISTS baton;\n"
	"CREATE TABLE IF NOT EXISTS baton.fence (\n"
	"	resource text COLLATE \"C\" PRIMARY KEY,\n"
	"	term bigint NOT NULL CHECK (term > 0)\n"
	");\n"
	"-- Raises the fence to this term, or refuses a term that is over. Call it first in each\n"
	"-- transaction that writes to the resource.\n"
	"CREATE OR REPLACE FUNCTION baton.fence(resource text, term bigint) RETURNS bigint\n"
	"LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$\n"
	"DECLARE\n"
	"	highest bigint;\n"
	"BEGIN\n"
	"	IF fence.term IS NULL OR fence.term < 1 OR fence.resource IS NULL THEN\n"
	"		RAISE EXCEPTION 'only a leader may write to %: it has a term', resource\n"
	"			USING ERRCODE = 'BATON';\n"
	"	END IF;\n"
	"	LOOP\n"
	"		UPDATE baton.fence f SET term = fence.term\n"
	"			WHERE f.resource = fence.resource AND f.term < fence.term;\n"
	"		SELECT f.term INTO highest FROM baton.fence f\n"
	"			WHERE f.resource = fence.resource FOR SHARE;\n"
	"		EXIT WHEN highest >= fence.term;\n"
	"		INSERT INTO baton.fence VALUES (fence.resource, fence.term)\n"
	"			ON CONFLICT DO NOTHING;\n"
	"	END LOOP;\n"
	"	IF highest > fence.term THEN\n"
	"		RAISE EXCEPTION 'term % is over: % was written to in term %',\n"
	"			fence.term, resource, highest USING ERRCODE = 'BATON';\n"
	"	END IF;\n"
	"	RETURN highest;\n"
	"END $$;\n"
	"-- The same as a trigger, for writers that can't be changed: the term is the setting\n"
	"-- baton.term of their session or transaction, the resource the trigger's argument.\n"
	"CREATE OR REPLACE FUNCTION baton.fenced() RETURNS trigger\n"
	"LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$\n"
	"BEGIN\n"
	"	PERFORM baton.fence(TG_ARGV[0],\n"
	"		nullif(current_setting('baton.term', true), '')::bigint);\n"
	"	RETURN NULL; -- no process asks for it of a statement's trigger\n"
	"END $$;\n"
	"REVOKE ALL ON FUNCTION baton.fence(text, bigint), baton.fenced() FROM PUBLIC;\n"
	"COMMIT;\n"
	"-- What a writer's role needs, and a table that is guarded:\n"
	"-- GRANT USAGE ON SCHEMA baton TO myapp;\n"
	"-- GRANT EXECUTE ON FUNCTION baton.fence(text, bigint) TO myapp;\n"
	"-- CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON report\n"
	"--	FOR EACH STATEMENT EXECUTE FUNCTION baton.fenced('report');\n";
