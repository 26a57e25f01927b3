# _lib.py - libbaton as ctypes sees it: the shared library, its structs, constants and functions.
#
# The rest of the package calls C only through this file. Constants and layouts are checked against
# baton.h by the tests. No function here takes a callback: C never calls Python.
import ctypes
import enum
import os
from ctypes import (POINTER, Structure, byref, c_bool, c_char, c_char_p, c_int, c_int32, c_int64,
                    c_size_t, c_uint32, c_uint64, c_void_p)
from typing import Any, Callable, Optional, Type, Union

NAME_MAX = 253
METADATA_MAX = 1024
WAIT_MAX = 191
NOTE_MAX = 200


Code = enum.IntEnum("Code", {  # why a call failed
    "OK": 0, "INVALID": -1, "TIMING": -2, "URL": -3, "NO_DRIVER": -4, "MEMORY": -5, "SYSTEM": -6,
    "NOT_STARTED": -7, "NOT_LEADER": -8, "TIMEOUT": -9, "EXISTS": -10, "UNAVAILABLE": -11,
    "DENIED": -12, "CORRUPT": -13, "UNSUPPORTED": -14, "NO_CANDIDATE": -15, "STALE": -16,
    "FORKED": -17, "BUSY": -18, "DUPLICATE_ID": -19})
EventKind = enum.IntEnum("EventKind", {
    "BECAME": 1, "LOST": 2, "CHANGED": 3, "ERROR": 4, "STOPPED": 5, "WAITS": 6, "RENEWED": 7})
Reason = enum.IntEnum("Reason", {  # why a leadership was lost
    "NONE": 0, "EXPIRED": 1, "REFUSED": 2, "SUPERSEDED": 3, "GONE": 4, "STALLED": 5, "STOPPED": 6,
    "RESIGNED": 7, "ORDERED": 8, "TRANSFERRED": 9, "UNHEALTHY": 10, "PAUSED": 11})
State = enum.IntEnum("State", {
    "STOPPED": 0, "STANDBY": 1, "CAMPAIGNING": 2, "LEADING": 3, "RESIGNING": 4})
Condition = enum.IntEnum("Condition", {"HEALTHY": 0, "DEGRADED": 1, "UNHEALTHY": 2})
Obstacle = enum.IntEnum("Obstacle", {  # what kept a candidate from leading
    "NONE": 0, "HELD": 1, "PAUSED": 2, "UNHEALTHY": 3, "DRAINING": 4, "STOPPED": 5, "STORE": 6,
    "TERMS": 7})

# How the names of each begin in baton.h.
PREFIXES = {Code: "BATON_E_", EventKind: "BATON_EVENT_", Reason: "BATON_REASON_",
            State: "BATON_STATE_", Condition: "BATON_CONDITION_", Obstacle: "BATON_OBSTACLE_"}


def known(kind: Type[enum.IntEnum], number: int) -> Any:
    """The constant of that number; the number itself where a newer library has more of them."""
    try:
        return kind(number)
    except ValueError:
        return number


class CError(Structure):
    _fields_ = [("code", c_int), ("text", c_char * 252)]


class COptions(Structure):
    _fields_ = [("size", c_size_t), ("id", c_char_p), ("address", c_char_p),
                ("lease_ms", c_uint64), ("renew_ms", c_uint64), ("grace_ms", c_uint64),
                ("retry_ms", c_uint64), ("retry_max_ms", c_uint64), ("drift_permille", c_uint32),
                ("dispatchers", c_uint32), ("log", c_void_p), ("log_arg", c_void_p),
                ("trace", c_void_p), ("trace_arg", c_void_p), ("outlive", c_bool)]


class CElectionOptions(Structure):
    _fields_ = [("size", c_size_t), ("metadata", c_char_p), ("release_on_stop", c_bool),
                ("check_health", c_bool), ("step_down_unhealthy", c_bool),
                ("observe_only", c_bool), ("manual", c_bool), ("min_score_permille", c_uint32),
                ("priority", c_int32), ("preempt_ms", c_uint64), ("work_timeout_ms", c_uint64),
                ("handler", c_void_p), ("handler_arg", c_void_p), ("drain_by_hand", c_bool),
                ("tell_renewals", c_bool)]


