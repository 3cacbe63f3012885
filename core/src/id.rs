//! Identifiers that leave the database (PA §2): a kind's prefix and 128 bits in
//! lower-case base32.
//!
//! Every crate names records by these. The bits are given by the caller's
//! entropy port; a sequence number never becomes one, because a restore issues
//! sequence numbers again. Never in this module: randomness, and a second way to
//! spell an identifier (a parse accepts the canonical text only, so equal
//! identifiers are equal strings everywhere).

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::str::FromStr;

/// The kind of record an identifier names: its prefix (PA §2's table).
pub trait Kind: 'static {
    const PREFIX: &'static str;
}

/// Markers, one per prefix of PA §2.
pub mod kind {
    use super::Kind;

    #[derive(Debug)]
    pub enum Cluster {}
    impl Kind for Cluster {
        const PREFIX: &'static str = "cl";
    }

    #[derive(Debug)]
    pub enum Machine {}
    impl Kind for Machine {
        const PREFIX: &'static str = "mch";
    }

    #[derive(Debug)]
    pub enum Fragment {}
    impl Kind for Fragment {
        const PREFIX: &'static str = "frg";
    }

    #[derive(Debug)]
    pub enum FragmentRevision {}
    impl Kind for FragmentRevision {
        const PREFIX: &'static str = "frv";
    }

    #[derive(Debug)]
    pub enum Profile {}
    impl Kind for Profile {
        const PREFIX: &'static str = "prf";
    }

    #[derive(Debug)]
    pub enum ProfileRevision {}
    impl Kind for ProfileRevision {
        const PREFIX: &'static str = "prv";
    }

    #[derive(Debug)]
    pub enum Assignment {}
    impl Kind for Assignment {
        const PREFIX: &'static str = "asg";
    }

    #[derive(Debug)]
    pub enum AssignmentRevision {}
    impl Kind for AssignmentRevision {
        const PREFIX: &'static str = "asr";
    }

    #[derive(Debug)]
    pub enum ImportBaseRevision {}
    impl Kind for ImportBaseRevision {
        const PREFIX: &'static str = "ibr";
    }

    #[derive(Debug)]
    pub enum Draft {}
    impl Kind for Draft {
        const PREFIX: &'static str = "drf";
    }

    #[derive(Debug)]
    pub enum Release {}
    impl Kind for Release {
        const PREFIX: &'static str = "rel";
    }

    #[derive(Debug)]
    pub enum Dependency {}
    impl Kind for Dependency {
        const PREFIX: &'static str = "dep";
    }

    #[derive(Debug)]
    pub enum DependencyAlert {}
    impl Kind for DependencyAlert {
        const PREFIX: &'static str = "dal";
    }

    #[derive(Debug)]
    pub enum Epoch {}
    impl Kind for Epoch {
        const PREFIX: &'static str = "ep";
    }

    #[derive(Debug)]
    pub enum Request {}
    impl Kind for Request {
        const PREFIX: &'static str = "req";
    }

    #[derive(Debug)]
    pub enum Plan {}
    impl Kind for Plan {
        const PREFIX: &'static str = "pln";
    }

    #[derive(Debug)]
    pub enum Approval {}
    impl Kind for Approval {
        const PREFIX: &'static str = "apr";
    }

    #[derive(Debug)]
    pub enum Operation {}
    impl Kind for Operation {
        const PREFIX: &'static str = "op";
    }

    #[derive(Debug)]
    pub enum Attempt {}
    impl Kind for Attempt {
        const PREFIX: &'static str = "att";
    }

    #[derive(Debug)]
    pub enum Observation {}
    impl Kind for Observation {
        const PREFIX: &'static str = "obs";
    }

    #[derive(Debug)]
    pub enum Principal {}
    impl Kind for Principal {
        const PREFIX: &'static str = "idn";
    }

    #[derive(Debug)]
    pub enum Token {}
    impl Kind for Token {
        const PREFIX: &'static str = "tok";
    }

    #[derive(Debug)]
    pub enum Ingestion {}
    impl Kind for Ingestion {
        const PREFIX: &'static str = "ing";
    }

    #[derive(Debug)]
    pub enum Act {}
    impl Kind for Act {
        const PREFIX: &'static str = "act";
    }
}

