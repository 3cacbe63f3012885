//! A refusal of core as a problem: stage, rule and places, never a value (IC §13, PA §9.4).

use bronzeward_core::problem::{Member, Problem, ProblemCode};
use bronzeward_core::refusal::Refusal;

use crate::decide::Undecided;

/// 422 for an input or a source that core refused.
pub fn refused(refusal: &Refusal) -> Problem {
    let rule = refusal.rule_name();
    let mut problem = Problem::new(ProblemCode::ValidationFailed)
        .say("Refused at the stage ")
        .name(refusal.stage.name())
        .say(" by the rule ")
        .name(&rule)
        .say(".")
        .naming("stage", refusal.stage.name())
        .naming("rule", &rule);
    let list = |members: Vec<Member>| (!members.is_empty()).then_some(Member::List(members));
    let sites = &refusal.sites;
    let paths = sites.iter().filter_map(|site| site.path.as_ref());
    let paths = list(paths.map(|path| Member::text(path.as_str())).collect());
    let marks = sites.iter().filter_map(|site| site.mark);
    let marks = list(
        marks
            .map(|mark| Member::Number(i64::try_from(mark).unwrap_or(i64::MAX)))
            .collect(),
    );
    let lines = sites.iter().map(|site| site.line).filter(|line| *line > 0);
    let lines = list(lines.map(|line| Member::Number(line.into())).collect());
    for (name, member) in [("paths", paths), ("marks", marks), ("lines", lines)] {
        if let Some(member) = member {
            problem = problem.with(name, member);
        }
    }
    problem
}

/// A decision that did not end, as a problem.
pub fn undecided(why: &Undecided) -> Problem {
    match why {
        Undecided::Refused(refusal) => refused(refusal),
        Undecided::Unavailable(why) => {
            Problem::dependency_unavailable("The renderer gave no answer: ")
                .name(why.code())
                .say(".")
        }
        Undecided::Misanswered => {
            Problem::internal("The renderer answered another question than was asked.")
        }
    }
}

/// Whether a refusal is the request's own fault, and final: what a draft entry records
/// under its key (PA §7.2).
pub fn is_final(code: ProblemCode) -> bool {
    match code {
        ProblemCode::InternalError
        | ProblemCode::NotImplemented
        | ProblemCode::DependencyUnavailable
        | ProblemCode::TalosAccessUnavailable
        | ProblemCode::TransientConflict
        | ProblemCode::EpochSuperseded
        | ProblemCode::SchemaMismatch
        // T1's own 412 of another epoch records nothing, like a 5xx.
        | ProblemCode::EpochMismatch => false,
        ProblemCode::InvalidRequest
        | ProblemCode::CursorInvalid
        | ProblemCode::Unauthenticated
        | ProblemCode::Forbidden
        | ProblemCode::IdentityRevoked
        | ProblemCode::NotFound
        | ProblemCode::StaleInput
        | ProblemCode::Conflict
        | ProblemCode::MachineIdentityMismatch
        | ProblemCode::IngestionAbandoned
        | ProblemCode::RecoveryModeEntered
        | ProblemCode::ScopeBusy
        | ProblemCode::RecoveryModeActive
        | ProblemCode::PreconditionFailed
        | ProblemCode::ValidationFailed
        | ProblemCode::IdempotencyKeyReused
        | ProblemCode::PreconditionRequired
        | ProblemCode::IdempotencyKeyRequired => true,
    }
}
