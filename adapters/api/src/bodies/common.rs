//! Shapes several resources share. Every other body file uses this one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{EpochId, PrincipalId};
use crate::json::{BodyError, Checked};

/// A role of PA §10.1, in its wire spelling.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    Viewer,
    Author,
    Publisher,
    Approver,
    RecoveryAdmin,
}

impl Role {
    pub const ALL: [Role; 5] = [
        Role::Viewer,
        Role::Author,
        Role::Publisher,
        Role::Approver,
        Role::RecoveryAdmin,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Author => "author",
            Role::Publisher => "publisher",
            Role::Approver => "approver",
            Role::RecoveryAdmin => "recovery-admin",
        }
    }
}

/// A page of a collection; `next` is absent at the end.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    pub items: Vec<T>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A principal and the role it acted under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Acting {
    pub principal: PrincipalId,
    pub role: Role,
}

/// A controller instance with its fence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Controller {
    /// The deployment's name of the instance; its process is not told.
    pub controller: String,
    pub generation: Option<u64>,
    pub epoch: EpochId,
}

/// Who made an entry: a principal, or a controller on its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum By {
    Acting(Acting),
    Controller(Controller),
}

/// What a decider states: at most 16 string members, possibly none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Facts(#[schemars(extend("maxProperties" = 16))] pub BTreeMap<String, String>);

impl Facts {
    pub(crate) fn check(&self) -> Result<(), BodyError> {
        if self.0.len() > 16 {
            return Err(BodyError::new("/facts", "facts-count"));
        }
        Ok(())
    }
}

/// The body of a request that says nothing: `{}`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

impl Checked for Nothing {}

/// Members of a layer, in composition order global to override (PA §3.1).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    Global,
    Site,
    Cluster,
    Role,
    Workload,
    Override,
}
