//! Freezing and unfreezing a machine (EaR 6.2, PA §5 T11).
//!
//! Called by http. A freeze closes the gate that commitments and attempts pass; it stops no
//! recorded attempt, is never set by detection, and outlives a drift record and a release of
//! the scope. Never in this module: what a closed gate refuses.

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::id::MachineId;
use bronzeward_core::principal::{By, Signed};
use bronzeward_core::problem::Problem;
use bronzeward_core::rules::Rule;
use bronzeward_core::scope::ScopeRefusal;
use bronzeward_core::timeline::{Counter, Data};

use super::actor::standing_actor;
use super::lock_by;
use super::plans::scope;
use crate::ports::store::{FreezeWrites, Frozen, LockMode, NewEntry, TimelineWrites};
use crate::request::{Admitted, Answer, NotDone, Refused, Rendered, Requests, Settled};
use crate::world::World;

/// A freeze or an unfreeze as it is answered; its act names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreezeFact {
    pub fact: Frozen,
    pub reason: Option<String>,
}

/// What is done to the machine, with its reason.
#[derive(Clone, Copy)]
enum Asked<'a> {
    Freeze(Option<&'a str>),
    Unfreeze(&'a str),
}

impl<W: World> Requests<'_, W> {
    /// Freezes a machine, also in recovery mode: it only removes authority (PA §12.2).
    pub async fn freeze_machine(
        &self,
        admitted: &Admitted,
        machine: MachineId,
        reason: Option<&str>,
        render: impl Fn(&FreezeFact) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let asked = Asked::Freeze(reason);
        self.frozen(admitted, machine, asked, render).await
    }

    /// Opens a freeze again; refused on a scope whose lost attempts may still land.
    pub async fn unfreeze_machine(
        &self,
        admitted: &Admitted,
        machine: MachineId,
        reason: &str,
        render: impl Fn(&FreezeFact) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let asked = Asked::Unfreeze(reason);
        self.frozen(admitted, machine, asked, render).await
    }

    async fn frozen(
        &self,
        admitted: &Admitted,
        machine: MachineId,
        asked: Asked<'_>,
        render: impl Fn(&FreezeFact) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let (rules, act) = (self.db.rules(), self.db.mint());
        let outcome = self.run(admitted, Some(LockMode::Share), async |tx, installation| {
            let lock = lock_by(&rules, Rule::MachineRowLock, LockMode::Update);
            let (tx, row) = tx.lock_machine(machine, lock).await?;
            let Some(row) = row else {
                return tx.refuse(Problem::not_found("No such machine.")).await;
            };
            let tx = standing_actor(&rules, tx, admitted).await?;
            let scope = scope(&row, None);
            let decided = match asked {
                Asked::Freeze(_) => scope.freeze(),
                Asked::Unfreeze(_) => scope.unfreeze(&rules),
            };
            if let Err(refusal) = decided {
                return tx.refuse(refused(machine, &refusal)).await;
            }
            let (mut acts, at) = tx.open().lock_acts(&rules).await?;
            let fact = Frozen {
                machine,
                revision: Counter(row.timeline.0).allocate().0,
                by: Signed::from(admitted.actor),
                epoch: installation.epoch,
                act,
                at,
            };
            let rows = acts.rows();
            let (data, action) = match asked {
                Asked::Freeze(reason) => {
                    rows.freeze(&fact, reason).await?;
                    let reason = reason.map(str::to_owned);
                    (Data::Freeze { reason }, Action::MACHINE_FROZEN)
                }
                Asked::Unfreeze(reason) => {
                    rows.unfreeze(&fact, reason).await?;
                    let reason = reason.to_owned();
                    (Data::Unfreeze { reason }, Action::MACHINE_UNFROZEN)
                }
            };
            let by = By::Signed(fact.by);
            let entry = NewEntry::of(&data, by, installation.epoch, Some(act), at);
            rows.append_entry(machine, &entry).await?;
            let answer = FreezeFact {
                fact,
                reason: match asked {
                    Asked::Freeze(reason) => reason.map(str::to_owned),
                    Asked::Unfreeze(reason) => Some(reason.to_owned()),
                },
            };
            Ok(Settled {
                acts,
                rendered: render(&answer),
                act: ActDraft::new(act, action).on(machine),
            })
        });
        outcome.await.map_err(NotDone::refused)
    }
}

fn refused(machine: MachineId, refusal: &ScopeRefusal) -> Problem {
    let words = match refusal {
        ScopeRefusal::AlreadyFrozen => "The machine is frozen already.",
        ScopeRefusal::Unaccounted => return Problem::recovery_mode_active(machine),
        ScopeRefusal::NotFrozen
        | ScopeRefusal::NotUnaccounted
        | ScopeRefusal::NotMarkable
        | ScopeRefusal::NotReady
        | ScopeRefusal::DesiredChanged => "The machine is not frozen.",
    };
    Problem::conflict(words).naming("machine", machine)
}