class CEvent(Structure):
    _fields_ = [("size", c_size_t), ("token", c_uint64), ("election", c_void_p), ("kind", c_int),
                ("reason", c_int), ("code", c_int), ("term", c_uint64), ("old_term", c_uint64),
                ("wait_ms", c_int64), ("deadline_boot_ns", c_int64), ("work_end_boot_ns", c_int64),
                ("leader", c_char * (NAME_MAX + 1)), ("old_leader", c_char * (NAME_MAX + 1)),
                ("text", c_char * 256), ("detail", c_char * 256)]


class CStatus(Structure):
    _fields_ = [("size", c_size_t), ("state", c_int), ("is_leader", c_bool), ("paused", c_bool),
                ("term", c_uint64), ("leader", c_char * (NAME_MAX + 1)),
                ("leader_address", c_char * (NAME_MAX + 1)),
                ("leader_metadata", c_char * (METADATA_MAX + 1)), ("leader_since_ms", c_int64),
                ("last_renewal_ms", c_int64), ("last_renewal_boot_ns", c_int64),
                ("work_end_boot_ns", c_int64), ("time_left_ms", c_int64),
                ("score_permille", c_uint32), ("wait_ms", c_int64),
                ("wait", c_char * (WAIT_MAX + 1))]


class CTimings(Structure):
    _fields_ = [("size", c_size_t), ("lease_ns", c_uint64), ("renew_ns", c_uint64),
                ("grace_ns", c_uint64), ("drain_ns", c_uint64), ("end_ns", c_uint64),
                ("gone_ns", c_uint64), ("retry_ns", c_uint64), ("retry_max_ns", c_uint64),
                ("call_ns", c_uint64), ("drift_permille", c_uint32), ("proves_death", c_bool)]


class CObserved(Structure):
    _fields_ = [("size", c_size_t), ("has_leader", c_bool), ("paused", c_bool),
                ("functions", c_bool), ("term", c_uint64),
                ("leader", c_char * (NAME_MAX + 1)), ("address", c_char * (NAME_MAX + 1)),
                ("metadata", c_char * (METADATA_MAX + 1)), ("since_ms", c_int64),
                ("lease_left_ms", c_int64), ("score_permille", c_uint32), ("priority", c_int32),
                ("wait_ms", c_int64), ("wait", c_char * (WAIT_MAX + 1))]


class CCandidate(Structure):
    _fields_ = [("size", c_size_t), ("id", c_char * (NAME_MAX + 1)),
                ("address", c_char * (NAME_MAX + 1)), ("metadata", c_char * (METADATA_MAX + 1)),
                ("is_leader", c_bool), ("is_healthy", c_bool), ("score_permille", c_uint32),
                ("priority", c_int32), ("updated_ms", c_int64)]


STRUCTS = {"baton_error": CError, "baton_options": COptions, "baton_event": CEvent,
           "baton_election_options": CElectionOptions, "baton_status": CStatus,
           "baton_timings": CTimings, "baton_observed": CObserved, "baton_candidate": CCandidate}

_PATH = os.environ.get("BATON_LIB") or "libbaton.so.0"
try:
    _C = ctypes.CDLL(_PATH)  # releases the GIL while C runs
    # Keeps the GIL: for what is over at once. A thread that closes can't come in between, too.
    _C_SHORT = ctypes.PyDLL(_PATH)
except OSError as _error:
    raise ImportError(f"libbaton is missing: {_error}; install it with make install, or set "
                      "BATON_LIB to the path of libbaton.so") from None


def _function(name: str, result: Any, *arguments: Any, library: Any = _C) -> Any:
    function = getattr(library, "baton_" + name)
    function.restype = result
    function.argtypes = list(arguments)
    return function


def _telling(name: str, *arguments: Any) -> Callable[..., int]:
    """A function whose last argument in C takes the sentence of its failure, which is raised."""
    function = _function(name, c_int, *arguments, POINTER(CError))

    def call(*values: Any) -> int:
        error = CError()
        return checked(function(*values, byref(error)), error)
    return call


