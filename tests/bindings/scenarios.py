# scenarios.py - what every binding has to do, written once for all languages: each function
# scenario_NAME(w) plays one case in a world of its own (play.py), through the lines of README.md.
#
# The order is the order of play. Those named in FEW are part of `make test`, the others of
# `make verify`. No scenario asserts how long something takes, but two, of the fastest of several: a
# loss cancels within 50 ms, and an exit hook gives back within a second, on any load.
import os
import re
import signal
import socket
import subprocess

from play import (BUILD, LIMIT_S, TOP, Frozen, Refused, Skipped, command_of, environment, now_ns,
                  unquoted, wait_for)

FEW = ("elected", "cancels", "hands_on", "errors", "constants", "example")
CANCEL_NS = 50_000_000
EXIT_NS = 1_000_000_000
BIG_TERM = (1 << 53) + 1  # what a double can't hold
# Cycles of open and close before memory is watched, and in each round while it is; and how many KiB
# one of them may leave: less than an election has. A collector's heap moves by as much as 2,000 KiB
# from round to round, and a compiler takes memory for long: so there are many rounds.
WARM_UP, CYCLES, MAX_ROUNDS = 600, 500, 20
KIB_PER_CYCLE = {"cpp": 0.25, "rust": 0.25, "python": 0.25, "java": 0.9}
KIB_PER_CYCLE_COLLECTED = 0.75


def refused(one, code, *request):
    """The request fails with that code, and a sentence; the sentence."""
    try:
        answer = one.ask(*request)
    except Refused as error:
        assert error.name == code, f"{request}: {error}"
        assert error.number < 0 and len(error.sentence) > 8, f"{request}: {error}"
        return error.sentence
    raise AssertionError(f"{request} is answered with {answer}, not refused")


def entered(one, election="e"):
    """Waits for the body; (name of its lead, term, when)."""
    lead, term, at = one.event("enter", election)
    return lead, int(term), int(at)


def left(one, election="e"):
    """Waits until the body has ended; (how, when)."""
    _, how, at = one.event("leave", election)
    return how, int(at)


def scenario_elected(w):
    """One candidate leads: term, leads, time left and status agree."""
    one = w.candidate()
    language, version, number = one.ask("hello")
    assert language == w.language.split("-")[0], language
    major, minor, patch = map(int, version.split("."))
    assert int(number) == major * 1000000 + minor * 1000 + patch
    assert one.ask("leads", "e") == ["0"] and one.ask("term", "e") == ["0"]
    one.ask("run", "e", "wait")
    lead, term, _ = entered(one)
    assert term == 1
    assert one.ask("leads", lead) == ["1"] and one.ask("leads", "e") == ["1"]
    assert one.ask("term", lead) == ["1"] and one.ask("lost", lead) == ["0"]
    assert 0 < int(one.ask("left", lead)[0]) <= 4000
    assert one.ask("status", "e") == ["leading", one.id, "1"]
    one.ask("close", "s")
    assert left(one)[0] == "cancelled"
    assert one.end() == 0
    assert [h["ended"] for h in w.history()] == ["stopped"]


def scenario_cancels(w):
    """The loss of the leadership cancels the body."""
    one = w.candidate()
    one.ask("run", "e", "wait")
    took_ns = []
    for term in range(1, 6):
        lead, found, _ = entered(one)
        assert found == term
        began = now_ns()
        one.ask("resign", "e", 0)
        took_ns.append(int(one.event("lost", "e")[1]) - began)
        assert left(one)[0] == "cancelled"
        assert one.ask("leads", lead) == ["0"] and one.ask("lost", lead) == ["1"]
    assert min(took_ns) <= CANCEL_NS, f"the fastest took {min(took_ns) / 1e6:.0f} ms"


