//! The futures of the Rust binding on tokio: two candidates in one election, whose work the loss of
//! the leadership drops, and never two of them at once. And a loop that ends in any way: its election
//! contends no more.

use baton::{codes, Election, ElectionOptions, Error, Lead, Options, Store};
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

static ACTIVE: AtomicU32 = AtomicU32::new(0);
static BEGUN: AtomicU32 = AtomicU32::new(0);

/// Counts the work that runs, until its future is dropped.
struct Counted;

impl Counted {
    fn new() -> Counted {
        assert_eq!(ACTIVE.fetch_add(1, Ordering::SeqCst), 0, "two work at once");
        BEGUN.fetch_add(1, Ordering::SeqCst);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ACTIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn work(lead: Arc<Lead>) -> Result<(), Error> {
    let _counted = Counted::new();
    while lead.leads() {
        tokio::time::sleep(Duration::from_secs(3600)).await;
    }
    Ok(())
}

async fn until(begun: u32) {
    for _ in 0..6000 {
        if BEGUN.load(Ordering::SeqCst) >= begun {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain for work {begun}");
}

async fn elects(url: &str) -> Result<(), Error> {
    let options = Options { lease: Some(Duration::from_secs(2)), ..Options::default() };
    let mut elections = Vec::new();
    for _ in 0..2 {
        let store = Store::open(url, &options)?;
        elections.push(store.election("tokio", &ElectionOptions::default())?);
    }
    let mut loops = tokio::task::JoinSet::new();
    for election in elections.clone() {
        loops.spawn(async move { election.run_async(work).await });
    }
    for round in 1..=3 {
        until(round).await;
        for election in &elections {
            let _ = election.resign(Duration::ZERO);
        }
    }
    until(4).await;
    for election in &elections {
        let _ = election.stop(Duration::ZERO);
    }
    while let Some(ended) = loops.join_next().await {
        ended.expect("a loop panicked")?;
    }
    assert_eq!(ACTIVE.load(Ordering::SeqCst), 0, "work outlived its leadership");
    Ok(())
}

fn candidate(url: &str, name: &str) -> Result<Election, Error> {
    let options = Options { lease: Some(Duration::from_secs(2)), ..Options::default() };
    Store::open(url, &options)?.election(name, &ElectionOptions::default())
}

fn is_stopped(election: &Election) -> bool {
    matches!(election.acquire(Duration::ZERO),
        Err(error) if error.code() == codes::BATON_E_NOT_STARTED)
}

/// Another candidate leads, while that one still lives.
fn passes_on(url: &str, election: &Election) -> Result<(), Error> {
    assert!(is_stopped(election), "the loop has ended, and its election contends");
    let other = candidate(url, election.name())?;
    other.start()?;
    other.acquire(LIMIT).map(|_| ())
}

fn panics(url: &str) -> Result<(), Error> {
    let election = candidate(url, "panics")?;
    let same = election.clone();
    let ended = std::thread::spawn(move || {
        same.run(|_| -> Result<(), Error> { std::panic::resume_unwind(Box::new("the work failed")) })
    });
    assert!(ended.join().is_err(), "the panic is lost");
    passes_on(url, &election)
}

async fn aborted(url: &str) -> Result<(), Error> {
    let election = candidate(url, "aborted")?;
    let same = election.clone();
    let (begun, begins) = tokio::sync::oneshot::channel();
    let mut begun = Some(begun);
    let task = tokio::spawn(async move {
        same.run_async(|_| {
            begun.take().map(|begun| begun.send(()));
            std::future::pending::<Result<(), Error>>()
        })
        .await
    });
    begins.await.expect("work that begins");
    task.abort();
    assert!(task.await.is_err_and(|error| error.is_cancelled()), "it was not aborted");
    passes_on(url, &election)
}

/// What a stop and a start at once leave behind is one of the two, also for those who wait.
fn stops_while_it_starts(url: &str) -> Result<(), Error> {
    let election = candidate(url, "at-once")?;
    for _ in 0..3000 {
        let both = Arc::new(Barrier::new(2));
        let (same, gate) = (election.clone(), both.clone());
        let starts = std::thread::spawn(move || {
            gate.wait();
            same.start()
        });
        both.wait();
        let _ = election.stop(Duration::ZERO);
        starts.join().expect("a start")?;
        let stopped = is_stopped(&election);
        let since = Instant::now();
        while stopped != (election.status()?.state == "stopped") {
            assert!(since.elapsed() < LIMIT, "stopped={stopped}: {:?}", election.status()?);
            std::thread::yield_now();
        }
    }
    Ok(())
}

struct Counts;

impl Wake for Counts {
    fn wake(self: Arc<Self>) {}
}

fn waits_in_bounds(url: &str) -> Result<(), Error> {
    let (leader, standby) = (candidate(url, "waits")?, candidate(url, "waits")?);
    leader.start()?;
    let _lead = leader.acquire(LIMIT)?;
    standby.start()?;
    let counts = Arc::new(Counts);
    let waker = Waker::from(counts.clone());
    let mut context = Context::from_waker(&waker);
    let mut waits = Box::pin(standby.acquire_async());
    for _ in 0..1000 {
        assert!(matches!(waits.as_mut().poll(&mut context), Poll::Pending));
    }
    let kept = Arc::strong_count(&counts);
    assert!(kept < 10, "1,000 polls keep {kept} wakers");
    Ok(())
}

/// A reader hears of each event in its order; and one that is gone is in nobody's way.
fn hears(url: &str) -> Result<(), Error> {
    let election = candidate(url, "hears")?;
    drop(election.events());
    let events = election.events();
    election.start()?;
    let term = election.acquire(LIMIT)?.term();
    assert_eq!(election.condition()?, (codes::BATON_CONDITION_HEALTHY, String::new()));
    election.stop(LIMIT)?;
    let mut heard = Vec::new();
    while heard.last() != Some(&codes::BATON_EVENT_STOPPED) {
        let event = events.recv_timeout(LIMIT).expect("an event");
        if event.kind == codes::BATON_EVENT_LOST {
            assert_eq!((event.term, event.reason.0), (term, codes::BATON_REASON_STOPPED));
        }
        heard.push(event.kind);
    }
    heard.retain(|kind| *kind != codes::BATON_EVENT_CHANGED);
    let want = [codes::BATON_EVENT_BECAME, codes::BATON_EVENT_LOST, codes::BATON_EVENT_STOPPED];
    assert_eq!(heard, want);
    drop(election);
    while events.recv_timeout(LIMIT).is_ok() {}
    Ok(())
}

async fn all(url: &str) -> Result<(), Error> {
    elects(url).await?;
    panics(url)?;
    aborted(url).await?;
    stops_while_it_starts(url)?;
    waits_in_bounds(url)?;
    hears(url)
}

fn main() {
    let folder = std::env::temp_dir().join(format!("baton-rust-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let url = format!("file:{}", folder.display());
    let ended = runtime.expect("a runtime").block_on(all(&url));
    let _ = std::fs::remove_dir_all(&folder);
    ended.expect("the elections");
    println!("ok tokio");
}
