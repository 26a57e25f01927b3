//! The futures of the Rust binding on tokio: two candidates in one election, whose work the loss of
//! the leadership drops, and never two of them at once.

use baton::{ElectionOptions, Error, Lead, Options, Store};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

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

fn main() {
    let folder = std::env::temp_dir().join(format!("baton-rust-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let url = format!("file:{}", folder.display());
    let ended = runtime.expect("a runtime").block_on(elects(&url));
    let _ = std::fs::remove_dir_all(&folder);
    ended.expect("the elections");
    println!("ok tokio");
}
