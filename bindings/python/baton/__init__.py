# baton - leader election for Python, on the store that you already run.
#
# A Store makes Elections, and an Election gives a Lead for each leadership that this process wins.
# Cancellation is a courtesy and the clock is the truth: ask `lead.leads` before each piece of work.
# It must never give a leadership back while work that is bound to it may run.
"""Leader election for everyone: Store, Election, Lead, and @singleton."""
import asyncio
import atexit
import ctypes
import dataclasses
import functools
import os
import threading
import time
import warnings
import weakref
from ctypes import byref
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Set, Type, TypeVar

from . import _lib
from ._election import Election, Event, Status, _in_thread, holding, is_async
from ._lead import Lead, LostError
from ._lib import (BatonError, Code, Condition, EventKind, Obstacle, Reason, State,
                   bytes_of, checked, ms, text_of)
from ._pump import Pump

__all__ = ["BatonError", "Candidate", "Code", "Condition", "Election", "Event", "EventKind", "Lead",
           "LostError", "Observed", "Obstacle", "Reason", "State", "Status", "Store", "Timings",
           "fence_file", "singleton", "version"]

F = TypeVar("F", bound=Callable[..., Any])
EXIT_S = 1.0  # how long the end of the program waits for leaderships to be given back
_stores: "weakref.WeakSet[Store]" = weakref.WeakSet()


@dataclasses.dataclass(frozen=True)
class Timings:
    """The timings that elections really have, in seconds."""
    lease: float
    renew: float
    grace: float
    drain: float
    end: float
    gone: float
    proves_death: bool


