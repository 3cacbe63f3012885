//! What the process that answered is and runs with (PA §9.2). Never here: a secret,
//! an address, a path or a configured name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    Execution,
    Ingestion,
    Publication,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartMode {
    Normal,
    Recovery,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngestionClaim {
    pub lease_seconds: u64,
    pub absolute_expiry_seconds: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanDefaults {
    pub expires_in_seconds: u64,
    pub max_observation_age_seconds: u64,
    pub check_validity_seconds: u64,
    pub transport_deadline_seconds: u64,
    pub verification_deadline_seconds: u64,
    pub max_attempts: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    pub version: String,
    pub api_revision: u32,
    pub features: Vec<Feature>,
    pub start_mode: StartMode,
    pub max_token_lifetime_seconds: u64,
    pub settle_floor_seconds: u64,
    pub max_transport_deadline_seconds: u64,
    pub ingestion_claim: Option<IngestionClaim>,
    pub plan_defaults: PlanDefaults,
}
