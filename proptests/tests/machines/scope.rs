//! Scopes of machines through recovery mode, their gates and their freezes (EaR 3.2 comparison
//! 6, 6.2, 7). The model keeps how far each machine has come; the code keeps a state a row.

mod model;

use std::collections::BTreeMap;

use bronzeward_core::id::{DependencyId, MachineId, ObservationId, ReleaseId};
use bronzeward_core::installation::{ExitRefusal, Installation, exit};
use bronzeward_core::observation::{Purpose, Read, Unread};
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::rules::{Enforced, Rule, Rules};
use bronzeward_core::scope::{DecommissionRefusal, MarkEvidence, Scope, ScopeRefusal, ScopeState};
use bronzeward_without::Without;

use super::check::{Held, ensure, fails, holds, same};
use super::furniture::{BEFORE, epoch, observation};
use model::{Command, Known, Lack, Reached, commands};

struct World<R> {
    rules: R,
    /// The model's idea of who may skip an accounting: nobody, but in a control.
    lenient: bool,
    epoch: u128,
    recovery: bool,
    drifts: i64,
    rows: Vec<Scope>,
    model: Vec<Known>,
}

fn id(machine: usize) -> MachineId {
    MachineId::from_bits(machine as u128 + 1)
}

impl<R: Rules> World<R> {
    fn new(rules: R, lenient: bool) -> Self {
        let mut world = World {
            rules,
            lenient,
            epoch: 1,
            recovery: false,
            drifts: 0,
            rows: Vec::new(),
            model: Vec::new(),
        };
        world.inventory();
        world.inventory();
        world
    }

    fn inventory(&mut self) {
        self.rows.push(Scope {
            machine: id(self.rows.len()),
            state: ScopeState::at_inventory(self.recovery),
            frozen: false,
            open_drift: None,
        });
        self.model.push(Known {
            reached: match self.recovery {
                true => Reached::Lost,
                false => Reached::Outside,
            },
            frozen: false,
            drift: None,
        });
    }

    fn enter(&mut self) {
        self.epoch += 1;
        self.recovery = true;
        for (row, known) in self.rows.iter_mut().zip(&mut self.model) {
            row.state = row.state.entered();
            if known.reached != Reached::WrittenOff {
                known.reached = Reached::Lost;
            }
        }
    }

    fn exit(&mut self) -> Held {
        let installation = Installation {
            epoch: epoch(self.epoch),
            recovery_mode: self.recovery,
        };
        let scopes: BTreeMap<_, _> = self
            .rows
            .iter()
            .map(|row| (row.machine, row.state))
            .collect();
        let let_go = |known: &Known| {
            known.reached == Reached::Released(self.epoch) || known.reached == Reached::WrittenOff
        };
        let model = match self.recovery {
            false => Err(ExitRefusal::NotInRecovery),
            true => match self.model.iter().position(|known| !let_go(known)) {
                Some(machine) => Err(ExitRefusal::NotReleased {
                    machine: id(machine),
                }),
                None => Ok(()),
            },
        };
        let code = exit(&self.rules, &installation, &scopes);
        same("an exit", code, model)?;
        if code.is_ok() {
            self.recovery = false;
            for (row, known) in self.rows.iter_mut().zip(&mut self.model) {
                if known.reached != Reached::WrittenOff {
                    row.state = ScopeState::Normal;
                    known.reached = Reached::Outside;
                }
            }
        }
        Ok(())
    }

    fn act(&mut self, command: Command) -> Held {
        let count = self.rows.len();
        match command {
            Command::Enter => self.enter(),
            Command::Exit => self.exit()?,
            Command::Inventory if count < 3 => self.inventory(),
            Command::Inventory => {}
            Command::Account { machine, held } => self.account(machine % count, held)?,
            Command::Mark {
                machine,
                lack,
                held,
            } => self.mark(machine % count, lack, held)?,
            Command::Release { machine, moved } => self.release(machine % count, moved)?,
            Command::Freeze(machine) => self.freeze(machine % count)?,
            Command::Unfreeze(machine) => self.unfreeze(machine % count)?,
            Command::Drift { machine, opens } => self.drift(machine % count, opens),
            Command::Decommission { machine, answers } => {
                self.decommission(machine % count, answers)?;
            }
            Command::Ask {
                machine,
                bound,
                adoption,
            } => {
                self.ask(machine % count, bound, adoption)?;
            }
        }
        Ok(())
    }

