//! Releases: the contract they are compiled under, what they cover, and what a
//! publication's commit compares (PA §6).
//!
//! The publication worker asks for the coverage in its snapshot and for the
//! comparisons under T3's locks. Never in this module: composition.

mod recheck;

pub use recheck::{Named, RecheckRefusal, StatusRow, recheck};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::digest::ConfigDigest;
use crate::id::{
    AssignmentRevisionId, DraftId, HeadId, ImportBaseRevisionId, MachineId, OperationId, ReleaseId,
};
use crate::revision::Revision;
use crate::rules::{Rule, Rules};

/// A Talos minor: `v1.13`. A cluster's contract, a machinery's, a node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Contract {
    pub major: u16,
    pub minor: u16,
}

impl Contract {
    pub fn parse(text: &str) -> Option<Self> {
        let contract = Self::prefix(text)?;
        (contract.to_string() == text).then_some(contract)
    }

    /// The minor of a full version such as `v1.13.6`.
    pub fn of_version(text: &str) -> Option<Self> {
        let (minor, patch) = text
            .rsplit_once('.')
            .filter(|(minor, _)| minor.contains('.'))?;
        if minor.matches('.').count() != 1 {
            // A pre-release suffix can hold dots: `v1.13.0-alpha.1`.
            return Self::of_version(minor);
        }
        let patched = patch.starts_with(|first: char| first.is_ascii_digit());
        Self::parse(minor).filter(|_| patched)
    }

    fn prefix(text: &str) -> Option<Self> {
        let (major, minor) = text.strip_prefix('v')?.split_once('.')?;
        Some(Self {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}", self.major, self.minor)
    }
}

/// A release's renderer and contract record (IC §10.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RendererRecord {
    pub contract: Contract,
    pub machinery_version: String,
    pub machinery_checksum: String,
    pub kubernetes_version: String,
}

/// A Transit key version, told apart by its creation time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransitKey {
    pub name: String,
    pub version: i64,
    /// Whole seconds since 1970, as the provider's key map gives them.
    pub created: i64,
}

/// Whether a machine's configuration is for a worker, as the renderer read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MachineType {
    Worker,
    ControlPlane,
}

impl MachineType {
    pub const fn as_str(self) -> &'static str {
        match self {
            MachineType::Worker => "worker",
            MachineType::ControlPlane => "controlplane",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "worker" => Some(MachineType::Worker),
            "controlplane" => Some(MachineType::ControlPlane),
            _ => None,
        }
    }
}

/// What put a configuration on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AppliedSource {
    Operation,
    Adoption,
}

impl AppliedSource {
    pub const fn as_str(self) -> &'static str {
        match self {
            AppliedSource::Operation => "operation",
            AppliedSource::Adoption => "adoption",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "operation" => Some(AppliedSource::Operation),
            "adoption" => Some(AppliedSource::Adoption),
            _ => None,
        }
    }
}

/// A machine's Applied (EaR 1). It exists with its baseline revision or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    pub release: ReleaseId,
    pub digest: ConfigDigest,
    pub source: AppliedSource,
    pub baseline: crate::revision::BaselineRevision,
}

/// Desired without Applied, or with another digest (EaR 1). Release identifiers are
/// never compared: an adopted machine can hold other bytes under the same name.
pub fn pending_convergence(desired: Option<ConfigDigest>, applied: Option<&Applied>) -> bool {
    match (desired, applied) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(desired), Some(applied)) => desired != applied.digest,
    }
}

/// Which of the releases of Applied and Desired an observed configuration is the artifact
/// of, Applied's first. None after an adoption: the node then holds the import base.
pub fn observed_release(
    observed: ConfigDigest,
    applied: Option<(ReleaseId, ConfigDigest)>,
    desired: Option<(ReleaseId, ConfigDigest)>,
) -> Option<ReleaseId> {
    let mut artifacts = applied.into_iter().chain(desired);
    let found = artifacts.find(|(_, artifact)| *artifact == observed);
    found.map(|(release, _)| release)
}

/// A machine of the cluster as a publication's snapshot reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The import base of its Applied release, or none.
    pub applied_base: Option<ImportBaseRevisionId>,
    /// The base the draft carries for it, or none.
    pub draft_base: Option<ImportBaseRevisionId>,
    /// Its assignment after the draft: the proposed one, none for a removal or where it
    /// never had one.
    pub assignment: Option<AssignmentRevisionId>,
    /// Whether the draft changes or removes its assignment.
    pub assignment_changed: bool,
    pub retired: bool,
}

/// A machine a release covers, and what it is compiled on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Covered {
    pub import_base: ImportBaseRevisionId,
    pub from_draft: bool,
    pub assignment: Option<AssignmentRevisionId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoverageRefusal {
    /// The draft changes the assignment of a machine nothing can be compiled for.
    AssignmentWithoutBase { machine: MachineId },
    /// No machine is covered; the body names the cluster.
    CoversNothing,
}

