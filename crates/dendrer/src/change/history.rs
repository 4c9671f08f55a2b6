//! What is in the history of a run, and what is in it already of what is proposed again (design, section 4).

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer_object::record::Record;
use dendrer_object::{Digest, ORIGIN, RunName, Value};

use crate::error::Error;
use crate::run::merged::merge_of;
use crate::run::trace::Trace;

pub use crate::run::merged::OwnedRecord;

/// For each run of a history, up to which tick it is part of it.
pub(super) type History = BTreeMap<RunName, u64>;

/// Adds what is in the history of a moment: its run, what that was forked from, and the sources of a merge.
pub(super) fn add_history(history: &mut History, trace: &Trace, tick: u64) -> Result<(), Error> {
    let lineage = &trace.lineage()[..=trace.segment(tick)];
    for (run, end) in lineage {
        let upto = history.entry(run.clone()).or_default();
        *upto = tick.min(*end).max(*upto);
    }
    let Some(merged) = merge_of(trace).filter(|merged| merged.is_whole) else { return Ok(()) };
    for source in merged.sources {
        let is_known = history.get(&source.run).is_some_and(|upto| *upto >= source.tick);
        // What is not in this store any more is named by the record and cannot be read.
        let Some(trace) = Trace::open(trace.store(), &source.run).ok().filter(|_| !is_known) else {
            continue;
        };
        add_history(history, &trace, source.tick)?;
    }
    Ok(())
}

/// Returns the record that a transition repeats: the one that was first, or the transition itself.
pub(super) fn origin_of(record: &Record) -> Digest {
    let origin = record.body().value(&format!("/{ORIGIN}"));
    origin.and_then(|origin: Value| origin.as_str()?.parse().ok()).unwrap_or_else(|| record.id())
}

/// Returns what is in the history of a moment, by the record that was first. With `only`, the search ends with that one.
pub(super) fn origins(
    trace: &Trace,
    tick: u64,
    only: Option<Digest>,
) -> Result<BTreeMap<Digest, OwnedRecord>, Error> {
    let mut history = History::new();
    add_history(&mut history, trace, tick)?;
    let mut found = BTreeMap::new();
    // What is in the history as it is needs no search.
    if let Some(first) = only
        && let Some(position) = trace.store().find(&first)?
        && let Some(record) = trace.store().get(position)?
        && let (Some(run), Some(at)) = (record.header().run.clone(), record.header().tick)
        && history.get(&run).is_some_and(|upto| *upto >= at)
    {
        found.insert(first, OwnedRecord { run, tick: at, record: first });
        return Ok(found);
    }
    for (run, upto) in history {
        let opened = (run != *trace.name()).then(|| Trace::open(trace.store(), &run)).transpose()?;
        let owner = opened.as_ref().unwrap_or(trace);
        let from = match owner.lineage() {
            [.., (_, shared), _] => shared + 1,
            _ => 1,
        };
        owner.for_each(from, upto, &mut |tick, record| {
            let first = origin_of(&record);
            if only.is_none_or(|only| only == first) {
                let taken = OwnedRecord { run: run.clone(), tick, record: record.id() };
                found.entry(first).or_insert(taken);
            }
            match only.is_some() && !found.is_empty() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
    }
    Ok(found)
}
