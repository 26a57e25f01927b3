//! The driver program of the Rust binding: it does what the lines on standard input say. See
//! tests/bindings/README.md for the lines. It uses the binding as a program would.

use baton::codes;
use baton::{Election, ElectionOptions, Error, Lead, Options, Store};
use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

enum Failure {
    Ours(Error),
    Other(String),
    Skip(&'static str),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Ours(error)
    }
}

type Answer = Result<String, Failure>;

#[derive(Default)]
struct Driver {
    stores: HashMap<String, Store>,
    elections: HashMap<String, (String, Election)>,
    finish: HashMap<String, Sender<()>>,
    leads: Arc<Mutex<Leads>>,
    children: Vec<Child>,
}

/// A body's lead belongs to the loop; others may ask it as long as the body runs, by its name.
#[derive(Default)]
struct Leads {
    made: u32,
    held: HashMap<String, Arc<Lead>>,
    bodies: HashMap<String, (usize, bool)>, // where the lead is, and whether it was lost
}

fn now_ns() -> i64 {
    extern "C" {
        fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
    }
    let mut t = [0i64; 2];
    unsafe { clock_gettime(7, &mut t) }; // CLOCK_BOOTTIME
    t[0] * 1_000_000_000 + t[1]
}

fn quote(word: &str) -> String {
    if word.is_empty() {
        return "%".into();
    }
    let mut out = String::new();
    for c in word.bytes() {
        if c.is_ascii_alphanumeric() || b"-._~:/=,?&@+".contains(&c) {
            out.push(c as char);
        } else {
            out += &format!("%{c:02X}");
        }
    }
    out
}

