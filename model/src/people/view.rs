//! What people see of the installation: committed rows, as the API's reads would show them.
//!
//! A person looks, then acts; what it saw may have moved meanwhile, as for any client. Never in
//! this module: an act.

use std::collections::BTreeMap;

use bronzeward_core::fence::Generation;
use bronzeward_core::id::{
    ApprovalId, AttemptId, ClusterId, DraftId, EpochId, FragmentRevisionId, IngestionId, MachineId,
    ObservationId, OperationId, PlanId, PrincipalId, ReleaseId,
};
use bronzeward_core::observation::{Observation, Purpose};
use bronzeward_core::principal::Subject;
use bronzeward_core::revision::Etag;
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{EntryKind, HeadKind};
use bronzeward_engine::rows::{DraftStateRow, MachineStateRow, OperationRow, SourceRevisionId};

use crate::pg::{Eye, Tables};
use crate::store::execution::holds;

const SEEN: Eye = Eye::COMMITTED;

/// Who restores backups and works recovery off: nobody revokes them.
pub const KEEPER: &str = "kim";

/// An observation, when its reading began, and when it was recorded.
pub type Looked = (ObservationId, DbTime, DbTime);

pub struct View<'t>(pub &'t Tables);

#[derive(Clone, Debug)]
pub struct MachineSeen {
    pub id: MachineId,
    pub cluster: ClusterId,
    pub frozen: bool,
    pub state: MachineStateRow,
}

#[derive(Clone, Copy, Debug)]
pub struct DraftSeen {
    pub id: DraftId,
    pub cluster: ClusterId,
    pub etag: Etag,
}

