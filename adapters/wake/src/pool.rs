//! Workers that answer one at a time, leased to those who wait for one in order of arrival.
//!
//! `machinery` keeps its worker processes here. A pool has a fixed number of slots. A slot
//! that is free has an idle worker in it, unless the last one ended and could not be
//! replaced: the lease is empty then, and its holder may try to start one. Never in this
//! module: how a worker is started, asked or ended.

use std::fmt;
use std::sync::Arc;
#[cfg(not(loom))]
use std::time::Duration;

use crate::room::Room;
use crate::sync::Flaw;

pub struct Pool<W> {
    room: Arc<Room<Slots<W>>>,
}

struct Slots<W> {
    idle: Vec<W>,
    free: usize,
    all: usize,
    stopped: bool,
}

/// The pool has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Why no slot was leased in time.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLease {
    /// All were leased, all the time.
    Busy,
    Stopped,
}

impl<W> Pool<W> {
    /// A pool of as many slots as there are workers.
    pub fn new(workers: Vec<W>) -> Self {
        Self {
            room: Arc::new(Room::new(Slots {
                free: workers.len(),
                all: workers.len(),
                idle: workers,
                stopped: false,
            })),
        }
    }

    /// Waits for a free slot, no longer than `at_most`.
    #[cfg(not(loom))]
    pub async fn lease_within(&self, at_most: Duration) -> Result<Lease<W>, NoLease> {
        match tokio::time::timeout(at_most, self.lease()).await {
            Ok(leased) => leased.map_err(|Stopped| NoLease::Stopped),
            Err(_) => Err(NoLease::Busy),
        }
    }

    /// Waits for a free slot.
    pub async fn lease(&self) -> Result<Lease<W>, Stopped> {
        let worker = self.room.until(Slots::take).await?;
        Ok(Lease {
            room: Arc::clone(&self.room),
            worker,
        })
    }

    /// Waits for those who came before and for all leases, and lets nobody lease any more.
    /// Gives the workers there are, once.
    pub async fn stop(&self) -> Vec<W> {
        self.room.until(Slots::stop).await
    }

    /// What `read` says of each idle worker.
    pub fn idle<T>(&self, read: impl FnMut(&W) -> T) -> Vec<T> {
        self.room
            .look(|slots| slots.idle.iter().map(read).collect())
    }
}

impl<W> Slots<W> {
    fn take(&mut self) -> Option<Result<Option<W>, Stopped>> {
        if self.stopped && !Flaw::StopLeavesOpen.made() {
            return Some(Err(Stopped));
        }
        if self.free == 0 {
            return None;
        }
        if !Flaw::SlotStaysFree.made() {
            self.free -= 1;
        }
        Some(Ok(self.idle.pop()))
    }

    fn stop(&mut self) -> Option<Vec<W>> {
        if self.free < self.all && !Flaw::StopDoesNotWait.made() {
            return None;
        }
        self.stopped = true;
        if Flaw::StopLeavesOpen.made() {
            self.free = 0;
            self.all = 0;
        }
        Some(std::mem::take(&mut self.idle))
    }
}

/// A slot, and the idle worker that was in it. Dropped, it is free again, with the worker
/// unless that was taken out.
#[must_use]
pub struct Lease<W> {
    room: Arc<Room<Slots<W>>>,
    worker: Option<W>,
}

impl<W> Lease<W> {
    /// The worker, out of the slot: one whose state is unknown must not go back by itself.
    /// None for an empty slot.
    pub fn take(&mut self) -> Option<W> {
        self.worker.take()
    }

    /// Gives the slot back with this worker in it.
    pub fn keep(mut self, worker: W) {
        self.worker = Some(worker);
    }
}

impl<W> Drop for Lease<W> {
    fn drop(&mut self) {
        let mut worker = self.worker.take();
        if Flaw::DroppedLeaseKeepsItsSlot.made() && worker.is_none() {
            return;
        }
        if Flaw::DroppedLeaseLosesItsWorker.made() {
            worker = None;
        }
        // One change: who is woken for the slot finds its worker in it.
        self.room.change(|slots| {
            slots.free += 1;
            slots.idle.extend(worker);
        });
    }
}

impl<W> fmt::Debug for Pool<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl<W> fmt::Debug for Lease<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn a_slot_comes_back_with_the_worker_that_is_kept_and_empty_without_one() {
        let pool = Pool::new(vec!["first"]);
        let mut lease = pool.lease_within(LONG).await.unwrap();
        assert_eq!(pool.idle(|worker| *worker), [""; 0]);
        assert_eq!(lease.take(), Some("first"));
        lease.keep("second");
        assert_eq!(pool.idle(|worker| *worker), ["second"]);
        let mut lease = pool.lease_within(LONG).await.unwrap();
        assert_eq!(lease.take(), Some("second"));
        drop(lease);
        let mut lease = pool.lease_within(LONG).await.unwrap();
        assert_eq!(lease.take(), None);
        lease.keep("third");
        drop(pool.lease_within(LONG).await.unwrap());
        assert_eq!(pool.stop().await, ["third"]);
        assert_eq!(pool.stop().await, [""; 0]);
    }

    #[tokio::test]
    async fn a_wait_ends_as_busy_at_its_deadline_and_as_stopped_after_a_stop() {
        let pool = Pool::new(vec![()]);
        let lease = pool.lease_within(LONG).await.unwrap();
        let refused = |leased: Result<Lease<()>, NoLease>| leased.map(drop).unwrap_err();
        let late = pool.lease_within(Duration::ZERO).await;
        assert_eq!(refused(late), NoLease::Busy);
        drop(lease);
        assert_eq!(pool.stop().await.len(), 1);
        let late = pool.lease_within(LONG).await;
        assert_eq!(refused(late), NoLease::Stopped);
    }
}
