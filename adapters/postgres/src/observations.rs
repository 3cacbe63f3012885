//! Observations and their beginnings (EaR 4.1, PA §6.1.1).

use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::fence::{Generation, Owner};
use bronzeward_core::head::AssignmentAt;
use bronzeward_core::id::{HeadId, MachineId, ObservationId};
use bronzeward_core::inventory::{Endpoint, SmbiosUuid, TalosClusterId, TalosNodeId};
use bronzeward_core::observation::{
    AccessVersion, ConfigurationRead, Health, NodeIdentity, Observation, Purpose, Read,
    RunningVersion, Started, Unread, Values,
};
use bronzeward_core::principal::Controller;
use bronzeward_core::revision::{BaselineRevision, Revision, TimelineRevision};
use bronzeward_core::time::DbTime;
use bronzeward_engine::observe::unread;
use bronzeward_engine::ports::store::{
    DriftRead, ObservationReads, ObservationWrites, Page, Paged,
};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text, Timestamptz};

use crate::convert::{Out, digest, fault, head_id, id, opt_id};
use crate::schema::{head, machine_endpoint_change, observation, observation_start};
use crate::store::{Access, PgRows, PgTx};
use crate::time::Stamp;

/// How a stage that is not `running` is kept: the name a node gave it is the node's text.
const OTHER_STAGE: &str = "other";

#[derive(Queryable, Selectable)]
#[diesel(table_name = observation_start)]
struct Start {
    id: String,
    machine_id: String,
    basis: i64,
    purpose: String,
    plan_id: Option<String>,
    operation_id: Option<String>,
    publication_generation: Option<i64>,
    endpoint: String,
    baseline_revision: Option<i64>,
    assignment_head_id: Option<String>,
    assignment_head_revision: Option<i64>,
    controller: String,
    epoch: String,
    started_at: Stamp,
}

