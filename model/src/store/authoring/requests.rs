//! The installation's row, idempotency records and acts.

use bronzeward_core::act::ActEntry;
use bronzeward_core::id::PrincipalId;
use bronzeward_core::idempotency::IdempotencyKey;
use bronzeward_core::installation::Installation;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    ActRow, IdempotencyRecord, RequestReads, RequestWrites, StoreError,
};

use super::principals::PRINCIPALS;
use super::{Act, Idempotent, Sequence};
use crate::pg::session::Session;
use crate::pg::{Relation, Tables, TxId};

impl RequestReads for Session {
    async fn installation(&mut self) -> Result<Installation, StoreError> {
        let row = self
            .read("read installation", |tables, eye| {
                tables.authoring.installation.get(eye, &()).copied()
            })
            .await?;
        row.ok_or(StoreError::Fault)
    }

    async fn idempotency_record(
        &mut self,
        principal: PrincipalId,
        key: &IdempotencyKey,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let of = (principal, key.clone());
        self.read("read idempotency record", |tables, eye| {
            let row = tables.authoring.idempotency.get(eye, &of);
            row.map(|row| row.record.clone())
        })
        .await
    }
}

impl RequestWrites for Session {
    async fn insert_idempotency_record(
        &mut self,
        principal: PrincipalId,
        key: &IdempotencyKey,
        record: &IdempotencyRecord,
        at: DbTime,
    ) -> Result<(), StoreError> {
        self.statement("insert idempotency record").await?;
        let status = (200..=499).contains(&record.status);
        self.check("idempotency_record_status_check", status)?;
        let of = (principal, key.clone());
        let taken = |tables: &Tables, me: TxId| tables.authoring.idempotency.key_taken(me, &of);
        self.unique("idempotency_record_pkey", taken).await?;
        let row = Idempotent {
            principal,
            key: key.clone(),
            record: record.clone(),
            at,
        };
        self.write(|db, me, _| db.put(me, |t| &mut t.authoring.idempotency, of, row))?;
        self.parent(
            &PRINCIPALS,
            &principal,
            "idempotency_record_principal_id_fkey",
        )
        .await?;
        let operation = record.operation;
        self.refer(operation.map(|id| (Relation::Operation, id.bits())))
            .await?;
        self.await_act(record.act, "idempotency_record_act_id_fkey")
    }

    async fn insert_act(&mut self, entry: &ActEntry, at: DbTime) -> Result<(), StoreError> {
        self.statement("insert act").await?;
        let shape = entry.key.is_some() == entry.request.is_some();
        self.check("act_request", shape)?;
        let id = entry.id;
        let taken = |tables: &Tables, me: TxId| tables.authoring.act_order.key_taken(me, &id);
        self.unique("act_pkey", taken).await?;
        let row = ActRow {
            id,
            principal: entry.actor.principal,
            kind: entry.actor.kind,
            // Only the operator's own tool acts without a request, and it has no role.
            role: entry.request.map(|_| entry.actor.role),
            action: entry.action.as_str().to_owned(),
            subjects: entry.subjects.clone(),
            request: entry.request,
            epoch: entry.epoch,
            at,
        };
        let key = entry.key.clone();
        self.write(|db, me, _| {
            let place = db.tables.next_number();
            db.put(me, |t| &mut t.authoring.acts, place, Act { row, key });
            db.put(me, |t| &mut t.authoring.act_order, id, Sequence(place));
        })?;
        let principal = entry.actor.principal;
        self.parent(&PRINCIPALS, &principal, "act_principal_id_fkey")
            .await
    }
}
