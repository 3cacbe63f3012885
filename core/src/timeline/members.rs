//! An entry's own members as a value tree: what a store keeps as `data` and a read
//! serves. Names are camelCase; a digest has no member here.

use std::collections::BTreeMap;
use std::fmt;

use super::Data;
use crate::authority::SelfApproval;
use crate::observation::{AccessVersion, Read};
use crate::problem::Member;
use crate::revision::TimelineRevision;
use crate::scope::Missing;

fn name(value: impl fmt::Display) -> Member {
    Member::text(value)
}

fn maybe(value: Option<impl fmt::Display>) -> Member {
    value.map_or(Member::Null, name)
}

fn revision(value: TimelineRevision) -> Member {
    Member::Number(value.0)
}

fn names<T: fmt::Display>(values: impl IntoIterator<Item = T>) -> Member {
    Member::List(values.into_iter().map(name).collect())
}

fn facts(facts: &BTreeMap<String, String>) -> Member {
    Member::Object(
        facts
            .iter()
            .map(|(key, value)| (key.clone(), Member::Text(value.clone())))
            .collect(),
    )
}

fn access(read: &Read<AccessVersion>) -> Member {
    match read {
        Read::Value(access) => Member::object([
            ("path", name(&access.path)),
            ("version", Member::Number(access.version)),
            ("createdTime", name(&access.created)),
        ]),
        Read::Unread(cause) => Member::object([("unread", name(cause.as_str()))]),
    }
}

impl Missing {
    /// What a mark found missing, as its entry and its row say it.
    pub fn member(&self) -> Member {
        match self {
            Missing::Observation(id) => Member::object([("observation", name(id))]),
            Missing::Identity => Member::object([("identity", Member::Null)]),
            Missing::TalosAccess => Member::object([("talosAccess", Member::Null)]),
            Missing::Dependency(id) => Member::object([("dependency", name(id))]),
        }
    }
}

impl Data {
    /// The entry's members beside its type.
    pub fn members(&self) -> Member {
        self.of_authority()
            .or_else(|| self.of_dispatch())
            .or_else(|| self.of_outcome())
            .unwrap_or_else(|| self.of_scope())
    }

    /// Plans, approvals and what undoes them.
    fn of_authority(&self) -> Option<Member> {
        let member = match self {
            Data::Plan {
                plan,
                operation,
                release,
            } => Member::object([
                ("plan", name(plan)),
                ("operation", name(operation)),
                ("release", name(release)),
            ]),
            Data::Approval {
                approval,
                plan,
                self_approval,
                unseen_overwrite,
            } => Member::object([
                ("approval", name(approval)),
                ("plan", name(plan)),
                (
                    "selfApproval",
                    names(self_approval.iter().map(|it| SelfApproval::as_str(*it))),
                ),
                ("unseenOverwrite", Member::Bool(*unseen_overwrite)),
            ]),
            Data::ApprovalRevocation {
                approval,
                plan,
                reason,
            } => Member::object([
                ("approval", name(approval)),
                ("plan", name(plan)),
                ("reason", name(reason)),
            ]),
            Data::IdentityRevocation {
                identity,
                plans,
                reason,
            } => Member::object([
                ("identity", name(identity)),
                ("plans", names(plans)),
                ("reason", name(reason)),
            ]),
            Data::Cancellation { plan, reason } => {
                Member::object([("plan", name(plan)), ("reason", name(reason))])
            }
            _ => return None,
        };
        Some(member)
    }

    /// Evidence, the commitment, requests and their answers.
    fn of_dispatch(&self) -> Option<Member> {
        let member = match self {
            Data::ObservationStarted {
                observation,
                purpose,
                endpoint,
                plan,
                operation,
            } => Member::object([
                ("observation", name(observation)),
                ("purpose", name(purpose.as_str())),
                ("endpoint", name(endpoint)),
                ("plan", maybe(*plan)),
                ("operation", maybe(*operation)),
            ]),
            Data::Observation {
                observation,
                purpose,
                basis,
                access: read,
                unread,
            } => Member::object([
                ("observation", name(observation)),
                ("purpose", name(purpose.as_str())),
                ("basis", revision(*basis)),
                ("access", access(read)),
                (
                    "unread",
                    Member::List(
                        unread
                            .iter()
                            .map(|(what, cause)| {
                                Member::object([
                                    ("what", name(what)),
                                    ("code", name(cause.as_str())),
                                ])
                            })
                            .collect(),
                    ),
                ),
            ]),
            Data::UseTimeCheck {
                plan,
                access: read,
                artifact,
            } => Member::object([
                ("plan", name(plan)),
                ("access", access(read)),
                ("artifact", name(artifact.as_str())),
            ]),
            Data::Commitment { plan, operation } => {
                Member::object([("plan", name(plan)), ("operation", name(operation))])
            }
            Data::Refusal {
                plan,
                operation,
                comparisons,
                process_epoch,
            } => {
                let mut failed: Vec<Member> = comparisons
                    .iter()
                    .map(|comparison| Member::Number(i64::from(comparison.number())))
                    .collect();
                if *process_epoch {
                    failed.push(name("process-epoch"));
                }
                Member::object([
                    ("plan", name(plan)),
                    ("operation", maybe(*operation)),
                    ("comparisons", Member::List(failed)),
                ])
            }
            Data::Attempt {
                operation,
                attempt,
                number,
                route,
                transport_deadline,
                verification_deadline,
            } => Member::object([
                ("operation", name(operation)),
                ("attempt", name(attempt)),
                ("number", Member::Number(i64::from(*number))),
                ("route", name(route)),
                ("transportDeadline", name(transport_deadline)),
                ("verificationDeadline", name(verification_deadline)),
            ]),
            Data::Response {
                operation,
                attempt,
                class,
                code,
            } => Member::object([
                ("operation", name(operation)),
                ("attempt", name(attempt)),
                ("class", name(class.as_str())),
                ("code", name(code)),
            ]),
            _ => return None,
        };
        Some(member)
    }

