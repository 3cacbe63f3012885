//! What a release rests on when it commits (PA §6.2, IC §9).

use bronzeward_core::dependency::Class;
use bronzeward_core::id::{ImportBaseRevisionId, MachineId, ReleaseId};
use bronzeward_core::scope::ScopeState;
use bronzeward_engine::ports::store::EntryKind;
use bronzeward_engine::rows::SourceRevisionId;

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::Change;
use crate::store::execution::{MachineOfRelease, Release};

pub fn look(case: &Case<'_>) -> Verdict {
    for change in case.changes {
        if let Change::Release(changed) = change
            && let (None, Some(release)) = (&changed.before, &changed.after)
        {
            sources(case, release.row.id)?;
            once(case, release)?;
            machines(case, release)?;
            dependencies(case, release)?;
        }
    }
    Ok(())
}

/// Every source the release used is its head's current revision as the commit leaves it.
fn sources(case: &Case<'_>, release: ReleaseId) -> Verdict {
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

/// A release covers the machines of its cluster that have an import base, those of its draft
/// included, each on that base, and is Desired of each (PA §3.2, §6.1, §6.2).
fn machines(case: &Case<'_>, release: &Release) -> Verdict {
    let (id, cluster) = (release.row.id, release.row.cluster);
    let authoring = &case.tables.authoring;
    let rows = authoring.machines.values(SEEN);
    for machine in rows.filter(|row| row.cluster == cluster && row.scope != ScopeState::Retired) {
        let covered = case
            .tables
            .execution
            .release_machines
            .get(SEEN, &(id, machine.id));
        match (covered, base(case, release, machine.id)) {
            (None, None) => {}
            (Some(of), Some(base)) if of.new.import_base == base => {}
            (Some(_), _) => {
                let said = format!("{}", machine.id);
                return violation(
                    "a release is compiled on the bases that machines have",
                    said,
                );
            }
            (None, Some(_)) => {
                let said = format!("{}", machine.id);
                return violation("a release covers every machine with a base", said);
            }
        }
    }
    for of in covered(case, id) {
        let machine = of.new.machine;
        let state = authoring.machine_states.get(SEEN, &machine);
        if state.and_then(|state| state.desired) != Some(id) {
            return violation("a release is Desired of its machines", format!("{machine}"));
        }
        let row = authoring.machines.get(SEEN, &machine);
        if row.is_none_or(|row| row.cluster != cluster) {
            return violation("a release covers its own cluster", format!("{machine}"));
        }
    }
    Ok(())
}

fn covered<'a>(case: &'a Case<'_>, id: ReleaseId) -> impl Iterator<Item = &'a MachineOfRelease> {
    let all = case.tables.execution.release_machines.values(SEEN);
    all.filter(move |of| of.release == id)
}

/// A machine's import base: the draft's, or its Applied release's.
fn base(case: &Case<'_>, release: &Release, machine: MachineId) -> Option<ImportBaseRevisionId> {
    let authoring = &case.tables.authoring;
    let key = (
        release.row.draft,
        EntryKind::ImportBase,
        machine.to_string(),
    );
    let entry = authoring.draft_entries.get(SEEN, &key);
    if let Some(SourceRevisionId::ImportBase(base)) = entry.and_then(|entry| entry.revision) {
        return Some(base);
    }
    let applied = authoring.machine_states.get(SEEN, &machine)?.applied?;
    let key = (applied.release, machine);
    let of = case.tables.execution.release_machines.get(SEEN, &key)?;
    Some(of.new.import_base)
}

/// A draft revision has one release (PA §6.2).
fn once(case: &Case<'_>, release: &Release) -> Verdict {
    let all = case.tables.execution.releases.values(SEEN);
    let same = all.filter(|one| {
        (one.row.draft, one.row.draft_revision) == (release.row.draft, release.row.draft_revision)
    });
    match same.count() {
        1 => Ok(()),
        _ => violation(
            "one release per draft revision",
            format!("{}", release.row.id),
        ),
    }
}

/// Nothing that a release depends on was recorded as lost, or as another version of its
/// number, once its commit had begun: its publication had classified everything before
/// (PA §6.2).
fn dependencies(case: &Case<'_>, release: &Release) -> Verdict {
    const WORDS: &str = "a release depends on what is retained";
    let records = covered(case, release.row.id).flat_map(|of| &of.new.reproduction);
    for record in records {
        let on = &record.dependency;
        let statuses = case.tables.execution.statuses.values(SEEN);
        let of_version = statuses
            .filter(|status| status.row.object == on.object && status.row.version == on.version);
        for status in of_version {
            if status.row.created != on.created {
                return violation(WORDS, format!("{}: another version", on.object));
            }
            let since = status.row.recorded_at >= case.held.began;
            if since && status.row.class != Class::Retained {
                return violation(WORDS, format!("{}: not retained", on.object));
            }
        }
    }
    Ok(())
}
