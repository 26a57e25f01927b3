# play.py - what the scenarios of the bindings stand on: a driver program as an object, a world with
# a store of its own, and waiting with a limit. scenarios.py says what has to happen.
#
# It must never look into a language: everything goes through the lines of README.md. Each scenario
# has a world of its own; what the world started ends with it.
import collections
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("BATON_BUILD") or os.path.join(TOP, "build", "debug")
BATON = os.path.join(BUILD, "baton")
LIMIT_S = 60  # for whatever happens in the end, on any load
SKIPPED = 77
SAFE = "-._~:/=,?&@+"


class Skipped(Exception):
    """This can't be played here; the reason."""


class Refused(Exception):
    """The binding answered with an error."""

    def __init__(self, name, number, sentence):
        super().__init__(f"{name} {number}: {sentence}")
        self.name, self.number, self.sentence = name, int(number), sentence


def quoted(word):
    data = word if isinstance(word, bytes) else str(word).encode("utf-8", "surrogateescape")
    return urllib.parse.quote_from_bytes(data, SAFE) or "%"


def unquoted(word):
    return "" if word == "%" else urllib.parse.unquote_to_bytes(word).decode(
        "utf-8", "surrogateescape")


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def boot_offset_ns():
    """How far CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC: the suspends of this machine."""
    found = []
    for _ in range(5):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        boot = now_ns()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        found.append((after - before, boot - (before + after) // 2))
    exact = min(found)[1]
    return exact if abs(exact) > 1_000_000 else 0


def environment():
    """For drivers and what builds them: the library of the build, not an installed one."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("BATON_") or
           k.startswith("BATON_TEST_")}
    staged = os.path.join(BUILD, "bindings", "pkgconfig")
    os.makedirs(staged, exist_ok=True)
    text = (f"Name: baton\nDescription: the library of this build\nVersion: 0.1.0\n"
            f"Libs: -L{BUILD} -lbaton\nCflags: -I{TOP}/include\n")
    path = os.path.join(staged, "baton.pc")
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.{os.getpid()}", path)  # others may read it
    env.update(BATON_LIB=os.path.join(BUILD, "libbaton.so"), BATON_INCLUDE=f"{TOP}/include",
               BATON_MODULE_DIR=os.path.join(BUILD, "modules"))
    env["BATON_TEST_BOOT_OFFSET_NS"] = str(boot_offset_ns())
    for name, folder in (("PKG_CONFIG_PATH", staged), ("LD_LIBRARY_PATH", BUILD)):
        env[name] = folder + (":" + env[name] if env.get(name) else "")
    return env


def command_of(language, *words, variant=None):
    """Builds the driver, or an example, and returns the words that start it. variant is a variable
    with its value, for make."""
    folder = os.path.join(BUILD, "bindings", language)
    os.makedirs(folder, exist_ok=True)
    make = os.path.join(HERE, language, "make")
    if not os.path.exists(make):
        raise Skipped(f"there is no driver for {language}")
    env = dict(environment(), **dict([variant.split("=")] if variant else []))
    done = subprocess.run(["flock", folder, make, folder, *words], env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode == SKIPPED:
        raise Skipped(done.stderr.strip().split("\n")[-1])
    if done.returncode != 0:
        raise AssertionError(f"{make}: exit code {done.returncode}\n{done.stderr[-4000:]}")
    return done.stdout.split("\n")[:-1]


def wait_for(condition, what, limit_s=LIMIT_S):
    """Its value, once it is true. what: words for a failure, or a function that says them."""
    tick = threading.Event()
    until = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise AssertionError("waited in vain for " + (what() if callable(what) else what))
        tick.wait(0.01)


class Driver:
    """One process of a driver program."""

    def __init__(self, command, log, name):
        self.name = name
        self.log = log
        with open(log, "wb") as errors:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env=environment(), start_new_session=True)
        self.changed = threading.Condition()
        self.answers = collections.deque()
        self.events = collections.deque()
        self.said = []  # all of it, for failures
        self.is_over = False
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    @property
    def pid(self):
        return self.process.pid

    def _read(self):
        for line in self.process.stdout:
            words = line.decode("utf-8", "replace").split()
            if not words:
                continue
            with self.changed:
                self.said.append(line.decode("utf-8", "replace").strip())
                if words[0] == "!":
                    self.events.append([unquoted(w) for w in words[1:]])
                else:
                    self.answers.append([unquoted(w) for w in words])
                self.changed.notify_all()
        with self.changed:
            self.is_over = True
            self.changed.notify_all()

    def tell(self, verb, *words):
        """Sends a request; answer() takes what it says to it."""
        line = " ".join(quoted(w) for w in (verb, *words))
        self.said.append("> " + line)
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, limit_s=LIMIT_S):
        with self.changed:
            if not self.changed.wait_for(lambda: self.answers or self.is_over, limit_s):
                raise AssertionError(f"{self.name} doesn't answer")
            if not self.answers:
                raise AssertionError(f"{self.name} ended instead of an answer")
            kind, *words = self.answers.popleft()
        if kind == "skip":
            raise Skipped(" ".join(words))
        if kind == "error":
            raise Refused(*words[:3])
        assert kind == "ok", f"{self.name} answered {kind} {words}"
        return words

    def ask(self, verb, *words):
        self.tell(verb, *words)
        return self.answer()

    def event(self, kind, election, limit_s=LIMIT_S):
        """The next such event of that election; others before it stay."""
        def taken():
            for words in self.events:
                if words[:2] == [kind, election]:
                    self.events.remove(words)
                    return words[2:]
            return None
        with self.changed:
            found = [None]

            def is_there():
                found[0] = taken()
                return found[0] is not None or self.is_over
            if not self.changed.wait_for(is_there, limit_s):
                raise AssertionError(f"{self.name}: waited in vain for `! {kind} {election}`")
            if found[0] is None:
                raise AssertionError(f"{self.name} ended before `! {kind} {election}`")
            return found[0]

    def has(self, kind, election):
        with self.changed:
            return any(words[:2] == [kind, election] for words in self.events)

    def signal(self, number):
        os.kill(self.pid, number)

    def end(self, limit_s=LIMIT_S):
        """Its standard input ends; the exit code."""
        self.process.stdin.close()
        return self.wait(limit_s)

    def wait(self, limit_s=LIMIT_S):
        code = self.process.wait(limit_s)
        self.reader.join(limit_s)
        return code

    def errors(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    # ---- what the system says of it ----

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self):
        return [int(tid) for tid in os.listdir(f"/proc/{self.pid}/task")]

    def memory_kib(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))

    def library_threads(self):
        """Those that block every signal that isn't a fault of their own: the library's."""
        faults = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
        never = (signal.SIGKILL, signal.SIGSTOP)
        theirs = []
        for tid in self.threads():
            try:
                with open(f"/proc/{self.pid}/task/{tid}/status", encoding="ascii") as file:
                    blocked = int(re.search(r"SigBlk:\s+(\w+)", file.read()).group(1), 16)
            except (FileNotFoundError, ProcessLookupError):  # it has ended
                continue
            if all(blocked >> (n - 1) & 1 for n in range(1, 32) if n not in faults + never) and \
                    not any(blocked >> (n - 1) & 1 for n in faults):
                theirs.append(tid)
        return theirs


class Frozen:
    """Threads that stand still, each by itself: ptrace, as a debugger does it."""
    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17

    def __init__(self, tids):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.tids = tids

    def __enter__(self):
        for tid in self.tids:
            if self.libc.ptrace(self.SEIZE, tid, None, None) != 0:
                raise Skipped("threads can't be stopped here (ptrace)")
            self.libc.ptrace(self.INTERRUPT, tid, None, None)
            os.waitpid(tid, 0x40000000)  # __WALL: it stands now
        return self

    def __exit__(self, *_):
        for tid in self.tids:
            self.libc.ptrace(self.DETACH, tid, None, None)


class World:
    """A store of its own, and the processes of one scenario."""

    def __init__(self, language, command):
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.language = language
        self.command = command
        self.folder = tempfile.mkdtemp(prefix=f"baton-{language}-", dir=place)
        self.store = os.path.join(self.folder, "store")
        self.url = "file:" + self.store
        self.drivers = []

    def driver(self, command=None):
        one = Driver(command or self.command, f"{self.folder}/log-{len(self.drivers)}",
                     f"driver {len(self.drivers)}")
        self.drivers.append(one)
        return one

    def candidate(self, name="night", command=None, **options):
        """A driver with a store s and an election e in it."""
        one = self.driver(command)
        options = {"lease_ms": 4000, "retry_ms": 100, **options}
        one.id = one.ask("open", "s", self.url, *(f"{k}={v}" for k, v in options.items()))[0]
        one.ask("election", "e", "s", name)
        return one

    def baton(self, verb, *words):
        done = subprocess.run([BATON, verb, "--store", self.url, *words], env=environment(),
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, f"baton {verb}: {done.stderr}"
        return done.stdout

    def history(self, name="night"):
        return json.loads(self.baton("history", "--json", name))

    def close(self):
        for one in self.drivers:
            if one.process.poll() is None:
                one.signal(signal.SIGCONT)
                one.process.kill()
            one.process.wait()
            if not one.process.stdin.closed:
                try:
                    one.process.stdin.close()
                except OSError:
                    pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def story(self):
        """What was said, for whoever looks for the cause of a failure."""
        for one in self.drivers:
            print(f"-- {one.name}", file=sys.stderr)
            for line in one.said[-40:]:
                print("   " + line[:300], file=sys.stderr)
            for line in one.errors().split("\n")[-30:]:
                print("   ! " + line[:300], file=sys.stderr)
