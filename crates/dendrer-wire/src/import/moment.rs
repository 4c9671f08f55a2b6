//! Times of a source: as numbers, to order items by them, and as the time at which an item happened.

use dendrer_object::time::civil_of_days;
use dendrer_object::{Object, Timestamp, Value};

/// Names of a member with the time of an item, in the order in which they are looked for.
const NAMES: [&str; 13] = [
    "timestamp",
    "created_at",
    "createdAt",
    "created",
    "time",
    "ts",
    "at",
    "date",
    "start_time",
    "startTime",
    "startTimeUnixNano",
    "start_time_unix_nano",
    "completed_at",
];

/// Objects in what is kept of an item that may have its time.
const INNER: [&str; 3] = ["span", "line", "metadata"];

/// Seconds between 2001 and 2100: a number in these bounds is a time, and so is one of milliseconds, microseconds or nanoseconds.
const SECONDS: (i128, i128) = (978_307_200, 4_102_444_800);

/// Returns the time of an item by what is kept of it, as RFC 3339 text in UTC; without a zone where the source states none. `None`
/// if it states no time.
pub(crate) fn observed(kept: &Object) -> Option<String> {
    let inner = INNER.iter().filter_map(|name| kept.get(name)?.as_object());
    std::iter::once(kept)
        .chain(inner)
        .find_map(|object| NAMES.iter().find_map(|name| observed_value(object.get(name)?)))
}

/// As [`observed`], for one value.
pub(crate) fn observed_value(value: &Value) -> Option<String> {
    let (nanos, has_zone) = match value {
        Value::String(text) => match text.parse::<i128>() {
            Ok(number) => (nanos_of(number)?, true),
            Err(_) => (moment(text)?, has_zone(text)),
        },
        Value::Number(number) => {
            let float = number.as_f64()?;
            let whole = float as i128;
            // A fraction of seconds counts; one of smaller units is below what is kept.
            let nanos = nanos_of(whole)?;
            (if nanos == whole * 1_000_000_000 { (float * 1e9) as i128 } else { nanos }, true)
        }
        _ => return None,
    };
    let ms = u64::try_from(nanos / 1_000_000).ok()?;
    let text = Timestamp::from_ms(ms).to_string();
    Some(if has_zone { text } else { text.trim_end_matches('Z').to_owned() })
}

fn nanos_of(number: i128) -> Option<i128> {
    let units = [1_000_000_000, 1_000_000, 1_000, 1];
    let unit = units.into_iter().find(|unit| {
        let nanos = number.saturating_mul(*unit);
        (SECONDS.0 * 1_000_000_000..SECONDS.1 * 1_000_000_000).contains(&nanos)
    })?;
    Some(number * unit)
}

fn has_zone(text: &str) -> bool {
    text.trim().get(10..).is_some_and(|time| time.contains(['Z', 'z', '+', '-']))
}

/// Reads RFC 3339 text, or the form of it with a blank, as nanoseconds since 1970.
pub(crate) fn moment(text: &str) -> Option<i128> {
    let text = text.trim();
    let (date, time) = text.split_at_checked(10)?;
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let time = time.strip_prefix(['T', 't', ' '])?;
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(zone_at);
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = whole.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(0..=9999).contains(&year) {
        return None;
    }
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..=60).contains(&second) {
        return None;
    }
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanos: i64 = format!("{:0<9}", fraction.get(..fraction.len().min(9))?).parse().ok()?;
    let offset = match zone.strip_prefix(['+', '-']) {
        None => 0,
        Some(rest) => {
            let (hours, minutes) = rest.split_once(':').unwrap_or((rest.get(..2)?, rest.get(2..)?));
            let minutes = if minutes.is_empty() { 0 } else { minutes.parse::<i64>().ok()? };
            let all = hours.parse::<i64>().ok()? * 3600 + minutes * 60;
            if zone.starts_with('-') { -all } else { all }
        }
    };
    // Days since 1970 of the proleptic Gregorian calendar, with years that begin in March.
    let (shifted, of_year) = (if month <= 2 { year - 1 } else { year }, (month + 9) % 12);
    let (era, year_of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let day_of_year = (153 * of_year + 2) / 5 + day - 1;
    let days =
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
    if civil_of_days(days)
        != (u64::try_from(year).ok()?, u64::try_from(month).ok()?, u64::try_from(day).ok()?)
    {
        return None;
    }
    let seconds = i128::from(days * 86_400 + hour * 3600 + minute * 60 + second - offset);
    Some(seconds * 1_000_000_000 + i128::from(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_nanoseconds() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2024-04-29T00:49:12.097Z", Some(1_714_351_752_097_000_000)),
            ("2024-04-29 02:49:12.097000+02:00", Some(1_714_351_752_097_000_000)),
            ("2000-02-29T00:00:00", Some(951_782_400_000_000_000)),
            ("2024-13-01T00:00:00Z", None),
            ("yesterday", None),
            ("\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}T", None),
        ] {
            assert_eq!(moment(text), expected, "{text}");
        }
    }
}
