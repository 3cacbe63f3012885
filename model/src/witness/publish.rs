//! A publication (PA §6): one schedule, in which something happens before its worker looks, or
//! between its last reading and its commit.

use std::sync::Arc;

use bronzeward_core::id::{DraftId, OperationId, kind};
use bronzeward_core::observation::Purpose;
use bronzeward_engine::ports::store::HeadKind;

use super::stage::{AUTHOR, PUBLISHER, Stage, Step};
use super::steps::Subject;
use super::{Witness, rows};
use crate::genesis::MACHINES;
use crate::people::acts::made;
use crate::people::view::View;
use crate::pg::Eye;
use crate::ports::node;
use crate::seed::End;
use crate::server::Server;
use crate::store::authoring::Head;

const SEEN: Eye = Eye::COMMITTED;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
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

fn etag(stage: &Stage, draft: DraftId) -> Step<bronzeward_core::revision::Etag> {
    let seen = stage.see(|tables| View(tables).draft(draft));
    let seen = seen.ok_or_else(|| End::Error("no such draft".to_owned()))?;
    Ok(seen.etag)
}

/// A draft that changes the subject's assignment, and nothing that others use.
fn drafted(stage: &mut Stage, desk: &Arc<Server>, subject: &Subject) -> Step<DraftId> {
    let (cluster, machine) = (subject.binding.cluster, subject.machine);
    let opened = stage.asked(desk, AUTHOR, move |hand| async move {
        hand.open_draft(cluster).await
    })?;
    let draft = made::<kind::Draft>(&opened);
    let draft = draft.ok_or_else(|| End::Error("a draft".to_owned()))?;
    let at = etag(stage, draft)?;
    stage.asked(desk, AUTHOR, move |hand| async move {
        hand.put_assignment(draft, at, machine, Vec::new()).await
    })?;
    Ok(draft)
}

fn publish(stage: &mut Stage, at: Moment, premise: Premise) -> Step {
    let desk = stage.server()?;
    let subject = stage.subject()?;
    let draft = drafted(stage, &desk, &subject)?;
    let play = Play {
        desk,
        subject,
        draft,
    };
    let revision = etag(stage, draft)?;
    let queued = stage.asked(&play.desk, PUBLISHER, move |hand| async move {
        hand.publish(draft, revision).await
    })?;
    let job = made::<kind::Operation>(&queued);
    let job = job.ok_or_else(|| End::Error("a publication".to_owned()))?;
    if at == Moment::Queued {
        premise(stage, &play)?;
    }
    let worker = stage.worker()?;
    let read = |stage: &crate::sim::State| {
        let seen = stage.db.tables.execution.observations.values(SEEN);
        let of = seen.filter(|seen| seen.started.operation == Some(job));
        of.count() == usize::from(MACHINES) || ended(&stage.db.tables, job)
    };
    stage.until("the readings of a publication", read)?;
    if at == Moment::Read {
        stage.hold(&worker);
        premise(stage, &play)?;
        stage.let_go(&worker);
    }
    stage.until("a publication's end", |state| ended(&state.db.tables, job))
}

fn ended(tables: &crate::pg::Tables, job: OperationId) -> bool {
    let row = tables.execution.operations.get(SEEN, &job);
    row.is_none_or(|job| !matches!(job.row.state.as_str(), "queued" | "running"))
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
};
