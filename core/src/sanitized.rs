//! A sanitized source: the only thing of an input that ordinary persistence accepts.
//!
//! Extraction makes one, and so does opening a staging envelope; there is no other way
//! to have one (IC §2.1). The type has no default and no public field, so persistence
//! takes it by type. Never in this module: a value.
//!
//! Nobody else makes one:
//!
//! ```compile_fail
//! use bronzeward_core::{reference::Declarations, sanitized::Sanitized};
//! let made = Sanitized { document: String::new(), declarations: Declarations::default() };
//! ```
//!
//! ```compile_fail
//! let made = bronzeward_core::sanitized::Sanitized::default();
//! ```
//!
//! ```
//! use bronzeward_core::{reference::Declarations, sanitized::Sanitized};
//! fn persist(change: &Sanitized) -> (&str, &Declarations) {
//!     (change.document(), change.declarations())
//! }
//! let made = Declarations::default();
//! # let _ = (persist, made);
//! ```
//!
//! An input that was not extracted is not accepted in its place:
//!
//! ```compile_fail
//! use bronzeward_core::{sanitized::Sanitized, secret::Unresolved};
//! fn persist(change: &Sanitized) {}
//! persist(&Unresolved::new(Vec::new()));
//! ```

use crate::reference::Declarations;

pub struct Sanitized {
    document: String,
    declarations: Declarations,
}

impl Sanitized {
    pub(crate) fn new(document: String, declarations: Declarations) -> Sanitized {
        Sanitized {
            document,
            declarations,
        }
    }

    /// The text: references stand where values stood.
    pub fn document(&self) -> &str {
        &self.document
    }

    pub fn declarations(&self) -> &Declarations {
        &self.declarations
    }
}
