//! One call to the provider: token, deadline, bounded answer, and no text of an error.
//!
//! Every client's calls go through [`Transport::call`]. Never in this module: a retry (a
//! write may have been done), a path built from anything but checked segments, a header
//! of the provider's that changes what an answer means.

use std::path::PathBuf;

use bronzeward_engine::ports::provider::{Failure, TokenState};
use bytes::Bytes;
use reqwest::header::DATE;
use reqwest::{Method, Response, Url};
use serde::Serialize;
use zeroize::Zeroizing;

use crate::settings::Endpoint;
use crate::{answer, token};

/// The provider's own limit for a request body.
const REQUEST_LIMIT: usize = 33_554_432;

/// Above the answer to a decryption of the largest ciphertext that can be sent.
const ANSWER_LIMIT: usize = 40 << 20;

/// One identity's way to the provider.
#[derive(Clone)]
pub(crate) struct Transport {
    endpoint: Endpoint,
    identity: &'static str,
    token_file: PathBuf,
}

/// An answer, whatever its status.
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The `Date` header, if there is exactly one and it is text.
    pub(crate) date: Option<String>,
    pub(crate) body: Zeroizing<Vec<u8>>,
}

impl Transport {
    pub(crate) fn new(endpoint: &Endpoint, identity: &'static str, token_file: PathBuf) -> Self {
        Transport {
            endpoint: endpoint.clone(),
            identity,
            token_file,
        }
    }

    pub(crate) async fn get(&self, call: &'static str, path: &str) -> Result<Reply, Failure> {
        self.call(
            call,
            Method::GET,
            Route {
                path,
                tail: Tail::None,
            },
            None,
        )
        .await
    }

    /// Reads one version of a KV secret.
    pub(crate) async fn get_version(
        &self,
        call: &'static str,
        path: &str,
        version: u64,
    ) -> Result<Reply, Failure> {
        let route = Route {
            path,
            tail: Tail::Version(version),
        };
        self.call(call, Method::GET, route, None).await
    }

    /// Lists a directory, whose path ends in a slash.
    pub(crate) async fn list(&self, call: &'static str, path: &str) -> Result<Reply, Failure> {
        let list = Method::from_bytes(b"LIST").map_err(|_| Failure::Refused)?;
        self.call(
            call,
            list,
            Route {
                path,
                tail: Tail::Directory,
            },
            None,
        )
        .await
    }

    pub(crate) async fn post<B: Serialize>(
        &self,
        call: &'static str,
        path: &str,
        body: &B,
        size: usize,
    ) -> Result<Reply, Failure> {
        let body = written(body, size).ok_or(Failure::TooLarge)?;
        self.call(
            call,
            Method::POST,
            Route {
                path,
                tail: Tail::None,
            },
            Some(body),
        )
        .await
    }

    async fn call(
        &self,
        call: &'static str,
        method: Method,
        route: Route<'_>,
        body: Option<Zeroizing<Vec<u8>>>,
    ) -> Result<Reply, Failure> {
        let outcome = self.send(method, route, body).await;
        match &outcome {
            Err(failure) => {
                let (identity, failure) = (self.identity, failure.code());
                tracing::warn!(identity, call, failure, "no answer of the provider");
            }
            Ok(reply) if reply.status == 403 => {
                // Told apart for whoever reads the log: a dead token needs a new one, a
                // refused one another policy. Nothing is decided by it.
                let token = match self.probe_token().await {
                    TokenState::Valid => "valid",
                    TokenState::Dead => "dead",
                    TokenState::Undecided(_) => "unknown",
                };
                let identity = self.identity;
                tracing::warn!(identity, call, token, "the provider denied this");
            }
            Ok(reply) if reply.status != 200 && reply.status != 404 => {
                let (identity, status) = (self.identity, reply.status);
                let failure = answer::failure(reply).code();
                tracing::warn!(
                    identity,
                    call,
                    status,
                    failure,
                    "the provider did not do this"
                );
            }
            Ok(_) => {}
        }
        outcome
    }

    /// The one call that no policy grants and whose refusal tells a token's validity.
    pub(crate) async fn probe_token(&self) -> TokenState {
        let route = Route {
            path: "auth/token/lookup-self",
            tail: Tail::None,
        };
        match self.send(Method::GET, route, None).await {
            Ok(reply) => answer::token_state(&reply),
            Err(failure) => TokenState::Undecided(failure),
        }
    }

    async fn send(
        &self,
        method: Method,
        route: Route<'_>,
        body: Option<Zeroizing<Vec<u8>>>,
    ) -> Result<Reply, Failure> {
        let token = token::read(&self.token_file).map_err(|bad| {
            let (identity, reason) = (self.identity, bad.reason());
            tracing::error!(identity, reason, "the token file is not used");
            Failure::Credential
        })?;
        let url = self.url(route).ok_or(Failure::Refused)?;
        let mut request = self
            .endpoint
            .http
            .request(method, url)
            .header("X-Vault-Token", token);
        if let Some(body) = body {
            // The buffer is wiped when the last part of it has been written.
            request = request.body(Bytes::from_owner(body));
        }
        let response = request.send().await.map_err(|_| Failure::Unreachable)?;
        read(response).await
    }

