//! Recovery mode: what an entry leaves of the world, what is recorded under the flag, when the
//! mode is left (PA §12, EaR 7, 8.7, 8.12).
//!
//! It remembers every epoch that was ever current, since a restore forgets some.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::fence::Fence;
use bronzeward_core::generation::GenerationPath;
use bronzeward_core::id::EpochId;
use bronzeward_core::installation::Installation;
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::DbTime;

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::{Answered, Change, Changed};
use crate::people::hand::ENTRY;
use crate::pg::Tables;
use crate::sched::ProcessId;
use crate::store::execution::holds;

#[derive(Clone, Debug, Default)]
pub struct Recovery {
    epochs: BTreeSet<EpochId>,
    /// Recovery starts whose entry has committed, each with the epoch it minted.
    entered: BTreeMap<ProcessId, EpochId>,
    /// When the last entry committed.
    pub entered_at: Option<DbTime>,
    /// What a report called orphans, in this state of the database.
    orphans: BTreeSet<GenerationPath>,
}

impl Recovery {
    pub fn look(&mut self, case: &Case<'_>) -> Verdict {
        let mut entry = false;
        for change in case.changes {
            match change {
                Change::Installation(changed) => entry |= self.installation(case, changed)?,
                Change::Claim(_) | Change::Operation(_) => epoch(case, change)?,
                _ => {}
            }
        }
        if case.recovering {
            self.under_the_flag(case, entry)?;
        }
        self.owns(case)
    }

    /// An entry is answered by the start that made it: what a restored record says of another
    /// minted no epoch and closed no scope (PA §12.4).
    pub fn answered(&self, answered: &Answered) -> Verdict {
        let entered = self.entered.contains_key(&answered.process);
        match answered.route == ENTRY && !entered {
            false => Ok(()),
            true => violation(
                "an entry is answered by the start that made it",
                format!("{}", answered.process),
            ),
        }
    }

    /// Whoever issues ownership, or moves what it owns, is of the current epoch: the one it
    /// read at its start, or its own entry's (PA §5.1).
    fn owns(&self, case: &Case<'_>) -> Verdict {
        let own = self.entered.get(&case.process).copied().or(case.began_in);
        let Some(owner) = case.owner.filter(|_| own != case.epoch()) else {
            return Ok(());
        };
        for change in case.changes {
            let (before, after) = match change {
                Change::Claim(changed) => (
                    changed.before.as_ref().map(|row| &row.fence),
                    changed.after.as_ref().map(|row| &row.fence),
                ),
                Change::Operation(changed) => (
                    changed
                        .before
                        .as_ref()
                        .and_then(|one| one.row.fence.as_ref()),
                    changed
                        .after
                        .as_ref()
                        .and_then(|one| one.row.fence.as_ref()),
                ),
                _ => continue,
            };
            let of_this = |fence: Option<&Fence>| fence.is_some_and(|fence| fence.owner == *owner);
            if of_this(before) || of_this(after) {
                return violation(
                    "a process of another epoch owns nothing",
                    format!("{}", case.process),
                );
            }
        }
        Ok(())
    }

    /// A claim may be again what it was: what was an orphan beside it may not be one.
    pub fn restored(&mut self) {
        self.orphans.clear();
    }

    /// A report names nothing that a committed row refers to (PA §6.4).
    pub fn reported(&mut self, tables: &Tables, paths: &BTreeSet<GenerationPath>) -> Verdict {
        self.orphans.extend(paths.iter().copied());
        self.at_the_end(tables)
    }

    /// Nothing that was reported is ever referred to: its ingestion was over.
    pub fn at_the_end(&self, tables: &Tables) -> Verdict {
        if self.orphans.is_empty() {
            return Ok(());
        }
        let of_revision = tables.authoring.references.values(SEEN);
        let mut rows = of_revision.flat_map(|of| of.rows.values());
        match rows.find(|row| self.orphans.contains(&row.kept.generation)) {
            None => Ok(()),
            Some(row) => violation(
                "an orphan is referred to by nothing",
                format!("{}", row.kept.generation),
            ),
        }
    }

    /// True for an entry.
    fn installation(
        &mut self,
        case: &Case<'_>,
        changed: &Changed<Installation>,
    ) -> Result<bool, super::Violation> {
        let Some(after) = &changed.after else {
            return violation("the installation stands", "its row is gone");
        };
        let Some(before) = &changed.before else {
            self.epochs.insert(after.epoch);
            return Ok(false);
        };
        if before.epoch != after.epoch {
            if !self.epochs.insert(after.epoch) {
                return violation("an epoch is never issued again", format!("{}", after.epoch));
            }
            if self.entered.insert(case.process, after.epoch).is_some() {
                let said = format!("{}", case.process);
                return violation("a recovery start enters once", said);
            }
            self.entered_at = Some(case.now);
            entered(case, after)?;
            return Ok(true);
        }
        match (before.recovery_mode, after.recovery_mode) {
            (false, true) => violation(
                "recovery mode begins with an epoch of its own",
                format!("{}", after.epoch),
            ),
            (true, false) => left(case, after).map(|()| false),
            _ => Ok(false),
        }
    }

