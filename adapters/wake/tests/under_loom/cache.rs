//! One fetch at a time, whatever becomes of it, and no value past its age.

use std::pin::Pin;
use std::sync::Arc;

use bronzeward_wake::{Bounds, Cache, Flaw};
use loom::future::block_on;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use loom::thread;

use super::{STUCK, holds, look_at, try_once};

const BOUNDS: Bounds = Bounds {
    fresh: 10,
    usable: 100,
    burst: 2,
    refill: 1000,
};

const TWO: &str = "two fetches at once";
const AGAIN: &str = "one who waited asked again";
const OLD: &str = "served past its age";

/// A peer that answers with the time at which it was asked, or not at all, and must not
/// be asked by two at once.
#[derive(Default)]
struct Peer {
    busy: AtomicBool,
    asked: AtomicUsize,
}

/// Held while the peer is asked; a fetch that is dropped half-way ends too.
struct Asking<'a>(&'a Peer);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, SeqCst);
    }
}

impl Peer {
    async fn ask<T>(&self, answer: Result<T, &'static str>) -> Result<T, &'static str> {
        assert!(!self.busy.swap(true, SeqCst), "{TWO}");
        let _asking = Asking(self);
        self.asked.fetch_add(1, SeqCst);
        // Others go on meanwhile.
        let mut before = true;
        std::future::poll_fn(|context| {
            if std::mem::take(&mut before) {
                context.waker().wake_by_ref();
                return std::task::Poll::Pending;
            }
            std::task::Poll::Ready(())
        })
        .await;
        answer
    }
}

type Outcome = Result<Arc<i64>, &'static str>;

struct Bench {
    cache: Cache<i64, &'static str>,
    peer: Peer,
}

impl Bench {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            cache: Cache::new(BOUNDS),
            peer: Peer::default(),
        })
    }

    /// A bench whose cache holds the value of time 0.
    fn filled() -> Arc<Self> {
        let bench = Self::new();
        let kept = block_on(bench.cache.value(0, async || Ok(0)));
        assert_eq!(kept.as_deref(), Ok(&0));
        bench
    }

    async fn value(self: Arc<Self>, now: i64, answers: bool) -> Outcome {
        let answer = answers.then_some(now).ok_or("away");
        let outcome = self.cache.value(now, || self.peer.ask(answer)).await;
        if let Ok(value) = &outcome {
            assert!(now - **value < BOUNDS.usable, "{OLD}");
        }
        outcome
    }

    fn asked(&self) -> usize {
        self.peer.asked.load(SeqCst)
    }
}

/// A call that was begun and is under way.
fn begun(
    bench: &Arc<Bench>,
    now: i64,
    answers: bool,
) -> Pin<Box<impl Future<Output = Outcome> + use<>>> {
    let mut call = Box::pin(Arc::clone(bench).value(now, answers));
    assert_eq!(block_on(look_at(call.as_mut())), None);
    call
}

// covers: MOD-5
#[test]
fn calls_that_meet_share_one_fetch() {
    let model = || {
        let bench = Bench::new();
        let others = [1, 2].map(|now| {
            let bench = Arc::clone(&bench);
            thread::spawn(move || block_on(bench.value(now, true)))
        });
        let own = block_on(Arc::clone(&bench).value(1, true)).expect("answered");
        for other in others {
            let other = other.join().expect("joined").expect("answered");
            // A clock that is behind the fetch's makes one who did not wait ask again.
            assert!((0..=2).contains(&(*other - *own).abs()));
        }
        assert!(bench.asked() <= 3);
    };
    holds(
        model,
        &[
            (Flaw::RefreshIsNotMarked, TWO),
            (Flaw::ChangeWakesNobody, STUCK),
            (Flaw::LooksBeforeItStandsInLine, STUCK),
        ],
    );
}

// covers: MOD-5
#[test]
fn a_fetch_that_fails_is_shared_with_who_waited_and_the_next_call_fetches() {
    let model = || {
        let bench = Bench::new();
        let first = begun(&bench, 1, false);
        let second = begun(&bench, 1, false);
        let third = Arc::clone(&bench);
        let third = thread::spawn(move || block_on(third.value(1, true)));
        let first = thread::spawn(move || block_on(first));
        let second = block_on(second);
        let first = first.join().expect("joined");
        // The third shares the failure, or comes after it and fetches, which is the one
        // fetch that has an answer: then the others may see that.
        let third = third.join().expect("joined");
        assert_eq!(bench.asked(), 1 + usize::from(third.is_ok()), "{AGAIN}");
        for waited in [first, second] {
            assert!(waited == Err("away") || third.is_ok());
        }
        // Whoever comes now is the next.
        let last = block_on(Arc::clone(&bench).value(1, true));
        assert_eq!(last.as_deref(), Ok(&1));
    };
    holds(
        model,
        &[
            (Flaw::OutcomeIsNotShared, AGAIN),
            (Flaw::FailedRefreshStays, STUCK),
            (Flaw::ChangeWakesNobody, STUCK),
            (Flaw::TakerWakesNobody, STUCK),
        ],
    );
}

