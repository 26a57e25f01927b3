//! What baton.h declares, as far as the crate `baton` uses it. The manual of the library is the
//! documentation; a number with a name of baton.h behind it is compared with the header by
//! tests/bindings/layouts. No function here takes a callback that C would call.
#![no_std]
#![allow(non_camel_case_types)]
#![allow(clippy::missing_safety_doc)]

use core::ffi::{c_char, c_int, c_void};
use core::mem::offset_of;

/// A handle on one store.
#[repr(C)]
pub struct baton {
    _opaque: [u8; 0],
}

/// This process' candidate in one election.
#[repr(C)]
pub struct baton_election {
    _opaque: [u8; 0],
}

/// Work that is bound to one leadership.
#[repr(C)]
pub struct baton_context {
    _opaque: [u8; 0],
}

pub const BATON_OK: c_int = 0; // BATON_OK
pub const BATON_E_INVALID: c_int = -1; // BATON_E_INVALID
pub const BATON_E_TIMING: c_int = -2; // BATON_E_TIMING
pub const BATON_E_URL: c_int = -3; // BATON_E_URL
pub const BATON_E_NO_DRIVER: c_int = -4; // BATON_E_NO_DRIVER
pub const BATON_E_MEMORY: c_int = -5; // BATON_E_MEMORY
pub const BATON_E_SYSTEM: c_int = -6; // BATON_E_SYSTEM
pub const BATON_E_NOT_STARTED: c_int = -7; // BATON_E_NOT_STARTED
pub const BATON_E_NOT_LEADER: c_int = -8; // BATON_E_NOT_LEADER
pub const BATON_E_TIMEOUT: c_int = -9; // BATON_E_TIMEOUT
pub const BATON_E_EXISTS: c_int = -10; // BATON_E_EXISTS
pub const BATON_E_UNAVAILABLE: c_int = -11; // BATON_E_UNAVAILABLE
pub const BATON_E_DENIED: c_int = -12; // BATON_E_DENIED
pub const BATON_E_CORRUPT: c_int = -13; // BATON_E_CORRUPT
pub const BATON_E_UNSUPPORTED: c_int = -14; // BATON_E_UNSUPPORTED
pub const BATON_E_NO_CANDIDATE: c_int = -15; // BATON_E_NO_CANDIDATE
pub const BATON_E_STALE: c_int = -16; // BATON_E_STALE
pub const BATON_E_FORKED: c_int = -17; // BATON_E_FORKED
pub const BATON_E_BUSY: c_int = -18; // BATON_E_BUSY
pub const BATON_E_DUPLICATE_ID: c_int = -19; // BATON_E_DUPLICATE_ID
pub const BATON_EVENT_BECAME: c_int = 1; // BATON_EVENT_BECAME
pub const BATON_EVENT_LOST: c_int = 2; // BATON_EVENT_LOST
pub const BATON_EVENT_CHANGED: c_int = 3; // BATON_EVENT_CHANGED
pub const BATON_EVENT_ERROR: c_int = 4; // BATON_EVENT_ERROR
pub const BATON_EVENT_STOPPED: c_int = 5; // BATON_EVENT_STOPPED
pub const BATON_EVENT_WAITS: c_int = 6; // BATON_EVENT_WAITS
pub const BATON_EVENT_RENEWED: c_int = 7; // BATON_EVENT_RENEWED
pub const BATON_REASON_NONE: c_int = 0; // BATON_REASON_NONE
pub const BATON_REASON_EXPIRED: c_int = 1; // BATON_REASON_EXPIRED
pub const BATON_REASON_REFUSED: c_int = 2; // BATON_REASON_REFUSED
pub const BATON_REASON_SUPERSEDED: c_int = 3; // BATON_REASON_SUPERSEDED
pub const BATON_REASON_GONE: c_int = 4; // BATON_REASON_GONE
pub const BATON_REASON_STALLED: c_int = 5; // BATON_REASON_STALLED
pub const BATON_REASON_STOPPED: c_int = 6; // BATON_REASON_STOPPED
pub const BATON_REASON_RESIGNED: c_int = 7; // BATON_REASON_RESIGNED
pub const BATON_REASON_ORDERED: c_int = 8; // BATON_REASON_ORDERED
pub const BATON_REASON_TRANSFERRED: c_int = 9; // BATON_REASON_TRANSFERRED
pub const BATON_REASON_UNHEALTHY: c_int = 10; // BATON_REASON_UNHEALTHY
pub const BATON_REASON_PAUSED: c_int = 11; // BATON_REASON_PAUSED
pub const BATON_STATE_STOPPED: c_int = 0; // BATON_STATE_STOPPED
pub const BATON_STATE_STANDBY: c_int = 1; // BATON_STATE_STANDBY
pub const BATON_STATE_CAMPAIGNING: c_int = 2; // BATON_STATE_CAMPAIGNING
pub const BATON_STATE_LEADING: c_int = 3; // BATON_STATE_LEADING
pub const BATON_STATE_RESIGNING: c_int = 4; // BATON_STATE_RESIGNING
pub const BATON_CONDITION_HEALTHY: c_int = 0; // BATON_CONDITION_HEALTHY
pub const BATON_CONDITION_DEGRADED: c_int = 1; // BATON_CONDITION_DEGRADED
pub const BATON_CONDITION_UNHEALTHY: c_int = 2; // BATON_CONDITION_UNHEALTHY
pub const BATON_OBSTACLE_NONE: c_int = 0; // BATON_OBSTACLE_NONE
pub const BATON_OBSTACLE_HELD: c_int = 1; // BATON_OBSTACLE_HELD
pub const BATON_OBSTACLE_PAUSED: c_int = 2; // BATON_OBSTACLE_PAUSED
pub const BATON_OBSTACLE_UNHEALTHY: c_int = 3; // BATON_OBSTACLE_UNHEALTHY
pub const BATON_OBSTACLE_DRAINING: c_int = 4; // BATON_OBSTACLE_DRAINING
pub const BATON_OBSTACLE_STOPPED: c_int = 5; // BATON_OBSTACLE_STOPPED
pub const BATON_OBSTACLE_STORE: c_int = 6; // BATON_OBSTACLE_STORE
pub const BATON_OBSTACLE_TERMS: c_int = 7; // BATON_OBSTACLE_TERMS
pub const BATON_NAME_MAX: usize = 253; // BATON_NAME_MAX
pub const BATON_METADATA_MAX: usize = 1024; // BATON_METADATA_MAX
pub const BATON_WAIT_MAX: usize = 191; // BATON_WAIT_MAX