    /// Before its entry a recovery start records nothing but that entry and who asks for it;
    /// after it, nothing is carried out (PA §12.2).
    fn under_the_flag(&self, case: &Case<'_>, entry: bool) -> Verdict {
        if !entry && !self.entered.contains_key(&case.process) {
            let mut changes = case.changes.iter();
            return match changes.all(|change| matches!(change, Change::Principal(_))) {
                true => Ok(()),
                false => violation(
                    "nothing is recorded before the entry",
                    format!("{}", case.process),
                ),
            };
        }
        let carries = |change: &Change| match change {
            Change::Attempt(_) | Change::Plan(_) | Change::Approval(_) | Change::Release(_) => true,
            Change::Operation(changed) => {
                let begun = changed.before.is_none();
                begun
                    && changed
                        .after
                        .as_ref()
                        .is_some_and(|one| one.row.plan.is_some())
            }
            _ => false,
        };
        match case.changes.iter().any(carries) {
            false => Ok(()),
            true => violation(
                "a recovery start carries nothing out",
                format!("{}", case.process),
            ),
        }
    }
}

/// Who goes on with a claim or an operation holds it in the current epoch. What only ends it
/// may be anybody's.
fn epoch(case: &Case<'_>, change: &Change) -> Verdict {
    const WORDS: &str = "nothing from another epoch goes on";
    match change {
        Change::Claim(changed) => {
            let Some(after) = &changed.after else {
                return Ok(());
            };
            let goes_on = matches!(
                after.state.as_str(),
                "held" | "paused" | "resumed" | "released"
            );
            match goes_on && Some(after.fence.epoch) != case.epoch() {
                true => violation(WORDS, format!("{} is {}", after.id, after.state)),
                false => Ok(()),
            }
        }
        Change::Operation(changed) => {
            let Some(after) = &changed.after else {
                return Ok(());
            };
            let row = &after.row;
            let Some(fence) = &row.fence else {
                return Ok(());
            };
            let goes_on = matches!(
                row.state.as_str(),
                "running" | "succeeded" | "committed" | "sending" | "verifying" | "completed"
            );
            match goes_on && Some(fence.epoch) != case.epoch() {
                true => violation(WORDS, format!("{} is {}", row.id, row.state)),
                false => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn entered(case: &Case<'_>, after: &Installation) -> Verdict {
    if !case.is_act() || !case.recovering {
        return violation(
            "a person enters, under the flag",
            format!("{}", after.epoch),
        );
    }
    if !after.recovery_mode {
        return violation("an entry sets recovery mode", format!("{}", after.epoch));
    }
    for machine in case.tables.authoring.machines.values(SEEN) {
        let closed = matches!(
            machine.scope,
            ScopeState::PreRestoreUnaccounted | ScopeState::Retired
        );
        if !closed {
            return violation("an entry closes every scope", format!("{}", machine.id));
        }
    }
    for claim in case.tables.authoring.claims.values(SEEN) {
        if !matches!(claim.state.as_str(), "released" | "abandoned") {
            return violation("an entry ends every claim", format!("{}", claim.id));
        }
    }
    for operation in case.operations() {
        let row = &operation.row;
        if matches!(row.state.as_str(), "queued" | "running") {
            return violation("an entry fails every job", format!("{}", row.id));
        }
        if row.plan.is_none() || !holds(&row.state) || operation.retired {
            continue;
        }
        let taken = row.fence.as_ref().map(|fence| fence.epoch) == Some(after.epoch);
        if row.state != "unresolved" || !taken {
            let said = format!("{} is {}", row.id, row.state);
            return violation("an entry takes every operation over", said);
        }
    }
    Ok(())
}

/// Recovery mode is left with every scope released in its epoch, or written off.
fn left(case: &Case<'_>, after: &Installation) -> Verdict {
    let mut before = std::collections::BTreeMap::new();
    for change in case.changes {
        if let Change::Machine(changed) = change
            && let Some(row) = &changed.before
        {
            before.entry(row.id).or_insert(row.scope);
        }
    }
    for machine in case.tables.authoring.machines.values(SEEN) {
        let was = before.get(&machine.id).copied().unwrap_or(machine.scope);
        let done = match was {
            ScopeState::Released { epoch } => epoch == after.epoch,
            ScopeState::Retired => true,
            _ => false,
        };
        if !done {
            let said = format!("{}: {}", machine.id, was.as_str());
            return violation("recovery mode is left with every scope released", said);
        }
    }
    Ok(())
}