/// The machines a release covers: every one with an import base after the draft, with or
/// without an assignment (PA §6.1 step 1, choice 17.33).
pub fn coverage<R: Rules>(
    rules: &R,
    machines: &BTreeMap<MachineId, Candidate>,
) -> Result<BTreeMap<MachineId, Covered>, CoverageRefusal> {
    let mut covered = BTreeMap::new();
    for (machine, candidate) in machines.iter().filter(|(_, it)| !it.retired) {
        let untouched = candidate.draft_base.is_none() && !candidate.assignment_changed;
        if untouched && !rules.enforced(Rule::ReleaseCoversCluster) {
            continue;
        }
        let base = candidate.draft_base.or(candidate.applied_base);
        match base {
            Some(import_base) => {
                covered.insert(
                    *machine,
                    Covered {
                        import_base,
                        from_draft: candidate.draft_base.is_some(),
                        assignment: candidate.assignment,
                    },
                );
            }
            None if rules.holds(Rule::AssignmentNeedsBase, !candidate.assignment_changed) => {}
            None => return Err(CoverageRefusal::AssignmentWithoutBase { machine: *machine }),
        }
    }
    if covered.is_empty() {
        return Err(CoverageRefusal::CoversNothing);
    }
    Ok(covered)
}

/// One line of a `stale-input` problem (PA §9.4); `None` is "absent".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StaleInput {
    Head {
        head: HeadId,
        expected: Option<Revision>,
        actual: Option<Revision>,
    },
    Machine {
        machine: MachineId,
        expected: Option<ImportBaseRevisionId>,
        actual: Option<ImportBaseRevisionId>,
    },
    /// Publication evidence that no longer holds (PA §6.1.1).
    Evidence { machine: MachineId },
}

/// A head the release depends on, under T3's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadCheck {
    pub head: HeadId,
    /// The draft's base for a changed head, the snapshot's revision for an unchanged one.
    pub expected: Revision,
    pub actual: Option<Revision>,
    pub changed: bool,
}

/// A machine of the cluster, under T3's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineCheck {
    pub machine: MachineId,
    /// The base the snapshot compiled it on, unless the draft carries one for it.
    pub compiled_on: Option<ImportBaseRevisionId>,
    /// The base of its Applied release now.
    pub actual: Option<ImportBaseRevisionId>,
    pub covered: bool,
    pub from_draft: bool,
    pub retired: bool,
    pub assignment_changed: bool,
    /// An operation that holds its scope.
    pub holder: Option<OperationId>,
    /// Recovery mode is in effect and its scope is not released in this epoch.
    pub recovery_closed: bool,
    pub evidence_holds: bool,
}

/// What T3's comparisons found, before anything is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitRefusal {
    StaleInput(Vec<StaleInput>),
    ScopeBusy {
        machine: MachineId,
        operation: OperationId,
    },
    RecoveryModeActive {
        machine: MachineId,
    },
}

/// Compares every input of a publication under T3's locks. Heads come in identifier
/// order, machines in theirs, so the list of conflicts is one list.
pub fn commit_checks<R: Rules>(
    rules: &R,
    heads: &[HeadCheck],
    machines: &[MachineCheck],
) -> Result<(), CommitRefusal> {
    let mut stale = Vec::new();
    for check in heads {
        let rule = if check.changed {
            Rule::ChangedHeadUnmoved
        } else {
            Rule::UnchangedHeadUnmoved
        };
        if !rules.holds(rule, check.actual == Some(check.expected)) {
            stale.push(StaleInput::Head {
                head: check.head,
                expected: Some(check.expected),
                actual: check.actual,
            });
        }
    }
    for check in machines.iter().filter(|check| !check.retired) {
        stale.extend(stale_machine(rules, check));
    }
    if !stale.is_empty() {
        return Err(CommitRefusal::StaleInput(stale));
    }
    for check in machines.iter().filter(|check| check.assignment_changed) {
        if let Some(operation) = check.holder
            && !rules.holds(Rule::AssignmentScopeFree, false)
        {
            return Err(CommitRefusal::ScopeBusy {
                machine: check.machine,
                operation,
            });
        }
        if !rules.holds(Rule::AssignmentScopeReleased, !check.recovery_closed) {
            return Err(CommitRefusal::RecoveryModeActive {
                machine: check.machine,
            });
        }
    }
    Ok(())
}

