//! What stands beside machines' rows, for their answers: three statements for a whole page.

use std::collections::BTreeMap;

use bronzeward_core::id::MachineId;
use bronzeward_engine::ports::store::{DriftRecord, Seen, Standing, StandingReads};

use super::Out;
use super::observations::latest_configuration;
use super::operations::open_record;
use crate::pg::session::Session;

impl StandingReads for Session {
    async fn standings(&mut self, machines: &[MachineId]) -> Out<BTreeMap<MachineId, Standing>> {
        let mut found: BTreeMap<MachineId, Standing> = BTreeMap::new();
        self.read("read artifacts", |tables, eye| {
            for machine in machines {
                let Some(state) = tables.authoring.machine_states.get(eye, machine) else {
                    continue;
                };
                let applied = state.applied.map(|applied| applied.release);
                for release in [state.desired, applied].into_iter().flatten() {
                    let of = tables
                        .execution
                        .release_machines
                        .get(eye, &(release, *machine));
                    if let Some(of) = of {
                        let standing = found.entry(*machine).or_default();
                        standing
                            .artifacts
                            .insert(release, of.new.configuration_digest);
                    }
                }
            }
        })
        .await?;
        self.read("read observed configurations", |tables, eye| {
            for machine in machines {
                let Some(observation) = latest_configuration(tables, eye, *machine) else {
                    continue;
                };
                found.entry(*machine).or_default().observed =
                    observation.digest().map(|digest| Seen {
                        observation: observation.started.id,
                        digest,
                        at: observation.at,
                    });
            }
        })
        .await?;
        self.read("read open drift", |tables, eye| {
            for machine in machines {
                let Some(open) = open_record(tables, eye, *machine) else {
                    continue;
                };
                found.entry(*machine).or_default().drift = Some(DriftRecord {
                    opened: open.revision,
                    observation: open.observation,
                    last_observation: open.last_observation,
                    late_landing: open.late_landing,
                });
            }
        })
        .await?;
        Ok(found)
    }
}
