//! JSON lines to intents, onto a run: one reply for each line.
//!
//! [`read`] numbers the lines of a file, a pipe or a socket. [`Recording`] reads each line as an [`Intent`], proposes it
//! to a [`Recorder`] and returns a [`Reply`] that has the number of the line. Lines that have arrived are judged together
//! and made durable by one sync; a line that arrives alone waits for no other. Never prints, and never opens a store.
//!
//! Rule: a reply is returned after the sync that covers its records, never before; test
//! `every_reply_is_of_a_record_that_another_handle_reads`.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;

use dendrer_kernel::causal::{MergeFault, MergeRules};
use dendrer_kernel::commitment::{self, CommitmentFault};
use dendrer_kernel::ontology::RESULT;
use dendrer_kernel::step::{Broken, LineFault, Outcome};
use dendrer_object::intent::IntentError;
use dendrer_object::json::{self, JsonError, JsonErrorKind};
use dendrer_object::record::{Author, Kind, Record};
use dendrer_object::{COMMITMENT_LISTS, Code, Delta, Intent, KEY, Pointer, READS, SCOPE, UNATTESTED, Value};
use dendrer_store::group::Grouper;

use crate::error::Error;
use crate::record::recorder::{Guarded, ParentNote, Recorder};
use crate::record::{chain, redacted};
use crate::redact::Redactor;

mod stream;

pub use stream::{IntentLine, LineStream, read};

/// The mark with which some editors begin a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Who may write through a stream of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Authors {
    /// Agents and the tools that answer them: an `action.result` is by the runtime, any other line by an agent.
    #[default]
    Pipe,
    /// Agents alone.
    Agent,
    /// The runtime: a line that names no author is by the runtime if its type is `action.result` or `policy.decision`, and by
    /// an agent otherwise.
    Runtime,
    /// A person, in their own words.
    User,
    /// The runtime, and a person through it: as [`Authors::Runtime`], and a line may name the user.
    RuntimeAndUser,
}

/// The type with which the runtime says what a policy decided.
const DECISION: &str = "policy.decision";

impl Authors {
    /// The author of a line of a type that names none.
    fn of(self, type_name: &str) -> Author {
        match (self, type_name) {
            (Authors::User, _) => Author::User,
            (Authors::Pipe | Authors::Runtime | Authors::RuntimeAndUser, RESULT)
            | (Authors::Runtime | Authors::RuntimeAndUser, DECISION) => Author::Runtime,
            _ => Author::Agent,
        }
    }

    /// The authors that a line of a type may name.
    fn may(self, type_name: &str) -> &'static [Author] {
        match (self, type_name) {
            (Authors::User, _) => &[Author::User],
            (Authors::RuntimeAndUser, _) => &[Author::Agent, Author::Runtime, Author::User],
            (Authors::Pipe, RESULT) | (Authors::Runtime, _) => &[Author::Agent, Author::Runtime],
            _ => &[Author::Agent],
        }
    }
}

/// How lines are read as intents.
#[derive(Debug, Clone, Default)]
pub struct LineOptions {
    /// The agent of lines that name none.
    pub agent: Option<String>,
    /// Who may write.
    pub authors: Authors,
    /// Whether names that begin with `$` are tagged forms of the format, not names of the user.
    pub tagged: bool,
    /// Whether a line waits only for what other agents wrote at places that it writes or read.
    pub causal: bool,
    /// The scope of each call. Only a program that may speak for the runtime sets it.
    pub scope: Option<Arc<str>>,
}

