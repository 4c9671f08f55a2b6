//! Reducers: pure functions from a state and a transition to a change of state (dendrer paper 3.3).

use dendrer_object::delta::{Delta, DeltaError};
use dendrer_object::{Digest, Intent, Pointer, Value};

use crate::sealed::{self, Met, fact, told};
use crate::stopped::Stopped;
use crate::unknown::{self, DELTA_FAILED, READS_UNKNOWN, REDUCER_FAILED, UnknownPlaces, written};

pub(crate) use quantized::Quantized;

mod quantized;

/// How it is known that a reducer is a function of its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purity {
    /// It can do nothing else.
    ByConstruction,
    /// It ran twice and gave the same; that is evidence, not proof.
    Tested,
}

/// Why a reducer gave no change of state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{}", told(&self.sealed()))]
pub enum ReduceError {
    /// The proposed delta does not fit the state.
    #[error("{0}")]
    Delta(#[from] DeltaError),
    /// A rule of the pack met something it cannot do.
    #[error("{place}: {met}")]
    Rule {
        /// Which rule, and which of its steps.
        place: String,
        /// Number of the rule, from 1; `None` for all of them together.
        rule: Option<usize>,
        /// Number of the step, like `2.1`; `None` for the rule as a whole.
        step: Option<String>,
        /// The value or condition that the rule met.
        met: Box<Met>,
    },
    /// The intent proposes a change, and the state changes by rules alone.
    ProposedDelta(String),
    /// The change writes what is not the reducer's to write.
    Reserved(Pointer),
    /// A module says no, came to an end of its own making, or gave no delta. Every engine says the same.
    Module {
        /// The digest of the module.
        module: Digest,
        /// The message of the module, or the way it ended.
        why: String,
    },
    /// A module was ended by a limit of the engine. It says nothing of the transition: [`step`](crate::step) hands it to
    /// the caller and puts nothing on record, and other callers of a reducer have to do the same.
    #[error("{0}")]
    Stopped(#[from] Stopped),
    /// A host function says no.
    Host(String),
    /// Two evaluations on the same arguments gave different changes.
    #[error("the reducer gave two different changes for the same state and transition: {first} and {second}")]
    NotDeterministic {
        /// The first change.
        first: Value,
        /// The second change.
        second: Value,
    },
}

impl ReduceError {
    /// Returns what is put on record of it ([`sealed`]).
    pub fn sealed(&self) -> Value {
        match self {
            ReduceError::Delta(error) => sealed::of_delta(error),
            ReduceError::Rule { rule, step, met, .. } => {
                let rule = rule.map(|rule| ("rule", Value::from(rule as u64)));
                let step = step.as_deref().map(|step| ("step", Value::from(step)));
                fact("rule_failed", met.sealed().into_iter().chain(rule).chain(step))
            }
            ReduceError::ProposedDelta(name) => fact("proposed_delta", [("reducer", Value::from(&**name))]),
            ReduceError::Reserved(path) => fact("reserved_path", [("path", Value::from(path.as_str()))]),
            ReduceError::Module { module, why } => {
                fact("module_failed", [("module", Value::from(*module)), ("text", Value::from(&**why))])
            }
            // It is handed to the caller, and never put on record.
            ReduceError::Stopped(stopped) => fact("stopped", [("text", Value::from(stopped.to_string()))]),
            ReduceError::Host(text) => fact("host_failed", [("text", Value::from(&**text))]),
            ReduceError::NotDeterministic { first, second } => {
                fact("not_deterministic", [("first", first.clone()), ("second", second.clone())])
            }
        }
    }
}

/// A change of state, and what is unknown of the state after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReducedDelta {
    /// The change.
    pub delta: Delta,
    /// The places that are unknown after it.
    pub unknown: UnknownPlaces,
    /// The values that were rounded to the decimals of their field.
    pub rounded: Vec<Rounding>,
    /// The fields to which a number was added that is finer than their decimals.
    pub finer: Vec<Pointer>,
    /// Of a line with several calls, the state before each of them; empty if it is the same for all.
    pub before_calls: Vec<Value>,
}

/// A value that was rounded to the decimals of its field when it was set (design, 14.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rounding {
    /// The place.
    pub path: Pointer,
    /// The value that was to be written.
    pub from: Value,
    /// The value that is there.
    pub to: Value,
}

/// Name and properties of a reducer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReducerInfo<'r> {
    /// Name and version, as the run records it.
    pub name: &'r str,
    /// How its purity is known.
    pub purity: Purity,
    /// Whether the change that an intent proposes is its to take. If it is not, an intent that brings one is in error, and a
    /// recorded delta is the result and not the proposal.
    pub takes_delta: bool,
    /// Whether it rounds the change that an intent proposes. The proposed change is then recorded as well.
    pub quantizes: bool,
}

impl<'r> ReducerInfo<'r> {
    /// A reducer that makes every change itself, and can do nothing else.
    pub const fn program(name: &'r str) -> ReducerInfo<'r> {
        ReducerInfo { name, purity: Purity::ByConstruction, takes_delta: false, quantizes: false }
    }
}

/// A reducer. Its result is applied by the caller, so a reducer cannot change anything itself.
pub trait Reducer {
    /// Its name and properties.
    fn info(&self) -> ReducerInfo<'_>;

