//! Problems of a failed publication (PA §6.1, §9.4).
//!
//! Each names what failed by identifiers, rules and redacted paths. Never in this module: a
//! value, or a text of a provider, a node or a parser.

use bronzeward_core::compile::Report;
use bronzeward_core::dependency::Classification;
use bronzeward_core::head::Unselectable;
use bronzeward_core::id::{ClusterId, DraftId, MachineId};
use bronzeward_core::observation::{Observation, PublicationRefusal};
use bronzeward_core::problem::{Member, Problem, ProblemCode};
use bronzeward_core::redact::message::{Step, View};
use bronzeward_core::reference::Version;
use bronzeward_core::refusal::{Origin, Refusal, Stage};
use bronzeward_core::release::{CommitRefusal, CoverageRefusal, StaleInput};

use super::snapshot::CoveredMachine;
use crate::ports::store::Dependency;

pub(super) fn draft_moved(draft: DraftId) -> Problem {
    Problem::conflict("The draft is not open at the revision the publication is bound to.")
        .naming("draft", draft)
}

pub(super) fn coverage(cluster: ClusterId, refused: &CoverageRefusal) -> Problem {
    match refused {
        CoverageRefusal::AssignmentWithoutBase { machine } => {
            Problem::validation("assignment-without-base")
                .say("The draft changes the assignment of a machine without an import base.")
                .naming("machine", machine)
        }
        CoverageRefusal::CoversNothing => Problem::validation("covers-nothing")
            .say("No machine of the cluster has an import base.")
            .naming("cluster", cluster),
    }
}

/// A pin or selection that does not stand, of a profile by name or of a machine.
pub(super) fn selection(
    what: &'static str,
    name: impl std::fmt::Display,
    revision: impl std::fmt::Display,
    refused: &Unselectable,
) -> Problem {
    Problem::validation(refused.rule)
        .say("A pin or a selection does not stand.")
        .naming(what, name)
        .naming("path", &refused.path)
        .naming("revision", revision)
}

/// A reading that does not carry a publication (PA §6.1.1).
pub(super) fn evidence(observation: &Observation, refused: PublicationRefusal) -> Problem {
    let problem = match refused {
        PublicationRefusal::Identity(_) | PublicationRefusal::Version { .. } => {
            Problem::new(ProblemCode::ValidationFailed)
        }
        PublicationRefusal::Unread(_) => Problem::new(ProblemCode::DependencyUnavailable),
    };
    let cause = match refused {
        PublicationRefusal::Identity(mismatch) => mismatch_name(mismatch).to_owned(),
        PublicationRefusal::Version { seen } => format!("runs {seen}"),
        PublicationRefusal::Unread(cause) => cause.as_str().to_owned(),
    };
    problem
        .say("A covered machine's node does not show what a publication needs.")
        .naming("rule", refused.rule())
        .naming("machine", observation.started.machine)
        .naming("observation", observation.started.id)
        .naming("cause", cause)
}

const fn mismatch_name(mismatch: bronzeward_core::observation::IdentityMismatch) -> &'static str {
    use bronzeward_core::observation::IdentityMismatch;
    match mismatch {
        IdentityMismatch::SmbiosUuidDiffers => "smbios-uuid-differs",
        IdentityMismatch::SmbiosUuidAbsent => "smbios-uuid-absent",
        IdentityMismatch::SmbiosUuidReported => "smbios-uuid-reported",
        IdentityMismatch::NodeIdDiffers => "node-id-differs",
        IdentityMismatch::TalosClusterDiffers => "talos-cluster-differs",
    }
}

/// Names a version of a provider's object, and the reference that pins it.
fn dependency(
    problem: Problem,
    kv: bool,
    object: &str,
    version: i64,
    reference: Option<&Version>,
) -> Problem {
    let problem = problem
        .naming("provider", if kv { "kv" } else { "transit" })
        .naming("object", object)
        .with("version", version);
    match reference {
        Some(reference) => problem.naming("reference", reference.written()),
        None => problem,
    }
}

