//! A guard, evaluated on a row as the adapter's WHERE would be.

use bronzeward_core::fence::Fence;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{Condition, Guard, Written};

/// What conditions look at, of those a table has. A column that is NULL satisfies none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Columns<'r> {
    pub revision: Option<i64>,
    pub state: Option<&'r str>,
    pub fence: Option<&'r Fence>,
    pub lease_until: Option<DbTime>,
    pub expires_at: Option<DbTime>,
}

impl Columns<'_> {
    /// Whether the row satisfies the guard at `clock_timestamp()`.
    pub fn satisfy(&self, guard: &Guard, now: DbTime) -> bool {
        let conditions = guard.conditions();
        conditions.iter().all(|condition| match condition {
            Condition::Revision(revision) => self.revision == Some(*revision),
            Condition::StateIn(states) => self.state.is_some_and(|state| states.contains(&state)),
            Condition::Owner(owner) => self.fence.is_some_and(|fence| fence.owner == *owner),
            Condition::Generation(generation) => self
                .fence
                .is_some_and(|fence| fence.generation == *generation),
            Condition::OwnerEpoch(epoch) => self.fence.is_some_and(|fence| fence.epoch == *epoch),
            Condition::LeaseLive => self.lease_until.is_some_and(|until| until > now),
            Condition::LeaseLapsed => self.lease_until.is_some_and(|until| until <= now),
            Condition::Unexpired => self.expires_at.is_some_and(|until| until > now),
            Condition::Given(value) => *value,
        })
    }
}

/// One row matched, or none.
pub fn written(matched: bool) -> Written {
    match matched {
        true => Written::Written,
        false => Written::Stale,
    }
}
