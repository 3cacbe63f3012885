//! Problems (PA §9.4): a code, a detail made of fixed words and names, and members.
//!
//! Refusals of the engine and errors of failed operations are these; http adds the
//! status, the title and the instance from its one table. Never in this module: a
//! status, or a way to put a value into a detail by formatting it. A detail's words
//! are literals of the program; what is named between them is an identifier, a path
//! or a rule.

use std::collections::BTreeMap;
use std::fmt;

/// Every code of PA §9.4, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemCode {
    InvalidRequest,
    CursorInvalid,
    Unauthenticated,
    Forbidden,
    IdentityRevoked,
    NotFound,
    StaleInput,
    Conflict,
    MachineIdentityMismatch,
    IngestionAbandoned,
    RecoveryModeEntered,
    ScopeBusy,
    RecoveryModeActive,
    PreconditionFailed,
    EpochMismatch,
    ValidationFailed,
    IdempotencyKeyReused,
    PreconditionRequired,
    IdempotencyKeyRequired,
    InternalError,
    NotImplemented,
    DependencyUnavailable,
    TalosAccessUnavailable,
    TransientConflict,
    EpochSuperseded,
    SchemaMismatch,
}

impl ProblemCode {
    pub const ALL: [ProblemCode; 26] = [
        ProblemCode::InvalidRequest,
        ProblemCode::CursorInvalid,
        ProblemCode::Unauthenticated,
        ProblemCode::Forbidden,
        ProblemCode::IdentityRevoked,
        ProblemCode::NotFound,
        ProblemCode::StaleInput,
        ProblemCode::Conflict,
        ProblemCode::MachineIdentityMismatch,
        ProblemCode::IngestionAbandoned,
        ProblemCode::RecoveryModeEntered,
        ProblemCode::ScopeBusy,
        ProblemCode::RecoveryModeActive,
        ProblemCode::PreconditionFailed,
        ProblemCode::EpochMismatch,
        ProblemCode::ValidationFailed,
        ProblemCode::IdempotencyKeyReused,
        ProblemCode::PreconditionRequired,
        ProblemCode::IdempotencyKeyRequired,
        ProblemCode::InternalError,
        ProblemCode::NotImplemented,
        ProblemCode::DependencyUnavailable,
        ProblemCode::TalosAccessUnavailable,
        ProblemCode::TransientConflict,
        ProblemCode::EpochSuperseded,
        ProblemCode::SchemaMismatch,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            ProblemCode::InvalidRequest => "invalid-request",
            ProblemCode::CursorInvalid => "cursor-invalid",
            ProblemCode::Unauthenticated => "unauthenticated",
            ProblemCode::Forbidden => "forbidden",
            ProblemCode::IdentityRevoked => "identity-revoked",
            ProblemCode::NotFound => "not-found",
            ProblemCode::StaleInput => "stale-input",
            ProblemCode::Conflict => "conflict",
            ProblemCode::MachineIdentityMismatch => "machine-identity-mismatch",
            ProblemCode::IngestionAbandoned => "ingestion-abandoned",
            ProblemCode::RecoveryModeEntered => "recovery-mode-entered",
            ProblemCode::ScopeBusy => "scope-busy",
            ProblemCode::RecoveryModeActive => "recovery-mode-active",
            ProblemCode::PreconditionFailed => "precondition-failed",
            ProblemCode::EpochMismatch => "epoch-mismatch",
            ProblemCode::ValidationFailed => "validation-failed",
            ProblemCode::IdempotencyKeyReused => "idempotency-key-reused",
            ProblemCode::PreconditionRequired => "precondition-required",
            ProblemCode::IdempotencyKeyRequired => "idempotency-key-required",
            ProblemCode::InternalError => "internal-error",
            ProblemCode::NotImplemented => "not-implemented",
            ProblemCode::DependencyUnavailable => "dependency-unavailable",
            ProblemCode::TalosAccessUnavailable => "talos-access-unavailable",
            ProblemCode::TransientConflict => "transient-conflict",
            ProblemCode::EpochSuperseded => "epoch-superseded",
            ProblemCode::SchemaMismatch => "schema-mismatch",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }
}

impl fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A problem's extra member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    Null,
    Bool(bool),
    Number(i64),
    Text(String),
    List(Vec<Member>),
    Object(BTreeMap<String, Member>),
}

impl Member {
    pub fn text(name: impl fmt::Display) -> Self {
        Member::Text(name.to_string())
    }

    /// An object of its named members.
    pub fn object<const N: usize>(members: [(&str, Member); N]) -> Self {
        Member::Object(
            members
                .into_iter()
                .map(|(name, member)| (name.to_owned(), member))
                .collect(),
        )
    }
}

impl From<bool> for Member {
    fn from(value: bool) -> Self {
        Member::Bool(value)
    }
}

