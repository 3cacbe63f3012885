//! Recovery mode and what moves a scope in it (PA §12, EaR 7), and what the orphan report
//! reads (PA §6.4).
//!
//! Entry, exit, accountings, marks, releases and decommissions write here, each with its
//! machines held FOR UPDATE and the installation held as its act says. Never in this module:
//! what a scope may become, which is `core::scope`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use bronzeward_core::generation::GenerationPath;
use bronzeward_core::id::{
    ActId, EpochId, IngestionId, MachineId, ObservationId, OperationId, ReleaseId,
};
use bronzeward_core::installation::EntryRequest;
use bronzeward_core::principal::Signed;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::scope::{Marked, ScopeState};
use bronzeward_core::time::DbTime;

use super::StoreError;
use crate::rows::ClaimRow;

/// Who decided something of a scope or of the installation, and when.
#[derive(Clone, Debug)]
pub struct Decided {
    pub by: Signed,
    pub epoch: EpochId,
    pub act: ActId,
    pub at: DbTime,
}

/// A scope's latest mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkRow {
    pub revision: TimelineRevision,
    pub epoch: EpochId,
    /// The Desired release whose dependencies it checked.
    pub desired: Option<ReleaseId>,
}

/// The decision that what was sent to a machine before the restore has settled (EaR 7.2).
#[derive(Clone, Debug)]
pub struct NewScopeAccounting {
    pub machine: MachineId,
    pub revision: TimelineRevision,
    pub start: ObservationId,
    pub end: ObservationId,
    pub facts: BTreeMap<String, String>,
    pub decided: Decided,
}

/// A mark beside its scope state entry, whose revision it has.
#[derive(Clone, Debug)]
pub struct NewScopeMark {
    pub machine: MachineId,
    pub revision: TimelineRevision,
    pub marked: Marked,
    pub observation: ObservationId,
    pub desired: Option<ReleaseId>,
    pub facts: BTreeMap<String, String>,
    pub decided: Decided,
}

/// A release of a scope beside its entry, with the mark it rests on.
#[derive(Clone, Debug)]
pub struct NewScopeRelease {
    pub machine: MachineId,
    pub revision: TimelineRevision,
    pub mark: TimelineRevision,
    pub desired: Option<ReleaseId>,
    pub facts: BTreeMap<String, String>,
    pub decided: Decided,
}

/// A machine written off, beside its entry (EaR 7.3).
#[derive(Clone, Debug)]
pub struct NewDecommission {
    pub machine: MachineId,
    pub revision: TimelineRevision,
    pub reason: String,
    pub decided: Decided,
}

pub trait RecoveryReads {
    /// The claims that have not ended, whatever their times, by identifier.
    fn unended_claims(
        &mut self,
    ) -> impl Future<Output = Result<Vec<IngestionId>, StoreError>> + Send;

    /// The publish operations that are queued or running and the ingest operations that run,
    /// by identifier.
    fn unended_jobs(&mut self)
    -> impl Future<Output = Result<Vec<OperationId>, StoreError>> + Send;

    /// What the entry that minted this epoch said; none for the installation's own.
    fn recovery_entry(
        &mut self,
        epoch: EpochId,
    ) -> impl Future<Output = Result<Option<EntryRequest>, StoreError>> + Send;

    /// The revision of the machine's accounting in this epoch.
    fn scope_accounted(
        &mut self,
        machine: MachineId,
        epoch: EpochId,
    ) -> impl Future<Output = Result<Option<TimelineRevision>, StoreError>> + Send;

    fn latest_mark(
        &mut self,
        machine: MachineId,
    ) -> impl Future<Output = Result<Option<MarkRow>, StoreError>> + Send;

    /// Whether the machine's timeline has, after this revision, a commitment or another entry
    /// that changed an operation's state.
    fn operation_moved_after(
        &mut self,
        machine: MachineId,
        revision: TimelineRevision,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Those of the paths that a committed reference row names.
    fn referenced_generations(
        &mut self,
        paths: &BTreeSet<GenerationPath>,
    ) -> impl Future<Output = Result<BTreeSet<GenerationPath>, StoreError>> + Send;

    /// The claims that exist of these, by identifier.
    fn claim_rows(
        &mut self,
        claims: &BTreeSet<IngestionId>,
    ) -> impl Future<Output = Result<Vec<ClaimRow>, StoreError>> + Send;
}

pub trait RecoveryWrites {
    /// Records the epoch with its restored backups, makes it current and turns recovery mode
    /// on. `decided.epoch` is the new epoch; the installation is held FOR UPDATE.
    fn enter_recovery(
        &mut self,
        entry: &EntryRequest,
        decided: &Decided,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Records the epoch's exit and turns recovery mode off; the installation is held FOR
    /// UPDATE. `Unique("recovery_exit_pkey")` for a second exit of one epoch.
    fn exit_recovery(
        &mut self,
        facts: &BTreeMap<String, String>,
        decided: &Decided,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Moves a machine's scope, in this epoch, to a state.
    fn set_scope(
        &mut self,
        machine: MachineId,
        to: ScopeState,
        epoch: EpochId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn insert_scope_accounting(
        &mut self,
        accounting: &NewScopeAccounting,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn insert_scope_mark(
        &mut self,
        mark: &NewScopeMark,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn insert_scope_release(
        &mut self,
        release: &NewScopeRelease,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Records the decommission and lets the machine's operation go from both holding
    /// indexes: it keeps its state and holds nothing. `Unique("decommission_pkey")` for a
    /// second one.
    fn insert_decommission(
        &mut self,
        decommission: &NewDecommission,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
