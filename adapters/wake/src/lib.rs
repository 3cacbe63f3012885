//! What tasks of one process share: wake-ups, shutdown, a cache, a pool of workers.
//!
//! The server gives its loops [`Bell`] and [`Shutdown`]; `oidc` keeps keys in a [`Cache`];
//! `machinery` leases its worker processes from a [`Pool`]. All four are a state in a
//! `room`, so that the question whether somebody sleeps through a change is answered in
//! one place, and under loom in every order that threads can take
//! (`tests/loom`, run by `./dev test loom`). Nothing here is authority or memory: what a
//! loop acts on is read from the database. Never in this crate: anything of ours, input or
//! output, tokio's net, a queue that a restart would lose.

mod bell;
mod cache;
mod pool;
mod room;
mod sync;

pub use bell::{Bell, Shutdown};
pub use cache::{Bounds, Cache};
#[cfg(not(loom))]
pub use pool::NoLease;
pub use pool::{Lease, Pool, Stopped};
#[cfg(loom)]
pub use sync::Flaw;
