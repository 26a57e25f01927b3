# rig.py - what the suites on real servers share (tests/redis/run, tests/postgres/run): the servers
# of one case, candidates that are real processes on them, waiting with a limit, and the canary.
#
# A suite is a file of functions case_NAME(world), a World of its own and rig.main(). Each case has
# servers of its own (tests/servers), which end with it.
#
# The canary: every password in these suites is SECRET. What the command says is searched for it,
# and so are all logs, the arguments and the variables of every process that a candidate started.
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

BATON = os.path.abspath(sys.argv[1])
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT_S = 60
SECRET = "canary-b1c7-5f2e"
SKIPPED = 77


def servers(*args, **variables):
    done = subprocess.run([os.path.join(TESTS, "servers"), *args], text=True, capture_output=True,
                          env={**os.environ, "BATON_TEST_PASSWORD": SECRET, **variables},
                          timeout=2 * LIMIT_S, check=False)
    if done.returncode == SKIPPED:
        print(done.stderr.strip())
        sys.exit(SKIPPED)
    if done.returncode != 0:
        raise AssertionError(f"tests/servers {args}: {done.stderr}")
    return done.stdout


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


def stays(condition, for_s, what):
    tick = threading.Event()
    until = time.monotonic() + for_s
    while time.monotonic() < until:
        if not condition():
            raise AssertionError("no longer so: " + what)
        tick.wait(0.05)


class Deaf:
    """An address where nobody answers: it accepts connections and stays silent, or, full, drops
    what comes."""

    def __init__(self, address, port, is_full):
        self.sockets = [socket.create_server((address, port), backlog=0 if is_full else 64)]
        self.port = self.sockets[0].getsockname()[1]
        for _ in range(16 if is_full else 0):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex((address, self.port))
            self.sockets.append(one)

    def close(self):
        for one in self.sockets:
            one.close()


