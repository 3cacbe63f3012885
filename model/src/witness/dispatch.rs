//! What stands between an approved plan and its request (EaR 3): one schedule, another premise
//! a rule.
//!
//! Evidence is gathered, the plan is committed, an attempt is recorded, by one controller;
//! between two of them something happens that the next must refuse.

use bronzeward_core::fence::Generation;
use bronzeward_core::id::EpochId;
use bronzeward_core::observation::Purpose;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::rules::Rule;
use bronzeward_core::time::Span;
use bronzeward_engine::tx::dispatch::{Evidence, Owned};

use std::sync::Arc;

use super::Witness;
use super::stage::{ADMIN, APPROVER, PUBLISHER, Stage, Step};
use super::steps::Subject;
use crate::pg::Eye;
use crate::ports::node;
use crate::seed::End;
use crate::server::Server;

/// When the premise happens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Approved,
    Gathered,
    Committed,
}

/// The schedule as far as it has come.
struct Play {
    subject: Subject,
    /// Where people ask, and another controller stands by.
    desk: Arc<Server>,
    server: Arc<Server>,
    evidence: Option<Evidence>,
    owned: Option<Owned>,
}

impl Play {
    fn evidence(&mut self) -> &mut Evidence {
        self.evidence.as_mut().expect("the evidence is gathered")
    }

    fn owned(&self) -> &Owned {
        self.owned.as_ref().expect("the plan is committed")
    }
}

type Premise = fn(&mut Stage, &mut Play) -> Step;

fn dispatch(stage: &mut Stage, at: Moment, premise: Premise) -> Step {
    let (desk, server) = (stage.server()?, stage.server()?);
    let mut play = Play {
        subject: stage.subject()?,
        desk,
        server,
        evidence: None,
        owned: None,
    };
    let now = |moment, stage: &mut Stage, play: &mut Play| match moment == at {
        true => premise(stage, play),
        false => Ok(()),
    };
    now(Moment::Approved, stage, &mut play)?;
    let server = Arc::clone(&play.server);
    let evidence = stage.gather(&server, &play.subject, None)?;
    play.evidence = Some(evidence);
    now(Moment::Gathered, stage, &mut play)?;
    let evidence = play.evidence().clone();
    play.owned = stage.commit(&server, play.subject.plan, &evidence)?;
    if play.owned.is_none() {
        return Ok(());
    }
    now(Moment::Committed, stage, &mut play)?;
    let evidence = play.evidence().clone();
    stage.attempt(&server, play.owned(), &evidence).map(drop)
}

fn cancelled(stage: &mut Stage, play: &mut Play) -> Step {
    let plan = play.subject.plan;
    stage
        .asked(&play.desk, PUBLISHER, move |hand| async move {
            hand.cancel(plan).await
        })
        .map(drop)
}

fn revoked(stage: &mut Stage, play: &mut Play) -> Step {
    let approval = play.subject.approval;
    stage
        .asked(&play.desk, APPROVER, move |hand| async move {
            hand.revoke_approval(approval).await
        })
        .map(drop)
}

/// Its approver is revoked.
fn approver_revoked(stage: &mut Stage, play: &mut Play) -> Step {
    let approval = play.subject.approval;
    let identity = stage.see(|tables| {
        let record = tables.execution.approvals.get(Eye::COMMITTED, &approval);
        record.map(|record| record.approval.approver.principal)
    });
    let identity = identity.ok_or_else(|| End::Error("no such approval".to_owned()))?;
    stage
        .asked(&play.desk, ADMIN, move |hand| async move {
            hand.revoke_identity(identity).await
        })
        .map(drop)
}

/// The plan runs out now.
fn expired(stage: &mut Stage, play: &mut Play) -> Step {
    let now = stage.now();
    stage.rebind(&mut play.subject, |binding| binding.expires_at = now)
}

