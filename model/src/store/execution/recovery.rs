//! Recovery mode and scopes in it, freezes, and what the orphan report reads (PA §12, EaR 6.2,
//! 7).

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::generation::GenerationPath;
use bronzeward_core::id::{EpochId, IngestionId, MachineId, OperationId};
use bronzeward_core::installation::{EntryRequest, Installation};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::scope::ScopeState;
use bronzeward_engine::ports::store::{
    Decided, FreezeWrites, Frozen, MarkRow, NewDecommission, NewScopeAccounting, NewScopeMark,
    NewScopeRelease, RecoveryReads, RecoveryWrites,
};
use bronzeward_engine::rows::{ClaimRow, MachineRow};

use super::operations::MOVES;
use super::statement::{Kept, kept, one, owned};
use super::{Operation, Out, holds};
use crate::pg::session::Session;
use crate::pg::{Relation, Row};

/// A recovery entry, by the epoch it minted.
#[derive(Clone, Debug)]
pub struct Entry(pub EntryRequest);

/// That an epoch's recovery ended.
#[derive(Clone, Copy, Debug)]
pub struct Exit;

impl Row<EpochId> for Entry {}
impl Row<EpochId> for Exit {}
impl Row<(MachineId, i64)> for NewScopeAccounting {}
impl Row<(MachineId, i64)> for NewScopeMark {}
impl Row<(MachineId, i64)> for NewScopeRelease {}
impl Row<MachineId> for NewDecommission {}
impl Row<(MachineId, i64)> for Frozen {}

kept!(
    Entry, EpochId => execution.entries;
    Exit, EpochId => execution.exits;
    NewScopeAccounting, (MachineId, i64) => execution.scope_accountings;
    NewScopeMark, (MachineId, i64) => execution.scope_marks;
    NewScopeRelease, (MachineId, i64) => execution.scope_releases;
    NewDecommission, MachineId => execution.decommissions;
    Frozen, (MachineId, i64) => execution.freezes;
    Installation, () => authoring.installation;
);

impl RecoveryReads for Session {
    async fn unended_claims(&mut self) -> Out<Vec<IngestionId>> {
        self.read("read unended claims", |tables, eye| {
            let claims = tables.authoring.claims.values(eye);
            claims
                .filter(|row| !matches!(row.state.as_str(), "released" | "abandoned"))
                .map(|row| row.id)
                .collect()
        })
        .await
    }

    async fn unended_jobs(&mut self) -> Out<Vec<OperationId>> {
        self.read("read unended jobs", |tables, eye| {
            let operations = tables.execution.operations.values(eye);
            operations
                .map(|operation| &operation.row)
                .filter(|row| match row.kind.as_str() {
                    "publish" => matches!(row.state.as_str(), "queued" | "running"),
                    "ingest" => row.state == "running",
                    _ => false,
                })
                .map(|row| row.id)
                .collect()
        })
        .await
    }

    async fn recovery_entry(&mut self, epoch: EpochId) -> Out<Option<EntryRequest>> {
        self.read("read recovery entry", |tables, eye| {
            let entry = tables.execution.entries.get(eye, &epoch);
            entry.map(|entry| entry.0.clone())
        })
        .await
    }

    async fn scope_accounted(
        &mut self,
        of: MachineId,
        epoch: EpochId,
    ) -> Out<Option<TimelineRevision>> {
        self.read("read scope accounting", |tables, eye| {
            let rows = &tables.execution.scope_accountings;
            let mut rows = owned(rows, eye, of, i64::MIN, i64::MAX).rev();
            let found = rows.find(|(_, row)| row.decided.epoch == epoch);
            found.map(|(revision, _)| TimelineRevision(revision))
        })
        .await
    }

    async fn latest_mark(&mut self, of: MachineId) -> Out<Option<MarkRow>> {
        self.read("read latest mark", |tables, eye| {
            let rows = &tables.execution.scope_marks;
            let found = owned(rows, eye, of, i64::MIN, i64::MAX).next_back();
            found.map(|(revision, row)| MarkRow {
                revision: TimelineRevision(revision),
                epoch: row.decided.epoch,
                desired: row.desired,
            })
        })
        .await
    }

    async fn operation_moved_after(
        &mut self,
        of: MachineId,
        revision: TimelineRevision,
    ) -> Out<bool> {
        self.read("read moves since", |tables, eye| {
            let timelines = &tables.execution.timelines;
            let mut entries = owned(timelines, eye, of, revision.0 + 1, i64::MAX);
            entries.any(|(_, entry)| MOVES.contains(&entry.kind.as_str()))
        })
        .await
    }

    async fn referenced_generations(
        &mut self,
        paths: &BTreeSet<GenerationPath>,
    ) -> Out<BTreeSet<GenerationPath>> {
        self.read("read referenced generations", |tables, eye| {
            let references = tables.authoring.references.values(eye);
            let rows = references.flat_map(|of| of.rows.values());
            let named: BTreeSet<String> = rows.map(|row| row.kept.generation.to_string()).collect();
            let paths = paths.iter().copied();
            paths
                .filter(|path| named.contains(&path.to_string()))
                .collect()
        })
        .await
    }

    async fn claim_rows(&mut self, claims: &BTreeSet<IngestionId>) -> Out<Vec<ClaimRow>> {
        self.read("read claims", |tables, eye| {
            let rows = claims.iter();
            rows.filter_map(|id| tables.authoring.claims.get(eye, id).cloned())
                .collect()
        })
        .await
    }
}

