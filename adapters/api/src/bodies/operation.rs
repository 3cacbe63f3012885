//! Operations, their attempts, and the recovery requests on them (PA §8, EaR 5.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bodies::common::{By, Facts};
use crate::bodies::problem::Problem;
use crate::bodies::timeline::TimelineEntry;
use crate::id::{
    AttemptId, DraftId, EpochId, IngestionId, MachineId, ObservationId, OperationId, PlanId,
    ReleaseId,
};
use crate::json::{BodyError, Checked};
use crate::value::{Text, Timestamp, Whole, form};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OperationKind {
    Publish,
    Ingest,
    ApplyConfig,
    Adopt,
}

/// A job's state (PA §8.2) or a plan operation's (EaR 4), by the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OperationState {
    Queued,
    Running,
    Succeeded,
    Failed,
    Committed,
    Sending,
    Verifying,
    Completed,
    Rejected,
    Cancelled,
    Unresolved,
}

/// What an operation is about: a draft revision and its ingestion, or a plan and
/// its machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationSubject {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<DraftId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_revision: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingestion: Option<IngestionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
}

/// What it produced: a release, a draft, an applied release, an adoption.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct OperationResult {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleaseId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<DraftId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption: Option<Adoption>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Adoption {
    pub plan: PlanId,
    pub release: ReleaseId,
    pub observation: ObservationId,
}

/// The class and code of an answer; its text is not served (PA choice §17.38).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AttemptResponse {
    pub class: String,
    pub code: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccountingBasis {
    Response,
    Decision,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    pub id: AttemptId,
    pub response: Option<AttemptResponse>,
    pub accounting: Option<AccountingBasis>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    pub id: OperationId,
    pub kind: OperationKind,
    pub state: OperationState,
    pub epoch: EpochId,
    /// The number of its latest event, as the identifiers of its events carry it: a plan
    /// operation's is a revision of its machine's timeline.
    pub last_event: Option<u64>,
    /// What a takeover request names; null while nobody has owned it.
    pub owner_generation: Option<u64>,
    pub subject: OperationSubject,
    pub created_by: By,
    pub created_at: Timestamp,
    pub result: Option<OperationResult>,
    pub error: Option<Problem>,
    /// Of an apply-config operation only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<Attempt>>,
}

/// An owner generation as a request names it.
pub type Generation = Whole<1, 9007199254740991>;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TakeOverOperation {
    pub generation: Generation,
    pub reason: Text<form::Reason>,
}

impl Checked for TakeOverOperation {}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountAttempt {
    pub start: ObservationId,
    pub end: ObservationId,
    pub facts: Facts,
}

impl Checked for AccountAttempt {
    fn check(&self) -> Result<(), BodyError> {
        self.facts.check()
    }
}

/// The only resolution the API accepts: absence of evidence classifies nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResolutionState {
    Cancelled,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveOperation {
    pub to: ResolutionState,
    pub reason: Text<form::Reason>,
}

impl Checked for ResolveOperation {}

/// The operation after a recovery request, and the entry the request wrote.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OperationEntry {
    pub operation: Operation,
    pub entry: TimelineEntry,
}
