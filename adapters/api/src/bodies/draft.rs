//! Drafts and their entries.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bodies::common::Layer;
use crate::bodies::source::Declarations;
use crate::id::{
    AssignmentId, AssignmentRevisionId, ClusterId, DraftId, FragmentId, FragmentRevisionId,
    ImportBaseRevisionId, IngestionId, MachineId, ProfileId, ProfileRevisionId,
};
use crate::json::Checked;
use crate::value::{InputText, Text, form};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateDraft {
    pub cluster: ClusterId,
    pub title: Text<form::Title>,
}

impl Checked for CreateDraft {}

/// A fragment's proposed text. Document and marks can hold a secret, so neither
/// prints and the request's fingerprint is keyed (PA §7.1).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PutFragment {
    pub layer: Layer,
    pub document: InputText,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<Vec<InputText>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declarations: Option<Declarations>,
}

impl Checked for PutFragment {}

/// The fragment revisions a profile pins, in order.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PutProfile {
    pub fragments: Vec<FragmentRevisionId>,
}

impl Checked for PutProfile {}

/// The profiles a machine selects, then its fragments per layer, by name.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PutAssignment {
    pub profiles: Vec<Text<form::SourceName>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fragments: Option<BTreeMap<Layer, Vec<Text<form::SourceName>>>>,
}

impl Checked for PutAssignment {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DraftState {
    Open,
    Published,
    Discarded,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ImportBaseEntry {
    pub machine: MachineId,
    pub revision: ImportBaseRevisionId,
}

/// `head` and `base` are null for a name the draft introduces, `revision` and
/// `document` for a removal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FragmentEntry {
    pub name: String,
    pub head: Option<FragmentId>,
    pub base: Option<u64>,
    pub revision: Option<FragmentRevisionId>,
    pub document: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProfileEntry {
    pub name: String,
    pub head: Option<ProfileId>,
    pub base: Option<u64>,
    pub revision: Option<ProfileRevisionId>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AssignmentEntry {
    pub machine: MachineId,
    pub head: Option<AssignmentId>,
    pub base: Option<u64>,
    pub revision: Option<AssignmentRevisionId>,
}

/// One proposed change.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DraftEntry {
    ImportBase(ImportBaseEntry),
    Fragment(FragmentEntry),
    Profile(ProfileEntry),
    Assignment(AssignmentEntry),
}

/// Entries in order: import bases by machine, then fragments, profiles and
/// assignments by name or machine.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Draft {
    pub id: DraftId,
    pub cluster: ClusterId,
    pub title: String,
    pub state: DraftState,
    pub revision: u64,
    pub entries: Vec<DraftEntry>,
}

/// The answer to a change of one entry; `ingestion` only where text was ingested.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DraftUpdate {
    pub draft: DraftId,
    pub entry: DraftEntry,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingestion: Option<IngestionId>,
}