    /// None for a path that is not exactly what would be asked for: a dot segment or an
    /// empty one would be cleaned away or redirected, here or by the provider.
    fn url(&self, route: Route<'_>) -> Option<Url> {
        let named = match route.tail {
            Tail::Directory => route.path.strip_suffix('/')?,
            Tail::None | Tail::Version(_) => route.path,
        };
        if !named.split('/').all(is_segment) {
            return None;
        }
        let mut url = self.endpoint.base.clone();
        url.set_path(&format!("/v1/{}", route.path));
        if let Tail::Version(version) = route.tail {
            url.set_query(Some(&format!("version={version}")));
        }
        Some(url)
    }
}

/// What is asked for, below `/v1/`. A query is never part of the path, which may be a record's.
#[derive(Clone, Copy)]
struct Route<'a> {
    path: &'a str,
    tail: Tail,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// The path as it is.
    None,
    /// One version of the secret there.
    Version(u64),
    /// A directory, whose path ends in a slash.
    Directory,
}

/// The product's identifiers and the provider's route names need no escaping; anything else
/// is not one of them.
fn is_segment(segment: &str) -> bool {
    let letters = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    !segment.is_empty() && segment.bytes().all(letters) && !segment.bytes().all(|b| b == b'.')
}

/// The body's JSON in a buffer that is large enough from the start, so that no copy of a
/// value is left behind by growing. None beyond the provider's limit.
fn written<B: Serialize>(body: &B, size: usize) -> Option<Zeroizing<Vec<u8>>> {
    let mut buffer = Zeroizing::new(Vec::with_capacity(size));
    serde_json::to_writer(&mut *buffer, body).ok()?;
    (buffer.len() <= REQUEST_LIMIT).then_some(buffer)
}

async fn read(mut response: Response) -> Result<Reply, Failure> {
    let status = response.status().as_u16();
    let mut dates = response.headers().get_all(DATE).iter();
    let date = match (dates.next(), dates.next()) {
        (Some(only), None) => only.to_str().ok().map(str::to_owned),
        _ => None,
    };
    let expected = response
        .content_length()
        .unwrap_or(0)
        .min(ANSWER_LIMIT as u64);
    let mut body = Zeroizing::new(Vec::with_capacity(expected as usize));
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= ANSWER_LIMIT => {
                body.extend_from_slice(&chunk);
            }
            Ok(Some(_)) => return Err(Failure::Unreadable),
            Ok(None) => return Ok(Reply { status, date, body }),
            Err(_) => return Err(Failure::Unreachable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn transport(address: &str) -> Transport {
        let endpoint = Endpoint::new(&Settings::new(address)).unwrap();
        Transport::new(&endpoint, "test", PathBuf::from("/nonexistent"))
    }

    /// B26: no path that the provider would answer by a redirect is ever sent.
    #[test]
    fn a_path_is_sent_exactly_as_it_is_or_not_at_all() {
        let transport = transport("https://bao.example:8200");
        for path in [
            "secret/metadata/gen/cl_a/ing_b/val_c",
            "transit/keys/bw-digest.v2",
        ] {
            let url = transport
                .url(Route {
                    path,
                    tail: Tail::None,
                })
                .unwrap();
            assert_eq!(url.as_str(), format!("https://bao.example:8200/v1/{path}"));
        }
        let directory = Route {
            path: "secret/metadata/gen/",
            tail: Tail::Directory,
        };
        assert!(
            transport
                .url(directory)
                .unwrap()
                .as_str()
                .ends_with("/v1/secret/metadata/gen/")
        );
        let pinned = Route {
            path: "secret/data/gen/a",
            tail: Tail::Version(3),
        };
        assert!(
            transport
                .url(pinned)
                .unwrap()
                .as_str()
                .ends_with("/v1/secret/data/gen/a?version=3")
        );
        for path in [
            "",
            "/",
            "a//b",
            "/a",
            "a/../b",
            "a/./b",
            "a/.",
            "a/..",
            "..",
            "a/%2e%2e/b",
            "a/%2f",
            "a b",
            "a/",
            "a?version=0",
            "a\u{e9}",
            "a\\b",
            "a#b",
            "a/\n",
            "a//",
        ] {
            assert!(
                transport
                    .url(Route {
                        path,
                        tail: Tail::None
                    })
                    .is_none(),
                "{path:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_token_file_that_cannot_be_used_stops_the_call_before_anything_is_sent() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let transport = transport(&format!("http://{}", listener.local_addr().unwrap()));
        let outcome = transport.get("test", "secret/data/x").await;
        assert_eq!(outcome.err(), Some(Failure::Credential));
        assert!(listener.accept().is_err());
    }
}
