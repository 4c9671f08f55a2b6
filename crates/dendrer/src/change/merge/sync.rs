//! Conflicts that sync nodes kept or decided: agents of one run left different values at one place (forensic debugger
//! specification, 3.3).

use std::sync::Arc;

use dendrer_kernel::causal::{SyncConflict, SyncSide, SyncStrategy};
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::record::{Link, Record, Rel};
use dendrer_object::{Intent, Value};

use super::resolve::{ConflictStanding, Resolution, SideName, VALUE, decision};
use crate::error::{Error, MergeError};
use crate::run::causal::Causal;
use crate::run::trace::Trace;

/// A conflict that a sync node kept or decided, and how it is decided now.
#[derive(Debug, Clone, PartialEq)]
pub struct SyncItem {
    /// The conflict.
    pub conflict: SyncConflict,
    /// How it is decided.
    pub standing: ConflictStanding,
}

impl SyncItem {
    /// Whether a strategy took one side; else all were kept.
    pub fn is_decided(&self) -> bool {
        self.conflict.strategy != SyncStrategy::Manual
    }
}

/// The name of the beginning of a run among the sides of a conflict.
const BEGINNING: &str = "";

fn rank(standing: &ConflictStanding) -> u64 {
    match standing {
        ConflictStanding::Open => 2,
        ConflictStanding::Taken(_) => 1,
        _ => 0,
    }
}

/// Lists the conflicts that sync nodes of a run kept or decided, in order of ticks. One that was kept is settled by the first
/// transition that saw it and wrote the unit, a decision by the first one that saw it and wrote the place. Sides that several
/// sync nodes met are one conflict, which is open as long as it is for one of them.
pub fn sync_conflicts(trace: &Trace) -> Result<Vec<SyncItem>, Error> {
    let mut items: Vec<SyncItem> = Vec::new();
    for item in each_conflict(trace)? {
        match items.iter_mut().find(|known| is_same(&known.conflict, &item.conflict)) {
            Some(known) if rank(&known.standing) >= rank(&item.standing) => {}
            Some(known) => *known = item,
            None => items.push(item),
        }
    }
    Ok(items)
}

/// As [`sync_conflicts`], each sync node by itself.
fn each_conflict(trace: &Trace) -> Result<Vec<SyncItem>, Error> {
    let causal = Causal::of(trace, trace.tip())?;
    let mut items = Vec::new();
    for conflict in causal.graph.conflicts() {
        let standing = match settled(trace, &causal, conflict)? {
            Some((tick, _)) if tick == conflict.at => ConflictStanding::Written(tick),
            Some((tick, record)) => standing(&record, tick, conflict),
            None => match conflict.winner() {
                Some(side) => ConflictStanding::Taken(side.agent.clone().unwrap_or_else(|| BEGINNING.into())),
                None => ConflictStanding::Open,
            },
        };
        items.push(SyncItem { conflict: conflict.clone(), standing });
    }
    Ok(items)
}

/// The first transition that saw a conflict and wrote its place.
fn settled(trace: &Trace, causal: &Causal, conflict: &SyncConflict) -> Result<Option<(u64, Record)>, Error> {
    let graph = &causal.graph;
    if conflict.is_written {
        return Ok(Some((conflict.at, trace.record(conflict.at)?)));
    }
    let unit = conflict.unit();
    let writes = |tick: &u64| {
        graph.reaches(conflict.at, *tick) && graph.written(*tick).any(|written| *written == unit)
    };
    for tick in (conflict.at + 1..=graph.tip()).filter(writes) {
        let record = trace.record(tick)?;
        let is_place = || {
            let delta = record.delta().unwrap_or_default();
            let again = graph.conflicts().iter().filter(|other| other.at == tick).map(|other| &other.path);
            delta.paths().chain(again).any(|path| path.overlaps(&conflict.path))
        };
        if conflict.taken.is_none() || is_place() {
            return Ok(Some((tick, record)));
        }
    }
    Ok(None)
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

/// The decision of the newest conflict at a place that is open, else of one that a strategy decided. It merges the sync node and
/// puts a value there.
pub(super) fn decide_sync(trace: &Trace, resolution: &Resolution) -> Result<(Intent, Option<bool>), Error> {
    let Resolution { path, take, reason, agent } = resolution;
    let here = sync_conflicts(trace)?.into_iter().filter(|item| item.conflict.path == *path);
    let Some(item) = here.max_by_key(|item| (rank(&item.standing), item.conflict.at)) else {
        return Err(MergeError::NoConflict { run: trace.name().clone(), path: path.clone() }.into());
    };
    // The choice of a strategy can be taken back.
    if !matches!(item.standing, ConflictStanding::Taken(_)) {
        item.standing.refuse_settled(path, "the strategy")?;
    }
    let conflict = &item.conflict;
    let names = conflict.values.iter().enumerate();
    let names: Vec<SideName<'_>> = names
        .filter_map(|(side, SyncSide { agent, .. })| {
            Some(SideName { kind: "agent", name: agent.as_deref()?, side })
        })
        .collect();
    let values: Vec<&Option<Value>> = conflict.values.iter().map(|side| &side.value).collect();
    let (side, value) = take.chosen(&names, &values)?;
    let agent_taken = side.and_then(|side| conflict.values[side].agent.clone());
    let taken: Arc<str> = agent_taken.unwrap_or_else(|| VALUE.into());
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
    // Each sync node that met these sides is decided.
    for other in each_conflict(trace)?.iter().filter(|other| is_same(&other.conflict, conflict)) {
        if matches!(other.standing, ConflictStanding::Open | ConflictStanding::Taken(_)) {
            let hash = trace.record(other.conflict.at)?.id();
            intent.links.push(Link { rel: Rel::Merges, hash });
        }
    }
    Ok((intent, None))
}

/// Whether two sync nodes met the same sides of a place.
fn is_same(a: &SyncConflict, b: &SyncConflict) -> bool {
    a.path == b.path && a.values == b.values && a.taken == b.taken
}
