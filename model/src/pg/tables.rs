//! The tables by family, and what can be locked of them.
//!
//! A family's file in [`crate::store`] says its tables and their rows. Never in this module:
//! a row.

use std::sync::Arc;

use bronzeward_core::id::{
    ApprovalId, AssignmentId, DraftId, FragmentId, HeadId, IngestionId, MachineId, OperationId,
    PrincipalId, ProfileId,
};

use super::{Eye, RowId, Table};
use crate::journal::Journal;
use crate::store::{authoring, execution};

/// A row's committed change is told to the journal; by default it is of no interest.
pub trait Row<K>: Send + Sync + Sized + 'static {
    fn committed(
        _key: &K,
        _before: Option<&Arc<Self>>,
        _after: Option<&Arc<Self>>,
        _journal: &mut Journal,
    ) {
    }
}

/// Tables whose rows are locked: by a statement, or by a foreign key of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    Installation,
    Principal,
    Token,
    Cluster,
    Rollout,
    Machine,
    MachineState,
    Draft,
    DraftEntry,
    Claim,
    FragmentRevision,
    ProfileRevision,
    AssignmentRevision,
    ImportBaseRevision,
    Head,
    Operation,
    Plan,
    PlanState,
    Approval,
    Release,
    Observation,
    Status,
    Attempt,
    Drift,
}

impl Relation {
    /// What a refusal names when the row that a foreign key of any table names is not there.
    pub(super) const fn foreign_key(self) -> &'static str {
        match self {
            Relation::Principal => "a foreign key to principal",
            Relation::Machine => "a foreign key to machine",
            Relation::Draft => "a foreign key to draft",
            Relation::Claim => "a foreign key to staging_claim",
            Relation::Head => "a foreign key to head",
            Relation::Operation => "a foreign key to operation",
            Relation::Approval => "a foreign key to approval",
            _ => "a foreign key",
        }
    }
}

/// Declares a family's tables: `name: Key => Row`.
macro_rules! tables {
    ($(#[$doc:meta])* $family:ident { $($(#[$field:meta])* $name:ident: $key:ty => $row:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Default)]
        pub struct $family {
            $($(#[$field])* pub $name: $crate::pg::Table<$key, $row>,)+
        }

        impl $family {
            /// What is committed, without the open versions.
            pub fn settled(&self) -> Self {
                Self { $($name: self.$name.settled(),)+ }
            }
        }
    };
}
pub(crate) use tables;

#[derive(Clone, Default)]
pub struct Tables {
    /// Installation, principals, inventory, drafts, sources, claims.
    pub authoring: authoring::Authoring,
    /// Operations, timelines, observations, releases, plans.
    pub execution: execution::Execution,
    /// Identity columns: they go back with a restore.
    pub sequence: i64,
}

impl Tables {
    pub fn settled(&self) -> Self {
        Self {
            authoring: self.authoring.settled(),
            execution: self.execution.settled(),
            sequence: self.sequence,
        }
    }

    /// Whether the row that a foreign key names is there. Of the relations that none names by
    /// one identifier there is nothing to say.
    pub(super) fn stands(&self, eye: Eye, (relation, key): RowId) -> bool {
        fn has<K: Ord + Clone, V>(table: &Table<K, V>, eye: Eye, key: K) -> bool {
            table.get(eye, &key).is_some()
        }
        let (authoring, execution) = (&self.authoring, &self.execution);
        match relation {
            Relation::Principal => has(&authoring.principals, eye, PrincipalId::from_bits(key)),
            Relation::Machine => has(&authoring.machines, eye, MachineId::from_bits(key)),
            Relation::Draft => has(&authoring.drafts, eye, DraftId::from_bits(key)),
            Relation::Claim => has(&authoring.claims, eye, IngestionId::from_bits(key)),
            Relation::Operation => has(&execution.operations, eye, OperationId::from_bits(key)),
            Relation::Approval => has(&execution.approvals, eye, ApprovalId::from_bits(key)),
            Relation::Head => [
                HeadId::Assignment(AssignmentId::from_bits(key)),
                HeadId::Fragment(FragmentId::from_bits(key)),
                HeadId::Profile(ProfileId::from_bits(key)),
            ]
            .into_iter()
            .any(|head| has(&authoring.heads, eye, head)),
            _ => true,
        }
    }

    /// The next value of an identity column.
    pub fn next_number(&mut self) -> i64 {
        self.sequence += 1;
        self.sequence
    }
}
