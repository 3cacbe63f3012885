//! Drafts and heads: what moves them, and what an entry names (PA §3.1, §4, §6.2).

use std::collections::BTreeMap;

use bronzeward_core::id::{ClusterId, DraftId, FragmentRevisionId, HeadId, RequestId};
use bronzeward_core::revision::Etag;
use bronzeward_core::scope::ScopeState;
use bronzeward_engine::ports::store::{EntryKind, EntryOfDraft, HeadKind};
use bronzeward_engine::rows::{DraftRow, DraftStateRow, MachineRow, SourceRevisionId};

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::{Change, Changed};
use crate::store::authoring::Head;
use crate::store::execution::holds;

pub fn look(case: &Case<'_>, expected: &BTreeMap<RequestId, Etag>) -> Verdict {
    for change in case.changes {
        match change {
            Change::Draft(changed) => draft(case, changed, expected)?,
            Change::DraftEntry(draft, changed) => {
                if let Some(after) = &changed.after {
                    named(case, *draft, after)?;
                }
            }
            Change::Head(changed) => head(case, changed)?,
            _ => {}
        }
    }
    Ok(())
}

fn draft(
    case: &Case<'_>,
    changed: &Changed<DraftRow>,
    expected: &BTreeMap<RequestId, Etag>,
) -> Verdict {
    let (Some(before), Some(after)) = (&changed.before, &changed.after) else {
        return Ok(());
    };
    let id = after.id;
    if after.etag.revision.0 != before.etag.revision.0 + 1 {
        return violation("revisions go up by one", format!("{id}"));
    }
    if before.state != DraftStateRow::Open {
        return violation("an ended draft never changes", format!("{id}"));
    }
    let active = case.operations().any(|one| {
        one.row.kind == "publish"
            && one.row.draft.is_some_and(|(of, _)| of == id)
            && matches!(one.row.state.as_str(), "queued" | "running")
    });
    if active {
        return violation(
            "a draft stands still while it is published",
            format!("{id}"),
        );
    }
    let requests = case.changes.iter().filter_map(|change| match change {
        Change::Act(act) => act.after.as_ref().and_then(|act| act.row.request),
        _ => None,
    });
    for request in requests {
        if let Some(etag) = expected.get(&request)
            && *etag != before.etag
        {
            return violation("no edit of a draft is lost", format!("{id}"));
        }
    }
    if let DraftStateRow::Published(release) = after.state {
        let release = case.tables.execution.releases.get(SEEN, &release);
        let bound = release.map(|release| release.row.draft_revision);
        if bound != Some(before.etag.revision) {
            return violation("a release is of the draft as it stood", format!("{id}"));
        }
    }
    Ok(())
}

fn head(case: &Case<'_>, changed: &Changed<Head>) -> Verdict {
    let Some(after) = &changed.after else {
        return violation("heads are kept", "a head is gone");
    };
    let released = case
        .changes
        .iter()
        .any(|change| matches!(change, Change::Release(_)));
    if !released {
        return violation(
            "only a publication moves a head",
            format!("{:?}", after.row.id),
        );
    }
    if let Some(before) = &changed.before
        && after.row.etag.revision.0 != before.row.etag.revision.0 + 1
    {
        return violation("revisions go up by one", format!("{:?}", after.row.id));
    }
    let heads = case.tables.authoring.heads.values(SEEN);
    let same = heads.filter(|one| {
        one.kind == after.kind
            && one.row.cluster == after.row.cluster
            && one.row.subject == after.row.subject
    });
    if same.count() > 1 {
        return violation("a name has one head", after.row.subject.clone());
    }
    let moved = changed
        .before
        .as_ref()
        .is_none_or(|before| before.row.revision != after.row.revision);
    match (after.row.id, moved) {
        (HeadId::Assignment(_), true) => reassigned(case, &after.row.subject),
        _ => Ok(()),
    }
}