/// A version that is not retained: 422 for what is known of it, 503 where the answer leaves
/// it unknown.
pub(super) fn classified(
    kv: bool,
    object: &str,
    version: i64,
    reference: Option<&Version>,
    classification: &Classification,
) -> Problem {
    use bronzeward_core::dependency::{Class, Reason};
    let reason = classification.reason;
    let known = match classification.class {
        Class::Blocked | Class::Lost => true,
        Class::Retained | Class::Unknown => reason == Some(Reason::IdentityMismatch),
    };
    let problem = if known {
        Problem::validation("dependency").say("A dependency of the release is not retained.")
    } else {
        Problem::dependency_unavailable("A dependency of the release could not be classified.")
    };
    let problem = problem.naming("class", classification.class.name());
    let problem = match reason {
        Some(reason) => problem.naming("reason", reason.name()),
        None => problem,
    };
    dependency(problem, kv, object, version, reference)
}

/// Another creation time than the one recorded or read before.
pub(super) fn identity_changed(
    kv: bool,
    object: &str,
    version: i64,
    reference: Option<&Version>,
) -> Problem {
    let problem = Problem::validation("dependency")
        .say("A dependency's identity changed.")
        .naming("reason", "identity-changed");
    dependency(problem, kv, object, version, reference)
}

/// The provider gave nothing after the classification, or no date to go by.
pub(super) fn unanswered(
    kv: bool,
    object: &str,
    version: Option<i64>,
    reference: Option<&Version>,
) -> Problem {
    let problem = Problem::dependency_unavailable("The provider gave no usable answer.")
        .naming("class", "unknown");
    match version {
        Some(version) => dependency(problem, kv, object, version, reference),
        None => problem
            .naming("provider", if kv { "kv" } else { "transit" })
            .naming("object", object),
    }
}

/// T3's second look found a version not retained, or under another creation time.
pub(super) fn rechecked(kv: bool, named: &Dependency, changed: bool) -> Problem {
    if changed {
        return identity_changed(kv, &named.object, named.version, None);
    }
    let problem = Problem::validation("dependency")
        .say("A dependency was recorded as not retained while the release was compiled.");
    dependency(problem, kv, &named.object, named.version, None)
}

/// What compiling a machine refused. A stored source that is not well formed is ours, not
/// the author's (PA §6.1).
pub(super) fn compiled(machine: &CoveredMachine, refused: &Refusal, report: &Report) -> Problem {
    match refused.stage {
        Stage::Ingestion | Stage::Authoring => {
            return Problem::internal("A stored source is not well formed.")
                .naming("machine", machine.row.id)
                .naming("rule", refused.rule_name());
        }
        Stage::Resolution | Stage::Compose | Stage::Output | Stage::Validate => {}
    }
    let paths = refused.sites.iter().filter_map(|site| site.path.as_ref());
    let paths = paths.map(|path| Member::text(path.as_str())).collect();
    let mut problem = Problem::new(ProblemCode::ValidationFailed)
        .say("A covered machine's configuration does not compile.")
        .naming("rule", refused.rule_name())
        .naming("stage", refused.stage.name())
        .naming("machine", machine.row.id)
        .with("paths", Member::List(paths));
    let origin = refused.sites.iter().find_map(|site| site.origin);
    let position = origin.map(|origin| match origin {
        Origin::Base => 0,
        Origin::Fragment(index) => index + 1,
    });
    if let Some(source) = position.and_then(|position| machine.source(position)) {
        problem = problem.naming("input", source);
    }
    let said = match refused.stage {
        Stage::Validate => message(&report.validate, Step::Validation),
        _ => message(&report.compose, Step::Composition),
    };
    match said {
        Some(text) => problem.naming("message", text),
        None => problem,
    }
}

fn message(view: &View, step: Step) -> Option<String> {
    match view {
        View::None | View::Skipped => None,
        View::Verbatim(text) | View::Redacted(text) => Some(text.clone()),
        View::Withheld => Some(step.notice().to_owned()),
    }
}

