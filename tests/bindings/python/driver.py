# driver.py - the Python binding, driven by lines (tests/bindings/README.md): what a scenario asks
# for is done as a user of the binding would do it.
#
# Bodies run as threads; with BATON_TEST_ASYNC=1 the loops are tasks of one asyncio loop, on a
# thread of its own. It must never decide anything by itself: the scenarios do.
import asyncio
import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
import urllib.parse
import warnings

import baton
from baton import _lib

SAFE = "-._~:/=,?&@+"
ASYNC = os.environ.get("BATON_TEST_ASYNC") == "1"
OPTIONS_MS = {"lease_ms": "lease", "renew_ms": "renew", "grace_ms": "grace", "retry_ms": "retry",
              "preempt_ms": "preempt", "work_timeout_ms": "work_timeout"}
FLAGS = ("manual", "observe_only", "release_on_stop", "step_down_unhealthy", "outlive")
HEARD = ("became", "lost", "stopped")

out_lock = threading.Lock()
stores, elections, leads, finish, children = {}, {}, {}, {}, []
readers, started = {}, set()


class Skip(Exception):
    """This can't be done in Python."""


def quoted(word):
    text = os.fsencode(word) if isinstance(word, str) else str(word).encode()
    return urllib.parse.quote_from_bytes(text, SAFE) or "%"


def unquoted(word):
    return "" if word == "%" else os.fsdecode(urllib.parse.unquote_to_bytes(word))


def say(*words):
    with out_lock:
        sys.stdout.write(" ".join(quoted(w) if w != "!" else w for w in words) + "\n")
        sys.stdout.flush()


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def tell_end(e, error):
    if error is None:
        say("!", "end", e, "stopped")
    elif isinstance(error, baton.BatonError):
        say("!", "end", e, "error", error.name, int(error.code), str(error))
    else:
        say("!", "end", e, "raised", str(error))


def named(lead):
    name = f"L{len(leads) + 1}"
    leads[name] = lead
    return name


# ---- bodies ----

def spin(e, lead, pause):
    """Says each yes with the instants before and after the question."""
    last = None
    while not lead.lost.is_set():
        t0 = now_ns()
        if not lead.leads:
            break
        last = (t0, now_ns())
        say("!", "yes", e, lead.term, *last)
        yield pause


async def tick(seconds):
    """Lets others run; cancelled like everything that is awaited."""
    try:
        await asyncio.wait_for(asyncio.Event().wait(), seconds)
    except asyncio.TimeoutError:
        pass


def body(e, mode, lead):
    name = named(lead)
    say("!", "enter", e, name, lead.term, now_ns())
    how = "raised"
    try:
        if mode == "raise":
            raise ValueError("the body failed")
        if mode == "stop":
            lead.election.stop(0)
        if mode == "spin":
            for pause in spin(e, lead, 0.001):
                lead.wait(pause)
        while not lead.wait(0.005 if mode == "until" else None):
            if mode == "until" and finish[e].is_set():
                how = "returned"
                return
        say("!", "lost", e, name, now_ns())
        how = "cancelled"
        if mode == "stubborn":
            finish[e].wait()
            how = "returned"
    finally:
        finish[e].clear()
        say("!", "leave", e, name, how, now_ns())


async def body_async(e, mode, lead):
    name = named(lead)
    say("!", "enter", e, name, lead.term, now_ns())
    how = "raised"
    try:
        if mode == "raise":
            raise ValueError("the body failed")
        if mode == "stop":
            await lead.election.stop_async(0)
        if mode == "spin":
            for pause in spin(e, lead, 0.001):
                await tick(pause)
        while mode != "until" or not finish[e].is_set():
            await tick(0.005 if mode == "until" else 3600)
        how = "returned"
    except asyncio.CancelledError:
        say("!", "lost", e, name, now_ns())
        if mode != "stubborn":
            how = "cancelled"
            raise
        while not finish[e].is_set():
            await tick(0.005)
        how = "returned"
    finally:
        finish[e].clear()
        say("!", "leave", e, name, how, now_ns())