def scenario_swallows(w):
    """A body that swallows the cancellation still counts as running: nobody else leads."""
    one, two = w.candidate(), w.candidate()
    one.ask("run", "e", "stubborn")
    lead, _, _ = entered(one)
    two.ask("run", "e", "wait")
    one.ask("resign", "e", 0)
    one.event("lost", "e")
    assert one.ask("leads", lead) == ["0"]
    refused(two, "timeout", "await", "e", 2000)
    assert not two.has("enter", "e")
    one.ask("finish", "e")
    how, at = left(one)
    assert how == "returned"
    assert entered(two)[2] > at


def scenario_hands_on(w):
    """The leadership passes on only after the body has ended."""
    pair = [w.candidate(), w.candidate()]
    for one in pair:
        one.ask("run", "e", "wait")
    ended = 0
    for term in range(1, 5):
        was = wait_for(lambda: [one for one in pair if one.has("enter", "e")], "a leader")[0]
        _, found, at = entered(was)
        assert found == term and at > ended
        was.ask("resign", "e", 0)
        ended = left(was)[1]


def scenario_raises(w):
    """What the body raises ends the loop, is not lost, and gives the leadership back."""
    one, two = w.candidate(), w.candidate()
    one.ask("run", "e", "raise")
    assert left(one)[0] == "raised"
    end = one.event("end", "e")
    assert end[0] == "raised" and "the body failed" in end[1], end
    two.ask("run", "e", "wait")
    assert entered(two)[1] == 2


def scenario_returns(w):
    """A body that returns resigns; it is called again for the next leadership."""
    one = w.candidate()
    one.ask("run", "e", "until")
    for term in (1, 2):
        assert entered(one)[1] == term
        one.ask("finish", "e")
        assert left(one)[0] == "returned"


def scenario_stops_inside(w):
    """The body stops its own election: cancelled, the loop ends, another leads."""
    one, two = w.candidate(), w.candidate()
    one.ask("run", "e", "stop")
    entered(one)
    two.ask("run", "e", "wait")
    one.event("lost", "e")
    _, at = left(one)
    assert one.event("end", "e") == ["stopped"]
    assert entered(two)[2] > at


def scenario_closes_waiting(w):
    """Closing while the loop waits to be elected ends the loop."""
    one, two = w.candidate(), w.candidate()
    one.ask("run", "e", "wait")
    entered(one)
    two.ask("run", "e", "wait")
    wait_for(lambda: two.ask("status", "e")[1] == one.id, "the standby to see the leader")
    two.ask("close", "s")
    assert two.event("end", "e") == ["stopped"]
    assert one.ask("leads", "e") == ["1"]


def scenario_closes_starting(w):
    """Closing while the loop starts its election ends the loop: no start comes after the stop."""
    one = w.driver()
    for i in range(40):
        store, election = f"s{i}", f"e{i}"
        one.ask("open", store, w.url, "lease_ms=4000", "retry_ms=100")
        one.ask("election", election, store, "night", "observe_only=1")
        one.ask("run", election, "wait")
        while one.ask("status", election)[0] == "stopped":
            pass
        one.ask("close", store)
        assert one.event("end", election) == ["stopped"]


def scenario_closes_asking(w):
    """A close waits for what asks the store meanwhile: nothing uses a handle that is gone."""
    one = w.driver()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(LIMIT_S)
        one.ask("open", "s", f"redis://127.0.0.1:{silent.getsockname()[1]}", "lease_ms=1500")
        one.ask("observe", "s", "night")
        asked = silent.accept()[0]
        one.ask("close", "s")
        assert one.event("observed", "s")[0] == "error"
        asked.close()
    assert one.end() == 0


def scenario_candidates(w):
    """The store's list of candidates: who leads, who may lead, and how well each of them is."""
    one, two = w.candidate(), w.candidate()
    one.ask("start", "e")
    one.ask("await", "e", LIMIT_S * 1000)
    two.ask("start", "e")
    want = {f"{one.id}=1,1,1000,", f"{two.id}=0,1,1000,"}
    wait_for(lambda: set(two.ask("candidates", "s", "night")) == want,
             lambda: f"{want}: {two.ask('candidates', 's', 'night')}")
    assert one.ask("candidates", "s", "nobody") == []


