//! A guard as the WHERE of the statement that writes.
//!
//! The engine says what a write depends on; here each condition becomes an expression over
//! the table's columns, and all of them one boxed boolean. An UPDATE takes it as a filter
//! beside its key. Never in here: a condition of this crate's own.

use bronzeward_engine::ports::store::{Condition, Guard, StoreError, Written};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::Bool;

use crate::schema;
use crate::session::error;
use crate::time::clock_timestamp;

/// A boolean over one table's columns.
pub type Predicate<T> = Box<dyn BoxableExpression<T, Pg, SqlType = Bool>>;

/// A table that guards apply to: what each condition means for its columns. `None` where the
/// table has no such column, which is a fault of the caller and never a condition left out.
pub trait Guarded: Sized {
    fn condition(condition: &Condition) -> Option<Predicate<Self>>;
}

/// All conditions of a guard; a guard without one always holds.
pub fn predicate<T>(guard: &Guard) -> Result<Predicate<T>, StoreError>
where
    T: Guarded + diesel::QuerySource + 'static,
{
    let mut all: Option<Predicate<T>> = None;
    for condition in guard.conditions() {
        let Some(next) = T::condition(condition) else {
            return Err(error::fault("a guard on a column that the table has not"));
        };
        all = Some(match all {
            None => next,
            Some(before) => Box::new(before.and(next)),
        });
    }
    Ok(all.unwrap_or_else(|| given(true)))
}

/// How many rows a guarded write touched, as the engine's outcome.
pub fn written(rows: usize) -> Result<Written, StoreError> {
    match rows {
        0 => Ok(Written::Stale),
        1 => Ok(Written::Written),
        _ => Err(error::fault("a write by key touched several rows")),
    }
}

fn given<T: diesel::QuerySource + 'static>(value: bool) -> Predicate<T> {
    Box::new(diesel::dsl::sql::<Bool>(if value {
        "TRUE"
    } else {
        "FALSE"
    }))
}

/// The columns a table has of those that conditions name. A column that may be NULL never
/// satisfies a condition while it is: NULL compares as unknown, and the row does not match.
macro_rules! guarded {
    ($table:ident { $($what:ident: $column:ident),* $(,)? }) => {
        impl Guarded for schema::$table::table {
            fn condition(condition: &Condition) -> Option<Predicate<Self>> {
                match condition {
                    Condition::Given(value) => Some(given(*value)),
                    $(guarded!(@pattern $what value) =>
                        Some(guarded!(@term $what schema::$table::$column, value)),)*
                    #[allow(unreachable_patterns)]
                    _ => None,
                }
            }
        }
    };
    (@pattern revision $value:ident) => { Condition::Revision($value) };
    (@pattern state $value:ident) => { Condition::StateIn($value) };
    (@pattern owner $value:ident) => { Condition::Owner($value) };
    (@pattern generation $value:ident) => { Condition::Generation($value) };
    (@pattern epoch $value:ident) => { Condition::OwnerEpoch($value) };
    (@pattern live $value:ident) => { Condition::LeaseLive };
    (@pattern lapsed $value:ident) => { Condition::LeaseLapsed };
    (@pattern unexpired $value:ident) => { Condition::Unexpired };
    (@term revision $column:expr, $value:ident) => { Box::new($column.eq(*$value)) };
    (@term state $column:expr, $value:ident) => { Box::new($column.eq_any($value.clone())) };
    (@term owner $column:expr, $value:ident) => {
        Box::new($column.assume_not_null().eq($value.as_str().to_owned()))
    };
    (@term generation $column:expr, $value:ident) => { Box::new($column.eq($value.0)) };
    (@term epoch $column:expr, $value:ident) => {
        Box::new($column.assume_not_null().eq($value.to_string()))
    };
    (@term live $column:expr, $value:ident) => {
        Box::new($column.assume_not_null().gt(clock_timestamp()))
    };
    (@term lapsed $column:expr, $value:ident) => {
        Box::new($column.assume_not_null().le(clock_timestamp()))
    };
    (@term unexpired $column:expr, $value:ident) => {
        Box::new($column.assume_not_null().gt(clock_timestamp()))
    };
}

guarded!(operation {
    state: state,
    owner: owner,
    generation: owner_gen,
    epoch: owner_epoch,
    live: lease_until,
    lapsed: lease_until,
});
guarded!(staging_claim {
    state: state,
    owner: owner,
    generation: owner_gen,
    epoch: owner_epoch,
    live: lease_until,
    lapsed: lease_until,
    unexpired: expires_at,
});
guarded!(draft {
    revision: revision,
    state: state
});
guarded!(head {
    revision: head_revision
});
guarded!(cluster { revision: revision });
guarded!(machine {
    revision: revision,
    state: scope_state
});
guarded!(machine_state { revision: revision });
guarded!(plan_state {
    revision: revision,
    state: state
});
guarded!(drift_record { state: state });
guarded!(automation_token {
    unexpired: expires_at
});
