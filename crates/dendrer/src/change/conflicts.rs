//! The conflicts of a merged run: how each is decided now, and what a decision wrote.
//!
//! [`conflicts`] reads and never writes; [`decide`] is [`merge::resolve`] with its record read back.

use std::sync::Arc;

use dendrer_object::record::Record;
use dendrer_object::{Pointer, RunName, Value};
use dendrer_store::Shared;

use super::merge::{self, Conflict, ConflictStanding, MergeError, Merged, Resolution};
use crate::recorder::Environment;
use crate::{Error, Trace};

/// The conflicts of a merged run at its last tick.
#[derive(Debug, Clone)]
pub struct ConflictsAnswer {
    /// The run.
    pub run: RunName,
    /// Its last tick.
    pub tick: u64,
    /// The merge that the run begins with.
    pub merged: Merged,
    /// How many of all conflicts are open.
    pub open: u64,
    /// The conflicts that were asked for, in the order of the record, and how each is decided.
    pub items: Vec<(Conflict, ConflictStanding)>,
}

/// Lists the conflicts of a merged run, or the one at a place. A place without a conflict is
/// [`MergeError::NoConflict`].
pub fn conflicts(trace: &Trace, only: Option<&Pointer>) -> Result<ConflictsAnswer, Error> {
    let merged = merge::merged(trace)?;
    let standings = merge::standings(trace, &merged)?;
    let open = standings.iter().filter(|standing| **standing == ConflictStanding::Open).count() as u64;
    let all = merged.conflicts.iter().cloned().zip(standings);
    let items: Vec<_> = all.filter(|(conflict, _)| only.is_none_or(|path| conflict.path == *path)).collect();
    if let (Some(path), []) = (only, &items[..]) {
        return Err(MergeError::NoConflict { run: trace.name().clone(), path: path.clone() }.into());
    }
    Ok(ConflictsAnswer { run: trace.name().clone(), tick: trace.tip(), merged, open, items })
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
    /// The value at the place.
    pub value: Value,
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
        value: value.unwrap_or(Value::Null),
        reason: Arc::clone(reason),
        record,
        dry_run,
    })
}
