//! YAML: values below their name, lists of names and values, manifests of Kubernetes.
//!
//! A value ends where its indentation ends. Lines are read forward from the name, so the work is that of the value.

use std::ops::Range;

use super::fields;
use super::judge::{self, Setting};
use super::names::Strength;
use super::part::{VALUE_MAX, after_line, has_marker, line_at};
use super::vendor::{SecretSpan, named_span};

/// How many blanks a line begins with; the dash of a list is one of them.
fn indent(line: &str) -> usize {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    let rest = &line[blanks..];
    match rest.strip_prefix("- ") {
        Some(after) => blanks + 2 + indent(after),
        None => blanks,
    }
}

/// The line after a place that is the end of a line.
fn line_after(text: &str, end: usize) -> Option<Range<usize>> {
    let start = after_line(text, end);
    (start < text.len()).then(|| start..line_at(text, start).end)
}

/// Reads a value that is on the lines below its name: `name: |`, `name:` with an indented value or a list.
/// `at` is the first byte after the sign.
pub(super) fn below(
    text: &str,
    line: &Range<usize>,
    name: usize,
    at: usize,
    strength: Strength,
) -> Vec<SecretSpan> {
    let head = text[at.min(line.end)..line.end].trim();
    let is_block = head.starts_with(['|', '>']) && head.len() <= 3;
    if !(head.is_empty() || is_block) {
        return Vec::new();
    }
    let own = indent(&text[line.clone()]);
    // A name in the middle of its line has no value below.
    if text[line.start..name].trim_start_matches([' ', '-', '"', '\'']).chars().any(|c| !c.is_whitespace()) {
        return Vec::new();
    }
    let is_inner = |line: &str| line.trim().is_empty() || line.len() - line.trim_start().len() > own;
    let mut lines: Vec<Range<usize>> = Vec::new();
    let mut end = line.end;
    while let Some(next) = line_after(text, end) {
        let is_listed = !is_block && text[next.clone()].trim_start().starts_with("- ");
        let is_deep = is_inner(&text[next.clone()]) || (is_listed && indent(&text[next.clone()]) > own);
        if !is_deep || next.end - line.end > VALUE_MAX {
            break;
        }
        end = next.end;
        if !text[next.clone()].trim().is_empty() {
            lines.push(trimmed(text, &next));
        }
    }
    match is_block {
        true => block(text, &lines, strength),
        false => items(text, &lines, strength),
    }
}

fn trimmed(text: &str, line: &Range<usize>) -> Range<usize> {
    let own = &text[line.clone()];
    let lead = own.len() - own.trim_start().len();
    line.start + lead..line.start + lead + own.trim().len()
}

/// A block scalar: its lines are one value.
fn block(text: &str, lines: &[Range<usize>], strength: Strength) -> Vec<SecretSpan> {
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return Vec::new() };
    let joined: String = lines.iter().map(|line| &text[line.clone()]).collect::<Vec<_>>().join("");
    let is_one = lines.iter().all(|line| !text[line.clone()].contains(' '));
    let value = if is_one { joined } else { text[first.start..last.end].to_owned() };
    let is_secret = !has_marker(&value) && judge::is_secret(&value, strength, Setting::Data, true);
    is_secret.then(|| named_span(first.start, last.end)).into_iter().collect()
}

/// A value on the next line, or a list of them.
fn items(text: &str, lines: &[Range<usize>], strength: Strength) -> Vec<SecretSpan> {
    let is_list = lines.iter().all(|line| text[line.clone()].starts_with("- "));
    if !is_list && lines.len() != 1 {
        return Vec::new();
    }
    let value = |line: &Range<usize>| {
        let own = &text[line.clone()];
        let item = own.strip_prefix("- ").unwrap_or(own).trim();
        let start = line.end - item.len();
        let inner = item.trim_matches(['"', '\'']);
        let lead = item.len() - item.trim_start_matches(['"', '\'']).len();
        let is_quoted = inner.len() < item.len();
        let setting =
            if strength == Strength::Weak || is_list || is_quoted { Setting::Data } else { Setting::Code };
        let is_pair = !is_quoted && (inner.contains(": ") || inner.ends_with(':') || inner.contains('='));
        let is_secret =
            !is_pair && !has_marker(inner) && judge::is_secret(inner, strength, setting, is_quoted);
        is_secret.then(|| named_span(start + lead, start + lead + inner.len()))
    };
    lines.iter().filter_map(value).collect()
}

/// Reads the value of a name that is a value itself: `- name: DB_PASSWORD` and `value: X` on its line or near.
pub(super) fn pair(
    text: &str,
    line: &Range<usize>,
    name: &Range<usize>,
    strength: Strength,
) -> Option<SecretSpan> {
    let before = text[line.start..name.start].trim_end_matches(['"', '\'', '`']).trim_end();
    let naming = before.strip_suffix([':', '='])?.trim_end().trim_end_matches(['"', '\'']);
    let word = naming.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
    if !fields::is_name(word) {
        return None;
    }
    let after = text[name.end..line.end].trim_start_matches(['"', '\'', '`']);
    let from = line.end - after.len();
    if let Some(one) = value_in(text, from..line.end, strength) {
        return Some(one);
    }
    if !after.trim_matches([',', ' ', ';']).is_empty() {
        return None;
    }
    let own = indent(&text[line.clone()]);
    let mut end = line.end;
    for _ in 0..4 {
        let Some(next) = line_after(text, end) else { break };
        end = next.end;
        let next_text = &text[next.clone()];
        // The next item of the list is another thing.
        if next_text.trim_start().starts_with("- ") || indent(next_text) != own {
            break;
        }
        if let Some(one) = value_in(text, next, strength) {
            return Some(one);
        }
    }
    let mut start = line.start;
    for _ in 0..4 {
        if start == 0 || text[start..line.end].trim_start().starts_with("- ") {
            break;
        }
        let previous = line_at(text, start - 1);
        start = previous.start;
        if indent(&text[previous.clone()]) != own {
            break;
        }
        if let Some(one) = value_in(text, previous, strength) {
            return Some(one);
        }
    }
    None
}

