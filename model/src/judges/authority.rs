//! Who did what, under which role, in which epoch, what let them in and whose tokens there are
//! (PA §9.2, §10.1 to §10.5, EaR 8.7).

use std::collections::BTreeMap;

use bronzeward_core::authority::SelfApproval;
use bronzeward_core::id::{PrincipalId, RequestId, TokenId};
use bronzeward_core::plan::PlanOperation;
use bronzeward_core::principal::{PrincipalKind, Role, Subject};
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::ActRow;

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::{Change, Changed};
use crate::server::Asking;
use crate::store::authoring::TokenOf;
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

/// What automation may be given a token for (PA §10.2).
const AUTOMATION: [Role; 3] = [Role::Viewer, Role::Author, Role::Publisher];

#[derive(Clone, Debug, Default)]
pub struct Authority {
    /// When a token's end was committed, in this state of the database.
    ended: BTreeMap<TokenId, DbTime>,
    restored: Option<DbTime>,
}

impl Authority {
    /// A token that was replaced may be good again.
    pub fn restored(&mut self, now: DbTime) {
        self.ended.clear();
        self.restored = Some(now);
    }

    /// `entered` is when the last entry committed.
    pub fn look(
        &mut self,
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
                    if let Some(asking) = asking
                        && act.row.kind == PrincipalKind::Service
                    {
                        self.token(case, &act.row, asking, entered)?;
                    }
                }
                Change::Approval(changed) => {
                    if let Some(approval) = &changed.after {
                        marked(case, approval)?;
                    }
                }
                Change::Token(changed) => {
                    self.issued(case, changed)?;
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

    fn issued(&mut self, case: &Case<'_>, changed: &Changed<TokenOf>) -> Verdict {
        let Some(after) = changed.after.as_ref().map(|row| &row.token) else {
            return violation("tokens are kept", "a token is gone");
        };
        if after.revoked_at.is_some() {
            self.ended.entry(after.id).or_insert(case.now);
        }
        match after.roles.iter().all(|role| AUTOMATION.contains(role)) {
            true => Ok(()),
            false => violation(
                "automation holds no right that is a human's",
                format!("{}", after.owner),
            ),
        }
    }

    /// Whoever was let in since the epoch began has a token of it, which had neither expired
    /// nor been replaced when it was presented; one that was let in before is at most refused
    /// later.
    fn token(
        &self,
        case: &Case<'_>,
        act: &ActRow,
        asking: &Asking,
        entered: Option<DbTime>,
    ) -> Verdict {
        let said = || format!("{}", act.principal);
        let own = |one: &&TokenOf| one.token.owner == act.principal;
        let current = |one: &TokenOf| Some(one.token.epoch) == case.epoch();
        let tokens = &case.tables.authoring.tokens;
        let presented = asking.token.and_then(|id| tokens.get(SEEN, &id));
        let presented = presented.filter(own);
        // What a restore took away was there when it was presented.
        let kept = self.restored.is_none_or(|restored| asking.at > restored);
        let of_epoch = match kept {
            true => presented.is_some_and(current),
            false => tokens.values(SEEN).filter(own).any(current),
        };
        if entered.is_none_or(|entry| asking.at > entry) && !of_epoch {
            return violation("a token of another epoch lets nobody in", said());
        }
        let Some(presented) = presented.map(|one| &one.token) else {
            return Ok(());
        };
        if presented.expires_at <= asking.at {
            return violation("an expired token lets nobody in", said());
        }
        match self.ended.get(&presented.id) {
            Some(ended) if *ended < asking.at => {
                violation("a replaced token lets nobody in", said())
            }
            _ => Ok(()),
        }
    }
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
    if case.denied.is_some_and(|names| names.contains(asking.name)) {
        return violation("a denied subject does nothing", said());
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

/// An approval of a plan that its approver created says so, one of a release that its approver
/// published too, and one that overwrites what no reviewer has seen (PA §9.3, §10.5, EaR 6.4).
fn marked(case: &Case<'_>, record: &ApprovalRecord) -> Verdict {
    let approval = &record.approval;
    let said = || format!("{}", approval.id);
    let Some(binding) = case.binding(approval.plan) else {
        return violation("an approval has its plan", said());
    };
    let approver = approval.approver.principal;
    let own = binding.created_by.principal == approver;
    if own != approval.self_approval.contains(&SelfApproval::CreatedPlan) {
        return violation("an approval of one's own plan says so", said());
    }
    let release = case.tables.execution.releases.get(SEEN, &binding.release);
    let published = release.is_some_and(|release| release.row.by.principal == approver);
    if published != approval.self_approval.contains(&SelfApproval::Published) {
        return violation("an approval of one's own release says so", said());
    }
    let applies = matches!(binding.operation, PlanOperation::ApplyConfig(_));
    match (applies && binding.drift.is_some()) == approval.unseen_overwrite {
        true => Ok(()),
        false => violation("an approval of an unseen overwrite says so", said()),
    }
}