impl LineOptions {
    /// Reads a line; `None` if the line is blank. Fails if it is not JSON.
    pub fn read(&self, line: &IntentLine) -> Result<Option<LineRead>, JsonError> {
        let text = match line.number {
            1 => line.text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line.text),
            _ => &line.text,
        };
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let value = if self.tagged { json::parse_tagged(text) } else { json::parse_door(text) }?;
        Ok(Some(self.read_value(&value)))
    }

    /// As [`LineOptions::read`], of a line that is read already: its names are those of the store.
    pub fn read_value(&self, line: &Value) -> LineRead {
        match self.intent(line) {
            Ok(intent) => LineRead::Intent(Box::new(intent)),
            Err(fault) => LineRead::Fault(line.clone(), fault),
        }
    }

    /// Whether a line begins a run: it is an intent, or names a type or a step and is refused. Another line of a run that does
    /// not exist is answered, and not recorded.
    pub fn begins_run(&self, line: &IntentLine) -> bool {
        match self.read(line) {
            Ok(Some(LineRead::Intent(_))) => true,
            Ok(Some(LineRead::Fault(value, _))) => NoIntent::of(&value).is_none(),
            Ok(None) | Err(_) => false,
        }
    }

    /// Returns a line without its `scope`; `None` if it has none. Fails if it names another scope than the recording.
    fn unscoped(&self, value: &Value) -> Result<Option<Value>, LineFault> {
        let Some(named) = value.get(SCOPE).filter(|_| value.get(chain::STEP).is_none()) else {
            return Ok(None);
        };
        if self.scope.as_deref().is_none_or(|scope| named.as_str() != Some(scope)) {
            let message = match &self.scope {
                Some(scope) => format!("the calls of this recording are of the scope {scope:?}"),
                None => "a scope is given with `commit --as runtime --scope`".to_owned(),
            };
            return Err(LineFault::Schema { code: Code::E0209, path: "/scope".to_owned(), message });
        }
        let mut members = value.as_object().cloned().unwrap_or_default();
        members.remove(SCOPE);
        Ok(Some(Value::Object(members)))
    }

    fn intent(&self, value: &Value) -> Result<Intent, LineFault> {
        let schema = |IntentError { code, path, message }| LineFault::Schema { code, path, message };
        let agent = self.agent.as_deref();
        let is_step = value.get(chain::STEP).is_some();
        let unscoped = self.unscoped(value)?;
        let value = unscoped.as_ref().unwrap_or(value);
        let mut intent = match is_step {
            true => chain::intent_of_line(value, agent, |type_name| self.authors.of(type_name)),
            false => Intent::from_value(value, agent),
        }
        .map_err(schema)?;
        if let Err(CommitmentFault { code, path, message }) = commitment::check(value) {
            return Err(LineFault::Schema { code, path, message });
        }
        let merge = intent.member("intent").and_then(|said| said.get("merge"));
        if let Some(Err(MergeFault { path, message })) = merge.map(MergeRules::check) {
            let path = format!("/intent/merge{path}");
            return Err(LineFault::Schema { code: Code::E0209, path, message });
        }
        if !self.causal && value.get(READS).is_some() {
            let (path, message) = ("/reads".to_owned(), "reads is of a recording with --causal".to_owned());
            return Err(LineFault::Schema { code: Code::E0209, path, message });
        }
        if !self.tagged {
            intent.delta = intent.delta.map(Delta::through_the_door);
        }
        let type_name = intent.type_name.as_str();
        if !is_step && value.get("author").is_none() {
            intent.author = self.authors.of(type_name);
        }
        // Only the runtime attests a result of a tool.
        if self.authors == Authors::Pipe
            && type_name == RESULT
            && COMMITMENT_LISTS.iter().any(|list| value.get(list).is_some())
        {
            intent = intent.carrying(UNATTESTED, Value::Bool(true));
        }
        if let Some(scope) = self.scope.as_ref().filter(|_| value.get("action").is_some()) {
            intent = intent.carrying(SCOPE, Value::String(Arc::clone(scope)));
        }
        let may = self.authors.may(intent.type_name.as_str());
        // Who says to be the kernel or the institution is refused by the kernel, which keeps the claim.
        match intent.author {
            Author::Kernel | Author::Institution => Ok(intent),
            author if may.contains(&author) => Ok(intent),
            author => Err(LineFault::Author(author, may)),
        }
    }
}

/// A line as it was read.
#[derive(Debug, Clone)]
pub enum LineRead {
    /// An intent.
    Intent(Box<Intent>),
    /// JSON that is no intent, or one that speaks for another author. The refusal of it is kept.
    Fault(Value, LineFault),
}

/// The kinds of JSON that name neither a type nor a step, so that an intent cannot be read from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoIntent {
    /// A chat message, a list of them, or an object with such a list.
    Chat,
    /// An object with other members.
    Object,
    /// No object.
    Other(&'static str),
}

impl NoIntent {
    /// Returns the kind of a value; `None` if it names a type or a step.
    fn of(value: &Value) -> Option<NoIntent> {
        let is_message = |value: &Value| value.get("role").is_some_and(|role| role.as_str().is_some());
        let is_list = |value: &Value| value.as_array().and_then(|items| items.get(0)).is_some_and(is_message);
        let names = ["type", "transition_type", chain::STEP];
        match value {
            Value::Object(members) if names.iter().any(|name| members.get(name).is_some()) => None,
            Value::Object(_) if is_message(value) => Some(NoIntent::Chat),
            Value::Object(members) if members.iter().any(|(_, member)| is_list(member)) => {
                Some(NoIntent::Chat)
            }
            Value::Object(_) => Some(NoIntent::Object),
            value if is_list(value) => Some(NoIntent::Chat),
            value => Some(NoIntent::Other(value.described())),
        }
    }
}

impl std::fmt::Display for NoIntent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoIntent::Chat => f.write_str("a chat message is no intent: it names no type"),
            NoIntent::Object => f.write_str("an intent names its type, like \"observation.add\", or a step"),
            NoIntent::Other(what) => write!(f, "an intent is an object, and this is {what}"),
        }
    }
}