    /// Its name and version.
    fn name(&self) -> &str {
        self.info().name
    }

    /// Whether the change that an intent proposes is its to take.
    fn takes_delta(&self) -> bool {
        self.info().takes_delta
    }

    /// Returns the change that this transition makes of this state.
    fn reduce(&self, before: &Value, intent: &Intent) -> Result<Delta, ReduceError>;

    /// As [`Reducer::reduce`], for a state of which something is unknown (design, section 7). `tick` is that of the
    /// transition. A program can read all of the state, so after it nothing is known.
    fn reduce_incomplete(
        &self,
        before: &Value,
        intent: &Intent,
        tick: u64,
    ) -> Result<ReducedDelta, ReduceError> {
        let mut unknown = UnknownPlaces::of(before);
        if !unknown.is_empty() {
            unknown.mark(Pointer::root(), tick, READS_UNKNOWN);
        }
        Ok(ReducedDelta { delta: self.reduce(before, intent)?, unknown, ..ReducedDelta::default() })
    }

    /// As [`Reducer::reduce`] and [`Reducer::reduce_incomplete`] by the rules of version 2 of the kernel: of a line with several
    /// calls, what is done for a call is done for each, and numbers that are finer than their field are reported (design, 14.1).
    fn reduce_calls(&self, before: &Value, intent: &Intent, tick: u64) -> Result<ReducedDelta, ReduceError> {
        if unknown::is_incomplete(before) || unknown::is_ambiguous(intent) {
            return self.reduce_incomplete(before, intent, tick);
        }
        Ok(ReducedDelta { delta: self.reduce(before, intent)?, ..ReducedDelta::default() })
    }

    /// Returns the places that may be written when the calls of a request are answered, of which the tool alone is known: of a
    /// program, everything. For a reducer that takes deltas there are no such places: the result brings its own change.
    fn may_write(&self, _state: &Value, _request: &Intent) -> Vec<Pointer> {
        if self.takes_delta() { Vec::new() } else { vec![Pointer::root()] }
    }

    /// Returns the places that are unknown because of what is missing in a transition ([`crate::unknown::gap`]), given the state
    /// after it: of a program, everything. For a reducer that takes deltas there are no such places: a missing transition brings no delta.
    fn unknown_by_gap(&self, _state: &Value, _intent: &Intent) -> Vec<Pointer> {
        if self.takes_delta() { Vec::new() } else { vec![Pointer::root()] }
    }

    /// Returns what is unknown after a transition for which this reducer gave an error (design, section 7): of a
    /// program, everything, for good.
    fn unknown_after_error(&self, before: &Value, _intent: &Intent, tick: u64) -> UnknownPlaces {
        let mut unknown = UnknownPlaces::of(before);
        unknown.mark(Pointer::root(), tick, REDUCER_FAILED);
        unknown
    }
}

/// `delta/1`: the change is the one the intent proposes.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeltaReducer;

impl Reducer for DeltaReducer {
    fn info(&self) -> ReducerInfo<'_> {
        ReducerInfo { takes_delta: true, ..ReducerInfo::program("delta/1") }
    }

    fn reduce(&self, _before: &Value, intent: &Intent) -> Result<Delta, ReduceError> {
        Ok(intent.delta.clone().unwrap_or_default())
    }

    fn reduce_incomplete(
        &self,
        before: &Value,
        intent: &Intent,
        _tick: u64,
    ) -> Result<ReducedDelta, ReduceError> {
        let (delta, mut unknown) = (self.reduce(before, intent)?, UnknownPlaces::of(before));
        unknown.clear_set(&delta);
        Ok(ReducedDelta { delta, unknown, ..ReducedDelta::default() })
    }

    fn unknown_after_error(&self, before: &Value, intent: &Intent, tick: u64) -> UnknownPlaces {
        let mut unknown = UnknownPlaces::of(before);
        for op in intent.delta.iter().flat_map(|delta| &delta.0) {
            unknown.mark(written(op, before), tick, DELTA_FAILED);
        }
        unknown
    }
}

/// A function of the host program. Nothing proves it pure, so it runs twice each time and both must agree.
pub struct HostReducer<F> {
    name: String,
    reduce: F,
}

impl<F: Fn(&Value, &Intent) -> Result<Delta, ReduceError>> HostReducer<F> {
    /// Names a host function.
    pub fn new(name: impl Into<String>, reduce: F) -> HostReducer<F> {
        HostReducer { name: name.into(), reduce }
    }
}

impl<F: Fn(&Value, &Intent) -> Result<Delta, ReduceError>> Reducer for HostReducer<F> {
    fn info(&self) -> ReducerInfo<'_> {
        ReducerInfo { name: &self.name, purity: Purity::Tested, takes_delta: true, quantizes: false }
    }

    fn reduce(&self, before: &Value, intent: &Intent) -> Result<Delta, ReduceError> {
        let first = (self.reduce)(before, intent)?;
        let second = (self.reduce)(before, intent)?;
        if first != second {
            return Err(ReduceError::NotDeterministic { first: first.to_value(), second: second.to_value() });
        }
        Ok(first)
    }
}
