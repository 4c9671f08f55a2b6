//! Runs of an import that was stopped before its end: the record with which a run begins has the number of transitions that its
//! source makes, so a run with fewer is known by itself (design, section 14.3).

use dendrer_object::record::{Kind, Record};
use dendrer_object::{Object, Value};
use dendrer_store::{RunSummary, Store};

use crate::address::OF_STORE;
use crate::error::Error;
use crate::run::trace::{Trace, read};

/// The member of `inputs.source` of a run, and of the `branch` of a fork, with the number of transitions that its source makes.
pub const TICKS: &str = "ticks";

/// The member of the record with which a run begins that has its source.
pub(crate) const INPUTS: &str = "inputs";

/// The member of `inputs` of a foreign run: the place that it is from, with the last tick of each run there.
pub const FOREIGN: &str = "foreign";

/// The member of a fork's marker for the branch of a source that the fork is.
pub const BRANCH: &str = "branch";

/// A run with fewer transitions than its source makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished {
    /// The number of transitions on record that are of the source.
    pub ticks: u64,
    /// The number of transitions that the source makes.
    pub of: u64,
}

impl Unfinished {
    /// The reason why an answer does not hold for all of the source.
    pub fn words(&self) -> String {
        format!("the import is unfinished: {} of {} ticks are on record", self.ticks, self.of)
    }

    /// Returns it as an object.
    pub fn to_object(&self) -> Object {
        let members = [("items", Value::from(self.ticks)), ("of", Value::from(self.of))];
        Value::record(members).as_object().cloned().unwrap_or_default()
    }
}

impl Trace {
    /// Returns whether an import of the run, or of the branch that it is, was stopped before its end.
    ///
    /// # Errors
    ///
    /// An error if its beginning cannot be read.
    pub fn unfinished(&self) -> Result<Option<Unfinished>, Error> {
        of_run(&**self.store(), self.summary())
    }
}

/// The place that a foreign run is from, by the record with which it begins.
pub(crate) fn foreign(begin: &Record) -> Option<Value> {
    let apart = begin.body().value(&format!("/{FOREIGN}"));
    apart.or_else(|| begin.content().get(INPUTS)?.get(FOREIGN).cloned())
}

/// The record with which the first run of the line of a fork begins.
fn first_begin(store: &dyn Store, run: &RunSummary) -> Result<Record, Error> {
    let mut begin = read(store, run.begin)?;
    while let Some(parent) = begin.header().prev {
        let missing = || Error::MissingPrefix { run: run.name.clone(), parent };
        let at = store.find(&parent)?.ok_or_else(missing)?;
        let owner = read(store, at)?.header().run.clone().ok_or_else(missing)?;
        begin = read(store, store.run(&owner)?.ok_or_else(missing)?.begin)?;
    }
    Ok(begin)
}

/// As [`Trace::unfinished`], for a run that is not opened.
pub(crate) fn of_run(store: &dyn Store, run: &RunSummary) -> Result<Option<Unfinished>, Error> {
    let begin = read(store, run.begin)?;
    let last = run.head.tick.unwrap_or(0);
    if let Some((_, own)) = run.name.as_str().split_once(OF_STORE) {
        let of = foreign(&first_begin(store, run)?).and_then(|about| about.get(TICKS)?.get(own)?.as_u64());
        if let Some(of) = of.filter(|of| last < *of) {
            return Ok(Some(Unfinished { ticks: last, of }));
        }
    }
    let (marker, before) = match (begin.header().prev, run.first_own_tick) {
        (None, _) => (None, 0),
        (Some(_), None) => return Ok(None),
        (Some(_), Some(first)) => (store.at(&run.name, first)?, first),
    };
    let about = match (begin.header().prev, marker) {
        (None, _) => {
            let inputs = begin.body().value("/inputs");
            let is_reduced = inputs.as_ref().is_some_and(|inputs| inputs.get("reduced_from").is_some());
            inputs.filter(|_| !is_reduced).and_then(|inputs| inputs.get("source").cloned())
        }
        (Some(_), None) => None,
        (Some(_), Some(position)) => {
            read(store, position)?.body().value("/fork").and_then(|about| about.get(BRANCH).cloned())
        }
    };
    debug_assert_eq!(begin.header().kind, Kind::Run);
    let of = about.and_then(|about| about.get(TICKS)?.as_u64());
    // The marker of a fork is no item of the source.
    let ticks = if before > 0 { last.saturating_sub(1) } else { last };
    Ok(of.filter(|of| ticks < *of).map(|of| Unfinished { ticks, of }))
}
