//! election.rs: this process' candidate in one election, and work that is bound to a leadership.

use crate::{c_text, check, millis, sys, text, Error, Inner, Reason, Result, Store};
use std::ffi::c_char;
use std::future::Future;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

#[derive(Debug, Clone)]
pub struct ElectionOptions {
    pub metadata: Option<String>,
    pub release_on_stop: bool,
    pub check_health: bool,
    pub step_down_unhealthy: bool,
    pub observe_only: bool,
    /// Campaigns only in [`Election::try_acquire`].
    pub manual: bool,
    pub min_score_permille: u32,
    pub priority: i32,
    pub preempt: Duration,
    /// [`Election::alive`] must be called this often.
    pub work_timeout: Duration,
}

impl Default for ElectionOptions {
    fn default() -> Self {
        ElectionOptions {
            metadata: None,
            release_on_stop: true,
            check_health: true,
            step_down_unhealthy: true,
            observe_only: false,
            manual: false,
            min_score_permille: 800,
            priority: 0,
            preempt: Duration::ZERO,
            work_timeout: Duration::ZERO,
        }
    }
}

/// What a candidate knows, from memory.
#[derive(Debug, Clone)]
pub struct Status {
    pub state: String,
    pub leads: bool,
    pub paused: bool,
    pub term: u64,
    pub leader: String,
    pub time_left: Duration,
}

/// What happened in an election.
#[derive(Debug, Clone)]
pub struct Event {
    /// One of `codes::BATON_EVENT_*`.
    pub kind: i32,
    pub reason: Reason,
    /// Of a failure of the store: one of `codes::BATON_E_*`.
    pub code: i32,
    pub term: u64,
    pub old_term: u64,
    pub wait: Duration,
    pub leader: String,
    pub old_leader: String,
    pub text: String,
    pub detail: String,
}

impl Event {
    fn new(event: &sys::baton_event) -> Event {
        let said = |text: &[c_char]| unsafe { crate::text(text.as_ptr()) };
        Event {
            kind: event.kind,
            reason: Reason(event.reason),
            code: event.code,
            term: event.term,
            old_term: event.old_term,
            wait: Duration::from_millis(event.wait_ms.max(0) as u64),
            leader: said(&event.leader),
            old_leader: said(&event.old_leader),
            text: said(&event.text),
            detail: said(&event.detail),
        }
    }
}

#[derive(Default)]
struct News {
    changes: u64,
    stopped: bool,
    lost: Option<(u64, i32)>, // the last term that was lost, and why
    wakers: Vec<Waker>,
    readers: Vec<Sender<Event>>,
}

/// What the pump knows of an election.
pub(crate) struct State {
    pub(crate) handle: *mut sys::baton_election,
    news: Mutex<News>,
    changed: Condvar,
}

unsafe impl Send for State {}
unsafe impl Sync for State {}

impl State {
    pub(crate) fn note(&self, event: &sys::baton_event) {
        self.change(|news| {
            if event.kind == sys::BATON_EVENT_LOST {
                news.lost = Some((event.term, event.reason));
            }
            news.readers.retain(|reader| reader.send(Event::new(event)).is_ok());
        });
    }

    fn change(&self, how: impl FnOnce(&mut News)) {
        let mut news = self.news.lock().unwrap();
        how(&mut news);
        news.changes += 1;
        let wakers = std::mem::take(&mut news.wakers);
        drop(news);
        self.changed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn stop(&self, limit: Duration) -> i32 {
        let mut code = 0;
        // A start comes before both or after both.
        self.change(|news| {
            news.stopped = true;
            code = unsafe { sys::baton_election_stop(self.handle, 0) };
        });
        if limit.is_zero() {
            return code;
        }
        code = unsafe { sys::baton_election_stop(self.handle, millis(limit) as i64) };
        if !self.news.lock().unwrap().stopped {
            // Was it started before that second call? Then that start counts: it came last.
            unsafe { sys::baton_election_start(self.handle) };
        }
        code
    }
}

/// A loop that runs work. If it ends by a panic, or as a future that is dropped, no work would follow
/// on an election that goes on.
struct Loop<'a>(&'a State);

impl Drop for Loop<'_> {
    fn drop(&mut self) {
        self.0.stop(Duration::ZERO);
    }
}

/// This process' candidate. It keeps its store open.
#[derive(Clone)]
pub struct Election {
    store: Arc<Inner>,
    state: Arc<State>,
    name: Arc<str>,
}