version = _function("version", c_char_p)
version_number = _function("version_number", c_uint32, library=_C_SHORT)
strerror = _function("strerror", c_char_p, c_int)
code_name = _function("code_name", c_char_p, c_int)
options_init = _function("options_init_sized", None, POINTER(COptions), c_size_t)
open_store = _telling("open", c_char_p, POINTER(COptions), POINTER(c_void_p))
close = _function("close", None, c_void_p)
store_id = _function("id", c_char_p, c_void_p)
get_timings = _function("get_timings_sized", c_int, c_void_p, POINTER(CTimings), c_size_t)
election_options_init = _function("election_options_init_sized", None, POINTER(CElectionOptions),
                                  c_size_t)
election_new = _telling("election_new", c_void_p, c_char_p, POINTER(CElectionOptions),
                        POINTER(c_void_p))
election_start = _function("election_start", c_int, c_void_p)
election_stop = _function("election_stop", c_int, c_void_p, c_int64)
is_leader = _function("is_leader", c_bool, c_void_p, library=_C_SHORT)
term = _function("term", c_uint64, c_void_p, library=_C_SHORT)
time_left_ms = _function("time_left_ms", c_int64, c_void_p, library=_C_SHORT)
get_status = _function("get_status_sized", c_int, c_void_p, POINTER(CStatus), c_size_t)
election_condition = _function("election_condition", c_int, c_void_p, POINTER(CError))
wait = _function("wait_sized", c_int, c_void_p, c_int64, POINTER(CEvent), c_size_t)
event_done = _function("event_done", c_int, c_void_p, c_uint64)
store_fd = _function("fd", c_int, c_void_p)
try_acquire = _function("try_acquire", c_int, c_void_p, c_int64, POINTER(c_int))
alive = _function("alive", None, c_void_p)
drained = _function("drained", c_int, c_void_p, c_uint64)
enter = _telling("enter", c_void_p, POINTER(c_void_p))
leave = _function("leave", None, c_void_p)
context_term = _function("context_term", c_uint64, c_void_p)
context_fd = _function("context_fd", c_int, c_void_p)
resign = _function("resign", c_int, c_void_p, c_int64)
transfer = _telling("transfer", c_void_p, c_char_p)
order_resign = _telling("order_resign", c_void_p, c_char_p, c_uint64, c_int64, c_char_p)
order_transfer = _telling("order_transfer", c_void_p, c_char_p, c_uint64, c_char_p, c_char_p)
pause = _telling("pause", c_void_p, c_char_p)
resume = _telling("resume", c_void_p, c_char_p)
report_health = _function("report_health", c_int, c_void_p, c_uint32, c_char_p)
observe = _telling("observe_sized", c_void_p, c_char_p, POINTER(CObserved), c_size_t)
get_candidates = _telling("get_candidates_sized", c_void_p, c_char_p, POINTER(CCandidate), c_size_t,
                          c_size_t)
fence_file = _telling("fence_file", c_char_p, c_uint64)
promises = _function("promises", c_char_p, c_void_p)


class BatonError(Exception):
    """What the library refused or could not do: a code, and a sentence."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code: Union[Code, int] = known(Code, code)
        self.text = text

    @property
    def name(self) -> str:
        """The code in one word, as logs have it: "timeout"."""
        return text_of(code_name(int(self.code)))


def checked(result: int, error: Optional[CError] = None) -> int:
    """What a C function returned; its failure is raised."""
    if result >= 0:
        return result
    text = text_of(error.text) if error is not None and error.code == result else ""
    raise BatonError(result, text or text_of(strerror(result)))


def text_of(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def bytes_of(value: Optional[str], what: str) -> Optional[bytes]:
    """For C. A zero byte would cut it short, and name something else."""
    if value is None:
        return None
    encoded = value.encode("utf-8", "surrogateescape")
    if b"\0" in encoded:
        raise BatonError(Code.INVALID, f"{what} has a zero byte: text ends there in C")
    return encoded


def ms(seconds: Optional[float]) -> int:
    """Rounded up, so that a little time is not none. None: without limit, which C calls -1."""
    return -1 if seconds is None else max(0, -int(-seconds * 1000 // 1))