/// T3's comparisons.
pub(super) fn commit(refused: &CommitRefusal) -> Problem {
    match refused {
        CommitRefusal::StaleInput(inputs) => stale(inputs),
        CommitRefusal::ScopeBusy { machine, operation } => Problem::new(ProblemCode::ScopeBusy)
            .say("An operation holds a machine's scope.")
            .naming("machine", machine)
            .naming("operation", operation),
        CommitRefusal::RecoveryModeActive { machine } => Problem::recovery_mode_active(*machine),
    }
}

pub(super) fn stale(inputs: &[StaleInput]) -> Problem {
    let conflicts = inputs.iter().map(conflict).collect();
    Problem::new(ProblemCode::StaleInput)
        .say("Publication refused: ")
        .name(inputs.len())
        .say(" input(s) moved.")
        .with("conflicts", Member::List(conflicts))
}

fn conflict(input: &StaleInput) -> Member {
    let absent = || Member::text("absent");
    match input {
        StaleInput::Head {
            head,
            expected,
            actual,
        } => {
            let revision = |of: &Option<bronzeward_core::revision::Revision>| {
                of.map_or_else(absent, |revision| Member::Number(revision.0))
            };
            Member::object([
                ("head", Member::text(head)),
                ("expected", revision(expected)),
                ("actual", revision(actual)),
            ])
        }
        StaleInput::Machine {
            machine,
            expected,
            actual,
        } => {
            let base = |of: &Option<bronzeward_core::id::ImportBaseRevisionId>| {
                of.map_or_else(absent, Member::text)
            };
            Member::object([
                ("machine", Member::text(machine)),
                ("expected", base(expected)),
                ("actual", base(actual)),
            ])
        }
        StaleInput::Evidence { machine } => evidence_moved(*machine),
    }
}

fn evidence_moved(machine: MachineId) -> Member {
    Member::object([
        ("machine", Member::text(machine)),
        ("rule", Member::text("publication-evidence")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use bronzeward_core::dependency::{Class, Reason};
    use bronzeward_core::id::{FragmentId, HeadId, ImportBaseRevisionId};
    use bronzeward_core::revision::Revision;

    fn classification(class: Class, reason: Reason) -> Classification {
        Classification {
            class,
            reason: Some(reason),
            scheduled: None,
        }
    }

    #[test]
    fn a_stale_input_names_each_conflict_with_what_was_expected_and_found() {
        let head = HeadId::Fragment(FragmentId::from_bits(1));
        let machine = MachineId::from_bits(2);
        let base = ImportBaseRevisionId::from_bits(3);
        let problem = stale(&[
            StaleInput::Head {
                head,
                expected: Some(Revision(3)),
                actual: Some(Revision(4)),
            },
            StaleInput::Machine {
                machine,
                expected: None,
                actual: Some(base),
            },
        ]);
        assert_eq!(problem.code, ProblemCode::StaleInput);
        let said = problem.detail.as_deref();
        assert_eq!(said, Some("Publication refused: 2 input(s) moved."));
        let conflicts = Member::List(vec![
            Member::object([
                ("head", Member::text(head)),
                ("expected", Member::Number(3)),
                ("actual", Member::Number(4)),
            ]),
            Member::object([
                ("machine", Member::text(machine)),
                ("expected", Member::text("absent")),
                ("actual", Member::text(base)),
            ]),
        ]);
        assert_eq!(problem.members.get("conflicts"), Some(&conflicts));
    }

    #[test]
    fn what_is_known_of_a_dependency_is_422_and_what_is_unknown_is_503() {
        let code = |class, reason| {
            let classification = classification(class, reason);
            classified(true, "gen/a", 1, None, &classification).code
        };
        for (class, reason) in [
            (Class::Blocked, Reason::SoftDeleted),
            (Class::Lost, Reason::Destroyed),
            (Class::Unknown, Reason::IdentityMismatch),
        ] {
            assert_eq!(code(class, reason), ProblemCode::ValidationFailed);
        }
        for reason in [Reason::Absent, Reason::Unreachable, Reason::Denied] {
            let code = code(Class::Unknown, reason);
            assert_eq!(code, ProblemCode::DependencyUnavailable);
        }
    }
}
