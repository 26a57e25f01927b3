# functions.py - cases of tests/mysql/run about the SQL functions (baton schema mysql --functions):
# programs that call SQL, alone and beside `baton run`, in open transactions, with few rights, and
# under the overlap oracle of rig.Judged.
import json
import os
import random
import re
import subprocess
import threading
import time

import rig
from rig import LIMIT_S, stays, wait_for


def expect(got, words):
    if words not in got:
        raise AssertionError(f"{got!r}, without {words!r}")


def script(w):
    return w.baton("schema", "mysql", "--functions").stdout


def quiet(said):
    """What an administrator ran has said nothing."""
    if said:
        raise AssertionError(said)


def install(w):
    """Tables, functions, and a user that may call them and nothing else, as the script says."""
    quiet(w.sql(w.baton("schema", "mysql").stdout))
    text = script(w)
    for _ in range(2): # a second time changes nothing
        quiet(w.sql(text))
    grants = re.search(r"(?ms)^-- What a caller's user needs.*?\n(.*?)^-- An election", text)[1]
    quiet(w.sql("CREATE USER caller@localhost;\n" + re.sub("(?m)^-- ", "", grants)
                .replace("mydb.", "baton.").replace("'myapp'@'%'", "caller@localhost")))


class Caller:
    """A session that is asked one thing after the other."""

    def __init__(self, w, user="caller"):
        self.p = subprocess.Popen(["mariadb", "--no-defaults", f"--socket={w.info['socket']}", "-u",
                                   user, "--skip-password", "-N", "--force", "--unbuffered",
                                   "--default-character-set=utf8mb4", "baton"], env=w.env,
                                  text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        w.started.append(self.p)

    def asks(self, sql):
        """What came of it: lines."""
        self.p.stdin.write(sql + ";\nSELECT '.';\n")
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


def asks(w, sql, user="caller"):
    """What somebody without other rights is told, in a session of its own."""
    one = Caller(w, user)
    try:
        return one.asks(sql)
    finally:
        one.ends()


def told(w, sql, words):
    got = asks(w, "SELECT " + sql)
    if got != words:
        raise AssertionError(f"{sql}: {got!r}, not {words!r}")


def follows(w, name, leader):
    wait_for(lambda: "led by " + leader in w.said(name), f"{name} to see {leader}")


def led_by(w):
    return asks(w, "SELECT leader_id FROM leader_election WHERE service_name = 'e'")


def ages(w, which="l/%"):
    """The server's clock jumps an hour ahead, as those records see it."""
    return w.sql(f"UPDATE baton_record SET at = NOW(6) - INTERVAL 1 HOUR WHERE k LIKE '{which}'")


def field(name):
    return f"JSON_VALUE(CONVERT(v USING utf8mb4), '$.{name}')"


def is_over(w):
    """The only lease is over by the server's clock."""
    return w.sql(f"SELECT at + INTERVAL {field('ttl')} / 1000 + 2 MICROSECOND < NOW(6) FROM "
                 "baton_record WHERE k LIKE 'l/%'").strip() == "1"


def case_functions(w):
    """As the functions of old, by their names and parameters; terms grow, also over a step-down."""
    install(w)
    told(w, "try_become_leader('s', 'a', 30)", "1")
    told(w, "try_become_leader('s', 'b', 30)", "0")
    told(w, "leader_heartbeat('s', 'a')", "1")
    told(w, "leader_heartbeat('s', 'b')", "0")
    told(w, "leader_id, metadata, last_heartbeat > NOW(6) - INTERVAL 9 SECOND "
         "FROM leader_election WHERE service_name = 's'", "a\t{}\t1")
    terms = [int(asks(w, "SELECT try_become_leader_term('s', 'a', 30)"))]
    told(w, f"try_become_leader_term('s', 'a', 30) = {terms[0]}", "1") # no new term by asking again
    told(w, "step_down('s', 'b')", "0") # a stranger's
    told(w, f"step_down_term('s', 'a', {terms[0] + 1})", "0") # another term's
    told(w, f"leader_heartbeat_term('s', 'a', {terms[0] - 1})", "0")
    told(w, "leader_heartbeat_term('s', 'a', NULL)", "0")
    for _ in range(20):
        told(w, "step_down('s', 'a'), step_down('s', 'a'), leader_heartbeat('s', 'a')", "1\t0\t0")
        told(w, "count(*) FROM leader_election", "0")
        expect(w.sql("SELECT COUNT(*) FROM baton_record"), "1") # nothing but the term is left
        terms.append(int(asks(w, "SELECT try_become_leader_term('s', 'a', 20)")))
        told(w, f"leader_heartbeat_term('s', 'a', {terms[-1]})", "1")
        told(w, f"term = {terms[-1]} FROM leader_election", "1")
    if terms != sorted(set(terms)):
        raise AssertionError(f"terms {terms}")
    # baton sees the same leader, and the last sixteen that led.
    status = json.loads(w.baton("status", "--json", "--store=" + w.url(), "s").stdout)
    if (status["leader"], status["term"], status["functions"]) != ("a", terms[-1], False):
        raise AssertionError(status)
    done = w.baton("history", "--check", "--json", "--store=" + w.url(), "s")
    if done.returncode != 0 or [row["term"] for row in json.loads(done.stdout)] != terms[:-17:-1]:
        raise AssertionError(done)
    # A session is left as it was, also after an error; a term doesn't grow over its range (C21).
    one = Caller(w)
    one.asks("SET time_zone = '+05:00', innodb_lock_wait_timeout = 37")
    one.asks("SELECT try_become_leader('s', 'a', 30), step_down('s', 'b')")
    expect(one.asks("SELECT try_become_leader('s', 'a', 0)"), "invalid timeout")
    expect(one.asks("SELECT step_down('', 'a')"), "invalid service")
    expect(one.asks("SELECT @@time_zone, @@innodb_lock_wait_timeout"), "+05:00\t37")
    last = 9223372036854775807
    one.asks("SELECT step_down('s', 'a')")
    w.sql(f"UPDATE baton_record SET v = REPLACE(v, ',\"term\":\"{terms[-1]}\",\"lease\"', "
          f"',\"term\":\"{last - 1}\",\"lease\"') WHERE k = 'e/s'")
    told(w, "try_become_leader_term('s', 'a', 30)", str(last))
    told(w, f"leader_heartbeat_term('s', 'a', {last}), step_down('s', 'a')", "1\t1")
    told(w, "try_become_leader_term('s', 'a', 30)", "NULL")


def case_functions_clients(w):
    """The statements that clients write: those of the page and of the manual, as they stand there,
    prepared by a user with the rights of a caller."""
    install(w)
    root = os.path.dirname(rig.TESTS)
    for n, page in enumerate(("docs/stores/mysql.md", "man/baton-mysql.7"), 1):
        with open(os.path.join(root, page), encoding="utf-8") as file:
            statements = re.findall(r"SELECT (\w+)\(\?, \?, \?\)", file.read())
        if statements != ["try_become_leader_term", "leader_heartbeat_term", "step_down_term"]:
            raise AssertionError(f"{page}: {statements}")
        one = Caller(w)
        one.asks("SET @service = 's', @candidate = 'a', @last = 30")
        for name, last in zip(statements, (n, "1", "1")):
            one.asks(f"PREPARE x FROM 'SELECT {name}(?, ?, ?)'")
            got = one.asks("EXECUTE x USING @service, @candidate, @last")
            if got != str(last):
                raise AssertionError(f"{page}: {name}: {got}")
            one.asks(f"SET @last = {n}") # the term


def case_functions_ended(w):
    """A leader that never renews loses at the end of its own lease, whatever the others' leases
    are; a heartbeat after that is refused, also when nobody has come."""
    install(w)
    first = int(asks(w, "SELECT try_become_leader_term('s', 'a', 12)"))
    asks(w, "SELECT SLEEP(1.5)")
    told(w, "try_become_leader_term('s', 'b', 1) IS NULL", "1") # rule 6: not by b's timeout
    told(w, "leader_heartbeat('s', 'a')", "1")
    expect(w.sql(f"SELECT at > (SELECT FROM_UNIXTIME({field('since')} / 1000) + INTERVAL 1 SECOND "
                 "FROM baton_record WHERE k = 'e/s') FROM baton_record WHERE k LIKE 'l/%'"), "1")
    wait_for(lambda: is_over(w), "the end of the lease", 30)
    told(w, "leader_heartbeat('s', 'a')", "0")
    told(w, f"leader_heartbeat_term('s', 'a', {first})", "0")
    second = int(asks(w, "SELECT try_become_leader_term('s', 'b', 1)"))
    if second <= first:
        raise AssertionError((first, second))
    told(w, "step_down('s', 'a')", "0")
    wait_for(lambda: is_over(w), "the end of the lease")
    third = int(asks(w, "SELECT try_become_leader_term('s', 'b', 1)")) # rule 7: a new leadership
    if third <= second:
        raise AssertionError((second, third))
    # A lease becomes longer, and never shorter: whose answer was lost counts on the old one.
    told(w, "try_become_leader('s', 'b', 30), try_become_leader('s', 'b', 1)", "1\t1")
    for kind in ("l", "e"):
        expect(w.sql(f"SELECT {field('ttl')} FROM baton_record WHERE k LIKE '{kind}/%'"),
               "30000000000")
    # A caller can't choose the time, and its time zone doesn't matter.
    told(w, "try_become_leader('s', 'c', 1)", "0")
    for setting in ("timestamp = UNIX_TIMESTAMP() + 86400", "timestamp = 1", "time_zone = '+13:00'",
                    "time_zone = '-12:00'"):
        expect(asks(w, f"SET {setting}; SELECT try_become_leader('s', 'c', 1)"), "0")
        expect(asks(w, f"SET {setting}; SELECT leader_heartbeat('s', 'b')"), "1")
    told(w, "try_become_leader('s', 'c', 1)", "0")


def case_functions_rolled_back(w):
    """A claim, a heartbeat and a step-down that are rolled back never were."""
    install(w)
    a = Caller(w)
    a.asks("BEGIN")
    expect(a.asks("SELECT try_become_leader('s', 'a', 30)"), "1")
    told(w, "count(*) FROM leader_election", "0")
    a.asks("ROLLBACK")
    told(w, "count(*) FROM leader_election", "0")
    expect(a.asks("SELECT leader_heartbeat('s', 'a')"), "0")
    told(w, "try_become_leader('s', 'b', 12)", "1")
    b = Caller(w)
    expect(b.asks("BEGIN; SELECT step_down('s', 'b'); ROLLBACK"), "1")
    told(w, "leader_id FROM leader_election", "b")
    expect(b.asks("BEGIN; SELECT leader_heartbeat('s', 'b'); ROLLBACK"), "1")
    expect(w.sql(f"SELECT {field('beat')} FROM baton_record WHERE k LIKE 'l/%'"), "1")


def case_functions_open(w):
    """A transaction that stays open makes nobody wait for more than a second, and whoever is
    refused has locked nothing; with the server's own limit it ends."""
    install(w)

    def quick(sql, words, limit_s=3):
        began = time.monotonic()
        expect(asks(w, "SELECT " + sql), words)
        if time.monotonic() - began > limit_s:
            raise AssertionError(f"{sql} took {time.monotonic() - began:.1f} s")

    for isolation in ("READ COMMITTED", "REPEATABLE READ"):
        service = isolation[:3].lower()
        a = Caller(w)
        a.asks(f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation}; BEGIN")
        # A row that isn't there yet, and then one that is.
        expect(a.asks(f"SELECT try_become_leader('{service}', 'a', 9)"), "1")
        quick(f"try_become_leader('{service}', 'b', 3)", "0")
        quick(f"try_become_leader('{service}2', 'b', 3)", "1")
        a.asks("COMMIT; BEGIN")
        expect(a.asks(f"SELECT leader_heartbeat('{service}', 'a')"), "1")
        quick(f"try_become_leader('{service}', 'b', 3)", "0")
        quick(f"step_down('{service}', 'b')", "Lock wait timeout")
        quick(f"leader_heartbeat('{service}', 'a')", "Lock wait timeout")
        a.asks("COMMIT")
        # In a transaction that sees the past nobody is let through by that.
        a.asks(f"BEGIN; SELECT COUNT(*) FROM leader_election; "
               f"SELECT leader_heartbeat('{service}', 'a')")
        told(w, "COUNT(*) FROM leader_election", "2")
        a.asks("COMMIT")
        told(w, f"step_down('{service}', 'a'), step_down('{service}2', 'b')", "1\t1")
    # A candidate that is refused in an open transaction keeps up neither a leader nor a handoff.
    w.candidate("run", w.url(), lease="2s")
    term = w.leads(w.url())
    d = Caller(w)
    expect(d.asks("BEGIN; SELECT try_become_leader('e', 'd', 60)"), "0")
    stays(lambda: w.term_of_leader(w.url()) == term and "no longer leads" not in w.said("run"), 4,
          "the leader renews")
    w.baton("resign", "--store=" + w.url(), "e")
    wait_for(lambda: w.term_of_leader(w.url()) != term, "the leader to step down")
    d.asks("COMMIT")
    w.stop()
    # What a server limits, it ends: idle_transaction_timeout of MariaDB.
    w.sql("SET GLOBAL idle_transaction_timeout = 3")
    e = Caller(w)
    expect(e.asks("BEGIN; SELECT try_become_leader('t', 'e', 3)"), "1")
    wait_for(lambda: asks(w, "SELECT try_become_leader('t', 'f', 3)") == "1", "f to lead", 20)


def case_functions_names(w):
    """Every name that baton allows, and no other one; each is one service, below every prefix."""
    install(w)
    names = ["it's", 'q"uote', "back\\slash", "per%cent_", "$$", "a b", "\u00e9", "e\u0301",
             "\U0001f3c3", "S", "s", "s ", "x" * 253, "x" * 252 + "y", "'; DROP TABLE baton_record",
             "f--1", "{1,2}", "a/b", "/a", "a/", "a//b", ".", "..", "a/.b", "a.b", "=2F",
             "\u212a", "\u00c2\u00a0", '","past":[{"term":"', "\u00e9" * 126]
    quoted = lambda text: "CONVERT(x'" + text.encode().hex() + "' USING utf8mb4)"
    prefixes = ("", "shop/east")
    for prefix in prefixes:
        if prefix:
            w.sql(script(w).replace("\tRETURN '' //", f"\tRETURN '{prefix}/' //", 1))
        one = Caller(w, "root")
        for n, name in enumerate(names):
            leader = name if len(name.encode()) > 250 else name + str(n)
            call = f"try_become_leader({quoted(name)}, {quoted(leader)}, 60)"
            expect(one.asks("SELECT " + call), "1")
            expect(one.asks(f"SELECT try_become_leader({quoted(name)}, 'another', 60)"), "0")
            done = w.baton("status", "--json", "--store=" + w.url(prefix=prefix), name)
            status = json.loads(done.stdout)
            if (status["election"], status["leader"]) != (name, leader):
                raise AssertionError(status)
            # Twice, so that a history with such a leader is read and written, too.
            expect(one.asks(f"SELECT step_down({quoted(name)}, {quoted(leader)}), {call}"), "1\t1")
            w.baton("pause", "--store=" + w.url(prefix=prefix), name)
            expect(one.asks(f"SELECT leader_heartbeat({quoted(name)}, {quoted(leader)}), "
                            f"step_down({quoted(name)}, {quoted(leader)}), {call}"), "0\t1\t0")
            w.baton("resume", "--store=" + w.url(prefix=prefix), name)
            expect(one.asks("SELECT " + call), "1")
            history = w.baton("history", "--check", "--json", "--store=" + w.url(prefix=prefix),
                              name)
            if [row["leader"] for row in json.loads(history.stdout)] != [leader] * 3:
                raise AssertionError(history)
        if one.asks("SELECT COUNT(*) FROM leader_election") != str(len(names)):
            raise AssertionError("the view has not as many rows as there are names")
    bad = ("''", "NULL", "REPEAT('x', 254)", "REPEAT('x', 900)", "REPEAT('\u00e9', 127)", "'a\nb'",
           "x'7f'", "'\u0085'", "x'00'")
    one = Caller(w, "root")
    for mode in ("", "STRICT_ALL_TABLES"): # the caller's decides what becomes of a text that is cut
        one.asks(f"SET sql_mode = '{mode}'")
        for name in bad:
            words = "Data too long" if "900" in name and mode else "invalid service or candidate"
            for call in (f"try_become_leader({name}, 'a', 9)", f"leader_heartbeat('ok', {name})",
                         f"try_become_leader('ok', {name}, 9)", f"step_down({name}, 'a')"):
                expect(one.asks("SELECT " + call), words)
    one.asks("SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'")
    expect(one.asks("SELECT try_become_leader('a\\', 'b', 9), step_down('a\\', 'b')"), "1\t1")
    for seconds in ("0", "-1", "NULL", "86401", "2147483647"):
        expect(one.asks(f"SELECT try_become_leader('ok', 'a', {seconds})"), "invalid timeout")


def metadata(w, service):
    """As the view shows it; in hexadecimal, because the client escapes what it prints."""
    sees = asks(w, f"SELECT HEX(CONVERT(metadata USING utf8mb4)) FROM leader_election "
                   f"WHERE service_name = '{service}'")
    return bytes.fromhex(sees).decode()


def case_functions_metadata(w):
    """The view shows metadata that is JSON as it stands, and any other text as a JSON string."""
    install(w)

    def shown(service, text, is_json):
        got = metadata(w, service)
        if got != text if is_json else json.loads(got) != text:
            raise AssertionError(f"{text!r} is shown as {got!r}")

    for name, text, is_json in (("a", '{"region": "eu-1", "runner": "\U0001f3c3"}', True),
                                ("b", "rack 7", False), ("c", '{"region": "eu', False)):
        run = w.candidate(name, w.url(), BATON_METADATA=text)
        w.leads(w.url())
        shown("e", text, is_json)
        run.terminate()
        run.wait()
    told(w, "try_become_leader('s', 'a', 60)", "1")
    begins = "CONCAT(LEFT(v, LOCATE('\"metadata\":', v) + 10), "
    ends = ", SUBSTRING(v, LOCATE(',\"priority\":', v)))"
    texts = {text: True for text in (
        "{}", " [1, {}] ", '{"a": {"b": null}}', "42", "-1.5e3", "true", "null", '"q"',
        '"\\u00e9\\""', "[" * 30 + "]" * 30)}
    # Also JSON that is deeper than a server reads.
    texts.update({text: False for text in (
        "rack 7", " ", "it's", "\\", '"', '"\\"', '{"a": 1} x', "{a: 1}", "[1,", "nul", "{" * 1024,
        "[" * 1024, "[" * 512 + "]" * 512, "\u00e9")})
    for text, is_json in texts.items():
        value = json.dumps(text, ensure_ascii=False).encode().hex()
        quiet(w.sql(f"UPDATE baton_record SET v = {begins}x'{value}'{ends} WHERE k = 'e/s'"))
        shown("s", text, is_json)


def case_functions_rights(w):
    """A user that may call the functions can do nothing else; an old server, one without tables and
    one with a clock that a caller can set get a sentence."""
    install(w)
    told(w, "try_become_leader('s', 'a', 30)", "1")
    expect(asks(w, "SELECT * FROM baton_record"), "denied")
    expect(asks(w, "DELETE FROM baton_record"), "denied")
    expect(asks(w, "DELETE FROM leader_election"), "denied")
    for call in ("key('s')", "prefix()", "random()", "ms()", "renew('s', 'a', NULL, 0)",
                 "release('s', 'a', NULL)", "take('s', 's', '', '', 'a', 1)",
                 "try('s', 'b', 1)", "act('s', 'a', NULL, TRUE)"):
        expect(asks(w, "SELECT baton_functions_" + call), "denied")
    for call in ("mark_for_functions('s', TRUE)", "baton_functions_drop('f--1')",
                 "baton_functions_write('e/s', '')", "baton_functions_make('s', 'e/s')"):
        expect(asks(w, "CALL " + call), "denied")
    w.sql("CREATE USER nobody@localhost; GRANT SELECT ON baton.baton_version TO nobody@localhost")
    for call in ("try_become_leader('s', 'a', 1)", "try_become_leader_term('s', 'a', 1)",
                 "leader_heartbeat('s', 'a')", "leader_heartbeat_term('s', 'a', 1)",
                 "step_down('s', 'a')", "step_down_term('s', 'a', 1)"):
        expect(asks(w, "SELECT " + call, "nobody"), "denied")
    # Servers that are too old.
    for version, words in (("10.5.9-MariaDB", "need MariaDB 10.6"), ("5.7.44", "or MySQL 8.0"),
                           ("10.6.0-MariaDB", ""), ("11.4.2-MariaDB", ""), ("8.0.36", "")):
        said = w.sql(script(w).replace("VERSION()", f"'{version}'"))
        expect(said, words)
        if not words:
            quiet(said)
    # Without tables it says what to do first.
    w.sql("DROP TABLE baton_record")
    expect(w.sql(script(w)), "baton schema mysql")


def case_functions_fence(w):
    """S4: the term of a claim is a fencing token, beside those of `baton run`."""
    install(w)
    w.sql(w.baton("schema", "mysql", "--fence").stdout)
    w.sql("GRANT EXECUTE ON PROCEDURE baton.baton_fence TO caller@localhost")
    old = int(asks(w, "SELECT try_become_leader_term('e', 'a', 30)"))
    quiet(asks(w, f"CALL baton_fence('report', {old})"))
    told(w, "step_down('e', 'a')", "1")
    run = w.candidate("run", w.url())
    term = w.leads(w.url())
    quiet(asks(w, f"CALL baton_fence('report', {term})"))
    expect(asks(w, f"CALL baton_fence('report', {old})"), "this term is over")
    run.terminate()
    run.wait()
    new = int(asks(w, "SELECT try_become_leader_term('e', 'a', 30)"))
    if not old < term < new:
        raise AssertionError((old, term, new))


def case_functions_followed(w):
    """A standby of `baton run` sees a step-down when it looks; without one it counts the whole
    lease on its own clock, as with any other, and its tombstone ends the lease (R4)."""
    install(w)
    told(w, "try_become_leader('e', 'a', 60)", "1")
    run = w.candidate("run", w.url(), lease="20s")
    follows(w, "run", "a")
    told(w, "leader_heartbeat('e', 'a')", "1")
    began = time.monotonic()
    told(w, "step_down('e', 'a')", "1")
    wait_for(lambda: "leads e in term" in w.said("run"), "the standby to lead", 15)
    print(f"  {(time.monotonic() - began) * 1000:.0f} ms after the step-down")
    told(w, "try_become_leader('e', 'b', 60)", "0")
    run.terminate()
    run.wait()
    # By its own clock: that of the server says that it is over.
    told(w, "try_become_leader('e', 'a', 10)", "1")
    w.candidate("late", w.url(), lease="2s")
    follows(w, "late", "a")
    ages(w, "l/f--%")
    stays(lambda: "leads e in term" not in w.said("late"), 6, "it waits")
    wait_for(lambda: "leads e in term" in w.said("late"), "the end of the lease", 20)
    told(w, "leader_heartbeat('e', 'a')", "0")
    told(w, "step_down('e', 'a')", "0")
    expect(w.sql("SELECT v FROM baton_record WHERE k LIKE 'l/f--%'"), '"dead":"expired"')


def case_functions_marked(w):
    """Only in a marked election is a lease of `baton run` taken by the server's clock, and then the
    election alone; doctor, status and promises name it."""
    install(w)
    admin = w.info["admin"]
    doctor = lambda: " ".join(w.baton("doctor", "--store=" + admin).stdout.split())
    a = w.candidate("a", w.url(), lease="2s")
    term = w.leads(w.url())
    a.kill()
    a.wait()
    asks(w, "SELECT SLEEP(3)")
    told(w, "try_become_leader('e', 'b', 30)", "0")
    expect(doctor(), "no election is marked")
    # The same lease leads another election, which is not marked.
    w.sql("INSERT INTO baton_record (k, w, v) SELECT 'e/other', w, REPLACE(v, '\"name\":\"e\"', "
          "'\"name\":\"other\"') FROM baton_record WHERE k = 'e/e'")
    quiet(w.sql("CALL mark_for_functions('e', TRUE)"))
    quiet(w.sql("CALL mark_for_functions('later', TRUE)")) # nobody has led it yet
    for name in ("e", "later"):
        expect(w.baton("status", "--store=" + w.url(), name).stdout, "functions  may take over")
        status = json.loads(w.baton("status", "--json", "--store=" + w.url(), name).stdout)
        if not status["functions"]:
            raise AssertionError("status --json doesn't tell")
    expect(doctor(), "Elections are marked for SQL functions (2: e, later)")
    expect(" ".join(w.baton("stores").stdout.split()), "marked for functions, end by it")
    told(w, "try_become_leader('other', 'b', 30)", "0")
    second = int(asks(w, "SELECT try_become_leader_term('e', 'b', 2)"))
    if second <= term:
        raise AssertionError((term, second))
    told(w, "try_become_leader('other', 'b', 30)", "0")
    expect(w.sql("SELECT v FROM baton_record WHERE k LIKE 'l/%' AND k NOT LIKE 'l/f--%'"),
           '"dead":false')
    # While it is renewed, a marked election is as safe as any.
    told(w, "step_down('e', 'b')", "1")
    w.candidate("c", w.url(), lease="2s")
    wait_for(lambda: "leads e in term" in w.said("c"), "c to lead")
    stays(lambda: asks(w, "SELECT try_become_leader('e', 'b', 30)") == "0", 5, "c leads")
    # What is taken from a leader that thinks it leads (a clock has jumped) is lost by it when it
    # looks, and it keeps its lease.
    wait_for(lambda: ages(w) or asks(w, "SELECT try_become_leader('e', 'b', 30)") == "1",
             "b to take it")
    wait_for(lambda: "no longer leads" in w.said("c"), "c to know")
    told(w, "try_become_leader('other', 'b', 30)", "0")
    for name in ("e", "later"):
        quiet(w.sql(f"CALL mark_for_functions('{name}', FALSE)"))
    expect(doctor(), "no election is marked")


def case_functions_orders(w):
    """Orders and pauses reach a leader that calls functions: its next heartbeat is refused, and its
    step-down carries them out."""
    install(w)
    url = w.url()
    told(w, "try_become_leader('e', 'a', 30)", "1")
    w.baton("resign", "--store=" + url, '--note=out of "order"', "e")
    told(w, "leader_heartbeat('e', 'a')", "0")
    told(w, "try_become_leader('e', 'a', 30)", "0")
    told(w, "leader_id FROM leader_election", "a") # its work may not have ended
    told(w, "step_down('e', 'a')", "1")
    expect(w.baton("history", "--store=" + url, "e").stdout, 'out of "order"')
    told(w, "try_become_leader('e', 'a', 30)", "1")
    w.candidate("run", url, lease="4s")
    follows(w, "run", "a")
    w.baton("transfer", "--store=" + url, "--to=run", "e")
    told(w, "leader_heartbeat('e', 'a')", "0")
    told(w, "step_down('e', 'a'), try_become_leader('e', 'b', 30)", "1\t0") # it is kept for another
    wait_for(lambda: "leads e in term" in w.said("run"), "the target to lead")
    w.baton("pause", "--store=" + url, "e")
    wait_for(lambda: w.term_of_leader(url) == 0, "the leader to step down")
    told(w, "try_become_leader('e', 'a', 30)", "0")
    w.stop()
    w.baton("resume", "--store=" + url, "e")
    told(w, "try_become_leader('e', 'a', 30)", "1")
    w.baton("pause", "--store=" + url, "e")
    told(w, "leader_heartbeat('e', 'a')", "0")
    told(w, "step_down('e', 'a'), try_become_leader('e', 'a', 30)", "1\t0")
    w.baton("resume", "--store=" + url, "e")
    # A reservation whose target never comes is over.
    told(w, "try_become_leader('e', 'a', 30)", "1")
    w.candidate("gone", url, lease="4s")
    follows(w, "gone", "a")
    w.baton("transfer", "--store=" + url, "--to=gone", "e")
    w.started[-1].kill()
    w.started[-1].wait()
    told(w, "step_down('e', 'a'), try_become_leader('e', 'b', 30)", "1\t0")
    wait_for(lambda: asks(w, "SELECT try_become_leader('e', 'b', 30)") == "1", "the end of it")


# ---- both kinds in one election, and the oracle ----

def boot_s():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Player(threading.Thread):
    """A candidate that calls the functions. It writes down when it is at work, as the children of
    `baton run` do. Some of its leaderships end with a step-down, others by silence, as if it had
    died; in some it renews for longer."""
    lease_s = 2

    def __init__(self, w, name, seed, keeps_deadline=True):
        super().__init__(daemon=True)
        self.path = w.path("work")
        self.id = name
        self.random = random.Random(seed)
        self.keeps_deadline = keeps_deadline
        self.session = Caller(w)
        self.over = threading.Event()
        self.n_led = 0

    def works(self, term, until):
        """Until then on the boot clock; what is written is the time before the look at it."""
        while not self.over.wait(0.02):
            stamp = time.time_ns() // 1000000
            if boot_s() >= until:
                return
            with open(self.path, "a", encoding="ascii") as file:
                file.write(f"lives {term} {stamp}\n")

    def leads(self, term, began):
        silent = self.random.random() < 0.4 or not self.keeps_deadline
        usable_s = self.lease_s * (0.9 if self.keeps_deadline else 3)
        end = began + usable_s
        for _ in range(self.random.choice((0, 1, 3))):
            self.works(term, min(boot_s() + self.lease_s / 4, end))
            began = boot_s() # before the send
            if self.session.asks(f"SELECT leader_heartbeat_term('e', '{self.id}', {term})") != "1":
                break
            end = began + usable_s
        self.works(term, end if silent else min(boot_s() + 0.2, end))
        if not silent:
            self.session.asks(f"SELECT step_down_term('e', '{self.id}', {term})")

    def run(self):
        while not self.over.wait(self.random.uniform(0.05, 0.5)):
            began = boot_s()
            got = self.session.asks(f"SELECT try_become_leader_term('e', '{self.id}', "
                                    f"{self.lease_s})")
            if got.isdigit():
                self.n_led += 1
                self.leads(int(got), began)


def plays(w, for_s, marked):
    """Both kinds contend, and are hurt: no two work at a time. It goes on until both kinds have led
    often enough, but not for ever."""
    install(w)
    url = w.url(poll=200)
    if marked:
        quiet(w.sql("CALL mark_for_functions('e', TRUE)"))
    seed = random.randrange(1 << 32)
    print(f"  seed {seed}")
    players = [Player(w, f"player{n}", seed + n) for n in range(2)]
    for player in players:
        player.start()
    chance = random.Random(seed)
    runner = w.candidate("run", url, lease="2s")
    until = time.monotonic() + for_s

    def led():
        """How often each kind has led. The history has sixteen; what was worked has them all."""
        by_functions = sum(player.n_led for player in players)
        return by_functions, len(w.spans()) - by_functions
    while time.monotonic() < until or min(led()) < 4 and time.monotonic() < until + 120:
        threading.Event().wait(chance.uniform(0.5, 2))
        how = chance.choice((runner.kill, runner.terminate, None, None))
        if how is None:
            w.baton("resign", "--store=" + url, "e")
            continue
        how()
        runner.wait(LIMIT_S)
        threading.Event().wait(chance.choice((0, 0.5)))
        runner = w.candidate("run", url, lease="2s")
    for player in players:
        player.over.set()
        player.join(LIMIT_S)
    w.stop()
    n = len(w.check_work())
    print(f"  {n} leaderships at work, {led()[0]} by functions")
    if min(led()) < 3:
        raise AssertionError("void: too little has happened")
    if w.baton("history", "--check", "--store=" + url, "e").returncode != 0:
        raise AssertionError("the history overlaps")


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