/// A machine's assignment moves while nothing holds its scope, in recovery mode only once the
/// scope is released, and with a release that covers it (PA §6.1, §6.2).
fn reassigned(case: &Case<'_>, subject: &str) -> Verdict {
    let said = || subject.to_owned();
    let machines = &mut case.tables.authoring.machines.values(SEEN);
    let Some(machine) = machines.find(|row| row.id.to_string() == subject) else {
        return violation("an assignment is a machine's", said());
    };
    let held = case.operations().any(|one| {
        one.row.plan.is_some()
            && holds(&one.row.state)
            && !one.retired
            && one.row.machine == Some(machine.id)
    });
    if held {
        return violation("a held scope freezes the assignment", said());
    }
    let installation = case.tables.authoring.installation.get(SEEN, &());
    let recovering = installation.is_some_and(|row| row.recovery_mode);
    if recovering && !let_go(case, machine) {
        return violation("an unreleased scope freezes the assignment", said());
    }
    let covered = case.changes.iter().any(|change| match change {
        Change::Release(changed) => changed.after.as_ref().is_some_and(|release| {
            let key = (release.row.id, machine.id);
            let covered = &case.tables.execution.release_machines;
            covered.get(SEEN, &key).is_some()
        }),
        _ => false,
    });
    match covered || machine.scope == ScopeState::Retired {
        true => Ok(()),
        false => violation("a release covers what it reassigns", said()),
    }
}

fn let_go(case: &Case<'_>, machine: &MachineRow) -> bool {
    match machine.scope {
        ScopeState::Released { epoch } => Some(epoch) == case.epoch(),
        ScopeState::Retired => true,
        _ => false,
    }
}

const STANDS: &str = "an entry names what stands";

/// A pin is the fragment's revision as the draft proposes it or else as its head has it; a
/// selected name is proposed or has a head with a revision, and a selected fragment is of its
/// layer (PA §3.1).
fn named(case: &Case<'_>, draft: DraftId, entry: &EntryOfDraft) -> Verdict {
    let authoring = &case.tables.authoring;
    let said = |what: &str| format!("{} of {draft}: {what}", entry.subject);
    let Some(cluster) = authoring.drafts.get(SEEN, &draft).map(|row| row.cluster) else {
        return violation(STANDS, said("no such draft"));
    };
    let standing = Standing {
        case,
        draft,
        cluster,
    };
    match entry.revision {
        Some(SourceRevisionId::Profile(id)) => {
            let profile = authoring.profiles.get(SEEN, &id);
            let pins = profile.map_or(&[][..], |row| &row.content.fragments);
            match pins.iter().all(|pin| standing.pin(*pin)) {
                true => Ok(()),
                false => violation(STANDS, said("a pin")),
            }
        }
        Some(SourceRevisionId::Assignment(id)) => {
            let Some(assignment) = authoring.assignments.get(SEEN, &id) else {
                return violation(STANDS, said("no such revision"));
            };
            let content = &assignment.content;
            let profile = |name: &str| standing.of(EntryKind::Profile, HeadKind::Profile, name);
            let mut profiles = content.profiles.iter();
            if !profiles.all(|name| profile(name.as_str()).is_some()) {
                return violation(STANDS, said("a profile"));
            }
            for (layer, names) in &content.fragments {
                for name in names {
                    let found = standing.of(EntryKind::Fragment, HeadKind::Fragment, name.as_str());
                    let Some(SourceRevisionId::Fragment(id)) = found else {
                        return violation(STANDS, said("a fragment"));
                    };
                    let fragment = authoring.fragments.get(SEEN, &id);
                    if fragment.is_none_or(|fragment| fragment.row.layer != *layer) {
                        return violation(STANDS, said("a fragment's layer"));
                    }
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What the names of a draft stand for.
struct Standing<'a> {
    case: &'a Case<'a>,
    draft: DraftId,
    cluster: ClusterId,
}

impl Standing<'_> {
    fn of(&self, entry: EntryKind, head: HeadKind, name: &str) -> Option<SourceRevisionId> {
        let authoring = &self.case.tables.authoring;
        let key = (self.draft, entry, name.to_owned());
        if let Some(entry) = authoring.draft_entries.get(SEEN, &key) {
            return entry.revision;
        }
        let mut heads = authoring.heads.values(SEEN);
        let head = heads.find(|one| {
            one.kind == head && one.row.cluster == self.cluster && one.row.subject == name
        });
        head.and_then(|head| head.row.revision)
    }

    fn pin(&self, pin: FragmentRevisionId) -> bool {
        let fragment = self.case.tables.authoring.fragments.get(SEEN, &pin);
        fragment.is_some_and(|fragment| {
            let name = fragment.row.name.as_str();
            let standing = self.of(EntryKind::Fragment, HeadKind::Fragment, name);
            standing == Some(SourceRevisionId::Fragment(pin))
        })
    }
}
