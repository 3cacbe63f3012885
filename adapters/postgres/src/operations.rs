//! Operations of plans, their attempts and what came of them (EaR 3 to 6).

mod extras;
mod write;

pub(crate) use write::one;

use std::collections::BTreeMap;

use bronzeward_core::attempt::{Accounting, Attempt, Response, ResponseClass};
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::drift::OpenDrift;
use bronzeward_core::id::{ClusterId, MachineId, OperationId};
use bronzeward_core::inventory::Endpoint;
use bronzeward_core::observation::AccessVersion;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::node::NodeCode;
use bronzeward_engine::ports::store::{AccountedRow, Marks, OperationExtras, OperationReads};
use bronzeward_engine::rows::OperationRow;
use diesel::prelude::*;

use crate::convert::{Out, digest, fault, fence, id, opt_id, signed};
use crate::plans::HOLDING;
use crate::records::Operation;
use crate::schema::{
    accounting, attempt, drift_record, observation, observation_start, operation, plan, response,
    timeline_event, use_time_check,
};
use crate::store::{Access, PgRows};
use crate::time::Stamp;

#[derive(Queryable, Selectable)]
#[diesel(table_name = attempt)]
struct AttemptRecord {
    id: String,
    operation_id: String,
    machine_id: String,
    number: i32,
    revision: i64,
    owner: String,
    owner_gen: i64,
    owner_epoch: String,
    route: String,
    observation_id: String,
    transport_deadline: Stamp,
    verification_deadline: Stamp,
    recorded_at: Stamp,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = use_time_check)]
struct CheckRecord {
    access_path: Option<String>,
    access_version: Option<i64>,
    access_created: Option<String>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = response)]
struct ResponseRecord {
    revision: i64,
    class: String,
    code: String,
    at: Stamp,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = accounting)]
struct AccountingRecord {
    revision: i64,
    start_observation: String,
    end_observation: String,
    facts: serde_json::Value,
    principal_id: String,
    role: String,
    at: Stamp,
}

type Joined = (
    AttemptRecord,
    CheckRecord,
    Option<ResponseRecord>,
    Option<AccountingRecord>,
);

impl CheckRecord {
    fn access(self) -> Out<AccessVersion> {
        match (self.access_path, self.access_version, self.access_created) {
            (Some(path), Some(version), Some(created)) => Ok(AccessVersion {
                path,
                version,
                created,
            }),
            _ => Err(fault()),
        }
    }
}

impl ResponseRecord {
    fn row(self) -> Out<Response> {
        Ok(Response {
            class: ResponseClass::parse(&self.class).ok_or_else(fault)?,
            code: NodeCode::parse(&self.code).ok_or_else(fault)?.as_str(),
            revision: TimelineRevision(self.revision),
            at: self.at.0,
        })
    }
}

impl AccountingRecord {
    fn row(self) -> Out<Accounting> {
        let facts = self.facts.as_object().ok_or_else(fault)?;
        let facts = facts
            .iter()
            .map(|(name, value)| {
                let text = value.as_str().ok_or_else(fault)?;
                Ok((name.clone(), text.to_owned()))
            })
            .collect::<Out<BTreeMap<_, _>>>()?;
        Ok(Accounting {
            by: signed(&self.principal_id, &self.role)?,
            start: id(&self.start_observation)?,
            end: id(&self.end_observation)?,
            facts,
            revision: TimelineRevision(self.revision),
            at: self.at.0,
        })
    }
}

fn whole((of, check, answered, accounted): Joined) -> Out<Attempt> {
    Ok(Attempt {
        id: id(&of.id)?,
        operation: id(&of.operation_id)?,
        machine: id(&of.machine_id)?,
        number: u8::try_from(of.number).map_err(|_| fault())?,
        fence: fence(&of.owner, of.owner_gen, &of.owner_epoch)?,
        route: Endpoint::parse(&of.route).map_err(|_| fault())?,
        evidence: id(&of.observation_id)?,
        access: check.access()?,
        revision: TimelineRevision(of.revision),
        at: of.recorded_at.0,
        transport_deadline: of.transport_deadline.0,
        verification_deadline: of.verification_deadline.0,
        response: answered.map(ResponseRecord::row).transpose()?,
        accounting: accounted.map(AccountingRecord::row).transpose()?,
    })
}

/// The entries that put an operation in a state.
const MOVES: [&str; 5] = [
    "commitment",
    "attempt",
    "response",
    "ownership-transition",
    "operation-state",
];

/// The entries that make a classification stale (comparison 8).
const OUTDATE: [&str; 3] = ["response", "ownership-transition", "classification"];

impl<M: Access> PgRows<M> {
    async fn latest_entry(
        &mut self,
        of: OperationId,
        kinds: &'static [&'static str],
    ) -> Out<TimelineRevision> {
        use timeline_event::dsl;
        let query = dsl::timeline_event
            .filter(dsl::operation_id.eq(of.to_string()))
            .filter(dsl::kind.eq_any(kinds))
            .select(diesel::dsl::max(dsl::number));
        let found: Option<i64> = self.one(query).await?;
        Ok(TimelineRevision(found.unwrap_or(0)))
    }
}

impl<M: Access> OperationReads for PgRows<M> {
    async fn attempts(&mut self, of: OperationId) -> Out<Vec<Attempt>> {
        self.attempts_of(&[of]).await
    }

