//! What the locks of acts keep still (PA §5): one has looked, another comes, and the first
//! commits. With its locks the other waits.

use std::sync::Arc;

use bronzeward_core::id::kind;
use bronzeward_core::problem::Problem;
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::Span;
use bronzeward_engine::ports::store::{LockMode, Locks as _, Store as _, StoreTx as _};
use bronzeward_engine::publish::job;
use bronzeward_engine::tx::MachineInput;
use bronzeward_engine::tx::dispatch::{commit, record_attempt};

use super::stage::{ADMIN, APPROVER, AUTHOR, PUBLISHER, Pending, Stage, Step};
use super::{Witness, rows};
use crate::genesis::MACHINES;
use crate::people::acts::made;
use crate::people::hand::{Person, key_of};
use crate::people::tools::{AUTOMATION, rotate};
use crate::pg::Eye;
use crate::pg::session::SimStore;
use crate::sched::{Leaf, ProcessId, Wait};
use crate::seed::End;
use crate::server::{LEASE, Server};

const SEEN: Eye = Eye::COMMITTED;

/// A commitment of the subject's plan that has looked at everything and stands still.
fn committing(
    stage: &mut Stage,
    server: &Arc<Server>,
    subject: &super::steps::Subject,
) -> Step<Pending<bool>> {
    let evidence = stage.gather(server, subject, None)?;
    let (of, plan) = (Arc::clone(server), subject.plan);
    let begun = stage.begin(server.id, async move {
        let committed = commit(&of.db, plan, &evidence, of.db.mint(), LEASE);
        committed.await.is_ok()
    });
    stage.until_said(server, "read observations")?;
    stage.hold(server);
    Ok(begun)
}

/// An owner extends its job's lease; somebody's own session holds the job's row until the lease
/// has lapsed.
fn lapsed_in_a_wait(stage: &mut Stage) -> Step {
    let (desk, server) = (stage.server()?, stage.server()?);
    let subject = stage.subject()?;
    let draft = stage.draft(&desk, subject.binding.cluster)?;
    stage.assign(&desk, draft, subject.machine, Default::default())?;
    let id = stage.queue(&desk, draft)?;
    let of = Arc::clone(&server);
    let owned = stage.call(&server, async move { job::claim(&of.db, LEASE).await.ok() })?;
    let owned = owned.ok_or_else(|| End::Error("a claimed job".to_owned()))?;
    let (sim, until) = (
        Arc::clone(&stage.sim),
        stage.now() + LEASE + Span::seconds(1),
    );
    let session = stage.begin(ProcessId::WORLD, async move {
        let mut session = SimStore::new(&sim, ProcessId::WORLD).begin().await?;
        let of = [id].into();
        session.lock_operations(&of, Some(LockMode::Update)).await?;
        Leaf::new(&sim, Wait::Until(until)).await;
        session.rollback().await;
        Ok::<(), bronzeward_engine::ports::store::StoreError>(())
    });
    stage.until("a row that is held", |state| {
        state.trace.text().contains(" world lock operations\n")
    })?;
    let of = Arc::clone(&server);
    let extending = stage.begin(server.id, async move {
        let extended = job::extend(&of.db, &owned, LEASE);
        extended.await.is_ok()
    });
    stage
        .finish(&session)?
        .map_err(|_| End::Error("a session of somebody's".to_owned()))?;
    stage.finish(&extending).map(drop)
}

/// An owner fails its job, and once more in other words.
fn failed_twice(stage: &mut Stage) -> Step {
    let desk = stage.server()?;
    let subject = stage.subject()?;
    let draft = stage.draft(&desk, subject.binding.cluster)?;
    stage.assign(&desk, draft, subject.machine, Default::default())?;
    stage.queue(&desk, draft)?;
    let worker = stage.server()?;
    let of = Arc::clone(&worker);
    let owned = stage.call(&worker, async move { job::claim(&of.db, LEASE).await.ok() })?;
    let owned = owned.ok_or_else(|| End::Error("a claimed job".to_owned()))?;
    for problem in [Problem::internal("One."), Problem::conflict("Another.")] {
        let (of, owned) = (Arc::clone(&worker), owned.clone());
        stage.call(&worker, async move {
            job::fail(&of.db, &owned, &problem).await.is_ok()
        })?;
    }
    Ok(())
}

/// A plan is approved, and the machine frozen after the approval has looked at it.
fn frozen_while_approved(stage: &mut Stage) -> Step {
    let (desk, other) = (stage.server()?, stage.server()?);
    let subject = stage.subject()?;
    let (release, machine) = (subject.binding.release, subject.machine);
    let planned = stage.asked(&desk, PUBLISHER, move |hand| async move {
        hand.plan(release, machine, false).await
    })?;
    let plan = made::<kind::Plan>(&planned);
    let plan = plan.ok_or_else(|| End::Error(format!("a plan: {planned:?}")))?;
    let approving = stage.ask(&desk, APPROVER, move |hand| async move {
        hand.approve(plan).await
    });
    stage.until_said(&desk, "lock plan states")?;
    stage.hold(&desk);
    let freezing = stage.ask(&other, ADMIN, move |hand| async move {
        hand.freeze(machine).await
    });
    stage.a_while()?;
    stage.let_go(&desk);
    stage.finish(&approving)?;
    stage.finish(&freezing).map(drop)
}

