//! XML and HTML: elements and attributes named for a secret, inputs of a form, pairs of a name and a value.

use std::ops::Range;

use super::fields;
use super::judge::{self, Setting};
use super::names::Strength;
use super::part::{VALUE_MAX, has_marker};
use super::rules::Rules;
use super::vendor::{SecretSpan, named_span};

/// How far the tag around a name reaches, at most.
const TAG_MAX: usize = 2000;

/// Attributes that name or describe the value of their element.
const NAMING: &[&str] = &[
    "name",
    "id",
    "key",
    "placeholder",
    "aria-label",
    "label",
    "type",
    "autocomplete",
    "title",
    "for",
    "android:hint",
    "ng-model",
    "data-testid",
    "class",
    "hint",
    "resource-id",
    "content-desc",
];

/// Attributes that have it.
const VALUES: &[&str] =
    &["value", "content", "data-value", "val", "default", "defaultvalue", "text", "string"];

/// Reads the value of the name at this place, if it is in a tag or is the text of an element.
pub(super) fn find(text: &str, name: &Range<usize>, rules: &Rules) -> Option<SecretSpan> {
    let bytes = text.as_bytes();
    let before = name.start.checked_sub(1).map(|at| bytes[at])?;
    let strength = rules.strength(&text[name.clone()]);
    let near = name.start.saturating_sub(TAG_MAX);
    let open = memchr::memrchr2(b'<', b'>', &bytes[near..name.start]).map(|at| near + at)?;
    if bytes[open] == b'>' {
        // `<key>password</key><string>X</string>`
        let strength = strength.filter(|_| text[open + 1..name.start].trim().is_empty())?;
        return next_element(text, name.end).and_then(|value| judged(text, value, strength, true));
    }
    // A tag begins with a letter right after its sign.
    if !bytes.get(open + 1).is_some_and(u8::is_ascii_alphabetic) {
        return None;
    }
    let is_element = before == b'<'
        || (before == b':' && text[open + 1..name.start - 1].bytes().all(|c| c.is_ascii_alphanumeric()));
    let end = tag_end(bytes, name.end)?;
    if is_element {
        let strength = strength?;
        let value = content(text, end)?;
        return judged(text, value, strength, true);
    }
    attributes(text, open, end, name, rules)
}

/// The byte after the tag around this place.
fn tag_end(bytes: &[u8], from: usize) -> Option<usize> {
    let limit = bytes.len().min(from + TAG_MAX);
    memchr::memchr(b'>', &bytes[from..limit]).map(|end| from + end + 1)
}

/// The text of an element whose tag ends here.
fn content(text: &str, end: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if end >= 2 && bytes[end - 2] == b'/' {
        return None;
    }
    let start = match text[end..].trim_start().strip_prefix("<![CDATA[") {
        Some(rest) => text.len() - rest.len(),
        None => end,
    };
    let limit = bytes.len().min(start + VALUE_MAX);
    let close = memchr::memchr2(b'<', b']', &bytes[start..limit]).map_or(limit, |close| start + close);
    let close = super::part::next_boundary(text, close);
    let own = &text[start..close];
    let lead = own.len() - own.trim_start().len();
    Some(start + lead..start + lead + own.trim().len())
}

/// The text of the element after the one that ends here: `</name><value>X`.
fn next_element(text: &str, from: usize) -> Option<Range<usize>> {
    let rest = text[from..].trim_start().strip_prefix("</")?;
    let closed = rest.find('>').filter(|end| *end < 60)?;
    let next = rest[closed + 1..].trim_start().strip_prefix('<')?;
    let end = next.find('>').filter(|end| *end < 60)?;
    let tag = next[..end].rsplit(':').next().unwrap_or_default().to_ascii_lowercase();
    let is_value = ["value", "string", "val", "text", "data", "dd", "td", "content", "code"]
        .contains(&tag.split(' ').next().unwrap_or_default());
    is_value.then(|| content(text, text.len() - next.len() + end + 1))?
}

fn judged(text: &str, value: Range<usize>, strength: Strength, is_quoted: bool) -> Option<SecretSpan> {
    let own = &text[value.clone()];
    let is_secret = !has_marker(own) && judge::is_secret(own, strength, Setting::Data, is_quoted);
    is_secret.then(|| named_span(value.start, value.end))
}

/// Reads the attributes of the tag between these places: one of them names, another one has the value.
fn attributes(text: &str, open: usize, end: usize, name: &Range<usize>, rules: &Rules) -> Option<SecretSpan> {
    let mut strength = None;
    let mut value = None;
    for (own, place) in list(text, open, end - 1) {
        let lower = own.to_ascii_lowercase();
        let is_around = place.start <= name.start && name.end <= place.end;
        if NAMING.contains(&&*lower) {
            let of = match &*lower {
                "type" => text[place].eq_ignore_ascii_case("password").then_some(Strength::Password),
                "class" => None,
                _ => rules.strength(&text[place.clone()]).or_else(|| fields::of_field(&text[place], rules)),
            };
            strength = strength.max(of);
        } else if VALUES.contains(&&*lower) && !is_around {
            value = Some(place);
        }
    }
    let strength = strength?;
    let Some(place) = value else {
        let tag = text[open + 1..].split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let has_text = [
            "string",
            "entry",
            "property",
            "data",
            "param",
            "textarea",
            "item",
            "setting",
            "variable",
            "field",
            "add",
            "prop",
            "attribute",
            "value",
        ];
        let has_text = has_text.contains(&&*tag.to_ascii_lowercase());
        return has_text
            .then(|| content(text, end))
            .flatten()
            .and_then(|value| judged(text, value, strength, true));
    };
    let is_quoted = matches!(text.as_bytes()[place.start - 1], b'"' | b'\'');
    let mut found = judged(text, place, strength, true)?;
    found.quotes = u8::from(!is_quoted);
    Some(found)
}

/// The attributes of a tag, each with the place of its value.
fn list(text: &str, open: usize, end: usize) -> Vec<(&str, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let is_name = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b':' | b'.' | b'@');
    let mut at = open + 1;
    while at < end {
        if !is_name(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < end && is_name(bytes[at]) {
            at += 1;
        }
        let name = &text[start..at];
        if bytes.get(at) != Some(&b'=') || at + 1 >= end {
            continue;
        }
        at += 1 + usize::from(bytes[at + 1] == b'\\');
        let (from, close) = match bytes.get(at) {
            Some(quote @ (b'"' | b'\'')) => {
                let close = memchr::memchr(*quote, &bytes[at + 1..end]).map_or(end, |close| at + 1 + close);
                (at + 1, close - usize::from(close > at + 1 && bytes[close - 1] == b'\\'))
            }
            _ => {
                let close = bytes[at.min(end)..end]
                    .iter()
                    .position(|c| c.is_ascii_whitespace() || matches!(c, b'>' | b'/'));
                (at, close.map_or(end, |close| at + close))
            }
        };
        if text.is_char_boundary(from) && text.is_char_boundary(close) && from <= close {
            found.push((name, from..close));
        }
        at = close + 1;
    }
    found
}
