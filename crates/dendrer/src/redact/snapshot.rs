//! Fields of a page: accessibility snapshots (`textbox "Password": X`), and calls that fill a field
//! (`page.fill('#password', 'X')`).

use std::ops::Range;

use super::fields;
use super::judge::{self, Setting};
use super::names::Strength;
use super::part::{has_marker, line_at};
use super::rules::Rules;
use super::vendor::{SecretSpan, named_span};

/// Words before the label of a field that a person writes into.
const ROLES: &[&str] = &[
    "textbox",
    "searchbox",
    "combobox",
    "spinbutton",
    "input",
    "textfield",
    "entry",
    "edit",
    "field",
    "edittext",
    "securetextfield",
    "text",
    "password",
    "passwordfield",
    "inputtext",
    "text_field",
    "axtextfield",
    "axsecuretextfield",
];

/// Calls that write into a field.
const FILLS: &[&str] = &[
    "fill",
    "type",
    "sendkeys",
    "send_keys",
    "setvalue",
    "set_value",
    "val",
    "input",
    "entertext",
    "typetext",
    "type_text",
    "enter_text",
    "presssequentially",
    "press_sequentially",
    "replacetext",
    "set",
    "settext",
    "set_text",
    "fill_in",
    "fillfield",
    "fill_field",
    "clearandtype",
    "keys",
    "insert_text",
    "inserttext",
    "input_text",
    "inputtext",
    "fill_form",
    "write",
    "usertype",
];

/// Reads the value of a field whose label or selector, in quotes, contains the name at this place.
pub(super) fn find(
    text: &str,
    line: &Range<usize>,
    name: &Range<usize>,
    rules: &Rules,
) -> Option<SecretSpan> {
    let bytes = text.as_bytes();
    let open = text[line.start..name.start].rfind(['"', '\'', '`']).map(|open| line.start + open)?;
    let mut quote = bytes[open];
    let mut open = open;
    // `'input[name="password"]'`: the quote around the selector, and not one in it.
    if let Some(outer) = text[line.start..open].rfind(['\'', '`', '"']).map(|outer| line.start + outer)
        && bytes[outer] != quote
        && matches!(bytes[open - 1], b'=' | b'(' | b'[')
    {
        (open, quote) = (outer, bytes[outer]);
    }
    let near = name.end..line.end.min(name.end + 160);
    let close = name.end + memchr::memchr(quote, &bytes[near])?;
    if close - open > 160 {
        return None;
    }
    let label = &text[open + 1..close];
    let exact = rules.strength(label);
    let strength = exact.or_else(|| fields::of_field(label, rules))?;
    let after = close + 1..line.end;
    shown(text, line, open, after.clone(), strength)
        .or_else(|| filled(text, line, open, after, strength, exact.is_some()))
}

/// `textbox "Password" [active] [ref=e12]: X`, `textbox "Password" focused value="X"`.
fn shown(
    text: &str,
    line: &Range<usize>,
    open: usize,
    after: Range<usize>,
    strength: Strength,
) -> Option<SecretSpan> {
    let before = text[line.start..open].trim_end();
    let role = before.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
    if !ROLES.contains(&&*role.to_ascii_lowercase()) {
        return None;
    }
    let mut at = after.start;
    let rest = loop {
        let rest = text[at..after.end].trim_start();
        at = after.end - rest.len();
        match rest.strip_prefix('[').and_then(|_| rest.find(']')) {
            Some(close) => at += close + 1,
            None => break rest,
        }
    };
    let start = if let Some(value) = rest.strip_prefix(':') {
        after.end - value.trim_start().len()
    } else {
        let lower = rest.to_ascii_lowercase();
        let member = ["value=", "value:", "text=", "text:", "value "]
            .into_iter()
            .find_map(|one| Some(lower.find(one)? + one.len()))?;
        after.end - rest[member..].trim_start().len()
    };
    if start >= after.end {
        return child(text, line, strength);
    }
    let (start, end, is_quoted) = super::quoted::value_at(text, start, super::quoted::Ends::Whole)?;
    judged(text, start..end.min(after.end), strength, is_quoted)
}

/// The text of a field on the line below: `- text: X`.
fn child(text: &str, line: &Range<usize>, strength: Strength) -> Option<SecretSpan> {
    let mut end = line.end;
    for _ in 0..4 {
        let from = super::part::after_line(text, end);
        if from >= text.len() {
            return None;
        }
        let next = from..line_at(text, from).end;
        end = next.end;
        let own = text[next.clone()].trim_start();
        if let Some(value) = own.strip_prefix("- text:").or_else(|| own.strip_prefix("- StaticText ")) {
            let value = value.trim().trim_matches('"');
            let start = next.start + text[next].rfind(value)?;
            return judged(text, start..start + value.len(), strength, true);
        }
        if !own.starts_with("- /") {
            return None;
        }
    }
    None
}

/// `fill('#password', 'X')`, `getByLabel('Password').fill('X')`, `("password", "X")`.
fn filled(
    text: &str,
    line: &Range<usize>,
    open: usize,
    after: Range<usize>,
    strength: Strength,
    is_exact: bool,
) -> Option<SecretSpan> {
    let rest = &text[after.clone()];
    let before = text[line.start..open].trim_end_matches(['(', '"', '\'', ' ', '[']);
    let callee = before
        .rsplit(|c: char| !(c.is_alphanumeric() || c == '_'))
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    if let Some(next) = rest.trim_start().strip_prefix(',') {
        let next = next.trim_start();
        let is_fill = FILLS.contains(&&*callee);
        if !next.starts_with(['"', '\'', '`']) || !(is_fill || is_exact) {
            return None;
        }
        let (start, end, _) =
            super::quoted::value_at(text, after.end - next.len(), super::quoted::Ends::Line)?;
        let value = &text[start..end];
        let setting = if is_fill { Setting::Data } else { Setting::Bare };
        let is_secret = !has_marker(value) && judge::is_secret(value, strength, setting, true);
        return is_secret.then(|| named_span(start, end));
    }
    // A chain of calls after the one that finds the field.
    let chain = rest.trim_start_matches([']', '"', '\'']).strip_prefix(')')?;
    let from = after.end - chain.len();
    let limit = super::part::next_boundary(text, (from + 120).min(after.end));
    let chain = &text[from..limit];
    let (call, _) = chain.match_indices('(').find(|(at, _)| {
        let callee = chain[..*at].rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        FILLS.contains(&&*callee)
    })?;
    let value = chain[call + 1..].trim_start();
    if !value.starts_with(['"', '\'', '`']) {
        return None;
    }
    let (start, end, _) = super::quoted::value_at(text, limit - value.len(), super::quoted::Ends::Line)?;
    judged(text, start..end, strength, true)
}

fn judged(text: &str, value: Range<usize>, strength: Strength, is_quoted: bool) -> Option<SecretSpan> {
    let own = text.get(value.clone())?;
    let is_secret =
        !has_marker(own) && judge::is_secret(own, strength, Setting::Data, is_quoted || !own.contains(' '));
    is_secret.then(|| named_span(value.start, value.end))
}
