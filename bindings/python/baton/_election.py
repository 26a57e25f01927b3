# _election.py - Election: this process' candidate in one election, for threads and for asyncio.
#
# It must never say that work has ended when it doesn't know: only leaving a Lead does that.
import asyncio
import contextlib
import ctypes
import dataclasses
import functools
import inspect
import queue
import time
from ctypes import byref
from typing import (TYPE_CHECKING, Any, AsyncIterator, Awaitable, Callable, Iterator, Optional,
                    Tuple, TypeVar, Union)

from . import _lib
from ._lead import Lead
from ._lib import (BatonError, Code, Condition, EventKind, Obstacle, Reason, State,
                   bytes_of, checked, known, ms, text_of)

if TYPE_CHECKING:
    from . import Store

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def holding(method: F) -> F:
    """A close of the store waits until this call has returned: nothing is freed under it."""
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        store = getattr(self, "store", self)
        with store._changed:
            store._n_calls += 1
        try:
            return method(self, *args, **kwargs)
        finally:
            with store._changed:
                store._n_calls -= 1
                store._changed.notify_all()
    return call  # type: ignore[return-value]


@dataclasses.dataclass(frozen=True)
class Event:
    """What happened in an election."""
    kind: Union[EventKind, int]
    term: int
    old_term: int
    reason: Union[Reason, int]
    code: Union[Code, int]
    leader: str
    old_leader: str
    text: str
    detail: str
    wait: float  # seconds for which nobody can lead yet


@dataclasses.dataclass(frozen=True)
class Status:
    """Who leads, as far as this candidate knows."""
    state: Union[State, int]
    is_leader: bool
    paused: bool
    term: int
    leader: str
    leader_address: str
    leader_metadata: str
    leader_since: float  # seconds since 1970; 0: unknown
    time_left: float
    score: float
    wait: float
    wait_reason: str


