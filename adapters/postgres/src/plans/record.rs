//! A plan's row and its state's row, both ways.

use std::sync::Arc;

use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::head::AssignmentAt;
use bronzeward_core::id::{ActId, ImportBaseRevisionId};
use bronzeward_core::inventory::{
    Endpoint, IdentityKey, MachineIdentity, SmbiosUuid, TalosClusterId, TalosNodeId,
};
use bronzeward_core::plan::{
    AnyPlan, Approval, Approved, Binding, Cancelled, Committed, Deadlines, Expired, Plan,
    PlanOperation, Proposed, Revoked, RevokedBy,
};
use bronzeward_core::problem::Member;
use bronzeward_core::release::{Contract, RendererRecord, TransitKey};
use bronzeward_core::revision::{BaselineRevision, Revision, TimelineRevision};
use bronzeward_core::time::{DbTime, Span};
use bronzeward_engine::ports::store::PlanRow;
use diesel::prelude::*;

use crate::convert::{Out, digest, fault, id, json, member, opt_id, signed};
use crate::schema::{plan, plan_state};
use crate::time::Stamp;

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = plan)]
pub(super) struct PlanRecord {
    pub(super) id: String,
    cluster_id: String,
    machine_id: String,
    release_id: String,
    operation: String,
    mode: Option<String>,
    configuration_digest: Vec<u8>,
    contract: String,
    machinery_version: String,
    machinery_checksum: String,
    kubernetes_version: String,
    key_name: String,
    key_version: i64,
    key_created: String,
    smbios_uuid: Option<String>,
    talos_node_id: Option<String>,
    talos_cluster_id: String,
    assignment_head_id: Option<String>,
    assignment_head_revision: Option<i64>,
    assignment_revision_id: Option<String>,
    import_base_revision_id: String,
    baseline_revision: Option<i64>,
    desired_release: Option<String>,
    applied_release: Option<String>,
    predispatch_digest: Option<Vec<u8>>,
    drift_revision: Option<i64>,
    route: String,
    max_observation_age_s: i32,
    check_validity_s: i32,
    transport_deadline_s: Option<i32>,
    verification_deadline_s: Option<i32>,
    max_attempts: Option<i32>,
    evidence: serde_json::Value,
    timeline_revision: i64,
    principal_id: String,
    role: String,
    epoch: String,
    act_id: String,
    created_at: Stamp,
    expires_at: Stamp,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = plan_state)]
pub(super) struct StateRecord {
    state: String,
    reason: Option<String>,
    pub(super) approval_id: Option<String>,
    operation_id: Option<String>,
    revision: i64,
}

/// A key version's creation time: whole seconds, or RFC 3339 as a dependency row may have it.
pub(super) fn key_created(text: &str) -> Out<i64> {
    match text.parse() {
        Ok(seconds) => Ok(seconds),
        Err(_) => DbTime::parse_rfc3339(text)
            .map(DbTime::as_seconds)
            .map_err(|_| fault()),
    }
}

fn seconds(length: Span) -> Out<i32> {
    i32::try_from(length.as_seconds()).map_err(|_| fault())
}

fn span(seconds: i32) -> Span {
    Span::seconds(i64::from(seconds))
}

fn config_digest(bytes: &[u8]) -> Out<ConfigDigest> {
    digest(bytes).map(ConfigDigest::from_bytes)
}

