//! Conflicts that sync nodes kept: agents of one run left different values in one unit, and no strategy took one (forensic debugger
//! specification, 3.3).

use std::sync::Arc;

use dendrer_kernel::causal::{SyncConflict, SyncStrategy};
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::record::{Link, Record, Rel};
use dendrer_object::{Intent, Value};

use super::resolve::{ConflictStanding, Resolution, Take, VALUE, decision};
use crate::error::{Error, MergeError};
use crate::run::causal::Causal;
use crate::run::trace::Trace;

/// A conflict that a sync node kept, and how it is decided now.
#[derive(Debug, Clone, PartialEq)]
pub struct SyncItem {
    /// The conflict.
    pub conflict: SyncConflict,
    /// How it is decided.
    pub standing: ConflictStanding,
}

/// Lists the conflicts that sync nodes of a run kept, in order of ticks. One is settled by the first transition that saw it and
/// wrote the unit.
pub fn sync_conflicts(trace: &Trace) -> Result<Vec<SyncItem>, Error> {
    let causal = Causal::of(trace, trace.tip())?;
    let kept = causal.graph.conflicts().iter().filter(|conflict| conflict.strategy == SyncStrategy::Manual);
    let mut items = Vec::new();
    for conflict in kept {
        let settles = |tick: &u64| {
            causal.graph.reaches(conflict.at, *tick)
                && causal.graph.written(*tick).any(|unit| *unit == conflict.path)
        };
        if conflict.is_written {
            items.push(SyncItem {
                conflict: conflict.clone(),
                standing: ConflictStanding::Written(conflict.at),
            });
            continue;
        }
        let standing = match (conflict.at + 1..=causal.graph.tip()).find(settles) {
            None => ConflictStanding::Open,
            Some(tick) => standing(&trace.record(tick)?, tick, conflict),
        };
        items.push(SyncItem { conflict: conflict.clone(), standing });
    }
    Ok(items)
}

fn standing(record: &Record, tick: u64, conflict: &SyncConflict) -> ConflictStanding {
    let said = record.body().value("/intent/conflict");
    let text = |name: &str| said.as_ref()?.get(name)?.as_str().map(Arc::<str>::from);
    match (text("path"), text("take"), text("reason")) {
        (Some(path), Some(take), Some(reason)) if *path == *conflict.path.as_str() => {
            ConflictStanding::Resolved(tick, take, reason)
        }
        _ => ConflictStanding::Written(tick),
    }
}

/// The decision of the newest open conflict that a sync node kept at a place. It merges the sync node and puts a value there.
pub(super) fn decide_sync(trace: &Trace, resolution: &Resolution) -> Result<(Intent, Option<bool>), Error> {
    let Resolution { path, take, reason, agent } = resolution;
    let here = sync_conflicts(trace)?.into_iter().filter(|item| item.conflict.path == *path);
    let Some(item) = here.max_by_key(|item| (item.standing == ConflictStanding::Open, item.conflict.at))
    else {
        return Err(MergeError::NoConflict { run: trace.name().clone(), path: path.clone() }.into());
    };
    item.standing.refuse_settled(path, "the strategy")?;
    let conflict = &item.conflict;
    let (taken, value): (Arc<str>, Option<Value>) = match take {
        Take::Value(value) => (VALUE.into(), Some(value.clone())),
        Take::Side(name) => {
            let side = conflict.values.iter().find(|(_, agent, _)| agent.as_deref() == Some(name));
            let (_, _, value) = side.ok_or_else(|| MergeError::NoSide {
                take: name.clone(),
                sides: agents(conflict).join(", "),
            })?;
            (name.as_str().into(), value.clone())
        }
    };
    let mut intent = decision(path, reason, &taken, agent);
    let op = |value: Option<Value>| match value {
        Some(value) => Op::set(path.clone(), value),
        None => Op { action: Action::Remove, path: path.clone(), value: None },
    };
    // The state of the run may have nothing there, where one agent removed it.
    let is_there = path.get(&trace.state(trace.tip())?).is_some();
    let ops = match value {
        None if !is_there => vec![op(Some(Value::Null)), op(None)],
        value => vec![op(value)],
    };
    intent.delta = Some(Delta(ops));
    let at = trace.record(conflict.at)?.id();
    intent.links.push(Link { rel: Rel::Merges, hash: at });
    Ok((intent, None))
}

/// The agents whose values are in conflict.
fn agents(conflict: &SyncConflict) -> Vec<String> {
    conflict.values.iter().filter_map(|(_, agent, _)| agent.as_deref().map(str::to_owned)).collect()
}
