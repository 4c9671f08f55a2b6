//! Runs of which records are missing, and of an import that was stopped before its end: the record with which a run begins has the number of transitions that its
//! source makes, so a run with fewer is known by itself (design, section 14.3).

use dendrer_kernel::predicate::Verdict;
use dendrer_object::record::{Kind, Record};
use dendrer_object::{Object, RunName, Value};
use dendrer_store::{RunSummary, Store};

use crate::address::{OF_STORE, made_name};
use crate::error::Error;
use crate::run::line::Interval;
use crate::run::lost::Lost;
use crate::run::trace::{Trace, read};

/// The member of `inputs.source` of a run, and of the `branch` of a fork, with the number of transitions that its source makes.
pub const TICKS: &str = "ticks";

/// The member of `inputs.source` of a run with the number of branches that become forks of it.
pub const BRANCHES: &str = "branches";

/// The member of the record with which a run begins that has its source.
pub(crate) const INPUTS: &str = "inputs";

/// The member of `inputs` of a foreign run: the place that it is from, with the last tick of each run there.
pub const FOREIGN: &str = "foreign";

/// The member of [`FOREIGN`] with what each run lacked when it was imported.
pub(crate) const PARTIAL: &str = "partial";

/// The member of [`FOREIGN`] with the places that were withheld although others may have a value of them.
pub(crate) const ALTHOUGH: &str = "although";

/// The member of `inputs.reduced_from` of a run that was reduced from an unfinished one.
pub(crate) const UNFINISHED: &str = "unfinished";

/// The member of a fork's marker for the branch of a source that the fork is.
pub const BRANCH: &str = "branch";

/// A run with fewer transitions than its source makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished {
    /// The number of transitions on record that are of the source.
    pub ticks: u64,
    /// The number of transitions that the source makes.
    pub of: u64,
    /// The number of branches of the source that are no forks yet.
    pub branches_missing: u64,
    /// The records that are missing of it, if that is not the end of an import that was stopped.
    pub lost: Option<Lost>,
}

impl Unfinished {
    /// The reason why an answer does not hold for all of the source.
    pub fn words(&self) -> String {
        if let Some(lost) = self.lost {
            return lost.words();
        }
        match self.ticks < self.of {
            true => format!("the import is unfinished: {} of {} ticks are on record", self.ticks, self.of),
            false => {
                let missing = self.branches_missing;
                format!("the import is unfinished: {missing} of its branches are not on record")
            }
        }
    }

    /// Whether transitions of the run itself are missing, so that no answer about its end is exact.
    pub fn is_cut(&self) -> bool {
        self.ticks < self.of
    }

    /// The ticks after the last one that is known, of which nothing can be said.
    pub(crate) fn behind(&self, last: u64) -> Interval {
        let verdict = Verdict::Uncertain(self.words());
        Interval { from: last + 1, to: self.of.max(last + 1), verdict }
    }

    /// Whether an answer up to a tick may depend on what is missing.
    fn reaches(&self, is_tip: bool) -> bool {
        self.lost.map_or(is_tip && self.is_cut(), |lost| lost.reaches(is_tip))
    }

    fn of_ticks(ticks: u64, of: u64) -> Option<Unfinished> {
        (ticks < of).then_some(Unfinished { ticks, of, branches_missing: 0, lost: None })
    }

    /// A run that ends with a tick, of which records are or may be missing.
    fn of_lost(ticks: u64, lost: Lost) -> Unfinished {
        let behind = lost.missing.map_or(0, |missing| missing.transitions).max(1);
        Unfinished { ticks, of: ticks + behind, branches_missing: 0, lost: Some(lost) }
    }

    fn read(value: &Value) -> Option<Unfinished> {
        let count = |name: &str| value.get(name).and_then(Value::as_u64);
        Some(Unfinished { ticks: count("items")?, of: count("of")?, branches_missing: 0, lost: None })
    }

    /// Returns it as an object.
    pub fn to_object(&self) -> Object {
        let members = [("items", Value::from(self.ticks)), ("of", Value::from(self.of))];
        Value::record(members).as_object().cloned().unwrap_or_default()
    }
}

