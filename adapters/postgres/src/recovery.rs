//! Recovery mode, scopes in it, and what the orphan report reads (PA §12, §6.4, EaR 7).

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::generation::GenerationPath;
use bronzeward_core::id::{EpochId, IngestionId, MachineId, OperationId};
use bronzeward_core::installation::{BackupFamily, EntryRequest, RestoredBackup};
use bronzeward_core::problem::Member;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::scope::{Missing, ScopeState};
use bronzeward_engine::ports::store::{
    Decided, MarkRow, NewDecommission, NewScopeAccounting, NewScopeMark, NewScopeRelease,
    RecoveryReads, RecoveryWrites,
};
use bronzeward_engine::rows::ClaimRow;
use diesel::prelude::*;

use crate::claims::LIVE;
use crate::convert::{Out, fault, id, json, opt_id};
use crate::locks::texts;
use crate::operations::one;
use crate::plans::HOLDING;
use crate::records::Claim;
use crate::schema::{
    decommission, installation_state, machine, operation, recovery_epoch, recovery_exit,
    reference_row, restored_backup, scope_accounting, scope_mark, scope_release, staging_claim,
    timeline_event,
};
use crate::store::{Access, PgRows, PgTx};
use crate::time::Stamp;

/// The entries that change an operation's state. An ownership transition that does has an
/// operation state entry beside it.
const MOVES: [&str; 5] = [
    "commitment",
    "attempt",
    "response",
    "operation-state",
    "adoption-record",
];

impl<M: Access> RecoveryReads for PgRows<M> {
    async fn unended_claims(&mut self) -> Out<Vec<IngestionId>> {
        let query = staging_claim::table
            .filter(staging_claim::state.eq_any(LIVE))
            .order(staging_claim::id)
            .select(staging_claim::id);
        let found: Vec<String> = self.load(query).await?;
        found.iter().map(|claim| id(claim)).collect()
    }

    async fn unended_jobs(&mut self) -> Out<Vec<OperationId>> {
        let query = operation::table
            .filter(operation::kind.eq_any(["publish", "ingest"]))
            .filter(operation::state.eq_any(["queued", "running"]))
            .order(operation::id)
            .select(operation::id);
        let found: Vec<String> = self.load(query).await?;
        found.iter().map(|job| id(job)).collect()
    }

    async fn recovery_entry(&mut self, epoch: EpochId) -> Out<Option<EntryRequest>> {
        use recovery_epoch::dsl;
        let query = dsl::recovery_epoch
            .find(epoch.to_string())
            .filter(dsl::origin.eq("entry"))
            .select((
                dsl::reason.assume_not_null(),
                dsl::stopped_at.assume_not_null(),
            ));
        let found: Option<(String, Stamp)> = self.optional(query).await?;
        let Some((reason, stopped_at)) = found else {
            return Ok(None);
        };
        let query = restored_backup::table
            .filter(restored_backup::epoch.eq(epoch.to_string()))
            .order(restored_backup::family)
            .select((
                restored_backup::family,
                restored_backup::backup,
                restored_backup::taken_at,
            ));
        let rows: Vec<(String, String, Stamp)> = self.load(query).await?;
        let restored = rows.into_iter().map(|(family, backup, taken_at)| {
            Ok(RestoredBackup {
                family: BackupFamily::parse(&family).ok_or_else(fault)?,
                backup,
                taken_at: taken_at.0,
            })
        });
        Ok(Some(EntryRequest {
            restored: restored.collect::<Out<_>>()?,
            stopped_at: stopped_at.0,
            reason,
        }))
    }

    async fn scope_accounted(
        &mut self,
        of: MachineId,
        epoch: EpochId,
    ) -> Out<Option<TimelineRevision>> {
        use scope_accounting::dsl;
        let query = dsl::scope_accounting
            .filter(dsl::machine_id.eq(of.to_string()))
            .filter(dsl::epoch.eq(epoch.to_string()))
            .order(dsl::revision.desc())
            .limit(1)
            .select(dsl::revision);
        let found: Option<i64> = self.optional(query).await?;
        Ok(found.map(TimelineRevision))
    }

