# stall - did the machine stand still? No process can end another in time while it isn't let run.
#
# On each core a canary naps a few milliseconds at a time, and writes down every nap that was
# longer. And the kernel counts how long a process has waited for a core (schedstat): of the guards
# that is looked at. What an overlap is called depends on both; nothing of it is kept quiet.
#
# A stall excuses nobody where the kernel's own lock is in the way of a second child, nor two who
# lead one term: no guard has to run for either. And it excuses work for as long as it lasted.
import ctypes
import os
import select
import signal
import struct
import time

NAP_S = 0.005
LATE_NS = 20_000_000  # what any scheduler may take
NAP = struct.Struct("=QQI")  # from, to, core
DRIFT = 0.1  # of a lease: what a guard that is let run late may cost
WINDOW = 0.3  # of a lease: from when the guard has to act to when the lease is over, and some more


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def sing(core, path):
    """For ever: a nap after the other, on one core."""
    try:
        os.sched_setaffinity(0, {core})
    except OSError:
        pass
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    os.write(fd, NAP.pack(0, 0, core))
    while True:
        began = now()
        select.select([], [], [], NAP_S)
        ended = now()
        if ended - began > LATE_NS:
            os.write(fd, NAP.pack(began, ended, core))


def start(path):
    """A canary on each core; they end with this process."""
    pids = []
    for core in sorted(os.sched_getaffinity(0)):
        pid = os.fork()
        if pid == 0:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            try:
                sing(core, path)
            finally:
                os._exit(1)
        pids.append(pid)
    return pids


def stop(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)  # our child, which nobody else reaps
        os.waitpid(pid, 0)


def naps(path):
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return []
    return list(NAP.iter_unpack(data[:len(data) // NAP.size * NAP.size]))


def still_ms(path, since_ns, until_ns):
    """For how long in this time all cores were away: the least of each core's longest nap."""
    longest = {}
    for begin, to, core in naps(path):
        part = min(to, until_ns) - max(begin, since_ns)
        longest[core] = max(longest.get(core, 0), part)
    return min(longest.values(), default=0) / 1e6


def excuses(overlap, lease_ms, has_work_lock, *waits_ms):
    """The drift's share of the lease is all that there is between the guard's act and its end."""
    late_ms = (overlap.last_ns - overlap.first_ns) / 1e6
    return not has_work_lock and max(DRIFT * lease_ms, late_ms) <= max(waits_ms)


def waited_ms(looks, since_ns, until_ns):
    """How long at most a process waited for a core in this time; by looks (when, how long so far).

    The kernel counts a wait when it is over: what is new in a look may have been going on at the
    look before it, and have begun as much earlier."""
    total = 0
    for (before, old), (at, new) in zip(looks, looks[1:]):
        grown = new - old
        total += max(0, min(grown, min(at, until_ns) - max(before - grown, since_ns)))
    return min(total, until_ns - since_ns) / 1e6


def waited_ns(pid):
    """How long this process has waited for a core, in its whole life; 0: it is gone."""
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
