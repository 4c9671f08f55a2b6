//! The last write of a place with its inputs, and the list of every write of a place.
//!
//! The answers contain the record of each tick they name, so they are shown without the run.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use dendrer_kernel::causal::{SyncConflict, SyncWrite};
use dendrer_kernel::unknown::{self, Since};
use dendrer_object::delta::{Action, Op};
use dendrer_object::record::Record;
use dendrer_object::{Pointer, RunName, Value};

use crate::ask::first_seen::FirstSeen;
use crate::ask::why::sources::{self, SourceWrite};
use crate::ask::why::{self, Reach, WhyNode, WhyTree};
use crate::error::Error;
use crate::run::causal::Causal;
use crate::run::closed::closed;
use crate::run::declared;
use crate::run::trace::Trace;

/// Records by tick.
pub type Records = BTreeMap<u64, Record>;

/// The last write of a place and its inputs.
#[derive(Debug, Clone)]
pub struct WhyAnswer {
    /// The run.
    pub run: RunName,
    /// The tick at which the value is looked at.
    pub tick: u64,
    /// The place.
    pub path: Pointer,
    /// The place whose writes are followed: the list, for an item of one.
    pub followed: Pointer,
    /// The value at the place; `None` if it has no value.
    pub value: Option<Value>,
    /// The writes.
    pub why: WhyTree,
    /// The records of the tree.
    pub records: Records,
    /// The run of the tree, where the run that was asked about has the value from a merge.
    pub from: Option<RunName>,
    /// The last write of the place in each source of the merge, if no transition of the run wrote it.
    pub sources: Vec<SourceWrite>,
    /// The unknown places that the place meets, each with its cause.
    pub unknown: Vec<(Pointer, Since)>,
    /// The earliest transition with the value of the last write; `None` if no transition wrote the place.
    pub first_seen: Option<FirstSeen>,
}

/// Finds the last write of a place up to a tick; `None` if nothing ever was at the place.
pub fn why(trace: &Trace, tick: u64, path: &Pointer, reach: Reach) -> Result<Option<WhyAnswer>, Error> {
    let followed = why::followed(trace, path, tick)?;
    let mut found = why::why(trace, tick, path, reach)?;
    let state = trace.state(tick)?;
    let (value, unknown) = (path.get(&state).cloned(), unknown::met_by(&state, path));
    if value.is_none()
        && unknown.is_empty()
        && found.hidden.is_empty()
        && !why::ever_stood(trace, path, &followed, tick)?
    {
        return Ok(None);
    }
    let mut records = Records::new();
    let (mut from, mut sources, mut first_seen) = (None, Vec::new(), None);
    match &found.root {
        Some(root) => {
            tree_records(trace, root, &mut records)?;
            first_seen = Some(FirstSeen::of_write(trace, path, root.tick));
        }
        None => {
            if let Some((source, root)) = sources::tree(trace, path, reach)? {
                tree_records(&source, &root, &mut records)?;
                first_seen = Some(FirstSeen::of_write(&source, path, root.tick));
                (from, found.root) = (Some(source.name().clone()), Some(root));
                sources = sources::last_writes(trace, path)?;
            }
        }
    }
    let (run, path) = (trace.name().clone(), path.clone());
    let why = found;
    Ok(Some(WhyAnswer { run, tick, path, followed, value, why, records, from, sources, unknown, first_seen }))
}

/// What is asked about the writes of a place.
#[derive(Debug, Clone)]
pub struct BacktrackTerms {
    /// The place.
    pub path: Pointer,
    /// The first tick.
    pub from: u64,
    /// The last tick.
    pub to: u64,
    /// The only agent whose writes are listed.
    pub agent: Option<String>,
    /// The causal path along which writes are listed; `None` for all transitions.
    pub along: Option<CausalPath>,
    /// How many writes are listed at most; 0 for all.
    pub limit: usize,
    /// Whether the values before and after each write are read.
    pub values: bool,
    /// Whether the inputs of each write are looked up, one step down.
    pub inputs: bool,
    /// Whether the list continues in the runs from which a merge took the place.
    pub into_sources: bool,
}

/// The causal ancestors of a node.
#[derive(Debug, Clone)]
pub struct CausalPath {
    /// The agent of the node.
    pub agent: String,
    /// The ticks of the ancestors, the node included.
    pub ticks: BTreeSet<u64>,
    /// Units that sync nodes among them put together, with the value that they left.
    pub merged: Vec<SyncWrite>,
    /// The conflicts that these nodes kept or decided.
    pub conflicts: Vec<SyncConflict>,
    /// The unknown places of the state behind the node.
    pub unknown: Vec<(Pointer, Since)>,
}

