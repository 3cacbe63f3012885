//! Requests under keys and revisions, across a restore where that is what tells them apart
//! (PA §4.1, §7, §12.4).

use std::sync::Arc;

use bronzeward_core::head::AssignmentContent;
use bronzeward_core::id::{DraftId, EpochId, MachineId, kind};
use bronzeward_core::idempotency::IdempotencyKey;
use bronzeward_core::revision::Etag;

use super::stage::{ADMIN, AUTHOR, Stage, Step};
use super::{Witness, rows};
use crate::people::acts::made;
use crate::seed::End;
use crate::server::Server;

fn key() -> IdempotencyKey {
    IdempotencyKey::parse("one-key-for-two-requests").expect("a legal key")
}

/// Somebody freezes a machine under the schedule's one key.
fn freezes(stage: &mut Stage, server: &Arc<Server>, machine: MachineId) -> Step {
    stage.insist(&key());
    stage
        .asked(server, ADMIN, move |hand| async move {
            hand.freeze(machine).await
        })
        .map(drop)
}

/// One key, two requests.
fn two_under_one_key(stage: &mut Stage) -> Step {
    let server = stage.server()?;
    let machines = stage.machines();
    for machine in machines.iter().take(2) {
        freezes(stage, &server, *machine)?;
    }
    Ok(())
}

/// What was answered before an entry is asked for again after it.
fn again_after_an_entry(stage: &mut Stage) -> Step {
    let server = stage.server()?;
    let machine = stage.subject()?.machine;
    freezes(stage, &server, machine)?;
    stage.kill(&server);
    let backup = stage.back_up();
    let stopped_at = stage.now();
    stage.restore(&backup)?;
    stage.enter(stopped_at)?;
    let server = stage.server()?;
    freezes(stage, &server, machine)
}

/// A client that has recorded an epoch which a restore lost.
fn expecting_another_epoch(stage: &mut Stage) -> Step {
    let server = stage.server()?;
    let machine = stage.subject()?.machine;
    stage.sim.state().house.insisted.expected = Some(EpochId::from_bits(1));
    stage
        .asked(&server, ADMIN, move |hand| async move {
            hand.freeze(machine).await
        })
        .map(drop)
}

/// An edit of a draft, made from a revision.
fn edited(
    stage: &mut Stage,
    server: &Arc<Server>,
    (draft, at): (DraftId, Etag),
    machine: MachineId,
) -> Step {
    stage
        .asked(server, AUTHOR, move |hand| async move {
            let nothing = AssignmentContent::default();
            hand.put_assignment(draft, at, machine, nothing).await
        })
        .map(drop)
}

/// A revision that was given out after the backup is given out again, and somebody edits the
/// one that is gone.
fn edited_from_a_lost_revision(stage: &mut Stage) -> Step {
    let server = stage.server()?;
    let subject = stage.subject()?;
    let (cluster, machines) = (subject.binding.cluster, stage.machines());
    let opened = stage.asked(&server, AUTHOR, move |hand| async move {
        hand.open_draft(cluster).await
    })?;
    let draft = made::<kind::Draft>(&opened);
    let draft = draft.ok_or_else(|| End::Error("a draft".to_owned()))?;
    let first = stage.etag(draft)?;
    let backup = stage.back_up();
    edited(stage, &server, (draft, first), machines[0])?;
    let lost = stage.etag(draft)?;
    stage.kill(&server);
    let stopped_at = stage.now();
    stage.restore(&backup)?;
    stage.enter(stopped_at)?;
    let server = stage.server()?;
    edited(stage, &server, (draft, first), machines[1])?;
    edited(stage, &server, (draft, lost), machines[2])
}

pub const WITNESSES: &[Witness] = rows! {
    "two requests under one key", [IdempotencyFingerprint], "a key answers its own request",
        two_under_one_key;
    "asked for again after an entry", [IdempotencyEpoch],
        "no answer of another epoch is given again", again_after_an_entry;
    "expecting another epoch", [ExpectedEpoch], "no effect in an epoch that is not expected",
        expecting_another_epoch;
    "edited from a lost revision", [EtagToken], "no edit of a draft is lost",
        edited_from_a_lost_revision;
};
