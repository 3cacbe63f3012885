//! What a conditional write depends on, as data.
//!
//! The engine builds a guard through [`Rules`]; a dropped rule leaves its condition
//! out. `adapters/postgres` turns a guard into the statement's WHERE and the model
//! evaluates it: one definition, two carriers, so the tested rule is the shipped one.

use bronzeward_core::fence::{Fence, Generation, Owner};
use bronzeward_core::id::EpochId;
use bronzeward_core::rules::{Rule, Rules};

/// One term of a guard. Each family of rows admits the terms whose columns it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The row's revision is this one.
    Revision(i64),
    /// The row's state is one of these (the store's spelling).
    StateIn(Vec<&'static str>),
    Owner(Owner),
    Generation(Generation),
    OwnerEpoch(EpochId),
    /// The lease ends after the database's `clock_timestamp()`.
    LeaseLive,
    /// The lease ended at or before `clock_timestamp()`.
    LeaseLapsed,
    /// The absolute expiry is after `clock_timestamp()`.
    Unexpired,
    /// A comparison of values the engine holds already; false lets no row match.
    Given(bool),
}

/// The conditions of one conditional write, in the order they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    conditions: Vec<Condition>,
}

impl Guard {
    /// A guard that always holds; for writes whose rule is a lock already held.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition that carries `rule`; a dropped rule leaves it out.
    #[must_use]
    pub fn when(mut self, rules: &impl Rules, rule: Rule, condition: Condition) -> Self {
        if rules.enforced(rule) {
            self.conditions.push(condition);
        }
        self
    }

    /// Adds a condition that names the row or its shape and carries no rule of its own.
    #[must_use]
    pub fn and(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Adds the fence's terms (PA §5.1): the row is still `token`'s, in the current epoch.
    #[must_use]
    pub fn fenced(self, rules: &impl Rules, token: &Fence, current: EpochId) -> Self {
        let owner = Condition::Owner(token.owner.clone());
        let generation = Condition::Generation(token.generation);
        self.when(rules, Rule::FenceOwner, owner)
            .when(rules, Rule::FenceGeneration, generation)
            .when(rules, Rule::FenceEpoch, Condition::OwnerEpoch(token.epoch))
            .when(
                rules,
                Rule::FenceEpoch,
                Condition::Given(token.epoch == current),
            )
    }

    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

/// A conditional write's outcome. Two or more rows are a fault, never a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Written {
    /// Exactly one row matched and was written.
    Written,
    /// The row exists and its guard did not hold, or it does not exist.
    Stale,
}
