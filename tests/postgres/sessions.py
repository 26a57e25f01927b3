# sessions.py - cases of tests/postgres/run about the session that holds locks: it breaks, it is
# slow, it is used for something else. Most call the driver's verbs one by one (puppet.c).
import os
import signal
import time

from rig import stays, wait_for
from world import Puppet, Wire, begins_again, follows, settled


def case_cut_session(w):
    """A session breaks, and the server doesn't know: the next one ends it before it takes its
    locks, and the leader leads on."""
    for options in ({"mode": "advisory"}, {"fast": "1"}):
        wire = Wire(w.info["port"])
        w.candidate("a", w.at(**options).replace(w.info["port"], str(wire.port)), lease="9s")
        term = w.leads("a")
        holder = lambda: w.psql("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted")
        old = holder()
        wire.cut()
        wait_for(lambda: holder() not in ("", old), "another session with its locks", 8)
        stays(lambda: w.term() == term and w.leader() == "a", 3, f"a leads in term {term}")
        if "no longer leads" in w.said("a"):
            raise AssertionError(w.said("a"))
        w.stop()


# Which session has which locks.
LOCKS = ("SELECT pid, classid, objid FROM pg_locks WHERE locktype = 'advisory' AND granted "
         "ORDER BY pid, classid, objid")


def case_renewed_claim(w):
    """S1: who campaigns on a fresh session renews its lease before the old one is ended, so that
    who waited for its lock takes nothing (fast=1)."""
    wire = Wire(w.info["port"])
    a = Puppet(w, w.at(fast="1").replace(w.info["port"], str(wire.port)))
    a.does("open aa-1-1 30000")
    a.does("claim aa-1-1 e")
    term = w.term()
    w.candidate("b", w.at(fast="1"), lease="30s")
    follows(w, "b", "puppet")
    settled(w, 1)
    wire.cut()
    a.does("claim aa-1-1 other")
    stays(lambda: w.term() == term and w.leader() == "puppet", 3, f"a leads in term {term}")
    if a.does("renew aa-1-1")[1] != "2":
        raise AssertionError("a has lost something")


def case_slow_end(w):
    """S1: the old session takes its time to end: the renewal that has ended it waits, and is not
    given up while the lock can become free (fast=1)."""
    wire = Wire(w.info["port"])
    a = Puppet(w, w.at(fast="1").replace(w.info["port"], str(wire.port)))
    a.does("open aa-1-1 30000")
    a.does("claim aa-1-1 e")
    old = int(w.psql(LOCKS).split("|")[0])
    term = w.term()
    w.candidate("b", w.at(fast="1"), lease="30s")
    follows(w, "b", "puppet")
    settled(w, 1)
    wire.cut()
    os.kill(old, signal.SIGSTOP)
    try:
        a.begin("@2000 renew aa-1-1")
        stays(lambda: True, 1, "it ends")
    finally:
        os.kill(old, signal.SIGCONT)
    got = a.end()
    if got[0] != "ok":
        raise AssertionError(got)
    stays(lambda: w.term() == term and w.leader() == "puppet", 2, f"a leads in term {term}")


def case_examined(w):
    """S7: to examine the store on a handle that leads gives none of its locks away."""
    for n, options in enumerate(({"fast": "1"}, {"mode": "advisory"})):
        a = Puppet(w, w.at(**options))
        a.does(f"open a{n}-1-1 30000")
        a.does(f"claim a{n}-1-1 e{n}")
        locks = w.psql(LOCKS)
        a.does("examine")
        if not locks or w.psql(LOCKS) != locks:
            raise AssertionError(f"{locks} became {w.psql(LOCKS)}")
        # Nor does it leave a session that a successor would have to wait for.
        a.does("watch e", "0")
        a.does("wait 5000", "1")
        a.does("wait 1000", "0")
        if w.psql("SELECT count(*) FROM pg_stat_activity WHERE datname = 'baton' AND pid <> "
                  "pg_backend_pid()") != "1":
            raise AssertionError("it has another session")
        # The other way round: the lease that is tried was there first.
        b = Puppet(w, w.at(**options))
        b.does("open bb-ffffffff-1 30000")
        b.does(f"open b{n}-1-1 30000")
        b.does("close bb-ffffffff-1")
        b.does(f"claim b{n}-1-1 f{n}")
        if w.psql(LOCKS).count("\n") <= locks.count("\n"):
            raise AssertionError("b has no lock: " + w.psql(LOCKS))
        w.stop()


def case_old_claim(w):
    """A campaign on a lease that is over, which comes when the next one has been opened, takes no
    locks from that one."""
    for n, options in enumerate(({"fast": "1"}, {"mode": "advisory"})):
        a = Puppet(w, w.at(**options))
        a.does(f"open a{n}-1-f 30000")
        a.does(f"claim a{n}-1-f e{n}")
        a.does(f"open a{n}-1-10 30000")
        a.does(f"claim a{n}-1-10 e{n}")
        locks = w.psql(LOCKS)
        a.does(f"claim a{n}-1-f f{n}", "refused")
        if not locks or w.psql(LOCKS) != locks:
            raise AssertionError(f"{locks} became {w.psql(LOCKS)}")
        w.stop()


