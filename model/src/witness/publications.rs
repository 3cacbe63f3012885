//! Two publications at once (PA §6.2): one has taken its locks and compared its inputs, the
//! other comes. And what else would change under a publication that has looked.

use std::sync::Arc;

use bronzeward_core::dependency::Class;
use bronzeward_core::id::{DraftId, ImportBaseRevisionId, MachineId, ReleaseId, kind};
use bronzeward_core::observation::Purpose;
use bronzeward_engine::tx::adoption::record_adoption;

use super::drafting::FRAGMENT;
use super::stage::{APPROVER, AUTHOR, PUBLISHER, Stage, Step};
use super::steps::Subject;
use super::{Witness, rows};
use crate::people::acts::made;
use crate::pg::Eye;
use crate::seed::End;
use crate::server::Server;

const SEEN: Eye = Eye::COMMITTED;

type Draw = fn(&mut Stage, &Arc<Server>, &Subject) -> Step<DraftId>;

/// How far the first publication comes.
#[derive(Clone, Copy)]
enum Until {
    /// It has read every machine.
    Read,
    /// Its worker has carried this out.
    Said(&'static str),
}

/// Both have read every machine. The first publication comes so far; then the second runs as
/// far as it comes; then the first goes on.
fn two(stage: &mut Stage, drafts: [Draw; 2], until: Until) -> Step {
    let desk = stage.server()?;
    let subject = stage.subject()?;
    let [one, other] = drafts;
    let (one, other) = (one(stage, &desk, &subject)?, other(stage, &desk, &subject)?);
    let job = stage.queue(&desk, one)?;
    let first = stage.worker()?;
    stage.until_read(job)?;
    stage.hold(&first);
    let beside = stage.queue(&desk, other)?;
    let second = stage.worker()?;
    stage.until_read(beside)?;
    if let Until::Said(what) = until {
        stage.hold(&second);
        stage.let_go(&first);
        stage.until_said(&first, what)?;
        stage.hold(&first);
        stage.let_go(&second);
    }
    stage.a_while()?;
    stage.let_go(&first);
    stage.ends(job)?;
    stage.ends(beside)
}

/// The subject's assignment is another one; what the others use is unchanged.
fn reassigns(stage: &mut Stage, desk: &Arc<Server>, subject: &Subject) -> Step<DraftId> {
    let draft = stage.draft(desk, subject.binding.cluster)?;
    stage.assign(desk, draft, subject.machine, Default::default())?;
    Ok(draft)
}

/// The fragment and the profile that every machine uses are other ones.
fn rewrites(stage: &mut Stage, desk: &Arc<Server>, subject: &Subject) -> Step<DraftId> {
    let cluster = subject.binding.cluster;
    let draft = stage.draft(desk, cluster)?;
    stage.rewrite(desk, draft, FRAGMENT)?;
    stage.repin(desk, draft, cluster)?;
    Ok(draft)
}

/// A fragment that nothing selects yet.
fn introduces(stage: &mut Stage, desk: &Arc<Server>, subject: &Subject) -> Step<DraftId> {
    let draft = stage.draft(desk, subject.binding.cluster)?;
    stage.rewrite(desk, draft, "another")?;
    Ok(draft)
}

/// A machine that nothing is Applied of is adopted by a publication's worker, once that has
/// looked at what is covered.
fn adopted_meanwhile(stage: &mut Stage) -> Step {
    let (desk, server) = (stage.server()?, stage.server()?);
    let subject = stage.subject()?;
    let other = stage.see(|tables| {
        let mut machines = tables.authoring.machines.iter(SEEN);
        machines
            .find(|(id, _)| **id != subject.machine)
            .map(|(id, _)| *id)
    });
    let other = other.ok_or_else(|| End::Error("another machine".to_owned()))?;
    unapplied(stage, other)?;
    let release = subject.binding.release;
    let planned = stage.asked(&desk, PUBLISHER, move |hand| async move {
        hand.plan(release, other, true).await
    })?;
    let plan = made::<kind::Plan>(&planned);
    let plan = plan.ok_or_else(|| End::Error(format!("an adopt plan: {planned:?}")))?;
    stage.asked(&desk, APPROVER, move |hand| async move {
        hand.approve(plan).await
    })?;
    stage.read(&server, other, Purpose::Evidence)?;
    let draft = reassigns(stage, &desk, &subject)?;
    let publication = stage.queue(&desk, draft)?;
    let worker = stage.worker()?;
    stage.until_said(&worker, "lock draft")?;
    stage.until_said(&worker, "read scope holders")?;
    stage.hold(&worker);
    let of = Arc::clone(&server);
    let adopting = stage.begin(server.id, async move {
        record_adoption(&of.db, plan, of.db.mint()).await.is_ok()
    });
    stage.a_while()?;
    stage.let_go(&worker);
    stage.finish(&adopting)?;
    stage.ends(publication)
}

/// A machine's address is another one, once a publication has looked at it.
fn readdressed_meanwhile(stage: &mut Stage) -> Step {
    let (desk, other) = (stage.server()?, stage.server()?);
    let subject = stage.subject()?;
    let draft = reassigns(stage, &desk, &subject)?;
    let publication = stage.queue(&desk, draft)?;
    let worker = stage.worker()?;
    stage.until_said(&worker, "lock draft")?;
    stage.until_said(&worker, "seed status")?;
    stage.hold(&worker);
    let machine = subject.machine;
    let mut next = subject.binding.route;
    next.port = 50_001;
    let changing = stage.ask(&other, AUTHOR, move |hand| async move {
        hand.change_endpoint(machine, next).await
    });
    stage.a_while()?;
    stage.let_go(&worker);
    stage.finish(&changing)?;
    stage.ends(publication)
}

/// Nothing is Applied of a machine.
pub fn unapplied(stage: &mut Stage, machine: MachineId) -> Step {
    stage.alter(
        |tables| &mut tables.authoring.machine_states,
        machine,
        |state| state.applied = None,
    )
}

/// What a publication depends on is recorded as lost once it has begun to commit.
fn lost_meanwhile(stage: &mut Stage) -> Step {
    let desk = stage.server()?;
    let subject = stage.subject()?;
    let draft = reassigns(stage, &desk, &subject)?;
    let publication = stage.queue(&desk, draft)?;
    let worker = stage.worker()?;
    stage.until_said(&worker, "lock draft")?;
    stage.hold(&worker);
    let statuses = stage.see(|tables| {
        let statuses = tables.execution.statuses.iter(SEEN);
        let kv = statuses.filter(|(_, status)| status.kv);
        kv.map(|(id, _)| *id).collect::<Vec<_>>()
    });
    let now = stage.now();
    for status in statuses {
        stage.alter(
            |tables| &mut tables.execution.statuses,
            status,
            |status| {
                status.row.class = Class::Lost;
                status.row.recorded_at = now;
            },
        )?;
    }
    stage.let_go(&worker);
    stage.ends(publication)
}

/// Another import base is Applied of the subject's machine.
pub fn rebased(stage: &mut Stage, subject: &Subject) -> Step {
    let machine = subject.machine;
    let found = stage.see(|tables| {
        let state = tables.authoring.machine_states.get(SEEN, &machine);
        let release = state.and_then(|state| state.applied)?.release;
        let of = tables
            .execution
            .release_machines
            .get(SEEN, &(release, machine));
        of.cloned()
    });
    let mut of = found.ok_or_else(|| End::Error("nothing is Applied".to_owned()))?;
    let release = ReleaseId::from_bits(1);
    of.release = release;
    of.new.import_base = ImportBaseRevisionId::from_bits(1);
    stage.add(
        |tables| &mut tables.execution.release_machines,
        (release, machine),
        of,
    )?;
    stage.alter(
        |tables| &mut tables.authoring.machine_states,
        machine,
        |state| {
            if let Some(applied) = &mut state.applied {
                applied.release = release;
            }
        },
    )
}

pub const WITNESSES: &[Witness] = rows! {
    "a source moved under a publication that uses it",
        [UnchangedHeadsShared MachineStatesOfCluster], "a release holds no superseded source",
        |stage| two(stage, [reassigns, rewrites], Until::Said("lock draft"));
    "two publications that each use what the other changes",
        [HeadsInOnePass MachineStatesOfCluster],
        "the product's transactions never wait in a circle",
        |stage| two(stage, [reassigns, rewrites], Until::Said("lock heads"));
    "two publications introduce one name", [IntroducedNameFree], "a name has one head",
        |stage| two(stage, [introduces, introduces], Until::Read);
    "a machine adopted under a publication", [MachineStatesOfCluster PublicationMachinesShared],
        "a release covers every machine with a base", adopted_meanwhile;
    "a machine readdressed under a publication",
        [PublicationMachinesShared MachineStatesOfCluster],
        "a release rests on its own readings", readdressed_meanwhile;
    "a machine readdressed under a publication that holds states alone",
        [PublicationMachinesShared], "the product's transactions never wait in a circle",
        readdressed_meanwhile;
    "a value lost under a publication", [DependencyRecheck],
        "a release depends on what is retained", lost_meanwhile;
};