impl CausalPath {
    /// The path to the newest transition of an agent up to a tick.
    pub fn of(trace: &Trace, agent: &str, upto: u64) -> Result<CausalPath, Error> {
        let causal = Causal::of(trace, upto)?;
        let head = causal.head(trace, agent, upto)?;
        let ticks: BTreeSet<u64> = causal.graph.ancestors(head).into_iter().collect();
        let conflicts = causal.graph.conflicts().iter().filter(|conflict| ticks.contains(&conflict.at));
        let conflicts = conflicts.cloned().collect();
        let merged = causal.graph.merged().iter().filter(|merged| ticks.contains(&merged.at));
        // A unit that the node made unknown after all was left with no value, and was not removed.
        let merged = merged.filter_map(|merged| {
            let (_, value) = causal.graph.writes(merged.at).find(|(unit, _)| **unit == merged.unit)?;
            Some(SyncWrite { value, ..merged.clone() })
        });
        let (merged, unknown) = (merged.collect(), causal.graph.unknown(head));
        Ok(CausalPath { agent: agent.to_owned(), ticks, merged, conflicts, unknown })
    }

    /// The change of a sync node at a place; `None` if it left what its agent had, and nothing was in conflict.
    fn change(&self, merged: &SyncWrite, place: &Pointer) -> Option<Op> {
        let set = |path: &Pointer, value: Option<Value>| match value {
            Some(value) => Op::set(path.clone(), value),
            None => Op { action: Action::Remove, path: path.clone(), value: None },
        };
        let SyncWrite { at, unit, value, before, .. } = merged;
        if !unit.overlaps(place) {
            return None;
        }
        let below: Vec<_> = place.tokens().skip(unit.tokens().count()).collect();
        if below.is_empty() {
            return Some(set(unit, value.clone()));
        }
        let below = Pointer::of(below.iter().map(|token| &**token));
        let of = |value: &Option<Value>| value.as_ref().and_then(|value| below.get(value).cloned());
        let is_same = of(value) == of(before) && self.conflicts_at(*at, place).is_empty();
        (!is_same).then(|| set(place, of(value)))
    }

    /// The conflicts at a tick that concern a place.
    fn conflicts_at(&self, tick: u64, place: &Pointer) -> Vec<SyncConflict> {
        let here = |one: &&SyncConflict| one.at == tick && one.path.overlaps(place);
        self.conflicts.iter().filter(here).cloned().collect()
    }
}

/// The writes of a place.
#[derive(Debug, Clone)]
pub struct Backtracked {
    /// The run.
    pub run: RunName,
    /// The place.
    pub path: Pointer,
    /// The place whose writes are listed: the list, for an item of one.
    pub followed: Pointer,
    /// The first and the last tick that were looked at.
    pub range: (u64, u64),
    /// How many writes were found.
    pub total: usize,
    /// The newest of them, newest first.
    pub writes: Vec<BacktrackedWrite>,
    /// Ticks whose change was erased or withheld: they may have written there.
    pub hidden: Vec<u64>,
    /// Ticks of writes whose agent was erased or withheld, if one agent was asked for.
    pub nameless: Vec<u64>,
    /// The records of the writes and of their inputs.
    pub records: Records,
    /// The unknown places that the place meets at the last tick, each with its cause: what should have been written there.
    pub unknown: Vec<(Pointer, Since)>,
}

/// One write of a place.
#[derive(Debug, Clone)]
pub struct BacktrackedWrite {
    /// The tick.
    pub tick: u64,
    /// The operations at, above or below the place.
    pub ops: Vec<Op>,
    /// The values before and after, if they were asked for and are known.
    pub sides: Option<(Option<Value>, Option<Value>)>,
    /// The inputs, if they were asked for.
    pub inputs: Option<WhyNode>,
    /// The run and its records, where a merge took the value from it.
    pub from: Option<(RunName, Records)>,
    /// The conflicts at the place that the write, of a sync node, kept or decided.
    pub conflicts: Vec<SyncConflict>,
}

