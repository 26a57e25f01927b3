#!/usr/bin/env python3
# tests/chaos/judge_test.py - the oracle itself: what it must call an overlap, how narrow the two
# excuses are, and what makes a run void.
import argparse
import collections
import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import report
import stall
from judge import CLOSED, EVER, MAIN, Judge, Overlap, Seat, Stamp, wrong_writes


def judge(*stamps, cut_ns=None, cut_term=1, cuts=None, isolated=False, has_work_lock=True):
    """Each stamp is (term, at_ns, flags); the seat has the term's number."""
    seats = {n: Seat() for n in range(10)}
    seats[1] = Seat(isolated)
    seats[1].cuts = cuts if cuts is not None else [(cut_ns, cut_term)] if cut_ns else []
    j = Judge(seats, has_work_lock)
    for term, at_ns, flags in stamps:
        j.take(Stamp(term, at_ns, 7, term, flags, 0))
    return len(j.overlaps), len(j.escaped)


def seen(*stamps):
    """The same, as (term, at_ns) or in full; what is known of each overlap."""
    j = Judge({n: Seat() for n in range(10)})
    for stamp in stamps:
        j.take(stamp if isinstance(stamp, Stamp) else Stamp(*stamp, 7, stamp[0], 0, 0))
    return j.overlaps


class Overlaps(unittest.TestCase):
    def test_one_after_the_other(self):
        self.assertEqual(judge((1, 10, 0), (1, 20, 0), (2, 30, 0), (3, 40, 0)), (0, 0))

    def test_stamp_after_the_successor(self):
        self.assertEqual(judge((1, 10, 0), (2, 20, 0), (1, 30, 0)), (1, 0))

    def test_late_append_of_an_early_clock(self):
        self.assertEqual(judge((1, 10, 0), (2, 20, 0), (1, 15, 0)), (1, 0))

    def test_clocks_cross_though_the_file_is_in_order(self):
        self.assertEqual(judge((1, 10, 0), (1, 25, 0), (2, 20, 0)), (1, 0))
        self.assertEqual(judge((1, 25, 0), (2, 30, 0), (2, 20, 0)), (1, 0))

    def test_two_terms_back(self):
        self.assertEqual(judge((1, 10, 0), (2, 20, 0), (3, 30, 0), (1, 40, 0), (2, 50, 0)), (2, 0))

    def test_same_pair_counts_once(self):
        self.assertEqual(judge((1, 10, 0), (2, 20, 0), (1, 30, 0), (2, 40, 0), (1, 50, 0)), (1, 0))

    def test_one_term_two_leaders(self):
        story = Stamp(5, 10, 7, 1, 0, 0), Stamp(5, 20, 8, 2, 0, 0)
        self.assertEqual(list(seen(*story)), [(5, 5)])
        late = seen(story[0], Stamp(6, 15, 9, 3, 0, 0), story[1])
        self.assertEqual(late[5, 5].first_ns, EVER)


class Extent(unittest.TestCase):
    """Who worked on, since when it shouldn't have, and until when: all of it has to be excused."""

    @staticmethod
    def extent(key, *stamps):
        return seen(*stamps)[key][1:]

    def test_to_the_last_stamp(self):
        self.assertEqual(self.extent((1, 2), (1, 10), (2, 20), (1, 30), (2, 40), (1, 50)),
                         (1, 20, 50))

    def test_since_the_first_successor(self):
        self.assertEqual(self.extent((1, 3), (1, 10), (2, 20), (3, 30), (1, 40)), (1, 20, 40))

    def test_from_the_earliest_clock(self):
        self.assertEqual(self.extent(("below", 2), (1, 25), (2, 30), (2, 20), (2, 15)),
                         (1, 15, 25))

    def test_whose_stamp_was_the_last(self):
        self.assertEqual(self.extent(("below", 3), (1, 10), (2, 20), (3, 30), (1, 40), (3, 35)),
                         (1, 35, 40))
        self.assertEqual(self.extent(("below", 3), (1, 10), (2, 20), (1, 40), (3, 35)),
                         (1, 35, 40))


