#!/usr/bin/env python3
# page.py PATH - whether the candidate of a `baton serve` on this host leads, without a call: prints
# the term, or 0. Term, deadline, term: the same term twice, and the clock below the deadline.
import mmap
import os
import struct
import sys
import time


class Page:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.map = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ)
        boot = open("/proc/sys/kernel/random/boot_id", encoding="ascii").read()
        boot = bytes.fromhex(boot.strip().replace("-", ""))
        if self.map[:8] != b"BATONPG\n" or self.map[16:32] != boot:
            raise ValueError(path + " is not a page of this boot")
        # A container may have a time namespace of its own, whose clock says something else.
        clock = "/proc/self/ns/time"
        if self.word(32) != (os.stat(clock).st_ino if os.path.exists(clock) else 0):
            raise ValueError(path + " counts by another clock")

    def word(self, at):
        return struct.unpack_from("=q", self.map, at)[0]

    def term(self):
        term, deadline, again = self.word(40), self.word(48), self.word(40)
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return term if term == again and now < deadline else 0


if __name__ == "__main__":
    print(Page(sys.argv[1]).term())
