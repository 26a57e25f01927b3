# engine - a SQL Server in miniature: exactly the statements of src/store/mssql, with the behaviour
# that Microsoft documents for them. A statement is recognised by its whole text; an unknown one is
# an error, so that a test fails and no guess passes for an answer.
#
# What is committed is written to a file before it is answered: a server that was killed has it.
import asyncio
import bisect
import json
import os
import time

LOCK_TIMEOUT_S = 2.0  # SET LOCK_TIMEOUT of the adapter
SLOW_S = 0.05  # WAITFOR DELAY

BIN2 = " COLLATE Latin1_General_BIN2"
ITEMS = ("OPENJSON(@j) WITH (k varchar(384) '$.k', w varchar(64) '$.w', n varchar(64) '$.n', "
         "v nvarchar(max) '$.v') AS n")
AGE = "DATEDIFF_BIG(microsecond, r.at, SYSUTCDATETIME())"
ELECTIONS = ("FROM dbo.baton_record AS r WITH (READPAST, READCOMMITTEDLOCK) WHERE r.k >= @a AND "
             "r.k < @b")
CHANGED = ELECTIONS + " AND r.rv > CONVERT(binary(8), @seen)"


class Refusal(Exception):
    """An error of the server's: number, level, text."""


class Database:
    """What all sessions share."""

    def __init__(self, path):
        self.rows = {}  # key -> [w, value, at, rv], in the order of row versions
        self.keys = []  # in their own order
        self.has_tables = False
        self.layout = 0
        self.last_rv = 0x7d0
        self.rights = {"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE"}
        self.is_read_only = False
        self.facts = {"level": "150", "durability": "DISABLED", "group": "alone",
                      "snapshot": "0"}  # READ_COMMITTED_SNAPSHOT
        self.held = {}  # key -> (row version, event) of a transaction that is open
        self.failing = []  # numbers of errors that the next writes get
        self.applocks = {}  # resource -> session
        self.freed = asyncio.Event()
        self.changed = asyncio.Event()
        self.counts = {}
        self.path = path
        if os.path.exists(path):
            self.replay()
        self.file = open(path, "ab", buffering=0)  # pylint: disable=consider-using-with

    def replay(self):
        with open(self.path, encoding="utf-8") as file:
            for line in file:
                if not line.endswith("\n"):
                    break  # it was never answered
                change = json.loads(line)
                self.has_tables = self.has_tables or "made" in change
                self.layout = change.get("layout", self.layout)
                if change.get("forget"):
                    self.drop(change["forget"])
                for key, row in change.get("rows", {}).items():
                    self.put(key, row)
                    if row is not None:
                        self.last_rv = max(self.last_rv, row[3])

    def put(self, key, row):
        """None: it goes."""
        was_there = self.rows.pop(key, None) is not None
        if row is not None:
            self.rows[key] = row
        if row is not None and not was_there:
            bisect.insort(self.keys, key)
        elif row is None and was_there:
            del self.keys[bisect.bisect_left(self.keys, key)]

    def between(self, a, b):
        """The keys from a on, below b."""
        return self.keys[bisect.bisect_left(self.keys, a):bisect.bisect_left(self.keys, b)]

    def changed_since(self, seen):
        """The newest first."""
        for key in reversed(self.rows):
            if self.rows[key][3] <= seen:
                return
            yield key

    def note(self, **change):
        self.file.write((json.dumps(change) + "\n").encode())

    def next_rv(self):
        self.last_rv += 1
        return self.last_rv

    def min_active(self):
        return min([rv for rv, _event in self.held.values()] + [self.last_rv + 1])

    def write(self, changes):
        """One statement: key -> (w, value), or None."""
        now = time.time()
        rows = {key: None if new is None else [*new, now, self.next_rv()]
                for key, new in changes.items()}
        self.note(rows=rows)
        for key, row in rows.items():
            self.put(key, row)
        self.wake()

    def count(self, name):
        self.counts[name] = self.counts.get(name, 0) + 1

    def wake(self):
        self.changed.set()
        self.changed = asyncio.Event()

    def drop(self, what):
        """One table (baton_record), or else both."""
        self.rows, self.keys, self.has_tables = {}, [], False
        if what != "baton_record":
            self.layout = 0

    def forget(self, what="tables"):
        self.note(forget=what)
        self.drop(what)
        self.wake()

    def free_session(self, session):
        """Its end frees its locks."""
        for name in [name for name, owner in self.applocks.items() if owner is session]:
            del self.applocks[name]
        self.free()

    def free(self):
        self.freed.set()
        self.freed = asyncio.Event()


