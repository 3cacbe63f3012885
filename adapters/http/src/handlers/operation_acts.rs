//! What a recovery-admin asks of a plan's operation: a takeover, an accounting (PA §9.2,
//! EaR 3.4, 5.2).

use bronzeward_api::bodies::operation::{AccountAttempt, OperationEntry, TakeOverOperation};
use bronzeward_core::fence::Generation;
use bronzeward_core::id::{OperationId, RequestId};
use bronzeward_core::problem::Problem;
use bronzeward_core::time::Span;
use bronzeward_engine::ports::store::{EntryRow, OperationExtras};
use bronzeward_engine::ports::{Notifier, Wake};
use bronzeward_engine::request::Rendered;
use bronzeward_engine::rows::OperationRow;
use bronzeward_engine::tx::dispatch::{Accounted, AccountingInput, TakenOver};
use bronzeward_engine::world::World;

use super::{machines, operations, wire};
use crate::call::{Call, Handled, created};

/// The operation as the act left it, and the entry that the act wrote.
fn answered(
    request: RequestId,
    operation: &OperationRow,
    extras: &OperationExtras,
    entry: &EntryRow,
) -> Rendered {
    let both = operations::body(operation, extras).and_then(|operation| {
        Ok(OperationEntry {
            operation,
            entry: machines::entry(entry)?,
        })
    });
    super::render(request, both, |body| {
        created(format!("/api/v1/operations/{}", operation.id), body)
    })
}

/// For the serving process's controller; 503 from a process without one.
pub async fn take_over<W: World>(mut call: Call<'_, W>) -> Handled {
    let id: OperationId = call.id("operation")?;
    let write = call.write::<TakeOverOperation>().await?;
    let sent = &write.body;
    let seen = i64::try_from(sent.generation.value()).map(Generation);
    let seen = seen.map_err(|_| Problem::invalid_request("The generation is out of range."))?;
    let request = call.request();
    let answer = call
        .requests()
        .take_over_operation(
            &write.admitted,
            id,
            seen,
            sent.reason.as_str(),
            call.app.controller_lease,
            |taken: &TakenOver| answered(request, &taken.operation, &taken.extras, &taken.entry),
        )
        .await?;
    // This process's controller goes on with it.
    call.app.notifier.wake(Wake::Dispatch);
    Ok(call.answer(answer))
}

/// The decision that a lost answer's request can no longer land.
pub async fn account<W: World>(mut call: Call<'_, W>) -> Handled {
    let (operation, attempt) = (call.id("operation")?, call.id("attempt")?);
    let write = call.write::<AccountAttempt>().await?;
    let sent = &write.body;
    let input = AccountingInput {
        operation,
        attempt,
        start: wire::core_id(&sent.start)?,
        end: wire::core_id(&sent.end)?,
        facts: sent.facts.0.clone(),
    };
    let floor = i64::try_from(call.app.served.settle_floor_seconds).unwrap_or(i64::MAX / 1_000_000);
    let request = call.request();
    let answer = call
        .requests()
        .account_attempt(
            &write.admitted,
            &input,
            Span::seconds(floor),
            |accounted: &Accounted| {
                answered(
                    request,
                    &accounted.operation,
                    &accounted.extras,
                    &accounted.entry,
                )
            },
        )
        .await?;
    // This process's controller goes on with it.
    call.app.notifier.wake(Wake::Dispatch);
    Ok(call.answer(answer))
}
