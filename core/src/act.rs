//! Acts: what every committed request records beside its effect (PA §10.5).
//!
//! A body of the engine says what was done and to what; the request wrapper adds who,
//! under which key and in which epoch. Never in this module: anything a request's body
//! held. An act names identifiers.

use crate::id::{ActId, EpochId, Id, Kind, RequestId};
use crate::idempotency::IdempotencyKey;
use crate::principal::{Actor, Role};

/// What an act did: the kebab-case word an act is listed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Action(&'static str);

impl Action {
    pub const CLUSTER_CREATED: Action = Action("cluster-created");
    pub const MACHINE_CREATED: Action = Action("machine-created");
    pub const ENDPOINT_CHANGED: Action = Action("endpoint-changed");
    pub const MACHINE_DECOMMISSIONED: Action = Action("machine-decommissioned");
    pub const DRAFT_CREATED: Action = Action("draft-created");
    pub const DRAFT_UPDATED: Action = Action("draft-updated");
    pub const DRAFT_DISCARDED: Action = Action("draft-discarded");
    pub const DRAFT_UPDATE_REFUSED: Action = Action("draft-update-refused");
    pub const PUBLICATION_REQUESTED: Action = Action("publication-requested");
    pub const INGESTION_STARTED: Action = Action("ingestion-started");
    pub const INGESTION_MARKED: Action = Action("ingestion-marked");
    pub const INGESTION_CONTINUED: Action = Action("ingestion-continued");
    pub const INGESTION_TAKEN_OVER: Action = Action("ingestion-taken-over");
    pub const INGESTION_ABANDONED: Action = Action("ingestion-abandoned");
    pub const PLAN_CREATED: Action = Action("plan-created");
    pub const PLAN_APPROVED: Action = Action("plan-approved");
    pub const PLAN_CANCELLED: Action = Action("plan-cancelled");
    pub const APPROVAL_REVOKED: Action = Action("approval-revoked");
    pub const IDENTITY_REVOKED: Action = Action("identity-revoked");
    pub const MACHINE_FROZEN: Action = Action("machine-frozen");
    pub const MACHINE_UNFROZEN: Action = Action("machine-unfrozen");
    pub const RECOVERY_ENTERED: Action = Action("recovery-entered");
    pub const RECOVERY_EXITED: Action = Action("recovery-exited");
    pub const SCOPES_ACCOUNTED: Action = Action("scopes-accounted");
    pub const SCOPE_MARKED: Action = Action("scope-marked");
    pub const SCOPE_RELEASED: Action = Action("scope-released");
    pub const ATTEMPT_ACCOUNTED: Action = Action("attempt-accounted");
    pub const OPERATION_TAKEN_OVER: Action = Action("operation-taken-over");
    pub const OPERATION_RESOLVED: Action = Action("operation-resolved");
    pub const TOKEN_ISSUED: Action = Action("token-issued");
    pub const TOKEN_ROTATED: Action = Action("token-rotated");
    pub const TOKEN_REVOKED: Action = Action("token-revoked");
    pub const SERVICE_IDENTITY_CREATED: Action = Action("service-identity-created");

    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

/// What a body did, before the wrapper adds who and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActDraft {
    /// Minted with the body, since effects and timeline entries name it.
    pub id: ActId,
    pub action: Action,
    /// The role it is recorded under, where the act itself decided that (PA §10.3).
    pub role: Option<Role>,
    /// Identifiers of what it touched, in the order of the action's own account.
    pub subjects: Vec<String>,
}

impl ActDraft {
    pub const fn new(id: ActId, action: Action) -> Self {
        Self {
            id,
            action,
            role: None,
            subjects: Vec::new(),
        }
    }

    /// Under this role, whichever the request was let in under.
    #[must_use]
    pub const fn under(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }

    #[must_use]
    pub fn on<K: Kind>(mut self, subject: Id<K>) -> Self {
        self.subjects.push(subject.to_string());
        self
    }

    /// The act as it is written.
    pub fn by(
        self,
        actor: Actor,
        key: Option<IdempotencyKey>,
        request: Option<RequestId>,
        epoch: EpochId,
    ) -> ActEntry {
        ActEntry {
            id: self.id,
            actor: Actor {
                role: self.role.unwrap_or(actor.role),
                ..actor
            },
            action: self.action,
            subjects: self.subjects,
            key,
            request,
            epoch,
        }
    }
}

/// An act's row but for its time, which is read after the act-order lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActEntry {
    pub id: ActId,
    pub actor: Actor,
    pub action: Action,
    pub subjects: Vec<String>,
    /// None for the token tool's acts, which no request carries.
    pub key: Option<IdempotencyKey>,
    pub request: Option<RequestId>,
    pub epoch: EpochId,
}