def can(one, *request):
    """The answer; None: the binding can't do that."""
    try:
        return one.ask(*request)
    except Skipped:
        return None


def scenario_asks(w):
    """What is known without a look at the leader itself: promises, the leader, the condition."""
    one, two = w.candidate(), w.candidate()
    promises = one.ask("promises", "s")[0]
    assert "Exclusion" in promises and promises == two.ask("promises", "s")[0], promises
    one.ask("start", "e")
    one.ask("await", "e", LIMIT_S * 1000)
    for name, leader, term in (("nobody", "", "0"), ("night", one.id, "1")):
        if can(two, "observe", "s", name) is not None:
            assert two.event("observed", "s") == ["leader", leader, term]
    assert can(one, "condition", "e") in (None, ["healthy"])
    assert can(two, "condition", "e") in (None, ["degraded"])  # it has not looked


def scenario_stalls(w):
    """Work that gives signs of life goes on; without one for the work timeout, it is cancelled."""
    one = w.candidate()
    one.ask("election", "m", "s", "minded", "work_timeout_ms=2000")
    one.ask("start", "m")
    one.ask("await", "m", LIMIT_S * 1000)
    lead, _ = one.ask("enter", "m")
    for _ in range(5):
        one.ask("alive", "m", lead)
        refused(one, "timeout", "awaitlost", lead, 500)
    one.ask("awaitlost", lead, LIMIT_S * 1000)
    one.ask("leave", lead)
    assert one.end() == 0
    assert "stalled" in [h["ended"] for h in w.history("minded")], w.history("minded")


def scenario_preempts(w):
    """A candidate that outranks the leader for long enough takes over, in order."""
    one, two = w.candidate(lease_ms=1500), w.candidate(lease_ms=1500)
    one.ask("election", "r", "s", "ranked", "priority=1")
    two.ask("election", "r", "s", "ranked", "priority=2", "preempt_ms=1500")
    one.ask("run", "r", "wait")
    assert entered(one, "r")[1] == 1
    two.ask("run", "r", "wait")
    how, ended = left(one, "r")
    assert how == "cancelled"
    _, term, at = entered(two, "r")
    assert term == 2 and at > ended


def scenario_outlives(w):
    """What others were told outlives the process: nobody leads before that deadline has passed."""
    one, two = w.candidate(lease_ms=2000, outlive=1), w.candidate(lease_ms=2000)
    one.ask("run", "e", "wait")
    lead, _, _ = entered(one)
    two.ask("run", "e", "wait")
    wait_for(lambda: two.ask("status", "e")[1] == one.id, "the standby to see the leader")
    before = now_ns()
    told_ns = before + int(one.ask("left", lead)[0]) * 1_000_000
    one.signal(signal.SIGKILL)
    _, term, at = entered(two)
    assert term == 2 and at >= told_ns, f"{(told_ns - at) / 1e6:.0f} ms before the deadline"


HEARD = ["became", "lost", "stopped"]


def scenario_hears_end(w):
    """A handler is still busy with the beginning: a stop, or a close, waits until it has heard the
    end (S8)."""
    one = w.candidate()
    for election in ("f", "g"):
        one.ask("election", election, "s", "of-" + election, "hear_ms=300")
        assert one.ask("heard", election) == []
        one.ask("start", election)
        one.ask("await", election, LIMIT_S * 1000)
    one.ask("stop", "f", LIMIT_S * 1000)
    assert one.ask("heard", "f") == HEARD
    one.ask("close", "s")
    assert one.ask("heard", "g") == HEARD


