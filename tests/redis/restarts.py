# restarts.py - cases of tests/redis/run about a server's beginning and its end: a new one, one that
# was restarted with and without its data, one whose clock was set back; and what stays on it.
import os
import re
import shutil
import signal
import subprocess
import time

from rig import BATON, LIMIT_S, stays, wait_for
from world import MAX_LEASE_MS, now_ms, uptime_s


def case_new_server(w):
    """A server that has just begun may have forgotten leases: nobody wins before they are over."""
    began = now_ms() - (uptime_s(w) + 1) * 1000
    w.candidate("a", w.url())
    wait_for(lambda: "this Redis started" in w.said("a"), "the reason")
    w.leads(w.url())
    first = w.check_work()[0][1]
    if first - began < MAX_LEASE_MS:
        raise AssertionError(f"led {first - began} ms after the server began")


def case_first_leader(w):
    """A new server as it comes, a new user: one line says what is waited for, and for how long."""
    url = w.info["url"]
    w.candidate("a", url, lease="15s")
    wait_for(lambda: "waits" in w.said("a"), "the reason")
    words = r"waits (\d+) s: this Redis started \d+ s ago and may have lost leases; durable=1 if it"
    wait_s = int(re.search(words, w.said("a"))[1])
    status = w.status(url)
    if status["leader"] or not 0 < status["wait_ms"] <= 31000 or "leases" not in status["wait"]:
        raise AssertionError(status)
    if not re.search("^waits +" + words[6:], w.baton("status", "--store=" + url, "e").stdout, re.M):
        raise AssertionError("status doesn't say it")
    watch = subprocess.run(["timeout", "2", BATON, "watch", "--store=" + url, "e"], env=w.env,
                           text=True, capture_output=True, timeout=LIMIT_S, check=False).stdout
    if len(re.findall(words, watch)) != 1:
        raise AssertionError(watch)
    w.leads(url)
    up_s = uptime_s(w)
    said = w.said("a").split("\n")
    if wait_s > 31 or up_s > 35 or "waits" not in said[0] or "leads e" not in "".join(said[1:3]):
        raise AssertionError((wait_s, up_s, said))


def case_first_leader_durable(w):
    """A person says that the server keeps what it acknowledges: nobody waits."""
    url = w.info["url"] + "?durable=1"
    w.candidate("a", url, lease="15s")
    w.leads(url)
    if uptime_s(w) > 15 or "waits" in w.said("a"):
        raise AssertionError((uptime_s(w), w.said("a")))


def case_gives_up_waiting(w):
    """Whoever has no time to wait is told why nobody leads."""
    done = w.baton("run", "--store=" + w.info["url"], "--wait=1s", "e", "--", "true")
    if done.returncode != 69 or "gives up waiting for e: this Redis started" not in done.stderr:
        raise AssertionError((done.returncode, done.stderr))


def lose_data(w):
    """The server is killed, and started again with nothing."""
    w.signal("redis", "KILL")
    shutil.rmtree(os.path.join(w.dir, "redis"))
    os.mkdir(os.path.join(w.dir, "redis"))
    w.again("redis", w.info["port"])


def case_lost_data(w):
    """Leader and data are gone together: whoever comes next waits for the longest lease."""
    a = w.candidate("a", w.url())
    term = w.leads(w.url())
    w.candidate("b", w.url())
    a.kill()
    a.wait()
    restarted = now_ms()
    lose_data(w)
    w.leads(w.url(), term)
    began = w.next_work(restarted)
    if began - restarted < MAX_LEASE_MS:
        raise AssertionError(f"a new leader {began - restarted} ms after the restart")


def case_claimed_again(w):
    """The data is gone, and the leader is there: it claims its place again, and leads on."""
    url = w.url(max_lease=8000)
    w.candidate("a", url, lease="8s")
    term = w.leads(url)
    w.candidate("b", url, lease="8s")
    wait_for(lambda: "led by a" in w.said("b"), "b to see the leader")
    lose_data(w)
    if w.leads(url) != term:
        raise AssertionError("another term")
    restored = w.status(url)
    if restored["leader"] != "a":
        raise AssertionError(restored)
    wait_for(lambda: w.baton("candidates", "--store=" + url, "e").stdout.count("\n") >= 3,
             "both to be shown again")
    # Beyond all leases of before: it isn't by chance.
    stays(lambda: len(w.spans()) == 1 and "no longer leads" not in w.said("a"), 10, "a leads on")
    w.started[0].terminate()
    w.leads(url, term)
    w.check_work()


def case_claimed_too_late(w):
    """Somebody else has led since: the server knows a higher term, and the old one is refused."""
    url = w.url(max_lease=8000)
    a = w.candidate("a", url, lease="8s")
    term = w.leads(url)
    a.send_signal(signal.SIGSTOP)
    lose_data(w)
    w.cli(w.info["port"], "HSET", "{baton}:election:e", "term", str(term + 5))
    a.send_signal(signal.SIGCONT)
    wait_for(lambda: "no longer leads" in w.said("a"), "a to give up")
    if w.leads(url, term) <= term + 5:
        raise AssertionError("the term was not above what the server knew")
    w.check_work()


