//! A machine's drift record (EaR 1, 6.1). Readings begin and end in any order, while operations
//! take and leave the scope and Applied changes. The model looks back over the machine's
//! timeline; the code is given what its transaction reads.

use bronzeward_core::attempt::Attempt;
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::drift::{AccountedOperation, Detection, Facts, OpenDrift, Resolution, detect};
use bronzeward_core::id::{MachineId, OperationId, ReleaseId};
use bronzeward_core::observation::{Observation, Purpose};
use bronzeward_core::release::{Applied, AppliedSource};
use bronzeward_core::revision::{BaselineRevision, TimelineRevision};
use bronzeward_core::rules::{Enforced, Rule, Rules};
use bronzeward_without::Without;
use proptest::prelude::*;

use super::check::{Held, ensure, fails, holds, same};
use super::furniture::{accounting, attempt, epoch, fence, observation};

/// The configurations a node may show, the first being Applied at the start.
const SHOWN: [&[u8]; 3] = [b"one", b"two", b"three"];
/// What the operation sent whose lost request was accounted for by decision.
const LATE: usize = 2;

#[derive(Clone, Copy, Debug)]
enum Command {
    Begin(Purpose),
    /// One of the readings under way ends and is recorded; nothing may have been read.
    End {
        reading: usize,
        shows: Option<usize>,
    },
    /// An operation takes the scope, or leaves it with Applied as it was.
    Take,
    Leave,
    /// An operation completes: Applied changes, and an open record is reverted.
    Complete(usize),
    /// An adoption record: Applied becomes what was observed.
    Adopt,
    /// A lost request is accounted for by decision.
    Account,
}

fn commands() -> impl Strategy<Value = Vec<Command>> {
    let purposes = vec![
        Purpose::Drift,
        Purpose::Drift,
        Purpose::Drift,
        Purpose::Evidence,
        Purpose::Restoration,
        Purpose::Completion,
        Purpose::Recovery,
        Purpose::Publication,
    ];
    let shows = prop_oneof![6 => (0..3_usize).prop_map(Some), 1 => Just(None)];
    let command = prop_oneof![
        6 => prop::sample::select(purposes).prop_map(Command::Begin),
        8 => (0..3_usize, shows).prop_map(|(reading, shows)| Command::End { reading, shows }),
        1 => Just(Command::Take),
        2 => Just(Command::Leave),
        1 => (0..3_usize).prop_map(Command::Complete),
        1 => Just(Command::Adopt),
        1 => Just(Command::Account),
    ];
    prop::collection::vec(command, 1..40)
}

/// One line of the machine's timeline.
#[derive(Clone, Copy)]
enum Entry {
    Began,
    /// A reading that began at the entry named.
    Read {
        basis: usize,
        digest: bool,
    },
    Taken,
    Left,
    Applied(usize),
}

/// One record, as the contract tells of it.
struct Record {
    first: usize,
    last: usize,
    late: bool,
    ended: Option<Resolution>,
}

struct Model {
    /// What holds a reading back, but in a control that forgets it.
    heeds_scope: bool,
    timeline: Vec<Entry>,
    records: Vec<Record>,
    accounted: bool,
}

impl Model {
    fn applied(&self) -> usize {
        let changes = self.timeline.iter().rev();
        let last = changes.filter_map(|entry| match entry {
            Entry::Applied(shows) => Some(*shows),
            Entry::Began | Entry::Read { .. } | Entry::Taken | Entry::Left => None,
        });
        last.into_iter().next().unwrap_or(0)
    }

    fn changes(&self, from: usize) -> usize {
        let after = self.timeline.iter().skip(from);
        after
            .filter(|entry| matches!(entry, Entry::Applied(_)))
            .count()
    }

    fn held(&self) -> bool {
        let last = self.timeline.iter().rev().find_map(|entry| match entry {
            Entry::Taken => Some(true),
            Entry::Left | Entry::Applied(_) => Some(false),
            Entry::Began | Entry::Read { .. } => None,
        });
        last.unwrap_or(false)
    }

    /// Whether an operation held the scope at the basis, or took it since.
    fn held_since(&self, basis: usize) -> bool {
        let mut held = false;
        let mut overlaps = false;
        for (at, entry) in self.timeline.iter().enumerate() {
            match entry {
                Entry::Taken => held = true,
                Entry::Left | Entry::Applied(_) => held = false,
                Entry::Began | Entry::Read { .. } => {}
            }
            overlaps |= held && at >= basis;
        }
        overlaps
    }

    fn open(&self) -> Option<&Record> {
        self.records.last().filter(|record| record.ended.is_none())
    }

