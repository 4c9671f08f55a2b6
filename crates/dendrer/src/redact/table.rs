//! Tables: a value below the name of its column, or after the name of its row.
//!
//! Reads Markdown, boxes of databases, columns that blanks align, CSV, rows of `INSERT INTO`. Each line is read once.

use std::ops::Range;

use super::judge::{self, Setting};
use super::names::Strength;
use super::part::{LINE_MAX, after_line, has_marker, line_at};
use super::rules::Rules;
use super::vendor::{SecretSpan, named_span};

/// The sign between the cells of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separator {
    Bar,
    BoxBar,
    Tab,
    Comma,
    Semicolon,
    /// Two blanks and more.
    Blanks,
}

/// Finds secrets in tables, for names at these places, in order.
pub(super) fn find(text: &str, names: &[usize], rules: &Rules, found: &mut Vec<SecretSpan>) {
    let mut upto = 0;
    for name in names.iter().copied() {
        if name < upto {
            continue;
        }
        let line = line_at(text, name);
        upto = line.end.max(name + 1);
        if line.len() > LINE_MAX || line.len() < 6 {
            continue;
        }
        if let Some(end) = inserted(text, &line, name, rules, found) {
            upto = upto.max(end);
            continue;
        }
        for separator in separators(&text[line.clone()]) {
            let cells = cells(text, &line, separator);
            if cells.len() < 2 {
                continue;
            }
            let end = columns(text, &line, separator, &cells, rules, found);
            upto = upto.max(end.unwrap_or(0));
            if end.is_some() || row(text, separator, &cells, rules, found) {
                break;
            }
        }
    }
}

/// The separators that a line may have, the surest first.
fn separators(line: &str) -> Vec<Separator> {
    let mut found = Vec::new();
    if line.contains('│') || line.contains('┃') || line.contains('║') {
        found.push(Separator::BoxBar);
    }
    if line.contains('|') {
        found.push(Separator::Bar);
    }
    if line.contains('\t') {
        found.push(Separator::Tab);
    }
    if found.is_empty() {
        if line.trim().contains("  ") && !line.contains(['"', '\'']) {
            found.push(Separator::Blanks);
        }
        if line.contains(',') {
            found.push(Separator::Comma);
        }
        if line.contains(';') {
            found.push(Separator::Semicolon);
        }
    }
    found
}

/// The cells of a line, without blanks around, as places in the text.
fn cells(text: &str, line: &Range<usize>, separator: Separator) -> Vec<Range<usize>> {
    let own = &text[line.clone()];
    let mut cells = Vec::new();
    let mut add = |start: usize, end: usize| {
        let cell = &own[start..end];
        let lead = cell.len() - cell.trim_start().len();
        cells.push(line.start + start + lead..line.start + start + lead + cell.trim().len());
    };
    match separator {
        Separator::Comma => delimited(own, b',', &mut add),
        Separator::Semicolon => delimited(own, b';', &mut add),
        Separator::Tab => delimited(own, b'\t', &mut add),
        Separator::Bar | Separator::BoxBar => {
            let is_bar = |c: char| match separator {
                Separator::Bar => c == '|',
                _ => matches!(c, '│' | '┃' | '║'),
            };
            let mut at = 0;
            for (place, bar) in own.match_indices(is_bar) {
                add(at, place);
                at = place + bar.len();
            }
            add(at, own.len());
        }
        Separator::Blanks => {
            let bytes = own.as_bytes();
            let mut at = own.len() - own.trim_start().len();
            while at < bytes.len() {
                let end = memchr::memmem::find(&bytes[at..], b"  ").map_or(bytes.len(), |end| at + end);
                add(at, end);
                at = end + bytes[end..].iter().take_while(|c| **c == b' ').count();
            }
        }
    }
    cells
}

/// Calls `add` for each cell of a line of CSV; a cell in quotes may contain the delimiter.
fn delimited(line: &str, delimiter: u8, add: &mut dyn FnMut(usize, usize)) {
    let bytes = line.as_bytes();
    let (mut start, mut is_quoted) = (0, false);
    for (at, c) in bytes.iter().enumerate() {
        match c {
            b'"' => is_quoted = !is_quoted,
            c if *c == delimiter && !is_quoted => {
                add(start, at);
                start = at + 1;
            }
            _ => {}
        }
    }
    add(start, bytes.len());
}

