# pages.py - the pages of docs/evidence, from what collect.py has recorded.
#
# Every page and every picture says on which day, at which commit, on which machine and under which
# load its figures came about; a page without that must never be written. What the record doesn't
# have isn't told; what was left out is.
import re

import collect
import plots
import svg
import words

OURS = "baton"
NOTHING = "not measured in this run"
TITLES = {"local": "Without a server"}


def machine(data):
    m = data["machine"]
    return (f"{m['cores']} cores of {m['cpu']}, {m['memory_gib']} GiB, Linux {m['kernel']}, "
            f"{m['system']}")


def loads(data, part):
    values = data["loads"].get(part, [])
    if not values:
        return "unknown"
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def form(data):
    return "quick form" if data["quick"] else "full form"


def origin(data, part):
    """The lines that every page has beneath its title."""
    return [f"Measured on {data['date']} at commit `{data['commit']}`, in the {form(data)} of "
            f"`make evidence`.", f"Machine: {machine(data)}. Load: {loads(data, part)}."]


def footer(data, part):
    m = data["machine"]
    return (f"{data['date']}, commit {data['commit']}, {form(data)}; {m['cores']} cores of "
            f"{m['cpu']}, {m['memory_gib']} GiB, Linux {m['kernel']}; load {loads(data, part)}")


def page(title, data, part, *blocks):
    return "\n\n".join([f"# {title}", "\n".join(origin(data, part)), *blocks]) + "\n"


def table(head, rows):
    def line(cells):
        return "| " + " | ".join(str(c).replace("|", "\\|") for c in cells) + " |"
    return "\n".join([line(head), "|" + "---|" * len(head), *map(line, rows)])


def number(n):
    return f"{n:,}"


# ---- distributions ----

def measured(data, what):
    """{store: [(whose, [ms])]}, baton first, then the store's raw request, then the others."""
    found = {}
    for part in data["bench"].values():
        for s in part["samples"]:
            store, _, of_what = s["what"].partition(": ")
            if of_what == what and s["ms"]:
                found.setdefault(store, []).append((s["whose"], s["ms"]))

    def rank(entry):
        if entry[0].startswith(OURS):
            return 0
        return 1 if entry[0].startswith(("one ", "a raw")) else 2
    return {store: sorted(series, key=rank) for store, series in found.items()}


def quantile_rows(found):
    for store, series in found.items():
        for whose, ms in series:
            name = f"**{whose}**" if whose.startswith(OURS) else whose
            few = len(ms) < 20
            yield (store, name, svg.duration(plots.at(ms, 50)),
                   "-" if few else svg.duration(plots.at(ms, 99)), svg.duration(max(ms)), len(ms))


def quantiles(found):
    return table(("store", "who", "p50", "p99", "greatest", "samples"),
                 quantile_rows(found)) if found else NOTHING


def distributions(data, what, title, found):
    """The pictures, by file name."""
    return {f"{what}-{store}.svg":
            plots.distribution(f"{title}: {store}", series, footer(data, "bench"))
            for store, series in found.items()}


def handoff(data):
    found = measured(data, "handoff")
    pictures = distributions(data, "handoff", "Clean handoff", found)
    images = "\n\n".join(f"![Clean handoff on {store}](handoff-{store}.svg)" for store in found)
    ways = by_ways(data)
    blocks = [words.HANDOFF, quantiles(found), images, "## By which way", words.WAYS,
              table(("store", "asked for by", "p50", "p99"), ways) if ways else NOTHING]
    return {"handoff.md": page("Handoff", data, "bench", *blocks), **pictures}


def by_ways(data):
    """[(store, way, p50, p99)]"""
    found = {}
    for _, match, row in rows_of(data, r"(\w+): handoff among \d+ by (.*), (p50|p99)"):
        found.setdefault((match[1], match[2]), {})[match[3]] = svg.duration(row["value"])
    return [(*key, ms.get("p50", "-"), ms.get("p99", "-")) for key, ms in found.items()]


def failover(data):
    found = measured(data, "failover")
    above = measured(data, "failover after the lease's end")
    pictures = distributions(data, "failover", "Failover after kill -9", found)
    images = "\n\n".join(f"![Failover on {store}](failover-{store}.svg)" for store in found)
    blocks = [words.FAILOVER, quantiles(found), images]
    if above:
        blocks += ["## What baton adds to the lease", words.ABOVE, quantiles(above)]
    return {"failover.md": page("Failover", data, "bench", *blocks), **pictures}


