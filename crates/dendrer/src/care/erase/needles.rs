//! Texts by which copies of a value are found in canonical text.
//!
//! A short text does not show a copy: `ok` and `12` are in every record. Such a value has no needle, and its copies are
//! found by lineage alone.

use dendrer_object::{Value, json};

/// The shortest text that counts as a copy, in bytes.
pub(super) const NEEDLE_MIN: usize = 6;

/// What a text has of the values that are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// One of the values as a whole.
    Whole,
    /// A text or a number inside one of the values.
    Part,
}

/// Texts by which copies are found.
#[derive(Debug, Default)]
pub(super) struct Needles {
    whole: Vec<String>,
    parts: Vec<String>,
}

impl Needles {
    /// Returns the needles of some values.
    pub(super) fn of<'v>(values: impl IntoIterator<Item = &'v Value>) -> Needles {
        let mut needles = Needles::default();
        for value in values {
            match value {
                Value::Object(_) | Value::Array(_) => {
                    needles.add_whole(json::to_string(value));
                    leaves(value, &mut |leaf| needles.parts.extend(scalar(leaf)));
                }
                value => scalar(value).into_iter().for_each(|text| needles.add_whole(text)),
            }
        }
        needles
    }

    /// Adds a text that is looked for as a whole, such as a digest over a value.
    pub(super) fn add_whole(&mut self, text: String) {
        if text.len() >= NEEDLE_MIN && !self.whole.contains(&text) {
            // In a text that is JSON itself, every quote and backslash is escaped once more.
            let again = json::to_string(&Value::from(text.as_str()));
            let again = again[1..again.len() - 1].to_owned();
            if again != text {
                self.whole.push(again);
            }
            self.whole.push(text);
        }
    }

    /// As [`Needles::add_whole`], of a text that may be missing.
    pub(super) fn extend_whole(&mut self, text: Option<&str>) {
        text.into_iter().for_each(|text| self.add_whole(text.to_owned()));
    }

    /// Looks for the values in a text.
    pub(super) fn find(&self, text: &str) -> Option<Found> {
        if self.whole.iter().any(|needle| contains(text, needle)) {
            return Some(Found::Whole);
        }
        self.parts.iter().any(|needle| contains(text, needle)).then_some(Found::Part)
    }
}

/// Returns the canonical text of a scalar, of a string without its quotes; `None` if it is too short to count.
fn scalar(value: &Value) -> Option<String> {
    let text = json::to_string(value);
    let text = match value {
        Value::String(_) => text[1..text.len() - 1].to_owned(),
        Value::Number(_) => text,
        _ => return None,
    };
    (text.len() >= NEEDLE_MIN).then_some(text)
}

fn leaves(value: &Value, f: &mut dyn FnMut(&Value)) {
    match value {
        Value::Object(members) => members.iter().for_each(|(_, value)| leaves(value, f)),
        Value::Array(items) => items.iter().for_each(|value| leaves(value, f)),
        leaf => f(leaf),
    }
}

/// Whether a text contains a needle. Digits of a longer number are no copy of a number.
fn contains(text: &str, needle: &str) -> bool {
    let is_number = needle.bytes().all(|byte| byte.is_ascii_digit());
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    text.match_indices(needle).any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|before| text.as_bytes().get(before));
        !is_number || !(is_digit(before) || is_digit(text.as_bytes().get(at + needle.len())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(value: &str, text: &str) -> Option<Found> {
        let value = json::parse_door(value.as_bytes()).unwrap();
        Needles::of([&value]).find(text)
    }

    #[test]
    fn copies_are_found_also_in_json_within_json() {
        assert_eq!(found(r#""sk-12\"34""#, r#"{"a":"key sk-12\"34 is"}"#), Some(Found::Whole));
        assert_eq!(found(r#""sk-12\"34""#, r#""{\"a\":\"sk-12\\\"34\"}""#), Some(Found::Whole));
        assert_eq!(found(r#"{"k":"sk-1234","n":1}"#, r#"[{"k":"sk-1234","n":1}]"#), Some(Found::Whole));
        assert_eq!(found(r#"{"k":"sk-1234","n":1}"#, r#""sk-1234""#), Some(Found::Part));
        assert_eq!(found("4242424242", r#""card 4242424242.""#), Some(Found::Whole));
    }

    #[test]
    fn short_values_and_longer_numbers_are_no_copies() {
        assert_eq!(found(r#""ok""#, r#""ok""#), None);
        assert_eq!(found("true", "true"), None);
        assert_eq!(found("4242424242", "142424242421"), None);
        assert_eq!(found("4242424242", "42424242425"), None);
    }
}
