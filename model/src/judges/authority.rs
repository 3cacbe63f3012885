//! Who did what, under which role, in which epoch, and whose tokens there are (PA §9.2, §10.2 to
//! §10.5, EaR 8.7).

use std::collections::BTreeMap;

use bronzeward_core::authority::SelfApproval;
use bronzeward_core::id::{PrincipalId, RequestId};
use bronzeward_core::principal::{PrincipalKind, Role, Subject};
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::ActRow;

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::Change;
use crate::server::Asking;
use crate::store::execution::ApprovalRecord;

const AUTHOR: &[Role] = &[Role::Author];
const PUBLISHER: &[Role] = &[Role::Publisher];
const APPROVER: &[Role] = &[Role::Approver];
const RECOVERY: &[Role] = &[Role::RecoveryAdmin];
const REVOKERS: &[Role] = &[Role::Approver, Role::RecoveryAdmin];
const CANCELLERS: &[Role] = &[Role::Publisher, Role::Approver, Role::RecoveryAdmin];
const FREEZERS: &[Role] = &[
    Role::Author,
    Role::Publisher,
    Role::Approver,
    Role::RecoveryAdmin,
];

/// An act: who may do it, whether only a human, and whether somebody whose revocation has
/// committed is refused it inside its transaction.
type May = (&'static str, &'static [Role], bool, bool);

/// PA §9.2's table by the acts that its routes record.
const MAY: &[May] = &[
    ("cluster-created", AUTHOR, true, false),
    ("machine-created", AUTHOR, true, false),
    ("endpoint-changed", AUTHOR, true, false),
    ("machine-decommissioned", RECOVERY, true, false),
    ("draft-created", AUTHOR, false, false),
    ("draft-updated", AUTHOR, false, false),
    ("draft-discarded", AUTHOR, false, false),
    ("draft-update-refused", AUTHOR, false, false),
    ("publication-requested", PUBLISHER, false, false),
    ("ingestion-started", AUTHOR, true, false),
    ("ingestion-taken-over", AUTHOR, true, false),
    ("ingestion-abandoned", AUTHOR, true, false),
    ("plan-created", PUBLISHER, false, false),
    ("plan-approved", APPROVER, true, true),
    ("plan-cancelled", CANCELLERS, false, true),
    ("approval-revoked", REVOKERS, false, true),
    ("identity-revoked", RECOVERY, true, false),
    ("machine-frozen", FREEZERS, false, true),
    ("machine-unfrozen", APPROVER, false, true),
    ("recovery-entered", RECOVERY, true, false),
    ("recovery-exited", RECOVERY, true, false),
    ("scopes-accounted", RECOVERY, true, false),
    ("scope-marked", RECOVERY, true, true),
    ("scope-released", RECOVERY, true, false),
    ("attempt-accounted", RECOVERY, true, false),
    ("operation-taken-over", RECOVERY, true, false),
    ("operation-resolved", RECOVERY, true, true),
];

/// The operator's own tool has no role.
const TOOL: [&str; 4] = [
    "token-issued",
    "token-rotated",
    "token-revoked",
    "service-identity-created",
];

