//! The acts of recovery mode: entry (T9), and what accounts for, marks, releases and leaves
//! (T11; PA §12, EaR 7).
//!
//! Http calls the acts that need no reading; `recover` calls the others after it has looked.
//! Each locks its machines before anything else of theirs and decides by `core::scope` and
//! `core::installation`. Never in this module: a node, a provider, or a match of anything
//! across a restore by its identifier.

mod accounting;
mod decommission;
mod entry;
mod exit;
mod mark;
mod release;

use std::collections::BTreeMap;

use bronzeward_core::act::ActDraft;
use bronzeward_core::id::{MachineId, ObservationId};
use bronzeward_core::installation::Installation;
use bronzeward_core::principal::By;
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::scope::{Missing, ScopeRefusal, ScopeState};
use bronzeward_core::timeline::Data;

pub use accounting::{AccountedScope, ScopesAccounted, ScopesInput, Settle};
pub use decommission::Decommissioned;
pub use entry::Entered;
pub use exit::Exited;
pub(crate) use mark::Looked;

use crate::ports::store::{Decided, EntryRow, NewEntry, StoreError, StoreTx};
use crate::request::Admitted;
use crate::world::{Db, World};

/// A scope's decision: the machine it is on and the facts that were stated.
#[derive(Clone, Debug)]
pub struct ScopeInput {
    pub machine: MachineId,
    pub facts: BTreeMap<String, String>,
}

/// What a mark or a release did to a scope.
#[derive(Clone, Debug)]
pub struct ScopeChanged {
    pub machine: MachineId,
    pub from: ScopeState,
    pub to: ScopeState,
    /// A mark's.
    pub observation: Option<ObservationId>,
    pub missing: Vec<Missing>,
    /// The scope state entry.
    pub entry: EntryRow,
}

/// Appends the entries of one decision on machines that are held FOR UPDATE.
struct Log<'a, T> {
    rows: &'a mut T,
    decided: &'a Decided,
}

impl<T: StoreTx> Log<'_, T> {
    async fn append(
        &mut self,
        machine: MachineId,
        data: &Data,
    ) -> Result<(TimelineRevision, EntryRow), StoreError> {
        let Decided { by, epoch, act, at } = *self.decided;
        let entry = NewEntry::of(data, By::Signed(by), epoch, Some(act), at);
        let revision = self.rows.append_entry(machine, &entry).await?;
        Ok((revision, EntryRow::of(revision, &entry)))
    }

    /// Moves a scope beside its entry.
    async fn move_scope(
        &mut self,
        machine: MachineId,
        change: &Data,
        to: ScopeState,
    ) -> Result<(TimelineRevision, EntryRow), StoreError> {
        let appended = self.append(machine, change).await?;
        self.rows.set_scope(machine, to, self.decided.epoch).await?;
        Ok(appended)
    }
}

/// A scope state entry that rests on nothing but its act.
fn moved(from: ScopeState, to: ScopeState, facts: &BTreeMap<String, String>) -> Data {
    Data::ScopeState {
        from,
        to,
        observation: None,
        missing: Vec::new(),
        desired: None,
        facts: facts.clone(),
    }
}

fn decided(
    admitted: &Admitted,
    act: &ActDraft,
    epoch: bronzeward_core::id::EpochId,
    at: bronzeward_core::time::DbTime,
) -> Decided {
    Decided {
        by: admitted.actor.into(),
        epoch,
        act: act.id,
        at,
    }
}

/// Whether this process may decide in recovery mode: it is in effect, and the process is of
/// its epoch (PA §5.1, §9.2).
fn in_recovery<W: World>(db: &Db<W>, installation: &Installation) -> Result<(), Problem> {
    if !installation.recovery_mode {
        return Err(outside_recovery());
    }
    current(db, installation)
}

/// 503 where a recovery entry has replaced this process's epoch.
fn current<W: World>(db: &Db<W>, installation: &Installation) -> Result<(), Problem> {
    match db.admits(installation.epoch) {
        true => Ok(()),
        false => Err(superseded()),
    }
}

pub(crate) fn superseded() -> Problem {
    Problem::new(ProblemCode::EpochSuperseded)
        .say("This process is of an earlier epoch and decides nothing in this one.")
}

pub(crate) fn outside_recovery() -> Problem {
    Problem::conflict("Recovery mode is not in effect.")
}

pub(crate) fn no_machine(machine: MachineId) -> Problem {
    Problem::not_found("No such machine.").naming("machine", machine)
}

/// A refusal of a scope's state, as marks, releases and accountings answer it.
pub(crate) fn scope_refused(machine: MachineId, refusal: ScopeRefusal) -> Problem {
    let words = match refusal {
        ScopeRefusal::Unaccounted => return Problem::recovery_mode_active(machine),
        ScopeRefusal::AlreadyFrozen => "The scope is frozen.",
        ScopeRefusal::NotFrozen => "The scope is not frozen.",
        ScopeRefusal::NotUnaccounted => "The scope is not pre-restore unaccounted.",
        ScopeRefusal::NotMarkable => "The scope is in no state that a mark moves.",
        ScopeRefusal::NotReady => "The scope is not ready.",
        ScopeRefusal::DesiredChanged => {
            "The machine's Desired is not the release that the scope was marked for; mark it again."
        }
    };
    Problem::conflict(words).naming("machine", machine)
}
