# judge - the overlap oracle of the chaos rig: did two terms ever work at once?
#
# Every process of every worker appends stamps (term, boot clock, pid, seat) to one file. Appends
# are serialised by the kernel, and the clock is read before each. So two things must hold, and each
# is checked: in the order of the file, no stamp of a lower term comes after one of a higher term;
# and no term has a stamp whose clock is not later than every stamp of every lower term. Neither
# can raise a false alarm: a stamp is made by a process that works at that instant.
#
# One thing no process can prevent without a cgroup or a PID namespace: supervisor and guard are
# gone in one act, and a descendant has given up all that ties it to anybody. It is excused
# (counted as escaped, never as an overlap) only if all of this holds:
#   - the rig killed the guard of its seat, and killed or froze its supervisor, in one act, before
#     the successor's first stamp: had one of the two gone on, it would have had to act;
#   - its term was led when that happened (a frozen supervisor goes on one day, and leads again);
#   - it isn't the main process, which the kernel kills with the guard (PR_SET_PDEATHSIG);
#   - it has closed all its descriptors, and with them the work lock (where the store has one);
#   - its seat has no PID namespace, which the kernel would have emptied.
import collections
import struct
import sys

sys.dont_write_bytecode = True

MAIN = 1
CLOSED = 2
# What is wrong, as it was first seen; whose processes worked on, since when they shouldn't have
# (EVER: at no time, so no stall explains it), and until when.
EVER = float("-inf")
Overlap = collections.namedtuple("Overlap", "text seat first_ns last_ns")
STAMP = struct.Struct("=QQIIII")
# A term that began so long after a higher one; whether its leader had led a higher one itself.
Backward = collections.namedtuple("Backward", "term higher at_ns after_ns knew")
Stamp = collections.namedtuple("Stamp", "term at_ns pid seat flags spare")


class Seat:
    """What the judge has to know of one run of one supervisor."""

    def __init__(self, isolated=False):
        self.isolated = isolated
        # When the rig took supervisor and guard out in one act, and the last term led by then.
        self.cuts = []


class Judge:
    def __init__(self, seats, has_work_lock=True):
        self.seats = seats  # by number
        self.has_work_lock = has_work_lock
        self.term = 0  # the highest that has stamped
        self.seat = None  # whose it is
        self.last = None  # the latest stamp of it, to see who works
        self.main_pid = None
        self.first_ns = 0  # of its stamps
        self.older_ns = 0  # the latest stamp of all lower terms, of those not excused
        self.older_seat = None  # whose that is
        self.latest_ns = 0
        self.n_stamps = 0
        self.overlaps = {}  # (stale term, term): Overlap
        self.escaped = set()  # (seat, pid)
        self.begun = {}  # term: when its first stamp was made
        self.leaders = {}  # term: the seat of that stamp
        self.tops = {}  # seat: the highest term that it has led
        self.backward = []  # see late_terms

    def take(self, stamp):
        """The next stamp of the file."""
        self.n_stamps += 1
        if stamp.term not in self.begun:
            self.begun[stamp.term] = stamp.at_ns
            if stamp.term < self.term:
                self.backward.append(Backward(stamp.term, self.term, stamp.at_ns,
                                              stamp.at_ns - self.first_ns,
                                              self.tops.get(stamp.seat, 0) > stamp.term))
            self.tops[stamp.seat] = max(stamp.term, self.tops.get(stamp.seat, 0))
        if self.leaders.setdefault(stamp.term, stamp.seat) != stamp.seat:
            self.add((stamp.term, stamp.term), Overlap(
                f"term {stamp.term} is led by two: seats {self.leaders[stamp.term]} and "
                f"{stamp.seat}", stamp.seat, EVER, stamp.at_ns))
        if stamp.term > self.term:
            self.begin(stamp)
        elif stamp.term < self.term:
            self.stale(stamp)
            return
        elif stamp.at_ns <= self.older_ns:
            self.out_of_order(stamp)
        if stamp.flags & MAIN:
            self.main_pid = stamp.pid
        if not self.is_cut_off(stamp, stamp.at_ns):
            self.latest_ns = max(self.latest_ns, stamp.at_ns)
        self.last = stamp

    def begin(self, stamp):
        self.note_older(self.latest_ns, self.seat)
        if stamp.at_ns <= self.older_ns:
            self.out_of_order(stamp)
        self.term = stamp.term
        self.seat = stamp.seat
        self.first_ns = stamp.at_ns
        self.main_pid = None

    def out_of_order(self, stamp):
        self.add(("below", stamp.term), Overlap(
            f"term {stamp.term} (seat {stamp.seat}, process {stamp.pid}) worked "
            f"{(self.older_ns - stamp.at_ns) / 1e6:.3f} ms before a lower one ended",
            self.older_seat, stamp.at_ns, self.older_ns))

    def stale(self, stamp):
        if self.is_cut_off(stamp, self.first_ns):
            self.escaped.add((stamp.seat, stamp.pid))
            return
        self.note_older(stamp.at_ns, stamp.seat)
        # It should have ended before its first successor began, whoever leads by now.
        first_ns = min(at_ns for term, at_ns in self.begun.items() if term > stamp.term)
        self.add((stamp.term, self.term), Overlap(
            f"term {stamp.term} (seat {stamp.seat}, process {stamp.pid}"
            f"{', main' if stamp.flags & MAIN else ''}"
            f"{', closed' if stamp.flags & CLOSED else ''}) worked "
            f"{(stamp.at_ns - self.first_ns) / 1e6:.3f} ms after term {self.term} had begun",
            stamp.seat, first_ns, stamp.at_ns))

    def note_older(self, at_ns, seat):
        if at_ns > self.older_ns:
            self.older_ns, self.older_seat = at_ns, seat

    def add(self, key, overlap):
        """One that is known goes on: what excuses its first stamp has to excuse its last."""
        known = self.overlaps.get(key, overlap)
        self.overlaps[key] = known._replace(first_ns=min(known.first_ns, overlap.first_ns),
                                            last_ns=max(known.last_ns, overlap.last_ns))

    def late_terms(self, slack_ns, wall_ms=lambda _: float("inf")):
        """S3, where two may lead: leaderships that began so long after one with a higher term.

        A store that counts by its clock, and whose data is lost after that clock was ahead, can
        give a lower one to a leader who has not seen the higher: for then that is ahead of the time
        (wall_ms, of a boot clock). Who has led it has seen it."""
        return [f"term {b.term} began {b.after_ns / 1e6:.0f} ms after term {b.higher}"
                for b in self.backward
                if b.after_ns > slack_ns and (b.knew or b.higher <= wall_ms(b.at_ns))]

    def is_cut_off(self, stamp, before_ns):
        """Nobody was left before then, in the kernel or outside, who could end this process."""
        seat = self.seats[stamp.seat]
        return (any(at_ns < min(stamp.at_ns, before_ns) and stamp.term <= term
                    for at_ns, term in seat.cuts)
                and not stamp.flags & MAIN and not seat.isolated
                and (bool(stamp.flags & CLOSED) or not self.has_work_lock))


def wrong_writes(rows):
    """Of what a fenced resource has accepted, (term, seat) in its order: what it shouldn't have."""
    seats, top = {}, 0
    for term, seat in rows:
        if term < top:
            yield f"term {term} was written after term {top}"
        if seats.setdefault(term, seat) != seat:
            yield f"term {term} was written by seats {seats[term]}, {seat}"
        top = max(top, term)
