//! Who may do what (PA §10): somebody asks for what a rule refuses them, or comes in by what
//! lets nobody in.

use std::sync::Arc;

use bronzeward_core::id::{EpochId, PrincipalId, TokenId, kind};
use bronzeward_core::principal::{Role, Roles, Subject};
use bronzeward_core::token::Token;

use super::stage::{ADMIN, APPROVER, Stage, Step};
use super::{Witness, rows};
use crate::people::acts::made;
use crate::people::hand::{Hand, Person};
use crate::people::tools::AUTOMATION;
use crate::pg::Eye;
use crate::sched::ProcessId;
use crate::seed::End;
use crate::server::Server;

const BOT: Person = Person {
    name: AUTOMATION,
    groups: &["author", "publisher"],
};
const ANOTHER_PUBLISHER: Person = Person {
    name: "pat",
    groups: &["publisher"],
};
const BOTH: Person = Person {
    name: "pat",
    groups: &["publisher", "approver"],
};
const ANOTHER_APPROVER: Person = Person {
    name: "van",
    groups: &["approver"],
};
const VIEWER: Person = Person {
    name: "max",
    groups: &["viewer"],
};

fn principal(stage: &Stage, name: &str) -> Step<PrincipalId> {
    let found = stage.see(|tables| {
        let mut rows = tables.authoring.principals.values(Eye::COMMITTED);
        let row = rows.find(|row| match &row.subject {
            Subject::Human { subject, .. } => subject == name,
            Subject::Service { name: called, .. } => called == name,
        });
        row.map(|row| row.id)
    });
    found.ok_or_else(|| End::Error(format!("{name} is nobody")))
}

/// Somebody is revoked while what they ask for is under way.
fn revoked_meanwhile(stage: &mut Stage) -> Step {
    let (desk, server) = (stage.server()?, stage.server()?);
    let plan = stage.subject()?.plan;
    let asking = stage.ask(&server, ANOTHER_APPROVER, move |hand| async move {
        hand.cancel(plan).await
    });
    stage.until_said(&server, "read idempotency record")?;
    stage.hold(&server);
    let who = principal(stage, ANOTHER_APPROVER.name)?;
    stage.asked(&desk, ADMIN, move |hand| async move {
        hand.revoke_identity(who).await
    })?;
    stage.let_go(&server);
    stage.finish(&asking).map(drop)
}

/// A plan that was approved in another epoch is approved in this one, and then the approval
/// that was replaced is revoked.
fn replaced_approval_revoked(stage: &mut Stage) -> Step {
    let server = stage.server()?;
    let subject = stage.subject()?;
    let (plan, replaced) = (subject.plan, subject.approval);
    stage.alter(
        |tables| &mut tables.execution.approvals,
        replaced,
        |record| record.approval.epoch = EpochId::from_bits(1),
    )?;
    stage.asked(&server, APPROVER, move |hand| async move {
        hand.approve(plan).await
    })?;
    stage
        .asked(&server, APPROVER, move |hand| async move {
            hand.revoke_approval(replaced).await
        })
        .map(drop)
}

fn cancelled_by_another(stage: &mut Stage) -> Step {
    let server = stage.server()?;
    let plan = stage.subject()?.plan;
    stage
        .asked(&server, ANOTHER_PUBLISHER, move |hand| async move {
            hand.cancel(plan).await
        })
        .map(drop)
}

/// Somebody freezes a machine.
fn frozen_by(stage: &mut Stage, server: &Arc<Server>, person: Person) -> Step {
    let machine = stage.subject()?.machine;
    stage
        .asked(server, person, move |hand| async move {
            hand.freeze(machine).await
        })
        .map(drop)
}

fn frozen_by_a_viewer(stage: &mut Stage) -> Step {
    let server = stage.server()?;
    frozen_by(stage, &server, VIEWER)
}

/// A subject that the deployment denies, whose row nobody has revoked.
fn frozen_by_somebody_denied(stage: &mut Stage) -> Step {
    stage.sim.state().house.denying.insert(APPROVER.name);
    let server = stage.server()?;
    frozen_by(stage, &server, APPROVER)
}

/// An automation gives a machine another endpoint.
fn endpoint_changed_by_automation(stage: &mut Stage) -> Step {
    let server = stage.server()?;
    let subject = stage.subject()?;
    let (machine, mut other) = (subject.machine, subject.binding.route);
    other.port = 50_001;
    stage
        .asked(&server, BOT, move |hand| async move {
            hand.change_endpoint(machine, other).await
        })
        .map(drop)
}

