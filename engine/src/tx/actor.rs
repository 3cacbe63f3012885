//! The principal that acts, as its act's transaction locks it (PA §5 rule 5, §10.3).
//!
//! Called by the acts of every route. Never in this module: whether a role may.

use std::collections::BTreeMap;

use bronzeward_core::authority::actor_stands;
use bronzeward_core::problem::Problem;
use bronzeward_core::rules::{Rule, Rules};

use super::approvals::identity_revoked;
use super::level::{Before, Principals};
use super::{Abort, Tx, lock_by};
use crate::ports::store::{LockMode, StoreError, StoreTx};
use crate::request::Admitted;

/// The acting principal FOR SHARE, so that its revocation waits for this act or precedes it;
/// a revoked one is refused (PA §10.3).
pub(crate) async fn standing_actor<R: Rules, T: StoreTx, L: Before<Principals>>(
    rules: &R,
    tx: Tx<T, L>,
    admitted: &Admitted,
) -> Result<Tx<T, Principals>, Abort<Problem>> {
    let actor = BTreeMap::from([(admitted.actor.principal, Some(LockMode::Share))]);
    let (tx, rows) = tx.lock_principals(&actor).await?;
    let revoked = rows.iter().any(|row| row.principal.revoked_at.is_some());
    match actor_stands(rules, revoked) {
        Ok(()) => Ok(tx),
        Err(_) => tx.refuse(identity_revoked()).await,
    }
}

/// The acting principal FOR KEY SHARE, which its act's row refers to: whoever holds it FOR
/// UPDATE waits for the act-order lock next (PA §5 rule 5).
pub(crate) async fn held_actor<R: Rules, T: StoreTx, L: Before<Principals>>(
    rules: &R,
    tx: Tx<T, L>,
    admitted: &Admitted,
) -> Result<Tx<T, Principals>, StoreError> {
    let mode = lock_by(rules, Rule::ActorHeld, LockMode::KeyShare);
    let actor = BTreeMap::from([(admitted.actor.principal, mode)]);
    let (tx, _) = tx.lock_principals(&actor).await?;
    Ok(tx)
}