class Election:
    """Made by Store.election(). Contends from start() until stop() or the store's end.

    for lead in election:          # starts it; one turn for each leadership
        with lead:
            while lead: ...

    async for lead in election:
        async with lead: ...       # cancelled when the leadership is lost
    """

    def __init__(self, store: "Store", name: str, handle: int) -> None:
        self.store = store
        self.name = name
        self._handle: Optional[int] = handle
        self._is_over = False  # stopped, and not started again
        self._is_told = True  # readers of events have all of them, up to the last stop
        self._queues: "list[queue.SimpleQueue[Optional[Event]]]" = []

    # ---- questions: from memory ----

    @property
    def leads(self) -> bool:
        """Whether this candidate leads now. No I/O."""
        with self.store._lock:
            return self._handle is not None and _lib.is_leader(self._handle)

    @property
    def term(self) -> int:
        """The term of the present leadership; 0 if there is none."""
        with self.store._lock:
            return 0 if self._handle is None else int(_lib.term(self._handle))

    @property
    def time_left(self) -> float:
        with self.store._lock:
            return 0.0 if self._handle is None else int(_lib.time_left_ms(self._handle)) / 1000

    @holding
    def status(self) -> Status:
        s = _lib.CStatus()
        checked(_lib.get_status(self._e(), byref(s), ctypes.sizeof(s)))
        return Status(known(State, s.state), s.is_leader, s.paused, s.term, text_of(s.leader),
                      text_of(s.leader_address), text_of(s.leader_metadata),
                      s.leader_since_ms / 1000, s.time_left_ms / 1000, s.score_permille / 1000,
                      s.wait_ms / 1000, text_of(s.wait))

    @holding
    def condition(self) -> Tuple[Condition, str]:
        """What the election looks like from here, and a sentence if the store fails."""
        error = _lib.CError()
        found = checked(_lib.election_condition(self._e(), byref(error)))
        return known(Condition, found), text_of(error.text)

    # ---- contending ----

    @holding
    def start(self) -> "Election":
        """Contends from now on. Does no I/O."""
        with self.store._lock:  # no start comes after the stops of a close
            e = self._e()
            if self.store._is_closing:
                raise BatonError(Code.NOT_STARTED, "the store is being closed")
            self.store._start_pump()
            self._is_over = False
            checked(_lib.election_start(e))
            self._is_told = False
        return self

    @holding
    def stop(self, timeout: Optional[float] = None) -> None:
        """Steps down, waits for the work that is bound to a Lead, then gives the claim back.

        Goes on in the background if that takes longer than timeout (BatonError with TIMEOUT). Then
        events() has all that happened.
        """
        until = time.monotonic() + (timeout or 0)
        with self.store._lock:
            self._is_over = True
            e = self._e()
            if timeout != 0:
                _lib.election_stop(e, 0)  # leads are told, and waiters, before we wait
        if timeout != 0:
            self.store._wake_all()
        result = _lib.election_stop(e, ms(timeout))
        self.store._wake_all()
        if result != Code.TIMEOUT or timeout != 0:
            checked(result)
        if timeout is None:
            until = time.monotonic() + self.store.timings.gone
        self.store._wait_told([self], until)

    async def stop_async(self, timeout: Optional[float] = None) -> None:
        await _in_thread(self.stop, timeout)

    @holding
    def try_acquire(self, timeout: float = 10) -> Tuple[bool, Obstacle]:
        """Tries to become leader now: whether it leads, and what kept it from that."""
        obstacle = ctypes.c_int(0)
        leads = checked(_lib.try_acquire(self._e(), ms(timeout), byref(obstacle)))
        return bool(leads), known(Obstacle, obstacle.value)

    @holding
    def resign(self, quiet: float = 0) -> None:
        """Steps down, and leaves it to others for quiet seconds."""
        checked(_lib.resign(self._e(), ms(quiet)))

    @holding
    def transfer(self, candidate: str) -> None:
        """Steps down in favour of the candidate with that id."""
        _lib.transfer(self._e(), bytes_of(candidate, "the candidate"))

    @holding
    def report_health(self, score: float, metadata: Optional[str] = None) -> None:
        """Our own health, 0 to 1."""
        checked(_lib.report_health(self._e(), max(0, round(score * 1000)),
                                   bytes_of(metadata, "the metadata")))

    @holding
    def alive(self) -> None:
        """The work gives a sign of life (see work_timeout)."""
        _lib.alive(self._e())

    # ---- leads ----

    @holding
    def enter(self) -> Lead:
        """Binds work to the present leadership; BatonError with NOT_LEADER if there is none."""
        e, context = self._e(), ctypes.c_void_p()
        _lib.enter(e, byref(context))
        assert context.value is not None
        lead = Lead(self, e, context.value)
        self.store._add_lead(lead)
        return lead

    def acquire(self, timeout: Optional[float] = None) -> Lead:
        """Starts if need be, waits until this candidate leads, and enters."""
        self._start_once()
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            lead = self._enter_if_leads()
            if lead is not None:
                return lead
            if self._is_over:
                raise BatonError(Code.NOT_STARTED, f"election {self.name!r} was stopped")
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise BatonError(Code.TIMEOUT, f"{self.name!r} was not won in {timeout} s")
            with self.store._changed:
                if not self.leads and not self._is_over:
                    self.store._changed.wait(left)

    async def acquire_async(self) -> Lead:
        """The same for a task; use asyncio.wait_for() or asyncio.timeout() for a limit."""
        self._start_once()
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(changed.set)
            except RuntimeError:  # the loop is closed
                pass
        self.store._wakers.add(wake)
        try:
            while True:
                changed.clear()
                lead = self._enter_if_leads()
                if lead is not None:
                    return lead
                if self._is_over:
                    raise BatonError(Code.NOT_STARTED, f"election {self.name!r} was stopped")
                await changed.wait()
        finally:
            self.store._wakers.discard(wake)

    def __iter__(self) -> Iterator[Lead]:
        with self._turns():
            while True:
                lead = self.acquire()
                yield lead
                self._hand_on(lead)

    async def __aiter__(self) -> AsyncIterator[Lead]:
        with self._turns():
            while True:
                lead = await self.acquire_async()
                yield lead
                self._hand_on(lead)

    @contextlib.contextmanager
    def _turns(self) -> Iterator[None]:
        """One turn after the other, until the election is over: that is no failure."""
        try:
            yield
        except BatonError as error:
            if error.code != Code.NOT_STARTED or not self._is_over:
                raise
        finally:
            self._stop_quietly()

    def run(self, body: Callable[[Lead], object]) -> None:
        """Calls body whenever elected, on this thread, until the election is stopped.

        When body returns while it leads, this candidate resigns and contends again. What body
        raises is raised here, after the leadership was given back.
        """
        for lead in self:
            with lead:
                body(lead)

    async def run_async(self, body: Callable[[Lead], Awaitable[object]]) -> None:
        """The same for a coroutine function, which is cancelled when the leadership is lost."""
        async for lead in self:
            async with lead:
                await body(lead)

    def events(self) -> Iterator[Event]:
        """Every event from now on, until the election is over. A slow reader delays nobody."""
        events: "queue.SimpleQueue[Optional[Event]]" = queue.SimpleQueue()
        self._queues.append(events)
        return self._read(events)

    def _read(self, events: "queue.SimpleQueue[Optional[Event]]") -> Iterator[Event]:
        try:
            while True:
                event = events.get()
                if event is None:
                    return
                yield event
        finally:
            self._queues.remove(events)

    # ---- of the package ----

    def _e(self) -> int:
        self.store._b()
        if self._handle is None:
            raise BatonError(Code.INVALID, f"election {self.name!r} is closed")
        return self._handle

    def _start_once(self) -> None:
        with self.store._lock:
            if self.status().state == State.STOPPED and not self._is_over:
                self.start()

    def _enter_if_leads(self) -> Optional[Lead]:
        if not self.leads:
            return None
        try:
            return self.enter()
        except BatonError as error:
            if error.code != Code.NOT_LEADER:
                raise
            return None

    def _hand_on(self, lead: Lead) -> None:
        """The work of that leadership has ended, though it may not be lost: others first."""
        if lead._context is not None:
            raise BatonError(Code.BUSY, "the lead was not left: use `with lead:`")
        with self.store._lock:
            if self._handle is not None and _lib.term(self._handle) == lead.term:
                _lib.resign(self._handle, 0)

    def _stop_quietly(self) -> None:
        with self.store._lock:
            if self._handle is not None and not self.store._is_dead:
                self._is_over = True
                _lib.election_stop(self._handle, 0)

    def _leave(self, lead: Lead) -> None:
        with self.store._lock:
            context, lead._context, lead._e = lead._context, None, None
        if context is not None:
            self.store._remove_lead(lead)
            _lib.leave(context)
            self.store._wake_all()

    def _take(self, event: _lib.CEvent) -> None:
        """An event of this election, on the pump's thread."""
        if event.kind == EventKind.LOST:
            for lead in self.store._leads_of(self):
                if lead.term == event.term:
                    lead.reason = known(Reason, event.reason)
                    lead._mark_lost()
        if self._queues:
            told = Event(known(EventKind, event.kind), event.term, event.old_term,
                         known(Reason, event.reason), known(Code, event.code),
                         text_of(event.leader), text_of(event.old_leader), text_of(event.text),
                         text_of(event.detail), event.wait_ms / 1000)
            for events in list(self._queues):
                events.put(told)
        if event.kind == EventKind.STOPPED and self._is_over:  # and not started again
            self._is_told = True

    def _forget(self) -> None:
        self._handle = None
        self._is_over = True
        for events in list(self._queues):
            events.put(None)

    def __repr__(self) -> str:
        return f"<baton.Election {self.name!r} leads={self.leads}>"


async def _in_thread(function: Callable[..., T], *arguments: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function)
