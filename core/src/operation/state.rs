//! The words for an operation's states.

/// The state's name in a row and on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationState {
    Committed,
    Sending,
    Verifying,
    Unresolved,
    Completed,
    Rejected,
    Failed,
    Cancelled,
}

impl OperationState {
    pub const ALL: [OperationState; 8] = [
        OperationState::Committed,
        OperationState::Sending,
        OperationState::Verifying,
        OperationState::Unresolved,
        OperationState::Completed,
        OperationState::Rejected,
        OperationState::Failed,
        OperationState::Cancelled,
    ];

    /// The states that hold a machine's scope and its cluster's slot.
    pub const HOLDING: [OperationState; 4] = [
        OperationState::Committed,
        OperationState::Sending,
        OperationState::Verifying,
        OperationState::Unresolved,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            OperationState::Committed => "committed",
            OperationState::Sending => "sending",
            OperationState::Verifying => "verifying",
            OperationState::Unresolved => "unresolved",
            OperationState::Completed => "completed",
            OperationState::Rejected => "rejected",
            OperationState::Failed => "failed",
            OperationState::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    pub const fn is_terminal(self) -> bool {
        match self {
            OperationState::Committed
            | OperationState::Sending
            | OperationState::Verifying
            | OperationState::Unresolved => false,
            OperationState::Completed
            | OperationState::Rejected
            | OperationState::Failed
            | OperationState::Cancelled => true,
        }
    }
}

impl super::UnresolvedCause {
    /// The cause as its entry names it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Takeover => "takeover",
            Self::AttemptRefused(_) => "attempt-refused",
            Self::Response(_) => "response",
            Self::EarlierAttemptOpen => "earlier-attempt-open",
            Self::VerificationDeadline => "verification-deadline",
            Self::Unaccounted => "unaccounted",
        }
    }
}
