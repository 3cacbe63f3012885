//! The release as one unit: what T3 inserts, made before it begins (IC §11, PA §6.2).
//!
//! It holds sanitized or encrypted values only; making it is where the plaintext
//! configurations end. Never in this module: a read of the database.

use std::collections::BTreeMap;

use bronzeward_core::canonical::{Digest, release_content_digest};
use bronzeward_core::compile::{Fate, Record, Report, Review};
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::id::FragmentRevisionId;
use bronzeward_core::observation::Observation;
use bronzeward_core::reference::Version;
use bronzeward_core::refusal::Origin;
use bronzeward_core::release::{Named, RendererRecord};

use super::compile::{CompiledAll, CompiledMachine};
use super::job::Owned;
use super::pins::Pinnings;
use super::seal::Sealed;
use super::snapshot::{CoveredMachine, Snapshot, assignment_of, fault};
use super::{Stop, Worker};
use crate::ports::store::{
    Dependency, NewRelease, NewReleaseMachine, Outcome, ProvenanceRow, ReproductionRow, Seed,
};
use crate::rows::SourceRevisionId;
use crate::world::World;

/// What stands in the place of a configuration that could not be redacted.
const WITHHELD: &str = "<withheld: the configuration could not be shown without a value>";

/// A release ready to be committed, and what its versions are looked at again by.
pub(super) struct Unit {
    pub release: NewRelease,
    pub seeds: Vec<Seed>,
    pub named: Vec<Named>,
}

/// Puts the unit together. The compiled configurations are dropped, and wiped, here.
pub(super) fn unit<W: World>(
    worker: &Worker<W>,
    owned: &Owned,
    snapshot: &Snapshot,
    evidence: &[Observation],
    pinned: Pinnings,
    compiled: CompiledAll,
    sealed: Sealed,
) -> Result<Unit, Stop> {
    let CompiledAll {
        machines: compiled,
        renderer,
    } = compiled;
    let whole = snapshot.machines.len();
    let matched = [compiled.len(), evidence.len(), sealed.artifacts.len()];
    if matched.iter().any(|count| *count != whole) {
        return Err(fault());
    }
    let mut machines = Vec::with_capacity(whole);
    let parts = snapshot.machines.iter().zip(compiled).zip(evidence);
    for (((machine, compiled), observed), (ciphertext, key)) in parts.zip(sealed.artifacts) {
        let records = Records {
            snapshot,
            machine,
            dependencies: &pinned.dependencies,
        };
        machines.push(NewReleaseMachine {
            machine: machine.row.id,
            import_base: machine.covered.import_base,
            assignment: assignment_of(machine),
            machine_type: compiled.machine_type,
            platform: machine.row.platform,
            configuration_digest: compiled.digest,
            ciphertext,
            key,
            review: review(&compiled.report)?,
            validated_at: compiled.validated_at,
            observation: observed.started.id,
            provenance: records.provenance(&compiled)?,
            effective: records.effective(&compiled.report)?,
            reproduction: records.reproduction(&compiled.report)?,
        });
    }
    let digest = content_digest(snapshot, &renderer, &machines)?;
    let mut seeds = pinned.seeds;
    seeds.extend(sealed.seeds);
    let named = seeds.iter().map(named).collect();
    let release = NewRelease {
        id: worker.db.mint(),
        cluster: snapshot.cluster.id,
        bound: owned.bound,
        operation: owned.operation,
        digest,
        renderer,
        by: owned.by,
        epoch: owned.fence.epoch,
        sources: snapshot.sources.clone(),
        machines,
    };
    Ok(Unit {
        release,
        seeds,
        named,
    })
}

fn named(seed: &Seed) -> Named {
    Named {
        object: seed.dependency.object.clone(),
        version: seed.dependency.version,
        created: seed.dependency.created.clone(),
        kv: seed.kv,
        classified_from: seed.classified_from,
    }
}

fn review(report: &Report) -> Result<Result<String, &'static str>, Stop> {
    match &report.review {
        Review::Shown(text) => Ok(Ok(text.clone())),
        Review::Withheld => Ok(Err(WITHHELD)),
        Review::NotComposed => Err(fault()),
    }
}