def scenario_ends_in_handler(w):
    """A handler that stops its election, or closes the store, doesn't wait for itself."""
    one = w.driver()
    for how in ("stop", "close"):
        one.ask("open", how, w.url, "lease_ms=4000", "retry_ms=100")
        one.ask("election", how, how, "of-" + how, "hear_ms=1", "inside=" + how)
        one.ask("start", how)
        wait_for(lambda how=how: one.ask("heard", how) == HEARD, f"the end, after a {how}")
    assert one.end() == 0


def order(w, one, what, *words):
    """An order, from the binding if it has orders, else from the command: another process."""
    try:
        one.ask("order", "s", what, "night", *words)
    except Skipped:
        w.baton(what, "night", *(("--to", *words) if words else ()))


def leader_of(them):
    """The first of them whose body begins."""
    return wait_for(lambda: [each for each in them if each.has("enter", "e")], "a leader")[0]


def scenario_orders(w):
    """What leaders are told to do: transfer, resign, pause and resume, by the election itself and
    by others; the history knows why each leadership ended."""
    one, two, three = them = [w.candidate(id=name) for name in ("one", "two", "three")]
    one.ask("run", "e", "wait")
    assert entered(one)[1] == 1
    for each in (two, three):
        each.ask("run", "e", "wait")
    wait_for(lambda: len(one.ask("candidates", "s", "night")) == 3, "all to be known")
    refused(two, "not_leader", "transfer", "e", "one")
    refused(one, "no_candidate", "transfer", "e", "nobody")
    one.ask("transfer", "e", "two")
    assert entered(two)[1] == 2 and left(one)[0] == "cancelled"
    order(w, one, "transfer", "three")
    assert entered(three)[1] == 3 and left(two)[0] == "cancelled"
    order(w, two, "resign")
    assert left(three)[0] == "cancelled"
    leader = leader_of(them)
    assert entered(leader)[1] == 4
    order(w, one, "pause")
    assert left(leader)[0] == "cancelled"
    for each in them:
        refused(each, "timeout", "await", "e", 300)
    order(w, one, "resume")
    assert entered(leader_of(them))[1] == 5
    ended = [h["ended"] for h in w.history()]
    assert ended[:0:-1] == ["transferred", "transferred", "ordered", "paused"], ended


def scenario_health(w):
    """A score below the minimum steps down, and the recovery returns, as the options say."""
    one, two = w.candidate(), w.candidate()
    one.ask("run", "e", "wait")
    assert entered(one)[1] == 1
    two.ask("health", "e", 300)
    two.ask("run", "e", "wait")
    one.ask("health", "e", 799)
    assert left(one)[0] == "cancelled"
    for each in (one, two):
        refused(each, "timeout", "await", "e", 500)
    two.ask("health", "e", 800)
    assert entered(two)[1] == 2
    one.ask("health", "e", 1000)
    two.ask("health", "e", 0)
    assert left(two)[0] == "cancelled" and entered(one)[1] == 3
    assert [h["ended"] for h in w.history()][1:] == ["unhealthy", "unhealthy"], w.history()
    one.ask("election", "stays", "s", "other", "step_down_unhealthy=0")
    one.ask("run", "stays", "until")
    entered(one, "stays")
    one.ask("health", "stays", 0)
    wait_for(lambda: one.ask("candidates", "s", "other") == [f"{one.id}=1,0,0,"], "the score")
    shown = ""
    for score, words in ((0, ("zone=\u6f22 1",)), (400, ()), (900, ("x",))):
        one.ask("health", "stays", score, *words)
        shown = words[0] if words else shown
        want = [f"{one.id}=1,{int(score >= 800)},{score},{shown}"]
        wait_for(lambda want=want: one.ask("candidates", "s", "other") == want,
                 lambda want=want: f"{want}: {one.ask('candidates', 's', 'other')}")
    assert one.ask("leads", "stays") == ["1"] and not one.has("leave", "stays")


