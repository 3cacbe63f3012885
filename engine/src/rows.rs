//! Rows as lock calls return them: typed, flat, and without a decision.
//!
//! A family's further rows live beside its store traits. Conversions from the
//! database's spelling are the adapter's; an unknown spelling is its fault to report.

use bronzeward_core::fence::Fence;
pub use bronzeward_core::id::HeadId;
use bronzeward_core::id::{
    ApprovalId, AssignmentRevisionId, ClusterId, DraftId, EpochId, FragmentRevisionId,
    ImportBaseRevisionId, IngestionId, MachineId, OperationId, PlanId, ProfileRevisionId,
    ReleaseId, TokenId,
};
use bronzeward_core::inventory::{Endpoint, IdentityKey, Platform, TalosClusterId};
use bronzeward_core::principal::Principal;
pub use bronzeward_core::principal::Signed;
use bronzeward_core::revision::{BaselineRevision, Etag, Revision, TimelineRevision};
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::DbTime;

/// A machine with its state row and what of its cluster every act needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineRow {
    pub id: MachineId,
    pub cluster: ClusterId,
    pub talos_cluster: TalosClusterId,
    pub key: IdentityKey,
    pub serial: Option<String>,
    pub platform: Platform,
    pub endpoint: Endpoint,
    pub frozen: bool,
    pub scope: ScopeState,
    /// The revision of the latest entry of the machine's timeline; 0 while it has none.
    pub timeline: TimelineRevision,
    pub created_at: DbTime,
    pub state: MachineStateRow,
}

/// Desired, Applied and the baseline revision (EaR 1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineStateRow {
    pub desired: Option<ReleaseId>,
    pub applied: Option<AppliedRow>,
    pub revision: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedRow {
    pub release: ReleaseId,
    pub digest: [u8; 32],
    pub source: AppliedSource,
    pub operation: OperationId,
    pub baseline: BaselineRevision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliedSource {
    Operation,
    Adoption,
}

/// A source revision of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceRevisionId {
    Assignment(AssignmentRevisionId),
    Fragment(FragmentRevisionId),
    ImportBase(ImportBaseRevisionId),
    Profile(ProfileRevisionId),
}

impl std::fmt::Display for SourceRevisionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Assignment(id) => id.fmt(f),
            Self::Fragment(id) => id.fmt(f),
            Self::ImportBase(id) => id.fmt(f),
            Self::Profile(id) => id.fmt(f),
        }
    }
}

/// A head (PA §3.1). `subject` is a name, or a machine's identifier for an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadRow {
    pub id: HeadId,
    pub cluster: ClusterId,
    pub subject: String,
    pub layer: Option<String>,
    /// None once a publication removed it.
    pub revision: Option<SourceRevisionId>,
    /// The head revision and its token.
    pub etag: Etag,
    pub created_at: DbTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftStateRow {
    Open,
    Published(ReleaseId),
    Discarded,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftRow {
    pub id: DraftId,
    pub cluster: ClusterId,
    pub title: String,
    pub state: DraftStateRow,
    pub etag: Etag,
    pub created_by: Signed,
    pub created_at: DbTime,
}

/// A staging claim as stored (IC §3.2); how a read treats it is `core::claim`'s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRow {
    pub id: IngestionId,
    /// `import`, `drift-adoption` or `draft-update`.
    pub kind: String,
    /// `transient` or `encrypted`.
    pub mode: String,
    /// `machine` or `document`.
    pub source: String,
    /// `held`, `paused`, `resumed`, `released` or `abandoned`.
    pub state: String,
    /// `pending` or `continued`; none when no review was requested.
    pub review: Option<String>,
    pub cluster: ClusterId,
    pub draft: DraftId,
    pub machine: Option<MachineId>,
    pub by: Signed,
    pub idempotency_key: Option<String>,
    pub fence: Fence,
    /// The epoch the claim was created in.
    pub epoch: EpochId,
    pub lease_until: DbTime,
    pub expires_at: DbTime,
    pub created_at: DbTime,
    /// The envelope's ciphertext and the SHA-256 of its plaintext.
    pub payload: Option<(String, [u8; 32])>,
}

/// A principal and, for a service identity, its unrevoked token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrincipalRow {
    pub principal: Principal,
    pub token: Option<TokenId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRow {
    pub id: ApprovalId,
    pub plan: PlanId,
    pub machine: MachineId,
    pub by: Signed,
    pub epoch: EpochId,
    pub self_approval: Vec<String>,
    pub unseen_overwrite: bool,
    pub at: DbTime,
    pub revoked: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStateRow {
    pub plan: PlanId,
    pub state: String,
    pub reason: Option<String>,
    pub approval: Option<ApprovalId>,
    pub operation: Option<OperationId>,
    pub revision: Revision,
}

/// An operation of any kind as stored (PA §8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationRow {
    pub id: OperationId,
    /// `publish`, `ingest`, `apply-config` or `adopt`.
    pub kind: String,
    pub state: String,
    /// None while a publish operation is queued for the first time.
    pub fence: Option<Fence>,
    pub lease_until: Option<DbTime>,
    pub cluster: ClusterId,
    pub machine: Option<MachineId>,
    pub plan: Option<PlanId>,
    pub draft: Option<(DraftId, Revision)>,
    pub claim: Option<IngestionId>,
    /// The revision and generation of a safe-to-retry classification in force.
    pub classified: Option<(TimelineRevision, i64)>,
    pub last_event: i64,
    pub result_release: Option<ReleaseId>,
    pub result_import_base: Option<ImportBaseRevisionId>,
    /// The stored problem of a failed publish or ingest operation, as JSON text.
    pub error: Option<String>,
    pub created_by: Option<Signed>,
    pub epoch: EpochId,
    pub created_at: DbTime,
}
