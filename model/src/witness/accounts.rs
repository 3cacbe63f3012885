//! Accountings of a lost answer (EaR 5.2): two readings that bracket a settle, each with what
//! makes it none.

use bronzeward_core::attempt::ResponseClass;
use bronzeward_core::fence::Generation;
use bronzeward_core::observation::Purpose;
use bronzeward_core::time::Span;
use bronzeward_engine::tx::dispatch::AccountingInput;

use super::ends::{answer, sent, taken_over};
use super::stage::{ADMIN, Stage, Step};
use super::{Witness, rows};
use crate::server::{LEASE, SETTLE_FLOOR};

/// How an executor is known to have stopped.
enum Taken {
    /// It is not.
    No,
    Lapsed,
    /// A person has another process take it over at once.
    Asked,
}

/// How a lost answer is accounted for, and what each condition asks.
struct Brackets {
    /// How the executor's ownership has moved on.
    taken: Taken,
    /// How long after the attempt the first reading begins, and the second after it.
    first: Span,
    second: Span,
    /// How long after the second the decision is made.
    decided: Span,
    purpose: Purpose,
    /// A hand changes the configuration between the two, which nobody explains.
    changed: bool,
    /// The node's answer was recorded.
    answered: bool,
}

const WHOLE: Brackets = Brackets {
    taken: Taken::Lapsed,
    first: LEASE,
    second: SETTLE_FLOOR,
    decided: SETTLE_FLOOR,
    purpose: Purpose::Recovery,
    changed: false,
    answered: false,
};

fn accounted(stage: &mut Stage, as_told: Brackets) -> Step {
    let mut sent = sent(stage)?;
    if as_told.answered {
        answer(stage, &sent, ResponseClass::Answered)?;
    }
    match as_told.taken {
        Taken::No => {}
        Taken::Lapsed => taken_over(stage, &mut sent)?,
        Taken::Asked => {
            let operation = sent.owned.operation;
            stage.asked(&sent.desk, ADMIN, move |hand| async move {
                hand.take_over_operation(operation, Generation::FIRST).await
            })?;
        }
    }
    stage.pass(as_told.first)?;
    let (server, subject, owned) = (sent.server, sent.subject, sent.owned);
    let start = stage.observe(&server, &subject, &owned, as_told.purpose)?;
    if as_told.changed {
        stage.edit_by_hand(&subject)?;
    }
    stage.pass(as_told.second)?;
    let end = stage.observe(&server, &subject, &owned, as_told.purpose)?;
    stage.pass(as_told.decided)?;
    let words = (!as_told.changed).then(|| ("explanation".to_owned(), "looked".to_owned()));
    let input = AccountingInput {
        operation: owned.operation,
        attempt: sent.attempt,
        start: start.started.id,
        end: end.started.id,
        facts: words.into_iter().collect(),
    };
    stage
        .asked(&sent.desk, ADMIN, move |hand| async move {
            hand.account_with(input).await
        })
        .map(drop)
}

const SETTLED: &str = "an attempt is accounted for once it has settled";

pub const WITNESSES: &[Witness] = rows! {
    "accounted while its executor runs", [ExecutorStopped],
        "only a stopped executor's attempt is accounted for",
        |stage| accounted(stage, Brackets { taken: Taken::No, ..WHOLE });
    "accounted from before its deadline", [StartAfterDeadline], SETTLED,
        |stage| accounted(stage, Brackets {
            taken: Taken::Asked,
            first: Span::millis(100),
            ..WHOLE
        });
    "accounted by two readings at once", [EndAfterFloor], SETTLED,
        |stage| accounted(stage, Brackets { second: Span::ZERO, ..WHOLE });
    "accounted at once", [SettleFloor EndAfterFloor], SETTLED,
        |stage| accounted(stage, Brackets {
            second: Span::ZERO,
            decided: Span::ZERO,
            ..WHOLE
        });
    "accounted by other readings", [BracketsRead], SETTLED,
        |stage| accounted(stage, Brackets { purpose: Purpose::Completion, ..WHOLE });
    "accounted over a change nobody explains", [VersionChangeExplained],
        "a changed resource is explained",
        |stage| accounted(stage, Brackets { changed: true, ..WHOLE });
    "accounted though it was answered", [AccountedOnce],
        "an attempt is accounted for once",
        |stage| accounted(stage, Brackets { answered: true, ..WHOLE });
};
