//! Groups to roles, by configuration (PA §10.1).
//!
//! `http` asks it for each verified token; a role that no group gives is held by
//! nobody. Never in this module: a group name with a meaning of its own.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::principal::{Role, Roles};

/// The groups that give each role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleMap(BTreeMap<Role, BTreeSet<String>>);

impl RoleMap {
    pub fn new(groups: impl IntoIterator<Item = (Role, BTreeSet<String>)>) -> Self {
        Self(groups.into_iter().collect())
    }

    /// The roles that these groups give; compared exactly.
    pub fn roles(&self, groups: &BTreeSet<String>) -> Roles {
        self.0
            .iter()
            .filter(|(_, giving)| !giving.is_disjoint(groups))
            .map(|(role, _)| *role)
            .collect()
    }
}
