//! Drift (EaR 6.1): what an observation makes of a machine's open drift record.
//!
//! Recording an observation asks here, in the same transaction. Detection opens,
//! extends or closes a record and raises an alert; it never freezes and never applies.

use crate::attempt::Attempt;
use crate::digest::ConfigDigest;
use crate::id::{MachineId, ObservationId, OperationId};
use crate::observation::{Observation, Purpose};
use crate::release::Applied;
use crate::revision::TimelineRevision;
use crate::rules::{Rule, Rules};
use crate::time::{DbTime, Span};

/// Why a drift record was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resolution {
    Adopted,
    Reverted,
    Returned,
}

impl Resolution {
    pub const fn as_str(self) -> &'static str {
        match self {
            Resolution::Adopted => "adopted",
            Resolution::Reverted => "reverted",
            Resolution::Returned => "returned",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "adopted" => Some(Resolution::Adopted),
            "reverted" => Some(Resolution::Reverted),
            "returned" => Some(Resolution::Returned),
            _ => None,
        }
    }
}

/// A machine's open drift record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenDrift {
    pub machine: MachineId,
    /// Its opening entry, by which plans bind it.
    pub revision: TimelineRevision,
    pub applied_digest: ConfigDigest,
    /// The digest last observed.
    pub observed_digest: ConfigDigest,
    pub observation: ObservationId,
    pub last_observation: ObservationId,
    pub late_landing: Option<OperationId>,
}

/// What detection looks at, read under the machine's lock.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub observation: &'a Observation,
    /// Applied now.
    pub applied: Option<&'a Applied>,
    /// Whether a recorded observation with a higher basis read the digest.
    pub superseded: bool,
    /// Whether an operation holds the scope, or took it at or after the basis. The
    /// operation that a completion observation fails is not counted by its caller.
    pub held_since_basis: bool,
    pub open: Option<&'a OpenDrift>,
    /// The machine's latest operation with an attempt accounted by decision, its artifact's
    /// digest, and those attempts.
    pub accounted: Option<AccountedOperation<'a>>,
}

#[derive(Clone, Copy, Debug)]
pub struct AccountedOperation<'a> {
    pub operation: OperationId,
    pub artifact: ConfigDigest,
    pub attempts: &'a [Attempt],
}

/// What becomes of the record. Opening and extending raise an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Detection {
    Nothing,
    Open {
        applied: ConfigDigest,
        observed: ConfigDigest,
        late_landing: Option<OperationId>,
    },
    /// A further differing observation is recorded on the open record.
    Extend {
        observed: ConfigDigest,
        late_landing: Option<OperationId>,
    },
    /// The machine shows Applied again.
    Return,
}

/// Whether observations of this purpose detect drift at all. Evidence does only for a
/// commitment refused on its digest, completion only where it fails an operation; their
/// callers ask only then.
pub const fn detects(purpose: Purpose) -> bool {
    match purpose {
        Purpose::Drift | Purpose::Restoration | Purpose::Evidence | Purpose::Completion => true,
        Purpose::Publication | Purpose::Recovery => false,
    }
}

/// Decides what an observation does to a machine's drift record.
pub fn detect<R: Rules>(rules: &R, facts: &Facts<'_>) -> Detection {
    let purpose = facts.observation.started.purpose;
    let (Some(applied), Some(observed)) = (facts.applied, facts.observation.digest()) else {
        return Detection::Nothing;
    };
    // Compared with the Applied that held when the read began.
    let unmoved = facts.observation.started.baseline == Some(applied.baseline);
    if !detects(purpose)
        || !rules.holds(Rule::DriftBaselineUnmoved, unmoved)
        || !rules.holds(Rule::DriftNotSuperseded, !facts.superseded)
    {
        return Detection::Nothing;
    }
    let differs = observed != applied.digest;
    let late_landing = late_landing(rules, facts, observed);
    match (facts.open, differs) {
        (None, false) => Detection::Nothing,
        (Some(_), false) if rules.enforced(Rule::DriftReturns) => Detection::Return,
        (Some(_), false) => Detection::Nothing,
        (open, true) => {
            let free = match purpose {
                Purpose::Drift | Purpose::Evidence => !facts.held_since_basis,
                Purpose::Restoration
                | Purpose::Completion
                | Purpose::Publication
                | Purpose::Recovery => true,
            };
            if !rules.holds(Rule::DriftScopeFree, free) {
                return Detection::Nothing;
            }
            let opens = open.is_none() || !rules.enforced(Rule::DriftOpensOnce);
            if opens {
                Detection::Open {
                    applied: applied.digest,
                    observed,
                    late_landing,
                }
            } else {
                Detection::Extend {
                    observed,
                    late_landing,
                }
            }
        }
    }
}

