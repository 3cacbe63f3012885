//! The act log (PA §10.5).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bodies::common::Role;
use crate::id::{ActId, EpochId, PrincipalId};
use crate::value::Timestamp;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Act {
    pub id: ActId,
    pub at: Timestamp,
    pub principal: PrincipalId,
    /// Null for an act of the operator's own tool.
    pub role: Option<Role>,
    pub action: String,
    pub subjects: Vec<String>,
    pub epoch: EpochId,
}
