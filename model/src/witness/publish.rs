//! A publication (PA §6): one schedule, in which something happens before its worker looks, or
//! between its last reading and its commit.

use std::sync::Arc;

use bronzeward_core::head::AssignmentContent;
use bronzeward_core::id::DraftId;
use bronzeward_core::observation::Purpose;
use bronzeward_engine::ports::store::HeadKind;

use super::publications::{rebased, unapplied};
use super::stage::{Stage, Step};
use super::steps::Subject;
use super::{Witness, rows};
use crate::genesis::MACHINES;
use crate::pg::Eye;
use crate::ports::node;
use crate::ports::provider::KvPath;
use crate::seed::End;
use crate::server::Server;
use crate::store::authoring::Head;

const SEEN: Eye = Eye::COMMITTED;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// The draft is whole and nothing is asked for.
    Drafted,
    /// The job is queued and nobody runs it.
    Queued,
    /// Every machine is read.
    Read,
}

struct Play {
    desk: Arc<Server>,
    subject: Subject,
    draft: DraftId,
}

type Premise = fn(&mut Stage, &Play) -> Step;

/// A draft that changes the subject's assignment, and nothing that others use.
fn drafted(stage: &mut Stage, desk: &Arc<Server>, subject: &Subject) -> Step<DraftId> {
    let draft = stage.draft(desk, subject.binding.cluster)?;
    stage.assign(desk, draft, subject.machine, AssignmentContent::default())?;
    Ok(draft)
}

fn publish(stage: &mut Stage, at: Moment, premise: Premise) -> Step {
    let desk = stage.server()?;
    let subject = stage.subject()?;
    let draft = drafted(stage, &desk, &subject)?;
    published(
        stage,
        at,
        premise,
        Play {
            desk,
            subject,
            draft,
        },
    )
}

fn published(stage: &mut Stage, at: Moment, premise: Premise, play: Play) -> Step {
    if at == Moment::Drafted {
        premise(stage, &play)?;
    }
    let job = stage.queue(&play.desk, play.draft)?;
    if at == Moment::Queued {
        premise(stage, &play)?;
    }
    let worker = stage.worker()?;
    stage.until_read(job)?;
    if at == Moment::Read {
        stage.hold(&worker);
        premise(stage, &play)?;
        stage.let_go(&worker);
    }
    stage.ends(job)
}

/// A head moved without this publication.
fn moved(stage: &mut Stage, is: impl Fn(&Head) -> bool) -> Step {
    let head = stage.see(|tables| {
        let mut heads = tables.authoring.heads.iter(SEEN);
        let head = heads.find(|(_, head)| is(head));
        head.map(|(id, _)| *id)
    });
    let head = head.ok_or_else(|| End::Error("no such head".to_owned()))?;
    stage.alter(
        |tables| &mut tables.authoring.heads,
        head,
        |head| head.row.etag.revision.0 += 1,
    )
}

fn an_unchanged_head_moved(stage: &mut Stage, _: &Play) -> Step {
    moved(stage, |head| head.kind == HeadKind::Profile)
}

fn a_changed_head_moved(stage: &mut Stage, play: &Play) -> Step {
    let machine = play.subject.machine.to_string();
    moved(stage, |head| head.row.subject == machine)
}

/// An operation takes the machine whose assignment the draft changes.
fn committed(stage: &mut Stage, play: &Play) -> Step {
    let server = stage.server()?;
    let evidence = stage.gather(&server, &play.subject, None)?;
    let owned = stage.commit(&server, play.subject.plan, &evidence)?;
    owned
        .map(drop)
        .ok_or_else(|| End::Error("a commitment".to_owned()))
}

fn replaced(stage: &mut Stage, play: &Play) -> Step {
    let route = play.subject.binding.route;
    stage.outside(|state| node::replace(state, route))
}

fn another_minor(stage: &mut Stage, play: &Play) -> Step {
    let route = play.subject.binding.route;
    stage.outside(|state| {
        if let Some(node) = state.outside.nodes.at_mut(route) {
            node.running_version = "v1.12.3".to_owned();
        }
    })
}

fn readdressed(stage: &mut Stage, play: &Play) -> Step {
    stage.alter(
        |tables| &mut tables.authoring.machines,
        play.subject.machine,
        |machine| machine.endpoint.port = 50_001,
    )
}

fn replaced_and_read(stage: &mut Stage, play: &Play) -> Step {
    replaced(stage, play)?;
    stage.read(&play.desk, play.subject.machine, Purpose::Recovery)
}

