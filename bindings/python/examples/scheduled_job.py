# scheduled_job.py [--once] [STORE] - a job at each full minute, on one instance; with --once at
# the next full second, and then it ends.
import sys
import time

import baton

once = "--once" in sys.argv
url = sys.argv[-1] if ":" in sys.argv[-1] else "file:/tmp/baton-examples"
PERIOD_S = 1 if once else 60


def run_job(number: int, lead: baton.Lead) -> None:
    """Work in steps: each asks whether this instance still leads."""
    print(f"run {number} begins in term {lead.term}", flush=True)
    for _ in range(3):
        lead.check()  # LostError ends the job, and the block below
    print(f"run {number} is done", flush=True)


with baton.Store(url) as store:
    for lead in store.election("minutely"):
        with lead:
            while lead:
                number = int(time.time() // PERIOD_S) + 1
                if not lead.wait(number * PERIOD_S - time.time()):
                    run_job(number, lead)
                if once:
                    break
        if once:
            break