# ---- growth ----

def rows_of(data, pattern):
    """(store, match, row) of all rows of bench that fit."""
    for store, part in data["bench"].items():
        for row in part["rows"]:
            match = re.fullmatch(pattern, row["what"])
            if match:
                yield store, match, row


def by_standbys(data):
    """{store: [(standbys, p50, what one of them costs idle, requests of one of them)]}"""
    asked = {(match[1], match[2]): f"{row['value']:.2f}" for _, match, row in
             rows_of(data, r"(\w+): requests per handoff and standby, (\d+)")}
    lines = {}
    for _, match, row in rows_of(data, r"(\w+): handoff with (\d+) standbys, p50"):
        lines.setdefault(match[1], []).append(
            (int(match[2]), row["value"], row["beside"].partition(": ")[2],
             asked.get((match[1], match[2]), "-")))
    return lines


EACH = re.compile(r"([\d.]+) us each at ([\d,]+), ([\d.]+) us each at (\d+)")


def by_elections(data):
    """{store: [(elections, microseconds each)]}"""
    lines = {}
    for store, _, row in rows_of(data, r"growth, memory store|\w+: growth, cost per election"):
        match = EACH.search(row["beside"])
        if not match:
            raise SystemExit(f"evidence: bench's row says something else: {row['beside']}")
        name = "memory" if store == "local" else store
        lines[name] = [(int(match[2].replace(",", "")), float(match[1])),
                       (int(match[4]), float(match[3]))]
    return lines


def growth(data):
    standbys, elections = by_standbys(data), by_elections(data)
    files, blocks = {}, []
    blocks += ["## With the number of standbys", words.STANDBYS]
    if standbys:
        files["growth-standbys.svg"] = plots.growth(
            "Handoff by the number of standbys (p50)",
            [(name, [(n, ms) for n, ms, _, _ in line]) for name, line in standbys.items()],
            "standbys of one election", "ms", footer(data, "bench"))
        blocks += [table(("store", "standbys", "handoff, p50", "requests, each", "idle, each"),
                         [(name, n, svg.duration(ms), asked, idle)
                          for name, line in standbys.items() for n, ms, idle, asked in line]),
                   "![Handoff by the number of standbys](growth-standbys.svg)"]
    else:
        blocks.append(NOTHING)
    blocks += ["## With the number of elections", words.ELECTIONS]
    if elections:
        files["growth-elections.svg"] = plots.growth(
            "Cost per election until all are led", list(elections.items()),
            "elections of one process", "us", footer(data, "bench"))
        blocks += [table(("store", "elections", "each"),
                         [(name, number(n), f"{us:.3g} us") for name, line in elections.items()
                          for n, us in line]),
                   "![Cost per election](growth-elections.svg)"]
    else:
        blocks.append(NOTHING)
    return {"growth.md": page("Growth", data, "bench", *blocks), **files}


def budgets(data):
    """All rows of bench, as it printed them."""
    blocks = [words.BUDGETS]
    for store, part in data["bench"].items():
        rows = []
        for r in part["rows"]:
            over = "**over**" if 0 < r["budget"] < r["value"] else ""
            value, budget = (f"{n:.3g} {r['unit']}" if n < 1000 else f"{n:,.0f} {r['unit']}"
                             for n in (r["value"], r["budget"]))
            rows.append((r["what"].removeprefix(store + ": "), value,
                         budget if r["budget"] > 0 else "-", over, r["beside"]))
        blocks += [f"## {TITLES.get(store, store)}",
                   table(("what", "measured", "budget", "", "beside"), rows)]
    return {"budgets.md": page("Budgets", data, "bench", *blocks)}


# ---- worlds and states ----

