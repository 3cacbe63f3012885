//! The pipeline of every ingestion (IC §2.3 steps 2 to 8): extract and guard, create the
//! generations, then digest and encrypt. Its end is the envelope that is persisted.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::envelope::{Baseline, Envelope, Kept};
use bronzeward_core::extract::{self, Extraction, Purpose};
use bronzeward_core::generation::{GenerationPath, stored_text};
use bronzeward_core::id::{ClusterId, IngestionId};
use bronzeward_core::path::Path;
use bronzeward_core::problem::Problem;
use bronzeward_core::reference::{Declarations, Name};
use bronzeward_core::refusal::{Refusal, Stage};
use bronzeward_core::secret::{Plaintext, Unresolved};

use super::{Ingester, refusal};
use crate::decide::decide;
use crate::ports::provider::{Creation, Failure, IngestionSecrets, KeyedDigest};
use crate::ports::store::{ReferenceRow, Snapshot, SourceReads, Store};
use crate::world::World;

/// What the author says of an input, beside its text.
#[derive(Clone, Default)]
pub struct Said {
    pub declarations: Declarations,
    pub marks: Vec<Path>,
}

/// One ingestion's input and where its values go.
pub(super) struct Material<'a> {
    pub cluster: ClusterId,
    pub claim: IngestionId,
    pub purpose: Purpose,
    pub input: Unresolved,
    pub said: &'a Said,
}

impl<W: World> Ingester<W> {
    /// Runs the pipeline. A base's envelope holds its baseline, a fragment's does not. A
    /// problem before the first creation leaves nothing at the provider.
    pub(super) async fn prepare(&self, material: Material<'_>) -> Result<Envelope, Problem> {
        let Material {
            cluster,
            claim,
            purpose,
            input,
            said,
        } = material;
        let not_text = |_| {
            let refusal = Refusal::new(Stage::Ingestion, "parse", Vec::new());
            refusal::refused(&refusal)
        };
        let text = input.into_plaintext().map_err(not_text)?;
        let mut job = extract::Job::new(
            self.db.rules(),
            extract::Input {
                purpose,
                text: text.clone(),
                declarations: said.declarations.clone(),
                marks: said.marks.clone(),
            },
        );
        let decided = decide(&mut job, &*self.renderer, || self.db.mint_bits()).await;
        let extraction = decided.map_err(|why| refusal::undecided(&why))?;
        drop(job);
        let carried = self.carried(cluster, &said.declarations).await?;
        let paths = self.create(cluster, claim, &extraction).await?;
        let base = purpose == Purpose::Base;
        let digests = self.digests(&extraction, base.then_some(&text)).await?;
        let baseline = if base {
            Some(self.baseline(&text, digests.last()).await?)
        } else {
            None
        };
        let mut generations = carried;
        for ((generation, path), digest) in extraction.generations.iter().zip(paths).zip(&digests) {
            let kept = Kept {
                generation: path,
                keyed_digest: digest.mac,
                digest_key: digest.key.clone(),
            };
            generations.insert(generation.name.clone(), kept);
        }
        Ok(Envelope {
            sanitized: extraction.sanitized,
            generations,
            baseline,
        })
    }

    /// One generation per value, create-only, at a path no database issued (IC §2.3 step 6).
    async fn create(
        &self,
        cluster: ClusterId,
        claim: IngestionId,
        extraction: &Extraction,
    ) -> Result<Vec<GenerationPath>, Problem> {
        let mut paths = Vec::with_capacity(extraction.generations.len());
        for generation in &extraction.generations {
            let path = GenerationPath {
                cluster,
                claim,
                value: self.db.mint(),
            };
            let created = self
                .ingestion
                .create_generation(&path, &generation.value)
                .await;
            match created {
                Creation::Created { .. } => paths.push(path),
                Creation::MayExist => {
                    return Err(provider("A generation was not created", "provider-exists"));
                }
                Creation::Refused(failure) | Creation::Unknown(failure) => {
                    return Err(provider("A generation was not created", failure.code()));
                }
            }
        }
        Ok(paths)
    }

    /// Keyed digests of the values in their order, then of the exact input (IC §4.1).
    async fn digests(
        &self,
        extraction: &Extraction,
        input: Option<&Plaintext>,
    ) -> Result<Vec<KeyedDigest>, Problem> {
        let values = extraction.generations.iter();
        let mut inputs: Vec<Plaintext> = values.map(|one| stored_text(&one.value)).collect();
        inputs.extend(input.cloned());
        if inputs.is_empty() {
            return Ok(Vec::new());
        }
        let failed = |failure: Failure| provider("No digests were computed", failure.code());
        let digests = self
            .ingestion
            .keyed_digests(&inputs)
            .await
            .map_err(failed)?;
        if digests.len() == inputs.len() {
            Ok(digests)
        } else {
            Err(Problem::internal(
                "The provider answered another number of digests.",
            ))
        }
    }

    /// The exact input under the baseline key, the only form of it that is kept.
    async fn baseline(
        &self,
        text: &Plaintext,
        digest: Option<&KeyedDigest>,
    ) -> Result<Baseline, Problem> {
        let failed = |failure: Failure| provider("The baseline was not encrypted", failure.code());
        let ciphertext = self
            .ingestion
            .encrypt_baseline(text)
            .await
            .map_err(failed)?;
        let digest = digest.ok_or_else(|| Problem::internal("The baseline has no digest."))?;
        Ok(Baseline {
            ciphertext: ciphertext.as_str().to_owned(),
            keyed_digest: digest.mac,
            digest_key: digest.key.clone(),
            configuration_digest: ConfigDigest::of(text.expose().as_bytes()),
        })
    }

    /// The generations of the references that the input carries already: each of exactly one
    /// reference row's generation under its name, kind and version in the cluster (PA §9.3).
    /// Rows are immutable, so what is read here holds in the draft transaction.
    async fn carried(
        &self,
        cluster: ClusterId,
        declarations: &Declarations,
    ) -> Result<BTreeMap<Name, Kept>, Problem> {
        let mut kept = BTreeMap::new();
        if declarations.references.is_empty() {
            return Ok(kept);
        }
        let names: BTreeSet<Name> = declarations.references.keys().cloned().collect();
        let unreadable = |_| Problem::dependency_unavailable("The database could not be read.");
        let mut snapshot = self.db.store().snapshot().await.map_err(unreadable)?;
        let rows = snapshot.references_named(cluster, &names).await;
        snapshot.close().await;
        let rows = rows.map_err(unreadable)?;
        for (name, declared) in &declarations.references {
            let matches = |row: &&ReferenceRow| {
                row.name == *name
                    && row.declaration.kind == declared.kind
                    && row.declaration.version == declared.version
            };
            let mut found = rows.iter().filter(matches);
            let first = found.next();
            let one =
                first.filter(|first| found.all(|row| row.kept.generation == first.kept.generation));
            let Some(row) = one else {
                return Err(Problem::validation("unknown-reference")
                    .say("A carried reference names no generation of the cluster.")
                    .naming("reference", name.as_str()));
            };
            kept.insert(name.clone(), row.kept.clone());
        }
        Ok(kept)
    }
}

/// 503 with the adapter's own class; nothing of the provider's text.
fn provider(words: &'static str, code: &'static str) -> Problem {
    Problem::dependency_unavailable(words)
        .say(": ")
        .name(code)
        .say(".")
}
