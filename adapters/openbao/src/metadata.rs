//! The metadata identity: one path's or one key's state by name, no value, no list (DM §4).
//!
//! Held by the dependency monitor, by publication's checks and by the use-time check. What
//! an answer means is `bronzeward_core::dependency`'s to say; here it becomes facts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bronzeward_core::dependency::{Answer, KvFacts, KvVersionFacts, TransitFacts};
use bronzeward_engine::ports::provider::{DependencyMetadata, Failure, TokenProbe, TokenState};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::settings::Endpoint;
use crate::transit;
use crate::transport::{Reply, Transport};

#[derive(Clone)]
pub struct Metadata {
    transport: Transport,
}

impl Metadata {
    pub fn new(endpoint: &Endpoint, token_file: impl Into<PathBuf>) -> Self {
        Metadata {
            transport: Transport::new(endpoint, "metadata", token_file.into()),
        }
    }
}

impl TokenProbe for Metadata {
    async fn probe_token(&self) -> TokenState {
        self.transport.probe_token().await
    }
}

impl DependencyMetadata for Metadata {
    async fn kv_metadata(&self, path: &str) -> Answer<KvFacts> {
        let path = format!("secret/metadata/{path}");
        answered(self.transport.get("kv-metadata", &path).await, kv_facts)
    }

    async fn transit_key(&self, key: &str) -> Answer<TransitFacts> {
        let path = format!("transit/keys/{key}");
        answered(
            self.transport.get("transit-key", &path).await,
            transit_facts,
        )
    }
}

fn answered<F>(
    reply: Result<Reply, Failure>,
    facts: impl FnOnce(&Reply) -> Option<F>,
) -> Answer<F> {
    match reply {
        Ok(reply) => Answer::Answered {
            status: reply.status,
            facts: facts(&reply),
            date: reply.date,
        },
        // An answer that was too large to read is one: another status than any row's.
        Err(Failure::Unreadable) => Answer::Answered {
            status: 200,
            date: None,
            facts: None,
        },
        Err(_) => Answer::Unreachable,
    }
}

/// The members that decide. Custom metadata is whoever wrote it's and is skipped unread.
#[derive(Deserialize)]
struct KvMetadata {
    current_version: i64,
    oldest_version: i64,
    versions: BTreeMap<String, KvVersionMetadata>,
}

#[derive(Deserialize)]
struct KvVersionMetadata {
    created_time: Option<String>,
    deletion_time: String,
    destroyed: bool,
}

fn kv_facts(reply: &Reply) -> Option<KvFacts> {
    let body: KvMetadata = transit::data(reply).ok()?;
    let versions = body.versions.into_iter().map(|(version, v)| {
        let facts = KvVersionFacts {
            created: v.created_time.filter(|text| !text.is_empty()),
            deletion: Some(v.deletion_time).filter(|text| !text.is_empty()),
            destroyed: v.destroyed,
        };
        Some((version_number(&version)?, facts))
    });
    Some(KvFacts {
        current_version: body.current_version,
        oldest_version: body.oldest_version,
        versions: versions.collect::<Option<_>>()?,
    })
}

/// A key's state. Types without creation times have no `keys` (B16), and asymmetric ones
/// have objects there, which are no identity of ours and make the answer unreadable.
#[derive(Deserialize)]
struct TransitKey {
    keys: Option<BTreeMap<String, i64>>,
    latest_version: Option<i64>,
    min_available_version: Option<i64>,
    min_decryption_version: Option<i64>,
    soft_deleted: Option<Json>,
}

fn transit_facts(reply: &Reply) -> Option<TransitFacts> {
    let body: TransitKey = transit::data(reply).ok()?;
    let keys = body.keys.unwrap_or_default().into_iter();
    Some(TransitFacts {
        keys: keys
            .map(|(v, at)| Some((version_number(&v)?, at)))
            .collect::<Option<_>>()?,
        latest_version: body.latest_version,
        min_available_version: body.min_available_version,
        min_decryption_version: body.min_decryption_version,
        soft_deleted: body.soft_deleted.and_then(|given| given.as_bool()),
    })
}

/// The provider writes versions as map keys; another spelling is not its own.
fn version_number(text: &str) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