    async fn latest_mark(&mut self, of: MachineId) -> Out<Option<MarkRow>> {
        use scope_mark::dsl;
        let query = dsl::scope_mark
            .filter(dsl::machine_id.eq(of.to_string()))
            .order(dsl::revision.desc())
            .limit(1)
            .select((dsl::revision, dsl::epoch, dsl::desired_release));
        let found: Option<(i64, String, Option<String>)> = self.optional(query).await?;
        let Some((revision, epoch, desired)) = found else {
            return Ok(None);
        };
        Ok(Some(MarkRow {
            revision: TimelineRevision(revision),
            epoch: id(&epoch)?,
            desired: opt_id(desired.as_deref())?,
        }))
    }

    async fn operation_moved_after(
        &mut self,
        of: MachineId,
        revision: TimelineRevision,
    ) -> Out<bool> {
        use timeline_event::dsl;
        let query = dsl::timeline_event
            .filter(dsl::machine_id.eq(of.to_string()))
            .filter(dsl::number.gt(revision.0))
            .filter(dsl::kind.eq_any(MOVES))
            .count();
        let found: i64 = self.one(query).await?;
        Ok(found > 0)
    }

    async fn referenced_generations(
        &mut self,
        paths: &BTreeSet<GenerationPath>,
    ) -> Out<BTreeSet<GenerationPath>> {
        let query = reference_row::table
            .filter(reference_row::generation_path.eq_any(texts(paths)))
            .select(reference_row::generation_path)
            .distinct();
        let found: Vec<String> = self.load(query).await?;
        found
            .iter()
            .map(|path| GenerationPath::parse(path).ok_or_else(fault))
            .collect()
    }

    async fn claim_rows(&mut self, claims: &BTreeSet<IngestionId>) -> Out<Vec<ClaimRow>> {
        let query = staging_claim::table
            .filter(staging_claim::id.eq_any(texts(claims)))
            .order(staging_claim::id)
            .select(Claim::as_select());
        let found: Vec<Claim> = self.load(query).await?;
        found.into_iter().map(ClaimRow::try_from).collect()
    }
}

fn stated(facts: &BTreeMap<String, String>) -> serde_json::Value {
    serde_json::Value::Object(
        facts
            .iter()
            .map(|(name, text)| (name.clone(), text.clone().into()))
            .collect(),
    )
}

impl RecoveryWrites for PgTx {
    async fn enter_recovery(&mut self, entry: &EntryRequest, decided: &Decided) -> Out<()> {
        use recovery_epoch::dsl;
        let epoch = decided.epoch.to_string();
        let minted = diesel::insert_into(dsl::recovery_epoch).values((
            dsl::id.eq(&epoch),
            dsl::origin.eq("entry"),
            dsl::entered_at.eq(Stamp(decided.at)),
            dsl::principal_id.eq(decided.by.principal.to_string()),
            dsl::role.eq(decided.by.role.as_str()),
            dsl::reason.eq(&entry.reason),
            dsl::stopped_at.eq(Stamp(entry.stopped_at)),
            dsl::act_id.eq(decided.act.to_string()),
        ));
        self.execute(minted).await?;
        for restored in &entry.restored {
            let backup = diesel::insert_into(restored_backup::table).values((
                restored_backup::epoch.eq(&epoch),
                restored_backup::family.eq(restored.family.as_str()),
                restored_backup::backup.eq(&restored.backup),
                restored_backup::taken_at.eq(Stamp(restored.taken_at)),
            ));
            self.execute(backup).await?;
        }
        let current = diesel::update(installation_state::table).set((
            installation_state::current_epoch.eq(&epoch),
            installation_state::recovery_mode.eq(true),
        ));
        one(self.execute(current).await?)
    }

    async fn exit_recovery(
        &mut self,
        facts: &BTreeMap<String, String>,
        decided: &Decided,
    ) -> Out<()> {
        use recovery_exit::dsl;
        let exit = diesel::insert_into(dsl::recovery_exit).values((
            dsl::epoch.eq(decided.epoch.to_string()),
            dsl::principal_id.eq(decided.by.principal.to_string()),
            dsl::role.eq(decided.by.role.as_str()),
            dsl::facts.eq(stated(facts)),
            dsl::act_id.eq(decided.act.to_string()),
            dsl::at.eq(Stamp(decided.at)),
        ));
        self.execute(exit).await?;
        let current = diesel::update(installation_state::table)
            .set(installation_state::recovery_mode.eq(false));
        one(self.execute(current).await?)
    }

