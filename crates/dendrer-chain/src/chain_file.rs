//! The file of a chain: a header and a row for each step (witness-log paper 2.3). Rows end at `\n` alone.

use std::collections::HashSet;

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
    /// It names another row before it than the one that is there.
    #[error("prev_hash is not that of the line before")]
    PrevHash,
    /// A row before it has the same id.
    #[error("step_id {0:?} is that of a row before it")]
    Duplicate(String),
}

/// A line behind the header.
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
    /// Its faults, the worst first.
    pub faults: Vec<RowFault>,
}

impl ChainRow {
    /// Whether the row says its own hash; `None` if it says none.
    pub fn is_hash_right(&self) -> Option<bool> {
        self.value.as_ref().filter(|row| content_hash_of(row).is_some()).map(verify_step_content_hash)
    }
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainFile {
    /// The first line.
    pub header: RowValue,
    /// Its text.
    pub header_text: String,
    /// The lines behind it that are not blank.
    pub rows: Vec<ChainRow>,
}

/// Reads the lines of a file one by one. Lines that are no steps, and hashes that are wrong, are faults of their row.
#[derive(Debug)]
pub struct ChainReader<'b> {
    header: RowValue,
    header_text: &'b str,
    rest: &'b [u8],
    line: usize,
    /// The hash that the next row names.
    prev: Option<String>,
    /// Whether a row named the line before it.
    is_linked: bool,
    seen: HashSet<String>,
}

impl<'b> ChainReader<'b> {
    /// Reads the header.
    pub fn new(bytes: &'b [u8]) -> Result<ChainReader<'b>, ChainFileError> {
        let (first, rest) = next_line(bytes);
        if first.iter().all(u8::is_ascii_whitespace) {
            return Err(ChainFileError::Empty);
        }
        let bad = |what: &str| ChainFileError::Header(what.to_owned());
        let header_text = std::str::from_utf8(first).map_err(|_| bad("it is not UTF-8"))?;
        let header =
            RowValue::parse(header_text).map_err(|error| ChainFileError::Header(error.to_string()))?;
        if header.get("chain_id").and_then(RowValue::as_str).is_none() {
            return Err(bad("chain_id is missing"));
        }
        let prev = Some(header_hash(header_text));
        Ok(ChainReader { header, header_text, rest, line: 1, prev, is_linked: false, seen: HashSet::new() })
    }

    /// The first line.
    pub fn header(&self) -> &RowValue {
        &self.header
    }

    /// The text of the first line.
    pub fn header_text(&self) -> &'b str {
        self.header_text
    }

    fn row(&mut self, line: &[u8]) -> ChainRow {
        let mut row = ChainRow::read(self.line, line);
        if let Some(value) = &row.value {
            // A row that names the line before it says its own hash as well.
            let (says, names) = (value.get(CONTENT_HASH).is_some(), value.get(PREV_HASH).is_some());
            if (says || names || self.is_linked) && !verify_step_content_hash(value) {
                row.faults.push(RowFault::ContentHash);
            }
            // Once a row names the line before it, all that follow do: else rows could be put between them.
            self.is_linked |= names;
            if self.is_linked && value.get(PREV_HASH).and_then(RowValue::as_str) != self.prev.as_deref() {
                row.faults.push(RowFault::PrevHash);
            }
        }
        self.prev = row.value.as_ref().and_then(content_hash_of).map(str::to_owned);
        let id = row.value.as_ref().and_then(|value| value.get("step_id")).and_then(RowValue::as_str);
        if let Some(id) = id.filter(|id| !self.seen.insert((*id).to_owned())) {
            row.faults.push(RowFault::Duplicate(id.to_owned()));
        }
        row
    }
}

/// The lines behind the header that are not blank.
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

/// The bytes before the first newline, and those behind it.
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
        let (header, header_text) = (reader.header().clone(), reader.header_text().to_owned());
        Ok(ChainFile { header, header_text, rows: reader.collect() })
    }

    /// The id of the chain.
    pub fn chain_id(&self) -> &str {
        self.header.get("chain_id").and_then(RowValue::as_str).unwrap_or_default()
    }

    /// When it began, if the header says it.
    pub fn started_at(&self) -> Option<StartedAt> {
        self.header.get("started_at").and_then(RowValue::as_str).and_then(StartedAt::parse)
    }
}

impl ChainRow {
    fn read(line: usize, bytes: &[u8]) -> ChainRow {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let fault =
            |fault| ChainRow { line, text: text.clone(), value: None, step: None, faults: vec![fault] };
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
        ChainRow { line, text, value: Some(value), step, faults }
    }
}
