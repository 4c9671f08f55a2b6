//! Where a value came from, and what came of a transition: every write of a place, the inputs of a write as a tree,
//! and what followed from an onset.
//!
//! That a transition wrote somewhere is exact: its delta is on record. What it rested on is known only as far as
//! somebody said so. `add` and `append` rest on what stood there; a link says what asked for a transition or what it
//! rests on; the rules of a pack say what they may look at. A newcomer would break one rule: what is not known of
//! reads is said to be unknown, and never filled in by what merely came before.

pub mod action;
pub mod gather;
pub mod question;
pub mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use dendrer_kernel::pack::Pack;
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::record::{Record, Rel};
use dendrer_object::{Pointer, Value};

use crate::ask::show::{PlaceChange, changes};
use crate::error::Error;
pub use crate::run::timeline::{ValueSides, values};
use crate::run::trace::{Trace, read};

/// How many transitions behind an onset are looked at for what followed from it.
pub const CHAIN_REACH: u64 = 1_000;

/// How many nodes a tree of inputs may have.
pub const NODES_MAX: usize = 1_000;

/// A write of a place: which transition, where, and what it did.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The tick.
    pub tick: u64,
    /// The changes of that transition at, above or below the place.
    pub ops: Vec<Op>,
}

/// All writes of a place in a range of ticks.
#[derive(Debug, Clone, PartialEq)]
pub struct Writes {
    /// In order of tick.
    pub writes: Vec<Write>,
    /// Ticks of which the change was erased or withheld: they may have written there.
    pub hidden: Vec<u64>,
}

/// Why something is an input of a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// A change built on the value that stood there: certain.
    StoodThere,
    /// A recorded link says so, as the recorder of the line understood it.
    Link(Rel),
    /// A rule of the pack looked there when it was run again, and may rest on it.
    MayRead(Pointer),
    /// A rule looked at the whole of a place in which this is the newest write: others in it may count as well.
    MayReadWhole(Pointer),
}

/// A transition in a tree of inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct WhyNode {
    /// The tick.
    pub tick: u64,
    /// The place it is here for, and what it did there; `None` for one that a link led to.
    pub wrote: Option<(Pointer, Vec<Op>)>,
    /// Why it is here; `None` for the write that was asked about.
    pub because: Option<Because>,
    /// What it rests on.
    pub inputs: Vec<WhyNode>,
    /// Why its inputs are not listed; `None` if they are.
    pub stops: Option<Stops>,
}

dendrer_object::words! {
    /// Reason why a tree has no further inputs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Stops {
        /// The depth that was asked for is reached.
        Depth = "depth",
        /// The transition is in the tree already, with its inputs.
        Above = "above",
        /// The transition is another agent's.
        OtherAgent = "other agent",
        /// The tree is as large as it may be.
        Size = "size",
        /// A delta contains what it wrote, not what it read, and no link was recorded.
        Unknown = "unknown",
        /// A rule wrote it and looked at nothing that any transition wrote.
        Nothing = "nothing",
    }
}

/// The answer to why a place holds what it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct WhyTree {
    /// The last write and its inputs; `None` if no transition wrote there.
    pub root: Option<WhyNode>,
    /// Whether something stood there when the run began.
    pub initial: Option<Value>,
    /// Ticks of which the change was erased or withheld, later than the last known write or earlier.
    pub hidden: Vec<u64>,
    /// Whether rules of a pack say what is read.
    pub rules: bool,
}

/// Where to look for inputs, and how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// How many steps down.
    pub depth: usize,
    /// Whether to go on from transitions of other agents.
    pub cross_agent: bool,
}

/// One link of the chain behind an onset.
#[derive(Debug, Clone, PartialEq)]
pub struct Follower {
    /// The tick.
    pub tick: u64,
    /// What it rests on, by tick; empty for what only comes after.
    pub because: Vec<(u64, Because)>,
    /// What it changed in the state; `None` if a value was erased or withheld, so that is not known.
    pub changes: Option<Vec<PlaceChange>>,
}

/// What followed from an onset, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// In order of tick, the onset first.
    pub members: Vec<Follower>,
    /// The last tick that was looked at.
    pub looked_to: u64,
    /// Whether there was more than was asked for.
    pub more: bool,
    /// Whether rules of a pack say what is read.
    pub rules: bool,
}

