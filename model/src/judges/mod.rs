//! Judges: what must hold after every step, whatever the code under test says.
//!
//! Fed by the journal, one file a family. A judge keeps what it needs of the past and never
//! reads a decision of `core` or the engine; it looks at rows, requests and nodes. Never in
//! this module: a repair.

mod accountings;
mod adoptions;
mod case;
mod dispatch;
mod drifts;
mod evidence;
mod nodes;
mod operations;
mod published;
mod quiet;
mod records;
mod releases;
mod sometimes;
mod verdicts;

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

pub use sometimes::{NOT_YET, SOMETIMES};

pub type Verdict = Result<(), Violation>;

/// Every judge, in the order in which they are asked.
#[derive(Clone, Debug, Default)]
pub struct Judges {
    nodes: nodes::Nodes,
    records: records::Records,
}

impl Judges {
    /// Asks every judge of what happened in a step.
    pub fn look(&mut self, state: &mut State, events: &[Event]) -> Verdict {
        let seen = &mut state.outside.seen;
        let tables = &state.db.tables;
        let now = state.sched.now();
        for event in events {
            match event {
                Event::Outside(outside) => self.nodes.outside(tables, now, outside)?,
                Event::Commit { process, changes } => {
                    let case = Case {
                        tables,
                        now,
                        owner: state.house.owners.get(process),
                        changes,
                    };
                    self.records.look(&case, &state.house.expected)?;
                    operations::look(&case)?;
                    dispatch::look(&case)?;
                    releases::look(&case)?;
                    published::look(&case)?;
                    evidence::look(&case)?;
                    verdicts::look(&case)?;
                    accountings::look(&case)?;
                    adoptions::look(&case)?;
                    drifts::look(&case)?;
                    self.nodes.look(&case)?;
                    sometimes::look(&case, seen);
                }
            }
        }
        Ok(())
    }

    /// What holds once the world is healed and quiet: the final oracle, which only reads.
    pub fn at_the_end(&self, state: &State) -> Verdict {
        quiet::look(state)
    }
}