/// Whether a machine is due to be read for drift at `now`. `last` is when its latest such
/// reading began, or when the operation that set its Applied was made, if that was later: it
/// was read then too. Up to a tenth of the interval is added, of the machine's own, so that
/// machines that were adopted together drift apart; every controller finds the same.
pub fn due(interval: Span, machine: MachineId, last: DbTime, now: DbTime) -> bool {
    now >= last + interval + jitter(interval, machine, last)
}

fn jitter(interval: Span, machine: MachineId, last: DbTime) -> Span {
    let longest = interval.as_micros() / 10;
    let [low, high] = halves(machine.bits());
    // The finalizer of splitmix64: every bit of the seed reaches every bit of the result.
    let mut mixed = low ^ high ^ last.as_micros().cast_unsigned();
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let within = mixed % longest.unsigned_abs().saturating_add(1);
    Span::micros(within.cast_signed())
}

fn halves(bits: u128) -> [u64; 2] {
    let bytes = bits.to_le_bytes();
    let half = |from: usize| {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[from..from + 8]);
        u64::from_le_bytes(eight)
    };
    [half(0), half(8)]
}

/// The operation whose request, accounted for as lost, shows on the node after all
/// (EaR 5.2).
fn late_landing<R: Rules>(
    rules: &R,
    facts: &Facts<'_>,
    observed: ConfigDigest,
) -> Option<OperationId> {
    let accounted = facts.accounted?;
    let decided = accounted
        .attempts
        .iter()
        .any(|attempt| attempt.accounting.is_some());
    (rules.enforced(Rule::LateLandingLinked) && decided && accounted.artifact == observed)
        .then_some(accounted.operation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::Accounting;
    use crate::attempt::tests::attempt;
    use crate::id::ReleaseId;
    use crate::observation::tests::observation;
    use crate::plan::tests::{ARTIFACT, BEFORE, at, signed};
    use crate::principal::Role;
    use crate::release::AppliedSource;
    use crate::revision::BaselineRevision;
    use crate::rules::{Enforced, Without};

    fn applied() -> Applied {
        Applied {
            release: ReleaseId::from_bits(1),
            digest: ConfigDigest::of(BEFORE),
            source: AppliedSource::Operation,
            baseline: BaselineRevision(1),
        }
    }

    fn open() -> OpenDrift {
        OpenDrift {
            machine: MachineId::from_bits(1),
            revision: TimelineRevision(4),
            applied_digest: ConfigDigest::of(BEFORE),
            observed_digest: ConfigDigest::of(b"x"),
            observation: ObservationId::from_bits(1),
            last_observation: ObservationId::from_bits(1),
            late_landing: None,
        }
    }

    struct Case {
        observation: Observation,
        superseded: bool,
        held: bool,
        open: Option<OpenDrift>,
    }

    fn case(purpose: Purpose, configuration: &[u8]) -> Case {
        Case {
            observation: observation(purpose, 10, configuration),
            superseded: false,
            held: false,
            open: None,
        }
    }

    fn run<R: Rules>(rules: &R, case: &Case) -> Detection {
        let applied = applied();
        detect(
            rules,
            &Facts {
                observation: &case.observation,
                applied: Some(&applied),
                superseded: case.superseded,
                held_since_basis: case.held,
                open: case.open.as_ref(),
                accounted: None,
            },
        )
    }

    #[test]
    fn machines_read_at_one_time_become_due_apart_within_a_tenth_of_the_interval() {
        let (interval, last) = (Span::seconds(300), at(0));
        let first_due = |bits: u128| {
            let machine = MachineId::from_bits(bits);
            (300..=330)
                .find(|seconds| due(interval, machine, last, at(*seconds)))
                .unwrap()
        };
        let times: std::collections::BTreeSet<i64> = (1..100).map(first_due).collect();
        assert!(times.len() > 20, "{times:?}");
        assert!((1..100).all(|bits| !due(interval, MachineId::from_bits(bits), last, at(299))));
        // A reading later, the same machine is due at another distance.
        let machine = MachineId::from_bits(1);
        let lengths: std::collections::BTreeSet<i64> = (0..20)
            .map(|last| jitter(interval, machine, at(last)).as_micros())
            .collect();
        assert!(lengths.len() > 10);
        assert!(due(Span::seconds(0), machine, last, last));
    }

    #[test]
    fn a_differing_reading_opens_then_extends_and_a_matching_one_closes() {
        let differs = case(Purpose::Drift, b"x");
        assert!(matches!(run(&Enforced, &differs), Detection::Open { .. }));
        let again = Case {
            open: Some(open()),
            ..case(Purpose::Drift, b"y")
        };
        assert!(matches!(run(&Enforced, &again), Detection::Extend { .. }));
        let back = Case {
            open: Some(open()),
            ..case(Purpose::Drift, BEFORE)
        };
        assert_eq!(run(&Enforced, &back), Detection::Return);
        assert_eq!(
            run(&Enforced, &case(Purpose::Drift, BEFORE)),
            Detection::Nothing
        );
    }

    // covers-part: EaR-DRF-1 (each rule dropped, as decided)
    #[test]
    fn each_reason_to_open_nothing_holds_alone() {
        let mut moved = case(Purpose::Drift, b"x");
        moved.observation.started.baseline = None;
        let cases = [
            (moved, Rule::DriftBaselineUnmoved),
            (
                Case {
                    superseded: true,
                    ..case(Purpose::Drift, b"x")
                },
                Rule::DriftNotSuperseded,
            ),
            (
                Case {
                    held: true,
                    ..case(Purpose::Drift, b"x")
                },
                Rule::DriftScopeFree,
            ),
            (
                Case {
                    held: true,
                    ..case(Purpose::Evidence, b"x")
                },
                Rule::DriftScopeFree,
            ),
        ];
        for (case, rule) in cases {
            assert_eq!(run(&Enforced, &case), Detection::Nothing);
            let rules: &'static [Rule] = vec![rule].leak();
            assert!(matches!(
                run(&Without(rules), &case),
                Detection::Open { .. }
            ));
        }
        let back = Case {
            open: Some(open()),
            ..case(Purpose::Drift, BEFORE)
        };
        assert_eq!(
            run(&Without(&[Rule::DriftReturns]), &back),
            Detection::Nothing
        );
        let again = Case {
            open: Some(open()),
            ..case(Purpose::Drift, b"y")
        };
        let control = run(&Without(&[Rule::DriftOpensOnce]), &again);
        assert!(matches!(control, Detection::Open { .. }));
    }

    #[test]
    fn recovery_and_publication_readings_and_unread_ones_detect_nothing() {
        for purpose in [Purpose::Recovery, Purpose::Publication] {
            assert_eq!(run(&Enforced, &case(purpose, b"x")), Detection::Nothing);
        }
        let mut unread = case(Purpose::Drift, b"x");
        unread.observation.values.configuration =
            crate::observation::Read::Unread(crate::observation::Unread::Refused);
        assert_eq!(run(&Enforced, &unread), Detection::Nothing);
        let failed = Case {
            held: true,
            ..case(Purpose::Completion, b"x")
        };
        assert!(matches!(run(&Enforced, &failed), Detection::Open { .. }));
    }

    #[test]
    fn a_landing_after_its_accounting_is_linked_to_its_operation() {
        let mut decided = attempt(1, 5);
        decided.accounting = Some(Accounting {
            by: signed(Role::RecoveryAdmin),
            start: ObservationId::from_bits(1),
            end: ObservationId::from_bits(2),
            facts: std::collections::BTreeMap::new(),
            revision: TimelineRevision(8),
            at: at(8),
        });
        let attempts = [decided];
        let operation = OperationId::from_bits(1);
        let applied = applied();
        let landed = observation(Purpose::Drift, 10, ARTIFACT);
        let facts = Facts {
            observation: &landed,
            applied: Some(&applied),
            superseded: false,
            held_since_basis: false,
            open: None,
            accounted: Some(AccountedOperation {
                operation,
                artifact: ConfigDigest::of(ARTIFACT),
                attempts: &attempts,
            }),
        };
        let linked = |rules: &dyn Fn(&Facts<'_>) -> Detection| match rules(&facts) {
            Detection::Open { late_landing, .. } => late_landing,
            Detection::Nothing | Detection::Extend { .. } | Detection::Return => None,
        };
        assert_eq!(linked(&|facts| detect(&Enforced, facts)), Some(operation));
        let control = Without(&[Rule::LateLandingLinked]);
        assert_eq!(linked(&|facts| detect(&control, facts)), None);
    }
}
