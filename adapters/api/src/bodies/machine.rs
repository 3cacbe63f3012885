//! Machines, their Talos endpoint, freezes and observations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bodies::common::Acting;
use crate::id::{ClusterId, MachineId, ObservationId, OperationId, PlanId, ReleaseId};
use crate::json::{BodyError, Checked};
use crate::value::{Text, Timestamp, form};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Platform {
    Metal,
    Container,
    Cloud,
}

/// Exactly one of `smbiosUuid` and `talosNodeId` is the machine's key (PA §7.3).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateMachine {
    pub cluster: ClusterId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smbios_uuid: Option<Text<form::SmbiosUuid>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub talos_node_id: Option<Text<form::TalosNodeId>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<Text<form::Serial>>,
    pub platform: Platform,
    pub talos_endpoint: Text<form::TalosEndpoint>,
}

impl Checked for CreateMachine {
    fn check(&self) -> Result<(), BodyError> {
        match (&self.smbios_uuid, &self.talos_node_id) {
            (Some(_), None) | (None, Some(_)) => Ok(()),
            (Some(_), Some(_)) | (None, None) => Err(BodyError::new("", "one-identity-key")),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReplaceTalosEndpoint {
    pub talos_endpoint: Text<form::TalosEndpoint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text<form::Reason>>,
}

impl Checked for ReplaceTalosEndpoint {}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hardware {
    pub smbios_uuid: Option<String>,
    pub talos_node_id: Option<String>,
    pub serial: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AppliedSource {
    Operation,
    Adoption,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Applied {
    pub release: ReleaseId,
    pub source: AppliedSource,
}

/// The latest observation that read a configuration, and the release among Applied
/// and Desired whose artifact it matched.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Observed {
    pub observation: ObservationId,
    pub release: Option<ReleaseId>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenDrift {
    pub revision: u64,
    pub observation: ObservationId,
    pub last_observation: ObservationId,
    pub late_landing: Option<OperationId>,
}

/// The recovery state of a machine's scope (EaR 7.1).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeState {
    Normal,
    PreRestoreUnaccounted,
    Unresolved,
    Blocked,
    Ready,
    Released,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    pub id: MachineId,
    pub cluster: ClusterId,
    pub hardware: Hardware,
    pub platform: Platform,
    pub talos_endpoint: String,
    pub desired: Option<ReleaseId>,
    pub applied: Option<Applied>,
    pub observed: Option<Observed>,
    pub pending_convergence: bool,
    pub frozen: bool,
    pub scope_state: ScopeState,
    pub open_drift: Option<OpenDrift>,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Freeze {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text<form::Reason>>,
}

impl Checked for Freeze {}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unfreeze {
    pub reason: Text<form::Reason>,
}

impl Checked for Unfreeze {}

/// The fact a freeze or an unfreeze recorded.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FreezeFact {
    pub id: String,
    pub machine: MachineId,
    pub by: Acting,
    pub at: Timestamp,
    pub reason: Option<String>,
}

/// Why an observation was taken (EaR 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    Publication,
    Evidence,
    Completion,
    Recovery,
    Drift,
    Restoration,
}

/// The identity of the Talos access version used; never its path or value.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessVersion {
    pub version: u64,
    pub created_time: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObservedIdentity {
    pub smbios_uuid: Option<String>,
    pub talos_node_id: Option<String>,
    pub talos_cluster_id: Option<String>,
}

/// The node's own version of its configuration resource; it restarts at 1 on reboot.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResourceVersion {
    pub version: String,
    pub created: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    pub stage: String,
    pub ready: bool,
}

/// A value that could not be read, by our own code for why.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Unread {
    pub what: String,
    pub code: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    pub id: ObservationId,
    pub machine: MachineId,
    pub purpose: Purpose,
    pub basis: u64,
    pub revision: u64,
    pub started_at: Timestamp,
    pub at: Timestamp,
    pub endpoint: String,
    /// The deployment's name of the instance that read the machine.
    pub controller: String,
    pub plan: Option<PlanId>,
    pub operation: Option<OperationId>,
    pub publication_generation: Option<u64>,
    pub access: Option<AccessVersion>,
    pub identity: Option<ObservedIdentity>,
    pub running_version: Option<String>,
    pub configuration_read: bool,
    pub resource: Option<ResourceVersion>,
    pub health: Option<Health>,
    pub unread: Vec<Unread>,
}