/// Recovery mode is left while a machine is recorded.
fn recorded_while_left(stage: &mut Stage) -> Step {
    let (desk, other) = (stage.server()?, stage.server()?);
    let cluster = stage.subject()?.binding.cluster;
    let epoch = desk.db.process().epoch.0;
    let machines = stage.see(|tables| {
        let machines = tables.authoring.machines.iter(SEEN);
        machines.map(|(id, _)| *id).collect::<Vec<_>>()
    });
    for machine in machines {
        stage.alter(
            |tables| &mut tables.authoring.machines,
            machine,
            |row| row.scope = ScopeState::Released { epoch },
        )?;
    }
    stage.alter(
        |tables| &mut tables.authoring.installation,
        (),
        |row| row.recovery_mode = true,
    )?;
    let leaving = stage.ask(&desk, ADMIN, move |hand| async move {
        hand.exit_recovery().await
    });
    stage.until_said(&desk, "lock machine states")?;
    stage.hold(&desk);
    let (_, mut inputs) = crate::furniture::inventory(MACHINES + 1);
    let input = inputs.pop();
    let input = input.ok_or_else(|| End::Error("one more machine".to_owned()))?;
    let input = MachineInput { cluster, ..input };
    let recording = stage.ask(&other, AUTHOR, move |hand| async move {
        hand.create_machine(input).await
    });
    stage.a_while()?;
    stage.let_go(&desk);
    stage.finish(&leaving)?;
    stage.finish(&recording).map(drop)
}

/// A rotation has read the token that it replaces; then something else happens to the identity.
fn rotating(stage: &mut Stage, other: fn(&mut Stage, &Arc<Server>) -> Step) -> Step {
    let (desk, second) = (stage.server()?, stage.server()?);
    let of = Arc::clone(&desk);
    let rotated = stage.begin(desk.id, async move { rotate(&of, None).await.is_ok() });
    stage.until_said(&desk, "read latest roles")?;
    stage.hold(&desk);
    other(stage, &second)?;
    stage.a_while()?;
    stage.let_go(&desk);
    stage.finish(&rotated)?;
    stage.a_while()
}

fn rotated_too(stage: &mut Stage, server: &Arc<Server>) -> Step {
    let of = Arc::clone(server);
    let _rotated = stage.begin(server.id, async move { rotate(&of, None).await.is_ok() });
    Ok(())
}

fn its_identity_revoked(stage: &mut Stage, server: &Arc<Server>) -> Step {
    let identity = stage.see(|tables| {
        let mut tokens = tables.authoring.tokens.values(SEEN);
        tokens.next().map(|of| of.token.owner)
    });
    let identity = identity.ok_or_else(|| End::Error(format!("no {AUTOMATION}")))?;
    let _revoked = stage.ask(server, ADMIN, move |hand| async move {
        hand.revoke_identity(identity).await
    });
    Ok(())
}

/// A publication that changes the assignment commits under a commitment that has looked at it.
fn reassigned_while_committed(stage: &mut Stage) -> Step {
    let (desk, server) = (stage.server()?, stage.server()?);
    let subject = stage.subject()?;
    let draft = stage.draft(&desk, subject.binding.cluster)?;
    stage.assign(&desk, draft, subject.machine, Default::default())?;
    let publication = stage.queue(&desk, draft)?;
    let worker = stage.worker()?;
    stage.until_read(publication)?;
    stage.hold(&worker);
    let begun = committing(stage, &server, &subject)?;
    stage.let_go(&worker);
    stage.a_while()?;
    stage.let_go(&server);
    stage.finish(&begun)?;
    stage.ends(publication)
}

/// Two machines of one cluster are committed at once.
fn two_commitments(stage: &mut Stage) -> Step {
    let (first, second) = (stage.server()?, stage.server()?);
    let subjects = stage.subjects()?;
    let [one, other, ..] = subjects.as_slice() else {
        return Err(End::Error("two approved plans".to_owned()));
    };
    let evidence = stage.gather(&second, other, None)?;
    let begun = committing(stage, &first, one)?;
    let (of, plan) = (Arc::clone(&second), other.plan);
    let beside = stage.begin(second.id, async move {
        let committed = commit(&of.db, plan, &evidence, of.db.mint(), LEASE);
        committed.await.is_ok()
    });
    stage.a_while()?;
    stage.let_go(&first);
    stage.finish(&begun)?;
    stage.finish(&beside).map(drop)
}

/// A plan is cancelled under a commitment that has looked at its state.
fn cancelled_while_committed(stage: &mut Stage) -> Step {
    let (desk, server) = (stage.server()?, stage.server()?);
    let subject = stage.subject()?;
    let begun = committing(stage, &server, &subject)?;
    let plan = subject.plan;
    let cancelling = stage.ask(&desk, PUBLISHER, move |hand| async move {
        hand.cancel(plan).await
    });
    stage.a_while()?;
    stage.let_go(&server);
    stage.finish(&begun)?;
    stage.finish(&cancelling).map(drop)
}

