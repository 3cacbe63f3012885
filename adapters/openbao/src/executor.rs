//! The executor identity: opens approved artifacts and reads Talos access (PA §3.3).
//!
//! Held by dispatch and by observations. It has no method that encrypts, reads a
//! generation or reads a key.

use std::path::PathBuf;

use bronzeward_core::id::ClusterId;
use bronzeward_core::secret::Plaintext;
use bronzeward_engine::ports::provider::{
    Ciphertext, ExecutorSecrets, Failure, KeyName, TalosAccess, TokenProbe, TokenState,
};

use crate::settings::Endpoint;
use crate::transport::Transport;
use crate::{kv, transit};

#[derive(Clone)]
pub struct Executor {
    transport: Transport,
    artifact: KeyName,
}

impl Executor {
    pub fn new(endpoint: &Endpoint, token_file: impl Into<PathBuf>, artifact: KeyName) -> Self {
        Executor {
            transport: Transport::new(endpoint, "executor", token_file.into()),
            artifact,
        }
    }
}

impl TokenProbe for Executor {
    async fn probe_token(&self) -> TokenState {
        self.transport.probe_token().await
    }
}

impl ExecutorSecrets for Executor {
    async fn read_talos_access(&self, cluster: ClusterId) -> Result<TalosAccess, Failure> {
        kv::talos_access(&self.transport, cluster).await
    }

    async fn decrypt_artifact(
        &self,
        artifact: &Ciphertext,
        bound_key_version: u64,
    ) -> Result<Plaintext, Failure> {
        if artifact.key_version() != bound_key_version {
            return Err(Failure::Integrity);
        }
        transit::decrypt(&self.transport, &self.artifact, artifact).await
    }
}
