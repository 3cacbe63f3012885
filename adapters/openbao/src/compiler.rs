//! The compiler identity: reads pinned generations and encrypts artifacts (IC §1).
//!
//! Held by publication alone. It has no method that decrypts, creates or reads a key.

use std::path::PathBuf;

use bronzeward_core::generation::GenerationPath;
use bronzeward_core::secret::Plaintext;
use bronzeward_engine::ports::provider::{
    Ciphertext, CompilerSecrets, Failure, Generation, KeyName, TokenProbe, TokenState,
};

use crate::settings::Endpoint;
use crate::transport::Transport;
use crate::{kv, transit};

#[derive(Clone)]
pub struct Compiler {
    transport: Transport,
    artifact: KeyName,
}

impl Compiler {
    pub fn new(endpoint: &Endpoint, token_file: impl Into<PathBuf>, artifact: KeyName) -> Self {
        Compiler {
            transport: Transport::new(endpoint, "compiler", token_file.into()),
            artifact,
        }
    }
}

impl TokenProbe for Compiler {
    async fn probe_token(&self) -> TokenState {
        self.transport.probe_token().await
    }
}

impl CompilerSecrets for Compiler {
    async fn read_generation(
        &self,
        path: &GenerationPath,
        version: u64,
    ) -> Result<Generation, Failure> {
        kv::generation(&self.transport, path, version).await
    }

    async fn encrypt_artifact(&self, configuration: &Plaintext) -> Result<Ciphertext, Failure> {
        transit::encrypt(&self.transport, &self.artifact, configuration).await
    }
}
