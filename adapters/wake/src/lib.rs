//! Wake-ups and shutdown inside one process.
//!
//! The server gives its loops these. Nothing here is authority or memory: a lost wake-up
//! costs a polling interval, and what a loop acts on is read from the database. Never in
//! this crate: anything of ours, tokio's net, a queue that a restart would lose.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

/// One bell: any number of rings before a wait make one wake-up, and no ring is lost to a
/// waiter that is not waiting yet.
#[derive(Debug, Default)]
pub struct Bell {
    notify: Notify,
}

impl Bell {
    pub fn ring(&self) {
        self.notify.notify_one();
    }

    /// Returns at the next ring, or after `at_most`. True when it was a ring.
    pub async fn wait(&self, at_most: Duration) -> bool {
        tokio::time::timeout(at_most, self.notify.notified())
            .await
            .is_ok()
    }
}

/// The asking side of a shutdown.
#[derive(Clone, Debug)]
pub struct Shutdown {
    asked: Arc<watch::Sender<bool>>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            asked: Arc::new(watch::Sender::new(false)),
        }
    }
}

impl Shutdown {
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks once; every later wait returns at once.
    pub fn ask(&self) {
        self.asked.send_replace(true);
    }

    pub fn asked(&self) -> bool {
        *self.asked.borrow()
    }

    /// Returns once a shutdown was asked for.
    pub async fn wait(&self) {
        let mut asked = self.asked.subscribe();
        // The sender lives in `self`, so waiting cannot fail before it answers.
        let _ = asked.wait_for(|asked| *asked).await;
    }
}

#[cfg(test)]
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
