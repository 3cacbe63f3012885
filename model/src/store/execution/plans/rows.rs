//! Plans' rows put together, and the locking SELECTs of approvals and plans' states.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::id::{ApprovalId, MachineId, PlanId, PrincipalId, ReleaseId};
use bronzeward_core::plan::{
    AnyPlan, Approval, Approved, Cancelled, Committed, Expired, Plan, Proposed,
    ReleaseMachineFacts, Revoked, RevokedBy,
};
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{LockMode, PlanRow, PlannedMachine, StoreError};
use bronzeward_engine::rows::{ApprovalRow, HeadId, PlanStateRow, SourceRevisionId};

use super::{ApprovalRecord, PlanRecord};
use crate::pg::session::Session;
use crate::pg::{Eye, Relation, Tables};
use crate::store::execution::statement::row;
use crate::store::execution::{Out, authored};

/// A plan with its state, as the first statement of its reading finds them.
pub(super) type Found = (Arc<PlanRecord>, Arc<PlanStateRow>);

pub(super) fn found(tables: &Tables, eye: Eye, of: &PlanId) -> Option<Found> {
    let plan = tables.execution.plans.arc(eye, of)?;
    let state = tables.execution.plan_states.arc(eye, of)?;
    Some((plan, state))
}

/// The row's state as a plan; a combination that the schema does not have is a fault.
fn whole(
    (record, state): &Found,
    approval: Option<Approval>,
    approver_revoked_at: Option<DbTime>,
    cancelled: bool,
) -> Out<PlanRow> {
    let binding = Arc::clone(&record.binding);
    let revision = state.revision;
    let named = approval.as_ref().map(|approval| approval.id);
    let plan = match (state.state.as_str(), approval) {
        ("proposed", None) => AnyPlan::Proposed(Plan::from_row(binding, revision, Proposed)),
        ("approved", Some(approval)) => {
            AnyPlan::Approved(Plan::from_row(binding, revision, Approved { approval }))
        }
        ("committed", Some(approval)) => {
            let committed = Committed {
                operation: state.operation.ok_or(StoreError::Fault)?,
                approval,
                cancelled,
            };
            AnyPlan::Committed(Plan::from_row(binding, revision, committed))
        }
        ("revoked", _) => {
            let by = state.reason.as_deref().and_then(RevokedBy::parse);
            let by = by.ok_or(StoreError::Fault)?;
            AnyPlan::Revoked(Plan::from_row(binding, revision, Revoked { by }))
        }
        ("cancelled", None) => AnyPlan::Cancelled(Plan::from_row(binding, revision, Cancelled)),
        ("expired", _) => AnyPlan::Expired(Plan::from_row(binding, revision, Expired)),
        _ => return Err(StoreError::Fault),
    };
    Ok(PlanRow {
        plan,
        approval: named,
        approver_revoked_at,
        evidence: record.evidence.clone(),
    })
}

impl Session {
    /// Each plan with its cancellation and its approval, in the order given: two statements
    /// after the one that found them.
    pub(super) async fn plan_rows(&mut self, records: Vec<Found>) -> Out<Vec<PlanRow>> {
        let cancelled: BTreeSet<PlanId> = self
            .read("read cancellations", |tables, eye| {
                let ids = records.iter().map(|(_, state)| state.plan);
                let cancelled = &tables.execution.cancellations;
                ids.filter(|id| cancelled.get(eye, id).is_some()).collect()
            })
            .await?;
        let mut approvals: BTreeMap<ApprovalId, (Approval, Option<DbTime>)> = self
            .read("read approvals", |tables, eye| {
                let ids = records.iter().filter_map(|(_, state)| state.approval);
                let joined = ids.filter_map(|id| {
                    let approval = tables.execution.approvals.get(eye, &id)?.approval.clone();
                    let approver = &approval.approver.principal;
                    let approver = tables.authoring.principals.get(eye, approver)?;
                    Some((id, (approval, approver.revoked_at)))
                });
                joined.collect()
            })
            .await?;
        let mut rows = Vec::with_capacity(records.len());
        for found in &records {
            let approval = found.1.approval.and_then(|id| approvals.remove(&id));
            let (approval, revoked_at) = approval.unzip();
            let cancelled = cancelled.contains(&found.1.plan);
            rows.push(whole(found, approval, revoked_at.flatten(), cancelled)?);
        }
        Ok(rows)
    }

