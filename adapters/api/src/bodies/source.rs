//! Heads and revisions of fragments, profiles and assignments (PA §3.1).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bodies::common::Layer;
use crate::id::{
    AssignmentId, AssignmentRevisionId, ClusterId, FragmentId, FragmentRevisionId, MachineId,
    PrincipalId, ProfileId, ProfileRevisionId,
};
use crate::value::{InputText, Timestamp, Whole};

/// Where a source belongs; the library waits for a later phase (PA choice §17.31).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceScope {
    Cluster,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReferenceKind {
    String,
    Integer,
    Boolean,
    Mapping,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    Base64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EmbeddedFormat {
    Yaml,
    Json,
}

/// What a source declares of a name it references (IC §5.2). The version is the
/// exact one the reference resolves to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    pub kind: ReferenceKind,
    pub version: Whole<1, 2147483647>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
}

/// A document inside a string, by its path and format (IC §5.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Embedded {
    pub path: InputText,
    pub format: EmbeddedFormat,
}

/// Declarations beside a document; both members may be left out of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Declarations {
    #[serde(default)]
    pub references: Option<BTreeMap<String, Declaration>>,
    #[serde(default)]
    pub embedded: Option<Vec<Embedded>>,
}

/// Declarations as a revision serves them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServedDeclarations {
    pub references: BTreeMap<String, Declaration>,
    pub embedded: Vec<Embedded>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FragmentHead {
    pub id: FragmentId,
    pub cluster: ClusterId,
    pub scope: SourceScope,
    pub name: String,
    pub layer: Layer,
    pub revision: Option<FragmentRevisionId>,
    pub head_revision: u64,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FragmentRevision {
    pub id: FragmentRevisionId,
    pub cluster: ClusterId,
    pub name: String,
    pub layer: Layer,
    pub document: String,
    pub declarations: ServedDeclarations,
    pub author: PrincipalId,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileHead {
    pub id: ProfileId,
    pub cluster: ClusterId,
    pub scope: SourceScope,
    pub name: String,
    pub revision: Option<ProfileRevisionId>,
    pub head_revision: u64,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileRevision {
    pub id: ProfileRevisionId,
    pub cluster: ClusterId,
    pub name: String,
    pub fragments: Vec<FragmentRevisionId>,
    pub author: PrincipalId,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssignmentHead {
    pub id: AssignmentId,
    pub cluster: ClusterId,
    pub machine: MachineId,
    pub revision: Option<AssignmentRevisionId>,
    pub head_revision: u64,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssignmentRevision {
    pub id: AssignmentRevisionId,
    pub cluster: ClusterId,
    pub machine: MachineId,
    pub profiles: Vec<String>,
    pub fragments: BTreeMap<Layer, Vec<String>>,
    pub author: PrincipalId,
    pub created_at: Timestamp,
}
