//! The sweep of staging claims (IC §3.5): what a read already treats as abandoned is written
//! so, and its payload cleared. A late sweep delays only that.

use std::collections::BTreeSet;

use bronzeward_core::id::{IngestionId, OperationId};
use bronzeward_core::principal::{By, Controller};

use super::claims::{ABANDONED, abandoned, claim_of, event, fail_operation, unended};
use super::{Kind, transact};
use crate::ports::store::{
    ClaimEnd, ClaimReads, ClaimWrites, JobReads, LockMode, Snapshot, Store, StoreError, Written,
};
use crate::world::{Db, World};

/// Writes every due claim abandoned, each in a transaction of its own, and fails its
/// operation. A claim whose transaction fails is left to the next sweep (IC §3.5).
pub async fn sweep<W: World>(db: &Db<W>) -> Result<usize, StoreError> {
    let mut snapshot = db.store().snapshot().await?;
    let due = snapshot.due_claims().await;
    let mut found = Vec::new();
    for claim in due? {
        found.push((claim, snapshot.operation_of_claim(claim).await?));
    }
    snapshot.close().await;
    let mut written = 0;
    for (claim, operation) in found {
        written += usize::from(sweep_one(db, claim, operation).await);
    }
    Ok(written)
}

async fn sweep_one<W: World>(
    db: &Db<W>,
    claim: IngestionId,
    operation: Option<OperationId>,
) -> bool {
    let by = Controller::unowned(db.process().owner.clone(), db.process().epoch);
    let swept = transact(db.store(), Kind::Heartbeat, async |tx| {
        let (tx, installation) = tx.lock_installation(LockMode::Share).await?;
        let (tx, mut claims) = tx
            .lock_claims(&BTreeSet::from([claim]), LockMode::Update)
            .await?;
        let operations = operation.into_iter().collect();
        let (tx, _) = tx.lock_operations(&operations, LockMode::Update).await?;
        let (mut open, now) = tx.open_at().await?;
        let Some(row) = claims.pop() else {
            return open.refuse(()).await;
        };
        if !claim_of(&row, operation)?.is_due(now) {
            return open.refuse(()).await;
        }
        let rows = open.rows();
        let ended = rows
            .end_claim(claim, &unended(), ClaimEnd::Abandoned)
            .await?;
        if ended == Written::Stale {
            return open.refuse(()).await;
        }
        if let Some(operation) = operation {
            let by = By::Controller(by.clone());
            let entry = event(&ABANDONED, by, installation.epoch, None, now);
            fail_operation(rows, operation, &abandoned(), &entry).await?;
        }
        open.done(())
    })
    .await;
    swept.is_ok()
}