    /// Ownership, accounting, classification and what they end in.
    fn of_outcome(&self) -> Option<Member> {
        let member = match self {
            Data::OwnershipTransition {
                operation,
                from,
                to,
                epoch,
                requested,
            } => {
                let requested = match requested {
                    Some((by, reason)) => Member::object([
                        ("principal", name(by.principal)),
                        ("role", name(by.role)),
                        ("reason", name(reason)),
                    ]),
                    None => Member::Null,
                };
                Member::object([
                    ("operation", name(operation)),
                    ("from", Member::Number(from.0)),
                    ("to", Member::Number(to.0)),
                    ("epoch", name(epoch)),
                    ("requested", requested),
                ])
            }
            Data::Accounting {
                attempt,
                start,
                end,
                facts: given,
            } => Member::object([
                ("operation", maybe(attempt.map(|(operation, _)| operation))),
                ("attempt", maybe(attempt.map(|(_, attempt)| attempt))),
                ("start", name(start)),
                ("end", name(end)),
                ("facts", facts(given)),
                // The decision says itself that nobody observed the loss (EaR 5.2).
                ("judgement", Member::Bool(true)),
            ]),
            Data::Classification {
                operation,
                outcome,
                observation,
            } => Member::object([
                ("operation", name(operation)),
                ("outcome", name(outcome.as_str())),
                ("observation", maybe(*observation)),
            ]),
            Data::OperationState {
                operation,
                from,
                to,
                cause,
                observation,
                reason,
            } => {
                let state = Member::object([
                    ("operation", name(operation)),
                    ("from", maybe(from.map(super::OperationState::as_str))),
                    ("to", name(to.as_str())),
                    ("cause", maybe(*cause)),
                    ("observation", maybe(*observation)),
                ]);
                match (state, reason) {
                    // Only an entry of a human's decision has the member.
                    (Member::Object(mut members), Some(reason)) => {
                        members.insert("reason".to_owned(), name(reason));
                        Member::Object(members)
                    }
                    (state, _) => state,
                }
            }
            Data::AppliedChange {
                release,
                source,
                baseline,
                operation,
                observation,
            } => Member::object([
                ("release", name(release)),
                ("source", name(source.as_str())),
                ("baselineRevision", Member::Number(baseline.0)),
                ("operation", name(operation)),
                ("observation", name(observation)),
            ]),
            Data::AdoptionRecord {
                plan,
                operation,
                release,
                observation,
            } => Member::object([
                ("plan", name(plan)),
                ("operation", name(operation)),
                ("release", name(release)),
                ("observation", name(observation)),
            ]),
            _ => return None,
        };
        Some(member)
    }

    /// The scope itself: drift, freezes, the endpoint, recovery.
    fn of_scope(&self) -> Member {
        match self {
            Data::DriftOpened {
                observation,
                late_landing,
            } => Member::object([
                ("observation", name(observation)),
                ("lateLanding", maybe(*late_landing)),
            ]),
            Data::DriftExtended {
                drift,
                observation,
                late_landing,
            } => Member::object([
                ("drift", revision(*drift)),
                ("observation", name(observation)),
                ("lateLanding", maybe(*late_landing)),
            ]),
            Data::DriftClosed {
                drift,
                resolution,
                observation,
            } => Member::object([
                ("drift", revision(*drift)),
                ("resolution", name(resolution.as_str())),
                ("observation", maybe(*observation)),
            ]),
            Data::Freeze { reason } => Member::object([("reason", maybe(reason.as_ref()))]),
            Data::Unfreeze { reason } => Member::object([("reason", name(reason))]),
            Data::EndpointChange { from, to, reason } => Member::object([
                ("from", name(from)),
                ("to", name(to)),
                ("reason", maybe(reason.as_ref())),
            ]),
            Data::RecoveryEntry { epoch } => Member::object([("epoch", name(epoch))]),
            Data::ScopeState {
                from,
                to,
                observation,
                missing: items,
                desired,
                facts: given,
            } => Member::object([
                ("from", name(from.as_str())),
                ("to", name(to.as_str())),
                ("observation", maybe(*observation)),
                (
                    "missing",
                    Member::List(items.iter().map(Missing::member).collect()),
                ),
                ("desired", maybe(*desired)),
                ("facts", facts(given)),
            ]),
            Data::ScopeRelease { epoch, mark } => {
                Member::object([("epoch", name(epoch)), ("mark", revision(*mark))])
            }
            Data::Decommission { reason } => Member::object([("reason", name(reason))]),
            // Answered by the three functions before this one. They are named, so that a new
            // kind does not compile until it has its members.
            Data::Plan { .. }
            | Data::Approval { .. }
            | Data::ApprovalRevocation { .. }
            | Data::IdentityRevocation { .. }
            | Data::Cancellation { .. }
            | Data::ObservationStarted { .. }
            | Data::Observation { .. }
            | Data::UseTimeCheck { .. }
            | Data::Commitment { .. }
            | Data::Refusal { .. }
            | Data::Attempt { .. }
            | Data::Response { .. }
            | Data::OwnershipTransition { .. }
            | Data::Accounting { .. }
            | Data::Classification { .. }
            | Data::OperationState { .. }
            | Data::AppliedChange { .. }
            | Data::AdoptionRecord { .. } => Member::object([]),
        }
    }
}
