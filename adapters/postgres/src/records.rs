//! Rows in the database's spelling, and their conversion to the engine's.

use bronzeward_core::inventory::{
    Endpoint, IdentityKey, Platform, SmbiosUuid, TalosClusterId, TalosNodeId,
};
use bronzeward_core::principal::{Principal, Subject};
use bronzeward_core::revision::{BaselineRevision, Revision, TimelineRevision};
use bronzeward_core::scope::ScopeState;
use bronzeward_engine::ports::store::StoreError;
use bronzeward_engine::rows::{
    AppliedRow, AppliedSource, ApprovalRow, ClaimRow, DraftRow, DraftStateRow, HeadRow, MachineRow,
    MachineStateRow, OperationRow, PlanStateRow, PrincipalRow,
};
use diesel::prelude::*;

use crate::convert::{
    Out, digest, etag, fault, fence, head_id, id, opt_id, opt_signed, signed, source_revision,
};
use crate::schema;
use crate::time::Stamp;

#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = schema::machine)]
pub(crate) struct Machine {
    pub id: String,
    pub cluster_id: String,
    pub smbios_uuid: Option<String>,
    pub talos_node_id: Option<String>,
    pub serial: Option<String>,
    pub talos_endpoint: String,
    pub platform: String,
    pub frozen: bool,
    pub scope_state: String,
    pub scope_epoch: Option<String>,
    pub revision_counter: i64,
    pub created_at: Stamp,
}

#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = schema::machine_state)]
pub(crate) struct MachineState {
    pub machine_id: String,
    pub desired_release: Option<String>,
    pub applied_release: Option<String>,
    pub applied_digest: Option<Vec<u8>>,
    pub applied_source: Option<String>,
    pub applied_operation: Option<String>,
    pub baseline_revision: Option<i64>,
    pub revision: i64,
}

impl Machine {
    /// With its cluster's Talos id and its state.
    pub(crate) fn row(self, talos_cluster: &str, state: MachineState) -> Out<MachineRow> {
        let key = match (&self.smbios_uuid, &self.talos_node_id) {
            (Some(uuid), None) => {
                IdentityKey::SmbiosUuid(SmbiosUuid::parse(uuid).map_err(|_| fault())?)
            }
            (None, Some(node)) => {
                IdentityKey::TalosNodeId(TalosNodeId::parse(node).map_err(|_| fault())?)
            }
            _ => return Err(fault()),
        };
        let scope_epoch = opt_id(self.scope_epoch.as_deref())?;
        Ok(MachineRow {
            id: id(&self.id)?,
            cluster: id(&self.cluster_id)?,
            talos_cluster: TalosClusterId::parse(talos_cluster).map_err(|_| fault())?,
            key,
            serial: self.serial,
            platform: Platform::parse(&self.platform).map_err(|_| fault())?,
            endpoint: Endpoint::parse(&self.talos_endpoint).map_err(|_| fault())?,
            frozen: self.frozen,
            scope: ScopeState::from_row(&self.scope_state, scope_epoch).ok_or_else(fault)?,
            timeline: TimelineRevision(self.revision_counter),
            created_at: self.created_at.0,
            state: state.try_into()?,
        })
    }
}

impl TryFrom<MachineState> for MachineStateRow {
    type Error = StoreError;

    fn try_from(row: MachineState) -> Out<Self> {
        let applied = match (
            row.applied_release,
            row.applied_digest,
            row.applied_source,
            row.applied_operation,
            row.baseline_revision,
        ) {
            (Some(release), Some(bytes), Some(source), Some(operation), Some(baseline)) => {
                Some(AppliedRow {
                    release: id(&release)?,
                    digest: digest(&bytes)?,
                    source: match source.as_str() {
                        "operation" => AppliedSource::Operation,
                        "adoption" => AppliedSource::Adoption,
                        _ => return Err(fault()),
                    },
                    operation: id(&operation)?,
                    baseline: BaselineRevision(baseline),
                })
            }
            (None, None, None, None, None) => None,
            _ => return Err(fault()),
        };
        Ok(Self {
            desired: opt_id(row.desired_release.as_deref())?,
            applied,
            revision: row.revision,
        })
    }
}

#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = schema::head)]
pub(crate) struct Head {
    pub id: String,
    pub cluster_id: String,
    pub subject: String,
    pub layer: Option<String>,
    pub revision_id: Option<String>,
    pub head_revision: i64,
    pub etag_token: String,
    pub created_at: Stamp,
}