/// A cell without quotes and signs of emphasis.
fn bare(text: &str, cell: &Range<usize>) -> Range<usize> {
    let own = &text[cell.clone()];
    let is_sign = |c: char| matches!(c, '"' | '\'' | '`' | '*' | ' ');
    let lead = own.len() - own.trim_start_matches(is_sign).len();
    let inner = own[lead..].trim_end_matches(['"', '\'', '`', ' ']);
    let inner = if lead > 0 && own.starts_with("**") { inner.trim_end_matches('*') } else { inner };
    cell.start + lead..cell.start + lead + inner.len()
}

/// The strength of a cell that is a name.
fn strength(text: &str, cell: &Range<usize>, rules: &Rules) -> Option<Strength> {
    let name = &text[bare(text, cell)];
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | '/' | ':' | '(' | ')');
    (name.len() <= 60
        && name.matches('(').count() == name.matches(')').count()
        && name.split_whitespace().count() <= 4
        && name.chars().all(is_name))
    .then(|| rules.strength(name.trim_end_matches(':')))?
}

/// Whether a cell can be one of a header: a short name, and no value.
fn is_header(text: &str, cell: &Range<usize>) -> bool {
    let name = &text[bare(text, cell)];
    let is_name =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | '/' | '#' | '(' | ')' | '?');
    name.len() <= 48
        && name.chars().all(is_name)
        && !name.contains("()")
        && name.matches('(').count() == name.matches(')').count()
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a line draws a line: `|---|:--|`, `-----+----`.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty()
        && line.chars().all(|c| {
            matches!(c, '-' | '+' | '|' | '=' | ':' | ' ' | '\t' | '_' | '~')
                || ('\u{2500}'..='\u{257f}').contains(&c)
        })
}

/// Whether the line above has as many cells, so that this one is no header.
fn is_row(text: &str, line: &Range<usize>, separator: Separator, count: usize) -> bool {
    if line.start == 0 || matches!(separator, Separator::Blanks | Separator::Comma | Separator::Semicolon) {
        return false;
    }
    let above = line_at(text, line.start - 1);
    let own = &text[above.clone()];
    if is_rule(own) && above.start > 0 {
        // A rule above is below a header, or above one.
        let first = line_at(text, above.start - 1);
        return !is_rule(&text[first.clone()]) && cells(text, &first, separator).len() == count;
    }
    !is_rule(own) && cells(text, &above, separator).len() == count
}

/// Reads the rows below a header. Returns the end of the table; `None` if the line is no header.
fn columns(
    text: &str,
    line: &Range<usize>,
    separator: Separator,
    header: &[Range<usize>],
    rules: &Rules,
    found: &mut Vec<SecretSpan>,
) -> Option<usize> {
    if !header.iter().all(|cell| cell.is_empty() || is_header(text, cell))
        || is_row(text, line, separator, header.len())
    {
        return None;
    }
    let named: Vec<(usize, Strength)> = header
        .iter()
        .enumerate()
        .filter_map(|(place, cell)| Some((place, strength(text, cell, rules)?)))
        .collect();
    if named.is_empty() {
        return None;
    }
    let mut rows = 0;
    let mut at = after_line(text, line.end);
    while at < text.len() {
        let next = line_at(text, at);
        let next = at..next.end;
        at = after_line(text, next.end);
        let own = &text[next.clone()];
        if is_rule(own) {
            continue;
        }
        if own.trim().is_empty() || own.len() > LINE_MAX {
            break;
        }
        let cells = cells(text, &next, separator);
        if cells.len() != header.len() && (separator != Separator::Blanks || cells.len() < 2) {
            break;
        }
        rows += 1;
        for (place, strength) in &named {
            let cell = match separator {
                Separator::Blanks => aligned(text, line, &next, header, *place),
                _ => cells[*place].clone(),
            };
            taken(text, &cell, *strength, Setting::Cell, found);
        }
    }
    (rows > 0).then_some(at)
}

/// The part of a row below a cell of the header.
fn aligned(
    text: &str,
    line: &Range<usize>,
    row: &Range<usize>,
    header: &[Range<usize>],
    place: usize,
) -> Range<usize> {
    let from = header[place].start - line.start;
    let own = &text[row.clone()];
    let bytes = own.as_bytes();
    if from >= bytes.len() || !own.is_char_boundary(from) {
        return row.end..row.end;
    }
    // A value that is wider than its column moves those after it.
    let mut start = from;
    while start > 0 && bytes[start - 1] != b' ' {
        start -= 1;
    }
    let start = start + bytes[start..].iter().take_while(|c| **c == b' ').count();
    let limit = header.get(place + 1).map_or(usize::MAX, |next| next.start - line.start);
    if start >= limit {
        return row.end..row.end;
    }
    let end = memchr::memmem::find(&bytes[start..], b"  ").map_or(bytes.len(), |end| start + end);
    let end = start + own[start..end].trim_end().len();
    row.start + start..row.start + end
}

