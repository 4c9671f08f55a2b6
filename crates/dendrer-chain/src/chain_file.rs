//! The file of a chain: a header and a row for each step (witness-log paper 2.3). Rows end at `\n` alone.
//!
//! A row follows the line whose hash it names, which may be any line before it: two writers make a fork, and a file may have
//! the rows of several chains. A rotated file begins with a row that follows one of another file; without that file it is a
//! part of a chain ([`RowFault::Behind`]).

use std::collections::{HashMap, HashSet};

use dendrer_object::Digest;
use dendrer_object::time::Timestamp;

use crate::row::RowValue;
use crate::step::{
    CONTENT_HASH, PREV_HASH, RowStepError, StartedAt, Step, StepStamp, content_hash_of, header_hash,
    verify_step_content_hash,
};

/// An id that names no file: empty, or with a path in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no id of a chain: it is empty, or has `/`, `\\`, `..` or a zero byte")]
pub struct ChainIdError(pub String);

/// Refuses an id that is empty or would leave the directory of chains.
pub fn check_chain_id(id: &str) -> Result<(), ChainIdError> {
    let is_bad = id.is_empty() || ["/", "\\", "\0", ".."].iter().any(|part| id.contains(part));
    if is_bad { Err(ChainIdError(id.to_owned())) } else { Ok(()) }
}

/// A file that has no chain in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainFileError {
    /// The file has no line.
    #[error("the file has no line")]
    Empty,
    /// The first line is no header.
    #[error("line 1 is no header with chain_id: {0}")]
    Header(String),
}

/// A fault of a row. It stays in the file, and its values are kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowFault {
    /// It is not JSON, or cut.
    #[error("{0}")]
    Json(String),
    /// It is JSON and no step.
    #[error(transparent)]
    Step(RowStepError),
    /// It says another hash than it has.
    #[error("content_hash is not that of the row")]
    ContentHash,
    /// It names no line before it, or a row that comes later does not come before it.
    #[error("prev_hash is not that of a line before")]
    PrevHash,
    /// A row before it has the same id.
    #[error("step_id {0:?} is that of a row before it")]
    Duplicate(String),
    /// It is the first row and names a line that is not here: rows before it, or the header that they had, are missing.
    #[error("prev_hash is that of a line that is not in the file, so the file is a part of a chain")]
    Behind,
    /// It is no row but a further header, of the chain with this id.
    #[error("a header of the chain {0:?} is no row")]
    Header(String),
}

/// A line after the header.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainRow {
    /// Its number in the file; the header is 1.
    pub line: usize,
    /// Its text without the newline. Bytes that are no text are replaced.
    pub text: String,
    /// The value, if it is one.
    pub value: Option<RowValue>,
    /// The step, if it is one.
    pub step: Option<Step>,
    /// Number of its chain in the file, by the order of headers; that of line 1 is 0.
    pub chain: usize,
    /// File and line that it follows, if that line is of another file.
    pub joins: Option<(usize, usize)>,
    /// Whether another row follows the same line: here the chain forks.
    pub is_fork: bool,
    /// Its faults, the worst first.
    pub faults: Vec<RowFault>,
}