class Terms(unittest.TestCase):
    @staticmethod
    def late(*stamps, **how):
        j = Judge({n: Seat() for n in range(10)})
        for term, at_ns, *seat in stamps:
            j.take(Stamp(term, at_ns, 7, *(seat or [term]), 0, 0))
        return len(j.late_terms(100, **how))

    def test_an_old_one_goes_on(self):
        self.assertEqual(self.late((1, 10), (2, 20), (1, 500), (2, 510)), 0)

    def test_granted_earlier_and_begun_a_little_later(self):
        self.assertEqual(self.late((2, 20), (1, 60)), 0)

    def test_back(self):
        self.assertEqual(self.late((2, 20), (1, 200)), 1)

    def test_back_from_a_time_to_come(self):
        story = (9, 20, 1), (5, 200, 2)
        self.assertEqual(self.late(*story, wall_ms=lambda at_ns: 8 if at_ns == 200 else 9), 0)
        self.assertEqual(self.late(*story, wall_ms=lambda at_ns: 9 if at_ns == 200 else 8), 1)

    def test_back_for_one_who_knew(self):
        self.assertEqual(self.late((9, 20, 1), (5, 200, 1), wall_ms=lambda _: 8), 1)
        self.assertEqual(self.late((7, 10, 2), (9, 20, 1), (5, 200, 2), wall_ms=lambda _: 8), 1)


class Excuse(unittest.TestCase):
    STORY = ((1, 10, CLOSED), (2, 30, 0), (1, 40, CLOSED), (2, 50, 0))

    def test_escaped(self):
        self.assertEqual(judge(*self.STORY, cut_ns=20), (0, 1))

    def test_not_without_the_act(self):
        self.assertEqual(judge(*self.STORY)[0], 1)

    def test_not_when_the_act_came_later(self):
        self.assertEqual(judge(*self.STORY, cut_ns=35)[0], 1)

    def test_not_in_a_later_term(self):
        self.assertEqual(judge(*self.STORY, cut_ns=20, cut_term=0)[0], 1)

    def test_hit_again_later(self):
        self.assertEqual(judge(*self.STORY, cuts=[(20, 1), (35, 9)]), (0, 1))
        self.assertEqual(judge(*self.STORY, cuts=[(20, 0), (35, 9)])[0], 1)

    def test_not_in_a_namespace(self):
        self.assertEqual(judge(*self.STORY, cut_ns=20, isolated=True)[0], 1)

    def test_not_who_keeps_the_lock(self):
        story = ((1, 10, 0), (2, 30, 0), (1, 40, 0))
        self.assertEqual(judge(*story, cut_ns=20)[0], 1)
        self.assertEqual(judge(*story, cut_ns=20, has_work_lock=False), (0, 1))

    def test_not_the_main_process(self):
        story = ((1, 10, MAIN | CLOSED), (2, 30, 0), (1, 40, MAIN | CLOSED))
        self.assertEqual(judge(*story, cut_ns=20)[0], 1)

    def test_hides_nobody_else(self):
        self.assertEqual(judge(*self.STORY, (1, 60, 0), cut_ns=20), (1, 1))


