#!/usr/bin/env python3
# leader_election.py URL SERVICE [CANDIDATE] - leader election by the SQL functions of baton
# ("baton schema postgres --functions"), for a program with asyncio and a database connection.
#
# Copy the class. `db` is anything with `await db.execute(sql, *values)` that returns rows. The
# server decides who leads; the class keeps the other half of the promise: a deadline on the boot
# clock, counted from before a call is sent, so that a leader stops in time when no answer comes, or
# when it was frozen itself. It must never say "leader" because of an old answer.
import argparse
import asyncio
import contextlib
import secrets
import signal
import sys
import time
from dataclasses import dataclass
from typing import Any, Awaitable, Callable, Optional, Set, TypeVar

# Of the timeout: is_leader says no from the first on, and the work must have ended by the second.
# The rest is for clocks that run at different rates.
LEADS, WORK_ENDS = 2 / 3, 0.9
T = TypeVar("T")


def boot_s() -> float:
    """Goes on while the machine is suspended, and is never set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass
class LeaderElectionConfig:
    service_name: str
    candidate_id: str
    heartbeat_interval: float = 10.0  # less than a third of the timeout
    heartbeat_timeout: int = 30       # the length of our own lease
    on_become_leader: Optional[Callable[[], Awaitable[None]]] = None    # starts the work
    on_lose_leadership: Optional[Callable[[], Awaitable[None]]] = None  # returns when it has ended


class LeaderElection:
    def __init__(self, db: Any, config: LeaderElectionConfig):
        self.db = db
        self.config = config
        # Two processes with one id would both lead: so it is made up anew by each.
        self.candidate_id = f"{config.candidate_id}-{secrets.token_hex(6)}"
        self.term: Optional[int] = None  # hand it to whatever you write to
        self._until = 0.0
        self._stop = asyncio.Event()
        self._task: Optional[asyncio.Task] = None
        self._tried = asyncio.Event()
        self._work: Set[asyncio.Future] = set()

    @property
    def is_leader(self) -> bool:
        """Asks the clock. Ask it before each piece of work."""
        return boot_s() < self._until

    async def start(self) -> None:
        """Contends from now on. Returns after the first try: is_leader says how that went."""
        if self._task is None:
            self._stop.clear()
            self._tried.clear()
            self._task = asyncio.create_task(self._run())
        await self._tried.wait()

    async def stop(self) -> None:
        """Lets the work end, then gives the leadership back."""
        if self._task is not None:
            self._stop.set()
            await self._task
            self._task = None

    async def run_if_leader(self, work: Callable[[], Awaitable[T]]) -> Optional[T]:
        """What the work returns; None without a call of it if this candidate doesn't lead. The
        leadership is not given back before the work has ended. It must not call stop()."""
        if not self.is_leader:
            return None
        ended: asyncio.Future = asyncio.get_running_loop().create_future()
        self._work.add(ended)
        try:
            return await work()
        finally:
            self._work.discard(ended)
            ended.set_result(None)

    async def _call(self, function: str, *more: Any) -> Any:
        values = (self.config.service_name, self.candidate_id, *more)
        places = ", ".join(f"${n + 1}" for n in range(len(values)))
        limit_s = self.config.heartbeat_interval
        if self._until > 0.0:  # without a lease there is nothing to be late for
            limit_s = min(limit_s, max(self._until - boot_s(), 0.1))
        asked = asyncio.ensure_future(
            self.db.execute(f"SELECT baton.{function}({places})", *values))
        # Not wait_for(), which waits for the end of what it cancels: that asks the server, too.
        await asyncio.wait({asked}, timeout=limit_s)
        if not asked.done():
            asked.add_done_callback(lambda late: late.cancelled() or late.exception())
            asked.cancel()
            raise TimeoutError(f"no answer to {function} in time")
        return asked.result()[0][0]

    async def _campaign(self) -> None:
        began = boot_s()  # before the send: the lease may be that old when the answer is here
        term = await self._call("try_become_leader_term", self.config.heartbeat_timeout)
        if term is None:
            return
        self.term = term
        self._until = began + self.config.heartbeat_timeout * LEADS
        if self.is_leader and self.config.on_become_leader:
            try:
                await self.config.on_become_leader()
            except BaseException:
                self._until = 0.0  # nobody works: _run() gives the leadership back
                raise

    async def _renew(self) -> None:
        began = boot_s()
        if await self._call("leader_heartbeat", self.term):
            self._until = began + self.config.heartbeat_timeout * LEADS
        else:
            self._until = 0.0

    async def _lose(self) -> None:
        self._until = 0.0
        if self.config.on_lose_leadership:
            await self.config.on_lose_leadership()
        if self._work:
            await asyncio.wait(self._work)
        # Of a lease that is another's by now this does nothing.
        with contextlib.suppress(Exception):
            await self._call("step_down", self.term)
        self.term = None

    async def _run(self) -> None:
        while not self._stop.is_set():
            began = boot_s()
            try:
                await (self._campaign() if self.term is None else self._renew())
            except Exception as error:  # whatever the client of the database raises: try again
                print(f"leader election: {error!r}", file=sys.stderr)
            finally:
                self._tried.set()
            if self.term is not None and not self.is_leader:
                await self._lose()
            pause_s = began + self.config.heartbeat_interval - boot_s()
            if self.term is not None:
                pause_s = min(pause_s, self._until - boot_s())
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stop.wait(), max(pause_s, 0.01))
        if self.term is not None:
            await self._lose()


async def run_if_leader(election: LeaderElection, work: Callable[[], Awaitable[T]]) -> Optional[T]:
    return await election.run_if_leader(work)


# ---- a program that uses it ----

class Database:
    """asyncpg, in the shape that the class wants. Each call is a transaction of its own."""

    def __init__(self, pool):
        self.pool = pool

    async def execute(self, sql: str, *values: Any) -> Any:
        return await self.pool.fetch(sql, *values)


async def main(args: argparse.Namespace) -> None:
    import asyncpg  # pylint: disable=import-outside-toplevel

    work: Optional[asyncio.Task] = None

    async def report() -> None:
        while True:
            now_ms = time.time_ns() // 1000000  # before the look: what is shown was surely so
            if not election.is_leader:
                return
            print(f"at work in term {election.term} at {now_ms}", flush=True)
            await asyncio.sleep(0.05)

    async def begin() -> None:
        nonlocal work
        print(f"leads {args.service} in term {election.term}", flush=True)
        work = asyncio.create_task(report())

    async def end() -> None:
        if work is not None:
            await work
        print(f"leads {args.service} no more", flush=True)

    async with asyncpg.create_pool(args.url, min_size=1, max_size=2) as pool:
        election = LeaderElection(Database(pool), LeaderElectionConfig(
            args.service, args.candidate, args.interval, args.timeout, begin, end))
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        await election.start()

        async def once() -> str:
            return f"works in term {election.term}"
        print(f"after the start: {await run_if_leader(election, once) or 'waits'}", flush=True)
        await stopped.wait()
        await election.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="elects one of many by SQL functions")
    parser.add_argument("url", help="postgres://USER@HOST/DATABASE")
    parser.add_argument("service")
    parser.add_argument("candidate", nargs="?", default="worker")
    parser.add_argument("--interval", type=float, default=10.0)
    parser.add_argument("--timeout", type=int, default=30)
    asyncio.run(main(parser.parse_args()))
