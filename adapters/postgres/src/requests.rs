//! The installation's row, idempotency records and acts (PA §7, §10.5, §12.1).

use bronzeward_core::act::ActEntry;
use bronzeward_core::id::PrincipalId;
use bronzeward_core::idempotency::{DigestKey, Fingerprint, IdempotencyKey};
use bronzeward_core::installation::Installation;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{IdempotencyRecord, RequestReads, RequestWrites};
use diesel::prelude::*;

use crate::convert::{Out, digest, fault, id, opt_id};
use crate::schema::{act, idempotency_record, installation_state};
use crate::store::{Access, PgRows, PgTx};
use crate::time::Stamp;

/// `transit/<key>@v<N>` (IC §4.1).
pub(crate) fn digest_key_text(key: &DigestKey) -> String {
    format!("transit/{}@v{}", key.name, key.version)
}

pub(crate) fn digest_key(text: &str) -> Out<DigestKey> {
    let (name, version) = text
        .strip_prefix("transit/")
        .and_then(|rest| rest.rsplit_once("@v"))
        .ok_or_else(fault)?;
    Ok(DigestKey {
        name: name.to_owned(),
        version: version.parse().map_err(|_| fault())?,
    })
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = idempotency_record)]
struct Record {
    fingerprint: Vec<u8>,
    fingerprint_key: Option<String>,
    method: String,
    route: String,
    request_id: String,
    epoch: String,
    status: i16,
    location: Option<String>,
    etag: Option<String>,
    body: String,
    operation_id: Option<String>,
    act_id: String,
}

impl<M: Access> RequestReads for PgRows<M> {
    async fn installation(&mut self) -> Out<Installation> {
        let (epoch, recovery_mode): (String, bool) = self
            .one(installation_state::table.select((
                installation_state::current_epoch,
                installation_state::recovery_mode,
            )))
            .await?;
        Ok(Installation {
            epoch: id(&epoch)?,
            recovery_mode,
        })
    }

    async fn idempotency_record(
        &mut self,
        principal: PrincipalId,
        key: &IdempotencyKey,
    ) -> Out<Option<IdempotencyRecord>> {
        let found: Option<Record> = self
            .optional(
                idempotency_record::table
                    .find((principal.to_string(), key.as_str()))
                    .select(Record::as_select()),
            )
            .await?;
        let Some(row) = found else { return Ok(None) };
        Ok(Some(IdempotencyRecord {
            fingerprint: Fingerprint {
                digest: digest(&row.fingerprint)?,
                key: row.fingerprint_key.as_deref().map(digest_key).transpose()?,
            },
            method: row.method,
            route: row.route,
            epoch: id(&row.epoch)?,
            request: id(&row.request_id)?,
            act: id(&row.act_id)?,
            status: u16::try_from(row.status).map_err(|_| fault())?,
            location: row.location,
            etag: row.etag,
            body: row.body,
            operation: opt_id(row.operation_id.as_deref())?,
        }))
    }
}

impl RequestWrites for PgTx {
    async fn insert_idempotency_record(
        &mut self,
        principal: PrincipalId,
        key: &IdempotencyKey,
        record: &IdempotencyRecord,
        at: DbTime,
    ) -> Out<()> {
        use idempotency_record::dsl;
        let status = i16::try_from(record.status).map_err(|_| fault())?;
        self.execute(diesel::insert_into(dsl::idempotency_record).values((
            dsl::principal_id.eq(principal.to_string()),
            dsl::key.eq(key.as_str()),
            dsl::fingerprint.eq(record.fingerprint.digest.as_slice()),
            dsl::fingerprint_key.eq(record.fingerprint.key.as_ref().map(digest_key_text)),
            dsl::method.eq(&record.method),
            dsl::route.eq(&record.route),
            dsl::request_id.eq(record.request.to_string()),
            dsl::epoch.eq(record.epoch.to_string()),
            dsl::status.eq(status),
            dsl::location.eq(&record.location),
            dsl::etag.eq(&record.etag),
            dsl::body.eq(&record.body),
            dsl::operation_id.eq(record.operation.map(|operation| operation.to_string())),
            dsl::act_id.eq(record.act.to_string()),
            dsl::at.eq(Stamp(at)),
        )))
        .await?;
        Ok(())
    }

    async fn insert_act(&mut self, entry: &ActEntry, at: DbTime) -> Out<()> {
        use act::dsl;
        let subjects = serde_json::Value::from(entry.subjects.clone());
        // Only the operator's own tool acts without a request, and it has no role.
        let role = entry.request.map(|_| entry.actor.role.as_str());
        self.execute(diesel::insert_into(dsl::act).values((
            dsl::id.eq(entry.id.to_string()),
            dsl::principal_id.eq(entry.actor.principal.to_string()),
            dsl::principal_kind.eq(entry.actor.kind.as_str()),
            dsl::role.eq(role),
            dsl::action.eq(entry.action.as_str()),
            dsl::subjects.eq(subjects),
            dsl::idempotency_key.eq(entry.key.as_ref().map(IdempotencyKey::as_str)),
            dsl::request_id.eq(entry.request.map(|request| request.to_string())),
            dsl::epoch.eq(entry.epoch.to_string()),
            dsl::at.eq(Stamp(at)),
        )))
        .await?;
        Ok(())
    }
}
