//! An owner's lease (EaR 3.4), extended while its owner works on the operation.

use bronzeward_core::operation::OperationState;
use bronzeward_core::rules::Rule;
use bronzeward_core::time::Span;

use super::{Owned, Refused, held};
use crate::ports::store::{Condition, Guard, LockMode, OperationWrites, Written};
use crate::tx::{Failure, Kind, transact};
use crate::world::{Db, World};

/// Extends the lease from the time after the row's lock. Refused once the operation is
/// another owner's, has ended, or its lease has lapsed.
pub async fn extend<W: World>(
    db: &Db<W>,
    owned: &Owned,
    length: Span,
) -> Result<(), Failure<Refused>> {
    let rules = db.rules();
    transact(db.store(), Kind::Job, async |tx| {
        let (tx, installation) = tx.lock_installation(LockMode::Share).await?;
        let (mut open, now, operation) = held(tx, owned.operation).await?;
        let Some((operation, _)) = operation else {
            return open.refuse(Refused::Gone).await;
        };
        if operation.state().is_terminal() {
            return open.refuse(Refused::NotOwner).await;
        }
        let (token, epoch) = (&owned.fence, installation.epoch);
        let common = operation.common().clone();
        let Ok(extended) = common.extend(&rules, token, epoch, now, length) else {
            return open.refuse(Refused::NotOwner).await;
        };
        let holding = OperationState::HOLDING.map(OperationState::as_str).to_vec();
        let guard = Guard::new()
            .and(Condition::StateIn(holding))
            .fenced(&rules, token, epoch)
            .when(&rules, Rule::LeaseLive, Condition::LeaseLive);
        let rows = open.rows();
        let written = rows
            .extend_operation(owned.operation, &guard, extended.lease_until)
            .await?;
        if written == Written::Stale {
            return open.refuse(Refused::NotOwner).await;
        }
        open.done(())
    })
    .await
    .map(|committed| committed.into_inner())
}
