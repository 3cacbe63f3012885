//! Laws of the pure parts that many inputs show better than examples.
//!
//! proptest for structured inputs, quickcheck where any string or byte will do. Never in
//! this file: a law that only holds for the inputs its generator happens to make.

use std::collections::BTreeMap;

use bronzeward_core::canonical::{Digest, canonical_json, release_content_digest};
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::document::anchors::Anchors;
use bronzeward_core::document::{INTEGER, NULL, Node, lookup};
use bronzeward_core::forms::{FLOOR, Forms};
use bronzeward_core::id::{HeadId, Id, IdError, Kind, kind};
use bronzeward_core::path::{Format, Inner, Path};
use bronzeward_core::redact::paths;
use bronzeward_core::reference::Name;
use bronzeward_core::revision::{Etag, EtagToken, Revision};
use bronzeward_core::rules::Enforced;
use bronzeward_core::secret::{Scalar, Value, base64, canonical_base64, decode_base64};
use bronzeward_core::standin::StandIn;
use bronzeward_core::time::DbTime;
use proptest::prelude::*;
use quickcheck::quickcheck;

fn token() -> impl Strategy<Value = String> {
    // Tokens that exercise the escapes; an outer one cannot hold the bar (IC §2.2).
    "[a-z~/.\\[\\]0-9é ]{0,8}"
}

/// The parts of a path; a path itself has no form that a failure could print.
type Parts = (usize, Vec<String>, Option<(bool, Vec<String>)>);

fn parts() -> impl Strategy<Value = Parts> {
    let tokens = || proptest::collection::vec(token(), 0..5);
    let inner = (
        any::<bool>(),
        proptest::collection::vec("[a-z|~/]{0,6}", 0..4),
    );
    (0_usize..40, tokens(), proptest::option::of(inner))
}

fn path((document, tokens, inner): Parts) -> Path {
    Path {
        document,
        tokens,
        inner: inner.map(|(yaml, tokens)| Inner {
            format: if yaml { Format::Yaml } else { Format::Json },
            tokens,
        }),
    }
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        (-(1_i64 << 53)..(1_i64 << 53)).prop_map(serde_json::Value::from),
        ".{0,12}".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            proptest::collection::btree_map(".{0,6}", inner, 0..6)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// RFC 8785 for what `json` draws, written from the RFC.
fn canonical(json: &serde_json::Value) -> String {
    match json {
        serde_json::Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        serde_json::Value::Object(members) => {
            let mut members: Vec<(&String, &serde_json::Value)> = members.iter().collect();
            members.sort_by_key(|(name, _)| name.encode_utf16().collect::<Vec<u16>>());
            let members = members.into_iter().map(|(name, value)| {
                let name = serde_json::Value::from(name.as_str());
                format!("{name}:{}", canonical(value))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        scalar => scalar.to_string(),
    }
}

/// A JSON value as a document's tree.
fn tree(json: &serde_json::Value) -> Node {
    match json {
        serde_json::Value::Array(items) => Node::sequence(items.iter().map(tree).collect()),
        serde_json::Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| (Node::string(name.as_str()), tree(value)));
            Node::mapping(members.collect())
        }
        serde_json::Value::String(text) => Node::string(text.as_str()),
        serde_json::Value::Null => Node::scalar(NULL, "null"),
        scalar => Node::scalar(INTEGER, scalar.to_string()),
    }
}

/// Tokens that often lead somewhere in what `pointed` draws, and sometimes nowhere.
fn pointed() -> impl Strategy<Value = (serde_json::Value, Vec<String>)> {
    let name = || prop::sample::select(vec!["a", "~", "/", "~1", "0", "01", "-", ""]);
    let leaf = any::<u8>().prop_map(serde_json::Value::from);
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::btree_map(name().prop_map(str::to_string), inner, 0..4)
                .prop_map(|members| members.into_iter().collect()),
        ]
    });
    let token = prop_oneof![3 => name().prop_map(str::to_string), 1 => "[0-9]{1,2}"];
    (value, prop::collection::vec(token, 0..4))
}