/// One person plans and approves.
fn approved_by_its_creator(stage: &mut Stage) -> Step {
    let server = stage.server()?;
    let subject = stage.subject()?;
    let (release, machine) = (subject.binding.release, subject.machine);
    let ended = stage.asked(&server, BOTH, move |hand| async move {
        hand.plan(release, machine, false).await
    })?;
    let plan = made::<kind::Plan>(&ended);
    let plan = plan.ok_or_else(|| End::Error(format!("a plan: {ended:?}")))?;
    stage
        .asked(&server, BOTH, move |hand| async move {
            hand.approve(plan).await
        })
        .map(drop)
}

/// The tool gives the automation another token.
fn rotated(stage: &mut Stage, roles: Option<Roles>) -> Step<bool> {
    let hand = Hand::new(&stage.sim, ADMIN);
    let work = async move { hand.rotate_token_to(roles).await };
    let rotating = stage.begin(ProcessId::WORLD, work);
    stage.finish(&rotating)
}

fn token_for_an_approver(stage: &mut Stage) -> Step {
    let _server = stage.server()?;
    rotated(stage, Some([Role::Author, Role::Approver].into())).map(drop)
}

/// What the automation presents is another text from here on.
fn presents(stage: &Stage, text: String) {
    let mut state = stage.sim.state();
    state.outside.credentials.insert(AUTOMATION, text);
}

fn presented(stage: &Stage) -> Step<String> {
    let state = stage.sim.state();
    let text = state.outside.credentials.get(AUTOMATION).cloned();
    text.ok_or_else(|| End::Error("the automation has no token".to_owned()))
}

fn in_by_a_replaced_token(stage: &mut Stage) -> Step {
    let server = stage.server()?;
    let before = presented(stage)?;
    if !rotated(stage, None)? {
        return Err(End::Error("a rotation".to_owned()));
    }
    presents(stage, before);
    frozen_by(stage, &server, BOT)
}

fn token(stage: &Stage) -> Step<TokenId> {
    let owner = principal(stage, AUTOMATION)?;
    let of = |token: &Token| token.owner == owner && token.revoked_at.is_none();
    let found = stage.see(|tables| {
        let rows = tables.authoring.tokens.values(Eye::COMMITTED);
        let mut tokens = rows.map(|row| &row.token);
        tokens.find(|token| of(token)).map(|token| token.id)
    });
    found.ok_or_else(|| End::Error("no token".to_owned()))
}

fn in_by_an_expired_token(stage: &mut Stage) -> Step {
    let server = stage.server()?;
    let (token, now) = (token(stage)?, stage.now());
    stage.alter(
        |tables| &mut tables.authoring.tokens,
        token,
        |row| row.token.expires_at = now,
    )?;
    frozen_by(stage, &server, BOT)
}

/// The token is of the epoch before an entry, and nobody has reissued it.
fn in_by_a_token_from_before(stage: &mut Stage) -> Step {
    let machine = stage.subject()?.machine;
    let backup = stage.back_up();
    let stopped_at = stage.now();
    stage.restore(&backup)?;
    stage.enter(stopped_at)?;
    let server = stage.server()?;
    stage
        .asked(&server, BOT, move |hand| async move {
            hand.freeze(machine).await
        })
        .map(drop)
}

const AUTOMATED: &str = "automation holds no right that is a human's";

pub const WITNESSES: &[Witness] = rows! {
    "revoked meanwhile", [ActorNotRevoked], "a revoked identity decides nothing",
        revoked_meanwhile;
    "a replaced approval is revoked", [RevokesCurrentApproval],
        "a plan is revoked with the approval it rests on", replaced_approval_revoked;
    "cancelled by another publisher", [CancelledByCreator],
        "a publisher cancels its own plans", cancelled_by_another;
    "frozen by a viewer", [RoleQualifies], "an act is done under a role that may do it",
        frozen_by_a_viewer;
    "frozen by somebody denied", [DeniedSubjects], "a denied subject does nothing",
        frozen_by_somebody_denied;
    "an endpoint changed by automation", [HumanOnly], "only a human does what is a human's",
        endpoint_changed_by_automation;
    "approved by its creator", [SelfApprovalMarked], "an approval of one's own plan says so",
        approved_by_its_creator;
    "a token for an approver", [AutomationRoles AutomationRolesCheck], AUTOMATED,
        token_for_an_approver;
    "a token for an approver, by the check", [AutomationRolesCheck AutomationRoles], AUTOMATED,
        token_for_an_approver;
    "in by a replaced token", [TokenNotRevoked], "a replaced token lets nobody in",
        in_by_a_replaced_token;
    "in by an expired token", [TokenExpires], "an expired token lets nobody in",
        in_by_an_expired_token;
    "in by a token from before an entry", [TokenEpoch],
        "a token of another epoch lets nobody in", in_by_a_token_from_before;
};