/// An approval is revoked under an attempt that has looked at it.
fn revoked_while_attempted(stage: &mut Stage) -> Step {
    let (desk, server) = (stage.server()?, stage.server()?);
    let subject = stage.subject()?;
    let evidence = stage.gather(&server, &subject, None)?;
    let owned = stage.commit(&server, subject.plan, &evidence)?;
    let owned = owned.ok_or_else(|| End::Error("a commitment".to_owned()))?;
    let of = Arc::clone(&server);
    let attempting = stage.begin(server.id, async move {
        let attempt = record_attempt(&of.db, &owned, &evidence, of.db.mint());
        attempt.await.is_ok()
    });
    stage.until_said(&server, "read observations")?;
    stage.hold(&server);
    let approval = subject.approval;
    let revoking = stage.ask(&desk, APPROVER, move |hand| async move {
        hand.revoke_approval(approval).await
    });
    stage.a_while()?;
    stage.let_go(&server);
    stage.finish(&attempting)?;
    stage.finish(&revoking).map(drop)
}

/// One request arrives twice, the second while the first has not answered.
fn asked_twice(stage: &mut Stage) -> Step {
    let (desk, other) = (stage.server()?, stage.server()?);
    let cluster = stage.subject()?.binding.cluster;
    let first = stage.ask(&desk, AUTHOR, move |hand| async move {
        hand.under(key_of(7)).open_draft_with(cluster, "one").await
    });
    stage.until_said(&desk, "read cluster")?;
    stage.hold(&desk);
    let second = stage.ask(&other, AUTHOR, move |hand| async move {
        hand.under(key_of(7)).open_draft_with(cluster, "one").await
    });
    stage.a_while()?;
    stage.let_go(&desk);
    stage.finish(&first)?;
    stage.finish(&second).map(drop)
}

/// An automation's request is about to be recorded while its token is rotated.
fn rotated_while_recorded(stage: &mut Stage) -> Step {
    let (desk, other) = (stage.server()?, stage.server()?);
    let cluster = stage.subject()?.binding.cluster;
    let person = Person {
        name: AUTOMATION,
        groups: &["author", "publisher"],
    };
    let drafting = stage.ask(&desk, person, move |hand| async move {
        hand.open_draft(cluster).await
    });
    stage.until_said(&desk, "queue to record")?;
    stage.hold(&desk);
    let of = Arc::clone(&other);
    let rotated = stage.begin(other.id, async move { rotate(&of, None).await.is_ok() });
    stage.a_while()?;
    stage.let_go(&desk);
    stage.finish(&drafting)?;
    stage.finish(&rotated).map(drop)
}

const TOKEN: &str = "an identity has one token";
const ONCE: &str = "an answer is stored once";
const ROLLOUT: &str = "one holder per rollout";

pub const WITNESSES: &[Witness] = rows! {
    "its lease lapsed while it waited for its job", [FencedRowLockedFirst],
        "a lapsed lease is not extended", lapsed_in_a_wait;
    "failed once more", [FenceState], "what has ended stays as it ended", failed_twice;
    "frozen while a plan is approved", [MachineRowLock],
        "a record says its place in the timeline", frozen_while_approved;
    "a machine recorded while recovery mode is left", [InstallationExclusive],
        "recovery mode is left with every scope released", recorded_while_left;
    "two rotations at once", [TokenPrincipalLock OneTokenPerIdentity], TOKEN,
        |stage| rotating(stage, rotated_too);
    "two rotations at once, by the index", [OneTokenPerIdentity TokenPrincipalLock], TOKEN,
        |stage| rotating(stage, rotated_too);
    "rotated while its identity is revoked", [TokenPrincipalLock InstallationExclusive],
        "a revoked identity has no token", |stage| rotating(stage, its_identity_revoked);
    "its token rotated while its request is recorded", [ActorHeld],
        "the product's transactions never wait in a circle", rotated_while_recorded;
    "reassigned while it is committed", [AssignmentHeadShared MachineRowLock],
        "the assignment is the bound one", reassigned_while_committed;
    "two commitments of a rollout at once", [RolloutLock OneHolderPerRollout], ROLLOUT,
        two_commitments;
    "cancelled while it is committed", [PlanStateLock MachineRowLock RevisionUnchanged],
        "a plan's states", cancelled_while_committed;
    "cancelled while it is committed, by the guard",
        [RevisionUnchanged PlanStateLock MachineRowLock], "a plan's states",
        cancelled_while_committed;
    "its approval revoked while it is attempted", [ApprovalShared MachineRowLock PlanStateLock],
        "a revoked approval authorises nothing", revoked_while_attempted;
    "one request twice at once", [IdempotencyKeyLock OneRecordPerKey], ONCE, asked_twice;
    "one request twice at once, by the index", [OneRecordPerKey IdempotencyKeyLock], ONCE,
        asked_twice;
};
