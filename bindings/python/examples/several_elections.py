# several_elections.py [--once] [STORE] - shards, each led by one instance: many elections in one
# store, for the price of one renewal. --once ends when each shard was worked on.
import asyncio
import sys

import baton

once = "--once" in sys.argv
url = sys.argv[-1] if ":" in sys.argv[-1] else "file:/tmp/baton-examples"


async def own(election: baton.Election) -> None:
    async for lead in election:
        async with lead:
            print(f"{election.name} is ours in term {lead.term}", flush=True)
            while lead:
                print(f"{election.name}: worked in term {lead.check()}", flush=True)
                if once:
                    return
                await asyncio.sleep(1)


async def main() -> None:
    async with baton.Store(url) as store:
        await asyncio.gather(*(own(store.election(f"shard-{n}")) for n in range(4)))


asyncio.run(main())
