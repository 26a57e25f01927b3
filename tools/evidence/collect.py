# collect.py - runs what measures and what proves, each in a bounded time, and records what it said:
# when, at which commit, on which machine and under which load. It judges nothing.
#
# What can't be had here (a server, a driver) is recorded as left out, with the reason. No host
# name, no user and no path of this machine gets into the record.
import concurrent.futures
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import time

WORK = "build/evidence"
# Kinds of tests/servers, and the rest of the URL. The first ones are measured at length. Of the
# others, whose standbys mostly poll, a tenth of the samples has to do. Both forms ask for all of
# them: a store whose server is not here is left out, and the pages say so.
STORES = (
    ("redis", "?durable=1"), ("postgres", ""), ("etcd", ""), ("mariadb", ""), ("consul", ""),
    ("kubernetes-plain", ""), ("memcached-aged", ""), ("mongodb", ""), ("mssql", ""), ("s3", ""),
    ("azblob", ""),
)
AT_LENGTH = ("redis", "postgres", "etcd")
MANY = ("mariadb",) # of the others: whose elections are counted by the thousand
CHAOS_WORLDS = ("redis", "postgres", "etcd", "mariadb", "s3")
STEP_LIMIT_S = 600


def load():
    return round(os.getloadavg()[0], 1)


def first(path, pattern):
    try:
        with open(path, encoding="utf-8") as file:
            match = re.search(pattern, file.read(), re.M)
    except OSError:
        match = None
    return match.group(1).strip() if match else "unknown"


def machine():
    memory = first("/proc/meminfo", r"^MemTotal:\s+(\d+)")
    return {"cores": os.cpu_count(), "cpu": first("/proc/cpuinfo", r"^model name\s*:(.*)"),
            "memory_gib": round(int(memory) / 2**20) if memory.isdigit() else 0,
            "kernel": os.uname().release,
            "system": first("/etc/os-release", r'^PRETTY_NAME="(.*)"')}


def git(*words):
    return subprocess.run(["git", *words], text=True, capture_output=True,
                          check=True).stdout.strip()


def commit():
    """The pages themselves are no part of what is measured."""
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/evidence")
    return git("rev-parse", "--short=8", "HEAD") + (" with changes" if changed else "")


class Record:
    """What has been run so far; each step has its load, and a line on the terminal."""

    def __init__(self, quick):
        self.quick = quick
        self.data = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
                     "commit": commit(), "quick": quick, "machine": machine(), "loads": {},
                     "bench": {}, "proofs": {}, "chaos": {}, "left_out": []}

    def run(self, part, name, words, limit_s=STEP_LIMIT_S):
        """The output of a step, or None: then it is left out, with the reason."""
        began = datetime.datetime.now()
        loads = self.data["loads"].setdefault(part, [])
        loads.append(load())
        try:
            done = subprocess.run(words, text=True, capture_output=True, check=False,
                                  timeout=limit_s)
        except subprocess.TimeoutExpired:
            self.leave_out(name, f"not done after {limit_s} s")
            return None
        loads.append(load())
        took = (datetime.datetime.now() - began).total_seconds()
        print(f"evidence: {name}: {took:.0f} s", flush=True)
        return done

    def leave_out(self, name, why):
        print(f"evidence: {name} is left out: {why}", flush=True)
        self.data["left_out"].append([name, why])


# ---- bench ----

def bench_files(folder):
    """Also of a bench that gave up: what it had measured until then."""
    if not os.path.exists(folder + "/bench.json"):
        return [], []
    with open(folder + "/bench.json", encoding="utf-8") as file:
        rows = json.load(file)
    with open(folder + "/bench.samples", encoding="utf-8") as file:
        samples = [json.loads(line) for line in file]
    return rows, samples


def bench(record, store, words, limit_s=STEP_LIMIT_S):
    """bench exits with 1 where a row is over its budget: that is a finding, not a failure."""
    folder = f"{WORK}/{store}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    done = record.run("bench", "bench " + store, [*words, folder], limit_s)
    if done is None:
        return False
    rows, samples = bench_files(folder)
    if done.returncode not in (0, 1):
        lines = (done.stderr or done.stdout).strip().split("\n")
        record.leave_out(store + (", in part" if samples else ""), "no server here"
                         if done.returncode == 77 else re.sub(r"/\S+/", "", lines[-1])[:120])
    kept = record.data["bench"].setdefault(store, {"rows": [], "samples": []})
    kept["rows"] += rows
    kept["samples"] += samples
    return done.returncode in (0, 1)


