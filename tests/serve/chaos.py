# chaos.py: sidecars with programs beside them, all of which are killed and frozen, and their store
# with them, while leaderships are resigned and transferred; and the judge of what the programs have
# written. It stops by itself.
import contextlib
import heapq
import itertools
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from rigging import LIMIT_S, Missing, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = ("lead", "told", "page")  # one election for each way to know
CANDIDATES = 3
LEASE = "--lease=2s"


class Redis:
    """A server that keeps what it has said yes to, also when it is killed."""

    def __init__(self, w):
        self.program = shutil.which("redis-server")
        if self.program is None:
            raise Missing("redis-server")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.folder = w.path("redis")
        os.mkdir(self.folder)
        self.world = w
        self.process = None
        self.start()
        self.url = f"redis://127.0.0.1:{self.port}?durable=1"

    def start(self):
        self.process = self.world.popen(
            [self.program, "--port", str(self.port), "--dir", self.folder, "--appendonly", "yes",
             "--appendfsync", "always", "--save", "", "--bind", "127.0.0.1"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ready(self):
        def answers():
            with contextlib.suppress(OSError), \
                    socket.create_connection(("127.0.0.1", self.port), 1) as c:
                c.sendall(b"PING\r\n")
                return c.recv(10).startswith(b"+PONG")
        wait_for(answers, "redis")
        return self


class Sidecar:
    """One candidate: `baton serve`, and a program for each way."""

    def __init__(self, w, number, program, url, stamps):
        self.world, self.id, self.program, self.url = w, f"s{number}", program, url
        self.socket, self.pages = w.path(self.id + ".sock"), w.path(self.id)
        self.stamps = stamps
        self.process = None
        self.witnesses = {}
        self.start()
        for way in WAYS:
            self.watch(way)

    def start(self):
        with open(self.world.path(self.id + ".log"), "a", encoding="utf-8") as log:
            self.process = self.world.popen(
                [self.program, "serve", LEASE, f"--store={self.url}", f"--id={self.id}",
                 f"--socket={self.socket}", f"--page-dir={self.pages}", *WAYS], stderr=log)

    def watch(self, way):
        self.witnesses[way] = self.world.popen(
            [sys.executable, os.path.join(HERE, "witness.py"), way, way, self.socket,
             os.path.join(self.pages, way + ".page"), self.id, self.stamps])

    def order(self, way, verb, body):
        """By HTTP, on a thread of its own: whom it is given to may be frozen."""
        def give():
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as c:
                c.settimeout(2)
                c.connect(self.socket)
                c.sendall((f"POST /v1/elections/{way}/{verb}?any=1 HTTP/1.1\r\nHost: baton\r\n"
                           "Content-Type: application/json\r\nBaton-Request: 1\r\n"
                           f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
                c.recv(4096)
        threading.Thread(target=give, daemon=True).start()


def signal_to(process, sig):
    if process.poll() is None:
        process.send_signal(sig)


def read_stamps(path):
    with open(path, encoding="ascii") as file:
        for line in file:
            way, who, term, at_ns = line.split()
            yield way, who, int(term), int(at_ns)


def judge(path):
    """(failovers, overlaps): each term is the work of one, and ends before the next begins."""
    terms = {}
    for way, who, term, at_ns in read_stamps(path):
        row = terms.setdefault((way, term), [who, at_ns, at_ns, False])
        row[1], row[2] = min(row[1], at_ns), max(row[2], at_ns)
        row[3] = row[3] or row[0] != who
    failovers = overlaps = 0
    for way in WAYS:
        last = None
        for key in sorted(k for k in terms if k[0] == way):
            who, first_ns, last_ns, is_shared = terms[key]
            overlaps += is_shared
            if last is not None:
                failovers += 1
                overlaps += first_ns <= last
                if first_ns <= last:
                    print(f"overlap: {way}, term {key[1]} of {who} begins "
                          f"{(last - first_ns) / 1e6:.1f} ms before the last word of another")
            last = max(last or 0, last_ns)
    return failovers, overlaps


class Chaos:
    def __init__(self, w, program, seed, redis=None):
        self.random = random.Random(seed)
        self.redis = redis
        self.stamps = w.path("stamps")
        self.later = []
        self.ticket = itertools.count()
        url = redis.url if redis is not None else "file:" + w.path("store")
        self.sidecars = [Sidecar(w, i, program, url, self.stamps) for i in range(CANDIDATES)]

    def after(self, delay_s, act):
        heapq.heappush(self.later, (time.monotonic() + delay_s, next(self.ticket), act))

    def victim(self):
        """The one that has worked last, or any."""
        with contextlib.suppress(OSError, IndexError):
            with open(self.stamps, "rb") as file:
                file.seek(max(0, os.path.getsize(self.stamps) - 200))
                who = file.read().decode().split("\n")[-2].split()[1]
            if self.random.random() < 0.7:
                return next(s for s in self.sidecars if s.id == who)
        return self.random.choice(self.sidecars)

    def freeze(self, process, most_s):
        signal_to(process, signal.SIGSTOP)
        self.after(self.random.uniform(0.1, most_s), lambda: signal_to(process, signal.SIGCONT))

    def kill_sidecar(self):
        s = self.victim()
        signal_to(s.process, signal.SIGKILL)
        s.process.wait(LIMIT_S)
        s.start()

    def freeze_sidecar(self):
        self.freeze(self.victim().process, 4)

    def kill_witness(self):
        s, way = self.victim(), self.random.choice(WAYS)
        signal_to(s.witnesses[way], signal.SIGKILL)
        s.witnesses[way].wait(LIMIT_S)
        s.watch(way)

    def freeze_witness(self):
        self.freeze(self.victim().witnesses[self.random.choice(WAYS)], 3)

    def resign(self):
        self.random.choice(self.sidecars).order(self.random.choice(WAYS), "resign", "{}")

    def transfer(self):
        to = self.random.choice(self.sidecars).id
        self.random.choice(self.sidecars).order(self.random.choice(WAYS), "transfer",
                                                f'{{"to":"{to}"}}')

    def freeze_store(self):
        self.freeze(self.redis.process, 3)

    def kill_store(self):
        signal_to(self.redis.process, signal.SIGKILL)
        self.redis.process.wait(LIMIT_S)
        self.redis.start()

    def run(self, seconds, faults):
        until = time.monotonic() + seconds
        tick = threading.Event()
        due = time.monotonic() + 2
        while time.monotonic() < until:
            while self.later and self.later[0][0] <= time.monotonic():
                heapq.heappop(self.later)[2]()
            if time.monotonic() >= due:
                due = time.monotonic() + self.random.uniform(0.2, 1.2)
                getattr(self, self.random.choice(faults))()
            tick.wait(0.01)
        while self.later:
            heapq.heappop(self.later)[2]()


ALL = ("kill_sidecar", "freeze_sidecar", "kill_witness", "freeze_witness", "resign", "transfer")


def run_chaos(w, program, seconds, faults, redis=None):
    """(failovers, overlaps), which its last line says, too."""
    seed = int(os.environ.get("SEED", time.time_ns() % 10 ** 6))
    print(f"seed {seed} ({seconds} s of {', '.join(faults)})")
    chaos = Chaos(w, program, seed, redis)
    chaos.run(seconds, faults)
    failovers, overlaps = judge(chaos.stamps)
    ways = sorted({s[0] for s in read_stamps(chaos.stamps)})
    print(f"{failovers} failovers, {overlaps} overlaps")
    assert ways == sorted(WAYS), ways  # nobody was blind
    return failovers, overlaps
