//! The recovery epoch (PA §5.1, §12.1, §12.2): who may enter, who may issue, and whose token is
//! admitted, over restores. The model counts entries and names each issue; the code compares
//! identities.

use bronzeward_core::fence::{Fence, Generation};
use bronzeward_core::id::EpochId;
use bronzeward_core::installation::{
    BackupFamily, EntryRefusal, EntryRequest, Installation, RestoredBackup, StartMode, enter,
};
use bronzeward_core::rules::{Enforced, Rule, Rules};
use bronzeward_without::Without;
use proptest::prelude::*;

use super::check::{Held, ensure, fails, holds, same};
use super::furniture::{at, epoch, fence, owner};

const NOW: i64 = 100;

#[derive(Clone, Copy, Debug)]
enum Named {
    One,
    Twice,
    None,
    StoppedLater,
}

#[derive(Clone, Copy, Debug)]
enum Command {
    /// A process starts: normally, or under the recovery-start flag.
    Start {
        recovery: bool,
    },
    Enter {
        process: usize,
        named: Named,
    },
    /// A process takes the record over.
    Issue(usize),
    /// A process shows a token it was issued.
    Use(usize),
    Backup,
    /// The database goes back to the last backup; processes and their tokens stay.
    Restore,
}

fn commands() -> impl Strategy<Value = Vec<Command>> {
    let named = prop_oneof![
        6 => Just(Named::One),
        1 => Just(Named::Twice),
        1 => Just(Named::None),
        1 => Just(Named::StoppedLater),
    ];
    let command = prop_oneof![
        2 => any::<bool>().prop_map(|recovery| Command::Start { recovery }),
        3 => (0..4_usize, named).prop_map(|(process, named)| Command::Enter { process, named }),
        4 => (0..4_usize).prop_map(Command::Issue),
        5 => (0..4_usize).prop_map(Command::Use),
        1 => Just(Command::Backup),
        1 => Just(Command::Restore),
    ];
    prop::collection::vec(command, 1..30)
}

/// A process as the contract tells of it.
struct Process {
    start: StartMode,
    /// The epoch it read at its start.
    read: u128,
    flagged: bool,
    /// The epoch its own entry minted.
    minted: Option<u128>,
}

struct Token {
    fence: Fence,
    process: usize,
    epoch: u128,
    generation: i64,
    /// How many entries had committed when it was issued.
    entries: u32,
}

/// What a backup holds.
#[derive(Clone)]
struct Database {
    installation: Installation,
    record: Fence,
    /// The model's: the epoch, and who holds the record at which generation.
    epoch: u128,
    holder: Option<usize>,
    holder_epoch: u128,
    generation: i64,
}

struct World<R> {
    rules: R,
    /// The model's idea of a token from before an entry; refused, but in a control.
    forgiving: bool,
    minted: u128,
    entries: u32,
    /// A restore after the last entry, which nobody can tell but the operator.
    unguarded: bool,
    database: Database,
    backup: Database,
    processes: Vec<Process>,
    tokens: Vec<Token>,
}

impl<R: Rules> World<R> {
    fn new(rules: R, forgiving: bool) -> Self {
        let database = Database {
            installation: Installation {
                epoch: epoch(1),
                recovery_mode: false,
            },
            record: fence(99, 0, epoch(1)),
            epoch: 1,
            holder: None,
            holder_epoch: 1,
            generation: 0,
        };
        let mut world = World {
            rules,
            forgiving,
            minted: 1,
            entries: 0,
            unguarded: false,
            backup: database.clone(),
            database,
            processes: Vec::new(),
            tokens: Vec::new(),
        };
        world.start(false);
        world
    }

    fn start(&mut self, recovery: bool) {
        let read: EpochId = self.database.installation.epoch;
        self.processes.push(Process {
            start: match recovery {
                false => StartMode::Normal,
                true => StartMode::Recovery {
                    started_in: read,
                    entered: None,
                },
            },
            read: self.database.epoch,
            flagged: recovery,
            minted: None,
        });
    }

    /// The epoch a process acts in, by the model.
    fn own(&self, process: usize) -> u128 {
        let process = &self.processes[process];
        process.minted.unwrap_or(process.read)
    }

    fn act(&mut self, command: Command) -> Held {
        let count = self.processes.len();
        match command {
            Command::Start { recovery } if count < 4 => self.start(recovery),
            Command::Start { .. } => {}
            Command::Enter { process, named } => self.enter(process % count, named)?,
            Command::Issue(process) => self.issue(process % count)?,
            Command::Use(token) if !self.tokens.is_empty() => {
                self.show(self.tokens.len().saturating_sub(1 + token))?;
            }
            Command::Use(_) => {}
            Command::Backup => self.backup = self.database.clone(),
            Command::Restore => {
                self.database = self.backup.clone();
                self.unguarded = true;
            }
        }
        Ok(())
    }

