//! Source revisions and their heads: import bases, fragments, profiles, assignments
//! (PA §3.1, §3.2), and the references of texts.
//!
//! The draft transaction inserts revisions; only a publication moves a head. A text comes
//! in as [`Sanitized`] and no other way (IC §2.1). Never in this module: an input, a value.

use std::collections::BTreeSet;
use std::future::Future;

use bronzeward_core::envelope::{Baseline, Kept};
use bronzeward_core::head::{AssignmentContent, Layer, Name, ProfileContent};
use bronzeward_core::id::{
    AssignmentRevisionId, ClusterId, DraftId, EpochId, FragmentRevisionId, HeadId,
    ImportBaseRevisionId, IngestionId, MachineId, ProfileRevisionId,
};
use bronzeward_core::principal::Signed;
use bronzeward_core::reference::{self, Declaration, Declarations};
use bronzeward_core::sanitized::Sanitized;
use bronzeward_core::time::DbTime;

use super::{Page, Paged, StoreError};
use crate::rows::{HeadRow, SourceRevisionId};

/// The kinds that have heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeadKind {
    Fragment,
    Profile,
    Assignment,
}

impl HeadKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fragment => "fragment",
            Self::Profile => "profile",
            Self::Assignment => "assignment",
        }
    }
}

/// Who wrote a revision, for which draft, when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authorship {
    pub cluster: ClusterId,
    pub draft: DraftId,
    pub by: Signed,
    pub epoch: EpochId,
    pub at: DbTime,
}

#[derive(Clone, Debug)]
pub struct NewFragment {
    pub id: FragmentRevisionId,
    pub name: Name,
    pub layer: Layer,
    pub claim: IngestionId,
    pub written: Authorship,
}

#[derive(Clone)]
pub struct NewImportBase {
    pub id: ImportBaseRevisionId,
    pub machine: MachineId,
    /// A drift adoption's; an import's otherwise.
    pub adoption: bool,
    pub baseline: Baseline,
    pub claim: IngestionId,
    pub written: Authorship,
}

#[derive(Clone, Debug)]
pub struct NewProfile {
    pub id: ProfileRevisionId,
    pub name: Name,
    pub content: ProfileContent,
    pub written: Authorship,
}

#[derive(Clone, Debug)]
pub struct NewAssignment {
    pub id: AssignmentRevisionId,
    pub machine: MachineId,
    pub content: AssignmentContent,
    pub written: Authorship,
}

/// A revision's declared reference and where its value is kept (IC §5.2, §4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceRow {
    pub name: reference::Name,
    pub declaration: Declaration,
    pub kept: Kept,
}

/// A fragment revision as it is served and compiled.
#[derive(Clone)]
pub struct FragmentRevisionRow {
    pub id: FragmentRevisionId,
    pub cluster: ClusterId,
    pub name: Name,
    pub layer: Layer,
    pub document: String,
    pub declarations: Declarations,
    pub author: Signed,
    pub created_at: DbTime,
}

/// An import base revision as it is compiled: its baseline is read by nobody.
#[derive(Clone)]
pub struct ImportBaseRow {
    pub id: ImportBaseRevisionId,
    pub cluster: ClusterId,
    pub machine: MachineId,
    pub document: String,
    pub declarations: Declarations,
    pub configuration_digest: [u8; 32],
    pub author: Signed,
    pub created_at: DbTime,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileRevisionRow {
    pub id: ProfileRevisionId,
    pub cluster: ClusterId,
    pub name: Name,
    pub content: ProfileContent,
    pub author: Signed,
    pub created_at: DbTime,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignmentRevisionRow {
    pub id: AssignmentRevisionId,
    pub cluster: ClusterId,
    pub machine: MachineId,
    pub content: AssignmentContent,
    pub author: Signed,
    pub created_at: DbTime,
}

pub trait SourceReads {
    fn head(
        &mut self,
        id: HeadId,
    ) -> impl Future<Output = Result<Option<HeadRow>, StoreError>> + Send;

    fn heads(
        &mut self,
        kind: HeadKind,
        page: &Page<HeadId>,
    ) -> impl Future<Output = Result<Paged<HeadRow>, StoreError>> + Send;

    /// The heads of a kind by subject: names, or machine identifiers.
    fn heads_of(
        &mut self,
        cluster: ClusterId,
        kind: HeadKind,
        subjects: &BTreeSet<String>,
    ) -> impl Future<Output = Result<Vec<HeadRow>, StoreError>> + Send;

    /// The revisions of the given identifiers that exist, by identifier.
    fn fragment_revisions(
        &mut self,
        ids: &BTreeSet<FragmentRevisionId>,
    ) -> impl Future<Output = Result<Vec<FragmentRevisionRow>, StoreError>> + Send;

    fn import_base(
        &mut self,
        id: ImportBaseRevisionId,
    ) -> impl Future<Output = Result<Option<ImportBaseRow>, StoreError>> + Send;

    fn profile_revisions(
        &mut self,
        ids: &BTreeSet<ProfileRevisionId>,
    ) -> impl Future<Output = Result<Vec<ProfileRevisionRow>, StoreError>> + Send;

    fn assignment_revisions(
        &mut self,
        ids: &BTreeSet<AssignmentRevisionId>,
    ) -> impl Future<Output = Result<Vec<AssignmentRevisionRow>, StoreError>> + Send;

    /// The identifiers of a name's revisions, published or not, a page by identifier.
    fn revisions_of(
        &mut self,
        head: &HeadRow,
        after: Option<SourceRevisionId>,
        limit: u16,
    ) -> impl Future<Output = Result<Paged<SourceRevisionId>, StoreError>> + Send;

    /// The reference rows of a revision, by name.
    fn references(
        &mut self,
        revision: SourceRevisionId,
    ) -> impl Future<Output = Result<Vec<ReferenceRow>, StoreError>> + Send;

    /// Every reference row of a cluster under one of `names`.
    fn references_named(
        &mut self,
        cluster: ClusterId,
        names: &BTreeSet<reference::Name>,
    ) -> impl Future<Output = Result<Vec<ReferenceRow>, StoreError>> + Send;
}

pub trait SourceWrites {
    fn insert_fragment(
        &mut self,
        new: &NewFragment,
        text: &Sanitized,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn insert_import_base(
        &mut self,
        new: &NewImportBase,
        text: &Sanitized,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn insert_profile(
        &mut self,
        new: &NewProfile,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn insert_assignment(
        &mut self,
        new: &NewAssignment,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The references of a revision that this transaction inserted.
    fn insert_references(
        &mut self,
        revision: SourceRevisionId,
        cluster: ClusterId,
        rows: &[ReferenceRow],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
