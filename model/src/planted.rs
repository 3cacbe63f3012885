//! Defects that no rule names, planted in the ports of the simulated world: what shows that
//! the judges see more than the rules that they were written beside.
//!
//! One is planted in a world at most, and only where a setting says so. Never in this module:
//! anything of the product, or of a judge.

use std::any::Any;

use bronzeward_engine::ports::store::{EntryRow, NewAccounting};
use bronzeward_engine::rows::{ClaimRow, DraftRow, MachineStateRow};

use crate::store::authoring::{Head, Idempotent};
use crate::store::execution::{AttemptRow, Operation};

/// A defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// A write is skipped: an attempt's record.
    AttemptNotWritten,
    /// A publication's selection of a machine's Desired.
    DesiredNotWritten,
    /// A publication's advance of a head.
    HeadNotWritten,
    /// The idempotency record of an act.
    RecordNotWritten,
    /// A draft's revision is not counted.
    DraftNotCounted,
    /// A takeover keeps the generation.
    GenerationKept,
    /// An entry takes the number after its own.
    EntryNumberSkipped,
    /// A comparison is swapped: the bracket that ended first stands for the second.
    BracketsSwapped,
    /// An ended claim keeps what it staged.
    PayloadKept,
    /// A reader gives what was in force before.
    ReadingReused,
    /// A request is made twice.
    SentTwice,
    /// Other bytes than the artifact's are sent.
    OtherBytesSent,
    /// A value that was not kept is said to be.
    CreationNotCarriedOut,
}

/// Each with the invariant that finds it.
pub const DEFECTS: &[(Defect, &str)] = &[
    (
        Defect::AttemptNotWritten,
        "no request without a committed attempt",
    ),
    (
        Defect::DesiredNotWritten,
        "a release is Desired of its machines",
    ),
    (
        Defect::HeadNotWritten,
        "a release holds no superseded source",
    ),
    (
        Defect::RecordNotWritten,
        "an effect has its act and its record",
    ),
    (Defect::DraftNotCounted, "revisions go up by one"),
    (
        Defect::GenerationKept,
        "an owner changes with its generation",
    ),
    (Defect::EntryNumberSkipped, "timeline order is commit order"),
    (
        Defect::BracketsSwapped,
        "an attempt is accounted for once it has settled",
    ),
    (Defect::PayloadKept, "an ended claim keeps no payload"),
    (
        Defect::ReadingReused,
        "an observation says what the node held",
    ),
    (Defect::SentTwice, "an attempt is sent once"),
    (
        Defect::OtherBytesSent,
        "exactly the approved bytes are sent",
    ),
    (
        Defect::CreationNotCarriedOut,
        "a value is created before it is referred to",
    ),
];

impl Defect {
    /// What becomes of a row's write: false where it is skipped.
    pub fn write<V: 'static>(self, before: Option<&V>, row: &mut Option<V>) -> bool {
        let before = before.map(|before| before as &dyn Any);
        let Some(row) = row.as_mut().map(|row| row as &mut dyn Any) else {
            return true;
        };
        match self {
            Self::AttemptNotWritten => !row.is::<AttemptRow>(),
            Self::HeadNotWritten => !(row.is::<Head>() && before.is_some()),
            Self::RecordNotWritten => !row.is::<Idempotent>(),
            Self::DesiredNotWritten => !desires(before, row),
            _ => {
                self.alter(before, row);
                true
            }
        }
    }

    fn alter(self, before: Option<&dyn Any>, row: &mut dyn Any) {
        match self {
            Self::DraftNotCounted => {
                if let (Some(before), Some(row)) = pair::<DraftRow>(before, row) {
                    row.etag.revision = before.etag.revision;
                }
            }
            Self::GenerationKept => {
                if let (Some(before), Some(row)) = pair::<Operation>(before, row)
                    && row.row.plan.is_some()
                    && let (Some(was), Some(is)) = (&before.row.fence, &mut row.row.fence)
                {
                    is.generation = was.generation;
                }
            }
            Self::EntryNumberSkipped => {
                if let Some(entry) = row.downcast_mut::<EntryRow>()
                    && entry.kind == "response"
                {
                    entry.number += 1;
                }
            }
            Self::BracketsSwapped => {
                if let Some(new) = row.downcast_mut::<NewAccounting>() {
                    std::mem::swap(&mut new.start, &mut new.end);
                }
            }
            Self::PayloadKept => {
                if let (Some(before), Some(row)) = pair::<ClaimRow>(before, row)
                    && row.payload.is_none()
                {
                    row.payload.clone_from(&before.payload);
                }
            }
            _ => {}
        }
    }
}

/// A row before and as it is to be written, where it is of this kind.
fn pair<'a, V: 'static>(
    before: Option<&'a dyn Any>,
    row: &'a mut dyn Any,
) -> (Option<&'a V>, Option<&'a mut V>) {
    let before = before.and_then(|before| before.downcast_ref::<V>());
    (before, row.downcast_mut::<V>())
}

/// Whether a machine's Desired is written alone.
fn desires(before: Option<&dyn Any>, row: &mut dyn Any) -> bool {
    match pair::<MachineStateRow>(before, row) {
        (Some(before), Some(row)) => before.desired != row.desired && before.applied == row.applied,
        _ => false,
    }
}