fn read_back<K: Kind>(bits: u128) -> Result<u128, IdError> {
    Id::<K>::parse(&Id::<K>::from_bits(bits).to_string()).map(|id| id.bits())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(
            proptest::test_runner::FileFailurePersistence::WithSource("regressions"),
        )),
        ..ProptestConfig::default()
    })]

    #[test]
    fn an_identifier_reads_back_as_its_bits_and_as_no_other_kind(bits in any::<u128>(), other in any::<u128>()) {
        prop_assert_eq!(read_back::<kind::Machine>(bits), Ok(bits));
        prop_assert_eq!(read_back::<kind::Epoch>(bits), Ok(bits));
        let plan = Id::<kind::Plan>::from_bits(bits);
        prop_assert!(Id::<kind::Release>::parse(&plan.to_string()).is_err());
        let (left, right) = (plan.to_string(), Id::<kind::Plan>::from_bits(other).to_string());
        prop_assert_eq!(left == right, bits == other);
        // Locks are taken in the order that a database gives texts.
        prop_assert_eq!(plan.cmp(&Id::from_bits(other)), left.as_bytes().cmp(right.as_bytes()));
    }

    #[test]
    fn a_text_that_parses_as_an_identifier_is_its_own_spelling(text in "(frg|prf|asg|mch)_[a-z2-7]{26}") {
        if let Ok(head) = HeadId::parse(&text) {
            prop_assert_eq!(head.to_string(), text.clone());
        }
        if let Ok(machine) = Id::<kind::Machine>::parse(&text) {
            prop_assert_eq!(machine.to_string(), text);
        }
    }

    #[test]
    fn an_etag_reads_back_and_matches_itself_alone(
        (one, other) in (any::<u32>(), any::<u32>()),
        (left, right) in (any::<u128>(), any::<u128>()),
    ) {
        let etag = |revision: u32, bits| Etag::new(Revision(revision.into()), EtagToken::from_bits(bits));
        let first = etag(one, left);
        prop_assert_eq!(Etag::parse(&first.to_string()), Some(first));
        let same = one == other && left == right;
        prop_assert_eq!(first.matches(&Enforced, &etag(other, right)), same);
        prop_assert!(!first.matches(&Enforced, &etag(one, left.wrapping_add(1))));
        prop_assert!(first.matches(&Enforced, &etag(one, left)));
    }

    #[test]
    fn a_time_reads_back_to_its_second_and_keeps_its_order(left in 0_i64..4_000_000_000, right in 0_i64..4_000_000_000) {
        let (one, other) = (DbTime::from_seconds(left), DbTime::from_seconds(right));
        prop_assert_eq!(DbTime::parse_rfc3339(&one.to_rfc3339()).ok(), Some(one));
        prop_assert_eq!(one.to_rfc3339().cmp(&other.to_rfc3339()), left.cmp(&right));
    }

    #[test]
    fn a_path_behind_its_document_is_a_json_pointer((json, tokens) in pointed()) {
        let written = Path::new(0, tokens.clone()).written();
        let pointer = written.strip_prefix("doc[0]").expect("its document");
        let root = tree(&json);
        let anchors = Anchors::of(&root).expect("it has none");
        let found = lookup::find(&root, &anchors, &tokens).map(|(_, node)| node);
        let wanted = json.pointer(pointer).map(tree);
        prop_assert!(found == wanted.as_ref(), "{pointer} in {json}");
    }

    #[test]
    fn canonical_json_is_what_the_rfc_says(json in json()) {
        prop_assert_eq!(canonical_json(&json).expect("canonical"), canonical(&json));
    }

    #[test]
    fn a_path_reads_back_as_itself(parts in parts()) {
        let path = path(parts);
        let read = Path::parse(&path.written());
        prop_assert!(read.is_ok_and(|read| read == path));
    }

    #[test]
    fn two_paths_are_written_alike_only_if_they_are_one(left in parts(), right in parts()) {
        let (left, right) = (path(left), path(right));
        prop_assert_eq!(left == right, left.written() == right.written());
    }

    #[test]
    fn a_shown_path_holds_no_value_of_six_bytes(parts in parts(), at in any::<prop::sample::Index>()) {
        let path = path(parts);
        let tokens: Vec<&String> = path.all_tokens().filter(|token| token.len() >= FLOOR).collect();
        prop_assume!(!tokens.is_empty());
        let value = tokens[at.index(tokens.len())].clone();
        prop_assume!(!"doc[0]<redacted>".contains(&value));
        let forms = Forms::of([&Value::Scalar(Scalar::string(value.as_str()))]);
        let shown = paths::shown(Enforced, &path, &forms);
        prop_assert!(!shown.as_str().contains(&value));
    }

    #[test]
    fn canonical_json_is_a_fixed_point_and_keeps_the_value(json in json()) {
        let text = canonical_json(&json).expect("integers in range");
        let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        prop_assert_eq!(&read, &json);
        prop_assert_eq!(canonical_json(&read).expect("again"), text);
    }

    #[test]
    fn a_release_digest_knows_no_order_of_machines(
        machines in proptest::collection::btree_map("m_[a-z]{1,4}", any::<Vec<u8>>(), 0..6),
        metadata in json(),
    ) {
        let machines: Vec<(String, ConfigDigest)> = machines
            .into_iter()
            .map(|(machine, bytes)| (machine, ConfigDigest::of(&bytes)))
            .collect();
        let mut reversed = machines.clone();
        reversed.reverse();
        let one = release_content_digest(&metadata, &machines).expect("canonical");
        prop_assert_eq!(one, release_content_digest(&metadata, &reversed).expect("canonical"));
        if let Some((first, rest)) = machines.split_first() {
            let fewer = release_content_digest(&metadata, rest).expect("canonical");
            prop_assert_ne!(one, fewer);
            let mut other = rest.to_vec();
            other.push((first.0.clone(), ConfigDigest::of(b"another configuration")));
            prop_assume!(first.1 != ConfigDigest::of(b"another configuration"));
            prop_assert_ne!(one, release_content_digest(&metadata, &other).expect("canonical"));
        }
    }

    #[test]
    fn no_tail_of_a_copy_is_left(left in "[a-c]{6,9}", right in "[a-c]{6,9}", around in "[a-c ]{0,20}") {
        let values: Vec<Value> = [&left, &right]
            .into_iter()
            .map(|text| Value::Scalar(Scalar::string(text.as_str())))
            .collect();
        let forms = Forms::of(&values);
        let text = format!("{around}{left}{right}{around}");
        let shown = forms.replaced(&text, "#");
        prop_assert!(!forms.any_in(&shown));
        prop_assert!(!shown.contains(&left) && !shown.contains(&right));
    }

    #[test]
    fn a_stand_in_keeps_the_length_of_every_line_and_stands_in_for_itself(
        text in "[a-zA-Z0-9 é🦀\\-\n]{0,40}",
        id in 0_usize..1000,
    ) {
        let standin = StandIn::of(id, &Scalar::string(text.as_str()), None);
        let StandIn::Text { stored, placed, head, .. } = &standin else {
            return Err(TestCaseError::fail("a string's stand-in is text"));
        };
        let lengths = |text: &str| text.split('\n').map(str::len).collect::<Vec<_>>();
        prop_assert_eq!(lengths(stored), lengths(&text));
        prop_assert_eq!(head.is_some(), text.split('\n').any(|line| line.len() >= 5));
        prop_assert_eq!(standin.stands_in(placed), !text.is_empty());
        if head.is_some() {
            prop_assert!(standin.stands_in(&base64(placed)));
            let other = StandIn::of((id + 1) % 1000, &Scalar::string(text.as_str()), None);
            prop_assert!(!standin.indistinct(&other));
        }
    }

    #[test]
    fn minted_names_keep_the_grammar_and_differ(left in any::<[u8; 16]>(), right in any::<[u8; 16]>()) {
        let name = Name::minted(left);
        prop_assert!(Name::parse(name.as_str()).is_some());
        prop_assert_eq!(name == Name::minted(right), left == right);
    }
}