def loop_in_thread(e, mode):
    error = None
    try:
        elections[e].run(lambda lead: body(e, mode, lead))
    except BaseException as caught:  # pylint: disable=broad-except
        error = caught
    tell_end(e, error)


async def loop_in_task(e, mode):
    error = None
    try:
        await elections[e].run_async(lambda lead: body_async(e, mode, lead))
    except BaseException as caught:  # pylint: disable=broad-except
        error = caught
    tell_end(e, error)


# ---- requests ----

def do_hello():
    return "python", baton.version(), _lib.version_number()


def options_of(pairs):
    options = {}
    for pair in pairs:
        key, value = pair.split("=", 1)
        options[OPTIONS_MS.get(key, key)] = int(value) / 1000 if key in OPTIONS_MS else \
            int(value) == 1 if key in FLAGS else int(value) if key == "priority" else value
    return options


def do_open(s, url, *pairs):
    stores[s] = baton.Store(url, **options_of(pairs))
    return (stores[s].id,)


def do_election(e, s, name, *pairs):
    options = options_of(pairs)
    hears = options.pop("hear_ms", None) is not None
    if "inside" in options:
        raise Skip("events are read: there are no handlers")
    elections[e] = stores[s].election(name, **options)
    if hears:
        readers[e] = elections[e].events()
    finish[e] = threading.Event()
    return (elections[e].name,)


def do_promises(s):
    return (stores[s].promises,)


def do_condition(e):
    found, _ = elections[e].condition()
    return (found.name.lower(),)


def do_alive(e, _lead):
    elections[e].alive()


def do_heard(e):
    heard = []
    for event in readers[e] if e in started else ():
        if event.kind.name.lower() in HEARD:
            heard.append(event.kind.name.lower())
        if event.kind == baton.EventKind.STOPPED:
            break
    return heard


def do_start(e):
    elections[e].start()
    started.add(e)


def do_run(e, mode):
    if ASYNC:
        asyncio.run_coroutine_threadsafe(loop_in_task(e, mode), the_loop)
    else:
        threading.Thread(target=loop_in_thread, args=(e, mode), daemon=True).start()


def do_finish(e):
    finish[e].set()


def do_await(e, limit_ms):
    with elections[e].acquire(int(limit_ms) / 1000) as lead:
        return (lead.term,)


def do_enter(e):
    lead = elections[e].enter()
    return named(lead), lead.term


def do_leave(name):
    leads[name].leave()


def found(name):
    return leads.get(name) or elections[name] if name not in leads else leads[name]


def do_leads(name):
    return (int(found(name).leads),)


def do_lost(name):
    return (int(leads[name].lost.is_set()),)


def do_awaitlost(name, limit_ms):
    if not leads[name].wait(int(limit_ms) / 1000):
        raise baton.BatonError(baton.Code.TIMEOUT, "it is not lost")
    return (now_ns(),)


def do_term(name):
    return (found(name).term,)


def do_left(name):
    return (round(found(name).time_left * 1000),)


def do_status(e):
    status = elections[e].status()
    return status.state.name.lower(), status.leader, status.term


def do_candidates(s, name):
    return [f"{c.id}={int(c.leads)},{int(c.healthy)},{round(c.score * 1000)},{c.metadata}"
            for c in stores[s].candidates(name)]


def observes(s, store, name):
    try:
        observed = store.observe(name)
        say("!", "observed", s, "leader", observed.leader, observed.term)
    except baton.BatonError as error:
        say("!", "observed", s, "error", error.name, int(error.code), str(error))


def do_observe(s, name):
    threading.Thread(target=observes, args=(s, stores[s], name), daemon=True).start()


def do_try(e, limit_ms):
    return (int(elections[e].try_acquire(int(limit_ms) / 1000)[0]),)