pub type ClusterId = Id<kind::Cluster>;
pub type MachineId = Id<kind::Machine>;
pub type FragmentId = Id<kind::Fragment>;
pub type FragmentRevisionId = Id<kind::FragmentRevision>;
pub type ProfileId = Id<kind::Profile>;
pub type ProfileRevisionId = Id<kind::ProfileRevision>;
pub type AssignmentId = Id<kind::Assignment>;
pub type AssignmentRevisionId = Id<kind::AssignmentRevision>;
pub type ImportBaseRevisionId = Id<kind::ImportBaseRevision>;
pub type DraftId = Id<kind::Draft>;
pub type ReleaseId = Id<kind::Release>;
pub type DependencyId = Id<kind::Dependency>;
pub type DependencyAlertId = Id<kind::DependencyAlert>;
pub type EpochId = Id<kind::Epoch>;
pub type RequestId = Id<kind::Request>;
pub type PlanId = Id<kind::Plan>;
pub type ApprovalId = Id<kind::Approval>;
pub type OperationId = Id<kind::Operation>;
pub type AttemptId = Id<kind::Attempt>;
pub type ObservationId = Id<kind::Observation>;
pub type PrincipalId = Id<kind::Principal>;
pub type TokenId = Id<kind::Token>;
/// A staging claim's identifier: the `<claim id>` of a generation path.
pub type IngestionId = Id<kind::Ingestion>;
/// The same identifier, named for what it names in the database.
pub type ClaimId = IngestionId;
pub type ActId = Id<kind::Act>;

/// A head of any kind. The variants stand in the order of their prefixes, so that the
/// order of heads is the order of their texts: publications lock in it (PA §6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HeadId {
    Assignment(AssignmentId),
    Fragment(FragmentId),
    Profile(ProfileId),
}

impl HeadId {
    pub fn parse(text: &str) -> Result<Self, IdError> {
        AssignmentId::parse(text)
            .map(HeadId::Assignment)
            .or_else(|_| FragmentId::parse(text).map(HeadId::Fragment))
            .or_else(|_| ProfileId::parse(text).map(HeadId::Profile))
    }
}

impl fmt::Display for HeadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeadId::Assignment(id) => id.fmt(f),
            HeadId::Fragment(id) => id.fmt(f),
            HeadId::Profile(id) => id.fmt(f),
        }
    }
}

const SYMBOLS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const LENGTH: usize = 26;

/// An identifier of one kind.
///
/// It is kept as its 26 characters, not as a number: the order of the text is the
/// order a database gives (`COLLATE "C"`), and base32's digits sort before its
/// letters, so the order of the bits would be another one and locks taken in it
/// would cross (PA §5 rule 5).
pub struct Id<K> {
    text: [u8; LENGTH],
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Id<K> {
    /// The identifier of 128 bits from the caller's random source.
    pub fn from_bits(bits: u128) -> Self {
        let mut text = [0; LENGTH];
        for (place, symbol) in text.iter_mut().enumerate() {
            // 26 groups of five are 130 bits: the last group is filled with zeros.
            let group = match place {
                25 => (bits << 2) & 31,
                _ => (bits >> (123 - 5 * place)) & 31,
            };
            *symbol = SYMBOLS[group as usize];
        }
        Self {
            text,
            kind: PhantomData,
        }
    }

    /// The 128 bits this identifier was minted from.
    pub fn bits(&self) -> u128 {
        let mut bits: u128 = 0;
        for (place, symbol) in self.text.iter().enumerate() {
            let group = u128::from(symbol_value(*symbol).unwrap_or(0));
            bits = match place {
                25 => (bits << 3) | (group >> 2),
                _ => (bits << 5) | group,
            };
        }
        bits
    }

    /// Parses the canonical text, `<prefix>_<26 characters>`.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let rest = text
            .strip_prefix(K::PREFIX)
            .and_then(|rest| rest.strip_prefix('_'))
            .ok_or(IdError { prefix: K::PREFIX })?;
        let symbols: [u8; LENGTH] = rest
            .as_bytes()
            .try_into()
            .map_err(|_| IdError { prefix: K::PREFIX })?;
        let spelled = symbols.iter().all(|symbol| symbol_value(*symbol).is_some());
        // The two bits past the 128th must be zero, or two texts would spell one id.
        let canonical = symbol_value(symbols[LENGTH - 1]).is_some_and(|last| last & 3 == 0);
        if !spelled || !canonical {
            return Err(IdError { prefix: K::PREFIX });
        }
        Ok(Self {
            text: symbols,
            kind: PhantomData,
        })
    }

    fn suffix(&self) -> &str {
        // The bytes come from SYMBOLS alone.
        std::str::from_utf8(&self.text).unwrap_or("")
    }
}

fn symbol_value(symbol: u8) -> Option<u8> {
    match symbol {
        b'a'..=b'z' => Some(symbol - b'a'),
        b'2'..=b'7' => Some(symbol - b'2' + 26),
        _ => None,
    }
}