class Session:
    """One connection: what statements do."""

    def __init__(self, database):
        self.db = database

    # ---- what each statement may run into ----

    def need(self, *rights):
        if not self.db.has_tables:
            raise Refusal(208, 16, "Invalid object name 'dbo.baton_record'.")
        for right in rights:
            if right not in self.db.rights:
                raise Refusal(229, 14, f"The {right} permission was denied on the object "
                              "'baton_record', database 'baton', schema 'dbo'.")

    async def write(self, right, keys):
        self.need(right)
        if self.db.is_read_only:
            raise Refusal(3906, 16, "Failed to update database \"baton\" because the database is "
                          "read-only.")
        if self.db.failing:
            number = self.db.failing.pop(0)
            texts = {1205: (13, "Transaction (Process ID 51) was deadlocked on lock resources with "
                            "another process and has been chosen as the deadlock victim."),
                     1222: (16, "Lock request time out period exceeded."),
                     2627: (14, "Violation of PRIMARY KEY constraint. Cannot insert duplicate "
                            "key in object 'dbo.baton_record'."),
                     40197: (17, "The service has encountered an error processing your request. "
                             "Please try again. Error code 40143.")}
            raise Refusal(number, *texts[number])
        until = time.monotonic() + LOCK_TIMEOUT_S
        while any(key in self.db.held for key in keys):
            event = next(self.db.held[key][1] for key in keys if key in self.db.held)
            try:
                await asyncio.wait_for(event.wait(), until - time.monotonic())
            except asyncio.TimeoutError:
                raise Refusal(1222, 16, "Lock request time out period exceeded.") from None

    @staticmethod
    def row(key, row, with_value=True):
        age = max(0, int((time.time() - row[2]) * 1e6))
        return [key, row[0], row[1] if with_value else None, age]

    # ---- the statements ----

    async def set_up(self):
        return None

    async def layout(self):
        if not self.db.has_tables:
            raise Refusal(208, 16, "Invalid object name 'dbo.baton_record'.")
        if "SELECT" not in self.db.rights:
            raise Refusal(229, 14, "The SELECT permission was denied on the object "
                          "'baton_version', database 'baton', schema 'dbo'.")
        return "i", [[self.db.layout or None]]

    def may_create(self, is_there):
        if not is_there and "CREATE" not in self.db.rights:
            raise Refusal(262, 14, "CREATE TABLE permission denied in database 'baton'.")

    async def make(self):
        self.may_create(self.db.has_tables)
        if not self.db.has_tables:
            self.db.has_tables = True
            self.db.note(made=True)

    async def make_version(self):
        self.may_create(self.db.layout)

    async def make_layout(self):
        if not self.db.layout:
            self.db.layout = 1
            self.db.note(layout=1)
        return 1

    async def get(self, j):
        self.need("SELECT")
        rows = self.db.rows
        return "ssvi", [self.row(key, rows[key]) for key in json.loads(j) if key in rows]

    async def list(self, a, b, v):
        self.need("SELECT")
        return "ssvi", [self.row(key, self.db.rows[key], v == 1) for key in self.db.between(a, b)]

    async def update(self, k, n, v, w):
        await self.write("UPDATE", [k])
        if k not in self.db.rows or self.db.rows[k][0] != w:
            return 0
        self.db.write({k: (n, v)})
        return 1

    async def insert(self, k, n, v):
        await self.write("INSERT", [k])
        if k in self.db.rows:
            raise Refusal(2627, 14, "Violation of PRIMARY KEY constraint. Cannot insert duplicate "
                          f"key in object 'dbo.baton_record'. The duplicate key value is ({k}).")
        self.db.write({k: (n, v)})
        return 1

    async def update_many(self, j):
        items = {item["k"]: item for item in json.loads(j)}
        await self.write("UPDATE", items)
        fit = [k for k in items if k in self.db.rows and self.db.rows[k][0] == items[k]["w"]]
        self.db.write({k: (items[k]["n"], items[k]["v"]) for k in fit})
        return "s", [[k] for k in fit]

    async def insert_many(self, j):
        items = {item["k"]: item for item in json.loads(j)}
        await self.write("INSERT", items)
        fit = [k for k in items if k not in self.db.rows]
        self.db.write({k: (items[k]["n"], items[k]["v"]) for k in fit})
        return "s", [[k] for k in fit]

    async def drop(self, j):
        items = {item["k"]: item for item in json.loads(j)}
        await self.write("DELETE", items)
        fit = [k for k in items if k in self.db.rows and self.db.rows[k][0] == items[k]["w"]]
        self.db.write({k: None for k in fit})
        return "s", [[k] for k in fit]

    async def watch(self, a, b, seen, t):
        self.need("SELECT")

        def changed():
            return [[key, self.db.rows[key][3], 0] for key in self.db.changed_since(seen)
                    if a <= key < b and key not in self.db.held]
        until = time.monotonic() + t * SLOW_S
        while not changed() and (left := until - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(self.db.changed.wait(), left)
                # WAITFOR DELAY: it looks half a tick later, as it would on average
                await asyncio.wait_for(asyncio.Event().wait(), SLOW_S / 2)
            except asyncio.TimeoutError:
                pass
        n = sum(key not in self.db.held for key in self.db.between(a, b))
        return "sii", [[None, self.db.min_active() - 1, n], *changed()]

    async def doctor(self):
        facts = self.db.facts
        updates = "READ_ONLY" if self.db.is_read_only else "READ_WRITE"
        return "sssssss", [["15.0.0.0", "a protocol server for tests", facts["level"], updates,
                            facts["durability"], facts["group"], facts["snapshot"]]]

    async def write_nothing(self):
        for right in ("UPDATE", "DELETE", "INSERT"):
            await self.write(right, [])

    async def applock_take(self, res, ms):
        owner = self.db.applocks.get(res)
        if owner is self:
            return "i", [[0]]
        if not res or len(res) > 255:
            return "i", [[-999]]
        if self.db.failing and self.db.failing[0] < 0:
            return "i", [[self.db.failing.pop(0)]]
        until = time.monotonic() + ms / 1000
        waited = 0
        while res in self.db.applocks:
            try:
                await asyncio.wait_for(self.db.freed.wait(), max(0, until - time.monotonic()))
                waited = 1
            except asyncio.TimeoutError:
                return "i", [[-1]]
        self.db.applocks[res] = self
        return "i", [[waited]]

    async def applock_modes(self, j):
        return "ss", [[name, "Exclusive" if self.db.applocks.get(name) is self else "NoLock"]
                      for name in json.loads(j)]

    async def applock_drop(self, res):
        if self.db.applocks.get(res) is not self:
            return "i", [[-999]]
        del self.db.applocks[res]
        self.db.free()
        return "i", [[0]]


STATEMENTS = {
    "SET NOCOUNT OFF; SET XACT_ABORT OFF; SET IMPLICIT_TRANSACTIONS OFF; SET ANSI_NULLS, "
    "ANSI_PADDING, ANSI_WARNINGS, ARITHABORT, CONCAT_NULL_YIELDS_NULL, QUOTED_IDENTIFIER ON; SET "
    "TEXTSIZE 2147483647; SET LOCK_TIMEOUT 2000; SET TRANSACTION ISOLATION LEVEL READ COMMITTED":
        "set_up",
    "SELECT MAX(version) FROM dbo.baton_version WHERE NOT EXISTS (SELECT 1 FROM dbo.baton_record "
    "WHERE 1 = 0)": "layout",
    "IF OBJECT_ID(N'dbo.baton_record', N'U') IS NULL CREATE TABLE dbo.baton_record ( k "
    "varchar(384) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY, w varchar(64) COLLATE "
    "Latin1_General_BIN2 NOT NULL, value nvarchar(max) NOT NULL, at datetime2(6) NOT NULL DEFAULT "
    "SYSUTCDATETIME(), rv rowversion NOT NULL, INDEX baton_record_rv (rv) )": "make",
    "IF OBJECT_ID(N'dbo.baton_version', N'U') IS NULL CREATE TABLE dbo.baton_version ( version "
    "int NOT NULL PRIMARY KEY )": "make_version",
    "IF NOT EXISTS (SELECT 1 FROM dbo.baton_version) INSERT INTO dbo.baton_version VALUES (1)":
        "make_layout",
    f"SELECT r.k, r.w, r.value, {AGE} FROM OPENJSON(@j) WITH (k varchar(384) '$') AS n JOIN "
    f"dbo.baton_record AS r ON r.k = n.k{BIN2}": "get",
    f"SELECT r.k, r.w, CASE WHEN @v = 1 THEN r.value END, {AGE} FROM dbo.baton_record AS r WHERE "
    "r.k >= @a AND r.k < @b": "list",
    "UPDATE dbo.baton_record SET w = @n, value = @v, at = SYSUTCDATETIME() WHERE k = @k AND w = @w":
        "update",
    "INSERT INTO dbo.baton_record (k, w, value) VALUES (@k, @n, @v)": "insert",
    f"UPDATE r SET w = n.n, value = n.v, at = SYSUTCDATETIME() OUTPUT inserted.k FROM {ITEMS} "
    f"JOIN dbo.baton_record AS r ON r.k = n.k{BIN2} AND r.w = n.w{BIN2}": "update_many",
    f"INSERT INTO dbo.baton_record (k, w, value) OUTPUT inserted.k SELECT n.k, n.n, n.v FROM "
    f"{ITEMS} WHERE NOT EXISTS (SELECT 1 FROM dbo.baton_record AS r WHERE r.k = n.k{BIN2})":
        "insert_many",
    f"DELETE r OUTPUT deleted.k FROM {ITEMS} JOIN dbo.baton_record AS r ON r.k = n.k{BIN2} AND "
    f"r.w = n.w{BIN2}": "drop",
    f"DECLARE @i int = 0; WHILE @i < @t AND NOT EXISTS (SELECT 1 {CHANGED}) BEGIN WAITFOR DELAY "
    "'00:00:00.050'; SET @i += 1; END; DECLARE @next bigint = CONVERT(bigint, "
    f"MIN_ACTIVE_ROWVERSION()) - 1; SELECT NULL, @next, COUNT_BIG(*) {ELECTIONS} UNION ALL SELECT "
    f"r.k, CONVERT(bigint, r.rv), 0 {CHANGED}": "watch",
    "SELECT CONVERT(varchar(128), SERVERPROPERTY('ProductVersion')), CONVERT(varchar(128), "
    "SERVERPROPERTY('Edition')), CONVERT(varchar(128), d.compatibility_level), "
    "CONVERT(varchar(128), DATABASEPROPERTYEX(d.name, 'Updateability')), CONVERT(varchar(128), "
    "d.delayed_durability_desc), CASE WHEN d.replica_id IS NULL THEN 'alone' ELSE 'group' END, "
    "CONVERT(varchar(128), d.is_read_committed_snapshot_on) FROM sys.databases AS d WHERE "
    "d.database_id = DB_ID()": "doctor",
    "UPDATE dbo.baton_record SET w = w WHERE 1 = 0; DELETE FROM dbo.baton_record WHERE 1 = 0; "
    "INSERT INTO dbo.baton_record (k, w, value) SELECT k, w, value FROM dbo.baton_record WHERE "
    "1 = 0": "write_nothing",
    "DECLARE @r int = 0; IF APPLOCK_MODE('public', @res, 'Session') <> 'Exclusive' EXEC @r = "
    "sys.sp_getapplock @Resource = @res, @LockMode = 'Exclusive', @LockOwner = 'Session', "
    "@LockTimeout = @ms; SELECT @r": "applock_take",
    "SELECT n.k, APPLOCK_MODE('public', n.k, 'Session') FROM OPENJSON(@j) WITH (k nvarchar(255) "
    "'$') AS n": "applock_modes",
    "DECLARE @r int; EXEC @r = sys.sp_releaseapplock @Resource = @res, @LockOwner = 'Session'; "
    "SELECT @r": "applock_drop",
}


async def carry_out(session, text, parameters):
    """Rows as (kinds, lines), a number of changed rows, or None."""
    name = STATEMENTS.get(" ".join(text.split()))
    if name is None:
        raise Refusal(102, 15, f"Incorrect syntax: this server does not know: {text[:200]}")
    session.db.count(name)
    return await getattr(session, name)(**parameters)