impl ChainRow {
    /// Whether the row has the hash that it states; `None` if it states none.
    pub fn is_hash_right(&self) -> Option<bool> {
        self.value.as_ref().filter(|row| content_hash_of(row).is_some()).map(verify_step_content_hash)
    }
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainFile {
    /// The first line; `None` if the file begins with a row.
    pub header: Option<RowValue>,
    /// Its text.
    pub header_text: Option<String>,
    /// The lines after it that are not blank.
    pub rows: Vec<ChainRow>,
}

/// A line that rows may follow.
#[derive(Debug, Clone, Copy)]
struct Place {
    file: usize,
    line: usize,
    chain: usize,
}

/// The lines of several files by the hash that their successors name.
#[derive(Debug, Default)]
pub struct ChainLines {
    places: HashMap<Digest, Place>,
    /// The first row that follows a line; another one is a fork.
    followers: HashMap<Digest, Digest>,
}

impl ChainLines {
    /// Reads the hashes of files, which are numbered in this order.
    pub fn of(files: &[&[u8]]) -> ChainLines {
        let mut lines = ChainLines::default();
        for (file, bytes) in files.iter().enumerate() {
            for (line, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
                let text = std::str::from_utf8(text).unwrap_or_default();
                let Ok(value) = RowValue::parse(text) else { continue };
                let own = match chain_id_of(&value) {
                    Some(_) => Some(key(&header_hash(text))),
                    None => content_hash_of(&value).map(key),
                };
                let Some(own) = own else { continue };
                lines.places.entry(own).or_insert(Place { file, line, chain: 0 });
                if let Some(prev) = prev_hash_of(&value) {
                    lines.followers.entry(key(prev)).or_insert(own);
                }
            }
        }
        lines
    }
}

/// A hash as it is kept: a text that is no digits has a key of its own, too.
fn key(hash: &str) -> Digest {
    Digest::of(hash.as_bytes())
}

fn prev_hash_of(row: &RowValue) -> Option<&str> {
    row.get(PREV_HASH).and_then(RowValue::as_str)
}

/// The id in a header; `None` for a row.
fn chain_id_of(value: &RowValue) -> Option<&str> {
    value.get("chain_id").filter(|_| value.get("action").is_none()).and_then(RowValue::as_str)
}

/// Reads the lines of a file one by one. Lines that are no steps, and hashes that are wrong, are faults of their row.
#[derive(Debug)]
pub struct ChainReader<'b> {
    header: Option<(RowValue, &'b str)>,
    rest: &'b [u8],
    line: usize,
    /// Lines that were read.
    own: ChainLines,
    /// Lines of other files, and the number of this one among them.
    others: Option<(&'b ChainLines, usize)>,
    /// The chain of the header before, and how many further ones there are.
    chain: usize,
    chains: usize,
    /// Whether the line before is a header, or the file begins.
    is_begin: bool,
    /// Whether a row named the line before it.
    is_linked: bool,
    /// Whether a row follows one of another file.
    is_joined: bool,
    /// Lines that the first row of a part follows.
    missing: HashSet<Digest>,
    seen: HashSet<(usize, String)>,
}

impl<'b> ChainReader<'b> {
    /// Reads the header. A file without one begins with a row that names the line before it.
    pub fn new(bytes: &'b [u8]) -> Result<ChainReader<'b>, ChainFileError> {
        ChainReader::begin(bytes, None)
    }

    /// Reads the header of a file that may follow others: `file` is its number among those of `lines`.
    pub fn joined(
        bytes: &'b [u8],
        lines: &'b ChainLines,
        file: usize,
    ) -> Result<ChainReader<'b>, ChainFileError> {
        ChainReader::begin(bytes, Some((lines, file)))
    }

    fn begin(
        bytes: &'b [u8],
        others: Option<(&'b ChainLines, usize)>,
    ) -> Result<ChainReader<'b>, ChainFileError> {
        let (first, rest) = next_line(bytes);
        if first.iter().all(u8::is_ascii_whitespace) {
            return Err(ChainFileError::Empty);
        }
        let bad = |what: &str| ChainFileError::Header(what.to_owned());
        let text = std::str::from_utf8(first).map_err(|_| bad("it is not UTF-8"))?;
        let value = RowValue::parse(text).map_err(|error| ChainFileError::Header(error.to_string()))?;
        let is_row = prev_hash_of(&value).is_some() && value.get("action").is_some();
        let mut reader = ChainReader {
            header: None,
            rest: bytes,
            line: 0,
            own: ChainLines::default(),
            others,
            chain: 0,
            chains: 0,
            is_begin: true,
            is_linked: false,
            is_joined: false,
            missing: HashSet::new(),
            seen: HashSet::new(),
        };
        if !is_row {
            value.get("chain_id").and_then(RowValue::as_str).ok_or_else(|| bad("chain_id is missing"))?;
            let place = Place { file: 0, line: 1, chain: 0 };
            reader.own.places.insert(key(&header_hash(text)), place);
            (reader.header, reader.rest, reader.line) = (Some((value, text)), rest, 1);
        }
        Ok(reader)
    }

    /// The first line; `None` if it is a row.
    pub fn header(&self) -> Option<&RowValue> {
        self.header.as_ref().map(|(value, _)| value)
    }

    /// The text of the first line; `None` if it is a row.
    pub fn header_text(&self) -> Option<&'b str> {
        self.header.as_ref().map(|(_, text)| *text)
    }

    /// How many chains the file has, so far.
    pub fn chains(&self) -> usize {
        self.chains + 1
    }

    fn row(&mut self, line: &[u8]) -> ChainRow {
        let mut row = ChainRow::read(self.line, line);
        row.chain = self.chain;
        let Some(value) = row.value.clone() else {
            self.is_begin = false;
            return row;
        };
        if let Some(id) = chain_id_of(&value) {
            self.further_header(&mut row, id);
            return row;
        }
        // A row that names the line before it states its own hash as well.
        let (says, prev) = (value.get(CONTENT_HASH).is_some(), value.get(PREV_HASH));
        let is_due = says || prev.is_some() || self.is_linked;
        if is_due && !verify_step_content_hash(&value) {
            row.faults.push(RowFault::ContentHash);
        }
        // Once a row names the line before it, all that follow do: else rows could be put between them.
        self.is_linked |= prev.is_some();
        let own = content_hash_of(&value).map(key);
        let is_there = |own: Digest| self.own.places.contains_key(&own) || self.is_of_file_before(own);
        let is_repeated = prev.is_some() && own.is_some_and(is_there);
        if self.is_linked && !is_repeated {
            self.follow(&mut row, prev_hash_of(&value).map(key), own);
        }
        if own.is_some_and(|own| self.missing.contains(&own)) {
            row.faults.push(RowFault::PrevHash);
        }
        if let Some(own) = own {
            let place = Place { file: 0, line: row.line, chain: row.chain };
            self.own.places.entry(own).or_insert(place);
        }
        let id = value.get("step_id").and_then(RowValue::as_str).unwrap_or_default();
        let has_id = value.get("step_id").is_some_and(|id| id.as_str().is_some());
        if (has_id && !self.seen.insert((row.chain, id.to_owned()))) || is_repeated {
            row.faults.push(RowFault::Duplicate(id.to_owned()));
        }
        self.is_begin = false;
        row
    }

    /// Whether a file that is named before this one has the row, which this one repeats. A file that follows none is a copy.
    fn is_of_file_before(&self, own: Digest) -> bool {
        let of = |(lines, file): (&ChainLines, usize)| {
            lines.places.get(&own).is_some_and(|place| place.file < file)
        };
        (self.is_joined || self.header.is_none()) && self.others.is_some_and(of)
    }

    /// Finds the line that a row names.
    fn follow(&mut self, row: &mut ChainRow, prev: Option<Digest>, own: Option<Digest>) {
        let Some(prev) = prev else {
            row.faults.push(RowFault::PrevHash);
            return;
        };
        let of_other = |(lines, file): (&ChainLines, usize)| {
            lines.places.get(&prev).copied().filter(|place| place.file != file)
        };
        if let Some(place) = self.own.places.get(&prev) {
            row.chain = place.chain;
        } else if let Some(place) = self.others.and_then(of_other) {
            row.joins = Some((place.file, place.line));
            self.is_joined = true;
        } else if self.is_begin {
            self.missing.insert(prev);
            row.faults.push(RowFault::Behind);
        } else {
            row.faults.push(RowFault::PrevHash);
        }
        let Some(own) = own else { return };
        let first =
            self.others.filter(|_| row.joins.is_some()).and_then(|(lines, _)| lines.followers.get(&prev));
        let first = first.copied().unwrap_or_else(|| *self.own.followers.entry(prev).or_insert(own));
        row.is_fork = first != own;
    }

    /// Begins another chain, or continues the one whose header is repeated.
    fn further_header(&mut self, row: &mut ChainRow, id: &str) {
        let hash = key(&header_hash(&row.text));
        let known = self.own.places.get(&hash).map(|place| place.chain);
        self.chain = known.unwrap_or_else(|| {
            self.is_linked = false;
            self.chains += 1;
            self.chains
        });
        let place = Place { file: 0, line: row.line, chain: self.chain };
        self.own.places.entry(hash).or_insert(place);
        (row.chain, self.is_begin) = (self.chain, true);
        row.faults = vec![RowFault::Header(id.to_owned())];
    }
}

/// The lines after the header that are not blank.
impl Iterator for ChainReader<'_> {
    type Item = ChainRow;

