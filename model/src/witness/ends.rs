//! How an operation ends (EaR 4, 5), and who may take it over (EaR 3.4): an attempt that was
//! recorded, its answer, and what is read afterwards, each with what must not end it.

use std::sync::Arc;

use bronzeward_core::attempt::ResponseClass;
use bronzeward_core::id::AttemptId;
use bronzeward_core::observation::Purpose;
use bronzeward_core::plan::PlanOperation;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::Span;
use bronzeward_engine::ports::node::{ApplyAnswer, NodeCode};
use bronzeward_engine::tx::dispatch::Owned;

use super::stage::{ADMIN, PUBLISHER, Stage, Step};
use super::steps::Subject;
use super::{Witness, rows};
use crate::ports::node;
use crate::seed::End;
use crate::server::{LEASE, Server};

/// One attempt that was recorded.
pub(super) struct Sent {
    pub(super) desk: Arc<Server>,
    pub(super) server: Arc<Server>,
    pub(super) subject: Subject,
    pub(super) owned: Owned,
    pub(super) attempt: AttemptId,
}

pub(super) fn sent(stage: &mut Stage) -> Step<Sent> {
    let (desk, server) = (stage.server()?, stage.server()?);
    let subject = stage.subject()?;
    sent_of(stage, desk, server, subject)
}

fn sent_of(
    stage: &mut Stage,
    desk: Arc<Server>,
    server: Arc<Server>,
    subject: Subject,
) -> Step<Sent> {
    let refused = || End::Error("an attempt in a quiet world".to_owned());
    let evidence = stage.gather(&server, &subject, None)?;
    let owned = stage.commit(&server, subject.plan, &evidence)?;
    let owned = owned.ok_or_else(refused)?;
    let permit = stage.attempt(&server, &owned, &evidence)?;
    let attempt = permit.ok_or_else(refused)?.get().attempt().id;
    Ok(Sent {
        desk,
        server,
        subject,
        owned,
        attempt,
    })
}

pub(super) fn answer(stage: &mut Stage, sent: &Sent, class: ResponseClass) -> Step {
    let code = match class {
        ResponseClass::Transport => NodeCode::NO_ANSWER,
        ResponseClass::Accepted => NodeCode::grpc(0),
        _ => NodeCode::grpc(3),
    };
    let answer = ApplyAnswer { class, code };
    stage
        .answer(&sent.server, &sent.owned, sent.attempt, answer)
        .map(drop)
}

fn observe(stage: &mut Stage, sent: &Sent, purpose: Purpose) -> Step {
    stage
        .observe(&sent.server, &sent.subject, &sent.owned, purpose)
        .map(drop)
}

fn judge(stage: &mut Stage, sent: &Sent) -> Step {
    stage.judge_operation(&sent.server, &sent.owned).map(drop)
}

/// The attempt landed and was accepted.
fn accepted(stage: &mut Stage) -> Step<Sent> {
    let sent = sent(stage)?;
    let artifact = stage.artifact(&sent.server, &sent.subject)?;
    stage.install(&sent.subject, artifact)?;
    answer(stage, &sent, ResponseClass::Accepted)?;
    Ok(sent)
}

/// It was accepted, something happened, and the node is read once more for its completion.
fn completes_after(stage: &mut Stage, happens: fn(&mut Stage, &Sent) -> Step) -> Step {
    let sent = accepted(stage)?;
    stage.pass(Span::seconds(4))?;
    happens(stage, &sent)?;
    observe(stage, &sent, Purpose::Completion)?;
    judge(stage, &sent)
}

fn replaced(stage: &mut Stage, sent: &Sent) -> Step {
    let route = sent.subject.binding.route;
    stage.outside(|state| node::replace(state, route))
}

fn edited(stage: &mut Stage, sent: &Sent) -> Step {
    stage.edit_by_hand(&sent.subject)?;
    stage.pass(Span::seconds(4))
}

fn reassigned(stage: &mut Stage, sent: &Sent) -> Step {
    stage.reassign(&sent.subject)
}

/// The same configuration again, after which the node takes its time.
fn unready(stage: &mut Stage, sent: &Sent) -> Step {
    let route = sent.subject.binding.route;
    for _ in 0..64 {
        let artifact = stage.artifact(&sent.server, &sent.subject)?;
        stage.install(&sent.subject, artifact)?;
        let soon = stage.now() + Span::seconds(1);
        let state = stage.sim.state();
        if state
            .outside
            .nodes
            .at(route)
            .is_some_and(|node| !node.ready(soon))
        {
            return Ok(());
        }
    }
    Err(End::Error("a node that is never unready".to_owned()))
}

