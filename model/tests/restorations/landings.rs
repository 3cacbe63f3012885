//! The late landing (EaR 5.2, 7.2, scenario S7): a request that is held at its node while the
//! installation is restored around it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bronzeward_core::drift::OpenDrift;
use bronzeward_core::id::{AttemptId, MachineId, OperationId};
use bronzeward_core::observation::Purpose;
use bronzeward_core::operation::OperationState;
use bronzeward_core::rules::Rule;
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::{DbTime, Span};
use bronzeward_engine::ports::node::ApplyAnswer;
use bronzeward_engine::tx::dispatch::Owned;
use bronzeward_model::people::view::View;
use bronzeward_model::pg::Eye;
use bronzeward_model::server::Server;
use bronzeward_model::witness::{Stage, Step, Subject};

use super::{OWNS, holds, lost, said, violates};

/// A request that is held at its node while the installation is restored around it.
struct Held {
    owned: Owned,
    subject: Subject,
    attempt: AttemptId,
    server: Arc<Server>,
    stopped_at: DbTime,
}

/// `remembered` says whether the backup knows of the attempt.
fn held(stage: &mut Stage, length: Span, remembered: bool) -> Step<Held> {
    let forgotten = stage.server()?;
    let subject = stage.subject()?;
    stage.hold_requests(length);
    let evidence = stage.gather(&forgotten, &subject, None)?;
    let owned = stage.commit(&forgotten, subject.plan, &evidence)?;
    let owned = owned.ok_or_else(|| lost("a commitment"))?;
    let early = stage.back_up();
    let permit = stage.attempt(&forgotten, &owned, &evidence)?;
    let permit = permit.ok_or_else(|| lost("an attempt"))?;
    let attempt = permit.get().attempt().id;
    let backup = match remembered {
        true => stage.back_up(),
        false => early,
    };
    let sending = stage.send(&forgotten, &subject, permit)?;
    stage.until_said(&forgotten, "sends a configuration")?;
    let stopped_at = stage.now();
    stage.restore(&backup)?;
    stage.enter(stopped_at)?;
    let server = stage.server()?;
    // The forgotten process waits its deadline out, and what it then says is nobody's.
    let answer: ApplyAnswer = stage.finish(&sending)?;
    assert!(stage.answer(&forgotten, &owned, attempt, answer)?.is_none());
    let row = stage.operation(owned.operation)?;
    assert!(stage.take_over(&forgotten, &row)?.is_none());
    assert_eq!(row.state, "unresolved");
    Ok(Held {
        owned,
        subject,
        attempt,
        server,
        stopped_at,
    })
}

fn drift(stage: &Stage, machine: MachineId) -> Vec<OpenDrift> {
    stage.see(|tables| {
        let all = tables.execution.drifts.values(Eye::COMMITTED);
        let open = all.filter(|one| one.closed.is_none() && one.drift.machine == machine);
        open.map(|one| one.drift).collect()
    })
}

fn landed(stage: &Stage, held: &Held) -> bool {
    let state = stage.sim.state();
    let node = state.outside.nodes.at(held.subject.binding.route);
    node.is_some_and(|node| node.digest() == held.subject.binding.artifact_digest)
}

/// The restored operation in the hands of a controller of the new epoch, and what it makes of
/// it.
fn ends(stage: &mut Stage, held: &Held, look: bool) -> Step<Option<OperationState>> {
    let row = stage.operation(held.owned.operation)?;
    let owned = stage.take_over(&held.server, &row)?;
    let owned = owned.ok_or_else(|| lost("a takeover in the new epoch"))?;
    assert_eq!(owned.fence.epoch, stage.epoch()?);
    if look {
        stage.observe(&held.server, &held.subject, &owned, Purpose::Completion)?;
    }
    let judged = stage.judge_operation(&held.server, &owned)?;
    Ok(judged.map(|judged| judged.state))
}

/// Every scope is marked and released, the mode is left, and the landing is a drift record of
/// this operation, or of nobody.
fn left(stage: &mut Stage, held: &Held, linked: Option<OperationId>) -> Step {
    let baseline = |stage: &Stage| {
        let seen = stage.see(|tables| View(tables).machine(held.subject.machine));
        seen.and_then(|seen| seen.state.applied)
    };
    let applied = baseline(stage);
    let server = Arc::clone(&held.server);
    stage.works_off(&server)?;
    let open = drift(stage, held.subject.machine);
    let shown: BTreeMap<_, _> = open
        .iter()
        .map(|one| (one.observed_digest, one.late_landing))
        .collect();
    let artifact = held.subject.binding.artifact_digest;
    assert_eq!(shown, BTreeMap::from([(artifact, linked)]));
    // It is reported, and applied over by nobody.
    assert_eq!(baseline(stage), applied);
    assert!(landed(stage, held));
    for machine in stage.machines() {
        assert_eq!(stage.scope(machine)?, ScopeState::Normal);
    }
    let seen = stage.see(|tables| View(tables).installation());
    assert_eq!(seen.map(|(_, recovering)| recovering), Some(false));
    assert!(said(stage, "rae: leave recovery, try 0: done"));
    assert!(said(stage, ": a request lands"));
    Ok(())
}

/// The backup does not know of the attempt: what lands is nobody's, and nothing is matched by
/// an identifier.
fn erased(stage: &mut Stage) -> Step {
    let held = held(stage, Span::seconds(2), false)?;
    assert!(stage.see(|tables| {
        let attempts = &tables.execution.attempts;
        attempts.get(Eye::COMMITTED, &held.attempt).is_none()
    }));
    stage.until_landed()?;
    let server = Arc::clone(&held.server);
    stage.account_scopes(&server, held.stopped_at)?;
    let machine = held.subject.machine;
    assert_eq!(stage.scope(machine)?, ScopeState::Unresolved);
    let ended = ends(stage, &held, false)?;
    assert_eq!(ended, Some(OperationState::Cancelled));
    left(stage, &held, None)
}

/// The backup knows of it, and it lands after it was accounted for: it is its operation's.
fn remembered(stage: &mut Stage) -> Step {
    let held = held(stage, Span::seconds(90), true)?;
    let server = Arc::clone(&held.server);
    stage.account_scopes(&server, held.stopped_at)?;
    assert!(!landed(stage, &held));
    let accounted = stage.see(|tables| {
        let accountings = &tables.execution.accountings;
        accountings.get(Eye::COMMITTED, &held.attempt).is_some()
    });
    assert!(accounted, "the attempt is accounted for with its scope");
    // No restored operation retries: its approval is of another epoch.
    let ended = ends(stage, &held, true)?;
    assert_eq!(ended, Some(OperationState::Failed));
    stage.until_landed()?;
    assert!(landed(stage, &held));
    left(stage, &held, Some(held.owned.operation))
}

// covers-part: PA-REC-4 (S7's late landing, in the simulated world)
#[test]
fn a_request_whose_attempt_a_restore_erased_lands_as_drift_of_nobody_and_the_mode_is_left() {
    holds(erased);
    violates(&[Rule::ProcessEpoch], erased, OWNS);
}

#[test]
fn a_request_that_lands_after_its_accounting_is_linked_to_its_operation_and_the_mode_is_left() {
    holds(remembered);
    violates(&[Rule::ProcessEpoch], remembered, OWNS);
    violates(
        &[Rule::LateLandingLinked],
        remembered,
        "a late landing is linked to its operation",
    );
}
