//! A problem document (RFC 9457, PA §9.4). `http` builds it from its one table;
//! `client` decodes it. Never here: the table of codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The prefix of every `type`.
pub const TYPE_PREFIX: &str = "urn:bronzeward:problem:";

/// `instance` is the request's identifier, or the operation's in a failed
/// operation's `error`. What else a code carries is in `members`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    #[serde(rename = "type")]
    #[schemars(extend("pattern" = "^urn:bronzeward:problem:[a-z-]+$"))]
    pub kind: String,
    pub title: String,
    #[schemars(range(min = 400, max = 599))]
    pub status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    pub instance: String,
    #[serde(flatten)]
    pub members: serde_json::Map<String, serde_json::Value>,
}

impl Problem {
    /// The code after the prefix, if the type has it.
    pub fn code(&self) -> Option<&str> {
        self.kind.strip_prefix(TYPE_PREFIX)
    }
}
