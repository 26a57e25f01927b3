# functions.py - cases of tests/postgres/run about the SQL functions (baton schema postgres
# --functions): programs that call SQL, alone and beside `baton run`, in open transactions, with few
# rights, and under the overlap oracle of rig.Judged.
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import rig
from rig import LIMIT_S, Missing, stays, wait_for
from world import asks, expect, follows, guard, make_tables, runs

def install(w):
    """Tables, functions, and a role that may call them and nothing else, as the script says."""
    make_tables(w)
    script = w.baton("schema", "postgres", "--functions").stdout
    for _ in range(2): # a second time changes nothing
        runs(w, script)
    grants = re.search(r"(?ms)^-- What a caller's role needs.*?\n(.*?)^-- An election", script)[1]
    runs(w, "CREATE ROLE app LOGIN;\n" + re.sub("(?m)^--", "", grants).replace("myapp", "app"))


class Caller:
    """A session that is asked one thing after the other."""

    def __init__(self, w, user="app"):
        self.p = subprocess.Popen(w.psql_command(user), env=w.env, text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        w.started.append(self.p)

    def asks(self, sql):
        """What came of it: lines."""
        self.p.stdin.write(sql + ";\n\\echo .\n")
        self.p.stdin.flush()
        lines = []
        for line in self.p.stdout:
            if line == ".\n":
                return "\n".join(lines)
            lines.append(line.rstrip("\n"))
        return "\n".join([*lines, "the session has ended"])

    def ends(self):
        self.p.stdin.close()
        self.p.wait(LIMIT_S)


def told(w, sql, words):
    got = asks(w, "SELECT " + sql)
    if got != words:
        raise AssertionError(f"{sql}: {got!r}, not {words!r}")


def case_functions(w):
    """As the functions of old, by their names, parameters and defaults; terms grow, also over a
    step-down."""
    install(w)
    told(w, "try_become_leader('s', 'a')", "t")
    told(w, "try_become_leader('s', 'b')", "f")
    told(w, "try_become_leader(p_service_name => 's', p_candidate_id => 'a', "
         "p_timeout_seconds => 30)", "t")
    told(w, "leader_heartbeat(p_service_name => 's', p_leader_id => 'a')", "t")
    told(w, "leader_heartbeat('s', 'b')", "f")
    told(w, "leader_id, metadata, extract(epoch FROM clock_timestamp() - last_heartbeat) < 9 "
         "FROM leader_election WHERE service_name = 's'", "a|{}|t")
    terms = [int(asks(w, "SELECT try_become_leader_term('s', 'a')"))]
    told(w, f"try_become_leader_term('s', 'a') = {terms[0]}", "t") # no new term by asking again
    told(w, "step_down('s', 'b')", "f") # a stranger's
    told(w, f"step_down('s', 'a', {terms[0] + 1})", "f") # another term's
    told(w, f"leader_heartbeat('s', 'a', {terms[0] - 1})", "f")
    told(w, "leader_heartbeat('s', 'a', NULL)", "f")
    for _ in range(3):
        told(w, "step_down(p_service_name => 's', p_leader_id => 'a')", "t")
        told(w, "step_down('s', 'a')", "f")
        told(w, "leader_heartbeat('s', 'a')", "f")
        told(w, "count(*) FROM leader_election", "0")
        terms.append(int(asks(w, "SELECT try_become_leader_term('s', 'a', 20)")))
        told(w, f"leader_heartbeat('s', 'a', {terms[-1]})", "t")
        told(w, f"term = {terms[-1]} FROM leader_election", "t")
    if terms != sorted(set(terms)):
        raise AssertionError(f"terms {terms}")
    # baton sees the same leader, and all that led before.
    status = json.loads(w.baton("status", "--json", "--store=" + w.url, "s").stdout)
    if (status["leader"], status["term"], status["functions"]) != ("a", terms[-1], False):
        raise AssertionError(status)
    done = w.baton("history", "--check", "--json", "--store=" + w.url, "s")
    if done.returncode != 0 or len(json.loads(done.stdout)) != 4:
        raise AssertionError(done)


def case_functions_ended(w):
    """Whoever never renews loses at the end of its own lease, whatever the others' leases are; a
    heartbeat after that is refused, also when nobody has come."""
    install(w)
    is_over = lambda: w.psql("SELECT expires <= clock_timestamp() FROM baton.lease") == "t"
    first = int(asks(w, "SELECT try_become_leader_term('s', 'a', 12)"))
    asks(w, "SELECT pg_sleep(1.5)")
    told(w, "try_become_leader_term('s', 'b', 1) IS NULL", "t") # rule 6: not by b's timeout
    told(w, "leader_heartbeat('s', 'a')", "t")
    expect(w.psql("SELECT expires > clock_timestamp() + interval '10.5 s' OR "
                  "expires - interval '12 s' > since + interval '1.5 s' FROM baton.lease, "
                  "baton.election"), "t") # as long again
    wait_for(is_over, "the end of the lease")
    told(w, "leader_heartbeat('s', 'a')", "f")
    told(w, f"leader_heartbeat('s', 'a', {first})", "f")
    second = int(asks(w, "SELECT try_become_leader_term('s', 'b', 1)"))
    if second <= first:
        raise AssertionError((first, second))
    told(w, "step_down('s', 'a')", "f")
    wait_for(is_over, "the end of the lease")
    third = int(asks(w, "SELECT try_become_leader_term('s', 'b', 1)")) # rule 7: a new leadership
    if third <= second:
        raise AssertionError((second, third))
    # A lease becomes longer, and never shorter: whose answer was lost counts on the old one.
    told(w, "try_become_leader('s', 'b', 30)", "t")
    told(w, "try_become_leader('s', 'b', 1)", "t")
    expect(w.psql("SELECT ttl_ms FROM baton.lease"), "30000")


def case_functions_rolled_back(w):
    """A claim, a heartbeat and a step-down that are rolled back never were."""
    install(w)
    a = Caller(w)
    a.asks("BEGIN")
    expect(a.asks("SELECT try_become_leader('s', 'a')"), "t")
    told(w, "count(*) FROM leader_election", "0")
    a.asks("ROLLBACK")
    told(w, "count(*) FROM leader_election", "0")
    expect(a.asks("SELECT leader_heartbeat('s', 'a')"), "f")
    told(w, "try_become_leader('s', 'b', 12)", "t")
    b = Caller(w)
    b.asks("BEGIN")
    expect(b.asks("SELECT step_down('s', 'b')"), "t")
    b.asks("ROLLBACK")
    told(w, "leader_id FROM leader_election", "b")
    b.asks("BEGIN")
    expect(b.asks("SELECT leader_heartbeat('s', 'b')"), "t")
    b.asks("ROLLBACK")
    expect(w.psql("SELECT seq FROM baton.lease"), "1")


def case_functions_open(w):
    """A transaction that stays open blocks nobody for ever: others are answered, and the server
    ends its session when it was idle for a lease; whoever is refused has locked nothing."""
    install(w)
    limit = "SET statement_timeout = '5s'; "
    a = Caller(w)
    a.asks("BEGIN")
    expect(a.asks("SELECT try_become_leader('s', 'a', 9)"), "t") # a row that isn't there yet
    expect(asks(w, limit + "SELECT try_become_leader('s', 'b', 3)"), "f")
    expect(asks(w, limit + "SELECT try_become_leader('other', 'b', 3)"), "t")
    wait_for(lambda: asks(w, "SELECT try_become_leader('s', 'b', 3)") == "t", "b to lead", 40)
    expect(a.asks("SELECT 1"), "terminating connection due to idle-in-transaction timeout")
    # One that renews and stays open keeps its lease's row, for a lease.
    c = Caller(w)
    expect(c.asks("BEGIN; SELECT try_become_leader('s', 'b', 3)"), "t")
    asks(w, "SELECT pg_sleep(4)")
    expect(c.asks("SELECT 1"), "the session has ended")
    told(w, "try_become_leader('s', 'd', 3)", "t")
    w.candidate("run", w.url, lease="2s")
    # A candidate that is refused in an open transaction keeps up neither a leader nor a handoff.
    w.leads("run")
    d = Caller(w)
    expect(d.asks("BEGIN; SELECT try_become_leader('e', 'd', 60)"), "f")
    term = w.term()
    stays(lambda: w.term() == term and "no longer leads" not in w.said("run"), 4,
          "the leader renews")
    w.baton("resign", "--store=" + w.url, "e")
    wait_for(lambda: w.term() > term or w.term() == 0, "the leader to step down")
    expect(d.asks("COMMIT; SELECT 'there'"), "there") # no limit where nothing was locked
    # A setting that is shorter stays.
    e = Caller(w)
    expect(e.asks("SET idle_in_transaction_session_timeout = '1s'; BEGIN; "
                  "SELECT try_become_leader('t', 'e', 60); "
                  "SHOW idle_in_transaction_session_timeout; COMMIT"), "1s")


def case_functions_names(w):
    """Every name that baton allows, and no other one; each is one service."""
    install(w)
    names = ["it's", 'q"uote', "back\\slash", "per%cent_", "$$", "a b", "\u00e9", "e\u0301",
             "\U0001f3c3", "S", "s", "x" * 253, "'; DROP TABLE baton.lease; --", "sql-1", "{1,2}"]
    quoted = lambda text: "$q$" + text + "$q$"
    for n, name in enumerate(names):
        told(w, f"try_become_leader({quoted(name)}, {quoted(name + str(n) if n != 11 else name)})",
             "t")
        told(w, f"try_become_leader({quoted(name)}, 'another')", "f")
        status = json.loads(w.baton("status", "--json", "--store=" + w.url, name).stdout)
        if status["election"] != name or not status["leader"]:
            raise AssertionError(status)
    told(w, "count(*) FROM leader_election", str(len(names)))
    for bad in ("''", "NULL", "repeat('x', 254)", "repeat('\u00e9', 127)", "E'a\\nb'", "E'\\x7f'",
                "E'\\u0085'"):
        expect(asks(w, f"SELECT try_become_leader({bad}, 'a')"), "invalid service or candidate")
        expect(asks(w, f"SELECT try_become_leader('ok', {bad})"), "invalid service or candidate")
        expect(asks(w, f"SELECT leader_heartbeat('ok', {bad})"), "invalid service or candidate")
        expect(asks(w, f"SELECT step_down({bad}, 'a')"), "invalid service or candidate")
    for bad in ("0", "-1", "NULL", "86401", "2147483647"):
        expect(asks(w, f"SELECT try_become_leader('ok', 'a', {bad})"), "invalid timeout")
    expect(asks(w, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT try_become_leader('ok', 'a')"),
           "expected read committed")


def case_functions_metadata(w):
    """The view shows metadata that is JSON as JSON, and any other text as a JSON string."""
    install(w)
    for name, text, kind in (("a", '{"region": "eu-1", "runner": "\U0001f3c3"}', "object"),
                             ("b", "rack 7", "string"), ("c", '{"region": "eu', "string")):
        run = w.candidate(name, w.url, BATON_METADATA=text)
        w.leads(name)
        sees = f"$m${text}$m$::jsonb" if kind == "object" else f"to_jsonb($m${text}$m$::text)"
        told(w, f"jsonb_typeof(metadata), metadata = {sees} FROM leader_election", kind + "|t")
        run.terminate()
        run.wait()
    told(w, "try_become_leader('s', 'a', 60)", "t")
    for text in ("{}", " [1, {}] ", '{"a": {"b": null}, "a": 1}', "42", "-1.5e3", "true", "null",
                 '"q"', '"\\u00e9\\""', "[" * 512 + "]" * 512):
        runs(w, f"UPDATE baton.election SET metadata = $m${text}$m$ WHERE name = 's'")
        told(w, f"metadata = $m${text}$m$::jsonb FROM leader_election", "t")
    # Also those where the form is right, and no such character or number can be.
    for text in ("rack 7", " ", "it's", "\\", '"', '"\\"', '{"a": 1} x', "{a: 1}", "[1,", "NaN",
                 "01", "{" * 1024, "[" * 1024, '"\\ud800"', '"\\u0000"', "1e999999"):
        runs(w, f"UPDATE baton.election SET metadata = $m${text}$m$ WHERE name = 's'")
        told(w, f"metadata = to_jsonb($m${text}$m$::text) FROM leader_election", "t")
    # Where an administrator keeps new functions from everybody, readers may read on.
    runs(w, "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC; "
         "DROP VIEW baton.leader_election; DROP FUNCTION baton.functions_json(text)")
    runs(w, w.baton("schema", "postgres", "--functions").stdout)
    runs(w, "GRANT SELECT ON baton.leader_election TO app")
    told(w, "jsonb_typeof(metadata) FROM leader_election", "string")


def case_functions_rights(w):
    """A role that may call the functions can do nothing else with the tables, and can't make a
    function of its own run with their rights."""
    install(w)
    told(w, "try_become_leader('s', 'a')", "t")
    for table in ("lease", "election", "candidate", "history", "version"):
        expect(asks(w, f"SELECT * FROM baton.{table}"), "permission denied")
        expect(asks(w, f"DELETE FROM baton.{table}"), "permission denied")
    expect(asks(w, "DELETE FROM leader_election"), "cannot delete")
    for call in ("functions_check('s', 'a')", "functions_limit(1)",
                 "functions_renew('s', 'a', NULL, NULL)", "functions_release('s', 'a', NULL)",
                 "functions_claim(NULL, NULL, 'a', 1)", "functions_may_claim(NULL, NULL, 'a')",
                 "mark_for_functions('s')"):
        expect(asks(w, "SELECT baton." + call), "permission denied")
    trap = ("CREATE SCHEMA IF NOT EXISTS trap", "GRANT ALL ON SCHEMA trap TO app")
    w.psql(*trap)
    expect(asks(w, "CREATE FUNCTION trap.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS "
                "'SELECT ''infinity''::timestamptz'; CREATE TEMP TABLE lease (id text); "
                "SET search_path = trap, pg_temp, pg_catalog; "
                "SELECT baton.try_become_leader('s', 'b')"), "f")
    w.psql("CREATE ROLE nobody LOGIN", "GRANT USAGE ON SCHEMA baton TO nobody")
    for call in ("try_become_leader('s', 'a')", "try_become_leader_term('s', 'a')",
                 "leader_heartbeat('s', 'a')", "leader_heartbeat('s', 'a', 1)",
                 "step_down('s', 'a')", "step_down('s', 'a', 1)"):
        expect(asks(w, "SELECT baton." + call, "nobody"), "permission denied")
    # Without tables it says what to do first.
    w.psql("DROP SCHEMA baton CASCADE")
    done = subprocess.run([*w.psql_command(), "-v", "ON_ERROR_STOP=1"], env=w.env, text=True,
                          input=w.baton("schema", "postgres", "--functions").stdout,
                          capture_output=True, timeout=LIMIT_S, check=False)
    if done.returncode == 0 or "baton schema postgres" not in done.stderr:
        raise AssertionError(done)


def case_functions_fence(w):
    """S4: the term of a claim is a fencing token, beside those of `baton run`."""
    install(w)
    guard(w)
    w.psql("GRANT EXECUTE ON FUNCTION baton.fence(text, bigint) TO app")
    old = int(asks(w, "SELECT try_become_leader_term('e', 'a')"))
    told(w, f"baton.fence('report', {old})", str(old))
    told(w, "step_down('e', 'a')", "t")
    run = w.candidate("run", w.url)
    term = w.leads("run")
    told(w, f"baton.fence('report', {term})", str(term))
    expect(asks(w, f"SELECT baton.fence('report', {old})"), f"term {old} is over")
    run.terminate()
    run.wait()
    new = int(asks(w, "SELECT try_become_leader_term('e', 'a')"))
    if not old < term < new:
        raise AssertionError((old, term, new))


def case_functions_woken(w):
    """A standby of `baton run` is told of a step-down, and of no heartbeat; without one it counts
    the whole lease on its own clock, as with any other."""
    install(w)
    told(w, "try_become_leader('e', 'a', 60)", "t")
    run = w.candidate("run", w.url, lease="20s")
    follows(w, "run", "a")
    told(w, "leader_heartbeat('e', 'a')", "t")
    began = time.monotonic()
    told(w, "step_down('e', 'a')", "t")
    wait_for(lambda: "leads e in term" in w.said("run"), "the standby to lead", 10)
    took = time.monotonic() - began
    print(f"  {took * 1000:.0f} ms after the step-down")
    if took > 5:
        raise AssertionError(f"after {took} s")
    run.terminate()
    run.wait()
    # By its own clock: that of the server says that it is over.
    told(w, "try_become_leader('e', 'a', 10)", "t")
    w.candidate("late", w.url, lease="2s")
    follows(w, "late", "a")
    w.psql("UPDATE baton.lease SET expires = expires - interval '1 hour' WHERE owner = 'a'")
    stays(lambda: "leads e in term" not in w.said("late"), 6, "it waits")
    wait_for(lambda: "leads e in term" in w.said("late"), "the end of the lease", 20)


def case_functions_marked(w):
    """Only in a marked election is a lease of `baton run` taken by the server's clock, and then the
    election alone; doctor, status and promises name it."""
    install(w)
    a = w.candidate("a", w.url, lease="2s")
    term = w.leads("a")
    a.kill()
    a.wait()
    asks(w, "SELECT pg_sleep(3)")
    told(w, "try_become_leader('e', 'b')", "f")
    expect(w.baton("doctor", "--store=" + w.url).stdout, "no election is marked")
    w.psql("UPDATE baton.election SET functions = false",
           # The same lease leads another election, which is not marked.
           "INSERT INTO baton.election (name, term, lease, nonce) SELECT 'other', 7, lease, 1 FROM "
           "baton.election WHERE name = 'e'")
    w.psql("SELECT baton.mark_for_functions('e')")
    expect(w.baton("status", "--store=" + w.url, "e").stdout, "functions  may take over")
    if not json.loads(w.baton("status", "--json", "--store=" + w.url, "e").stdout)["functions"]:
        raise AssertionError("status --json doesn't tell")
    doctor = " ".join(w.baton("doctor", "--store=" + w.url).stdout.split())
    expect(doctor, "Elections are marked for SQL functions (1: e)")
    expect(" ".join(w.baton("stores").stdout.split()), "marked for functions, end by it")
    told(w, "try_become_leader('other', 'b')", "f")
    second = int(asks(w, "SELECT try_become_leader_term('e', 'b', 2)"))
    if second <= term:
        raise AssertionError((term, second))
    told(w, "try_become_leader('other', 'b')", "f")
    # While it is renewed, a marked election is as safe as any.
    told(w, "step_down('e', 'b')", "t")
    w.candidate("c", w.url, lease="2s")
    w.leads("c")
    stays(lambda: asks(w, "SELECT try_become_leader('e', 'b')") == "f", 5, "c leads")
    # What is taken from a leader that thinks it leads (a clock has jumped) is lost by it at its
    # next renewal, and it leads what else it has.
    w.psql("UPDATE baton.lease SET expires = clock_timestamp() WHERE owner = 'c'")
    wait_for(lambda: asks(w, "SELECT try_become_leader('e', 'b')") == "t" or
             w.psql("UPDATE baton.lease SET expires = clock_timestamp() WHERE owner = 'c'"),
             "b to take it")
    wait_for(lambda: "no longer leads" in w.said("c"), "c to know")
    w.psql("SELECT baton.mark_for_functions('e', false)")
    expect(w.baton("doctor", "--store=" + w.url).stdout, "no election is marked")


def case_functions_orders(w):
    """Orders and pauses reach a leader that calls functions: its next heartbeat is refused, and its
    step-down carries them out."""
    install(w)
    told(w, "try_become_leader('e', 'a')", "t")
    w.baton("resign", "--store=" + w.url, "--note=out of order", "e")
    told(w, "leader_heartbeat('e', 'a')", "f")
    told(w, "try_become_leader('e', 'a')", "f")
    told(w, "leader_id FROM leader_election", "a") # its work may not have ended
    told(w, "step_down('e', 'a')", "t")
    expect(w.baton("history", "--store=" + w.url, "e").stdout, "out of order")
    told(w, "try_become_leader('e', 'a')", "t")
    w.candidate("run", w.url, lease="4s")
    follows(w, "run", "a")
    w.baton("transfer", "--store=" + w.url, "--to=run", "e")
    told(w, "leader_heartbeat('e', 'a')", "f")
    told(w, "step_down('e', 'a')", "t")
    told(w, "try_become_leader('e', 'b')", "f") # it is kept for the other
    w.leads("run")
    w.baton("pause", "--store=" + w.url, "e")
    wait_for(lambda: w.term() == 0, "the leader to step down")
    told(w, "try_become_leader('e', 'a')", "f")
    w.stop()
    w.baton("resume", "--store=" + w.url, "e")
    told(w, "try_become_leader('e', 'a')", "t")
    w.baton("pause", "--store=" + w.url, "e")
    told(w, "leader_heartbeat('e', 'a')", "f")


# ---- both kinds in one election, and the oracle ----

def boot_s():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Player(threading.Thread):
    """A candidate that calls the functions. It writes down when it is at work, as the children of
    `baton run` do. A third of its leaderships end with a step-down, a third by silence, as if it
    had died; in the others it renews for longer."""
    lease_s = 2

    def __init__(self, w, name, seed, keeps_deadline=True):
        super().__init__(daemon=True)
        self.w = w
        self.id = name
        self.random = random.Random(seed)
        self.keeps_deadline = keeps_deadline
        self.session = Caller(w)
        self.over = threading.Event()
        self.n_led = 0

    def works(self, term, until):
        """Until then on the boot clock; what is written is the time before the look at it."""
        path = self.w.path("work")
        while not self.over.wait(0.02):
            stamp = time.time_ns() // 1000000
            if boot_s() >= until:
                return
            with open(path, "a", encoding="ascii") as file:
                file.write(f"lives {term} {stamp}\n")

    def leads(self, term, began):
        n = self.random.choice((0, 1, 3))
        silent = self.random.random() < 0.4
        usable_s = self.lease_s * (0.9 if self.keeps_deadline else 3)
        end = began + usable_s
        for _ in range(n):
            self.works(term, min(boot_s() + self.lease_s / 4, end))
            began = boot_s() # before the send
            if self.session.asks(f"SELECT leader_heartbeat('e', '{self.id}', {term})") != "t":
                break
            end = began + usable_s
        if silent or not self.keeps_deadline:
            self.works(term, end)
            return
        self.works(term, min(boot_s() + 0.2, end))
        self.session.asks(f"SELECT step_down('e', '{self.id}', {term})")

    def run(self):
        while not self.over.wait(self.random.uniform(0.05, 0.3)):
            began = boot_s()
            got = self.session.asks(f"SELECT try_become_leader_term('e', '{self.id}', "
                                    f"{self.lease_s})")
            if got.isdigit():
                self.n_led += 1
                self.leads(int(got), began)


def kinds_of_leaders(w):
    """Of each leadership: whether it was won by functions."""
    leaders = w.psql("SELECT leader FROM baton.history WHERE name = 'e' ORDER BY n").split()
    return [leader.startswith("player") for leader in leaders]


def plays(w, for_s, marked):
    """Both kinds contend, and are hurt: no two work at a time. It goes on until both kinds have led
    often enough, but not for ever."""
    install(w)
    w.work = rig.Judged.work
    if marked:
        w.psql("SELECT baton.mark_for_functions('e')")
    seed = random.randrange(1 << 32)
    print(f"  seed {seed}")
    players = [Player(w, f"player{n}", seed + n) for n in range(2)]
    for player in players:
        player.start()
    chance = random.Random(seed)
    runner = w.candidate("run", w.url, lease="2s")
    until = time.monotonic() + for_s

    def has_run(least):
        kinds = kinds_of_leaders(w)
        passed = sum(a != b for a, b in zip(kinds, kinds[1:]))
        return min(sum(kinds), len(kinds) - sum(kinds)) >= least and passed > least
    while time.monotonic() < until or not has_run(3) and time.monotonic() < until + 120:
        threading.Event().wait(chance.uniform(0.3, 1.5))
        how = chance.choice((runner.kill, runner.terminate, None, None))
        if how is None:
            w.baton("resign", "--store=" + w.url, "e")
            continue
        how()
        runner.wait(LIMIT_S)
        threading.Event().wait(chance.choice((0, 0.5)))
        runner = w.candidate("run", w.url, lease="2s")
    for player in players:
        player.over.set()
    for player in players:
        player.join(LIMIT_S)
    kinds = kinds_of_leaders(w)
    print(f"  {len(kinds)} leaderships, {sum(kinds)} by functions")
    if not has_run(3):
        raise AssertionError("void: too little has happened")
    if w.baton("history", "--check", "--store=" + w.url, "e").returncode != 0:
        raise AssertionError("the history overlaps")
    w.stop()
    w.check_work()


def case_functions_both(w):
    """S1, S3: programs that call SQL and `baton run` in one election."""
    plays(w, 20, False)


def case_functions_marked_both(w):
    """... which is marked, so that those take over a dead `baton run` as well."""
    plays(w, 20, True)


def case_functions_broken(w):
    """A program that works on without a deadline is caught by the same oracle."""
    install(w)
    broken = Player(w, "broken", 1, keeps_deadline=False)
    broken.start()
    wait_for(lambda: broken.n_led > 0, "the broken one to lead")
    good = Player(w, "good", 2)
    good.start()
    wait_for(lambda: len(w.spans()) > 1, "the good one to work", 30)
    stays(lambda: True, 0.5, "both work")
    for player in (broken, good):
        player.over.set()
        player.join(LIMIT_S)
    try:
        w.check_work()
    except AssertionError as error:
        expect(str(error), "overlap")
        return
    raise AssertionError("two worked at a time, and nobody noticed")


# ---- the examples ----

SQL = os.path.join(os.path.dirname(rig.TESTS), "examples", "sql")


def client(w, name, command):
    """An example as a candidate, whose lease is 3 seconds."""
    with open(w.path(name + ".log"), "w", encoding="utf-8") as log:
        p = subprocess.Popen(command, env=w.env, stdout=log, stderr=log)
    w.started.append(p)
    wait_for(lambda: p.poll() is None, name + " to run", 1)
    return p


def takes_part(w, command):
    """Leads, is followed at once when it stops, follows, loses by its own clock when it was frozen,
    and by no answer; no two work at a time."""
    install(w)
    w.work = rig.Judged.work
    w.psql("SELECT baton.mark_for_functions('e')")
    says = lambda name, words: wait_for(lambda: words in w.said(name), f"{name}: {words}", 30)
    first = client(w, "first", command)
    says("first", "after the start: works in term")  # start() has waited for the first try
    says("first", "at work in term")
    idle = client(w, "idle", command)
    says("idle", "after the start: waits")
    idle.terminate()
    if idle.wait(LIMIT_S) != 0 or "leads" in w.said("idle"):
        raise AssertionError(w.said("idle"))
    w.candidate("run", w.url, lease="3s")
    follows(w, "run", "worker-")
    first.terminate()
    began = time.monotonic()
    says("run", "leads e in term")
    print(f"  {(time.monotonic() - began) * 1000:.0f} ms after SIGTERM")
    if first.wait(LIMIT_S) != 0 or "leads e no more" not in w.said("first"):
        raise AssertionError(w.said("first"))
    second = client(w, "second", command)
    w.started[-2].terminate()
    says("second", "at work in term")
    # It is frozen, and another leads; when it goes on it knows.
    w.candidate("other", w.url, lease="3s")
    follows(w, "other", "worker-")
    os.kill(second.pid, signal.SIGSTOP)
    says("other", "leads e in term")
    stays(lambda: True, 0.5, "both could work")
    os.kill(second.pid, signal.SIGCONT)
    says("second", "leads e no more")
    # No answer comes: it stops by its own clock.
    w.started[-1].terminate()
    wait_for(lambda: w.said("second").count("leads e in term") == 2, "it to lead again", 30)
    sessions = w.psql("SELECT pid FROM pg_stat_activity WHERE usename = 'app'").split()
    w.signal("postgres", "STOP")
    for pid in sessions:
        os.kill(int(pid), signal.SIGSTOP)
    try:
        wait_for(lambda: w.said("second").count("leads e no more") == 2, "it to stop", 10)
    finally:
        for pid in sessions:
            os.kill(int(pid), signal.SIGCONT)
        w.signal("postgres", "CONT")
    w.stop()
    with open(w.path("work"), "a", encoding="ascii") as file:
        for name in ("first", "second"):
            for term, ms in re.findall(r"at work in term (\d+) at (\d+)", w.said(name)):
                file.write(f"lives {term} {ms}\n")
    if len(w.check_work()) < 5:
        raise AssertionError(w.spans())


def succeeds(command, folder=None):
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True,
                          timeout=3 * LIMIT_S, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)


def case_functions_python(w):
    """The example in Python."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import asyncpg"], capture_output=True, timeout=LIMIT_S,
                          check=False).returncode == 0:
            break
    else:
        raise Missing("asyncpg, a client of PostgreSQL for Python (python3-asyncpg)")
    succeeds([python, "-B", os.path.join(rig.TESTS, "postgres", "slow_link.py"), SQL])
    takes_part(w, [python, "-B", os.path.join(SQL, "leader_election.py"), w.at("app"), "e",
                   "--interval=0.8", "--timeout=3"])


def case_functions_typescript(w):
    """The example in TypeScript, compiled with all checks."""
    found = subprocess.run([os.path.join(rig.TESTS, "built"), "find", "tsc"], text=True,
                           capture_output=True, timeout=LIMIT_S, check=False).stdout.strip()
    if not found or not shutil.which("node"):
        raise Missing("tsc and pg (make servers), or node")
    modules = os.path.join(os.path.dirname(found), "node_modules")
    os.symlink(modules, w.path("node_modules"))
    shutil.copy(os.path.join(SQL, "leader-election.ts"), w.folder)
    succeeds(["node", found, "--strict", "--noUncheckedIndexedAccess", "--target", "es2021",
              "--module", "commonjs", "--types", "node", w.path("leader-election.ts")], w.folder)
    succeeds(["node", os.path.join(rig.TESTS, "postgres", "slow_link.js"),
              w.path("leader-election.js")], w.folder)
    takes_part(w, ["node", w.path("leader-election.js"), w.at("app"), "e", "worker", "800", "3"])
