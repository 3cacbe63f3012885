//! The timeline of a machine (EaR 4.1) and the events of an operation (PA §8.3).

use serde_json::{Map, Value};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bodies::common::By;
use crate::value::Timestamp;

/// The kind of a machine timeline entry.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum EntryKind {
    Plan,
    Approval,
    ApprovalRevocation,
    IdentityRevocation,
    Cancellation,
    ObservationStarted,
    Observation,
    UseTimeCheck,
    Commitment,
    Refusal,
    Attempt,
    Response,
    OwnershipTransition,
    Accounting,
    Classification,
    OperationState,
    AppliedChange,
    DriftOpened,
    DriftExtended,
    DriftClosed,
    Freeze,
    Unfreeze,
    AdoptionRecord,
    EndpointChange,
    RecoveryEntry,
    ScopeState,
    ScopeRelease,
}

/// One entry; what its kind carries is in `data`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TimelineEntry {
    pub revision: u64,
    #[serde(rename = "type")]
    pub kind: EntryKind,
    pub at: Timestamp,
    pub by: By,
    pub data: Map<String, Value>,
}

/// A page of a timeline. `tail` is a cursor in oldest order that names the newest
/// entry, absent while there is none.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TimelinePage {
    pub items: Vec<TimelineEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
}

/// The type of an operation's event: a job's own, or the kind of a timeline entry.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    Queued,
    Claimed,
    Started,
    TalosAccess,
    Staged,
    TakenOver,
    ResumeFailed,
    Paused,
    Marked,
    MarkRefused,
    Continued,
    Succeeded,
    Failed,
    #[serde(untagged)]
    Entry(EntryKind),
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// `<epoch>:<number>`.
    pub id: String,
    #[serde(rename = "type")]
    pub kind: EventKind,
    pub at: Timestamp,
    pub data: Map<String, Value>,
}
