//! Imports that were stopped before their end: the same import continues after the last transition on record.
//!
//! The same import has the same bytes, place, mapping, pack, rules of redaction and run. All of that is in the record with which the
//! run begins, so that record decides.

use std::collections::BTreeMap;

use dendrer::kernel::pack::digest;
use dendrer::kernel::step::{self, Start};
use dendrer::record::redacted;
use dendrer::recorder::{Environment, Recorder};
use dendrer::redact::Redactor;
use dendrer::repo::new_run::made_name;
use dendrer::run::unfinished::{BRANCH, TICKS};
use dendrer::store::{Shared, Store};
use dendrer::trace::ReadHandle;
use dendrer::{Error, Trace};
use dendrer_object::{Digest, Intent, RunName, Value};

use super::error::ImportError;
use super::{ImportPlan, Outcome, TRIAL, trial};

/// A run that an import continues.
pub(super) enum Resumed {
    /// All of it is on record: its tip.
    Ended(Digest),
    /// The recorder of what follows, and what is on record; `None` for a run that begins.
    From(Recorder, Option<OnRecord>),
}

/// The part of a run that is on record.
pub(super) struct OnRecord {
    trace: Trace,
    /// The last tick.
    pub(super) last: u64,
}

impl OnRecord {
    fn of(trace: Trace) -> OnRecord {
        OnRecord { last: trace.tip(), trace }
    }

    /// Returns the record of a tick, and lets the redactor take note of what it took out of the intent.
    pub(super) fn recorded(
        &self,
        tick: u64,
        intent: &Intent,
        redactor: Option<&Redactor>,
    ) -> Result<Outcome, ImportError> {
        redactor.map(|redactor| redacted::intent(redactor, intent));
        Ok(Ok(self.trace.record(tick)?.id()))
    }
}

/// Returns the content with which a run begins; `None` if there is no such run.
pub(super) fn begun(store: &dyn Store, start: &Start) -> Result<Option<Value>, ImportError> {
    let Some(run) = store.run(&start.run).map_err(Error::from)? else { return Ok(None) };
    let begin = store.get(run.begin).map_err(Error::from)?;
    Ok(begin.map(|begin| begin.content()))
}

/// Whether the run of a plan is that of an import of the same source under the same pack which was stopped: some of its transitions
/// or branches are not on record.
pub(super) fn is_stopped(
    store: &impl ReadHandle,
    start: &Start,
    branches: usize,
) -> Result<bool, ImportError> {
    let store = store.to_handle();
    let Some(content) = begun(&*store, start)? else { return Ok(false) };
    let pack = start.pack.as_ref().map(|bound| digest(&bound.value));
    let of_pack = content.get("pack").map(digest);
    if content.get("inputs") != start.inputs.as_ref() || pack != of_pack {
        return Ok(false);
    }
    let trace = Trace::open(&store, &start.run)?;
    if trace.unfinished()?.is_some() {
        return Ok(true);
    }
    let known = self::branches(&store, &start.run)?;
    let mut is_whole = known.len() == branches;
    for fork in known.values() {
        is_whole &= Trace::open(&store, fork)?.unfinished()?.is_none();
    }
    Ok(!is_whole)
}

/// Begins the run of a plan, or continues it.
pub(super) fn of_run(
    store: &Shared,
    plan: &ImportPlan,
    surroundings: Box<dyn Environment>,
) -> Result<Resumed, ImportError> {
    let Some(content) = begun(store, &plan.start)? else {
        return Ok(Resumed::From(Recorder::begin(store, &plan.start, surroundings)?, None));
    };
    let (begin, _) = step::begin(TRIAL, &plan.start, trial()).map_err(Error::from)?;
    if begin.content() != content {
        return Err(ImportError::Exists(plan.start.run.clone()));
    }
    let trace = Trace::open(store, &plan.start.run)?;
    if trace.unfinished()?.is_none_or(|found| !found.is_cut()) {
        return Ok(Resumed::Ended(trace.summary().head.id));
    }
    let recorder = Recorder::resume_import(store, &plan.start.run, surroundings)?;
    Ok(Resumed::From(recorder, Some(OnRecord::of(trace))))
}

/// Continues the fork that is a branch of a source.
pub(super) fn of_branch(
    store: &Shared,
    fork: &RunName,
    surroundings: Box<dyn Environment>,
) -> Result<Resumed, ImportError> {
    let trace = Trace::open(store, fork)?;
    if trace.unfinished()?.is_none() {
        return Ok(Resumed::Ended(trace.summary().head.id));
    }
    let recorder = Recorder::resume(store, fork, surroundings)?;
    Ok(Resumed::From(recorder, Some(OnRecord::of(trace))))
}

/// The mark of a fork that is a branch of a source: its number, and the number of transitions that the source makes of it.
pub(super) fn branch(number: u64, ticks: u64) -> Value {
    Value::record([("number", Value::from(number)), (TICKS, Value::from(ticks))])
}

/// Returns the forks of a run that are branches of its source, by number.
pub(super) fn branches(
    store: &impl ReadHandle,
    run: &RunName,
) -> Result<BTreeMap<u64, RunName>, ImportError> {
    let store = store.to_handle();
    let mut found = BTreeMap::new();
    for number in 2.. {
        let Ok(name) = made_name(run.as_str(), number).parse::<RunName>() else { break };
        let Some(summary) = store.run(&name).map_err(Error::from)? else { break };
        let Some(first) = summary.first_own_tick.filter(|_| summary.parent.is_some()) else { continue };
        let trace = Trace::open(&store, &name)?;
        let is_of_run = trace.lineage().iter().rev().nth(1).is_some_and(|(owner, _)| owner == run);
        let marker = trace.record(first)?.body().value("/fork");
        let number = marker.and_then(|about| about.get(BRANCH)?.get("number")?.as_u64());
        found.extend(number.filter(|_| is_of_run).map(|number| (number, name)));
    }
    Ok(found)
}