SEARCH_HEAD = ("program", "world", "faults", "states", "complete", "violations")
SEARCHED = (
    ("model", re.compile(r"(?P<world>.*); (?P<faults>.*?): (?P<states>\d+) states, "
                         r"(?P<complete>\w+), (?P<bad>\d+) violations")),
    ("model-record", re.compile(r"(?P<world>\d, \d, \d)(?:, )?(?P<faults>.*?): (?P<states>\d+) "
                                r"states, \d+ steps deep, (?P<complete>complete|not complete)"
                                r".*?(?P<bad>no|\d+) violation")),
    ("model-file", re.compile(r"(?P<world>.*?), (?P<faults>\d+ killed.*): (?P<states>\d+) states, "
                              r"\d+ steps deep, (?P<complete>)(?P<bad>.*)$")),
)


def searched(data):
    """(program, world, faults, states, complete, violations)"""
    for program, pattern in SEARCHED:
        proof = data["proofs"].get(program, {"lines": []})
        last = proof["lines"][-1] if proof["lines"] else ""
        for line in proof["lines"]:
            match = pattern.match(line)
            if not match:
                continue
            world, complete, bad = match["world"], match["complete"], match["bad"]
            if program == "model-record":
                candidates, elections, leases = world.split(", ")
                world = (f"{candidates} candidates, {elections} "
                         f"election{'s' if elections != '1' else ''}, {leases} leases")
            complete = (complete or last.split(", ")[1]) == "complete"
            yield (program, world, match["faults"] or "those of every world",
                   number(int(match["states"])), "yes" if complete else "no",
                   0 if bad.startswith("no") else bad)


def last_line(data, program):
    proof = data["proofs"].get(program)
    return proof["lines"][-1].partition(": ")[2] if proof else NOTHING


def spoken(text):
    """Numbers as people write them."""
    return re.sub(r"(?<![\d.])\d{4,}(?![\d.])", lambda m: number(int(m[0])), text)


PROGRAMS = {"model": "model: the core", "model-record": "model-record: the rules of record stores",
            "model-file": "model-file: the protocol of the file store"}
STATES_IMAGE = "![States that were searched, by world](states.svg)"


def states_picture(rows, line):
    """rows: those of the page's table. A paler bar: the world was searched to a depth."""
    groups = []
    for program, heading in PROGRAMS.items():
        bars = [(faults, world, int(str(n).replace(",", "")),
                 n + ("" if complete == "yes" else ", to a depth")
                 + ("" if str(bad) == "0" else f", {bad} violations"),
                 "bad" if str(bad) != "0" else "c0" if complete == "yes" else "raw")
                for name, world, faults, n, complete, bad in rows if name == program]
        groups += [(heading, bars)] if bars else []
    return plots.bars("States that were searched, by world (logarithmic)", groups, line, True)


def proofs(data):
    sims = [(f"`{name}`", spoken(last_line(data, name)))
            for name in data["proofs"] if name.startswith("sim")]
    rows = list(searched(data))
    states = sum(int(r[3].replace(",", "")) for r in rows)
    blocks = ["## Worlds of the simulators", words.SIMULATORS, table(("simulator", "found"), sims),
              "## States of the search", words.SEARCH + f" Together: {number(states)} states.",
              table(SEARCH_HEAD, rows) if rows else NOTHING]
    files = {"states.svg": states_picture(rows, footer(data, "proofs"))} if rows else {}
    blocks += [STATES_IMAGE] if rows else []
    if "model-file-variants" in data["proofs"]:
        blocks.append("Broken on purpose, the protocol of the file store must be found out: "
                      + last_line(data, "model-file-variants") + ".")
    blocks += [f"**`{name}` failed**, with exit code {proof['code']}: {proof['lines'][-1]}"
               for name, proof in data["proofs"].items() if proof["code"] != 0]
    return {"proofs.md": page("Worlds and states", data, "proofs", *blocks), **files}


# ---- chaos ----

FAILOVERS = re.compile(r"  (.*?)\s+(\d+)\s+p50\s+(\d+)\s+max\s+(\d+)$")


def verdict(run):
    if run["code"] == 0:
        return "passed"
    return "void" if any(line.startswith("VOID") for line in run["lines"]) else "**failed**"


CHAOS_HEAD = ("store", "found", "verdict")
FAULTS_HEAD = ("fault", "failovers", "p50", "greatest")
FAULTS_TITLE = "## By what was done to the leader: "
CHAOS_IMAGE = "![Failovers and overlaps by world, and failovers by fault](chaos.svg)"


