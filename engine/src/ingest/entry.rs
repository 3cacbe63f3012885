//! A fragment's draft update: claim, ingestion, draft transaction, before it is answered
//! (PA §5 T1, §7.2). Its claim is transient: an interrupted update is ingested afresh.

use bronzeward_core::extract::Purpose;
use bronzeward_core::head::{Layer, Name};
use bronzeward_core::id::DraftId;
use bronzeward_core::problem::Problem;
use bronzeward_core::revision::Etag;
use bronzeward_core::secret::Unresolved;

use super::pipeline::{Material, Said};
use super::{Ingester, refusal, unless};
use crate::request::{Admitted, Answer, Refused, Rendered, Requests};
use crate::tx::{EntryClaim, EntryUpdate, FragmentWrite};
use crate::world::World;

/// A fragment's proposed text. It has no Debug.
pub struct FragmentPut {
    pub draft: DraftId,
    pub name: Name,
    pub layer: Layer,
    pub input: Unresolved,
    pub said: Said,
    pub if_match: Option<Etag>,
}

impl<W: World> Ingester<W> {
    /// Ingests a fragment and writes its entry. A refusal after the claim exists is recorded
    /// under the request's key and answered as `refuse` renders it; a failure is not.
    pub async fn put_fragment(
        &self,
        admitted: &Admitted,
        put: FragmentPut,
        render: impl Fn(&EntryUpdate) -> Rendered + Clone + Send + Sync,
        refuse: impl Fn(&Problem) -> Rendered + Send + Sync,
    ) -> Result<Answer, Refused> {
        let requests = Requests::<W> { db: &self.db };
        if let Some(answer) = requests.first_lookup(admitted).await? {
            return Ok(answer);
        }
        let timers = self.settings.timers;
        let claimed = requests
            .claim_entry(admitted, put.draft, put.if_match, timers)
            .await?;
        let (claimed, cluster) = match claimed {
            EntryClaim::Answered(answer) => return Ok(answer),
            EntryClaim::Claimed(claimed, cluster) => (claimed, cluster),
        };
        let FragmentPut {
            draft,
            name,
            layer,
            input,
            said,
            if_match,
        } = put;
        let work = async {
            let envelope = self
                .prepare(Material {
                    cluster,
                    claim: claimed.claim,
                    purpose: Purpose::Fragment,
                    input,
                    said: &said,
                })
                .await?;
            let write = FragmentWrite {
                draft,
                name: &name,
                layer,
                envelope: &envelope,
                if_match,
            };
            requests
                .write_fragment(admitted, &claimed, &write, render)
                .await
        };
        let ended = unless(work, self.heartbeats(&claimed)).await;
        let refused = match ended {
            Some(Ok(answer)) => return Ok(answer),
            Some(Err(refused)) => refused,
            None => {
                // The draft transaction ends the claim too, and a heartbeat that waited for
                // it may be answered before its commit is: then its record is there.
                if let Some(answer) = requests.first_lookup(admitted).await? {
                    return Ok(answer);
                }
                Problem::internal("The entry's claim ended during its ingestion.").into()
            }
        };
        let problem = refused.problem.naming("ingestion", claimed.claim);
        if !refusal::is_final(problem.code) {
            return Err(Refused { problem, ..refused });
        }
        let rendered = refuse(&problem);
        requests
            .refuse_entry(admitted, draft, &claimed, &rendered)
            .await
    }
}