    /// What a reading does to the record, from the timeline before it.
    fn detects(&self, purpose: Purpose, basis: usize, shows: usize) -> Kind {
        let compares = match purpose {
            Purpose::Drift | Purpose::Evidence | Purpose::Restoration | Purpose::Completion => true,
            Purpose::Publication | Purpose::Recovery => false,
        };
        let later = self.timeline.iter().any(|entry| match entry {
            Entry::Read {
                basis: other,
                digest,
            } => *digest && *other > basis,
            Entry::Began | Entry::Taken | Entry::Left | Entry::Applied(_) => false,
        });
        if !compares || later || self.changes(basis) > 0 {
            return Kind::Nothing;
        }
        let differs = shows != self.applied();
        let operations = matches!(purpose, Purpose::Drift | Purpose::Evidence);
        let theirs = self.heeds_scope && operations && self.held_since(basis);
        match (self.open().is_some(), differs) {
            (true, false) => Kind::Return,
            (false, false) => Kind::Nothing,
            (_, true) if theirs => Kind::Nothing,
            (false, true) => Kind::Open,
            (true, true) => Kind::Extend,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nothing,
    Open,
    Extend,
    Return,
}

struct Begun {
    purpose: Purpose,
    basis: usize,
    baseline: BaselineRevision,
}

struct World<R> {
    rules: R,
    begun: Vec<Begun>,
    recorded: Vec<Observation>,
    applied: Applied,
    open: Option<OpenDrift>,
    /// The scope as rows say it: held now, and when an operation last took or left it.
    holder: bool,
    touched: Option<i64>,
    attempts: Vec<Attempt>,
    model: Model,
}

fn digest(shows: usize) -> ConfigDigest {
    ConfigDigest::of(SHOWN[shows])
}

impl<R: Rules> World<R> {
    fn new(rules: R, heeds_scope: bool) -> Self {
        World {
            rules,
            begun: Vec::new(),
            recorded: Vec::new(),
            applied: Applied {
                release: ReleaseId::from_bits(1),
                digest: digest(0),
                source: AppliedSource::Adoption,
                baseline: BaselineRevision::FIRST,
            },
            open: None,
            holder: false,
            touched: None,
            attempts: Vec::new(),
            model: Model {
                heeds_scope,
                timeline: Vec::new(),
                records: Vec::new(),
                accounted: false,
            },
        }
    }

    fn append(&mut self, entry: Entry) -> usize {
        self.model.timeline.push(entry);
        self.model.timeline.len() - 1
    }

    fn act(&mut self, command: Command) -> Held {
        match command {
            Command::Begin(purpose) => {
                let basis = self.append(Entry::Began);
                let baseline = self.applied.baseline;
                self.begun.push(Begun {
                    purpose,
                    basis,
                    baseline,
                });
            }
            Command::End { reading, shows } if !self.begun.is_empty() => {
                let reading = self.begun.remove(reading % self.begun.len());
                self.end(&reading, shows)?;
            }
            Command::End { .. } => {}
            Command::Take if !self.model.held() => {
                let revision = self.append(Entry::Taken);
                self.holder = true;
                self.touched = Some(revision as i64);
            }
            Command::Leave if self.model.held() => self.leave(Entry::Left),
            Command::Complete(shows) if self.model.held() => {
                self.change(shows, AppliedSource::Operation, Resolution::Reverted);
            }
            Command::Adopt if !self.model.held() => self.adopt(),
            Command::Take | Command::Leave | Command::Complete(_) | Command::Adopt => {}
            Command::Account => self.account(),
        }
        Ok(())
    }

    fn leave(&mut self, entry: Entry) {
        let revision = self.append(entry);
        if std::mem::take(&mut self.holder) {
            self.touched = Some(revision as i64);
        }
    }

    fn change(&mut self, shows: usize, source: AppliedSource, resolution: Resolution) {
        self.leave(Entry::Applied(shows));
        self.applied = Applied {
            digest: digest(shows),
            source,
            baseline: BaselineRevision::after(Some(self.applied.baseline)),
            ..self.applied
        };
        self.open = None;
        if let Some(record) = self.model.records.last_mut() {
            record.ended = record.ended.or(Some(resolution));
        }
    }

    fn adopt(&mut self) {
        if let Some(last) = self.model.open().map(|record| record.last) {
            self.change(last, AppliedSource::Adoption, Resolution::Adopted);
        }
    }

    fn account(&mut self) {
        self.model.accounted = true;
        let mut lost = attempt(1, fence(1, 1, epoch(1)), TimelineRevision(1), 1);
        lost.accounting = Some(accounting(TimelineRevision(1), 1));
        self.attempts = vec![lost];
    }

    fn end(&mut self, reading: &Begun, shows: Option<usize>) -> Held {
        let basis = reading.basis as i64;
        let configuration = shows.map(|shows| SHOWN[shows]);
        let mut ended = observation(reading.purpose, basis, basis, configuration, Some(true));
        ended.revision = TimelineRevision(self.model.timeline.len() as i64);
        ended.started.baseline = Some(reading.baseline);
        let superseded = self
            .recorded
            .iter()
            .any(|other| other.digest().is_some() && other.started.basis > ended.started.basis);
        let code = detect(
            &self.rules,
            &Facts {
                observation: &ended,
                applied: Some(&self.applied),
                superseded,
                held_since_basis: self.holder || self.touched.is_some_and(|at| at >= basis),
                open: self.open.as_ref(),
                accounted: Some(AccountedOperation {
                    operation: OperationId::from_bits(1),
                    artifact: digest(LATE),
                    attempts: &self.attempts,
                }),
            },
        );
        let model = match shows {
            None => Kind::Nothing,
            Some(shows) => self.model.detects(reading.purpose, reading.basis, shows),
        };
        let (kind, late) = match code {
            Detection::Nothing => (Kind::Nothing, None),
            Detection::Return => (Kind::Return, None),
            Detection::Open { late_landing, .. } => (Kind::Open, Some(late_landing)),
            Detection::Extend { late_landing, .. } => (Kind::Extend, Some(late_landing)),
        };
        same("a reading", kind, model)?;
        if let Some(late) = late {
            let linked = self.model.accounted && shows == Some(LATE);
            same("a late landing", late.is_some(), linked)?;
        }
        self.apply(&ended, code, shows.unwrap_or(0))?;
        let basis = reading.basis;
        self.append(Entry::Read {
            basis,
            digest: shows.is_some(),
        });
        self.recorded.push(ended);
        Ok(())
    }

    /// Carries a detection out on the rows and in the model.
    fn apply(&mut self, reading: &Observation, detection: Detection, shows: usize) -> Held {
        let entry = self.model.timeline.len();
        match detection {
            Detection::Nothing => {}
            Detection::Open {
                applied,
                observed,
                late_landing,
            } => {
                ensure(self.open.is_none(), "a second record was opened")?;
                ensure(applied != observed, "a record without a difference")?;
                same("Applied", applied, self.applied.digest)?;
                self.open = Some(OpenDrift {
                    machine: MachineId::from_bits(1),
                    revision: TimelineRevision(entry as i64),
                    applied_digest: applied,
                    observed_digest: observed,
                    observation: reading.started.id,
                    last_observation: reading.started.id,
                    late_landing,
                });
                self.model.records.push(Record {
                    first: entry,
                    last: shows,
                    late: late_landing.is_some(),
                    ended: None,
                });
            }
            Detection::Extend {
                observed,
                late_landing,
            } => {
                let open = self.open.as_mut().ok_or("nothing is open to extend")?;
                open.observed_digest = observed;
                open.last_observation = reading.started.id;
                open.late_landing = open.late_landing.or(late_landing);
                if let Some(record) = self.model.records.last_mut() {
                    record.last = shows;
                    record.late |= late_landing.is_some();
                }
            }
            Detection::Return => {
                ensure(self.open.take().is_some(), "nothing was open to return")?;
                if let Some(record) = self.model.records.last_mut() {
                    record.ended = Some(Resolution::Returned);
                }
            }
        }
        Ok(())
    }
}

fn property<R: Rules>(rules: R, heeds_scope: bool, commands: &[Command]) -> Held {
    let mut world = World::new(rules, heeds_scope);
    for command in commands {
        let closed = |world: &World<R>| {
            let records = world.model.records.iter();
            records
                .filter_map(|record| record.ended)
                .collect::<Vec<_>>()
        };
        let before = closed(&world);
        world.act(*command)?;
        let model = &world.model;
        let open = model
            .open()
            .map(|record| (record.first as i64, digest(record.last)));
        let row = world.open.map(|row| (row.revision.0, row.observed_digest));
        same("the open record", row, open)?;
        let late = model.open().is_some_and(|record| record.late);
        let row = world.open.is_some_and(|row| row.late_landing.is_some());
        same("its late landing", row, late)?;
        same("Applied", world.applied.digest, digest(model.applied()))?;
        let changes = model.changes(0) as i64 + 1;
        same("its baseline", world.applied.baseline.0, changes)?;
        let unended = model.records.iter().filter(|record| record.ended.is_none());
        ensure(unended.count() <= 1, "two records are open")?;
        ensure(
            closed(&world).starts_with(&before),
            "a closed record changed",
        )?;
    }
    Ok(())
}

#[test]
fn a_drift_record_is_opened_extended_and_closed_as_the_timeline_says() {
    holds(&commands(), |commands| property(Enforced, true, &commands));
}

#[test]
fn drift_under_fewer_rules_or_beside_a_wrong_model_differs() {
    for rule in [
        Rule::DriftBaselineUnmoved,
        Rule::DriftNotSuperseded,
        Rule::DriftScopeFree,
        Rule::DriftReturns,
        Rule::DriftOpensOnce,
        Rule::LateLandingLinked,
    ] {
        let rules = Without::rules(&[rule]);
        fails(rule.name(), &commands(), |commands| {
            property(rules, true, &commands)
        });
    }
    fails("a reading under an operation", &commands(), |commands| {
        property(Enforced, false, &commands)
    });
}