/// The outcome of a line. Each line that is not blank has exactly one reply, up to the line at which a recording stops.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The run begins: its first record. This reply has no line.
    Begun(Record),
    /// The line is a transition of the run.
    Committed {
        /// The number of the line.
        line: u64,
        /// The transition.
        record: Record,
        /// Transitions that the kernel committed because of it, such as `predicate.violation`.
        noted: Vec<Record>,
        /// Facts about the line that are in no record.
        notes: LineNotes,
    },
    /// The line was refused, and the refusal is kept.
    Refused {
        /// The number of the line.
        line: u64,
        /// The refusal, with its reason.
        refusal: Record,
        /// The `kernel.anomaly` that names a forged type.
        noted: Vec<Record>,
    },
    /// The line is on record already: a line with its key was committed before.
    Repeated {
        /// The number of the line.
        line: u64,
        /// The transition.
        record: Record,
    },
    /// The line was not taken, and nothing of it is on record: it was decided on another tick, or its key is another line's.
    Turned {
        /// The number of the line.
        line: u64,
        /// Why.
        why: TurnedLine,
    },
    /// Nothing of the line is on record, or it is unknown whether the disk has it.
    Failed(FailedLine),
}

/// Facts about a committed line that the reply states and no record has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineNotes {
    /// Places that the line sets, and that another writer set since this process read the run.
    pub overtaken: Vec<Overtaken>,
    /// Ids of rules and hard commitments that would have refused the line, and of hard commitments that it brings, below stage 2.
    pub not_enforced: Vec<Arc<str>>,
    /// The rules that the line is the first to break, with the values that decide.
    pub violations: Vec<Broken>,
    /// Facts about the parents that the line names.
    pub parents: Vec<ParentNote>,
}

/// A place that a line sets, and that another writer set since this process read the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overtaken {
    /// The place that the other writer set.
    pub path: Pointer,
    /// The tick of the other write.
    pub tick: u64,
    /// The agent of the other write.
    pub agent: Arc<str>,
}

/// Why a line with a `base` or a `key` was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnedLine {
    /// It was decided on another tick than the last one.
    Stale {
        /// The tick that it was decided on.
        base: u64,
        /// The last tick of the run.
        head: u64,
        /// Places that were written since, some of them.
        changed: Vec<Pointer>,
    },
    /// Its key is that of the transition at this tick, which says something else.
    KeyUsed(u64),
}

impl TurnedLine {
    /// The code under which `dendrer explain` knows it.
    pub fn code(&self) -> Code {
        match self {
            TurnedLine::Stale { .. } => Code::E0407,
            TurnedLine::KeyUsed(_) => Code::E0433,
        }
    }
}

/// A line of which no record is acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedLine {
    /// The number of the line.
    pub line: u64,
    /// The code under which `dendrer explain` knows the error.
    pub code: Code,
    /// The error.
    pub message: String,
    /// The member that is wrong, as a JSON pointer; empty for the whole line.
    pub path: String,
    /// The byte of the line at which JSON ends; `None` if that is not the error.
    pub byte: Option<usize>,
}

impl FailedLine {
    pub(crate) fn of(line: u64, error: &Error) -> FailedLine {
        let (code, message) = (error.code(), error.to_string());
        FailedLine { line, code, message, path: String::new(), byte: None }
    }

    fn of_line(line: u64, error: &JsonError) -> FailedLine {
        let (code, message) = (error.code(), error.kind.to_string());
        FailedLine { line, code, message, path: error.path.clone(), byte: Some(error.offset) }
    }
}

impl Reply {
    /// The number of the line; `None` for [`Reply::Begun`].
    pub fn line(&self) -> Option<u64> {
        match self {
            Reply::Begun(_) => None,
            Reply::Committed { line, .. }
            | Reply::Refused { line, .. }
            | Reply::Repeated { line, .. }
            | Reply::Turned { line, .. } => Some(*line),
            Reply::Failed(failed) => Some(failed.line),
        }
    }

    /// The records that the reply acknowledges, in the order of the log.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        let (first, noted): (Option<&Record>, &[Record]) = match self {
            Reply::Begun(record) => (Some(record), &[]),
            Reply::Committed { record, noted, .. } => (Some(record), noted),
            Reply::Refused { refusal, noted, .. } => (Some(refusal), noted),
            // A repetition acknowledges what was acknowledged before.
            Reply::Failed(_) | Reply::Repeated { .. } | Reply::Turned { .. } => (None, &[]),
        };
        first.into_iter().chain(noted)
    }
}

/// How many records of each kind the replies acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinesTally {
    /// Transitions, those that the kernel committed included.
    pub committed: u64,
    /// Refusals.
    pub refused: u64,
    /// Anomalies in the transitions.
    pub anomalies: u64,
    /// Lines that are on record already.
    pub repeated: u64,
    /// Lines with a `base` or a `key` that were not taken.
    pub turned: u64,
}

