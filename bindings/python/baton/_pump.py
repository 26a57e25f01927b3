# _pump.py - the thread of a store that takes its events and watches its leads' descriptors.
#
# It is the only place where events are pulled. No event ends work (drain_by_hand): work ends when a
# Lead is left, so the pump may run ahead of it. It must never keep a store alive: it knows
# the store by a weak reference only, and ends when the store is closed or was forgotten.
import ctypes
import os
import select
import threading
import weakref
from typing import Any, Optional

from . import _lib


class Pump:
    """Descriptors that wake the thread, and the thread."""

    def __init__(self, store: Any, handle: int) -> None:
        self.handle = handle
        self.epoll = select.epoll()
        self.wake_out, self.wake_in = os.pipe()
        os.set_blocking(self.wake_in, False)
        self.store_fd = _lib.store_fd(handle)
        self.ends = False
        self.frees = False  # nobody else closes the handle
        for fd in (self.store_fd, self.wake_out):
            self.epoll.register(fd, select.EPOLLIN)
        self.thread = threading.Thread(target=_work, args=(self, weakref.ref(store)),
                                       name="baton", daemon=True)
        self.thread.start()

    def watch(self, fd: int) -> None:
        self.epoll.register(fd, select.EPOLLIN)

    def unwatch(self, fd: int) -> None:
        try:
            self.epoll.unregister(fd)
        except (OSError, ValueError):  # it has fired, or the pump has ended
            pass

    def end(self, frees: bool = False) -> None:
        """The thread ends soon; with frees it closes the handle, which may take a lease."""
        self.frees = frees
        self.ends = True
        try:
            os.write(self.wake_in, b"x")
        except OSError:
            pass

    def done(self) -> None:
        self.epoll.close()
        os.close(self.wake_out)
        os.close(self.wake_in)


def _work(pump: Pump, find: "weakref.ref[Any]") -> None:
    event = _lib.CEvent()
    while not pump.ends:
        ready = [fd for fd, _ in pump.epoll.poll()]
        ready.sort(key=lambda fd: fd != pump.store_fd)  # an event says why; a deadline doesn't
        store: Optional[Any] = find()
        if store is None:
            break
        for fd in ready:
            if fd == pump.store_fd:
                _take_all(pump, store, event)
            elif fd != pump.wake_out:
                store._deadline(fd)
        del store  # the last reference may be this one
    if pump.frees:
        _lib.close(pump.handle)
    pump.done()


def _take_all(pump: Pump, store: Any, event: _lib.CEvent) -> None:
    size = ctypes.sizeof(event)
    while not pump.ends and _lib.wait(pump.handle, 0, ctypes.byref(event), size) > 0:
        if event.kind == _lib.EventKind.LOST:
            # Open contexts are waited for; without one there is no work to wait for.
            _lib.drained(event.election, event.term)
        token = event.token
        store._dispatch(event)
        _lib.event_done(pump.handle, token)