class Stall(unittest.TestCase):
    """What is said to be the machine's fault must have been in the way of the guard just then."""

    @staticmethod
    def still(*naps):
        ms = 1_000_000
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "stalls")
            with open(path, "wb") as file:
                for core in (0, 1):
                    file.write(stall.NAP.pack(0, 0, core))
                for begin, to, core in naps:
                    file.write(stall.NAP.pack(begin * ms, to * ms, core))
            return stall.still_ms(path, 700 * ms, 1000 * ms)

    def test_quiet(self):
        self.assertEqual(self.still(), 0)

    def test_one_core_is_not_the_machine(self):
        self.assertEqual(self.still((700, 900, 0)), 0)

    def test_all_cores(self):
        self.assertEqual(self.still((700, 900, 0), (750, 900, 1)), 150)

    def test_not_before(self):
        self.assertEqual(self.still((300, 720, 0), (300, 710, 1)), 10)

    def test_not_after(self):
        self.assertEqual(self.still((990, 2000, 0), (980, 2000, 1)), 10)

    def test_short_naps_do_not_add_up(self):
        self.assertEqual(self.still((700, 740, 0), (750, 790, 0), (700, 740, 1)), 40)

    @staticmethod
    def excuses(*waits_ms, late_ms=0, first_ns=0, has_work_lock=False):
        return stall.excuses(Overlap("", 1, first_ns, late_ms * 1_000_000), 1000, has_work_lock,
                             *waits_ms)

    def test_share_of_the_lease(self):
        self.assertFalse(self.excuses(99, 0))
        self.assertTrue(self.excuses(0, 100))

    def test_not_for_longer_than_it_lasted(self):
        self.assertTrue(self.excuses(0, 150, late_ms=150))
        self.assertFalse(self.excuses(120, 150, late_ms=151))

    def test_not_beside_the_work_lock(self):
        self.assertFalse(self.excuses(900, 900, late_ms=1, has_work_lock=True))

    def test_not_two_in_one_term(self):
        self.assertFalse(self.excuses(900, 900, first_ns=EVER))

    @staticmethod
    def waited(*looks):
        ms = 1_000_000
        return stall.waited_ms([(at * ms, ns * ms) for at, ns in looks], 700 * ms, 1000 * ms)

    def test_guard_waited(self):
        self.assertEqual(self.waited((690, 5), (800, 5), (810, 45), (990, 45)), 40)

    def test_guard_waited_not_before(self):
        self.assertEqual(self.waited((400, 0), (650, 200), (990, 200)), 0)
        self.assertEqual(self.waited((700, 0), (710, 200), (990, 200)), 10)

    def test_guard_waited_not_after(self):
        self.assertEqual(self.waited((990, 5), (1100, 5), (1200, 85)), 0)

    def test_guard_waited_across_the_instant(self):
        self.assertEqual(self.waited((800, 0), (1100, 0), (1104, 250)), 150)

    def test_guard_is_gone(self):
        self.assertEqual(self.waited((800, 90), (900, 0), (950, 20)), 20)


class Writes(unittest.TestCase):
    def test_in_order(self):
        self.assertEqual(list(wrong_writes([(1, 1), (1, 1), (2, 3), (5, 1)])), [])

    def test_older_term_and_two_seats(self):
        self.assertEqual(len(list(wrong_writes([(2, 1), (1, 2), (3, 1), (3, 2)]))), 2)


class Void(unittest.TestCase):
    """What a run must have shown to be worth something."""

    def test_takeovers_in_time(self):
        self.assertEqual(list(report.too_slow({"a": [10] * 7 + [99] * 2, "b": [99] * 4}, 20)), [])

    def test_one_kind_is_late(self):
        late = list(report.too_slow({"a": [10] * 9, "kill_b": [10] * 2 + [21] * 3}, 20))
        self.assertEqual(len(late), 1)
        self.assertIn("after kill b it took 21 ms", late[0])

    def test_all_are_late(self):
        self.assertEqual(len(list(report.too_slow({"a": [30] * 3, "b": [40] * 2}, 20))), 1)

    @staticmethod
    def missing(failovers, minutes=None, tries=0, until_overlap=False):
        options = argparse.Namespace(minutes=minutes, until_overlap=until_overlap)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            wrong = list(report.never_happened(options, ["a", "b"], {"a": 1},
                                               collections.Counter(b=tries), failovers))
        return wrong, said.getvalue()

    def test_every_fault_has_to_happen(self):
        self.assertEqual(self.missing(15), (["never happened: b"], ""))
        self.assertEqual(self.missing(100, minutes=1), (["never happened: b"], ""))
        self.assertEqual(self.missing(15, minutes=1, tries=3), (["never happened: b"], ""))

    def test_unless_there_was_no_time(self):
        wrong, said = self.missing(99, minutes=1, tries=2)
        self.assertEqual(wrong, [])
        self.assertIn("LEFT OUT, for the time was short: b", said)
        self.assertEqual(self.missing(99, until_overlap=True), ([], ""))


if __name__ == "__main__":
    unittest.main()