fn of_another_purpose(stage: &mut Stage) -> Step {
    let sent = accepted(stage)?;
    stage.pass(Span::seconds(4))?;
    observe(stage, &sent, Purpose::Recovery)?;
    judge(stage, &sent)
}

fn contradicted(stage: &mut Stage) -> Step {
    let sent = accepted(stage)?;
    stage.pass(Span::seconds(4))?;
    observe(stage, &sent, Purpose::Completion)?;
    stage.edit_by_hand(&sent.subject)?;
    observe(stage, &sent, Purpose::Recovery)?;
    judge(stage, &sent)
}

/// An answer that decides nothing, then something, then a look that may call a retry safe.
fn undecided(stage: &mut Stage, happens: fn(&mut Stage, &Sent) -> Step) -> Step {
    let sent = sent(stage)?;
    answer(stage, &sent, ResponseClass::Answered)?;
    happens(stage, &sent)?;
    observe(stage, &sent, Purpose::Recovery)?;
    judge(stage, &sent)
}

fn cancelled(stage: &mut Stage, sent: &Sent) -> Step {
    let plan = sent.subject.plan;
    stage
        .asked(&sent.desk, PUBLISHER, move |hand| async move {
            hand.cancel(plan).await
        })
        .map(drop)
}

fn frozen(stage: &mut Stage, sent: &Sent) -> Step {
    let machine = sent.subject.machine;
    stage
        .asked(&sent.desk, ADMIN, move |hand| async move {
            hand.freeze(machine).await
        })
        .map(drop)
}

/// A node that refused for good.
fn refused_for_good(stage: &mut Stage) -> Step {
    let sent = sent(stage)?;
    answer(stage, &sent, ResponseClass::RefusedImmediate)?;
    observe(stage, &sent, Purpose::Recovery)?;
    judge(stage, &sent)
}

/// An accepted request whose node shows what it was before, in the hands of another owner.
fn accepted_without_effect(stage: &mut Stage) -> Step {
    let mut sent = sent(stage)?;
    answer(stage, &sent, ResponseClass::Accepted)?;
    taken_over(stage, &mut sent)?;
    observe(stage, &sent, Purpose::Recovery)?;
    judge(stage, &sent)
}

/// The lease lapses and the desk's process takes the operation over.
pub(super) fn taken_over(stage: &mut Stage, sent: &mut Sent) -> Step {
    stage.pass(LEASE + Span::seconds(1))?;
    let row = stage.operation(sent.owned.operation)?;
    let desk = Arc::clone(&sent.desk);
    let owned = stage.take_over(&desk, &row)?;
    sent.owned = owned.ok_or_else(|| End::Error("a lapsed takeover".to_owned()))?;
    sent.server = desk;
    Ok(())
}

fn no_attempt_left(stage: &mut Stage) -> Step {
    let (desk, server) = (stage.server()?, stage.server()?);
    let mut subject = stage.subject()?;
    stage.rebind(&mut subject, |binding| {
        if let PlanOperation::ApplyConfig(deadlines) = &mut binding.operation {
            deadlines.max_attempts = 1;
        }
    })?;
    let sent = sent_of(stage, desk, server, subject)?;
    answer(stage, &sent, ResponseClass::Answered)?;
    observe(stage, &sent, Purpose::Recovery)?;
    judge(stage, &sent)
}

/// A second attempt that is refused, after one that was not.
fn refused_once(stage: &mut Stage) -> Step {
    let mut sent = sent(stage)?;
    answer(stage, &sent, ResponseClass::Answered)?;
    observe(stage, &sent, Purpose::Recovery)?;
    judge(stage, &sent)?;
    let evidence = stage.gather(&sent.server, &sent.subject, Some(&sent.owned))?;
    let permit = stage.attempt(&sent.server, &sent.owned, &evidence)?;
    let permit = permit.ok_or_else(|| End::Error("a retry".to_owned()))?;
    sent.attempt = permit.get().attempt().id;
    answer(stage, &sent, ResponseClass::RefusedValidation)
}