def case_failed_claim(w):
    """S7: a claim that fails, and can't be put right at once, takes no session with it."""
    a = Puppet(w, w.at(mode="advisory"))
    a.does("open aa-1-1 30000")
    a.does("claim aa-1-1 e")
    locks = w.psql(LOCKS)
    with w.session("BEGIN; LOCK TABLE baton.election; SELECT 'locked';") as stranger:
        stranger.stdout.readline()
        a.does("@1500 claim aa-1-1 other", "failed")
        if w.psql(LOCKS) != locks:
            raise AssertionError(f"{locks} became {w.psql(LOCKS)}")
        stranger.stdin.close()
    a.does("renew aa-1-1")
    a.does("claim aa-1-1 other")


def stop_listener(w, a):
    """The session that listens is stopped, and the next wait has to ask it something."""
    pid = int(w.psql("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted UNION "
                     "SELECT pid FROM pg_stat_activity WHERE query LIKE '/* baton_listen %'"))
    a.does("history e")
    w.psql("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE query LIKE "
           "'/* baton_history %' AND pid <> pg_backend_pid()")
    os.kill(pid, signal.SIGSTOP)
    a.does("history e")
    return pid


def case_slow_watch(w):
    """Who was not answered in time once, hears again when the server is well: also who only
    watches, or has not renewed since."""
    for lease in ("", "aa-1-1"):
        a = Puppet(w, w.at(fast="1"))
        if lease:
            a.does(f"open {lease} 60000")
        a.does("watch e", "0")
        a.does("wait 5000", "1")
        pid = stop_listener(w, a)
        try:
            a.begin("wait 4000")
            if int(a.end()[0]) >= 0:
                raise AssertionError("it was answered")
        finally:
            os.kill(pid, signal.SIGCONT)
        a.does("wait 9000", "1")
        w.stop()


def case_woken_watch(w):
    """The watch lane comes back when it is called, also while it waits for the holder's session."""
    a = Puppet(w, w.at(fast="1"))
    a.does("open aa-1-1 60000")
    a.does("watch e", "0")
    a.does("wait 5000", "1")
    pid = stop_listener(w, a)
    try:
        a.begin("wait 9000")
        stays(lambda: True, 0.3, "it waits")
        a.p.send_signal(signal.SIGUSR1)
        got = a.end()
    finally:
        os.kill(pid, signal.SIGCONT)
    if int(got[1]) > 1200:
        raise AssertionError(f"after {got[1]} ms")


def case_unsent(w):
    """What could not be sent in time is sent when there is room, and the session is kept."""
    # A Unix socket has room for less.
    a = Puppet(w, f"postgres://baton@/baton?host={w.info['socket']}&port={w.info['port']}&fast=1")
    a.does("open aa-1-1 60000")
    a.does("claim aa-1-1 e")
    locks = w.psql(LOCKS)
    pid = int(locks.split("|")[0])
    os.kill(pid, signal.SIGSTOP)
    try:
        a.does("@500 many aa-1-1 512 1024", "unknown")
    finally:
        os.kill(pid, signal.SIGCONT)
    a.does("@30000 renew aa-1-1")
    if w.psql(LOCKS) != locks:
        raise AssertionError(f"{locks} became {w.psql(LOCKS)}")


def case_quick_end(w):
    """L6: a session that is replaced is not waited for in steps of a tenth of a second."""
    for n, options in enumerate(({"fast": "1"}, {"mode": "advisory"})):
        wire = Wire(w.info["port"])
        a = Puppet(w, w.at(**options).replace(w.info["port"], str(wire.port)))
        a.does(f"open a{n}-1-1 60000")
        a.does(f"claim a{n}-1-1 e{n}")
        took = []
        for _ in range(8):
            wire.cut()
            began = time.monotonic()
            a.does(f"renew a{n}-1-1")
            took.append(time.monotonic() - began)
        print(f"  {options}:", *(f"{s * 1000:.0f}" for s in took), "ms")
        if min(took) > 0.09:
            raise AssertionError(took)
        w.stop()


def case_crashed_term(w):
    """S3: a term that was given is not given again after a crash of the server, though nothing but
    a number was taken from it (mode=advisory&fast=1)."""
    url = w.at(mode="advisory", fast="1")
    writer = int(w.psql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"))
    a = Puppet(w, url)
    b = Puppet(w, url)
    # What nobody waits for is not on the disk by chance.
    os.kill(writer, signal.SIGSTOP)
    term = int(a.does("claim aa-1-1 e")[1])
    w.signal("postgres", "QUIT")
    wait_for(lambda: begins_again(w), "the server to begin again")
    wait_for(lambda: w.psql("SELECT 1") == "1", "the server to answer")
    next_term = int(b.does("claim bb-1-1 e")[1])
    if next_term <= term:
        raise AssertionError(f"term {next_term} after term {term}")


def case_own_limits(w):
    """A session with a lock has no limits from calls that were made on it before."""
    w.psql("CREATE ROLE app LOGIN", "CREATE SCHEMA trap", "CREATE TABLE trap.slow (n int)",
           "GRANT ALL ON SCHEMA trap TO app", "GRANT ALL ON trap.slow TO app",
           "CREATE FUNCTION trap.pg_backend_pid() RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
           "PERFORM pg_sleep(n) FROM trap.slow; RETURN pg_catalog.pg_backend_pid(); END $$",
           "ALTER ROLE app SET search_path = trap, pg_catalog, public")
    a = Puppet(w, w.at("app", mode="advisory", fast="1"))
    a.does("@600 claim aa-1-1 e")
    w.psql("INSERT INTO trap.slow VALUES (2)")
    a.does("renew aa-1-1")
