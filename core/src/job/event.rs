//! Events of jobs (PA §8.3) and the members each carries.

use crate::fence::Generation;
use crate::id::{ImportBaseRevisionId, ReleaseId};
use crate::problem::{Member, Problem, ProblemCode};

/// An event of a job (PA §8.3); its members are the wire's `data`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Queued,
    Claimed {
        generation: Generation,
    },
    Started,
    Staged,
    TakenOver {
        generation: Generation,
    },
    ResumeFailed {
        code: ProblemCode,
    },
    Paused {
        generation: Generation,
    },
    Marked {
        generation: Generation,
        paths: usize,
    },
    MarkRefused {
        generation: Generation,
        problem: Problem,
    },
    Continued {
        generation: Generation,
    },
    /// The Talos access version an ingestion read and the endpoint it dialled (PA §3.3).
    TalosAccess {
        access: crate::observation::AccessVersion,
        endpoint: crate::inventory::Endpoint,
    },
    Published {
        release: ReleaseId,
    },
    Ingested {
        import_base: ImportBaseRevisionId,
    },
    Failed {
        code: ProblemCode,
        cause: Option<&'static str>,
    },
}

impl Event {
    pub const fn kind(&self) -> &'static str {
        match self {
            Event::Queued => "queued",
            Event::Claimed { .. } => "claimed",
            Event::Started => "started",
            Event::Staged => "staged",
            Event::TakenOver { .. } => "taken-over",
            Event::ResumeFailed { .. } => "resume-failed",
            Event::Paused { .. } => "paused",
            Event::Marked { .. } => "marked",
            Event::MarkRefused { .. } => "mark-refused",
            Event::Continued { .. } => "continued",
            Event::TalosAccess { .. } => "talos-access",
            Event::Published { .. } | Event::Ingested { .. } => "succeeded",
            Event::Failed { .. } => "failed",
        }
    }

    pub const fn is_terminal(&self) -> bool {
        match self {
            Event::Published { .. } | Event::Ingested { .. } | Event::Failed { .. } => true,
            Event::Queued
            | Event::Claimed { .. }
            | Event::Started
            | Event::Staged
            | Event::TakenOver { .. }
            | Event::ResumeFailed { .. }
            | Event::Paused { .. }
            | Event::Marked { .. }
            | Event::MarkRefused { .. }
            | Event::Continued { .. }
            | Event::TalosAccess { .. } => false,
        }
    }

    /// The cause a takeover with nothing to decrypt names.
    pub const NOTHING_TO_DECRYPT: &'static str = "nothing-to-decrypt";
}

impl Event {
    /// The event's `data`: the members PA §8.3 lists beside its type.
    pub fn members(&self) -> Member {
        let generation = |generation: &Generation| ("generation", Member::Number(generation.0));
        match self {
            Event::Queued | Event::Started | Event::Staged => Member::object([]),
            Event::Claimed { generation: at }
            | Event::TakenOver { generation: at }
            | Event::Paused { generation: at }
            | Event::Continued { generation: at } => Member::object([generation(at)]),
            Event::ResumeFailed { code } => Member::object([("code", Member::text(code))]),
            Event::Marked {
                generation: at,
                paths,
            } => {
                let paths = i64::try_from(*paths).unwrap_or(i64::MAX);
                Member::object([generation(at), ("paths", Member::Number(paths))])
            }
            Event::MarkRefused {
                generation: at,
                problem,
            } => Member::object([generation(at), ("problem", problem.to_member())]),
            Event::TalosAccess { access, endpoint } => Member::object([
                ("path", Member::text(&access.path)),
                ("version", Member::Number(access.version)),
                ("createdTime", Member::text(&access.created)),
                ("endpoint", Member::text(endpoint)),
            ]),
            Event::Published { release } => Member::object([("release", Member::text(release))]),
            Event::Ingested { import_base } => {
                Member::object([("importBaseRevision", Member::text(import_base))])
            }
            Event::Failed { code, cause: None } => Member::object([("code", Member::text(code))]),
            Event::Failed {
                code,
                cause: Some(cause),
            } => Member::object([("code", Member::text(code)), ("cause", Member::text(cause))]),
        }
    }
}
