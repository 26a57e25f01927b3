#!/usr/bin/env python3
# tests/chaos/world_test.py RELAY - the weather itself: what is counted has happened to somebody,
# and everything is dealt. With the real fault proxy, and a server that repeats what it is told.
# And a world that can't come up leaves nothing behind of what was already there.
import collections
import os
import random
import socket
import socketserver
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import world
from seat import PR_SET_CHILD_SUBREAPER, children, command_line, prctl
from server import Relay


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        data = self.request.recv(100)
        while data:
            self.request.sendall(data)
            data = self.request.recv(100)


class Rules(unittest.TestCase):
    def setUp(self):
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        port = self.server.server_address[1]
        self.relays = [Relay(RELAY, "bytes", "127.0.0.1", str(port), n) for n in (1, 2)]
        self.addCleanup(self.end)

    def end(self):
        for relay in self.relays:
            relay.end()
        self.server.shutdown()
        self.server.server_close()

    def say(self, n):
        with socket.create_connection(("127.0.0.1", int(self.relays[0].port))) as s:
            for _ in range(n):
                s.sendall(b"x")
                self.assertEqual(s.recv(100), b"x")

    def blow(self, said):
        """What becomes of a weather in which only so much is said."""
        stage = object.__new__(world.Stage)
        stage.world = world.WORLDS["redis"]
        stage.traits = world.Store("bytes", "bytes", "redis", 1)
        stage.rng = random.Random(1)
        stage.relays = [self.relays]
        stage.wait = lambda *_: self.say(said)
        return stage.slow(lambda: not said)

    def test_counts(self):
        relay = self.relays[0]
        relay.tell("rules request every=2 -> delay 0; reply nth=3 -> delay 0; "
                   "request nth=99 -> cut")
        self.assertEqual(relay.fired(), 0)
        self.say(4)
        self.assertEqual(relay.fired(), 3)
        relay.tell("rules")
        self.assertEqual(relay.fired(), 0)

    def test_nothing_was_said(self):
        self.assertEqual(self.blow(0), world.NOTHING)

    def test_something_was_said(self):
        self.assertRegex(self.blow(3), r"^[1-9]\d* times on 1 machines: request ")


class Deck(unittest.TestCase):
    @staticmethod
    def stage(*done):
        stage = object.__new__(world.Stage)
        stage.world = world.WORLDS["redis"]
        stage.rng = random.Random(1)
        stage.deck = []
        stage.done = collections.Counter(done)
        return stage

    def test_first_each_of_them_once(self):
        stage = self.stage()
        dealt = [stage.deal() for _ in stage.world.faults]
        self.assertEqual(sorted(dealt), sorted(stage.world.faults))
        self.assertEqual(stage.deck, [])

    def test_then_what_did_nothing(self):
        stage = self.stage(*set(world.WORLDS["redis"].faults) - {"cut"})
        self.assertEqual(stage.deal(), "cut")
        self.assertEqual(len(stage.deck), sum(stage.world.faults.values()))


class Unfinished(unittest.TestCase):
    def test_nothing_is_left(self):
        # Whatever outlives its parent becomes our child, and is seen.
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        options = types.SimpleNamespace(seed=1, worker=RELAY, baton="")
        with tempfile.TemporaryDirectory() as folder:
            with unittest.mock.patch.dict(os.environ, {"BATON_SERVERS": folder}):
                with self.assertRaises(SystemExit) as end:  # there is no Consul in that folder
                    world.Stage("consul", folder, options)
            self.assertEqual(end.exception.code, 77)
        for pid in children(os.getpid()):
            self.assertEqual(command_line(pid), b"")  # at most a zombie, which we could reap


if __name__ == "__main__":
    RELAY = os.path.abspath(sys.argv.pop(1))
    unittest.main()