fn edited(stage: &mut Stage, play: &Play) -> Step {
    stage.alter(
        |tables| &mut tables.authoring.drafts,
        play.draft,
        |draft| draft.etag.revision.0 += 1,
    )
}

fn nothing(_: &mut Stage, _: &Play) -> Step {
    Ok(())
}

/// The machine has nothing that could be compiled.
fn without_a_base(stage: &mut Stage, play: &Play) -> Step {
    unapplied(stage, play.subject.machine)
}

fn another_base(stage: &mut Stage, play: &Play) -> Step {
    rebased(stage, &play.subject)
}

fn recovering(stage: &mut Stage, _: &Play) -> Step {
    stage.alter(
        |tables| &mut tables.authoring.installation,
        (),
        |row| row.recovery_mode = true,
    )
}

/// No node can be read: the access that the cluster's operator wrote is gone.
fn without_access(stage: &mut Stage, play: &Play) -> Step {
    let cluster = play.subject.binding.cluster;
    stage.outside(|state| state.outside.vault.delete_metadata(KvPath::Access(cluster)))
}

/// A machine has no base while a publication looks, and one when it commits.
fn covered_since(stage: &mut Stage) -> Step {
    let desk = stage.server()?;
    let subject = stage.subject()?;
    let draft = drafted(stage, &desk, &subject)?;
    let other = stage.see(|tables| {
        let mut states = tables.authoring.machine_states.iter(SEEN);
        let other = states.find(|(id, _)| **id != subject.machine);
        other.map(|(id, state)| (*id, state.applied))
    });
    let (other, applied) = other.ok_or_else(|| End::Error("another machine".to_owned()))?;
    unapplied(stage, other)?;
    let job = stage.queue(&desk, draft)?;
    let worker = stage.worker()?;
    stage.until_reads(job, usize::from(MACHINES) - 1)?;
    stage.hold(&worker);
    stage.alter(
        |tables| &mut tables.authoring.machine_states,
        other,
        |state| state.applied = applied,
    )?;
    stage.let_go(&worker);
    stage.ends(job)
}

const COVERS: &str = "a release covers every machine with a base";
const READ: &str = "a release rests on its own readings";

pub const WITNESSES: &[Witness] = rows! {
    "published over an unchanged head that moved", [UnchangedHeadUnmoved],
        "a release holds no superseded source",
        |stage| publish(stage, Moment::Read, an_unchanged_head_moved);
    "published over a changed head that moved", [ChangedHeadUnmoved ChangedHeadGuard],
        "a release holds no superseded source", |stage| publish(stage, Moment::Read, a_changed_head_moved);
    "published over a changed head that moved, by the guard",
        [ChangedHeadGuard ChangedHeadUnmoved], "a release holds no superseded source",
        |stage| publish(stage, Moment::Read, a_changed_head_moved);
    "published under an operation", [AssignmentScopeFree],
        "a held scope freezes the assignment", |stage| publish(stage, Moment::Read, committed);
    "published for another node", [PublicationIdentity], READ,
        |stage| publish(stage, Moment::Queued, replaced);
    "published for another minor", [PublicationVersion], READ,
        |stage| publish(stage, Moment::Queued, another_minor);
    "published for an address that was left", [PublicationEndpoint], READ,
        |stage| publish(stage, Moment::Read, readdressed);
    "published over a newer reading", [PublicationNotContradicted], READ,
        |stage| publish(stage, Moment::Read, replaced_and_read);
    "published a draft that moved", [DraftOpen RevisionUnchanged],
        "a release is of the draft as it stood", |stage| publish(stage, Moment::Read, edited);
    "published for one machine of a cluster", [ReleaseCoversCluster NotCoveredSince], COVERS,
        |stage| publish(stage, Moment::Drafted, nothing);
    "published past a machine covered since", [NotCoveredSince], COVERS, covered_since;
    "published an assignment of nothing", [AssignmentNeedsBase],
        "a release covers what it reassigns",
        |stage| publish(stage, Moment::Drafted, without_a_base);
    "published on a base that moved", [ImportBaseUnmoved],
        "a release is compiled on the bases that machines have",
        |stage| publish(stage, Moment::Read, another_base);
    "published an assignment in recovery mode", [AssignmentScopeReleased],
        "an unreleased scope freezes the assignment",
        |stage| publish(stage, Moment::Read, recovering);
    "published without access to its nodes",
        [PublicationEvidenceOwn PublicationIdentity PublicationVersion], READ,
        |stage| publish(stage, Moment::Queued, without_access);
};
