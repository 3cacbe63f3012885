//! Tables of what is carried out: operations, timelines, observations, releases, plans.

use crate::pg::tables::tables;

impl crate::pg::Row<()> for () {}

tables! {
    /// Operations, timelines, observations, releases and plans.
    Execution {
        none: () => (),
    }
}
