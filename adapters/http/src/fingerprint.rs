//! What a request's fingerprint is computed over (PA §7.1): method, route template,
//! path parameters, If-Match and the canonical body (RFC 8785).
//!
//! Handlers of writes make one input per request. An ordinary route hashes it here; a
//! keyed route hands it to ingestion, which computes the HMAC, so that no unkeyed
//! digest of unextracted text exists. Never in this module: the digest key, or a Debug
//! of the input.

use std::collections::BTreeMap;

use bronzeward_api::Json;
use bronzeward_api::routes::Route;
use bronzeward_core::idempotency::Fingerprint;
use bronzeward_core::problem::Problem;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The canonical bytes of a request. They hold its body.
pub struct FingerprintInput {
    bytes: Vec<u8>,
    keyed: bool,
}

impl FingerprintInput {
    /// The input of a request to `route`: its path parameters by name, its If-Match as
    /// sent, its body if it has one.
    pub fn new(
        route: &Route,
        path: &BTreeMap<&str, &str>,
        if_match: Option<&str>,
        body: Option<&Json>,
    ) -> Result<Self, Problem> {
        // An array of five, an absent body being a shorter one: null is a body too.
        let mut parts = vec![
            json!(route.method.as_str()),
            json!(route.path),
            json!(path),
            json!(if_match),
        ];
        parts.extend(body.map(|body| body.value().clone()));
        let bytes = serde_json_canonicalizer::to_vec(&Value::Array(parts));
        Ok(Self {
            bytes: bytes
                .map_err(|_| Problem::invalid_request("The body has no canonical form."))?,
            keyed: route.keyed_fingerprint,
        })
    }

    /// The fingerprint of a route whose body holds no unextracted text; none for a
    /// keyed route, whose input goes to ingestion.
    pub fn unkeyed(&self) -> Option<Fingerprint> {
        (!self.keyed).then(|| Fingerprint {
            digest: Sha256::digest(&self.bytes).into(),
            key: None,
        })
    }

    /// The bytes, for the HMAC of a keyed route.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
