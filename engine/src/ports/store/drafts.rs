//! Drafts (PA §3.1). Their entries, revisions and heads are `sources`.

use std::future::Future;

use bronzeward_core::id::{ClusterId, DraftId, EpochId, OperationId};
use bronzeward_core::principal::Actor;
use bronzeward_core::revision::{Etag, EtagToken};
use bronzeward_core::time::DbTime;

use super::{Guard, Page, Paged, StoreError, Written};
use crate::rows::{DraftRow, SourceRevisionId};

#[derive(Clone, Debug)]
pub struct NewDraft {
    pub id: DraftId,
    pub cluster: ClusterId,
    pub title: String,
    pub etag: Etag,
    pub by: Actor,
    pub epoch: EpochId,
}

/// What an entry proposes for: a name, or a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    ImportBase,
    Fragment,
    Profile,
    Assignment,
}

impl EntryKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ImportBase => "import-base",
            Self::Fragment => "fragment",
            Self::Profile => "profile",
            Self::Assignment => "assignment",
        }
    }
}

/// One entry of a draft, in the order drafts are answered: import bases by machine, then
/// fragments, profiles and assignments by name or machine (PA §9.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryOfDraft {
    pub kind: EntryKind,
    /// The name, or the machine's identifier.
    pub subject: String,
    /// The head and the head revision it was edited from; none when it introduces the name.
    pub base: Option<(crate::rows::HeadId, i64)>,
    /// None proposes the removal.
    pub revision: Option<SourceRevisionId>,
}

pub trait DraftReads {
    fn draft(
        &mut self,
        id: DraftId,
    ) -> impl Future<Output = Result<Option<DraftRow>, StoreError>> + Send;

    fn drafts(
        &mut self,
        page: &Page<DraftId>,
    ) -> impl Future<Output = Result<Paged<DraftRow>, StoreError>> + Send;

    fn draft_entries(
        &mut self,
        id: DraftId,
    ) -> impl Future<Output = Result<Vec<EntryOfDraft>, StoreError>> + Send;

    /// The publish operation queued or running for the draft, at any revision of it.
    fn active_publication(
        &mut self,
        draft: DraftId,
    ) -> impl Future<Output = Result<Option<OperationId>, StoreError>> + Send;
}

pub trait DraftWrites {
    fn insert_draft(
        &mut self,
        draft: &NewDraft,
        at: DbTime,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Sets or replaces the entry of a draft held FOR UPDATE.
    fn set_draft_entry(
        &mut self,
        draft: DraftId,
        entry: &EntryOfDraft,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The compare-and-set of PA §4: revision + 1 under a fresh token.
    fn advance_draft(
        &mut self,
        draft: DraftId,
        guard: &Guard,
        token: EtagToken,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// `advance_draft` into `discarded`.
    fn discard_draft(
        &mut self,
        draft: DraftId,
        guard: &Guard,
        token: EtagToken,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;
}
