# world - what the arenas of a store with a server stand on, and all that goes wrong with it: real
# servers (tests/servers), three machines that reach them over a network, a fenced resource that
# every worker writes to, and the weather: one fault after the other, drawn from the seed.
#
# A machine is a network namespace with a cable to the servers' one; at the servers' end a fault
# proxy (tests/relay) listens. Where namespaces aren't allowed, all stand on one network, and a
# partition is a proxy that swallows everything: that is said, loudly.
#
# WORLDS says for each world which faults belong to it, and whether it is in contract. In contract
# no two terms work at once. Out of contract (what the store's page in docs/stores says that it does
# not promise) two may; but terms grow, and the resource refuses what is old. The resource is judged
# in all of them: it stands on a server that nobody hurts, as it would in life.
import collections
import concurrent.futures
import json
import os
import random
import select
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(TESTS, "lib"))
# pylint: disable=wrong-import-position
from judge import MAIN, STAMP, Seat, wrong_writes
from rig import servers
from server import ANSWER_S, Machine, Relay, Server, ip

KILL, STOP, CONT = signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT
MACHINES = 3
HOUR_NS = 3600 * 10**9
PATIENCE_S = 15  # more than it takes the laziest of candidates to say something
NOTHING = "nothing was done"
REFUSAL = "a refusal"
NOBODYS = 20  # leases
RIVAL = 0  # the seat of whoever is none of ours

# kind of tests/servers; what the URL adds; in contract; faults of the servers, and how often each
# is dealt; seconds between two of them; whether there are machines (or only one network); leases in
# ms; elections side by side; for how many seconds at most a leader is left in peace
World = collections.namedtuple(
    "World", "kind query in_contract faults gap_s machines leases arenas peace_s", defaults=(0,))
