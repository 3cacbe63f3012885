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

/// Runs seeds in their order on every core, as long as they are below `until`.
fn each(
    genesis: &Genesis,
    from: u64,
    until: &AtomicU64,
    setting: &Setting,
    take: &(dyn Fn(Outcome) + Sync),
) {
    let next = AtomicU64::new(from);
    std::thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= until.load(Ordering::Relaxed) {
                        return;
                    }
                    take(run(genesis, seed, setting));
                }
            });
        }
    });
}

/// Runs the seeds of a range; `tell` is called now and then with how many are done.
pub fn sweep(
    genesis: &Genesis,
    seeds: std::ops::Range<u64>,
    setting: &Setting,
    tell: &(dyn Fn(u64) + Sync),
) -> Report {
    let whole = Mutex::new(Report::default());
    let until = AtomicU64::new(seeds.end);
    each(genesis, seeds.start, &until, setting, &|outcome| {
        let mut whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
        whole.join(outcome.into());
        if whole.seeds.is_multiple_of(100) {
            tell(whole.seeds);
        }
    });
    whole.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The first seed of a range that is not clean, and how it ended. No seed begins after it;
/// those before it that have begun end, so that it is the first whoever was faster.
pub fn first(
    genesis: &Genesis,
    seeds: std::ops::Range<u64>,
    setting: &Setting,
) -> Option<(u64, End)> {
    let found = Mutex::new(BTreeMap::new());
    let until = AtomicU64::new(seeds.end);
    each(genesis, seeds.start, &until, setting, &|outcome| {
        if outcome.end != End::Clean {
            until.fetch_min(outcome.seed, Ordering::Relaxed);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.insert(outcome.seed, outcome.end);
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.into_iter().next()
}
