# health_based.py [--once] [STORE] - only an instance that is well may lead. One that falls ill
# steps down by itself, and leads again when it has recovered. --once falls ill once.
import sys

import baton

once = "--once" in sys.argv
url = sys.argv[-1] if ":" in sys.argv[-1] else "file:/tmp/baton-examples"


def work(lead: baton.Lead) -> None:
    print(f"leads in term {lead.term}", flush=True)
    for one in store.candidates("healthy"):
        print(f"candidate {one.id}: healthy {one.healthy}, score {one.score}", flush=True)
    if once and lead.term == 1:
        lead.election.report_health(0.2)  # below min_score: this instance steps down
    elif once:
        lead.election.stop(0)
    lead.lost.wait()
    print(f"leads no more: {lead.reason.name.lower() if lead.reason else 'expired'}", flush=True)
    lead.election.report_health(1.0)


with baton.Store(url) as store:
    store.election("healthy", min_score=0.8).run(work)
