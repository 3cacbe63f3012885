//! Tables of what is authored: installation, principals, inventory, drafts, sources, claims.
//!
//! A file a family carries out its traits of the store port on them. Rows are the engine's own
//! where it has them; what the database keeps beside those stands here. Never in this module:
//! a decision.

mod claims;
mod drafts;
mod inventory;
mod locks;
mod principals;
mod requests;
mod rows;
mod source_writes;
mod sources;

use std::collections::BTreeMap;

use bronzeward_core::envelope::Baseline;
use bronzeward_core::id::{
    ActId, AssignmentRevisionId, ClusterId, DraftId, EpochId, FragmentRevisionId, HeadId,
    ImportBaseRevisionId, IngestionId, MachineId, PrincipalId, ProfileRevisionId, TokenId,
};
use bronzeward_core::idempotency::IdempotencyKey;
use bronzeward_core::installation::Installation;
use bronzeward_core::principal::Principal;
use bronzeward_core::reference;
use bronzeward_core::time::DbTime;
use bronzeward_core::token::Token;
use bronzeward_engine::ports::store::{
    ActRow, AssignmentRevisionRow, ClusterRow, EndpointChange, EntryKind, EntryOfDraft,
    FragmentRevisionRow, HeadKind, IdempotencyRecord, ImportBaseRow, ProfileRevisionRow,
    ReferenceRow, StoreError,
};
use bronzeward_engine::rows::{
    ClaimRow, DraftRow, HeadRow, MachineRow, MachineStateRow, SourceRevisionId,
};

use crate::pg::Row;
use crate::pg::tables::tables;
use crate::sched::ProcessId;
use crate::sim::State;

tables! {
    /// Installation, principals, inventory, drafts, sources and claims.
    Authoring {
        installation: () => Installation,
        cursor_key: () => CursorKey,
        /// By their sequence, which is the order in which they were recorded.
        acts: i64 => Act,
        act_order: ActId => Sequence,
        idempotency: (PrincipalId, IdempotencyKey) => Idempotent,
        principals: PrincipalId => Principal,
        identity_revocations: PrincipalId => DbTime,
        tokens: TokenId => TokenOf,
        clusters: ClusterId => ClusterRow,
        /// Their states stand in `machine_states`; a row's own is not read.
        machines: MachineId => MachineRow,
        machine_states: MachineId => MachineStateRow,
        endpoint_changes: (MachineId, i64) => EndpointChange,
        drafts: DraftId => DraftRow,
        draft_entries: (DraftId, EntryKind, String) => EntryOfDraft,
        claims: IngestionId => ClaimRow,
        fragments: FragmentRevisionId => Fragment,
        import_bases: ImportBaseRevisionId => ImportBaseRow,
        imports: ImportBaseRevisionId => Import,
        profiles: ProfileRevisionId => ProfileRevisionRow,
        assignments: AssignmentRevisionId => AssignmentRevisionRow,
        references: SourceRevisionId => References,
        heads: HeadId => Head,
    }
}

/// What cursors are sealed with. It has no Debug.
#[derive(Clone)]
pub struct CursorKey(pub [u8; 32]);

#[derive(Clone, Debug)]
pub struct Act {
    pub row: ActRow,
    pub key: Option<IdempotencyKey>,
}

/// An act's place in the order of recording.
#[derive(Clone, Copy, Debug)]
pub struct Sequence(pub i64);

#[derive(Clone, Debug)]
pub struct Idempotent {
    pub principal: PrincipalId,
    pub key: IdempotencyKey,
    pub record: IdempotencyRecord,
    pub at: DbTime,
}

#[derive(Clone, Debug)]
pub struct TokenOf {
    pub token: Token,
    pub issued_at: DbTime,
}

/// A fragment revision with whose it is. Its declarations are whole once its references are
/// inserted, which its own transaction does.
#[derive(Clone)]
pub struct Fragment {
    pub row: FragmentRevisionRow,
    pub draft: DraftId,
    pub claim: IngestionId,
}

/// What an import base's row does not show: whose it is, and its baseline.
#[derive(Clone)]
pub struct Import {
    pub draft: DraftId,
    pub claim: IngestionId,
    pub adoption: bool,
    pub baseline: Baseline,
}

/// The reference rows of a revision.
#[derive(Clone, Debug)]
pub struct References {
    pub cluster: ClusterId,
    pub rows: BTreeMap<reference::Name, ReferenceRow>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub row: HeadRow,
    pub kind: HeadKind,
}

impl Row<()> for CursorKey {}
impl Row<ActId> for Sequence {}
impl Row<PrincipalId> for DbTime {}
impl Row<ClusterId> for ClusterRow {}
impl Row<(MachineId, i64)> for EndpointChange {}
impl Row<FragmentRevisionId> for Fragment {}
impl Row<ImportBaseRevisionId> for Import {}
impl Row<ProfileRevisionId> for ProfileRevisionRow {}
impl Row<AssignmentRevisionId> for AssignmentRevisionRow {}

/// Leaves an empty database as `bronzeward migrate` does: the installation's row with its
/// first epoch, and the key that cursors are sealed with.
pub fn found(state: &mut State, epoch: EpochId, cursor_key: [u8; 32]) -> Result<(), StoreError> {
    let now = state.sched.now();
    let db = &mut state.db;
    let id = db.begin(ProcessId::WORLD, now);
    let installation = Installation {
        epoch,
        recovery_mode: false,
    };
    db.put(id, |t| &mut t.authoring.installation, (), installation);
    let key = CursorKey(cursor_key);
    db.put(id, |t| &mut t.authoring.cursor_key, (), key);
    state.commit(id)
}

#[cfg(test)]
mod tests;
