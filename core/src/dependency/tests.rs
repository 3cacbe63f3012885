//! Every row of DM §3 on synthetic answers, and the order of the rows.

use super::*;
use proptest::prelude::*;

const DATE: &str = "Mon, 30 Nov 2026 04:01:00 GMT";
const CREATED: &str = "2026-11-30T03:00:00.48706993Z";

fn kv(version: i64) -> KvVersion {
    KvVersion {
        path: "gen/c/i/v".into(),
        version,
        created: Some(CREATED.into()),
    }
}

fn entry() -> KvVersionFacts {
    KvVersionFacts {
        created: Some(CREATED.into()),
        deletion: None,
        destroyed: false,
    }
}

fn kv_facts(entry: KvVersionFacts) -> KvFacts {
    KvFacts {
        current_version: 3,
        oldest_version: 0,
        versions: BTreeMap::from([(2, entry)]),
    }
}

fn answered<F>(facts: F) -> Answer<F> {
    Answer::Answered {
        status: 200,
        date: Some(DATE.into()),
        facts: Some(facts),
    }
}

fn status<F>(status: u16) -> Answer<F> {
    Answer::Answered {
        status,
        date: Some(DATE.into()),
        facts: None,
    }
}

fn transit(version: i64) -> TransitVersion {
    TransitVersion {
        key: "bw-artifact".into(),
        version,
        created: Some(1_000),
    }
}

fn transit_facts() -> TransitFacts {
    TransitFacts {
        keys: BTreeMap::from([(2, 1_000), (3, 2_000)]),
        latest_version: Some(3),
        min_available_version: Some(0),
        min_decryption_version: Some(1),
        soft_deleted: Some(false),
    }
}

fn of(c: Classification) -> (Class, Option<&'static str>) {
    (c.class, c.reason.map(Reason::name))
}

fn unknown(reason: &'static str) -> (Class, Option<&'static str>) {
    (Class::Unknown, Some(reason))
}

#[test]
fn the_rows_of_every_provider_object_hold_for_both_kinds() {
    let rows = [
        (403, "denied"),
        (404, "absent"),
        (503, "unavailable"),
        (500, "unreadable"),
        (429, "unreadable"),
        (400, "unreadable"),
        (307, "unreadable"),
        (204, "unreadable"),
        (200, "unreadable"),
    ];
    for (code, reason) in rows {
        assert_eq!(
            of(classify_kv(&kv(2), &status(code))),
            unknown(reason),
            "{code}"
        );
        assert_eq!(
            of(classify_transit(&transit(2), &status(code))),
            unknown(reason),
            "{code}"
        );
    }
    assert_eq!(
        of(classify_kv(&kv(2), &Answer::Unreachable)),
        unknown("unreachable")
    );
    assert_eq!(
        of(classify_transit(&transit(2), &Answer::Unreachable)),
        unknown("unreachable")
    );
    for version in [0, -1, i64::MIN] {
        assert_eq!(
            of(classify_kv(&kv(version), &Answer::Unreachable)),
            unknown("malformed")
        );
        let answer = answered(transit_facts());
        assert_eq!(
            of(classify_transit(&transit(version), &answer)),
            unknown("malformed")
        );
    }
}

#[test]
fn a_kv_version_is_retained_under_its_own_creation_time_only() {
    let retained = (Class::Retained, None);
    assert_eq!(
        of(classify_kv(&kv(2), &answered(kv_facts(entry())))),
        retained
    );
    let mut first = kv(2);
    first.created = None;
    assert_eq!(
        of(classify_kv(&first, &answered(kv_facts(entry())))),
        retained
    );
    let cut_to_microseconds = "2026-11-30T03:00:00.487069Z".to_owned();
    for created in [None, Some(cut_to_microseconds)] {
        let facts = kv_facts(KvVersionFacts { created, ..entry() });
        assert_eq!(
            of(classify_kv(&kv(2), &answered(facts))),
            unknown("identity-mismatch")
        );
    }
    let nameless = kv_facts(KvVersionFacts {
        created: None,
        ..entry()
    });
    assert_eq!(
        of(classify_kv(&first, &answered(nameless))),
        unknown("identity-mismatch")
    );
}

#[test]
fn destroyed_and_pruned_come_before_the_identity() {
    let other = KvVersionFacts {
        created: Some("another".into()),
        ..entry()
    };
    let destroyed = kv_facts(KvVersionFacts {
        destroyed: true,
        ..other.clone()
    });
    assert_eq!(
        of(classify_kv(&kv(2), &answered(destroyed))),
        (Class::Lost, Some("destroyed"))
    );
    let pruned = KvFacts {
        oldest_version: 3,
        ..kv_facts(other)
    };
    assert_eq!(
        of(classify_kv(&kv(2), &answered(pruned))),
        (Class::Lost, Some("pruned"))
    );
    // Nothing was pruned yet: the floor is 0 and a version below 1 does not exist.
    assert_eq!(
        of(classify_kv(&kv(1), &answered(kv_facts(entry())))),
        unknown("insufficient-evidence")
    );
    let above = KvFacts {
        current_version: 1,
        ..kv_facts(entry())
    };
    assert_eq!(
        of(classify_kv(&kv(2), &answered(above))),
        unknown("insufficient-evidence")
    );
}