/// Every write of a run up to a tick, read from the records: an index that lacks a row would hide a write.
struct Index<'t> {
    trace: &'t Trace,
    pack: Option<Pack>,
    /// The places written at each tick.
    read: BTreeMap<u64, Vec<Pointer>>,
    hidden: Vec<u64>,
}

impl<'t> Index<'t> {
    fn new(trace: &'t Trace, last: u64) -> Result<Index<'t>, Error> {
        trace.confirm_tip()?;
        let pack = crate::run::pack::of_run(trace)?;
        let mut index = Index { trace, pack, read: BTreeMap::new(), hidden: Vec::new() };
        trace.for_each(1, last, &mut |tick, record| {
            match record.delta() {
                Some(delta) if delta.0.is_empty() => {}
                Some(delta) => drop(index.read.insert(tick, delta.paths().cloned().collect())),
                None => index.hidden.push(tick),
            }
            ControlFlow::Continue(())
        })?;
        Ok(index)
    }

    /// Returns the ticks that wrote at, above or below a place, in order.
    fn ticks(&self, place: &Pointer, from: u64, to: u64) -> Vec<u64> {
        if from > to {
            return Vec::new();
        }
        let touches = |paths: &[Pointer]| paths.iter().any(|path| path.overlaps(place));
        self.read.range(from..=to).filter(|(_, paths)| touches(paths)).map(|(tick, _)| *tick).collect()
    }

    fn last(&self, place: &Pointer, to: u64) -> Option<u64> {
        let touches = |paths: &[Pointer]| paths.iter().any(|path| path.overlaps(place));
        self.read.range(..=to).rev().find(|(_, paths)| touches(paths)).map(|(tick, _)| *tick)
    }
}

fn ops_at(record: &Record, place: &Pointer) -> Vec<Op> {
    let ops = record.delta().unwrap_or_default().0.into_iter();
    ops.filter(|op| op.path.overlaps(place)).collect()
}

/// Returns the place that must be followed to know what stands at a place after a tick: the list, for what stands in
/// one, since whatever is taken out of a list moves what stands behind it.
pub fn followed(trace: &Trace, place: &Pointer, tick: u64) -> Result<Pointer, Error> {
    let tokens: Vec<_> = place.tokens().collect();
    let Some(first) = tokens.iter().position(|token| dendrer_object::pointer::array_index(token).is_some())
    else {
        return Ok(place.clone());
    };
    let state = trace.state(tick)?;
    let prefix = |n: usize| Pointer::of(tokens[..n].iter().map(|token| &**token));
    let list =
        (first..tokens.len()).map(prefix).find(|above| matches!(above.get(&state), Some(Value::Array(_))));
    Ok(list.unwrap_or_else(|| place.clone()))
}

/// Lists every write of a place in a range of ticks.
pub fn writes(trace: &Trace, place: &Pointer, from: u64, to: u64) -> Result<Writes, Error> {
    let index = Index::new(trace, to)?;
    let mut found = Vec::new();
    for tick in index.ticks(place, from.max(1), to) {
        found.push(Write { tick, ops: ops_at(&trace.record(tick)?, place) });
    }
    let hidden = index.hidden.into_iter().filter(|tick| *tick >= from).collect();
    Ok(Writes { writes: found, hidden })
}

/// Tells whether anything stood at a place up to a tick. A write above it need not have made it.
pub fn ever_stood(trace: &Trace, place: &Pointer, followed: &Pointer, to: u64) -> Result<bool, Error> {
    if place.get(&trace.genesis()?.state).is_some() || place.get(&trace.state(to)?).is_some() {
        return Ok(true);
    }
    let sides = values(trace, place, followed, 1, to)?;
    Ok(sides.values().any(|(before, after)| before.is_some() || after.is_some()))
}

/// Returns what each of some writes of a place rests on, one step down.
pub fn inputs_of(trace: &Trace, place: &Pointer, ticks: &[u64]) -> Result<Vec<WhyNode>, Error> {
    let index = Index::new(trace, ticks.iter().copied().max().unwrap_or(0))?;
    let reach = Reach { depth: 1, cross_agent: true };
    let node = |tick: &u64| {
        let mut tree = Tree { index: &index, reach, seen: BTreeSet::new(), nodes: 0, agent: None };
        tree.node(*tick, Some(place), None, reach.depth)
    };
    ticks.iter().map(node).collect()
}

/// Answers why a place holds what it holds after a tick: the last write, its inputs, and theirs.
pub fn why(trace: &Trace, tick: u64, place: &Pointer, reach: Reach) -> Result<WhyTree, Error> {
    let index = Index::new(trace, tick)?;
    let mut tree = Tree { index: &index, reach, seen: BTreeSet::new(), nodes: 0, agent: None };
    let root = match last_change(&index, place, tick)? {
        None => None,
        Some(last) => {
            tree.agent = agent(&trace.record(last)?);
            Some(tree.node(last, Some(place), None, reach.depth)?)
        }
    };
    let initial = trace.genesis()?.state;
    let initial = place.get(&initial).cloned();
    let rules = index.pack.as_ref().is_some_and(|pack| pack.rules() > 0);
    Ok(WhyTree { root, initial, hidden: index.hidden, rules })
}

/// Returns the last tick that decided what stands at a place. What is put behind an item of a list does not write the
/// item, though it writes the list.
fn last_change(index: &Index<'_>, place: &Pointer, tick: u64) -> Result<Option<u64>, Error> {
    let followed = followed(index.trace, place, tick)?;
    if followed == *place {
        return Ok(index.last(place, tick));
    }
    let sides = match values(index.trace, place, &followed, 1, tick) {
        Ok(sides) => sides,
        // What was erased hides what stood there; the list is all that can be followed.
        Err(Error::Replay(_)) => return Ok(index.last(&followed, tick)),
        Err(error) => return Err(error),
    };
    for (tick, (before, after)) in sides.iter().rev() {
        let is_here =
            |op: &Op| op.path.overlaps(place) && !(op.action == Action::Append && op.path != *place);
        if before != after || ops_at(&index.trace.record(*tick)?, place).iter().any(is_here) {
            return Ok(Some(*tick));
        }
    }
    Ok(None)
}

fn agent(record: &Record) -> Option<String> {
    record.body().value("/agent_id").and_then(|agent| agent.as_str().map(str::to_owned))
}

struct Tree<'i, 't> {
    index: &'i Index<'t>,
    reach: Reach,
    /// What stands in the tree already, with its inputs.
    seen: BTreeSet<(u64, Option<Pointer>)>,
    nodes: usize,
    /// The agent of the write that was asked about.
    agent: Option<String>,
}

impl Tree<'_, '_> {
    fn node(
        &mut self,
        tick: u64,
        place: Option<&Pointer>,
        because: Option<Because>,
        depth: usize,
    ) -> Result<WhyNode, Error> {
        self.nodes += 1;
        let record = self.index.trace.record(tick)?;
        let wrote = place.map(|place| (place.clone(), ops_at(&record, place)));
        let mut node = WhyNode { tick, wrote, because, inputs: Vec::new(), stops: None };
        let is_other = agent(&record) != self.agent;
        if self.seen.contains(&(tick, place.cloned())) {
            node.stops = Some(Stops::Above);
        } else if is_other && !self.reach.cross_agent {
            node.stops = Some(Stops::OtherAgent);
        } else if depth == 0 {
            node.stops = Some(Stops::Depth);
        } else {
            self.seen.insert((tick, place.cloned()));
            self.add_inputs(&mut node, &record, depth)?;
        }
        Ok(node)
    }