def scenario_keeps(w):
    """A stop that does not release leaves the claim to the lease, and is a stop nevertheless."""
    one, two = w.candidate(), w.candidate()
    one.ask("election", "kept", "s", "kept", "release_on_stop=0")
    two.ask("election", "kept", "s", "kept", "manual=1")
    two.ask("start", "kept")
    one.ask("start", "kept")
    one.ask("await", "kept", LIMIT_S * 1000)
    one.ask("stop", "kept", LIMIT_S * 1000)
    assert one.ask("leads", "kept") == ["0"]
    assert two.ask("try", "kept", LIMIT_S * 1000) == ["0"]
    wait_for(lambda: two.ask("try", "kept", LIMIT_S * 1000) == ["1"], "the lease to end")


def scenario_two_elections(w):
    """A body that doesn't end delays no event of another election of the same store."""
    one = w.candidate()
    one.ask("election", "f", "s", "other")
    one.ask("run", "e", "stubborn")
    one.ask("run", "f", "wait")
    entered(one)
    assert entered(one, "f")[1] == 1
    one.ask("resign", "e", 0)
    one.event("lost", "e")
    one.ask("resign", "f", 0)
    assert left(one, "f")[0] == "cancelled"
    assert entered(one, "f")[1] == 2
    assert not one.has("leave", "e")
    one.ask("finish", "e")
    assert left(one)[0] == "returned"


def scenario_big_term(w):
    """A term above 2^53 is told exactly."""
    one = w.candidate()
    one.ask("run", "e", "until")
    entered(one)
    one.end()
    folder = os.path.join(w.store, "elections", "night")
    for name in ("1".zfill(20), "1".zfill(20) + ".end"):
        path = os.path.join(folder, name)
        with open(path, encoding="ascii") as file:
            text = file.read()
        with open(path, "w", encoding="ascii") as file:
            file.write(re.sub(r"(?m)^term 1$", f"term {BIG_TERM - 1}", text))
    one = w.candidate()
    one.ask("run", "e", "wait")
    lead, term, _ = entered(one)
    assert term == BIG_TERM, term
    assert one.ask("term", lead) == [str(BIG_TERM)]
    assert one.ask("status", "e")[2] == str(BIG_TERM)


def scenario_frozen(w):
    """Stopped for longer than the lease: the first `leads` afterwards is false."""
    one, two = w.candidate(lease_ms=1000), w.candidate(lease_ms=1000)
    one.ask("run", "e", "wait")
    lead, _, _ = entered(one)
    two.ask("run", "e", "wait")
    one.signal(signal.SIGSTOP)
    assert entered(two)[1] == 2
    one.tell("leads", lead)
    one.signal(signal.SIGCONT)
    assert one.answer() == ["0"]
    assert left(one)[0] == "cancelled"


def scenario_hung(w):
    """Every thread of the library stands still: the deadline cancels all the same."""
    one = w.candidate(lease_ms=2000)
    one.ask("start", "e")
    one.ask("await", "e", LIMIT_S * 1000)
    lead, _ = one.ask("enter", "e")
    with Frozen(one.library_threads()) as frozen:
        assert frozen.tids
        one.ask("awaitlost", lead, LIMIT_S * 1000)
        assert one.ask("leads", lead) == ["0"]
    one.ask("leave", lead)
    assert one.end() == 0


def points_to(link, target):
    """Makes the link point there, at once: nothing can be made in its place in between."""
    os.symlink(target, link + "-new")
    os.rename(link + "-new", link)


def scenario_store_gone(w):
    """The store is gone: the body is cancelled; it comes back: elected again."""
    folder, file = os.path.join(w.folder, "folder"), os.path.join(w.folder, "file")
    os.mkdir(folder, 0o700)
    with open(file, "w", encoding="ascii"):
        pass  # no store can be made in its place
    points_to(w.store, folder)
    one = w.candidate(lease_ms=1500)
    one.ask("run", "e", "wait")
    entered(one)
    points_to(w.store, file)
    one.event("lost", "e")
    assert left(one)[0] == "cancelled"
    points_to(w.store, folder)
    assert entered(one)[1] == 2


