//! The two kinds of time texts that a provider's answer carries, read exactly.
//!
//! `Date` is read in the three forms of RFC 9110 §5.6.7 and no other (DM §3 rule 2);
//! a deletion time is RFC 3339 in UTC. Both become whole seconds since 1970. Never in
//! this module: a lenient form, or a time zone.

const DAYS: [&str; 7] = [
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A `Date` header as seconds since 1970. A weekday that is not the date's is refused:
/// a peer that writes one has no clock to trust.
pub fn http_date(text: &str) -> Option<i64> {
    let words: Vec<&str> = text.split(' ').collect();
    match words.as_slice() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        [day, d, month, year, time, "GMT"] => {
            let day = day.strip_suffix(',')?;
            let second = second(
                number(year, 4)?,
                month_of(month)?,
                number(d, 2)?,
                clock(time)?,
            )?;
            (day == DAYS[weekday(second)].get(..3)?).then_some(second)
        }
        // Sunday, 06-Nov-94 08:49:37 GMT
        [day, date, time, "GMT"] => {
            let day = day.strip_suffix(',')?;
            let mut parts = date.split('-');
            let (d, month, year) = (parts.next()?, parts.next()?, parts.next()?);
            if parts.next().is_some() {
                return None;
            }
            // Two digits: this century's up to 68, as C's and Go's readers have it.
            let year = match number(year, 2)? {
                short @ 0..=68 => 2000 + short,
                short => 1900 + short,
            };
            let second = second(year, month_of(month)?, number(d, 2)?, clock(time)?)?;
            (day == DAYS[weekday(second)]).then_some(second)
        }
        // Sun Nov  6 08:49:37 1994
        [day, month, "", d, time, year] if d.len() == 1 => asctime(day, month, d, time, year),
        [day, month, d, time, year] if d.len() == 2 && !d.starts_with('0') => {
            asctime(day, month, d, time, year)
        }
        _ => None,
    }
}

fn asctime(day: &str, month: &str, d: &str, time: &str, year: &str) -> Option<i64> {
    let date = number(d, d.len())?;
    let second = second(number(year, 4)?, month_of(month)?, date, clock(time)?)?;
    (day == DAYS[weekday(second)].get(..3)?).then_some(second)
}

/// An RFC 3339 time in UTC, its fraction cut off: `2026-11-30T04:01:00.48706993Z`.
pub fn rfc3339_second(text: &str) -> Option<i64> {
    let (date, rest) = text.split_once('T')?;
    let rest = rest.strip_suffix('Z')?;
    let time = match rest.split_once('.') {
        Some((time, fraction)) => {
            let digits = fraction.bytes().all(|b| b.is_ascii_digit());
            if fraction.is_empty() || fraction.len() > 9 || !digits {
                return None;
            }
            time
        }
        None => rest,
    };
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let month = usize::try_from(number(month, 2)?).ok()?;
    second(number(year, 4)?, month, number(day, 2)?, clock(time)?)
}

fn number(text: &str, digits: usize) -> Option<i64> {
    let exact = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    if exact { text.parse().ok() } else { None }
}

/// 1 to 12.
fn month_of(name: &str) -> Option<usize> {
    MONTHS
        .iter()
        .position(|month| *month == name)
        .map(|at| at + 1)
}

/// Seconds of the day. A leap second is no second of our count and is refused.
fn clock(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let (h, m, s) = (parts.next()?, parts.next()?, parts.next()?);
    let (h, m, s) = (number(h, 2)?, number(m, 2)?, number(s, 2)?);
    let whole = parts.next().is_none() && h < 24 && m < 60 && s < 60;
    whole.then_some(h * 3600 + m * 60 + s)
}

fn second(year: i64, month: usize, day: i64, clock: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let february = if leap { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *lengths.get(month.checked_sub(1)?)?;
    if day < 1 || day > length || year < 1 {
        return None;
    }
    let earlier: i64 = lengths.iter().take(month - 1).sum();
    let past = year - 1;
    let days = past * 365 + past / 4 - past / 100 + past / 400 + earlier + day - 1;
    // 719,162 days lie between 0001-01-01 and 1970-01-01.
    Some((days - 719_162) * 86_400 + clock)
}

/// An index into `DAYS`; 1970-01-01 was a Thursday.
fn weekday(second: i64) -> usize {
    usize::try_from(second.div_euclid(86_400).rem_euclid(7)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_three_forms_of_a_date_name_the_same_second() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(http_date(text), Some(784_111_777), "{text}");
        }
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(http_date("Wed Nov 16 08:49:37 1994"), Some(784_975_777));
    }

    #[test]
    fn anything_else_is_no_date() {
        for text in [
            "",
            "Sun, 06 Nov 1994 08:49:37.5 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "sun, 06 nov 1994 08:49:37 gmt",
            "Sun,  06 Nov 1994 08:49:37 GMT",
            " Sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:60 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Tue, 30 Feb 1994 08:49:37 GMT",
            "Sun Nov 06 08:49:37 1994",
            "Sun Nov 6 08:49:37 1994",
            "1994-11-06T08:49:37Z",
            "784111777",
        ] {
            assert_eq!(http_date(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_provider_time_is_read_to_the_second_with_any_fraction() {
        let second = Some(1_795_996_860);
        for text in [
            "2026-11-30T00:01:00Z",
            "2026-11-30T00:01:00.4Z",
            "2026-11-30T00:01:00.48706993Z",
            "2026-11-30T00:01:00.999999999Z",
        ] {
            assert_eq!(rfc3339_second(text), second, "{text}");
        }
        for text in [
            "2026-11-30T00:01:00",
            "2026-11-30T00:01:00.Z",
            "2026-11-30T00:01:00+00:00",
            "2026-11-30 00:01:00Z",
            "2026-13-30T00:01:00Z",
            "2026-11-31T00:01:00Z",
            "2026-11-30T00:01:00.1234567890Z",
        ] {
            assert_eq!(rfc3339_second(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_second_written_in_any_form_is_read_back(at in 0i64..4_102_444_800) {
            // An independent calendar: days counted one by one.
            let (mut days, mut year) = (at / 86_400, 1970);
            let length = |y: i64| if (y % 4 == 0 && y % 100 != 0) || y % 400 == 0 { 366 } else { 365 };
            while days >= length(year) {
                days -= length(year);
                year += 1;
            }
            let months = [31, length(year) - 337, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            let mut month = 0;
            while days >= months[month] {
                days -= months[month];
                month += 1;
            }
            let (d, clock) = (days + 1, at % 86_400);
            let (h, m, s) = (clock / 3600, clock / 60 % 60, clock % 60);
            let day = DAYS[usize::try_from(at / 86_400 % 7).unwrap()];
            let (short, name) = (&day[..3], MONTHS[month]);
            let imf = format!("{short}, {d:02} {name} {year} {h:02}:{m:02}:{s:02} GMT");
            prop_assert_eq!(http_date(&imf), Some(at));
            let c = format!("{short} {name} {d:>2} {h:02}:{m:02}:{s:02} {year}");
            prop_assert_eq!(http_date(&c), Some(at));
            let iso = format!("{year}-{:02}-{d:02}T{h:02}:{m:02}:{s:02}.5Z", month + 1);
            prop_assert_eq!(rfc3339_second(&iso), Some(at));
            if year < 2069 {
                let old = format!("{day}, {d:02}-{name}-{:02} {h:02}:{m:02}:{s:02} GMT", year % 100);
                prop_assert_eq!(http_date(&old), Some(at));
            }
        }
    }
}