/// Over the release's metadata and each machine's configuration digest: what makes two
/// commits of one draft revision the same release. Identifiers that a pass mints, evidence
/// and ciphertexts are not in it (PA §6.1.1, §6.2).
fn content_digest(
    snapshot: &Snapshot,
    renderer: &RendererRecord,
    machines: &[NewReleaseMachine],
) -> Result<Digest, Stop> {
    let sources = snapshot.sources.iter().map(|source| {
        serde_json::json!({
            "kind": source.kind.as_str(),
            "subject": source.subject,
            "revision": source.revision.map(|revision| revision.to_string()),
            "headRevision": source.head_revision.0,
        })
    });
    let covered = machines.iter().map(|machine| {
        let revision = machine.assignment.and_then(|(_, revision)| revision);
        let about = serde_json::json!({
            "importBase": machine.import_base.to_string(),
            "assignment": revision.map(|revision| revision.to_string()),
            "mode": machine.platform.as_str(),
            "type": machine.machine_type.as_str(),
        });
        (machine.machine.to_string(), about)
    });
    let metadata = serde_json::json!({
        "cluster": snapshot.cluster.id.to_string(),
        "contract": renderer.contract.to_string(),
        "machinery": renderer.machinery_version,
        "checksum": renderer.machinery_checksum,
        "kubernetes": renderer.kubernetes_version,
        "sources": sources.collect::<Vec<_>>(),
        "machines": covered.collect::<serde_json::Map<_, _>>(),
    });
    let digests: Vec<(String, ConfigDigest)> = machines
        .iter()
        .map(|machine| (machine.machine.to_string(), machine.configuration_digest))
        .collect();
    release_content_digest(&metadata, &digests).map_err(|_| fault())
}

/// A machine's records, by the sources of its composition.
struct Records<'a> {
    snapshot: &'a Snapshot,
    machine: &'a CoveredMachine,
    dependencies: &'a BTreeMap<Version, Dependency>,
}

fn position(number: usize) -> Result<i32, Stop> {
    i32::try_from(number).map_err(|_| fault())
}

impl Records<'_> {
    fn source(&self, origin: Origin) -> Result<SourceRevisionId, Stop> {
        let position = match origin {
            Origin::Base => 0,
            Origin::Fragment(index) => index + 1,
        };
        self.machine.source(position).ok_or_else(fault)
    }

    fn fragment(&self, index: usize) -> Result<(FragmentRevisionId, Digest), Stop> {
        let id = *self.machine.fragments.get(index).ok_or_else(fault)?;
        let text = self.snapshot.texts.get(&SourceRevisionId::Fragment(id));
        Ok((id, text.ok_or_else(fault)?.digest))
    }

    fn dependency(&self, version: &Version) -> Result<Dependency, Stop> {
        self.dependencies.get(version).cloned().ok_or_else(fault)
    }

    /// One record per leaf an occurrence reached, or one that names what overrode it.
    fn provenance(&self, compiled: &CompiledMachine) -> Result<Vec<ProvenanceRow>, Stop> {
        let mut rows = Vec::new();
        for record in &compiled.report.provenance {
            let outcomes = match &record.fate {
                Fate::Effective(paths) => paths
                    .iter()
                    .map(|path| Outcome::Output(path.as_str().to_owned()))
                    .collect(),
                Fate::Overridden(index) => {
                    let (by, digest) = self.fragment(*index)?;
                    vec![Outcome::Overridden(by, digest)]
                }
                Fate::NotComposed => Vec::new(),
            };
            // Every occurrence of what was composed has an outcome (PA §6.2).
            if outcomes.is_empty() {
                return Err(fault());
            }
            for outcome in outcomes {
                rows.push(self.record(record, outcome)?);
            }
        }
        Ok(rows)
    }

    fn record(&self, record: &Record, outcome: Outcome) -> Result<ProvenanceRow, Stop> {
        Ok(ProvenanceRow {
            version: record.version.clone(),
            encoding: record.encoding,
            member: record.member.map(position).transpose()?,
            source: self.source(record.origin)?,
            source_digest: record.source_digest,
            path: record.path.as_str().to_owned(),
            occurrence: position(record.position)?,
            outcome,
        })
    }

    fn effective(&self, report: &Report) -> Result<Vec<(Version, Dependency)>, Stop> {
        let versions = report.effective.iter();
        versions
            .map(|version| Ok((version.clone(), self.dependency(version)?)))
            .collect()
    }

    fn reproduction(&self, report: &Report) -> Result<Vec<ReproductionRow>, Stop> {
        let occurrences = report.reproduction.iter();
        occurrences
            .map(|occurrence| {
                Ok(ReproductionRow {
                    version: occurrence.version.clone(),
                    dependency: self.dependency(&occurrence.version)?,
                    source: self.source(occurrence.origin)?,
                    source_digest: occurrence.source_digest,
                    path: occurrence.path.as_str().to_owned(),
                    occurrence: position(occurrence.position)?,
                })
            })
            .collect()
    }
}
