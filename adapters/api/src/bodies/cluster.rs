//! Clusters. Read by any role, created by an author.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::ClusterId;
use crate::json::Checked;
use crate::value::{Text, Timestamp, form};

/// The Talos contract a cluster renders for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Contract {
    #[serde(rename = "v1.13")]
    V1_13,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterStatus {
    Active,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateCluster {
    pub name: Text<form::ClusterName>,
    pub endpoint: Text<form::ClusterEndpoint>,
    pub contract: Contract,
    pub talos_cluster_id: Text<form::TalosClusterId>,
}

impl Checked for CreateCluster {}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    pub id: ClusterId,
    pub name: String,
    pub endpoint: String,
    pub contract: Contract,
    pub talos_cluster_id: String,
    pub status: ClusterStatus,
    pub created_at: Timestamp,
}