quickcheck! {
    fn a_text_that_parses_as_a_path_is_the_paths_own_spelling(text: String) -> bool {
        Path::parse(&text).map_or(true, |path| path.written() == text)
    }

    fn a_configuration_digest_sees_everything_but_trailing_line_feeds(bytes: Vec<u8>, ends: u8) -> bool {
        let digest = ConfigDigest::of(&bytes);
        let mut ended = bytes.clone();
        ended.extend(std::iter::repeat_n(b'\n', usize::from(ends % 5)));
        let mut more = bytes.clone();
        more.extend_from_slice(b"\nx");
        ConfigDigest::of(&ended) == digest && ConfigDigest::of(&more) != digest
    }

    fn a_configuration_digest_is_the_digest_of_its_bytes_with_one_line_feed(bytes: Vec<u8>, ends: u8) -> bool {
        let mut ended = bytes;
        ended.extend(std::iter::repeat_n(b'\n', usize::from(ends % 3)));
        let digest = ConfigDigest::of(&ended);
        while ended.last() == Some(&b'\n') {
            ended.pop();
        }
        ended.push(b'\n');
        *digest.as_bytes() == Digest::of(&ended).0
    }

    fn a_text_that_parses_as_a_digest_is_its_own_spelling(text: String, bytes: Vec<u8>) -> bool {
        let upper = Digest::of(&bytes).hex().to_uppercase();
        let digits = upper.bytes().all(|byte| byte.is_ascii_digit());
        Digest::from_hex(&text).is_none_or(|digest| digest.hex() == text)
            && (digits || Digest::from_hex(&upper).is_none())
    }

    fn base64_of_a_text_is_canonical_and_reads_back(text: String) -> bool {
        let encoded = base64(&text);
        let read = decode_base64(&encoded).is_some_and(|bytes| bytes.as_slice() == text.as_bytes());
        let canonical = canonical_base64(&encoded);
        read && (text.is_empty() || canonical.as_deref() == Some(encoded.as_str()))
    }

    fn a_digest_reads_back_from_its_hex(bytes: Vec<u8>) -> bool {
        let digest = Digest::of(&bytes);
        Digest::from_hex(&digest.hex()) == Some(digest)
    }

    fn a_mapping_shows_its_keys_and_strings_and_no_other_member(key: String, text: String, number: i64) -> bool {
        let members = BTreeMap::from([
            (format!("{key}a"), Scalar::string(text.as_str())),
            (format!("{key}b"), Scalar::Integer(i128::from(number))),
        ]);
        let value = Value::Mapping(members);
        value.strings().len() == 1 && value.keys().len() == 2
    }
}
