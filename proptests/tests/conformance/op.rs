//! The language of the list: what a session does in one step.
//!
//! Rows are small numbers; what stands under them at first is [`crate::furniture`]'s. Never in
//! this module: how a side carries a step out.

use bronzeward_engine::ports::store::LockMode;

/// A session of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    A,
    B,
    C,
    D,
}

impl Who {
    pub const ALL: [Who; 4] = [Who::A, Who::B, Who::C, Who::D];
}

/// A row that can be locked and read by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    Machine(u8),
    /// A machine's state, under its machine's row read without a lock.
    State(u8),
    Draft(u8),
    Claim(u8),
    Principal(u8),
    Operation(u8),
    /// A profile's head.
    Head(u8),
    /// A plan's state; it is locked and not read without.
    Plan(u8),
}

/// What a guarded write asks of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum If {
    Always,
    Revision(i64),
    State(&'static str),
    Generation(i64),
    Live,
    Lapsed,
    Unexpired,
    False,
}

/// A lease's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    Past,
    Future,
    /// A few seconds from now: [`Op::Lapse`] outwaits it.
    Soon,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    Begin,
    Commit,
    Rollback,
    /// A REPEATABLE READ transaction.
    Snapshot,
    Close,
    /// The session's connection ends; nobody asks it.
    Cut,
    /// Waits until the short lease of a claim has run out.
    Lapse,

    Lock(Row, LockMode),
    /// Machines by cluster.
    LockCluster(LockMode),
    /// Machines in one statement, by number.
    LockMachines(&'static [u8], LockMode),
    /// Principals, each in a mode of its own.
    LockPrincipals(&'static [(u8, LockMode)]),
    LockInstallation(LockMode),
    LockKey(u8),
    LockActs,
    LockRollout,
    Now,
    Began,

    Read(Row),
    /// Every draft's number and revision.
    ReadDrafts,
    /// The newest entry of a machine's timeline.
    ReadTimeline(u8),

    Advance(u8, If),
    Discard(u8, If),
    Extend(u8, If, Lease),
    TakeOver(u8, If, i64),
    EndClaim(u8, If),
    Own(u8, If, i64),
    Fail(u8, If),
    /// A plan's operation.
    Move(u8, If, &'static str),
    /// A head to its revision again: the next head revision.
    AdvanceHead(u8, If),
    RevokeToken(u8),
    Display(u8, &'static str),
    Endpoint(u8, u8),

    /// A draft of a number; its author is a principal.
    NewDraft(u8, u8),
    /// A machine under a UUID.
    NewMachine(u8, u8),
    /// A claim of a draft under a key.
    NewClaim(u8, u8, u8),
    /// A publication of a draft's revision.
    NewJob(u8, u8, i64),
    /// A commitment of a plan, which is of the machine of its number.
    NewOperation(u8, u8, u8),
    /// A drift record of a machine, opened at a revision.
    NewDrift(u8, i64),
    /// The open drift record of a machine shows the reading of a number.
    ExtendDrift(u8, i64, u8),
    CloseDrift(u8, i64),
    NewService(u8, &'static str),
    NewToken(u8, u8),
    Human(u8, &'static str),
    /// A draft's entry: a name that it removes.
    Entry(u8, &'static str),
    /// A draft's entry for the name of a head.
    EntryOf(u8, u8),
    /// A profile's head, under the name of a number.
    NewHead(u8, u8),
    NewAct(u8),
    /// A stored answer under a key, of an act.
    Record(u8, u8),
    /// An entry of a machine's timeline, with an act or none.
    Append(u8, Option<u8>),
    Event(u8),
    /// First statuses: versions of one object, and the number of the first one's row.
    Seed(u8, &'static [i64]),
    /// A cluster under a Talos identifier.
    NewCluster(u8, char),
}

/// One step of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub who: Who,
    pub op: Op,
}

/// Steps, as a case writes them: a session and what it does.
pub fn steps(list: impl IntoIterator<Item = (Who, Op)>) -> Vec<Step> {
    let steps = list.into_iter();
    steps.map(|(who, op)| Step { who, op }).collect()
}