/// The plan lets an observation stand for a second, which passes.
fn an_old_reading(stage: &mut Stage, play: &mut Play) -> Step {
    stage.rebind(&mut play.subject, |binding| {
        binding.max_observation_age = Span::seconds(1);
    })?;
    stage.pass(Span::seconds(2))
}

/// A hand changes the configuration before anybody reads it.
fn edited(stage: &mut Stage, play: &mut Play) -> Step {
    stage.edit_by_hand(&play.subject)
}

fn of_another_epoch(stage: &mut Stage, play: &mut Play) -> Step {
    stage.alter(
        |tables| &mut tables.execution.approvals,
        play.subject.approval,
        |record| {
            record.approval.epoch = EpochId::from_bits(1);
        },
    )
}

fn rebased(stage: &mut Stage, play: &mut Play) -> Step {
    stage.rebase(&play.subject)
}

fn reassigned(stage: &mut Stage, play: &mut Play) -> Step {
    stage.reassign(&play.subject)
}

fn another_desired(stage: &mut Stage, play: &mut Play) -> Step {
    stage.desire_another(&play.subject)
}

fn frozen(stage: &mut Stage, play: &mut Play) -> Step {
    let machine = play.subject.machine;
    stage
        .asked(&play.desk, ADMIN, move |hand| async move {
            hand.freeze(machine).await
        })
        .map(drop)
}

fn recovering(stage: &mut Stage, _: &mut Play) -> Step {
    stage.alter(
        |tables| &mut tables.authoring.installation,
        (),
        |row| row.recovery_mode = true,
    )
}

fn drifted(stage: &mut Stage, play: &mut Play) -> Step {
    stage.open_drift(&play.subject)
}

/// The plan reverts a drift whose record is closed.
fn returned(stage: &mut Stage, play: &mut Play) -> Step {
    stage.rebind(&mut play.subject, |binding| {
        binding.drift = Some(TimelineRevision(1));
    })
}

fn replaced(stage: &mut Stage, play: &mut Play) -> Step {
    let route = play.subject.binding.route;
    stage.outside(|state| node::replace(state, route))
}

fn another_minor(stage: &mut Stage, play: &mut Play) -> Step {
    let route = play.subject.binding.route;
    stage.outside(|state| {
        if let Some(node) = state.outside.nodes.at_mut(route) {
            node.running_version = "v1.12.3".to_owned();
        }
    })
}

/// A hand changes the configuration, and somebody reads it.
fn edited_and_read(stage: &mut Stage, play: &mut Play) -> Step {
    stage.edit_by_hand(&play.subject)?;
    stage.read(&play.desk, play.subject.machine, Purpose::Recovery)
}

/// The node moved to another address, where the evidence was gathered.
fn readdressed(stage: &mut Stage, play: &mut Play) -> Step {
    let route = play.subject.binding.route;
    let mut other = route;
    other.port = 50_001;
    stage.outside(|state| {
        if let Some(node) = state.outside.nodes.at(route).cloned() {
            state.outside.nodes.place(other, node);
        }
    })?;
    play.evidence().observation.started.endpoint = other;
    let id = play.evidence().observation.started.id;
    stage.alter(
        |tables| &mut tables.execution.observations,
        id,
        |seen| seen.started.endpoint = other,
    )
}

fn another_access(_: &mut Stage, play: &mut Play) -> Step {
    if let Some(access) = &mut play.evidence().access {
        access.version += 1;
    }
    Ok(())
}

fn a_rewritten_access(_: &mut Stage, play: &mut Play) -> Step {
    if let Some(access) = &mut play.evidence().access {
        access.created = "2020-01-01T00:00:00Z".to_owned();
    }
    Ok(())
}

/// Another controller's evidence for the same plan.
fn of_another(stage: &mut Stage, play: &mut Play) -> Step {
    let desk = Arc::clone(&play.desk);
    let evidence = stage.gather(&desk, &play.subject, None)?;
    play.evidence = Some(evidence);
    Ok(())
}

