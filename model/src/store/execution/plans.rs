//! Plans, approvals, and the revocation of identities (EaR 2, PA §5 T4 to T5c).
//!
//! A plan's row is its binding and never changes; its state is a row beside it. Never in
//! here: how a plan reads at a time.

mod rows;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bronzeward_core::authority::Contained;
use bronzeward_core::id::{
    ActId, ApprovalId, ImportBaseRevisionId, MachineId, PlanId, PrincipalId, ReleaseId,
};
use bronzeward_core::plan::{Approval, Binding};
use bronzeward_core::problem::Member;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    OpenDrift, Page, PlanFilter, PlanReads, PlanRow, PlannedRelease, ReleaseOrigins,
};
use bronzeward_engine::rows::{HeadId, PlanStateRow, SourceRevisionId};

use super::operations::open_record;
use super::statement::{after, kept};
use super::{Out, authored};
use crate::change::watched;
use crate::pg::Row;
use crate::pg::session::Session;
use rows::found;

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
