//! Texts by which copies of a value are found in canonical text.
//!
//! A short text does not show a copy: `ok` and `12` are in every record. Such a value has no needle, and its copies are
//! found by lineage alone.

use std::collections::{HashMap, HashSet};

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
    whole: Texts,
    parts: Texts,
    /// The texts of values that are too short to be looked for inside others: these are found as a value by itself.
    short: HashSet<String>,
    /// Short texts and numbers inside them.
    short_parts: HashSet<String>,
}

impl Needles {
    /// Returns the needles of some values.
    pub(super) fn of<'v>(values: impl IntoIterator<Item = &'v Value>) -> Needles {
        let mut needles = Needles::default();
        for value in values {
            match value {
                Value::Object(_) | Value::Array(_) => {
                    needles.add_whole(json::to_string(value));
                    leaves(value, &mut |leaf| match scalar(leaf) {
                        Some(text) => needles.parts.extend([text]),
                        None => needles.short_parts.extend(short(leaf)),
                    });
                }
                value => match scalar(value) {
                    Some(text) => needles.add_whole(text),
                    None => needles.short.extend(short(value)),
                },
            }
        }
        needles
    }

    fn add_whole(&mut self, text: String) {
        // In a text that is JSON itself, every quote and backslash is escaped once more.
        let again = json::to_string(&Value::from(text.as_str()));
        let again = again[1..again.len() - 1].to_owned();
        if again != text {
            self.whole.extend([again]);
        }
        self.whole.extend([text]);
    }

    /// Looks for the values in a text.
    pub(super) fn find(&self, text: &str) -> Option<Found> {
        if self.whole.is_in(text) {
            return Some(Found::Whole);
        }
        self.parts.is_in(text).then_some(Found::Part)
    }

    /// Looks for the short values in canonical JSON, where they stand by themselves.
    pub(super) fn find_short(&self, text: &str) -> Option<Found> {
        let mut all = self.short.iter().chain(&self.short_parts);
        if !all.any(|short| text.contains(short.as_str())) {
            return None;
        }
        let value = json::parse_canonical(text.as_bytes()).ok()?;
        let mut found = None;
        leaves(&value, &mut |leaf| {
            let Some(leaf) = short(leaf) else { return };
            if self.short.contains(&leaf) {
                found = Some(Found::Whole);
            } else if self.short_parts.contains(&leaf) {
                found = found.or(Some(Found::Part));
            }
        });
        found
    }
}

/// How many bytes of a text lead to it.
const HEAD: usize = 6;

/// Texts of at least [`NEEDLE_MIN`] bytes, by how they begin: all of them are looked for at once.
#[derive(Debug, Default)]
struct Texts(HashMap<[u8; HEAD], Vec<String>>);

impl Texts {
    fn is_in(&self, text: &str) -> bool {
        let few: Vec<&String> = match self.0.len() {
            0 => return false,
            1..=8 => self.0.values().flatten().take(9).collect(),
            _ => Vec::new(),
        };
        if (1..=8).contains(&few.len()) {
            return few.into_iter().any(|needle| contains(text, needle));
        }
        text.as_bytes().windows(HEAD).enumerate().any(|(at, head)| {
            let head: [u8; HEAD] = head.try_into().unwrap_or_default();
            let begins = self.0.get(&head).into_iter().flatten();
            begins.into_iter().any(|needle| {
                text.as_bytes()[at..].starts_with(needle.as_bytes()) && is_whole_number(text, needle, at)
            })
        })
    }
}

impl Extend<String> for Texts {
    fn extend<I: IntoIterator<Item = String>>(&mut self, texts: I) {
        for text in texts {
            let Some(head) = text.as_bytes().first_chunk::<HEAD>() else { continue };
            let known = self.0.entry(*head).or_default();
            if !known.contains(&text) {
                known.push(text);
            }
        }
    }
}

/// Returns the canonical text of a scalar that means something by itself, though it is short; not of a word that is everywhere.
fn short(value: &Value) -> Option<String> {
    let least = match value {
        Value::String(_) => 4,
        Value::Number(_) => 3,
        _ => return None,
    };
    Some(json::to_string(value)).filter(|text| text.len() >= least)
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

/// Whether a text contains a needle.
fn contains(text: &str, needle: &str) -> bool {
    text.match_indices(needle).any(|(at, _)| is_whole_number(text, needle, at))
}

/// Whether a needle is in a text as more than some digits of a longer number, which is no copy of a number.
fn is_whole_number(text: &str, needle: &str, at: usize) -> bool {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let before = at.checked_sub(1).and_then(|before| text.as_bytes().get(before));
    !needle.bytes().all(|byte| byte.is_ascii_digit())
        || !(is_digit(before) || is_digit(text.as_bytes().get(at + needle.len())))
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

    #[test]
    fn a_short_value_is_found_by_itself_alone() {
        let has = |value: &str, text: &str| {
            let value = json::parse_door(value.as_bytes()).unwrap();
            Needles::of([&value]).find_short(text) == Some(Found::Whole)
        };
        assert!(has("4711", r#"[{"set":"/pin","value":4711}]"#));
        assert!(has(r#""no""#, r#"{"a":["no"]}"#));
        assert!(!has("4711", r#"{"a":"4711 or so","b":47110}"#));
        assert!(!has("true", "true"), "it is everywhere");
    }

    #[test]
    fn many_values_are_looked_for_at_once() {
        let many: Vec<Value> = (0..100u64).map(|n| Value::from(format!("value {n:04}").as_str())).collect();
        let needles = Needles::of(&many);
        assert_eq!(needles.find(r#""it is value 0042""#), Some(Found::Whole));
        assert_eq!(needles.find(r#""it is value 4200""#), None);
    }
}