/// The row says of its classification what a restored one might: that it was made before the
/// last entry, or of a plan that allows no further attempt.
fn classified_in_the_row(stage: &mut Stage, most: u8, before: i64) -> Step {
    let (desk, server) = (stage.server()?, stage.server()?);
    let mut subject = stage.subject()?;
    stage.rebind(&mut subject, |binding| {
        if let PlanOperation::ApplyConfig(deadlines) = &mut binding.operation {
            deadlines.max_attempts = most;
        }
    })?;
    let sent = sent_of(stage, desk, server, subject)?;
    answer(stage, &sent, ResponseClass::Answered)?;
    observe(stage, &sent, Purpose::Recovery)?;
    judge(stage, &sent)?;
    let (operation, machine) = (sent.owned.operation, sent.subject.machine);
    let last = stage.see(|tables| {
        let entries = &tables.execution.timelines;
        let of = entries.range(
            crate::pg::Eye::COMMITTED,
            (machine, 0)..=(machine, i64::MAX),
        );
        of.map(|((_, number), _)| *number).max()
    });
    let revision = TimelineRevision(last.unwrap_or(0) - before);
    stage.alter(
        |tables| &mut tables.execution.operations,
        operation,
        |operation| operation.row.classified = Some((revision, 1)),
    )?;
    let evidence = stage.gather(&sent.server, &sent.subject, Some(&sent.owned))?;
    stage
        .attempt(&sent.server, &sent.owned, &evidence)
        .map(drop)
}

fn resolved_with_an_attempt(stage: &mut Stage) -> Step {
    let sent = sent(stage)?;
    answer(stage, &sent, ResponseClass::Answered)?;
    let operation = sent.owned.operation;
    stage
        .asked(&sent.desk, ADMIN, move |hand| async move {
            hand.resolve(operation).await
        })
        .map(drop)
}

/// Committed, taken over before anything was sent.
fn unsent(stage: &mut Stage) -> Step<(Arc<Server>, Arc<Server>, Subject, Owned)> {
    let (desk, server) = (stage.server()?, stage.server()?);
    let subject = stage.subject()?;
    let evidence = stage.gather(&server, &subject, None)?;
    let owned = stage.commit(&server, subject.plan, &evidence)?;
    let owned = owned.ok_or_else(|| End::Error("a commitment".to_owned()))?;
    Ok((desk, server, subject, owned))
}

fn frozen_before_it_sent(stage: &mut Stage) -> Step {
    let (desk, _, subject, owned) = unsent(stage)?;
    stage.pass(LEASE + Span::seconds(1))?;
    let row = stage.operation(owned.operation)?;
    let Some(owned) = stage.take_over(&desk, &row)? else {
        return Err(End::Error("a lapsed takeover".to_owned()));
    };
    let machine = subject.machine;
    stage.asked(&desk, ADMIN, move |hand| async move {
        hand.freeze(machine).await
    })?;
    stage.judge_operation(&desk, &owned).map(drop)
}

/// The answer comes to a process whose row shows another start of its instance.
fn answered_to_another(stage: &mut Stage) -> Step {
    let sent = sent(stage)?;
    of_another_start(stage, &sent)?;
    answer(stage, &sent, ResponseClass::Answered)
}

/// The row of an operation shows another start of its instance.
fn of_another_start(stage: &mut Stage, sent: &Sent) -> Step {
    let other = sent.desk.db.process().owner;
    stage.alter(
        |tables| &mut tables.execution.operations,
        sent.owned.operation,
        |operation| {
            if let Some(fence) = &mut operation.row.fence {
                fence.owner = other;
            }
        },
    )
}

/// An operation whose row says that it still waits for an answer which is recorded.
fn answered_again(stage: &mut Stage) -> Step {
    let sent = sent(stage)?;
    answer(stage, &sent, ResponseClass::Answered)?;
    stage.alter(
        |tables| &mut tables.execution.operations,
        sent.owned.operation,
        |operation| operation.row.state = "sending".to_owned(),
    )?;
    answer(stage, &sent, ResponseClass::Answered)
}

/// Nothing is known of the request, and the node shows what it was before.
fn unanswered(stage: &mut Stage) -> Step {
    let mut sent = sent(stage)?;
    taken_over(stage, &mut sent)?;
    observe(stage, &sent, Purpose::Recovery)?;
    judge(stage, &sent)
}

/// An operation that never sent anything, in the hands of another owner.
fn judged_unsent(stage: &mut Stage) -> Step {
    let (desk, _, _, owned) = unsent(stage)?;
    stage.pass(LEASE + Span::seconds(1))?;
    let row = stage.operation(owned.operation)?;
    let Some(owned) = stage.take_over(&desk, &row)? else {
        return Err(End::Error("a lapsed takeover".to_owned()));
    };
    stage.judge_operation(&desk, &owned).map(drop)
}

