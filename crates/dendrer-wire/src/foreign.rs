//! A format of another program as data: its name, how its files are recognised, read, written and checked.
//!
//! [`FORMATS`](crate::format::FORMATS) lists all of them. Rule: nothing outside a file of `format/` asks which format
//! it has; a difference is a member of [`Format`] or of [`Steps`].

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use dendrer::Trace;
use dendrer::evidence::branches::BranchReport;
use dendrer::kernel::pack::PackEngine;
use dendrer::kernel::step::Start;
use dendrer::redact::Redactor;
use dendrer_chain::{ActionType, EXTENSION};
use dendrer_object::json::{self, JsonError};
use dendrer_object::value::Object;
use dendrer_object::{Code, Digest, RunName, Value};

use crate::format::jsonl::Map;
use crate::import::account::Row;
use crate::import::calls::Calls;
use crate::import::error::ImportError;
use crate::import::found::Accounted;
use crate::import::items::{self, Around, Item};
pub use crate::import::layout::CfdTerms;
use crate::import::layout::{self, Choice, Layout};
use crate::import::note::ImportNote;
use crate::import::scan::{Fingerprint, Sizes};
use crate::import::transition::Step;
use crate::langgraph::database::Database;

/// A format of another program.
#[derive(Debug)]
pub struct Format {
    /// Name on the command line and in documents.
    pub name: &'static str,
    /// Its files in one phrase, for the help of `--kind`.
    pub about: &'static str,
    /// Whether a source is of this format if none is named, given whether a mapping is.
    pub(crate) detect: fn(has_map: bool) -> bool,
    /// Whether a source is of this format, by its beginning.
    pub(crate) sniff: fn(&Head<'_>) -> bool,
    /// Refuses a mapping or the engine of a pack that the format cannot be read with.
    pub accept: fn(Option<&Map>, Option<PackEngine>) -> Result<(), ImportError>,
    /// Shape by which it is recognised, for the message that nothing was.
    pub shape: &'static str,
    /// Files that a name refers to, given the user's directory: all of a directory, else one; `None` if a name is a path and no
    /// more.
    pub find: Option<fn(&str, &Path) -> Result<Vec<PathBuf>, ImportError>>,
    /// The lines of a file with those of the files that belong to it, as one stream; `None` if there are no such files.
    pub gather: Option<fn(&Path) -> Result<Option<GatheredLines>, ImportError>>,
    /// Opens a database, whose threads are runs, in place; `None` for a file of items.
    pub database: Option<fn(&Path) -> Result<Database, ImportError>>,
    /// Another format that a file of the program has, given its name.
    pub(crate) inner: fn(Option<&str>, &mut dyn Read) -> Result<Option<Inner>, ImportError>,
    /// The tables of members that are read or kept, each with the kind of item that it is of.
    pub(crate) tables: fn() -> Vec<(&'static str, Vec<Row>)>,
    /// Finds the path of the items.
    pub(crate) survey: fn(&mut dyn Read, &Choice) -> Result<Surveyed, ImportError>,
    /// Adds to the start of the run what all items together say.
    pub(crate) begin: fn(&mut dyn Read, &Layout, &mut Start) -> Result<Option<ImportNote>, ImportError>,
    /// Hands over the items in the order in which they are recorded.
    pub(crate) items: fn(&mut dyn Read, &Layout, Sizes, Visit<'_>) -> Result<Around, ImportError>,
    /// Begins to turn items into steps.
    pub(crate) steps: fn(Option<&Map>) -> Box<dyn Steps + '_>,
    /// Rows that redaction changes; `None` if an export need not give back the bytes.
    pub(crate) rows: Option<fn(&[u8], &Redactor) -> ChangedRows>,
    /// Writes a run.
    pub(crate) write: Option<Write>,
    /// Noun of a file that has one run alone; `None` if several runs may follow each other.
    pub single: Option<&'static str>,
    /// Checks the hashes of a file.
    pub check: Option<fn(&[u8], &CfdTerms) -> Result<CheckedFile, FileFault>>,
    /// Checks files that may follow each other, in any order.
    pub check_joined: Option<CheckJoined>,
}

/// The lines of a file with those of the files that belong to it.
pub struct GatheredLines {
    /// The lines, by their times.
    pub lines: Box<dyn Read>,
    /// The other files.
    pub files: Vec<PathBuf>,
}

/// The beginning of a source.
#[derive(Debug)]
pub(crate) struct Head<'h> {
    /// Its first bytes, 64 KiB at most.
    pub(crate) bytes: &'h [u8],
    /// Its first values, as far as they are whole: lines, or the items of a list at the top; an object at the top is one value.
    pub(crate) values: Vec<Value>,
}

impl<'h> Head<'h> {
    /// How many values are read.
    const VALUES: usize = 20;

    /// Reads the values of a beginning.
    pub(crate) fn of(bytes: &'h [u8]) -> Head<'h> {
        let mut values: Vec<Value> = Vec::new();
        let whole = json::parse_door(bytes.trim_ascii());
        match whole {
            Ok(Value::Array(items)) => values.extend(items.iter().take(Head::VALUES).cloned()),
            Ok(value) => values.push(value),
            Err(_) => {
                let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
                let lines = lines.filter(|line| !line.is_empty()).take(Head::VALUES);
                values.extend(lines.filter_map(|line| json::parse_door(line).ok()));
            }
        }
        Head { bytes, values }
    }

    /// Whether the bytes have a name of a member, at any place.
    pub(crate) fn names(&self, name: &str) -> bool {
        let wanted = format!("\"{name}\"");
        self.bytes.windows(wanted.len()).any(|window| window == wanted.as_bytes())
    }

    /// Whether one of the first values is such an object.
    pub(crate) fn any(&self, fits: impl Fn(&Object) -> bool) -> bool {
        self.values.iter().filter_map(Value::as_object).any(fits)
    }
}

/// Checks files together.
pub type CheckJoined = fn(&[&[u8]]) -> Vec<Result<CheckedFile, FileFault>>;

/// Takes an item.
pub(crate) type Visit<'v> = &'v mut dyn FnMut(Item<'_>) -> Result<(), ImportError>;

/// The path of the items, a fingerprint of the source, and sizes for its second reading.
pub(crate) type Surveyed = (Layout, Fingerprint, Sizes);

/// Writes a run line by line; the flag admits steps of the extension.
pub(crate) type Write =
    fn(&Trace, bool, &mut dyn FnMut(WrittenPart<'_>) -> ControlFlow<()>) -> Result<(), WriteError>;

/// Turns the items of one reading into steps.
pub(crate) trait Steps {
    /// Reads an item.
    fn step<'i>(&mut self, item: &'i Item<'_>, calls: &mut Calls) -> Result<Step<'i>, ImportError>;

    /// Which mappings make a transition of an item each; none if one does.
    fn each(&self, _: &Value) -> Vec<usize> {
        Vec::new()
    }

    /// By place in an item, how often it was read, kept and not read.
    fn places(&mut self) -> BTreeMap<String, Accounted> {
        BTreeMap::new()
    }

    /// Notes the record that the last item became.
    fn recorded(&mut self, _: Digest) {}

    /// Whether an item in front of all others belongs to the run and not to any tick.
    fn is_preamble(&self, _: &Value) -> bool {
        false
    }

    /// Whether items bring no change of state and no type of their own, so that the kernel can only refuse their size.
    fn is_plain(&self) -> bool {
        false
    }
}

impl Format {
    /// A format that is read in the order of its items, without a mapping.
    pub(crate) const fn new(
        name: &'static str,
        about: &'static str,
        steps: fn(Option<&Map>) -> Box<dyn Steps + '_>,
    ) -> Format {
        Format {
            name,
            about,
            detect: |_| false,
            sniff: |_| false,
            accept: |map, _| without_map(map),
            shape: "",
            find: None,
            gather: None,
            database: None,
            inner: |_, _| Ok(None),
            tables: Vec::new,
            survey: |source, choice| layout::survey(source, choice, true),
            begin: |_, _, _| Ok(None),
            items: |source, layout, hints, visit| items::read(source, layout, hints, visit),
            steps,
            rows: None,
            write: None,
            single: None,
            check: None,
            check_joined: None,
        }
    }

    /// Returns the name and version under which a run remembers its source.
    pub fn recorded_name(&self) -> String {
        format!("{}/1", self.name)
    }

    /// Whether runs are written in it.
    pub fn is_written(&self) -> bool {
        self.write.is_some()
    }

    /// Whether an export gives back the bytes of the file that was imported.
    pub fn is_exact(&self) -> bool {
        self.rows.is_some()
    }

    /// Writes a run, a line at a time, until `sink` fails. `with_extension` admits steps that are not of the sixteen of a chain.
    ///
    /// # Panics
    ///
    /// If runs are not written in this format.
    pub fn write<E>(
        &self,
        trace: &Trace,
        with_extension: bool,
        sink: &mut dyn FnMut(WrittenPart<'_>) -> Result<(), E>,
    ) -> Result<Result<(), E>, WriteError> {
        let write = self.write.expect("a format that is written");
        let mut result = Ok(());
        write(trace, with_extension, &mut |line| {
            result = sink(line);
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(result)
    }
}

/// Refuses a mapping.
pub(crate) fn without_map(map: Option<&Map>) -> Result<(), ImportError> {
    match map {
        None => Ok(()),
        Some(_) => Err(ImportError::unfit("--map is for --kind jsonl")),
    }
}

/// The format that a file of a program has, and the path of its items.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) format: &'static Format,
    pub(crate) list: Vec<String>,
}

/// Rows of a file that come back as they were, or do not.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangedRows {
    /// Lines that redaction changes; the header is 1.
    pub(crate) lines: Vec<u64>,
    /// Whether the rows, each on a line, are the bytes of the file.
    pub(crate) is_exact: bool,
}

/// A part of a file that is written.
#[derive(Debug)]
pub enum WrittenPart<'w> {
    /// A line that is this value.
    Value(&'w Value),
    /// Text as it is, newlines included.
    Text(&'w str),
}

/// Why a run is not written in a format.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A step that was recorded here is of no type that readers of the form must know.
    #[error("tick {tick} is a {action} step, which is not of the sixteen but of {EXTENSION}")]
    Extension {
        /// The tick.
        tick: u64,
        /// The type.
        action: ActionType,
    },
    /// A row of the file was withheld or erased, or was too large for a record.
    #[error("the row of tick {tick} is not on record: it was withheld or erased, or too large")]
    Gone {
        /// The tick.
        tick: u64,
    },
    /// Nothing was taken out of the rows, so the exact bytes are in no vault.
    #[error(
        "the vault has no exact file of {0}: it was not imported from a chain, or its rows are exact without --exact"
    )]
    NotExact(RunName),
    /// The run cannot be read.
    #[error(transparent)]
    Run(#[from] dendrer::Error),
}

impl WriteError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            WriteError::Extension { .. } => Code::E0463,
            WriteError::Gone { .. } => Code::E0311,
            WriteError::NotExact(_) => Code::E0106,
            WriteError::Run(error) => error.code(),
        }
    }
}

/// The result of a check of a file.
#[derive(Debug)]
pub struct CheckedFile {
    /// The number of its lines.
    pub lines: u64,
    /// The first line that does not fit, from 1, and why; `None` if all do.
    pub fault: Option<(u64, String)>,
    /// Branches of a file of nodes, and the members that its formula does not cover.
    pub branches: Option<(Vec<BranchReport>, Vec<String>)>,
    /// The spelling of events by which the hashes of nodes fit.
    pub spelling: Option<EventSpelling>,
    /// Rules of rows: name, how many rows each is of, and the lines of those that break it.
    pub rules: Vec<(&'static str, u64, Vec<u64>)>,
    /// How the rows of a chain follow each other.
    pub chain: ChainShape,
}

dendrer_object::words! {
    /// The spelling of the events of a file by which the hashes of its nodes fit. The document of the nodes leaves it open.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum EventSpelling {
        /// Names sorted, without blanks, numbers and escapes as the line has them: as Python writes JSON.
        AsWritten = "as_written",
        /// RFC 8785.
        Rfc8785 = "rfc8785",
        /// Either of them.
        Either = "either",
        /// One for some nodes, and the other for others.
        Mixed = "mixed",
    }
}

/// How the rows of a chain follow each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChainShape {
    /// The first line that follows a row which is in none of the files: the file is a part of a chain.
    pub behind: Option<u64>,
    /// How many chains the file has.
    pub chains: u64,
    /// Lines that follow a line which another row follows as well.
    pub forks: Vec<u64>,
    /// Lines that follow a line of another file: the line, the number of that file, and the line there.
    pub joins: Vec<(u64, usize, u64)>,
}

impl CheckedFile {
    /// A file of this many lines that all fit.
    pub(crate) fn of(lines: usize) -> CheckedFile {
        let (lines, chain) = (lines as u64, ChainShape::default());
        CheckedFile { lines, fault: None, branches: None, spelling: None, rules: Vec::new(), chain }
    }
}

/// Reads the values of a file, one a line; blank lines are passed over.
pub(crate) fn lines(
    bytes: &[u8],
    parse: fn(&[u8]) -> Result<Value, JsonError>,
) -> Result<Vec<Value>, FileFault> {
    let lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    let parse = |(line, text)| {
        let fault =
            |error: JsonError| FileFault { code: error.code(), why: error.to_string(), line: Some(line) };
        parse(text).map_err(fault)
    };
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty()).map(parse);
    let lines = lines.collect::<Result<Vec<Value>, FileFault>>()?;
    match lines.is_empty() {
        // Nothing that was checked is nothing that holds.
        true => Err(FileFault { code: Code::E0209, why: "the file has no line".to_owned(), line: None }),
        false => Ok(lines),
    }
}

/// A file that cannot be checked.
#[derive(Debug)]
pub struct FileFault {
    /// The code.
    pub code: Code,
    /// One sentence.
    pub why: String,
    /// The line, from 1.
    pub line: Option<usize>,
}
