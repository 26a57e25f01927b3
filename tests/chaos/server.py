# server - what a world of the chaos rig is made of, and how each part is hurt: servers
# (tests/servers), fault proxies (tests/relay), and machines, which are network namespaces with a
# cable. When that happens world.py says.
import os
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(TESTS, "lib"))
# pylint: disable=wrong-import-position
from rig import descendants, servers

ANSWER_S = 40  # a server that was started again answers within this, on any load


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def in_own_network():
    """Begins anew in a network namespace of its own, where that is allowed; returns where not."""
    if os.environ.get("CHAOS_NETWORK") or os.geteuid() != 0 or not shutil.which("ip"):
        return
    try:
        subprocess.run(["unshare", "-n", "ip", "link", "add", "v", "type", "veth"], check=True,
                       capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return
    os.environ["CHAOS_NETWORK"] = "own"
    os.execvp("unshare", ["unshare", "-n", sys.executable, *sys.argv])


def is_mongodb(port):
    """Whether isMaster is answered, asked as clients did at all times."""
    ask = b"\x13\0\0\0\x10isMaster\0\1\0\0\0\0"
    body = struct.pack("<i", 0) + b"admin.$cmd\0" + struct.pack("<ii", 0, -1) + ask
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as s:
            s.settimeout(2)
            s.sendall(struct.pack("<iiii", 16 + len(body), 1, 0, 2004) + body)
            return len(s.recv(36)) > 16
    except OSError:
        return False


class Server:
    """Servers of one kind, and what can be done to them."""

    def __init__(self, kind, folder, **variables):
        self.kind = kind
        self.dir = folder
        self.variables = variables
        lines = servers("start", "--for", str(os.getpid()), kind, folder, **variables)
        self.info = dict(line.split("=", 1) for line in lines.split("\n") if "=" in line)
        word = kind.partition("-")[0]
        self.members = {word + n: self.info["port" + n] for n in ("", "1", "2", "3")
                        if "port" + n in self.info}
        if "plain_port" in self.info: # what the fault proxy can look into
            self.members = {word: self.info["plain_port"]}
        self.port = (*self.members.values(), *self.info.get("ports", "").split())[0]

    def pids(self, name):
        with open(os.path.join(self.dir, name + ".pid"), encoding="ascii") as file:
            pid = int(file.read().split()[0])
        return [pid, *descendants(pid)]

    def signal(self, name, sig):
        """To all of its processes: a PostgreSQL server is many."""
        for pid in self.pids(name):
            try:
                os.kill(pid, sig)
            except ProcessLookupError:
                pass

    def is_gone(self, name):
        with open(os.path.join(self.dir, name + ".pid"), encoding="ascii") as file:
            pid = file.read().split()[0]
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                return file.read().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    def again(self, name, port):
        """Starts it, once more if its last processes were still in the way, until it answers."""
        until = time.monotonic() + ANSWER_S
        while not self.answers(port):
            if self.is_gone(name):
                servers("again", self.dir, name, **self.variables)
            select.select([], [], [], 0.05)
            if time.monotonic() > until:
                raise AssertionError(f"{name} does not answer after its restart")

    def answers(self, port):
        if self.kind.startswith("redis"):
            return self.ask("PING", port=port) == "PONG"
        if self.kind.startswith("etcd"):
            return "leader" in self.ask("endpoint", "status", "--write-out=json", port=port)
        if self.kind.startswith("consul"):
            return "leader" in self.ask("operator", "raft", "list-peers", port=port)
        if self.kind.startswith("kubernetes"):
            return self.ask("/readyz", port=port) == "ok"
        if self.kind.startswith("mssql"):
            return "sessions" in self.ask("counts")
        if self.kind.startswith("mariadb"):
            return self.ask("SELECT 1") == "1"
        if self.kind.startswith("azblob"):
            return self.ask("/") not in ("", "000")
        if self.kind.startswith("s3"):
            return self.ask("/") == "403" # it wants a signature
        if self.kind.startswith("mongodb"):
            return is_mongodb(int(port))
        if self.kind.startswith("memcached"):
            return self.ask("mn", port=port) == "MN"
        return self.ask("SELECT 1", database="postgres") == "1"

    def control(self, line):
        """Of a server of our own; its answer, or nothing."""
        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(ANSWER_S)
            try:
                wire.connect(self.info["control"])
                wire.sendall(line.encode() + b"\n")
                return wire.makefile(encoding="utf-8").readline().strip()
            except OSError:
                return ""

    def ask(self, *words, port=None, database="baton"):
        """By the administrator's own client; the answer's text."""
        if self.kind.startswith("mssql"):
            return self.control(words[0])
        port = port or self.port
        if self.kind.startswith("memcached"):
            return self.say(words[0], int(port))
        if self.kind.startswith("redis"):
            argv = ["redis-cli", "-h", "127.0.0.1", "-p", port, *words]
        elif self.kind.startswith("etcd"):
            argv = ["etcdctl", "--endpoints", "http://127.0.0.1:" + port, "--command-timeout=5s",
                    *words]
        elif self.kind.startswith("consul"):
            argv = [self.info["program"], *words]
        elif self.kind.startswith("kubernetes"):
            argv = ["curl", "-s", "-m", "5", "-H", "Authorization: Bearer " + self.info["token"],
                    f"http://127.0.0.1:{port}{words[0]}"]
        elif self.kind.startswith(("azblob", "s3")):
            argv = ["curl", "-s", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}",
                    f"http://127.0.0.1:{port}{words[0]}"]
        elif self.kind.startswith("mariadb"):
            argv = ["mariadb", "--no-defaults", "--socket=" + self.info["socket"], "-u", "root",
                    "-N", "baton", "-e", words[0]]
        else:
            argv = ["psql", "-XqAt", "-h", "127.0.0.1", "-p", port, "-U", "baton", "-d", database,
                    "-v", "ON_ERROR_STOP=1", "-c", words[0]]
        return subprocess.run(argv, text=True, capture_output=True, check=False, timeout=ANSWER_S,
                              env=self.environment(port)).stdout.strip()

    @staticmethod
    def say(words, port):
        """To memcached, which has no client of its own: the first line of its answer."""
        try:
            with socket.create_connection(("127.0.0.1", port), ANSWER_S) as there:
                there.sendall(words.encode() + b"\r\n")
                return there.makefile("r", encoding="ascii").readline().strip()
        except OSError:
            return ""

    @staticmethod
    def environment(port):
        """For the servers' own clients."""
        return {**os.environ, "ETCDCTL_API": "3", "CONSUL_HTTP_ADDR": "127.0.0.1:" + port}

    def stop(self):
        servers("stop", self.dir)


