# many.py - a process that is a candidate in many elections at once, without the command; and how
# many requests such processes send, counted at the server (tests/s3/run, tests/mysql/run, ...).
import ctypes
import os

from rig import BATON, stays, wait_for

# Elections of one process: 10000 for the record (MANY=10000 tests/s3/run BATON traffic), fewer in
# every test run.
MANY = int(os.environ.get("MANY", "1000"))
RENEW_S = 5 # by default; the lease is three times as long
WATCH_S = 15 # so long the leaders' requests are counted,
LOOK_S = 10 # ... and so long those of standbys
SETTLE_S = 2
LIMIT_S = 300 # thousands of elections on a slow server


class Many:
    """A handle of this process, with n elections."""

    def __init__(self, w, url, n):
        for name in ("BATON_MODULE_DIR", "HOME", "AWS_EC2_METADATA_DISABLED"):
            if name in w.env:
                os.environ[name] = w.env[name]
        self.lib = ctypes.CDLL(os.path.join(os.path.dirname(BATON), "libbaton.so.0"))
        self.lib.baton_is_leader.restype = ctypes.c_bool
        self.handle = ctypes.c_void_p()
        if self.lib.baton_open(url.encode(), None, ctypes.byref(self.handle), None) != 0:
            raise AssertionError("baton_open fails")
        self.all = [ctypes.c_void_p() for _ in range(n)]
        for i, e in enumerate(self.all):
            if self.lib.baton_election_new(self.handle, f"many-{i}".encode(), None,
                                           ctypes.byref(e), None) != 0:
                raise AssertionError("baton_election_new fails")
            self.lib.baton_election_start(e)

    def lead(self):
        return all(self.lib.baton_is_leader(e) for e in self.all)

    def leads_none(self):
        return not any(self.lib.baton_is_leader(e) for e in self.all)

    def close(self):
        self.lib.baton_close(self.handle)


def counted(for_s, *counts):
    before = [count() for count in counts]
    stays(lambda: True, for_s, "quiet")
    return [count() - was for count, was in zip(counts, before)]


def is_between(what, n, least, most):
    print(f"{what}: {n:.0f}, at least {least:.0f} and at most {most:.0f}", flush=True)
    if not least <= n <= most:
        raise AssertionError(f"{what}: {n} is not between {least:.0f} and {most:.0f}")


def looks(w, leaders, urls, reads, at_rest, per_s):
    """What standbys add to the requests of the leaders, which look for orders themselves. at_rest:
    reads of the leaders in a second; per_s: what the standbys may add to that. Fewer are those of a
    slow machine, or of a counter that counts nothing."""
    standbys = [Many(w, url, len(many.all)) for many, url in zip(leaders, urls)]
    # They campaign once, and then only look.
    wait_for(lambda: counted(SETTLE_S, reads)[0] <= 1.5 * SETTLE_S * (at_rest + per_s),
             "standbys that only look", LIMIT_S)
    print(f"reads of the leaders: {at_rest:.1f} in a second", flush=True)
    is_between(f"reads of {len(standbys)} standbys in {LOOK_S} s",
               counted(LOOK_S, reads)[0] - at_rest * LOOK_S, 0.25 * per_s * LOOK_S,
               1.4 * per_s * LOOK_S)
    if not all(many.leads_none() for many in standbys):
        raise AssertionError("a standby leads")
    for many in standbys:
        many.close()


def traffic(w, sizes, url, writes, reads=None, per_look=0, poll_s=1):
    """A process for each size, all at once; url(prefix) is where it is a candidate. Each renews
    once per interval, whatever the number of elections; the standbys of all of them together read
    per_look times in poll_s."""
    urls = [url(f"n{n}") for n in sizes]
    leaders = [Many(w, where, n) for where, n in zip(urls, sizes)]
    for many, n in zip(leaders, sizes):
        wait_for(many.lead, f"{n} leaderships", LIMIT_S)
    stays(lambda: True, 1, "quiet") # they show themselves when they lead
    n_writes, n_reads = counted(WATCH_S, writes, reads or writes)
    expected = len(sizes) * WATCH_S / RENEW_S
    is_between(f"requests to renew in {WATCH_S} s", n_writes, expected - len(sizes),
               expected + len(sizes))
    if not all(many.lead() for many in leaders):
        raise AssertionError("not all lead any more")
    if reads is not None:
        looks(w, leaders, urls, reads, n_reads / WATCH_S, per_look / poll_s)
    for many in leaders:
        many.close()
