//! A typed client of the Bronzeward API: one method per route that is served.
//!
//! The demo, the tests and an operators' command line drive the server through it.
//! It speaks the bodies and the route table of `bronzeward-api` and nothing else of
//! ours. Never in this crate: a retry (a lost answer is asked for again by the
//! caller, under the same key), a decision about an answer, or a token or body in a
//! Debug, an error or a log.

mod answer;
mod call;
mod error;
mod reads;
mod write;
mod writes;

use std::fmt;
use std::sync::Arc;

pub use answer::{Answer, Arrived};
pub use bronzeward_api as api;
pub use error::{ClientError, Transport};
pub use reads::{Direction, OperationFilter, Paging};
pub use reqwest::header::HeaderMap;
pub use write::{IdempotencyKey, MalformedKey, Write};

use reqwest::Url;

/// A bearer token. It prints nothing of itself.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Sees every answer before it is read, as it came.
pub type Watch = Arc<dyn Fn(&Arrived<'_>) + Send + Sync>;

/// A client of one server, as one principal. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    token: Option<Token>,
    watch: Option<Watch>,
}

impl Client {
    /// A client of the server at `base`, `http://host:port` or behind TLS.
    pub fn new(base: &str) -> Result<Self, ClientError> {
        // reqwest is compiled without a TLS provider of its own; another caller of this
        // process may have installed this one before.
        let _installed_before = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(std::time::Duration::from_secs(60))
            .build()
            .map_err(ClientError::transport)?;
        let base = Url::parse(base).map_err(|_| ClientError::BaseAddress)?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(ClientError::BaseAddress);
        }
        Ok(Self {
            http,
            base,
            token: None,
            watch: None,
        })
    }

    /// The same client with every answer shown to `watch`.
    #[must_use]
    pub fn watched(&self, watch: Watch) -> Self {
        Self {
            watch: Some(watch),
            ..self.clone()
        }
    }

    /// The same client as another principal.
    #[must_use]
    pub fn with_token(&self, token: Token) -> Self {
        Self {
            token: Some(token),
            ..self.clone()
        }
    }

    /// The same client without a credential.
    #[must_use]
    pub fn anonymous(&self) -> Self {
        Self {
            token: None,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests;
