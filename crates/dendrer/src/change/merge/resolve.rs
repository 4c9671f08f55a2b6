//! The conflicts that a merge left open: how each is decided now, and the decision.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::step::{Outcome, Reason};
use dendrer_kernel::unknown::{CONFLICT, UnknownPlaces};
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::record::{Author, Link, Record, Rel};
use dendrer_object::{Code, Intent, Pointer, RunName, Value};
use dendrer_store::Shared;
use dendrer_store::prelude::*;

use super::sync::decide_sync;
use super::{Conflict, Merged, last_write, merged, note_writes};
use crate::error::{Error, MergeError};
use crate::record::recorder::{Environment, Recorder};
use crate::run::trace::Trace;

/// How a conflict stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConflictStanding {
    /// It is undecided, and its place is empty.
    Open,
    /// The strategy of the merge took the value of this source.
    Taken(Arc<str>),
    /// It was resolved at a tick: what was taken, and why.
    Resolved(u64, Arc<str>, Arc<str>),
    /// Something else wrote the place, at a tick.
    Written(u64),
}

impl ConflictStanding {
    /// Refuses to decide what was decided; `by` is what took a value where none was kept.
    pub(super) fn refuse_settled(&self, path: &Pointer, by: &str) -> Result<(), MergeError> {
        let how = match self {
            ConflictStanding::Open => return Ok(()),
            ConflictStanding::Taken(source) => format!("{by} took {source}"),
            ConflictStanding::Resolved(tick, take, _) => format!("tick {tick} took {take}"),
            ConflictStanding::Written(tick) => format!("tick {tick} wrote it"),
        };
        Err(MergeError::Settled { path: path.clone(), how })
    }
}

/// Says how each conflict of a run stands at its last tick, in the order of the record.
pub fn standings(trace: &Trace, merged: &Merged) -> Result<Vec<ConflictStanding>, Error> {
    standings_at(trace, merged, trace.tip())
}

pub(super) fn standings_at(
    trace: &Trace,
    merged: &Merged,
    tick: u64,
) -> Result<Vec<ConflictStanding>, Error> {
    let state = trace.state(tick)?;
    let unknown = UnknownPlaces::of(&state);
    let mut writes = BTreeMap::new();
    let mut decisions = BTreeMap::new();
    trace.for_each(1, tick, &mut |tick, record| {
        note_writes(&mut writes, tick, &record);
        if let Some(said) = record.body().value("/intent/conflict") {
            let text = |name: &str| said.get(name)?.as_str().map(Arc::<str>::from);
            if let (Some(path), Some(take), Some(reason)) = (text("path"), text("take"), text("reason")) {
                decisions.insert((path, tick), (take, reason));
            }
        }
        ControlFlow::Continue(())
    })?;
    let standing = |conflict: &Conflict| {
        if let Some(taken) = &conflict.taken {
            return ConflictStanding::Taken(Arc::clone(taken));
        }
        let path: Arc<str> = conflict.path.as_str().into();
        if is_marked(&unknown, &conflict.path) {
            return ConflictStanding::Open;
        }
        if conflict.path.get(&state).is_none() {
            // Resolved to a source that removed it, nothing stands there either.
            let removes = |take: &str| {
                conflict.values.iter().any(|(from, value)| value.is_none() && &*from.source == take)
            };
            let all = decisions.range((Arc::clone(&path), 0)..=(path, tick)).rev();
            let found = all.map(|((_, at), (take, reason))| (*at, take, reason));
            return match found.into_iter().find(|(_, take, _)| removes(take)) {
                Some((at, take, reason)) => {
                    ConflictStanding::Resolved(at, Arc::clone(take), Arc::clone(reason))
                }
                None => ConflictStanding::Open,
            };
        }
        let at = last_write(&writes, &conflict.path);
        match decisions.get(&(path, at)) {
            // A decision that names no side was not made by resolving.
            Some((take, reason)) if is_side(conflict, take) => {
                ConflictStanding::Resolved(at, Arc::clone(take), Arc::clone(reason))
            }
            _ => ConflictStanding::Written(at),
        }
    };
    Ok(merged.conflicts.iter().map(standing).collect())
}

