//! Staging claims.

use std::collections::BTreeMap;

use bronzeward_core::canonical::Digest;
use bronzeward_core::claim::{ClaimState, Review};
use bronzeward_core::fence::Fence;
use bronzeward_core::id::{IngestionId, MachineId, OperationId, PrincipalId};
use bronzeward_core::idempotency::IdempotencyKey;
use bronzeward_core::revision::TimelineRevision;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::provider::Ciphertext;
use bronzeward_engine::ports::store::{
    ClaimEnd, ClaimFilter, ClaimReads, ClaimWrites, Guard, NewClaim, Page, Paged, StoreError,
    Written,
};
use bronzeward_engine::rows::ClaimRow;

use super::drafts::DRAFTS;
use super::inventory::MACHINES;
use super::principals::PRINCIPALS;
use super::rows::{following, of, overfetch};
use crate::pg::session::Session;
use crate::pg::{Eye, Tables};
use crate::store::guard::Columns;
use crate::store::writes::Index;

of!(CLAIMS: claims, IngestionId => ClaimRow, Claim, |id| id.bits(), failed);

fn live(row: &ClaimRow) -> bool {
    matches!(row.state.as_str(), "held" | "paused" | "resumed")
}

/// The checks of `staging_claim` that a row fails, in the order of their names.
fn failed(row: &ClaimRow) -> Vec<&'static str> {
    let subject = match row.kind.as_str() {
        "draft-update" => {
            row.machine.is_none()
                && row.idempotency_key.is_some()
                && row.mode == "transient"
                && row.source == "document"
        }
        _ => row.machine.is_some() && row.idempotency_key.is_none(),
    };
    let encrypted = row.mode == "encrypted";
    // A review that is NULL makes its comparison unknown, which refuses nothing.
    let reviewed = row
        .review
        .as_deref()
        .is_none_or(|review| review == "pending");
    let checks = [
        (
            "staging_claim_paused",
            row.state != "paused" || (row.payload.is_some() && reviewed),
        ),
        (
            "staging_claim_payload",
            row.payload.is_none() || (encrypted && live(row)),
        ),
        ("staging_claim_resumed", row.state != "resumed" || encrypted),
        ("staging_claim_review", row.review.is_none() || encrypted),
        ("staging_claim_subject", subject),
        ("staging_claim_times", row.expires_at > row.created_at),
    ];
    let failed = checks.into_iter().filter(|(_, holds)| !holds);
    failed.map(|(name, _)| name).collect()
}

/// What guards see of a claim.
pub(super) fn columns(row: &ClaimRow) -> Columns<'_> {
    Columns {
        revision: None,
        state: Some(&row.state),
        fence: Some(&row.fence),
        lease_until: Some(row.lease_until),
        expires_at: Some(row.expires_at),
    }
}

/// Live, and past its absolute expiry, or transient and past its lease.
fn due(row: &ClaimRow, now: DbTime) -> bool {
    let lapsed = row.mode == "transient" && row.lease_until <= now;
    live(row) && (row.expires_at <= now || lapsed)
}

fn reads_as(row: &ClaimRow, state: ClaimState, now: DbTime) -> bool {
    match state {
        ClaimState::Abandoned => row.state == "abandoned" || due(row, now),
        ClaimState::Released => row.state == "released",
        ClaimState::Held | ClaimState::Paused | ClaimState::Resumed => {
            row.state == state.as_str() && !due(row, now)
        }
    }
}

fn is_of_key(row: &ClaimRow, principal: PrincipalId, key: &str) -> bool {
    row.by.principal == principal && row.idempotency_key.as_deref() == Some(key) && live(row)
}

impl Session {
    async fn with_operations(
        &mut self,
        claims: Vec<ClaimRow>,
    ) -> Result<Vec<(ClaimRow, Option<OperationId>)>, StoreError> {
        self.read("read operations of claims", |tables, eye| {
            let operations = tables.execution.operations.values(eye);
            let mut of: BTreeMap<IngestionId, OperationId> = operations
                .filter_map(|operation| Some((operation.row.claim?, operation.row.id)))
                .collect();
            let rows = claims.into_iter();
            rows.map(|claim| {
                let operation = of.remove(&claim.id);
                (claim, operation)
            })
            .collect()
        })
        .await
    }