def do_resign(e, quiet_ms):
    elections[e].resign(int(quiet_ms) / 1000)


def do_transfer(e, candidate):
    elections[e].transfer(candidate)


def do_health(e, score, *metadata):
    elections[e].report_health(int(score) / 1000, *metadata)


def do_order(s, what, name, *candidate):
    verb = "order_" + what if what in ("resign", "transfer") else what
    getattr(stores[s], verb)(name, *candidate)


def do_stop(e, limit_ms):
    elections[e].stop(int(limit_ms) / 1000)


def do_close(s):
    stores.pop(s).close()


def do_constants():
    pairs = [f"{prefix}{constant.name}={int(constant)}" if constant.name != "OK" else "BATON_OK=0"
             for kind, prefix in _lib.PREFIXES.items() for constant in kind]
    pairs += [f"BATON_{name}={getattr(_lib, name)}"
              for name in ("NAME_MAX", "METADATA_MAX", "WAIT_MAX", "NOTE_MAX")]
    return pairs + [f"{name}.{field}={getattr(struct, field).offset}"
                    for name, struct in _lib.STRUCTS.items() for field, *_ in struct._fields_]


def do_fork(e):
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there are threads: that is the test
        pid = os.fork()
    if pid == 0:
        try:
            said = "nothing"
            leads_there = int(elections[e].leads) + sum(lead.leads for lead in leads.values())
            try:
                elections[e].start()
            except baton.BatonError as error:
                said = error.name
            os.write(writer, f"{leads_there} {said}".encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        return answer.read().split()


def do_child():
    children.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE))
    return (children[-1].pid,)


def do_drop(s):
    warnings.simplefilter("always", ResourceWarning)
    store = stores.pop(s)
    for name in [n for n, e in elections.items() if e.store is store]:
        del elections[name]
    for name in [n for n, lead in leads.items() if lead.election.store is store]:
        del leads[name]
    del store
    gc.collect()


def do_lose(name):
    warnings.simplefilter("always", ResourceWarning)
    del leads[name]
    gc.collect()


def do_gc():
    gc.collect()


def do_cycle(n, url):
    for i in range(int(n)):
        with baton.Store(url) as store:
            store.election(f"cycle-{i % 10}").start()


# A C function that does nothing with what it is given, called as baton_term() is.
nothing = _lib._C_SHORT["baton_version_number"]
nothing.restype, nothing.argtypes = ctypes.c_uint64, [ctypes.c_void_p]


class Empty:
    """As Lead.leads is, but the call does nothing."""

    def __init__(self, handle):
        self._e = handle
        self.term = 0

    @property
    def leads(self):
        e = self._e
        return e is not None and nothing(e) == self.term


def do_bench(name, n):
    def best(thing):
        took = []
        for _ in range(5):
            began = time.perf_counter_ns()
            for _ in range(int(n)):
                thing.leads
            took.append((time.perf_counter_ns() - began) / int(n))
        return min(took)
    return round(best(leads[name])), round(best(Empty(leads[name]._e)))


def serve():
    for line in sys.stdin:
        verb, *words = map(unquoted, line.split())
        if verb == "exit":
            sys.exit(int(words[0]))
        try:
            say("ok", *(globals()["do_" + verb](*words) or ()))
        except baton.BatonError as error:
            say("error", error.name, int(error.code), str(error))
        except Skip as why:
            say("skip", str(why))
        except Exception as error:  # pylint: disable=broad-except
            say("error", "other", 0, f"{type(error).__name__}: {error}")
            raise


def main():
    try:
        serve()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        for child in children:
            child.stdin.close()
            child.wait()
    for event in finish.values():
        event.set()
    for store in stores.values():
        store.close()


if ASYNC:
    the_loop = asyncio.new_event_loop()
    threading.Thread(target=the_loop.run_forever, daemon=True).start()
main()