    fn enter(&mut self, process: usize, named: Named) -> Held {
        let backup = |family| RestoredBackup {
            family,
            backup: "b".into(),
            taken_at: at(1),
        };
        let request = EntryRequest {
            restored: match named {
                Named::None => Vec::new(),
                Named::Twice => vec![
                    backup(BackupFamily::Database),
                    backup(BackupFamily::Database),
                ],
                Named::One | Named::StoppedLater => vec![backup(BackupFamily::Provider)],
            },
            stopped_at: at(match named {
                Named::StoppedLater => NOW + 1,
                Named::One | Named::Twice | Named::None => NOW,
            }),
            reason: "restored".into(),
        };
        let known = &self.processes[process];
        let model = match named {
            _ if !known.flagged => Some(EntryRefusal::NotARecoveryStart),
            _ if known.read != self.database.epoch => Some(EntryRefusal::AlreadyEntered {
                current: self.database.installation.epoch,
            }),
            Named::None | Named::Twice => Some(EntryRefusal::Backups),
            Named::StoppedLater => Some(EntryRefusal::StoppedInFuture),
            Named::One => None,
        };
        let installation = &self.database.installation;
        let code = enter(&self.rules, known.start, installation, &request, at(NOW));
        same("an entry", code.err(), model)?;
        if code.is_ok() {
            self.minted += 1;
            self.entries += 1;
            self.unguarded = false;
            self.database.epoch = self.minted;
            self.database.installation = Installation {
                epoch: epoch(self.minted),
                recovery_mode: true,
            };
            let known = &mut self.processes[process];
            known.minted = Some(self.minted);
            if let StartMode::Recovery { entered, .. } = &mut known.start {
                *entered = Some(epoch(self.minted));
            }
        }
        Ok(())
    }

    fn issue(&mut self, process: usize) -> Held {
        let current = self.database.installation.epoch;
        let known = &self.processes[process];
        let own = known.start.process_epoch(epoch(known.read));
        let code = own.admits(&self.rules, current);
        let may = self.own(process) == self.database.epoch;
        same("whether it may issue", code.is_ok(), may)?;
        if code.is_err() {
            return Ok(());
        }
        // Two of the four processes have one owner's string, so that the generation decides.
        let taken = self
            .database
            .record
            .taken_by(owner(process as u128 % 3), current);
        let generation = self.database.generation + 1;
        same("the generation", taken.generation, Generation(generation))?;
        self.database.record = taken.clone();
        self.database.holder = Some(process % 3);
        self.database.holder_epoch = self.database.epoch;
        self.database.generation = generation;
        self.tokens.push(Token {
            fence: taken,
            process: process % 3,
            epoch: self.database.epoch,
            generation,
            entries: self.entries,
        });
        Ok(())
    }

    fn show(&self, token: usize) -> Held {
        let token = &self.tokens[token];
        let database = &self.database;
        let current = database.installation.epoch;
        let code = database.record.admits(&self.rules, &token.fence, current);
        let holds = database.holder == Some(token.process)
            && database.generation == token.generation
            && database.holder_epoch == token.epoch;
        let model = holds && (token.epoch == database.epoch || self.forgiving);
        same("whether a token is admitted", code.is_ok(), model)?;
        let superseded = token.entries < self.entries && !self.unguarded;
        ensure(
            code.is_err() || !superseded,
            "a token from before an entry is admitted after it",
        )
    }

    fn served(&self) -> Held {
        for process in &self.processes {
            let serves = !process.flagged || process.minted.is_some();
            same("what it serves", process.start.serves(&self.rules), serves)?;
            same("plans", process.start.serves_plans(), !process.flagged)?;
        }
        Ok(())
    }
}

fn property<R: Rules>(rules: R, forgiving: bool, commands: &[Command]) -> Held {
    let mut world = World::new(rules, forgiving);
    let mut epochs = vec![world.database.installation.epoch];
    for command in commands {
        let entries = world.entries;
        world.act(*command)?;
        world.served()?;
        let current = world.database.installation.epoch;
        same("the epoch", current, epoch(world.database.epoch))?;
        if world.entries > entries {
            ensure(!epochs.contains(&current), "an epoch was minted twice")?;
            epochs.push(current);
        }
    }
    Ok(())
}

#[test]
fn an_entry_fences_everything_issued_before_it_out() {
    holds(&commands(), |commands| property(Enforced, false, &commands));
}

#[test]
fn an_epoch_under_fewer_rules_or_beside_a_wrong_model_differs() {
    for rule in [
        Rule::ProcessEpoch,
        Rule::EntryOncePerStart,
        Rule::RecoveryStartGate,
        Rule::FenceEpoch,
        Rule::FenceOwner,
        Rule::FenceGeneration,
    ] {
        let rules = Without::rules(&[rule]);
        fails(rule.name(), &commands(), |commands| {
            property(rules, false, &commands)
        });
    }
    fails("a token that outlives an entry", &commands(), |commands| {
        property(Enforced, true, &commands)
    });
}