    async fn change_claim(
        &mut self,
        what: &'static str,
        id: IngestionId,
        guard: &Guard,
        change: impl Fn(&mut ClaimRow),
    ) -> Result<Written, StoreError> {
        self.statement(what).await?;
        let fits = |row: &ClaimRow, now| columns(row).satisfy(guard, now);
        self.update_row(&CLAIMS, id, fits, change).await
    }
}

impl ClaimReads for Session {
    async fn claim(
        &mut self,
        id: IngestionId,
    ) -> Result<Option<(ClaimRow, Option<OperationId>)>, StoreError> {
        let rows = self
            .read("read claim", |tables, eye| {
                let row = tables.authoring.claims.get(eye, &id);
                row.cloned().into_iter().collect()
            })
            .await?;
        Ok(self.with_operations(rows).await?.pop())
    }

    async fn claims(
        &mut self,
        filter: &ClaimFilter,
        page: &Page<IngestionId>,
    ) -> Result<Paged<(ClaimRow, Option<OperationId>)>, StoreError> {
        let fits = |row: &ClaimRow| {
            let state = filter.state;
            let machine = filter.machine;
            state.is_none_or(|state| reads_as(row, state, filter.now))
                && machine.is_none_or(|machine| row.machine == Some(machine))
        };
        let rows = self
            .read("read claims", |tables, eye| {
                let rows = tables.authoring.claims.range(eye, following(page));
                let rows = rows.map(|(_, row)| row).filter(|row| fits(row));
                rows.take(overfetch(page.limit)).cloned().collect()
            })
            .await?;
        let rows = self.with_operations(rows).await?;
        Ok(Paged::from_overfetched(rows, page.limit))
    }

    async fn claim_of_key(
        &mut self,
        principal: PrincipalId,
        key: &IdempotencyKey,
    ) -> Result<Option<IngestionId>, StoreError> {
        self.read("read claim of key", |tables, eye| {
            let mut claims = tables.authoring.claims.values(eye);
            let found = claims.find(|row| is_of_key(row, principal, key.as_str()));
            found.map(|row| row.id)
        })
        .await
    }

    async fn due_claims(&mut self) -> Result<Vec<IngestionId>, StoreError> {
        self.statement("read due claims").await?;
        let now = Session::now(self);
        let rows = |tables: &Tables, eye: Eye| {
            let claims = tables.authoring.claims.values(eye);
            let claims = claims.filter(|row| due(row, now));
            claims.map(|row| row.id).collect()
        };
        Ok(self.look(rows))
    }

    async fn open_drift_revision(
        &mut self,
        machine: MachineId,
    ) -> Result<Option<TimelineRevision>, StoreError> {
        self.read("read open drift", |tables, eye| {
            let own = (machine, i64::MIN)..=(machine, i64::MAX);
            let mut drifts = tables.execution.drifts.range(eye, own);
            let open = drifts.find(|(_, drift)| drift.closed.is_none());
            open.map(|((_, revision), _)| TimelineRevision(*revision))
        })
        .await
    }
}

fn held(new: &NewClaim) -> ClaimRow {
    ClaimRow {
        id: new.id,
        kind: new.kind.as_str().to_owned(),
        mode: new.mode.as_str().to_owned(),
        source: new.source.as_str().to_owned(),
        state: ClaimState::Held.as_str().to_owned(),
        review: new.review.map(|review| Review::as_str(review).to_owned()),
        cluster: new.cluster,
        draft: new.draft,
        machine: new.machine,
        by: new.by,
        idempotency_key: new.key.as_ref().map(|key| key.as_str().to_owned()),
        fence: new.fence.clone(),
        epoch: new.fence.epoch,
        lease_until: new.lease_until,
        expires_at: new.expires_at,
        created_at: new.created_at,
        payload: None,
    }
}

