//! Locks: the product's own transactions take theirs in one order (PA §5 rule 5, §6.2).

use super::{Verdict, violation};
use crate::sched::ProcessId;

/// A circle of waits has somebody else's session in it. A process that is gone may still hold
/// what it held: its transactions are the product's.
pub fn circle(processes: &[ProcessId]) -> Verdict {
    match processes.contains(&ProcessId::WORLD) {
        true => Ok(()),
        false => violation(
            "the product's transactions never wait in a circle",
            format!("{processes:?}"),
        ),
    }
}
