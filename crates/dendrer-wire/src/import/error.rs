//! Why a trace is not imported.

use dendrer::error::Limited;
use dendrer::kernel::ontology::AuthorshipError;
use dendrer_object::Code;
use dendrer_object::intent::IntentError;
use dendrer_object::json::JsonError;

use super::layout::{List, NAMED_MAX};
use super::note::{At, ImportNote};
use super::scan::Stop;

/// Why a trace is not imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The source cannot be read.
    #[error("cannot read the source")]
    Io(#[source] std::io::Error),
    /// A value is not accepted.
    #[error("{}", .error.kind)]
    Json {
        /// The fault.
        error: JsonError,
        /// Which message, as a JSON pointer.
        at: Option<String>,
        /// The offset in the source of the text that was read; `None` if it was not read as written.
        offset: Option<u64>,
    },
    /// The source is not JSON.
    #[error("not JSON: expected {expected}")]
    Syntax {
        /// The token that was expected.
        expected: &'static str,
        /// Where, in bytes.
        offset: u64,
    },
    /// Nothing that can be imported is in the source.
    #[error("cannot tell what kind of trace this is: {0}")]
    Unknown(&'static str),
    /// An item of another kind than messages is among them.
    #[error("{what} is no chat message, and what it says would be missing")]
    OtherKind {
        /// What it is.
        what: String,
        /// Which item, as a JSON pointer.
        at: String,
    },
    /// Several lists of messages.
    #[error("{} lists of messages are in it", .0.len())]
    SeveralLists(Vec<List>),
    /// There is no such list.
    #[error("there is no list at {0}")]
    NoList(String),
    /// Several runs.
    #[error("{count} runs are in it")]
    SeveralRuns {
        /// How many.
        count: u64,
        /// The first ones: index, and how many messages.
        runs: Vec<(u64, u64)>,
    },
    /// There is no such run.
    #[error("there is no run {index} in it; it holds {count} items, counted from 0")]
    NoRun {
        /// The index that was given.
        index: u64,
        /// How many items there are.
        count: u64,
    },
    /// Something is missing or cannot be read, and that was to stop the import.
    #[error("{}", .0.message)]
    Gap(ImportNote),
    /// An item does not give an intent.
    #[error("{}", .error.message)]
    Intent {
        /// The fault.
        error: IntentError,
        /// Which item, as a JSON pointer.
        at: String,
    },
    /// The kernel would turn an item down, and then ticks would not be numbers of messages.
    #[error("{message}")]
    Refused {
        /// The code of the refusal.
        code: Code,
        /// Why.
        message: String,
        /// Which item, as a JSON pointer.
        at: String,
    },
    /// The hash of an event is not that of its text and the hashes before it.
    #[error("{why}")]
    Chain {
        /// The fault.
        why: String,
        /// Which item, as a JSON pointer.
        at: String,
    },
    /// A node breaks a rule of its document.
    #[error("{why}")]
    Branch {
        /// The rule, what it asks for, and what is there.
        why: String,
        /// Which item, as a JSON pointer.
        at: String,
    },
    /// A limit ended the module that reduces at an item.
    #[error("{error}")]
    Stopped {
        /// The module and the limit.
        error: Box<Limited>,
        /// Which item, as a JSON pointer.
        at: String,
    },
    /// The mapping is not one.
    #[error("{message}")]
    Map {
        /// The place in the mapping, as a JSON pointer.
        at: String,
        /// The fault there.
        message: String,
    },
    /// The source is another one than it was when it was looked at.
    #[error("the source changed while it was read")]
    Changed,
    /// The repository says no.
    #[error(transparent)]
    Repository(#[from] dendrer::Error),
}

impl ImportError {
    pub(crate) fn stopped(stop: Stop) -> ImportError {
        match stop {
            Stop::Io(error) => ImportError::Io(error),
            Stop::Failed(error) => error,
            Stop::Syntax(expected, offset) => ImportError::Syntax { expected, offset },
            // A reader that can continue after a cut has done so already.
            Stop::Cut => ImportError::Unknown("it ends inside its first value"),
        }
    }

    /// Says at which item a module was stopped; whatever else the repository says is not about an item.
    pub(crate) fn at_message(self, at: At<'_>) -> ImportError {
        match self {
            ImportError::Repository(dendrer::Error::Stopped(error)) => {
                ImportError::Stopped { error, at: at.to_string() }
            }
            other => other,
        }
    }

    pub(crate) fn authorship(error: &AuthorshipError, at: String) -> ImportError {
        ImportError::Refused { code: error.code(), message: error.to_string(), at }
    }

    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            ImportError::Io(_) => Code::E0801,
            ImportError::Json { error, .. } => error.code(),
            ImportError::Syntax { .. } => Code::E0201,
            ImportError::Unknown(_) | ImportError::OtherKind { .. } => Code::E0203,
            ImportError::SeveralLists(_)
            | ImportError::NoList(_)
            | ImportError::SeveralRuns { .. }
            | ImportError::NoRun { .. } => Code::E0212,
            ImportError::Gap(note) => note.kind.code(),
            ImportError::Intent { error, .. } => error.code,
            ImportError::Refused { code, .. } => *code,
            ImportError::Map { .. } => Code::E0215,
            ImportError::Stopped { .. } => Code::E0521,
            ImportError::Changed => Code::E0216,
            ImportError::Chain { .. } => Code::E0213,
            ImportError::Branch { .. } => Code::E0303,
            ImportError::Repository(error) => error.code(),
        }
    }

    /// Names the place, as pairs of what and where.
    pub fn place(&self) -> Vec<(&'static str, String)> {
        match self {
            ImportError::Json { error, at, offset } => {
                let byte = offset.map(|offset| ("byte", (offset + error.offset as u64).to_string()));
                let mut place: Vec<_> = byte.into_iter().collect();
                place.extend(at.as_ref().map(|at| ("path", format!("{at}{}", error.path))));
                place
            }
            ImportError::Syntax { offset, .. } => vec![("byte", offset.to_string())],
            ImportError::SeveralLists(lists) => {
                let line = |list: &List| {
                    format!("{}  {} of {} items are messages", list.pointer(), list.messages, list.items)
                };
                vec![("list", some(lists.iter().map(line), lists.len() as u64))]
            }
            ImportError::SeveralRuns { count, runs } => {
                let line = |(index, items): &(u64, u64)| format!("{index}  {items} messages");
                vec![("run", some(runs.iter().map(line), *count))]
            }
            ImportError::Gap(note) => vec![("path", note.path.clone())],
            ImportError::Intent { error, at } => vec![("path", at.clone()), ("member", error.path.clone())],
            ImportError::Refused { at, .. } | ImportError::Stopped { at, .. } => vec![("path", at.clone())],
            ImportError::OtherKind { at, .. } => vec![("path", at.clone())],
            ImportError::Map { at, .. } | ImportError::Chain { at, .. } | ImportError::Branch { at, .. } => {
                vec![("path", at.clone())]
            }
            _ => Vec::new(),
        }
    }
}

/// The first of several lines, and how many there are beyond them.
fn some(lines: impl Iterator<Item = String>, count: u64) -> String {
    let mut lines: Vec<String> = lines.take(NAMED_MAX).collect();
    let rest = count.saturating_sub(lines.len() as u64);
    lines.extend((rest > 0).then(|| format!("and {rest} more")));
    lines.join("\n")
}