#[test]
fn a_deletion_time_is_compared_with_the_answers_own_date_in_whole_seconds() {
    let at = |deletion: &str, date: Option<&str>| {
        let facts = kv_facts(KvVersionFacts {
            deletion: Some(deletion.into()),
            ..entry()
        });
        let date = date.map(str::to_owned);
        classify_kv(
            &kv(2),
            &Answer::Answered {
                status: 200,
                date,
                facts: Some(facts),
            },
        )
    };
    let undecidable = unknown("deletion-time-undecidable");
    for same in ["2026-11-30T04:01:00Z", "2026-11-30T04:01:00.999999999Z"] {
        assert_eq!(of(at(same, Some(DATE))), undecidable);
    }
    let before = at("2026-11-30T04:00:59.999999999Z", Some(DATE));
    assert_eq!(of(before), (Class::Blocked, Some("soft-deleted")));
    let after = at("2026-11-30T04:01:01.000000001Z", Some(DATE));
    assert_eq!(
        after.scheduled.as_deref(),
        Some("2026-11-30T04:01:01.000000001Z")
    );
    assert_eq!(of(after), (Class::Retained, Some("deletion-scheduled")));
    for date in [
        None,
        Some("Mon, 30 Nov 2026 04:01:00.5 GMT"),
        Some("1796011260"),
    ] {
        assert_eq!(of(at("2020-01-01T00:00:00Z", date)), undecidable);
    }
    assert_eq!(of(at("soon", Some(DATE))), unknown("unreadable"));
}

#[test]
fn the_rows_of_a_transit_key_hold_in_order() {
    let case = |version, change: &dyn Fn(&mut TransitFacts)| {
        let mut facts = transit_facts();
        change(&mut facts);
        of(classify_transit(&transit(version), &answered(facts)))
    };
    assert_eq!(case(2, &|_| ()), (Class::Retained, None));
    assert_eq!(case(3, &|_| ()), unknown("identity-mismatch"));
    // The identity comes before the floors: a recreated key says nothing of the old one.
    assert_eq!(
        case(3, &|f| f.min_available_version = Some(9)),
        unknown("identity-mismatch")
    );
    for soft in [Some(true), None] {
        assert_eq!(
            case(2, &|f| f.soft_deleted = soft),
            unknown("soft-delete-unobserved")
        );
    }
    let insufficient = unknown("insufficient-evidence");
    assert_eq!(case(2, &|f| f.latest_version = None), insufficient);
    assert_eq!(case(2, &|f| f.min_available_version = None), insufficient);
    assert_eq!(case(2, &|f| f.min_decryption_version = None), insufficient);
    assert_eq!(case(2, &|f| f.latest_version = Some(1)), insufficient);
    assert_eq!(case(4, &|_| ()), insufficient);
    assert_eq!(
        case(1, &|f| f.min_available_version = Some(2)),
        unknown("trimmed-unverified")
    );
    let floor = |f: &mut TransitFacts| f.min_decryption_version = Some(2);
    assert_eq!(
        case(1, &floor),
        unknown("below-decryption-floor-unverified")
    );
    assert_eq!(case(1, &|_| ()), insufficient);
    let trimmed = case(2, &|f| f.min_available_version = Some(3));
    assert_eq!(trimmed, (Class::Lost, Some("trimmed")));
    let blocked = case(2, &|f| f.min_decryption_version = Some(3));
    assert_eq!(blocked, (Class::Blocked, Some("below-decryption-floor")));
}

#[test]
fn a_key_version_is_proven_by_two_equal_reads_of_an_earlier_second() {
    let read = |created: i64, date: Option<&str>| {
        let facts = TransitFacts {
            keys: BTreeMap::from([(1, created)]),
            ..transit_facts()
        };
        Answer::Answered {
            status: 200,
            date: date.map(str::to_owned),
            facts: Some(facts),
        }
    };
    let second = date::http_date(DATE).unwrap();
    let good = read(second - 1, Some(DATE));
    assert_eq!(proven_created(1, &good, &good), Some(second - 1));
    // Created in the second of the first read: it could be made again within it.
    let fresh = read(second, Some(DATE));
    assert_eq!(proven_created(1, &fresh, &fresh), None);
    assert_eq!(proven_created(1, &good, &read(second, Some(DATE))), None);
    assert_eq!(proven_created(1, &read(second - 1, None), &good), None);
    assert_eq!(proven_created(1, &good, &Answer::Unreachable), None);
    assert_eq!(proven_created(2, &good, &good), None);
}

#[test]
fn names_are_unique_and_read_back() {
    for class in Class::ALL {
        assert_eq!(Class::parse(class.name()), Some(class));
    }
    for reason in Reason::ALL {
        assert_eq!(Reason::parse(reason.name()), Some(reason));
    }
    assert_eq!(Class::parse("Retained"), None);
}

proptest! {
    /// No answer without a body makes anything but unknown, and a class always is its reason's.
    #[test]
    fn only_an_answer_that_parses_changes_a_class(code in 100u16..600, version in -2i64..5) {
        let answer: Answer<KvFacts> = status(code);
        let c = classify_kv(&kv(version), &answer);
        prop_assert_eq!(c.class, Class::Unknown);
        prop_assert_eq!(c.reason.map(Reason::class), Some(Class::Unknown));
    }

    #[test]
    fn a_hidden_transit_version_is_never_lost_or_blocked(
        version in 1i64..6,
        available in 0i64..6,
        decryption in 0i64..6,
        latest in 0i64..6,
    ) {
        let facts = TransitFacts {
            keys: BTreeMap::new(),
            latest_version: Some(latest),
            min_available_version: Some(available),
            min_decryption_version: Some(decryption),
            soft_deleted: Some(false),
        };
        let c = classify_transit(&transit(version), &answered(facts));
        prop_assert_eq!(c.class, Class::Unknown);
    }
}
