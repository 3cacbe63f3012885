//! Tables of what is authored: installation, principals, inventory, drafts, sources, claims.

use std::collections::BTreeMap;

use bronzeward_core::id::{
    ActId, AssignmentRevisionId, ClusterId, DraftId, FragmentRevisionId, HeadId,
    ImportBaseRevisionId, IngestionId, MachineId, PrincipalId, ProfileRevisionId, TokenId,
};
use bronzeward_core::installation::Installation;
use bronzeward_core::principal::Principal;
use bronzeward_core::reference;
use bronzeward_core::time::DbTime;
use bronzeward_core::token::Token;
use bronzeward_engine::ports::store::{
    AssignmentRevisionRow, EndpointChange, EntryKind, EntryOfDraft, FragmentRevisionRow, HeadKind,
    ImportBaseRow, ProfileRevisionRow, ReferenceRow,
};
use bronzeward_engine::rows::{
    ClaimRow, DraftRow, HeadRow, MachineRow, MachineStateRow, SourceRevisionId,
};

use crate::pg::Row;
use crate::pg::tables::tables;

tables! {
    /// Installation, principals, inventory, drafts, sources and claims.
    Authoring {
        installation: () => Installation,
        act_order: ActId => Sequence,
        principals: PrincipalId => Principal,
        identity_revocations: PrincipalId => DbTime,
        tokens: TokenId => TokenOf,
        machines: MachineId => MachineRow,
        machine_states: MachineId => MachineStateRow,
        endpoint_changes: (MachineId, i64) => EndpointChange,
        drafts: DraftId => DraftRow,
        draft_entries: (DraftId, EntryKind, String) => EntryOfDraft,
        claims: IngestionId => ClaimRow,
        fragments: FragmentRevisionId => Fragment,
        import_bases: ImportBaseRevisionId => ImportBaseRow,
        profiles: ProfileRevisionId => ProfileRevisionRow,
        assignments: AssignmentRevisionId => AssignmentRevisionRow,
        references: SourceRevisionId => References,
        heads: HeadId => Head,
    }
}

/// An act's place in the order of recording.
#[derive(Clone, Copy, Debug)]
pub struct Sequence(pub i64);

#[derive(Clone, Debug)]
pub struct TokenOf {
    pub token: Token,
    pub issued_at: DbTime,
}

/// A fragment revision with whose it is.
#[derive(Clone)]
pub struct Fragment {
    pub row: FragmentRevisionRow,
    pub draft: DraftId,
    pub claim: IngestionId,
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

impl Row<ActId> for Sequence {}
impl Row<PrincipalId> for DbTime {}
impl Row<PrincipalId> for Principal {}
impl Row<TokenId> for TokenOf {}
impl Row<(MachineId, i64)> for EndpointChange {}
impl Row<(DraftId, EntryKind, String)> for EntryOfDraft {}
impl Row<FragmentRevisionId> for Fragment {}
impl Row<ImportBaseRevisionId> for ImportBaseRow {}
impl Row<ProfileRevisionId> for ProfileRevisionRow {}
impl Row<AssignmentRevisionId> for AssignmentRevisionRow {}
impl Row<SourceRevisionId> for References {}
impl Row<HeadId> for Head {}