/// The plan lets a check stand for a second, which passes while its evidence stays fresh.
fn an_old_check(stage: &mut Stage, play: &mut Play) -> Step {
    stage.rebind(&mut play.subject, |binding| {
        binding.check_validity = Span::seconds(1);
    })?;
    stage.pass(Span::seconds(2))
}

/// Somebody applied the artifact by hand before anything was sent.
fn applied_by_hand(stage: &mut Stage, play: &mut Play) -> Step {
    stage.rebind(&mut play.subject, |binding| {
        std::mem::swap(
            &mut binding.artifact_digest,
            &mut binding.pre_dispatch_digest,
        );
    })
}

/// A person has another process take the operation over.
fn taken_over(stage: &mut Stage, play: &mut Play) -> Step {
    let operation = play.owned().operation;
    stage
        .asked(&play.desk, ADMIN, move |hand| async move {
            hand.take_over_operation(operation, Generation::FIRST).await
        })
        .map(drop)
}

/// The same process: the restart of an instance whose row shows the generation again.
fn owned_by_another_start(stage: &mut Stage, play: &mut Play) -> Step {
    let other = play.desk.db.process().owner;
    stage.alter(
        |tables| &mut tables.execution.operations,
        play.owned().operation,
        |operation| {
            if let Some(fence) = &mut operation.row.fence {
                fence.owner = other;
            }
        },
    )
}

/// It was taken over and taken back.
fn taken_back(stage: &mut Stage, play: &mut Play) -> Step {
    stage.alter(
        |tables| &mut tables.execution.operations,
        play.owned().operation,
        |operation| {
            if let Some(fence) = &mut operation.row.fence {
                fence.generation = fence.generation.next().next();
            }
        },
    )
}

/// Its row is of the epoch that a recovery entry minted.
fn of_a_new_epoch(stage: &mut Stage, play: &mut Play) -> Step {
    stage.alter(
        |tables| &mut tables.execution.operations,
        play.owned().operation,
        |operation| {
            if let Some(fence) = &mut operation.row.fence {
                fence.epoch = EpochId::from_bits(1);
            }
        },
    )
}

/// Two attempts follow each other, the first without an answer.
fn twice(stage: &mut Stage) -> Step {
    let (desk, server) = (stage.server()?, stage.server()?);
    let subject = stage.subject()?;
    let evidence = stage.gather(&server, &subject, None)?;
    let Some(owned) = stage.commit(&server, subject.plan, &evidence)? else {
        return Ok(());
    };
    stage.attempt(&server, &owned, &evidence)?;
    stage.pass(Span::seconds(11))?;
    let row = stage.operation(owned.operation)?;
    let Some(owned) = stage.take_over(&desk, &row)? else {
        return Ok(());
    };
    let evidence = stage.gather(&desk, &subject, Some(&owned))?;
    stage.attempt(&desk, &owned, &evidence).map(drop)
}

/// The machine's endpoint is another one by now, where the same node answers.
fn moved(stage: &mut Stage) -> Step {
    let subject = stage.subject()?;
    let route = subject.binding.route;
    let mut other = route;
    other.port = 50_001;
    stage.outside(|state| {
        if let Some(node) = state.outside.nodes.at(route).cloned() {
            let held = crate::change::Outside::InForce {
                endpoint: other,
                machine: node.machine,
                attempt: None,
                digest: node.digest(),
            };
            state.outside.nodes.place(other, node);
            state.journal.outside(held);
        }
    })?;
    stage.alter(
        |tables| &mut tables.authoring.machines,
        subject.machine,
        |machine| machine.endpoint = other,
    )?;
    let _controller = stage.controller()?;
    stage.pass(Span::seconds(8))
}

const FRESH: &str = "an attempt rests on fresh evidence";
const GATE: &str = "no mutation through a closed gate";
const OWNER: &str = "an attempt is its owner's";
const MOVED: &str = "only the owner moves its operation";