/// Lists the writes of a place, newest first; `None` if nothing ever was at the place.
pub fn backtrack(trace: &Trace, question: &BacktrackTerms) -> Result<Option<Backtracked>, Error> {
    let &BacktrackTerms { ref path, from, to, .. } = question;
    declared::agents(trace, question.agent.as_deref())?;
    let followed = why::followed(trace, path, to)?;
    let mut found = why::writes(trace, &followed, from, to)?;
    if let Some(along) = &question.along {
        found.writes.retain(|write| along.ticks.contains(&write.tick));
        found.hidden.retain(|tick| along.ticks.contains(tick));
        // What a sync node decided is its write.
        for merged in &along.merged {
            let Some(op) = along.change(merged, &followed) else { continue };
            match found.writes.binary_search_by_key(&merged.at, |write| write.tick) {
                Ok(at) => found.writes[at].ops.insert(0, op),
                Err(at) => found.writes.insert(at, why::Write { tick: merged.at, ops: vec![op] }),
            }
        }
    }
    let (mut writes, mut nameless, mut total) = (Vec::new(), Vec::new(), 0);
    let mut records = Records::new();
    let agent_path = Pointer::of(["agent_id"]);
    for why::Write { tick, ops } in found.writes.into_iter().rev() {
        let record = trace.record(tick)?;
        if let Some(wanted) = &question.agent {
            if closed(&record).iter().any(|pointer| pointer.overlaps(&agent_path)) {
                nameless.push(tick);
            }
            let agent = record.body().value("/agent_id");
            if agent.as_ref().and_then(Value::as_str).unwrap_or_default() != wanted {
                continue;
            }
        }
        total += 1;
        if question.limit == 0 || writes.len() < question.limit {
            records.insert(tick, record);
            let conflicts = question.along.as_ref().map(|along| along.conflicts_at(tick, &followed));
            let conflicts = conflicts.unwrap_or_default();
            writes.push(BacktrackedWrite { tick, ops, sides: None, inputs: None, from: None, conflicts });
        }
    }
    nameless.sort_unstable();
    let unknown = match &question.along {
        None => unknown::met_by(&trace.state(to)?, path),
        Some(along) => along.unknown.iter().filter(|(place, _)| place.overlaps(path)).cloned().collect(),
    };
    let known = found.hidden.is_empty() && nameless.is_empty() && unknown.is_empty();
    if known && !why::ever_stood(trace, path, &followed, to)? {
        return Ok(None);
    }
    if let (true, Some(first)) = (question.values, writes.last().map(|write| write.tick)) {
        let mut values = why::values(trace, path, &followed, first, to)?;
        writes.iter_mut().for_each(|write| write.sides = values.remove(&write.tick));
    }
    if question.inputs {
        let ticks: Vec<u64> = writes.iter().map(|write| write.tick).collect();
        let nodes = why::inputs_of(trace, &followed, &ticks)?;
        for (write, node) in writes.iter_mut().zip(nodes) {
            tree_records(trace, &node, &mut records)?;
            write.inputs = Some(node);
        }
    }
    if question.into_sources && question.along.is_none() {
        for (source, upto) in sources::sources(trace, path)? {
            let limit = match question.limit {
                0 => 0,
                limit if limit > writes.len() => limit - writes.len(),
                // One more write shows that there are more.
                _ => 1,
            };
            let is_full = question.limit > 0 && writes.len() >= question.limit;
            let terms = BacktrackTerms { from: 1, to: upto, limit, ..question.clone() };
            let Some(theirs) = backtrack(&source, &terms)? else { continue };
            total += theirs.total;
            let taken = theirs.writes.into_iter().filter(|_| !is_full);
            writes.extend(taken.map(|write| {
                let from = write.from.clone().or_else(|| Some((theirs.run.clone(), theirs.records.clone())));
                BacktrackedWrite { from, ..write }
            }));
        }
    }
    Ok(Some(Backtracked {
        run: trace.name().clone(),
        path: path.clone(),
        followed,
        range: (from, to),
        total,
        writes,
        hidden: found.hidden,
        nameless,
        records,
        unknown,
    }))
}

/// Reads the records of a tree.
fn tree_records(trace: &Trace, node: &WhyNode, records: &mut Records) -> Result<(), Error> {
    add_records(trace, [node.tick], records)?;
    node.inputs.iter().try_for_each(|input| tree_records(trace, input, records))
}

/// Reads the records of ticks that were not read before.
pub fn add_records(
    trace: &Trace,
    ticks: impl IntoIterator<Item = u64>,
    records: &mut Records,
) -> Result<(), Error> {
    for tick in ticks {
        if let Entry::Vacant(place) = records.entry(tick) {
            place.insert(trace.record(tick)?);
        }
    }
    Ok(())
}
