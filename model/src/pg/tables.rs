//! The tables by family, and what can be locked of them.
//!
//! A family's file in [`crate::store`] says its tables and their rows. Never in this module:
//! a row.

use std::sync::Arc;

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

    /// The next value of an identity column.
    pub fn next_number(&mut self) -> i64 {
        self.sequence += 1;
        self.sequence
    }
}