impl View<'_> {
    pub fn clusters(&self) -> Vec<ClusterId> {
        let clusters = self.0.authoring.clusters.iter(SEEN);
        clusters.map(|(id, _)| *id).collect()
    }

    pub fn machines(&self) -> Vec<MachineSeen> {
        let machines = self.0.authoring.machines.values(SEEN);
        machines
            .map(|row| MachineSeen {
                id: row.id,
                cluster: row.cluster,
                frozen: row.frozen,
                state: self
                    .0
                    .authoring
                    .machine_states
                    .get(SEEN, &row.id)
                    .cloned()
                    .unwrap_or_default(),
            })
            .collect()
    }

    /// The epoch, and whether recovery mode is in effect.
    pub fn installation(&self) -> Option<(EpochId, bool)> {
        let row = self.0.authoring.installation.get(SEEN, &());
        row.map(|row| (row.epoch, row.recovery_mode))
    }

    pub fn machine(&self, id: MachineId) -> Option<MachineSeen> {
        self.machines().into_iter().find(|seen| seen.id == id)
    }

    pub fn open_drafts(&self) -> Vec<DraftSeen> {
        let drafts = self.0.authoring.drafts.values(SEEN);
        drafts
            .filter(|row| row.state == DraftStateRow::Open)
            .map(|row| DraftSeen {
                id: row.id,
                cluster: row.cluster,
                etag: row.etag,
            })
            .collect()
    }

    pub fn draft(&self, id: DraftId) -> Option<DraftSeen> {
        let row = self.0.authoring.drafts.get(SEEN, &id)?;
        Some(DraftSeen {
            id,
            cluster: row.cluster,
            etag: row.etag,
        })
    }

    pub fn entries(&self, draft: DraftId) -> usize {
        let entries = self.0.authoring.draft_entries.iter(SEEN);
        entries.filter(|((of, _, _), _)| *of == draft).count()
    }

    /// Ingestions that have not ended.
    pub fn live_ingestions(&self) -> Vec<IngestionId> {
        let claims = self.0.authoring.claims.values(SEEN);
        claims
            .filter(|row| !matches!(row.state.as_str(), "released" | "abandoned"))
            .map(|row| row.id)
            .collect()
    }

    /// Those of them whose owner's lease has lapsed.
    pub fn lapsed_ingestions(&self, now: DbTime) -> Vec<IngestionId> {
        let claims = &self.0.authoring.claims;
        let mut live = self.live_ingestions();
        live.retain(|id| {
            let row = claims.get(SEEN, id);
            row.is_some_and(|row| row.lease_until <= now)
        });
        live
    }

    /// Approvals that nobody has revoked, of plans that may still be carried out.
    pub fn approvals(&self) -> Vec<ApprovalId> {
        let execution = &self.0.execution;
        let approvals = execution.approvals.values(SEEN);
        let approvals = approvals.map(|record| &record.approval).filter(|approval| {
            let state = execution.plan_states.get(SEEN, &approval.plan);
            let live =
                state.is_some_and(|row| matches!(row.state.as_str(), "approved" | "committed"));
            live && execution
                .approval_revocations
                .get(SEEN, &approval.id)
                .is_none()
        });
        approvals.map(|approval| approval.id).collect()
    }

    pub fn operation(&self, id: OperationId) -> Option<&OperationRow> {
        let found = self.0.execution.operations.get(SEEN, &id)?;
        Some(&found.row)
    }

    /// Whether a drift record of the machine is open.
    pub fn drifted(&self, machine: MachineId) -> bool {
        let drifts = &self.0.execution.drifts;
        let mut of = drifts.range(SEEN, (machine, 0)..=(machine, i64::MAX));
        of.any(|(_, drift)| drift.closed.is_none())
    }

    /// Every machine's scope.
    pub fn scopes(&self) -> Vec<(MachineId, ScopeState)> {
        let machines = self.0.authoring.machines.values(SEEN);
        machines.map(|row| (row.id, row.scope)).collect()
    }

    pub fn all_released(&self, epoch: EpochId) -> bool {
        let scopes = self.scopes();
        scopes.iter().all(|(_, scope)| {
            matches!(scope, ScopeState::Retired)
                || matches!(scope, ScopeState::Released { epoch: of } if *of == epoch)
        })
    }

    /// When the instances from before this epoch's entry had stopped, as it was stated.
    pub fn stopped_at(&self, epoch: EpochId) -> Option<DbTime> {
        let entry = self.0.execution.entries.get(SEEN, &epoch)?;
        Some(entry.0.stopped_at)
    }

    /// A machine's recovery observations that read it, the earliest first.
    pub fn recovery_observations(&self, machine: MachineId) -> Vec<Looked> {
        let seen = self.0.execution.observations.values(SEEN);
        let mut seen: Vec<&Observation> = seen
            .filter(|seen| {
                let started = &seen.started;
                started.machine == machine
                    && started.purpose == Purpose::Recovery
                    && seen.values.identity.value().is_some()
                    && seen.digest().is_some()
            })
            .collect();
        seen.sort_by_key(|seen| seen.started.basis);
        let looked = seen.into_iter();
        looked
            .map(|seen| (seen.started.id, seen.started.started_at, seen.at))
            .collect()
    }

    pub fn releases(&self) -> Vec<(ReleaseId, ClusterId)> {
        let releases = self.0.execution.releases.values(SEEN);
        releases
            .map(|release| (release.row.id, release.row.cluster))
            .collect()
    }

    /// Plans in one of these stored states.
    pub fn plans_in(&self, states: &[&str]) -> Vec<(PlanId, MachineId)> {
        let plans = self.0.execution.plan_states.values(SEEN);
        plans
            .filter(|row| states.contains(&row.state.as_str()))
            .filter_map(|row| {
                let plan = self.0.execution.plans.get(SEEN, &row.plan)?;
                Some((row.plan, plan.binding.machine))
            })
            .collect()
    }

    /// Plans' operations that have not ended.
    pub fn open_operations(&self) -> Vec<(OperationId, Generation, MachineId)> {
        let operations = self.0.execution.operations.values(SEEN);
        operations
            .map(|operation| &operation.row)
            .filter(|row| row.plan.is_some() && holds(&row.state))
            .filter_map(|row| {
                let fence = row.fence.as_ref()?;
                Some((row.id, fence.generation, row.machine?))
            })
            .collect()
    }

    /// The fragments a profile could pin: the draft's own, and those of its cluster's heads.
    pub fn fragments_of(&self, cluster: ClusterId, draft: DraftId) -> Vec<FragmentRevisionId> {
        let authoring = &self.0.authoring;
        let entries = authoring.draft_entries.iter(SEEN);
        let own = entries
            .filter(|((of, kind, _), _)| *of == draft && *kind == EntryKind::Fragment)
            .map(|((_, _, name), entry)| (name.clone(), entry.revision));
        let heads = authoring.heads.values(SEEN);
        let heads = heads
            .filter(|head| head.row.cluster == cluster && head.kind == HeadKind::Fragment)
            .map(|head| (head.row.subject.clone(), head.row.revision));
        // A draft's entry stands before the head of its name.
        let by_name: BTreeMap<String, Option<SourceRevisionId>> = heads.chain(own).collect();
        let revisions = by_name.into_values().flatten();
        revisions
            .filter_map(|revision| match revision {
                SourceRevisionId::Fragment(id) => Some(id),
                SourceRevisionId::Assignment(_)
                | SourceRevisionId::ImportBase(_)
                | SourceRevisionId::Profile(_) => None,
            })
            .collect()
    }

    /// Those who may be revoked: all but who keeps the installation.
    pub fn principals(&self) -> Vec<PrincipalId> {
        let principals = self.0.authoring.principals.values(SEEN);
        let others = principals.filter(
            |row| !matches!(&row.subject, Subject::Human { subject, .. } if subject == KEEPER),
        );
        others.map(|row| row.id).collect()
    }

    /// Attempts whose answer was lost, each with the first and last recovery observation of
    /// its machine since the request was given up: what an accounting would name.
    pub fn lost_answers(&self) -> Vec<LostAnswer> {
        let execution = &self.0.execution;
        let mut lost = Vec::new();
        for (id, _, machine) in self.open_operations() {
            let tries = execution.tries.range(SEEN, (id, 0)..=(id, u8::MAX));
            for (_, attempt) in tries {
                if execution.accountings.get(SEEN, attempt).is_some() {
                    continue;
                }
                let deadline = execution.attempts.get(SEEN, attempt);
                let deadline = deadline.map(|row| row.attempt.transport_deadline);
                let readings = execution.observations.values(SEEN).filter(|seen| {
                    let started = &seen.started;
                    started.machine == machine
                        && started.purpose == Purpose::Recovery
                        && Some(started.started_at) > deadline
                });
                let mut readings: Vec<&Observation> = readings.collect();
                readings.sort_by_key(|seen| seen.started.basis);
                let (first, last) = (readings.first(), readings.last());
                if let (Some(first), Some(last)) = (first, last) {
                    lost.push(LostAnswer {
                        operation: id,
                        attempt: *attempt,
                        start: first.started.id,
                        end: last.started.id,
                    });
                }
            }
        }
        lost
    }
}

/// What an accounting names.
#[derive(Clone, Copy, Debug)]
pub struct LostAnswer {
    pub operation: OperationId,
    pub attempt: AttemptId,
    pub start: ObservationId,
    pub end: ObservationId,
}
