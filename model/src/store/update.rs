//! A conditional UPDATE by key: which row it takes, and what it looks at again.
//!
//! Both families of tables write through it. Never in this module: a table, or what is written.

use std::sync::Arc;

use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{LockMode, StoreError};

use crate::pg::session::Session;
use crate::pg::{Relation, Table, Tables};

impl Session {
    /// The row of an UPDATE, locked, within a statement that has begun: its latest version, or
    /// none where it is not there or `holds` is false. As PostgreSQL does, a row that does not
    /// fit as the statement sees it is passed over without a wait; one that does is locked, and
    /// looked at again only where somebody else has changed it meanwhile: not after a rollback,
    /// nor after a lock alone, whatever the clock says by then.
    pub(crate) async fn target<K: Ord + Clone, V>(
        &mut self,
        see: fn(&Tables) -> &Table<K, V>,
        (relation, bits): (Relation, u128),
        key: &K,
        holds: impl Fn(&V, DbTime) -> bool,
    ) -> Result<Option<Arc<V>>, StoreError> {
        let now = self.now();
        let seen = self.look(|tables, eye| see(tables).arc(eye, key));
        let Some(seen) = seen.filter(|row| holds(row, now)) else {
            return Ok(None);
        };
        self.lock_row(relation, bits, LockMode::NoKeyUpdate).await?;
        let now = self.now();
        let latest = self.look(|tables, eye| see(tables).arc(eye, key));
        Ok(latest.filter(|row| Arc::ptr_eq(row, &seen) || holds(row, now)))
    }
}
