//! T2: the request to publish a draft (PA §5, §7.3). It queues an operation; the publish
//! worker does the rest.

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::id::{DraftId, OperationId};
use bronzeward_core::job::{Event, JobState};
use bronzeward_core::principal::By;
use bronzeward_core::problem::Problem;
use bronzeward_core::release::BoundDraft;
use bronzeward_core::revision::Etag;
use bronzeward_core::rules::{Rule, Rules};

use super::actor::held_actor;
use super::claims::event;
use super::drafts::moved;
use crate::ports::store::{
    DraftReads, JobReads, JobWrites, LockMode, NewJob, NewWork, StoreError, TimelineWrites,
};
use crate::request::{Admitted, Answer, NotDone, Refused, Rendered, Requests, Settled};
use crate::rows::{DraftRow, DraftStateRow, OperationRow};
use crate::tx::{Abort, Held};
use crate::world::World;

impl<W: World> Requests<'_, W> {
    /// Queues the publication of a draft at the revision the request saw, or answers with
    /// the one that is queued or running for that revision.
    pub async fn publish_draft(
        &self,
        admitted: &Admitted,
        draft: DraftId,
        if_match: Option<Etag>,
        render: impl Fn(&OperationRow) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let operation: OperationId = self.db.mint();
        let act = self.db.mint();
        let rules = self.db.rules();
        self.run(admitted, Some(LockMode::Share), async |tx, installation| {
            let (mut tx, row) = tx.lock_draft(draft, LockMode::Update).await?;
            let Some(row) = row else {
                return tx.refuse(Problem::not_found("No such draft.")).await;
            };
            if let Err(problem) = publishable(&rules, &row, if_match.as_ref()) {
                return tx.refuse(problem).await;
            }
            let active = tx.peek().active_publication(draft).await?;
            let active = active.filter(|_| rules.enforced(Rule::ActivePublicationAnswers));
            // The request's record refers to the job that it is answered with, whose owner may
            // hold it: that wait comes before the act-order lock (PA §5 rule 5). It may have
            // ended meanwhile.
            let active = active.into_iter().collect();
            let tx = held_actor(&rules, tx, admitted).await?;
            let (tx, active) = tx.lock_operations(&active, LockMode::KeyShare).await?;
            let runs = |job: &&Held<OperationRow>| {
                JobState::parse(&job.state).is_some_and(|state| !state.is_terminal())
            };
            let active = active.first().filter(runs).map(|job| job.id);
            let (mut acts, at) = tx.open().lock_acts(&rules).await?;
            let id = active.unwrap_or(operation);
            if active.is_none() {
                let job = NewJob {
                    id,
                    cluster: row.cluster,
                    bound: BoundDraft {
                        draft,
                        revision: row.etag.revision,
                    },
                    work: NewWork::Publish,
                    by: admitted.actor.into(),
                    epoch: installation.epoch,
                };
                acts.rows().insert_job(&job, at).await?;
                let by = By::Signed(admitted.actor.into());
                let queued = event(&Event::Queued, by, installation.epoch, Some(act), at);
                acts.rows().append_event(id, &queued).await?;
            }
            let stored = acts.rows().operation(id).await?;
            let stored = stored.ok_or(Abort::Store(StoreError::Fault))?;
            Ok(Settled {
                acts,
                rendered: render(&stored),
                act: ActDraft::new(act, Action::PUBLICATION_REQUESTED)
                    .on(draft)
                    .on(id),
            })
        })
        .await
        .map_err(NotDone::refused)
    }
}

/// Whether a draft held FOR UPDATE can be published at the revision the request saw.
fn publishable<R: Rules>(
    rules: &R,
    draft: &DraftRow,
    if_match: Option<&Etag>,
) -> Result<(), Problem> {
    let open = draft.state == DraftStateRow::Open;
    if !rules.holds(Rule::DraftOpen, open) {
        let problem = Problem::conflict("The draft is not open.").naming("draft", draft.id);
        return Err(match draft.state {
            DraftStateRow::Published(release) => problem.naming("release", release),
            DraftStateRow::Open | DraftStateRow::Discarded => problem,
        });
    }
    let matches = if_match.is_some_and(|presented| draft.etag.matches(rules, presented));
    if rules.holds(Rule::SecondIfMatch, matches) {
        Ok(())
    } else {
        Err(moved())
    }
}
