//! The errors of the repository.

use std::sync::Arc;

use dendrer_kernel::expr::ExprError;
use dendrer_kernel::ontology::AuthorshipError;
use dendrer_kernel::pack::InitError;
use dendrer_kernel::predicate::Stopped;
use dendrer_kernel::replay::ReplayError;
use dendrer_kernel::step::{Broken, NotExtended, StartError, StepError};
use dendrer_object::bundle::BundleError;
use dendrer_object::note::NoteError;
use dendrer_object::record::{Kind, SealError};
use dendrer_object::{Code, Digest, Pointer, RunName};
use dendrer_store::StoreError;

use crate::limits::{CONTENT_MAX, EARLIER_MAX};

mod address;
mod causal;
mod delegate;
mod foreign;
mod graph;
mod merge;
mod name;
mod page;
mod repo;
mod trust;

pub use address::AddressError;
pub use causal::CausalRefused;
pub use delegate::DelegationError;
pub use foreign::ForeignError;
pub use graph::GraphRefused;
pub use merge::MergeError;
pub use name::{NameKind, Undeclared};
pub use page::PageError;
pub use repo::{LogDiffers, NoStore};
pub use trust::TrustError;

/// A module that a limit ended, and where, as far as whoever asked it knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{stopped}")]
pub struct Limited {
    /// The module and the limit.
    #[source]
    pub stopped: Stopped,
    /// The predicate that it was asked as; `None` where it reduces.
    pub predicate: Option<String>,
    /// The run, and the tick of it that the state or the intent is of.
    pub place: Option<(RunName, u64)>,
}