    fn add_inputs(&mut self, node: &mut WhyNode, record: &Record, depth: usize) -> Result<(), Error> {
        let found = inputs(self.index, node.tick, record, node.wrote.as_ref().map(|(place, _)| place))?;
        if found.inputs.is_empty() {
            node.stops = Some(if found.known { Stops::Nothing } else { Stops::Unknown });
        }
        for (tick, place, because) in found.inputs {
            if self.nodes >= NODES_MAX {
                node.stops = Some(Stops::Size);
                break;
            }
            node.inputs.push(self.node(tick, place.as_ref(), Some(because), depth - 1)?);
        }
        Ok(())
    }
}

struct Inputs {
    inputs: Vec<(u64, Option<Pointer>, Because)>,
    /// Whether rules say what may have been read, so that an empty list means nothing was.
    known: bool,
}

/// Finds what a transition rests on, for what it wrote at a place, or as a whole.
fn inputs(index: &Index<'_>, tick: u64, record: &Record, place: Option<&Pointer>) -> Result<Inputs, Error> {
    let mut found: Vec<(u64, Option<Pointer>, Because)> = Vec::new();
    let ops = match place {
        Some(place) => ops_at(record, place),
        None => record.delta().unwrap_or_default().0,
    };
    let mut built_on: Vec<&Pointer> = Vec::new();
    for op in ops.iter().filter(|op| matches!(op.action, Action::Add | Action::Append)) {
        if !built_on.contains(&&op.path) {
            built_on.push(&op.path);
            let last = index.last(&op.path, tick - 1);
            found.extend(last.map(|last| (last, Some(op.path.clone()), Because::StoodThere)));
        }
    }
    for (linked, rel) in links(index.trace, record)? {
        found.push((linked, None, Because::Link(rel)));
    }
    let type_name = record.header().type_name.as_ref();
    let field = place.and_then(|place| place.tokens().next().map(|field| field.into_owned()));
    let reads = match (&index.pack, type_name) {
        (Some(pack), Some(type_name)) if pack.rules() > 0 => {
            let before = index.trace.state(tick - 1).ok();
            let seen = before.and_then(|before| pack.reads_at(&before, record, field.as_deref()));
            seen.or_else(|| pack.may_read(type_name, field.as_deref()))
        }
        _ => None,
    };
    for read in reads.iter().flatten() {
        let last = index.last(read, tick - 1);
        let is_new =
            |last: &u64| !found.iter().any(|(tick, place, _)| tick == last && place.as_ref() == Some(read));
        if let Some(last) = last.filter(is_new) {
            let paths: Vec<Pointer> =
                ops_at(&index.trace.record(last)?, read).into_iter().map(|op| op.path).collect();
            found.push((last, Some(read.clone()), may_read(read, &paths)));
        }
    }
    Ok(Inputs { inputs: found, known: reads.is_some() })
}

/// Says that a rule read a place in which a transition wrote at these paths.
fn may_read(place: &Pointer, written: &[Pointer]) -> Because {
    let below = |path: &Pointer| path != place && place.contains(path);
    match written.iter().any(|path| path.overlaps(place))
        && written.iter().all(|path| !path.overlaps(place) || below(path))
    {
        true => Because::MayReadWhole(place.clone()),
        false => Because::MayRead(place.clone()),
    }
}

/// Returns the ticks of this run that a record links to as its causes.
fn links(trace: &Trace, record: &Record) -> Result<Vec<(u64, Rel)>, Error> {
    let mut found = Vec::new();
    let causes =
        record.header().links.iter().filter(|link| matches!(link.rel, Rel::CausedBy | Rel::Evidence));
    for link in causes {
        let Some(position) = trace.store().find(&link.hash)? else { continue };
        let target = read(&**trace.store(), position)?;
        let header = target.header();
        let (Some(run), Some(tick)) = (&header.run, header.tick) else { continue };
        // Tick by tick the lineage says whose record stands there.
        let is_here = tick <= trace.tip() && tick > 0 && trace.record(tick)?.id() == link.hash;
        if is_here && trace.lineage().iter().any(|(owner, _)| owner == run) {
            found.push((tick, link.rel));
        }
    }
    Ok(found)
}

/// A transition before an onset, and who links to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamRecord {
    /// Its tick.
    pub tick: u64,
    /// The later ticks that link to it, each with its link.
    pub named_by: Vec<(u64, Rel)>,
}

