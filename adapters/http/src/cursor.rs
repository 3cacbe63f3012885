//! Cursors: opaque to clients, bound to their collection, filters, direction and epoch
//! (PA §9.1, choice §17.14).
//!
//! Reads make one per page and take one back. A cursor is signed, so that nobody writes
//! one and an epoch's cursor cannot be made to fit another. It holds identifiers and
//! machine revisions only, never a sequence number of the database. Never in this
//! module: the key's origin, or a query.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bronzeward_core::id::EpochId;
use bronzeward_core::problem::Problem;
use hmac::{Hmac, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::query::cursor_invalid;

const TAG_BYTES: usize = 32;
/// Longer than any cursor made here; a longer text is not looked at.
const MAX_TEXT: usize = 2048;
/// Keeps a cursor's tag apart from anything else the key might sign.
const DOMAIN: &[u8] = b"bronzeward cursor 1\0";

/// The installation's cursor key. It prints nothing of itself.
#[derive(Clone)]
pub struct CursorKey([u8; 32]);

impl CursorKey {
    pub fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    fn mac(&self, payload: &[u8]) -> Hmac<Sha256> {
        // A key of the block's own size: HMAC fills a shorter one with zeros.
        let mut block = [0_u8; 64];
        block[..32].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(DOMAIN);
        mac.update(payload);
        mac
    }
}

impl std::fmt::Debug for CursorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CursorKey(..)")
    }
}

/// What a page belongs to. Two pages with one scope are pages of one collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The collection: its route, and the path parameters that name its parent.
    collection: String,
    filters: Vec<(String, String)>,
    descending: bool,
    epoch: String,
}

impl Scope {
    pub fn new<'a>(
        collection: impl Into<String>,
        filters: impl IntoIterator<Item = (&'a str, &'a str)>,
        descending: bool,
        epoch: EpochId,
    ) -> Self {
        let mut filters: Vec<(String, String)> = filters
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        filters.sort();
        Self {
            collection: collection.into(),
            filters,
            descending,
            epoch: epoch.to_string(),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Payload {
    scope: Scope,
    position: String,
}

/// The cursor of the items after `position` (an identifier or a machine revision).
pub fn encode(key: &CursorKey, scope: &Scope, position: impl Into<String>) -> String {
    let payload = Payload {
        scope: scope.clone(),
        position: position.into(),
    };
    // A struct of texts always serialises.
    let mut bytes = serde_json::to_vec(&payload).unwrap_or_default();
    let tag = key.mac(&bytes).finalize().into_bytes();
    bytes.extend_from_slice(&tag);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The position a cursor names, if it is of this scope and whole.
pub fn decode(key: &CursorKey, scope: &Scope, text: &str) -> Result<String, Problem> {
    if text.len() > MAX_TEXT {
        return Err(cursor_invalid());
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| cursor_invalid())?;
    let at = bytes
        .len()
        .checked_sub(TAG_BYTES)
        .ok_or_else(cursor_invalid)?;
    let (payload, tag) = bytes.split_at(at);
    let genuine = key.mac(payload).verify_slice(tag);
    genuine.map_err(|_| cursor_invalid())?;
    let payload: Payload = serde_json::from_slice(payload).map_err(|_| cursor_invalid())?;
    if payload.scope == *scope {
        Ok(payload.position)
    } else {
        Err(cursor_invalid())
    }
}
