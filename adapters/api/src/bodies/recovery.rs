//! Recovery mode: entry, accounting, marks, releases, exit and the read (PA §12).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bodies::common::{Acting, Facts};
use crate::bodies::machine::ScopeState;
use crate::bodies::timeline::TimelineEntry;
use crate::id::{ActId, EpochId, MachineId, ObservationId};
use crate::json::{BodyError, Checked};
use crate::value::{Text, Timestamp, form};

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum BackupFamily {
    Database,
    Provider,
    CredentialStore,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestoredBackup {
    pub family: BackupFamily,
    pub backup: Text<form::Title>,
    pub taken_at: Timestamp,
}

/// At least one family, each at most once.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnterRecovery {
    #[schemars(length(min = 1, max = 3))]
    pub restored: Vec<RestoredBackup>,
    pub stopped_at: Timestamp,
    pub reason: Text<form::Reason>,
}

impl Checked for EnterRecovery {
    fn check(&self) -> Result<(), BodyError> {
        let families: std::collections::BTreeSet<_> =
            self.restored.iter().map(|backup| backup.family).collect();
        if self.restored.is_empty() || families.len() != self.restored.len() {
            return Err(BodyError::new("/restored", "each-family-once"));
        }
        Ok(())
    }
}

/// A decision that states facts only: a mark, a release or the exit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecoveryFacts {
    pub facts: Facts,
}

impl Checked for RecoveryFacts {
    fn check(&self) -> Result<(), BodyError> {
        self.facts.check()
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountedScope {
    pub machine: MachineId,
    pub start: ObservationId,
    pub end: ObservationId,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountScopes {
    #[schemars(length(min = 1, max = 256))]
    pub scopes: Vec<AccountedScope>,
    pub facts: Facts,
}

impl Checked for AccountScopes {
    fn check(&self) -> Result<(), BodyError> {
        let machines: std::collections::BTreeSet<_> =
            self.scopes.iter().map(|scope| &scope.machine).collect();
        if !(1..=256).contains(&self.scopes.len()) {
            return Err(BodyError::new("/scopes", "list-length"));
        }
        if machines.len() != self.scopes.len() {
            return Err(BodyError::new("/scopes", "each-machine-once"));
        }
        self.facts.check()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryMode {
    Normal,
    Recovery,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServedBackup {
    pub family: BackupFamily,
    pub backup: String,
    pub taken_at: Timestamp,
}

/// The entry that minted the current epoch.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryEntry {
    pub epoch: EpochId,
    pub by: Acting,
    pub at: Timestamp,
    pub reason: String,
    pub stopped_at: Timestamp,
    pub restored: Vec<ServedBackup>,
}

/// The exit that ended the epoch's recovery mode.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryExit {
    pub by: Acting,
    pub at: Timestamp,
    pub act: ActId,
    pub facts: Facts,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MachineScope {
    pub machine: MachineId,
    pub state: ScopeState,
}

/// `entry` is null in the installation's own epoch; `scopes` counts machines by
/// state and `machines` names each one's.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    pub mode: RecoveryMode,
    pub epoch: EpochId,
    pub entered_at: Option<Timestamp>,
    pub entry: Option<RecoveryEntry>,
    pub exit: Option<RecoveryExit>,
    pub scopes: BTreeMap<ScopeState, u64>,
    pub machines: Vec<MachineScope>,
}

/// What a mark or a release did to a scope.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScopeChange {
    pub machine: MachineId,
    pub from: ScopeState,
    pub to: ScopeState,
    pub observation: Option<ObservationId>,
    pub missing: Vec<String>,
    pub entry: TimelineEntry,
}

/// What an accounting decision did, per scope.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScopesAccounted {
    pub act: ActId,
    pub scopes: Vec<MachineScope>,
}