@dataclasses.dataclass(frozen=True)
class Observed:
    """One election as the store sees it."""
    has_leader: bool
    paused: bool
    term: int
    leader: str
    address: str
    metadata: str
    since: float
    lease_left: Optional[float]
    wait: float
    wait_reason: str


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A candidate as the store knows it."""
    id: str
    address: str
    metadata: str
    leads: bool
    healthy: bool  # it may lead
    score: float
    priority: int
    updated: float  # seconds since 1970


class Store:
    """A handle on the store that the URL names. Opening does no I/O; times are in seconds.

    Close it at the end, or use it in `with` or `async with`. In a forked child it is dead: nothing
    leads there, and each call fails with Code.FORKED.
    """
    _is_dead = True  # until it is open

    def __init__(self, url: str, *, id: Optional[str] = None, address: Optional[str] = None,
                 lease: Optional[float] = None, renew: Optional[float] = None,
                 grace: Optional[float] = None, retry: Optional[float] = None,
                 retry_max: Optional[float] = None, drift: Optional[float] = None,
                 outlive: bool = False) -> None:
        options, handle = _lib.COptions(), ctypes.c_void_p()
        _lib.options_init(byref(options), ctypes.sizeof(options))
        options.id = bytes_of(id, "the id")
        options.address = bytes_of(address, "the address")
        for name, value in (("lease", lease), ("renew", renew), ("grace", grace),
                            ("retry", retry), ("retry_max", retry_max)):
            if value is not None:
                setattr(options, name + "_ms", ms(value))
        if drift is not None:
            options.drift_permille = round(drift * 1000)
        options.outlive = outlive
        _lib.open_store(bytes_of(url, "the URL"), byref(options), byref(handle))
        self._handle: Optional[int] = handle.value
        self._pump: Optional[Pump] = None
        self._elections: Dict[int, Election] = {}
        self._leads: "Dict[int, weakref.ref[Lead]]" = {}  # by descriptor
        self._wakers: Set[Callable[[], None]] = set()
        self._is_forked = False
        self._make_locks()
        self._is_dead = self._is_closing = False
        _stores.add(self)

    def _make_locks(self) -> None:
        # A finalizer may run wherever memory is allocated, under these locks too.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._n_calls = 0  # into C, which a close waits for

    @property
    @holding
    def id(self) -> str:
        """Our own id in the elections of this store."""
        return text_of(_lib.store_id(self._b()))

    @property
    @holding
    def promises(self) -> str:
        """What this store promises, and under which faults it doesn't: text for people."""
        return text_of(_lib.promises(self._b()))

    @property
    @holding
    def timings(self) -> Timings:
        t = _lib.CTimings()
        checked(_lib.get_timings(self._b(), byref(t), ctypes.sizeof(t)))
        return Timings(t.lease_ns / 1e9, t.renew_ns / 1e9, t.grace_ns / 1e9, t.drain_ns / 1e9,
                       t.end_ns / 1e9, t.gone_ns / 1e9, t.proves_death)

    @holding
    def election(self, name: str, *, metadata: Optional[str] = None, priority: int = 0,
                 preempt: float = 0, observe_only: bool = False, manual: bool = False,
                 min_score: Optional[float] = None, check_health: bool = True,
                 step_down_unhealthy: bool = True, release_on_stop: bool = True,
                 work_timeout: float = 0, tell_renewals: bool = False) -> Election:
        """Makes a candidate in the named election. It does nothing until it is started."""
        options, handle = _lib.CElectionOptions(), ctypes.c_void_p()
        _lib.election_options_init(byref(options), ctypes.sizeof(options))
        options.metadata = bytes_of(metadata, "the metadata")
        options.priority, options.preempt_ms = priority, ms(preempt)
        options.observe_only, options.manual = observe_only, manual
        options.check_health, options.step_down_unhealthy = check_health, step_down_unhealthy
        options.release_on_stop = release_on_stop
        if min_score is not None:
            options.min_score_permille = round(min_score * 1000)
        options.work_timeout_ms = ms(work_timeout)
        options.tell_renewals = tell_renewals
        options.drain_by_hand = True
        _lib.election_new(self._b(), bytes_of(name, "the name"), byref(options), byref(handle))
        assert handle.value is not None
        election = Election(self, name, handle.value)
        self._elections[handle.value] = election
        return election

    @holding
    def observe(self, name: str) -> Observed:
        """Asks the store who leads. Blocks."""
        o = _lib.CObserved()
        _lib.observe(self._b(), bytes_of(name, "the name"), byref(o), ctypes.sizeof(o))
        return Observed(o.has_leader, o.paused, o.term, text_of(o.leader), text_of(o.address),
                        text_of(o.metadata), o.since_ms / 1000,
                        None if o.lease_left_ms < 0 else o.lease_left_ms / 1000, o.wait_ms / 1000,
                        text_of(o.wait))

    @holding
    def candidates(self, name: str) -> List[Candidate]:
        """Asks the store who contends. Blocks."""
        room, n = 0, 16
        while n > room:
            room, found = n, (_lib.CCandidate * n)()
            n = _lib.get_candidates(self._b(), bytes_of(name, "the name"), found, room,
                                    ctypes.sizeof(_lib.CCandidate))
        return [Candidate(text_of(c.id), text_of(c.address), text_of(c.metadata), c.is_leader,
                          c.is_healthy, c.score_permille / 1000, c.priority, c.updated_ms / 1000)
                for c in found[:n]]

    @holding
    def order_resign(self, name: str, *, term: int = 0, quiet: float = 0,
                     note: Optional[str] = None) -> None:
        """Orders the leader to step down; with a term, only the leader of that term. Blocks."""
        _lib.order_resign(self._b(), bytes_of(name, "the name"), term, ms(quiet),
                          bytes_of(note, "the note"))

    @holding
    def order_transfer(self, name: str, candidate: str, *, term: int = 0,
                       note: Optional[str] = None) -> None:
        """Orders the leader to hand over to that candidate. Blocks."""
        _lib.order_transfer(self._b(), bytes_of(name, "the name"), term,
                            bytes_of(candidate, "the candidate"), bytes_of(note, "the note"))

    @holding
    def pause(self, name: str) -> None:
        """No candidate leads until resume(). Blocks."""
        _lib.pause(self._b(), bytes_of(name, "the name"))

    @holding
    def resume(self, name: str) -> None:
        _lib.resume(self._b(), bytes_of(name, "the name"))

    def close(self, timeout: Optional[float] = None) -> None:
        """Stops all elections, waits for the work that is bound to leads, gives all back.

        Work has timeout seconds to end (None: the time that others wait for a lost leader). If it
        goes on, nothing is given back, and BatonError says BUSY; then call it again.
        """
        if self._handle is None or self._is_forked:
            self._end()
            return
        if timeout is None:
            timeout = self.timings.gone
        until = time.monotonic() + timeout
        with self._lock:
            self._is_closing = True
            for election in list(self._elections.values()):
                election._stop_quietly()
        self._wake_all()
        with self._changed:
            while any(lead is not None for lead in (find() for find in self._leads.values())):
                left = until - time.monotonic()
                if left <= 0:
                    raise BatonError(Code.BUSY, "work is still bound to a lead: leave it before "
                                                "the store is closed")
                self._changed.wait(left)
        self._wait_told(list(self._elections.values()), until)
        self._end()

    async def close_async(self, timeout: Optional[float] = None) -> None:
        await _in_thread(self.close, timeout)

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, _kind: Optional[Type[BaseException]], _error: Optional[BaseException],
                 _trace: Optional[TracebackType]) -> None:
        self.close()

    async def __aenter__(self) -> "Store":
        return self

    async def __aexit__(self, _kind: Optional[Type[BaseException]],
                        _error: Optional[BaseException], _trace: Optional[TracebackType]) -> None:
        await asyncio.shield(self.close_async())

    def __repr__(self) -> str:
        return "<baton.Store closed>" if self._handle is None else f"<baton.Store {self.id!r}>"

    # ---- of the package ----

    def _b(self) -> int:
        if self._is_forked:
            raise BatonError(Code.FORKED, text_of(_lib.strerror(Code.FORKED)))
        if self._handle is None:
            raise BatonError(Code.INVALID, "the store is closed")
        return self._handle

    def _start_pump(self) -> None:
        with self._lock:
            handle = self._b()
            if self._pump is None:
                self._pump = Pump(self, handle)

    def _dispatch(self, event: _lib.CEvent) -> None:
        election = self._elections.get(event.election)
        if election is not None:
            election._take(event)
        self._wake_all()

    def _deadline(self, fd: int) -> None:
        """The descriptor of a lead is readable: its leadership is over, whatever C's threads do."""
        with self._lock:
            find = self._leads.get(fd)
            lead = find() if find is not None else None
            pump = self._pump
        if lead is None or lead.leads:
            return
        if pump is not None:
            pump.unwatch(fd)
        lead._mark_lost()

    def _wake_all(self) -> None:
        with self._changed:
            self._changed.notify_all()
        for wake in list(self._wakers):
            wake()

    def _wait_told(self, elections: List[Election], until: float) -> None:
        """Until their readers have all events up to the stop (S8), at the latest then."""
        with self._changed:
            if self._pump is not None and self._pump.thread is threading.current_thread():
                return  # it would wait for itself
            while not all(e._is_told for e in elections):
                left = until - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(left)

    def _add_lead(self, lead: Lead) -> None:
        self._start_pump()
        with self._lock:
            self._leads[lead._fd] = weakref.ref(lead)
            if self._pump is not None:
                self._pump.watch(lead._fd)

    def _remove_lead(self, lead: Lead) -> None:
        with self._lock:
            self._leads.pop(lead._fd, None)
            if self._pump is not None and not self._is_forked:
                self._pump.unwatch(lead._fd)

    def _leads_of(self, election: Election) -> List[Lead]:
        with self._lock:
            leads = [find() for find in self._leads.values()]
        return [lead for lead in leads if lead is not None and lead.election is election]

    def _end(self) -> None:
        """Closes the handle. Leads that were forgotten keep it: memory is not freed under them."""
        with self._changed:
            handle, self._handle, pump = self._handle, None, self._pump
            self._is_dead, self._pump = True, None
            forgotten = bool(self._leads)
            for election in self._elections.values():
                election._forget()
            while self._n_calls > 0:
                self._changed.wait()
        _stores.discard(self)
        if pump is not None and not self._is_forked:
            pump.end()
            if pump.thread is not threading.current_thread():
                pump.thread.join()
        if handle is not None and not forgotten:
            _lib.close(handle)
        self._wake_all()

    def _fork(self) -> None:
        """In the child: the parent's threads are not here, nor what they were about to do."""
        self._is_forked = self._is_dead = True
        self._make_locks()
        self._pump = None
        self._wakers.clear()
        for find in self._leads.values():
            lead = find()
            if lead is not None:
                lead._e = lead._context = None
        for election in self._elections.values():
            election._handle = None

    def __del__(self) -> None:
        if self._is_dead or self._handle is None:
            return
        warnings.warn("baton: a store was forgotten, not closed: its elections stop in the "
                      "background", ResourceWarning, source=self)
        for handle in self._elections:
            _lib.election_stop(handle, 0)
        is_free = not self._leads
        if self._pump is not None:
            self._pump.end(frees=is_free)
        elif is_free:
            _lib.close(self._handle)  # nothing was started: it has nothing to wait for


