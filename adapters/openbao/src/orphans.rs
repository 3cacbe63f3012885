//! The orphan report's identity: lists the generation tree and nothing else (PA §6.4).
//!
//! Held by the `orphans` subcommand alone. Names in a listing are whatever was written
//! there; the report decides which are ours.

use std::path::PathBuf;

use bronzeward_engine::ports::provider::{
    Failure, GenerationDirectory, Listed, OrphanListing, TokenProbe, TokenState,
};
use serde::Deserialize;

use crate::settings::Endpoint;
use crate::transport::Transport;
use crate::{answer, transit};

#[derive(Clone)]
pub struct OrphanReport {
    transport: Transport,
}

impl OrphanReport {
    pub fn new(endpoint: &Endpoint, token_file: impl Into<PathBuf>) -> Self {
        OrphanReport {
            transport: Transport::new(endpoint, "orphan-report", token_file.into()),
        }
    }
}

impl TokenProbe for OrphanReport {
    async fn probe_token(&self) -> TokenState {
        self.transport.probe_token().await
    }
}

#[derive(Deserialize)]
struct Keys {
    keys: Vec<String>,
}

impl OrphanListing for OrphanReport {
    async fn list(&self, directory: GenerationDirectory) -> Result<Vec<Listed>, Failure> {
        let path = match directory {
            GenerationDirectory::Clusters => "secret/metadata/gen/".to_owned(),
            GenerationDirectory::Claims(cluster) => format!("secret/metadata/gen/{cluster}/"),
            GenerationDirectory::Values(cluster, claim) => {
                format!("secret/metadata/gen/{cluster}/{claim}/")
            }
        };
        let reply = self.transport.list("list", &path).await?;
        if answer::is_empty_listing(&reply) {
            return Ok(Vec::new());
        }
        let names: Keys = transit::data(&reply)?;
        Ok(names.keys.into_iter().map(listed).collect())
    }
}

fn listed(name: String) -> Listed {
    match name.strip_suffix('/') {
        Some(directory) => Listed::Directory(directory.to_owned()),
        None => Listed::Secret(name),
    }
}