impl ClaimWrites for Session {
    async fn insert_claim(&mut self, new: &NewClaim) -> Result<(), StoreError> {
        self.statement("insert claim").await?;
        let row = held(new);
        let adoption = row.kind == "drift-adoption";
        let drift = adoption == new.drift.is_some() && (!adoption || row.source == "machine");
        self.check("staging_claim_drift", drift)?;
        let principal = new.by.principal;
        let same = |row: &ClaimRow| {
            let key = new.key.as_ref();
            key.is_some_and(|key| is_of_key(row, principal, key.as_str()))
        };
        let live_key: Index<'_, ClaimRow> = ("staging_claim_live_key", &same);
        self.insert_unique(&CLAIMS, "staging_claim_pkey", new.id, row, &[live_key])
            .await?;
        self.stands(
            |tables| &tables.authoring.clusters,
            &new.cluster,
            "staging_claim_cluster_id_fkey",
        )?;
        self.parent(&DRAFTS, &new.draft, "staging_claim_draft_id_fkey")
            .await?;
        if let Some(machine) = new.machine {
            self.parent(&MACHINES, &machine, "staging_claim_machine_id_fkey")
                .await?;
        }
        self.parent(
            &PRINCIPALS,
            &new.by.principal,
            "staging_claim_principal_id_fkey",
        )
        .await?;
        self.of_one_cluster(new)
    }

    async fn extend_claim(
        &mut self,
        id: IngestionId,
        guard: &Guard,
        lease_until: DbTime,
    ) -> Result<Written, StoreError> {
        let extend = |row: &mut ClaimRow| row.lease_until = lease_until;
        self.change_claim("extend claim", id, guard, extend).await
    }

    async fn stage_claim(
        &mut self,
        id: IngestionId,
        guard: &Guard,
        payload: &Ciphertext,
        digest: Digest,
    ) -> Result<Written, StoreError> {
        let payload = (payload.as_str().to_owned(), digest.0);
        let stage = |row: &mut ClaimRow| row.payload = Some(payload.clone());
        self.change_claim("stage claim", id, guard, stage).await
    }

    async fn take_over_claim(
        &mut self,
        id: IngestionId,
        guard: &Guard,
        fence: &Fence,
        lease_until: DbTime,
    ) -> Result<Written, StoreError> {
        let take = |row: &mut ClaimRow| {
            row.state = ClaimState::Resumed.as_str().to_owned();
            row.fence = fence.clone();
            row.lease_until = lease_until;
        };
        self.change_claim("take over claim", id, guard, take).await
    }

    async fn end_claim(
        &mut self,
        id: IngestionId,
        guard: &Guard,
        end: ClaimEnd,
    ) -> Result<Written, StoreError> {
        let state = match end {
            ClaimEnd::Released => ClaimState::Released,
            ClaimEnd::Abandoned => ClaimState::Abandoned,
        };
        let end = |row: &mut ClaimRow| {
            row.state = state.as_str().to_owned();
            row.payload = None;
        };
        self.change_claim("end claim", id, guard, end).await
    }
}

impl Session {
    /// A claim's draft and machine are of its cluster.
    fn of_one_cluster(&mut self, new: &NewClaim) -> Result<(), StoreError> {
        let (draft, machine) = self.look(|tables, eye| {
            let family = &tables.authoring;
            let draft = family.drafts.get(eye, &new.draft);
            let machine = new.machine.map(|id| family.machines.get(eye, &id));
            let here = |cluster| cluster == Some(new.cluster);
            (
                here(draft.map(|row| row.cluster)),
                machine.is_none_or(|row| here(row.map(|row| row.cluster))),
            )
        });
        self.check("staging_claim_cluster_id_draft_id_fkey", draft)?;
        self.check("staging_claim_cluster_id_machine_id_fkey", machine)
    }
}