/// `entered` is when the last entry committed.
pub fn look(
    case: &Case<'_>,
    asked: &BTreeMap<RequestId, Asking>,
    entered: Option<DbTime>,
) -> Verdict {
    for change in case.changes {
        match change {
            Change::Act(changed) => {
                let (Some(act), None) = (&changed.after, &changed.before) else {
                    return violation("acts are kept", "an act changed");
                };
                let asking = acted(case, &act.row, asked)?;
                if act.row.kind == PrincipalKind::Service
                    && asking.is_some_and(|asking| entered.is_none_or(|entry| asking.at > entry))
                {
                    token(case, &act.row)?;
                }
            }
            Change::Approval(changed) => {
                if let Some(approval) = &changed.after {
                    marked(case, approval)?;
                }
            }
            Change::Token(changed) => {
                if let Some(token) = &changed.after {
                    unrevoked(case, token.token.owner)?;
                }
            }
            Change::Principal(changed) => {
                if let Some(principal) = &changed.after {
                    unrevoked(case, principal.id)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn acted<'a>(
    case: &Case<'_>,
    act: &ActRow,
    asked: &'a BTreeMap<RequestId, Asking>,
) -> Result<Option<&'a Asking>, super::Violation> {
    let said = || format!("{} by {}", act.action, act.principal);
    if Some(act.epoch) != case.epoch() {
        return violation("an act is of the epoch it leaves", said());
    }
    let action = act.action.as_str();
    if TOOL.contains(&action) {
        return match act.request {
            None => Ok(None),
            Some(_) => violation("no route issues tokens", said()),
        };
    }
    let Some((_, roles, human_only, stands)) = MAY.iter().find(|may| may.0 == action) else {
        return violation("every act is in the table of routes", said());
    };
    let Some(role) = act.role.filter(|role| roles.contains(role)) else {
        return violation("an act is done under a role that may do it", said());
    };
    if *human_only && act.kind != PrincipalKind::Human {
        return violation("only a human does what is a human's", said());
    }
    let Some(asking) = act.request.and_then(|request| asked.get(&request)) else {
        return violation("an act answers a request", said());
    };
    if !asking.roles.contains(&role) {
        return violation("nobody acts under a role they do not have", said());
    }
    let principal = case.tables.authoring.principals.get(SEEN, &act.principal);
    let Some(principal) = principal else {
        return violation("an act is its principal's", said());
    };
    let name = match &principal.subject {
        Subject::Human { subject, .. } => subject,
        Subject::Service { name, .. } => name,
    };
    if name != asking.name || principal.kind() != act.kind {
        return violation("an act is its principal's", said());
    }
    if *stands && principal.revoked_at.is_some() {
        return violation("a revoked identity decides nothing", said());
    }
    if asking.epoch.is_some_and(|epoch| epoch != act.epoch) {
        return violation("no effect in an epoch that is not expected", said());
    }
    if action == "plan-cancelled" && role == Role::Publisher {
        let created = |plan: &crate::store::execution::PlanRecord| {
            let created = plan.binding.created_by.principal == act.principal;
            created && act.subjects.contains(&plan.binding.id.to_string())
        };
        if !case.tables.execution.plans.values(SEEN).any(created) {
            return violation("a publisher cancels its own plans", said());
        }
    }
    Ok(Some(asking))
}

/// An identity has one token that is not revoked, and none once it is revoked itself (PA §10.2,
/// §10.4).
fn unrevoked(case: &Case<'_>, owner: PrincipalId) -> Verdict {
    let tokens = case.tables.authoring.tokens.values(SEEN);
    let tokens = tokens.filter(|one| one.token.owner == owner && one.token.revoked_at.is_none());
    let unrevoked = tokens.count();
    if unrevoked > 1 {
        return violation("an identity has one token", format!("{owner}"));
    }
    let principal = case.tables.authoring.principals.get(SEEN, &owner);
    let revoked = principal.is_some_and(|principal| principal.revoked_at.is_some());
    match revoked && unrevoked > 0 {
        true => violation("a revoked identity has no token", format!("{owner}")),
        false => Ok(()),
    }
}

/// Whoever was let in since the epoch began has a token of it; one that was let in before is at
/// most refused later.
fn token(case: &Case<'_>, act: &ActRow) -> Verdict {
    let mut tokens = case.tables.authoring.tokens.values(SEEN);
    let current =
        tokens.any(|one| one.token.owner == act.principal && Some(one.token.epoch) == case.epoch());
    match current {
        true => Ok(()),
        false => violation(
            "a token of another epoch lets nobody in",
            format!("{}", act.principal),
        ),
    }
}

/// An approval of a plan that its approver created says so (PA §10.5).
fn marked(case: &Case<'_>, record: &ApprovalRecord) -> Verdict {
    let approval = &record.approval;
    let own = case
        .binding(approval.plan)
        .is_some_and(|binding| binding.created_by.principal == approval.approver.principal);
    match own == approval.self_approval.contains(&SelfApproval::CreatedPlan) {
        true => Ok(()),
        false => violation(
            "an approval of one's own plan says so",
            format!("{}", approval.id),
        ),
    }
}
