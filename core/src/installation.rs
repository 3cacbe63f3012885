//! The installation's single row, recovery entry and exit (PA §12, EaR 7.1).
//!
//! Every transaction reads the row under a lock; entry and exit decide here. Never in
//! this module: what a scope needs to be released (that is `scope`).

use crate::epoch::ProcessEpoch;
use crate::id::{EpochId, MachineId};
use crate::rules::{Rule, Rules};
use crate::scope::ScopeState;
use crate::time::DbTime;

/// The row every transaction reads under its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Installation {
    pub epoch: EpochId,
    pub recovery_mode: bool,
}

/// What a restore brought back (PA §12.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackupFamily {
    Database,
    Provider,
    CredentialStore,
}

impl BackupFamily {
    pub const fn as_str(self) -> &'static str {
        match self {
            BackupFamily::Database => "database",
            BackupFamily::Provider => "provider",
            BackupFamily::CredentialStore => "credential-store",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "database" => Some(BackupFamily::Database),
            "provider" => Some(BackupFamily::Provider),
            "credential-store" => Some(BackupFamily::CredentialStore),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredBackup {
    pub family: BackupFamily,
    pub backup: String,
    pub taken_at: DbTime,
}

/// What an entry says of the restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRequest {
    pub restored: Vec<RestoredBackup>,
    /// When every instance from before the restore had stopped.
    pub stopped_at: DbTime,
    pub reason: String,
}

/// How this process was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartMode {
    Normal,
    /// Under the recovery-start flag; `entered` is the epoch its own entry minted.
    Recovery {
        started_in: EpochId,
        entered: Option<EpochId>,
    },
}

impl StartMode {
    /// Whether requests other than liveness and entry are served (PA §12.2).
    pub fn serves<R: Rules>(self, rules: &R) -> bool {
        match self {
            StartMode::Normal => true,
            StartMode::Recovery { entered, .. } => {
                rules.holds(Rule::RecoveryStartGate, entered.is_some())
            }
        }
    }

    /// Whether plans, approvals and unfreezes are served: never under the flag.
    pub const fn serves_plans(self) -> bool {
        match self {
            StartMode::Normal => true,
            StartMode::Recovery { .. } => false,
        }
    }

    /// The epoch this process may issue ownership in.
    pub fn process_epoch(self, read_at_start: EpochId) -> ProcessEpoch {
        match self {
            StartMode::Normal => ProcessEpoch(read_at_start),
            StartMode::Recovery {
                started_in,
                entered,
            } => ProcessEpoch(entered.unwrap_or(started_in)),
        }
    }
}

/// Why an entry is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryRefusal {
    /// The process was not started for recovery.
    NotARecoveryStart,
    /// An entry has already committed since this start.
    AlreadyEntered { current: EpochId },
    /// No restored backup is named, or one family twice.
    Backups,
    /// The old instances cannot have stopped in the future.
    StoppedInFuture,
}

/// Decides an entry under the installation lock (T9).
pub fn enter<R: Rules>(
    rules: &R,
    start: StartMode,
    installation: &Installation,
    request: &EntryRequest,
    now: DbTime,
) -> Result<(), EntryRefusal> {
    let StartMode::Recovery { started_in, .. } = start else {
        return Err(EntryRefusal::NotARecoveryStart);
    };
    if !rules.holds(Rule::EntryOncePerStart, installation.epoch == started_in) {
        return Err(EntryRefusal::AlreadyEntered {
            current: installation.epoch,
        });
    }
    let families: std::collections::BTreeSet<_> = request
        .restored
        .iter()
        .map(|backup| backup.family)
        .collect();
    if families.is_empty() || families.len() != request.restored.len() {
        return Err(EntryRefusal::Backups);
    }
    if request.stopped_at > now {
        return Err(EntryRefusal::StoppedInFuture);
    }
    Ok(())
}

/// Why recovery mode is not left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitRefusal {
    NotInRecovery,
    /// The first scope, by identifier, that is not released.
    NotReleased {
        machine: MachineId,
    },
}

