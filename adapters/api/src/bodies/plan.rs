//! Plans and their cancellation. Never here: a digest (PA choice §17.38).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bodies::cluster::Contract;
use crate::bodies::common::{Acting, Role};
use crate::bodies::machine::Platform;
use crate::id::{
    ActId, ApprovalId, AssignmentRevisionId, ClusterId, EpochId, ImportBaseRevisionId, MachineId,
    OperationId, PlanId, PrincipalId, ReleaseId,
};
use crate::json::{BodyError, Checked};
use crate::value::{Text, Timestamp, Whole, form};

/// A duration of a plan in whole seconds: up to seven days (PA choice §17.37).
pub type PlanSeconds = Whole<1, 604800>;
pub type PlanAttempts = Whole<1, 10>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanOperation {
    ApplyConfig,
    Adopt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanMode {
    NoReboot,
}

/// A value left out is the deployment's default. An adopt plan takes no mode,
/// deadline or attempt limit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreatePlan {
    pub release_id: ReleaseId,
    pub machine: MachineId,
    pub operation: PlanOperation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PlanMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<PlanSeconds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_observation_age_seconds: Option<PlanSeconds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_validity_seconds: Option<PlanSeconds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport_deadline_seconds: Option<PlanSeconds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification_deadline_seconds: Option<PlanSeconds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<PlanAttempts>,
}

impl Checked for CreatePlan {
    fn check(&self) -> Result<(), BodyError> {
        match self.operation {
            PlanOperation::ApplyConfig if self.mode.is_none() => {
                Err(BodyError::new("/mode", "missing-member"))
            }
            PlanOperation::ApplyConfig => Ok(()),
            PlanOperation::Adopt => {
                let sent = [
                    (self.mode.is_some(), "/mode"),
                    (
                        self.transport_deadline_seconds.is_some(),
                        "/transportDeadlineSeconds",
                    ),
                    (
                        self.verification_deadline_seconds.is_some(),
                        "/verificationDeadlineSeconds",
                    ),
                    (self.max_attempts.is_some(), "/maxAttempts"),
                ];
                match sent.iter().find(|(sent, _)| *sent) {
                    Some((_, pointer)) => Err(BodyError::new(*pointer, "not-of-an-adopt-plan")),
                    None => Ok(()),
                }
            }
        }
    }
}

/// The plan's state as it reads, `expired` and `revoked` included (PA §8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanState {
    Proposed,
    Approved,
    Committed,
    Revoked,
    Cancelled,
    Expired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalPolicy {
    OneApprover,
}

/// From Applied's release to the plan's; `unified` or `withheld: true`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanDiff {
    pub from: Option<ReleaseId>,
    pub to: ReleaseId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unified: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<bool>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdoptBaseline {
    pub import_base_revision: ImportBaseRevisionId,
    pub pending_convergence: bool,
}

/// The release's validation at publication.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Validation {
    pub result: String,
    pub at: Timestamp,
    pub contract: Contract,
    pub kubernetes_version: String,
    pub machinery_version: String,
    pub platform_mode: Platform,
}

/// Never available: the API holds no Talos credential.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DryRun {
    pub available: bool,
    pub reason: String,
}

/// `diff` of an apply-config plan, `baseline` of an adopt plan.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanEvidence {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<PlanDiff>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<AdoptBaseline>,
    pub validation: Validation,
    pub dry_run: DryRun,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub id: PlanId,
    pub revision: u64,
    pub state: PlanState,
    pub committed_operation: Option<OperationId>,
    pub release: ReleaseId,
    pub machine: MachineId,
    pub cluster: ClusterId,
    pub operation: PlanOperation,
    pub mode: Option<PlanMode>,
    pub approval: Option<ApprovalId>,
    pub assignment_revision: Option<AssignmentRevisionId>,
    pub desired_release: Option<ReleaseId>,
    pub baseline_revision: Option<u64>,
    /// The opening entry's revision of the drift record the plan binds.
    pub drift_record: Option<u64>,
    pub route: String,
    pub rollout_limit: u64,
    pub approval_policy: ApprovalPolicy,
    pub epoch: EpochId,
    pub timeline_revision: u64,
    pub max_observation_age_seconds: u64,
    pub check_validity_seconds: u64,
    pub transport_deadline_seconds: Option<u64>,
    pub verification_deadline_seconds: Option<u64>,
    pub max_attempts: Option<u64>,
    pub evidence: PlanEvidence,
    pub created_by: Acting,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelPlan {
    pub reason: Text<form::Reason>,
}

impl Checked for CancelPlan {}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanCancellation {
    pub plan: PlanId,
    pub machine: MachineId,
    pub cancelled_by: PrincipalId,
    pub role: Role,
    pub reason: String,
    pub act: ActId,
    pub epoch: EpochId,
    pub at: Timestamp,
}
