//! Classifies and reads every pinned version (IC §6 steps 2 to 4, PA §6.1).
//!
//! Each version is classified once and read once, however many sources pin it, and every
//! pin is classified before any is read. Never in this module: a stored status as an answer.

use std::collections::BTreeMap;

use bronzeward_core::dependency::{Class, Classification, KvVersion, classify_kv, kv_created};
use bronzeward_core::generation::GenerationPath;
use bronzeward_core::reference::Version;
use bronzeward_core::resolve::{Pinned, Pins};
use bronzeward_core::secret::Value;

use super::snapshot::{Snapshot, fault};
use super::together::in_order;
use super::{Stop, Worker, refusal};
use crate::ports::provider::{CompilerSecrets, DependencyMetadata, Failure};
use crate::ports::store::{Dependency, Seed};
use crate::world::World;

/// What is compiled with, and what is recorded of it.
pub(super) struct Pinnings {
    pub pins: Pins,
    pub dependencies: BTreeMap<Version, Dependency>,
    pub seeds: Vec<Seed>,
}

pub(super) async fn read<W: World>(
    worker: &Worker<W>,
    snapshot: &Snapshot,
) -> Result<Pinnings, Stop> {
    let (dependencies, seeds) = classify(worker, snapshot).await?;
    let mut work = Vec::with_capacity(snapshot.generations.len());
    for (version, path) in &snapshot.generations {
        let dependency = dependencies.get(version).ok_or_else(fault)?;
        work.push(value(worker, version, path, dependency));
    }
    let values = in_order(work).await?;
    let read = snapshot.generations.iter().zip(values);
    let pins = read.map(|((version, path), value)| {
        let cluster = path.cluster;
        (version.clone(), Pinned { cluster, value })
    });
    Ok(Pinnings {
        pins: pins.collect(),
        dependencies,
        seeds,
    })
}

/// What a version holds; none where that is no generation: the resolution refuses it, and
/// shows no path, since nothing can be compared with a value that was not read.
async fn value<W: World>(
    worker: &Worker<W>,
    version: &Version,
    path: &GenerationPath,
    dependency: &Dependency,
) -> Result<Option<Value>, Stop> {
    let object = &dependency.object;
    let number = dependency.version;
    match worker.compiler.read_generation(path, version.version).await {
        Ok(read) if read.created == dependency.created => Ok(Some(read.value)),
        Ok(_) => Err(refusal::identity_changed(true, object, number, Some(version)).into()),
        Err(Failure::Integrity) => Ok(None),
        Err(failure) => {
            tracing::warn!(
                event = "generation-unread",
                %object,
                code = failure.code(),
                "a pinned generation could not be read"
            );
            Err(refusal::unanswered(true, object, Some(number), Some(version)).into())
        }
    }
}

type Classified = (BTreeMap<Version, Dependency>, Vec<Seed>);

async fn classify<W: World>(worker: &Worker<W>, snapshot: &Snapshot) -> Result<Classified, Stop> {
    let classified_from = worker.now().await?;
    let generations = snapshot.generations.iter();
    let work = generations.map(|(version, path)| retained(worker, snapshot, version, path));
    let retained = in_order(work.collect()).await?;
    let mut dependencies = BTreeMap::new();
    let mut seeds: BTreeMap<Dependency, Seed> = BTreeMap::new();
    for (version, (dependency, classification)) in snapshot.generations.keys().zip(retained) {
        seeds.entry(dependency.clone()).or_insert_with(|| Seed {
            id: worker.db.mint(),
            kv: true,
            dependency: dependency.clone(),
            classification,
            classified_from,
        });
        dependencies.insert(version.clone(), dependency);
    }
    Ok((dependencies, seeds.into_values().collect()))
}

/// A version's identity and its classification, which says that it is retained.
async fn retained<W: World>(
    worker: &Worker<W>,
    snapshot: &Snapshot,
    version: &Version,
    path: &GenerationPath,
) -> Result<(Dependency, Classification), Stop> {
    let object = path.to_string();
    let number = i64::try_from(version.version).map_err(|_| fault())?;
    let of_version = snapshot.statuses.iter();
    let recorded = of_version
        .filter(|row| row.object == object && row.version == number)
        .map(|row| row.created.clone())
        .next();
    let kv = KvVersion {
        path: object.clone(),
        version: number,
        created: recorded,
    };
    let answer = worker.metadata.kv_metadata(&object).await;
    let classification = classify_kv(&kv, &answer);
    if classification.class != Class::Retained {
        let problem = refusal::classified(true, &object, number, Some(version), &classification);
        return Err(problem.into());
    }
    let created = kv_created(number, &answer).map(str::to_owned);
    let dependency = Dependency {
        created: kv.created.or(created).ok_or_else(fault)?,
        object,
        version: number,
    };
    Ok((dependency, classification))
}