class Way:
    """Another address of a server that listens on 127.0.0.1."""

    def __init__(self, address, port, to):
        self.to = int(to)
        self.socket = socket.create_server((address, port))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                one = self.socket.accept()[0]
                other = socket.create_connection(("127.0.0.1", self.to))
            except OSError: # closed
                return
            for a, b in ((one, other), (other, one)):
                threading.Thread(target=self.carry, args=(a, b), daemon=True).start()

    @staticmethod
    def carry(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def read(path):
    """A file's bytes; none when it is gone or not ours."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def descendants(pid):
    children = read(f"/proc/{pid}/task/{pid}/children").split()
    for child in map(int, children):
        yield child
        yield from descendants(child)


class Hand:
    """Calls an adapter by hand (tests/record/hand.c); an answer is "OUTCOME...: the sentence"."""

    def __init__(self, w, module, url):
        folder = os.path.dirname(BATON)
        self.process = subprocess.Popen(
            [os.path.join(folder, "record-hand"), os.path.join(folder, "modules", module + ".so"),
             url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=w.env)
        w.started.append(self.process)

    def begin(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self):
        return self.process.stdout.readline().rstrip("\n")

    def call(self, line):
        self.begin(line)
        return self.end()


class Missing(Exception):
    """Something that a case needs isn't on this machine."""


class World:
    """The servers of one case, and the processes on them."""
    # Variables that would change what the command does.
    foreign = ("BATON_",)
    # What nobody may ever see.
    secret = SECRET
    # What a leader does; $0 is the folder.
    work = "exec tail -f /dev/null"

    def __init__(self, kind):
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix=f"baton-{kind}-", dir=place)
        self.dir = os.path.join(self.folder, "server")
        self.started = []
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(self.foreign)}
        self.env["BATON_MODULE_DIR"] = os.path.join(os.path.dirname(BATON), "modules")
        self.env["HOME"] = self.folder
        self.wrap = [] # what the command is started by
        self.others = [] # the folders of other servers
        try:
            self.info = self.serve(kind, self.dir)
        except BaseException: # also of a kind that can't run here
            shutil.rmtree(self.folder)
            raise

    @staticmethod
    def serve(kind, folder, **variables):
        """Starts servers; what is told of them."""
        lines = servers("start", "--for", str(os.getpid()), kind, folder, **variables).split("\n")
        return dict(line.split("=", 1) for line in lines if line)

    def go_to_expired(self, kind):
        """From now on the URL is that of another server, whose certificate has expired."""
        folder = self.path("expired")
        self.info = self.serve(kind, folder, BATON_TEST_CERTIFICATE="expired")
        self.others.append(folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def named(self, name, *addresses):
        """From now on that name has these addresses, in this order, for whatever is started."""
        with open(self.path("hosts"), "w", encoding="ascii") as hosts:
            hosts.writelines(f"{address} {name}\n" for address in addresses)
        self.wrap = ["unshare", "-rm", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"',
                     self.path("hosts")]
        found = subprocess.run([*self.wrap, "getent", "ahostsv4", name], text=True,
                               capture_output=True, timeout=LIMIT_S, check=False).stdout
        if [line.split()[0] for line in found.split("\n") if "STREAM" in line] != [*addresses]:
            raise Missing("a namespace in which a name has the addresses of our choice")

    def baton(self, *args, **variables):
        done = subprocess.run([*self.wrap, BATON, *args], env={**self.env, **variables}, text=True,
                              capture_output=True, timeout=LIMIT_S, check=False)
        if self.secret in done.stdout + done.stderr:
            raise AssertionError(f"the password is in {done.stdout}{done.stderr}")
        return done

    def candidate(self, name, url, lease="3s", **variables):
        with open(self.path(name + ".log"), "w", encoding="utf-8") as log:
            store = ["--store=" + url] if url else [] # else by a variable
            p = subprocess.Popen([*self.wrap, BATON, "run", *store, "--lease=" + lease,
                                  "--id=" + name, "e", "--", "sh", "-c", self.work, self.folder],
                                 env={**self.env, **variables}, stdout=log,
                                 stderr=subprocess.STDOUT)
        self.started.append(p)
        return p

    def said(self, name):
        return read(self.path(name + ".log")).decode()

    def all_said(self):
        """The end of what each candidate said, for whoever looks for the cause of a failure."""
        logs = sorted(n for n in os.listdir(self.folder) if n.endswith(".log"))
        return "".join(f"\n-- {n}\n{read(self.path(n))[-3000:].decode(errors='replace')}"
                       for n in logs) + "\n" * bool(logs)

    def secret_file(self, secret=SECRET, name="password"):
        """The password in a file, as a user would keep it."""
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(secret + "\n")
        return self.path(name)

    def signal(self, name, what):
        servers("signal", self.dir, name, what)

    def canary(self):
        """Where the password stands and must not."""
        found = []
        secret = self.secret.encode()
        for folder in (self.folder, self.dir):
            for name in os.listdir(folder):
                if name.endswith(".log") and secret in read(os.path.join(folder, name)):
                    found.append(name)
        for candidate in self.started:
            for pid in descendants(candidate.pid):
                argv = read(f"/proc/{pid}/cmdline")
                # A fork of the command that has not become another has the user's own words.
                if argv == read(f"/proc/{candidate.pid}/cmdline"):
                    continue
                if secret in argv + read(f"/proc/{pid}/environ"):
                    found.append(f"process {pid}: {argv!r}")
        return found

    def stop(self):
        """Ends the candidates."""
        for p in self.started:
            p.terminate()
        for p in self.started:
            try:
                p.wait(15)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        self.started = []

    def end(self):
        self.stop()
        for folder in [self.dir, *self.others]:
            servers("stop", folder)
        shutil.rmtree(self.folder)


class Judged(World):
    """Leaders' children write down when they begin, and when they were last there."""
    work = ('echo "began $BATON_TERM $(date +%s%3N)" >>"$0/work"; '
            'while :; do echo "lives $BATON_TERM $(date +%s%3N)" >>"$0/work"; '
            'tail -f /dev/null & p=$!; timeout 0.1 tail --pid=$p -f /dev/null; kill $p; done')

    def status(self, url):
        done = self.baton("status", "--json", "--store=" + url, "e")
        try:
            return json.loads(done.stdout)
        except ValueError:
            return {"leader": "", "term": 0}

    def term_of_leader(self, url):
        status = self.status(url)
        return status["term"] if status["leader"] else 0

    def leads(self, url, above=0):
        """Waits until somebody leads in a higher term; that term."""
        return wait_for(lambda: max(0, self.term_of_leader(url) - above) and
                        self.term_of_leader(url), f"a leader above {above}")

    def spans(self):
        """What was written: (term, first, last) in ms."""
        spans = {}
        for line in read(self.path("work")).decode().split("\n"):
            words = line.split()
            if len(words) == 3 and words[1].isdigit() and words[2].isdigit():
                span = spans.setdefault(int(words[1]), [int(words[2])] * 2)
                span[1] = max(span[1], int(words[2]))
        return [(term, first, last) for term, (first, last) in sorted(spans.items())]

    def next_work(self, since_ms):
        """When work began after that time; of all work, what check_work() says."""
        wait_for(lambda: any(first > since_ms for _, first, _ in self.spans()),
                 "the next leader to work")
        return self.check_work()[-1][1]

    def check_work(self):
        """S1, S3: no two at a time, and later ones in higher terms."""
        work = wait_for(self.spans, "anybody to work")
        for before, after in zip(work, work[1:]):
            if after[1] < before[2]:
                raise AssertionError(f"S1: {before} and {after} overlap")
        return work

    def check_history(self, url, least=16):
        """The last leaderships stand in the history, other programs' too; that history, by term."""
        done = self.baton("history", "--check", "--json", "--store=" + url, "e")
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        rows = {row["term"]: row for row in json.loads(done.stdout)}
        for term in [span[0] for span in self.spans()][-least:]:
            if term not in rows:
                raise AssertionError(f"term {term} is not in the history: {sorted(rows)}")
        return rows


def check_dead(w, dead, how, url, lease):
    """Somebody leads in the time of a call, and who only asks is answered."""
    began = time.monotonic()
    before = max([span[0] for span in w.spans()], default=0)
    p = w.candidate("a-" + how.replace(" ", "-"), url, lease=lease)
    wait_for(lambda: [span for span in w.spans() if span[0] > before], f"a leader where one {how}")
    took_s = time.monotonic() - began
    print(f"one {how}: led after {took_s:.1f} s", flush=True)
    for _ in range(4): # not everybody begins with the same one
        answers(w, url)
    done = w.baton("doctor", "--store=" + url)
    if "0 errors" not in done.stdout or took_s > 5:
        raise AssertionError(f"{took_s} s; {done.stdout}{done.stderr}")
    p.terminate()
    p.wait(LIMIT_S)
    dead.close()
    w.check_work()


def check_dead_address(w, port, url_of, lease="9s", hows=("drops", "is silent")):
    """A name has two addresses, and the first one drops packets, or accepts and stays silent."""
    w.named("store.test", "127.0.0.1", "127.0.0.9")
    for how in hows:
        dead = Deaf("127.0.0.1", 0, how == "drops")
        way = Way("127.0.0.9", dead.port, port)
        check_dead(w, dead, how, url_of(f"store.test:{dead.port}"), lease)
        way.close()


def check_dead_member(w, port, url_of, lease="9s"):
    """The same with two members of a URL."""
    for how in ("drops", "is silent"):
        dead = Deaf("127.0.0.1", 0, how == "drops")
        check_dead(w, dead, how, url_of(f"127.0.0.1:{dead.port},127.0.0.1:{port}"), lease)


def takes_interrupt(pid, tid):
    """Whether a Ctrl-C at the process may wake this thread."""
    try:
        with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii") as file:
            blocked = int(re.search(r"SigBlk:\s+(\w+)", file.read()).group(1), 16)
    except OSError: # it has ended
        return False
    return not blocked >> (signal.SIGINT - 1) & 1


def check_signals(w, url):
    """A store that doesn't answer is asked by a thread of the driver, which takes no signal."""
    with open(w.path("asker.log"), "w", encoding="utf-8") as log:
        p = subprocess.Popen([*w.wrap, BATON, "status", "--store=" + url, "e"], env=w.env,
                             stdout=log, stderr=subprocess.STDOUT)
    w.started.append(p)

    def threads():
        return [int(tid) for tid in os.listdir(f"/proc/{p.pid}/task") if int(tid) != p.pid]
    wait_for(threads, "a thread of the driver")
    stays(lambda: not any(takes_interrupt(p.pid, tid) for tid in threads()), 1,
          "only the program's thread takes SIGINT")
    w.stop()


def look(w, url, **variables):
    """A look at the election: the exit code, and what was said."""
    done = w.baton("status", "--store=" + url, "e", **variables)
    return done.returncode, done.stdout + done.stderr


def looks(w, url, **variables):
    """The same: whether the store let us, and what was said."""
    code, text = look(w, url, **variables)
    return code in (0, 1), text # 1: nobody leads


def refused(w, url, *words, codes=(2, 64), **variables):
    """A look fails, with these words (and no secret). 2: the store fails; 64: the URL is wrong."""
    code, text = look(w, url, **variables)
    if code not in codes or not all(word in text for word in words):
        raise AssertionError(f"not refused (exit code {code}), or without {words}: {text}")


def misused(w, url, *words, **variables):
    """The URL is wrong, which is found before anything is sent."""
    refused(w, url, *words, codes=(64,), **variables)


def answers(w, url, **variables):
    """A look goes well; nobody need lead."""
    good, text = looks(w, url, **variables)
    if not good:
        raise AssertionError(text)


def examine(w, url, *words):
    """The doctor says these words, and its exit code is that of what it has counted."""
    done = w.baton("doctor", "--store=" + url)
    said = " ".join((done.stdout + done.stderr).split()) # without its lines' ends
    found = re.search(r"(\d+) errors?, (\d+) warnings?", said)
    code = found and (2 if found[1] != "0" else 1 if found[2] != "0" else 0)
    if done.returncode != code or not all(word in said for word in words):
        raise AssertionError(f"exit code {done.returncode}, not {code}, or without {words}: {said}")


def run_case(case, world):
    try:
        case(world)
        found = world.canary()
        if found:
            raise AssertionError(f"the password is in {found}")
        return "ok"
    except Missing as what:
        return f"SKIPPED, CAN'T RUN HERE, missing: {what}"
    except (AssertionError, subprocess.SubprocessError, OSError, ValueError) as error:
        return f"FAILED: {error!r}{world.all_said()}"
    finally:
        world.end()


def main(suite, make, kinds, usual):
    """Runs the cases that the arguments name, or all; kinds: which servers, where not the usual."""
    cases = {name[5:]: case for name, case in vars(suite).items() if name.startswith("case_")}
    failed = skipped = 0
    for name in sys.argv[2:] or cases:
        began = time.monotonic()
        result = run_case(cases[name], make(kinds.get(name, usual)))
        failed += result.startswith("FAILED")
        skipped += result.startswith("SKIPPED")
        print(f"{name}: {result} ({time.monotonic() - began:.1f} s)", flush=True)
    return 1 if failed else SKIPPED if skipped else 0
