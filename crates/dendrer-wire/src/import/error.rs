//! Why a trace is not imported.

use dendrer::error::Limited;
use dendrer::kernel::ontology::AuthorshipError;
use dendrer::vault::VaultError;
use dendrer_object::intent::IntentError;
use dendrer_object::json::JsonError;
use dendrer_object::{Code, Digest, RunName};

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
        /// The place, in bytes.
        offset: u64,
    },
    /// Nothing that can be imported is in the source.
    #[error("cannot tell what kind of trace this is: {0}")]
    Unknown(&'static str),
    /// An item of another kind than messages is among them.
    #[error("{what} is no chat message, and what it says would be missing")]
    OtherKind {
        /// The kind of the item.
        what: String,
        /// The format that reads such items.
        kind: &'static str,
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
    /// Spans of several runs.
    #[error("{count} runs are in it, by conversation or trace")]
    SeveralTraces {
        /// How many.
        count: u64,
        /// The first ones: index, conversation or trace, and how many spans.
        runs: Vec<(u64, String, u64)>,
    },
    /// Several samples of an evaluation.
    #[error("{count} samples are in it")]
    SeveralSamples {
        /// How many.
        count: u64,
        /// The first ones: index, and id with epoch.
        samples: Vec<(u64, String)>,
    },
    /// Threads of a database, of which one is to be named.
    #[error("{count} threads are in it, and {why}")]
    SeveralThreads {
        /// How many.
        count: u64,
        /// The first ones: index, thread, and how many checkpoints.
        runs: Vec<(u64, String, u64)>,
        /// Why one is to be named.
        why: &'static str,
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
    /// An item, or a place of the mapping, is refused: without it ticks would not be numbers of messages.
    #[error("{message}")]
    Refused {
        /// The code of the refusal.
        code: Code,
        /// Why.
        message: String,
        /// The item or the place, as a JSON pointer.
        at: String,
    },
    /// The format cannot be read with what else is given, or no file has the name that is given.
    #[error("{message}")]
    Unfit {
        /// The code.
        code: Code,
        /// One sentence.
        message: String,
        /// A way to do it.
        note: Option<&'static str>,
    },
    /// A session is no JSON.
    #[error("{0}")]
    Session(JsonError),
    /// The same trace was imported before.
    #[error("{}", twin_words(.run, *.there, *.all))]
    Twin {
        /// The run.
        run: RunName,
        /// How many of its transitions are there.
        there: u64,
        /// How many the trace has.
        all: u64,
        /// SHA-256 of the source.
        sha256: Digest,
    },
    /// The thread was imported before, and has other rows now.
    #[error("thread {thread} was imported already, as {run}, and has changed since")]
    WentOn {
        /// The run.
        run: RunName,
        /// The thread.
        thread: String,
    },
    /// The run exists already.
    #[error("{0} exists already")]
    Exists(RunName),
    /// The exact bytes of the source cannot be kept.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// A limit ended the module that reduces at an item.
    #[error("{error}")]
    Stopped {
        /// The module and the limit.
        error: Box<Limited>,
        /// Which item, as a JSON pointer.
        at: String,
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
    pub(crate) fn at_message(self, at: impl ToString) -> ImportError {
        match self {
            ImportError::Repository(dendrer::Error::Stopped(error)) => {
                ImportError::Stopped { error, at: at.to_string() }
            }
            other => other,
        }
    }

    /// An item or a place that is refused.
    pub(crate) fn refused(code: Code, message: String, at: impl ToString) -> ImportError {
        ImportError::Refused { code, message, at: at.to_string() }
    }

    pub(crate) fn authorship(error: &AuthorshipError, at: At<'_>) -> ImportError {
        ImportError::refused(error.code(), error.to_string(), at)
    }

    /// A mapping or a pack that a format cannot be read with.
    pub(crate) fn unfit(message: &str) -> ImportError {
        ImportError::Unfit { code: Code::E0106, message: message.to_owned(), note: None }
    }

    /// A name that no file has.
    pub(crate) fn missing(message: String) -> ImportError {
        ImportError::Unfit { code: Code::E0108, message, note: None }
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
            | ImportError::SeveralTraces { .. }
            | ImportError::SeveralSamples { .. }
            | ImportError::SeveralThreads { .. }
            | ImportError::NoRun { .. } => Code::E0212,
            ImportError::Gap(note) => note.kind.code(),
            ImportError::Intent { error, .. } => error.code,
            ImportError::Refused { code, .. } | ImportError::Unfit { code, .. } => *code,
            ImportError::Session(error) => error.code(),
            ImportError::Twin { .. } => Code::E0214,
            ImportError::Exists(_) | ImportError::WentOn { .. } => Code::E0111,
            ImportError::Vault(error) => error.code(),
            ImportError::Stopped { .. } => Code::E0521,
            ImportError::Changed => Code::E0216,
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
            ImportError::SeveralTraces { count, runs } => {
                let line =
                    |(index, name, spans): &(u64, String, u64)| format!("{index}  {name}  {spans} spans");
                vec![("run", some(runs.iter().map(line), *count))]
            }
            ImportError::SeveralSamples { count, samples } => {
                let line = |(index, name): &(u64, String)| format!("{index}  {name}");
                vec![("run", some(samples.iter().map(line), *count))]
            }
            ImportError::SeveralThreads { count, runs, .. } => {
                let line = |(index, thread, checkpoints): &(u64, String, u64)| {
                    format!("{index}  {thread}  {checkpoints} checkpoints")
                };
                vec![("thread", some(runs.iter().map(line), *count))]
            }
            ImportError::Gap(note) => vec![("path", note.path.clone())],
            ImportError::Intent { error, at } => vec![("path", at.clone()), ("member", error.path.clone())],
            ImportError::Refused { at, .. }
            | ImportError::Stopped { at, .. }
            | ImportError::OtherKind { at, .. } => {
                vec![("path", at.clone())]
            }
            ImportError::Twin { sha256, .. } => vec![("sha256", sha256.to_string())],
            _ => Vec::new(),
        }
    }
}

fn twin_words(run: &RunName, there: u64, all: u64) -> String {
    match there < all {
        true => {
            format!("this trace was imported as {run}, and interrupted: {there} of {all} ticks are there")
        }
        false => format!("this trace was imported already, as {run}"),
    }
}

/// The first of several lines, and how many there are beyond them.
fn some(lines: impl Iterator<Item = String>, count: u64) -> String {
    let mut lines: Vec<String> = lines.take(NAMED_MAX).collect();
    let rest = count.saturating_sub(lines.len() as u64);
    lines.extend((rest > 0).then(|| format!("and {rest} more")));
    lines.join("\n")
}
