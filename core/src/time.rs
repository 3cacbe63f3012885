//! The database's time as a value, and lengths of time.
//!
//! Every decision that compares times takes a [`DbTime`] that the engine got from
//! the store (PA §5 rule 4). Never in this module: a clock.

use std::fmt;
use std::ops::{Add, Sub};

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// An instant of the database's clock, in microseconds since 1970-01-01T00:00:00Z
/// (PostgreSQL's own resolution).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DbTime(i64);

/// A length of time in microseconds. Negative lengths exist as differences only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

impl Span {
    pub const ZERO: Span = Span(0);

    pub const fn micros(micros: i64) -> Self {
        Span(micros)
    }

    pub const fn millis(millis: i64) -> Self {
        Span(millis.saturating_mul(1_000))
    }

    pub const fn seconds(seconds: i64) -> Self {
        Span(seconds.saturating_mul(MICROS_PER_SECOND))
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Whole seconds, rounded towards the past.
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(MICROS_PER_SECOND)
    }

    /// For a port's timer. A negative length is no wait at all.
    pub fn as_duration(self) -> std::time::Duration {
        std::time::Duration::from_micros(u64::try_from(self.0).unwrap_or(0))
    }
}

impl From<std::time::Duration> for Span {
    /// A configured length; one beyond what a span holds is the longest span.
    fn from(length: std::time::Duration) -> Self {
        Self(i64::try_from(length.as_micros()).unwrap_or(i64::MAX))
    }
}

impl Add for Span {
    type Output = Span;

    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl DbTime {
    pub const fn from_micros(micros: i64) -> Self {
        DbTime(micros)
    }

    pub const fn from_seconds(seconds: i64) -> Self {
        DbTime(seconds.saturating_mul(MICROS_PER_SECOND))
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970, rounded towards the past.
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(MICROS_PER_SECOND)
    }

    /// RFC 3339 in UTC with whole seconds, as every body of PA §9.3 has it. The
    /// fraction is cut off, not rounded: a body never names a later second than the
    /// record's. It is for reading; no comparison is made on the text.
    pub fn to_rfc3339(self) -> String {
        self.to_string()
    }

    /// Parses RFC 3339 (`Z` or an offset, a fraction of at most nine digits, of which
    /// microseconds are kept). Leap seconds are refused.
    pub fn parse_rfc3339(text: &str) -> Result<Self, TimeError> {
        let bytes = text.as_bytes();
        if !text.is_ascii() || bytes.len() < 20 {
            return Err(TimeError);
        }
        let layout = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
        if layout.iter().any(|(at, mark)| bytes[*at] != *mark) || !matches!(bytes[10], b'T' | b't')
        {
            return Err(TimeError);
        }
        let year = digits(&bytes[0..4])?;
        let month = digits(&bytes[5..7])?;
        let day = digits(&bytes[8..10])?;
        let hour = digits(&bytes[11..13])?;
        let minute = digits(&bytes[14..16])?;
        let second = digits(&bytes[17..19])?;
        if !(1..=12).contains(&month)
            || !(1..=days_in_month(year, month)).contains(&day)
            || hour > 23
            || minute > 59
            || second > 59
        {
            return Err(TimeError);
        }
        let (micros, zone) = fraction(&bytes[19..])?;
        let seconds = days_from_civil(year, month, day) * SECONDS_PER_DAY
            + hour * 3_600
            + minute * 60
            + second
            - offset_seconds(zone)?;
        Ok(DbTime(seconds * MICROS_PER_SECOND + micros))
    }
}

fn digits(bytes: &[u8]) -> Result<i64, TimeError> {
    bytes.iter().try_fold(0, |value, byte| match byte {
        b'0'..=b'9' => Ok(value * 10 + i64::from(byte - b'0')),
        _ => Err(TimeError),
    })
}

/// Reads an optional fraction; answers its microseconds and what follows.
fn fraction(rest: &[u8]) -> Result<(i64, &[u8]), TimeError> {
    let Some(after) = rest.strip_prefix(b".") else {
        return Ok((0, rest));
    };
    let length = after
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if !(1..=9).contains(&length) {
        return Err(TimeError);
    }
    let kept = length.min(6);
    let scale = 10_i64.pow(6 - kept as u32);
    Ok((digits(&after[..kept])? * scale, &after[length..]))
}

fn offset_seconds(zone: &[u8]) -> Result<i64, TimeError> {
    match zone {
        b"Z" | b"z" => Ok(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
            if hours > 23 || minutes > 59 {
                return Err(TimeError);
            }
            let seconds = hours * 3_600 + minutes * 60;
            Ok(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => Err(TimeError),
    }
}

/// A text that is no RFC 3339 time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 time")]
pub struct TimeError;

impl fmt::Display for DbTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.as_seconds();
        let (year, month, day) = civil_from_days(seconds.div_euclid(SECONDS_PER_DAY));
        let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
            of_day / 3_600,
            of_day / 60 % 60,
            of_day % 60
        )
    }
}

