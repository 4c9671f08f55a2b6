//! Parts of a text: lines, boundaries of characters, which bytes there are, how often it was decoded.
//!
//! Knows no rule: the readers of syntax share it.

use std::ops::Range;

use super::prefilter;
use super::rules::Rules;
use super::vendor::SecretSpan;

/// How long a value after a name may be.
pub(super) const VALUE_MAX: usize = 8 << 10;

/// The longest line that is read as a row.
pub(super) const LINE_MAX: usize = 4096;

/// How often what was decoded is decoded again.
const DEPTH_MAX: usize = 2;

/// How deep JSON is read in texts of JSON.
const JSON_DEPTH_MAX: usize = 8;

/// How often a text was decoded before it is read.
#[derive(Clone, Copy)]
pub(super) struct Depth {
    decoded: usize,
    json: usize,
    pub(super) is_mail: bool,
    /// Finds secrets of every kind in what a text decodes to.
    find: FindAt,
    /// Finds secrets by syntax alone.
    by_syntax: FindAt,
}

/// Finds the secrets of a text at a depth.
pub(super) type FindAt = fn(&str, &Rules, Depth) -> Vec<SecretSpan>;

impl Depth {
    /// The depth of a text that was not decoded, with what reads texts in it.
    pub(super) fn new(find: FindAt, by_syntax: FindAt) -> Depth {
        Depth { decoded: 0, json: 0, is_mail: false, find, by_syntax }
    }

    /// Finds the secrets of a text at this depth.
    pub(super) fn find(self, text: &str, rules: &Rules) -> Vec<SecretSpan> {
        (self.find)(text, rules, self)
    }

    /// Finds the secrets of a text at this depth by syntax alone: shapes in it were found before.
    pub(super) fn by_syntax(self, text: &str, rules: &Rules) -> Vec<SecretSpan> {
        (self.by_syntax)(text, rules, self)
    }

    /// The depth of what this text decodes to.
    pub(super) fn deeper(self) -> Depth {
        Depth { decoded: self.decoded + 1, ..self }
    }

    /// The same for what a mail decodes to, in which no other mail is looked for.
    pub(super) fn of_mail(self, is_mail: bool) -> Depth {
        Depth { is_mail, ..self }
    }

    /// The depth of a text of JSON in this one.
    pub(super) fn in_json(self) -> Depth {
        Depth { json: self.json + 1, ..self }
    }

    /// Whether what this text decodes to is read.
    pub(super) fn may_decode(self) -> bool {
        self.decoded < DEPTH_MAX
    }

    /// Whether texts of JSON in this one are read.
    pub(super) fn may_read_json(self) -> bool {
        self.json < JSON_DEPTH_MAX
    }
}

/// Which bytes of ASCII a text has, so that a pass that begins at one of them is left out where that byte is missing: most texts of a
/// record are short, and setting up a search costs more than searching them.
pub(super) struct Present {
    ascii: u128,
    pub(super) has_others: bool,
}

impl Present {
    pub(super) fn of(bytes: &[u8]) -> Present {
        let (mut low, mut high, mut others) = (0u64, 0u64, 0u8);
        for byte in bytes {
            let bit = 1u64 << (byte & 63);
            low |= if byte & 64 == 0 { bit } else { 0 };
            high |= if byte & 64 == 0 { 0 } else { bit };
            others |= byte;
        }
        Present { ascii: u128::from(low) | u128::from(high) << 64, has_others: others & 128 != 0 }
    }

    /// Whether all bytes of this text of ASCII may be there.
    pub(super) fn has_all(&self, part: &[u8]) -> bool {
        prefilter::is_off() || part.iter().all(|byte| self.has(*byte))
    }

    /// Tells whether this byte of ASCII is there. True also for some bytes that are not, where the text is not ASCII alone.
    pub(super) fn has(&self, byte: u8) -> bool {
        self.ascii & (1 << (byte & 127)) != 0
    }
}

/// Whether a text has a marker in it.
pub(super) fn has_marker(text: &str) -> bool {
    text.contains('<') && text.contains("<redacted")
}

/// The next place at which a character begins.
pub(super) fn next_boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// The line around a place, without its newline.
pub(super) fn line_at(text: &str, at: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let near = at.saturating_sub(LINE_MAX);
    let start = memchr::memrchr(b'\n', &bytes[near..at]).map_or(near, |newline| near + newline + 1);
    let end = memchr::memchr(b'\n', &bytes[at..bytes.len().min(at + LINE_MAX)]);
    let end = end.map_or(bytes.len().min(at + LINE_MAX), |newline| at + newline);
    let start = next_boundary(text, start);
    start..next_boundary(text, end)
}

/// The begin of the next line; the end of the text if the line is longer than lines that are read.
pub(super) fn after_line(text: &str, end: usize) -> usize {
    if text.as_bytes().get(end) == Some(&b'\n') { end + 1 } else { text.len() }
}