NETWORK = {"partition": 3, "slow": 2, "lost": 2, "cut": 2, "doubled": 1}
WORLDS = {
    # What it acknowledges is on disk: it may say durable=1, and nobody waits after a restart.
    "redis": World("redis", "durable=1&max_lease=60000", True,
                   {"server_kill": 3, "server_stop": 2, **NETWORK}, (0.5, 2.5), True,
                   "1200,1600,2000", 12),
    # It forgets, and doesn't claim otherwise: nobody wins before the longest lease is over.
    "redis-lost": World("redis", "max_lease=2000", True, {"server_lose": 1, "server_kill": 1},
                        (7, 10), True, "1200,1500,2000", 6),
    "redis-sentinel": World("redis-sentinel", "max_lease=2000", True, {"failover": 1}, (3, 5),
                            False, "1200,1500,2000", 6),
    "redis-cluster": World("redis-cluster", "max_lease=2000", True, {"cluster_failover": 1}, (3, 5),
                           False, "1200,1500,2000", 6),
    # It says durable=1 and lies; all is flushed; guards are frozen. Terms follow the server's
    # clock, so none is granted twice.
    "redis-wild": World("redis", "durable=1&max_lease=60000", False,
                        {"server_lose": 2, "flush": 2, "partition": 1}, (1.5, 3), True,
                        "1200,1600,2000", 8),
    # Its clock is stepped. Once terms are ahead of the clock they count by one, and data that is
    # lost then would allow the same term twice: so nothing is lost here.
    "redis-clock": World("redis", "durable=1&max_lease=60000", False,
                         {"clock_forward": 2, "clock_back": 1, "server_kill": 1, "partition": 1},
                         (1.5, 3), True, "1200,1600,2000", 8),
    "postgres": World("postgres", "", True,
                      {"server_kill": 2, "server_stop": 2, "clock_forward": 1, "clock_back": 1,
                       **NETWORK}, (0.5, 2.5), True, "1500,2000,2500", 8),
    "postgres-advisory": World("postgres", "mode=advisory", True,
                               {"server_kill": 2, "server_stop": 2, "clock_forward": 1,
                                "clock_back": 1, **NETWORK}, (0.5, 2.5), True, "1500,2000,2500",
                               8),
    # A session that ends frees its locks at once, whoever thinks that it still has them.
    "postgres-fast": World("postgres", "fast=1", False,
                           {"server_kill": 2, "terminate": 2, "server_stop": 1, **NETWORK},
                           (1, 2.5), True, "1500,2000,2500", 8),
    "postgres-tableless": World("postgres", "mode=advisory&fast=1", False,
                           {"server_kill": 2, "terminate": 2, "server_stop": 1, **NETWORK},
                           (1, 2.5), True, "1500,2000,2500", 8),
    # What the primary has acknowledged, the standby has: it is promoted once, and all go there.
    "postgres-standby": World("postgres-standby", "", True, {"promote": 1}, (6, 8), False,
                              "1500,2000,2500", 6),
    "postgres-wild": World("postgres", "", False, {"flush": 3, "server_kill": 1, "partition": 1},
                           (2, 4), True, "1500,2000,2500", 6),
    "mariadb": World("mariadb", "poll=200", True,
                     {"server_kill": 2, "server_stop": 2, "clock_forward": 1, "clock_back": 1,
                      **NETWORK}, (0.5, 2.5), True, "1500,2000,2500", 8),
    # Emptied while it runs.
    "mariadb-wild": World("mariadb", "poll=200", False,
                          {"flush": 3, "server_kill": 1, "partition": 1}, (2, 4), True,
                          "1500,2000,2500", 6),
    "s3": World("s3", "poll=200", True, {"server_kill": 2, "server_stop": 2, **NETWORK},
                (0.5, 2.5), True, "1500,2000,2500", 8),
    # Emptied while it runs.
    "s3-wild": World("s3", "poll=200", False, {"flush": 3, "server_kill": 1, "partition": 1},
                     (2, 4), True, "1500,2000,2500", 6),
    # Azurite keeps what it has acknowledged only if it is asked to end.
    # It is one thread of JavaScript, so few are on it.
    "azblob": World("azblob", "poll=500", True, {"server_end": 1, "server_stop": 2, **NETWORK},
                    (1, 3), True, "2000,3000", 3),
    # Killed, it has forgotten the last seconds; or it comes back empty.
    "azblob-wild": World("azblob", "poll=500", False,
                         {"server_lose": 2, "server_kill": 2, "partition": 1}, (2, 4), True,
                         "2000,3000", 3),
    "mssql": World("mssql", "", True,
                   {"server_kill": 2, "server_stop": 2, "clock_forward": 1, "clock_back": 1,
                    **NETWORK}, (0.5, 2.5), True, "1500,2000,2500", 8),
    "mssql-wild": World("mssql", "", False,
                        {"flush": 3, "server_kill": 1, "partition": 1}, (2, 4), True,
                        "1500,2000,2500", 6),
    # It forgets all when it is killed or emptied: nobody wins before the longest lease is over.
    "memcached": World("memcached", "weak=ok&max_lease=2000&poll=200", True,
                       {"server_kill": 1, "server_stop": 2, "flush": 1, **NETWORK}, (1, 3.5), True,
                       "1200,1500,2000", 12),
    # Three members, of which one at a time is hurt, or all die; etcd's own candidates stand beside.
    "etcd": World("etcd-cluster", "", True,
                  {"member_kill": 2, "member_stop": 2, "leader_stop": 2, "leader_change": 2,
                   "all_kill": 1, "compaction": 2, "rival": 3, **NETWORK}, (0.5, 2.5), True,
                  "3000,4000", 8),
    # The cluster's leader, frozen until another one leads, ends leases that live when it thaws: of
    # those who have not lost them while there was none.
    "etcd-stale": World("etcd-cluster", "", True, {"leader_stop": 1}, (7, 9), True,
                        "4000,6000", 8, 40),
    "etcd-stale-new": World("etcd-new-cluster", "", True, {"leader_stop": 1}, (7, 9), True,
                            "4000,6000", 8, 40),
    # The same with Consul, whose sessions last twice as long as they are asked for.
    "consul": World("consul-cluster", "", True,
                    {"member_kill": 2, "member_stop": 2, "leader_change": 2, "all_kill": 1,
                     "rival": 3, **NETWORK}, (0.5, 2.5), True, "3000,4000", 8),
    # A restart is a gap in every watch, too; a candidate of client-go stands beside.
    "kubernetes": World("kubernetes-plain", "", True,
                        {"server_kill": 2, "server_stop": 2, "client_go": 2, **NETWORK}, (1, 4),
                        True, "6000,9000", 3),
    # One server, killed with all that it has acknowledged; its protocol is understood by the proxy.
    "mongodb": World("mongodb", "", True, {"server_kill": 2, "server_stop": 2, **NETWORK},
                     (0.5, 2.5), True, "1500,2000,2500", 10),
    "mongodb-wild": World("mongodb", "", False,
                          {"server_lose": 3, "server_kill": 1, "partition": 1}, (2, 4), True,
                          "1500,2000,2500", 6),
}
# Rules of the fault proxy; {command} is the protocol's word for a request that does something.
RULES = {"slow": "request chance=30 -> late {ms}; reply chance=5 -> delay {ms}",
         "lost": "request {command} chance=10 -> mute; request chance=3 -> stall",
         "cut": "request {command} chance=8 -> cut-after; request chance=4 -> cut; "
                "reply chance=4 -> half",
         "doubled": "request {command} chance=25 -> duplicate"}
