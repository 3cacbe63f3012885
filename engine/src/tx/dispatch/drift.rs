//! A machine's drift record, opened, extended or closed by what an observation showed (EaR 6.1).

use bronzeward_core::drift::{AccountedOperation, Detection, Facts, OpenDrift, Resolution, detect};
use bronzeward_core::observation::Observation;
use bronzeward_core::rules::Rules;
use bronzeward_core::timeline::Data;

use super::Log;
use crate::ports::Alert;
use crate::ports::store::{StoreError, StoreTx};
use crate::rows::MachineRow;
use crate::tx::plans::applied;

/// Applies an observation to the machine's record, in the transaction that records what it
/// is evidence of. `held` says whether an operation holds the scope, or took it at or after
/// the observation's basis. The alert is raised once the transaction has committed.
pub(super) async fn apply<R: Rules, T: StoreTx>(
    rules: &R,
    log: &mut Log<'_, T>,
    machine: &MachineRow,
    observation: &Observation,
    held: bool,
) -> Result<Option<Alert>, StoreError> {
    let open = log.rows.drift_record(machine.id).await?;
    let accounted = log.rows.accounted_operation(machine.id).await?;
    let later = log
        .rows
        .observations_after(machine.id, observation.started.basis)
        .await?;
    let applied = applied(machine);
    let detection = detect(
        rules,
        &Facts {
            observation,
            applied: applied.as_ref(),
            superseded: later.iter().any(|later| later.digest().is_some()),
            held_since_basis: held,
            open: open.as_ref(),
            accounted: accounted.as_ref().map(|row| AccountedOperation {
                operation: row.operation,
                artifact: row.artifact,
                attempts: &row.attempts,
            }),
        },
    );
    let id = observation.started.id;
    let landing = match (detection, open) {
        (Detection::Nothing, _) => return Ok(None),
        (
            Detection::Open {
                applied,
                observed,
                late_landing,
            },
            _,
        ) => {
            let entry = Data::DriftOpened {
                observation: id,
                late_landing,
            };
            let record = OpenDrift {
                machine: machine.id,
                revision: log.append(&entry).await?,
                applied_digest: applied,
                observed_digest: observed,
                observation: id,
                last_observation: id,
                late_landing,
            };
            log.rows.insert_drift(&record, log.at).await?;
            late_landing
        }
        (
            Detection::Extend {
                observed,
                late_landing,
            },
            Some(open),
        ) => {
            let record = OpenDrift {
                observed_digest: observed,
                last_observation: id,
                late_landing: late_landing.or(open.late_landing),
                ..open
            };
            log.rows.extend_drift(&record).await?;
            let entry = Data::DriftExtended {
                drift: open.revision,
                observation: id,
                late_landing,
            };
            log.append(&entry).await?;
            late_landing
        }
        (Detection::Return, Some(open)) => {
            close(log, &open, Resolution::Returned, Some(id)).await?;
            return Ok(None);
        }
        (Detection::Extend { .. } | Detection::Return, None) => return Ok(None),
    };
    Ok(Some(Alert::DigestMismatch {
        machine: machine.id,
        observation: id,
        late_landing: landing,
    }))
}

/// Applies an observation that no operation's end rests on: whether an operation held the
/// scope since it began is read here, under the machine's lock.
pub(crate) async fn observed<R: Rules, T: StoreTx>(
    rules: &R,
    log: &mut Log<'_, T>,
    machine: &MachineRow,
    observation: &Observation,
) -> Result<Option<Alert>, StoreError> {
    let basis = observation.started.basis;
    let held = log.rows.scope_held_since(machine.id, basis).await?;
    apply(rules, log, machine, observation, held).await
}

/// Closes the open record beside its entry.
pub(super) async fn close<T: StoreTx>(
    log: &mut Log<'_, T>,
    open: &OpenDrift,
    resolution: Resolution,
    observation: Option<bronzeward_core::id::ObservationId>,
) -> Result<(), StoreError> {
    let entry = Data::DriftClosed {
        drift: open.revision,
        resolution,
        observation,
    };
    let closed = log.append(&entry).await?;
    log.rows
        .close_drift(open.machine, open.revision, resolution, closed, log.at)
        .await
}
