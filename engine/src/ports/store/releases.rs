//! Releases, what a publication reads for one, and the versions it depends on (PA §6.2,
//! IC §9, DM §5.2).
//!
//! A release is written once, by T3. Never in this module: a plaintext configuration, or a
//! value of a reference.

use std::collections::BTreeSet;
use std::future::Future;

use bronzeward_core::canonical::Digest;
use bronzeward_core::dependency::Classification;
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::head::Layer;
use bronzeward_core::id::{
    AssignmentRevisionId, ClusterId, DependencyId, DraftId, EpochId, FragmentRevisionId, HeadId,
    ImportBaseRevisionId, MachineId, ObservationId, OperationId, ReleaseId,
};
use bronzeward_core::inventory::Platform;
use bronzeward_core::principal::Signed;
use bronzeward_core::reference::{Encoding, Version};
use bronzeward_core::release::{BoundDraft, MachineType, RendererRecord, StatusRow, TransitKey};
use bronzeward_core::revision::{Etag, EtagToken, Revision};
use bronzeward_core::time::DbTime;

use super::{Guard, HeadKind, Page, Paged, StoreError, Written};
use crate::ports::provider::Ciphertext;
use crate::rows::SourceRevisionId;

/// A version of a provider's object, told apart by its creation time as a status row spells
/// it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// A path below the mount, or a Transit key's name.
    pub object: String,
    pub version: i64,
    pub created: String,
}

/// A version's first status, as publication classified it (DM §5.2). It is retained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    pub id: DependencyId,
    pub kv: bool,
    pub dependency: Dependency,
    pub classification: Classification,
    /// A database time read just before the classification was asked for.
    pub classified_from: DbTime,
}

/// A head the release used or moved, as it leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseSourceRow {
    pub head: HeadId,
    pub kind: HeadKind,
    pub subject: String,
    pub revision: Option<SourceRevisionId>,
    pub head_revision: Revision,
}

/// What became of one occurrence: a leaf of the output, or the fragment that overrode it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Output(String),
    Overridden(FragmentRevisionId, Digest),
}

/// One provenance record (IC §8.2); its paths are redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenanceRow {
    pub version: Version,
    pub encoding: Option<Encoding>,
    pub member: Option<i32>,
    pub source: SourceRevisionId,
    pub source_digest: Digest,
    pub path: String,
    pub occurrence: i32,
    pub outcome: Outcome,
}

/// One reproduction dependency (IC §9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReproductionRow {
    pub version: Version,
    pub dependency: Dependency,
    pub source: SourceRevisionId,
    pub source_digest: Digest,
    pub path: String,
    pub occurrence: i32,
}

/// A machine of a release as it is written.
#[derive(Clone, Debug)]
pub struct NewReleaseMachine {
    pub machine: MachineId,
    pub import_base: ImportBaseRevisionId,
    /// Its assignment head, if it has one, and that head's revision.
    pub assignment: Option<(HeadId, Option<AssignmentRevisionId>)>,
    pub machine_type: MachineType,
    pub platform: Platform,
    pub configuration_digest: ConfigDigest,
    pub ciphertext: Ciphertext,
    pub key: TransitKey,
    /// The redacted configuration, or the notice that stands for it.
    pub review: Result<String, &'static str>,
    pub validated_at: DbTime,
    pub observation: ObservationId,
    pub provenance: Vec<ProvenanceRow>,
    pub effective: Vec<(Version, Dependency)>,
    pub reproduction: Vec<ReproductionRow>,
}

/// A release as it is written, whole.
#[derive(Clone, Debug)]
pub struct NewRelease {
    pub id: ReleaseId,
    pub cluster: ClusterId,
    pub bound: BoundDraft,
    pub operation: OperationId,
    pub digest: Digest,
    pub renderer: RendererRecord,
    pub by: Signed,
    pub epoch: EpochId,
    pub sources: Vec<ReleaseSourceRow>,
    pub machines: Vec<NewReleaseMachine>,
}

/// A head that a publication introduces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewHead {
    pub id: HeadId,
    pub cluster: ClusterId,
    pub kind: HeadKind,
    pub subject: String,
    pub layer: Option<Layer>,
    pub revision: SourceRevisionId,
    pub etag: Etag,
}