fn stale_machine<R: Rules>(rules: &R, check: &MachineCheck) -> Vec<StaleInput> {
    let moved = StaleInput::Machine {
        machine: check.machine,
        expected: check.compiled_on,
        actual: check.actual,
    };
    let mut stale = Vec::new();
    if check.covered {
        let kept = check.from_draft || check.actual == check.compiled_on;
        if !rules.holds(Rule::ImportBaseUnmoved, kept) {
            stale.push(moved);
        }
        if !check.evidence_holds {
            stale.push(StaleInput::Evidence {
                machine: check.machine,
            });
        }
    } else if !rules.holds(Rule::NotCoveredSince, check.actual.is_none()) {
        stale.push(StaleInput::Machine {
            machine: check.machine,
            expected: None,
            actual: check.actual,
        });
    }
    stale
}

/// What a second commit of one draft revision finds (PA §6.2, §7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingRelease {
    /// No release of this draft revision: the comparisons follow.
    Absent,
    /// This operation succeeded with it: nothing is written.
    Done(ReleaseId),
    /// The same content, and the operation has not succeeded yet.
    Finish(ReleaseId),
    /// Other content under the same natural key: 409 `conflict`.
    Differs(ReleaseId),
}

/// `existing` is the release of (draft, revision) with whether its content digest equals
/// this unit's.
pub fn existing_release<R: Rules>(
    rules: &R,
    existing: Option<(ReleaseId, bool)>,
    succeeded_with: Option<ReleaseId>,
) -> ExistingRelease {
    match existing {
        None => ExistingRelease::Absent,
        // A dropped rule passes the natural key over, and the index behind it refuses.
        Some(_) if !rules.enforced(Rule::OneReleasePerRevision) => ExistingRelease::Absent,
        Some((release, false)) => ExistingRelease::Differs(release),
        Some((release, true)) if succeeded_with == Some(release) => ExistingRelease::Done(release),
        Some((release, true)) => ExistingRelease::Finish(release),
    }
}

/// The release a publication bound its operation to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BoundDraft {
    pub draft: DraftId,
    pub revision: Revision,
}

