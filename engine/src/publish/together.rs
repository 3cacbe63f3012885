//! The same step for many machines or versions, some of them at once.
//!
//! A publication waits for peers most of its time: for nodes, the provider and the renderer's
//! workers. Each of its steps does what it does for every machine, in no needed order, before
//! the next step begins. Never in this module: a step.

use std::future::Future;

use futures::stream::{self, StreamExt, TryStreamExt};

/// How many are under way at once: enough to keep two workers and the provider busy, and few
/// beside the database's connections.
const AT_ONCE: usize = 4;

/// Runs all of `work` and gives its results in the order given. The first failure in that
/// order ends it, and what is under way then is left as by a process that ends.
pub(super) async fn in_order<F, T, E>(work: Vec<F>) -> Result<Vec<T>, E>
where
    F: Future<Output = Result<T, E>> + Send,
    T: Send,
    E: Send,
{
    stream::iter(work).buffered(AT_ONCE).try_collect().await
}
