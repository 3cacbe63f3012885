//! Many seeds, on every core, summed up.
//!
//! Called by the command line and by tests. Worlds share nothing, so that threads change no
//! result: what is reported is the lowest seed's. Never in this module: how one seed runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::faults::Fault;
use crate::genesis::Genesis;
use crate::ports::Seen;
use crate::seed::{End, Outcome, Setting, run};

/// What a sweep came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub seeds: u64,
    pub steps: u64,
    pub commits: u64,
    pub struck: BTreeMap<Fault, u64>,
    pub seen: Seen,
    /// How each seed that was not clean ended.
    pub failed: BTreeMap<u64, End>,
}

impl From<Outcome> for Report {
    fn from(outcome: Outcome) -> Self {
        let failed = (outcome.end != End::Clean).then_some((outcome.seed, outcome.end));
        Self {
            seeds: 1,
            steps: outcome.steps,
            commits: outcome.commits,
            struck: outcome.struck,
            seen: outcome.seen,
            failed: failed.into_iter().collect(),
        }
    }
}

impl Report {
    fn join(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.steps += other.steps;
        self.commits += other.commits;
        for (fault, times) in other.struck {
            *self.struck.entry(fault).or_default() += times;
        }
        self.seen.add(&other.seen);
        self.failed.extend(other.failed);
    }
}

/// How many threads a sweep uses.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs the seeds of a range; `tell` is called now and then with how many are done.
pub fn sweep(
    genesis: &Genesis,
    seeds: std::ops::Range<u64>,
    setting: &Setting,
    tell: &(dyn Fn(u64) + Sync),
) -> Report {
    let next = AtomicU64::new(seeds.start);
    let done = AtomicU64::new(0);
    let whole = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                let mut report = Report::default();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    report.join(run(genesis, seed, setting).into());
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    if done.is_multiple_of(100) {
                        tell(done);
                    }
                }
                let mut whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
                whole.join(report);
            });
        }
    });
    whole.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Seeds looked at together before a first catch ends the search.
const CHUNK: u64 = 64;

/// The first seed of a range that is not clean, and how it ended.
pub fn first(
    genesis: &Genesis,
    seeds: std::ops::Range<u64>,
    setting: &Setting,
) -> Option<(u64, End)> {
    let mut from = seeds.start;
    while from < seeds.end {
        let until = seeds.end.min(from + CHUNK);
        let report = sweep(genesis, from..until, setting, &|_| {});
        if let Some((seed, end)) = report.failed.into_iter().next() {
            return Some((seed, end));
        }
        from = until;
    }
    None
}
