//! The run of an import or drift adoption, after its request was answered (IC §2.3, §3).

use bronzeward_core::canonical::Digest;
use bronzeward_core::claim::{ClaimKind, StagingMode};
use bronzeward_core::envelope::Envelope;
use bronzeward_core::extract::Purpose;
use bronzeward_core::id::IngestionId;
use bronzeward_core::job::Event;
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::release::BoundDraft;
use bronzeward_core::secret::Unresolved;

use super::pipeline::{Material, Said};
use super::{Ingester, Stop, unless};
use crate::ports::Tasks;
use crate::ports::provider::{Ciphertext, IngestionSecrets};
use crate::ports::store::{ClaimReads, JobReads, Snapshot, Store};
use crate::rows::{ClaimRow, OperationRow};
use crate::tx::{Failure, ImportTarget, Issued, Owned, Unwritten};
use crate::world::World;

/// Where an ingestion's text comes from. It has no Debug.
pub enum Input {
    /// The node, at the machine's current endpoint.
    Machine,
    /// The request's document.
    Document(Unresolved),
}

/// What a run needs beside its claim's row.
pub struct Start {
    pub issued: Issued,
    pub input: Input,
    pub said: Said,
}

/// A claim with its operation, as a run goes on from it.
struct Whole {
    owned: Owned,
    claim: ClaimRow,
    mode: StagingMode,
    target: ImportTarget,
}

impl<W: World> Ingester<W> {
    /// Starts the run of a committed ingestion beside its answer.
    pub fn begin(&self, start: Start) {
        let ingester = self.clone();
        self.tasks.spawn(async move { ingester.run(start).await });
    }

    /// Starts the run that a takeover resumed beside its answer.
    pub fn begin_resumed(&self, ingestion: IngestionId) {
        let ingester = self.clone();
        self.tasks
            .spawn(async move { ingester.resume(ingestion).await });
    }

    /// Runs an ingestion from its claim to its end.
    pub async fn run(&self, start: Start) {
        let Start {
            issued,
            input,
            said,
        } = start;
        let owned = Owned {
            claim: issued.claim,
            operation: Some(issued.operation),
            fence: issued.fence,
        };
        let work = async {
            let whole = self.whole(owned.clone()).await?;
            let input = match input {
                Input::Document(input) => input,
                Input::Machine => self.read_machine(&owned, whole.target.machine).await?,
            };
            let envelope = self
                .prepare(Material {
                    cluster: whole.claim.cluster,
                    claim: owned.claim,
                    purpose: Purpose::Base,
                    input,
                    said: &said,
                })
                .await?;
            if whole.mode == StagingMode::Encrypted {
                self.stage(&owned, &envelope).await?;
            }
            self.commit(&whole, &envelope).await
        };
        let ended = unless(work, self.heartbeats(&owned)).await;
        self.ended(&owned, ended).await;
    }

    /// Goes on from the envelope of a claim that this process took over (IC §3.4).
    pub async fn resume(&self, ingestion: IngestionId) {
        let owned = match self.taken(ingestion).await {
            Ok(Some(owned)) => owned,
            // A takeover with nothing to decrypt abandoned it.
            Ok(None) => return,
            Err(_) => {
                tracing::warn!(%ingestion, "a taken-over claim could not be read");
                return;
            }
        };
        let work = async {
            let whole = self.whole(owned.clone()).await?;
            let envelope = self.open(&whole).await?;
            self.commit(&whole, &envelope).await
        };
        let ended = unless(work, self.heartbeats(&owned)).await;
        self.ended(&owned, ended).await;
    }

    async fn ended(&self, owned: &Owned, ended: Option<Result<(), Stop>>) {
        let ingestion = owned.claim;
        match ended {
            Some(Ok(())) => tracing::info!(%ingestion, "ingested"),
            Some(Err(Stop::Refused(problem))) => {
                tracing::info!(%ingestion, code = %problem.code, "ingestion refused");
                if owned.refuse(&self.db, &problem).await.is_err() {
                    tracing::warn!(%ingestion, "a refusal was not recorded; left to the lease");
                }
            }
            Some(Err(Stop::Left(why))) => {
                tracing::warn!(%ingestion, why, "an ingestion's run stopped");
            }
            None => tracing::warn!(%ingestion, "an ingestion's claim is no longer this run's"),
        }
    }

