# _lead.py - Lead: work that is bound to one leadership.
#
# A Lead is a baton_context. While it is open the leadership is not given back; leaving it says that
# the work has ended. Loss is told (an Event, a cancelled task), but the clock is the truth: `leads`
# asks it on every call. A finalizer never leaves, because nobody knows whether the work has ended.
import asyncio
import threading
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Callable, List, Optional, Type

from . import _lib
from ._lib import BatonError, Code, Reason

if TYPE_CHECKING:
    from ._election import Election


class LostError(BatonError):
    """The leadership that work was bound to is over."""

    def __init__(self, lead: "Lead") -> None:
        super().__init__(Code.NOT_LEADER, f"the leadership of term {lead.term} is over"
                         + (f": {lead.reason.name.lower()}" if lead.reason else ""))
        self.lead = lead
        self.reason = lead.reason


class Lead:
    """One leadership of one election, for as long as the work that is bound to it runs.

    with lead:                 # leaves it at the end: the work has ended
        while lead:            # asks the clock
            step(lead.term)    # the term goes with each write
            lead.wait(1)       # sleeps, but no longer than it leads
    """
    __slots__ = ("election", "term", "reason", "lost", "_e", "_context", "_fd", "_hooks", "_task",
                 "_loop", "_cancelled", "_before", "__weakref__")

    def __init__(self, election: "Election", handle: int, context: int) -> None:
        self.election = election
        self.term: int = _lib.context_term(context)
        self.reason: Optional[Reason] = None  # of the loss; None also if only the clock told it
        self.lost = threading.Event()  # set when the leadership is over: a courtesy
        self._e: Optional[int] = handle
        self._context: Optional[int] = context
        self._fd: int = _lib.context_fd(context)
        self._hooks: List[Callable[[], None]] = []
        self._task: "Optional[asyncio.Task[object]]" = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._cancelled = False
        self._before = 0

    @property
    def leads(self) -> bool:
        """Whether this leadership holds now. No I/O, no lock; false once it is left."""
        e = self._e
        return e is not None and _lib.term(e) == self.term

    def __bool__(self) -> bool:
        return self.leads

    @property
    def time_left(self) -> float:
        """Seconds for which `leads` stays true if nothing more is heard from the store."""
        e = self._e
        if e is None or _lib.term(e) != self.term:
            return 0.0
        return int(_lib.time_left_ms(e)) / 1000

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Sleeps until the leadership is lost (true) or the time has passed (false)."""
        return self.lost.wait(timeout)

    def check(self) -> int:
        """The term, for the next piece of work; LostError if the leadership is over."""
        if not self.leads:
            raise LostError(self)
        return self.term

    def leave(self) -> None:
        """The work has ended. Any thread may say so; idempotent."""
        self.election._leave(self)

    def on_lost(self, hook: Callable[[], None]) -> None:
        """Calls hook when the leadership is lost, on the store's thread: it must not block."""
        with self.election.store._lock:
            self._hooks.append(hook)
            if not self.lost.is_set():
                return
        hook()

    def _mark_lost(self) -> None:
        with self.election.store._lock:
            if self.lost.is_set():
                return
            self.lost.set()
            hooks = list(self._hooks)
        for hook in hooks:
            hook()

    # ---- with, for threads: loss ends nothing by itself ----

    def __enter__(self) -> "Lead":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 _trace: Optional[TracebackType]) -> bool:
        self.leave()
        return isinstance(error, LostError) and error.lead is self

    # ---- async with: loss cancels the task, as asyncio.timeout() does ----

    async def __aenter__(self) -> "Lead":
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        assert self._task is not None
        self._before = self._task.cancelling() if hasattr(self._task, "cancelling") else 0
        self.on_lost(self._cancel_soon)
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        _trace: Optional[TracebackType]) -> bool:
        task, self._task = self._task, None
        self.leave()
        if self._cancelled and task is not None:
            others = task.uncancel() > self._before if hasattr(task, "uncancel") else False
            if kind is asyncio.CancelledError and not others:
                return True  # the cancellation was ours
        return isinstance(error, LostError) and error.lead is self

    def _cancel_soon(self) -> None:
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._cancel)
        except RuntimeError:  # the loop is closed: nobody is left to cancel
            pass

    def _cancel(self) -> None:
        if self._task is not None:
            self._cancelled = True
            self._task.cancel()

    def __del__(self) -> None:
        if getattr(self, "_context", None) is not None and not self.election.store._is_dead:
            warnings.warn(f"baton: a lead of {self.election.name!r} was forgotten, not left: its "
                          "leadership is not given back before this process ends",
                          ResourceWarning, source=self)

    def __repr__(self) -> str:
        return f"<baton.Lead {self.election.name!r} term={self.term} leads={self.leads}>"