impl TryFrom<Head> for HeadRow {
    type Error = StoreError;

    fn try_from(row: Head) -> Out<Self> {
        Ok(Self {
            id: head_id(&row.id)?,
            cluster: id(&row.cluster_id)?,
            subject: row.subject,
            layer: row.layer,
            revision: row
                .revision_id
                .as_deref()
                .map(source_revision)
                .transpose()?,
            etag: etag(row.head_revision, &row.etag_token)?,
            created_at: row.created_at.0,
        })
    }
}

#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = schema::draft)]
pub(crate) struct Draft {
    pub id: String,
    pub cluster_id: String,
    pub title: String,
    pub state: String,
    pub revision: i64,
    pub etag_token: String,
    pub release_id: Option<String>,
    pub created_by: String,
    pub created_role: String,
    pub created_at: Stamp,
}

impl TryFrom<Draft> for DraftRow {
    type Error = StoreError;

    fn try_from(row: Draft) -> Out<Self> {
        let state = match (row.state.as_str(), row.release_id.as_deref()) {
            ("open", None) => DraftStateRow::Open,
            ("published", Some(release)) => DraftStateRow::Published(id(release)?),
            ("discarded", None) => DraftStateRow::Discarded,
            _ => return Err(fault()),
        };
        Ok(Self {
            id: id(&row.id)?,
            cluster: id(&row.cluster_id)?,
            title: row.title,
            state,
            etag: etag(row.revision, &row.etag_token)?,
            created_by: signed(&row.created_by, &row.created_role)?,
            created_at: row.created_at.0,
        })
    }
}

#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = schema::staging_claim)]
pub(crate) struct Claim {
    pub id: String,
    pub kind: String,
    pub mode: String,
    pub source: String,
    pub state: String,
    pub review: Option<String>,
    pub cluster_id: String,
    pub draft_id: String,
    pub machine_id: Option<String>,
    pub principal_id: String,
    pub role: String,
    pub idempotency_key: Option<String>,
    pub owner: String,
    pub owner_gen: i64,
    pub owner_epoch: String,
    pub epoch: String,
    pub lease_until: Stamp,
    pub expires_at: Stamp,
    pub created_at: Stamp,
    pub payload: Option<String>,
    pub payload_digest: Option<Vec<u8>>,
}

impl TryFrom<Claim> for ClaimRow {
    type Error = StoreError;

    fn try_from(row: Claim) -> Out<Self> {
        let payload = match (row.payload, row.payload_digest) {
            (Some(payload), Some(bytes)) => Some((payload, digest(&bytes)?)),
            (None, None) => None,
            _ => return Err(fault()),
        };
        Ok(Self {
            id: id(&row.id)?,
            kind: row.kind,
            mode: row.mode,
            source: row.source,
            state: row.state,
            review: row.review,
            cluster: id(&row.cluster_id)?,
            draft: id(&row.draft_id)?,
            machine: opt_id(row.machine_id.as_deref())?,
            by: signed(&row.principal_id, &row.role)?,
            idempotency_key: row.idempotency_key,
            fence: fence(&row.owner, row.owner_gen, &row.owner_epoch)?,
            epoch: id(&row.epoch)?,
            lease_until: row.lease_until.0,
            expires_at: row.expires_at.0,
            created_at: row.created_at.0,
            payload,
        })
    }
}

#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = schema::principal)]
pub(crate) struct PrincipalRecord {
    pub id: String,
    pub kind: String,
    pub iss: Option<String>,
    pub sub: Option<String>,
    pub name: Option<String>,
    pub display: Option<String>,
    pub responsible: Option<String>,
    pub revoked_at: Option<Stamp>,
    pub created_at: Stamp,
}

impl PrincipalRecord {
    /// The principal alone, where no token is asked for.
    pub(crate) fn principal(self) -> Out<Principal> {
        self.row(None).map(|row| row.principal)
    }

    pub(crate) fn row(self, token: Option<&str>) -> Out<PrincipalRow> {
        let subject = match (
            self.kind.as_str(),
            self.iss,
            self.sub,
            self.name,
            self.responsible,
        ) {
            ("human", Some(issuer), Some(subject), None, None) => {
                Subject::Human { issuer, subject }
            }
            ("service", None, None, Some(name), Some(responsible)) => Subject::Service {
                name,
                responsible: id(&responsible)?,
            },
            _ => return Err(fault()),
        };
        Ok(PrincipalRow {
            principal: Principal {
                id: id(&self.id)?,
                subject,
                display: self.display,
                created_at: self.created_at.0,
                revoked_at: self.revoked_at.map(|at| at.0),
            },
            token: opt_id(token)?,
        })
    }
}

