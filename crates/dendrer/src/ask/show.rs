//! One transition in full, with the changes that it made to the state.

use dendrer_kernel::causal::{SyncConflict, SyncWrite};
use dendrer_kernel::predicate::Window;
use dendrer_kernel::replay::ReplayError;
use dendrer_object::delta::Op;
use dendrer_object::record::{Kind, Record, Rel};
use dendrer_object::{Pointer, RunName, Value};

use crate::ask::derived::{changes_at, is_derived, value_at};
use crate::ask::provenance::{Provenance, provenance};
use crate::error::Error;
use crate::run::causal::Causal;
use crate::run::trace::ReadHandle;
use crate::run::trace::Trace;

pub use crate::ask::difference::PlaceChange;

pub mod question;

/// Lists the places that a transition wrote, each once, in order of first writing.
pub fn changes(record: &Record, before: &Value, after: &Value) -> Vec<PlaceChange> {
    let delta = record.delta().unwrap_or_default();
    let mut found: Vec<PlaceChange> = Vec::new();
    for path in delta.paths() {
        if found.iter().any(|changed| changed.path == *path) {
            continue;
        }
        let (before, after) = (path.get(before).cloned(), path.get(after).cloned());
        found.push(PlaceChange { path: path.clone(), before, after });
    }
    found
}

/// The places that a transition wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShownWrites {
    /// Each place with its value before and after.
    Known(Vec<PlaceChange>),
    /// A value was erased or withheld, so the states are not known.
    Unknown {
        /// The tick of the missing value.
        tick: u64,
        /// The missing value, if one place is known to be it.
        pointer: Option<Pointer>,
        /// The operations of the transition itself, if they are left.
        ops: Option<Vec<Op>>,
    },
}

impl ShownWrites {
    /// Reads what the transition at a tick wrote.
    pub fn of(trace: &Trace, tick: u64, record: &Record) -> Result<ShownWrites, Error> {
        if tick == 0 {
            return Ok(ShownWrites::Known(Vec::new()));
        }
        let states = trace.state(tick - 1).and_then(|before| Ok((before, trace.state(tick)?)));
        match states {
            Ok((before, after)) => Ok(ShownWrites::Known(changes(record, &before, &after))),
            Err(Error::Replay(ReplayError::Erased { tick, pointer })) => {
                let delta = record.delta();
                Ok(ShownWrites::Unknown { tick, pointer, ops: delta.map(|delta| delta.0) })
            }
            Err(error) => Err(error),
        }
    }

    /// Leaves out writes that do not touch a place.
    fn keep(&mut self, place: &Pointer) {
        match self {
            ShownWrites::Known(changed) => changed.retain(|change| change.path.overlaps(place)),
            ShownWrites::Unknown { ops, .. } => {
                ops.iter_mut().for_each(|ops| ops.retain(|op| op.path.overlaps(place)))
            }
        }
    }
}

/// What is asked about a record, with its place resolved.
#[derive(Debug, Clone, Default)]
pub struct ShowTerms {
    /// The only place of the state that is of interest; `None` for all of it.
    pub path: Option<Pointer>,
    /// The state to show beside the record.
    pub state: Option<Window>,
    /// Whether the origin of the record is looked up.
    pub provenance: bool,
}

/// The places that a sync node decided between its parents.
#[derive(Debug, Clone, Default)]
pub struct ShownSync {
    /// The units that it put together.
    pub merged: Vec<SyncWrite>,
    /// The conflicts that it kept or decided.
    pub conflicts: Vec<SyncConflict>,
}

impl ShownSync {
    /// Reads what the transition at a tick made of its parents; nothing if it has no more than one.
    fn of(trace: &Trace, tick: u64, record: &Record) -> Result<ShownSync, Error> {
        let links = &record.header().links;
        let count = |rel: Rel| links.iter().filter(|link| link.rel == rel).count();
        if tick == 0 || (count(Rel::Merges) == 0 && count(Rel::CausedBy) < 2) {
            return Ok(ShownSync::default());
        }
        let graph = Causal::of(trace, tick)?.graph;
        Ok(ShownSync {
            merged: graph.merged().iter().filter(|merged| merged.at == tick).cloned().collect(),
            conflicts: graph.conflicts().iter().filter(|conflict| conflict.at == tick).cloned().collect(),
        })
    }
}

/// A record in full.
#[derive(Debug, Clone)]
pub struct ShownRecord {
    /// The run; `None` for a record of no run.
    pub run: Option<RunName>,
    /// The tick; `None` for a record off the chain.
    pub tick: Option<u64>,
    /// The record.
    pub record: Record,
    /// What it wrote; nothing for a record off the chain.
    pub writes: ShownWrites,
    /// The places that it decided between its parents.
    pub sync: ShownSync,
    /// The state that was asked for, or its value at the path; `None` if there is no value.
    pub state: Option<(Window, Option<Value>)>,
    /// The origin, if it was asked for.
    pub provenance: Option<Provenance>,
}

/// Reads the record at a tick of a run.
///
/// A state that was asked for and is not known is an error; changes that are not known are not.
pub fn show(trace: &Trace, tick: u64, terms: &ShowTerms) -> Result<ShownRecord, Error> {
    let record = trace.record(tick)?;
    let mut writes = match &terms.path {
        Some(path) if is_derived(path) => ShownWrites::Known(changes_at(trace, tick, path)?),
        _ => ShownWrites::of(trace, tick, &record)?,
    };
    let mut sync = ShownSync::of(trace, tick, &record)?;
    if let Some(path) = &terms.path {
        writes.keep(path);
        sync.merged.retain(|merged| merged.unit.overlaps(path));
        sync.conflicts.retain(|conflict| conflict.path.overlaps(path));
    }
    let read = |window| {
        let at = match window {
            Window::Before => tick.saturating_sub(1),
            Window::After => tick,
        };
        let state = trace.state(at)?;
        let value = match &terms.path {
            Some(path) => value_at(trace, at, &state, path)?,
            None => Some(state),
        };
        Ok::<_, Error>((window, value))
    };
    let state = terms.state.map(read).transpose()?;
    let provenance = terms.provenance.then(|| provenance(trace, &record)).transpose()?;
    let run = Some(trace.name().clone());
    Ok(ShownRecord { run, tick: Some(tick), record, writes, sync, state, provenance })
}

/// Reads a record off the chain: a refusal, a registration, the beginning of a fork. It changed no state.
pub fn show_off_chain(
    store: &impl ReadHandle,
    record: Record,
    with_provenance: bool,
) -> Result<ShownRecord, Error> {
    let run = record.header().run.clone();
    let trace = run.as_ref().map(|run| Trace::open(store, run)).transpose()?;
    let trace = trace.filter(|_| with_provenance);
    let provenance = trace.map(|trace| provenance(&trace, &record)).transpose()?;
    Ok(ShownRecord {
        run,
        tick: None,
        record,
        writes: ShownWrites::Known(Vec::new()),
        sync: ShownSync::default(),
        state: None,
        provenance,
    })
}

/// Whether a record is at a tick of a run: a transition, or the beginning of a run that is no fork.
pub fn has_tick(record: &Record) -> bool {
    let header = record.header();
    header.run.is_some()
        && (header.kind == Kind::Transition || header.kind == Kind::Run && header.prev.is_none())
}

/// Names the value that is missing.
pub fn missing_words(tick: u64, pointer: Option<&Pointer>) -> String {
    let what = pointer.map_or_else(|| "a value".to_owned(), Pointer::dotted);
    format!("the {what} of tick {tick} was erased or withheld")
}
