//! Values that a run began with because it was made by a merge: the writes of them in its sources.
//!
//! The beginning of such a run names for each place the sources whose value it took. A source may be such a run itself, so the
//! way continues until a transition wrote the place or a run began with it.
//!
//! Rule: a place whose value no source wrote has no write here, and nothing is guessed; test
//! `the_trail_goes_on_in_the_source_of_a_merge`.

use std::collections::BTreeSet;

use dendrer_kernel::predicate::Predicate;
use dendrer_object::delta::Op;
use dendrer_object::record::Record;
use dendrer_object::{Pointer, RunName};

use super::{Index, Reach, Tree, WhyNode, last_change, ops_at};
use crate::ask::bisect::{self, BisectOutcome, BisectSubject, Range};
use crate::error::Error;
use crate::run::merged;
use crate::run::timeline;
use crate::run::trace::Trace;

/// A write of a place in a run from which a merge took it.
#[derive(Debug, Clone)]
pub struct SourceWrite {
    /// The run.
    pub run: RunName,
    /// The tick.
    pub tick: u64,
    /// The place that it wrote.
    pub path: Pointer,
    /// The changes at, above or below the place that was asked about.
    pub ops: Vec<Op>,
    /// The record.
    pub record: Record,
}

/// Returns the runs from which a merge took the value of a place, each with the tick that was read; none for any other run.
pub(crate) fn sources(trace: &Trace, place: &Pointer) -> Result<Vec<(Trace, u64)>, Error> {
    let Some(merged) = merged::merge_of(trace) else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    let mut seen = BTreeSet::new();
    for seeded in merged.seeded.iter().filter(|seeded| seeded.path.overlaps(place)) {
        // Sources that share the write have the value from one record.
        for from in seeded.from.iter().filter(|from| seen.insert((seeded.path.clone(), from.record))) {
            names.push(&from.source);
        }
    }
    let decided = merged.conflicts.iter().filter(|conflict| conflict.path.overlaps(place));
    names.extend(decided.filter_map(|conflict| conflict.taken.as_ref()));
    let named = merged.sources.iter().filter(|source| names.contains(&&source.name));
    named.map(|source| Ok((Trace::open(trace.store(), &source.run)?, source.tick))).collect()
}

/// Returns the last write of a place in each source from which a merge took it.
pub fn last_writes(trace: &Trace, place: &Pointer) -> Result<Vec<SourceWrite>, Error> {
    let mut found = Vec::new();
    for (source, upto) in sources(trace, place)? {
        match last_change(&Index::new(&source, upto)?, place, upto)? {
            Some(tick) => found.push(write_at(&source, tick, place)?),
            None => found.extend(last_writes(&source, place)?),
        }
    }
    Ok(found)
}

/// Returns the tree of inputs of the last write of a place in the first source that wrote it.
pub(crate) fn tree(trace: &Trace, place: &Pointer, reach: Reach) -> Result<Option<(Trace, WhyNode)>, Error> {
    for (source, upto) in sources(trace, place)? {
        let index = Index::new(&source, upto)?;
        let Some(last) = last_change(&index, place, upto)? else {
            match tree(&source, place, reach)? {
                Some(found) => return Ok(Some(found)),
                None => continue,
            }
        };
        let agent = super::agent(&source.record(last)?);
        let mut tree = Tree { index: &index, reach, seen: BTreeSet::new(), nodes: 0, agent };
        let node = tree.node(last, Some(place), None, reach.depth)?;
        drop(index);
        return Ok(Some((source, node)));
    }
    Ok(None)
}

/// Returns the writes that a violated beginning comes from: in a source of its own the onset, else the last write of each place.
pub fn of_violation(trace: &Trace, predicate: &Predicate) -> Result<Vec<SourceWrite>, Error> {
    let judged = match predicate.is_policy() {
        true => timeline::policy::of_one_state(trace, predicate, 0)?,
        false => predicate.clone(),
    };
    let places = judged.read_set();
    let (mut found, mut asked): (Vec<SourceWrite>, BTreeSet<(RunName, u64)>) = (Vec::new(), BTreeSet::new());
    for place in places {
        for (source, upto) in sources(trace, place)? {
            if !asked.insert((source.name().clone(), upto)) {
                continue;
            }
            let question = BisectSubject::Predicate(judged.clone());
            let report = bisect::bisect(&source, &question, &Range::new(0, upto))?;
            match report.outcome {
                BisectOutcome::Onset(tick) => found.push(onset_write(&source, tick, places)?),
                BisectOutcome::Initial => found.extend(of_violation(&source, &judged)?),
                BisectOutcome::Never | BisectOutcome::Recovers(_) | BisectOutcome::Uncertain(..) => {}
            }
        }
    }
    if found.is_empty() {
        for place in places {
            found.extend(last_writes(trace, place)?);
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|write| seen.insert((write.run.clone(), write.tick, write.path.clone())));
    Ok(found)
}

fn onset_write(source: &Trace, tick: u64, places: &[Pointer]) -> Result<SourceWrite, Error> {
    let delta = source.record(tick)?.delta().unwrap_or_default();
    let written = places.iter().find(|place| delta.paths().any(|path| path.overlaps(place)));
    write_at(source, tick, written.or(places.first()).unwrap_or(&Pointer::root()))
}

fn write_at(source: &Trace, tick: u64, place: &Pointer) -> Result<SourceWrite, Error> {
    let record = source.record(tick)?;
    let (run, path, ops) = (source.name().clone(), place.clone(), ops_at(&record, place));
    Ok(SourceWrite { run, tick, path, ops, record })
}
