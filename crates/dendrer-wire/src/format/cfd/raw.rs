//! JSON as its text has it: names and nesting are read, and numbers and texts stay as they are spelled.
//!
//! A program that hashes what it writes hashes its own spelling: Python writes `1.0`, `1e-05` and `\u00e9`. Reads text that is
//! JSON; another text has no value here.

use dendrer_object::{Value, json};

/// Levels of nesting, at most.
const DEPTH_MAX: usize = 200;

/// A value with its text.
#[derive(Debug)]
pub(super) struct Raw<'t> {
    pub(super) text: &'t str,
    kind: Kind<'t>,
}

#[derive(Debug)]
enum Kind<'t> {
    /// Each member by its name, with the text of the name.
    Object(Vec<(String, &'t str, Raw<'t>)>),
    List(Vec<Raw<'t>>),
    /// A number, a text, a truth value or null.
    Token,
}

impl<'t> Raw<'t> {
    pub(super) fn parse(text: &'t str) -> Option<Raw<'t>> {
        let mut at = 0;
        let found = Raw::read(text, &mut at, DEPTH_MAX)?;
        text[at..].trim_ascii().is_empty().then_some(found)
    }

    fn read(text: &'t str, at: &mut usize, depth: usize) -> Option<Raw<'t>> {
        blank(text, at);
        let from = *at;
        let kind = match text.as_bytes().get(from)? {
            b'{' => {
                let mut members = Vec::new();
                each(text, at, b'}', &mut |at| {
                    let name = token(text, at)?;
                    take(text, at, b':')?;
                    let value = Raw::read(text, at, depth.checked_sub(1)?)?;
                    members.push((named(name), name, value));
                    Some(())
                })?;
                Kind::Object(members)
            }
            b'[' => {
                let mut items = Vec::new();
                each(text, at, b']', &mut |at| {
                    items.push(Raw::read(text, at, depth.checked_sub(1)?)?);
                    Some(())
                })?;
                Kind::List(items)
            }
            _ => {
                token(text, at)?;
                Kind::Token
            }
        };
        Some(Raw { text: &text[from..*at], kind })
    }

    pub(super) fn get(&self, name: &str) -> Option<&Raw<'t>> {
        let Kind::Object(members) = &self.kind else { return None };
        members.iter().rev().find(|(known, ..)| known == name).map(|(.., value)| value)
    }

    pub(super) fn into_list(self) -> Option<Vec<Raw<'t>>> {
        match self.kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn into_member(self, name: &str) -> Option<Raw<'t>> {
        let Kind::Object(members) = self.kind else { return None };
        members.into_iter().rev().find(|(known, ..)| known == name).map(|(.., value)| value)
    }

    /// The text with names sorted by code points and without blanks, as `json.dumps(v, sort_keys=True, separators=(',', ':'))` of
    /// Python writes it.
    pub(super) fn sorted(&self) -> String {
        let mut out = String::with_capacity(self.text.len());
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match &self.kind {
            Kind::Token => out.push_str(self.text),
            Kind::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    item.write(out);
                }
                out.push(']');
            }
            Kind::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by(|a, b| a.0.cmp(&b.0));
                out.push('{');
                for (at, (_, name, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(name);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// Whether each number is the shortest spelling of a double, up to its form: RFC 8785 writes no other number.
    pub(super) fn is_of_doubles(&self) -> bool {
        match &self.kind {
            Kind::Object(members) => members.iter().all(|(.., value)| value.is_of_doubles()),
            Kind::List(items) => items.iter().all(Raw::is_of_doubles),
            Kind::Token if self.text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                let double = self.text.parse::<f64>().ok().filter(|double| double.is_finite());
                double.is_some_and(|double| decimal(self.text) == decimal(&format!("{double:e}")))
            }
            Kind::Token => true,
        }
    }
}

/// A number as sign, digits and power of ten.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let power: i64 = power.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    let digits = digits.trim_start_matches('0');
    let kept = digits.trim_end_matches('0');
    if kept.is_empty() {
        return Some((false, String::new(), 0));
    }
    let power = power - fraction.len() as i64 + (digits.len() - kept.len()) as i64;
    Some((whole.starts_with('-'), kept.to_owned(), power))
}

fn blank(text: &str, at: &mut usize) {
    *at += text[*at..].bytes().take_while(u8::is_ascii_whitespace).count();
}

fn take(text: &str, at: &mut usize, byte: u8) -> Option<()> {
    blank(text, at);
    (text.as_bytes().get(*at) == Some(&byte)).then(|| *at += 1)
}

/// Reads the items between two brackets.
fn each(text: &str, at: &mut usize, end: u8, item: &mut dyn FnMut(&mut usize) -> Option<()>) -> Option<()> {
    *at += 1;
    if take(text, at, end).is_some() {
        return Some(());
    }
    loop {
        blank(text, at);
        item(at)?;
        if take(text, at, b',').is_none() {
            return take(text, at, end);
        }
    }
}

/// Reads a text with its quotes, a number or a word.
fn token<'t>(text: &'t str, at: &mut usize) -> Option<&'t str> {
    let rest = &text[*at..];
    let bytes = rest.as_bytes();
    let size = match bytes.first()? {
        b'"' => {
            let mut size = 1;
            while *bytes.get(size)? != b'"' {
                size += if bytes[size] == b'\\' { 2 } else { 1 };
            }
            size + 1
        }
        _ => bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)).count(),
    };
    *at += size;
    rest.get(..size).filter(|found| !found.is_empty())
}

/// The name that a text in quotes is.
fn named(token: &str) -> String {
    let value = json::parse_door(token.as_bytes()).ok();
    value.as_ref().and_then(Value::as_str).map_or_else(|| token.to_owned(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_names_and_keeps_each_spelling() {
        for (text, sorted) in [
            (
                r#"{ "b" : 1.0 , "a": [ 1e-05, 1e+16 ], "\u00e9": "é\n" }"#,
                r#"{"a":[1e-05,1e+16],"b":1.0,"\u00e9":"é\n"}"#,
            ),
            (r#"{"a":{},"A":[],"aa":null,"":true}"#, r#"{"":true,"A":[],"a":{},"aa":null}"#),
            ("12345678901234567890", "12345678901234567890"),
        ] {
            assert_eq!(Raw::parse(text).unwrap().sorted(), sorted);
        }
        for text in ["", "{", "[1", "{\"a\"}", "[1,]", "1 2", "\"a", &"[".repeat(5_000)] {
            assert!(Raw::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn knows_the_numbers_that_doubles_are() {
        for (text, is_double) in [
            ("[0, -0.0, 1.0, 0.1, 1e-05, 1E+16, 100, 9007199254740991, 1.5e3]", true),
            ("9007199254740993", false),
            ("12345678901234567890", false),
            ("0.1000000000000000001", false),
            ("1e400", false),
            (r#"{"a":["12345678901234567890"]}"#, true),
        ] {
            assert_eq!(Raw::parse(text).unwrap().is_of_doubles(), is_double, "{text}");
        }
    }
}
