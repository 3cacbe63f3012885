//! Drafts: the only mutable record of unpublished work (PA §3.1).
//!
//! T1, T2, T3 and discard decide here under the draft's lock. Never in this module:
//! the content an entry proposes.

use std::collections::BTreeMap;

use crate::head::Subject;
use crate::id::{
    AssignmentRevisionId, ClusterId, DraftId, FragmentRevisionId, HeadId, ImportBaseRevisionId,
    MachineId, OperationId, ProfileRevisionId, ReleaseId,
};
use crate::revision::{Etag, EtagToken, Revision};
use crate::rules::{Rule, Rules};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftState {
    Open,
    Published(ReleaseId),
    Discarded,
}

impl DraftState {
    pub const fn as_str(self) -> &'static str {
        match self {
            DraftState::Open => "open",
            DraftState::Published(_) => "published",
            DraftState::Discarded => "discarded",
        }
    }

    pub fn from_row(state: &str, release: Option<ReleaseId>) -> Option<Self> {
        match (state, release) {
            ("open", None) => Some(DraftState::Open),
            ("published", Some(release)) => Some(DraftState::Published(release)),
            ("discarded", None) => Some(DraftState::Discarded),
            _ => None,
        }
    }
}

/// What an entry proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposal {
    Fragment(FragmentRevisionId),
    Profile(ProfileRevisionId),
    Assignment(AssignmentRevisionId),
    /// A removal, of whichever kind the entry's subject is.
    Removal,
}

/// An entry: the head it changes with the revision it was edited from, or "absent".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub subject: Subject,
    pub base: Option<(HeadId, Revision)>,
    pub proposal: Proposal,
}

impl Entry {
    /// A removal of a name the draft introduces leaves an entry that creates nothing.
    pub const fn creates_nothing(&self) -> bool {
        self.base.is_none() && matches!(self.proposal, Proposal::Removal)
    }
}

/// A draft under its lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub id: DraftId,
    pub cluster: ClusterId,
    pub title: String,
    pub state: DraftState,
    pub revision: Revision,
    pub etag: EtagToken,
    /// The publish operation that is queued or running for it, if any.
    pub publishing: Option<OperationId>,
}

/// Why a draft refuses an act, in the order they are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftRefusal {
    /// 409 `conflict`; a published draft's body names its release.
    NotOpen(DraftState),
    /// 409 `conflict` naming the operation.
    Publishing(OperationId),
    /// 412 `precondition-failed`.
    Moved,
}

/// How an act says which revision it was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// A request's If-Match.
    IfMatch(Etag),
    /// The revision an operation bound from its request's If-Match (PA §5, T1).
    Bound(Revision),
}

impl Draft {
    pub const fn etag(&self) -> Etag {
        Etag::new(self.revision, self.etag)
    }

    /// Whether an update, a discard or an ingestion's draft transaction may write: open
    /// first, so that a discarded draft is told as one whatever its revision.
    pub fn writable<R: Rules>(
        &self,
        rules: &R,
        precondition: Precondition,
    ) -> Result<(), DraftRefusal> {
        self.open(rules)?;
        if let Some(operation) = self.publishing
            && !rules.holds(Rule::DraftNotPublishing, false)
        {
            return Err(DraftRefusal::Publishing(operation));
        }
        self.unmoved(rules, precondition)
    }

    /// Whether a publication may be asked for: the active one of the same revision is
    /// answered instead of a second (PA §7.3).
    pub fn publishable<R: Rules>(
        &self,
        rules: &R,
        precondition: Precondition,
    ) -> Result<Option<OperationId>, DraftRefusal> {
        self.open(rules)?;
        self.unmoved(rules, precondition)?;
        Ok(self.publishing)
    }

    /// Whether a publication's snapshot and commit still find the draft they are bound to.
    pub fn bound<R: Rules>(&self, rules: &R, revision: Revision) -> Result<(), DraftRefusal> {
        self.open(rules)?;
        self.unmoved(rules, Precondition::Bound(revision))
    }

    fn open<R: Rules>(&self, rules: &R) -> Result<(), DraftRefusal> {
        let open = match self.state {
            DraftState::Open => true,
            DraftState::Published(_) | DraftState::Discarded => false,
        };
        if rules.holds(Rule::DraftOpen, open) {
            Ok(())
        } else {
            Err(DraftRefusal::NotOpen(self.state))
        }
    }

    fn unmoved<R: Rules>(&self, rules: &R, precondition: Precondition) -> Result<(), DraftRefusal> {
        let same = match precondition {
            Precondition::IfMatch(etag) => self.etag().matches(rules, &etag),
            Precondition::Bound(revision) => self.revision == revision,
        };
        if rules.holds(Rule::SecondIfMatch, same) {
            Ok(())
        } else {
            Err(DraftRefusal::Moved)
        }
    }

