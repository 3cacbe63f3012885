//! Plans, approvals, and the revocation of identities (EaR 2, PA §5 T4 to T5c).
//!
//! A plan's row is its binding and never changes; its state is a row beside it. Never in
//! here: how a plan reads at a time.

mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bronzeward_core::authority::Contained;
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::id::{
    ActId, ApprovalId, ImportBaseRevisionId, MachineId, PlanId, PrincipalId, ReleaseId,
};
use bronzeward_core::plan::{
    AnyPlan, Approval, Approved, Binding, Cancelled, Committed, Expired, Plan, Proposed,
    ReleaseMachineFacts, Revoked, RevokedBy,
};
use bronzeward_core::problem::Member;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    LockMode, OpenDrift, Page, PlanFilter, PlanReads, PlanRow, PlannedMachine, PlannedRelease,
    ReleaseOrigins, StoreError,
};
use bronzeward_engine::rows::{ApprovalRow, HeadId, PlanStateRow, SourceRevisionId};

use super::operations::open_record;
use super::statement::{after, kept, row};
use super::{Out, authored};
use crate::change::watched;
use crate::pg::session::Session;
use crate::pg::{Eye, Relation, Row, Tables};

/// A plan as it was made.
#[derive(Clone, Debug)]
pub struct PlanRecord {
    pub binding: Arc<Binding>,
    pub import_base: ImportBaseRevisionId,
    pub evidence: Member,
    pub act: ActId,
}

#[derive(Clone, Debug)]
pub struct ApprovalRecord {
    pub approval: Approval,
    pub machine: MachineId,
    pub act: ActId,
}

/// That an approval is revoked.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalRevocation {
    pub at: DbTime,
}

/// That a plan is cancelled.
#[derive(Clone, Copy, Debug)]
pub struct Cancellation {
    pub at: DbTime,
}

impl Row<ApprovalId> for ApprovalRevocation {}
impl Row<PlanId> for Cancellation {}
watched!(PlanRecord, PlanId, Plan);
watched!(PlanStateRow, PlanId, PlanState);
watched!(ApprovalRecord, ApprovalId, Approval);

kept!(
    PlanRecord, PlanId => execution.plans;
    PlanStateRow, PlanId => execution.plan_states;
    ApprovalRecord, ApprovalId => execution.approvals;
    ApprovalRevocation, ApprovalId => execution.approval_revocations;
    Cancellation, PlanId => execution.cancellations;
);

/// A plan with its state, as the first statement of its reading finds them.
type Found = (Arc<PlanRecord>, Arc<PlanStateRow>);

