//! Releases and their per-machine review data (IC §8.2, §11).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bodies::cluster::Contract;
use crate::bodies::common::Acting;
use crate::bodies::machine::Platform;
use crate::bodies::source::Encoding;
use crate::id::{
    ClusterId, DraftId, FragmentRevisionId, HeadId, MachineId, ObservationId, OperationId,
    ReleaseId, RevisionId,
};
use crate::value::Timestamp;

/// The build that composed the release (IC §10.2).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Renderer {
    pub contract: Contract,
    pub machinery_version: String,
    pub machinery_checksum: String,
    pub kubernetes_version: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    Fragment,
    Profile,
    Assignment,
}

/// A head and the revision the release left it at; null: removed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseSource {
    pub kind: SourceKind,
    pub head: HeadId,
    pub revision: Option<RevisionId>,
    pub head_revision: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseMachine {
    pub machine: MachineId,
    pub mode: Platform,
    pub publication_observation: ObservationId,
    /// The path of the review route.
    pub review: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    pub id: ReleaseId,
    pub cluster: ClusterId,
    pub draft: DraftId,
    pub draft_revision: u64,
    pub operation: OperationId,
    pub published_by: Acting,
    pub published_at: Timestamp,
    pub renderer: Renderer,
    pub sources: Vec<ReleaseSource>,
    pub machines: Vec<ReleaseMachine>,
}

/// Where a reference stood. `digest` is the SHA-256 of the stored sanitized text.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProvenanceSource {
    pub revision: RevisionId,
    pub digest: String,
    pub path: String,
    pub occurrence: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Overriding {
    pub revision: FragmentRevisionId,
    pub digest: String,
}

/// One occurrence of a reference; exactly one of `output` and `overriddenBy`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    pub reference: String,
    pub version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<u64>,
    pub source: ProvenanceSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overridden_by: Option<Overriding>,
}

/// The redacted configuration, null with a notice where it could not be redacted.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseReview {
    pub release: ReleaseId,
    pub machine: MachineId,
    pub mode: Platform,
    pub configuration: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    pub provenance: Vec<Provenance>,
}