# How the proxy understands a store; {command} of the rules; the servers that the resource is on;
# after how many leases at most a dead leader's is over: a new leader of etcd's or Consul's own
# cluster begins them all anew, after which on etcd nobody follows for one more, and Consul's last
# twice as long as they are asked for.
Store = collections.namedtuple("Store", "protocol command resource leases")
STORES = {"redis": Store("resp", "EVALSHA", "redis", 1),
          "postgres": Store("postgres", "batch", "postgres", 1),
          "mssql": Store("tds", "text=UPDATE", "redis", 1),
          "mariadb": Store("mysql", "text=baton_record", "redis", 1),
          "azblob": Store("http", "text=x-ms-blob-type", "redis", 1),
          "s3": Store("http", "text=PUT", "redis", 1),
          "memcached": Store("memcached", "ms", "redis", 1),
          "etcd": Store("h2", "Txn", "redis", 3),
          "consul": Store("http", "text=/v1/txn", "redis", 4),
          "kubernetes": Store("http", "text=fieldManager=baton", "redis", 1),
          "mongodb": Store("mongodb", "update", "redis", 1)}

# The resource in PostgreSQL: the guard that `baton schema postgres --fence` prints, and a table.
RESOURCE = """
CREATE TABLE written (n bigserial PRIMARY KEY, name text, term bigint, seat int);
CREATE TABLE refused (name text, term bigint, seat int);
CREATE FUNCTION chaos_write(name text, term bigint, seat int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        PERFORM baton.fence(name, term);
    EXCEPTION WHEN SQLSTATE 'BATON' THEN
        INSERT INTO refused VALUES (name, term, seat);
        RETURN 0;
    END;
    INSERT INTO written (name, term, seat) VALUES (name, term, seat);
    RETURN 1;
END $$;
"""


class Rival(Seat):
    """Whoever leads without baton; the rig stamps for it."""
    lease_ms = 1000

    @staticmethod
    def note_waits():
        """It has no guard."""

    @staticmethod
    def waited_ms(_since_ns, _until_ns):
        return 0


def stamp_as_rival(path, term):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    os.write(fd, STAMP.pack(term, now, os.getpid(), RIVAL, MAIN, 0))
    os.close(fd)


