# check.py COMMAND... - what only Python can do wrong: @baton.singleton, and cancellations that meet
# in one task. Then runs COMMAND, which tests the examples. The scenarios have the rest.
import asyncio
import subprocess
import sys
import tempfile
import threading

import baton

TIMINGS = {"lease": 4, "retry": 0.1}
CAN_UNCANCEL = hasattr(asyncio.Task, "uncancel")  # Python 3.11 and newer


def check_singleton(url):
    """Never two at once; arguments and results pass; called again after a loss."""
    inside, most, calls = [], [], []

    @baton.singleton(url, "single", **TIMINGS)
    def work(lead, word, *, ending):
        """The work."""
        inside.append(lead)
        most.append(len(inside))
        calls.append(word)
        if word == "lost" and calls.count(word) == 1:
            lead.election.resign()
            assert lead.wait(60) and not lead
        inside.remove(lead)
        return f"{word}{ending} in term {lead.term}"

    assert work.__name__ == "work" and work.__doc__ == "The work."
    assert work("one", ending="!") == "one! in term 1"
    assert work("lost", ending="!") == "lost! in term 3" and calls == ["one", "lost", "lost"]
    threads = [threading.Thread(target=work, args=("each",), kwargs={"ending": ""})
               for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls.count("each") == 3 and max(most) == 1, (calls, most)


def check_singleton_raises(url):
    """What the function raises is raised, and the leadership is given back."""
    @baton.singleton(url, "single", **TIMINGS)
    def work(_lead):
        raise ValueError("it failed")

    for _ in range(2):
        try:
            work()
        except ValueError as error:
            assert str(error) == "it failed"
        else:
            raise AssertionError("nothing was raised")


async def check_singleton_async(url):
    """The same for coroutines; a loss cancels, and the function is called again."""
    running, most, calls = set(), [], []

    @baton.singleton(url, "single", **TIMINGS)
    async def work(lead, word):
        calls.append(word)
        running.add(lead)
        most.append(len(running))
        try:
            if word == "lost" and calls.count(word) == 1:
                lead.election.resign()
                await asyncio.Event().wait()
            await others()
            return f"{word} in term {lead.term}"
        finally:
            running.discard(lead)

    assert asyncio.iscoroutinefunction(work)
    assert await work("one") == "one in term 1"
    assert await work("lost") == "lost in term 3" and calls == ["one", "lost", "lost"]
    assert len(await asyncio.gather(*(work("each") for _ in range(3)))) == 3
    assert max(most) == 1, most


async def others():
    """Lets other tasks run; a cancellation that was left behind ends the wait."""
    done = asyncio.Event()
    asyncio.get_running_loop().call_soon(done.set)
    await done.wait()


def cancelling(task):
    return task.cancelling() if CAN_UNCANCEL else 0


async def check_loss_ends_the_body(url):
    """A loss cancels the body, and nothing of that is left in the task."""
    async with baton.Store(url, **TIMINGS) as store:
        lead = await store.election("night").acquire_async()
        async with lead:
            lead.election.resign()
            await asyncio.Event().wait()
            raise AssertionError("it waited for ever")
        assert cancelling(asyncio.current_task()) == 0 and not lead
        await others()


async def check_own_loss_error(url):
    """LostError of this lead ends the body as the loss does."""
    async with baton.Store(url, **TIMINGS) as store:
        lead = await store.election("night").acquire_async()
        async with lead:
            lead.election.resign()
            lead.check()
            raise AssertionError("the leadership is over")


async def check_cancel_from_outside(url):
    """Whoever cancels the task ends it: the body's lead is left on the way."""
    inside = asyncio.Event()
    leads = []

    async def work():
        async with baton.Store(url, **TIMINGS) as store:
            async for lead in store.election("night"):
                leads.append(lead)
                async with lead:
                    inside.set()
                    await asyncio.Event().wait()
    task = asyncio.ensure_future(work())
    await inside.wait()
    task.cancel()
    assert await is_cancelled(task) and len(leads) == 1 and not leads[0].leads
    async with baton.Store(url, **TIMINGS) as store:  # and it was given back
        with await asyncio.wait_for(store.election("night").acquire_async(), 60):
            pass


async def is_cancelled(task):
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


async def check_both_cancellations(url):
    """The loss comes first, and somebody cancels the task while the body cleans up: it ends."""
    inside, cleans = asyncio.Event(), asyncio.Event()

    async def work():
        async with baton.Store(url, **TIMINGS) as store:
            lead = await store.election("night").acquire_async()
            async with lead:
                inside.set()
                lead.election.resign()
                try:
                    await asyncio.Event().wait()
                finally:
                    cleans.set()
                    await asyncio.Event().wait()
    task = asyncio.ensure_future(work())
    await cleans.wait()
    task.cancel()
    assert await is_cancelled(task), "the cancellation from outside was taken for the loss"


async def check_timeout_around(url):
    """A timeout of asyncio ends the body, and a loss ends no timeout."""
    async with baton.Store(url, **TIMINGS) as store:
        lead = await store.election("night").acquire_async()
        try:
            async with asyncio.timeout(0.05):
                async with lead:
                    await asyncio.Event().wait()
        except TimeoutError:
            pass
        else:
            raise AssertionError("no timeout")
        lead = await store.election("night-2").acquire_async()
        async with asyncio.timeout(60):
            async with lead:
                lead.election.resign()
                await asyncio.Event().wait()


def main():
    for name, check in list(globals().items()):
        if not name.startswith("check_"):
            continue
        if not CAN_UNCANCEL and name in ("check_both_cancellations", "check_timeout_around"):
            print(f"skip {name[6:]}: Python 3.11 is the first that counts cancellations")
            continue
        with tempfile.TemporaryDirectory(prefix="baton-python-") as folder:
            if asyncio.iscoroutinefunction(check):
                asyncio.run(check(f"file:{folder}/store"))
            else:
                check(f"file:{folder}/store")
        print(f"ok   {name[6:]}", flush=True)
    sys.exit(subprocess.run(sys.argv[1:], check=False).returncode)


main()