/// Follows the recorded links of an onset back, the newest transition first; at most `limit` of them.
pub fn upstream(trace: &Trace, onset: u64, limit: usize) -> Result<Vec<UpstreamRecord>, Error> {
    let mut waiting: BTreeMap<u64, Vec<(u64, Rel)>> = BTreeMap::new();
    let mut found = Vec::new();
    let of = |tick: u64, waiting: &mut BTreeMap<u64, Vec<(u64, Rel)>>| -> Result<(), Error> {
        for (cause, rel) in links(trace, &trace.record(tick)?)? {
            waiting.entry(cause).or_default().push((tick, rel));
        }
        Ok(())
    };
    if onset > 0 {
        of(onset, &mut waiting)?;
    }
    // A link leads to an earlier record, so the newest that waits was named by all that name it.
    while let Some((tick, named_by)) = waiting.pop_last().filter(|_| found.len() < limit) {
        of(tick, &mut waiting)?;
        found.push(UpstreamRecord { tick, named_by });
    }
    Ok(found)
}

/// Follows an onset forward: a transition joins if it is known to rest on a member. Denials and anomalies that only
/// come after are listed too, and nothing follows from them.
pub fn chain(trace: &Trace, onset: u64, to: u64, limit: usize) -> Result<Chain, Error> {
    let pack = crate::run::pack::of_run(trace)?;
    let rules = pack.as_ref().is_some_and(|pack| pack.rules() > 0);
    let looked_to = to.min(onset.saturating_add(CHAIN_REACH));
    let mut chain = Chain { members: Vec::new(), looked_to, more: false, rules };
    let mut members: BTreeMap<u64, Vec<Pointer>> = BTreeMap::new();
    // A value that was erased leaves the state unknown from there on.
    let mut state = if onset > 0 { trace.state(onset - 1).ok() } else { None };
    trace.try_each::<Error>(onset, looked_to, &mut |tick, record| {
        let change = record.delta();
        let before = state.take();
        state = before.as_ref().zip(change.as_ref()).and_then(|(before, change)| change.apply(before).ok());
        let wrote = change.unwrap_or_default();
        let changed =
            before.as_ref().zip(state.as_ref()).map(|(before, after)| changes(&record, before, after));
        let ruled = before.as_ref().filter(|_| rules);
        let because = rests_on(trace, pack.as_ref(), ruled, &record, &wrote, &members)?;
        let joins = tick == onset || !because.is_empty();
        if joins {
            members.insert(tick, wrote.paths().cloned().collect());
        }
        if joins || is_signal(&record) {
            if chain.members.len() >= limit {
                chain.more = true;
                return Ok(ControlFlow::Break(()));
            }
            chain.members.push(Follower { tick, because, changes: changed });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(chain)
}

/// Says which members a transition rests on, as far as anything says so.
fn rests_on(
    trace: &Trace,
    pack: Option<&Pack>,
    before: Option<&Value>,
    record: &Record,
    wrote: &Delta,
    members: &BTreeMap<u64, Vec<Pointer>>,
) -> Result<Vec<(u64, Because)>, Error> {
    let mut found: Vec<(u64, Because)> = Vec::new();
    for (tick, rel) in links(trace, record)? {
        if members.contains_key(&tick) {
            found.push((tick, Because::Link(rel)));
        }
    }
    // The newest member that wrote a place stands for all before it.
    let newest = |place: &Pointer| {
        members.iter().rev().find(|(_, paths)| paths.iter().any(|path| path.overlaps(place)))
    };
    for op in wrote.0.iter().filter(|op| matches!(op.action, Action::Add | Action::Append)) {
        found.extend(newest(&op.path).map(|(tick, _)| (*tick, Because::StoodThere)));
    }
    let reads = match (pack, &record.header().type_name) {
        (Some(pack), Some(type_name)) => {
            let seen = before.and_then(|before| pack.reads_at(before, record, None));
            seen.or_else(|| pack.may_read(type_name, None))
        }
        _ => None,
    };
    for place in reads.into_iter().flatten() {
        found.extend(newest(&place).map(|(tick, paths)| (*tick, may_read(&place, paths))));
    }
    let mut ticks = BTreeSet::new();
    found.retain(|(tick, _)| ticks.insert(*tick));
    Ok(found)
}

/// What shows that something is amiss, whatever it rests on.
fn is_signal(record: &Record) -> bool {
    match record.header().type_name.as_ref().map(|name| name.as_str()) {
        Some("kernel.anomaly" | "predicate.violation") => true,
        Some("policy.decision") => {
            let policy = record.body().value("/policy");
            let content = record.content();
            let policy = policy.as_ref().or_else(|| content.get("policy"));
            let said = policy.and_then(|policy| policy.get("decision")).and_then(Value::as_str);
            matches!(said, Some("deny" | "escalate"))
        }
        _ => false,
    }
}