class Relay:
    """A fault proxy, as a process."""

    def __init__(self, program, protocol, address, port, seed):
        self.process = subprocess.Popen(
            [program, "--protocol=" + protocol, "--address=" + address, f"--seed={seed}", port],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = self.process.stdout.readline().strip().partition("=")[2]

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if answer != "ok":
            raise AssertionError(f"relay: {line}: {answer}")

    def fired(self):
        """How often its rules have done something since they were set."""
        self.process.stdin.write("text\n")
        self.process.stdin.flush()
        n = 0
        for line in self.process.stdout:
            if line == "ok\n":
                return n
            done = re.match(r"# that was done (\d+) times", line)
            n += int(done[1]) if done else 0
        raise AssertionError("the relay is gone")

    def end(self):
        # Not by the end of its input: others may have been forked with it.
        self.process.terminate()
        self.process.communicate()


class Machine:
    """Where some of the candidates run: a network of their own, or the one that all have."""

    def __init__(self, number, is_apart):
        self.cable = f"cable{number}" if is_apart else None
        self.address = f"10.77.{number}.1" if is_apart else "127.0.0.1"
        self.prefix = []
        self.holder = None
        if is_apart:
            self.plug(number)

    def plug(self, number):
        self.holder = subprocess.Popen(["unshare", "-n", "tail", "-f", "/dev/null"])
        pid = str(self.holder.pid)
        here = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{pid}/ns/net") == here:
            select.select([], [], [], 0.01)
        self.prefix = ["nsenter", "--net=/proc/" + pid + "/ns/net", "--"]
        ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", pid)
        ip("addr", "add", self.address + "/30", "dev", self.cable)
        ip("link", "set", self.cable, "up")
        inside = [*self.prefix, "ip"]
        for words in (["addr", "add", f"10.77.{number}.2/30", "dev", "eth0"],
                      ["link", "set", "eth0", "up"], ["link", "set", "lo", "up"]):
            subprocess.run(inside + words, check=True, capture_output=True)

    def end(self):
        if self.holder:
            self.holder.kill()
            self.holder.wait()
