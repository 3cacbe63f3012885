//! What stands beside machines' rows, for their answers: three statements for a whole page.

use std::collections::BTreeMap;

use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::id::MachineId;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_engine::ports::store::{DriftRecord, Seen, Standing, StandingReads};
use diesel::prelude::*;

use crate::convert::{Out, digest, id, opt_id};
use crate::schema::{drift_record, machine_state, observation, observation_start, release_machine};
use crate::store::{Access, PgRows};
use crate::time::Stamp;

type Drift = (String, i64, String, String, Option<String>);

impl<M: Access> StandingReads for PgRows<M> {
    async fn standings(&mut self, machines: &[MachineId]) -> Out<BTreeMap<MachineId, Standing>> {
        let of: Vec<String> = machines.iter().map(ToString::to_string).collect();
        let mut found: BTreeMap<MachineId, Standing> = BTreeMap::new();

        let named = release_machine::release_id.nullable();
        let named = named
            .eq(machine_state::desired_release)
            .or(named.eq(machine_state::applied_release));
        let of_its_own = release_machine::machine_id.eq(machine_state::machine_id);
        let query = machine_state::table
            .inner_join(release_machine::table.on(of_its_own.and(named)))
            .filter(machine_state::machine_id.eq_any(of.clone()))
            .select((
                release_machine::machine_id,
                release_machine::release_id,
                release_machine::configuration_digest,
            ));
        let artifacts: Vec<(String, String, Vec<u8>)> = self.load(query).await?;
        for (machine, release, bytes) in artifacts {
            let artifact = ConfigDigest::from_bytes(digest(&bytes)?);
            let standing = found.entry(id(&machine)?).or_default();
            standing.artifacts.insert(id(&release)?, artifact);
        }

        let query = observation_start::table
            .inner_join(observation::table.on(observation::id.eq(observation_start::id)))
            .filter(observation_start::machine_id.eq_any(of.clone()))
            .filter(observation::configuration_digest.is_not_null())
            .distinct_on(observation_start::machine_id)
            .order((
                observation_start::machine_id,
                observation_start::basis.desc(),
            ))
            .select((
                observation_start::machine_id,
                observation::id,
                observation::configuration_digest.assume_not_null(),
                observation::recorded_at,
            ));
        let seen: Vec<(String, String, Vec<u8>, Stamp)> = self.load(query).await?;
        for (machine, observation, bytes, at) in seen {
            found.entry(id(&machine)?).or_default().observed = Some(Seen {
                observation: id(&observation)?,
                digest: ConfigDigest::from_bytes(digest(&bytes)?),
                at: at.0,
            });
        }

        let query = drift_record::table
            .filter(drift_record::machine_id.eq_any(of))
            .filter(drift_record::state.eq("open"))
            .select((
                drift_record::machine_id,
                drift_record::opened_revision,
                drift_record::observation_id,
                drift_record::last_observation_id,
                drift_record::late_landing,
            ));
        let open: Vec<Drift> = self.load(query).await?;
        for (machine, opened, first, last, late) in open {
            found.entry(id(&machine)?).or_default().drift = Some(DriftRecord {
                opened: TimelineRevision(opened),
                observation: id(&first)?,
                last_observation: id(&last)?,
                late_landing: opt_id(late.as_deref())?,
            });
        }
        Ok(found)
    }
}
