//! Time, randomness, wake-ups and alerts: what a workflow needs of the process it runs in.

use std::future::Future;
use std::time::Duration;

use bronzeward_core::id::{MachineId, ObservationId, OperationId};

/// 128 random bits at a time. Identifiers and ETag tokens are made of nothing else.
pub trait Entropy: Send + Sync + 'static {
    fn bits(&self) -> u128;
}

/// Monotonic waiting. It says how long, never what time it is: times that decide come
/// from the database (PA §5 rule 4).
pub trait Timer: Send + Sync + 'static {
    fn sleep(&self, length: Duration) -> impl Future<Output = ()> + Send;
}

/// Runs work beside its caller, until the work ends or the process does. Nothing depends
/// on it ending: what a process leaves behind is found by lease.
pub trait Tasks: Send + Sync + 'static {
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static);
}

/// What a committed transaction makes worth looking at, for the loops of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// A publication was queued.
    Publication,
    /// A plan was approved, or an operation changed hands.
    Dispatch,
}

/// Wake-ups inside the process. A lost one costs a polling interval, nothing else.
pub trait Notifier: Send + Sync + 'static {
    fn wake(&self, what: Wake);

    /// Returns at the next wake-up of `what`, or after `at_most`.
    fn wait(&self, what: Wake, at_most: Duration) -> impl Future<Output = ()> + Send;
}

/// What an operator is told at once. No alert carries a value or a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alert {
    /// An observation differs from Applied while no operation holds the scope (EaR 6.1).
    DigestMismatch {
        machine: MachineId,
        observation: ObservationId,
        late_landing: Option<OperationId>,
    },
}

pub trait AlertSink: Send + Sync + 'static {
    fn raise(&self, alert: Alert);
}