    fn next(&mut self) -> Option<ChainRow> {
        while !self.rest.is_empty() {
            let (line, rest) = next_line(self.rest);
            self.rest = rest;
            self.line += 1;
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Some(self.row(line));
            }
        }
        None
    }
}

/// The bytes before the first newline, and those after it.
fn next_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[]),
    }
}

impl ChainFile {
    /// Reads the bytes of a file.
    pub fn read(bytes: &[u8]) -> Result<ChainFile, ChainFileError> {
        let reader = ChainReader::new(bytes)?;
        let (header, header_text) = (reader.header().cloned(), reader.header_text().map(str::to_owned));
        Ok(ChainFile { header, header_text, rows: reader.collect() })
    }

    /// The id of the chain; empty without a header.
    pub fn chain_id(&self) -> &str {
        self.said("chain_id").unwrap_or_default()
    }

    fn said(&self, name: &str) -> Option<&str> {
        self.header.as_ref()?.get(name)?.as_str()
    }

    /// When it began, if the header says it.
    pub fn started_at(&self) -> Option<StartedAt> {
        self.said("started_at").and_then(StartedAt::parse)
    }
}

impl ChainRow {
    fn read(line: usize, bytes: &[u8]) -> ChainRow {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let made = |value, step, faults| {
            let text = text.clone();
            ChainRow { line, text, value, step, chain: 0, joins: None, is_fork: false, faults }
        };
        let fault = |fault| made(None, None, vec![fault]);
        if std::str::from_utf8(bytes).is_err() {
            return fault(RowFault::Json("not UTF-8".to_owned()));
        }
        let value = match RowValue::parse(&text) {
            Ok(value) => value,
            Err(error) => return fault(RowFault::Json(error.to_string())),
        };
        // Members that a row lacks are not made up: its place in the file is its id, and its time is that of the chain's type.
        let stamp = || StepStamp { step_id: String::new(), started_at: StartedAt::of(Timestamp::from_ms(0)) };
        let (step, faults) = match Step::from_row(&value, stamp) {
            Ok(step) => (Some(step), Vec::new()),
            Err(error) => (None, vec![RowFault::Step(error)]),
        };
        made(Some(value), step, faults)
    }
}