impl Add<Span> for DbTime {
    type Output = DbTime;

    fn add(self, span: Span) -> DbTime {
        DbTime(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for DbTime {
    type Output = DbTime;

    fn sub(self, span: Span) -> DbTime {
        DbTime(self.0.saturating_sub(span.0))
    }
}

impl Sub for DbTime {
    type Output = Span;

    fn sub(self, earlier: DbTime) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a proleptic Gregorian date. Years begin in March here,
/// so that the leap day is the last of its year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_contracts_example_times_print_as_written() {
        let time = DbTime::parse_rfc3339("2026-09-26T09:14:02Z").unwrap();
        assert_eq!(time.to_rfc3339(), "2026-09-26T09:14:02Z");
        assert_eq!(DbTime::from_seconds(0).to_rfc3339(), "1970-01-01T00:00:00Z");
        assert_eq!(
            DbTime::from_seconds(951_782_400).to_rfc3339(),
            "2000-02-29T00:00:00Z"
        );
    }

    #[test]
    fn a_fraction_is_cut_off_and_an_offset_is_applied() {
        let time = DbTime::parse_rfc3339("2026-09-26T11:14:02.999999+02:00").unwrap();
        assert_eq!(time.to_rfc3339(), "2026-09-26T09:14:02Z");
        assert_eq!(time.as_micros() % MICROS_PER_SECOND, 999_999);
        assert_eq!(DbTime::from_micros(-1).to_rfc3339(), "1969-12-31T23:59:59Z");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2026-09-26",
            "2026-09-26 09:14:02Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-09-26T24:00:00Z",
            "2026-09-26T23:59:60Z",
            "2026-09-26T09:14:02",
            "2026-09-26T09:14:02.Z",
            "2026-09-26T09:14:02+0200",
            "2026-09-26T09:14:02+24:00",
            "2026-09-26T09:14:02Zé",
        ] {
            assert!(DbTime::parse_rfc3339(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_whole_second_survives_its_text(seconds in -62_000_000_000_i64..250_000_000_000) {
            let time = DbTime::from_seconds(seconds);
            prop_assert_eq!(DbTime::parse_rfc3339(&time.to_rfc3339()), Ok(time));
        }

        #[test]
        fn the_text_of_a_later_second_sorts_later(a in 0_i64..250_000_000_000, b in 0_i64..250_000_000_000) {
            let (a, b) = (DbTime::from_seconds(a), DbTime::from_seconds(b));
            prop_assert_eq!(a.cmp(&b), a.to_rfc3339().cmp(&b.to_rfc3339()));
        }

        #[test]
        fn a_span_added_is_the_span_between(start in -1_000_000_000_i64..1_000_000_000, length in -1_000_000_000_i64..1_000_000_000) {
            let start = DbTime::from_micros(start);
            let span = Span::micros(length);
            prop_assert_eq!((start + span) - start, span);
            prop_assert_eq!((start + span) - span, start);
        }
    }
}