    /// The claim's row with what its operation bound.
    async fn whole(&self, owned: Owned) -> Result<Whole, Stop> {
        let unreadable = |_| Stop::Left("the database is unavailable");
        let mut snapshot = self.db.store().snapshot().await.map_err(unreadable)?;
        let claim = snapshot.claim(owned.claim).await;
        let operation = match owned.operation {
            Some(operation) => snapshot.operation(operation).await,
            None => Ok(None),
        };
        snapshot.close().await;
        let claim = claim.map_err(unreadable)?.map(|(claim, _)| claim);
        let operation = operation.map_err(unreadable)?;
        claim
            .zip(operation)
            .and_then(|(claim, operation)| whole(owned, claim, &operation))
            .ok_or(Stop::Left("the claim has no import behind it"))
    }

    /// The claim, if this process holds it resumed.
    async fn taken(
        &self,
        ingestion: IngestionId,
    ) -> Result<Option<Owned>, crate::ports::store::StoreError> {
        let mut snapshot = self.db.store().snapshot().await?;
        let found = snapshot.claim(ingestion).await;
        snapshot.close().await;
        Ok(found?.and_then(|(claim, operation)| {
            let own = claim.state == "resumed" && claim.fence.owner == self.db.process().owner;
            own.then_some(Owned {
                claim: ingestion,
                operation,
                fence: claim.fence,
            })
        }))
    }

    /// Seals the envelope under the staging key and stores it.
    async fn stage(&self, owned: &Owned, envelope: &Envelope) -> Result<(), Stop> {
        let (text, digest) = envelope.seal();
        let payload = self.ingestion.encrypt_staging(&text).await;
        let payload = payload.map_err(|failure| {
            Problem::dependency_unavailable("The staged change was not encrypted: ")
                .name(failure.code())
                .say(".")
        })?;
        let staged = owned.stage(&self.db, &payload, digest).await;
        staged.map_err(|failure| Stop::of(&failure))
    }

    /// Opens the stored envelope. One that cannot be decrypted leaves the claim to its lease;
    /// one that is not whole ends it.
    async fn open(&self, whole: &Whole) -> Result<Envelope, Stop> {
        let integrity = || Problem::internal("The staged change is not the one that was stored.");
        let (payload, digest) = whole.claim.payload.as_ref().ok_or_else(integrity)?;
        let payload = Ciphertext::parse(payload).ok_or_else(integrity)?;
        let Ok(text) = self.ingestion.decrypt_staging(&payload).await else {
            let failed = Event::ResumeFailed {
                code: ProblemCode::DependencyUnavailable,
            };
            let recorded = whole.owned.record(&self.db, &failed).await;
            recorded.map_err(|failure| Stop::of(&failure))?;
            return Err(Stop::Left("the staged change could not be decrypted"));
        };
        let opened = Envelope::open(&text, Digest(*digest));
        Ok(opened.map_err(|_| integrity())?)
    }

    async fn commit(&self, whole: &Whole, envelope: &Envelope) -> Result<(), Stop> {
        let no_baseline = || Problem::internal("A staged base has no baseline.");
        let baseline = envelope.baseline.as_ref().ok_or_else(no_baseline)?;
        let committed = whole
            .owned
            .commit_import(&self.db, &whole.target, envelope, baseline)
            .await;
        match committed {
            Ok(_) => Ok(()),
            Err(Failure::Refused(Unwritten::Draft(problem))) => Err(problem.into()),
            Err(failure) => Err(Stop::of(&failure)),
        }
    }
}

fn whole(owned: Owned, claim: ClaimRow, operation: &OperationRow) -> Option<Whole> {
    let (draft, revision) = operation.draft?;
    let target = ImportTarget {
        machine: claim.machine?,
        bound: BoundDraft { draft, revision },
        by: operation.created_by?,
        adoption: ClaimKind::parse(&claim.kind)? == ClaimKind::DriftAdoption,
    };
    Some(Whole {
        mode: StagingMode::parse(&claim.mode)?,
        owned,
        claim,
        target,
    })
}