fn unquote(word: &str) -> String {
    if word == "%" {
        return String::new();
    }
    let (mut bytes, word, mut i) = (Vec::new(), word.as_bytes(), 0);
    while i < word.len() {
        if word[i] == b'%' {
            let hex = std::str::from_utf8(&word[i + 1..i + 3]).unwrap_or("00");
            bytes.push(u8::from_str_radix(hex, 16).unwrap_or(0));
            i += 3;
        } else {
            bytes.push(word[i]);
            i += 1;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

fn failed(error: &Error) -> String {
    format!("error {} {} {}", error.code_name(), error.code(), quote(&error.to_string()))
}

fn other(error: std::io::Error) -> Failure {
    Failure::Other(error.to_string())
}

fn timeout() -> Failure {
    Failure::Other("timeout".into())
}

fn millis(word: &str) -> Duration {
    Duration::from_millis(word.parse().unwrap_or(0))
}

fn keys(words: &[String]) -> HashMap<&str, &str> {
    words.iter().filter_map(|word| word.split_once('=')).collect()
}

fn bit(value: bool) -> String {
    (if value { "1" } else { "0" }).into()
}

fn spin(e: &str, lead: &Lead) {
    loop {
        let before = now_ns();
        let leads = lead.leads();
        let after = now_ns();
        if !leads {
            return;
        }
        say(&format!("! yes {e} {} {before} {after}", lead.term()));
        if lead.wait_lost(Duration::from_millis(1)) {
            return;
        }
    }
}

/// Waits for the loss, or for `finish`, whichever comes first: whether it is lost.
fn wait(lead: &Lead, finish: Option<&Receiver<()>>) -> bool {
    loop {
        match finish {
            None => {
                if lead.wait_lost(Duration::from_secs(3600)) {
                    return true;
                }
            }
            Some(finish) => {
                if finish.try_recv().is_ok() {
                    return false;
                }
                if lead.wait_lost(Duration::from_millis(5)) {
                    return true;
                }
            }
        }
    }
}

fn body(
    e: &str,
    election: &Election,
    lead: &Lead,
    mode: &str,
    finish: &Receiver<()>,
    leads: &Mutex<Leads>,
) -> Result<(), Failure> {
    let mut all = leads.lock().unwrap();
    all.made += 1;
    let name = format!("L{}", all.made);
    all.bodies.insert(name.clone(), (lead as *const Lead as usize, false));
    drop(all);
    say(&format!("! enter {e} {name} {} {}", lead.term(), now_ns()));
    let mut how = "cancelled";
    let mut ended = Ok(());
    match mode {
        "raise" => {
            how = "raised";
            ended = Err(Failure::Other("the body failed".into()));
        }
        "spin" => spin(e, lead),
        _ => {
            if mode == "stop" {
                let _ = election.stop(Duration::ZERO);
            }
            if wait(lead, (mode == "until").then_some(finish)) {
                if let Some(entry) = leads.lock().unwrap().bodies.get_mut(&name) {
                    entry.1 = true;
                }
                say(&format!("! lost {e} {name} {}", now_ns()));
                if mode == "stubborn" {
                    let _ = finish.recv();
                    how = "returned";
                }
            } else {
                how = "returned";
            }
        }
    }
    leads.lock().unwrap().bodies.remove(&name);
    say(&format!("! leave {e} {name} {how} {}", now_ns()));
    ended
}

impl Driver {
    fn run(&mut self, e: &str, election: &Election, mode: &str) {
        let (sender, receiver) = channel();
        self.finish.insert(e.into(), sender);
        let (e, mode, election) = (e.to_string(), mode.to_string(), election.clone());
        let leads = self.leads.clone();
        std::thread::spawn(move || {
            let ended = election
                .run(|lead| body(&e, &election, lead, &mode, &receiver, &leads));
            drop(election);
            match ended {
                Ok(()) => say(&format!("! end {e} stopped")),
                Err(Failure::Ours(error)) => say(&format!("! end {e} {}", failed(&error))),
                Err(Failure::Other(text)) => say(&format!("! end {e} raised {}", quote(&text))),
                Err(Failure::Skip(_)) => {}
            }
        });
    }

    fn open(&mut self, w: &[String]) -> Answer {
        let k = keys(&w[3..]);
        let text = |key: &str| k.get(key).map(|text| text.to_string());
        let time = |key: &str| k.get(key).map(|text| millis(text));
        let store = Store::open(
            &w[2],
            &Options {
                id: text("id"),
                address: text("address"),
                lease: time("lease_ms"),
                renew: time("renew_ms"),
                grace: time("grace_ms"),
                retry: time("retry_ms"),
                outlive: k.get("outlive") == Some(&"1"),
                ..Options::default()
            },
        )?;
        let id = quote(&store.id());
        self.stores.insert(w[1].clone(), store);
        Ok(id)
    }

    fn election(&mut self, w: &[String]) -> Answer {
        let k = keys(&w[4..]);
        let options = ElectionOptions {
            metadata: k.get("metadata").map(|text| text.to_string()),
            priority: k.get("priority").and_then(|n| n.parse().ok()).unwrap_or(0),
            manual: k.get("manual") == Some(&"1"),
            observe_only: k.get("observe_only") == Some(&"1"),
            release_on_stop: k.get("release_on_stop") != Some(&"0"),
            step_down_unhealthy: k.get("step_down_unhealthy") != Some(&"0"),
            preempt: k.get("preempt_ms").map_or(Duration::ZERO, |ms| millis(ms)),
            work_timeout: k.get("work_timeout_ms").map_or(Duration::ZERO, |ms| millis(ms)),
            ..ElectionOptions::default()
        };
        let election = self.stores[&w[2]].election(&w[3], &options)?;
        let name = quote(election.name());
        self.elections.insert(w[1].clone(), (w[2].clone(), election));
        Ok(name)
    }

    /// Stops what the store has, waits for bodies to end, and drops the last reference.
    fn close(&mut self, s: &str) {
        let mine: Vec<String> =
            self.elections.iter().filter(|(_, v)| v.0 == s).map(|(k, _)| k.clone()).collect();
        self.leads.lock().unwrap().held.clear();
        for name in mine {
            if let Some((_, election)) = self.elections.remove(&name) {
                let _ = election.stop(Duration::from_secs(30));
            }
        }
        self.stores.remove(s);
    }

    fn of_election(&mut self, w: &[String], e: Election) -> Answer {
        match w[0].as_str() {
            "start" => e.start()?,
            "run" => self.run(&w[1], &e, &w[2]),
            "finish" => {
                let _ = self.finish[&w[1]].send(());
            }
            "await" => return Ok(e.acquire(millis(&w[2]))?.term().to_string()),
            "enter" => {
                let lead = Arc::new(e.enter()?);
                let mut all = self.leads.lock().unwrap();
                all.made += 1;
                let name = format!("L{}", all.made);
                let term = lead.term();
                all.held.insert(name.clone(), lead);
                return Ok(format!("{name} {term}"));
            }
            "leads" => return Ok(bit(e.leads())),
            "term" => return Ok(e.term().to_string()),
            "left" => return Ok(e.status()?.time_left.as_millis().to_string()),
            "status" => {
                let s = e.status()?;
                return Ok(format!("{} {} {}", s.state, quote(&s.leader), s.term));
            }
            "try" => return Ok(bit(e.try_acquire(millis(&w[2]))?.is_none())),
            "resign" => e.resign(millis(&w[2]))?,
            "transfer" => e.transfer(&w[2])?,
            "health" => {
                e.report_health(w[2].parse().unwrap_or(0), w.get(3).map(String::as_str))?
            }
            "alive" => e.alive(),
            "condition" => {
                let names = ["healthy", "degraded", "unhealthy"];
                return Ok(names[e.condition()?.0 as usize].into());
            }
            "stop" => e.stop(millis(&w[2]))?,
            "fork" => return self.fork(e),
            _ => return Err(Failure::Other(format!("unknown request {}", w[0]))),
        }
        Ok(String::new())
    }

    /// By the C library's fork: what a program with a library of its own may do.
    fn fork(&self, e: Election) -> Answer {
        extern "C" {
            fn fork() -> i32;
            fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
            fn _exit(status: i32) -> !;
        }
        let (mut reader, mut writer) = std::os::unix::net::UnixStream::pair().map_err(other)?;
        let all = self.leads.lock().unwrap(); // or the child would wait for a thread that it lacks
        let pid = unsafe { fork() };
        if pid == 0 {
            let held = all.held.values().filter(|lead| lead.leads()).count();
            let bodies = all.bodies.values();
            let run = bodies.filter(|(at, _)| unsafe { &*(*at as *const Lead) }.leads()).count();
            let said = e.start().err().map_or("nothing".into(), |error| error.code_name());
            let n = held + run + usize::from(e.leads());
            let told = writer.write_all(format!("{n} {said}").as_bytes());
            unsafe { _exit(i32::from(told.is_err())) };
        }
        drop((writer, all));
        let mut said = String::new();
        reader.read_to_string(&mut said).map_err(other)?;
        unsafe { waitpid(pid, std::ptr::null_mut(), 0) };
        Ok(said)
    }

    fn of_lead(&mut self, w: &[String]) -> Answer {
        let all = self.leads.lock().unwrap();
        let Some(lead) = all.held.get(&w[1]).cloned() else {
            // A body that has ended has no lead; one that runs keeps it while we hold the lock.
            let Some((at, lost)) = all.bodies.get(&w[1]).copied() else {
                return Ok(bit(w[0] == "lost"));
            };
            let lead = unsafe { &*(at as *const Lead) };
            return match w[0].as_str() {
                "leads" => Ok(bit(lead.leads())),
                "lost" => Ok(bit(lost)),
                "term" => Ok(lead.term().to_string()),
                "left" => Ok(lead.time_left().as_millis().to_string()),
                _ => Err(Failure::Other(format!("unknown request {}", w[0]))),
            };
        };
        drop(all);
        match w[0].as_str() {
            "leave" => {
                self.leads.lock().unwrap().held.remove(&w[1]);
                Ok(String::new())
            }
            "leads" => Ok(bit(lead.leads())),
            "lost" => Ok(bit(lead.wait_lost(Duration::ZERO))),
            "awaitlost" => match awaits(&lead, millis(&w[2])) {
                true => Ok(now_ns().to_string()),
                false => Err(timeout()),
            },
            "term" => Ok(lead.term().to_string()),
            "left" => Ok(lead.time_left().as_millis().to_string()),
            "bench" => Ok(bench(&lead, w[2].parse().unwrap_or(1))),
            _ => Err(Failure::Other(format!("unknown request {}", w[0]))),
        }
    }

    fn answer(&mut self, w: &[String]) -> Answer {
        match w[0].as_str() {
            "hello" => Ok(format!("rust {} {}", baton::version(), baton::version_number())),
            "open" => self.open(w),
            "election" => self.election(w),
            "close" => {
                self.close(&w[1]);
                Ok(String::new())
            }
            "candidates" => {
                let list = self.stores[&w[1]].candidates(&w[2])?;
                let word = |c: &baton::Candidate| {
                    let (leads, healthy) = (bit(c.leads), bit(c.healthy));
                    quote(&format!("{}={leads},{healthy},{},{}", c.id, c.score, c.metadata))
                };
                Ok(list.iter().map(word).collect::<Vec<_>>().join(" "))
            }
            "heard" => Err(Failure::Skip("the binding has no handlers")),
            "constants" => Ok(constants()),
            "child" => {
                let child = Command::new("cat").stdin(Stdio::piped()).spawn();
                let child = child.map_err(|error| Failure::Other(error.to_string()))?;
                let id = child.id();
                self.children.push(child);
                Ok(id.to_string())
            }
            "drop" => Err(Failure::Skip("leaving a scope closes")),
            "lose" => Err(Failure::Skip("leaving a scope leaves")),
            "promises" => Ok(quote(&self.stores[&w[1]].promises())),
            "observe" => Err(Failure::Skip("no observe")),
            "order" => Err(Failure::Skip("no orders")),
            "gc" => Ok(String::new()),
            "cycle" => {
                for _ in 0..w[1].parse().unwrap_or(0) {
                    let store = Store::open(&w[2], &Options::default())?;
                    store.election("cycle", &ElectionOptions::default())?.start()?;
                }
                Ok(String::new())
            }
            "exit" => baton::exit(w[1].parse().unwrap_or(1)),
            _ => match self.elections.get(&w[1]).map(|(_, election)| election.clone()) {
                Some(election) => self.of_election(w, election),
                None => self.of_lead(w),
            },
        }
    }
}

/// By the future, on a small executor of its own.
fn awaits(lead: &Lead, limit: Duration) -> bool {
    use std::future::Future;
    use std::task::{Context, Poll, Wake, Waker};

    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut lost = Box::pin(lead.lost());
    let until = Instant::now() + limit;
    loop {
        if let Poll::Ready(()) = lost.as_mut().poll(&mut context) {
            return true;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        std::thread::park_timeout(left);
    }
}

fn constants() -> String {
    macro_rules! all {
        ($($name:ident),* $(,)?) => {
            [$(format!("{}={}", stringify!($name), codes::$name)),*].join(" ")
        };
    }
    all!(
        BATON_OK,
        BATON_E_INVALID,
        BATON_E_TIMING,
        BATON_E_URL,
        BATON_E_NO_DRIVER,
        BATON_E_MEMORY,
        BATON_E_SYSTEM,
        BATON_E_NOT_STARTED,
        BATON_E_NOT_LEADER,
        BATON_E_TIMEOUT,
        BATON_E_EXISTS,
        BATON_E_UNAVAILABLE,
        BATON_E_DENIED,
        BATON_E_CORRUPT,
        BATON_E_UNSUPPORTED,
        BATON_E_NO_CANDIDATE,
        BATON_E_STALE,
        BATON_E_FORKED,
        BATON_E_BUSY,
        BATON_E_DUPLICATE_ID,
        BATON_EVENT_BECAME,
        BATON_EVENT_LOST,
        BATON_EVENT_CHANGED,
        BATON_EVENT_ERROR,
        BATON_EVENT_STOPPED,
        BATON_EVENT_WAITS,
        BATON_EVENT_RENEWED,
        BATON_REASON_NONE,
        BATON_REASON_EXPIRED,
        BATON_REASON_REFUSED,
        BATON_REASON_SUPERSEDED,
        BATON_REASON_GONE,
        BATON_REASON_STALLED,
        BATON_REASON_STOPPED,
        BATON_REASON_RESIGNED,
        BATON_REASON_ORDERED,
        BATON_REASON_TRANSFERRED,
        BATON_REASON_UNHEALTHY,
        BATON_REASON_PAUSED,
        BATON_STATE_STOPPED,
        BATON_STATE_STANDBY,
        BATON_STATE_CAMPAIGNING,
        BATON_STATE_LEADING,
        BATON_STATE_RESIGNING,
        BATON_OBSTACLE_NONE,
        BATON_OBSTACLE_HELD,
        BATON_OBSTACLE_PAUSED,
        BATON_OBSTACLE_UNHEALTHY,
        BATON_OBSTACLE_DRAINING,
        BATON_OBSTACLE_STOPPED,
        BATON_OBSTACLE_STORE,
        BATON_OBSTACLE_TERMS,
    )
}

/// Nanoseconds of a question, and of an empty call of the same kind.
fn bench(lead: &Lead, n: u32) -> String {
    let best = |call: &dyn Fn() -> bool| {
        let mut least = Duration::MAX;
        for _ in 0..5 {
            let begin = Instant::now();
            for _ in 0..n {
                std::hint::black_box(call());
            }
            least = least.min(begin.elapsed());
        }
        least.as_nanos() / u128::from(n)
    };
    let leads = best(&|| lead.leads());
    format!("{leads} {}", best(&|| baton::version_number() != 0))
}

/// SIGINT is blocked in all threads but one, which waits for it: that is a program's orderly end.
fn on_interrupt(then: impl FnOnce() + Send + 'static) {
    extern "C" {
        fn sigemptyset(set: *mut [u64; 16]) -> i32;
        fn sigaddset(set: *mut [u64; 16], signal: i32) -> i32;
        fn pthread_sigmask(how: i32, set: *const [u64; 16], old: *mut [u64; 16]) -> i32;
        fn sigwait(set: *const [u64; 16], signal: *mut i32) -> i32;
    }
    let mut set = [0u64; 16];
    unsafe {
        sigemptyset(&mut set);
        sigaddset(&mut set, 2);
        pthread_sigmask(0, &set, std::ptr::null_mut());
    }
    std::thread::spawn(move || {
        let mut signal = 0;
        unsafe { sigwait(&set, &mut signal) };
        then();
    });
}

fn main() {
    on_interrupt(|| baton::exit(130));
    let mut driver = Driver::default();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let words: Vec<String> = line.split(' ').map(unquote).collect();
        match driver.answer(&words) {
            Ok(text) => say(format!("ok {text}").trim_end()),
            Err(Failure::Ours(error)) => say(&failed(&error)),
            Err(Failure::Skip(why)) => say(&format!("skip {}", quote(why))),
            Err(Failure::Other(text)) if text == "timeout" => {
                say("error timeout -9 the%20given%20time%20has%20passed")
            }
            Err(Failure::Other(text)) => say(&format!("error other 0 {}", quote(&text))),
        }
    }
    for finish in driver.finish.values() {
        let _ = finish.send(());
    }
    for store in driver.stores.keys().cloned().collect::<Vec<_>>() {
        driver.close(&store);
    }
}