    /// A locking SELECT of approvals, and whether each is revoked in a statement after it.
    pub(crate) async fn lock_approval_rows(
        &mut self,
        ids: &BTreeSet<ApprovalId>,
        mode: Option<LockMode>,
    ) -> Out<Vec<ApprovalRow>> {
        self.statement("lock approvals").await?;
        let lock = |id: &ApprovalId| row(Relation::Approval, *id);
        let rows = self
            .lock_kept::<_, ApprovalRecord>(ids.iter().copied(), lock, mode)
            .await?;
        self.read("read approvals' revocations", |tables, eye| {
            let revoked = &tables.execution.approval_revocations;
            let rows = rows.iter().map(|of| {
                let approval = &of.approval;
                let reasons = approval.self_approval.iter();
                ApprovalRow {
                    id: approval.id,
                    plan: approval.plan,
                    machine: of.machine,
                    by: approval.approver,
                    epoch: approval.epoch,
                    self_approval: reasons.map(|reason| reason.as_str().to_owned()).collect(),
                    unseen_overwrite: approval.unseen_overwrite,
                    at: approval.at,
                    revoked: revoked.get(eye, &approval.id).is_some(),
                }
            });
            rows.collect()
        })
        .await
    }

    /// A locking SELECT of plans' states.
    pub(crate) async fn lock_plan_state_rows(
        &mut self,
        ids: &BTreeSet<PlanId>,
        mode: Option<LockMode>,
    ) -> Out<Vec<PlanStateRow>> {
        self.statement("lock plan states").await?;
        let lock = |id: &PlanId| row(Relation::PlanState, *id);
        let rows = self
            .lock_kept::<_, PlanStateRow>(ids.iter().copied(), lock, mode)
            .await?;
        Ok(rows
            .iter()
            .map(|state| PlanStateRow::clone(state))
            .collect())
    }

    pub(super) async fn planned_machine(
        &mut self,
        of: ReleaseId,
        machine: MachineId,
    ) -> Out<Option<PlannedMachine>> {
        let row = self
            .read("read release's machine", |tables, eye| {
                let of = tables.execution.release_machines.arc(eye, &(of, machine))?;
                let base = tables
                    .authoring
                    .import_bases
                    .get(eye, &of.new.import_base)?;
                Some((of, ConfigDigest::from_bytes(base.configuration_digest)))
            })
            .await?;
        let Some((of, import_base_digest)) = row else {
            return Ok(None);
        };
        // The key version's creation time is in the machine's encryption dependency.
        self.statement("read encryption dependency").await?;
        let new = &of.new;
        let (head, revision) = new.assignment.unzip();
        Ok(Some(PlannedMachine {
            facts: ReleaseMachineFacts {
                artifact_digest: new.configuration_digest,
                machine_type: new.machine_type,
                key: new.key.clone(),
                assignment: revision.flatten(),
                import_base: new.import_base,
                import_base_digest,
            },
            assignment_head: match head {
                Some(HeadId::Assignment(head)) => Some(head),
                None => None,
                Some(_) => return Err(StoreError::Fault),
            },
            platform: new.platform.as_str().to_owned(),
            validation: "passed".to_owned(),
            validated_at: new.validated_at,
            review: new.review.clone().ok(),
        }))
    }

    /// Who wrote each of a release's revisions: one statement a kind.
    pub(super) async fn authors_of(
        &mut self,
        revisions: &BTreeSet<SourceRevisionId>,
    ) -> Out<Vec<(SourceRevisionId, PrincipalId)>> {
        let mut found = Vec::new();
        let kinds: [fn(SourceRevisionId) -> bool; 4] = [
            |of| matches!(of, SourceRevisionId::Fragment(_)),
            |of| matches!(of, SourceRevisionId::Profile(_)),
            |of| matches!(of, SourceRevisionId::Assignment(_)),
            |of| matches!(of, SourceRevisionId::ImportBase(_)),
        ];
        for is in kinds {
            self.read("read authors", |tables, eye| {
                let of_kind = revisions.iter().copied().filter(|of| is(*of));
                let authors =
                    of_kind.filter_map(|of| Some((of, authored::author(tables, eye, of)?)));
                found.extend(authors);
            })
            .await?;
        }
        // By the text of the revision, as a map of texts has them.
        found.sort_by_key(|(revision, _)| revision.to_string());
        Ok(found)
    }
}