/// A text that is no identifier of the kind asked for. It does not hold the text:
/// what a caller sent instead of an identifier may be anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an identifier of the form {prefix}_<26 base32 characters>")]
pub struct IdError {
    pub prefix: &'static str,
}

impl<K: Kind> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", K::PREFIX, self.suffix())
    }
}

impl<K: Kind> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<K: Kind> FromStr for Id<K> {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::parse(text)
    }
}

// Written out, because a derive would ask the same of the marker.
impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Id<K> {}

impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<K> Eq for Id<K> {}

impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl<K> Hash for Id<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_contracts_own_example_parses_and_prints_itself() {
        let text = "rel_fgqvcvz3ck7h7234ljgdbzsj6m";
        let id: ReleaseId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(ReleaseId::from_bits(id.bits()), id);
    }

    #[test]
    fn another_kinds_prefix_is_refused() {
        assert!(PlanId::parse("op_fgqvcvz3ck7h7234ljgdbzsj6m").is_err());
        assert!(FragmentId::parse("frv_fgqvcvz3ck7h7234ljgdbzsj6m").is_err());
    }

    #[test]
    fn only_the_canonical_text_is_accepted() {
        for text in [
            "",
            "rel",
            "rel_",
            "rel_fgqvcvz3ck7h7234ljgdbzsj6",
            "rel_fgqvcvz3ck7h7234ljgdbzsj6mm",
            "rel_FGQVCVZ3CK7H7234LJGDBZSJ6M",
            "REL_fgqvcvz3ck7h7234ljgdbzsj6m",
            "rel_fgqvcvz3ck7h7234ljgdbzsj6n",
            "rel_fgqvcvz3ck7h7234ljgdbzsj60",
            "rel_fgqvcvz3ck7h7234ljgdbzsj6m ",
            "rel_fgqvcvz3ck7h7234ljgdbzsj6é",
            "7",
        ] {
            assert!(ReleaseId::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_two_kinds_share_a_prefix() {
        let prefixes = [
            kind::Cluster::PREFIX,
            kind::Machine::PREFIX,
            kind::Fragment::PREFIX,
            kind::FragmentRevision::PREFIX,
            kind::Profile::PREFIX,
            kind::ProfileRevision::PREFIX,
            kind::Assignment::PREFIX,
            kind::AssignmentRevision::PREFIX,
            kind::ImportBaseRevision::PREFIX,
            kind::Draft::PREFIX,
            kind::Release::PREFIX,
            kind::Dependency::PREFIX,
            kind::DependencyAlert::PREFIX,
            kind::Epoch::PREFIX,
            kind::Request::PREFIX,
            kind::Plan::PREFIX,
            kind::Approval::PREFIX,
            kind::Operation::PREFIX,
            kind::Attempt::PREFIX,
            kind::Observation::PREFIX,
            kind::Principal::PREFIX,
            kind::Token::PREFIX,
            kind::Ingestion::PREFIX,
            kind::Act::PREFIX,
        ];
        let distinct: std::collections::BTreeSet<_> = prefixes.iter().collect();
        assert_eq!(distinct.len(), prefixes.len());
    }

    #[test]
    fn heads_of_different_kinds_sort_as_their_texts_do() {
        let mut heads = vec![
            HeadId::Profile(ProfileId::from_bits(1)),
            HeadId::Fragment(FragmentId::from_bits(u128::MAX)),
            HeadId::Fragment(FragmentId::from_bits(1)),
            HeadId::Assignment(AssignmentId::from_bits(u128::MAX)),
        ];
        heads.sort();
        let texts: Vec<_> = heads.iter().map(HeadId::to_string).collect();
        let mut sorted = texts.clone();
        sorted.sort();
        assert_eq!(texts, sorted);
        for head in heads {
            assert_eq!(HeadId::parse(&head.to_string()), Ok(head));
        }
    }

    proptest! {
        #[test]
        fn bits_survive_the_text(bits in any::<u128>()) {
            let id = MachineId::from_bits(bits);
            let text = id.to_string();
            prop_assert_eq!(text.len(), "mch_".len() + LENGTH);
            prop_assert_eq!(MachineId::parse(&text), Ok(id));
            prop_assert_eq!(id.bits(), bits);
        }

        #[test]
        fn the_order_is_the_order_of_the_text(a in any::<u128>(), b in any::<u128>()) {
            let (a, b) = (MachineId::from_bits(a), MachineId::from_bits(b));
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        }

        #[test]
        fn a_parse_accepts_what_it_prints_and_nothing_else(text in "mch_[a-z2-7]{26}") {
            if let Ok(id) = MachineId::parse(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