impl LinesTally {
    /// Counts the records of a reply.
    pub fn count(&mut self, reply: &Reply) {
        self.repeated += u64::from(matches!(reply, Reply::Repeated { .. }));
        self.turned += u64::from(matches!(reply, Reply::Turned { .. }));
        for record in reply.records() {
            match record.header().kind {
                Kind::Transition => self.committed += 1,
                Kind::Refusal => self.refused += 1,
                _ => {}
            }
            let listed = record.body().value("/anomalies");
            self.anomalies +=
                listed.and_then(|list| list.as_array().map(|list| list.len() as u64)).unwrap_or(0);
        }
    }

    /// Whether any line is on record.
    pub fn is_empty(&self) -> bool {
        self.committed + self.refused == 0
    }
}

/// Why a recording stopped before its lines ended.
#[derive(Debug, thiserror::Error)]
pub enum LinesStopped {
    /// The input cannot be read.
    #[error("cannot read the intents")]
    Input(#[source] io::Error),
    /// A line is no intent.
    #[error("line {}: {}", .line.number, .error.kind)]
    Line {
        /// The line.
        line: IntentLine,
        /// Why the line is no intent.
        error: JsonError,
    },
    /// The first line of a run that does not exist is JSON without a type and a step. Nothing was recorded.
    #[error("line {line}: {why}")]
    NoIntent {
        /// The number of the line.
        line: u64,
        /// The kind of JSON.
        why: NoIntent,
    },
    /// A line is an intent and cannot be judged or sealed.
    #[error("line {line}: {error}")]
    Intent {
        /// The number of the line.
        line: u64,
        /// Why not.
        error: Box<Error>,
    },
    /// The store did not take a group of lines.
    #[error(transparent)]
    Store(Box<Error>),
}

/// Takes lines onto a run. An iterator over the replies that are due: it waits for a line or for the disk, and returns the
/// replies of everything that is durable by then. After the last reply, [`Recording::end`] tells whether all lines were taken.
pub struct Recording<'r> {
    recorder: &'r mut Recorder,
    lines: LineStream,
    reading: LineOptions,
    dry_run: bool,
    /// A line that arrived after those of a group and begins the next one.
    held: Option<io::Result<IntentLine>>,
    /// Whether the first record of the run waits for the first line.
    begins: bool,
    stopped: Option<LinesStopped>,
    ended: bool,
    /// The lines of the groups that are on their way, in their order.
    sent: VecDeque<Lines>,
}

/// How often lines are judged again because other processes move the run on.
pub(crate) const ATTEMPTS: usize = 1000;

/// Lines of a group, kept until it is durable: if another process moves the run on, they are judged again.
#[derive(Debug, Default)]
struct Lines {
    numbers: Vec<u64>,
    parts: Vec<Part>,
}

/// Lines that are judged by one call.
#[derive(Debug)]
enum Part {
    Intents(Vec<Intent>),
    Fault(Value, LineFault),
}

impl Lines {
    fn push(&mut self, number: u64, line: LineRead) {
        self.numbers.push(number);
        match (line, self.parts.last_mut()) {
            (LineRead::Intent(intent), Some(Part::Intents(intents))) => intents.push(*intent),
            (LineRead::Intent(intent), _) => self.parts.push(Part::Intents(vec![*intent])),
            (LineRead::Fault(line, fault), _) => self.parts.push(Part::Fault(line, fault)),
        }
    }

    /// Leaves out the lines from an index on.
    fn truncate(&mut self, mut length: usize) {
        self.numbers.truncate(length);
        self.parts.retain_mut(|part| {
            let kept = match part {
                Part::Intents(intents) => {
                    intents.truncate(length);
                    intents.len()
                }
                Part::Fault(..) => length.min(1),
            };
            length -= kept;
            kept > 0
        });
    }

    fn append(&mut self, mut other: Lines) {
        self.numbers.append(&mut other.numbers);
        self.parts.append(&mut other.parts);
    }

    /// Judges the lines in their order. Fails with the index of the line that cannot be taken.
    fn propose(&self, recorder: &mut Recorder) -> Result<(), (usize, Error)> {
        let mut taken = 0;
        for part in &self.parts {
            match part {
                Part::Intents(intents) => {
                    recorder.propose_each(intents).map_err(|(at, error)| (taken + at, error))?;
                    taken += intents.len();
                }
                Part::Fault(line, fault) => {
                    recorder.refuse_line(line, fault.clone()).map_err(|error| (taken, error))?;
                    taken += 1;
                }
            }
        }
        Ok(())
    }
}

