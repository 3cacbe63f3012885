//! Times between the database and the core: microseconds in both.
//!
//! Row types use [`Stamp`] for a `timestamptz` column. Never in here: a clock of this
//! process; the database's is [`clock_timestamp`].

use bronzeward_core::time::DbTime;
use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::data_types::PgTimestamp;
use diesel::pg::{Pg, PgValue};
use diesel::serialize::{self, Output, ToSql};
use diesel::sql_types::Timestamptz;

/// 2000-01-01, where PostgreSQL counts from, in microseconds since 1970.
const EPOCH_MICROS: i64 = 946_684_800_000_000;

diesel::define_sql_function! {
    /// The database's time now, not at the transaction's start (PA §5 rule 4).
    fn clock_timestamp() -> Timestamptz;
}

diesel::define_sql_function! {
    /// The transaction's start, as `now()`.
    fn transaction_timestamp() -> Timestamptz;
}

/// A `timestamptz`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, AsExpression, FromSqlRow)]
#[diesel(sql_type = Timestamptz)]
pub struct Stamp(pub DbTime);

impl From<DbTime> for Stamp {
    fn from(time: DbTime) -> Self {
        Self(time)
    }
}

impl FromSql<Timestamptz, Pg> for Stamp {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        let PgTimestamp(micros) = FromSql::<Timestamptz, Pg>::from_sql(value)?;
        // `infinity` is the largest value; no column holds one, and it must not wrap.
        Ok(Self(DbTime::from_micros(
            micros.saturating_add(EPOCH_MICROS),
        )))
    }
}

impl ToSql<Timestamptz, Pg> for Stamp {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        let micros = self.0.as_micros().saturating_sub(EPOCH_MICROS);
        ToSql::<Timestamptz, Pg>::to_sql(&PgTimestamp(micros), &mut out.reborrow())
    }
}
