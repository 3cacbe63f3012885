//! What happens to scopes, how it is drawn, and what the contract says a scope is.

use bronzeward_core::scope::GateClosed;
use proptest::prelude::*;

/// What a mark's evidence lacks, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    Nothing,
    Reading,
    Identity,
    AfterAccounting,
    Unmoved,
    CheckedAccess,
    SameAccess,
    Dependency,
}

#[derive(Clone, Copy, Debug)]
pub enum Command {
    /// A recovery entry, which mints an epoch.
    Enter,
    /// Recovery mode is left, if every scope lets it.
    Exit,
    Inventory,
    Account {
        machine: usize,
        held: bool,
    },
    Mark {
        machine: usize,
        lack: Lack,
        held: bool,
    },
    /// Desired moved since the mark, or did not.
    Release {
        machine: usize,
        moved: bool,
    },
    Freeze(usize),
    Unfreeze(usize),
    Drift {
        machine: usize,
        opens: bool,
    },
    Decommission {
        machine: usize,
        answers: bool,
    },
    /// A plan that binds the open record, another one or none.
    Ask {
        machine: usize,
        bound: Option<bool>,
        adoption: bool,
    },
}

pub fn commands() -> impl Strategy<Value = Vec<Command>> {
    let machine = || 0..3_usize;
    let lacks = vec![
        Lack::Nothing,
        Lack::Nothing,
        Lack::Nothing,
        Lack::Reading,
        Lack::Identity,
        Lack::AfterAccounting,
        Lack::Unmoved,
        Lack::CheckedAccess,
        Lack::SameAccess,
        Lack::Dependency,
    ];
    let lack = prop::sample::select(lacks);
    let rarely = || prop_oneof![4 => Just(false), 1 => Just(true)];
    let command = prop_oneof![
        2 => Just(Command::Enter),
        2 => Just(Command::Exit),
        1 => Just(Command::Inventory),
        5 => (machine(), rarely())
            .prop_map(|(machine, held)| Command::Account { machine, held }),
        6 => (machine(), lack, rarely())
            .prop_map(|(machine, lack, held)| Command::Mark { machine, lack, held }),
        5 => (machine(), rarely())
            .prop_map(|(machine, moved)| Command::Release { machine, moved }),
        1 => machine().prop_map(Command::Freeze),
        2 => machine().prop_map(Command::Unfreeze),
        2 => (machine(), any::<bool>())
            .prop_map(|(machine, opens)| Command::Drift { machine, opens }),
        1 => (machine(), any::<bool>())
            .prop_map(|(machine, answers)| Command::Decommission { machine, answers }),
        6 => (machine(), any::<Option<bool>>(), any::<bool>())
            .prop_map(|(machine, bound, adoption)| Command::Ask { machine, bound, adoption }),
    ];
    prop::collection::vec(command, 1..40)
}

/// How far a machine has come since an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum Reached {
    /// Nobody entered, or recovery mode was left.
    Outside,
    /// What was sent before the restore may still land.
    Lost,
    /// Accounted for; an operation of it is open.
    Held,
    /// Accounted for; something is missing.
    Lacking,
    Fit,
    /// Let go in this epoch.
    Released(u128),
    WrittenOff,
}

#[derive(Clone, Copy)]
pub struct Known {
    pub reached: Reached,
    pub frozen: bool,
    pub drift: Option<i64>,
}

impl Known {
    pub fn name(self) -> &'static str {
        match self.reached {
            Reached::Outside => "normal",
            Reached::Lost => "pre-restore-unaccounted",
            Reached::Held => "unresolved",
            Reached::Lacking => "blocked",
            Reached::Fit => "ready",
            Reached::Released(_) => "released",
            Reached::WrittenOff => "retired",
        }
    }

    /// Everything that closes the gate for a plan.
    pub fn closed(
        self,
        world: (bool, u128),
        bound: Option<i64>,
        adoption: bool,
    ) -> Vec<GateClosed> {
        let (recovery, epoch) = world;
        let reasons = [
            (self.reached == Reached::WrittenOff, GateClosed::Retired),
            (self.frozen && !adoption, GateClosed::Frozen),
            (
                self.drift.is_some() && self.drift != bound,
                GateClosed::Drift,
            ),
            (
                bound.is_some() && self.drift != bound,
                GateClosed::BoundDriftClosed,
            ),
            (
                recovery && self.reached != Reached::Released(epoch),
                GateClosed::NotReleased,
            ),
        ];
        let holding = reasons.into_iter().filter(|(holds, _)| *holds);
        holding.map(|(_, reason)| reason).collect()
    }
}