impl PlanRecord {
    pub(super) fn of(
        binding: &Binding,
        import_base: ImportBaseRevisionId,
        evidence: &Member,
        act: ActId,
    ) -> Out<Self> {
        let deadlines = binding.deadlines();
        let (smbios_uuid, talos_node_id) = match &binding.identity.key {
            IdentityKey::SmbiosUuid(uuid) => (Some(uuid.as_str().to_owned()), None),
            IdentityKey::TalosNodeId(node) => (None, Some(node.as_str().to_owned())),
        };
        let before = binding.pre_dispatch_digest.as_bytes().to_vec();
        Ok(Self {
            id: binding.id.to_string(),
            cluster_id: binding.cluster.to_string(),
            machine_id: binding.machine.to_string(),
            release_id: binding.release.to_string(),
            operation: binding.operation.as_str().to_owned(),
            mode: deadlines.map(|_| "no-reboot".to_owned()),
            configuration_digest: binding.artifact_digest.as_bytes().to_vec(),
            contract: binding.renderer.contract.to_string(),
            machinery_version: binding.renderer.machinery_version.clone(),
            machinery_checksum: binding.renderer.machinery_checksum.clone(),
            kubernetes_version: binding.renderer.kubernetes_version.clone(),
            key_name: binding.key.name.clone(),
            key_version: binding.key.version,
            key_created: binding.key.created.to_string(),
            smbios_uuid,
            talos_node_id,
            talos_cluster_id: binding.identity.talos_cluster.as_str().to_owned(),
            assignment_head_id: binding.assignment.map(|at| at.head.to_string()),
            assignment_head_revision: binding.assignment.map(|at| at.revision.0),
            assignment_revision_id: binding.assignment_revision.map(|id| id.to_string()),
            import_base_revision_id: import_base.to_string(),
            baseline_revision: binding.baseline.map(|baseline| baseline.0),
            desired_release: binding.desired.map(|release| release.to_string()),
            applied_release: binding.applied_release.map(|release| release.to_string()),
            // An adopt plan expects its import base's own digest.
            predispatch_digest: deadlines.map(|_| before),
            drift_revision: binding.drift.map(|drift| drift.0),
            route: binding.route.to_string(),
            max_observation_age_s: seconds(binding.max_observation_age)?,
            check_validity_s: seconds(binding.check_validity)?,
            transport_deadline_s: deadlines.map(|it| seconds(it.transport)).transpose()?,
            verification_deadline_s: deadlines.map(|it| seconds(it.verification)).transpose()?,
            max_attempts: deadlines.map(|it| i32::from(it.max_attempts)),
            evidence: json(evidence),
            timeline_revision: binding.timeline_revision.0,
            principal_id: binding.created_by.principal.to_string(),
            role: binding.created_by.role.as_str().to_owned(),
            epoch: binding.epoch.to_string(),
            act_id: act.to_string(),
            created_at: Stamp(binding.created_at),
            expires_at: Stamp(binding.expires_at),
        })
    }

    fn plan_operation(&self, import_base: ConfigDigest) -> Out<PlanOperation> {
        match (
            self.operation.as_str(),
            self.transport_deadline_s,
            self.verification_deadline_s,
            self.max_attempts,
        ) {
            ("apply-config", Some(transport), Some(verification), Some(attempts)) => {
                Ok(PlanOperation::ApplyConfig(Deadlines {
                    transport: span(transport),
                    verification: span(verification),
                    max_attempts: u8::try_from(attempts).map_err(|_| fault())?,
                }))
            }
            ("adopt", None, None, None) => Ok(PlanOperation::Adopt {
                import_base: id(&self.import_base_revision_id)?,
                import_base_digest: import_base,
            }),
            _ => Err(fault()),
        }
    }

    fn identity(&self) -> Out<MachineIdentity> {
        let key = match (&self.smbios_uuid, &self.talos_node_id) {
            (Some(uuid), None) => {
                IdentityKey::SmbiosUuid(SmbiosUuid::parse(uuid).map_err(|_| fault())?)
            }
            (None, Some(node)) => {
                IdentityKey::TalosNodeId(TalosNodeId::parse(node).map_err(|_| fault())?)
            }
            _ => return Err(fault()),
        };
        let talos_cluster = TalosClusterId::parse(&self.talos_cluster_id).map_err(|_| fault())?;
        Ok(MachineIdentity { key, talos_cluster })
    }

