# world.py: what the tests of the command share: a store of its own for each case, the processes on
# it, and waiting with a limit. A test is a script of case_... functions that take a World.
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

BATON = os.path.abspath(sys.argv[1])
FAST = ["--lease=1s", "--log-level=warn"]
LIMIT_S = 40
WORK = "exec tail -f /dev/null"
STUBBORN = "trap '' TERM; while :; do tail -f /dev/null & wait; done"


# Of the modules for tests, the only one that is meant for the command.
MODULES = tempfile.TemporaryDirectory()
with contextlib.suppress(FileNotFoundError):  # an installed command has none
    shutil.copy(os.path.join(os.path.dirname(BATON), "test-modules/drifty.so"), MODULES.name)
with contextlib.suppress(FileNotFoundError):
    shutil.copy(os.path.join(os.path.dirname(BATON), "modules/telemetry-otlp.so"), MODULES.name)


class World:
    """A store, the processes on it, and what they leave."""

    def __init__(self, folder):
        self.folder = folder
        self.started = []
        self.command = BATON
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("BATON_", "OTEL_", "TRACEPARENT"))}
        self.env.update(BATON_STORE="file:" + folder + "/store", HOME=folder,
                        XDG_CONFIG_HOME=folder,
                        BATON_MODULE_DIR=MODULES.name)

    def path(self, name):
        return os.path.join(self.folder, name)

    def for_anybody(self):
        """From now on the command is where every user can run it: a tree may be in a folder of the
        user who runs the tests."""
        place = self.path("command")
        os.mkdir(place)
        self.command = shutil.copy(BATON, place)
        with contextlib.suppress(FileNotFoundError):  # an installed command finds its library
            shutil.copy(os.path.join(os.path.dirname(BATON), "libbaton.so.0"), place)
            self.env["LD_LIBRARY_PATH"] = place

    def baton(self, *args, env=None, **more):
        return subprocess.run([self.command, *args], env={**self.env, **(env or {})}, text=True,
                              capture_output=True, timeout=LIMIT_S, **more)

    def popen(self, *args, stderr=subprocess.PIPE, before=(), **more):
        """`before`: a command that runs the command, such as unshare(1)."""
        p = subprocess.Popen([*before, self.command, *args], env=self.env, text=True, stderr=stderr,
                             **more)
        self.started.append(p)
        return p

    def start(self, *args, options=tuple(FAST), **more):
        return self.popen("run", *options, *args, **more)

    def watch(self, *args):
        """`baton watch`, which writes into a file; said() is what stands there."""
        path = self.path(f"watch-{len(self.started)}")
        with open(path, "w", encoding="ascii") as out:
            p = self.popen("watch", *args, stdout=out)
        p.out = path
        return p

    @staticmethod
    def said(p):
        with open(p.out, encoding="utf-8") as file:
            return file.read()

    def worker(self, name, script, *options, **more):
        """A candidate whose child writes its pid to NAME, then does the script."""
        mark = self.path(name)
        trap, script = script.split("; ", 1) if script.startswith("trap") else (":", script)
        p = self.start(*options, "n", "--", "sh", "-c", f"{trap}; echo $$ >{mark}.new; "
                       f"mv {mark}.new {mark}; {script}", **more)
        return p

    def pid_in(self, name):
        wait_for(lambda: os.path.exists(self.path(name)), f"{name} to be written")
        with open(self.path(name), encoding="ascii") as file:
            return int(file.read())

    def end(self):
        for p in self.started:
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.kill()
            try:
                if p.stderr is None or not p.stderr.closed:
                    p.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                # A failing case may have left somebody behind who has it open.
                p.stderr.close()


def wait_for(condition, what):
    tick = threading.Event()
    until = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > until:
            raise AssertionError("waited in vain for " + what)
        tick.wait(0.005)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def child_of(pid):
    """Its first child, or 0."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return int((file.read().split() or [0])[0])


def guard_of(p):
    return child_of(p.pid)


def n_candidates(w):
    got = w.baton("candidates", "--json", "--store=file:" + w.path("store"), "n")
    return len(json.loads(got.stdout or "[]"))


def leader(w):
    got = w.baton("status", "--json", "--store=file:" + w.path("store"), "n")
    return json.loads(got.stdout).get("leader")


def cgroup_folder():
    """Our own cgroup, if we may make one in it; else None."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        path = [line[3:].strip() for line in file if line.startswith("0::/")]
    with open("/proc/self/mountinfo", encoding="ascii") as file:
        points = [line.split()[4] for line in file if " - cgroup2 " in line]
    folder = points[0] + path[0].rstrip("/") if path and points else ""
    return folder if os.path.exists(folder) and os.access(folder, os.W_OK) else None


def same(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r} instead of {wanted!r}")


def script(cases):
    """Runs the cases, or those that the command line names; returns the exit code."""
    cases = {name[5:]: case for name, case in cases.items() if name.startswith("case_")}
    failed = 0
    for name in sys.argv[2:] or cases:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            world = World(folder)
            try:
                result = cases[name](world) or "ok"
            except (AssertionError, subprocess.TimeoutExpired, OSError, ValueError,
                    KeyError) as e:
                result = f"FAILED: {e!r}"
                failed += 1
            finally:
                world.end()
        print(f"{name}: {result} ({time.monotonic() - began:.1f} s)", flush=True)
    return 1 if failed else 0
