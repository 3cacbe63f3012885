//! The simulator as a gate: a seed is a run, seeds are clean, a dropped rule is noticed.

use std::sync::LazyLock;

use bronzeward_core::rules::Rule;
use bronzeward_model::genesis::Genesis;
use bronzeward_model::hazard::Hazard;
use bronzeward_model::mutate::unshown;
use bronzeward_model::planted::DEFECTS;
use bronzeward_model::seed::{End, Setting, keep_panics, run};
use bronzeward_model::sweep::{first, sweep};
use bronzeward_without::Without;

static GENESIS: LazyLock<Genesis> = LazyLock::new(|| {
    keep_panics();
    Genesis::make().unwrap_or_else(|error| panic!("no genesis: {error}"))
});

/// Seeds of the gate.
const SEEDS: u64 = 300;

// covers: MOD-1
#[test]
fn a_seed_makes_the_same_bytes_twice() {
    let setting = Setting {
        traced: true,
        ..Setting::default()
    };
    for seed in [0, 1, 17] {
        let (one, two) = (run(&GENESIS, seed, &setting), run(&GENESIS, seed, &setting));
        assert!(one.trace.lines().count() > 500, "seed {seed} did nothing");
        assert!(one.trace == two.trace, "seed {seed} differs from itself");
        assert_eq!(one.end, two.end);
    }
    let other = run(&GENESIS, 2, &setting).trace;
    assert!(other != run(&GENESIS, 3, &setting).trace);
}

/// Seeds of the baseline that docs/MODEL.md records.
const BASELINE: u64 = 30_000;

// covers: MOD-4 (with the gate below)
#[test]
fn the_figures_of_a_clean_baseline_are_recorded() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/MODEL.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block = page.split("<!-- figures -->").nth(1).unwrap();
    let mut lines = block.lines().skip_while(|line| *line != "```").skip(1);
    let made_by = format!("./dev sim --seeds {BASELINE} --record");
    assert_eq!(lines.next(), Some(made_by.as_str()));
    let first = lines.next().unwrap();
    assert!(first.starts_with(&format!("{BASELINE} seeds, ")), "{first}");
    for kind in ["fault: ", "sometimes: ", "operation: "] {
        assert!(block.contains(kind), "no {kind}");
    }
}

// covers-part: MOD-4 (the gate of 300 seeds)
#[test]
fn the_gates_seeds_are_clean_and_not_quiet() {
    let report = sweep(&GENESIS, 0..SEEDS, &Setting::default(), &|_| {});
    assert!(
        report.failed.is_empty(),
        "replay with ./dev sim --seed: {:?}",
        report.failed
    );
    assert_eq!(report.seeds, SEEDS);
    let happened = |what: &str| {
        let counts = report.seen.counts();
        counts
            .iter()
            .any(|(words, times)| *words == what && *times > 0)
    };
    for what in [
        "a commitment",
        "an attempt",
        "completed",
        "cancelled",
        "unresolved",
        "safe to retry",
        "a takeover by lapse",
        "a takeover by request",
        "a refusal entry",
        "a retry",
        "a lost answer recorded",
        "an accounting",
        "failed",
        "a release",
        "a drift opened",
        "an identity revoked",
        "a recovery observation",
        "a claim taken over",
        "a deadlock's victim",
        "a late landing after its operation ended",
        "a stale instance of an earlier epoch refused",
        "a recovery exit blocked",
        "recovery left",
        "a freeze that refused a dispatch",
        "a revocation that stopped a plan",
    ] {
        assert!(happened(what), "never seen: {what}");
    }
}

/// Rules of every kind of carrier, each dropped alone, with the invariant that notices it.
const DROPPED: [(Rule, &str); 8] = [
    (Rule::LeaseLive, "a lapsed lease is not extended"),
    (Rule::JobEligible, "a live owner is not replaced"),
    (Rule::SecondIfMatch, "no edit of a draft is lost"),
    (Rule::ActOrderLock, "acts are timed in their order"),
    (Rule::TimeAfterLastLock, "a time follows the last wait"),
    (
        Rule::PreDispatchDigest,
        "an attempt rests on fresh evidence",
    ),
    (
        Rule::EveryAttemptAccounted,
        "one more request is safe where it is said to be",
    ),
    (Rule::AtLeastOneAttempt, "an end fits its attempts"),
];