class Stage:
    """A world that is up."""

    def __init__(self, name, folder, options):
        self.world = WORLDS[name]
        self.folder = folder
        self.rng = random.Random(f"{options.seed}-weather")
        self.kind = name.partition("-")[0]
        self.traits = STORES[self.kind]
        self.build = os.path.dirname(options.worker)
        self.baton = options.baton
        self.elections = []  # (name, path of its stamps)
        self.deck = []
        self.done = collections.Counter()
        self.vain = collections.Counter()  # what was tried, and did nothing
        self.began = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.is_apart = self.world.machines and bool(os.environ.get("CHAOS_NETWORK"))
        self.clock = os.path.join(folder, "clock")
        self.set_clock(0)
        os.chmod(folder, 0o711)  # a server may run as another user
        self.resource = self.store = self.entrance = None
        self.machines = []
        self.relays = []  # of each machine, one for each member
        try:
            self.start(options.seed)
        except BaseException:  # also of servers that can't run here, when others are up
            self.end()
            raise

    def start(self, seed):
        if self.is_apart or os.environ.get("CHAOS_NETWORK"):
            ip("link", "set", "lo", "up")
        self.resource = Server(self.traits.resource, os.path.join(self.folder, "resource"))
        self.make_resource()
        # Where a server that runs as another user can read it.
        preload = shutil.copy(os.path.join(self.build, "chaos_clock.so"), self.folder)
        self.store = Server(self.world.kind, os.path.join(self.folder, "server"),
                            LD_PRELOAD=preload, CHAOS_CLOCK=self.clock,
                            **({"BATON_TEST_PASSWORD": ""}
                               if self.kind in ("mariadb", "memcached", "mssql") else {}))
        # What candidates read by themselves.
        os.environ.update({k[4:]: v for k, v in self.store.info.items() if k.startswith("env.")})
        if self.world.machines:
            for n in range(MACHINES):
                self.machines.append(Machine(n, self.is_apart))
            program = os.path.join(self.build, "relay")
            for n, machine in enumerate(self.machines):
                self.relays.append([])
                for port in self.store.members.values():
                    self.relays[n].append(Relay(program, self.traits.protocol, machine.address,
                                                port, seed + n))
            self.entrance = Relay(program, STORES[self.traits.resource].protocol, "0.0.0.0",
                                  self.resource.port, seed)

    def make_resource(self):
        if self.traits.resource == "postgres":
            script = subprocess.run([self.baton, "schema", "postgres", "--fence"], text=True,
                                    capture_output=True, check=True).stdout
            self.resource.ask(script + RESOURCE)

    # ---- what an arena asks ----

    def url(self, seat=None):
        """As that seat sees the store; without one, from where the servers are."""
        base, more = self.store.info["url"], self.world.query
        if self.kind == "kubernetes":
            return self.kubeconfig(seat)
        if seat is not None and self.machines:
            n = seat % MACHINES
            for port, relay in zip(self.store.members.values(), self.relays[n]):
                base = base.replace(f"127.0.0.1:{port}", f"{self.machines[n].address}:{relay.port}")
            more += "&sslmode=disable" if self.kind == "postgres" else ""
        return base + (("&" if "?" in base else "?") + more.lstrip("&") if more else "")

    def kubeconfig(self, seat):
        """Which server it is stands in a file there: one for each machine."""
        path = self.store.info["url"].partition("kubeconfig=")[2]
        if seat is not None:
            n = seat % MACHINES
            with open(path, encoding="ascii") as file:
                text = file.read().replace(f"127.0.0.1:{self.store.port}",
                                           f"{self.machines[n].address}:{self.relays[n][0].port}")
            path = os.path.join(self.folder, f"kubeconfig{n}")
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        return "kubernetes://default?kubeconfig=" + path

    def prefix(self, seat):
        return self.machines[seat % MACHINES].prefix if self.machines else []

    def resource_of(self, name, seat):
        protocol = STORES[self.traits.resource].protocol
        if not self.machines:
            return f"{protocol}:127.0.0.1:{self.resource.port}:{name}"
        address = self.machines[seat % MACHINES].address
        return f"{protocol}:{address}:{self.entrance.port}:{name}"

    # ---- the weather ----

    def weather(self, is_over):
        """One fault after the other, until that says so."""
        while not is_over():
            self.wait(self.rng.uniform(*self.world.gap_s), is_over)
            if is_over():
                return
            kind = self.deal()
            detail = getattr(self, kind)(is_over) or ""
            if detail == NOTHING:
                self.vain[kind] += not is_over()
                continue
            self.done[kind] += 1
            self.note(f"{kind} {detail}")
            if not self.world.in_contract and self.judge([n for n, _ in self.elections])[1]:
                self.note(f"{REFUSAL} ")

    def deal(self):
        """First of all, and in each turn, those that have never happened."""
        if not self.deck:
            deck = [k for k, n in self.world.faults.items() for _ in range(n)]
            missing = [k for k in self.world.faults if not self.done[k]]
            self.rng.shuffle(deck)
            self.rng.shuffle(missing)
            self.deck = (deck if len(missing) < len(self.world.faults) else []) + missing
        return self.deck.pop()

    def has_seen_all(self):
        """Also asked in the arenas' processes: whether every kind of fault has happened; and out of
        contract, whether the resource has refused something."""
        try:
            with open(os.path.join(self.folder, "weather"), encoding="ascii") as file:
                text = file.read()
        except OSError:
            return False
        needed = [*self.world.faults, *([] if self.world.in_contract else [REFUSAL])]
        return all(f"over is {kind} " in text for kind in needed)

    def note(self, text):
        at = (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self.began) / 1e9
        with open(os.path.join(self.folder, "weather"), "a", encoding="ascii") as file:
            file.write(f"{at:8.3f} s: over is {text}\n")

    @staticmethod
    def wait(seconds, is_over=lambda: False):
        until = time.monotonic() + seconds
        while time.monotonic() < until and not is_over():
            select.select([], [], [], max(0.0, min(0.1, until - time.monotonic())))

    def about_a_lease(self):
        return self.rng.uniform(0.2, 1.6) * max(map(int, self.world.leases.split(","))) / 1000

    @property
    def name(self):
        if self.kind == "azblob":
            return "azurite"
        own = ("redis", "mariadb", "memcached", "s3", "kubernetes", "mssql", "mongodb")
        return self.kind if self.kind in own else "postgres"

    def server_kill(self, _is_over):
        """With all that it has acknowledged."""
        self.store.signal(self.name, KILL)
        self.wait(self.rng.uniform(0, 0.5))
        self.store.again(self.name, self.store.port)

    def server_end(self, _is_over):
        """By itself, in peace: what it has acknowledged is there when it comes back."""
        self.store.signal(self.name, signal.SIGTERM)
        until = time.monotonic() + ANSWER_S
        while not self.store.is_gone(self.name) and time.monotonic() < until:
            self.wait(0.05)
        self.store.again(self.name, self.store.port)

    def server_stop(self, is_over):
        seconds = self.about_a_lease()
        self.store.signal(self.name, STOP)
        self.wait(seconds, is_over)
        self.store.signal(self.name, CONT)
        return f"for {seconds:.3f} s"

    def server_lose(self, _is_over):
        """It comes back empty."""
        self.store.signal(self.name, KILL)
        data = os.path.join(self.store.dir, "data" if self.kind == "azblob" else self.name)
        if self.kind == "azblob":
            shutil.rmtree(data)
        for entry in os.listdir(data) if os.path.isdir(data) else ():
            shutil.rmtree(os.path.join(data, entry), ignore_errors=True)
            if self.kind == "mongodb":  # it makes its file, but no folder for it
                os.mkdir(os.path.join(data, entry))
        self.store.again(self.name, self.store.port)

    def flush(self, _is_over):
        """All data is gone, and the server has noticed nothing."""
        if self.kind == "redis":
            self.store.ask("FLUSHALL")
        elif self.kind == "memcached":
            self.store.ask("flush_all")
        elif self.kind == "s3":
            data = os.path.join(self.store.dir, "data", "baton")
            for entry in os.listdir(data):
                shutil.rmtree(os.path.join(data, entry), ignore_errors=True)
        elif self.kind == "mssql":
            self.store.ask("forget")
        elif self.kind == "mariadb":
            self.store.ask("DROP TABLE baton_record, baton_version")
        else:
            self.store.ask("DROP SCHEMA baton CASCADE")

    def set_clock(self, ns):
        with open(self.clock, "r+b" if os.path.exists(self.clock) else "wb") as file:
            file.write(struct.pack("=q", ns))

    def clock_forward(self, is_over):
        self.jump(HOUR_NS, is_over)

    def clock_back(self, is_over):
        self.jump(-HOUR_NS, is_over)

    def has_jumped(self, ns):
        """Whether the server knows; it may be too busy to say so at once."""
        words = {"redis": "TIME", "mssql": "time",
                 "mariadb": "SELECT UNIX_TIMESTAMP(NOW(6))"}.get(
            self.kind, "SELECT extract(epoch FROM clock_timestamp())")
        for _ in range(10):
            answer = self.store.ask(words).split()
            if answer:
                return abs(float(answer[0]) - time.time() - ns / 1e9) < 60
            self.wait(0.2)
        return False

    def jump(self, ns, is_over):
        self.set_clock(ns)
        if not self.has_jumped(ns):
            raise AssertionError("the server's clock has not jumped")
        # PostgreSQL assumes that no clock jumps back and forth within half a lease (expiry.h).
        least = 0.6 * max(map(int, self.world.leases.split(","))) / 1000
        self.wait(max(self.about_a_lease(), least), is_over)
        self.set_clock(0)  # somebody has seen the mistake: a jump, too

    def partition(self, is_over):
        n = self.rng.randrange(MACHINES)
        seconds = self.about_a_lease()
        cable = self.machines[n].cable
        if cable:
            ip("link", "set", cable, "down")
        else:
            self.tell("hole", self.relays[n])
        self.wait(seconds, is_over)
        if cable:
            ip("link", "set", cable, "up")
        else:
            self.tell("open", self.relays[n])
        return f"of machine {n} for {seconds:.3f} s"

    @staticmethod
    def tell(line, relays):
        for relay in relays:
            relay.tell(line)

    def by_rules(self, kind, is_over):
        ms = int(self.about_a_lease() * 250)
        rules = RULES[kind].format(command=self.traits.command, ms=ms)
        whom = self.relays if self.rng.random() < 0.5 else [self.rng.choice(self.relays)]
        for relays in whom:
            self.tell("rules " + rules, relays)
        self.wait(self.rng.uniform(0.5, 2.5), is_over)
        # Where there is little to say, on until something was said that they are about.
        fired = self.fired(whom)
        end = time.monotonic() + PATIENCE_S
        while not fired and time.monotonic() < end and not is_over():
            self.wait(0.2, is_over)
            fired = self.fired(whom)
        for relays in whom:
            self.tell("rules", relays)
        return f"{fired} times on {len(whom)} machines: {rules}" if fired else NOTHING

    @staticmethod
    def fired(whom):
        return sum(relay.fired() for relays in whom for relay in relays)

    def slow(self, is_over):
        return self.by_rules("slow", is_over)

    def lost(self, is_over):
        return self.by_rules("lost", is_over)

    def cut(self, is_over):
        return self.by_rules("cut", is_over)

    def doubled(self, is_over):
        return self.by_rules("doubled", is_over)

    # ---- failover ----

    def primary(self):
        sentinel = self.store.info["sentinel_ports"].split()[0]
        return self.store.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main",
                              port=sentinel).split("\n")[-1]

    def until(self, condition, what, is_over):
        end = time.monotonic() + ANSWER_S
        while not condition():
            if time.monotonic() > end:
                raise AssertionError("waited in vain for " + what)
            if is_over():
                return
            self.wait(0.1)

    def failover(self, is_over):
        """The primary is killed, the replica promoted, and the old one comes back to follow it."""
        names = {self.store.info["port"]: "redis", self.store.info["replica_port"]: "replica"}
        old = self.primary()
        self.store.signal(names[old], KILL)
        self.until(lambda: self.primary() != old, "a failover", is_over)
        self.store.again(names[old], old)
        self.until(lambda: "state=online" in self.store.ask("INFO", "replication",
                                                            port=self.primary()),
                   "the old primary to follow the new one", is_over)

    def slot_owner(self):
        """The port of the node that has our slot, as those say who can be asked; None: nobody."""
        for port in self.store.info["ports"].split():
            slot = self.store.ask("CLUSTER", "KEYSLOT", "{baton}:any", port=port)
            for line in self.store.ask("CLUSTER", "NODES", port=port).split("\n"):
                _, address, flags, *_, = words = line.split() + [""] * 3
                ranges = [r.split("-") for r in words[8:] if r[:1].isdigit()]
                if slot and "fail" not in flags and any(
                        int(r[0]) <= int(slot) <= int(r[-1]) for r in ranges):
                    return address.partition("@")[0].rpartition(":")[2]
        return None

    def cluster_failover(self, is_over):
        """The node that has our slot is killed, its replica takes over, and it comes back."""
        ports = self.store.info["ports"].split()
        old = self.slot_owner()
        name = f"node{ports.index(old) + 1}"
        self.store.signal(name, KILL)
        self.until(lambda: self.slot_owner() not in (None, old), "a failover", is_over)
        self.store.again(name, old)
        self.until(lambda: "state=online" in self.store.ask("INFO", "replication",
                                                            port=self.slot_owner()),
                   "the old primary to follow the new one", is_over)

    def terminate(self, _is_over):
        """An administrator ends all sessions."""
        return self.store.ask("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                              "WHERE pid <> pg_backend_pid() AND usename = current_user")

    def promote(self, is_over):
        """The primary is killed, and never comes back."""
        if self.done["promote"]:
            self.wait(1, is_over)
            return NOTHING
        self.store.signal("postgres", KILL)
        self.store.ask("SELECT pg_promote()", port=self.store.info["standby_port"])
        return ""

    # ---- members of a cluster ----

    def member_kill(self, _is_over):
        """One of three, with all that it has acknowledged."""
        name = self.rng.choice(list(self.store.members))
        self.store.signal(name, KILL)
        self.wait(self.rng.uniform(0, 1.5))
        self.store.again(name, self.store.members[name])
        return name

    def member_stop(self, is_over):
        name = self.rng.choice(list(self.store.members))
        seconds = self.about_a_lease()
        self.store.signal(name, STOP)
        self.wait(seconds, is_over)
        self.store.signal(name, CONT)
        return f"{name} for {seconds:.3f} s"

    def all_kill(self, _is_over):
        """The whole cluster, which comes back with all that it has acknowledged."""
        for name in self.store.members:
            self.store.signal(name, KILL)
        self.wait(self.rng.uniform(0, 0.5))
        until = time.monotonic() + ANSWER_S
        while time.monotonic() < until and not all(map(self.store.is_gone, self.store.members)):
            self.wait(0.02)
        for name in self.store.members:  # one alone would wait for another
            servers("again", self.store.dir, name, **self.store.variables)
        for name, port in self.store.members.items():
            self.store.again(name, port)

    def of_etcd(self, port):
        """What a member says of itself and the cluster."""
        said = self.store.ask("endpoint", "status", "--write-out=json", port=port)
        return json.loads(said)[0]["Status"] if said else {}

    def leader_of_etcd(self):
        """The members' ids by their ports, and the ports of those who think that they lead."""
        status = {port: self.of_etcd(port) for port in self.store.members.values()}
        ids = {port: s["header"]["member_id"] for port, s in status.items() if s}
        return ids, [port for port, s in status.items() if s and s.get("leader") == ids[port]]

    def leader_stop(self, is_over):
        """Long enough for another one to lead, and for it to think that all leases are over. It
        ends 16 at a time, the first ones in vain, for it asks itself: these are nobody's, so that
        it asks the new leader to end ours."""
        leaders = self.leader_of_etcd()[1]
        names = [name for name, port in self.store.members.items() if port in leaders]
        if not names:
            return NOTHING
        seconds = self.rng.uniform(1.1, 1.9) * max(map(int, self.world.leases.split(","))) / 1000
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda _: self.store.ask("lease", "grant", "3"), range(NOBODYS)))
        self.store.signal(names[0], STOP)
        self.wait(seconds, is_over)
        self.store.signal(names[0], CONT)
        return f"{names[0]} for {seconds:.3f} s"

    def leader_change(self, _is_over):
        """Without anybody's death."""
        if self.kind == "consul":
            said = self.store.ask("operator", "raft", "transfer-leader")
            return said if "Success" in said else NOTHING
        ids, old = self.leader_of_etcd()
        others = [port for port in ids if port not in old]
        if not old or not others:
            return NOTHING
        new = self.rng.choice(others)
        said = self.store.ask("move-leader", f"{ids[new]:x}", port=old[0])
        return said if "transferred" in said else NOTHING

    def compaction(self, is_over):
        """A machine comes back when what it has missed can't be read any more."""
        relays = self.rng.choice(self.relays)
        seconds = self.rng.uniform(0.1, 0.6)
        self.tell("down", relays)
        self.wait(seconds, is_over)
        for _ in range(3):  # that there surely is something
            self.store.ask("put", "elsewhere", "something")
        revision = self.of_etcd(self.store.port).get("header", {}).get("revision", 0)
        said = self.store.ask("compact", str(revision))
        self.tell("up", relays)
        return f"to revision {revision} after {seconds:.3f} s" if "compacted" in said else NOTHING

    # ---- somebody else's candidate ----

    def rival_argv(self, name):
        if self.kind == "consul":
            return [self.store.info["program"], "lock", "baton/" + name,
                    "echo leads; exec tail -f /dev/null"]
        return ["etcdctl", "--endpoints", "http://127.0.0.1:" + self.store.port, "elect",
                "baton/" + name, "a-rival"]

    def rival(self, is_over):
        """Leads one of the elections for a moment, in the words of the store's own client."""
        name, path = self.rng.choice(self.elections)
        rival = subprocess.Popen(
            self.rival_argv(name), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=self.store.environment(self.store.port))
        n = 0
        try:
            end = time.monotonic() + ANSWER_S
            while not select.select([rival.stdout], [], [], 0.1)[0] and not is_over():
                if time.monotonic() > end and self.kind == "consul":
                    break  # nobody stands in line there: ours are faster
                if time.monotonic() > end:
                    raise AssertionError("the rival never led")
            if select.select([rival.stdout], [], [], 0)[0]:
                key = rival.stdout.readline().decode().strip()
                n = self.work_as_rival(path, f"baton/{name}/.lock" if key == "leads" else key)
        finally:
            rival.send_signal(signal.SIGINT)
            rival.communicate()
        return f"in {name}, {n} stamps" if n else NOTHING

    def client_go(self, is_over):
        """The same with client-go, which polls: it is let in by a pause."""
        name, path = self.rng.choice(self.elections)
        program = subprocess.run([os.path.join(TESTS, "built"), "find", "client-go-elect"],
                                 text=True, capture_output=True, check=True).stdout.strip()
        rival = subprocess.Popen([program, self.store.info["kubeconfig"], "default", name,
                                  "a-rival", "15s", "10s", "500ms"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        n = 0
        try:
            self.order("pause", name)
            end = time.monotonic() + ANSWER_S
            while not select.select([rival.stdout], [], [], 0.1)[0] and not is_over():
                if time.monotonic() > end:
                    raise AssertionError("the rival never led")
            if select.select([rival.stdout], [], [], 0)[0]:
                n = self.stamp_for_a_while(path, self.term_of(name))
        finally:
            self.order("resume", name)
            rival.stdin.write(b"resign\n")
            rival.stdin.close()
            rival.stdout.read()
            rival.wait()
        return f"in {name}, {n} stamps" if n else NOTHING

    def order(self, verb, name):
        env = {**os.environ, "BATON_MODULE_DIR": os.path.join(self.build, "modules")}
        for _ in range(10):
            done = subprocess.run([self.baton, verb, "--store=" + self.url(), name], env=env,
                                  capture_output=True, check=False)
            if done.returncode == 0:
                return

    def term_of(self, name):
        """As baton counts it: from its own last one on, by leaseTransitions."""
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/" + name
        lease = json.loads(self.store.ask(path))
        if lease["spec"].get("holderIdentity") != "a-rival":
            return 0
        marks = lease["metadata"]["annotations"]
        return int(marks["baton/term"]) + lease["spec"]["leaseTransitions"] - \
            int(marks["baton/transitions"])

    def rival_term(self, key):
        """As baton counts them; 0: it leads no more."""
        if self.kind == "consul":
            found = dict(line.split(None, 1) for line in
                         self.store.ask("kv", "get", "-detailed", key).split("\n")
                         if len(line.split(None, 1)) == 2)
            if found.get("Session", "-") == "-":
                return 0
            return int(found["CreateIndex"]) << 12 | int(found["LockIndex"])
        found = self.store.ask("get", key, "--write-out=json")
        return json.loads(found)["kvs"][0]["create_revision"] if "create_revision" in found else 0

    def work_as_rival(self, path, key):
        """Stamps as a worker would; its own lease is sure to last."""
        term = self.rival_term(key)
        return self.stamp_for_a_while(path, term)

    def stamp_for_a_while(self, path, term):
        until = time.monotonic() + self.rng.uniform(0.1, 0.6)
        n = 0
        while term and time.monotonic() < until:
            stamp_as_rival(path, term)
            n += 1
            self.wait(0.003)
        return n

    # ---- the end ----

    def judge(self, names):
        """What the resource of each election says: (accepted, refused, [what is wrong])."""
        accepted = refused = 0
        wrong = []
        for name in names:
            rows, n, r = self.written(name)
            accepted += n
            refused += r
            wrong += [f"{name}: {text}" for text in wrong_writes(rows)]
        return accepted, refused, wrong

    def written(self, name):
        if self.traits.resource == "redis":
            rows = self.resource.ask("LRANGE", name + ":written", "0", "-1").split("\n")
            counts = self.resource.ask("HMGET", name, "accepted", "refused").split("\n")
            accepted, refused = (int(n or 0) for n in (counts + ["0", "0"])[:2])
            rows = [tuple(map(int, row.split())) for row in rows if row]
        else:
            text = self.resource.ask(
                "SELECT coalesce(json_agg(json_build_array(term, seat) ORDER BY n), '[]') FROM "
                f"written WHERE name = '{name}'")
            rows = [tuple(row) for row in json.loads(text)]
            accepted = len(rows)
            refused = int(self.resource.ask(f"SELECT count(*) FROM refused WHERE name = '{name}'"))
        return rows, accepted, refused

    def end(self):
        """Of all that is up, in whatever state the rest is."""
        for relay in [*sum(self.relays, []), self.entrance]:
            if relay:
                relay.end()
        for machine in self.machines:
            machine.end()
        for server in (self.store, self.resource):
            if server:
                server.stop()
