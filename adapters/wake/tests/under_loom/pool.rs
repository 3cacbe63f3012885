//! No worker has two holders or is lost, who waits is served, and a stop ends all of it.

use std::sync::Arc;

use bronzeward_wake::{Flaw, Lease, Pool, Stopped};
use loom::future::block_on;
use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use loom::thread;

use super::{STUCK, holds, try_once};

const MORE: &str = "more leases than slots";
const EMPTY: &str = "a slot is leased without its worker";
const LOST: &str = "a worker is lost";

/// A pool and how many hold a lease of it now. A worker is its number.
struct Bench {
    pool: Pool<u32>,
    slots: usize,
    held: AtomicUsize,
}

impl Bench {
    fn new(slots: u32) -> Arc<Self> {
        Arc::new(Self {
            pool: Pool::new((0..slots).collect()),
            slots: slots as usize,
            held: AtomicUsize::new(0),
        })
    }

    fn lease(&self) -> Result<Lease<u32>, Stopped> {
        let lease = block_on(self.pool.lease())?;
        let held = self.held.fetch_add(1, SeqCst);
        assert!(held < self.slots, "{MORE}");
        Ok(lease)
    }

    /// Leaves the count before the slot is free.
    fn leaving(&self) {
        self.held.fetch_sub(1, SeqCst);
    }

    /// Leases, takes the worker and gives it back.
    fn used(&self) -> Result<u32, Stopped> {
        let mut lease = self.lease()?;
        let worker = lease.take().expect(EMPTY);
        self.leaving();
        lease.keep(worker);
        Ok(worker)
    }

    /// Ends the pool and looks whether all workers are there.
    fn stopped(&self) {
        let mut workers = block_on(self.pool.stop());
        workers.sort_unstable();
        let all: Vec<u32> = (0..self.slots as u32).collect();
        assert_eq!(workers, all, "{LOST}");
        assert!(
            block_on(self.pool.lease()).is_err(),
            "a stopped pool leases"
        );
    }
}

// covers: MOD-5
#[test]
fn a_worker_has_one_holder_and_goes_to_who_waits_when_it_comes_back() {
    let model = || {
        let bench = Bench::new(1);
        let others = [(); 2].map(|()| {
            let bench = Arc::clone(&bench);
            thread::spawn(move || bench.used())
        });
        assert_eq!(bench.used(), Ok(0));
        for other in others {
            assert_eq!(other.join().expect("joined"), Ok(0));
        }
        bench.stopped();
    };
    holds(
        model,
        &[
            (Flaw::SlotStaysFree, EMPTY),
            (Flaw::ChangeWakesNobody, STUCK),
            (Flaw::LooksBeforeItStandsInLine, STUCK),
        ],
    );
}

// covers: MOD-5
#[test]
fn two_workers_that_come_back_together_serve_two_who_wait() {
    let model = || {
        let bench = Bench::new(2);
        let first = block_on(bench.pool.lease()).expect("leased");
        let second = block_on(bench.pool.lease()).expect("leased");
        // Each keeps what it has until both have one.
        let others = [(); 2].map(|()| {
            let bench = Arc::clone(&bench);
            thread::spawn(move || block_on(bench.pool.lease()))
        });
        drop(first);
        drop(second);
        let leases = others.map(|other| other.join().expect("joined").expect("leased"));
        let mut workers = leases.map(|mut lease| {
            let worker = lease.take().expect(LOST);
            lease.keep(worker);
            worker
        });
        workers.sort_unstable();
        assert!(workers == [0, 1] || workers[0] == workers[1]);
        bench.stopped();
    };
    holds(
        model,
        &[
            (Flaw::TakerWakesNobody, STUCK),
            (Flaw::ChangeWakesNobody, STUCK),
            (Flaw::DroppedLeaseLosesItsWorker, LOST),
        ],
    );
}

// covers: MOD-5
#[test]
fn a_worker_that_ended_is_replaced_by_its_holder_or_by_who_finds_its_slot_empty() {
    let model = || {
        let bench = Bench::new(1);
        // Its holder is dropped in the middle of a request, and the worker with it.
        let other = Arc::clone(&bench);
        let dropped = thread::spawn(move || {
            let mut lease = other.lease().expect("leased");
            let worker = lease.take();
            other.leaving();
            drop(lease);
            worker.is_some()
        });
        // This one starts another worker where there is none.
        let other = Arc::clone(&bench);
        let replaces = thread::spawn(move || {
            let mut lease = other.lease().expect("leased");
            let found = lease.take();
            other.leaving();
            lease.keep(0);
            found.is_some()
        });
        let mut lease = bench.lease().expect("leased");
        let worker = lease.take();
        bench.leaving();
        lease.keep(worker.unwrap_or(0));
        let dropped_one = dropped.join().expect("joined");
        let found_one = replaces.join().expect("joined");
        assert!(dropped_one, "only its holder drops a worker");
        let mut lease = bench.lease().expect("leased");
        if lease.take().is_none() {
            assert!(found_one, "{LOST}");
        }
        bench.leaving();
        lease.keep(0);
        bench.stopped();
    };
    holds(
        model,
        &[
            (Flaw::DroppedLeaseKeepsItsSlot, STUCK),
            (Flaw::SlotStaysFree, MORE),
        ],
    );
}

// covers: MOD-5
#[test]
fn one_who_waits_past_its_deadline_keeps_the_worker_from_nobody() {
    let model = || {
        let bench = Bench::new(1);
        let lease = bench.lease().expect("leased");
        let other = Arc::clone(&bench);
        let gives_up = thread::spawn(move || drop(try_once(other.pool.lease())));
        let other = Arc::clone(&bench);
        let waits = thread::spawn(move || block_on(other.pool.lease()).map(drop));
        bench.leaving();
        drop(lease);
        gives_up.join().expect("joined");
        assert_eq!(waits.join().expect("joined"), Ok(()));
        bench.stopped();
    };
    holds(
        model,
        &[(Flaw::LeaverWakesNobody, STUCK), (Flaw::LeaverStays, STUCK)],
    );
}

// covers: MOD-5
#[test]
fn a_stop_waits_for_leases_gets_every_worker_and_ends_every_wait() {
    let model = || {
        let bench = Bench::new(1);
        let lease = bench.lease().expect("leased");
        let others = [(); 2].map(|()| {
            let bench = Arc::clone(&bench);
            thread::spawn(move || bench.used())
        });
        let stops = Arc::clone(&bench);
        let stops = thread::spawn(move || stops.stopped());
        bench.leaving();
        drop(lease);
        stops.join().expect("joined");
        for other in others {
            let used = other.join().expect("joined");
            assert!(used == Ok(0) || used == Err(Stopped));
        }
        assert_eq!(block_on(bench.pool.stop()), [0; 0], "stopped twice");
    };
    holds(
        model,
        &[
            (Flaw::StopDoesNotWait, LOST),
            (Flaw::StopLeavesOpen, STUCK),
            (Flaw::TakerWakesNobody, STUCK),
        ],
    );
}