def scenario_fork(w):
    """In a forked child nothing leads, and each call says that the handle is the parent's."""
    one = w.candidate()
    one.ask("run", "e", "wait")
    lead, _, _ = entered(one)
    assert one.ask("fork", "e") == ["0", "forked"]
    assert one.ask("leads", lead) == ["1"]
    one.ask("resign", "e", 0)
    assert left(one)[0] == "cancelled"


def comm(pid):
    """The name of the program that the process runs since its last exec."""
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read().strip()


def more_descriptors(pid):
    """{descriptor: what it is} of a process, beyond the standard three."""
    more = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            if int(fd) > 2:
                more[fd] = os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            pass  # closed meanwhile
    return more


def scenario_child(w):
    """A program that is started while leading inherits no descriptor."""
    one = w.candidate()
    one.ask("run", "e", "wait")
    entered(one)
    pid = int(one.ask("child")[0])
    # What was inherited stays open. What the loader opens for a moment does not.
    wait_for(lambda: comm(pid) == "cat", "cat to run")
    wait_for(lambda: not more_descriptors(pid),
             lambda: f"cat to hold no descriptor: {more_descriptors(pid)}", 10)


def scenario_forgotten(w):
    """A store that is collected without a close warns, doesn't hang, and stops."""
    one, two = w.candidate(), w.candidate()
    one.ask("start", "e")
    one.ask("await", "e", LIMIT_S * 1000)
    two.ask("run", "e", "wait")
    one.ask("drop", "s")
    assert entered(two)[1] == 2
    assert "baton" in one.errors(), "no warning"
    assert one.ask("hello")
    assert one.end() == 0
    assert w.history()[-1]["ended"] == "stopped", w.history()


def scenario_lead_forgotten(w):
    """A lead that is collected without being left warns, and is not left: its work may go on."""
    one = w.candidate()
    one.ask("start", "e")
    one.ask("await", "e", LIMIT_S * 1000)
    one.ask("lose", one.ask("enter", "e")[0])
    wait_for(lambda: "baton" in one.errors(), "a warning")
    assert one.ask("leads", "e") == ["1"]
    one.ask("resign", "e", 0)
    wait_for(lambda: one.ask("status", "e")[0] == "resigning", "the loss")
    two = w.candidate()
    two.ask("start", "e")
    refused(two, "timeout", "await", "e", 500)


def scenario_exits(w):
    """The program exits while it leads: an exit hook gives the leadership back, within a second if
    the machine isn't too busy for that. One of five exits has to be so fast."""
    took_ns = []
    while len(took_ns) < 5 and (not took_ns or min(took_ns) > EXIT_NS):
        name = f"night-{len(took_ns)}"
        one, two = w.candidate(name), w.candidate(name)
        one.ask("run", "e", "wait")
        entered(one)
        two.ask("run", "e", "wait")
        wait_for(lambda: two.ask("status", "e")[1] == one.id, "the standby to see the leader")
        began = now_ns()
        one.tell("exit", 3)
        assert one.wait() == 3
        _, term, at = entered(two)
        took_ns.append(at - began)
        assert term == 2
        assert w.history(name)[-1]["ended"] == "stopped", w.history(name)
    assert min(took_ns) <= EXIT_NS, f"the fastest took {min(took_ns) / 1e6:.0f} ms"


def scenario_interrupted(w):
    """SIGINT wakes the program: it ends in order."""
    one, two = w.candidate(), w.candidate()
    one.ask("run", "e", "wait")
    entered(one)
    two.ask("run", "e", "wait")
    one.signal(signal.SIGINT)
    assert one.wait() in (0, 130, -signal.SIGINT), one.process.returncode
    assert entered(two)[1] == 2
    assert w.history()[-1]["ended"] == "stopped", w.history()


def scenario_killed(w):
    """SIGKILL: another leads, in a higher term."""
    one, two = w.candidate(), w.candidate()
    one.ask("run", "e", "wait")
    entered(one)
    two.ask("run", "e", "wait")
    one.signal(signal.SIGKILL)
    assert entered(two)[1] == 2


