#!/usr/bin/env python3
# witness.py lead|told|page ELECTION SOCKET PAGE ID FILE - a program beside a sidecar, as the chaos
# of tests/serve runs many of them: as long as it may believe that it leads, it writes stamps of
# work. It believes as much as baton-serve(1) allows, and no more:
#
#     lead  from `became` on, up to the deadline that it was told last, and a while behind `lost`
#     told  up to any deadline that /leadership has told, whatever it says afterwards
#     page  while the page says so
#
# A stamp is "WAY ID TERM NANOSECONDS": the clock is read before the question, so that the answer
# holds for that instant whenever this process is frozen.
import json
import os
import random
import select
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/page"))
from page import Page  # noqa: E402

WAY, ELECTION, SOCKET, PAGE, ID, FILE = sys.argv[1:7]
STEP_S = 0.003
LIMIT_S = 5
TICK = threading.Event()  # that never comes
LOG = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def stamp(term, at_ns):
    os.write(LOG, f"{WAY} {ID} {term} {at_ns}\n".encode())


def stamp_until(term, deadline_ns):
    at_ns = now_ns()
    if at_ns < deadline_ns:
        stamp(term, at_ns)


def ask(connection, method, path, more=""):
    connection.sendall((f"{method} /v1/elections/{ELECTION}/{path} HTTP/1.1\r\nHost: baton\r\n"
                        f"{more}\r\n").encode())


def connect():
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(LIMIT_S)
    connection.connect(SOCKET)
    return connection


def lead():
    """One connection, which is the work."""
    with connect() as c:
        ask(c, "POST", "lead?renewed=1", "Content-Type: application/json\r\nBaton-Request: 1\r\n"
            "Accept: application/x-ndjson\r\nContent-Length: 0\r\n")
        rest, term, deadline_ns, end_ns = b"", 0, 0, None
        while end_ns is None or now_ns() < end_ns:
            if select.select([c], [], [], STEP_S)[0]:
                data = c.recv(65536)
                if not data:
                    return  # the sidecar is gone: the work ends at once
                *lines, rest = (rest + data).split(b"\n")
                for event in [json.loads(x) for x in lines if x.startswith(b"{")]:
                    if event["event"] in ("became", "renewed"):
                        term, deadline_ns = event["term"], int(event["deadline_boot_ns"])
                    elif event["event"] == "lost":
                        may_ms = min(event["end_in_ms"], random.choice((0, 50, 300)))
                        end_ns = now_ns() + may_ms * 10 ** 6
            stamp_until(term, deadline_ns)


def told():
    deadline_ns, term, asked_ns = 0, 0, 0
    while True:
        try:
            with connect() as c:
                while True:
                    stamp_until(term, deadline_ns)
                    if now_ns() - asked_ns > 3 * 10 ** 7:
                        asked_ns = now_ns()
                        ask(c, "GET", "leadership")
                        text = c.recv(65536).decode()
                        answer = json.loads(text[text.index("\r\n\r\n"):])
                        if answer["leader"]:
                            deadline_ns, term = int(answer["deadline_boot_ns"]), answer["term"]
                    TICK.wait(STEP_S)
        except (OSError, ValueError):  # no sidecar: what was told holds
            stamp_until(term, deadline_ns)
            TICK.wait(STEP_S)


def read_page():
    page = Page(PAGE)
    while True:
        at_ns = now_ns()
        term, deadline_ns, again = page.word(40), page.word(48), page.word(40)
        if term == again and at_ns < deadline_ns:
            stamp(term, at_ns)
        TICK.wait(STEP_S)


while True:
    try:
        {"lead": lead, "told": told, "page": read_page}[WAY]()
    except (OSError, ValueError):
        TICK.wait(STEP_S)
