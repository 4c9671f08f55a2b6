//! Times and values as text. The caller brings the clock and the time zone.

use dendrer_object::{Timestamp, Value, tag};
use jiff::tz::TimeZone;

use crate::{count, quote};

/// The form in which times are written.
#[derive(Debug, Clone)]
pub enum TimeForm {
    /// Not at all.
    None,
    /// As recorded, in UTC.
    Utc,
    /// As the time that has passed until `now`, in milliseconds since 1970.
    Relative {
        /// The time of the clock.
        now: i64,
    },
    /// In a time zone.
    Zoned(TimeZone),
}

/// Writes a time; empty for [`TimeForm::None`].
pub fn time(ts: Timestamp, form: &TimeForm) -> String {
    match form {
        TimeForm::None => String::new(),
        TimeForm::Utc => ts.to_string(),
        TimeForm::Relative { now } => relative(ts.ms(), *now),
        TimeForm::Zoned(zone) => {
            let ms = i64::try_from(ts.ms()).unwrap_or(i64::MAX);
            match jiff::Timestamp::from_millisecond(ms) {
                Ok(time) => time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
                Err(_) => ts.to_string(),
            }
        }
    }
}

/// Returns the time between `ms` and `now` in words: "2 hours ago", or "in 1 minute" if the clock went back since.
pub fn relative(ms: u64, now: i64) -> String {
    let passed = now.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX));
    let seconds = passed.unsigned_abs() / 1000;
    let units = [(86_400 * 365, "year"), (86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    let (size, unit) = units.into_iter().find(|(size, _)| seconds >= *size).unwrap_or((1, "second"));
    let text = count(seconds / size, unit, &format!("{unit}s"));
    if passed < 0 { format!("in {text}") } else { format!("{text} ago") }
}

/// Adds a value to `lines`, two blanks a level, `depth` levels deep; `lead` precedes its first line.
pub fn pretty(value: &Value, indent: usize, depth: Option<usize>, lines: &mut Vec<String>, lead: &str) {
    let pad = "  ".repeat(indent);
    let closed = depth == Some(0);
    match value {
        Value::Object(object) if closed && !object.is_empty() => {
            lines.push(format!("{pad}{lead}{{... {} members}}", object.len()))
        }
        Value::Array(array) if closed && !array.is_empty() => {
            lines.push(format!("{pad}{lead}[... {} items]", array.len()))
        }
        Value::Object(object) if !object.is_empty() => {
            lines.push(format!("{pad}{lead}{{"));
            for (name, member) in object.iter() {
                pretty(
                    member,
                    indent + 1,
                    depth.map(|depth| depth - 1),
                    lines,
                    &format!("{}: ", quote::quoted(tag::shown_name(object, name))),
                );
            }
            lines.push(format!("{pad}}}"));
        }
        Value::Array(array) if !array.is_empty() => {
            lines.push(format!("{pad}{lead}["));
            for item in array.iter() {
                pretty(item, indent + 1, depth.map(|depth| depth - 1), lines, "");
            }
            lines.push(format!("{pad}]"));
        }
        other => lines.push(format!("{pad}{lead}{}", quote::value(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_times_take_the_largest_unit_that_fits() {
        for (passed, text) in [
            (0, "0 seconds ago"),
            (1_000, "1 second ago"),
            (59_999, "59 seconds ago"),
            (60_000, "1 minute ago"),
            (7_300_000, "2 hours ago"),
            (86_400_000 * 364, "364 days ago"),
            (86_400_000 * 800, "2 years ago"),
            (-61_000, "in 1 minute"),
        ] {
            assert_eq!(relative(1_771_833_600_000, 1_771_833_600_000 + passed), text);
        }
    }
}
