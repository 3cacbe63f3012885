//! Operations as rows, and publish and ingest jobs' writes (PA §5.1, §8).

use std::collections::BTreeSet;

use bronzeward_core::fence::Fence;
use bronzeward_core::id::{DraftId, IngestionId, OperationId};
use bronzeward_core::problem::Member;
use bronzeward_core::revision::Revision;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    ClusterRow, Guard, JobEnd, JobReads, JobWrites, LockMode, NewJob, NewWork, OperationFilter,
    Page, Paged, Written,
};
use bronzeward_engine::rows::{DraftRow, MachineRow, OperationRow};

use super::statement::{access, after, kept, maybe, overfetch, row, satisfies};
use super::{Out, holds};
use crate::change::watched;
use crate::pg::session::Session;
use crate::pg::{Eye, Relation, Tables};
use crate::store::guard::{Columns, written};

/// An operation with what its row has beside the engine's.
#[derive(Clone, Debug)]
pub struct Operation {
    pub row: OperationRow,
    /// In the order of their making, inside one state of the database.
    pub seq: i64,
    /// Of a decommissioned machine: it holds nothing (EaR 7.3).
    pub retired: bool,
}

watched!(Operation, OperationId, Operation);
kept!(Operation, OperationId => execution.operations;);

/// A partial unique index: which rows it holds, and which it takes for the same.
struct Index {
    name: &'static str,
    holds: fn(&Operation) -> bool,
    same: fn(&OperationRow, &OperationRow) -> bool,
}

const INDEXES: [Index; 6] = [
    Index {
        name: "operation_plan_key",
        holds: |of| of.row.plan.is_some(),
        same: |one, other| one.plan == other.plan,
    },
    Index {
        name: "operation_claim_key",
        holds: |of| of.row.claim.is_some(),
        same: |one, other| one.claim == other.claim,
    },
    Index {
        name: "operation_scope_holder",
        holds: Operation::holds_scope,
        same: |one, other| one.machine == other.machine,
    },
    Index {
        name: "operation_rollout_holder",
        holds: Operation::holds_scope,
        same: |one, other| one.cluster == other.cluster,
    },
    Index {
        name: "operation_active_publish",
        holds: Operation::is_active_publication,
        same: |one, other| one.draft == other.draft,
    },
    Index {
        name: "operation_active_ingest",
        holds: |of| of.row.kind == "ingest" && of.row.state == "running",
        same: |one, other| one.draft == other.draft,
    },
];

impl Operation {
    pub fn holds_scope(&self) -> bool {
        holds(&self.row.state) && !self.retired
    }

    fn is_active_publication(&self) -> bool {
        self.row.kind == "publish" && matches!(self.row.state.as_str(), "queued" | "running")
    }

    fn admits(&self, guard: &Guard, now: DbTime) -> bool {
        let columns = Columns {
            state: Some(&self.row.state),
            fence: self.row.fence.as_ref(),
            lease_until: self.row.lease_until,
            ..Columns::default()
        };
        satisfies(columns, guard, now)
    }

    /// The checks of the schema that the row breaks, in the order in which the database looks:
    /// that of their names.
    fn broken(&self) -> Vec<&'static str> {
        let row = &self.row;
        let state = row.state.as_str();
        let known = match row.kind.as_str() {
            "publish" => matches!(state, "queued" | "running" | "succeeded" | "failed"),
            "ingest" => matches!(state, "running" | "succeeded" | "failed"),
            "adopt" => state == "completed",
            _ => holds(state) || matches!(state, "completed" | "rejected" | "failed" | "cancelled"),
        };
        let owned = row.fence.is_some() && row.lease_until.is_some();
        let job = matches!(row.kind.as_str(), "publish" | "ingest");
        let ended = |kind: &str| row.kind == kind && state == "succeeded";
        let outcome = (!job || (state == "failed") == row.error.is_some())
            && row.result_release.is_some() == ended("publish")
            && row.result_import_base.is_some() == ended("ingest");
        let checks = [
            (
                "operation_classification",
                row.classified.is_none() || state == "unresolved",
            ),
            ("operation_outcome", outcome),
            (
                "operation_owner",
                !(state == "running" || holds(state)) || owned,
            ),
            ("operation_state", known),
        ];
        let broken = checks.into_iter().filter(|(_, holds)| !holds);
        broken.map(|(name, _)| name).collect()
    }
}

