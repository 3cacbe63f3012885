//! What a reader may see of a composition: paths, messages, configurations, diffs
//! (IC §8.3).
//!
//! Publication derives review data here, and every refusal its paths. Three means work
//! together, by composed path, by schema and by value; each covers what the others do
//! not see. Never in this module: a surface that shows a text no means went over.

pub mod configuration;
pub mod message;
pub mod paired;
pub mod paths;

use crate::reference::Version;

/// A field of the machinery's own list.
pub const SCHEMA: &str = "<redacted:schema>";
/// A copy of a value at a leaf that nothing else covers.
pub const VALUE: &str = "<redacted:value>";
/// The base side of a diff whose output side hides something.
pub const PAIRED: &str = "<redacted:paired>";
/// A token of a path.
pub const TOKEN: &str = "<redacted>";
/// What every token but a path's begins with.
pub const MARK: &str = "<redacted:";

/// The token of a reference, or of the member at a position of a mapping reference.
pub fn reference_token(version: &Version, member: Option<usize>) -> String {
    match member {
        None => format!("<redacted:{}>", version.written()),
        Some(position) => format!("<redacted:{}#{position}>", version.written()),
    }
}
