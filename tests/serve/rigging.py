# rigging.py - what the suites of `baton serve` share: a store and a folder for each case, servers
# that are real processes, requests, streams that are read line by line, and waiting with a limit.
import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

BATON = os.path.abspath(sys.argv[1])
LIMIT_S = 60
SKIPPED = 77
CHANGE = {"Content-Type": "application/json", "Baton-Request": "1"}


def wait_for(condition, what, limit_s=LIMIT_S):
    tick = threading.Event()
    until = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise AssertionError("waited in vain for " + what)
        tick.wait(0.02)


class Unix(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path):
        super().__init__("baton", timeout=LIMIT_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(LIMIT_S)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode()

    @property
    def json(self):
        return json.loads(self.text)


class Stream:
    """A connection that stays open, and the events that came over it."""

    def __init__(self, connection, response):
        self.connection, self.response = connection, response
        self.sock = connection.sock or response.fp.raw._sock
        self.events = []
        self.is_over = False
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException, AttributeError):
            while line := self.response.readline():
                line = line.decode().strip()
                if line.startswith("data: "):
                    line = line[6:]
                if line.startswith("{"):
                    self.events.append(json.loads(line))
        self.is_over = True

    def find(self, kind):
        return [e for e in self.events if e.get("event", e.get("kind")) == kind]

    def wait(self, kind, n=1):
        return wait_for(lambda: self.find(kind)[n - 1:n], f"event {kind} of {self.events}")[0]

    def close(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.connection.close()
        self.response.close()


class Server:
    """A `baton serve`."""

    def __init__(self, world, number, args, log=None, inside=()):
        self.socket = world.path(f"s{number}.sock")
        self.log = world.path(f"log{number}")
        self.pages = world.path(f"pages{number}")
        with open(self.log, "w", encoding="utf-8") as file:
            self.process = subprocess.Popen(
                [*inside, BATON, "serve", "--lease=3s", f"--socket={self.socket}",
                 f"--id=s{number}", f"--page-dir={self.pages}", *args],
                stderr=log if log is not None else file, env=world.env)

    def said(self):
        with open(self.log, encoding="utf-8") as log:
            return log.read()

    def alive(self, probe="/livez"):
        def answers():
            if self.process.poll() is not None:
                raise AssertionError("it ended: " + self.said())
            with contextlib.suppress(OSError, http.client.HTTPException):
                return self.get(probe).status == 200
        wait_for(answers, "a server that says yes to " + probe)
        return self

    def ready(self):
        """It has heard of its store: there is one, and it has answered."""
        return self.alive("/readyz")

    def address(self):
        """Host and port of TCP, as the log says."""
        line = wait_for(lambda: [x for x in self.said().split() if x.startswith("http")], "TCP")[0]
        host, port = line.split("//")[1].rstrip("/").rsplit(":", 1)
        return host, int(port)

    def connection(self, tcp=False):
        if tcp:
            return http.client.HTTPConnection(*self.address(), timeout=LIMIT_S)
        return Unix(self.socket)

    def ask(self, method, target, body=None, headers=None, tcp=False):
        c = self.connection(tcp)
        try:
            c.request(method, target, body=json.dumps(body) if body is not None else None,
                      headers=headers or {})
            return Answer(c.getresponse())
        finally:
            c.close()

    def get(self, target, headers=None, tcp=False):
        return self.ask("GET", target, None, headers, tcp)

    def post(self, target, body=None, headers=None, method="POST", tcp=False):
        return self.ask(method, target, body if body is not None else {},
                        {**CHANGE, **(headers or {})}, tcp)

    def stream(self, method, target, headers=None, tcp=False):
        c = self.connection(tcp)
        c.request(method, target, headers={**CHANGE, **(headers or {})})
        sock = c.sock
        response = c.getresponse()
        assert response.status == 200, response.read()
        c.sock = sock
        return Stream(c, response)

    def lead(self, name="web", lines=True, tcp=False, headers=None):
        accept = {"Accept": "application/x-ndjson"} if lines else {}
        return self.stream("POST", f"/v1/elections/{name}/lead?renewed=1",
                           {**accept, **(headers or {})}, tcp)

    def leads(self, name="web"):
        return self.get(f"/leader/{name}").status == 200

    def stop(self):
        self.process.terminate()
        return self.process.wait(LIMIT_S)


class World:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="baton-serve-")
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("BATON_", "OTEL_", "TRACEPARENT"))}
        self.env.update(BATON_STORE="file:" + self.path("store"), HOME=self.folder,
                        XDG_CONFIG_HOME=self.folder, XDG_RUNTIME_DIR=self.folder)
        self.servers = []
        self.processes = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *args, log=None, inside=()):
        """log: where standard error goes, instead of a file that said() reads; inside: a command
        that runs the server."""
        server = Server(self, len(self.servers), args, log, inside)
        self.servers.append(server)
        return server

    def serve(self, *args):
        return self.start(*args).ready()

    def popen(self, args, **more):
        p = subprocess.Popen(args, env=self.env, text=True, **more)
        self.processes.append(p)
        return p

    def baton(self, *args):
        return subprocess.run([BATON, *args], env=self.env, text=True, capture_output=True,
                              timeout=LIMIT_S, check=False)

    def close(self):
        for p in self.processes + [s.process for s in self.servers]:
            if p.poll() is None:
                p.kill()
            p.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Missing(Exception):
    """Something that a case needs isn't on this machine."""


def wait_for_change(condition):
    """Whether something happens within a second; the works of the examples have ten steps in it."""
    try:
        return wait_for(condition, "a change", 1)
    except AssertionError:
        return False


TOKEN = "a-token-of-the-tests-0123"


def token(w, name, text=TOKEN):
    path = w.path(name + ".token")
    with open(path, "w", encoding="ascii") as file:
        file.write(text + "\n")
    os.chmod(path, 0o600)
    return path


def certificate(w):
    key, cert = w.path("key.pem"), w.path("cert.pem")
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                           "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert,
                           "-days", "2", "-subj", "/CN=localhost"], capture_output=True,
                          check=False)
    if made.returncode != 0:
        raise Missing("openssl")
    return key, cert


def main(cases):
    names = sys.argv[2:] or [n[5:] for n in cases if n.startswith("case_")]
    failed = False
    for name in names:
        world = World()
        try:
            cases["case_" + name](world)
            print(f"ok {name}")
        except Missing as reason:
            print(f"skipped: {reason}")
            sys.exit(SKIPPED)
        except Exception:  # whatever it is, the logs tell more
            failed = True
            traceback.print_exc()
            for server in world.servers:
                print(server.said())
        finally:
            world.close()
    sys.exit(1 if failed else 0)