    fn account(&mut self, machine: usize, held: bool) -> Held {
        let code = self.rows[machine].account(held);
        let known = &mut self.model[machine];
        let taken = known.reached == Reached::Lost || self.lenient;
        let refused = code.err();
        let model = (!taken).then_some(ScopeRefusal::NotUnaccounted);
        same("an accounting", refused, model)?;
        if let Ok(state) = code {
            self.rows[machine].state = state;
            known.reached = if held {
                Reached::Held
            } else {
                Reached::Lacking
            };
        }
        Ok(())
    }

    fn mark(&mut self, machine: usize, lack: Lack, held: bool) -> Held {
        let evidence = MarkEvidence {
            observation: ObservationId::from_bits(1),
            identity_read: lack != Lack::Reading,
            identity_matches: lack != Lack::Identity,
            after_accounting: lack != Lack::AfterAccounting,
            operation_moved_since: lack == Lack::Unmoved,
            access_as_checked: lack != Lack::SameAccess,
            access_checked: lack != Lack::CheckedAccess,
            failed_dependencies: match lack {
                Lack::Dependency => vec![DependencyId::from_bits(1)],
                _ => Vec::new(),
            },
            operation_open: held,
        };
        let code = self.rows[machine].mark(&self.rules, &evidence);
        let known = &mut self.model[machine];
        let model = match known.reached {
            Reached::Lost => Err(ScopeRefusal::Unaccounted),
            Reached::Outside | Reached::Released(_) | Reached::WrittenOff => {
                Err(ScopeRefusal::NotMarkable)
            }
            Reached::Held | Reached::Lacking | Reached::Fit if held => Ok((Reached::Held, false)),
            Reached::Held | Reached::Lacking | Reached::Fit if lack == Lack::Nothing => {
                Ok((Reached::Fit, false))
            }
            Reached::Held | Reached::Lacking | Reached::Fit => Ok((Reached::Lacking, true)),
        };
        let refused = code.as_ref().err().copied();
        same("a mark", refused, model.err())?;
        if let (Ok(marked), Ok((reached, missing))) = (code, model) {
            same("what is missing", !marked.missing.is_empty(), missing)?;
            self.rows[machine].state = marked.to;
            known.reached = reached;
        }
        Ok(())
    }

    fn release(&mut self, machine: usize, moved: bool) -> Held {
        let marked = Some(ReleaseId::from_bits(1));
        let desired = if moved { None } else { marked };
        let code = self.rows[machine].release(&self.rules, epoch(self.epoch), marked, desired);
        let known = &mut self.model[machine];
        let model = match (known.reached, moved) {
            (Reached::Lost, _) => Some(ScopeRefusal::Unaccounted),
            (Reached::Fit, true) => Some(ScopeRefusal::DesiredChanged),
            (Reached::Fit, false) => None,
            _ => Some(ScopeRefusal::NotReady),
        };
        same("a release", code.err(), model)?;
        if let Ok(state) = code {
            self.rows[machine].state = state;
            known.reached = Reached::Released(self.epoch);
        }
        Ok(())
    }

    fn freeze(&mut self, machine: usize) -> Held {
        let code = self.rows[machine].freeze();
        let known = &mut self.model[machine];
        let model = known.frozen.then_some(ScopeRefusal::AlreadyFrozen);
        same("a freeze", code.err(), model)?;
        known.frozen = true;
        self.rows[machine] = code.unwrap_or(self.rows[machine]);
        Ok(())
    }

    fn unfreeze(&mut self, machine: usize) -> Held {
        let code = self.rows[machine].unfreeze(&self.rules);
        let known = &mut self.model[machine];
        let model = match (known.reached, known.frozen) {
            (Reached::Lost, _) => Some(ScopeRefusal::Unaccounted),
            (_, false) => Some(ScopeRefusal::NotFrozen),
            (_, true) => None,
        };
        same("an unfreeze", code.err(), model)?;
        if let Ok(row) = code {
            self.rows[machine] = row;
            known.frozen = false;
        }
        Ok(())
    }

    fn drift(&mut self, machine: usize, opens: bool) {
        self.drifts += 1;
        let record = opens.then_some(self.drifts);
        self.rows[machine].open_drift = record.map(TimelineRevision);
        self.model[machine].drift = record;
    }

