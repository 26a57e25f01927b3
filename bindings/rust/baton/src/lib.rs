//! Leader election on the store that you already run, on libbaton.
//!
//! A [`Store`] is a handle on the store that a URL names, an [`Election`] is this process' candidate
//! in one election, and a [`Lead`] is work that is bound to one leadership: the leadership passes on
//! only after the lead is dropped. [`Lead::leads`] asks the clock, and is the truth;
//! [`Lead::lost`] is a future, and [`Lead::wait_lost`] its blocking sibling.
//!
//! C never calls Rust: a thread for each store pulls events.

mod election;
mod pump;

pub use election::{Election, ElectionOptions, Event, Lead, Status};

use baton_sys as sys;
use pump::Pump;
use std::ffi::{c_char, c_int, CStr, CString};
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// A failure of the library: its code, and one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    code: i32,
    text: String,
}

impl Error {
    pub(crate) fn new(code: c_int, text: &str) -> Error {
        Error { code, text: text.to_string() }
    }

    /// One of the codes of [`codes`].
    pub fn code(&self) -> i32 {
        self.code
    }

    /// The code's name in one word: "timeout".
    pub fn code_name(&self) -> String {
        unsafe { text(sys::baton_code_name(self.code)) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

pub type Result<T> = std::result::Result<T, Error>;

/// The numbers of codes, kinds and reasons, with their names in baton.h.
pub use baton_sys as codes;

/// Why a leadership ended: one of `codes::BATON_REASON_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason(pub i32);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&unsafe { text(sys::baton_reason_name(self.0)) })
    }
}

pub(crate) unsafe fn text(p: *const c_char) -> String {
    CStr::from_ptr(p).to_string_lossy().into_owned()
}

pub(crate) fn check(code: c_int, error: Option<&sys::baton_error>) -> Result<c_int> {
    if code >= 0 {
        return Ok(code);
    }
    let said = error.map(|e| unsafe { text(e.text.as_ptr()) }).unwrap_or_default();
    if said.is_empty() {
        return Err(Error::new(code, &unsafe { text(sys::baton_strerror(code)) }));
    }
    Err(Error::new(code, &said))
}

pub(crate) fn c_text(text: &str) -> Result<CString> {
    CString::new(text)
        .map_err(|_| Error::new(sys::BATON_E_INVALID, "a text holds a zero byte; expected none"))
}

pub(crate) fn millis(time: Duration) -> u64 {
    time.as_nanos().div_ceil(1_000_000) as u64
}

/// The library's version: "0.1.0".
pub fn version() -> String {
    unsafe { text(sys::baton_version()) }
}

/// The same as a number that can be compared.
pub fn version_number() -> u32 {
    unsafe { sys::baton_version_number() }
}

/// What is `None` has the library's default.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub id: Option<String>,
    pub address: Option<String>,
    pub lease: Option<Duration>,
    pub renew: Option<Duration>,
    pub grace: Option<Duration>,
    pub retry: Option<Duration>,
    pub retry_max: Option<Duration>,
    pub drift_permille: Option<u32>,
    pub outlive: bool,
}

/// A candidate as the store knows it.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub id: String,
    pub address: String,
    pub metadata: String,
    pub leads: bool,
    pub healthy: bool,
    pub score: u32,
}

/// Makes elections. It is closed when it, its elections and their leads are dropped; that stops
/// them and gives everything back.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) handle: *mut sys::baton,
    pub(crate) pump: Arc<Pump>,
}

// The library's functions may be called from any thread.
unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

static OPEN: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

impl Drop for Inner {
    fn drop(&mut self) {
        self.pump.end();
        unsafe { sys::baton_close(self.handle) };
        OPEN.lock().unwrap().retain(|store| store.strong_count() > 0);
    }
}

fn set(to: &mut u64, from: Option<Duration>) {
    if let Some(time) = from {
        *to = millis(time);
    }
}

impl Store {
    /// Opens a handle on the store that the URL names. Does no I/O.
    pub fn open(url: &str, options: &Options) -> Result<Store> {
        let url = c_text(url)?;
        let id = options.id.as_deref().map(c_text).transpose()?;
        let address = options.address.as_deref().map(c_text).transpose()?;
        let mut handle = std::ptr::null_mut();
        unsafe {
            let mut error: sys::baton_error = std::mem::zeroed();
            let mut o: sys::baton_options = std::mem::zeroed();
            sys::baton_options_init_sized(&mut o, std::mem::size_of_val(&o));
            o.id = id.as_ref().map_or(o.id, |text| text.as_ptr());
            o.address = address.as_ref().map_or(o.address, |text| text.as_ptr());
            set(&mut o.lease_ms, options.lease);
            set(&mut o.renew_ms, options.renew);
            set(&mut o.grace_ms, options.grace);
            set(&mut o.retry_ms, options.retry);
            set(&mut o.retry_max_ms, options.retry_max);
            o.drift_permille = options.drift_permille.unwrap_or(o.drift_permille);
            o.outlive = options.outlive;
            check(sys::baton_open(url.as_ptr(), &o, &mut handle, &mut error), Some(&error))?;
        }
        let pump = Pump::start(handle)?;
        let inner = Arc::new(Inner { handle, pump });
        OPEN.lock().unwrap().push(Arc::downgrade(&inner));
        Ok(Store { inner })
    }

    /// This process' own id in the elections of the store.
    pub fn id(&self) -> String {
        unsafe { text(sys::baton_id(self.inner.handle)) }
    }

    /// What this store promises, and under which faults it doesn't: text for people.
    pub fn promises(&self) -> String {
        unsafe { text(sys::baton_promises(self.inner.handle)) }
    }

    /// A candidate in the named election. It does nothing until it is started.
    pub fn election(&self, name: &str, options: &ElectionOptions) -> Result<Election> {
        Election::new(self, name, options)
    }

    /// Asks the store who contends. Blocks.
    pub fn candidates(&self, name: &str) -> Result<Vec<Candidate>> {
        let name = c_text(name)?;
        let mut room = 16;
        loop {
            let mut all: Vec<sys::baton_candidate> = Vec::with_capacity(room);
            unsafe {
                let mut error: sys::baton_error = std::mem::zeroed();
                let size = std::mem::size_of::<sys::baton_candidate>();
                let n = check(
                    sys::baton_get_candidates_sized(
                        self.inner.handle,
                        name.as_ptr(),
                        all.as_mut_ptr(),
                        room,
                        size,
                        &mut error,
                    ),
                    Some(&error),
                )? as usize;
                if n > room {
                    room = 2 * n;
                    continue;
                }
                all.set_len(n);
                return Ok(all.iter().map(|c| candidate(c)).collect());
            }
        }
    }
}

unsafe fn candidate(c: &sys::baton_candidate) -> Candidate {
    Candidate {
        id: text(c.id.as_ptr()),
        address: text(c.address.as_ptr()),
        metadata: text(c.metadata.as_ptr()),
        leads: c.is_leader,
        healthy: c.is_healthy,
        score: c.score_permille,
    }
}

/// Ends the program as [`std::process::exit`] does, which drops nothing, after it has stopped the
/// elections of all stores. It waits for that, and for the work, no longer than a second.
pub fn exit(code: i32) -> ! {
    let until = Instant::now() + Duration::from_secs(1);
    let open: Vec<_> = OPEN.lock().unwrap().iter().filter_map(Weak::upgrade).collect();
    for store in &open {
        store.pump.stop_all(Duration::ZERO);
    }
    for store in &open {
        store.pump.stop_all(until.saturating_duration_since(Instant::now()));
    }
    std::process::exit(code)
}