def count(text, what):
    match = re.search(rf"([\d,]+) {what}", text)
    return int(match[1].replace(",", "")) if match else 0


def chaos_picture(rows, faults, line):
    """rows: those of the page's first table; faults: {store: rows of its own table}."""
    worlds = []
    for name, found, _ in rows:
        overlaps = count(found, "overlaps")
        worlds.append((name, "", count(found, "failovers"),
                       f"{count(found, 'failovers'):,}, {overlaps} overlaps",
                       "bad" if overlaps else "c0"))
    groups = [("failovers by world", worlds)]
    groups += [(f"{name}: failovers by what was done to the leader",
                [(what, "", int(n), f"{n}; p50 {p50}, greatest {most}", "c1")
                 for what, n, p50, most in of_name])
               for name, of_name in faults.items() if of_name]
    return plots.bars("Failovers that were forced on real processes", groups, line)


def chaos(data):
    blocks = [words.CHAOS]
    rows, faults = [], {}
    for name, run in data["chaos"].items():
        rows.append((name, spoken(run["lines"][-1].partition(": ")[2]), verdict(run)))
    blocks.append(table(CHAOS_HEAD, rows) if rows else NOTHING)
    blocks += [CHAOS_IMAGE] if rows else []
    for name, run in data["chaos"].items():
        times = [m.groups() for m in map(FAILOVERS.match, run["lines"]) if m]
        faults[name] = [(what, n, svg.duration(float(p50)), svg.duration(float(most)))
                        for what, n, p50, most in times]
        blocks += [FAULTS_TITLE + name, table(FAULTS_HEAD, faults[name])]
        voids = [line for line in run["lines"] if line.startswith("VOID: ")]
        if voids:
            blocks.append("Void, because:\n\n" + "\n".join("* " + v[6:] for v in voids))
    files = {"chaos.svg": chaos_picture(rows, faults, footer(data, "chaos"))} if rows else {}
    return {"chaos.md": page("Chaos", data, "chaos", *blocks), **files}


# ---- the index ----

INDEX = (
    ("failover.md", "kill -9 of the leader until another one leads"),
    ("growth.md", "cost by the number of standbys and of elections"),
    ("budgets.md", "every row of `make bench` against its budget"),
    ("proofs.md", "simulated worlds and searched states: world, faults, states, complete"),
    ("chaos.md", "failovers forced on real processes, overlaps found"),
)


def coverage(data):
    """Which stores have figures, and which have not: one cell of a table."""
    found = ["mariadb" if store == "mysql" else store for store in measured(data, "handoff")]
    known = ["memory", "file"] + [kind.partition("-")[0] for kind, _ in collect.STORES]
    missing = [store for store in known if store not in found]
    return ("a clean handoff, beside what others use: " + (", ".join(found) or "no store")
            + ("; left out: " + ", ".join(missing) if missing else ""))


def index(data):
    took = f" This run took {max(1, round(data['seconds'] / 60))} minutes." \
        if "seconds" in data else ""
    blocks = [words.INDEX + took,
              table(("page", "what"), [("[handoff.md](handoff.md)", coverage(data))]
                    + [(f"[{name}]({name})", what) for name, what in INDEX]
                    + [("[long-runs.md](long-runs.md)",
                        "runs of minutes to hours: worlds, states, planted bugs, chaos, peers")])]
    files = {}
    if "demo" in data:
        files["demo.svg"] = plots.timeline(data["demo"], footer(data, "demo"))
        blocks.append("![make demo: who works when](demo.svg)")
    if data["left_out"]:
        blocks += ["## Left out", table(("what", "why"), data["left_out"])]
    return {"README.md": page("Evidence", data, "bench", *blocks), **files}


def files(data):
    """{name: text} of everything below docs/evidence but what is kept by hand."""
    made = {}
    parts = [index]
    parts += [handoff, failover, growth, budgets] if data["bench"] else []
    parts += [proofs] if data["proofs"] else []
    parts += [chaos] if data["chaos"] else []
    for part in parts:
        made.update(part(data))
    return made


def failures(data):
    """What was proven wrong: a violation, or an overlap. A row above its budget is none."""
    return ([name for name, proof in data["proofs"].items() if proof["code"] != 0]
            + ["chaos " + name for name, run in data["chaos"].items() if "failed" in verdict(run)])