impl Session {
    /// A written row enters the unique indexes that hold it, and held not its version before.
    async fn enter_indexes(&mut self, new: &Operation, old: Option<&Operation>) -> Out<()> {
        for (place, index) in (1..).zip(&INDEXES) {
            let of = access::<OperationId, Operation>();
            if (index.holds)(new) && !old.is_some_and(index.holds) {
                let same =
                    |other: &Operation| (index.holds)(other) && (index.same)(&other.row, &new.row);
                self.enter(of, &new.row.id, place, index.name, &same)
                    .await?;
            } else {
                self.write(|db, _, _| (of.table)(&mut db.tables).enter(&new.row.id))?;
            }
        }
        Ok(())
    }

    /// Inserts an operation, within a statement that has begun.
    pub(super) async fn insert_operation_row(&mut self, new: OperationRow) -> Out<()> {
        let mut new = Operation {
            row: new,
            seq: 0,
            retired: false,
        };
        self.fails(new.broken())?;
        self.write(|db, _, _| new.seq = db.tables.next_number())?;
        let (of, id) = (access(), new.row.id);
        self.insert_first(of, "operation_pkey", id, new.clone(), 1)
            .await?;
        self.enter_indexes(&new, None).await?;
        let row = &new.row;
        // Nobody locks a cluster's row.
        self.refers_to_kept::<_, ClusterRow>(&row.cluster, "operation_cluster_id_fkey")?;
        self.parent_kept::<_, MachineRow>(
            row.machine,
            Relation::Machine,
            "operation_machine_id_fkey",
        )
        .await?;
        let draft = row.draft.map(|(draft, _)| draft);
        self.parent_kept::<_, DraftRow>(draft, Relation::Draft, "operation_draft_id_fkey")
            .await?;
        self.refer(maybe(Relation::Claim, row.claim)).await?;
        let by = row.created_by.map(|by| by.principal);
        self.refer(maybe(Relation::Principal, by)).await
    }

    /// UPDATE of an operation under a guard.
    pub(super) async fn update_operation(
        &mut self,
        what: &'static str,
        id: OperationId,
        guard: &Guard,
        change: impl Fn(&mut OperationRow) + Send + Sync,
    ) -> Out<Written> {
        self.statement(what).await?;
        let lock = row(Relation::Operation, id);
        let of = access::<OperationId, Operation>();
        let found = self.change(
            of.see,
            lock,
            &id,
            |row: &Operation, now| row.admits(guard, now),
            |row| change(&mut row.row),
            Operation::broken,
        );
        let Some((old, new)) = found.await? else {
            return Ok(written(false));
        };
        self.write(|db, me, _| db.put_entering(me, of.table, id, new.clone(), 1))?;
        self.enter_indexes(&new, Some(&old)).await?;
        Ok(written(true))
    }

    /// A locking SELECT of operations.
    pub(crate) async fn lock_operation_rows(
        &mut self,
        ids: &BTreeSet<OperationId>,
        mode: Option<LockMode>,
    ) -> Out<Vec<OperationRow>> {
        self.statement("lock operations").await?;
        let lock = |id: &OperationId| row(Relation::Operation, *id);
        let rows = self
            .lock_kept::<_, Operation>(ids.iter().copied(), lock, mode)
            .await?;
        Ok(rows.iter().map(|of| of.row.clone()).collect())
    }

    /// The first operation by identifier of which this is true.
    pub(super) async fn operation_where(
        &mut self,
        what: &'static str,
        is: impl Fn(&Operation) -> bool + Send,
    ) -> Out<Option<OperationId>> {
        self.read(what, |tables, eye| {
            let mut rows = tables.execution.operations.values(eye);
            rows.find(|of| is(of)).map(|of| of.row.id)
        })
        .await
    }
}

fn matches(filter: &OperationFilter, row: &OperationRow) -> bool {
    filter.plan.is_none_or(|plan| row.plan == Some(plan))
        && filter
            .machine
            .is_none_or(|machine| row.machine == Some(machine))
        && filter
            .state
            .as_ref()
            .is_none_or(|state| row.state == *state)
        && filter.kind.as_ref().is_none_or(|kind| row.kind == *kind)
}

impl JobReads for Session {
    async fn operation(&mut self, id: OperationId) -> Out<Option<OperationRow>> {
        self.read("read operation", |tables, eye| {
            let found = tables.execution.operations.get(eye, &id);
            found.map(|of| of.row.clone())
        })
        .await
    }

