//! What people see of the installation: committed rows, as the API's reads would show them.
//!
//! A person looks, then acts; what it saw may have moved meanwhile, as for any client. Never in
//! this module: an act.

use bronzeward_core::fence::Generation;
use bronzeward_core::id::{ClusterId, DraftId, IngestionId, MachineId, OperationId, PlanId, ReleaseId};
use bronzeward_core::revision::Etag;
use bronzeward_core::time::DbTime;
use bronzeward_engine::rows::{DraftStateRow, MachineStateRow, OperationRow};

use crate::pg::{Eye, Tables};

const SEEN: Eye = Eye::COMMITTED;

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
                state: self.0.authoring.machine_states.get(SEEN, &row.id).cloned().unwrap_or_default(),
            })
            .collect()
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

    pub fn operation(&self, id: OperationId) -> Option<&OperationRow> {
        self.0.execution.operations.get(SEEN, &id)
    }

    pub fn releases(&self) -> Vec<(ReleaseId, ClusterId)> {
        let releases = self.0.execution.releases.values(SEEN);
        releases.map(|row| (row.id, row.cluster)).collect()
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
    pub fn open_operations(&self) -> Vec<(OperationId, Generation, MachineId, DbTime)> {
        let operations = self.0.execution.operations.values(SEEN);
        operations
            .filter(|row| row.plan.is_some())
            .filter(|row| {
                matches!(
                    row.state.as_str(),
                    "committed" | "sending" | "verifying" | "unresolved"
                )
            })
            .filter_map(|row| {
                let fence = row.fence.as_ref()?;
                Some((row.id, fence.generation, row.machine?, row.created_at))
            })
            .collect()
    }
}
