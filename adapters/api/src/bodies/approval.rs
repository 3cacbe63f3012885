//! Approvals and their revocation (EaR 2, PA §10.5).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bodies::common::{Acting, Role};
use crate::id::{ActId, ApprovalId, EpochId, MachineId, PlanId, PrincipalId};
use crate::json::Checked;
use crate::value::{Text, Timestamp, form};

/// Why an approval is marked, in PA §10.5's table order.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SelfApprovalReason {
    CreatedPlan,
    Published,
    AuthoredChange,
    AuthoredReused,
    OwnedAutomation,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SelfApproval {
    pub marked: bool,
    pub reasons: Vec<SelfApprovalReason>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub id: ApprovalId,
    pub plan: PlanId,
    pub approver: Acting,
    pub epoch: EpochId,
    pub self_approval: SelfApproval,
    pub unseen_overwrite: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeApproval {
    pub reason: Text<form::Reason>,
}

impl Checked for RevokeApproval {}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRevocation {
    pub approval: ApprovalId,
    pub plan: PlanId,
    pub machine: MachineId,
    pub revoked_by: PrincipalId,
    pub role: Role,
    pub reason: String,
    pub act: ActId,
    pub epoch: EpochId,
    pub at: Timestamp,
}
