//! Tables of what is authored: installation, principals, inventory, drafts, sources, claims.

use bronzeward_core::id::MachineId;
use bronzeward_core::installation::Installation;
use bronzeward_engine::rows::{MachineRow, MachineStateRow};

use crate::pg::tables::tables;

tables! {
    /// Installation, principals, inventory, drafts, sources and claims.
    Authoring {
        installation: () => Installation,
        machines: MachineId => MachineRow,
        machine_states: MachineId => MachineStateRow,
    }
}