/// Why the repository did not do what it was asked.
///
/// The message names what failed. The error of the system, or the way in which a log differs, is the
/// [source](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store says no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A run cannot begin like this.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A value does not fit a record.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The runs of a bundle are not taken in.
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    /// The record cannot be replayed, or came out differently.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A count or a search cannot be known, because a value that decides it is not there any more.
    #[error("{what} cannot be known from tick {tick} on: its {} was erased or withheld", .pointer.dotted())]
    Hidden {
        /// The thing that was asked for, like a counter.
        what: String,
        /// The tick whose value is not there.
        tick: u64,
        /// The value.
        pointer: Pointer,
    },
    /// A comparison cannot be known, because a value on both sides is redacted, without tags that can be compared.
    #[error("{what} cannot be known from tick {tick} on: its {} is redacted, without a tag to compare", .pointer.dotted())]
    Redacted {
        /// The thing that was asked for.
        what: String,
        /// The tick of the value.
        tick: u64,
        /// The value.
        pointer: Pointer,
    },
    /// An expression does not check.
    #[error(transparent)]
    Expr(#[from] ExprError),
    /// Contributors were asked for of a predicate that no single state decides.
    #[error("{name} is judged over transitions and not by one state, so no contributors are looked for")]
    NotOneState {
        /// The predicate.
        name: String,
    },
    /// A module was stopped by a limit, so nobody knows what it would have said, or changed.
    #[error(transparent)]
    Stopped(Box<Limited>),
    /// A text is not a bundle.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The first line of a file is not that of a bundle.
    #[error("not a bundle: the file looks like {looks}")]
    NotABundle {
        /// The kind of file, in words.
        looks: &'static str,
    },
    /// A page has no bundle that can be read.
    #[error(transparent)]
    Page(#[from] PageError),
    /// The text of a bundle cannot be read on.
    #[error("the bundle cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// A key or a checkpoint was refused.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// The initial state of a pack cannot be computed.
    #[error(transparent)]
    Init(#[from] InitError),
    /// The pack that a run carries is not one.
    #[error("the pack of {run} cannot be used: {why}")]
    PackRecorded {
        /// The run.
        run: RunName,
        /// Why not.
        why: String,
    },
    /// A recorded transition cannot stand in a run under this pack.
    #[error("tick {tick} of {run} cannot stand under this pack: {error}")]
    NotUnderPack {
        /// The run it is recorded in.
        run: RunName,
        /// Its tick.
        tick: u64,
        /// Why not.
        error: AuthorshipError,
    },
    /// An extension of the contract of a recorded run cannot stand in a run under this pack.
    #[error("tick {tick} of {run} extends a contract, and cannot stand under this pack: {error}")]
    NotRetold {
        /// The run it is recorded in.
        run: RunName,
        /// Its tick.
        tick: u64,
        /// The error of the door.
        error: Box<NotExtended>,
    },
    /// There is no such run.
    #[error("no run named \"{run}\"")]
    NoRun {
        /// The name that was given.
        run: String,
        /// A run that may have been meant.
        near: Option<RunName>,
    },
    /// The run has no such tick.
    #[error("{run} has {}, there is no tick {tick}", ticks(*tip))]
    NoTick {
        /// The run.
        run: RunName,
        /// The tick that was given.
        tick: u64,
        /// The last one there is.
        tip: u64,
    },
    /// A range of ticks ends before it begins.
    #[error("a range from tick {from} to tick {to} ends before it begins")]
    Reversed {
        /// The first tick.
        from: u64,
        /// The last tick.
        to: u64,
    },
    /// The run was imported: each of its ticks is a message of the source, so nothing can be added to it.
    #[error("{run} was imported: its ticks are the messages of its source, and nothing is added to them")]
    Imported {
        /// The run.
        run: RunName,
    },
    /// The beginning of a fork is not here.
    #[error("{run} was forked from record {parent}, which is not here")]
    MissingPrefix {
        /// The fork.
        run: RunName,
        /// The record it branched off at.
        parent: Digest,
    },
    /// A value was to be enforced that no rule of the run reads.
    #[error("nothing in this run enforces {name}{}", known_names(known))]
    NothingEnforces {
        /// The name that was given.
        name: String,
        /// The names that could be changed.
        known: Vec<String>,
    },
    /// No answer of a tool stands at a tick, or none that could be replaced.
    #[error("the answer at tick {tick} of {run} cannot be replaced: {why}")]
    NoAnswer {
        /// The run.
        run: RunName,
        /// The tick.
        tick: u64,
        /// Why not.
        why: String,
    },
    /// A place of the state that the pack does not declare was to be set.
    #[error("no field {name} is declared in the pack of the run{}", did_you_mean(near))]
    UndeclaredField {
        /// The path.
        name: String,
        /// A field that may have been meant.
        near: Option<String>,
    },
    /// A fork was to go on under a pack with another engine.
    #[error("{run} is reduced by {own}, and a fork of it cannot go on under {other}")]
    OtherEngine {
        /// The run.
        run: RunName,
        /// Its engine.
        own: String,
        /// The engine of the pack.
        other: String,
    },
    /// A contract cannot be extended like this.
    #[error(transparent)]
    Extension(#[from] NotExtended),
    /// Two runs are reduced by different engines, so what one was asked for means something else in the other.
    #[error("{run} is reduced by {own} and {onto} by {other}, so an intent does not mean the same in both")]
    EnginesDiffer {
        /// One run.
        run: RunName,
        /// Its engine.
        own: String,
        /// The other run.
        onto: RunName,
        /// Its engine.
        other: String,
    },
    /// A run has no transitions of its own whose intents could be proposed again.
    #[error("{run} has no intents of its own")]
    NothingOfItsOwn {
        /// The run.
        run: RunName,
    },
    /// A run is left out of lists already.
    #[error("{run} is dropped already")]
    AlreadyDropped {
        /// The run.
        run: RunName,
    },
    /// A run is not left out of lists.
    #[error("{run} is not dropped")]
    NotDropped {
        /// The run.
        run: RunName,
    },
    /// A graph is not run or replayed.
    #[error(transparent)]
    Graph(#[from] GraphRefused),
    /// The causal graph of a run has no answer.
    #[error(transparent)]
    Causal(#[from] CausalRefused),
    /// The state that a run would begin with breaks rules that no source of it breaks.
    #[error("{run} would begin with a state {}", begun_words(violations, unjudged))]
    BeginsViolated {
        /// The run.
        run: RunName,
        /// The rules, with the values that decide.
        violations: Vec<Broken>,
        /// The rules that ask for enforcement and cannot be judged there, with the values.
        unjudged: Vec<Broken>,
    },
    /// A line for the run of a graph, which `graph run` alone writes.
    #[error("{run} is the run of a graph, and takes no lines of others")]
    RunOfGraph {
        /// The run.
        run: RunName,
    },
    /// Runs cannot be merged, or a conflict not be resolved.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// A delegation cannot be made, or decided.
    #[error(transparent)]
    Delegation(#[from] DelegationError),
    /// A tick cannot be imported.
    #[error("tick {tick} of {run} cannot be imported: {why}")]
    NotImportable {
        /// The run.
        run: RunName,
        /// The tick.
        tick: u64,
        /// Why not.
        why: String,
    },
    /// A run has no pack, so there are no contracts that it could be checked against.
    #[error("{run} has no pack, so no contract says what it must keep")]
    NoContracts {
        /// The run.
        run: RunName,
    },
    /// A run moved on after it was looked at.
    #[error("{run} moved on to tick {tick} meanwhile")]
    Moved {
        /// The run.
        run: RunName,
        /// Its tick.
        tick: u64,
    },
    /// Two runs differ by more than can be lined up by content.
    #[error("{a} and {b} differ by more than can be lined up by content")]
    TooFarApart {
        /// One run.
        a: RunName,
        /// The other.
        b: RunName,
    },
    /// A run has more transitions than can be lined up by content.
    #[error("{run} has more than {} transitions to line up by content", CONTENT_MAX)]
    TooLongToLineUp {
        /// The run.
        run: RunName,
    },
    /// Read once more, the records do not confirm an onset.
    #[error("the records of {run} do not confirm the onset at tick {tick}")]
    Unconfirmed {
        /// The run.
        run: RunName,
        /// The tick.
        tick: u64,
    },
    /// Reduced again from its records, a run does not come out as it was recorded.
    #[error(
        "reduced again from its records, {run} does not come out as recorded at tick {tick}, by {reducer}"
    )]
    NotReproduced {
        /// The run.
        run: RunName,
        /// The tick.
        tick: u64,
        /// The reducer.
        reducer: String,
    },
    /// More stands before an onset than is searched for its contributors.
    #[error(
        "more than {} transitions stand before tick {tick} of {run}, too many to look for its contributors",
        EARLIER_MAX
    )]
    TooManyEarlier {
        /// The run.
        run: RunName,
        /// The onset.
        tick: u64,
    },
    /// A text is no address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// An id is that of a record which is no place in a run.
    #[error("{}", id_without_tick(id, *kind, run.as_ref()))]
    IdWithoutTick {
        /// The record.
        id: Digest,
        /// Its kind.
        kind: Kind,
        /// The run it belongs to, if it belongs to one.
        run: Option<RunName>,
    },
    /// The run is one of a thread of checkpoints that was deleted.
    #[error("the checkpoints of {run} were deleted, and nothing goes on from them")]
    Removed {
        /// The run.
        run: RunName,
    },
    /// A bundle holds no run.
    #[error("the bundle holds no run")]
    EmptyBundle,
    /// A bundle holds several runs, and the address names none.
    #[error("the bundle holds {} runs; say which with #RUN", .runs.len())]
    SeveralRuns {
        /// The runs.
        runs: Vec<RunName>,
    },
    /// Several records have ids that begin with the same digits.
    #[error("{} records begin with {digits}", .ids.len())]
    SeveralRecords {
        /// The digits.
        digits: String,
        /// The first ids that begin so.
        ids: Vec<Digest>,
    },
    /// A rule of redaction cannot be used.
    #[error("a rule of redaction cannot be used: {0}")]
    RedactionRule(String),
    /// The latest run was asked for, and the store has none.
    #[error("there is no such run: the store is empty")]
    EmptyStore,
    /// The run has fewer ticks than the address goes back.
    #[error("{run} has {tip} ticks, there is none {back} before the last")]
    NoTickBack {
        /// The run.
        run: RunName,
        /// Its last tick.
        tip: u64,
        /// How far the address goes back.
        back: u64,
    },
    /// The first own tick was asked for of a run that is no fork.
    #[error("{run} is no fork")]
    NotAFork {
        /// The run.
        run: RunName,
    },
    /// No onset of the run is recorded.
    #[error("{}", no_onset(run, *is_recorded))]
    NoOnset {
        /// The run.
        run: RunName,
        /// Whether a bisect is recorded that found none.
        is_recorded: bool,
    },
    /// A label is on a moment of another run.
    #[error("the label {label} is on {address}, which is no tick of {run}")]
    LabelElsewhere {
        /// The label.
        label: String,
        /// The moment that it is on.
        address: String,
        /// The run that was asked.
        run: RunName,
    },
    /// No store is in a directory, or in one above it.
    #[error(transparent)]
    NoStore(Box<NoStore>),
    /// A key or a remembered head cannot be had.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The log has what was committed, and could not be signed.
    #[error(transparent)]
    NotSigned(TrustError),
    /// The store cannot be written: it is damaged, or its handle is for reading.
    #[error(transparent)]
    Unwritable(Arc<StoreError>),
    /// The log is not the one that was signed here.
    #[error("the log is not the one that was signed here")]
    AnotherLog {
        /// In which way.
        #[source]
        why: LogDiffers,
        /// Whether records were committed before that was found.
        committed: bool,
    },
    /// The key of the log was changed without the one that is known here.
    #[error("record {position} changed the key of the log without the old key, which this machine knows")]
    KeyChanged {
        /// The position of the record.
        position: u64,
    },
    /// The key of the log is here, so it was not lost.
    #[error("the key of the log is here: it is changed with its own signature")]
    KeyIsHere,
    /// A key whose signatures are to be taken back is in force, or another log's.
    #[error("{key} {why}")]
    NotRevocable {
        /// The key, as it was named.
        key: String,
        /// Why nothing of it is taken back.
        why: &'static str,
    },
    /// The log does not contain a checkpoint that was given.
    #[error("the checkpoint that was given is none of this log: {why}")]
    NotContained {
        /// Why not.
        why: String,
    },
    /// The casebook takes findings, labels and notes, and nothing else.
    #[error("{run} is the casebook of the store: findings, labels and notes go there, and nothing else")]
    Casebook {
        /// The name.
        run: RunName,
    },
    /// The casebook is no run of an agent, so nothing goes on from it.
    #[error("{run} is the casebook of the store and no run of an agent, so no run is made of it")]
    OfCasebook {
        /// The name.
        run: RunName,
    },
    /// An ordinary run has the name of the casebook.
    #[error("{run} is a run of somebody, and no casebook, so nothing can be written down")]
    NotCasebook {
        /// The name.
        run: RunName,
    },
    /// A label is there already, or its name means something else.
    #[error("{name} is no name for a label: {why}")]
    LabelName {
        /// The name.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// A new run would have the name of a label.
    #[error("{run} is the name of a label: take it off first, or give the run another name")]
    NameOfLabel {
        /// The name.
        run: RunName,
    },
    /// No label has this name.
    #[error("there is no label {name}{}", did_you_mean(near))]
    NoLabel {
        /// The name.
        name: String,
        /// A label that may have been meant.
        near: Option<String>,
    },
    /// A type, an agent, a kind of anomaly or a place is declared nowhere.
    #[error(transparent)]
    Undeclared(Box<Undeclared>),
    /// The index leads elsewhere than the log. Nothing is wrong with the record; the index is to be made anew.
    #[error("the index says something else than the log: {what}")]
    IndexDiffers {
        /// Both sides, in words.
        what: String,
    },
    /// A map of the log counts other records than the log has.
    #[error("the map at position {position} counts other records than the log has")]
    MapFalse {
        /// Its position.
        position: u64,
    },
    /// A record of a bundle did not open; what rests on it cannot be shown.
    #[error("tick {tick} of {run} is damaged: {why}")]
    DamagedRecord {
        /// The run.
        run: RunName,
        /// The tick.
        tick: u64,
        /// The fault.
        why: String,
    },
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Error {
        Error::Stopped(Box::new(Limited { stopped, predicate: None, place: None }))
    }
}

impl From<StepError> for Error {
    fn from(error: StepError) -> Error {
        match error {
            StepError::Seal(error) => error.into(),
            StepError::Stopped(stopped) => stopped.into(),
        }
    }
}

fn known_names(known: &[String]) -> String {
    match known {
        [] => ": it has no pack with constants, and no policy rule".to_owned(),
        known => format!("; what its rules read is {}", known.join(", ")),
    }
}

fn did_you_mean(near: &Option<String>) -> String {
    near.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default()
}

fn id_without_tick(id: &Digest, kind: Kind, run: Option<&RunName>) -> String {
    let id = id.short();
    match run {
        Some(run) => format!("{id} is the id of a {kind} record of {run}, and no tick of it"),
        None => format!("{id} is the id of a {kind} record, of no run"),
    }
}

fn no_onset(run: &RunName, is_recorded: bool) -> String {
    match is_recorded {
        true => format!("the last bisect of {run} that is recorded found no onset"),
        false => format!("no bisect of {run} is recorded"),
    }
}

fn ticks(tip: u64) -> String {
    match tip {
        0 => "no transitions yet".to_owned(),
        1 => "one tick".to_owned(),
        tip => format!("ticks 1..{tip}"),
    }
}

impl Error {
    /// Says of a module that a limit ended as which predicate it was asked.
    pub(crate) fn asked_as(mut self, predicate: &str) -> Error {
        if let Error::Stopped(limited) = &mut self {
            limited.predicate.get_or_insert_with(|| predicate.to_owned());
        }
        self
    }

    /// Says of a module that a limit ended at which tick of which run that was. A caller that was nearer has named it before.
    pub(crate) fn stopped_at(self, run: &RunName, tick: u64) -> Error {
        let mut error = match self {
            Error::Replay(ReplayError::Stopped { stopped, .. }) => Error::from(stopped),
            error => error,
        };
        if let Error::Stopped(limited) = &mut error {
            limited.place.get_or_insert_with(|| (run.clone(), tick));
        }
        error
    }

    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            Error::Store(error) => error.code(),
            Error::Start(error) => error.code(),
            Error::Seal(error) => error.code(),
            Error::Foreign(error) => error.code(),
            Error::Replay(error) => error.code(),
            Error::Hidden { .. } | Error::Redacted { .. } => Code::E0311,
            Error::Expr(error) => error.code,
            Error::Stopped(_) => Code::E0521,
            Error::NotOneState { .. } => Code::E0541,
            Error::Bundle(error) => error.code(),
            Error::NotABundle { .. } => Code::E0306,
            Error::Page(error) => error.code(),
            Error::Unreadable(_) => Code::E0108,
            Error::Note(_) => Code::E0308,
            Error::Init(_) => Code::E0906,
            Error::PackRecorded { .. } => Code::E0908,
            Error::NotUnderPack { error, .. } => error.code(),
            Error::NotRetold { error, .. } => error.faults.first().map_or(Code::E0420, |fault| fault.code()),
            Error::NoRun { .. } => Code::E0101,
            Error::NoTick { .. } | Error::NoTickBack { .. } | Error::NotAFork { .. } => Code::E0102,
            Error::Reversed { .. } => Code::E0106,
            Error::Imported { .. } => Code::E0409,
            Error::MissingPrefix { .. } => Code::E0310,
            Error::TooFarApart { .. } | Error::TooLongToLineUp { .. } => Code::E0603,
            Error::DamagedRecord { .. } => Code::E0301,
            Error::NothingEnforces { .. } => Code::E0116,
            Error::NoAnswer { .. } => Code::E0117,
            Error::OtherEngine { .. } | Error::EnginesDiffer { .. } => Code::E0118,
            Error::Graph(error) => error.code(),
            Error::Causal(error) => error.code(),
            Error::Merge(error) => error.code(),
            Error::NothingOfItsOwn { .. } => Code::E0119,
            Error::AlreadyDropped { .. } | Error::NotDropped { .. } => Code::E0122,
            Error::UndeclaredField { .. } => Code::E0505,
            Error::NoContracts { .. } => Code::E0909,
            Error::Extension(error) => error.faults.first().map_or(Code::E0420, |fault| fault.code()),
            Error::Delegation(error) => error.code(),
            Error::NotImportable { .. } => Code::E0418,
            Error::Moved { .. } | Error::Removed { .. } => Code::E0407,
            Error::Casebook { .. } | Error::OfCasebook { .. } | Error::NotCasebook { .. } => Code::E0424,
            Error::LabelName { .. } | Error::NameOfLabel { .. } => Code::E0210,
            Error::BeginsViolated { .. } => Code::E0434,
            Error::RunOfGraph { .. } => Code::E0941,
            Error::Undeclared(name) => name.code(),
            Error::Address(error) => error.code(),
            Error::IdWithoutTick { .. } => Code::E0105,
            Error::EmptyBundle | Error::EmptyStore => Code::E0101,
            Error::SeveralRuns { .. } | Error::SeveralRecords { .. } => Code::E0107,
            Error::RedactionRule(_) => Code::E0902,
            Error::NoLabel { .. } | Error::NoOnset { .. } | Error::LabelElsewhere { .. } => Code::E0120,
            Error::NoStore(error) => error.code(),
            Error::Trust(error) | Error::NotSigned(error) => error.code(),
            Error::Unwritable(error) => error.code(),
            Error::AnotherLog { .. } => Code::E0307,
            Error::KeyChanged { .. } | Error::KeyIsHere => Code::E0812,
            Error::NotRevocable { .. } => Code::E0813,
            Error::NotContained { .. } => Code::E0304,
            Error::MapFalse { .. } => Code::E0316,
            Error::NotReproduced { .. } => Code::E0701,
            Error::TooManyEarlier { .. } => Code::E0540,
            Error::Unconfirmed { .. } | Error::IndexDiffers { .. } => Code::E0309,
        }
    }
}

fn violated_names(violations: &[Broken]) -> String {
    let names: Vec<&str> = violations.iter().map(|broken| &*broken.predicate).collect();
    names.join(", ")
}

fn begun_words(violations: &[Broken], unjudged: &[Broken]) -> String {
    let violates = (!violations.is_empty()).then(|| format!("that violates {}", violated_names(violations)));
    let open =
        (!unjudged.is_empty()).then(|| format!("in which {} cannot be judged", violated_names(unjudged)));
    violates.into_iter().chain(open).collect::<Vec<_>>().join(", and ")
}
