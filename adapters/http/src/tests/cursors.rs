//! Cursors: what they belong to, and tampering.

use bronzeward_core::id::{EpochId, MachineId};
use bronzeward_core::problem::ProblemCode;
use proptest::prelude::*;

use crate::cursor::{CursorKey, Scope, decode, encode};

fn key() -> CursorKey {
    CursorKey::new([7; 32])
}

fn scope() -> Scope {
    Scope::new(
        "plans",
        [("state", "approved"), ("machine", "mch_1")],
        false,
        EpochId::from_bits(1),
    )
}

// covers-part: PA-API-3 (a cursor of another epoch is 400 cursor-invalid)
#[test]
fn a_cursor_is_good_for_its_own_collection_filters_order_and_epoch_only() {
    let position = MachineId::from_bits(3).to_string();
    let cursor = encode(&key(), &scope(), position.clone());
    assert_eq!(decode(&key(), &scope(), &cursor), Ok(position));
    let reordered = Scope::new(
        "plans",
        [("machine", "mch_1"), ("state", "approved")],
        false,
        EpochId::from_bits(1),
    );
    assert!(decode(&key(), &reordered, &cursor).is_ok());
    for (what, other) in [
        (
            "collection",
            Scope::new(
                "operations",
                [("state", "approved"), ("machine", "mch_1")],
                false,
                EpochId::from_bits(1),
            ),
        ),
        (
            "filter",
            Scope::new(
                "plans",
                [("state", "approved")],
                false,
                EpochId::from_bits(1),
            ),
        ),
        (
            "value",
            Scope::new(
                "plans",
                [("state", "expired"), ("machine", "mch_1")],
                false,
                EpochId::from_bits(1),
            ),
        ),
        (
            "order",
            Scope::new(
                "plans",
                [("state", "approved"), ("machine", "mch_1")],
                true,
                EpochId::from_bits(1),
            ),
        ),
        (
            "epoch",
            Scope::new(
                "plans",
                [("state", "approved"), ("machine", "mch_1")],
                false,
                EpochId::from_bits(2),
            ),
        ),
    ] {
        let problem = decode(&key(), &other, &cursor).unwrap_err();
        assert_eq!(problem.code, ProblemCode::CursorInvalid, "{what}");
    }
    let other_key = CursorKey::new([8; 32]);
    assert!(decode(&other_key, &scope(), &cursor).is_err());
    assert_eq!(format!("{:?}", key()), "CursorKey(..)");
}

#[test]
fn what_is_no_cursor_is_refused() {
    let cursor = encode(&key(), &scope(), "x");
    for text in [
        "",
        "a",
        "!",
        "AAAA",
        &cursor[1..],
        &cursor[..cursor.len() - 1],
        &format!("{cursor}="),
        &"A".repeat(5000),
    ] {
        assert!(decode(&key(), &scope(), text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn a_cursor_changed_anywhere_is_refused(position in "[a-z0-9_]{0,40}", at in any::<prop::sample::Index>(), other in "[A-Za-z0-9_-]") {
        let cursor = encode(&key(), &scope(), position.clone());
        prop_assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
        let at = at.index(cursor.len());
        let mut changed = cursor.clone();
        changed.replace_range(at..=at, &other);
        let outcome = decode(&key(), &scope(), &changed);
        if changed == cursor {
            prop_assert_eq!(outcome, Ok(position));
        } else {
            prop_assert!(outcome.is_err());
        }
    }
}