def case_deleted(w):
    """What is deleted on a living server is not claimed again."""
    url = w.url()
    w.candidate("a", url)
    term = w.leads(url)
    w.cli(w.info["port"], "FLUSHALL")
    wait_for(lambda: "no longer leads" in w.said("a"), "a to give up")
    w.leads(url, term)
    w.check_work()


def case_kept_data(w):
    """Restarted at once, with all data: the leader leads on, and nobody else does."""
    url = w.url(max_lease=6000)
    w.candidate("a", url, lease="6s")
    term = w.leads(url)
    w.candidate("b", url, lease="6s")
    w.signal("redis", "KILL")
    w.again("redis", w.info["port"])
    stays(lambda: w.term_of_leader(url) in (0, term), 8, f"led in term {term}")
    if len(w.check_work()) != 1 or "no longer leads" in w.said("a"):
        raise AssertionError(w.said("a"))


def case_clock_set_back(w):
    """What was to be waited for by a clock that was ahead is not: a longest lease does."""
    w.candidate("a", w.url())
    term = w.leads(w.url())
    w.started[0].terminate()
    w.started[0].wait(LIMIT_S)
    w.cli(w.info["port"], "HSET", "{baton}:namespace", "until", str(now_ms() + 3 * 3600 * 1000))
    w.candidate("b", w.url())
    w.leads(w.url(), term)


def prolong(w, *owners):
    """The leases of these end in an hour, as if the server's clock had been set back."""
    for key in w.cli(w.info["port"], "KEYS", "{baton}:lease:*").split():
        if w.cli(w.info["port"], "HGET", key, "owner") in owners:
            w.cli(w.info["port"], "PEXPIRE", key, "3600000")


def case_clock_set_back_at_death(w):
    """A dead leader's lease that ends in an hour by the clock ends with the longest lease."""
    a = w.candidate("a", w.url())
    term = w.leads(w.url())
    w.candidate("b", w.url())
    wait_for(lambda: "led by a" in w.said("b"), "b to see the leader")
    a.kill()
    prolong(w, "a")
    a.wait()
    w.leads(w.url(), term)
    # And where nobody stood by: whoever comes later.
    term = w.leads(w.url())
    w.started[1].kill()
    prolong(w, "b")
    w.candidate("c", w.url())
    w.leads(w.url(), term)
    # What is kept for another isn't kept for an hour, either.
    term = w.leads(w.url())
    w.cli(w.info["port"], "HSET", "{baton}:election:f", "term", "7", "reserved_for", "nobody",
          "reserved_ms", "1500", "reserved_until", str(now_ms() + 3600 * 1000))
    kept = w.baton("run", "--store=" + w.url(), "--lease=1s", "--wait=20s", "f", "--", "true")
    if kept.returncode != 0:
        raise AssertionError(kept)
    w.check_work()


def case_nothing_stays(w):
    """Whoever ends in order leaves nothing but term, history and name of an election."""
    url = w.url(durable=1)
    for name in ("one", "two", "three"):
        done = w.baton("run", "--store=" + url, "--lease=1s", name, "--", "true")
        if done.returncode != 0:
            raise AssertionError(done)
    for name in ("a", "b"):
        w.candidate(name, url)
    wait_for(lambda: w.cli(w.info["port"], "HLEN", "{baton}:candidates:e") == "2", "both")
    w.stop()
    kinds = sorted(key.split(":")[1] for key in w.cli(w.info["port"], "KEYS", "*").split())
    if kinds != ["election"] * 4 + ["elections"] + ["history"] * 4 + ["namespace"]:
        raise AssertionError(w.cli(w.info["port"], "KEYS", "*"))


def case_durable(w):
    """The guard is for those who need it: with durable=1 a restart costs no time."""
    url = w.url(durable=1, max_lease=30000)
    w.candidate("a", url)
    term = w.leads(url)
    w.started[0].send_signal(signal.SIGKILL)
    w.signal("redis", "KILL")
    w.again("redis", w.info["port"])
    w.candidate("b", url)
    began = time.monotonic()
    w.leads(url, term)
    if time.monotonic() - began > 15:
        raise AssertionError("waited as if the server forgot")


def case_scripts_flushed(w):
    w.candidate("a", w.url(), lease="3s")
    term = w.leads(w.url())
    stays(lambda: w.cli(w.info["port"], "SCRIPT", "FLUSH") == "OK", 5, "flushed")
    if w.leads(w.url()) != term or "no longer leads" in w.said("a"):
        raise AssertionError(w.said("a"))
