//! The store port: PostgreSQL in production, a simulated database in the model.
//!
//! A transaction is a value that is committed, rolled back or dropped. Lock calls
//! live in [`Locks`]; engine code reaches them through the typed levels of
//! [`crate::tx`] only. Reads that a snapshot and a transaction share are the
//! `…Reads` traits, writes are the `…Writes` traits, one pair per family.
//! No business decision is made behind this port: what a write may depend on
//! comes in as a [`Guard`].

mod adoptions;
mod claims;
mod drafts;
mod freezes;
mod guard;
mod inventory;
mod jobs;
mod locks;
mod observations;
mod operations;
mod page;
mod plans;
mod principals;
mod recovery;
mod releases;
mod requests;
mod sources;
mod standing;
mod timeline;
mod tokens;

pub use adoptions::{AdoptionReads, AdoptionWrites, NewAdoption};
pub use claims::{ClaimEnd, ClaimFilter, ClaimReads, ClaimSource, ClaimWrites, NewClaim};
pub use drafts::{DraftReads, DraftWrites, EntryKind, EntryOfDraft, NewDraft};
pub use freezes::{FreezeWrites, Frozen};
pub use guard::{Condition, Guard, Written};
pub use inventory::{
    ClusterRow, EndpointChange, InventoryReads, InventoryWrites, NewCluster, NewMachine,
};
pub use jobs::{JobEnd, JobReads, JobWrites, NewJob, NewWork, OperationFilter};
pub use locks::{LockMode, Locks, Select};
pub use observations::{DriftRead, ObservationReads, ObservationWrites};
pub use operations::{
    AccountedRow, Marks, NewAccounting, OperationExtras, OperationReads, OperationWrites,
};
pub use page::{Page, Paged};
pub use plans::{
    NewApprovalRevocation, NewCancellation, NewIdentityRevocation, OpenDrift, PlanFilter,
    PlanReads, PlanRow, PlanWrites, PlannedMachine, PlannedRelease, ReleaseOrigins,
};
pub use principals::{ActRow, PrincipalReads, PrincipalWrites};
pub use recovery::{
    Decided, MarkRow, NewDecommission, NewScopeAccounting, NewScopeMark, NewScopeRelease,
    RecoveryReads, RecoveryWrites,
};
pub use releases::{
    Dependency, NewHead, NewRelease, NewReleaseMachine, Outcome, ProvenanceRow, ReleaseMachineRow,
    ReleaseReads, ReleaseRow, ReleaseSourceRow, ReleaseWrites, ReproductionRow, Seed,
};
pub use requests::{IdempotencyRecord, RequestReads, RequestWrites};
pub use sources::{
    AssignmentRevisionRow, Authorship, FragmentRevisionRow, HeadKind, ImportBaseRow, NewAssignment,
    NewFragment, NewImportBase, NewProfile, ProfileRevisionRow, ReferenceRow, SourceReads,
    SourceWrites,
};
pub use standing::{DriftRecord, Seen, Standing, StandingReads};
pub use timeline::{
    ControllerRow, EntryRow, NewEntry, Order, TimelinePage, TimelineReads, TimelineWrites,
};
pub use tokens::{ListedToken, TokenReads, TokenWrites};

use std::future::Future;

use bronzeward_core::time::DbTime;

/// How a statement or a commit failed. No text of the database is carried: it can
/// quote values. The adapter logs the SQLSTATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database chose this transaction as a deadlock's victim (PA §5 rule 5).
    #[error("deadlock")]
    Deadlock,
    /// No connection could be had, or it was lost before COMMIT was sent: nothing committed.
    #[error("database unavailable")]
    Unavailable,
    /// The connection was lost after COMMIT was sent: the outcome is unknown (PA §5 rule 6).
    #[error("commit outcome unknown")]
    CommitUnknown,
    /// A unique index refused the row; names the index.
    #[error("unique index {0}")]
    Unique(&'static str),
    /// A check, trigger, foreign key or deferred constraint refused; names it where known.
    #[error("integrity constraint {0}")]
    Integrity(&'static str),
    /// Anything else: a fault of the server or of this program.
    #[error("database fault")]
    Fault,
}

/// Where transactions and snapshots begin.
pub trait Store: Send + Sync + 'static {
    type Tx: StoreTx;
    type Snapshot: Snapshot;

    /// A read-committed transaction (PA §5 rule 3).
    fn begin(&self) -> impl Future<Output = Result<Self::Tx, StoreError>> + Send;

    /// A read-only REPEATABLE READ transaction: one state of the database.
    fn snapshot(&self) -> impl Future<Output = Result<Self::Snapshot, StoreError>> + Send;

    /// The database's time, for a caller that reads nothing else with it. A store with a
    /// shorter way than a snapshot takes that.
    fn clock(&self) -> impl Future<Output = Result<DbTime, StoreError>> + Send {
        async {
            let mut snapshot = self.snapshot().await?;
            let now = snapshot.clock().await;
            snapshot.close().await;
            now
        }
    }
}

/// Everything that can be read, in a transaction or a snapshot.
pub trait StoreReads:
    RequestReads
    + PrincipalReads
    + ClaimReads
    + SourceReads
    + InventoryReads
    + DraftReads
    + JobReads
    + PlanReads
    + AdoptionReads
    + ObservationReads
    + OperationReads
    + RecoveryReads
    + ReleaseReads
    + StandingReads
    + TimelineReads
    + TokenReads
    + Send
{
}

/// One state of the database, read only.
pub trait Snapshot: StoreReads + Send + 'static {
    /// Ends it, so that the connection can be used again.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// One open transaction. Dropping it open leaves nothing of it behind.
pub trait StoreTx:
    StoreReads
    + Locks
    + RequestWrites
    + PrincipalWrites
    + InventoryWrites
    + ClaimWrites
    + SourceWrites
    + DraftWrites
    + JobWrites
    + PlanWrites
    + AdoptionWrites
    + FreezeWrites
    + ObservationWrites
    + OperationWrites
    + RecoveryWrites
    + ReleaseWrites
    + TimelineWrites
    + TokenWrites
    + Send
    + 'static
{
    /// Sends COMMIT. Refused as a fault when a statement of this transaction failed,
    /// since the database would answer such a COMMIT with a silent ROLLBACK.
    fn commit(self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Sends ROLLBACK, so that the connection can be used again.
    fn rollback(self) -> impl Future<Output = ()> + Send;
}