    async fn operations(
        &mut self,
        filter: &OperationFilter,
        page: &Page<OperationId>,
    ) -> Out<Paged<OperationRow>> {
        self.read("list operations", |tables, eye| {
            let rows = tables.execution.operations.range(eye, after(page));
            let rows = rows.filter(|(_, of)| matches(filter, &of.row));
            let rows = rows.take(overfetch(page)).map(|(_, of)| of.row.clone());
            Paged::from_overfetched(rows.collect(), page.limit)
        })
        .await
    }

    async fn operation_of_claim(&mut self, claim: IngestionId) -> Out<Option<OperationId>> {
        let is = |of: &Operation| of.row.claim == Some(claim);
        self.operation_where("read a claim's operation", is).await
    }

    async fn publish_candidate(&mut self) -> Out<Option<OperationId>> {
        self.statement("look for a publication").await?;
        let now = self.now();
        let due = |of: &&Operation| {
            let lapsed = of.row.lease_until.is_some_and(|until| until <= now);
            of.is_active_publication() && (of.row.state == "queued" || lapsed)
        };
        let oldest = |tables: &Tables, eye: Eye| {
            let due = tables.execution.operations.values(eye).filter(due);
            due.min_by_key(|of| of.seq).map(|of| of.row.id)
        };
        Ok(self.look(oldest))
    }

    async fn active_ingestion(
        &mut self,
        draft: DraftId,
        revision: Revision,
    ) -> Out<Option<OperationRow>> {
        self.read("look for an ingestion", |tables, eye| {
            let mut rows = tables.execution.operations.values(eye);
            let found = rows.find(|of| {
                of.row.draft == Some((draft, revision))
                    && of.row.kind == "ingest"
                    && of.row.state == "running"
            });
            found.map(|of| of.row.clone())
        })
        .await
    }
}

/// A problem as a stored error's text.
fn json(member: &Member) -> serde_json::Value {
    use serde_json::Value;
    match member {
        Member::Null => Value::Null,
        Member::Bool(value) => Value::Bool(*value),
        Member::Number(value) => Value::from(*value),
        Member::Text(text) => Value::String(text.clone()),
        Member::List(items) => Value::Array(items.iter().map(json).collect()),
        Member::Object(members) => {
            let members = members.iter();
            Value::Object(members.map(|(name, of)| (name.clone(), json(of))).collect())
        }
    }
}

impl JobWrites for Session {
    async fn insert_job(&mut self, job: &NewJob, at: DbTime) -> Out<()> {
        self.statement("insert job").await?;
        let mut new = OperationRow {
            id: job.id,
            kind: "publish".to_owned(),
            state: "queued".to_owned(),
            fence: None,
            lease_until: None,
            cluster: job.cluster,
            machine: None,
            plan: None,
            draft: Some((job.bound.draft, job.bound.revision)),
            claim: None,
            classified: None,
            last_event: 0,
            result_release: None,
            result_import_base: None,
            error: None,
            created_by: Some(job.by),
            epoch: job.epoch,
            created_at: at,
        };
        if let NewWork::Ingest {
            machine,
            claim,
            fence,
            lease_until,
        } = &job.work
        {
            new.kind = "ingest".to_owned();
            new.state = "running".to_owned();
            new.machine = Some(*machine);
            new.claim = Some(*claim);
            new.fence = Some(fence.clone());
            new.lease_until = Some(*lease_until);
        }
        self.insert_operation_row(new).await
    }

    async fn own_job(
        &mut self,
        id: OperationId,
        guard: &Guard,
        fence: &Fence,
        lease_until: DbTime,
    ) -> Out<Written> {
        self.update_operation("own job", id, guard, |row| {
            "running".clone_into(&mut row.state);
            row.fence = Some(fence.clone());
            row.lease_until = Some(lease_until);
        })
        .await
    }

    async fn finish_job(&mut self, id: OperationId, guard: &Guard, end: &JobEnd) -> Out<Written> {
        let (state, release, base, error) = match end {
            JobEnd::Published(release) => ("succeeded", Some(*release), None, None),
            JobEnd::Ingested(base) => ("succeeded", None, Some(*base), None),
            JobEnd::Failed(problem) => {
                let error = json(&problem.to_member()).to_string();
                ("failed", None, None, Some(error))
            }
        };
        self.update_operation("finish job", id, guard, |row| {
            state.clone_into(&mut row.state);
            row.result_release = release;
            row.result_import_base = base;
            row.error.clone_from(&error);
        })
        .await
    }
}
