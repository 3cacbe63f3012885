//! Ingestions: the staging claim as a read treats it (IC §3.5), and the requests
//! around it. Never here: the claim's owner, payload or digest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bodies::source::{Declarations, ServedDeclarations};
use crate::id::{DraftId, IngestionId, MachineId, OperationId};
use crate::json::{BodyError, Checked};
use crate::value::{InputText, Timestamp};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartKind {
    Import,
    DriftAdoption,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IngestionSource {
    Machine,
    Document,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Staging {
    Transient,
    Encrypted,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartIngestion {
    pub kind: StartKind,
    pub machine: MachineId,
    pub draft: DraftId,
    pub source: IngestionSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<InputText>,
    pub staging: Staging,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<Vec<InputText>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declarations: Option<Declarations>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<bool>,
}

impl Checked for StartIngestion {
    fn check(&self) -> Result<(), BodyError> {
        match (self.source, self.document.is_some(), self.kind) {
            (IngestionSource::Document, _, StartKind::DriftAdoption) => {
                Err(BodyError::new("/source", "adoption-reads-the-machine"))
            }
            (IngestionSource::Document, false, StartKind::Import) => {
                Err(BodyError::new("/document", "missing-member"))
            }
            (IngestionSource::Machine, true, _) => {
                Err(BodyError::new("/document", "document-of-a-machine-source"))
            }
            (IngestionSource::Document, true, StartKind::Import)
            | (IngestionSource::Machine, false, _) => Ok(()),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkIngestion {
    #[schemars(length(min = 1, max = 1024))]
    pub marks: Vec<InputText>,
}

impl Checked for MarkIngestion {
    fn check(&self) -> Result<(), BodyError> {
        if (1..=1024).contains(&self.marks.len()) {
            return Ok(());
        }
        Err(BodyError::new("/marks", "list-length"))
    }
}

/// The handle of an accepted ingestion request.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct IngestionAccepted {
    pub operation: OperationId,
    pub ingestion: IngestionId,
    /// The owner generation a mark took; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IngestionKind {
    Import,
    DriftAdoption,
    DraftUpdate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IngestionState {
    Held,
    Resumed,
    Paused,
    Released,
    Abandoned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Review {
    Pending,
    Continued,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ingestion {
    pub id: IngestionId,
    pub kind: IngestionKind,
    pub mode: Staging,
    pub state: IngestionState,
    pub review: Option<Review>,
    pub machine: Option<MachineId>,
    pub draft: DraftId,
    pub operation: Option<OperationId>,
    pub owner_generation: u64,
    pub lease_until: Timestamp,
    pub expires_at: Timestamp,
    pub created_at: Timestamp,
}

/// The staged change of a paused ingestion: the one answer that can hold text
/// nobody has marked, so it does not print (PA §9.1).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct IngestionReview {
    pub ingestion: IngestionId,
    pub document: InputText,
    pub declarations: ServedDeclarations,
}
