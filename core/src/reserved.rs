//! The reserved text of IC §5.5.
//!
//! Authoring looks for it in every string of a source, the output check in every string
//! of a composition: a tag that stands inside opaque text is a string that would reach
//! the node. Never in this module: an exception.

/// A string scalar that holds this is refused.
pub const RESERVED: &str = "!bwref";

pub fn holds_reserved(text: &str) -> bool {
    text.contains(RESERVED)
}
