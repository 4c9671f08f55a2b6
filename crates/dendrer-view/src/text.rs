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

/// Writes a value as JSON, a member a line, two blanks a level and `indent` levels deep. Of levels below `depth` the
/// number of members is written, as a text.
pub fn pretty(value: &Value, indent: usize, depth: Option<usize>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = "  ".repeat(indent);
    write_json(&tag::with_user_names(value), (indent, indent), depth, &mut line, &mut lines);
    lines.push(line);
    lines
}

fn write_json(
    value: &Value,
    (indent, level): (usize, usize),
    depth: Option<usize>,
    line: &mut String,
    lines: &mut Vec<String>,
) {
    let members: Vec<(Option<String>, &Value)> = match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (Some(quote::json_as_it_is(&Value::from(&**name))), value))
            .collect(),
        Value::Array(items) => items.iter().map(|item| (None, item)).collect(),
        _ => Vec::new(),
    };
    if members.is_empty() {
        return line.push_str(&quote::json_as_it_is(value));
    }
    let is_object = matches!(value, Value::Object(_));
    if depth == Some(level - indent) {
        let words = if is_object { ("member", "members") } else { ("item", "items") };
        let words = count(members.len() as u64, words.0, words.1);
        return line.push_str(&quote::json(&Value::from(words)));
    }
    let (open, close) = if is_object { ('{', '}') } else { ('[', ']') };
    line.push(open);
    let last = members.len() - 1;
    for (at, (name, member)) in members.into_iter().enumerate() {
        lines.push(std::mem::take(line));
        line.push_str(&"  ".repeat(level + 1));
        if let Some(name) = name {
            line.push_str(&format!("{name}: "));
        }
        write_json(member, (indent, level + 1), depth, line, lines);
        if at < last {
            line.push(',');
        }
    }
    lines.push(std::mem::take(line));
    line.push_str(&"  ".repeat(level));
    line.push(close);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_json_and_end_at_a_depth() {
        let value = dendrer_object::json::parse_door(br#"{"a":[1,{"b":2}],"c":{}}"#).unwrap();
        let all =
            ["{", "  \"a\": [", "    1,", "    {", "      \"b\": 2", "    }", "  ],", "  \"c\": {}", "}"];
        assert_eq!(pretty(&value, 0, None), all);
        let deep = ["  {", "    \"a\": \"2 items\",", "    \"c\": {}", "  }"];
        assert_eq!(pretty(&value, 1, Some(1)), deep);
    }

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