impl Start {
    fn row(self) -> Out<Started> {
        let assignment = match (self.assignment_head_id, self.assignment_head_revision) {
            (Some(head), Some(revision)) => Some(AssignmentAt {
                head: id(&head)?,
                revision: Revision(revision),
            }),
            (None, None) => None,
            _ => return Err(fault()),
        };
        let generation = self.publication_generation.map(Generation);
        Ok(Started {
            id: id(&self.id)?,
            machine: id(&self.machine_id)?,
            purpose: Purpose::parse(&self.purpose).ok_or_else(fault)?,
            basis: TimelineRevision(self.basis),
            started_at: self.started_at.0,
            endpoint: Endpoint::parse(&self.endpoint).map_err(|_| fault())?,
            controller: Controller {
                owner: Owner::parse(&self.controller).map_err(|_| fault())?,
                generation,
                epoch: id(&self.epoch)?,
            },
            plan: opt_id(self.plan_id.as_deref())?,
            operation: opt_id(self.operation_id.as_deref())?,
            publication_generation: generation,
            assignment,
            baseline: self.baseline_revision.map(BaselineRevision),
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = observation)]
struct Completed {
    revision: i64,
    access_path: Option<String>,
    access_version: Option<i64>,
    access_created: Option<String>,
    smbios_uuid: Option<String>,
    talos_node_id: Option<String>,
    talos_cluster_id: Option<String>,
    running_version: Option<String>,
    configuration_digest: Option<Vec<u8>>,
    configuration_version: Option<String>,
    configuration_created: Option<String>,
    health_stage: Option<String>,
    health_ready: Option<bool>,
    unread: serde_json::Value,
    recorded_at: Stamp,
}

/// A value, or the cause that `unread` holds for it. One of them stands.
fn read<T>(value: Option<T>, unread: &serde_json::Value, what: &str) -> Out<Read<T>> {
    if let Some(value) = value {
        return Ok(Read::Value(value));
    }
    let cause = unread.get(what).and_then(serde_json::Value::as_str);
    let cause = cause.and_then(Unread::parse).ok_or_else(fault)?;
    Ok(Read::Unread(cause))
}

impl Completed {
    fn row(self, started: Started) -> Out<Observation> {
        let access = match (self.access_path, self.access_version, self.access_created) {
            (Some(path), Some(version), Some(created)) => Some(AccessVersion {
                path,
                version,
                created,
            }),
            _ => None,
        };
        let identity = match (self.talos_node_id, self.talos_cluster_id) {
            (Some(node), Some(cluster)) => Some(NodeIdentity {
                smbios_uuid: self
                    .smbios_uuid
                    .map(|text| SmbiosUuid::parse(&text).map_err(|_| fault()))
                    .transpose()?,
                node_id: TalosNodeId::parse(&node).map_err(|_| fault())?,
                talos_cluster: TalosClusterId::parse(&cluster).map_err(|_| fault())?,
            }),
            _ => None,
        };
        let version = self.running_version.as_deref();
        let version = version
            .map(|text| RunningVersion::parse(text).ok_or_else(fault))
            .transpose()?;
        let configuration = match (
            self.configuration_digest,
            self.configuration_version,
            self.configuration_created,
        ) {
            (Some(bytes), Some(resource_version), Some(resource_created)) => {
                Some(ConfigurationRead {
                    digest: ConfigDigest::from_bytes(digest(&bytes)?),
                    resource_version,
                    resource_created,
                })
            }
            _ => None,
        };
        let health = match (self.health_stage, self.health_ready) {
            (Some(stage), Some(ready)) => Some(Health {
                running: stage == "running",
                ready,
            }),
            _ => None,
        };
        Ok(Observation {
            started,
            revision: TimelineRevision(self.revision),
            at: self.recorded_at.0,
            values: Values {
                access: read(access, &self.unread, "access")?,
                identity: read(identity, &self.unread, "identity")?,
                running_version: read(version, &self.unread, "runningVersion")?,
                configuration: read(configuration, &self.unread, "configuration")?,
                health: read(health, &self.unread, "health")?,
            },
        })
    }
}

/// Diesel has no LATERAL join: the latest reading for drift is one probe of its own index per
/// machine, however many readings of other purposes there are.
const DRIFT_READS: &str = "
    SELECT m.id AS machine, greatest(o.created_at, r.started_at) AS last
      FROM machine m
      JOIN machine_state s ON s.machine_id = m.id
      JOIN operation o ON o.id = s.applied_operation
      LEFT JOIN LATERAL (
           SELECT started_at FROM observation_start
            WHERE machine_id = m.id AND purpose = 'drift'
            ORDER BY started_at DESC LIMIT 1) r ON true
     WHERE m.scope_state <> 'retired'
       AND greatest(o.created_at, r.started_at) <= $1
       AND NOT EXISTS (
           SELECT FROM operation h
            WHERE h.machine_id = m.id AND NOT h.retired
              AND h.state IN ('committed', 'sending', 'verifying', 'unresolved'))
     ORDER BY last, m.id
     LIMIT $2";

#[derive(QueryableByName)]
struct DriftReadRecord {
    #[diesel(sql_type = Text)]
    machine: String,
    #[diesel(sql_type = Timestamptz)]
    last: Stamp,
}

type Pair = (Start, Completed);

fn whole((start, completed): Pair) -> Out<Observation> {
    completed.row(start.row()?)
}

macro_rules! joined {
    () => {
        observation_start::table
            .inner_join(observation::table.on(observation::id.eq(observation_start::id)))
            .select((Start::as_select(), Completed::as_select()))
    };
}

impl<M: Access> ObservationReads for PgRows<M> {
    async fn observation(&mut self, of: ObservationId) -> Out<Option<Observation>> {
        let query = joined!().filter(observation_start::id.eq(of.to_string()));
        let found: Option<Pair> = self.optional(query).await?;
        found.map(whole).transpose()
    }

    async fn observations(
        &mut self,
        of: MachineId,
        page: &Page<ObservationId>,
    ) -> Out<Paged<Observation>> {
        let after = page.after.map(|after| after.to_string());
        let query = joined!()
            .filter(observation_start::machine_id.eq(of.to_string()))
            .filter(observation_start::id.gt(after.unwrap_or_default()))
            .order(observation_start::id)
            .limit(i64::from(page.limit) + 1);
        let rows: Vec<Pair> = self.load(query).await?;
        let rows = rows.into_iter().map(whole).collect::<Out<Vec<_>>>()?;
        Ok(Paged::from_overfetched(rows, page.limit))
    }

    async fn observations_after(
        &mut self,
        of: MachineId,
        basis: TimelineRevision,
    ) -> Out<Vec<Observation>> {
        let query = joined!()
            .filter(observation_start::machine_id.eq(of.to_string()))
            .filter(observation_start::basis.gt(basis.0))
            .order(observation_start::basis);
        let rows: Vec<Pair> = self.load(query).await?;
        rows.into_iter().map(whole).collect()
    }

    async fn highest_observation(&mut self, of: MachineId) -> Out<Option<Observation>> {
        let query = joined!()
            .filter(observation_start::machine_id.eq(of.to_string()))
            .order(observation_start::basis.desc())
            .limit(1);
        let found: Option<Pair> = self.optional(query).await?;
        found.map(whole).transpose()
    }

    async fn observed_configuration(&mut self, of: MachineId) -> Out<Option<Observation>> {
        let query = joined!()
            .filter(observation_start::machine_id.eq(of.to_string()))
            .filter(observation::configuration_digest.is_not_null())
            .order(observation_start::basis.desc())
            .limit(1);
        let found: Option<Pair> = self.optional(query).await?;
        found.map(whole).transpose()
    }

    async fn drift_reads(&mut self, before: DbTime, limit: u16) -> Out<Vec<DriftRead>> {
        let query = diesel::sql_query(DRIFT_READS)
            .bind::<Timestamptz, _>(Stamp(before))
            .bind::<BigInt, _>(i64::from(limit));
        let rows: Vec<DriftReadRecord> = self.load(query).await?;
        rows.into_iter()
            .map(|row| {
                Ok(DriftRead {
                    machine: id(&row.machine)?,
                    last: row.last.0,
                })
            })
            .collect()
    }

    async fn assignment_at(&mut self, of: MachineId) -> Out<Option<AssignmentAt>> {
        let query = head::table
            .filter(head::machine_id.eq(of.to_string()))
            .select((head::id, head::head_revision));
        let found: Option<(String, i64)> = self.optional(query).await?;
        let Some((of, revision)) = found else {
            return Ok(None);
        };
        match head_id(&of)? {
            HeadId::Assignment(head) => Ok(Some(AssignmentAt {
                head,
                revision: Revision(revision),
            })),
            HeadId::Fragment(_) | HeadId::Profile(_) => Err(fault()),
        }
    }

    async fn endpoint_changed(&mut self, of: MachineId) -> Out<Option<TimelineRevision>> {
        let query = machine_endpoint_change::table
            .filter(machine_endpoint_change::machine_id.eq(of.to_string()))
            .select(machine_endpoint_change::revision)
            .order(machine_endpoint_change::revision.desc())
            .limit(1);
        let found: Option<i64> = self.optional(query).await?;
        Ok(found.map(TimelineRevision))
    }
}

impl ObservationWrites for PgTx {
    async fn insert_observation_start(&mut self, started: &Started) -> Out<()> {
        use observation_start::dsl;
        let assignment = started.assignment;
        let insert = diesel::insert_into(dsl::observation_start).values((
            dsl::id.eq(started.id.to_string()),
            dsl::machine_id.eq(started.machine.to_string()),
            dsl::basis.eq(started.basis.0),
            dsl::purpose.eq(started.purpose.as_str()),
            dsl::plan_id.eq(started.plan.map(|plan| plan.to_string())),
            dsl::operation_id.eq(started.operation.map(|operation| operation.to_string())),
            dsl::publication_generation.eq(started
                .publication_generation
                .map(|generation| generation.0)),
            dsl::endpoint.eq(started.endpoint.to_string()),
            dsl::baseline_revision.eq(started.baseline.map(|baseline| baseline.0)),
            dsl::assignment_head_id.eq(assignment.map(|at| at.head.to_string())),
            dsl::assignment_head_revision.eq(assignment.map(|at| at.revision.0)),
            dsl::controller.eq(started.controller.owner.as_str().to_owned()),
            dsl::epoch.eq(started.controller.epoch.to_string()),
            dsl::started_at.eq(Stamp(started.started_at)),
        ));
        self.execute(insert).await.map(drop)
    }

    async fn insert_observation(&mut self, recorded: &Observation) -> Out<()> {
        use observation::dsl;
        let values = &recorded.values;
        let access = values.access.value();
        let identity = values.identity.value();
        let configuration = values.configuration.value();
        let health = values.health.value();
        let causes: serde_json::Map<String, serde_json::Value> = unread(values)
            .into_iter()
            .map(|(what, cause)| (what.to_owned(), cause.as_str().into()))
            .collect();
        let own = (
            dsl::id.eq(recorded.started.id.to_string()),
            dsl::machine_id.eq(recorded.started.machine.to_string()),
            dsl::revision.eq(recorded.revision.0),
            dsl::unread.eq(serde_json::Value::Object(causes)),
            dsl::recorded_at.eq(Stamp(recorded.at)),
        );
        let who = (
            dsl::access_path.eq(access.map(|access| access.path.clone())),
            dsl::access_version.eq(access.map(|access| access.version)),
            dsl::access_created.eq(access.map(|access| access.created.clone())),
            dsl::smbios_uuid.eq(identity
                .and_then(|identity| identity.smbios_uuid.as_ref())
                .map(|uuid| uuid.as_str().to_owned())),
            dsl::talos_node_id.eq(identity.map(|identity| identity.node_id.as_str().to_owned())),
            dsl::talos_cluster_id
                .eq(identity.map(|identity| identity.talos_cluster.as_str().to_owned())),
        );
        let what = (
            dsl::running_version.eq(values
                .running_version
                .value()
                .map(|version| version.text.clone())),
            dsl::configuration_digest.eq(configuration.map(|read| read.digest.as_bytes().to_vec())),
            dsl::configuration_version.eq(configuration.map(|read| read.resource_version.clone())),
            dsl::configuration_created.eq(configuration.map(|read| read.resource_created.clone())),
            dsl::health_stage.eq(health.map(|health| {
                if health.running {
                    "running"
                } else {
                    OTHER_STAGE
                }
            })),
            dsl::health_ready.eq(health.map(|health| health.ready)),
        );
        let insert = diesel::insert_into(dsl::observation).values((own, who, what));
        self.execute(insert).await.map(drop)
    }
}