impl Trace {
    /// Returns whether records of the run are missing: its import, or that of the branch that it is, was stopped before its end,
    /// or the bundle that it is read from, or was imported from, is a part.
    ///
    /// # Errors
    ///
    /// An error if its beginning cannot be read.
    pub fn unfinished(&self) -> Result<Option<Unfinished>, Error> {
        match self.lost() {
            Some(lost) => Ok(Some(Unfinished::of_lost(self.tip(), lost))),
            None => of_run(&**self.store(), self.summary()),
        }
    }

    /// Returns what is missing of the run for an answer up to a tick: nothing is known of what it would be otherwise.
    ///
    /// # Errors
    ///
    /// As [`Trace::unfinished`].
    pub fn missing_to(&self, tick: u64) -> Result<Option<Unfinished>, Error> {
        Ok(self.unfinished()?.filter(|found| found.reaches(tick >= self.tip())))
    }
}

/// The place that a foreign run is from, by the record with which it begins.
pub(crate) fn foreign(begin: &Record) -> Option<Value> {
    let apart = begin.body().value(&format!("/{FOREIGN}"));
    apart.or_else(|| begin.content().get(INPUTS)?.get(FOREIGN).cloned())
}

/// The places that a foreign run lacks although others may have a value of them, by the record with which it begins.
pub(crate) fn although(begin: &Record) -> Vec<String> {
    let places = foreign(begin).and_then(|about| about.get(ALTHOUGH)?.as_array().cloned());
    let places = places.iter().flat_map(|places| places.iter());
    places.filter_map(|place| place.as_str().map(str::to_owned)).collect()
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
pub fn of_run(store: &dyn Store, run: &RunSummary) -> Result<Option<Unfinished>, Error> {
    let begin = read(store, run.begin)?;
    let last = run.head.tick.unwrap_or(0);
    if let Some((_, own)) = run.name.as_str().split_once(OF_STORE) {
        let about = foreign(&first_begin(store, run)?);
        if let Some(lost) = about.as_ref().and_then(|about| about.get(PARTIAL)?.get(own))
            && let Some(lost) = Lost::read(lost, store, run)?
        {
            return Ok(Some(Unfinished::of_lost(last, lost)));
        }
        let of = about.and_then(|about| about.get(TICKS)?.get(own)?.as_u64());
        if let Some(found) = of.and_then(|of| Unfinished::of_ticks(last, of)) {
            return Ok(Some(found));
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
            if let Some(reduced) = inputs.as_ref().and_then(|inputs| inputs.get("reduced_from")) {
                return Ok(reduced.get(UNFINISHED).and_then(Unfinished::read));
            }
            return match inputs.as_ref().and_then(|inputs| inputs.get("source")) {
                Some(source) => of_source(store, run, source),
                None => Ok(None),
            };
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
    Ok(of.and_then(|of| Unfinished::of_ticks(ticks, of)))
}

/// As [`of_run`], for the first run of a source. Its branches are forks with the next names; the transitions of a thread are those
/// of all its runs.
fn of_source(store: &dyn Store, run: &RunSummary, source: &Value) -> Result<Option<Unfinished>, Error> {
    let Some(of) = source.get(TICKS).and_then(Value::as_u64) else { return Ok(None) };
    let branches = source.get(BRANCHES).and_then(Value::as_u64).unwrap_or(0);
    let is_thread = source.get("thread").is_some();
    let last = run.head.tick.unwrap_or(0);
    if branches == 0 && !is_thread {
        return Ok(Unfinished::of_ticks(last, of));
    }
    let (mut forks, mut own) = (0, 0);
    for number in 2.. {
        let Ok(name) = made_name(run.name.as_str(), number).parse::<RunName>() else { break };
        let Some(fork) = store.run(&name)? else { break };
        // The marker of a fork is no item of the source.
        (forks, own) = (forks + 1, own + fork.transitions.saturating_sub(1));
    }
    let ticks = if is_thread { last + own } else { last };
    let branches_missing = branches.saturating_sub(forks);
    Ok((ticks < of || branches_missing > 0).then_some(Unfinished { ticks, of, branches_missing, lost: None }))
}
