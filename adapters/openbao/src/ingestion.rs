//! The ingestion identity: creates generations, encrypts, digests, and reads Talos access.
//!
//! Held by the ingestion workflow and, for keyed fingerprints, by the request wrapper. It
//! has no method that reads a generation back or opens a baseline (IC §1).

use std::path::PathBuf;

use bronzeward_core::generation::GenerationPath;
use bronzeward_core::id::ClusterId;
use bronzeward_core::idempotency::DigestKey;
use bronzeward_core::secret::{Plaintext, Value};
use bronzeward_engine::ports::provider::{
    Ciphertext, Creation, Failure, IngestionSecrets, KeyName, KeyedDigest, TalosAccess, TokenProbe,
    TokenState,
};

use crate::settings::Endpoint;
use crate::transport::Transport;
use crate::{kv, transit};

/// The Transit keys of the ingestion identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestionKeys {
    pub baseline: KeyName,
    pub staging: KeyName,
    pub digest: KeyName,
}

#[derive(Clone)]
pub struct Ingestion {
    transport: Transport,
    keys: IngestionKeys,
}

impl Ingestion {
    pub fn new(endpoint: &Endpoint, token_file: impl Into<PathBuf>, keys: IngestionKeys) -> Self {
        Ingestion {
            transport: Transport::new(endpoint, "ingestion", token_file.into()),
            keys,
        }
    }
}

impl TokenProbe for Ingestion {
    async fn probe_token(&self) -> TokenState {
        self.transport.probe_token().await
    }
}

impl IngestionSecrets for Ingestion {
    async fn read_talos_access(&self, cluster: ClusterId) -> Result<TalosAccess, Failure> {
        kv::talos_access(&self.transport, cluster).await
    }

    async fn create_generation(&self, path: &GenerationPath, value: &Value) -> Creation {
        kv::create(&self.transport, path, value).await
    }

    async fn encrypt_baseline(&self, input: &Plaintext) -> Result<Ciphertext, Failure> {
        transit::encrypt(&self.transport, &self.keys.baseline, input).await
    }

    async fn encrypt_staging(&self, envelope: &Plaintext) -> Result<Ciphertext, Failure> {
        transit::encrypt(&self.transport, &self.keys.staging, envelope).await
    }

    async fn decrypt_staging(&self, envelope: &Ciphertext) -> Result<Plaintext, Failure> {
        transit::decrypt(&self.transport, &self.keys.staging, envelope).await
    }

    async fn keyed_digests(&self, inputs: &[Plaintext]) -> Result<Vec<KeyedDigest>, Failure> {
        transit::digests(&self.transport, &self.keys.digest, inputs).await
    }

    async fn recompute_digest(
        &self,
        key: &DigestKey,
        input: &Plaintext,
    ) -> Result<KeyedDigest, Failure> {
        if key.name != self.keys.digest.as_str() || key.version < 1 {
            return Err(Failure::Refused);
        }
        transit::digest_under(&self.transport, &self.keys.digest, key.version, input).await
    }
}
