//! Judges: what must hold after every step, whatever the code under test says.
//!
//! Fed by the journal, one file a family. A judge keeps what it needs of the past and never
//! reads a decision of `core` or the engine; it looks at rows, requests and nodes. Never in
//! this module: a repair.

mod accountings;
mod adoptions;
mod authority;
mod case;
mod claims;
mod disclosure;
mod dispatch;
mod drafts;
mod drifts;
mod effects;
mod evidence;
mod idempotency;
mod locks;
mod moves;
mod nodes;
mod operations;
mod places;
mod published;
mod quiet;
mod records;
mod recovery;
mod references;
mod releases;
mod scopes;
mod sometimes;
mod told;
mod verdicts;

use crate::change::Outside;
use crate::journal::Event;
use crate::sim::State;

use case::Case;

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's name: stable, as expected outcomes quote it.
    pub invariant: &'static str,
    pub said: String,
}

pub(crate) fn violation<T>(
    invariant: &'static str,
    said: impl Into<String>,
) -> Result<T, Violation> {
    Err(Violation {
        invariant,
        said: said.into(),
    })
}

pub use moves::Moves;
pub use sometimes::{NOT_YET, SOMETIMES};

pub type Verdict = Result<(), Violation>;

/// Every judge, in the order in which they are asked.
#[derive(Clone, Debug, Default)]
pub struct Judges {
    nodes: nodes::Nodes,
    records: records::Records,
    recovery: recovery::Recovery,
    authority: authority::Authority,
    idempotency: idempotency::Idempotency,
}

impl Judges {
    /// Asks every judge of what happened in a step.
    pub fn look(&mut self, state: &mut State, events: &[Event]) -> Verdict {
        let seen = &mut state.outside.seen;
        let tables = &state.db.tables;
        let now = state.sched.now();
        for event in events {
            match event {
                Event::Outside(outside) => {
                    if matches!(outside, Outside::Restored) {
                        self.records.restored(tables);
                        self.recovery.restored();
                        self.authority.restored(now);
                    }
                    if let Outside::Answered(answered) = outside {
                        self.idempotency.answered(answered)?;
                        self.recovery.answered(answered)?;
                    }
                    if let Outside::Orphans(paths) = outside {
                        self.recovery.reported(tables, paths)?;
                    }
                    if let Outside::Circle(processes) = outside {
                        locks::circle(processes)?;
                    }
                    self.nodes.outside(now, outside)?;
                    sometimes::outside(tables, outside, seen);
                }
                Event::Commit {
                    process,
                    held,
                    changes,
                } => {
                    let case = Case {
                        tables,
                        now,
                        process: *process,
                        recovering: state.house.recovering.contains(process),
                        owner: state.house.owners.get(process),
                        began_in: state.house.began_in.get(process).copied(),
                        denied: state.house.denied.get(process),
                        held,
                        changes,
                    };
                    self.records.look(&case)?;
                    claims::look(&case)?;
                    drafts::look(&case, &state.house.expected)?;
                    self.idempotency.look(&case)?;
                    let entered = self.recovery.entered_at;
                    self.authority.look(&case, &state.house.asked, entered)?;
                    effects::look(&case)?;
                    disclosure::look(&case)?;
                    references::look(&case, &state.outside.vault)?;
                    self.recovery.look(&case)?;
                    scopes::look(&case)?;
                    accountings::look(&case)?;
                    operations::look(&case)?;
                    dispatch::look(&case)?;
                    releases::look(&case)?;
                    published::look(&case)?;
                    evidence::look(&case)?;
                    verdicts::look(&case)?;
                    adoptions::look(&case)?;
                    drifts::look(&case)?;
                    self.nodes.look(&case)?;
                    places::look(&case)?;
                    sometimes::look(&case, seen);
                    moves::look(&case, &mut seen.moves);
                    told::look(&case)?;
                }
            }
        }
        Ok(())
    }

    /// What holds once the world is healed and quiet: the final oracle, which only reads.
    pub fn at_the_end(&self, state: &State) -> Verdict {
        self.recovery.at_the_end(&state.db.tables)?;
        disclosure::at_the_end(&state.db.tables)?;
        quiet::look(state)
    }
}