#[repr(C)]
pub struct baton_error {
    pub code: c_int,
    pub text: [c_char; 252],
}

#[repr(C)]
pub struct baton_options {
    pub size: usize,
    pub id: *const c_char,
    pub address: *const c_char,
    pub lease_ms: u64,
    pub renew_ms: u64,
    pub grace_ms: u64,
    pub retry_ms: u64,
    pub retry_max_ms: u64,
    pub drift_permille: u32,
    pub dispatchers: u32,
    pub log: *const c_void,
    pub log_arg: *mut c_void,
    pub trace: *const c_void,
    pub trace_arg: *mut c_void,
    pub outlive: bool,
}

#[repr(C)]
pub struct baton_timings {
    pub size: usize,
    pub lease_ns: u64,
}

#[repr(C)]
pub struct baton_election_options {
    pub size: usize,
    pub metadata: *const c_char,
    pub release_on_stop: bool,
    pub check_health: bool,
    pub step_down_unhealthy: bool,
    pub observe_only: bool,
    pub manual: bool,
    pub min_score_permille: u32,
    pub priority: i32,
    pub preempt_ms: u64,
    pub work_timeout_ms: u64,
    pub handler: *const c_void,
    pub handler_arg: *mut c_void,
    pub drain_by_hand: bool,
    pub tell_renewals: bool,
}

#[repr(C)]
pub struct baton_event {
    pub size: usize,
    pub token: u64,
    pub election: *mut baton_election,
    pub kind: c_int,
    pub reason: c_int,
    pub code: c_int,
    pub term: u64,
    pub old_term: u64,
    pub wait_ms: i64,
    pub deadline_boot_ns: i64,
    pub work_end_boot_ns: i64,
    pub leader: [c_char; BATON_NAME_MAX + 1],
    pub old_leader: [c_char; BATON_NAME_MAX + 1],
    pub text: [c_char; 256],
    pub detail: [c_char; 256],
}

