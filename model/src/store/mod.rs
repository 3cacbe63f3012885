//! The store port on the simulated database, a family a file, as `adapters/postgres` has them.
//!
//! Each method is the statements that the adapter sends for it: one scheduling point, then
//! locks in the adapter's order, unique indexes and foreign keys as the schema has them, and
//! the effect. Never in this module: a decision; what a write depends on comes in as a guard.

pub mod authoring;
pub mod execution;
mod guard;

use bronzeward_engine::ports::store::{Snapshot, StoreError, StoreReads, StoreTx};

use crate::pg::session::Session;

impl StoreReads for Session {}

impl Snapshot for Session {
    async fn close(self) {}
}

impl StoreTx for Session {
    async fn commit(mut self) -> Result<(), StoreError> {
        self.send_commit().await
    }

    async fn rollback(mut self) {
        self.send_rollback().await;
    }
}
