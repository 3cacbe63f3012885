//! Who acts: principals, roles, and the actor an act is recorded under (PA §10).
//!
//! Called by http after a credential was verified, by the engine when it records.
//! Never in this module: a credential, or which route asks for which role.

use std::collections::BTreeSet;
use std::fmt;

use crate::epoch::ProcessEpoch;
use crate::fence::{Fence, Generation, Owner};
use crate::id::{EpochId, PrincipalId};
use crate::time::DbTime;

/// A role, in the order in which an identity's roles are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Viewer,
    Author,
    Publisher,
    Approver,
    RecoveryAdmin,
}

impl Role {
    pub const ALL: [Role; 5] = [
        Role::Viewer,
        Role::Author,
        Role::Publisher,
        Role::Approver,
        Role::RecoveryAdmin,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Author => "author",
            Role::Publisher => "publisher",
            Role::Approver => "approver",
            Role::RecoveryAdmin => "recovery-admin",
        }
    }

    pub fn parse(text: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// Whether a service identity may hold it (PA §10.2).
    pub const fn automation_may_hold(self) -> bool {
        match self {
            Role::Viewer | Role::Author | Role::Publisher => true,
            Role::Approver | Role::RecoveryAdmin => false,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The roles a credential maps to. Ordered, so that a list of them is one list.
pub type Roles = BTreeSet<Role>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrincipalKind {
    Human,
    Service,
}

impl PrincipalKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            PrincipalKind::Human => "human",
            PrincipalKind::Service => "service",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "human" => Some(PrincipalKind::Human),
            "service" => Some(PrincipalKind::Service),
            _ => None,
        }
    }
}

/// The name a principal is known by outside: what a deny list and a revocation name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Human {
        issuer: String,
        subject: String,
    },
    Service {
        name: String,
        responsible: PrincipalId,
    },
}

/// A principal's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub id: PrincipalId,
    pub subject: Subject,
    /// The display name that a human's token carried last, if any did.
    pub display: Option<String>,
    pub created_at: DbTime,
    /// When its identity was revoked; for good (PA §10.4).
    pub revoked_at: Option<DbTime>,
}

impl Principal {
    pub const fn kind(&self) -> PrincipalKind {
        match self.subject {
            Subject::Human { .. } => PrincipalKind::Human,
            Subject::Service { .. } => PrincipalKind::Service,
        }
    }
}

/// Who performs an act, and the one role it performs it under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    pub principal: PrincipalId,
    pub role: Role,
    pub kind: PrincipalKind,
}

/// Who did something and under which role, as records keep it: whether it was a human is
/// the principal's own row to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signed {
    pub principal: PrincipalId,
    pub role: Role,
}

impl From<Actor> for Signed {
    fn from(actor: Actor) -> Self {
        Self {
            principal: actor.principal,
            role: actor.role,
        }
    }
}

/// A controller as a timeline entry names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    pub owner: Owner,
    /// The generation at which it owned the operation it acted for; none for an entry
    /// that is about no operation.
    pub generation: Option<Generation>,
    pub epoch: EpochId,
}

impl Controller {
    /// A controller that acts for no operation yet.
    pub fn unowned(owner: Owner, epoch: ProcessEpoch) -> Self {
        Self {
            owner,
            generation: None,
            epoch: epoch.0,
        }
    }

    /// The owner of an operation.
    pub fn owning(fence: &Fence) -> Self {
        Self {
            owner: fence.owner.clone(),
            generation: Some(fence.generation),
            epoch: fence.epoch,
        }
    }
}

/// Who a timeline entry is by: an identity with a role, or a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    Signed(Signed),
    Controller(Controller),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_read_back_as_written_and_keep_their_order() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        assert_eq!(Role::parse("Approver"), None);
        let held: Roles = [Role::RecoveryAdmin, Role::Viewer].into();
        assert_eq!(
            held.into_iter().collect::<Vec<_>>(),
            [Role::Viewer, Role::RecoveryAdmin]
        );
    }
}
