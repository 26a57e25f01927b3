# outbox_publisher.py [--once] [STORE] - many instances of a service write messages into an outbox;
# one of them publishes what is there, in order. --once ends when the outbox is empty.
import sys

import baton

once = "--once" in sys.argv
url = sys.argv[-1] if ":" in sys.argv[-1] else "file:/tmp/baton-examples"
outbox = ["order 1 placed", "order 1 paid", "order 1 shipped"]  # stands for your database


def publish(message: str, term: int) -> None:
    """The term goes along, so that a receiver can refuse what an old leader had on its way."""
    print(f"published in term {term}: {message}", flush=True)


with baton.Store(url) as store:
    for lead in store.election("outbox"):
        with lead:
            while lead and (outbox or not once):
                if outbox:
                    publish(outbox[0], lead.check())
                    del outbox[0]  # after it was sent: at least once
                else:
                    lead.wait(1)
        if once:
            break
