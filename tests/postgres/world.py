# world.py - what the cases of tests/postgres/run stand on: a server and candidates, a way to the
# server that can be cut, and the driver without the library.
import contextlib
import os
import socket
import subprocess
import threading

import rig
from rig import LIMIT_S, servers, wait_for


class World(rig.Judged):
    foreign = ("BATON_", "PG")
    work = rig.World.work

    def __init__(self, kind):
        super().__init__(kind)
        self.url = self.info["url"]

    def at(self, user="baton", **options):
        more = "&".join(f"{key}={value}" for key, value in options.items())
        return f"postgres://{user}@127.0.0.1:{self.info['port']}/baton?{more}".rstrip("?")

    def term(self):
        """Of whoever leads, by the table; 0: nobody."""
        return int(self.psql("SELECT coalesce(max(e.term), 0) FROM baton.election e JOIN "
                             "baton.lease l ON l.id = e.lease WHERE e.name = 'e'") or 0)

    def leader(self):
        return self.psql("SELECT l.owner FROM baton.election e JOIN baton.lease l ON "
                         "l.id = e.lease WHERE e.name = 'e'")

    def leads(self, name):
        wait_for(lambda: "leads e in term" in self.said(name), name + " to lead")
        return self.term()

    def psql_command(self, user="baton"):
        return ["psql", "-X", "-q", "-A", "-t", "-h", self.info["socket"], "-p",
                self.info["port"], "-U", user, "-d", "baton"]

    def psql(self, *commands):
        words = [word for command in commands for word in ("-c", command)]
        done = subprocess.run([*self.psql_command(), *words], env=self.env, text=True,
                              capture_output=True, timeout=LIMIT_S, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    def session(self, words):
        """Another program's session, which was told this and goes on."""
        other = subprocess.Popen(self.psql_command(), env=self.env, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        other.stdin.write(words + "\n")
        other.stdin.flush()
        return other


class Wire:
    """A way to the server that can be cut on the client's side alone."""

    def __init__(self, port):
        self.server = int(port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.clients = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client = self.listener.accept()[0]
            server = socket.create_connection(("127.0.0.1", self.server))
            self.clients.append(client)
            for a, b in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    def pump(self, source, target):
        with contextlib.suppress(OSError):
            while True:
                data = source.recv(65536)
                if not data:
                    if source in self.clients: # else it was cut: the server hears nothing
                        target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)

    def cut(self):
        clients, self.clients = self.clients, []
        for client in clients:
            client.shutdown(socket.SHUT_RDWR)


class Puppet:
    """A program that calls the driver's verbs as it is told (puppet.c)."""

    def __init__(self, w, url):
        folder = os.path.dirname(rig.BATON)
        self.p = subprocess.Popen([os.path.join(folder, "postgres-puppet"),
                                   os.path.join(folder, "modules", "postgres.so"), url],
                                  env=w.env, text=True, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        w.started.append(self.p)

    def begin(self, words):
        self.p.stdin.write(words + "\n")
        self.p.stdin.flush()

    def end(self):
        """What came of it: words."""
        return self.p.stdout.readline().split()

    def does(self, words, outcome="ok"):
        self.begin(words)
        got = self.end()
        if got[:1] != [outcome]:
            raise AssertionError(f"{words}: {got}")
        return got


def follows(w, name, leader):
    wait_for(lambda: "led by " + leader in w.said(name), f"{name} to see {leader}")


def settled(w, n):
    """Somebody waits for the leader's lock, on a session of its own."""
    wait_for(lambda: w.psql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT "
                            "granted") == str(n), "a standby to wait for the lock")


def begins_again(w):
    try:
        servers("again", w.dir, "postgres")
    except AssertionError: # it still runs
        return False
    return True


def runs(w, script):
    """An administrator runs what the command prints, without an error."""
    subprocess.run([*w.psql_command(), "-v", "ON_ERROR_STOP=1"], env=w.env, input=script, text=True,
                   timeout=LIMIT_S, check=True)


def make_tables(w):
    runs(w, w.baton("schema", "postgres").stdout)


def guard(w):
    for _ in range(2): # a second time changes nothing
        runs(w, w.baton("schema", "postgres", "--fence").stdout)


def asks(w, sql, user="app"):
    """What somebody without other rights is told."""
    done = subprocess.run([*w.psql_command(user), "-v", "ON_ERROR_STOP=1", "-c", sql], env=w.env,
                          text=True, capture_output=True, timeout=LIMIT_S, check=False)
    return (done.stdout + done.stderr).strip()


def expect(got, words):
    if words not in got:
        raise AssertionError(f"{got!r}, without {words!r}")
