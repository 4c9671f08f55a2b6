//! The conflicts of a merged run: how each is decided now, and what a decision wrote.
//!
//! [`conflicts`] reads and never writes; [`decide`] is [`merge::resolve`] with its record read back.

use std::sync::Arc;

use dendrer_object::record::Record;
use dendrer_object::{Pointer, RunName, Value};
use dendrer_store::Shared;

use super::merge::{self, Conflict, ConflictStanding, MergeError, Merged, Resolution, SyncItem};
use crate::error::Error;
use crate::record::recorder::Environment;
use crate::run::trace::Trace;

pub mod question;

/// The conflicts of a merged run at its last tick.
#[derive(Debug, Clone)]
pub struct ConflictsAnswer {
    /// The run.
    pub run: RunName,
    /// Its last tick.
    pub tick: u64,
    /// The merge that the run begins with, if it was made by one.
    pub merged: Option<Merged>,
    /// How many of all conflicts are open.
    pub open: u64,
    /// The conflicts that were asked for, in the order of the record, and how each is decided.
    pub items: Vec<(Conflict, ConflictStanding)>,
    /// Conflicts that sync nodes of the run kept or decided, as far as they were asked for.
    pub sync: Vec<SyncItem>,
    /// How many conflicts there are in all, without what strategies of sync nodes decided.
    pub total: u64,
    /// How many places strategies decided: of the merge that the run begins with, and of its sync nodes.
    pub decided: u64,
    /// Whether decisions of strategies were asked for.
    pub of_strategies: bool,
}

/// The conflicts that are asked for.
#[derive(Debug, Clone, Copy)]
pub enum AskedConflicts<'p> {
    /// Those of the merge that a run begins with, and those that sync nodes kept.
    Kept,
    /// Those that a strategy decided.
    Decided,
    /// All at a place.
    At(&'p Pointer),
}

/// Lists conflicts of a run: between the runs that it was merged from, and between agents. A place without a conflict is
/// [`MergeError::NoConflict`], one of a run that has neither [`MergeError::NotMerged`].
pub fn conflicts(trace: &Trace, asked: AskedConflicts<'_>) -> Result<ConflictsAnswer, Error> {
    let mut sync = merge::sync_conflicts(trace)?;
    let merged = match merge::merged(trace) {
        Ok(merged) => Some(merged),
        Err(Error::Merge(MergeError::NotMerged(_)))
            if !matches!(asked, AskedConflicts::At(_)) || !sync.is_empty() =>
        {
            None
        }
        Err(error) => return Err(error),
    };
    let standings =
        merged.as_ref().map(|merged| merge::standings(trace, merged)).transpose()?.unwrap_or_default();
    let is_open = |standing: &&ConflictStanding| **standing == ConflictStanding::Open;
    let open = standings.iter().chain(sync.iter().map(|item| &item.standing)).filter(is_open).count() as u64;
    let all = merged.iter().flat_map(|merged| merged.conflicts.iter().cloned()).zip(standings);
    let mut items: Vec<_> = all.collect();
    let by_sync = sync.iter().filter(|item| item.is_decided()).count();
    let total = (items.len() + sync.len() - by_sync) as u64;
    let by_merge = items.iter().filter(|(conflict, _)| conflict.taken.is_some()).count();
    items.retain(|(conflict, _)| match asked {
        AskedConflicts::Kept => true,
        AskedConflicts::Decided => conflict.taken.is_some(),
        AskedConflicts::At(path) => conflict.path == *path,
    });
    sync.retain(|item| match asked {
        AskedConflicts::Kept => !item.is_decided(),
        AskedConflicts::Decided => item.is_decided(),
        AskedConflicts::At(path) => item.conflict.path == *path,
    });
    if let (AskedConflicts::At(path), true) = (asked, items.is_empty() && sync.is_empty()) {
        return Err(MergeError::NoConflict { run: trace.name().clone(), path: path.clone() }.into());
    }
    // Each conflict at one place counts.
    let total = match asked {
        AskedConflicts::At(_) => (items.len() + sync.len()) as u64,
        AskedConflicts::Kept | AskedConflicts::Decided => total,
    };
    let (run, tick, decided) = (trace.name().clone(), trace.tip(), (by_merge + by_sync) as u64);
    let of_strategies = matches!(asked, AskedConflicts::Decided);
    Ok(ConflictsAnswer { run, tick, merged, open, items, sync, total, decided, of_strategies })
}

/// A conflict that was decided, or would be.
#[derive(Debug, Clone)]
pub struct ResolvedConflict {
    /// The run.
    pub run: RunName,
    /// The place.
    pub path: Pointer,
    /// The side that was taken, or the word for another value; `None` if the record does not name it.
    pub take: Option<String>,
    /// The value at the place; `None` if it is left empty.
    pub value: Option<Value>,
    /// The reason.
    pub reason: Arc<str>,
    /// The transition; of a dry run, the one that would be written.
    pub record: Record,
    /// Whether nothing was written.
    pub dry_run: bool,
}

impl ResolvedConflict {
    /// Returns the tick of the transition; `None` of a dry run.
    pub fn tick(&self) -> Option<u64> {
        self.record.header().tick.filter(|_| !self.dry_run)
    }
}

/// Decides a conflict as [`merge::resolve`] does, and reads from the record what was decided.
pub fn decide(
    store: &Shared,
    run: &RunName,
    resolution: &Resolution,
    surroundings: Box<dyn Environment>,
    dry_run: bool,
) -> Result<ResolvedConflict, Error> {
    let record = merge::resolve(store, run, resolution, surroundings, dry_run)?;
    let conflict = record.body().value("/intent/conflict");
    let take = conflict.as_ref().and_then(|conflict| conflict.get("take")?.as_str());
    let delta = record.body().value("/delta");
    let value = delta.as_ref().and_then(Value::as_array).and_then(|ops| ops.get(0)?.get("value").cloned());
    let Resolution { path, reason, .. } = resolution;
    Ok(ResolvedConflict {
        run: run.clone(),
        path: path.clone(),
        take: take.map(str::to_owned),
        value,
        reason: Arc::clone(reason),
        record,
        dry_run,
    })
}