// covers: MOD-5
#[test]
fn a_fetch_that_is_dropped_half_way_lets_the_next_one_go() {
    let model = || {
        let bench = Bench::new();
        let first = begun(&bench, 1, true);
        let others = [1, 1].map(|now| {
            let bench = Arc::clone(&bench);
            thread::spawn(move || block_on(bench.value(now, true)))
        });
        drop(first);
        for other in others {
            let other = other.join().expect("joined");
            assert_eq!(other.as_deref(), Ok(&1));
        }
        assert_eq!(bench.asked(), 2);
    };
    holds(
        model,
        &[
            (Flaw::DroppedRefreshStays, STUCK),
            (Flaw::ChangeWakesNobody, STUCK),
        ],
    );
}

// covers: MOD-5
#[test]
fn a_call_that_is_dropped_while_it_waits_keeps_the_value_from_nobody() {
    let model = || {
        let bench = Bench::new();
        let first = begun(&bench, 1, true);
        let gives_up = Arc::clone(&bench);
        let gives_up = thread::spawn(move || drop(try_once(gives_up.value(1, true))));
        let waits = Arc::clone(&bench);
        let waits = thread::spawn(move || block_on(waits.value(1, true)));
        assert_eq!(block_on(first).as_deref(), Ok(&1));
        gives_up.join().expect("joined");
        assert_eq!(waits.join().expect("joined").as_deref(), Ok(&1));
        assert_eq!(bench.asked(), 1);
    };
    holds(
        model,
        &[(Flaw::LeaverWakesNobody, STUCK), (Flaw::LeaverStays, STUCK)],
    );
}

// covers: MOD-5
#[test]
fn no_value_is_served_past_its_age_while_others_refresh_it() {
    let model = || {
        let bench = Bench::filled();
        let too_old = Arc::clone(&bench);
        let too_old = thread::spawn(move || block_on(too_old.value(100, false)));
        let refreshes = Arc::clone(&bench);
        let refreshes = thread::spawn(move || block_on(refreshes.value(105, true)));
        // Usable at this time, so that nobody is waited for.
        let usable = try_once(Arc::clone(&bench).value(99, false));
        if let Some(Ok(usable)) = usable {
            assert!(*usable == 0 || *usable == 105);
        }
        let refreshed = refreshes.join().expect("joined");
        let too_old = too_old.join().expect("joined");
        // Who waited for the one that failed shares its failure, as the other way round.
        assert!(refreshed == Err("away") || refreshed.as_deref() == Ok(&105));
        assert!(too_old == Err("away") || too_old.as_deref() == Ok(&105));
    };
    holds(model, &[(Flaw::AgeIsIgnored, OLD)]);
}

// covers: MOD-5
#[test]
fn calls_for_a_newer_value_share_one_early_fetch() {
    let model = || {
        let bench = Bench::filled();
        let old = block_on(Arc::clone(&bench).value(1, true)).expect("kept");
        let newer = |bench: Arc<Bench>, old: Arc<i64>| async move {
            let ask = || bench.peer.ask(Ok(1));
            bench.cache.newer_than(&old, 1, ask).await
        };
        let others = [(); 2].map(|()| {
            let newer = newer(Arc::clone(&bench), Arc::clone(&old));
            thread::spawn(move || block_on(newer))
        });
        for other in others {
            let other = other.join().expect("joined").expect("answered");
            assert_eq!(other.as_deref(), Some(&1));
        }
        assert_eq!(bench.asked(), 1, "{AGAIN}");
        // The one that fetched took one of two from the allowance, the other none.
        let newest = block_on(bench.cache.value(1, async || Err("not asked"))).expect("kept");
        let next = bench.cache.newer_than(&newest, 1, async || Ok(2));
        let next = block_on(next).expect("answered");
        let next = next.expect("within the allowance");
        let over = bench.cache.newer_than(&next, 1, async || Ok(3));
        assert_eq!(block_on(over), Ok(None));
    };
    holds(
        model,
        &[
            (Flaw::RefreshIsNotMarked, AGAIN),
            (Flaw::ChangeWakesNobody, STUCK),
            (Flaw::LooksBeforeItStandsInLine, STUCK),
        ],
    );
}
