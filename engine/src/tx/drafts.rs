//! Draft creation and discard (T11). Updates are T1's (`sources`, `ingest`).

use bronzeward_core::act::{ActDraft, Action};
use bronzeward_core::id::{ClusterId, DraftId, OperationId};
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::revision::{Etag, Revision};
use bronzeward_core::rules::{Rule, Rules};

use super::actor::held_actor;
use crate::ports::store::{
    Condition, DraftReads, DraftWrites, EntryOfDraft, Guard, InventoryReads, LockMode, NewDraft,
    Written,
};
use crate::request::{Admitted, Answer, NotDone, Refused, Rendered, Requests, Settled};
use crate::rows::{DraftRow, DraftStateRow};
use crate::world::World;

impl<W: World> Requests<'_, W> {
    /// Opens a draft of a cluster.
    pub async fn create_draft(
        &self,
        admitted: &Admitted,
        cluster: ClusterId,
        title: &str,
        render: impl Fn(&DraftRow, &[EntryOfDraft]) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let id: DraftId = self.db.mint();
        let act = self.db.mint();
        let etag = Etag::new(Revision::FIRST, self.db.mint_token());
        self.run(
            admitted,
            Some(LockMode::Share),
            async |mut tx, installation| {
                if tx.peek().cluster(cluster).await?.is_none() {
                    return tx
                        .refuse(Problem::not_found("No such cluster.").naming("cluster", cluster))
                        .await;
                }
                let new = NewDraft {
                    id,
                    cluster,
                    title: title.to_owned(),
                    etag,
                    by: admitted.actor,
                    epoch: installation.epoch,
                };
                let rules = self.db.rules();
                let tx = held_actor(&rules, tx, admitted).await?;
                let (mut acts, at) = tx.open().lock_acts(&rules).await?;
                acts.rows().insert_draft(&new, at).await?;
                let rendered = render(
                    &DraftRow {
                        id,
                        cluster,
                        title: new.title,
                        state: DraftStateRow::Open,
                        etag,
                        created_by: admitted.actor.into(),
                        created_at: at,
                    },
                    &[],
                );
                Ok(Settled {
                    acts,
                    rendered,
                    act: ActDraft::new(act, Action::DRAFT_CREATED).on(id).on(cluster),
                })
            },
        )
        .await
        .map_err(NotDone::refused)
    }

    /// Discards an open draft at the revision the request saw.
    pub async fn discard_draft(
        &self,
        admitted: &Admitted,
        draft: DraftId,
        if_match: Option<Etag>,
        render: impl Fn(&DraftRow, &[EntryOfDraft]) -> Rendered + Clone + Send + Sync,
    ) -> Result<Answer, Refused> {
        let act = self.db.mint();
        let rules = self.db.rules();
        let token = self.db.mint_token();
        self.run(
            admitted,
            Some(LockMode::Share),
            async |tx, _installation| {
                let (mut tx, row) = tx.lock_draft(draft, LockMode::Update).await?;
                let Some(row) = row else {
                    return tx.refuse(Problem::not_found("No such draft.")).await;
                };
                let active = tx.peek().active_publication(draft).await?;
                if let Err(problem) = editable(&rules, &row, active, if_match.as_ref()) {
                    return tx.refuse(problem).await;
                }
                let mut open = held_actor(&rules, tx, admitted).await?.open();
                let guard = unmoved(&rules, &row);
                if open.rows().discard_draft(draft, &guard, token).await? == Written::Stale {
                    return open.refuse(moved()).await;
                }
                let entries = open.rows().draft_entries(draft).await?;
                let mut row = row.into_row();
                row.state = DraftStateRow::Discarded;
                row.etag = Etag::new(row.etag.revision.next(), token);
                let (acts, _) = open.lock_acts(&rules).await?;
                Ok(Settled {
                    acts,
                    rendered: render(&row, &entries),
                    act: ActDraft::new(act, Action::DRAFT_DISCARDED).on(draft),
                })
            },
        )
        .await
        .map_err(NotDone::refused)
    }
}

/// Whether a draft held FOR UPDATE accepts an edit of the revision the request saw: open,
/// no publication queued or running, and unmoved, in this order (PA §3.1, §14).
pub(crate) fn editable<R: Rules>(
    rules: &R,
    draft: &DraftRow,
    active: Option<OperationId>,
    if_match: Option<&Etag>,
) -> Result<(), Problem> {
    let open = match draft.state {
        DraftStateRow::Open => true,
        DraftStateRow::Published(_) | DraftStateRow::Discarded => false,
    };
    if !rules.holds(Rule::DraftOpen, open) {
        let problem = Problem::conflict("The draft is not open.").naming("draft", draft.id);
        return Err(match draft.state {
            DraftStateRow::Published(release) => problem.naming("release", release),
            DraftStateRow::Open | DraftStateRow::Discarded => problem,
        });
    }
    if !rules.holds(Rule::DraftNotPublishing, active.is_none()) {
        let problem = Problem::conflict("A publication of the draft is queued or running.");
        return Err(match active {
            Some(operation) => problem.naming("operation", operation),
            None => problem,
        });
    }
    let matches = if_match.is_some_and(|presented| draft.etag.matches(rules, presented));
    if rules.holds(Rule::SecondIfMatch, matches) {
        Ok(())
    } else {
        Err(moved())
    }
}

/// The guard of a draft's conditional write: still at the revision its lock showed.
pub(crate) fn unmoved<R: Rules>(rules: &R, draft: &DraftRow) -> Guard {
    Guard::new().when(
        rules,
        Rule::RevisionUnchanged,
        Condition::Revision(draft.etag.revision.0),
    )
}

/// 412: the record moved since the request's If-Match.
pub(crate) fn moved() -> Problem {
    Problem::new(ProblemCode::PreconditionFailed).say("If-Match is not the current ETag.")
}
