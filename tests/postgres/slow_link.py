# slow_link.py FOLDER - the class of leader_election.py in that folder (examples/sql), on a database
# that answers late: a stop gives the leadership back all the same. And a leader whose work can't
# begin gives it back. No server is asked.
import asyncio
import re
import sys

sys.path.insert(0, sys.argv[1])
# pylint: disable=wrong-import-position
from leader_election import LeaderElection, LeaderElectionConfig

LATE_S = 0.3
LIMIT_S = 30
ANSWERS = {"try_become_leader_term": 7, "leader_heartbeat": True, "step_down": True}


class SlowLink:
    def __init__(self):
        self.answered = []
        self.stepped_down = asyncio.Event()

    async def execute(self, sql, *_values):
        function = re.search(r"baton\.(\w+)", sql).group(1)
        here = asyncio.Event()
        asyncio.get_running_loop().call_later(LATE_S, here.set)
        await here.wait()
        self.answered.append(function)
        if function == "step_down":
            self.stepped_down.set()
        return [[ANSWERS[function]]]


async def stops():
    link = SlowLink()
    election = LeaderElection(link, LeaderElectionConfig("e", "worker"))
    await election.start()
    assert election.is_leader and election.term == 7
    await election.stop()
    assert link.answered == ["try_become_leader_term", "step_down"], link.answered


async def cannot_begin():
    link = SlowLink()
    ended = []

    async def begin():
        raise RuntimeError("there is no work")

    async def end():
        ended.append(True)

    election = LeaderElection(link, LeaderElectionConfig("e", "worker", on_become_leader=begin,
                                                         on_lose_leadership=end))
    await election.start()
    assert not election.is_leader, "it leads without work"
    await asyncio.wait_for(link.stepped_down.wait(), LIMIT_S)
    await election.stop()
    assert link.answered == ["try_become_leader_term", "step_down"] and ended, link.answered


asyncio.run(stops())
asyncio.run(cannot_begin())
