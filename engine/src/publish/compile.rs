//! Compiles each covered machine, and checks contract and Kubernetes version over all of
//! them (IC §6, §10.2).
//!
//! Never in this module: a merge, or a plaintext that outlives the pass.

use bronzeward_core::compile::{Input, Job, Kubernetes, Output, Report, Source};
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::problem::Problem;
use bronzeward_core::release::{Contract, MachineType, RendererRecord};
use bronzeward_core::secret::Plaintext;
use bronzeward_core::time::DbTime;

use super::pins::Pinnings;
use super::snapshot::{CoveredMachine, Snapshot, Text, fault};
use super::together::in_order;
use super::{Stop, Worker, mode, refusal};
use crate::decide::{Undecided, decide};
use crate::ports::renderer::{Machinery, PlatformMode, RenderError, Renderer};
use crate::world::World;

/// One machine's configuration on its way to its encryption. It has no Debug.
pub(super) struct CompiledMachine {
    pub configuration: Plaintext,
    pub digest: ConfigDigest,
    pub machine_type: MachineType,
    pub report: Report,
    pub validated_at: DbTime,
}

pub(super) struct CompiledAll {
    pub machines: Vec<CompiledMachine>,
    pub renderer: RendererRecord,
}

pub(super) async fn machines<W: World>(
    worker: &Worker<W>,
    snapshot: &Snapshot,
    pinned: &Pinnings,
) -> Result<CompiledAll, Stop> {
    let machinery = worker.renderer.describe().await.map_err(|_| silent())?;
    let checksum = built(&machinery, snapshot.contract)?;
    let of = snapshot.machines.iter();
    let work = of.map(|machine| one(worker, snapshot, pinned, machine));
    let all = in_order(work.collect()).await?;
    let (compiled, versions) = all.into_iter().unzip();
    let kubernetes_version = agreed(snapshot, versions)?;
    Ok(CompiledAll {
        machines: compiled,
        renderer: RendererRecord {
            contract: snapshot.contract,
            machinery_version: machinery.version,
            machinery_checksum: checksum,
            kubernetes_version,
        },
    })
}

/// The contract is the machinery's minor, and the build knows which machinery it holds.
fn built(machinery: &Machinery, contract: Contract) -> Result<String, Problem> {
    let Some(checksum) = machinery.checksum.clone().filter(|_| !machinery.replaced) else {
        return Err(Problem::internal(
            "This build does not record the machinery it was made with; it cannot publish.",
        ));
    };
    if machinery.contract != contract {
        return Err(Problem::validation("contract")
            .say("The cluster's contract is not the machinery's minor.")
            .naming("contract", contract)
            .naming("machinery", machinery.contract));
    }
    Ok(checksum)
}

async fn one<W: World>(
    worker: &Worker<W>,
    snapshot: &Snapshot,
    pinned: &Pinnings,
    machine: &CoveredMachine,
) -> Result<(CompiledMachine, String), Stop> {
    let mut job = Job::new(worker.db.rules(), input(snapshot, pinned, machine)?);
    let db = worker.db.clone();
    let output = decide(&mut job, &*worker.renderer, move || db.mint_bits()).await;
    let Output { outcome, report } = output.map_err(|undecided| match undecided {
        Undecided::Refused(refused) => {
            Stop::from(refusal::compiled(machine, &refused, &Report::default()))
        }
        Undecided::Unavailable(_) => silent().into(),
        Undecided::Misanswered => fault(),
    })?;
    let compiled = outcome.map_err(|refused| refusal::compiled(machine, &refused, &report))?;
    let machine_type = kind(worker, machine, &compiled.configuration).await?;
    // Without a v1alpha1 document there is no machine type, and no node boots.
    let Some(machine_type) = machine_type.filter(|_| compiled.complete) else {
        return Err(Problem::validation("incomplete")
            .say("A covered machine's configuration holds no v1alpha1 document.")
            .naming("machine", machine.row.id)
            .into());
    };
    let validated_at = worker.now().await?;
    let one = CompiledMachine {
        configuration: compiled.configuration,
        digest: compiled.digest,
        machine_type,
        report,
        validated_at,
    };
    Ok((one, supported(machine, compiled.kubernetes)?))
}

fn input(snapshot: &Snapshot, pinned: &Pinnings, machine: &CoveredMachine) -> Result<Input, Stop> {
    let text = |position: usize| {
        let source = machine.source(position).ok_or_else(fault)?;
        snapshot.texts.get(&source).map(source_of).ok_or_else(fault)
    };
    let fragments = 1..=machine.fragments.len();
    Ok(Input {
        cluster: snapshot.cluster.id,
        mode: mode(machine.row.platform),
        base: text(0)?,
        fragments: fragments.map(text).collect::<Result<Vec<_>, _>>()?,
        pins: pinned.pins.clone(),
    })
}

fn source_of(text: &Text) -> Source {
    Source {
        text: text.text.clone(),
        digest: text.digest,
        declarations: text.declarations.clone(),
    }
}

/// What the machinery says the configuration is for: a worker, or a control plane.
async fn kind<W: World>(
    worker: &Worker<W>,
    machine: &CoveredMachine,
    configuration: &Plaintext,
) -> Result<Option<MachineType>, Stop> {
    use bronzeward_core::inventory::Platform;
    let platform = match machine.row.platform {
        Platform::Metal => PlatformMode::Metal,
        Platform::Container => PlatformMode::Container,
        Platform::Cloud => PlatformMode::Cloud,
    };
    match worker.renderer.validate(configuration, platform).await {
        Ok(validation) => Ok(validation.machine_type),
        Err(RenderError::Unavailable(_)) => Err(silent().into()),
        // It validated as part of the compilation.
        Err(RenderError::Refused(_)) => Err(fault()),
    }
}

fn supported(machine: &CoveredMachine, kubernetes: Kubernetes) -> Result<String, Problem> {
    let cause = match kubernetes {
        Kubernetes::Supported(version) => return Ok(version),
        Kubernetes::Outside => "outside",
        Kubernetes::Unreadable => "unreadable",
        Kubernetes::Hidden => "hidden",
    };
    Err(Problem::validation("kubernetes")
        .say("A covered machine's Kubernetes version is not one the machinery supports.")
        .naming("machine", machine.row.id)
        .naming("cause", cause))
}

/// The one Kubernetes version of every covered machine.
fn agreed(snapshot: &Snapshot, versions: Vec<String>) -> Result<String, Problem> {
    let first = versions.first().cloned().unwrap_or_default();
    let other = versions.iter().position(|version| *version != first);
    match other.and_then(|position| snapshot.machines.get(position)) {
        None => Ok(first),
        Some(machine) => Err(Problem::validation("kubernetes")
            .say("The covered machines name different Kubernetes versions.")
            .naming("machine", machine.row.id)
            .naming("cause", "differs")),
    }
}

fn silent() -> Problem {
    Problem::internal("The renderer gave no answer. Nothing was committed.")
}
