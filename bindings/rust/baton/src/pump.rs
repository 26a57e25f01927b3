//! pump.rs: the thread of a store. It waits for the library's events, and for the ends of leaderships
//! that somebody awaits. It runs no code of the application but wakers.

use crate::election::State;
use crate::{sys, Error, Result};
use std::collections::HashMap;
use std::ffi::{c_int, c_short, c_ulong, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const READABLE: c_short = 1;
const CLOSE_ON_EXEC: c_int = 0x80000;
const DOES_NOT_BLOCK: c_int = 0x800;

#[repr(C)]
struct PollFd {
    fd: c_int,
    events: c_short,
    revents: c_short,
}

extern "C" {
    fn poll(fds: *mut PollFd, n: c_ulong, timeout_ms: c_int) -> c_int;
    fn eventfd(value: u32, flags: c_int) -> c_int;
    fn read(fd: c_int, to: *mut c_void, n: usize) -> isize;
    fn write(fd: c_int, from: *const c_void, n: usize) -> isize;
    fn close(fd: c_int) -> c_int;
}

#[derive(Default)]
struct Known {
    elections: HashMap<usize, Arc<State>>,
    awaited: Vec<(usize, c_int, Waker)>, // the context, its descriptor, and whom to wake
}

pub(crate) struct Pump {
    handle: usize,
    wake: c_int,
    ends: AtomicBool,
    known: Mutex<Known>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Pump {
    pub(crate) fn start(handle: *mut sys::baton) -> Result<Arc<Pump>> {
        let wake = unsafe { eventfd(0, CLOSE_ON_EXEC | DOES_NOT_BLOCK) };
        let pump = Arc::new(Pump {
            handle: handle as usize,
            wake,
            ends: AtomicBool::new(false),
            known: Mutex::default(),
            thread: Mutex::new(None),
        });
        let inner = pump.clone();
        let thread = std::thread::Builder::new().name("baton".into()).spawn(move || inner.run());
        match thread {
            Ok(thread) if wake >= 0 => *pump.thread.lock().unwrap() = Some(thread),
            _ => {
                unsafe { sys::baton_close(handle) };
                return Err(Error::new(sys::BATON_E_SYSTEM, "no descriptor or thread is left"));
            }
        }
        Ok(pump)
    }

    fn handle(&self) -> *mut sys::baton {
        self.handle as *mut sys::baton
    }

    fn wake(&self) {
        let one: u64 = 1;
        unsafe { write(self.wake, (&one as *const u64).cast(), 8) };
    }

    pub(crate) fn add(&self, state: Arc<State>) {
        self.known.lock().unwrap().elections.insert(state.handle as usize, state);
    }

    /// Wakes whoever awaits the end of that leadership.
    pub(crate) fn watch(&self, context: usize, fd: c_int, waker: Waker) {
        let mut known = self.known.lock().unwrap();
        known.awaited.retain(|(other, _, old)| *other != context || !old.will_wake(&waker));
        known.awaited.push((context, fd, waker));
        drop(known);
        self.wake();
    }

    pub(crate) fn forget(&self, context: usize) {
        self.known.lock().unwrap().awaited.retain(|(other, ..)| *other != context);
    }

    pub(crate) fn stop_all(&self, limit: Duration) {
        let all: Vec<_> = self.known.lock().unwrap().elections.values().cloned().collect();
        let until = Instant::now() + limit;
        for state in &all {
            state.stop(Duration::ZERO);
        }
        for state in &all {
            state.stop(until.saturating_duration_since(Instant::now()));
        }
    }

    pub(crate) fn end(&self) {
        self.ends.store(true, Ordering::SeqCst);
        self.wake();
        let thread = self.thread.lock().unwrap().take();
        if let Some(thread) = thread {
            // A waker that drops the last reference does so on the thread itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }

    fn run(&self) {
        while !self.ends.load(Ordering::SeqCst) {
            let mut fds = vec![
                PollFd { fd: unsafe { sys::baton_fd(self.handle()) }, events: READABLE, revents: 0 },
                PollFd { fd: self.wake, events: READABLE, revents: 0 },
            ];
            for (_, fd, _) in &self.known.lock().unwrap().awaited {
                fds.push(PollFd { fd: *fd, events: READABLE, revents: 0 });
            }
            unsafe {
                poll(fds.as_mut_ptr(), fds.len() as c_ulong, -1);
                let mut count: u64 = 0;
                read(self.wake, (&mut count as *mut u64).cast(), 8);
            }
            if self.ends.load(Ordering::SeqCst) {
                return;
            }
            self.take_events();
            for fd in &fds[2..] {
                if fd.revents != 0 {
                    self.tell(fd.fd);
                }
            }
        }
    }

    // Who awaited it asks again, and awaits again if it still leads.
    fn tell(&self, fd: c_int) {
        let mut woken = Vec::new();
        self.known.lock().unwrap().awaited.retain(|(_, other, waker)| {
            if *other == fd {
                woken.push(waker.clone());
            }
            *other != fd
        });
        woken.into_iter().for_each(Waker::wake);
    }

    fn take_events(&self) {
        unsafe {
            let mut event: sys::baton_event = std::mem::zeroed();
            let size = std::mem::size_of_val(&event);
            while sys::baton_wait_sized(self.handle(), 0, &mut event, size) == 1 {
                let known = self.known.lock().unwrap();
                let state = known.elections.get(&(event.election as usize)).cloned();
                drop(known);
                if let Some(state) = state {
                    state.note(&event);
                    // Of work without a lead nobody knows when it ends. Leads that are open are
                    // waited for.
                    if event.kind == sys::BATON_EVENT_LOST {
                        sys::baton_drained(state.handle, event.term);
                    }
                }
                sys::baton_event_done(self.handle(), event.token);
            }
        }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        unsafe { close(self.wake) };
    }
}
