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
    /// Conflicts that sync nodes of the run kept, as far as they were asked for.
    pub sync: Vec<SyncItem>,
    /// How many conflicts there are in all.
    pub total: u64,
}

/// Lists the conflicts of a run, or those at a place: between the runs that it was merged from, and those that its sync nodes kept.
/// A place without a conflict is [`MergeError::NoConflict`], one of a run that has neither [`MergeError::NotMerged`].
pub fn conflicts(trace: &Trace, only: Option<&Pointer>) -> Result<ConflictsAnswer, Error> {
    let mut sync = merge::sync_conflicts(trace)?;
    let merged = match merge::merged(trace) {
        Ok(merged) => Some(merged),
        Err(Error::Merge(MergeError::NotMerged(_))) if only.is_none() || !sync.is_empty() => None,
        Err(error) => return Err(error),
    };
    let standings =
        merged.as_ref().map(|merged| merge::standings(trace, merged)).transpose()?.unwrap_or_default();
    let is_open = |standing: &&ConflictStanding| **standing == ConflictStanding::Open;
    let open = standings.iter().chain(sync.iter().map(|item| &item.standing)).filter(is_open).count() as u64;
    let all = merged.iter().flat_map(|merged| merged.conflicts.iter().cloned()).zip(standings);
    let all: Vec<_> = all.collect();
    let total = (all.len() + sync.len()) as u64;
    let is_asked = |path: &Pointer| only.is_none_or(|only| only == path);
    let items: Vec<_> = all.into_iter().filter(|(conflict, _)| is_asked(&conflict.path)).collect();
    sync.retain(|item| is_asked(&item.conflict.path));
    if let (Some(path), true) = (only, items.is_empty() && sync.is_empty()) {
        return Err(MergeError::NoConflict { run: trace.name().clone(), path: path.clone() }.into());
    }
    Ok(ConflictsAnswer { run: trace.name().clone(), tick: trace.tip(), merged, open, items, sync, total })
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
