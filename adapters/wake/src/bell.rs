//! Wake-ups and shutdown: rooms with one bit.
//!
//! A lost wake-up would cost its loop a polling interval, a lost shutdown the end of the
//! process. Never in this module: what a wake-up is about.

use std::sync::Arc;
#[cfg(not(loom))]
use std::time::Duration;

use crate::room::Room;
use crate::sync::Flaw;

/// One bell: any number of rings that no waiter has seen yet make one wake-up, and no ring
/// is lost to a waiter that is not waiting yet.
#[derive(Debug, Default)]
pub struct Bell {
    rung: Room<bool>,
}

impl Bell {
    pub fn ring(&self) {
        self.rung.change(|rung| *rung = true);
    }

    /// Returns at the next ring, or after `at_most`. True when it was a ring.
    #[cfg(not(loom))]
    pub async fn wait(&self, at_most: Duration) -> bool {
        tokio::time::timeout(at_most, self.rung()).await.is_ok()
    }

    /// Returns at the next ring.
    pub async fn rung(&self) {
        if Flaw::WaitForgetsEarlierRings.made() {
            self.rung.look(|rung| *rung = false);
        }
        self.rung
            .until(|rung| std::mem::take(rung).then_some(()))
            .await;
    }
}

/// The asking side of a shutdown.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    asked: Arc<Room<bool>>,
}

impl Shutdown {
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks once; every later wait returns at once.
    pub fn ask(&self) {
        self.asked.change(|asked| *asked = true);
    }

    pub fn asked(&self) -> bool {
        self.asked.look(|asked| *asked)
    }

    /// Returns once a shutdown was asked for.
    pub async fn wait(&self) {
        let seen = |asked: &mut bool| {
            let seen = asked.then_some(());
            *asked &= !Flaw::ShutdownIsTaken.made();
            seen
        };
        self.asked.until(seen).await;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_ring_before_the_wait_is_not_lost_and_wakes_once() {
        let bell = Bell::default();
        bell.ring();
        bell.ring();
        assert!(bell.wait(Duration::from_secs(5)).await);
        assert!(!bell.wait(Duration::ZERO).await);
    }

    #[tokio::test]
    async fn a_shutdown_reaches_waiters_before_and_after_it_was_asked_for() {
        let shutdown = Shutdown::new();
        let early = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.wait().await }
        });
        assert!(!shutdown.asked());
        shutdown.ask();
        shutdown.wait().await;
        assert!(early.await.is_ok());
        assert!(shutdown.asked());
    }
}