#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = schema::approval)]
pub(crate) struct Approval {
    pub id: String,
    pub plan_id: String,
    pub machine_id: String,
    pub principal_id: String,
    pub role: String,
    pub epoch: String,
    pub self_approval_reasons: Vec<Option<String>>,
    pub unseen_overwrite: bool,
    pub at: Stamp,
}

impl Approval {
    pub(crate) fn row(self, revoked: bool) -> Out<ApprovalRow> {
        Ok(ApprovalRow {
            id: id(&self.id)?,
            plan: id(&self.plan_id)?,
            machine: id(&self.machine_id)?,
            by: signed(&self.principal_id, &self.role)?,
            epoch: id(&self.epoch)?,
            self_approval: self.self_approval_reasons.into_iter().flatten().collect(),
            unseen_overwrite: self.unseen_overwrite,
            at: self.at.0,
            revoked,
        })
    }
}

#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = schema::plan_state)]
pub(crate) struct PlanState {
    pub plan_id: String,
    pub state: String,
    pub reason: Option<String>,
    pub approval_id: Option<String>,
    pub operation_id: Option<String>,
    pub revision: i64,
}

impl TryFrom<PlanState> for PlanStateRow {
    type Error = StoreError;

    fn try_from(row: PlanState) -> Out<Self> {
        Ok(Self {
            plan: id(&row.plan_id)?,
            state: row.state,
            reason: row.reason,
            approval: opt_id(row.approval_id.as_deref())?,
            operation: opt_id(row.operation_id.as_deref())?,
            revision: Revision(row.revision),
        })
    }
}

#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = schema::operation)]
pub(crate) struct Operation {
    pub id: String,
    pub kind: String,
    pub state: String,
    pub owner: Option<String>,
    pub owner_gen: i64,
    pub owner_epoch: Option<String>,
    pub lease_until: Option<Stamp>,
    pub cluster_id: String,
    pub machine_id: Option<String>,
    pub plan_id: Option<String>,
    pub draft_id: Option<String>,
    pub draft_revision: Option<i64>,
    pub claim_id: Option<String>,
    pub classified_revision: Option<i64>,
    pub classified_gen: Option<i64>,
    pub last_event: i64,
    pub result_release: Option<String>,
    pub result_import_base: Option<String>,
    pub error: Option<serde_json::Value>,
    pub created_by: Option<String>,
    pub created_role: Option<String>,
    pub epoch: String,
    pub created_at: Stamp,
}

impl TryFrom<Operation> for OperationRow {
    type Error = StoreError;

    fn try_from(row: Operation) -> Out<Self> {
        let owner = match (row.owner.as_deref(), row.owner_epoch.as_deref()) {
            (Some(owner), Some(epoch)) => Some(fence(owner, row.owner_gen, epoch)?),
            (None, None) => None,
            _ => return Err(fault()),
        };
        let draft = match (row.draft_id.as_deref(), row.draft_revision) {
            (Some(draft), Some(revision)) => Some((id(draft)?, Revision(revision))),
            (None, None) => None,
            _ => return Err(fault()),
        };
        let classified = match (row.classified_revision, row.classified_gen) {
            (Some(revision), Some(generation)) => Some((TimelineRevision(revision), generation)),
            (None, None) => None,
            _ => return Err(fault()),
        };
        Ok(Self {
            id: id(&row.id)?,
            kind: row.kind,
            state: row.state,
            fence: owner,
            lease_until: row.lease_until.map(|at| at.0),
            cluster: id(&row.cluster_id)?,
            machine: opt_id(row.machine_id.as_deref())?,
            plan: opt_id(row.plan_id.as_deref())?,
            draft,
            claim: opt_id(row.claim_id.as_deref())?,
            classified,
            last_event: row.last_event,
            result_release: opt_id(row.result_release.as_deref())?,
            result_import_base: opt_id(row.result_import_base.as_deref())?,
            error: row.error.map(|error| error.to_string()),
            created_by: opt_signed(row.created_by.as_deref(), row.created_role.as_deref())?,
            epoch: id(&row.epoch)?,
            created_at: row.created_at.0,
        })
    }
}