/// Whether a place is marked as an open conflict.
fn is_marked(unknown: &UnknownPlaces, path: &Pointer) -> bool {
    unknown.iter().any(|(place, since)| place == path && *since.code == *CONFLICT)
}

/// Whether a decision takes something that a conflict can be resolved to: a side, or another value.
fn is_side(conflict: &Conflict, take: &str) -> bool {
    take == VALUE || conflict.values.iter().any(|(from, _)| &*from.source == take)
}

/// The value to which a conflict is resolved.
#[derive(Debug, Clone, PartialEq)]
pub enum Take {
    /// The value of a source: its name in the merge, or its run.
    Side(String),
    /// Another value.
    Value(Value),
    /// A side, or the value that the text is as JSON.
    Either(String, Value),
}

/// A name of a side of a conflict.
pub(super) struct SideName<'c> {
    /// `side`, `run` or `agent`.
    pub(super) kind: &'static str,
    pub(super) name: &'c str,
    /// Its number among the sides.
    pub(super) side: usize,
}

impl Take {
    /// Finds the value that is taken, and the number of the side that has it; `None` for another value. A name that means several
    /// values is refused; a kind before it, like `run:a`, names one of them.
    pub(super) fn chosen(
        &self,
        names: &[SideName<'_>],
        values: &[&Option<Value>],
    ) -> Result<(Option<usize>, Option<Value>), MergeError> {
        let (text, value) = match self {
            Take::Value(value) => return Ok((None, Some(value.clone()))),
            Take::Side(text) => (text, None),
            Take::Either(text, value) => (text, Some(value)),
        };
        let mut ways: Vec<(String, Option<usize>, Option<Value>)> = Vec::new();
        for SideName { kind, name, side } in names {
            let way = format!("{kind}:{name}");
            if name == text || way == *text {
                ways.push((way, Some(*side), values[*side].clone()));
            }
        }
        if let Some(value) = value {
            ways.push((format!("value:{text}"), None, Some(value.clone())));
        }
        if ways.windows(2).any(|pair| pair[0].2 != pair[1].2) {
            let ways: Vec<String> = ways.into_iter().map(|(way, ..)| way).collect();
            return Err(MergeError::Ambiguous { take: text.clone(), ways: ways.join(" or ") });
        }
        let found = ways.into_iter().next().map(|(_, side, value)| (side, value));
        found.ok_or_else(|| {
            let mut sides: Vec<&str> = Vec::new();
            for name in names.iter().filter(|name| name.kind != RUN) {
                sides.push(name.name);
            }
            MergeError::NoSide { take: text.clone(), sides: sides.join(", ") }
        })
    }
}

/// The kind of a side that is named by its run.
const RUN: &str = "run";

/// The word of a decision for a value that is no side's.
pub(super) const VALUE: &str = "value";

/// The decision about a conflict.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The place.
    pub path: Pointer,
    /// The value that is put there.
    pub take: Take,
    /// Why.
    pub reason: Arc<str>,
    /// Who decided, as the record names it.
    pub agent: Arc<str>,
}

/// Resolves an open conflict: a decision by the runtime, with its reason, that puts a value in its place. With `dry`, asks
/// the door and writes nothing.
pub fn resolve(
    store: &Shared,
    run: &RunName,
    resolution: &Resolution,
    surroundings: Box<dyn Environment>,
    dry: bool,
) -> Result<Record, Error> {
    store.clone().refresh()?;
    let trace = Trace::open(store, run)?;
    let path = &resolution.path;
    let (intent, is_there) = match merged(&trace) {
        Ok(merged) if merged.conflicts.iter().any(|conflict| conflict.path == *path) => {
            decide_merge(&trace, &merged, resolution)?
        }
        // Agents of the run may be in conflict there.
        Ok(_) | Err(Error::Merge(MergeError::NotMerged(_))) => decide_sync(&trace, resolution)?,
        Err(error) => return Err(error),
    };
    let mut recorder = Recorder::resume_at(store, run, trace.tip(), surroundings)?;
    propose(&mut recorder, &intent, path, is_there, dry)
}

