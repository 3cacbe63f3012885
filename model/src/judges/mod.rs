//! Judges: what must hold after every step, whatever the code under test says.
//!
//! Fed by the journal, one file a family. A judge keeps what it needs of the past and never
//! reads a decision of `core` or the engine; it looks at rows, requests and nodes. Never in
//! this module: a repair.

use crate::journal::Event;
use crate::sim::State;

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's name: stable, as expected outcomes quote it.
    pub invariant: &'static str,
    pub said: String,
}

pub(crate) fn violation<T>(invariant: &'static str, said: impl Into<String>) -> Result<T, Violation> {
    Err(Violation {
        invariant,
        said: said.into(),
    })
}

pub type Verdict = Result<(), Violation>;

/// Every judge, in the order in which they are asked.
#[derive(Clone, Debug, Default)]
pub struct Judges {}

impl Judges {
    /// Asks every judge of what happened in a step.
    pub fn look(&mut self, _state: &State, _events: &[Event]) -> Verdict {
        Ok(())
    }

    /// What holds once the world is healed and quiet.
    pub fn at_the_end(&self, _state: &State) -> Verdict {
        Ok(())
    }
}
