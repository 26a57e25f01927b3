# queue_consumer.py [--once] [STORE] - consumes a queue in order, on one instance. A message whose
# work is cancelled, because the leadership is lost, is put back. --once gives the leadership away
# in the middle of a message, and ends when the queue is empty.
import asyncio
import sys

import baton

once = "--once" in sys.argv
url = sys.argv[-1] if ":" in sys.argv[-1] else "file:/tmp/baton-examples"
queue = ["message 1", "message 2", "message 3"]  # stands for your broker


async def consume(lead: baton.Lead) -> None:
    print(f"leads in term {lead.term}", flush=True)
    while queue:
        message = queue.pop(0)
        try:
            if once and message == "message 2" and lead.term == 1:
                lead.election.resign()
                await asyncio.Event().wait()  # long work: it is cancelled
            lead.check()
            print(f"{message}: done", flush=True)
        except (asyncio.CancelledError, baton.LostError):
            queue.insert(0, message)
            print(f"{message}: leadership lost, put back", flush=True)
            raise
    print("the queue is empty", flush=True)
    await lead.election.stop_async(0)


async def main() -> None:
    async with baton.Store(url) as store:
        await store.election("queue").run_async(consume)


asyncio.run(main())
