//! Replay: making a recorded run again from what it recorded, and saying where it comes out differently.
//!
//! Never calls a model or a tool: what they said is in the record. Whatever the kernel did is done again through
//! the same function and compared by id, so equal means equal in every byte.

use std::fmt;

use dendrer_object::delta::{Delta, DeltaError};
use dendrer_object::record::{Kind, Link, Record, SealError};
use dendrer_object::value::{Difference, first_difference};
use dendrer_object::{Code, Digest, Intent, Pointer, Value, json};

use crate::commitment;
use crate::names::COUNTERS;
use crate::reduce::{DeltaReducer, Purity, ReduceError, Reducer};
use crate::step::{self, Cause, Inputs, RunState, StartError, StepError};
use crate::stopped::Stopped;

/// Replay came out differently from the record. Both sides are here.
#[derive(Debug, Clone, PartialEq)]
pub struct Divergence {
    /// Where.
    pub tick: u64,
    /// The part that was compared.
    pub what: Compared,
    /// The first place that differs: in the state, or in the content of the transition.
    pub path: Pointer,
    /// The recorded value there.
    pub expected: Option<Value>,
    /// The value that replay computed there.
    pub found: Option<Value>,
    /// The reducer that made it.
    pub reducer: String,
    /// How the reducer's purity is known, which decides what the usual causes are.
    pub purity: Purity,
}

/// The part of a record that diverges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// The state after the transition.
    State,
    /// The recorded state root against the recorded delta: the record does not agree with itself.
    StateRoot,
    /// Some other part of the transition.
    Content,
    /// Two evaluations of the reducer.
    Evaluations,
}

/// Why a transition could not be replayed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// It came out differently.
    #[error("{0}")]
    Divergence(Box<Divergence>),
    /// A value it needs was erased or withheld.
    #[error("tick {tick} cannot be replayed: {} was erased or withheld", erased(.pointer))]
    Erased {
        /// Where.
        tick: u64,
        /// Which value, if one can be named.
        pointer: Option<Pointer>,
    },
    /// The recorded delta does not fit the recorded state.
    #[error("tick {tick}: the recorded {error}")]
    Delta {
        /// Where.
        tick: u64,
        /// Why.
        error: DeltaError,
    },
    /// A refusal names a record that no replay of its run comes by, so nothing says what it was judged against.
    #[error("the refusal {} was judged against {}, which is no record of its run", .refusal.short(), .head.map_or_else(|| "nothing".to_owned(), |head| head.short()))]
    Unplaced {
        /// The refusal.
        refusal: Digest,
        /// The record that it names.
        head: Option<Digest>,
    },
    /// This kernel does not make such a beginning of a run.
    #[error("the run cannot be begun again: {why}")]
    Start {
        /// The code under which `dendrer explain` knows why.
        code: Code,
        /// Why.
        why: String,
        /// Whether another version of the kernel, or a program that knows the reducer, could.
        elsewhere: bool,
    },
    /// It wrote where the kernel of its time let it, and this one does not.
    #[error("tick {tick} cannot be replayed: it wrote {}, and this kernel keeps state.counters beside the state", .path.dotted())]
    Reserved {
        /// Where.
        tick: u64,
        /// The reserved path.
        path: Pointer,
    },
    /// The record holds all its values, and they are not those of a transition or refusal.
    #[error("tick {tick} cannot be made again: its values are not those of a record that the kernel makes")]
    Malformed {
        /// Where; for a refusal, the tick it was judged against.
        tick: u64,
    },
    /// The module that reduces was ended by a limit of this program's engine, so nothing is known of what it would have made.
    #[error("tick {tick} cannot be replayed: {stopped}")]
    Stopped {
        /// Where.
        tick: u64,
        /// The limit that ended it.
        stopped: Stopped,
    },
    /// The record cannot be made again at all.
    #[error("tick {tick} cannot be made again: {error}")]
    Seal {
        /// Where.
        tick: u64,
        /// Why.
        error: SealError,
    },
}