/// Lines that have arrived.
#[derive(Default)]
struct Group {
    grouper: Grouper,
    lines: Vec<(u64, LineRead)>,
    /// Lines that end the group, judged after all others: one that has a `base` or a `key`, or those of a causal recording that
    /// wait together.
    guarded: VecDeque<(u64, Intent)>,
    /// Whether no line follows.
    closed: bool,
    stopped: Option<LinesStopped>,
}

impl Group {
    fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.guarded.is_empty()
    }
}

/// Whether a line is judged alone.
pub(crate) fn is_guarded(intent: &Intent) -> bool {
    intent.base.is_some() || intent.member(KEY).is_some()
}

/// Whether a line is judged together with the causal lines before it: an intent without `base` and `key`.
fn waits_together(read: &Result<Option<LineRead>, JsonError>) -> bool {
    matches!(read, Ok(Some(LineRead::Intent(intent))) if !is_guarded(intent))
}

/// A line that is no JSON, and its error, as an answer shows them.
fn unread(redactor: &Redactor, line: IntentLine, error: JsonError) -> (IntentLine, JsonError) {
    let text = redactor.text(&String::from_utf8_lossy(&line.text)).0.into_bytes();
    let kind = match error.kind {
        JsonErrorKind::DuplicateName(name) => JsonErrorKind::DuplicateName(redactor.text(&name).0),
        kind => kind,
    };
    let path = redacted::place(redactor, &error.path).0;
    (IntentLine { text, ..line }, JsonError { kind, path, ..error })
}

/// Judges a line.
pub(crate) fn propose(recorder: &mut Recorder, line: &LineRead) -> Result<Outcome, Error> {
    match line {
        LineRead::Intent(intent) => recorder.propose(intent),
        LineRead::Fault(line, fault) => recorder.refuse_line(line, fault.clone()),
    }
}

/// The reply to a line with a `base` or a `key` of which nothing was gathered; `None` if it was judged.
pub(crate) fn turned(line: u64, guarded: Guarded) -> Option<Reply> {
    let why = match guarded {
        Guarded::Proposed(_) => return None,
        Guarded::Repeated(record) => return Some(Reply::Repeated { line, record }),
        Guarded::KeyUsed(first) => TurnedLine::KeyUsed(first.header().tick.unwrap_or(0)),
        Guarded::Stale { base, head, changed } => TurnedLine::Stale { base, head, changed },
    };
    Some(Reply::Turned { line, why })
}

