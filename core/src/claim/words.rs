//! The words for a claim's kind, mode, review and state.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClaimKind {
    Import,
    DriftAdoption,
    /// A draft entry: transient only.
    DraftUpdate,
}

impl ClaimKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            ClaimKind::Import => "import",
            ClaimKind::DriftAdoption => "drift-adoption",
            ClaimKind::DraftUpdate => "draft-update",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "import" => Some(ClaimKind::Import),
            "drift-adoption" => Some(ClaimKind::DriftAdoption),
            "draft-update" => Some(ClaimKind::DraftUpdate),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StagingMode {
    /// In the ingesting process's memory: no recovery owner.
    Transient,
    Encrypted,
}

impl StagingMode {
    pub const fn as_str(self) -> &'static str {
        match self {
            StagingMode::Transient => "transient",
            StagingMode::Encrypted => "encrypted",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "transient" => Some(StagingMode::Transient),
            "encrypted" => Some(StagingMode::Encrypted),
            _ => None,
        }
    }
}

/// An operator's review of the staged change, where one was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Review {
    Pending,
    Continued,
}

impl Review {
    pub const fn as_str(self) -> &'static str {
        match self {
            Review::Pending => "pending",
            Review::Continued => "continued",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "pending" => Some(Review::Pending),
            "continued" => Some(Review::Continued),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClaimState {
    Held,
    Paused,
    Resumed,
    Released,
    Abandoned,
}

impl ClaimState {
    pub const ALL: [ClaimState; 5] = [
        ClaimState::Held,
        ClaimState::Paused,
        ClaimState::Resumed,
        ClaimState::Released,
        ClaimState::Abandoned,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            ClaimState::Held => "held",
            ClaimState::Paused => "paused",
            ClaimState::Resumed => "resumed",
            ClaimState::Released => "released",
            ClaimState::Abandoned => "abandoned",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    pub const fn is_terminal(self) -> bool {
        match self {
            ClaimState::Held | ClaimState::Paused | ClaimState::Resumed => false,
            ClaimState::Released | ClaimState::Abandoned => true,
        }
    }

    pub(super) const fn is_owned(self) -> bool {
        match self {
            ClaimState::Held | ClaimState::Resumed => true,
            ClaimState::Paused | ClaimState::Released | ClaimState::Abandoned => false,
        }
    }
}