/// Takes a cell if it is a secret.
fn taken(
    text: &str,
    cell: &Range<usize>,
    strength: Strength,
    setting: Setting,
    found: &mut Vec<SecretSpan>,
) -> bool {
    let own = bare(text, cell);
    let value = &text[own.clone()];
    let is_quoted = own != *cell;
    // A type below the name of a column is its description.
    if is_quoted && text[own.clone()].contains('(') && setting == Setting::Cell {
        return false;
    }
    let is_secret = !has_marker(value)
        && judge::is_secret(value, strength, setting, is_quoted || setting == Setting::Bare);
    if is_secret {
        found.push(named_span(own.start, own.end));
    }
    is_secret
}

/// Reads a row whose first cell is the name of the second: `| DB_PASSWORD | X |`. Returns whether it is one.
fn row(
    text: &str,
    separator: Separator,
    cells: &[Range<usize>],
    rules: &Rules,
    found: &mut Vec<SecretSpan>,
) -> bool {
    if matches!(separator, Separator::Comma | Separator::Semicolon) {
        // `password,X` is a row of two cells alone.
        if cells.len() != 2 || !super::fields::is_plain_name(&text[bare(text, &cells[0])]) {
            return false;
        }
    }
    let mut is_row = false;
    let full: Vec<&Range<usize>> = cells.iter().filter(|cell| !cell.is_empty()).collect();
    for two in full.windows(2).take(8) {
        if let Some(strength) = strength(text, two[0], rules) {
            is_row |= taken(text, two[1], strength, Setting::Bare, found);
        }
    }
    is_row
}

/// Reads `INSERT INTO t (name, password) VALUES ('bob', 'X')`. Returns its end.
fn inserted(
    text: &str,
    line: &Range<usize>,
    name: usize,
    rules: &Rules,
    found: &mut Vec<SecretSpan>,
) -> Option<usize> {
    let before = text[line.start..name].to_ascii_lowercase();
    let into = before.rfind("insert into").or_else(|| before.rfind("replace into"))?;
    let open = line.start + into + before[into..].find('(')?;
    let close = open + text[open..].find(')').filter(|close| *close < 2000)?;
    let columns = tuple(text, open + 1, close);
    let named: Vec<(usize, Strength)> = columns
        .iter()
        .enumerate()
        .filter_map(|(place, cell)| Some((place, strength(text, cell, rules)?)))
        .collect();
    let mut at = close + 1;
    let rest = &text[at..];
    let values = rest.trim_start();
    if !values.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("values")) {
        return None;
    }
    at += rest.len() - values.len() + 6;
    loop {
        let rest = &text[at..];
        let next = rest.trim_start_matches([' ', ',', '\n', '\r', '\t']);
        at += rest.len() - next.len();
        if !next.starts_with('(') {
            return Some(at);
        }
        let end = end_of_tuple(text, at + 1);
        let cells = tuple(text, at + 1, end);
        for (place, strength) in &named {
            if let Some(cell) = cells.get(*place) {
                let is_text = text[cell.clone()].starts_with('\'');
                let is_number = text[cell.clone()].bytes().all(|c| c.is_ascii_digit());
                if is_text || is_number {
                    taken(text, cell, *strength, Setting::Data, found);
                }
            }
        }
        at = (end + 1).min(text.len());
    }
}

/// The bracket that closes a tuple; the end of the text without one.
fn end_of_tuple(text: &str, from: usize) -> usize {
    let mut is_quoted = false;
    for (at, c) in text.as_bytes()[from..].iter().enumerate().take(1 << 16) {
        match c {
            b'\'' => is_quoted = !is_quoted,
            b')' if !is_quoted => return from + at,
            _ => {}
        }
    }
    text.len()
}

/// The cells of a tuple of SQL.
fn tuple(text: &str, from: usize, end: usize) -> Vec<Range<usize>> {
    let mut cells = Vec::new();
    let (mut start, mut is_quoted) = (from, false);
    let mut add = |start: usize, end: usize| {
        let own = &text[start..end];
        let lead = own.len() - own.trim_start().len();
        cells.push(start + lead..start + lead + own.trim().len());
    };
    for (at, c) in text.as_bytes()[from..end].iter().enumerate() {
        match c {
            b'\'' => is_quoted = !is_quoted,
            b',' if !is_quoted => {
                add(start, from + at);
                start = from + at + 1;
            }
            _ => {}
        }
    }
    add(start, end);
    cells
}
