//! Observations and their beginnings (EaR 4.1, PA §6.1.1).

use bronzeward_core::head::AssignmentAt;
use bronzeward_core::id::{HeadId, MachineId, ObservationId};
use bronzeward_core::observation::{Observation, Started};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    DriftRead, ObservationReads, ObservationWrites, Page, Paged, StoreError,
};

use super::statement::{kept, maybe, overfetch, owned, row};
use super::{Out, authored};
use crate::change::watched;
use crate::pg::session::Session;
use crate::pg::{Eye, Relation, Row, Tables, TxId};

watched!(Observation, ObservationId, Observation);
impl Row<ObservationId> for Started {}
impl Row<(MachineId, i64)> for ObservationId {}

kept!(
    Started, ObservationId => execution.starts;
    Observation, ObservationId => execution.observations;
    ObservationId, (MachineId, i64) => execution.bases;
);

/// A machine's completed observations that began after a revision, in the order of their
/// beginnings.
fn completed(
    tables: &Tables,
    eye: Eye,
    of: MachineId,
    after: i64,
) -> impl DoubleEndedIterator<Item = &Observation> {
    let from = after.saturating_add(1);
    let started = owned(&tables.execution.bases, eye, of, from, i64::MAX);
    started.filter_map(move |(_, id)| tables.execution.observations.get(eye, id))
}

/// Of the machine's observations that read a configuration, the one that began last.
pub(super) fn latest_configuration(
    tables: &Tables,
    eye: Eye,
    of: MachineId,
) -> Option<&Observation> {
    let mut latest = completed(tables, eye, of, i64::MIN).rev();
    latest.find(|observation| observation.digest().is_some())
}

/// The completed observations whose reading began after a time, when they were recorded.
pub(super) fn first_read(
    tables: &Tables,
    eye: Eye,
    of: MachineId,
    after: bronzeward_core::time::DbTime,
) -> Option<bronzeward_core::time::DbTime> {
    let read = completed(tables, eye, of, i64::MIN).filter(|observation| {
        observation.started.started_at > after
            && observation.digest().is_some()
            && observation.values.identity.value().is_some()
    });
    read.map(|observation| observation.at).min()
}

impl ObservationReads for Session {
    async fn observation(&mut self, of: ObservationId) -> Out<Option<Observation>> {
        self.read("read observation", |tables, eye| {
            tables.execution.observations.get(eye, &of).cloned()
        })
        .await
    }

    async fn observations(
        &mut self,
        of: MachineId,
        page: &Page<ObservationId>,
    ) -> Out<Paged<Observation>> {
        self.read("list observations", |tables, eye| {
            let mut found: Vec<&Observation> = completed(tables, eye, of, i64::MIN)
                .filter(|observation| page.after.is_none_or(|id| observation.started.id > id))
                .collect();
            found.sort_by_key(|observation| observation.started.id);
            let items = found.into_iter().take(overfetch(page)).cloned();
            Paged::from_overfetched(items.collect(), page.limit)
        })
        .await
    }

    async fn observations_after(
        &mut self,
        of: MachineId,
        basis: TimelineRevision,
    ) -> Out<Vec<Observation>> {
        self.read("read observations", |tables, eye| {
            completed(tables, eye, of, basis.0).cloned().collect()
        })
        .await
    }

    async fn highest_observation(&mut self, of: MachineId) -> Out<Option<Observation>> {
        self.read("read highest observation", |tables, eye| {
            completed(tables, eye, of, i64::MIN).next_back().cloned()
        })
        .await
    }

    async fn observed_configuration(&mut self, of: MachineId) -> Out<Option<Observation>> {
        self.read("read observed configuration", |tables, eye| {
            latest_configuration(tables, eye, of).cloned()
        })
        .await
    }

    async fn drift_reads(&mut self, before: DbTime, limit: u16) -> Out<Vec<DriftRead>> {
        self.read("read machines due for drift", |tables, eye| {
            super::drifts::due(tables, eye, before, limit)
        })
        .await
    }

    async fn assignment_at(&mut self, of: MachineId) -> Out<Option<AssignmentAt>> {
        let head = self
            .read("read assignment head", |tables, eye| {
                let head = authored::assignment_head(tables, eye, of);
                head.map(|head| (head.id, head.etag.revision))
            })
            .await?;
        match head {
            None => Ok(None),
            Some((HeadId::Assignment(head), revision)) => Ok(Some(AssignmentAt { head, revision })),
            Some((HeadId::Fragment(_) | HeadId::Profile(_), _)) => Err(StoreError::Fault),
        }
    }

    async fn endpoint_changed(&mut self, of: MachineId) -> Out<Option<TimelineRevision>> {
        self.read("read endpoint change", |tables, eye| {
            authored::endpoint_changed(tables, eye, of).map(TimelineRevision)
        })
        .await
    }
}

impl ObservationWrites for Session {
    async fn insert_observation_start(&mut self, started: &Started) -> Out<()> {
        self.statement("insert observation's start").await?;
        let taken = |tables: &Tables, me: TxId| {
            let starts = &tables.execution.starts;
            starts.key_taken(me, &started.id)
        };
        self.unique("observation_start_pkey", taken).await?;
        let place = (started.machine, started.basis.0);
        let unique = "observation_start_machine_id_basis_key";
        self.insert_kept(place, started.id, unique).await?;
        self.insert_kept(started.id, started.clone(), "observation_start_pkey")
            .await?;
        let named = [
            Some(row(Relation::Machine, started.machine)),
            maybe(Relation::Operation, started.operation),
        ];
        self.refer(named.into_iter().flatten()).await
    }

    async fn insert_observation(&mut self, recorded: &Observation) -> Out<()> {
        self.statement("insert observation").await?;
        let id = recorded.started.id;
        self.insert_kept(id, recorded.clone(), "observation_pkey")
            .await?;
        self.refers_to_kept::<_, Started>(&id, "observation_id_fkey")
    }
}