#[repr(C)]
pub struct baton_status {
    pub size: usize,
    pub state: c_int,
    pub is_leader: bool,
    pub paused: bool,
    pub term: u64,
    pub leader: [c_char; BATON_NAME_MAX + 1],
    pub leader_address: [c_char; BATON_NAME_MAX + 1],
    pub leader_metadata: [c_char; BATON_METADATA_MAX + 1],
    pub leader_since_ms: i64,
    pub last_renewal_ms: i64,
    pub last_renewal_boot_ns: i64,
    pub work_end_boot_ns: i64,
    pub time_left_ms: i64,
    pub score_permille: u32,
    pub wait_ms: i64,
    pub wait: [c_char; BATON_WAIT_MAX + 1],
}

#[repr(C)]
pub struct baton_candidate {
    pub size: usize,
    pub id: [c_char; BATON_NAME_MAX + 1],
    pub address: [c_char; BATON_NAME_MAX + 1],
    pub metadata: [c_char; BATON_METADATA_MAX + 1],
    pub is_leader: bool,
    pub is_healthy: bool,
    pub score_permille: u32,
    pub priority: i32,
    pub updated_ms: i64,
}

const _: () = assert!(offset_of!(baton_error, code) == 0); // baton_error.code
const _: () = assert!(offset_of!(baton_error, text) == 4); // baton_error.text
const _: () = assert!(offset_of!(baton_options, size) == 0); // baton_options.size
const _: () = assert!(offset_of!(baton_options, id) == 8); // baton_options.id
const _: () = assert!(offset_of!(baton_options, address) == 16); // baton_options.address
const _: () = assert!(offset_of!(baton_options, lease_ms) == 24); // baton_options.lease_ms
const _: () = assert!(offset_of!(baton_options, renew_ms) == 32); // baton_options.renew_ms
const _: () = assert!(offset_of!(baton_options, grace_ms) == 40); // baton_options.grace_ms
const _: () = assert!(offset_of!(baton_options, retry_ms) == 48); // baton_options.retry_ms
const _: () = assert!(offset_of!(baton_options, retry_max_ms) == 56); // baton_options.retry_max_ms
const _: () = assert!(offset_of!(baton_options, drift_permille) == 64); // baton_options.drift_permille
const _: () = assert!(offset_of!(baton_options, dispatchers) == 68); // baton_options.dispatchers
const _: () = assert!(offset_of!(baton_options, log) == 72); // baton_options.log
const _: () = assert!(offset_of!(baton_options, log_arg) == 80); // baton_options.log_arg
const _: () = assert!(offset_of!(baton_options, trace) == 88); // baton_options.trace
const _: () = assert!(offset_of!(baton_options, trace_arg) == 96); // baton_options.trace_arg
const _: () = assert!(offset_of!(baton_options, outlive) == 104); // baton_options.outlive
const _: () = assert!(offset_of!(baton_timings, size) == 0); // baton_timings.size
const _: () = assert!(offset_of!(baton_timings, lease_ns) == 8); // baton_timings.lease_ns
const _: () = assert!(offset_of!(baton_election_options, size) == 0); // baton_election_options.size
const _: () = assert!(offset_of!(baton_election_options, metadata) == 8); // baton_election_options.metadata
const _: () = assert!(offset_of!(baton_election_options, release_on_stop) == 16); // baton_election_options.release_on_stop
const _: () = assert!(offset_of!(baton_election_options, check_health) == 17); // baton_election_options.check_health
const _: () = assert!(offset_of!(baton_election_options, step_down_unhealthy) == 18); // baton_election_options.step_down_unhealthy
const _: () = assert!(offset_of!(baton_election_options, observe_only) == 19); // baton_election_options.observe_only
const _: () = assert!(offset_of!(baton_election_options, manual) == 20); // baton_election_options.manual
const _: () = assert!(offset_of!(baton_election_options, min_score_permille) == 24); // baton_election_options.min_score_permille
const _: () = assert!(offset_of!(baton_election_options, priority) == 28); // baton_election_options.priority
const _: () = assert!(offset_of!(baton_election_options, preempt_ms) == 32); // baton_election_options.preempt_ms
const _: () = assert!(offset_of!(baton_election_options, work_timeout_ms) == 40); // baton_election_options.work_timeout_ms
const _: () = assert!(offset_of!(baton_election_options, handler) == 48); // baton_election_options.handler
const _: () = assert!(offset_of!(baton_election_options, handler_arg) == 56); // baton_election_options.handler_arg
const _: () = assert!(offset_of!(baton_election_options, drain_by_hand) == 64); // baton_election_options.drain_by_hand
const _: () = assert!(offset_of!(baton_election_options, tell_renewals) == 65); // baton_election_options.tell_renewals
const _: () = assert!(offset_of!(baton_event, size) == 0); // baton_event.size
const _: () = assert!(offset_of!(baton_event, token) == 8); // baton_event.token
const _: () = assert!(offset_of!(baton_event, election) == 16); // baton_event.election
const _: () = assert!(offset_of!(baton_event, kind) == 24); // baton_event.kind
const _: () = assert!(offset_of!(baton_event, reason) == 28); // baton_event.reason
const _: () = assert!(offset_of!(baton_event, code) == 32); // baton_event.code
const _: () = assert!(offset_of!(baton_event, term) == 40); // baton_event.term
const _: () = assert!(offset_of!(baton_event, old_term) == 48); // baton_event.old_term
const _: () = assert!(offset_of!(baton_event, wait_ms) == 56); // baton_event.wait_ms
const _: () = assert!(offset_of!(baton_event, deadline_boot_ns) == 64); // baton_event.deadline_boot_ns
const _: () = assert!(offset_of!(baton_event, work_end_boot_ns) == 72); // baton_event.work_end_boot_ns
const _: () = assert!(offset_of!(baton_event, leader) == 80); // baton_event.leader
const _: () = assert!(offset_of!(baton_event, old_leader) == 334); // baton_event.old_leader
const _: () = assert!(offset_of!(baton_event, text) == 588); // baton_event.text
const _: () = assert!(offset_of!(baton_event, detail) == 844); // baton_event.detail
const _: () = assert!(offset_of!(baton_status, size) == 0); // baton_status.size
const _: () = assert!(offset_of!(baton_status, state) == 8); // baton_status.state
const _: () = assert!(offset_of!(baton_status, is_leader) == 12); // baton_status.is_leader
const _: () = assert!(offset_of!(baton_status, paused) == 13); // baton_status.paused
const _: () = assert!(offset_of!(baton_status, term) == 16); // baton_status.term
const _: () = assert!(offset_of!(baton_status, leader) == 24); // baton_status.leader
const _: () = assert!(offset_of!(baton_status, leader_address) == 278); // baton_status.leader_address
const _: () = assert!(offset_of!(baton_status, leader_metadata) == 532); // baton_status.leader_metadata
const _: () = assert!(offset_of!(baton_status, leader_since_ms) == 1560); // baton_status.leader_since_ms
const _: () = assert!(offset_of!(baton_status, last_renewal_ms) == 1568); // baton_status.last_renewal_ms
const _: () = assert!(offset_of!(baton_status, last_renewal_boot_ns) == 1576); // baton_status.last_renewal_boot_ns
const _: () = assert!(offset_of!(baton_status, work_end_boot_ns) == 1584); // baton_status.work_end_boot_ns
const _: () = assert!(offset_of!(baton_status, time_left_ms) == 1592); // baton_status.time_left_ms
const _: () = assert!(offset_of!(baton_status, score_permille) == 1600); // baton_status.score_permille
const _: () = assert!(offset_of!(baton_status, wait_ms) == 1608); // baton_status.wait_ms
const _: () = assert!(offset_of!(baton_status, wait) == 1616); // baton_status.wait
const _: () = assert!(offset_of!(baton_candidate, size) == 0); // baton_candidate.size
const _: () = assert!(offset_of!(baton_candidate, id) == 8); // baton_candidate.id
const _: () = assert!(offset_of!(baton_candidate, address) == 262); // baton_candidate.address
const _: () = assert!(offset_of!(baton_candidate, metadata) == 516); // baton_candidate.metadata
const _: () = assert!(offset_of!(baton_candidate, is_leader) == 1541); // baton_candidate.is_leader
const _: () = assert!(offset_of!(baton_candidate, is_healthy) == 1542); // baton_candidate.is_healthy
const _: () = assert!(offset_of!(baton_candidate, score_permille) == 1544); // baton_candidate.score_permille
const _: () = assert!(offset_of!(baton_candidate, priority) == 1548); // baton_candidate.priority
const _: () = assert!(offset_of!(baton_candidate, updated_ms) == 1552); // baton_candidate.updated_ms

