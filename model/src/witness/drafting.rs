//! Drafts and their publications, as schedules make them: each step an act of a person.
//!
//! Never in this module: a premise of one rule.

use std::sync::Arc;

use bronzeward_core::head::{AssignmentContent, Name};
use bronzeward_core::id::{ClusterId, DraftId, MachineId, OperationId, kind};
use bronzeward_core::revision::Etag;
use bronzeward_core::time::Span;

use super::stage::{AUTHOR, PUBLISHER, Stage, Step};
use crate::genesis::MACHINES;
use crate::people::acts::made;
use crate::people::view::View;
use crate::pg::{Eye, Tables};
use crate::seed::End;
use crate::server::Server;

/// The names that the genesis published.
pub const FRAGMENT: &str = "labels";
pub const PROFILE: &str = "workers";

pub fn name(text: &str) -> Step<Name> {
    Name::parse(text).map_err(|error| End::Error(error.to_string()))
}

/// Whether a job has ended.
pub fn ended(tables: &Tables, job: OperationId) -> bool {
    let row = tables.execution.operations.get(Eye::COMMITTED, &job);
    row.is_none_or(|job| !matches!(job.row.state.as_str(), "queued" | "running"))
}

impl Stage {
    pub fn draft(&mut self, desk: &Arc<Server>, cluster: ClusterId) -> Step<DraftId> {
        let opened = self.asked(desk, AUTHOR, move |hand| async move {
            hand.open_draft(cluster).await
        })?;
        made::<kind::Draft>(&opened).ok_or_else(|| End::Error(format!("a draft: {opened:?}")))
    }

    pub fn etag(&self, draft: DraftId) -> Step<Etag> {
        let seen = self.see(|tables| View(tables).draft(draft));
        let seen = seen.ok_or_else(|| End::Error("no such draft".to_owned()))?;
        Ok(seen.etag)
    }

    /// Proposes an assignment, where that is not refused.
    pub fn assign(
        &mut self,
        desk: &Arc<Server>,
        draft: DraftId,
        machine: MachineId,
        content: AssignmentContent,
    ) -> Step {
        let at = self.etag(draft)?;
        let put = self.asked(desk, AUTHOR, move |hand| async move {
            hand.put_assignment(draft, at, machine, content).await
        });
        put.map(drop)
    }

    /// Proposes another text of a fragment.
    pub fn rewrite(&mut self, desk: &Arc<Server>, draft: DraftId, text: &str) -> Step {
        let (at, name) = (self.etag(draft)?, name(text)?);
        let text = crate::furniture::fragment(9);
        let put = self.asked(desk, AUTHOR, move |hand| async move {
            hand.put_fragment(draft, at, name, text).await
        });
        put.map(drop)
    }

    /// Proposes the profile with the fragments as the draft has them.
    pub fn repin(&mut self, desk: &Arc<Server>, draft: DraftId, cluster: ClusterId) -> Step {
        let at = self.etag(draft)?;
        let fragments = self.see(|tables| View(tables).fragments_of(cluster, draft));
        let name = name(PROFILE)?;
        let put = self.asked(desk, AUTHOR, move |hand| async move {
            hand.put_profile(draft, at, name, fragments).await
        });
        put.map(drop)
    }

    /// Asks for a draft's publication, which nobody runs yet.
    pub fn queue(&mut self, desk: &Arc<Server>, draft: DraftId) -> Step<OperationId> {
        let at = self.etag(draft)?;
        let queued = self.asked(desk, PUBLISHER, move |hand| async move {
            hand.publish(draft, at).await
        })?;
        let job = made::<kind::Operation>(&queued);
        job.ok_or_else(|| End::Error(format!("a publication: {queued:?}")))
    }

    /// Lets the world go on until a publication has read every machine, or has ended.
    pub fn until_read(&mut self, job: OperationId) -> Step {
        self.until_reads(job, usize::from(MACHINES))
    }

    /// The same for fewer machines.
    pub fn until_reads(&mut self, job: OperationId, machines: usize) -> Step {
        self.until("the readings of a publication", |state| {
            let seen = state
                .db
                .tables
                .execution
                .observations
                .values(Eye::COMMITTED);
            let of = seen.filter(|seen| seen.started.operation == Some(job));
            of.count() == machines || ended(&state.db.tables, job)
        })
    }

    /// Lets the world go on until a job has ended.
    pub fn ends(&mut self, job: OperationId) -> Step {
        self.until("a job's end", |state| ended(&state.db.tables, job))
    }

    /// As long as it takes to end, or to wait.
    pub fn a_while(&mut self) -> Step {
        self.pass(Span::seconds(4))
    }
}