impl From<i64> for Member {
    fn from(value: i64) -> Self {
        Member::Number(value)
    }
}

/// A refusal or a failure, as it is answered and as a failed operation keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub code: ProblemCode,
    pub detail: Option<String>,
    /// Members beside RFC 9457's own.
    pub members: BTreeMap<String, Member>,
}

impl Problem {
    pub fn new(code: ProblemCode) -> Self {
        Self {
            code,
            detail: None,
            members: BTreeMap::new(),
        }
    }

    /// Appends fixed words to the detail.
    #[must_use]
    pub fn say(mut self, words: &'static str) -> Self {
        self.detail.get_or_insert_with(String::new).push_str(words);
        self
    }

    /// Appends a name to the detail: an identifier, a path, a rule, a count. Never a
    /// value that was submitted.
    #[must_use]
    pub fn name(mut self, name: impl fmt::Display) -> Self {
        self.detail
            .get_or_insert_with(String::new)
            .push_str(&name.to_string());
        self
    }

    /// Sets a member.
    #[must_use]
    pub fn with(mut self, name: &str, member: impl Into<Member>) -> Self {
        self.members.insert(name.to_owned(), member.into());
        self
    }

    /// Sets a member that is a name.
    #[must_use]
    pub fn naming(self, member: &str, name: impl fmt::Display) -> Self {
        self.with(member, Member::text(name))
    }

    /// The problem as a tree, for a failed operation's record and a `mark-refused` event:
    /// type, detail where there is one, and its members. http adds title, status and
    /// instance.
    pub fn to_member(&self) -> Member {
        let mut members = self.members.clone();
        members.insert(
            "type".to_owned(),
            Member::Text(format!("urn:bronzeward:problem:{}", self.code)),
        );
        if let Some(detail) = &self.detail {
            members.insert("detail".to_owned(), Member::Text(detail.clone()));
        }
        Member::Object(members)
    }

    /// Reads back what [`Problem::to_member`] wrote. The members http adds are dropped.
    pub fn from_member(member: &Member) -> Option<Self> {
        let Member::Object(members) = member else {
            return None;
        };
        let text = |name: &str| match members.get(name) {
            Some(Member::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let code = text("type")?;
        let own = ["type", "title", "status", "detail", "instance"];
        Some(Self {
            code: ProblemCode::parse(code.strip_prefix("urn:bronzeward:problem:")?)?,
            detail: text("detail"),
            members: members
                .iter()
                .filter(|(name, _)| !own.contains(&name.as_str()))
                .map(|(name, member)| (name.clone(), member.clone()))
                .collect(),
        })
    }

    pub fn invalid_request(words: &'static str) -> Self {
        Self::new(ProblemCode::InvalidRequest).say(words)
    }

    pub fn conflict(words: &'static str) -> Self {
        Self::new(ProblemCode::Conflict).say(words)
    }

    pub fn not_found(words: &'static str) -> Self {
        Self::new(ProblemCode::NotFound).say(words)
    }

    /// A 422 of a named rule.
    pub fn validation(rule: &'static str) -> Self {
        Self::new(ProblemCode::ValidationFailed).naming("rule", rule)
    }

    pub fn internal(words: &'static str) -> Self {
        Self::new(ProblemCode::InternalError).say(words)
    }

    pub fn dependency_unavailable(words: &'static str) -> Self {
        Self::new(ProblemCode::DependencyUnavailable).say(words)
    }

    /// A refusal on a scope, which the body names (PA §9.4).
    pub fn recovery_mode_active(machine: crate::id::MachineId) -> Self {
        Self::new(ProblemCode::RecoveryModeActive)
            .say("The scope is not released in the current epoch.")
            .naming("scope", machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::MachineId;

    #[test]
    fn codes_read_back_as_written() {
        for code in ProblemCode::ALL {
            assert_eq!(ProblemCode::parse(code.as_str()), Some(code));
        }
        assert_eq!(ProblemCode::parse("teapot"), None);
    }

    #[test]
    fn a_detail_is_words_and_names_in_the_order_given() {
        let machine = MachineId::from_bits(1);
        let problem = Problem::conflict("The machine ")
            .name(machine)
            .say(" is frozen.")
            .naming("machine", machine);
        assert_eq!(
            problem.detail.unwrap(),
            format!("The machine {machine} is frozen.")
        );
        assert_eq!(problem.members["machine"], Member::text(machine));
    }

    #[test]
    fn a_stored_problem_reads_back_as_it_was() {
        let problem = Problem::validation("kubernetes")
            .say("The machines disagree.")
            .with("machines", Member::List(vec![Member::Null, true.into()]));
        assert_eq!(Problem::from_member(&problem.to_member()), Some(problem));
        assert_eq!(Problem::from_member(&Member::Null), None);
    }
}
