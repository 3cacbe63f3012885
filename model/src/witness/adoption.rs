//! The adoption of what a node shows (EaR 6.3): one schedule on a drifted machine, another
//! premise a rule.

use std::sync::Arc;

use bronzeward_core::id::kind;
use bronzeward_core::observation::Purpose;
use bronzeward_core::time::Span;
use bronzeward_engine::observe::Wanted;
use bronzeward_engine::ports::node::Asked;
use bronzeward_engine::tx::adoption::record_adoption;

use super::stage::{APPROVER, PUBLISHER, Pending, Stage, Step};
use super::steps::Subject;
use super::{Witness, rows};
use crate::people::acts::made;
use crate::pg::Eye;
use crate::seed::End;
use crate::server::Server;

/// Where the schedule stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Planned,
    Approved,
    Observed,
}

struct Play {
    server: Arc<Server>,
    /// The machine, and its adopt plan once there is one.
    subject: Subject,
    /// A reading under way, and in which process.
    reading: Option<(Arc<Server>, Pending<bool>)>,
}

type Premise = fn(&mut Stage, &mut Play, Moment) -> Step;

fn adopt(stage: &mut Stage, premise: Premise) -> Step {
    schedule(stage, premise, true)
}

fn schedule(stage: &mut Stage, premise: Premise, look: bool) -> Step {
    let (desk, server) = (stage.server()?, stage.server()?);
    let subject = stage.subject()?;
    stage.open_drift(&subject)?;
    let (release, machine) = (subject.binding.release, subject.machine);
    let ended = stage.asked(&desk, PUBLISHER, move |hand| async move {
        hand.plan(release, machine, true).await
    })?;
    let plan = made::<kind::Plan>(&ended);
    let plan = plan.ok_or_else(|| End::Error(format!("an adopt plan: {ended:?}")))?;
    let subject = stage.subject_of(plan, subject.approval)?;
    let mut play = Play {
        server,
        subject,
        reading: None,
    };
    premise(stage, &mut play, Moment::Planned)?;
    stage.asked(&desk, APPROVER, move |hand| async move {
        hand.approve(plan).await
    })?;
    premise(stage, &mut play, Moment::Approved)?;
    if look {
        stage.read(&play.server, machine, Purpose::Evidence)?;
    }
    premise(stage, &mut play, Moment::Observed)?;
    let of = Arc::clone(&play.server);
    stage
        .call(&play.server, async move {
            record_adoption(&of.db, plan, of.db.mint()).await.is_ok()
        })
        .map(drop)
}

/// The only reading began before the approval.
fn read_before(stage: &mut Stage, play: &mut Play, at: Moment) -> Step {
    match at {
        Moment::Planned => stage.read(&play.server, play.subject.machine, Purpose::Evidence),
        _ => Ok(()),
    }
}

/// The only reading began before the approval and was recorded after it.
fn read_meanwhile(stage: &mut Stage, play: &mut Play, at: Moment) -> Step {
    match at {
        Moment::Planned => {
            let server = stage.server()?;
            let (of, machine) = (Arc::clone(&server), play.subject.machine);
            let reading = stage.begin(server.id, async move {
                let (id, purpose) = (of.db.mint(), Purpose::Evidence);
                let wanted = Wanted::of_machine(id, machine, purpose, Asked::EVERYTHING);
                of.observer.observe(&wanted).await.is_ok()
            });
            stage.until_said(&server, "reads a node's health")?;
            stage.hold(&server);
            play.reading = Some((server, reading));
            Ok(())
        }
        Moment::Approved => match play.reading.take() {
            Some((server, reading)) => {
                stage.let_go(&server);
                stage.finish(&reading).map(drop)
            }
            None => Ok(()),
        },
        Moment::Observed => Ok(()),
    }
}

fn read_long_ago(stage: &mut Stage, _: &mut Play, at: Moment) -> Step {
    match at {
        Moment::Observed => stage.pass(Span::seconds(25)),
        _ => Ok(()),
    }
}

fn edited(stage: &mut Stage, play: &mut Play, at: Moment) -> Step {
    match at {
        Moment::Approved => stage.edit_by_hand(&play.subject),
        _ => Ok(()),
    }
}

fn edited_and_read_again(stage: &mut Stage, play: &mut Play, at: Moment) -> Step {
    if at != Moment::Observed {
        return Ok(());
    }
    stage.edit_by_hand(&play.subject)?;
    stage.read(&play.server, play.subject.machine, Purpose::Recovery)
}

/// The assignment was another one while the node was read.
fn reassigned_for_a_while(stage: &mut Stage, play: &mut Play, at: Moment) -> Step {
    let by = match at {
        Moment::Planned => return Ok(()),
        Moment::Approved => 1,
        Moment::Observed => -1,
    };
    let machine = play.subject.machine.to_string();
    let head = stage.see(|tables| {
        let mut heads = tables.authoring.heads.iter(Eye::COMMITTED);
        let head = heads.find(|(_, head)| head.row.subject == machine);
        head.map(|(id, _)| *id)
    });
    let head = head.ok_or_else(|| End::Error("no assignment".to_owned()))?;
    stage.alter(
        |tables| &mut tables.authoring.heads,
        head,
        |head| head.row.etag.revision.0 += by,
    )
}

fn rebased(stage: &mut Stage, play: &mut Play, at: Moment) -> Step {
    match at {
        Moment::Observed => stage.rebase(&play.subject),
        _ => Ok(()),
    }
}

fn another_desired(stage: &mut Stage, play: &mut Play, at: Moment) -> Step {
    match at {
        Moment::Observed => stage.desire_another(&play.subject),
        _ => Ok(()),
    }
}

/// The plan names no record, and one is open.
fn unnamed_drift(stage: &mut Stage, play: &mut Play, at: Moment) -> Step {
    match at {
        Moment::Observed => stage.rebind(&mut play.subject, |binding| binding.drift = None),
        _ => Ok(()),
    }
}

const ADOPTED: &str = "an adoption rests on what the node last showed";

pub const WITNESSES: &[Witness] = rows! {
    "adopted on a reading before its approval", [AdoptionAfterApproval], ADOPTED,
        |stage| schedule(stage, read_before, false);
    "adopted on a reading begun before its approval", [BasisIsReadStart], ADOPTED,
        |stage| schedule(stage, read_meanwhile, false);
    "adopted on an old reading", [AdoptionFresh], ADOPTED, |stage| adopt(stage, read_long_ago);
    "adopted another configuration", [AdoptionDigest], ADOPTED, |stage| adopt(stage, edited);
    "adopted over a newer reading", [AdoptionHighestBasis], ADOPTED,
        |stage| adopt(stage, edited_and_read_again);
    "adopted under another assignment", [AdoptionAssignment], ADOPTED,
        |stage| adopt(stage, reassigned_for_a_while);
    "adopted over another baseline", [AdoptionBaseline], ADOPTED, |stage| adopt(stage, rebased);
    "adopted a release that is not Desired", [AdoptionDesired], ADOPTED,
        |stage| adopt(stage, another_desired);
    "adopted past a record it does not name", [AdoptionDriftOpen],
        "no mutation through a closed gate", |stage| adopt(stage, unnamed_drift);
};