/// The decision of a conflict between the runs that a run was merged from, and whether something is at the place after it.
fn decide_merge(
    trace: &Trace,
    merged: &Merged,
    resolution: &Resolution,
) -> Result<(Intent, Option<bool>), Error> {
    let Resolution { path, take, reason, agent } = resolution;
    let open = merged.conflicts.iter().zip(standings(trace, merged)?);
    let found = open.into_iter().find(|(conflict, _)| conflict.path == *path);
    let (conflict, standing) = found.expect("it has a conflict there");
    standing.refuse_settled(path, "the merge")?;
    let mut names = Vec::new();
    for (side, (from, _)) in conflict.values.iter().enumerate() {
        names.push(SideName { kind: "side", name: &from.source, side });
        let run = merged.sources.iter().find(|source| source.name == from.source);
        names.extend(run.map(|source| SideName { kind: RUN, name: source.run.as_str(), side }));
    }
    let values: Vec<&Option<Value>> = conflict.values.iter().map(|(_, value)| value).collect();
    let (side, value) = take.chosen(&names, &values)?;
    let from = side.map(|side| &conflict.values[side].0);
    let taken = from.map_or_else(|| VALUE.into(), |from| Arc::clone(&from.source));
    let record = from.map(|from| from.record);
    let mut intent = decision(path, reason, &taken, agent);
    // A value that a source removed is not there already.
    let is_there = value.is_some();
    let removal = || Op { action: Action::Remove, path: path.clone(), value: None };
    let is_written = path.get(&trace.state(trace.tip())?).is_some();
    let op = value.map(|value| Op::set(path.clone(), value)).or_else(|| is_written.then(removal));
    intent.delta = op.map(|op| Delta(vec![op]));
    intent.links.extend(record.map(|hash| Link { rel: Rel::Evidence, hash }));
    Ok((intent, Some(is_there)))
}

/// The decision of a conflict, without the change that it makes.
pub(super) fn decision(path: &Pointer, reason: &Arc<str>, taken: &Arc<str>, agent: &str) -> Intent {
    let mut intent = Intent::new("policy.decision".parse().expect("a type of the ontology"), agent);
    intent.author = Author::Runtime;
    let said = Value::record([
        ("path", Value::from(path.as_str())),
        ("reason", Value::String(Arc::clone(reason))),
        ("take", Value::String(Arc::clone(taken))),
    ]);
    let words = format!("conflict at {} resolved: {taken} is taken", path.dotted());
    intent.members = vec![
        ("intent".into(), Value::record([("conflict", said), ("description", Value::from(words))])),
        (
            "policy".into(),
            Value::record([("decision", Value::from("allow")), ("notes", Value::String(Arc::clone(reason)))]),
        ),
    ];
    intent
}

/// Lets a decision through the door. `is_there` says whether something is at the place behind it, if that must be so.
fn propose(
    recorder: &mut Recorder,
    intent: &Intent,
    path: &Pointer,
    is_there: Option<bool>,
    dry: bool,
) -> Result<Record, Error> {
    let outcome = recorder.propose_if(intent, |outcome, _, head| {
        // Below stage 2 a change that does not fit is noted and not made; a conflict is not resolved by that.
        matches!(outcome, Outcome::Refused(_))
            || is_there.is_none_or(|is_there| path.get(head.state()).is_some() == is_there)
    })?;
    let refused = |reason: &Reason| MergeError::Refused { code: reason.code(), reason: reason.to_string() };
    let made = match outcome {
        Outcome::Committed(record) if record.header().tick == Some(recorder.head().tick()) => Ok(record),
        Outcome::Violated { record, .. } => Ok(record),
        Outcome::Committed(_) => Err(MergeError::Refused {
            code: Code::E0404,
            reason: format!("nothing can be put at {} any more", path.dotted()),
        }),
        Outcome::Refused(refusal) => Err(refused(&refusal.reason)),
    };
    match dry {
        true => drop(recorder.discard()),
        false => drop(recorder.commit()?),
    }
    Ok(made?)
}
