//! Tokens that are wrapped over the ends of lines: by a terminal, a document, with the prefix of a log.
//!
//! Joins lines only if the next one continues the token: a line that begins a word is another thing.

use super::encoded;
use super::judge;
use super::part::Depth;
use super::prefilter::{self, is_token};
use super::rules::Rules;
use super::vendor::{self, SecretSpan};

/// How long a line is that a program wraps, at least.
const LINE_MIN: usize = 60;

/// How long a run before a line's end is where lines of a token are joined, at least.
const WRAPPED_MIN: usize = 3;

/// How many lines a token is wrapped over, at most.
const LINES_MAX: usize = 400;

/// The longest line that is joined with the next one.
const WIDTH_MAX: usize = 1024;

/// A line, without the sign at its end that continues it.
#[derive(Debug, Clone, Copy)]
struct Line {
    start: usize,
    /// The end of what it contains.
    end: usize,
    /// The newline, or the end of the text.
    newline: usize,
    /// Whether a backslash at its end continues it.
    is_continued: bool,
}

impl Line {
    fn of(bytes: &[u8], start: usize) -> Line {
        let newline = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |end| start + end);
        let mut end = newline - usize::from(newline > start && bytes[newline - 1] == b'\r');
        let is_continued = end > start && bytes[end - 1] == b'\\';
        end -= usize::from(is_continued);
        while !is_continued && end > start && matches!(bytes[end - 1], b' ' | b'\t') {
            end -= 1;
        }
        Line { start, end, newline, is_continued }
    }

    fn width(self) -> usize {
        self.end - self.start
    }

    /// The begin of the run of a token at its end.
    fn run(self, bytes: &[u8]) -> usize {
        let is_part = |c: &u8| c.is_ascii_graphic() && !matches!(c, b'"' | b'\'' | b'`' | b'<' | b'>');
        self.end - bytes[self.start..self.end].iter().rev().take_while(|c| is_part(c)).count()
    }
}

/// Finds tokens with a shape, and encoded texts, that are wrapped over the ends of lines.
pub(super) fn find(text: &str, rules: &Rules, depth: Depth, found: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let mut added = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let line = Line::of(bytes, at);
        at = line.newline + 1;
        let is_long = (LINE_MIN..WIDTH_MAX).contains(&line.width()) || line.is_continued;
        let run = if is_long { line.run(bytes) } else { line.end };
        if line.end - run < WRAPPED_MIN {
            continue;
        }
        let (parts, next) = joined(bytes, line, run);
        if parts.len() < 2 {
            continue;
        }
        at = next;
        let whole: String = parts.iter().map(|(begin, end)| &text[*begin..*end]).collect();
        let mut more = Vec::new();
        let runs: Vec<_> = prefilter::runs(whole.as_bytes(), vendor::BODY_MIN).collect();
        vendor::find(whole.as_bytes(), &runs, &mut more);
        encoded::find(&whole, &runs, rules, depth, &mut more);
        let more = more.into_iter().map(|one| placed(&parts, one));
        let crosses = |one: &SecretSpan| memchr::memchr(b'\n', &bytes[one.start..one.end]).is_some();
        added.extend(more.filter(|one| crosses(one) && !is_whole_before(bytes, found, one)));
    }
    found.extend(added);
}

/// The parts of a token from this line on, and the line after them.
fn joined(bytes: &[u8], first: Line, run: usize) -> (Vec<(usize, usize)>, usize) {
    let mut parts = Vec::new();
    let mut last = first;
    while parts.len() < LINES_MAX && last.newline < bytes.len() {
        let next = Line::of(bytes, last.newline + 1);
        let Some((begin, end)) = continuation(bytes, last, next, parts.len().max(1)) else { break };
        if parts.is_empty() {
            parts.push((run, first.end));
        }
        parts.push((begin, end));
        let is_wide = next.width() >= first.width().min(LINE_MIN);
        let is_full = end == next.end && (next.is_continued || (!last.is_continued && is_wide));
        if !is_full {
            return (parts, next.newline + 1);
        }
        last = next;
    }
    // The line that ended the token may begin another one.
    (parts, last.newline + 1)
}

/// The part of a line that continues the token of the line before.
fn continuation(bytes: &[u8], line: Line, next: Line, count: usize) -> Option<(usize, usize)> {
    let begin = next.start + lead(bytes, line, next);
    let end = begin + bytes[begin..next.end].iter().take_while(|c| is_token(**c)).count();
    let piece = std::str::from_utf8(&bytes[begin..end]).ok()?;
    // Padding is at the end; a sign of equality within is one of a name.
    let is_name = |name: &str| name.len() < 16 || !judge::is_mixed(name);
    if piece.is_empty() || piece.trim_end_matches('=').split_once('=').is_some_and(|(name, _)| is_name(name))
    {
        return None;
    }
    let is_alone = end == next.end;
    let is_closed = matches!(
        bytes.get(end),
        Some(
            b'"' | b'\'' | b',' | b';' | b')' | b'<' | b'`' | b']' | b'}' | b'&' | b'\\' | b'@' | b':' | b'?'
        )
    );
    let is_piece = match is_alone || is_closed {
        true => judge::is_piece(piece) || (count > 1 && judge::is_tail(piece)),
        false => matches!(bytes.get(end), Some(b' ')) && piece.len() >= 8 && judge::is_mixed(piece),
    };
    is_piece.then_some((begin, end))
}

/// How long the lead of a line is: an indent, or the prefix that the line before has as well.
fn lead(bytes: &[u8], line: Line, next: Line) -> usize {
    let own = &bytes[next.start..next.end];
    let before = &bytes[line.start..line.end];
    let alike = own.iter().zip(before).take(120);
    let common = alike.take_while(|(a, b)| a == b || (a.is_ascii_digit() && b.is_ascii_digit())).count();
    let is_sign = |c: &u8| matches!(c, b' ' | b'\t' | b'|' | b'>' | b'#' | b'*');
    let prefix = own[..common].iter().rposition(is_sign).map_or(0, |last| last + 1);
    // A line that repeats the words before a token does not continue it.
    let indent = own.iter().take_while(|c| matches!(c, b' ' | b'\t')).count();
    prefix.max(indent)
}

/// Whether a token that seems to continue over a line's end is a secret that ends with a short line.
fn is_whole_before(bytes: &[u8], found: &[SecretSpan], joined: &SecretSpan) -> bool {
    let at = found.partition_point(|one| one.start < joined.start);
    let Some(whole) = found.get(at).filter(|one| one.start == joined.start) else { return false };
    let line = bytes[..whole.end].iter().rev().take(LINE_MIN).take_while(|c| **c != b'\n').count();
    let rest = &bytes[whole.end..bytes.len().min(whole.end + 8)];
    let is_continued = rest.iter().find(|c| !matches!(c, b' ' | b'\t')) == Some(&b'\\');
    !is_continued && line < LINE_MIN
}

/// The place in a text of what was found in parts of it that were joined.
fn placed(parts: &[(usize, usize)], found: SecretSpan) -> SecretSpan {
    let (mut length, mut start, mut end) = (0, None, 0);
    for (begin, close) in parts {
        let size = close - begin;
        if start.is_none() && found.start < length + size {
            start = Some(begin + found.start - length);
        }
        if found.end > length {
            end = begin + (found.end - length).min(size);
        }
        length += size;
    }
    SecretSpan { start: start.unwrap_or(end), end, ..found }
}
