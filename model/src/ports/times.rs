//! Times as the world's peers write them.
//!
//! Never in this module: a comparison of two times.

use bronzeward_core::time::DbTime;

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A creation time: RFC 3339 with up to nine decimals and no trailing zero. `count` keeps
/// two that are made in one microsecond apart, as a real clock's nanoseconds do.
pub fn created(now: DbTime, count: u64) -> String {
    let mut text = now.to_rfc3339();
    let micros = now.as_micros().rem_euclid(1_000_000);
    let nanos = micros.unsigned_abs() * 1_000 + count % 1_000;
    text.pop();
    if nanos > 0 {
        text.push('.');
        text.push_str(format!("{nanos:09}").trim_end_matches('0'));
    }
    text.push('Z');
    text
}

/// A `Date` header.
pub fn http_date(now: DbTime) -> String {
    let text = now.to_rfc3339();
    let day = now.as_seconds().div_euclid(86_400).rem_euclid(7);
    let day = DAYS[usize::try_from(day).unwrap_or(0)];
    let month: usize = text[5..7].parse().unwrap_or(1);
    let month = MONTHS[month - 1];
    format!(
        "{day}, {} {month} {} {} GMT",
        &text[8..10],
        &text[..4],
        &text[11..19]
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bronzeward_core::dependency::date;

    #[test]
    fn a_time_is_read_back_to_the_second_by_the_products_own_readers() {
        for micros in [0, 999_999, 1_795_996_860_487_060, 951_782_400_000_000] {
            let at = DbTime::from_micros(micros);
            assert_eq!(date::http_date(&http_date(at)), Some(at.as_seconds()));
            let text = created(at, 7);
            assert_eq!(date::rfc3339_second(&text), Some(at.as_seconds()), "{text}");
        }
        let at = DbTime::from_micros(1_500_000);
        assert_eq!(created(at, 0), "1970-01-01T00:00:01.5Z");
        assert_ne!(created(at, 1), created(at, 2));
    }
}