def scenario_cycles(w):
    """A thousand times open and close leave no descriptor, thread or memory behind. What a runtime
    and its allocator take for themselves, they take once: more rounds make it less per cycle."""
    one = w.driver()
    most_kib = KIB_PER_CYCLE.get(w.language.split("-")[0], KIB_PER_CYCLE_COLLECTED)

    def cycle(n):
        one.ask("cycle", n, "memory:cycles")
        one.ask("gc")
        wait_for(lambda: not one.library_threads(), "the library's threads to end")

    cycle(WARM_UP)
    descriptors, threads, memory_kib = one.descriptors(), len(one.threads()), one.memory_kib()
    grown_kib = []
    while len(grown_kib) < 2 or (len(grown_kib) < MAX_ROUNDS and grown_kib[-1] > most_kib):
        cycle(CYCLES)
        wait_for(lambda: one.descriptors() == descriptors,
                 lambda: f"{descriptors} descriptors: {one.descriptors()}")
        # A runtime starts and ends threads of its own as it likes.
        wait_for(lambda: len(one.threads()) <= threads + 2, "threads to end")
        rounds = len(grown_kib) + 1
        grown_kib.append((one.memory_kib() - memory_kib) / (rounds * CYCLES))
    print(f"  {w.language}: {', '.join(f'{kib:.2f}' for kib in grown_kib)} KiB per cycle")
    assert grown_kib[-1] <= most_kib, f"{grown_kib} KiB per cycle, more than {most_kib}"


def scenario_names(w):
    """Every legal byte of a name, an id and an address arrives as it was given."""
    name = "".join(chr(c) for c in range(33, 127)) + "\u00e9\u6f22\U0001f600"
    one = w.candidate(name, id="id \u00e9%\"'\\", address="host:1/\u6f22")
    assert one.id == "id \u00e9%\"'\\"
    assert unquoted(one.said[-1].split()[1]) == name
    one.ask("run", "e", "wait")
    entered(one)
    assert one.ask("status", "e")[1] == one.id
    assert one.id in w.baton("status", name)
    odds = (" night shift ", "%20", "..", "a/b", "\u00a0\ufeff\u202e", "-", "\U0010ffff")
    for i, odd in enumerate(odds):
        assert one.ask("election", f"odd{i}", "s", odd) == [odd]
        one.ask("run", f"odd{i}", "until")
        entered(one, f"odd{i}")
        assert one.id in w.baton("status", odd), odd
    one.ask("election", "longest", "s", "x" * 253)
    for bad in ("", "x" * 254, "a\0b", "a\nb"):
        refused(one, "invalid", "election", "bad", "s", bad)


def scenario_errors(w):
    """Errors keep their code and their sentence."""
    one = w.candidate()
    assert "nosuch" in refused(one, "no_driver", "open", "x", "nosuch:x")
    refused(one, "url", "open", "x", "file:?nosuch=1")
    refused(one, "timing", "open", "x", w.url, "lease_ms=1000", "renew_ms=2000")
    refused(one, "exists", "election", "f", "s", "night")
    refused(one, "not_leader", "enter", "e")
    refused(one, "not_leader", "resign", "e", 0)
    refused(one, "not_started", "try", "e", 100)
    one.ask("start", "e")
    one.ask("await", "e", LIMIT_S * 1000)
    assert one.end() == 0


def scenario_manual(w):
    """An election that campaigns only when told; only one of two wins."""
    one, two = w.candidate(), w.candidate()
    for each in (one, two):
        each.ask("election", "m", "s", "by-hand", "manual=1")
        each.ask("start", "m")
    assert one.ask("try", "m", LIMIT_S * 1000) == ["1"]
    assert two.ask("try", "m", LIMIT_S * 1000) == ["0"]
    assert one.ask("try", "m", LIMIT_S * 1000) == ["1"]