/// The secret of a member such as `value: X` in a line.
fn value_in(text: &str, line: Range<usize>, strength: Strength) -> Option<SecretSpan> {
    let own = &text[line.clone()];
    let lower = own.to_ascii_lowercase();
    let names = ["value", "val", "text", "secretvalue", "content", "data"];
    let (at, _) = names.iter().find_map(|name| {
        let at = lower.find(name)?;
        let is_word = at == 0 || !own.as_bytes()[at - 1].is_ascii_alphanumeric();
        let rest = own[at + name.len()..].trim_start_matches(['"', '\'', ' ']);
        let is_member = is_word && rest.starts_with([':', '=']) && !rest.starts_with("==");
        is_member.then(|| (own.len() - rest.len() + 1, name))
    })?;
    let rest = own[at..].trim_start_matches([' ', '>']);
    let start = line.end - rest.len();
    let (start, end, is_quoted) = super::quoted::value_at(text, start, super::quoted::Ends::Line)?;
    let value = text.get(start..end.min(line.end))?;
    let is_secret = !has_marker(value) && judge::is_secret(value, strength, Setting::Data, is_quoted);
    let mut span = named_span(start, start + value.len());
    span.quotes = u8::from(!is_quoted && value.bytes().all(|c| c.is_ascii_digit()));
    is_secret.then_some(span)
}

/// Takes every value of `data:` and `stringData:` in a Secret of Kubernetes.
pub(super) fn manifests(text: &str, found: &mut Vec<SecretSpan>) {
    let mut upto = 0;
    for at in memchr::memmem::find_iter(text.as_bytes(), b"kind:") {
        let line = line_at(text, at);
        let value = text[at + 5..line.end].trim().trim_matches(['"', '\'']);
        if at < upto || value != "Secret" {
            continue;
        }
        let own = at - line.start;
        let is_front = text[line.start..at].trim_matches([' ', '-']).is_empty();
        if !is_front {
            continue;
        }
        // A member before `kind` belongs to it as well.
        let (start, end) = document(text, &line, own, upto);
        values_of(text, start..end, own, found);
        upto = end;
    }
}

/// The lines of the mapping around a line, whose names are `own` bytes from the begin of their lines.
fn document(text: &str, line: &Range<usize>, own: usize, upto: usize) -> (usize, usize) {
    let is_of = |line: &str| line.trim().is_empty() || (indent(line) >= own && !line.starts_with("---"));
    let mut start = line.start;
    while start > upto && !text[start..].trim_start_matches(' ').starts_with("- ") {
        let previous = line_at(text, start - 1);
        if !is_of(&text[previous.clone()]) || previous.start < upto {
            break;
        }
        start = previous.start;
    }
    let mut end = line.end;
    while let Some(next) = line_after(text, end) {
        let own_line = &text[next.clone()];
        let is_next_item =
            own >= 2 && own_line.len() - own_line.trim_start().len() < own && !own_line.trim().is_empty();
        if !is_of(own_line) || is_next_item {
            break;
        }
        end = next.end;
    }
    (start, end)
}

/// Takes the values of the members of `data` and `stringData` in these lines.
fn values_of(text: &str, lines: Range<usize>, own: usize, found: &mut Vec<SecretSpan>) {
    let mut is_inside = false;
    let mut inner = usize::MAX;
    let mut at = lines.start;
    while at < lines.end {
        let line = at..line_at(text, at).end;
        at = after_line(text, line.end);
        let own_line = &text[line.clone()];
        let blanks = indent(own_line);
        if own_line.trim().is_empty() {
            continue;
        }
        if blanks <= own {
            let name = own_line.trim().trim_start_matches("- ");
            is_inside = fields::is_data(name.split(':').next().unwrap_or_default()) && blanks == own;
            inner = usize::MAX;
            continue;
        }
        if !is_inside {
            continue;
        }
        inner = inner.min(blanks);
        let value = match own_line.split_once(':') {
            Some((_, value)) if blanks == inner => value.trim(),
            // A line of a block scalar.
            _ => own_line.trim(),
        };
        if value.len() < 2
            || matches!(value, "|" | "|-" | ">" | ">-" | "|+" | ">+")
            || has_marker(value)
            || judge::is_placeholder(value)
        {
            continue;
        }
        let start = line.start + own_line.trim_end().len() - value.len();
        let quoted =
            usize::from(value.len() > 1 && value.starts_with(['"', '\'']) && value.ends_with(['"', '\'']));
        found.push(named_span(start + quoted, start + value.len() - quoted));
    }
}
