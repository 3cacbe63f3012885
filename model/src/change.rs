//! What a commit changed, and what happened beside the database, as judges read it.

use std::sync::Arc;

use bronzeward_core::attempt::{Recorded, ResponseClass};
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::generation::GenerationPath;
use bronzeward_core::id::{
    AttemptId, DraftId, EpochId, ImportBaseRevisionId, MachineId, PrincipalId,
};
use bronzeward_core::idempotency::{Fingerprint, IdempotencyKey};
use bronzeward_core::installation::Installation;
use bronzeward_core::inventory::Endpoint;
use bronzeward_core::observation::Observation;
use bronzeward_core::principal::Principal;
use bronzeward_engine::ports::Alert;
use bronzeward_engine::ports::store::{
    EntryKind, EntryOfDraft, EntryRow, ImportBaseRow, NewAccounting, NewAdoption,
};
use bronzeward_engine::rows::{ClaimRow, DraftRow, MachineRow, MachineStateRow, PlanStateRow};

use crate::pg::Row;
use crate::sched::ProcessId;
use crate::store::authoring::{Act, Head, Idempotent, References, TokenOf};
use crate::store::execution::{
    Answer, ApprovalRecord, AttemptRow, Drift, Operation, PlanRecord, Release,
};

/// A row before and after.
#[derive(Debug)]
pub struct Changed<V> {
    pub before: Option<Arc<V>>,
    pub after: Option<Arc<V>>,
}

/// One row's committed change.
#[derive(Debug)]
pub enum Change {
    Installation(Changed<Installation>),
    Machine(Changed<MachineRow>),
    MachineState(MachineId, Changed<MachineStateRow>),
    Draft(Changed<DraftRow>),
    DraftEntry(DraftId, Changed<EntryOfDraft>),
    Claim(Changed<ClaimRow>),
    Head(Changed<Head>),
    /// What a source revision refers to.
    References(Changed<References>),
    /// An import base was made.
    ImportBase(ImportBaseRevisionId),
    Principal(Changed<Principal>),
    Token(Changed<TokenOf>),
    Idempotency(Changed<Idempotent>),
    Act(Changed<Act>),
    Operation(Changed<Operation>),
    /// A plan as it was made.
    Plan(Changed<PlanRecord>),
    PlanState(Changed<PlanStateRow>),
    Approval(Changed<ApprovalRecord>),
    /// An entry of a machine's timeline.
    Entry(MachineId, Changed<EntryRow>),
    Observation(Changed<Observation>),
    Attempt(Changed<AttemptRow>),
    Response(Changed<Answer>),
    Accounting(Changed<NewAccounting>),
    Drift(Changed<Drift>),
    Adoption(Changed<NewAdoption>),
    Release(Changed<Release>),
}

/// Something that no commit records.
#[derive(Debug)]
pub enum Outside {
    /// A process sent a configuration on its way to a node.
    Sent {
        process: ProcessId,
        recorded: Box<Recorded>,
        machine: MachineId,
        digest: ConfigDigest,
    },
    /// A request's wait ended, with this answer or without one.
    Heard {
        attempt: AttemptId,
        class: ResponseClass,
    },
    /// A configuration came to be in force on a node.
    InForce {
        endpoint: Endpoint,
        /// The machine that the node there was inventoried as, where it was.
        machine: Option<MachineId>,
        /// By an attempt's request, or by somebody's hand.
        attempt: Option<AttemptId>,
        digest: ConfigDigest,
    },
    /// Transactions of these processes waited for each other in a circle.
    Circle(Vec<ProcessId>),
    /// The database is another one from here on: an earlier one.
    Restored,
    /// What the operator's report called orphans.
    Orphans(std::collections::BTreeSet<GenerationPath>),
    /// A server answered a request with an effect's outcome.
    Answered(Box<Answered>),
    /// An operator was alerted.
    Alerted { process: ProcessId, alert: Alert },
}

/// What a request under a key was answered.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The process that answered, and the route.
    pub process: ProcessId,
    pub route: &'static str,
    pub principal: PrincipalId,
    pub key: IdempotencyKey,
    pub fingerprint: Fingerprint,
    pub status: u16,
    pub body: String,
    pub replayed: bool,
    /// The epoch that the answer was given in.
    pub epoch: EpochId,
}

/// Tells the journal of a row's changes; with what of its key they are told by, where the row
/// does not say it.
macro_rules! watched {
    ($row:ty, $key:ty, $change:ident $(, |$by:ident| $of:expr)?) => {
        impl $crate::pg::Row<$key> for $row {
            fn committed(
                _key: &$key,
                before: Option<&std::sync::Arc<Self>>,
                after: Option<&std::sync::Arc<Self>>,
                journal: &mut $crate::journal::Journal,
            ) {
                let changed = $crate::change::Changed {
                    before: before.cloned(),
                    after: after.cloned(),
                };
                $(let $by = _key;)?
                journal.changed($crate::change::Change::$change($($of,)? changed));
            }
        }
    };
}
pub(crate) use watched;

watched!(Installation, (), Installation);
watched!(MachineRow, MachineId, Machine);
watched!(DraftRow, DraftId, Draft);
watched!(ClaimRow, bronzeward_core::id::IngestionId, Claim);
watched!(Head, bronzeward_core::id::HeadId, Head);
watched!(Principal, bronzeward_core::id::PrincipalId, Principal);
watched!(TokenOf, bronzeward_core::id::TokenId, Token);
watched!(
    Idempotent,
    (
        bronzeward_core::id::PrincipalId,
        bronzeward_core::idempotency::IdempotencyKey
    ),
    Idempotency
);
watched!(Act, i64, Act);
watched!(
    References,
    bronzeward_engine::rows::SourceRevisionId,
    References
);

watched!(MachineStateRow, MachineId, MachineState, |key| *key);
watched!(
    EntryOfDraft,
    (DraftId, EntryKind, String),
    DraftEntry,
    |key| key.0
);

impl Row<ImportBaseRevisionId> for ImportBaseRow {
    fn committed(
        key: &ImportBaseRevisionId,
        _before: Option<&Arc<Self>>,
        _after: Option<&Arc<Self>>,
        journal: &mut crate::journal::Journal,
    ) {
        journal.changed(Change::ImportBase(*key));
    }
}
