//! What a reading makes of a machine's drift record (EaR 6.1): it is held where it stands
//! while something happens, then recorded.

use std::collections::BTreeMap;
use std::sync::Arc;

use bronzeward_core::observation::Purpose;
use bronzeward_core::time::Span;
use bronzeward_engine::observe::Wanted;
use bronzeward_engine::ports::node::Asked;
use bronzeward_engine::tx::dispatch::{AccountingInput, Evidence};

use super::stage::{ADMIN, PUBLISHER, Stage, Step};
use super::steps::Subject;
use super::{Witness, rows};
use crate::seed::End;
use crate::server::{SETTLE_FLOOR, Server};

struct Play {
    desk: Arc<Server>,
    subject: Subject,
    /// Gathered before anything happened.
    evidence: Evidence,
}

type Premise = fn(&mut Stage, &Play) -> Step;

/// A reading for drift, held once it has said `at`.
fn detected(stage: &mut Stage, edit: bool, at: &'static str, premise: Premise) -> Step {
    let (desk, server) = (stage.server()?, stage.server()?);
    let subject = stage.subject()?;
    let evidence = stage.gather(&desk, &subject, None)?;
    if edit {
        stage.edit_by_hand(&subject)?;
    }
    let (of, machine) = (Arc::clone(&server), subject.machine);
    let reading = stage.begin(server.id, async move {
        let id = of.db.mint();
        let wanted = Wanted::of_machine(id, machine, Purpose::Drift, Asked::EVERYTHING);
        of.observer.detect(&wanted).await.is_ok()
    });
    stage.until_said(&server, at)?;
    stage.hold(&server);
    let play = Play {
        desk,
        subject,
        evidence,
    };
    premise(stage, &play)?;
    stage.let_go(&server);
    stage.finish(&reading).map(drop)
}

fn rebased(stage: &mut Stage, play: &Play) -> Step {
    stage.rebase(&play.subject)
}

fn read_since(stage: &mut Stage, play: &Play) -> Step {
    stage.read(&play.desk, play.subject.machine, Purpose::Recovery)
}

fn committed(stage: &mut Stage, play: &Play) -> Step {
    stage
        .commit(&play.desk, play.subject.plan, &play.evidence)
        .map(drop)
}

fn already_open(stage: &mut Stage, play: &Play) -> Step {
    stage.open_drift(&play.subject)
}

/// A request is held until its answer was accounted for as lost and its operation has ended.
fn landed_late(stage: &mut Stage) -> Step {
    let (desk, server) = (stage.server()?, stage.server()?);
    let subject = stage.subject()?;
    let refused = || End::Error("an attempt in a quiet world".to_owned());
    stage.hold_requests(Span::seconds(60));
    let evidence = stage.gather(&server, &subject, None)?;
    let owned = stage.commit(&server, subject.plan, &evidence)?;
    let owned = owned.ok_or_else(refused)?;
    let permit = stage.attempt(&server, &owned, &evidence)?;
    let permit = permit.ok_or_else(refused)?;
    let attempt = permit.get().attempt().id;
    let sending = stage.send(&server, &subject, permit)?;
    let answer = stage.finish(&sending)?;
    stage.answer(&server, &owned, attempt, answer)?;
    let machine = subject.machine;
    let start = stage.reading(&server, machine, Purpose::Recovery)?;
    stage.pass(SETTLE_FLOOR)?;
    let end = stage.reading(&server, machine, Purpose::Recovery)?;
    stage.pass(SETTLE_FLOOR)?;
    let input = AccountingInput {
        operation: owned.operation,
        attempt,
        start,
        end,
        facts: BTreeMap::new(),
    };
    stage.asked(&desk, ADMIN, move |hand| async move {
        hand.account_with(input).await
    })?;
    let plan = subject.plan;
    stage.asked(&desk, PUBLISHER, move |hand| async move {
        hand.cancel(plan).await
    })?;
    stage.observe(&server, &subject, &owned, Purpose::Completion)?;
    stage.judge_operation(&server, &owned)?;
    stage.until_landed()?;
    stage.detect(&desk, machine)
}

const DIALLED: &str = "dials a node";
const READ: &str = "reads a node's health";
const RECORD: &str = "a drift record says what a machine last showed";

pub const WITNESSES: &[Witness] = rows! {
    "compared with another baseline", [DriftBaselineUnmoved], RECORD,
        |stage| detected(stage, true, DIALLED, rebased);
    "a newer reading decided", [DriftNotSuperseded], RECORD,
        |stage| detected(stage, true, READ, read_since);
    "an operation took the machine", [DriftScopeFree], RECORD,
        |stage| detected(stage, true, READ, committed);
    "a second record", [DriftOpensOnce OneOpenDrift], "one open drift record per machine",
        |stage| detected(stage, true, DIALLED, already_open);
    "a second record, by the index", [OneOpenDrift DriftOpensOnce],
        "one open drift record per machine",
        |stage| detected(stage, true, DIALLED, already_open);
    "landed after it was accounted for", [LateLandingLinked],
        "a late landing is linked to its operation", landed_late;
    "it shows Applied again", [DriftReturns], "a machine that shows Applied has no open drift",
        |stage| detected(stage, false, DIALLED, already_open);
};