    fn decommission(&mut self, machine: usize, answers: bool) -> Held {
        let mut reading = observation(Purpose::Recovery, 1, 1, Some(BEFORE), Some(true));
        if !answers {
            reading.values.identity = Read::Unread(Unread::Refused);
        }
        let code = self.rows[machine].decommission(&self.rules, &reading);
        let known = &mut self.model[machine];
        let model = match (known.reached, answers) {
            (Reached::WrittenOff, _) => Some(DecommissionRefusal::AlreadyRetired),
            (_, true) => Some(DecommissionRefusal::Observable(reading.started.id)),
            (_, false) => None,
        };
        same("a decommission", code.err(), model)?;
        if let Ok(state) = code {
            self.rows[machine].state = state;
            known.reached = Reached::WrittenOff;
        }
        Ok(())
    }

    /// The questions that others ask of a scope.
    fn ask(&self, machine: usize, bound: Option<bool>, adoption: bool) -> Held {
        let (row, known) = (&self.rows[machine], self.model[machine]);
        let current = epoch(self.epoch);
        let bound = bound.and_then(|open| if open { known.drift } else { Some(0) });
        let record = bound.map(TimelineRevision);
        let code = row.gate(&self.rules, self.recovery, current, record, adoption);
        let closed = known.closed((self.recovery, self.epoch), bound, adoption);
        match code {
            Ok(()) => same("what closes the gate", Vec::new(), closed)?,
            Err(why) => ensure(
                closed.contains(&why),
                &format!("{why:?}: none of {closed:?}"),
            )?,
        }
        let released = !self.recovery || known.reached == Reached::Released(self.epoch);
        let changes = row.assignment_may_change(&self.rules, self.recovery, current);
        same("whether its assignment may change", changes, released)?;
        let accounted = row.accounted_for(&self.rules).is_ok();
        same(
            "whether it is accounted for",
            accounted,
            known.reached != Reached::Lost,
        )
    }
}

/// The step that each stage must have been entered from, by which act.
fn skipped(command: Command, from: ScopeState, to: ScopeState) -> bool {
    use ScopeState as S;
    let accounted = |state| matches!(state, S::Unresolved | S::Blocked | S::Ready);
    let right = match (command, to) {
        (Command::Enter, S::PreRestoreUnaccounted) => from != S::Retired,
        (Command::Account { .. }, S::Unresolved | S::Blocked) => from == S::PreRestoreUnaccounted,
        (Command::Mark { .. }, S::Unresolved | S::Blocked | S::Ready) => accounted(from),
        (Command::Release { .. }, S::Released { .. }) => from == S::Ready,
        (Command::Exit, S::Normal) => matches!(from, S::Released { .. }),
        (Command::Decommission { .. }, S::Retired) => true,
        _ => false,
    };
    from != to && !right
}

fn property<R: Rules>(rules: R, lenient: bool, commands: &[Command]) -> Held {
    let mut world = World::new(rules, lenient);
    for command in commands {
        let before = world.rows.clone();
        world.act(*command)?;
        for (row, known) in world.rows.iter().zip(&world.model) {
            same("a scope's state", row.state.as_str(), known.name())?;
            same("whether it is frozen", row.frozen, known.frozen)?;
            let released = ScopeState::Released {
                epoch: epoch(world.epoch),
            };
            let open = row
                .gate(
                    &Enforced,
                    world.recovery,
                    epoch(world.epoch),
                    row.open_drift,
                    true,
                )
                .is_ok();
            let lets = !world.recovery || row.state == released;
            ensure(
                lets || !open,
                "a gate is open on a scope that is not released",
            )?;
        }
        for (was, is) in before.iter().zip(&world.rows) {
            let skipped = skipped(*command, was.state, is.state);
            ensure(!skipped, "a scope skipped a stage")?;
        }
    }
    Ok(())
}

#[test]
fn a_scope_comes_through_recovery_one_stage_after_the_other() {
    holds(&commands(), |commands| property(Enforced, false, &commands));
}

#[test]
fn a_scope_under_fewer_rules_or_beside_a_wrong_model_differs() {
    for rule in [
        Rule::NotFrozen,
        Rule::DriftBound,
        Rule::BoundDriftOpen,
        Rule::ScopeReleased,
        Rule::AssignmentScopeReleased,
        Rule::ScopeAccountedFor,
        Rule::MarkEvidence,
        Rule::IdentityMatches,
        Rule::ReleaseNeedsReady,
        Rule::ReleaseDesiredUnchanged,
        Rule::ExitNeedsEveryScope,
        Rule::DecommissionUnobservable,
    ] {
        let rules = Without::rules(&[rule]);
        fails(rule.name(), &commands(), |commands| {
            property(rules, false, &commands)
        });
    }
    fails("an accounting at any stage", &commands(), |commands| {
        property(Enforced, true, &commands)
    });
}