    async fn operation_extras(
        &mut self,
        of: &[OperationId],
    ) -> Out<BTreeMap<OperationId, OperationExtras>> {
        self.extras_of(of).await
    }

    async fn operation_marks(&mut self, of: OperationId) -> Out<Marks> {
        Ok(Marks {
            since: self.latest_entry(of, &MOVES).await?,
            outdating: self.latest_entry(of, &OUTDATE).await?,
        })
    }

    async fn open_operations(&mut self) -> Out<Vec<OperationRow>> {
        use operation::dsl;
        let query = dsl::operation
            .filter(dsl::kind.eq("apply-config"))
            .filter(dsl::state.eq_any(HOLDING))
            .filter(dsl::retired.eq(false))
            .order(dsl::id)
            .select(Operation::as_select());
        let rows: Vec<Operation> = self.load(query).await?;
        rows.into_iter().map(OperationRow::try_from).collect()
    }

    async fn rollout_holder(&mut self, of: ClusterId) -> Out<Option<OperationId>> {
        use operation::dsl;
        let query = dsl::operation
            .filter(dsl::cluster_id.eq(of.to_string()))
            .filter(dsl::state.eq_any(HOLDING))
            .filter(dsl::retired.eq(false))
            .select(dsl::id);
        let found: Option<String> = self.optional(query).await?;
        opt_id(found.as_deref())
    }

    async fn scope_held_since(&mut self, of: MachineId, since: TimelineRevision) -> Out<bool> {
        use timeline_event::dsl;
        let held = operation::table
            .filter(operation::machine_id.eq(of.to_string()))
            .filter(operation::state.eq_any(HOLDING))
            .filter(operation::retired.eq(false));
        // One that holds nothing any more ended by an entry since, or ended before.
        let moved = dsl::timeline_event
            .filter(dsl::machine_id.eq(of.to_string()))
            .filter(dsl::kind.eq_any(MOVES))
            .filter(dsl::number.ge(since.0));
        let query = diesel::select(diesel::dsl::exists(held).or(diesel::dsl::exists(moved)));
        self.one(query).await
    }

    async fn drift_record(&mut self, of: MachineId) -> Out<Option<OpenDrift>> {
        use drift_record::dsl;
        let query = dsl::drift_record
            .filter(dsl::machine_id.eq(of.to_string()))
            .filter(dsl::state.eq("open"))
            .select((
                dsl::opened_revision,
                dsl::applied_digest,
                dsl::observed_digest,
                dsl::observation_id,
                dsl::last_observation_id,
                dsl::late_landing,
            ));
        type Row = (i64, Vec<u8>, Vec<u8>, String, String, Option<String>);
        let found: Option<Row> = self.optional(query).await?;
        let Some((opened, applied, observed, first, last, landing)) = found else {
            return Ok(None);
        };
        Ok(Some(OpenDrift {
            machine: of,
            revision: TimelineRevision(opened),
            applied_digest: ConfigDigest::from_bytes(digest(&applied)?),
            observed_digest: ConfigDigest::from_bytes(digest(&observed)?),
            observation: id(&first)?,
            last_observation: id(&last)?,
            late_landing: opt_id(landing.as_deref())?,
        }))
    }

    async fn accounted_operation(&mut self, of: MachineId) -> Out<Option<AccountedRow>> {
        let query = accounting::table
            .inner_join(attempt::table)
            .inner_join(operation::table.on(operation::id.eq(attempt::operation_id)))
            .inner_join(plan::table.on(plan::id.nullable().eq(operation::plan_id)))
            .filter(accounting::machine_id.eq(of.to_string()))
            .order(operation::seq.desc())
            .limit(1)
            .select((operation::id, plan::configuration_digest));
        let found: Option<(String, Vec<u8>)> = self.optional(query).await?;
        let Some((of, artifact)) = found else {
            return Ok(None);
        };
        let of = id(&of)?;
        Ok(Some(AccountedRow {
            operation: of,
            artifact: ConfigDigest::from_bytes(digest(&artifact)?),
            attempts: self.attempts(of).await?,
        }))
    }

    async fn ownership_moved_after(
        &mut self,
        of: OperationId,
        after: TimelineRevision,
    ) -> Out<Option<DbTime>> {
        use timeline_event::dsl;
        let query = dsl::timeline_event
            .filter(dsl::operation_id.eq(of.to_string()))
            .filter(dsl::kind.eq("ownership-transition"))
            .filter(dsl::number.gt(after.0))
            .order(dsl::number)
            .limit(1)
            .select(dsl::at);
        let found: Option<Stamp> = self.optional(query).await?;
        Ok(found.map(|at| at.0))
    }

    async fn first_read_after(&mut self, of: MachineId, after: DbTime) -> Out<Option<DbTime>> {
        let query = observation::table
            .inner_join(observation_start::table.on(observation_start::id.eq(observation::id)))
            .filter(observation::machine_id.eq(of.to_string()))
            .filter(observation_start::started_at.gt(Stamp(after)))
            .filter(observation::configuration_digest.is_not_null())
            .filter(observation::talos_node_id.is_not_null())
            .order(observation::recorded_at)
            .limit(1)
            .select(observation::recorded_at);
        let found: Option<Stamp> = self.optional(query).await?;
        Ok(found.map(|at| at.0))
    }
}
