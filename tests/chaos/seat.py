# seat - who stands in an arena of the chaos rig: one run of `baton run` with its guard, and all
# that can be done to it. Whom to signal is said by descriptors and by looks at the tree of
# processes: never one that only has the number of one of ours.
import collections
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import stall
from judge import Seat

KILL, STOP, CONT, TERM = signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT, signal.SIGTERM
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
MANNERS = "fgdrscq"


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def prctl(option, value):
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def pause(seconds):
    select.select([], [], [], max(0.0, seconds))


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(p) for p in file.read().split()]
    except OSError:
        return []


def descendants(pid):
    found = [pid]
    for p in found:
        found += children(p)
    return found[1:]


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


class Supervisor(Seat):
    """One run of `baton run`, with its guard."""

    def __init__(self, arena, number):
        rng = arena.rng
        super().__init__(arena.may_isolate and rng.random() < 0.12)
        self.number = number
        self.manners = "".join(m for m in MANNERS if rng.random() < (0.08 if m == "q" else 0.35))
        self.guard = self.guard_fd = None
        self.lease_ms = rng.choice(arena.options.leases_ms)
        self.waits = collections.deque(maxlen=1000)  # (when, how long its guard had waited by then)
        options = ["--store=" + arena.store_of(number), f"--id=seat-{number}",
                   "--log-level=error", f"--lease={self.lease_ms}ms",
                   f"--stop-timeout={rng.choice((20, 60, 150))}ms"]
        if self.isolated:
            options.append("--isolate")
        self.process = subprocess.Popen(
            [*arena.prefix(number), arena.options.baton, "run", *options, arena.name, "--",
             arena.options.worker, arena.path, str(number), self.manners,
             *arena.resource(number)], env=arena.env, stdin=subprocess.DEVNULL,
            stdout=arena.log, stderr=arena.log, preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, KILL))

    def find_guard(self):
        """Also the next one, after it has begun anew. By a descriptor: it is never another."""
        for pid in children(self.process.pid):
            if self.guard is None or self.guard != pid:
                self.take_guard(pid)
        return self.guard is not None

    def take_guard(self, pid):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as file:
                is_guard = file.read() == "baton-guard\n"
            if is_guard:
                fd = os.pidfd_open(pid)
                self.done()
                self.guard, self.guard_fd = pid, fd
        except OSError:
            pass

    def done(self):
        if self.guard_fd is not None:
            os.close(self.guard_fd)
        self.guard = self.guard_fd = None

    def signal(self, sig):
        if self.process.returncode is None:
            os.kill(self.process.pid, sig)

    def signal_guard(self, sig):
        try:
            if self.guard_fd is not None:
                signal.pidfd_send_signal(self.guard_fd, sig)
        except ProcessLookupError:
            pass

    def signal_workers(self, sig, pids):
        """Only processes that are still what the look at the tree, or a stamp, says."""
        mark = b"\0%d\0%s\0" % (self.number, self.manners.encode())
        for pid in pids:
            try:
                fd = os.pidfd_open(pid)
            except OSError:
                continue
            try:
                if mark in command_line(pid):
                    signal.pidfd_send_signal(fd, sig)
            except OSError:
                pass
            os.close(fd)

    def workers(self):
        return descendants(self.guard)

    def note_waits(self):
        if self.guard is not None:
            self.waits.append((now(), stall.waited_ns(self.guard)))

    def waited_ms(self, since_ns, until_ns):
        """How long its guard has waited for a core in this time."""
        return stall.waited_ms(list(self.waits), since_ns, until_ns)


class Faults:
    """What can happen to the seat that leads. Each is one act; returns whom to thaw later."""

    def __init__(self, arena):
        self.arena = arena

    def kill_supervisor(self, s):
        s.signal(KILL)

    def kill_guard(self, s):
        s.signal_guard(KILL)

    def kill_child(self, s):
        s.signal_workers(KILL, self.arena.main_of(s))

    def kill_both(self, s):
        s.cuts.append((now(), float("inf")))
        s.signal(KILL)
        s.signal_guard(KILL)

    def kill_all(self, s):
        pids = s.workers()
        self.kill_both(s)
        s.signal_workers(KILL, pids)

    def stop_supervisor(self, s):
        s.signal(STOP)
        return [s.signal]

    def stop_both(self, s):
        s.signal(STOP)
        s.signal_guard(STOP)
        return [s.signal, s.signal_guard]

    def stop_all(self, s):
        pids = s.workers()
        s.signal_workers(STOP, pids)
        s.signal(STOP)
        s.signal_guard(STOP)
        return [lambda sig: s.signal_workers(sig, pids), s.signal_guard, s.signal]

    def stop_child_kill_supervisor(self, s):
        pids = s.workers()
        s.signal_workers(STOP, pids)
        s.signal(KILL)
        return [lambda sig: s.signal_workers(sig, pids)]

    def stop_guard_kill_supervisor(self, s):
        s.signal_guard(STOP)
        s.signal(KILL)
        return [s.signal_guard]

    def stop_guard_end_supervisor(self, s):
        s.signal_guard(STOP)
        s.signal(TERM)
        return [s.signal_guard]

    def stop_supervisor_kill_guard(self, s):
        s.cuts.append((now(), self.arena.judge.term))
        s.signal(STOP)
        s.signal_guard(KILL)
        return [s.signal]

    def end_supervisor(self, s):
        s.signal(TERM)

    def resign(self, s):
        self.arena.baton("resign", "--quiet=100ms", self.arena.name)

    def quit(self, s):
        """Its main process leaves by itself, and the others behind: see `round`."""


# How often each is dealt. Those who freeze somebody cost a lease or two.
DECK = {"kill_supervisor": 5, "kill_guard": 3, "kill_child": 3, "kill_both": 5, "kill_all": 2,
        "stop_supervisor": 2, "stop_both": 1, "stop_all": 1, "stop_child_kill_supervisor": 2,
        "stop_guard_kill_supervisor": 1, "stop_guard_end_supervisor": 1,
        "stop_supervisor_kill_guard": 1, "end_supervisor": 2, "resign": 2, "blink": 2}
# After these nobody who knows of the work can act: in contract only where there is a work lock.
NEEDS_LOCK = {"stop_both", "stop_all", "stop_guard_kill_supervisor"}


def kinds(options):
    return [kind for kind in DECK if kind in options.faults
            and (options.has_work_lock or not options.in_contract or kind not in NEEDS_LOCK)]