impl ReplayError {
    /// Whether something is missing, here or in this program, so that nothing is known; otherwise the record is not what
    /// replay makes.
    pub fn is_unverifiable(&self) -> bool {
        matches!(
            self,
            ReplayError::Erased { .. }
                | ReplayError::Reserved { .. }
                | ReplayError::Stopped { .. }
                | ReplayError::Start { elsewhere: true, .. }
        )
    }

    /// Returns the tick at which replay ended; `None` for a refusal that has no place.
    pub fn tick(&self) -> Option<u64> {
        match self {
            ReplayError::Divergence(divergence) => Some(divergence.tick),
            ReplayError::Start { .. } => Some(0),
            ReplayError::Unplaced { .. } => None,
            ReplayError::Erased { tick, .. }
            | ReplayError::Delta { tick, .. }
            | ReplayError::Reserved { tick, .. }
            | ReplayError::Malformed { tick }
            | ReplayError::Stopped { tick, .. }
            | ReplayError::Seal { tick, .. } => Some(*tick),
        }
    }

    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            ReplayError::Divergence(_) => Code::E0701,
            ReplayError::Erased { .. } => Code::E0311,
            ReplayError::Start { code, .. } => *code,
            ReplayError::Reserved { .. } => Code::E0602,
            ReplayError::Stopped { .. } => Code::E0521,
            ReplayError::Delta { .. }
            | ReplayError::Seal { .. }
            | ReplayError::Malformed { .. }
            | ReplayError::Unplaced { .. } => Code::E0703,
        }
    }
}

fn erased(pointer: &Option<Pointer>) -> String {
    pointer.as_ref().map_or_else(|| "a value of it".to_owned(), |pointer| format!("its {}", pointer.dotted()))
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.path.as_str().is_empty() { "the whole".to_owned() } else { self.path.dotted() };
        let (expected, found) = (side(&self.expected), side(&self.found));
        match self.what {
            Compared::State => write!(
                f,
                "at tick {} the state differs in {place}: recorded {expected}, {} computed {found}",
                self.tick, self.reducer
            ),
            Compared::StateRoot => write!(
                f,
                "tick {} does not agree with itself: its delta gives the state root {found}, and it recorded {expected}",
                self.tick
            ),
            Compared::Content => write!(
                f,
                "at tick {} the transition differs in {place}: recorded {expected}, made again {found}",
                self.tick
            ),
            Compared::Evaluations => write!(
                f,
                "at tick {} two evaluations of {} differ in {place}: first {expected}, then {found}",
                self.tick, self.reducer
            ),
        }
    }
}

fn side(value: &Option<Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(200) {
        Some((at, _)) => format!("{}... ({} bytes)", &text[..at], text.len()),
        None => text,
    }
}

impl Divergence {
    /// Names what usually causes this.
    pub fn usual_causes(&self) -> &'static str {
        match (self.what, self.purity) {
            (Compared::StateRoot, _) => "a writer that sealed a root it had not computed",
            (_, Purity::Tested) => {
                "a clock, chance, an unordered set, or a reducer that changed since the recording"
            }
            (_, Purity::ByConstruction) => {
                "a record made by another version of the kernel, or edited and sealed again"
            }
        }
    }
}

/// Applies the recorded delta of a transition: the recorded state after it, checked against the recorded root.
/// Needs no reducer, no pack and no engine (design, section 4).
pub fn recorded_state(before: &Value, record: &Record) -> Result<Value, ReplayError> {
    let tick = record.header().tick.unwrap_or(0);
    let field = |name: &str| {
        record.body().value(name).ok_or_else(|| ReplayError::Erased { tick, pointer: name.parse().ok() })
    };
    let delta = Delta::from_value(&field("/delta")?).map_err(|error| ReplayError::Delta { tick, error })?;
    let after = delta.apply(before).map_err(|error| ReplayError::Delta { tick, error })?;
    let root = field("/state_root")?;
    let computed = Value::from(after.digest());
    if root != computed {
        let sides = Difference { path: Pointer::root(), left: Some(root), right: Some(computed) };
        return Err(diverged(tick, Compared::StateRoot, Some(sides), &DeltaReducer));
    }
    Ok(after)
}