    fn binding(&self, import_base: &[u8]) -> Out<Binding> {
        let import_base = config_digest(import_base)?;
        let assignment = match (&self.assignment_head_id, self.assignment_head_revision) {
            (Some(head), Some(revision)) => Some(AssignmentAt {
                head: id(head)?,
                revision: Revision(revision),
            }),
            (None, None) => None,
            _ => return Err(fault()),
        };
        Ok(Binding {
            id: id(&self.id)?,
            cluster: id(&self.cluster_id)?,
            machine: id(&self.machine_id)?,
            release: id(&self.release_id)?,
            operation: self.plan_operation(import_base)?,
            artifact_digest: config_digest(&self.configuration_digest)?,
            renderer: RendererRecord {
                contract: Contract::parse(&self.contract).ok_or_else(fault)?,
                machinery_version: self.machinery_version.clone(),
                machinery_checksum: self.machinery_checksum.clone(),
                kubernetes_version: self.kubernetes_version.clone(),
            },
            key: TransitKey {
                name: self.key_name.clone(),
                version: self.key_version,
                created: key_created(&self.key_created)?,
            },
            identity: self.identity()?,
            assignment,
            assignment_revision: opt_id(self.assignment_revision_id.as_deref())?,
            baseline: self.baseline_revision.map(BaselineRevision),
            desired: opt_id(self.desired_release.as_deref())?,
            applied_release: opt_id(self.applied_release.as_deref())?,
            pre_dispatch_digest: match &self.predispatch_digest {
                Some(bytes) => config_digest(bytes)?,
                None => import_base,
            },
            drift: self.drift_revision.map(TimelineRevision),
            route: Endpoint::parse(&self.route).map_err(|_| fault())?,
            max_observation_age: span(self.max_observation_age_s),
            check_validity: span(self.check_validity_s),
            created_by: signed(&self.principal_id, &self.role)?,
            epoch: id(&self.epoch)?,
            timeline_revision: TimelineRevision(self.timeline_revision),
            created_at: self.created_at.0,
            expires_at: self.expires_at.0,
        })
    }

    /// With its state: `approval` is the one the state row names.
    pub(super) fn row(
        self,
        state: &StateRecord,
        import_base: &[u8],
        approval: Option<Approval>,
        approver_revoked_at: Option<DbTime>,
        cancelled: bool,
    ) -> Out<PlanRow> {
        let binding = Arc::new(self.binding(import_base)?);
        let revision = Revision(state.revision);
        let named = approval.as_ref().map(|approval| approval.id);
        let plan = match (state.state.as_str(), approval) {
            ("proposed", None) => AnyPlan::Proposed(Plan::from_row(binding, revision, Proposed)),
            ("approved", Some(approval)) => {
                AnyPlan::Approved(Plan::from_row(binding, revision, Approved { approval }))
            }
            ("committed", Some(approval)) => {
                let operation = opt_id(state.operation_id.as_deref())?.ok_or_else(fault)?;
                let committed = Committed {
                    operation,
                    approval,
                    cancelled,
                };
                AnyPlan::Committed(Plan::from_row(binding, revision, committed))
            }
            ("revoked", _) => {
                let by = state.reason.as_deref().and_then(RevokedBy::parse);
                let by = by.ok_or_else(fault)?;
                AnyPlan::Revoked(Plan::from_row(binding, revision, Revoked { by }))
            }
            ("cancelled", None) => AnyPlan::Cancelled(Plan::from_row(binding, revision, Cancelled)),
            ("expired", _) => AnyPlan::Expired(Plan::from_row(binding, revision, Expired)),
            _ => return Err(fault()),
        };
        Ok(PlanRow {
            plan,
            approval: named,
            approver_revoked_at,
            evidence: member(&self.evidence)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_versions_creation_time_reads_the_same_in_both_spellings() {
        assert_eq!(key_created("1767225600").ok(), Some(1_767_225_600));
        assert_eq!(
            key_created("2026-01-01T00:00:00Z").ok(),
            Some(1_767_225_600)
        );
        assert!(key_created("yesterday").is_err());
    }
}