impl<'r> Recording<'r> {
    /// Prepares to take lines. A recorder that begins a run has its first record pending: it is committed with the first
    /// line, unless [`Recording::begin`] is called before. In a dry run every line is judged and nothing is written.
    pub fn new(
        recorder: &'r mut Recorder,
        lines: LineStream,
        reading: LineOptions,
        dry_run: bool,
    ) -> Recording<'r> {
        let begins = recorder.pending() > 0;
        Recording {
            recorder,
            lines,
            reading,
            dry_run,
            held: None,
            begins,
            stopped: None,
            ended: false,
            sent: VecDeque::new(),
        }
    }

    /// Takes a line before those of the input, as [`LineStream::first`] returned it.
    #[must_use]
    pub fn after(mut self, line: Option<io::Result<IntentLine>>) -> Recording<'r> {
        self.held = line;
        self
    }

    /// Makes the first record of a new run durable before a line is read, and returns [`Reply::Begun`]. `None` if the run
    /// exists, or if the store failed: then no line is taken, and [`Recording::end`] returns the error.
    pub fn begin(&mut self) -> Option<Reply> {
        match self.begin_alone() {
            Ok(records) => records.into_iter().next().map(Reply::Begun),
            Err(error) => {
                self.ended = true;
                self.stopped = Some(LinesStopped::Store(Box::new(error)));
                None
            }
        }
    }

    /// Commits the first record of a new run, or only makes it in a dry run. Returns nothing if the run exists.
    fn begin_alone(&mut self) -> Result<Vec<Record>, Error> {
        match std::mem::take(&mut self.begins) {
            true if self.dry_run => Ok(self.recorder.discard()),
            true => self.recorder.commit(),
            false => Ok(Vec::new()),
        }
    }

    /// Returns why the recording stopped, once the replies are at their end.
    pub fn end(self) -> Result<(), LinesStopped> {
        self.stopped.map_or(Ok(()), Err)
    }

    /// Collects lines until none has arrived, or the group is full.
    fn gather(&mut self) -> Group {
        let mut group = Group::default();
        // With a group on its way to the disk there is something else to wait for.
        let first = match self.held.take() {
            Some(held) => Ok(held),
            None if self.recorder.is_under_way() => self.lines.try_next(),
            None => self.lines.next().ok_or(TryRecvError::Disconnected),
        };
        self.fill(&mut group, first);
        group
    }

    /// Adds lines to a group until none has arrived, or the group is full.
    fn fill(&mut self, group: &mut Group, mut next: Result<io::Result<IntentLine>, TryRecvError>) {
        loop {
            let line = match next {
                Ok(Ok(line)) => line,
                Ok(Err(error)) if group.guarded.is_empty() => {
                    group.stopped = Some(LinesStopped::Input(error));
                    return;
                }
                Ok(error) => {
                    self.held = Some(error);
                    return;
                }
                Err(empty) => {
                    group.closed = empty == TryRecvError::Disconnected;
                    return;
                }
            };
            match self.reading.read(&line) {
                Ok(None) => {}
                read if !group.guarded.is_empty() && !waits_together(&read) => {
                    self.held = Some(Ok(line));
                    return;
                }
                Err(error) => {
                    let (line, error) = match self.recorder.redactor() {
                        Some(redactor) => unread(redactor, line, error),
                        None => (line, error),
                    };
                    group.stopped = Some(LinesStopped::Line { line, error });
                    return;
                }
                Ok(Some(LineRead::Fault(value, _)))
                    if self.begins && group.is_empty() && NoIntent::of(&value).is_some() =>
                {
                    let why = NoIntent::of(&value).expect("asked just now");
                    group.stopped = Some(LinesStopped::NoIntent { line: line.number, why });
                    return;
                }
                Ok(Some(read)) => {
                    let value = || json::parse_door(&line.text).unwrap_or(Value::Null);
                    let read = match self.recorder.with_parents(read, value) {
                        Ok(read) => read,
                        Err(error) => {
                            let error = Box::new(error);
                            group.stopped = Some(LinesStopped::Intent { line: line.number, error });
                            return;
                        }
                    };
                    if self.add(group, &line, read) || group.grouper.is_full() {
                        return;
                    }
                }
            }
            next = self.lines.try_next();
        }
    }

    /// Adds a line to a group. Returns whether it is judged alone.
    fn add(&self, group: &mut Group, line: &IntentLine, read: LineRead) -> bool {
        group.grouper.add(line.text.len());
        match read {
            LineRead::Intent(intent) if self.reading.causal || is_guarded(&intent) => {
                let is_alone = self.dry_run || is_guarded(&intent);
                group.guarded.push_back((line.number, *intent));
                is_alone
            }
            read => {
                group.lines.push((line.number, read));
                false
            }
        }
    }

    /// Takes one group, and returns the replies that are due.
    fn take(&mut self, replies: &mut Vec<Reply>) {
        let mut group = self.gather();
        if self.begins && group.is_empty() && (group.closed || group.stopped.is_some()) {
            // Only the first record is pending: no run is left without a line.
            self.recorder.discard();
            self.begins = false;
        }
        if self.dry_run {
            self.judge(&mut group, replies);
        } else {
            let lines = self.propose(&mut group);
            self.submit(lines, replies);
        }
        if !group.guarded.is_empty() && self.stopped.is_none() {
            self.settle_all(replies);
            if self.stopped.is_none() && group.stopped.is_none() {
                self.guard(&mut group, replies);
            }
        }
        if !group.closed && group.stopped.is_none() && self.stopped.is_none() {
            return;
        }
        self.settle_all(replies);
        replies.extend(group.stopped.as_ref().and_then(failed_line).map(Reply::Failed));
        // An error of the store is the older one: the lines of its group precede the one that stopped this group.
        if self.stopped.is_none() {
            self.stopped = group.stopped;
        }
        if self.dry_run {
            self.recorder.discard();
        }
        self.ended = true;
    }

    /// Takes lines that are judged after what the store has by then: one that has a `base` or a `key`, or causal ones that were
    /// waiting together. The first causal line is compared with what others wrote since it came; those after it are
    /// committed with it. If another process moves the run on meanwhile, all are judged again, with the
    /// causal lines that arrived since.
    fn guard(&mut self, group: &mut Group, replies: &mut Vec<Reply>) {
        // The newest tick that was read when the line came, however often it is judged.
        let mut causal = self.reading.causal.then(|| self.recorder.head().tick());
        let mut read = self.recorder.head().tick();
        while let Some((line, intent)) = group.guarded.front() {
            let (line, is_alone) = (*line, !self.reading.causal || is_guarded(intent));
            match self.begin_alone() {
                Ok(begun) => self.answer(Vec::new(), begun, replies),
                Err(error) => return self.fail(vec![line], error, replies),
            }
            let is_told = !self.reading.causal && intent.base.is_none();
            match self.recorder.propose_guarded(intent, self.dry_run, causal) {
                Ok(Guarded::Proposed(outcome)) if self.dry_run => {
                    self.answer(vec![line], outcome.records().into_iter().cloned().collect(), replies);
                }
                Ok(Guarded::Proposed(_)) => {
                    let others: Vec<Intent> =
                        group.guarded.iter().skip(1).map(|(_, intent)| intent.clone()).collect();
                    let (taken, error) = match self.recorder.propose_each(&others) {
                        Ok(_) => (group.guarded.len(), None),
                        Err((at, error)) => (at + 1, Some(error)),
                    };
                    let numbers = group.guarded.iter().take(taken).map(|(line, _)| *line).collect();
                    match self.recorder.commit() {
                        Ok(records) => {
                            let from = replies.len();
                            self.answer(numbers, records, replies);
                            if is_told {
                                let upto = self.recorder.head().tick();
                                let noted = self.recorder.note_overtaken(read, upto, &mut replies[from..]);
                                group.stopped = noted.err().map(|error| LinesStopped::Store(Box::new(error)));
                            }
                        }
                        Err(error) if error.code() == Code::E0407 => {
                            if !is_alone && self.held.is_none() && !group.grouper.is_full() {
                                let next = self.lines.try_next();
                                self.fill(group, next);
                            }
                            continue;
                        }
                        Err(error) => return self.fail(numbers, error, replies),
                    }
                    let stopped =
                        |error| LinesStopped::Intent { line: group.guarded[taken].0, error: Box::new(error) };
                    group.stopped = error.map(stopped).or(group.stopped.take());
                    return;
                }
                Ok(turned_down) => replies.extend(turned(line, turned_down)),
                Err(error) => {
                    group.stopped = Some(LinesStopped::Intent { line, error: Box::new(error) });
                    return;
                }
            }
            group.guarded.pop_front();
            read = self.recorder.head().tick();
            causal = self.reading.causal.then(|| self.recorder.head().tick());
        }
    }

    /// Judges and seals the lines of a group. Returns those that became records.
    fn propose(&mut self, group: &mut Group) -> Lines {
        let mut lines = Lines::default();
        std::mem::take(&mut group.lines).into_iter().for_each(|(number, line)| lines.push(number, line));
        if let Err((at, error)) = lines.propose(self.recorder) {
            // Lines are taken in order: those before a bad line count, those after it do not.
            group.stopped = Some(LinesStopped::Intent { line: lines.numbers[at], error: Box::new(error) });
            lines.truncate(at);
        }
        if group.stopped.is_some() && self.begins && lines.numbers.is_empty() {
            // Only the first record is pending: no run is left without a line.
            self.recorder.discard();
            self.begins = false;
        }
        lines
    }

    /// Makes the replies of a group, with what the recorder noted of its lines.
    fn answer(&mut self, numbers: Vec<u64>, records: Vec<Record>, replies: &mut Vec<Reply>) {
        let from = replies.len();
        answer(numbers, records, replies);
        self.recorder.note_judged(&mut replies[from..]);
    }

    /// Hands a group to the store, or waits for the oldest one if no group is ready.
    fn submit(&mut self, mut lines: Lines, replies: &mut Vec<Reply>) {
        let is_empty = self.recorder.pending() == 0;
        if is_empty || self.recorder.is_full() {
            lines = self.settle(lines, replies);
        }
        if is_empty || self.recorder.pending() == 0 && self.stopped.is_none() {
            return;
        }
        if let Some(LinesStopped::Store(error)) = &self.stopped {
            // An older group was not taken, so none that follows it may be.
            let failed = lines.numbers.into_iter().map(|line| Reply::Failed(FailedLine::of(line, error)));
            replies.extend(failed);
            self.recorder.discard();
            return;
        }
        self.begins = false;
        self.recorder.submit_lines(lines.numbers.clone());
        self.sent.push_back(lines);
    }

    /// Waits until the oldest group is durable. If it came too late because another process moved the run on, every group on
    /// its way did, and the lines of all of them are judged again, with `gathered`, the lines that are not handed over yet.
    /// Returns `gathered` if it still is to be handed over.
    fn settle(&mut self, gathered: Lines, replies: &mut Vec<Reply>) -> Lines {
        let Some((numbers, result)) = self.recorder.wait_lines() else { return gathered };
        let sent = self.sent.pop_front().unwrap_or_default();
        match result {
            Ok(records) => self.answer(numbers, records, replies),
            Err(error) if error.code() == Code::E0407 && self.stopped.is_none() => {
                let mut late = sent;
                while let Some((numbers, result)) = self.recorder.wait_lines() {
                    let sent = self.sent.pop_front().unwrap_or_default();
                    match result {
                        Ok(records) => self.answer(numbers, records, replies),
                        Err(error) if error.code() == Code::E0407 => late.append(sent),
                        Err(error) => self.fail(numbers, error, replies),
                    }
                }
                self.recorder.discard();
                late.append(gathered);
                self.judge_again(late, replies);
                return Lines::default();
            }
            Err(error) => self.fail(numbers, error, replies),
        }
        gathered
    }

    /// Judges lines on the newest state of the run until they are committed.
    fn judge_again(&mut self, mut lines: Lines, replies: &mut Vec<Reply>) {
        if let Some(LinesStopped::Store(error)) = &self.stopped {
            let failed = lines.numbers.into_iter().map(|line| Reply::Failed(FailedLine::of(line, error)));
            return replies.extend(failed);
        }
        let read = self.recorder.head().tick();
        for attempt in 1.. {
            if let Err(error) = self.recorder.catch_up() {
                return self.fail(lines.numbers, error, replies);
            }
            let upto = self.recorder.head().tick();
            if let Err((at, error)) = lines.propose(self.recorder) {
                replies.push(Reply::Failed(FailedLine::of(lines.numbers[at], &error)));
                let stopped = LinesStopped::Intent { line: lines.numbers[at], error: Box::new(error) };
                self.stopped.get_or_insert(stopped);
                lines.truncate(at);
            }
            if lines.numbers.is_empty() {
                return;
            }
            match self.recorder.commit() {
                Err(error) if error.code() == Code::E0407 && attempt < ATTEMPTS => {}
                Err(error) => return self.fail(lines.numbers, error, replies),
                Ok(records) => {
                    let from = replies.len();
                    self.answer(lines.numbers, records, replies);
                    if let Err(error) = self.recorder.note_overtaken(read, upto, &mut replies[from..]) {
                        self.stopped.get_or_insert(LinesStopped::Store(Box::new(error)));
                    }
                    return;
                }
            }
        }
    }

    fn settle_all(&mut self, replies: &mut Vec<Reply>) {
        while self.recorder.is_under_way() {
            self.settle(Lines::default(), replies);
        }
    }

    fn fail(&mut self, numbers: Vec<u64>, error: Error, replies: &mut Vec<Reply>) {
        replies.extend(numbers.into_iter().map(|line| Reply::Failed(FailedLine::of(line, &error))));
        // A later group may be on record all the same; the first error is the one to return.
        self.stopped.get_or_insert(LinesStopped::Store(Box::new(error)));
    }

    /// Judges the lines of a dry run one by one: each reply is due at once, and the lines after it are judged on its outcome.
    fn judge(&mut self, group: &mut Group, replies: &mut Vec<Reply>) {
        let mut begun = match std::mem::take(&mut self.begins) {
            true => self.recorder.discard(),
            false => Vec::new(),
        };
        for (line, read) in std::mem::take(&mut group.lines) {
            match propose(self.recorder, &read) {
                Ok(outcome) => {
                    begun.extend(outcome.records().into_iter().cloned());
                    self.answer(vec![line], std::mem::take(&mut begun), replies);
                }
                Err(error) => {
                    group.stopped = Some(LinesStopped::Intent { line, error: Box::new(error) });
                    return;
                }
            }
        }
        if group.stopped.is_none() {
            self.answer(Vec::new(), begun, replies);
        }
    }
}

