//! An answer of success: the body and what its headers say (PA §9.1); and any answer as it
//! came, for a caller that keeps or checks answers.

use reqwest::header::HeaderMap;

/// An answer before it is read, of success or not. It has no Debug: its body is a body.
pub struct Arrived<'a> {
    pub method: &'a str,
    /// The path and query of the request.
    pub path: &'a str,
    pub status: u16,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
}

impl Arrived<'_> {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

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