/// A release without its machines' artifacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseRow {
    pub id: ReleaseId,
    pub cluster: ClusterId,
    pub draft: DraftId,
    pub draft_revision: Revision,
    pub operation: OperationId,
    pub digest: [u8; 32],
    pub renderer: RendererRecord,
    pub by: Signed,
    pub at: DbTime,
}

/// A machine of a release: everything of it but the provenance.
#[derive(Clone, Debug)]
pub struct ReleaseMachineRow {
    pub release: ReleaseId,
    pub machine: MachineId,
    pub import_base: ImportBaseRevisionId,
    pub assignment: Option<(HeadId, Option<AssignmentRevisionId>)>,
    pub machine_type: MachineType,
    pub platform: Platform,
    pub configuration_digest: ConfigDigest,
    pub ciphertext: Ciphertext,
    pub key_name: String,
    pub key_version: i64,
    /// The redacted configuration, or the notice that stands for it.
    pub review: Result<String, String>,
    pub observation: ObservationId,
}

pub trait ReleaseReads {
    fn release(
        &mut self,
        id: ReleaseId,
    ) -> impl Future<Output = Result<Option<ReleaseRow>, StoreError>> + Send;

    fn releases(
        &mut self,
        page: &Page<ReleaseId>,
    ) -> impl Future<Output = Result<Paged<ReleaseRow>, StoreError>> + Send;

    /// By kind and subject.
    fn release_sources(
        &mut self,
        release: ReleaseId,
    ) -> impl Future<Output = Result<Vec<ReleaseSourceRow>, StoreError>> + Send;

    /// By machine.
    fn release_machines(
        &mut self,
        release: ReleaseId,
    ) -> impl Future<Output = Result<Vec<ReleaseMachineRow>, StoreError>> + Send;

    fn release_machine(
        &mut self,
        release: ReleaseId,
        machine: MachineId,
    ) -> impl Future<Output = Result<Option<ReleaseMachineRow>, StoreError>> + Send;

    /// In the order in which they were written.
    fn provenance(
        &mut self,
        release: ReleaseId,
        machine: MachineId,
    ) -> impl Future<Output = Result<Vec<ProvenanceRow>, StoreError>> + Send;

    /// The release of a draft revision: its natural key (PA §7.3).
    fn release_of(
        &mut self,
        bound: BoundDraft,
    ) -> impl Future<Output = Result<Option<ReleaseRow>, StoreError>> + Send;

    /// The import base of each machine's Applied release (PA §3.2).
    fn applied_bases(
        &mut self,
        cluster: ClusterId,
    ) -> impl Future<Output = Result<Vec<(MachineId, ImportBaseRevisionId)>, StoreError>> + Send;

    /// The operation that holds each machine's scope, of a cluster's machines.
    fn scope_holders(
        &mut self,
        cluster: ClusterId,
    ) -> impl Future<Output = Result<Vec<(MachineId, OperationId)>, StoreError>> + Send;

    /// The status rows of provider objects, every version and creation time, by identifier.
    fn statuses(
        &mut self,
        objects: &BTreeSet<String>,
    ) -> impl Future<Output = Result<Vec<StatusRow>, StoreError>> + Send;
}

pub trait ReleaseWrites {
    /// Inserts each version that has no row yet, in the order of object, version and creation
    /// time (DM §5.2).
    fn seed_statuses(
        &mut self,
        seeds: &[Seed],
        at: DbTime,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// `statuses` FOR SHARE, to the transaction's end.
    fn hold_statuses(
        &mut self,
        objects: &BTreeSet<String>,
    ) -> impl Future<Output = Result<Vec<StatusRow>, StoreError>> + Send;

    /// The release, its machines, sources, provenance and dependencies. Their checks run at
    /// the commit.
    fn insert_release(
        &mut self,
        release: &NewRelease,
        at: DbTime,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// `Unique("head_name_key")` where another publication introduced the name first.
    fn insert_head(
        &mut self,
        head: &NewHead,
        at: DbTime,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Moves a head to a revision, or to none, one head revision on.
    fn advance_head(
        &mut self,
        head: HeadId,
        guard: &Guard,
        revision: Option<SourceRevisionId>,
        token: EtagToken,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// Selects the release as Desired of machines whose states are held FOR UPDATE.
    fn set_desired(
        &mut self,
        machines: &BTreeSet<MachineId>,
        release: ReleaseId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn publish_draft(
        &mut self,
        draft: DraftId,
        guard: &Guard,
        release: ReleaseId,
        token: EtagToken,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;
}