impl Iterator for Recording<'_> {
    type Item = Vec<Reply>;

    fn next(&mut self) -> Option<Vec<Reply>> {
        let mut replies = Vec::new();
        while replies.is_empty() && !self.ended {
            self.take(&mut replies);
        }
        (!replies.is_empty()).then_some(replies)
    }
}

fn failed_line(stopped: &LinesStopped) -> Option<FailedLine> {
    match stopped {
        LinesStopped::Line { line, error } => Some(FailedLine::of_line(line.number, error)),
        LinesStopped::NoIntent { line, why } => {
            let (code, message, path) = (Code::E0209, why.to_string(), "/type".to_owned());
            Some(FailedLine { line: *line, code, message, path, byte: None })
        }
        LinesStopped::Intent { line, error } => Some(FailedLine::of(*line, error)),
        LinesStopped::Input(_) | LinesStopped::Store(_) => None,
    }
}

/// Makes the replies of a group: a record for each line, in order, followed by those that the kernel wrote because of it.
pub(crate) fn answer(numbers: Vec<u64>, records: Vec<Record>, replies: &mut Vec<Reply>) {
    let mut numbers = numbers.into_iter();
    for record in records {
        let header = record.header();
        let (kind, by_kernel) = (header.kind, header.author == Author::Kernel);
        let noted = match replies.last_mut() {
            Some(Reply::Committed { noted, .. } | Reply::Refused { noted, .. }) => Some(noted),
            _ => None,
        };
        let mut line = || numbers.next().expect("a record for each line");
        match (kind, noted) {
            // The kernel writes nothing of its own accord between two lines.
            (Kind::Transition, Some(noted)) if by_kernel => noted.push(record),
            (Kind::Transition, _) => {
                let (line, noted, notes) = (line(), Vec::new(), LineNotes::default());
                replies.push(Reply::Committed { line, record, noted, notes });
            }
            (Kind::Refusal, _) => {
                replies.push(Reply::Refused { line: line(), refusal: record, noted: Vec::new() });
            }
            _ => replies.push(Reply::Begun(record)),
        }
    }
}
