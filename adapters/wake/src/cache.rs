//! One value that is fetched when it is needed, kept, and fetched again as it ages.
//!
//! `oidc` keeps the provider's keys here, with the database's time of each request as the
//! clock. One fetch is under way at a time, and those who wait for it share its outcome. A
//! caller who has reason to think the value outdated makes an early fetch, within a bound,
//! so that strangers cannot make this server call a peer without end. Never in this
//! module: a clock, a fetch of its own, what the value is.

use std::fmt;
use std::sync::Arc;

use crate::room::Room;
use crate::sync::Flaw;

/// How long a value is kept. All lengths are in the microseconds of the caller's clock.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// A value younger than this is served without a fetch.
    pub fresh: i64,
    /// A value this old is served no more, even while fetches fail.
    pub usable: i64,
    /// Early fetches that may follow each other at once.
    pub burst: i64,
    /// The time after which one more is allowed.
    pub refill: i64,
}

pub struct Cache<V, E> {
    bounds: Bounds,
    room: Room<State<V, E>>,
}

struct State<V, E> {
    kept: Option<Kept<V>>,
    /// A fetch is under way.
    fetching: bool,
    /// Counts fetches that ended, so that one who waited for another's can tell.
    ended: u64,
    /// Why the last of them failed, if it did.
    failed: Option<E>,
    early: Early,
}

struct Kept<V> {
    value: Arc<V>,
    fetched: i64,
}

/// Early fetches that were made, less those that time has given back.
#[derive(Default)]
struct Early {
    spent: i64,
    refilled: Option<i64>,
}

/// What a caller finds that need not wait.
enum Next<T> {
    Serve(T),
    /// It is this one's to fetch, and nobody else's meanwhile.
    Fetch,
}

impl<V, E: Clone> Cache<V, E> {
    pub fn new(bounds: Bounds) -> Self {
        let state = State {
            kept: None,
            fetching: false,
            ended: 0,
            failed: None,
            early: Early::default(),
        };
        Self {
            bounds,
            room: Room::new(state),
        }
    }

    /// The value at `now`: the kept one if it is fresh, else a newly fetched one, else the
    /// kept one while it is usable. Nobody waits for another's fetch who has a usable one.
    pub async fn value<F, T>(&self, now: i64, fetch: F) -> Result<Arc<V>, E>
    where
        F: FnOnce() -> T,
        T: Future<Output = Result<V, E>>,
    {
        let next = self.next(|state, seen| state.value(&self.bounds, now, seen));
        match next.await {
            Next::Serve(outcome) => outcome,
            Next::Fetch => match self.fetched(now, fetch).await {
                Ok(value) => Ok(value),
                Err(error) => self
                    .room
                    .look(|state| state.usable_or(&self.bounds, now, error)),
            },
        }
    }

    /// A value that replaced `old`, fetched if the bound allows; none if it does not.
    pub async fn newer_than<F, T>(
        &self,
        old: &Arc<V>,
        now: i64,
        fetch: F,
    ) -> Result<Option<Arc<V>>, E>
    where
        F: FnOnce() -> T,
        T: Future<Output = Result<V, E>>,
    {
        let next = self.next(|state, seen| state.newer_than(&self.bounds, old, now, seen));
        match next.await {
            Next::Serve(outcome) => outcome,
            Next::Fetch => self.fetched(now, fetch).await.map(Some),
        }
    }

    /// What `step` answers, now if it can and else in turn. It is told how many fetches had
    /// ended when this began.
    async fn next<T>(
        &self,
        mut step: impl FnMut(&mut State<V, E>, u64) -> Option<Next<T>>,
    ) -> Next<T> {
        // A fetch that begins lets nobody go, so nobody is woken for it.
        let (seen, at_once) = self.room.look(|state| {
            let seen = state.ended;
            (seen, step(state, seen))
        });
        match at_once {
            Some(next) => next,
            None => self.room.until(|state| step(state, seen)).await,
        }
    }

    /// Fetches. Called by the one that was told to.
    async fn fetched<F, T>(&self, now: i64, fetch: F) -> Result<Arc<V>, E>
    where
        F: FnOnce() -> T,
        T: Future<Output = Result<V, E>>,
    {
        let turn = Turn { cache: self };
        let outcome = fetch().await.map(Arc::new);
        // Outcome and turn change together: the next one finds both or none.
        std::mem::forget(turn);
        self.room.change(|state| state.end(now, &outcome));
        outcome
    }
}

impl<V, E: Clone> State<V, E> {
    fn value(&mut self, bounds: &Bounds, now: i64, seen: u64) -> Option<Next<Result<Arc<V>, E>>> {
        // A clock that went back (a failover) makes a value neither fresh nor usable.
        if let Some(fresh) = self.younger(bounds.fresh, now) {
            return Some(Next::Serve(Ok(fresh)));
        }
        if self.ended != seen && !Flaw::OutcomeIsNotShared.made() {
            match (self.failed.clone(), self.current(bounds, now)) {
                (Some(error), _) => {
                    return Some(Next::Serve(self.usable_or(bounds, now, error)));
                }
                (None, Some(value)) => return Some(Next::Serve(Ok(value))),
                (None, None) => {}
            }
        }
        if !self.fetching {
            return Some(self.begin());
        }
        self.younger(bounds.usable, now)
            .map(|usable| Next::Serve(Ok(usable)))
    }

    fn newer_than(
        &mut self,
        bounds: &Bounds,
        old: &Arc<V>,
        now: i64,
        seen: u64,
    ) -> Option<Next<Result<Option<Arc<V>>, E>>> {
        let current = self.current(bounds, now);
        if let Some(newer) = current.filter(|current| !Arc::ptr_eq(current, old)) {
            return Some(Next::Serve(Ok(Some(newer))));
        }
        if self.fetching {
            return None;
        }
        if self.ended != seen
            && let Some(error) = self.failed.clone()
        {
            return Some(Next::Serve(Err(error)));
        }
        if !self.early.spend(bounds, now) {
            return Some(Next::Serve(Ok(None)));
        }
        Some(self.begin())
    }

