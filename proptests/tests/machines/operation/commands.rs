//! What happens to an operation, and how it is drawn.

use bronzeward_core::attempt::ResponseClass;
use bronzeward_core::observation::Purpose;
use proptest::prelude::*;

use super::model::Shows;
use crate::furniture::{ARTIFACT, BEFORE};

#[derive(Clone, Copy, Debug)]
pub enum Command {
    Wait(i64),
    /// An attempt transaction by the owner, or by the one before it.
    Attempt {
        own: bool,
        shows: Shows,
    },
    Answer(ResponseClass),
    /// A pass takes what has lapsed, a decision takes all; at a generation read now or before.
    TakeOver {
        pass: bool,
        fresh: bool,
    },
    Read {
        purpose: Purpose,
        shows: Option<Shows>,
        well: Option<bool>,
    },
    Classify,
    GiveUp,
    /// A lost answer is accounted for by decision.
    Account,
    /// The approval is revoked.
    Withdraw,
    Freeze(bool),
    /// A recovery-admin's cancellation.
    Resolve,
}

pub fn commands() -> impl Strategy<Value = Vec<Command>> {
    let shows = || {
        prop::sample::select(vec![
            Shows::Before,
            Shows::Before,
            Shows::Artifact,
            Shows::Other,
        ])
    };
    let purposes = vec![
        Purpose::Completion,
        Purpose::Completion,
        Purpose::Recovery,
        Purpose::Recovery,
        Purpose::Drift,
    ];
    let read = (
        prop::sample::select(purposes),
        prop_oneof![6 => shows().prop_map(Some), 1 => Just(None)],
        prop::sample::select(vec![Some(true), Some(true), Some(false), None]),
    );
    let often = || prop_oneof![6 => Just(true), 1 => Just(false)];
    let command = prop_oneof![
        2 => prop::sample::select(vec![1, 30, 100, 200]).prop_map(Command::Wait),
        5 => (often(), shows()).prop_map(|(own, shows)| Command::Attempt { own, shows }),
        5 => prop::sample::select(ResponseClass::ALL.to_vec()).prop_map(Command::Answer),
        2 => (any::<bool>(), often()).prop_map(|(pass, fresh)| Command::TakeOver { pass, fresh }),
        6 => read.prop_map(|(purpose, shows, well)| Command::Read { purpose, shows, well }),
        6 => Just(Command::Classify),
        1 => Just(Command::GiveUp),
        2 => Just(Command::Account),
        1 => Just(Command::Withdraw),
        1 => often().prop_map(|open| Command::Freeze(!open)),
        1 => Just(Command::Resolve),
    ];
    let alone = command.prop_map(|command| vec![command]);
    prop::collection::vec(prop_oneof![5 => alone, 1 => round()], 1..24)
        .prop_map(|parts| parts.concat())
}

/// A request, its answer, and a look whether it may be sent again: by chance that is rare.
fn round() -> impl Strategy<Value = Vec<Command>> {
    prop::sample::select(ResponseClass::ALL.to_vec()).prop_map(|class| {
        let reading = Command::Read {
            purpose: Purpose::Recovery,
            shows: Some(Shows::Before),
            well: Some(true),
        };
        let attempt = Command::Attempt {
            own: true,
            shows: Shows::Before,
        };
        vec![attempt, Command::Answer(class), reading, Command::Classify]
    })
}

pub const fn bytes(shows: Shows) -> &'static [u8] {
    match shows {
        Shows::Before => BEFORE,
        Shows::Artifact => ARTIFACT,
        Shows::Other => b"other",
    }
}
