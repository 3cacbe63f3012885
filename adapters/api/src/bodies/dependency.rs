//! What the dependency monitor has recorded (DM §7). The one place provider paths
//! are served: they are its subject.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{DependencyAlertId, DependencyId, ReleaseId};
use crate::value::Timestamp;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    pub id: DependencyId,
    pub provider: String,
    pub object: String,
    pub version: u64,
    pub created_time: Option<String>,
    pub class: String,
    pub reason: Option<String>,
    pub first_retained: Option<Timestamp>,
    pub unknown_since: Option<Timestamp>,
    pub recorded_at: Option<Timestamp>,
    pub stale: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyPage {
    pub items: Vec<Dependency>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    pub last_completed_pass: Option<Timestamp>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DependencyRelease {
    pub release: ReleaseId,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyAlert {
    pub id: DependencyAlertId,
    pub dependency: Option<DependencyId>,
    pub kind: String,
    pub class: Option<String>,
    pub reason: Option<String>,
    pub at: Timestamp,
}
