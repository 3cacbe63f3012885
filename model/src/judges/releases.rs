//! What a release rests on when it commits (PA §6.2, IC §9).

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::Change;

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        if let Change::Release(changed) = change
            && let (None, Some(release)) = (&changed.before, &changed.after)
        {
            sources(case, release.row.id)?;
            machines(case, release.row.id, release.row.cluster)?;
        }
    }
    Ok(())
}

/// Every source the release used is its head's current revision as the commit leaves it.
fn sources(case: &Case<'_>, release: bronzeward_core::id::ReleaseId) -> Verdict {
    let sources = case.tables.execution.release_sources.iter(SEEN);
    for ((of, head), source) in sources {
        if *of != release {
            continue;
        }
        let current = case.tables.authoring.heads.get(SEEN, head);
        let stands = current.is_some_and(|head| {
            head.row.revision == source.revision && head.row.etag.revision == source.head_revision
        });
        if !stands {
            let said = format!("{release}: {}", source.subject);
            return violation("a release holds no superseded source", said);
        }
    }
    Ok(())
}

/// A release covers the machines of its cluster that have an import base, and is Desired of
/// each.
fn machines(
    case: &Case<'_>,
    release: bronzeward_core::id::ReleaseId,
    cluster: bronzeward_core::id::ClusterId,
) -> Verdict {
    let covered = case.tables.execution.release_machines.iter(SEEN);
    for ((of, machine), _) in covered {
        if *of != release {
            continue;
        }
        let state = case.tables.authoring.machine_states.get(SEEN, machine);
        if state.and_then(|state| state.desired) != Some(release) {
            return violation("a release is Desired of its machines", format!("{machine}"));
        }
        let row = case.tables.authoring.machines.get(SEEN, machine);
        if row.is_none_or(|row| row.cluster != cluster) {
            return violation("a release covers its own cluster", format!("{machine}"));
        }
    }
    Ok(())
}