/// Decides an exit under the installation's exclusive lock, over every machine.
pub fn exit<R: Rules>(
    rules: &R,
    installation: &Installation,
    scopes: &std::collections::BTreeMap<MachineId, ScopeState>,
) -> Result<(), ExitRefusal> {
    if !installation.recovery_mode {
        return Err(ExitRefusal::NotInRecovery);
    }
    for (machine, state) in scopes {
        let done = state.lets_exit(installation.epoch);
        if !rules.holds(Rule::ExitNeedsEveryScope, done) {
            return Err(ExitRefusal::NotReleased { machine: *machine });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Enforced, Without};

    fn request() -> EntryRequest {
        EntryRequest {
            restored: vec![RestoredBackup {
                family: BackupFamily::Database,
                backup: "pg".into(),
                taken_at: DbTime::from_seconds(1),
            }],
            stopped_at: DbTime::from_seconds(5),
            reason: "restored".into(),
        }
    }

    const NOW: DbTime = DbTime::from_seconds(10);

    fn at(epoch: u128) -> Installation {
        Installation {
            epoch: EpochId::from_bits(epoch),
            recovery_mode: false,
        }
    }

    fn start() -> StartMode {
        StartMode::Recovery {
            started_in: EpochId::from_bits(1),
            entered: None,
        }
    }

    #[test]
    fn one_start_enters_once() {
        assert_eq!(enter(&Enforced, start(), &at(1), &request(), NOW), Ok(()));
        let again = enter(&Enforced, start(), &at(2), &request(), NOW);
        assert_eq!(
            again,
            Err(EntryRefusal::AlreadyEntered {
                current: EpochId::from_bits(2)
            })
        );
        let control = Without(&[Rule::EntryOncePerStart]);
        assert_eq!(enter(&control, start(), &at(2), &request(), NOW), Ok(()));
        assert_eq!(
            enter(&Enforced, StartMode::Normal, &at(1), &request(), NOW),
            Err(EntryRefusal::NotARecoveryStart)
        );
    }

    #[test]
    fn an_entry_names_each_family_once_and_a_stop_that_has_happened() {
        let mut none = request();
        none.restored.clear();
        let mut twice = request();
        twice.restored.push(twice.restored[0].clone());
        for request in [none, twice] {
            assert_eq!(
                enter(&Enforced, start(), &at(1), &request, NOW),
                Err(EntryRefusal::Backups)
            );
        }
        let mut future = request();
        future.stopped_at = DbTime::from_seconds(11);
        assert_eq!(
            enter(&Enforced, start(), &at(1), &future, NOW),
            Err(EntryRefusal::StoppedInFuture)
        );
    }

    #[test]
    fn a_recovery_start_serves_nothing_before_its_entry_and_acts_in_the_minted_epoch() {
        let old = EpochId::from_bits(1);
        let new = EpochId::from_bits(2);
        assert!(!start().serves(&Enforced));
        assert!(start().serves(&Without(&[Rule::RecoveryStartGate])));
        let entered = StartMode::Recovery {
            started_in: old,
            entered: Some(new),
        };
        assert!(entered.serves(&Enforced));
        assert!(!entered.serves_plans());
        assert_eq!(entered.process_epoch(old), ProcessEpoch(new));
        assert_eq!(start().process_epoch(old), ProcessEpoch(old));
    }

    #[test]
    fn recovery_mode_is_left_once_every_scope_is_released_in_this_epoch() {
        let installation = Installation {
            epoch: EpochId::from_bits(2),
            recovery_mode: true,
        };
        let released = ScopeState::Released {
            epoch: EpochId::from_bits(2),
        };
        let mut scopes = std::collections::BTreeMap::from([
            (MachineId::from_bits(1), released),
            (MachineId::from_bits(2), ScopeState::Retired),
        ]);
        assert_eq!(exit(&Enforced, &installation, &scopes), Ok(()));
        for state in [
            ScopeState::Ready,
            ScopeState::PreRestoreUnaccounted,
            ScopeState::Released {
                epoch: EpochId::from_bits(1),
            },
        ] {
            scopes.insert(MachineId::from_bits(3), state);
            assert_eq!(
                exit(&Enforced, &installation, &scopes),
                Err(ExitRefusal::NotReleased {
                    machine: MachineId::from_bits(3)
                })
            );
            let control = Without(&[Rule::ExitNeedsEveryScope]);
            assert_eq!(exit(&control, &installation, &scopes), Ok(()));
        }
        assert_eq!(
            exit(&Enforced, &at(2), &scopes),
            Err(ExitRefusal::NotInRecovery)
        );
    }
}
