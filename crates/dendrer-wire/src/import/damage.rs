//! Damaged lines of a source of JSON lines: each is one item that cannot be read, in its place.
//!
//! A source is looked through for them only where its reading fails, so a sound one costs nothing. In a source that is
//! read again, a damaged line is the number 0 with blanks up to its length: no offset moves, and the item is known by its number.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use dendrer_object::json::{VALUE_SIZE_MAX, parse_door};
use dendrer_object::{Code, Digest, Value};

use super::beside::Beside;
use super::note::{ImportNote, NoteKind};

/// How many damaged lines are marked. A source with more of them is refused.
const LINES_MAX: usize = 10_000;

/// A line that is no JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DamagedLine {
    /// Its number in the file, from 1.
    line: u64,
    from: u64,
    to: u64,
    why: String,
}

/// The damaged lines of a source by the number of the item that each would be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    lines: Arc<BTreeMap<u64, DamagedLine>>,
    /// SHA-256 of the source as it is.
    pub(crate) sha256: Option<Digest>,
}

impl Damage {
    /// Looks for the damaged lines of a source; `None` if it is no source of lines, or has none. The end of a source that ends
    /// inside a value is no damage: it has a mark of its own.
    pub(crate) fn find<R: Read + Seek>(source: &mut R) -> io::Result<Option<Damage>> {
        source.seek(SeekFrom::Start(0))?;
        let (mut input, mut hash) = (BufReader::new(source), Beside::new());
        let (mut found, mut offset, mut line, mut items, mut sound) = (BTreeMap::new(), 0, 0, 0, 0_u64);
        let mut text = Vec::new();
        loop {
            text.clear();
            let limit = VALUE_SIZE_MAX as u64 + 1;
            let size = input.by_ref().take(limit).read_until(b'\n', &mut text)? as u64;
            if size == 0 {
                break;
            }
            hash.update(&text);
            line += 1;
            let ends = text.ends_with(b"\n");
            let from = offset;
            offset += size;
            // A line that is too large has a mark of its own.
            if !ends && size == limit {
                offset += pass_line(&mut input, &mut hash)?;
                (items, sound) = (items + 1, sound + 1);
                continue;
            }
            let from = if line == 1 && text.starts_with(b"\xef\xbb\xbf") { from + 3 } else { from };
            let value = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text).trim_ascii();
            if value.is_empty() {
                continue;
            }
            match parse_door(value) {
                Err(error) if ends && matches!(error.code(), Code::E0201 | Code::E0206) => {
                    // The newline stays.
                    let (to, why) = (offset - 1, error.to_string());
                    found.insert(items, DamagedLine { line, from, to, why });
                }
                Ok(Value::Object(_)) => sound += 1,
                _ => {}
            }
            items += 1;
        }
        let is_of_lines = sound >= found.len() as u64 && sound > 0;
        let is_damaged = !found.is_empty() && found.len() <= LINES_MAX;
        let sha256 = Some(hash.finish());
        Ok((is_of_lines && is_damaged).then(|| Damage { lines: Arc::new(found), sha256 }))
    }

    /// The note on an item that is a damaged line.
    pub(crate) fn note(&self, item: u64, at: impl std::fmt::Display) -> Option<ImportNote> {
        let DamagedLine { line, why, .. } = self.lines.get(&item)?;
        let text = format!("line {line} cannot be read: {why}");
        Some(ImportNote::new(NoteKind::MessageUnreadable, at, text).with("line", Value::from(*line)))
    }

    /// The source with the damaged lines replaced.
    pub(crate) fn mend<'r, R>(&'r self, source: &'r mut R) -> Mended<'r, R> {
        Mended { source, lines: &self.lines, offset: 0 }
    }
}

/// Passes the rest of a line, and returns its size.
fn pass_line(input: &mut impl BufRead, hash: &mut Beside) -> io::Result<u64> {
    let mut size = 0;
    loop {
        let part = input.fill_buf()?;
        let end = part.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
        let taken = end.unwrap_or(part.len());
        hash.update(&part[..taken]);
        input.consume(taken);
        size += taken as u64;
        if end.is_some() || taken == 0 {
            return Ok(size);
        }
    }
}

/// A source whose damaged lines are numbers.
pub(crate) struct Mended<'r, R> {
    source: &'r mut R,
    lines: &'r BTreeMap<u64, DamagedLine>,
    offset: u64,
}

impl<R: Read> Read for Mended<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        let (from, to) = (self.offset, self.offset + count as u64);
        self.offset = to;
        if self.lines.is_empty() {
            return Ok(count);
        }
        for line in self.lines.values().filter(|line| line.from < to && from < line.to) {
            for at in line.from.max(from)..line.to.min(to) {
                buffer[(at - from) as usize] = if at == line.from { b'0' } else { b' ' };
            }
        }
        Ok(count)
    }
}

impl<R: Seek> Seek for Mended<'_, R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.offset = self.source.seek(to)?;
        Ok(self.offset)
    }
}