fn found(tables: &Tables, eye: Eye, of: &PlanId) -> Option<Found> {
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
    async fn plan_rows(&mut self, records: Vec<Found>) -> Out<Vec<PlanRow>> {
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
        mode: LockMode,
    ) -> Out<Vec<PlanStateRow>> {
        self.statement("lock plan states").await?;
        let lock = |id: &PlanId| row(Relation::PlanState, *id);
        let rows = self
            .lock_kept::<_, PlanStateRow>(ids.iter().copied(), lock, Some(mode))
            .await?;
        Ok(rows
            .iter()
            .map(|state| PlanStateRow::clone(state))
            .collect())
    }

    async fn planned_machine(
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
    async fn authors_of(
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

impl PlanReads for Session {
    async fn plan(&mut self, of: PlanId) -> Out<Option<PlanRow>> {
        let found = self
            .read("read plan", |tables, eye| found(tables, eye, &of))
            .await?;
        Ok(self.plan_rows(found.into_iter().collect()).await?.pop())
    }

    async fn plan_machine(&mut self, of: PlanId) -> Out<Option<MachineId>> {
        self.read("read plan's machine", |tables, eye| {
            let plan = tables.execution.plans.get(eye, &of);
            plan.map(|plan| plan.binding.machine)
        })
        .await
    }

    async fn plans(&mut self, filter: &PlanFilter, page: &Page<PlanId>) -> Out<Vec<PlanRow>> {
        let rows = self
            .read("list plans", |tables, eye| {
                let plans = tables.execution.plans.range(eye, after(page));
                let plans = plans
                    .filter(|(_, plan)| filter.machine.is_none_or(|of| plan.binding.machine == of));
                let rows = plans.filter_map(|(id, _)| found(tables, eye, id));
                let rows = rows.filter(|(_, state)| {
                    filter.states.is_empty() || filter.states.contains(&state.state.as_str())
                });
                rows.take(usize::from(page.limit)).collect()
            })
            .await?;
        self.plan_rows(rows).await
    }

    async fn approved_plans(&mut self, at: DbTime) -> Out<Vec<PlanRow>> {
        let rows = self
            .read("read approved plans", |tables, eye| {
                let states = tables.execution.plan_states.iter(eye);
                let approved = states.filter(|(_, state)| state.state == "approved");
                let rows = approved.filter_map(|(id, _)| found(tables, eye, id));
                rows.filter(|(plan, _)| plan.binding.expires_at > at)
                    .collect()
            })
            .await?;
        self.plan_rows(rows).await
    }

    async fn approval(&mut self, of: ApprovalId) -> Out<Option<Approval>> {
        self.read("read approval", |tables, eye| {
            let found = tables.execution.approvals.get(eye, &of);
            found.map(|record| record.approval.clone())
        })
        .await
    }

    async fn planned_release(
        &mut self,
        of: ReleaseId,
        machine: MachineId,
    ) -> Out<Option<PlannedRelease>> {
        let release = self
            .read("read planned release", |tables, eye| {
                tables.execution.releases.arc(eye, &of)
            })
            .await?;
        let Some(release) = release else {
            return Ok(None);
        };
        Ok(Some(PlannedRelease {
            id: release.row.id,
            cluster: release.row.cluster,
            renderer: release.row.renderer.clone(),
            machine: self.planned_machine(of, machine).await?,
        }))
    }

    async fn release_origins(&mut self, of: ReleaseId) -> Out<Option<ReleaseOrigins>> {
        let release = self
            .read("read release's origin", |tables, eye| {
                let release = tables.execution.releases.get(eye, &of);
                release.map(|release| (release.row.by.principal, release.row.draft))
            })
            .await?;
        let Some((publisher, draft)) = release else {
            return Ok(None);
        };
        let mut revisions: BTreeSet<SourceRevisionId> = self
            .read("read release's sources", |tables, eye| {
                let sources = super::releases::sources(tables, eye, of);
                sources.filter_map(|source| source.revision).collect()
            })
            .await?;
        let bases: Vec<SourceRevisionId> = self
            .read("read release's bases", |tables, eye| {
                let machines = super::releases::machines(tables, eye, of);
                machines
                    .map(|of| SourceRevisionId::ImportBase(of.new.import_base))
                    .collect()
            })
            .await?;
        revisions.extend(bases);
        let introduced: BTreeSet<SourceRevisionId> = self
            .read("read draft's entries", |tables, eye| {
                let entries = super::release_check::entries(tables, eye, draft);
                entries.filter_map(|entry| entry.revision).collect()
            })
            .await?;
        let authors = self.authors_of(&revisions).await?.into_iter();
        let contained = authors.map(|(revision, author)| Contained {
            author,
            introduced: introduced.contains(&revision),
        });
        Ok(Some(ReleaseOrigins {
            publisher,
            draft,
            contained: contained.collect(),
        }))
    }

    async fn responsible_humans(
        &mut self,
        principals: &BTreeSet<PrincipalId>,
    ) -> Out<BTreeMap<PrincipalId, PrincipalId>> {
        use bronzeward_core::principal::Subject;
        self.read("read responsible humans", |tables, eye| {
            let found = principals.iter().filter_map(|id| {
                match tables.authoring.principals.get(eye, id)?.subject {
                    Subject::Service { responsible, .. } => Some((*id, responsible)),
                    Subject::Human { .. } => None,
                }
            });
            found.collect()
        })
        .await
    }

    async fn assignment_head_of(&mut self, machine: MachineId) -> Out<Option<HeadId>> {
        self.read("read assignment head", |tables, eye| {
            authored::assignment_head(tables, eye, machine).map(|head| head.id)
        })
        .await
    }

    async fn open_drift(&mut self, machine: MachineId) -> Out<Option<OpenDrift>> {
        self.read("read open drift", |tables, eye| {
            open_record(tables, eye, machine).map(|open| OpenDrift {
                opened: open.revision,
                observed: open.observed_digest,
            })
        })
        .await
    }

    async fn live_plans_approved_by(
        &mut self,
        approver: PrincipalId,
        at: DbTime,
    ) -> Out<BTreeMap<MachineId, Vec<PlanId>>> {
        self.read("read plans approved by an identity", |tables, eye| {
            let rows = &tables.execution;
            let approvals = rows.approvals.values(eye);
            let given = approvals.filter(|of| of.approval.approver.principal == approver);
            let plans: BTreeSet<PlanId> = given.map(|of| of.approval.plan).collect();
            let mut live: BTreeMap<MachineId, Vec<PlanId>> = BTreeMap::new();
            for id in plans {
                let Some((plan, state)) = found(tables, eye, &id) else {
                    continue;
                };
                let operation = state.operation.and_then(|of| rows.operations.get(eye, &of));
                let is_live = match state.state.as_str() {
                    "approved" => plan.binding.expires_at > at,
                    // A retired one is counted as the adapter counts it: by its state.
                    "committed" => operation.is_some_and(|of| super::holds(&of.row.state)),
                    _ => false,
                };
                if is_live {
                    live.entry(plan.binding.machine).or_default().push(id);
                }
            }
            live
        })
        .await
    }
}
