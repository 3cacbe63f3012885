//! An answer of success: the body and what its headers say (PA §9.1).

/// `etag` is sent back whole as If-Match; `epoch` as the expected epoch of a write.
#[derive(Clone, Debug)]
pub struct Answer<T> {
    pub body: T,
    pub status: u16,
    pub etag: Option<String>,
    pub location: Option<String>,
    pub epoch: Option<String>,
    pub recovery_mode: bool,
    pub request_id: Option<String>,
    /// The stored answer of an earlier request under the same key.
    pub replayed: bool,
}