def singleton(url: str, name: str, **options: Any) -> Callable[[F], F]:
    """Makes a function that runs on one machine at a time.

    @baton.singleton("file:/var/lib/myapp", "nightly-report")
    def report(lead): ...

    A call waits until this process leads, calls the function with the Lead before its own
    arguments, and returns what the function returns. If the leadership was lost before the function
    returned, the function is called again when this process leads again. A coroutine function is
    cancelled by the loss. The options are those of Store.
    """
    def decorate(function: F) -> F:
        if is_async(function):
            @functools.wraps(function)
            async def wait_and_run(*args: Any, **kwargs: Any) -> Any:
                async with Store(url, **options) as store:
                    async for lead in store.election(name):
                        async with lead:
                            result = await function(lead, *args, **kwargs)
                            if lead.leads:
                                return result
        else:
            @functools.wraps(function)
            def wait_and_run(*args: Any, **kwargs: Any) -> Any:
                with Store(url, **options) as store:
                    for lead in store.election(name):
                        with lead:
                            result = function(lead, *args, **kwargs)
                            if lead.leads:
                                return result
        return wait_and_run  # type: ignore[return-value]
    return decorate


def fence_file(path: str, term: int) -> None:
    """For the resource: BatonError with STALE if a later term was seen in that file."""
    _lib.fence_file(bytes_of(path, "the path"), term)


def version() -> str:
    """Of the library that runs."""
    return text_of(_lib.version())


def _at_exit() -> None:
    """The program ends: all stop, and give back what no work is bound to, within EXIT_S in all.

    Work of a daemon thread that doesn't end in time keeps its leadership until the process is gone.
    """
    until = time.monotonic() + EXIT_S
    elections = [e for store in list(_stores) if not store._is_dead
                 for e in list(store._elections.values())]
    for election in elections:
        election._stop_quietly()
    for election in elections:
        if election._handle is not None:
            _lib.election_stop(election._handle, ms(max(0.0, until - time.monotonic())))


def _after_fork_in_child() -> None:
    for store in list(_stores):
        store._fork()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_after_fork_in_child)