/// A row: what happens, the rules, the invariant, when, and how.
macro_rules! rows {
    ($($name:literal, [$($rule:ident)+], $invariant:expr, $moment:ident, $premise:ident;)+) => {
        &[
            $(Witness {
                name: $name,
                rules: &[$(Rule::$rule,)+],
                invariant: $invariant,
                act: |stage| dispatch(stage, Moment::$moment, $premise),
            },)+
            Witness {
                name: "read at another address",
                rules: &[Rule::BoundRouteDialled, Rule::RouteBound],
                invariant: FRESH,
                act: moved,
            },
            Witness {
                name: "a second request beside an unanswered one",
                rules: &[Rule::SafeToRetryRecorded],
                invariant: "nothing is sent beside an unaccounted attempt",
                act: twice,
            },
        ]
    };
}

pub const WITNESSES: &[Witness] = rows! {
    "revoked, whole authority", [PlanAuthorises],
        "a revoked approval authorises nothing", Committed, revoked;
    "run out", [PlanUnexpired], "an expired plan authorises nothing", Committed, expired;
    "its approver is revoked", [ApproverNotRevoked],
        "a revoked approver authorises nothing", Committed, approver_revoked;
    "cancelled after the commitment", [PlanNotCancelled],
        "a cancelled plan authorises nothing", Committed, cancelled;
    "revoked after the commitment", [ApprovalNotRevoked],
        "a revoked approval authorises nothing", Committed, revoked;
    "approved in another epoch", [ApprovalOfThisEpoch],
        "nothing from another epoch authorises", Committed, of_another_epoch;
    "another baseline, whole comparison", [BindingUnchanged],
        "the baseline is the bound one", Gathered, rebased;
    "another baseline", [BaselineUnchanged],
        "the baseline is the bound one", Gathered, rebased;
    "another assignment", [AssignmentUnchanged],
        "the assignment is the bound one", Gathered, reassigned;
    "another release is Desired", [DesiredUnchanged],
        "Desired stands at the commitment", Gathered, another_desired;
    "frozen, whole gate", [GateOpen], GATE, Gathered, frozen;
    "frozen", [NotFrozen], GATE, Gathered, frozen;
    "recovery mode", [ScopeReleased], GATE, Gathered, recovering;
    "a drift that no plan binds", [DriftBound], GATE, Gathered, drifted;
    "a drift that has ended", [BoundDriftOpen], GATE, Approved, returned;
    "another node at the address", [IdentityMatches], FRESH, Approved, replaced;
    "another minor", [RunningMinor], FRESH, Approved, another_minor;
    "read otherwise since", [NotContradicted], FRESH, Gathered, edited_and_read;
    "gathered at another address", [RouteBound], FRESH, Gathered, readdressed;
    "another node, whole evidence", [EvidenceHolds], FRESH, Approved, replaced;
    "a reading that has run out", [EvidenceFresh], FRESH, Gathered, an_old_reading;
    "another configuration", [PreDispatchDigest], FRESH, Approved, edited;
    "another access version", [AccessVersionUsed], FRESH, Gathered, another_access;
    "an access written anew", [AccessVersionIdentity], FRESH, Gathered, a_rewritten_access;
    "another controller's evidence", [EvidenceIsOwn], FRESH, Gathered, of_another;
    "a check that has run out", [CheckValid], FRESH, Gathered, an_old_check;
    "applied by hand", [ArtifactDigestOnRetryOnly], FRESH, Approved, applied_by_hand;
    "another release is Desired by now", [AttemptKeepsDesired],
        "a publication after the commitment leaves its operation alone",
        Committed, another_desired;
    "taken over before the attempt", [AttemptByOwner], MOVED, Committed, taken_over;
    "another start of the same instance", [FenceOwner], MOVED, Committed, owned_by_another_start;
    "taken over and taken back", [FenceGeneration], OWNER, Committed, taken_back;
    "of the epoch before a recovery", [FenceEpoch], "nothing from another epoch goes on",
        Committed, of_a_new_epoch;
};