impl Election {
    pub(crate) fn new(store: &Store, name: &str, options: &ElectionOptions) -> Result<Election> {
        let c_name = c_text(name)?;
        let metadata = options.metadata.as_deref().map(c_text).transpose()?;
        let mut handle = std::ptr::null_mut();
        unsafe {
            let mut error: sys::baton_error = std::mem::zeroed();
            let mut o: sys::baton_election_options = std::mem::zeroed();
            sys::baton_election_options_init_sized(&mut o, std::mem::size_of_val(&o));
            o.metadata = metadata.as_ref().map_or(o.metadata, |text| text.as_ptr());
            o.release_on_stop = options.release_on_stop;
            o.check_health = options.check_health;
            o.step_down_unhealthy = options.step_down_unhealthy;
            o.observe_only = options.observe_only;
            o.manual = options.manual;
            o.min_score_permille = options.min_score_permille;
            o.priority = options.priority;
            o.preempt_ms = millis(options.preempt);
            o.work_timeout_ms = millis(options.work_timeout);
            o.drain_by_hand = true;
            let b = store.inner.handle;
            let code =
                sys::baton_election_new(b, c_name.as_ptr(), &o, &mut handle, &mut error);
            check(code, Some(&error))?;
        }
        let state = Arc::new(State { handle, news: Mutex::default(), changed: Condvar::new() });
        store.inner.pump.add(state.clone());
        Ok(Election { store: store.inner.clone(), state, name: name.into() })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Contends from now on. Idempotent; never blocks.
    pub fn start(&self) -> Result<()> {
        let mut news = self.state.news.lock().unwrap();
        news.stopped = false;
        check(unsafe { sys::baton_election_start(self.state.handle) }, None).map(|_| ())
    }

    /// Steps down and stops contending. Waits so long for the work to end and the claim to go: an
    /// error with `BATON_E_TIMEOUT` if that goes on. Zero from within the work of a lead.
    pub fn stop(&self, limit: Duration) -> Result<()> {
        check(self.state.stop(limit), None).map(|_| ())
    }

    /// Asks the clock whether this candidate leads now.
    pub fn leads(&self) -> bool {
        unsafe { sys::baton_is_leader(self.state.handle) }
    }

    /// Of the present leadership, 0 if there is none: the fencing token.
    pub fn term(&self) -> u64 {
        unsafe { sys::baton_term(self.state.handle) }
    }

    /// Steps down, and leaves it to others for so long.
    pub fn resign(&self, quiet: Duration) -> Result<()> {
        let code = unsafe { sys::baton_resign(self.state.handle, millis(quiet) as i64) };
        check(code, None).map(|_| ())
    }

    /// Steps down in favour of the named candidate.
    pub fn transfer(&self, candidate: &str) -> Result<()> {
        let candidate = c_text(candidate)?;
        unsafe {
            let mut error: sys::baton_error = std::mem::zeroed();
            let code = sys::baton_transfer(self.state.handle, candidate.as_ptr(), &mut error);
            check(code, Some(&error)).map(|_| ())
        }
    }

    /// From 0 to 1000; `None` leaves the metadata.
    pub fn report_health(&self, score: u32, metadata: Option<&str>) -> Result<()> {
        let metadata = metadata.map(c_text).transpose()?;
        let shown = metadata.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        check(unsafe { sys::baton_report_health(self.state.handle, score, shown) }, None)
            .map(|_| ())
    }

    /// A sign of life of the work.
    pub fn alive(&self) {
        unsafe { sys::baton_alive(self.state.handle) }
    }

    /// Tries to become leader now: `None` if it leads, else what kept it, in a word: "held".
    pub fn try_acquire(&self, limit: Duration) -> Result<Option<String>> {
        let mut why = 0;
        unsafe {
            let ms = millis(limit) as i64;
            let code = check(sys::baton_try_acquire(self.state.handle, ms, &mut why), None)?;
            Ok((code != 1).then(|| text(sys::baton_obstacle_name(why))))
        }
    }

    pub fn status(&self) -> Result<Status> {
        unsafe {
            let mut s: sys::baton_status = std::mem::zeroed();
            let size = std::mem::size_of_val(&s);
            check(sys::baton_get_status_sized(self.state.handle, &mut s, size), None)?;
            Ok(Status {
                state: text(sys::baton_state_name(s.state)),
                leads: s.is_leader,
                paused: s.paused,
                term: s.term,
                leader: text(s.leader.as_ptr()),
                time_left: Duration::from_millis(s.time_left_ms.max(0) as u64),
            })
        }
    }

    /// What the election looks like from here, one of `codes::BATON_CONDITION_*`; and a sentence if
    /// the store fails.
    pub fn condition(&self) -> Result<(i32, String)> {
        unsafe {
            let mut error: sys::baton_error = std::mem::zeroed();
            let found = check(sys::baton_election_condition(self.state.handle, &mut error), None)?;
            Ok((found, text(error.text.as_ptr())))
        }
    }

    /// The events from now on, until the store is closed. They are kept until they are read, or
    /// the receiver is dropped.
    pub fn events(&self) -> Receiver<Event> {
        let (reader, events) = channel();
        self.state.news.lock().unwrap().readers.push(reader);
        events
    }

    /// Binds work to the present leadership: `BATON_E_NOT_LEADER` if there is none.
    pub fn enter(&self) -> Result<Lead> {
        let mut handle = std::ptr::null_mut();
        let term = unsafe {
            let mut error: sys::baton_error = std::mem::zeroed();
            check(sys::baton_enter(self.state.handle, &mut handle, &mut error), Some(&error))?;
            sys::baton_context_term(handle)
        };
        Ok(Lead { handle, term, election: self.clone() })
    }

    // None: not now. Of a leadership later than that: one that was resigned may linger.
    fn try_enter(&self, after: u64) -> Result<Option<Lead>> {
        match self.enter() {
            Ok(lead) if lead.term > after => Ok(Some(lead)),
            Ok(_) => Ok(None),
            Err(e) if e.code() == sys::BATON_E_NOT_LEADER => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Waits until this candidate leads, and binds work to that leadership. An error with
    /// `BATON_E_TIMEOUT`, or `BATON_E_NOT_STARTED` when the election is stopped.
    pub fn acquire(&self, limit: Duration) -> Result<Lead> {
        self.acquire_after(0, Some(Instant::now() + limit))
    }

    fn acquire_after(&self, after: u64, until: Option<Instant>) -> Result<Lead> {
        loop {
            let news = self.state.news.lock().unwrap();
            let (since, stopped) = (news.changes, news.stopped);
            drop(news);
            if stopped {
                return Err(Error::new(sys::BATON_E_NOT_STARTED, "the election is stopped"));
            }
            if let Some(lead) = self.try_enter(after)? {
                return Ok(lead);
            }
            let news = self.state.news.lock().unwrap();
            let left = until.map_or(Duration::from_secs(3600), |until| {
                until.saturating_duration_since(Instant::now())
            });
            let (_news, timeout) = self
                .state
                .changed
                .wait_timeout_while(news, left, |news| news.changes == since)
                .unwrap();
            if timeout.timed_out() && until.is_some() {
                return Err(Error::new(sys::BATON_E_TIMEOUT, "not elected in time"));
            }
        }
    }

    /// As [`Election::acquire`], for any executor.
    pub async fn acquire_async(&self) -> Result<Lead> {
        self.acquire_async_after(0).await
    }

    async fn acquire_async_after(&self, after: u64) -> Result<Lead> {
        std::future::poll_fn(|cx| {
            let mut news = self.state.news.lock().unwrap();
            if news.stopped {
                let stopped = Error::new(sys::BATON_E_NOT_STARTED, "the election is stopped");
                return Poll::Ready(Err(stopped));
            }
            // Before it is tried: what changes from here on wakes us.
            news.wakers.retain(|old| !old.will_wake(cx.waker()));
            news.wakers.push(cx.waker().clone());
            drop(news);
            match self.try_enter(after) {
                Ok(Some(lead)) => Poll::Ready(Ok(lead)),
                Ok(None) => Poll::Pending,
                Err(e) => Poll::Ready(Err(e)),
            }
        })
        .await
    }

    /// Runs `work` on this thread whenever this candidate is elected. The leadership passes on only
    /// after it has returned: it asks [`Lead::leads`], or sleeps by [`Lead::wait_lost`]. If it
    /// returns `Ok` while it leads, this resigns and contends again. Ends with `Ok` when the election
    /// is stopped, and with the error that `work` returns.
    pub fn run<E: From<Error>>(
        &self,
        mut work: impl FnMut(&Lead) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.start()?;
        let stops = Loop(&self.state);
        let mut after = 0;
        loop {
            let lead = match self.acquire_after(after, None) {
                Ok(lead) => lead,
                Err(e) if e.code() == sys::BATON_E_NOT_STARTED => {
                    std::mem::forget(stops); // it was; and it may be started again
                    return Ok(());
                }
                Err(e) => return Err(e.into()),
            };
            after = lead.term;
            work(&lead)?;
            let leads = lead.leads();
            drop(lead);
            if leads {
                let _ = self.resign(Duration::ZERO);
            }
        }
    }

    /// The same with futures, for any executor: the loss of the leadership drops the future of
    /// `work`, which is how Rust cancels, and then the lead.
    pub async fn run_async<E: From<Error>, F>(
        &self,
        mut work: impl FnMut(Arc<Lead>) -> F,
    ) -> std::result::Result<(), E>
    where
        F: Future<Output = std::result::Result<(), E>>,
    {
        self.start()?;
        let stops = Loop(&self.state);
        let mut after = 0;
        loop {
            let lead = match self.acquire_async_after(after).await {
                Ok(lead) => Arc::new(lead),
                Err(e) if e.code() == sys::BATON_E_NOT_STARTED => {
                    std::mem::forget(stops); // it was; and it may be started again
                    return Ok(());
                }
                Err(e) => return Err(e.into()),
            };
            after = lead.term;
            unless_lost(&lead, work(lead.clone())).await.transpose()?;
            let leads = lead.leads();
            drop(lead);
            if leads {
                let _ = self.resign(Duration::ZERO);
            }
        }
    }
}

async fn unless_lost<T>(lead: &Lead, work: impl Future<Output = T>) -> Option<T> {
    let mut work = Box::pin(work);
    let mut lost = Box::pin(lead.lost());
    std::future::poll_fn(move |cx| {
        if lost.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        work.as_mut().poll(cx).map(Some)
    })
    .await
}

/// One leadership with work bound to it. Dropping it says that the work has ended; before that the
/// leadership is not passed on.
pub struct Lead {
    handle: *mut sys::baton_context,
    term: u64,
    election: Election,
}

// Any thread may use and leave a context.
unsafe impl Send for Lead {}
unsafe impl Sync for Lead {}

impl Lead {
    /// The fencing token: hand it on to what the work writes to.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// Asks the clock: ask before each piece of work.
    pub fn leads(&self) -> bool {
        unsafe { sys::baton_context_is_leader(self.handle) }
    }

    /// How long `leads` stays true if nothing more is heard from the store.
    pub fn time_left(&self) -> Duration {
        let ms = unsafe { sys::baton_context_time_left_ms(self.handle) };
        Duration::from_millis(ms.max(0) as u64)
    }

    /// Sleeps until the leadership ends (true), or the time has passed (false).
    pub fn wait_lost(&self, limit: Duration) -> bool {
        unsafe { sys::baton_context_wait(self.handle, millis(limit) as i64) }
    }

    /// Why it ended; `None` while it hasn't.
    pub fn reason(&self) -> Option<Reason> {
        match self.election.state.news.lock().unwrap().lost {
            Some((term, reason)) if term == self.term => Some(Reason(reason)),
            _ if self.leads() => None,
            _ => Some(Reason(sys::BATON_REASON_EXPIRED)),
        }
    }

    /// Ready when the leadership ends. The clock knows earlier.
    #[cfg(not(feature = "tokio"))]
    pub async fn lost(&self) {
        Lost(self).await
    }

    /// Ready when the leadership ends. The clock knows earlier. Needs tokio's runtime.
    #[cfg(feature = "tokio")]
    pub async fn lost(&self) {
        use tokio::io::{unix::AsyncFd, Interest};
        let fd = match AsyncFd::with_interest(Fd(self.as_raw_fd()), Interest::READABLE) {
            Ok(fd) => fd,
            Err(_) => return Lost(self).await, // a second one that awaits the same lead
        };
        while self.leads() {
            match fd.readable().await {
                Ok(mut ready) => ready.clear_ready(),
                Err(_) => return Lost(self).await,
            }
        }
    }
}

#[cfg(feature = "tokio")]
struct Fd(RawFd);

#[cfg(feature = "tokio")]
impl AsRawFd for Fd {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

/// Polls readable when the leadership ends: ask `leads` then. Owned by the lead.
impl AsRawFd for Lead {
    fn as_raw_fd(&self) -> RawFd {
        unsafe { sys::baton_context_fd(self.handle) }
    }
}

struct Lost<'a>(&'a Lead);

impl Future for Lost<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let lead = self.0;
        if !lead.leads() {
            return Poll::Ready(());
        }
        let pump = &lead.election.store.pump;
        pump.watch(lead.handle as usize, lead.as_raw_fd(), cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.election.store.pump.forget(self.handle as usize);
        unsafe { sys::baton_leave(self.handle) };
    }
}
