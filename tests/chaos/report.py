# report - what a run of the chaos rig has shown, and whether it has shown anything: prints the
# figures, and all that makes the run void.
import os
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
from seat import MANNERS, kinds

ASK_S = 60
MANY = 100  # failovers: among so many there is each fault of a candidate, and each manner
TRIES = 3
ENOUGH = 5  # takeovers, for their median to say something


def why_void(options, results, took):
    """All that makes a run worthless, or shows another fault than an overlap."""
    def total(key):
        return sum(r[key] for r in results)

    failovers = sum(map(len, took.values()))
    missing = [k for k in kinds(options)
               if k not in took and (k not in ("blink", "resign") or not total("quiet"))]
    shy = set(MANNERS) - {m for r in results for m in r["manners"]}
    if missing and failovers >= MANY:
        yield "never happened: " + ", ".join(missing)
    if shy and failovers >= MANY:
        yield "manners never seen: " + "".join(sorted(shy))
    if failovers < options.failovers:
        yield f"only {failovers} failovers, {options.failovers} wanted"
    if options.in_contract and not options.until_overlap:
        yield from too_slow(took, options.bound_ms)
    if total("stuck"):
        yield f"nobody took over {total('stuck')} times"
    if total_stalled(results) > max(3, failovers // 100):
        yield f"the machine stalled {total_stalled(results)} times: too busy to prove anything"
    yield from (text for r in results for text in r["odd"])


def total_stalled(results):
    return sum(len(r["stalled"]) for r in results)


def too_slow(took, bound_ms):
    """L1, generously: the successors of one kind of fault that are late in the middle."""
    everything = [ms for times in took.values() for ms in times]
    for kind, times in {**took, "any fault": everything}.items():
        if len(times) >= ENOUGH and statistics.median(times) > bound_ms:
            yield (f"after {kind.replace('_', ' ')} it took {statistics.median(times):.0f} ms in "
                   f"the middle until somebody worked; {bound_ms:.0f} ms are enough")


def never_happened(options, faults, done, vain, failovers):
    """Of the servers' and the network's faults. A run that isn't timed goes on for all of them; one
    that is may be too short to deal them all, but what it tried has to do something some day."""
    missing = sorted(set(faults) - set(done))
    if options.until_overlap or not missing:
        return
    wrong = [k for k in missing if not options.minutes or failovers >= MANY or vain[k] >= TRIES]
    if wrong:
        yield "never happened: " + ", ".join(wrong)
    if len(wrong) < len(missing):
        print("LEFT OUT, for the time was short: "
              + ", ".join(k for k in missing if k not in wrong))


def report_world(options, results, failovers):
    """What became of the servers, the network and the resource; yields what makes it void."""
    stage = options.stage
    print("the servers and the network: "
          + ", ".join(f"{kind.replace('_', ' ')} {n}" for kind, n in sorted(stage.done.items())))
    if stage.world.machines and not stage.is_apart:
        print("LEFT OUT: network namespaces are not allowed here; partitions were made by a proxy")
    if not stage.world.machines:
        print("LEFT OUT: partitions and slow or lost answers, for the servers are named elsewhere")
    accepted, refused, wrong = stage.judge([r["name"] for r in results])
    print(f"the fenced resource: {accepted} writes accepted, {refused} of older terms refused")
    yield from wrong
    yield from never_happened(options, stage.world.faults, stage.done, stage.vain, failovers)
    if not accepted:
        yield "nothing was written to the resource"
    if not stage.world.in_contract and not refused:
        yield "the resource had nothing to refuse"


def check_history(options, result):
    """What the store itself remembers, when all is over; yields what is wrong with it."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("BATON_")}
    done = subprocess.run([options.baton, "history", "--check", "--store=" + result["store"],
                           result["name"]], env=env, text=True, capture_output=True,
                          timeout=ASK_S, check=False)
    has_none = "keeps no history" in done.stderr
    if done.returncode != 0 and not has_none and not options.until_overlap:
        yield f"the history of {result['name']} is not in order: {done.stdout}{done.stderr}"


def report(options, results, seconds):
    took = {}
    for r in results:
        for kind, times in r["took_ms"].items():
            took.setdefault(kind, []).extend(times)
    total = {key: sum(r[key] for r in results) for key in
             ("quiet", "bystanders", "escaped", "escapes", "stamps", "seats", "isolated")}
    overlaps = [text for r in results for text in r["overlaps"]]
    failovers = sum(map(len, took.values()))
    void = list(why_void(options, results, took))

    print(f"seed {options.seed}; failovers in milliseconds, by what was done to the leader; in the "
          f"middle at most {options.bound_ms:.0f}{'' if options.in_contract else ' in contract'}:")
    for kind, times in sorted(took.items()):
        print(f"  {kind.replace('_', ' '):28} {len(times):5}   p50 {statistics.median(times):6.0f}"
              f"   max {max(times):6.0f}")
    print(f"{total['seats']} supervisors ({total['isolated']} isolated), {total['stamps']} stamps; "
          f"{total['quiet']} blinks without a failover, {total['bystanders']} bystanders hurt")
    if options.in_contract:
        void += [text for r in results for text in check_history(options, r)]
    if options.stage:
        void += report_world(options, results, failovers)
    print(f"escaped, as no process could prevent: {total['escaped']} processes of "
          f"{total['escapes']} supervisors")
    for text in [text for r in results for text in r["story"]][:60 if options.in_contract else 10]:
        print(text)
    for text in void:
        print("VOID: " + text)
    if total_stalled(results):
        print(f"{total_stalled(results)} more overlaps while the machine stalled for longer than "
              "the drift allows: see above")
    print(f"chaos: {failovers} failovers, {seconds:.0f} seconds, {len(overlaps)} overlaps"
          f"{'' if options.in_contract else ' out of contract'}", flush=True)
    return 1 if (overlaps and options.in_contract) or void else 0