/// A pass takes what a live owner is about to send.
fn live(stage: &mut Stage) -> Step {
    let (desk, _, _, owned) = unsent(stage)?;
    let row = stage.operation(owned.operation)?;
    stage.take_over(&desk, &row).map(drop)
}

/// A pass that read the operation before another took it, whose lease has lapsed too.
fn unseen(stage: &mut Stage) -> Step {
    let (desk, server, _, owned) = unsent(stage)?;
    let row = stage.operation(owned.operation)?;
    stage.pass(LEASE + Span::seconds(1))?;
    stage.take_over(&desk, &row)?;
    stage.pass(LEASE + Span::seconds(1))?;
    stage.take_over(&server, &row).map(drop)
}

/// A pass that read the operation before it ended.
fn ended(stage: &mut Stage) -> Step {
    let (desk, _, subject, owned) = unsent(stage)?;
    stage.pass(LEASE + Span::seconds(1))?;
    let row = stage.operation(owned.operation)?;
    let Some(owned) = stage.take_over(&desk, &row)? else {
        return Err(End::Error("a lapsed takeover".to_owned()));
    };
    let row = stage.operation(owned.operation)?;
    let approval = subject.approval;
    stage.asked(&desk, super::stage::APPROVER, move |hand| async move {
        hand.revoke_approval(approval).await
    })?;
    stage.judge_operation(&desk, &owned)?;
    stage.pass(LEASE + Span::seconds(1))?;
    stage.take_over(&desk, &row).map(drop)
}

const COMPLETED: &str = "a completion rests on a later reading of what was bound";
const SAFE: &str = "one more request is safe where it is said to be";
const MOVED: &str = "only the owner moves its operation";

pub const WITNESSES: &[Witness] = rows! {
    "completed by a recovery reading", [CompletionPurpose], COMPLETED, of_another_purpose;
    "completed on another node", [CompletionIdentity], COMPLETED,
        |stage| completes_after(stage, replaced);
    "completed on another configuration", [CompletionDigest], COMPLETED,
        |stage| completes_after(stage, edited);
    "completed under another assignment", [CompletionAssignment], COMPLETED,
        |stage| completes_after(stage, reassigned);
    "completed on a node that is not ready", [CompletionHealth], COMPLETED,
        |stage| completes_after(stage, unready);
    "failed before its deadline", [HealthFailsAtDeadlineOnly],
        "a failure rests on a later reading that contradicts",
        |stage| completes_after(stage, unready);
    "completed though read otherwise", [CompletionNotContradicted], COMPLETED, contradicted;
    "an accepted request without effect", [NoneAccepted], SAFE, accepted_without_effect;
    "refused for good", [NoneDefinitivelyRefused], SAFE, refused_for_good;
    "neither before nor after", [RetryAtPreDispatchDigest], SAFE,
        |stage| undecided(stage, edited);
    "cancelled before its retry", [RetryAuthorised], "a cancelled plan authorises nothing",
        |stage| undecided(stage, cancelled);
    "frozen before its retry", [RetryGateOpen], "no mutation through a closed gate",
        |stage| undecided(stage, frozen);
    "no attempt is left", [RetryAttemptsLeft], SAFE, no_attempt_left;
    "refused once of two", [EveryAttemptRefused], "an end fits its attempts", refused_once;
    "classified before the last answer", [NothingSinceClassified],
        "nothing came between a classification and its retry",
        |stage| classified_in_the_row(stage, 3, 1);
    "more attempts than the plan allows", [AttemptsLeft],
        "no more attempts than the plan allows", |stage| classified_in_the_row(stage, 1, 0);
    "resolved with an attempt", [CancelledWithoutAttempt], "an end fits its attempts",
        resolved_with_an_attempt;
    "frozen before it sent", [CancelledForGoodOnly],
        "an operation is cancelled for good only", frozen_before_it_sent;
    "answered to another start", [ResponseByOwner], MOVED, answered_to_another;
    "judged by another start", [VerdictByOwner], MOVED,
        |stage| undecided(stage, of_another_start);
    "answered again", [OneResponsePerAttempt], "an attempt is answered once", answered_again;
    "nothing is known of its request", [EveryAttemptAccounted], SAFE, unanswered;
    "judged though it sent nothing", [AtLeastOneAttempt], "an end fits its attempts",
        judged_unsent;
    "taken from a live owner", [TakeoverLapsed], "a live owner is not replaced", live;
    "taken from an owner never seen", [TakeoverGeneration],
        "a takeover follows the owner it saw", unseen;
    "taken though it ended", [TakeoverState], "an operation's states", ended;
};
