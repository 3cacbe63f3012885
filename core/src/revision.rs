//! Revisions and ETags (PA §4).
//!
//! A revision number alone is for reading: a restore issues it again. What a request
//! presents is the number with a random token that every write replaces. Never in
//! this module: a comparison of a request with a bare number.

use std::fmt;

use crate::rules::{Rule, Rules};

/// A record's revision. The first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub i64);

impl Revision {
    pub const FIRST: Revision = Revision(1);

    pub const fn next(self) -> Self {
        Revision(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A machine's timeline revision: allocated under the machine row's lock, so its order
/// is commit order (EaR 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimelineRevision(pub i64);

impl TimelineRevision {
    pub const fn next(self) -> Self {
        TimelineRevision(self.0 + 1)
    }
}

impl fmt::Display for TimelineRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A machine's count of changes of Applied; there is none without an Applied (EaR 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BaselineRevision(pub i64);

impl BaselineRevision {
    pub const FIRST: BaselineRevision = BaselineRevision(1);

    /// The baseline after another change of Applied.
    pub fn after(previous: Option<BaselineRevision>) -> Self {
        match previous {
            Some(BaselineRevision(count)) => BaselineRevision(count + 1),
            None => Self::FIRST,
        }
    }
}

/// The 26 base32 characters beside a revision number in an ETag, from 128 random bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EtagToken(crate::id::Id<TokenText>);

/// Marks the token's text; it is no identifier of a record and has no prefix of its own.
enum TokenText {}

impl crate::id::Kind for TokenText {
    const PREFIX: &'static str = "";
}

impl EtagToken {
    pub fn from_bits(bits: u128) -> Self {
        Self(crate::id::Id::from_bits(bits))
    }

    /// Parses the 26 characters alone.
    pub fn parse(text: &str) -> Option<Self> {
        crate::id::Id::parse(&format!("_{text}")).ok().map(Self)
    }
}

impl fmt::Display for EtagToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_string().trim_start_matches('_'))
    }
}

impl fmt::Debug for EtagToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A strong ETag: `"5-m3oxmlfh6phr7aigshdydcb4ji"` with its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Etag {
    pub revision: Revision,
    pub token: EtagToken,
}

impl Etag {
    pub const fn new(revision: Revision, token: EtagToken) -> Self {
        Self { revision, token }
    }

    /// The ETag a header's value names, or none: a weak one, a list, `*` and every other
    /// text match nothing.
    pub fn parse(header: &str) -> Option<Self> {
        let inner = header.strip_prefix('"')?.strip_suffix('"')?;
        let (number, token) = inner.split_once('-')?;
        let canonical = !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && !(number.len() > 1 && number.starts_with('0'));
        if !canonical {
            return None;
        }
        Some(Self {
            revision: Revision(number.parse().ok()?),
            token: EtagToken::parse(token)?,
        })
    }

    /// Whether a request that presents `presented` was made against this record as it
    /// is: the whole value, not the number.
    pub fn matches<R: Rules>(&self, rules: &R, presented: &Etag) -> bool {
        self.revision == presented.revision
            && rules.holds(Rule::EtagToken, self.token == presented.token)
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}-{}\"", self.revision, self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Enforced, Without};
    use proptest::prelude::*;

    // covers-part: PA-ETAG-2 (the comparison itself; the restore is the store's)
    #[test]
    fn a_reissued_revision_number_does_not_match_without_its_token() {
        let before = Etag::new(Revision(5), EtagToken::from_bits(1));
        let reissued = Etag::new(Revision(5), EtagToken::from_bits(2));
        assert!(reissued.matches(&Enforced, &reissued));
        assert!(!reissued.matches(&Enforced, &before));
        assert!(reissued.matches(&Without(&[Rule::EtagToken]), &before));
    }

    #[test]
    fn the_contracts_example_parses_and_other_forms_name_nothing() {
        let text = "\"5-m3oxmlfh6phr7aigshdydcb4ji\"";
        assert_eq!(Etag::parse(text).unwrap().to_string(), text);
        for text in [
            "5-m3oxmlfh6phr7aigshdydcb4ji",
            "W/\"5-m3oxmlfh6phr7aigshdydcb4ji\"",
            "\"05-m3oxmlfh6phr7aigshdydcb4ji\"",
            "\"+5-m3oxmlfh6phr7aigshdydcb4ji\"",
            "\"5\"",
            "\"-m3oxmlfh6phr7aigshdydcb4ji\"",
            "*",
            "",
        ] {
            assert_eq!(Etag::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_etag_survives_its_text(number in 0_i64.., bits in any::<u128>()) {
            let etag = Etag::new(Revision(number), EtagToken::from_bits(bits));
            prop_assert_eq!(Etag::parse(&etag.to_string()), Some(etag));
        }
    }
}
