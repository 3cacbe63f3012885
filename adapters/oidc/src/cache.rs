//! The keys kept between tokens.
//!
//! `lib` alone uses it, with the database's time of each request as the clock. Keys
//! are refreshed as they age, so that a withdrawn key stops verifying; a token that
//! names an unknown key makes one early refresh, within a bound, so that strangers
//! cannot make this server call the provider without end. Never in this module: a
//! clock, or a decision about a token.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use bronzeward_core::time::{DbTime, Span};

use crate::Outage;
use crate::keys::KeySet;

/// Keys younger than this are used without a look at the provider.
pub(crate) const FRESH: Span = Span::seconds(5 * 60);
/// Keys older than this are used no more, even while the provider is away.
pub(crate) const USABLE: Span = Span::seconds(60 * 60);
/// Early refreshes that may follow each other at once.
pub(crate) const BURST: i64 = 4;
/// The time after which one more is allowed.
pub(crate) const REFILL: Span = Span::seconds(15);

#[derive(Default)]
struct State {
    keys: Option<(Arc<KeySet>, DbTime)>,
    /// Counts fetches, so that one who waited for another's can tell.
    fetches: u64,
    failed: Option<Outage>,
    spent: i64,
    refilled: Option<DbTime>,
}

#[derive(Default)]
pub(crate) struct Cache {
    state: Mutex<State>,
    /// Held during a fetch: one at a time.
    fetching: tokio::sync::Mutex<()>,
}

impl Cache {
    /// The keys to verify with at `now`: the kept ones if they are fresh, else newly
    /// fetched ones, else the kept ones while they are usable.
    pub(crate) async fn keys<F, T>(&self, now: DbTime, fetch: F) -> Result<Arc<KeySet>, Outage>
    where
        F: FnOnce() -> T,
        T: Future<Output = Result<KeySet, Outage>>,
    {
        let (kept, seen) = self.read(|state| (state.keys.clone(), state.fetches));
        // A clock that went back (a failover) makes keys neither fresh nor usable.
        let younger = |age: Span| {
            move |(_, fetched): &(Arc<KeySet>, DbTime)| {
                let passed = now - *fetched;
                passed >= Span::ZERO && passed < age
            }
        };
        if let Some((keys, _)) = kept.clone().filter(younger(FRESH)) {
            return Ok(keys);
        }
        let usable = kept.filter(younger(USABLE)).map(|(keys, _)| keys);
        let turn = match (&usable, self.fetching.try_lock()) {
            (_, Ok(turn)) => turn,
            // Another request is refreshing; usable keys need not wait for it.
            (Some(keys), Err(_)) => return Ok(keys.clone()),
            (None, Err(_)) => self.fetching.lock().await,
        };
        let fetched = self.fetched(seen, now, fetch).await;
        drop(turn);
        match (fetched, usable) {
            (Ok(keys), _) => Ok(keys),
            (Err(_), Some(keys)) => Ok(keys),
            (Err(outage), None) => Err(outage),
        }
    }

    /// Keys that replaced `old`, fetching them if the bound allows; none if it does not.
    pub(crate) async fn newer_than<F, T>(
        &self,
        old: &Arc<KeySet>,
        now: DbTime,
        fetch: F,
    ) -> Result<Option<Arc<KeySet>>, Outage>
    where
        F: FnOnce() -> T,
        T: Future<Output = Result<KeySet, Outage>>,
    {
        let seen = self.read(|state| state.fetches);
        let _turn = self.fetching.lock().await;
        let replaced = self.read(|state| {
            let current = state.keys.as_ref().map(|(keys, _)| keys);
            current.filter(|keys| !Arc::ptr_eq(keys, old)).cloned()
        });
        if replaced.is_some() {
            return Ok(replaced);
        }
        if !self.read(|state| state.spend(now)) {
            return Ok(None);
        }
        self.fetched(seen, now, fetch).await.map(Some)
    }

    /// Fetches, unless a fetch ended while this one waited for its turn: then that
    /// outcome is this one's too, so that waiters on a slow provider do not queue.
    async fn fetched<F, T>(&self, seen: u64, now: DbTime, fetch: F) -> Result<Arc<KeySet>, Outage>
    where
        F: FnOnce() -> T,
        T: Future<Output = Result<KeySet, Outage>>,
    {
        let shared = self.read(|state| {
            (state.fetches != seen).then(|| match (&state.failed, &state.keys) {
                (None, Some((keys, _))) => Ok(keys.clone()),
                (Some(outage), _) => Err(*outage),
                (None, None) => Err(Outage::Unreachable),
            })
        });
        if let Some(outcome) = shared {
            return outcome;
        }
        let outcome = fetch().await.map(Arc::new);
        self.read(|state| {
            state.fetches += 1;
            state.failed = outcome.as_ref().err().copied();
            if let Ok(keys) = &outcome {
                state.keys = Some((keys.clone(), now));
            }
        });
        outcome
    }

    fn read<T>(&self, read: impl FnOnce(&mut State) -> T) -> T {
        // Nothing panics while it holds the lock; a poisoned state is still whole.
        read(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    /// Takes one early refresh from the allowance.
    fn spend(&mut self, now: DbTime) -> bool {
        let since = self.refilled.map_or(Span::ZERO, |refilled| now - refilled);
        let earned = since.as_micros() / REFILL.as_micros();
        if self.refilled.is_none() || earned != 0 {
            self.spent = (self.spent - earned.max(0)).max(0);
            self.refilled = Some(now);
        }
        if self.spent < BURST {
            self.spent += 1;
            return true;
        }
        false
    }
}