extern "C" {
    pub fn baton_version() -> *const c_char;
    pub fn baton_version_number() -> u32;
    pub fn baton_strerror(code: c_int) -> *const c_char;
    pub fn baton_code_name(code: c_int) -> *const c_char;
    pub fn baton_state_name(state: c_int) -> *const c_char;
    pub fn baton_reason_name(reason: c_int) -> *const c_char;
    pub fn baton_obstacle_name(obstacle: c_int) -> *const c_char;
    pub fn baton_options_init_sized(options: *mut baton_options, size: usize);
    pub fn baton_open(
        url: *const c_char,
        options: *const baton_options,
        out: *mut *mut baton,
        err: *mut baton_error,
    ) -> c_int;
    pub fn baton_close(b: *mut baton);
    pub fn baton_id(b: *const baton) -> *const c_char;
    pub fn baton_promises(b: *const baton) -> *const c_char;
    pub fn baton_fd(b: *const baton) -> c_int;
    pub fn baton_wait_sized(
        b: *mut baton,
        timeout_ms: i64,
        event: *mut baton_event,
        size: usize,
    ) -> c_int;
    pub fn baton_event_done(b: *mut baton, token: u64) -> c_int;
    pub fn baton_get_candidates_sized(
        b: *mut baton,
        name: *const c_char,
        candidates: *mut baton_candidate,
        max: usize,
        size: usize,
        err: *mut baton_error,
    ) -> c_int;
    pub fn baton_election_options_init_sized(options: *mut baton_election_options, size: usize);
    pub fn baton_election_new(
        b: *mut baton,
        name: *const c_char,
        options: *const baton_election_options,
        out: *mut *mut baton_election,
        err: *mut baton_error,
    ) -> c_int;
    pub fn baton_election_start(e: *mut baton_election) -> c_int;
    pub fn baton_election_stop(e: *mut baton_election, timeout_ms: i64) -> c_int;
    pub fn baton_is_leader(e: *const baton_election) -> bool;
    pub fn baton_term(e: *const baton_election) -> u64;
    pub fn baton_get_status_sized(
        e: *const baton_election,
        status: *mut baton_status,
        size: usize,
    ) -> c_int;
    pub fn baton_election_condition(e: *const baton_election, err: *mut baton_error) -> c_int;
    pub fn baton_try_acquire(
        e: *mut baton_election,
        timeout_ms: i64,
        obstacle: *mut c_int,
    ) -> c_int;
    pub fn baton_alive(e: *mut baton_election);
    pub fn baton_drained(e: *mut baton_election, term: u64) -> c_int;
    pub fn baton_resign(e: *mut baton_election, quiet_ms: i64) -> c_int;
    pub fn baton_transfer(
        e: *mut baton_election,
        candidate: *const c_char,
        err: *mut baton_error,
    ) -> c_int;
    pub fn baton_report_health(
        e: *mut baton_election,
        score_permille: u32,
        metadata: *const c_char,
    ) -> c_int;
    pub fn baton_enter(
        e: *mut baton_election,
        ctx: *mut *mut baton_context,
        err: *mut baton_error,
    ) -> c_int;
    pub fn baton_leave(ctx: *mut baton_context);
    pub fn baton_context_is_leader(ctx: *const baton_context) -> bool;
    pub fn baton_context_term(ctx: *const baton_context) -> u64;
    pub fn baton_context_time_left_ms(ctx: *const baton_context) -> i64;
    pub fn baton_context_fd(ctx: *const baton_context) -> c_int;
    pub fn baton_context_wait(ctx: *const baton_context, timeout_ms: i64) -> bool;
}
