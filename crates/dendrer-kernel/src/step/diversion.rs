//! The state without some transitions of a run: reduced again in memory, and never recorded.
//!
//! A [`Diversion`] has states and counters and no ids, so nothing of it can be committed: a transition is made by
//! [`step`](super::step) alone. The functions that `step` uses decide what an intent means.
//!
//! Rule: the intents are those on record. The intents that an agent would have proposed in another state are not known.

use dendrer_object::delta::Delta;
use dendrer_object::record::{Kind, Record};
use dendrer_object::{TypeName, Value};

use super::extension::extension_change;
use super::fork::marker_change;
use super::terms::{mark_policy, watch};
use super::{
    Cause, Change, REDUCER_ERROR, RunState, Stage, StartError, anomaly_change, enforce_policy, reduce,
};
use crate::counters::Counters;
use crate::predicate::Predicate;
use crate::reduce::Reducer;
use crate::replay::{self, ReplayError};
use crate::sealed;
use crate::stopped::Stopped;

/// A recorded transition, taken apart once so that it can be reduced again many times.
pub struct RecordedStep {
    tick: u64,
    type_name: TypeName,
    cause: Cause,
    /// The members that counters read.
    content: Value,
    /// Whether it changed nothing because of an error.
    failed: bool,
}

impl RecordedStep {
    /// Takes a recorded transition apart. All of its values must be there.
    pub fn read(record: &Record, reducer: &dyn Reducer) -> Result<RecordedStep, ReplayError> {
        let tick = record.header().tick.unwrap_or(0);
        let malformed = ReplayError::Malformed { tick };
        let Some(type_name) = record.header().type_name.clone() else { return Err(malformed) };
        if record.header().kind != Kind::Transition || tick == 0 {
            return Err(malformed);
        }
        let (cause, _) = replay::cause(record, tick, reducer)?;
        let content = record.content();
        let failed = notes(&content).any(is_reducer_error);
        Ok(RecordedStep { tick, type_name, cause, content, failed })
    }

    /// The tick at which it was recorded.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// Whether it was proposed. Otherwise the kernel wrote it about the run.
    pub fn is_proposed(&self) -> bool {
        matches!(self.cause, Cause::Proposed(_))
    }

    /// Whether it changed nothing when it was recorded, because its change could not be made.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// The change that it brings, where it brings one: under a reducer that takes changes, all it can write but for what the
    /// kernel does.
    pub fn delta(&self) -> Option<&Delta> {
        match &self.cause {
            Cause::Proposed(intent) | Cause::Marker(intent) => intent.delta.as_ref(),
            Cause::Anomaly(_)
            | Cause::Violation
            | Cause::Extension(_)
            | Cause::Line(..)
            | Cause::Import(..) => None,
        }
    }
}

/// The outcome of a transition in a diversion.
#[derive(Debug, Clone)]
pub struct Taken {
    /// The change.
    pub delta: Delta,
    /// Why its change could not be made: it does not fit the state, a rule met an error, or the door would turn it down.
    pub failed: Option<String>,
}

/// A run without some of its transitions, as far as it was reduced again.
#[derive(Clone)]
pub struct Diversion {
    head: RunState,
}

impl Diversion {
    /// Begins at the head of a run.
    pub fn new(head: RunState) -> Diversion {
        Diversion { head }
    }

    /// Takes over the terms of the fork that a `run` record begins, whatever it says of the state it began with.
    pub fn fork(&mut self, begin: &Record) -> Result<(), StartError> {
        self.head.go_on(begin)
    }

    /// Reduces a transition again, at the tick it was recorded at. Fails where the module that reduces was ended by a limit
    /// of its engine: then nothing is known of what would have been.
    pub fn take(&mut self, told: &RecordedStep, reducer: &dyn Reducer) -> Result<Taken, Stopped> {
        let head = &mut self.head;
        head.tick = told.tick - 1;
        head.turn_to_next();
        let mut change = match &told.cause {
            Cause::Anomaly(entry) => anomaly_change(head, entry),
            Cause::Marker(marker) => marker_change(head, marker),
            Cause::Extension(intent) => extension_change(head, intent),
            // It names the violations of the transition before it, which caused none here.
            Cause::Violation if head.owed().is_empty() => {
                return Ok(Taken { delta: Delta::default(), failed: None });
            }
            Cause::Violation => Change::none(&head.state, None),
            Cause::Proposed(intent) => match reduce(head, intent, reducer)? {
                Ok(change) => change,
                // A refused intent is no transition: nothing counts it.
                Err(reason) => {
                    return Ok(Taken { delta: Delta::default(), failed: Some(reason.to_string()) });
                }
            },
            Cause::Import(..) | Cause::Line(..) => unreachable!("a refusal has no tick, so it is not read"),
        };
        let error = change.notes.iter().find(|note| is_reducer_error(note));
        let failed =
            error.map(|note| sealed::words(note).unwrap_or_else(|| "its change cannot be made".to_owned()));
        enforce_policy(head, &mut change);
        let mut counters = head.counters.clone();
        match failed.is_some() == told.failed {
            true => counters.add(told.type_name.as_str(), &told.content),
            false => counters.add(told.type_name.as_str(), &counted(&told.content, &change)),
        }
        watch(head, &told.type_name, &mut change, |_| counters.to_value());
        mark_policy(head, &told.type_name, &mut change, |_| counters.to_value());
        head.counters = counters;
        head.tick = told.tick;
        head.take_state(change.state);
        if let Cause::Extension(_) = told.cause {
            head.read_terms();
        }
        Ok(Taken { delta: change.delta, failed })
    }

    /// The state.
    pub fn state(&self) -> &Value {
        &self.head.state
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.head.counters
    }

    /// The policy rules in force.
    pub fn policy(&self) -> &[Predicate] {
        self.head.policy()
    }

    /// The stage at which the run was recorded.
    pub fn stage(&self) -> Stage {
        self.head.stage
    }
}

fn notes(content: &Value) -> impl Iterator<Item = &Value> {
    content.get("anomalies").and_then(Value::as_array).into_iter().flat_map(|list| list.iter())
}

fn is_reducer_error(note: &Value) -> bool {
    note.get("kind").and_then(Value::as_str) == Some(REDUCER_ERROR)
}

/// Returns the members that counters read, if the transition has an error only here or only in the record.
fn counted(content: &Value, change: &Change) -> Value {
    let mut members = content.as_object().cloned().unwrap_or_default();
    let own = notes(content).filter(|note| !is_reducer_error(note)).cloned();
    let anomalies: Vec<Value> = own.chain(change.notes.iter().cloned()).collect();
    match anomalies.is_empty() {
        true => drop(members.remove("anomalies")),
        false => members.set("anomalies", Value::array(anomalies)),
    }
    Value::Object(members)
}