def bench_all(record, stores):
    quick = ["--quick"] if record.quick else []
    bench(record, "local", ["build/release/bench", *quick], 900)
    for kind, options in STORES:
        store = kind.partition("-")[0]
        if stores and kind not in stores:
            record.leave_out(store, "not asked for in this run")
            continue
        words = ["tests/servers", "with", kind, "--", "build/release/bench", "--store",
                 "{url}" + options]
        os.environ["TMPDIR"] = os.path.abspath(WORK)  # data on a disk, as in make bench
        os.environ["BATON_TEST_BENCH"] = "1"
        if kind not in AT_LENGTH:
            parts = "handoff,orders,peers,crash" + (",many" if kind in MANY else "")
            bench(record, store, [*words, "--quick", "--only", parts])
        elif record.quick:
            bench(record, store, [*words, "--quick", "--only",
                                  "handoff,orders,growth,status,peers,crash,fast"])
        elif bench(record, store, [*words, "--only", "handoff,peers,crash"]):
            bench(record, store, [*words, "--only", "orders,growth,status"])
            bench(record, store, [*words, "--quick", "--only", "fast,many"])
        os.environ.pop("TMPDIR")
        os.environ.pop("BATON_TEST_BENCH")


# ---- worlds and states ----

def prove(record, name, words, limit_s=STEP_LIMIT_S):
    done = record.run("proofs", name, words, limit_s)
    if done is not None:
        lines = done.stdout.strip().split("\n")
        record.data["proofs"][name] = {"command": " ".join(words[1:]), "code": done.returncode,
                                       "lines": lines}


def prove_all(record):
    """As many at once as there are cores: none of them looks at a clock."""
    cpu_s = "15" if record.quick else "60"
    size = "small" if record.quick else "test"
    steps = (
        ("model-record", "model-record", "--size", size), ("model", "model", "--size", size),
        ("sim", "sim", "--cpu-seconds", cpu_s, "--worlds", "10000000", "--from", "fresh"),
        ("sim-record", "sim-record", "--cpu", cpu_s),
        ("model-file", "model-file", "--size", "test"),
        ("model-file-variants", "model-file", "--variants"),
    )
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, program, *options in steps:
            pool.submit(prove, record, name, ["build/release/" + program, *options], 900)


# ---- chaos ----

def chaos_all(record):
    words = ["tests/chaos/run", "--baton", "build/release/baton", "--worker",
             "build/release/chaos_worker", "--minutes", "0.5" if record.quick else "1"]
    runs = [("file", words)]
    for world in CHAOS_WORLDS[:1] if record.quick else CHAOS_WORLDS:
        runs.append((world, [*words, "--world", world]))
    for name, command in runs:
        done = record.run("chaos", "chaos " + name, command)
        if done is None:
            continue
        lines = done.stdout.strip().split("\n")
        if not lines[-1].startswith("chaos: "):
            record.leave_out("chaos " + name, "no verdict" if done.returncode != 77 else
                             "no server here")
            continue
        record.data["chaos"][name] = {"code": done.returncode, "lines": lines}


def demo(record):
    path = WORK + "/demo.json"
    done = record.run("demo", "demo", ["tests/cli/demo", "build/release/baton", path])
    if done is None or done.returncode != 0:
        sys.exit("evidence: the demo failed")
    with open(path, encoding="utf-8") as file:
        record.data["demo"] = json.load(file)


def collect(quick, only, stores):
    """only: of demo, bench, proofs, chaos; all of them if it is empty. stores: kinds of STORES."""
    os.makedirs(WORK, exist_ok=True)
    record = Record(quick)
    began = time.monotonic()
    for name, part in (("demo", demo), ("bench", lambda r: bench_all(r, stores)),
                       ("proofs", prove_all), ("chaos", chaos_all)):
        if not only or name in only:
            part(record)
    record.data["seconds"] = round(time.monotonic() - began)
    return record.data
