//! Leaving recovery mode, once every scope is released (EaR 7.2, PA §9.2).

use std::collections::BTreeMap;

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::id::MachineId;
use bronzeward_core::installation::{ExitRefusal, exit};
use bronzeward_core::problem::Problem;
use bronzeward_core::rules::Rule;
use bronzeward_core::scope::ScopeState;

use super::{Log, decided, in_recovery, moved, outside_recovery};
use crate::ports::store::{Decided, LockMode, RecoveryWrites, Select};
use crate::request::{Admitted, Answer, EpochRead, NotDone, Refused, Rendered, Requests, Settled};
use crate::tx::lock_by;
use crate::world::World;

/// An exit as it is answered.
#[derive(Clone, Debug)]
pub struct Exited {
    pub decided: Decided,
    pub facts: BTreeMap<String, String>,
    pub scopes: Vec<(MachineId, ScopeState)>,
}

impl<W: World> Requests<'_, W> {
    /// Leaves recovery mode. The installation's exclusive lock waits for an inventory request
    /// under way and holds off the next, so that no machine is missed.
    pub async fn exit_recovery(
        &self,
        admitted: &Admitted,
        facts: &BTreeMap<String, String>,
        render: impl Fn(&Exited) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let (db, rules) = (self.db, self.db.rules());
        let mode = lock_by(&rules, Rule::InstallationExclusive, LockMode::Update);
        let leaves = |read: EpochRead| EpochRead {
            recovery_mode: false,
            ..read
        };
        let act = db.mint();
        self.run_leaving(
            admitted,
            Some(mode.unwrap_or(LockMode::Share)),
            leaves,
            async |tx, installation| {
                if let Err(problem) = in_recovery(db, &installation) {
                    return tx.refuse(problem).await;
                }
                let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
                let (tx, machines) = tx.lock_machines(&Select::All, lock, None).await?;
                let states = machines.iter().map(|row| (row.id, row.scope)).collect();
                if let Err(refusal) = exit(&rules, &installation, &states) {
                    return tx.refuse(refused(refusal)).await;
                }
                let (mut acts, at) = tx.open().lock_acts(&rules).await?;
                let act = ActDraft::new(act, Action::RECOVERY_EXITED).on(installation.epoch);
                let decided = decided(admitted, &act, installation.epoch, at);
                acts.rows().exit_recovery(facts, &decided).await?;
                let mut scopes = Vec::with_capacity(machines.len());
                let mut log = Log {
                    rows: acts.rows(),
                    decided: &decided,
                };
                for machine in &machines {
                    let to = match machine.scope {
                        ScopeState::Retired => ScopeState::Retired,
                        _ => ScopeState::Normal,
                    };
                    if to == ScopeState::Normal {
                        let change = moved(machine.scope, to, facts);
                        log.move_scope(machine.id, &change, to).await?;
                    }
                    scopes.push((machine.id, to));
                }
                let exited = Exited {
                    decided,
                    facts: facts.clone(),
                    scopes,
                };
                Ok(Settled {
                    acts,
                    rendered: render(&exited),
                    act,
                })
            },
        )
        .await
        .map_err(NotDone::refused)
    }
}

fn refused(refusal: ExitRefusal) -> Problem {
    match refusal {
        ExitRefusal::NotInRecovery => outside_recovery(),
        ExitRefusal::NotReleased { machine } => {
            Problem::conflict("A scope is not released.").naming("machine", machine)
        }
    }
}