    fn begin<T>(&mut self) -> Next<T> {
        self.fetching = !Flaw::RefreshIsNotMarked.made();
        Next::Fetch
    }

    fn end(&mut self, now: i64, outcome: &Result<Arc<V>, E>) {
        self.fetching = outcome.is_err() && Flaw::FailedRefreshStays.made();
        self.ended += 1;
        self.failed = outcome.as_ref().err().cloned();
        if let Ok(value) = outcome {
            self.kept = Some(Kept {
                value: Arc::clone(value),
                fetched: now,
            });
        }
    }

    /// The kept value if its age at `now` is less than `age`, and not negative.
    fn younger(&self, age: i64, now: i64) -> Option<Arc<V>> {
        let kept = self.kept.as_ref()?;
        let passed = now.saturating_sub(kept.fetched);
        let young = (0..age).contains(&passed) || Flaw::AgeIsIgnored.made();
        young.then(|| Arc::clone(&kept.value))
    }

    /// The kept value unless it is too old. One that was fetched while its caller waited
    /// may have a later time than the caller's.
    fn current(&self, bounds: &Bounds, now: i64) -> Option<Arc<V>> {
        let kept = self.kept.as_ref()?;
        let old = now.saturating_sub(kept.fetched) >= bounds.usable;
        (!old).then(|| Arc::clone(&kept.value))
    }

    fn usable_or(&self, bounds: &Bounds, now: i64, error: E) -> Result<Arc<V>, E> {
        self.younger(bounds.usable, now).ok_or(error)
    }
}

impl Early {
    /// Takes one from the allowance.
    fn spend(&mut self, bounds: &Bounds, now: i64) -> bool {
        let since = self
            .refilled
            .map_or(0, |refilled| now.saturating_sub(refilled));
        let earned = since / bounds.refill;
        if self.refilled.is_none() || earned != 0 {
            self.spent = (self.spent - earned.max(0)).max(0);
            self.refilled = Some(now);
        }
        if self.spent < bounds.burst {
            self.spent += 1;
            return true;
        }
        false
    }
}

/// Of the one that fetches. Dropped when its caller stops waiting half-way: the next one
/// fetches then.
struct Turn<'a, V, E> {
    cache: &'a Cache<V, E>,
}

impl<V, E> Drop for Turn<'_, V, E> {
    fn drop(&mut self) {
        let room = &self.cache.room;
        room.change(|state| state.fetching = Flaw::DroppedRefreshStays.made());
    }
}

impl<V, E> fmt::Debug for Cache<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use tokio::task::yield_now;

    const BOUNDS: Bounds = Bounds {
        fresh: 10,
        usable: 100,
        burst: 1,
        refill: 50,
    };

    type Names = Cache<&'static str, &'static str>;

    async fn value(cache: &Names, now: i64, answer: Result<&'static str, &'static str>) -> String {
        let outcome = cache.value(now, async || answer).await;
        outcome.map_or_else(|error| error.to_owned(), |value| (*value).to_owned())
    }

    #[tokio::test]
    async fn a_value_is_fetched_as_it_ages_and_served_no_longer_than_it_is_usable() {
        let cache = Names::new(BOUNDS);
        assert_eq!(value(&cache, 0, Err("away")).await, "away");
        assert_eq!(value(&cache, 0, Ok("first")).await, "first");
        assert_eq!(value(&cache, 9, Ok("second")).await, "first");
        assert_eq!(value(&cache, 10, Ok("second")).await, "second");
        assert_eq!(value(&cache, 109, Err("away")).await, "second");
        assert_eq!(value(&cache, 110, Err("away")).await, "away");
        // A clock that went back says nothing about a value's age.
        assert_eq!(value(&cache, 9, Err("away")).await, "away");
        assert_eq!(value(&cache, 9, Ok("third")).await, "third");
    }

    #[tokio::test]
    async fn an_early_fetch_is_made_within_the_allowance_and_time_gives_it_back() {
        let cache = Names::new(BOUNDS);
        let old = cache.value(0, async || Ok("first")).await.unwrap();
        let newer = async |old: &Arc<&'static str>, now, answer: &'static str| {
            cache.newer_than(old, now, async || Ok(answer)).await
        };
        let second = newer(&old, 1, "second").await.unwrap().unwrap();
        assert_eq!(*second, "second");
        // What replaced the old one meanwhile costs nothing.
        assert_eq!(*newer(&old, 1, "third").await.unwrap().unwrap(), "second");
        assert_eq!(newer(&second, 50, "third").await, Ok(None));
        let third = newer(&second, 51, "third").await.unwrap();
        assert_eq!(third.as_deref(), Some(&"third"));
    }

    #[tokio::test]
    async fn who_shares_the_failure_of_an_early_fetch_has_spent_nothing() {
        let cache = Names::new(Bounds { burst: 2, ..BOUNDS });
        let old = cache.value(0, async || Ok("first")).await.unwrap();
        let fails = || async {
            yield_now().await;
            Err("away")
        };
        let (fetches, shares) = tokio::join!(
            cache.newer_than(&old, 1, fails),
            cache.newer_than(&old, 1, async || panic!("it waits for the other")),
        );
        assert_eq!((fetches, shares), (Err("away"), Err("away")));
        let second = cache.newer_than(&old, 1, async || Ok("second")).await;
        assert_eq!(second.unwrap().as_deref(), Some(&"second"));
    }
}
