# projection.py [--once] [STORE] [VIEW] - keeps a view of a stream of events in a file, which
# refuses what an older leader writes: fencing. --once ends when the stream is read.
import sys

import baton

once = "--once" in sys.argv
words = [w for w in sys.argv[1:] if w != "--once"]
url = words[0] if words else "file:/tmp/baton-examples"
view = words[1] if len(words) > 1 else "/tmp/baton-projection"
events = [1, 2, 3, 4, 5]


def write(total: int, term: int) -> None:
    """The view is asked first: a term that is older than one it has seen is refused."""
    baton.fence_file(view + ".fence", term)
    with open(view, "w", encoding="ascii") as file:
        file.write(f"total {total}, written in term {term}\n")


with baton.Store(url) as store:
    for lead in store.election("projection"):
        with lead:
            print(f"projects in term {lead.term}", flush=True)
            total = 0
            for number, event in enumerate(events, 1):
                total += event
                write(total, lead.check())
                print(f"event {number}: total {total}", flush=True)
            while lead and not once:
                lead.wait(1)
        if once:
            break
try:
    write(0, lead.term - 1)  # as an old leader would
except baton.BatonError as error:
    print(f"refused: {error}", flush=True)
