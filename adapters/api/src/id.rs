//! Identifiers as bodies carry them (PA §2): a text of the right form and prefix.
//!
//! Bodies alone use these; `http` converts them to core's own. The kind is in the
//! type, so that a body cannot name a plan where a release is meant. Never in this
//! module: minting.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A kind of record, or a closed choice of kinds, by prefix.
pub trait Kind: 'static {
    const NAME: &'static str;
    const PREFIXES: &'static [&'static str];
}

/// An identifier of kind `K`.
pub struct Id<K> {
    text: String,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Id<K> {
    /// The canonical text or nothing.
    pub fn parse(text: &str) -> Option<Self> {
        is_identifier(text, K::PREFIXES).then(|| Self {
            text: text.to_owned(),
            kind: PhantomData,
        })
    }
}

impl<K> Id<K> {
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        Self {
            text: self.text.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<K> Eq for Id<K> {}

impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl<K> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<K> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<K> Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de, K: Kind> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("identifier-form"))
    }
}

impl<K: Kind> JsonSchema for Id<K> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}Id", K::NAME).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": pattern(K::PREFIXES) })
    }
}

/// Whether a text is an identifier with one of these prefixes, in its one spelling:
/// the two spare bits of the last of the 26 characters are zero.
pub fn is_identifier(text: &str, prefixes: &[&str]) -> bool {
    let Some((prefix, symbols)) = text.split_once('_') else {
        return false;
    };
    let spelled = symbols
        .bytes()
        .all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'));
    let last = symbols.bytes().last();
    let canonical = last.is_some_and(|last| b"aeimquy4".contains(&last));
    prefixes.contains(&prefix) && spelled && symbols.len() == 26 && canonical
}

/// The grammar of an identifier with one of these prefixes, for schemas.
pub fn pattern(prefixes: &[&str]) -> String {
    let prefix = match prefixes {
        [one] => (*one).to_owned(),
        many => format!("({})", many.join("|")),
    };
    format!("^{prefix}_[a-z2-7]{{25}}[aeimquy4]$")
}

/// Markers, one per prefix of PA §2, and the choices bodies use.
pub mod kind {
    use super::Kind;

    pub enum Cluster {}
    impl Kind for Cluster {
        const NAME: &'static str = "Cluster";
        const PREFIXES: &'static [&'static str] = &["cl"];
    }

    pub enum Machine {}
    impl Kind for Machine {
        const NAME: &'static str = "Machine";
        const PREFIXES: &'static [&'static str] = &["mch"];
    }

    pub enum Fragment {}
    impl Kind for Fragment {
        const NAME: &'static str = "Fragment";
        const PREFIXES: &'static [&'static str] = &["frg"];
    }

    pub enum FragmentRevision {}
    impl Kind for FragmentRevision {
        const NAME: &'static str = "FragmentRevision";
        const PREFIXES: &'static [&'static str] = &["frv"];
    }

    pub enum Profile {}
    impl Kind for Profile {
        const NAME: &'static str = "Profile";
        const PREFIXES: &'static [&'static str] = &["prf"];
    }

    pub enum ProfileRevision {}
    impl Kind for ProfileRevision {
        const NAME: &'static str = "ProfileRevision";
        const PREFIXES: &'static [&'static str] = &["prv"];
    }

    pub enum Assignment {}
    impl Kind for Assignment {
        const NAME: &'static str = "Assignment";
        const PREFIXES: &'static [&'static str] = &["asg"];
    }

    pub enum AssignmentRevision {}
    impl Kind for AssignmentRevision {
        const NAME: &'static str = "AssignmentRevision";
        const PREFIXES: &'static [&'static str] = &["asr"];
    }

    pub enum ImportBaseRevision {}
    impl Kind for ImportBaseRevision {
        const NAME: &'static str = "ImportBaseRevision";
        const PREFIXES: &'static [&'static str] = &["ibr"];
    }

    pub enum Draft {}
    impl Kind for Draft {
        const NAME: &'static str = "Draft";
        const PREFIXES: &'static [&'static str] = &["drf"];
    }

    pub enum Release {}
    impl Kind for Release {
        const NAME: &'static str = "Release";
        const PREFIXES: &'static [&'static str] = &["rel"];
    }

    pub enum Dependency {}
    impl Kind for Dependency {
        const NAME: &'static str = "Dependency";
        const PREFIXES: &'static [&'static str] = &["dep"];
    }

    pub enum DependencyAlert {}
    impl Kind for DependencyAlert {
        const NAME: &'static str = "DependencyAlert";
        const PREFIXES: &'static [&'static str] = &["dal"];
    }

    pub enum Epoch {}
    impl Kind for Epoch {
        const NAME: &'static str = "Epoch";
        const PREFIXES: &'static [&'static str] = &["ep"];
    }

    pub enum Request {}
    impl Kind for Request {
        const NAME: &'static str = "Request";
        const PREFIXES: &'static [&'static str] = &["req"];
    }

    pub enum Plan {}
    impl Kind for Plan {
        const NAME: &'static str = "Plan";
        const PREFIXES: &'static [&'static str] = &["pln"];
    }

    pub enum Approval {}
    impl Kind for Approval {
        const NAME: &'static str = "Approval";
        const PREFIXES: &'static [&'static str] = &["apr"];
    }

    pub enum Operation {}
    impl Kind for Operation {
        const NAME: &'static str = "Operation";
        const PREFIXES: &'static [&'static str] = &["op"];
    }

    pub enum Attempt {}
    impl Kind for Attempt {
        const NAME: &'static str = "Attempt";
        const PREFIXES: &'static [&'static str] = &["att"];
    }

    pub enum Observation {}
    impl Kind for Observation {
        const NAME: &'static str = "Observation";
        const PREFIXES: &'static [&'static str] = &["obs"];
    }

    pub enum Principal {}
    impl Kind for Principal {
        const NAME: &'static str = "Principal";
        const PREFIXES: &'static [&'static str] = &["idn"];
    }

    pub enum Ingestion {}
    impl Kind for Ingestion {
        const NAME: &'static str = "Ingestion";
        const PREFIXES: &'static [&'static str] = &["ing"];
    }

    pub enum Act {}
    impl Kind for Act {
        const NAME: &'static str = "Act";
        const PREFIXES: &'static [&'static str] = &["act"];
    }

    pub enum Head {}
    impl Kind for Head {
        const NAME: &'static str = "Head";
        const PREFIXES: &'static [&'static str] = &["frg", "prf", "asg"];
    }

    pub enum Revision {}
    impl Kind for Revision {
        const NAME: &'static str = "Revision";
        const PREFIXES: &'static [&'static str] = &["frv", "prv", "asr", "ibr"];
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
pub type IngestionId = Id<kind::Ingestion>;
pub type ActId = Id<kind::Act>;
pub type HeadId = Id<kind::Head>;
pub type RevisionId = Id<kind::Revision>;