    async fn set_scope(&mut self, of: MachineId, to: ScopeState, epoch: EpochId) -> Out<()> {
        let state = to.as_str();
        let since = (to != ScopeState::Normal).then(|| epoch.to_string());
        let update = diesel::update(machine::table.find(of.to_string())).set((
            machine::scope_state.eq(state),
            machine::scope_epoch.eq(since),
            machine::revision.eq(machine::revision + 1),
        ));
        one(self.execute(update).await?)
    }

    async fn insert_scope_accounting(&mut self, new: &NewScopeAccounting) -> Out<()> {
        use scope_accounting::dsl;
        let decided = &new.decided;
        let insert = diesel::insert_into(dsl::scope_accounting).values((
            dsl::machine_id.eq(new.machine.to_string()),
            dsl::revision.eq(new.revision.0),
            dsl::start_observation.eq(new.start.to_string()),
            dsl::end_observation.eq(new.end.to_string()),
            dsl::facts.eq(stated(&new.facts)),
            dsl::principal_id.eq(decided.by.principal.to_string()),
            dsl::role.eq(decided.by.role.as_str()),
            dsl::epoch.eq(decided.epoch.to_string()),
            dsl::act_id.eq(decided.act.to_string()),
            dsl::at.eq(Stamp(decided.at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn insert_scope_mark(&mut self, new: &NewScopeMark) -> Out<()> {
        use scope_mark::dsl;
        let decided = &new.decided;
        let missing = new.marked.missing.iter().map(Missing::member);
        let insert = diesel::insert_into(dsl::scope_mark).values((
            dsl::machine_id.eq(new.machine.to_string()),
            dsl::revision.eq(new.revision.0),
            dsl::from_state.eq(new.marked.from.as_str()),
            dsl::to_state.eq(new.marked.to.as_str()),
            dsl::observation_id.eq(new.observation.to_string()),
            dsl::desired_release.eq(new.desired.map(|release| release.to_string())),
            dsl::missing.eq(json(&Member::List(missing.collect()))),
            dsl::facts.eq(stated(&new.facts)),
            dsl::principal_id.eq(decided.by.principal.to_string()),
            dsl::role.eq(decided.by.role.as_str()),
            dsl::epoch.eq(decided.epoch.to_string()),
            dsl::act_id.eq(decided.act.to_string()),
            dsl::at.eq(Stamp(decided.at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn insert_scope_release(&mut self, new: &NewScopeRelease) -> Out<()> {
        use scope_release::dsl;
        let decided = &new.decided;
        let insert = diesel::insert_into(dsl::scope_release).values((
            dsl::machine_id.eq(new.machine.to_string()),
            dsl::revision.eq(new.revision.0),
            dsl::mark_revision.eq(new.mark.0),
            dsl::desired_release.eq(new.desired.map(|release| release.to_string())),
            dsl::facts.eq(stated(&new.facts)),
            dsl::principal_id.eq(decided.by.principal.to_string()),
            dsl::role.eq(decided.by.role.as_str()),
            dsl::epoch.eq(decided.epoch.to_string()),
            dsl::act_id.eq(decided.act.to_string()),
            dsl::at.eq(Stamp(decided.at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn insert_decommission(&mut self, new: &NewDecommission) -> Out<()> {
        use decommission::dsl;
        let decided = &new.decided;
        let insert = diesel::insert_into(dsl::decommission).values((
            dsl::machine_id.eq(new.machine.to_string()),
            dsl::revision.eq(new.revision.0),
            dsl::principal_id.eq(decided.by.principal.to_string()),
            dsl::role.eq(decided.by.role.as_str()),
            dsl::reason.eq(&new.reason),
            dsl::epoch.eq(decided.epoch.to_string()),
            dsl::act_id.eq(decided.act.to_string()),
            dsl::at.eq(Stamp(decided.at)),
        ));
        self.execute(insert).await?;
        let holding = operation::table
            .filter(operation::machine_id.eq(new.machine.to_string()))
            .filter(operation::state.eq_any(HOLDING));
        let retired = diesel::update(holding).set(operation::retired.eq(true));
        self.execute(retired).await.map(drop)
    }
}
