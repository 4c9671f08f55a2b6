//! Lines that a program shows in a frame: with a time, a number, the name of a container, a sign of a quotation or a difference.
//!
//! A [`View`] without the frame is read once more, so that what begins a line begins it there too.

use std::ops::Range;

use super::views::View;

/// How many lines a frame has, at least.
const LINES_MIN: usize = 2;

/// The longest frame.
const WIDTH_MAX: usize = 160;

/// The lines of a text, each with its newline.
fn lines_of(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut lines: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end);
        lines.push((at, end));
        at = end + 1;
    }
    lines
}

/// The parts of a text whose lines have one frame.
pub(super) fn blocks(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let lines = lines_of(text);
    let mut found = Vec::new();
    let mut first = 0;
    while first < lines.len() {
        let (count, width) = block(bytes, &lines[first..]);
        if count >= LINES_MIN && width > 0 {
            found.push(lines[first].0..text.len().min(lines[first + count - 1].1 + 1));
        }
        first += count.max(1);
    }
    found
}

/// A block without the frames of its lines; `None` if it has none.
pub(super) fn view(text: &str) -> Option<View> {
    let bytes = text.as_bytes();
    let lines = lines_of(text);
    let (_, width) = block(bytes, &lines);
    let cut = |line: &(usize, usize)| prefix(&bytes[line.0..line.1], width).min(line.1 - line.0);
    let cuts: Vec<usize> = lines.iter().map(cut).collect();
    (width > 0).then(|| View::without_fronts(text, &lines, &cuts))
}

/// A unit of a frame: a number, blanks, a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Number,
    Blanks,
    /// The sign of a line in a difference.
    Change,
    Byte(u8),
}

/// The units at the begin of a line, each with its end.
fn units(line: &[u8]) -> impl Iterator<Item = (Unit, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let c = *line.get(at).filter(|_| at < WIDTH_MAX)?;
        let is_first = at == 0;
        let run = |is: fn(&u8) -> bool| line[at..].iter().take(WIDTH_MAX).take_while(|c| is(c)).count();
        let (unit, size) = match c {
            b'0'..=b'9' => (Unit::Number, run(u8::is_ascii_digit)),
            b'+' | b'-' if is_first => (Unit::Change, 1),
            b' ' | b'\t' => (Unit::Blanks, run(|c| matches!(c, b' ' | b'\t'))),
            c => (Unit::Byte(c), 1),
        };
        at += size;
        Some((unit, at))
    })
}

/// How many lines from the first on have one frame, and of how many units it is.
fn block(bytes: &[u8], lines: &[(usize, usize)]) -> (usize, usize) {
    let own = |at: usize| &bytes[lines[at].0..lines[at].1];
    // Units of the first line are of the frame as far as the second one has them.
    let Some(second) = (lines.len() > 1).then(|| own(1)) else { return (1, 0) };
    let alike = units(own(0)).zip(units(second)).take_while(|((unit, _), (other, _))| unit == other);
    let first: Vec<(Unit, usize)> = alike.map(|(unit, _)| unit).collect();
    let mut width = framed(own(0), &first);
    if width == 0 {
        return (1, 0);
    }
    let mut count = 2;
    while count < lines.len() {
        let alike = units(own(count)).zip(&first).take(width);
        let common = alike.take_while(|((unit, _), (other, _))| unit == other).count();
        let common = framed(own(0), &first[..common]);
        // One line less in the frame is better than a shorter frame of all.
        if common == 0 || (count >= LINES_MIN && common < width.min(framed(own(0), &first[..width]))) {
            break;
        }
        width = common;
        count += 1;
    }
    (count, if count >= LINES_MIN { framed(own(0), &first[..width]) } else { 0 })
}

/// How many of these units are a frame: up to a blank or a sign that ends one, with more than blanks in it.
fn framed(line: &[u8], units: &[(Unit, usize)]) -> usize {
    let is_end = |at: usize| {
        let (unit, end) = units[at];
        match unit {
            Unit::Blanks => at > 0,
            Unit::Change => at == 0,
            Unit::Byte(b'|' | b'>' | b'#' | b'*' | b']' | b'%' | b';' | b'/') => true,
            // `→` and `│` end a number of a line.
            Unit::Byte(0x92 | 0x82) => end >= 3 && line[end - 3] == 0xe2,
            Unit::Byte(b':') => at > 0,
            Unit::Number | Unit::Byte(_) => false,
        }
    };
    let last = (0..units.len()).rev().find(|at| is_end(*at));
    // A part of a program or of a setting is no frame.
    let is_code = |unit: &Unit| matches!(unit, Unit::Byte(b'(' | b'=' | b'"' | b'\'' | b'{'));
    if units.iter().any(|(unit, _)| is_code(unit)) {
        return 0;
    }
    let has_more = |count: usize| units[..count].iter().any(|(unit, _)| *unit != Unit::Blanks);
    last.map_or(0, |last| last + 1).min(units.len())
        * usize::from(last.is_some_and(|last| has_more(last + 1)))
}

/// How many bytes so many units are at the begin of a line. A blank after the frame belongs to the line: it is its indent.
fn prefix(line: &[u8], count: usize) -> usize {
    let mut end = 0;
    let mut before = 0;
    for (unit, close) in units(line).take(count) {
        before = end;
        end = close;
        if unit != Unit::Blanks {
            before = end;
        }
    }
    // One blank separates the frame from the line.
    (before + usize::from(end > before)).min(end)
}