impl Session {
    /// An UPDATE of one row by its key, which must find it.
    async fn set<K, V>(
        &mut self,
        lock: (Relation, u128),
        key: K,
        change: impl FnOnce(&mut V) + Send,
    ) -> Out<()>
    where
        K: Ord + Clone + Send + Sync + 'static,
        V: Kept<K> + Clone,
    {
        let found = self.target_kept::<K, V>(lock, &key, |_, _| true).await?;
        let mut row = one(found)?;
        change(&mut row);
        self.put_kept(key, row)
    }
}

impl RecoveryWrites for Session {
    async fn enter_recovery(&mut self, entry: &EntryRequest, decided: &Decided) -> Out<()> {
        self.statement("insert recovery epoch").await?;
        let epoch = decided.epoch;
        self.insert_kept(epoch, Entry(entry.clone()), "recovery_epoch_pkey")
            .await?;
        self.await_act_of(decided.act, "recovery_epoch_act_id_fkey")?;
        self.statement("enter recovery mode").await?;
        self.set::<(), Installation>((Relation::Installation, 0), (), |row| {
            row.epoch = epoch;
            row.recovery_mode = true;
        })
        .await
    }

    async fn exit_recovery(
        &mut self,
        _facts: &BTreeMap<String, String>,
        decided: &Decided,
    ) -> Out<()> {
        self.statement("insert recovery exit").await?;
        self.insert_kept(decided.epoch, Exit, "recovery_exit_pkey")
            .await?;
        self.await_act_of(decided.act, "recovery_exit_act_id_fkey")?;
        self.statement("leave recovery mode").await?;
        self.set::<(), Installation>((Relation::Installation, 0), (), |row| {
            row.recovery_mode = false;
        })
        .await
    }

    async fn set_scope(&mut self, of: MachineId, to: ScopeState, _epoch: EpochId) -> Out<()> {
        self.statement("set scope").await?;
        self.set::<_, MachineRow>((Relation::Machine, of.bits()), of, |row| row.scope = to)
            .await
    }

    async fn insert_scope_accounting(&mut self, new: &NewScopeAccounting) -> Out<()> {
        self.statement("insert scope accounting").await?;
        let key = (new.machine, new.revision.0);
        self.insert_kept(key, new.clone(), "scope_accounting_pkey")
            .await?;
        self.refers_to_readings([
            (new.start, "scope_accounting_start_observation_fkey"),
            (new.end, "scope_accounting_end_observation_fkey"),
        ])?;
        self.await_act_of(new.decided.act, "scope_accounting_act_id_fkey")
    }

    async fn insert_scope_mark(&mut self, new: &NewScopeMark) -> Out<()> {
        self.statement("insert scope mark").await?;
        let key = (new.machine, new.revision.0);
        self.insert_kept(key, new.clone(), "scope_mark_pkey")
            .await?;
        self.refers_to_readings([(new.observation, "scope_mark_observation_id_fkey")])?;
        self.await_act_of(new.decided.act, "scope_mark_act_id_fkey")
    }

    async fn insert_scope_release(&mut self, new: &NewScopeRelease) -> Out<()> {
        self.statement("insert scope release").await?;
        let key = (new.machine, new.revision.0);
        self.insert_kept(key, new.clone(), "scope_release_pkey")
            .await?;
        let mark = (new.machine, new.mark.0);
        self.refers_to_kept::<_, NewScopeMark>(&mark, "scope_release_mark_fkey")?;
        self.await_act_of(new.decided.act, "scope_release_act_id_fkey")
    }

    async fn insert_decommission(&mut self, new: &NewDecommission) -> Out<()> {
        self.statement("insert decommission").await?;
        self.insert_kept(new.machine, new.clone(), "decommission_pkey")
            .await?;
        self.await_act_of(new.decided.act, "decommission_act_id_fkey")?;
        self.statement("retire operations").await?;
        let holding: Vec<OperationId> = self.look(|tables, eye| {
            let operations = tables.execution.operations.values(eye);
            operations
                .filter(|one| one.row.machine == Some(new.machine) && holds(&one.row.state))
                .map(|one| one.row.id)
                .collect()
        });
        for id in holding {
            self.set::<_, Operation>((Relation::Operation, id.bits()), id, |row| {
                row.retired = true;
            })
            .await?;
        }
        Ok(())
    }
}

impl FreezeWrites for Session {
    async fn freeze(&mut self, fact: &Frozen, _reason: Option<&str>) -> Out<()> {
        self.frozen(fact, true).await
    }

    async fn unfreeze(&mut self, fact: &Frozen, _reason: &str) -> Out<()> {
        self.frozen(fact, false).await
    }
}

impl Session {
    async fn frozen(&mut self, fact: &Frozen, to: bool) -> Out<()> {
        self.statement("insert freeze fact").await?;
        let key = (fact.machine, fact.revision.0);
        self.insert_kept(key, *fact, "scope_freeze_pkey").await?;
        self.await_act_of(fact.act, "scope_freeze_act_id_fkey")?;
        self.statement("set frozen").await?;
        let lock = (Relation::Machine, fact.machine.bits());
        self.set::<_, MachineRow>(lock, fact.machine, |row| row.frozen = to)
            .await
    }
}