def scenario_observer(w):
    """One that only observes never leads, and sees the leader."""
    one, two = w.candidate(), w.candidate()
    two.ask("election", "o", "s", "watched", "observe_only=1")
    two.ask("start", "o")
    one.ask("election", "o", "s", "watched")
    one.ask("run", "o", "wait")
    entered(one, "o")
    wait_for(lambda: two.ask("status", "o")[1] == one.id, "the observer to see the leader")
    assert two.ask("leads", "o") == ["0"]
    one.ask("close", "s")
    wait_for(lambda: two.ask("status", "o")[1] == "", "the observer to see that nobody leads")
    assert two.ask("leads", "o") == ["0"]


def scenario_several_leads(w):
    """Two pieces of work in one leadership: it passes on when both have ended."""
    one, two = w.candidate(), w.candidate()
    one.ask("start", "e")
    one.ask("await", "e", LIMIT_S * 1000)
    first, second = (one.ask("enter", "e")[0] for _ in range(2))
    two.ask("run", "e", "wait")
    one.ask("resign", "e", 0)
    for lead in (first, second):
        one.ask("awaitlost", lead, LIMIT_S * 1000)
        assert one.ask("leads", lead) == ["0"]
    one.ask("leave", first)
    refused(two, "timeout", "await", "e", 1000)
    assert not two.has("enter", "e")
    before = now_ns()
    one.ask("leave", second)
    assert entered(two)[2] > before


def scenario_constants(w):
    """The binding's constants and offsets are those of baton.h."""
    with open(os.path.join(TOP, "tests", "api", "abi.txt"), encoding="ascii") as file:
        truth = dict(line.rsplit(None, 1) for line in file if not line.startswith("#"))
    theirs = dict(pair.split("=") for pair in w.driver().ask("constants"))
    wrong = {k: v for k, v in theirs.items() if truth.get(k) != v}
    assert not wrong, f"not as in baton.h: {wrong}"
    kinds = ("BATON_E_", "BATON_EVENT_", "BATON_REASON_")
    missing = [k for k in truth if k.startswith(kinds) and k not in theirs]
    assert not missing, f"missing: {missing}"


def plays_example(w, how):
    """Builds the README's example, as make does it with that word, and waits until it leads."""
    if "-" in w.language:
        raise Skipped("it is that of " + w.language.split("-")[0])
    with open(os.path.join(TOP, "bindings", w.language, "README.md"), encoding="utf-8") as file:
        block = re.search(r"(?ms)^```\S+ example(?:=(\S+))?\n(.*?)^```$", file.read())
    assert block, "the README has no example"
    name = block.group(1) or "example"
    assert "file:/var/lib/myapp" in block.group(2), "the example names no store"
    folder = os.path.join(BUILD, "bindings", w.language)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(block.group(2).replace("file:/var/lib/myapp", w.url))
    with open(os.path.join(w.folder, "example.log"), "w", encoding="utf-8") as log:
        example = subprocess.Popen(command_of(w.language, how, name), env=environment(),
                                   stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        for line in example.stdout:
            if "leads in term 1" in line:
                break
        else:
            with open(log.name, encoding="utf-8") as file:
                raise AssertionError(f"exit code {example.wait()}, never led: {file.read()}")
        if example.poll() is None:
            example.send_signal(signal.SIGINT)
        example.stdout.read()
        assert example.wait(LIMIT_S) in (0, 130, -signal.SIGINT), example.returncode
    finally:
        example.kill()
        example.wait()
        example.stdout.close()


def scenario_example(w):
    """The README's example runs."""
    plays_example(w, "example")


def scenario_package(w):
    """The README's example runs with the binding as its package is installed."""
    plays_example(w, "package")


def all_of_them():
    """{name: function}, in the order of this file."""
    return {name[len("scenario_"):]: function for name, function in globals().items()
            if name.startswith("scenario_")}