/// A seed violates the invariant it names, each of these; those before it may have violated
/// another, which the same harm breaks too.
fn noticed<T: std::fmt::Debug>(
    of: impl IntoIterator<Item = (T, Setting, &'static str)>,
    seeds: u64,
) -> Vec<(T, u64)> {
    let (mut all, mut missed) = (Vec::new(), Vec::new());
    for (what, setting, invariant) in of {
        let mut from = 0;
        loop {
            match first(&GENESIS, from..seeds, &setting) {
                Some((seed, End::Violated(found))) if found.invariant == invariant => {
                    all.push((what, seed));
                    break;
                }
                Some((seed, End::Violated(_))) => from = seed + 1,
                other => {
                    missed.push(format!("{what:?}: not by {invariant}: {other:?}"));
                    break;
                }
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    all
}

/// Whether the last step of a trace committed: in the same step its process may have begun what
/// it waits for next.
fn ends_with_a_commit(trace: &str) -> bool {
    let of = |line: &str| {
        line.split(' ')
            .take(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let last = trace.lines().next_back().unwrap_or_default();
    let lines = trace.lines().rev();
    let mut step = lines.take_while(|line| of(line) == of(last));
    step.any(|line| line.ends_with(" commit"))
}

// covers-part: MOD-2 (these rules, caught by seeds)
// covers: MOD-3 (the final oracle takes the world by a shared reference: it only reads)
#[test]
fn a_dropped_rule_is_noticed_by_an_invariant_in_the_step_that_violates_it() {
    let of = DROPPED.map(|(rule, invariant)| {
        let setting = Setting {
            rules: Without::rules(&[rule]),
            ..Setting::default()
        };
        (rule, setting, invariant)
    });
    for (rule, seed) in noticed(of, SEEDS) {
        let traced = Setting {
            rules: Without::rules(&[rule]),
            traced: true,
            ..Setting::default()
        };
        let trace = run(&GENESIS, seed, &traced).trace;
        let name = rule.name();
        assert!(ends_with_a_commit(&trace), "seed {seed} without {name}");
    }
}

// covers: MOD-2 (each rule by a witness, a seed above or a test of another part that is run too)
#[test]
fn no_rule_is_left_that_nothing_drops() {
    let by_seeds = DROPPED.map(|(rule, _)| rule);
    assert_eq!(unshown(&by_seeds), Ok(Vec::new()));
    // A rule that its seed no longer dropped would be missed.
    let missed = unshown(&[]).unwrap();
    assert!(missed.contains(&Rule::LeaseLive), "{missed:?}");
}

/// Seeds over which a defect is planted here; `./dev mutate` takes its own.
const PLANTED: u64 = 64;

// covers-part: MOD-2 (defects that no rule names)
#[test]
fn a_planted_defect_is_noticed_by_an_invariant() {
    let of = DEFECTS.iter().map(|(defect, invariant)| {
        let setting = Setting {
            planted: Some(*defect),
            ..Setting::default()
        };
        (*defect, setting, *invariant)
    });
    assert!(!noticed(of, PLANTED).is_empty());
}

/// Seeds of one hazard over which its rules are dropped.
const HAZARDOUS: u64 = 64;

/// Rules whose exercise needs a schedule of its own, by the family of judges that notices.
const IN_A_HAZARD: [(Hazard, Rule, &str); 14] = [
    // Recovery and scopes.
    (
        Hazard::Restores,
        Rule::EntryOncePerStart,
        "a recovery start enters once",
    ),
    (
        Hazard::Restores,
        Rule::RecoveryStartGate,
        "nothing is recorded before the entry",
    ),
    (
        Hazard::Restores,
        Rule::ExitNeedsEveryScope,
        "recovery mode is left with every scope released",
    ),
    (
        Hazard::Restores,
        Rule::ScopeAccountedFor,
        "an unaccounted scope is not unfrozen",
    ),
    (
        Hazard::Restores,
        Rule::EndAfterFloor,
        "a scope is accounted for once its requests have settled",
    ),
    (
        Hazard::Landings,
        Rule::EndAfterFloor,
        "an attempt is accounted for once it has settled",
    ),
    // Authority and epochs.
    (
        Hazard::Restores,
        Rule::TokenEpoch,
        "a token of another epoch lets nobody in",
    ),
    (
        Hazard::Withdrawals,
        Rule::HumanOnly,
        "only a human does what is a human's",
    ),
    (
        Hazard::Withdrawals,
        Rule::RoleQualifies,
        "an act is done under a role that may do it",
    ),
    (
        Hazard::Withdrawals,
        Rule::CancelledByCreator,
        "a publisher cancels its own plans",
    ),
    (
        Hazard::Withdrawals,
        Rule::SelfApprovalMarked,
        "an approval of one's own plan says so",
    ),
    (
        Hazard::Withdrawals,
        Rule::PlanNotCancelled,
        "a cancelled plan authorises nothing",
    ),
    // Keys, and the gate.
    (
        Hazard::Withdrawals,
        Rule::IdempotencyFingerprint,
        "a key answers its own request",
    ),
    (
        Hazard::Freezes,
        Rule::NotFrozen,
        "no mutation through a closed gate",
    ),
];

// covers-part: MOD-2 (these rules, caught by seeds of their hazard)
#[test]
fn a_rule_that_needs_its_own_schedule_is_noticed_there() {
    let of = IN_A_HAZARD.map(|(hazard, rule, invariant)| {
        let setting = Setting {
            rules: Without::rules(&[rule]),
            hazard: Some(hazard),
            ..Setting::default()
        };
        (rule, setting, invariant)
    });
    assert!(!noticed(of, HAZARDOUS).is_empty());
}