    /// The draft after a write: its next revision and a new token.
    #[must_use]
    pub fn written(self, etag: EtagToken) -> Draft {
        Draft {
            revision: self.revision.next(),
            etag,
            ..self
        }
    }

    #[must_use]
    pub fn discarded(self, etag: EtagToken) -> Draft {
        Draft {
            state: DraftState::Discarded,
            ..self.written(etag)
        }
    }

    #[must_use]
    pub fn published(self, release: ReleaseId, etag: EtagToken) -> Draft {
        Draft {
            state: DraftState::Published(release),
            publishing: None,
            ..self.written(etag)
        }
    }
}

/// What a removal of a name leaves (PA §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    Entry {
        base: Option<(HeadId, Revision)>,
    },
    /// 404: neither a head (one a publication removed counts) nor an entry.
    Unknown,
}

pub const fn remove(head: Option<(HeadId, Revision)>, has_entry: bool) -> Removal {
    match (head, has_entry) {
        (Some(_), _) => Removal::Entry { base: head },
        (None, true) => Removal::Entry { base: None },
        (None, false) => Removal::Unknown,
    }
}

/// A draft's whole content, in the order it is listed: import bases by machine, then
/// fragments, profiles, assignments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    pub import_bases: BTreeMap<MachineId, ImportBaseRevisionId>,
    pub entries: BTreeMap<Subject, Entry>,
}

impl Content {
    pub fn is_empty(&self) -> bool {
        self.import_bases.is_empty() && self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Enforced, Without};

    fn draft() -> Draft {
        Draft {
            id: DraftId::from_bits(1),
            cluster: ClusterId::from_bits(1),
            title: "mirror".into(),
            state: DraftState::Open,
            revision: Revision(7),
            etag: EtagToken::from_bits(1),
            publishing: None,
        }
    }

    fn current() -> Precondition {
        Precondition::IfMatch(draft().etag())
    }

    #[test]
    fn an_open_draft_at_the_presented_revision_is_written() {
        assert_eq!(draft().writable(&Enforced, current()), Ok(()));
        assert_eq!(
            draft().writable(&Enforced, Precondition::Bound(Revision(7))),
            Ok(())
        );
        let written = draft().written(EtagToken::from_bits(2));
        assert_eq!(written.revision, Revision(8));
        assert_eq!(
            written.writable(&Enforced, current()),
            Err(DraftRefusal::Moved)
        );
    }

    // covers-part: PA-DRF-2 (what refuses, with its rule dropped)
    #[test]
    fn each_reason_to_refuse_an_update_refuses_alone() {
        let release = ReleaseId::from_bits(1);
        let operation = OperationId::from_bits(1);
        let published = Draft {
            state: DraftState::Published(release),
            ..draft()
        };
        let publishing = Draft {
            publishing: Some(operation),
            ..draft()
        };
        let moved = Draft {
            revision: Revision(8),
            ..draft()
        };
        let cases = [
            (
                published,
                DraftRefusal::NotOpen(DraftState::Published(release)),
                Rule::DraftOpen,
            ),
            (
                publishing,
                DraftRefusal::Publishing(operation),
                Rule::DraftNotPublishing,
            ),
            (moved, DraftRefusal::Moved, Rule::SecondIfMatch),
        ];
        for (draft, refusal, rule) in cases {
            assert_eq!(draft.writable(&Enforced, current()), Err(refusal));
            let rules: &'static [Rule] = vec![rule].leak();
            assert_eq!(draft.writable(&Without(rules), current()), Ok(()));
        }
    }

    #[test]
    fn a_discarded_draft_is_told_as_one_although_its_revision_moved() {
        let discarded = draft().discarded(EtagToken::from_bits(2));
        assert_eq!(
            discarded.writable(&Enforced, Precondition::Bound(Revision(7))),
            Err(DraftRefusal::NotOpen(DraftState::Discarded))
        );
    }

    #[test]
    fn a_second_request_to_publish_finds_the_active_operation() {
        let operation = OperationId::from_bits(1);
        let publishing = Draft {
            publishing: Some(operation),
            ..draft()
        };
        assert_eq!(
            publishing.publishable(&Enforced, current()),
            Ok(Some(operation))
        );
        assert_eq!(draft().publishable(&Enforced, current()), Ok(None));
        let published = draft().published(ReleaseId::from_bits(1), EtagToken::from_bits(2));
        assert!(matches!(
            published.publishable(&Enforced, current()),
            Err(DraftRefusal::NotOpen(DraftState::Published(_)))
        ));
    }

    #[test]
    fn a_removal_needs_a_head_or_an_entry() {
        let head = Some((
            HeadId::Profile(crate::id::ProfileId::from_bits(1)),
            Revision(3),
        ));
        assert_eq!(remove(head, false), Removal::Entry { base: head });
        assert_eq!(remove(None, true), Removal::Entry { base: None });
        assert_eq!(remove(None, false), Removal::Unknown);
    }
}