/// The heads of `used` that no draft entry names: those T3 holds unchanged.
pub fn unchanged_heads(used: &BTreeSet<HeadId>, changed: &BTreeSet<HeadId>) -> BTreeSet<HeadId> {
    used.difference(changed).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::FragmentId;
    use crate::rules::{Enforced, Without};

    fn base(bits: u128) -> Option<ImportBaseRevisionId> {
        Some(ImportBaseRevisionId::from_bits(bits))
    }

    fn candidate(applied: Option<ImportBaseRevisionId>) -> Candidate {
        Candidate {
            applied_base: applied,
            draft_base: None,
            assignment: None,
            assignment_changed: false,
            retired: false,
        }
    }

    fn machine_check() -> MachineCheck {
        MachineCheck {
            machine: MachineId::from_bits(1),
            compiled_on: base(1),
            actual: base(1),
            covered: true,
            from_draft: false,
            retired: false,
            assignment_changed: false,
            holder: None,
            recovery_closed: false,
            evidence_holds: true,
        }
    }

    #[test]
    fn a_versions_minor_is_its_contract() {
        let contract = Contract::parse("v1.13").unwrap();
        assert_eq!(contract.to_string(), "v1.13");
        for version in ["v1.13.6", "v1.13.0-alpha.1", "v1.13.6-dirty"] {
            assert_eq!(Contract::of_version(version), Some(contract), "{version}");
        }
        for text in ["1.13", "v1", "v1.013", "v1.13.6", "v1.x", ""] {
            assert_eq!(Contract::parse(text), None, "{text}");
        }
        for text in ["v1.13", "v1.13.", "v1.13.x", "1.13.6", "v1.13.6.x.y"] {
            let read = Contract::of_version(text);
            assert!(read.is_none() || text == "v1.13.6.x.y", "{text}");
        }
    }

    #[test]
    fn a_release_covers_every_machine_with_a_base_after_the_draft() {
        let mut machines = BTreeMap::from([
            (MachineId::from_bits(1), candidate(base(1))),
            (MachineId::from_bits(2), candidate(None)),
            (
                MachineId::from_bits(3),
                Candidate {
                    draft_base: base(9),
                    ..candidate(base(3))
                },
            ),
            (
                MachineId::from_bits(4),
                Candidate {
                    retired: true,
                    ..candidate(base(4))
                },
            ),
        ]);
        let covered = coverage(&Enforced, &machines).unwrap();
        assert_eq!(
            covered.keys().copied().collect::<Vec<_>>(),
            [MachineId::from_bits(1), MachineId::from_bits(3)]
        );
        assert_eq!(Some(covered[&MachineId::from_bits(3)].import_base), base(9));
        let control = coverage(&Without(&[Rule::ReleaseCoversCluster]), &machines).unwrap();
        assert_eq!(control.len(), 1);
        machines
            .get_mut(&MachineId::from_bits(2))
            .unwrap()
            .assignment_changed = true;
        assert_eq!(
            coverage(&Enforced, &machines),
            Err(CoverageRefusal::AssignmentWithoutBase {
                machine: MachineId::from_bits(2)
            })
        );
        assert!(coverage(&Without(&[Rule::AssignmentNeedsBase]), &machines).is_ok());
        assert_eq!(
            coverage(&Enforced, &BTreeMap::new()),
            Err(CoverageRefusal::CoversNothing)
        );
    }

    // covers-part: PA-PUB-2 (the comparisons themselves, each with its rule dropped)
    #[test]
    fn each_moved_input_is_named_and_its_rule_alone_lets_it_pass() {
        let head = HeadId::Fragment(FragmentId::from_bits(1));
        let moved = |changed| HeadCheck {
            head,
            expected: Revision(3),
            actual: Some(Revision(4)),
            changed,
        };
        let conflict = StaleInput::Head {
            head,
            expected: Some(Revision(3)),
            actual: Some(Revision(4)),
        };
        for (changed, rule) in [
            (true, Rule::ChangedHeadUnmoved),
            (false, Rule::UnchangedHeadUnmoved),
        ] {
            assert_eq!(
                commit_checks(&Enforced, &[moved(changed)], &[]),
                Err(CommitRefusal::StaleInput(vec![conflict.clone()]))
            );
            let rules: &'static [Rule] = vec![rule].leak();
            assert_eq!(
                commit_checks(&Without(rules), &[moved(changed)], &[]),
                Ok(())
            );
        }
        let cases = [
            (
                MachineCheck {
                    actual: base(2),
                    ..machine_check()
                },
                Rule::ImportBaseUnmoved,
            ),
            (
                MachineCheck {
                    covered: false,
                    compiled_on: None,
                    ..machine_check()
                },
                Rule::NotCoveredSince,
            ),
            (
                MachineCheck {
                    assignment_changed: true,
                    holder: Some(OperationId::from_bits(1)),
                    ..machine_check()
                },
                Rule::AssignmentScopeFree,
            ),
            (
                MachineCheck {
                    assignment_changed: true,
                    recovery_closed: true,
                    ..machine_check()
                },
                Rule::AssignmentScopeReleased,
            ),
        ];
        for (check, rule) in cases {
            assert!(
                commit_checks(&Enforced, &[], &[check]).is_err(),
                "{}",
                rule.name()
            );
            let rules: &'static [Rule] = vec![rule].leak();
            assert_eq!(commit_checks(&Without(rules), &[], &[check]), Ok(()));
        }
    }

    #[test]
    fn what_did_not_move_commits() {
        let carried = MachineCheck {
            from_draft: true,
            actual: base(7),
            ..machine_check()
        };
        let retired = MachineCheck {
            retired: true,
            covered: false,
            ..machine_check()
        };
        assert_eq!(
            commit_checks(&Enforced, &[], &[machine_check(), carried, retired]),
            Ok(())
        );
    }

    #[test]
    fn a_second_commit_of_a_draft_revision_finds_its_release() {
        let release = ReleaseId::from_bits(1);
        let found = |existing, done| existing_release(&Enforced, existing, done);
        assert_eq!(found(None, None), ExistingRelease::Absent);
        assert_eq!(
            found(Some((release, true)), None),
            ExistingRelease::Finish(release)
        );
        assert_eq!(
            found(Some((release, true)), Some(release)),
            ExistingRelease::Done(release)
        );
        assert_eq!(
            found(Some((release, false)), None),
            ExistingRelease::Differs(release)
        );
    }

    #[test]
    fn an_observed_configuration_is_of_the_release_whose_artifact_it_is() {
        let [old, new] = [1, 2].map(ReleaseId::from_bits);
        let [first, second, other] = [b"1", b"2", b"3"].map(|text| ConfigDigest::of(text));
        let of = |seen| observed_release(seen, Some((old, first)), Some((new, second)));
        assert_eq!(of(first), Some(old));
        assert_eq!(of(second), Some(new));
        assert_eq!(of(other), None);
        let same = observed_release(first, Some((old, first)), Some((new, first)));
        assert_eq!(same, Some(old));
        assert_eq!(observed_release(first, None, None), None);
    }

    #[test]
    fn convergence_compares_digests_and_not_names() {
        let applied = Applied {
            release: ReleaseId::from_bits(1),
            digest: ConfigDigest::of(b"base"),
            source: AppliedSource::Adoption,
            baseline: crate::revision::BaselineRevision::FIRST,
        };
        assert!(!pending_convergence(None, Some(&applied)));
        assert!(pending_convergence(Some(ConfigDigest::of(b"x")), None));
        assert!(pending_convergence(
            Some(ConfigDigest::of(b"x")),
            Some(&applied)
        ));
        assert!(!pending_convergence(
            Some(ConfigDigest::of(b"base")),
            Some(&applied)
        ));
    }
}