/// Returns the field that a record must have by its kind, and has not: without it no reader could follow the state.
pub fn lacking(record: &Record) -> Option<&'static str> {
    let header = record.header();
    let must: &[&'static str] = match header.kind {
        Kind::Transition => &["/delta", "/state_root"],
        Kind::Run if header.prev.is_none() => &["/state", "/state_root"],
        Kind::Run => &["/state_root"],
        _ => &[],
    };
    let fields = record.body().fields();
    let has = |name: &str| {
        fields.iter().any(|field| {
            let rest = field.pointer.as_str().strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    must.iter().find(|name| !has(name)).copied()
}

/// Takes one recorded transition and moves the head past it, making it again on the way.
///
/// With `twice`, the reducer is also evaluated a second time, so that chance shows even where the first
/// evaluation happened to agree with the record.
pub fn replay_step(
    head: &mut RunState,
    record: &Record,
    reducer: &dyn Reducer,
    twice: bool,
) -> Result<(), ReplayError> {
    let tick = record.header().tick.unwrap_or(0);
    let recorded = recorded_state(head.state(), record)?;
    let (cause, inputs) = cause(record, tick, reducer)?;
    if head.owes() && !matches!(cause, Cause::Violation) {
        let (owed, found) = (Value::from(step::VIOLATION), record.header().type_name.as_ref());
        let found = found.map(|name| Value::from(name.as_str()));
        let sides = Difference { path: Pointer::of(["type"]), left: found, right: Some(owed) };
        return Err(diverged(tick, Compared::Content, Some(sides), reducer));
    }
    if let (true, Cause::Proposed(intent)) = (twice, &cause) {
        compare_evaluations(head.state(), intent, reducer, tick)?;
    }
    let mut after = head.clone();
    let made = step::again(&mut after, &cause, inputs, reducer).map_err(|error| unmade(tick, error))?;
    if made.id() == record.id() {
        *head = after;
        return Ok(());
    }
    if made.header().kind == Kind::Transition && *after.state() != recorded {
        let found = first_difference(&recorded, after.state());
        return Err(diverged(tick, Compared::State, found, reducer));
    }
    Err(diverged(tick, Compared::Content, difference(record, &made), reducer))
}

/// Returns the cause of a record, or the reason why it is unknown.
pub(crate) fn cause(
    record: &Record,
    tick: u64,
    reducer: &dyn Reducer,
) -> Result<(Cause, step::Inputs), ReplayError> {
    let body = record.body();
    if let Some(field) = body.fields().iter().find(|field| body.text(field).is_none()) {
        return Err(ReplayError::Erased { tick, pointer: Some(field.pointer.clone()) });
    }
    if body.seed().is_none() {
        return Err(ReplayError::Erased { tick, pointer: None });
    }
    let cause = step::cause(record, reducer.takes_delta()).ok_or(ReplayError::Malformed { tick })?;
    match &cause.0 {
        // A refused intent may well have asked for it; a transition can only be older than the rule.
        Cause::Proposed(intent) if record.header().kind == Kind::Transition => {
            let path = intent.delta.iter().flat_map(Delta::paths).find(|path| step::is_counters_path(path));
            match path {
                Some(path) => Err(ReplayError::Reserved { tick, path: path.clone() }),
                None => Ok(cause),
            }
        }
        _ => Ok(cause),
    }
}

/// The first place where two records differ: in their content, or else in their headers.
fn difference(recorded: &Record, made: &Record) -> Option<Difference> {
    let header = |record: &Record| json::parse_canonical(record.header_text()).ok();
    first_difference(&recorded.content(), &made.content()).or_else(|| {
        let (left, right) = (header(recorded)?, header(made)?);
        let mut found = first_difference(&left, &right)?;
        found.path = format!("/header{}", found.path.as_str()).parse().ok()?;
        Some(found)
    })
}

/// Begins a recorded run again: the head before its first transition, once the record was made again to the byte.
pub fn replay_start(record: &Record, reducer: &dyn Reducer) -> Result<RunState, ReplayError> {
    let body = record.body();
    if let Some(field) = body.fields().iter().find(|field| body.text(field).is_none()) {
        return Err(ReplayError::Erased { tick: 0, pointer: Some(field.pointer.clone()) });
    }
    let (made, head) = RunState::made_at_start(record).map_err(|error| match error {
        StartError::Counters => ReplayError::Reserved { tick: 0, path: Pointer::of(["state", COUNTERS]) },
        error => unstarted(&error),
    })?;
    let recorded = body.value("/reducer");
    // A host function that is tried on a record need not bear the name that is recorded; ours stand for theirs.
    let is_ours = reducer.info().purity == Purity::ByConstruction;
    if is_ours && recorded.as_ref().and_then(Value::as_str) != Some(reducer.name()) {
        let name = recorded.map_or_else(|| "no reducer".to_owned(), |name| name.to_string());
        let why = format!("it names {name}, and what is here to replay it is {}", reducer.name());
        return Err(ReplayError::Start { code: Code::E0602, why, elsewhere: true });
    }
    if made.id() == record.id() {
        return Ok(head);
    }
    Err(diverged(0, Compared::Content, difference(record, &made), reducer))
}

fn unstarted(error: &StartError) -> ReplayError {
    let (code, why) = (error.code(), error.to_string());
    ReplayError::Start { code, why, elsewhere: matches!(error, StartError::Kernel(_)) }
}

/// Replays a recorded fork from the head of its parent at that tick: makes its `run` record again, to the byte.
pub fn replay_fork(head: &mut RunState, record: &Record, reducer: &dyn Reducer) -> Result<(), ReplayError> {
    let tick = head.tick();
    let body = record.body();
    if let Some(field) = body.fields().iter().find(|field| body.text(field).is_none()) {
        return Err(ReplayError::Erased { tick, pointer: Some(field.pointer.clone()) });
    }
    let (made, forked) = head.made_at_fork(record).map_err(|error| unstarted(&error))?;
    if made.id() != record.id() {
        return Err(diverged(tick, Compared::Content, difference(record, &made), reducer));
    }
    *head = forked;
    Ok(())
}

/// Judges a recorded refusal again on the head it was judged against: it must come out the same.
pub fn replay_refusal(head: &RunState, record: &Record, reducer: &dyn Reducer) -> Result<(), ReplayError> {
    let tick = head.tick();
    let (cause, inputs) = cause(record, tick, reducer)?;
    let made =
        step::again(&mut head.clone(), &cause, inputs, reducer).map_err(|error| unmade(tick, error))?;
    if made.id() == record.id() {
        return Ok(());
    }
    Err(diverged(tick, Compared::Content, difference(record, &made), reducer))
}

/// Makes what a record of another run says the next record of this one, under this reducer, with what that brings about
/// here. `relink` says where a link of the record leads here; with `keeps_origin`, a transition names the record that was first
/// (design, section 4). The chain, the state and what the kernel noted are this run's
/// own, so of what that run's contract found nothing is told.
pub fn retell(
    head: &mut RunState,
    record: &Record,
    relink: &dyn Fn(Link) -> Link,
    keeps_origin: bool,
    inputs: Inputs,
    reducer: &dyn Reducer,
) -> Result<Vec<Record>, ReplayError> {
    let tick = record.header().tick.unwrap_or(0);
    let missing = record.body().fields().iter().find(|field| record.body().text(field).is_none());
    let (None, Some((mut cause, _))) = (missing, step::cause(record, reducer.takes_delta())) else {
        return Err(ReplayError::Erased { tick, pointer: missing.map(|field| field.pointer.clone()) });
    };
    if let Cause::Proposed(intent) | Cause::Marker(intent) = &mut cause {
        intent.links.iter_mut().for_each(|link| *link = relink(*link));
    }
    if let Cause::Proposed(intent) = &mut cause
        && keeps_origin
    {
        **intent = (**intent).clone().of_origin(record.id()).of_time(record.header().ts);
    }
    // A length of a commitment counts from the time at which it was first on record, wherever that record is.
    if let Cause::Proposed(intent) | Cause::Marker(intent) = &mut cause
        && head.is_since(2)
        && commitment::has_length(intent)
    {
        **intent = (**intent).clone().of_time(record.header().ts);
    }
    // A delta that did not fit is the source's, like one that did; one that its rules turned down is turned down again.
    if let Cause::Proposed(intent) = &mut cause
        && !reducer.takes_delta()
        && !brought_a_delta_to_rules(record)
    {
        intent.delta = None;
    }
    if matches!(cause, Cause::Violation) {
        return Ok(Vec::new());
    }
    let mut made = vec![step::again(head, &cause, inputs, reducer).map_err(|error| unmade(tick, error))?];
    made.extend(step::settle(head, inputs).map_err(|error| ReplayError::Seal { tick, error })?);
    Ok(made)
}

/// Whether an intent brought a delta to a reducer that takes none.
fn brought_a_delta_to_rules(record: &Record) -> bool {
    let Some(Value::Array(notes)) = record.body().value("/anomalies") else { return false };
    notes.iter().any(|note| note.get("cause").and_then(Value::as_str) == Some("proposed_delta"))
}

/// Why a record could not be made again.
fn unmade(tick: u64, error: StepError) -> ReplayError {
    match error {
        StepError::Seal(error) => ReplayError::Seal { tick, error },
        StepError::Stopped(stopped) => ReplayError::Stopped { tick, stopped },
    }
}

/// Returns the intent that a recorded transition was made of; `None` for one that the kernel made by itself.
pub fn intent(record: &Record, takes_delta: bool) -> Result<Option<Intent>, ReplayError> {
    let tick = record.header().tick.unwrap_or(0);
    if let Some(field) = record.body().fields().iter().find(|field| record.body().text(field).is_none()) {
        return Err(ReplayError::Erased { tick, pointer: Some(field.pointer.clone()) });
    }
    match step::cause(record, takes_delta).ok_or(ReplayError::Malformed { tick })?.0 {
        Cause::Proposed(intent) => Ok(Some(*intent)),
        Cause::Marker(_)
        | Cause::Anomaly(_)
        | Cause::Violation
        | Cause::Extension(_)
        | Cause::Line(..)
        | Cause::Import(..) => Ok(None),
    }
}

fn compare_evaluations(
    before: &Value,
    intent: &Intent,
    reducer: &dyn Reducer,
    tick: u64,
) -> Result<(), ReplayError> {
    let evaluate = || match reducer.reduce(before, intent) {
        Ok(delta) => Ok(delta.to_value()),
        Err(ReduceError::Stopped(stopped)) => Err(ReplayError::Stopped { tick, stopped }),
        Err(error) => Ok(Value::from(error.to_string())),
    };
    let (first, second) = (evaluate()?, evaluate()?);
    match first_difference(&first, &second) {
        None => Ok(()),
        found => Err(diverged(tick, Compared::Evaluations, found, reducer)),
    }
}

fn diverged(tick: u64, what: Compared, sides: Option<Difference>, reducer: &dyn Reducer) -> ReplayError {
    let (path, expected, found) =
        sides.map_or_else(|| (Pointer::root(), None, None), |sides| (sides.path, sides.left, sides.right));
    let (reducer, purity) = (reducer.name().to_owned(), reducer.info().purity);
    ReplayError::Divergence(Box::new(Divergence { tick, what, path, expected, found, reducer, purity }))
}

/// The root that a record committed for the state after it.
pub fn state_root(record: &Record) -> Option<Digest> {
    record.body().value("/state_root")?.as_str()?.parse().ok()
}
