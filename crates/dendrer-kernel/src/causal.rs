//! The causal graph of a run: one node a transition, a branch an agent, parents as links, and the state of an agent along the
//! causal ancestors of a node (forensic debugger specification, 1.1 and 3).
//!
//! A *unit* is `/top/key` where `top` is an object, else `/top`. A write below a unit is a write of it, and the initial state
//! of the run is a write of all of it at tick 0. The value of a unit at a node is that of the newest writes among its causal
//! ancestors: those that no other such write follows. So each change counts once, by whatever ways it is reached, and a value
//! never comes back that was written over. If several newest writes differ, the unit is in conflict at the first node that sees
//! both, the *sync node*. It decides by a strategy, where the sides are objects leaf by leaf.
//!
//! The marker of a fork that sets values is an ancestor of each node after it, and no node before it is its ancestor: it changes
//! nothing of what agents know of each other. Each write before it is read through its change by each node after it.
//!
//! Nothing is computed for a node but what differs between its parents. Ancestors are found by vector clocks: a branch is a
//! chain, so a node is an ancestor if the clock of the other has its place in its branch. Nodes that see the same of other
//! branches share one clock.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::text::nearest;
use dendrer_object::{Object, Pointer, Value};

mod cut;
mod leaves;
mod origins;

pub use cut::{CausalCut, CausalLinks, CutBytes};

use origins::{Origins, Stamp};

use crate::names::{COUNTERS, KERNEL_PATHS};
use crate::step::LEAVES_VERSION;
use crate::unknown::{Since, UnknownPlaces};

/// How many entries the clocks of a graph may have together: some 2 GB.
const CLOCKS_MAX: usize = 500_000_000;

/// The cause of a place that is unknown because a change does not fit what the causal ancestors left there.
pub const NOT_CAUSAL: &str = "not_causal";

/// The confidence of an author who said something else than a number.
pub const NO_NUMBER: f64 = f64::MIN;

/// Why a graph cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CausalError {
    /// A parent is no node before it.
    #[error("tick {tick} has a parent, tick {parent}, that does not stand before it")]
    Parent {
        /// The node.
        tick: u64,
        /// The parent.
        parent: u64,
    },
    /// So many agents saw each other that their clocks do not fit.
    #[error("at tick {tick} the clocks of {agents} agents do not fit in memory")]
    TooManyAgents {
        /// The node.
        tick: u64,
        /// How many agents there are.
        agents: usize,
    },
}

dendrer_object::words! {
    /// How a unit in conflict is decided (forensic debugger specification, 3.3).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
    pub enum SyncStrategy {
        /// All values are kept, as `{"__conflict": true, "values": [...]}`.
        #[default]
        Manual = "manual",
        /// The write with the greatest tick.
        Lww = "lww",
        /// The write that is said to be surest; ties as [`SyncStrategy::Lww`].
        Confidence = "confidence",
        /// The write of the agent with the highest number in the pack's `roles`; ties as [`SyncStrategy::Lww`].
        Policy = "policy",
    }
}

/// An error in the `merge` of an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeFault {
    /// The member, as a JSON pointer below `merge`.
    pub path: String,
    /// The fault of it.
    pub message: String,
}

fn check_strategy(name: &str, value: &Value) -> Result<(), MergeFault> {
    if value.as_str().and_then(SyncStrategy::from_word).is_some() {
        return Ok(());
    }
    let near = value.as_str().and_then(|text| nearest(text, SyncStrategy::WORDS.iter().copied()));
    let meant = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let message = format!("a strategy is manual, lww, confidence or policy, not {value}{meant}");
    Err(MergeFault { path: Pointer::of([name]).to_string(), message })
}

/// The members of the state that are objects in every run of agents.
const MAPS: [&str; 2] = ["memory", "beliefs"];

/// The error in the name of a unit, if it has one: a member of the state, or a member of one, as people write it.
pub(crate) fn unit_fault(text: &str) -> Option<String> {
    let unit = match Pointer::from_place(text) {
        Some(Ok(unit)) => unit,
        _ => return Some(format!("a unit is written like memory.x, not {text:?}")),
    };
    let written = unit.dotted();
    let is_plain = written == text;
    match unit.tokens().count() {
        1 if MAPS.contains(&&*written) => {
            Some(format!("{written} is an object: its units are its members, like {written}.x"))
        }
        1 | 2 if is_plain => None,
        _ if text.contains('/') && !text.contains('"') => {
            let meant = text.trim_matches('/').replace('/', ".");
            Some(format!("a unit is written like memory.x, not {text:?}; did you mean {meant:?}?"))
        }
        1 | 2 => Some(format!("a unit is written like memory.x; this one is {written:?}")),
        _ => Some(format!("a unit is a member of the state or a member of one, and {text:?} is neither")),
    }
}

/// Which strategy decides which unit, as a sync node or a pack says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MergeRules {
    /// The strategy of units that are not named.
    pub strategy: Option<SyncStrategy>,
    /// The strategy of a unit, by its dotted path.
    pub keys: BTreeMap<Arc<str>, SyncStrategy>,
    /// The priority of agents. Only a pack gives it.
    pub roles: BTreeMap<Arc<str>, f64>,
}

impl MergeRules {
    /// Reads the `merge` of an intent or a pack. A text that is no strategy is passed over: a record is read as it is.
    pub fn of(value: Option<&Value>) -> MergeRules {
        let strategy = |value: &Value| value.as_str().and_then(SyncStrategy::from_word);
        let members = |name: &str| value.and_then(|value| value.get(name)?.as_object());
        let each = |name| members(name).into_iter().flat_map(Object::iter);
        MergeRules {
            strategy: value.and_then(|value| strategy(value.get("strategy")?)),
            keys: each("keys").filter_map(|(unit, word)| Some((Arc::clone(unit), strategy(word)?))).collect(),
            roles: each("roles")
                .filter_map(|(agent, rank)| Some((Arc::clone(agent), rank.as_f64()?)))
                .collect(),
        }
    }

    /// Checks the `merge` of a new intent: `strategy`, and `keys` by unit.
    pub fn check(value: &Value) -> Result<(), MergeFault> {
        let fault = |path: String, message: String| Err(MergeFault { path, message });
        let Some(members) = value.as_object() else {
            let message =
                format!("merge is an object like {{\"strategy\":\"lww\"}}, not {}", value.described());
            return fault(String::new(), message);
        };
        for (name, value) in members.iter() {
            match &**name {
                "strategy" => check_strategy(name, value)?,
                "keys" => {
                    let Some(keys) = value.as_object() else {
                        let message =
                            format!("keys is an object from units to strategies, not {}", value.described());
                        return fault("/keys".to_owned(), message);
                    };
                    for (unit, value) in keys.iter() {
                        if let Some(message) = unit_fault(unit) {
                            return fault(Pointer::of(["keys", unit]).to_string(), message);
                        }
                        check_strategy(unit, value).map_err(|MergeFault { message, .. }| MergeFault {
                            path: Pointer::of(["keys", unit]).to_string(),
                            message,
                        })?;
                    }
                }
                "roles" => {
                    let message = "the roles of agents are given by the pack alone".to_owned();
                    return fault("/roles".to_owned(), message);
                }
                _ => {
                    let meant = nearest(name, ["strategy", "keys"]);
                    let meant = meant.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
                    let message = format!("merge has strategy and keys, and no such member{meant}");
                    return fault(Pointer::of([&**name]).to_string(), message);
                }
            }
        }
        Ok(())
    }

    fn of_unit(&self, unit: &str) -> [Option<SyncStrategy>; 2] {
        [self.keys.get(unit).copied(), self.strategy]
    }
}

/// The part of the graph that a transition adds.
#[derive(Debug, Clone)]
pub struct CausalNode {
    /// The agent.
    pub agent: Arc<str>,
    /// The ticks of its parents besides the transition of the same agent before it; 0 is the beginning of the run.
    pub parents: Vec<u64>,
    /// Its change of the state.
    pub delta: Delta,
    /// Places that it made unknown.
    pub unknown: Vec<(Pointer, Since)>,
    /// How sure its author says to be; 0 where nothing is said, [`NO_NUMBER`] where it is no number.
    pub confidence: f64,
    /// How it decides units in conflict.
    pub merge: MergeRules,
    /// Whether it is the marker of a fork: its change is one of every agent's state.
    pub is_marker: bool,
    /// The version of the kernel's rules by which it was recorded: before [`LEAVES_VERSION`] a strategy takes whole units.
    pub version: u64,
}

impl CausalNode {
    /// A transition of an agent that does nothing.
    pub fn idle(agent: &str) -> CausalNode {
        CausalNode {
            agent: agent.into(),
            parents: Vec::new(),
            delta: Delta::default(),
            unknown: Vec::new(),
            confidence: 0.0,
            merge: MergeRules::default(),
            is_marker: false,
            version: LEAVES_VERSION,
        }
    }
}

/// The content of a unit.
#[derive(Debug, Clone, PartialEq)]
enum Content {
    Absent,
    /// An object whose members are units.
    Members,
    Value(Value),
}

/// A write of a unit.
#[derive(Debug, Clone)]
struct Write {
    /// The place of the node in its branch, from 1; 0 for the beginning of the run.
    index: u32,
    tick: u64,
    content: Content,
    /// Unknown places at or below the unit, behind this write.
    unknown: Vec<(Pointer, Since)>,
    confidence: f64,
    /// The writes that its places are from.
    origins: Origins,
    /// The writes that a sync node put together to it; `None` for a write of its own.
    met: Option<Met>,
}

/// The writes that a sync node met at a unit, and how it put them together.
#[derive(Debug, Clone, PartialEq)]
struct Met {
    strategy: SyncStrategy,
    /// Whether all were kept.
    is_open: bool,
    /// Their ticks, in order.
    ticks: Vec<u64>,
}

impl Write {
    /// The beginning of the run.
    fn first() -> Write {
        let origins = Origins::of(&[Stamp::own(0, 0.0)]);
        let (content, unknown) = (Content::Absent, Vec::new());
        Write { index: 0, tick: 0, content, unknown, confidence: 0.0, origins, met: None }
    }

    /// Whether nothing is known of the unit behind this write.
    fn is_unknown(&self, unit: &Pointer) -> bool {
        self.unknown.iter().any(|(place, _)| place.contains(unit))
    }
}

/// A unit: a member of the state, or a member of one of these.
#[derive(Debug)]
struct Unit {
    path: Pointer,
    first: Write,
    /// The writes of each agent, in the order of its branch.
    writes: BTreeMap<usize, Vec<Write>>,
}

/// The value that one side of a conflict left at the place, and the write that it is from; that of the unit, if several agents
/// wrote parts of it.
#[derive(Debug, Clone, PartialEq)]
pub struct SyncSide {
    /// The tick of the write.
    pub tick: u64,
    /// Its agent; `None` for the beginning of the run.
    pub agent: Option<Arc<str>>,
    /// The value; `None` if the side has none there.
    pub value: Option<Value>,
    /// Whether what was said of its confidence is no number from 0 to 1, and counts as 0.
    pub is_misread: bool,
}

/// A place that several newest writes give different values, and how the sync node decided.
#[derive(Debug, Clone, PartialEq)]
pub struct SyncConflict {
    /// The tick of the sync node.
    pub at: u64,
    /// The place: a unit, or a place below it that was decided by itself.
    pub path: Pointer,
    /// The sides that differ, in the order of ticks.
    pub values: Vec<SyncSide>,
    /// The strategy that decided.
    pub strategy: SyncStrategy,
    /// The number among the sides of the one that was taken; `None` where all are kept.
    pub taken: Option<usize>,
    /// Whether the sync node wrote the place itself, over what was decided.
    pub is_written: bool,
}

impl SyncConflict {
    /// The unit of the place.
    pub fn unit(&self) -> Pointer {
        unit_of(&self.path)
    }

    /// The side that was taken; `None` where all are kept.
    pub fn winner(&self) -> Option<&SyncSide> {
        self.values.get(self.taken?)
    }
}

/// A unit that a sync node put together from what its parents had.
#[derive(Debug, Clone, PartialEq)]
pub struct SyncWrite {
    /// The tick of the sync node.
    pub at: u64,
    /// The unit.
    pub unit: Pointer,
    /// Its value; `None` if none is left.
    pub value: Option<Value>,
    /// Its value for the agent before; `None` if it had none, or if the node is its first.
    pub before: Option<Value>,
    /// The strategy for what the sides left differently.
    pub strategy: SyncStrategy,
}

/// A node of the graph.
#[derive(Debug)]
struct Node {
    agent: usize,
    index: u32,
    parents: Vec<u64>,
    /// Up to which place it sees the branch of each other agent.
    others: Arc<[u32]>,
    /// The units that it writes, decided conflicts included.
    written: Vec<usize>,
}

/// The causal graph of a run, with what is needed for the state of any agent at any node.
#[derive(Debug)]
pub struct CausalGraph {
    rules: MergeRules,
    /// The first is the beginning of the run and has no agent.
    nodes: Nodes,
    agents: Vec<Arc<str>>,
    by_name: BTreeMap<Arc<str>, usize>,
    /// The transitions of each agent.
    branches: Vec<Branch>,
    units: Vec<Unit>,
    by_path: BTreeMap<Pointer, usize>,
    /// The members of each member of the state, as units.
    below: BTreeMap<usize, Vec<usize>>,
    conflicts: Vec<SyncConflict>,
    merged: Vec<SyncWrite>,
    /// The markers of forks, in order of ticks: the tick and the change that every agent's state takes.
    markers: Vec<(u64, Delta)>,
    clocks: usize,
    /// The first tick from which on each node has all that it wrote; 0 unless the graph was read from a cut.
    whole_from: u64,
}

/// The nodes of a graph. One that was read from a cut has few of those before its beginning.
#[derive(Debug)]
struct Nodes {
    few: Vec<(u64, Node)>,
    from: u64,
    rest: Vec<Node>,
}

impl Nodes {
    fn end(&self) -> u64 {
        self.from + self.rest.len() as u64
    }

    fn place(&self, tick: u64) -> Result<usize, usize> {
        match tick.checked_sub(self.from) {
            Some(at) => Ok(index(at)),
            None => Err(self.few.binary_search_by_key(&tick, |(at, _)| *at).expect("a node that is kept")),
        }
    }
}

impl Index<u64> for Nodes {
    type Output = Node;

    fn index(&self, tick: u64) -> &Node {
        match self.place(tick) {
            Ok(at) => &self.rest[at],
            Err(at) => &self.few[at].1,
        }
    }
}

impl IndexMut<u64> for Nodes {
    fn index_mut(&mut self, tick: u64) -> &mut Node {
        match self.place(tick) {
            Ok(at) => &mut self.rest[at],
            Err(at) => &mut self.few[at].1,
        }
    }
}

/// The transitions of an agent, in order. A graph that was read from a cut skips the first of them.
#[derive(Debug, Default)]
struct Branch {
    skipped: u32,
    ticks: Vec<u64>,
}

/// The agent of the beginning of the run.
const BEGINNING: usize = usize::MAX;

/// The member of a unit that was kept in conflict.
const CONFLICT: &str = "__conflict";

/// The member of a removal among the values of a conflict.
const REMOVED: &str = "__removed";

fn is_kernels(top: &str) -> bool {
    KERNEL_PATHS.contains(&top) || top == COUNTERS
}

impl CausalGraph {
    /// The graph of a run that begins with a state. `rules` are those of its pack.
    pub fn new(initial: &Value, rules: MergeRules) -> CausalGraph {
        let others: Arc<[u32]> = Arc::new([]);
        let begin = Node { agent: BEGINNING, index: 0, parents: Vec::new(), others, written: Vec::new() };
        let mut graph = CausalGraph {
            rules,
            nodes: Nodes { few: Vec::new(), from: 0, rest: vec![begin] },
            agents: Vec::new(),
            by_name: BTreeMap::new(),
            branches: Vec::new(),
            units: Vec::new(),
            by_path: BTreeMap::new(),
            below: BTreeMap::new(),
            conflicts: Vec::new(),
            merged: Vec::new(),
            markers: Vec::new(),
            clocks: 0,
            whole_from: 0,
        };
        let unknown = UnknownPlaces::of(initial);
        for (top, value) in initial.as_object().into_iter().flat_map(Object::iter) {
            if is_kernels(top) {
                continue;
            }
            let whole = graph.unit(Pointer::of([&**top]));
            match value.as_object() {
                None => graph.units[whole].first.content = Content::Value(value.clone()),
                Some(members) => {
                    graph.units[whole].first.content = Content::Members;
                    for (key, value) in members.iter() {
                        let unit = graph.unit(Pointer::of([&**top, key]));
                        graph.units[unit].first.content = Content::Value(value.clone());
                    }
                }
            }
        }
        for (place, since) in unknown.iter() {
            let unit = graph.unit(unit_of(place));
            graph.units[unit].first.unknown.push((place.clone(), since.clone()));
        }
        graph
    }

    /// How many transitions there are.
    pub fn tip(&self) -> u64 {
        self.nodes.end() - 1
    }

    /// The agents, in the order in which they appeared.
    pub fn agents(&self) -> impl Iterator<Item = &Arc<str>> {
        self.agents.iter()
    }

    /// The ticks of an agent's branch, in order; empty for an agent that is not there.
    pub fn branch(&self, agent: &str) -> &[u64] {
        self.by_name.get(agent).map_or(&[], |at| &self.branches[*at].ticks)
    }

    /// The agent of a transition; `None` for the beginning of the run.
    pub fn agent(&self, tick: u64) -> Option<&Arc<str>> {
        self.agents.get(self.nodes[tick].agent)
    }

    /// The parents of a node, in order of ticks.
    pub fn parents(&self, tick: u64) -> &[u64] {
        &self.nodes[tick].parents
    }

    /// The children of each node, by tick.
    pub fn children(&self) -> Vec<Vec<u64>> {
        let mut children = vec![Vec::new(); index(self.nodes.end())];
        for tick in 0..self.nodes.end() {
            self.nodes[tick].parents.iter().for_each(|parent| children[index(*parent)].push(tick));
        }
        children
    }

    /// The conflicts that sync nodes decided, in order of ticks.
    pub fn conflicts(&self) -> &[SyncConflict] {
        &self.conflicts
    }

    /// The newest marker of a fork after a tick.
    pub fn marker_after(&self, tick: u64) -> Option<u64> {
        self.markers.last().map(|(marker, _)| *marker).filter(|marker| *marker > tick)
    }

    /// The units that sync nodes put together from different values, in order of ticks.
    pub fn merged(&self) -> &[SyncWrite] {
        &self.merged
    }

    /// Up to which place a node sees the branch of an agent, itself included.
    fn seen(&self, tick: u64, agent: usize) -> u32 {
        let node = &self.nodes[tick];
        if node.agent == agent { node.index } else { node.others.get(agent).copied().unwrap_or(0) }
    }

    /// Whether a node is another one or a causal ancestor of it.
    pub fn reaches(&self, ancestor: u64, tick: u64) -> bool {
        let node = &self.nodes[ancestor];
        node.agent == BEGINNING || self.seen(tick, node.agent) >= node.index
    }

    /// The causal ancestors of a node, itself included and the beginning of the run not, in order of ticks.
    pub fn ancestors(&self, tick: u64) -> Vec<u64> {
        self.extension(tick, 0)
    }

    /// The causal ancestors of a node, itself included, that are not those of another one; in order of ticks.
    pub fn extension(&self, tick: u64, of: u64) -> Vec<u64> {
        let mut ticks: Vec<u64> =
            self.branches_beyond(tick, of).flat_map(|(_, ticks)| ticks).copied().collect();
        ticks.sort_unstable();
        ticks
    }

    /// The part of each branch that a node sees and another one does not, and whether all of it is here.
    fn branches_beyond(&self, tick: u64, of: u64) -> impl Iterator<Item = (bool, &[u64])> {
        self.branches.iter().enumerate().map(move |(agent, branch)| {
            let (from, to) = (self.seen(of, agent), self.seen(tick, agent));
            let is_here = from >= to || from >= branch.skipped;
            let place = |index: u32| index.saturating_sub(branch.skipped) as usize;
            (is_here, branch.ticks.get(place(from.min(to))..place(to)).unwrap_or_default())
        })
    }

    /// All lowest common ancestors of two nodes, in order of ticks: those that no other common ancestor follows.
    pub fn lowest_common(&self, a: u64, b: u64) -> Vec<u64> {
        let tops = self.branches.iter().enumerate().filter_map(|(agent, branch)| {
            let upto = self.seen(a, agent).min(self.seen(b, agent)) as usize;
            upto.checked_sub(1).map(|at| branch.ticks[at])
        });
        let mut tops: Vec<u64> = tops.collect();
        let all = tops.clone();
        tops.retain(|top| !all.iter().any(|other| other != top && self.reaches(*top, *other)));
        tops.sort_unstable();
        if tops.is_empty() { vec![0] } else { tops }
    }

    /// Adds the next transition.
    pub fn push(&mut self, node: CausalNode) -> Result<(), CausalError> {
        let tick = self.nodes.end();
        let agent = self.agent_of(&node.agent);
        let mut parents = node.parents.clone();
        let own = self.branches[agent].ticks.last().copied();
        parents.extend(own);
        // The newest marker that the agent's branch has not seen: of several, it follows the others.
        let marker = self.markers.last().map(|(tick, _)| *tick);
        let unseen = marker.filter(|marker| own.is_none_or(|own| own < *marker));
        parents.extend(unseen);
        parents.sort_unstable();
        parents.dedup();
        if parents.is_empty() {
            parents.push(0);
        }
        if let Some(parent) = parents.iter().find(|parent| **parent >= tick) {
            return Err(CausalError::Parent { tick, parent: *parent });
        }
        let others = self.joined(agent, &parents);
        if !parents.iter().any(|parent| Arc::ptr_eq(&self.nodes[*parent].others, &others)) {
            self.clocks += others.len();
        }
        if self.clocks > CLOCKS_MAX {
            return Err(CausalError::TooManyAgents { tick, agents: self.agents.len() });
        }
        let branch = &mut self.branches[agent];
        branch.ticks.push(tick);
        let place = u32::try_from(branch.ticks.len()).unwrap_or(u32::MAX).saturating_add(branch.skipped);
        self.nodes.rest.push(Node { agent, index: place, parents, others, written: Vec::new() });
        let conflicts = self.conflicts.len();
        self.synchronize(tick, &node);
        if node.is_marker {
            self.mark(tick, node.delta);
            return Ok(());
        }
        if unseen.is_some() {
            self.take_in(tick, own.unwrap_or(0), node.confidence);
        }
        for conflict in &mut self.conflicts[conflicts..] {
            conflict.is_written = node.delta.paths().any(|path| path.overlaps(&conflict.path));
        }
        // An addition of an earlier version of the rules counts as its outcome.
        let own_stamp =
            Stamp { is_more: node.version >= LEAVES_VERSION, ..Stamp::own(tick, node.confidence) };
        for op in &node.delta.0 {
            self.change(tick, op, own_stamp);
        }
        for (place, since) in node.unknown {
            let unit = self.unit(unit_of(&place));
            let content = self.content(unit, tick);
            let mut unknown = self.unknown_in(unit, tick);
            unknown.retain(|(known, _)| *known != place);
            let stamp = Stamp::own(tick, node.confidence);
            let value = shown(&content);
            let steps = steps_below(&self.units[unit].path, &place);
            let origins = self.origins(unit, tick).changed(&steps, [value.as_ref(); 2], &stamp);
            unknown.push((place, since));
            self.write_of(unit, tick, (content, unknown, origins), node.confidence);
        }
        Ok(())
    }

    /// Adds the marker of a fork. It writes no unit of its own branch: every write before it is read through its change.
    fn mark(&mut self, tick: u64, change: Delta) {
        for op in &change.0 {
            let tokens: Vec<String> = op.path.tokens().map(|token| token.into_owned()).collect();
            let Some(top) = tokens.first().filter(|top| !is_kernels(top)) else { continue };
            self.unit(Pointer::of([&**top]));
            match (&tokens[1..], op.value.as_ref().and_then(Value::as_object)) {
                ([], Some(members)) => members.iter().for_each(|(key, _)| {
                    self.unit(Pointer::of([&**top, key]));
                }),
                ([], None) => {}
                ([key, ..], _) => drop(self.unit(Pointer::of([&**top, key]))),
            }
        }
        self.markers.push((tick, change));
        let touched = self.touched(tick - 1, tick);
        self.nodes[tick].written = touched;
    }

    /// The units that markers touch, of those after a tick and up to another.
    fn touched(&self, after: u64, upto: u64) -> Vec<usize> {
        let markers = self.markers.iter().filter(|(tick, _)| *tick > after && *tick <= upto);
        let changed: Vec<&Pointer> = markers.flat_map(|(_, change)| change.paths()).collect();
        let is_touched = |unit: &Unit| {
            let top = unit.path.tokens().next().unwrap_or_default();
            !is_kernels(&top) && changed.iter().any(|path| path.overlaps(&unit.path))
        };
        (0..self.units.len()).filter(|unit| is_touched(&self.units[*unit])).collect()
    }

    /// Writes into a node what markers changed since the node of its agent before it.
    fn take_in(&mut self, tick: u64, own: u64, confidence: f64) {
        for unit in self.touched(own, tick) {
            let (content, unknown) = (self.content(unit, tick), self.unknown_in(unit, tick));
            let is_absent = content == Content::Absent && unknown.is_empty();
            if !self.nodes[tick].written.contains(&unit) && !is_absent {
                let origins = self.origins(unit, tick);
                self.write_of(unit, tick, (content, unknown, origins), confidence);
            }
        }
    }

    /// A write as a node sees it: through the changes of the markers between them.
    fn through<'w>(&self, unit: &Unit, write: &'w Write, tick: u64) -> Cow<'w, Write> {
        let mut seen = Cow::Borrowed(write);
        for (marker, change) in &self.markers {
            if write.tick >= *marker || *marker > tick {
                continue;
            }
            for op in change.0.iter().filter(|op| op.path.overlaps(&unit.path)) {
                let Write { content, unknown, origins, .. } = seen.to_mut();
                let before = shown(content);
                marked(&unit.path, op, *marker, content, unknown);
                let sides = [before, shown(content)];
                *origins = changed(origins, &unit.path, op, &sides, Stamp::own(*marker, 0.0));
            }
        }
        seen
    }

    fn agent_of(&mut self, name: &Arc<str>) -> usize {
        if let Some(at) = self.by_name.get(name) {
            return *at;
        }
        self.agents.push(Arc::clone(name));
        self.branches.push(Branch::default());
        self.by_name.insert(Arc::clone(name), self.agents.len() - 1);
        self.agents.len() - 1
    }

    /// The events of other agents' branches that a node with these parents sees.
    fn joined(&self, agent: usize, parents: &[u64]) -> Arc<[u32]> {
        if let [only] = parents
            && self.nodes[*only].agent == agent
        {
            return Arc::clone(&self.nodes[*only].others);
        }
        let mut joined: Vec<u32> = Vec::new();
        for parent in parents.iter().map(|tick| &self.nodes[*tick]) {
            let own = if parent.agent == BEGINNING { 0 } else { parent.agent + 1 };
            joined.resize(joined.len().max(parent.others.len()).max(own), 0);
            for (seen, more) in joined.iter_mut().zip(parent.others.iter()) {
                *seen = (*seen).max(*more);
            }
            if parent.agent != BEGINNING {
                joined[parent.agent] = joined[parent.agent].max(parent.index);
            }
        }
        joined.into()
    }

    fn unit(&mut self, path: Pointer) -> usize {
        if let Some(at) = self.by_path.get(&path) {
            return *at;
        }
        let first = Write::first();
        self.units.push(Unit { path: path.clone(), first, writes: BTreeMap::new() });
        let at = self.units.len() - 1;
        self.by_path.insert(path.clone(), at);
        if path.tokens().count() == 2 {
            let top = path.tokens().next().unwrap_or_default().into_owned();
            let whole = self.unit(Pointer::of([&*top]));
            self.below.entry(whole).or_default().push(at);
        }
        at
    }

    /// The newest writes of a unit among the causal ancestors of a node, itself included, in order of ticks.
    fn newest(&self, unit: usize, tick: u64) -> Vec<Cow<'_, Write>> {
        let unit = &self.units[unit];
        let mut found: Vec<&Write> = Vec::new();
        for (agent, writes) in &unit.writes {
            let upto = writes.partition_point(|write| write.index <= self.seen(tick, *agent));
            found.extend(upto.checked_sub(1).map(|at| &writes[at]));
        }
        let found = if found.is_empty() { vec![&unit.first] } else { self.unfollowed(found) };
        found.into_iter().map(|write| self.through(unit, write, tick)).collect()
    }

    /// Lists the newest writes of a unit, with those that other sync nodes put together by the same strategy, or kept, in place of
    /// the outcome: so all are put together at once, and the order in which agents merge changes nothing.
    fn newest_apart(&self, unit: usize, tick: u64, strategy: SyncStrategy) -> Vec<Cow<'_, Write>> {
        let mut left: Vec<u64> = self.newest(unit, tick).iter().map(|write| write.tick).collect();
        let (mut seen, mut apart) = (BTreeSet::new(), Vec::new());
        while let Some(tick) = left.pop() {
            if !seen.insert(tick) {
                continue;
            }
            let write = self.write_at(unit, tick);
            match write.met.as_ref().filter(|met| met.is_open || met.strategy == strategy) {
                Some(met) => left.extend(&met.ticks),
                None => apart.push(write),
            }
        }
        let unit = &self.units[unit];
        let apart = self.unfollowed(apart);
        apart.into_iter().map(|write| self.through(unit, write, tick)).collect()
    }

    /// The agent of a node, and the number of the node's write of a unit among those of that agent.
    fn place_of(&self, unit: usize, tick: u64) -> Option<(usize, usize)> {
        let node = &self.nodes[tick];
        let writes = self.units[unit].writes.get(&node.agent)?;
        let at = writes.binary_search_by_key(&node.index, |write| write.index).ok()?;
        Some((node.agent, at))
    }

    /// The write of a unit by a node that wrote it.
    fn write_at(&self, unit: usize, tick: u64) -> &Write {
        let place = self.place_of(unit, tick);
        let unit = &self.units[unit];
        place.map_or(&unit.first, |(agent, at)| &unit.writes[&agent][at])
    }

    /// Those of several writes of a unit that no other one follows, in order of ticks.
    fn unfollowed<'w>(&self, mut found: Vec<&'w Write>) -> Vec<&'w Write> {
        let all = found.clone();
        let is_followed = |write: &Write| {
            all.iter().any(|other| other.tick != write.tick && self.reaches(write.tick, other.tick))
        };
        found.retain(|write| !is_followed(write));
        found.sort_unstable_by_key(|write| write.tick);
        found
    }

    /// The content of a unit; the value that several newest writes agree on, if they do.
    fn content(&self, unit: usize, tick: u64) -> Content {
        self.newest(unit, tick).first().map_or(Content::Absent, |write| write.content.clone())
    }

    /// The places at or below a unit that are unknown.
    fn unknown_in(&self, unit: usize, tick: u64) -> Vec<(Pointer, Since)> {
        let mut found: Vec<(Pointer, Since)> = Vec::new();
        for write in self.newest(unit, tick) {
            for (place, since) in &write.unknown {
                if !found.iter().any(|(known, _)| known == place) {
                    found.push((place.clone(), since.clone()));
                }
            }
        }
        found
    }

    /// The writes that the places of a unit are from, at a node.
    fn origins(&self, unit: usize, tick: u64) -> Origins {
        let newest = self.newest(unit, tick);
        match &newest[..] {
            [only] => only.origins.clone(),
            _ => self.sides(unit, &newest, SyncStrategy::Manual, tick, |sides| sides.agreed()),
        }
    }

    /// Writes a unit as a whole.
    fn write(
        &mut self,
        unit: usize,
        tick: u64,
        content: Content,
        unknown: Vec<(Pointer, Since)>,
        confidence: f64,
    ) {
        let origins = Origins::of(&[Stamp::own(tick, confidence)]);
        self.write_of(unit, tick, (content, unknown, origins), confidence);
    }

    fn write_of(
        &mut self,
        unit: usize,
        tick: u64,
        (content, unknown, origins): (Content, Vec<(Pointer, Since)>, Origins),
        confidence: f64,
    ) {
        let node = &mut self.nodes[tick];
        let write = Write { index: node.index, tick, content, unknown, confidence, origins, met: None };
        let writes = self.units[unit].writes.entry(node.agent).or_default();
        match writes.last_mut() {
            Some(last) if last.tick == tick => *last = write,
            _ => {
                writes.push(write);
                node.written.push(unit);
            }
        }
    }

    /// Decides the units on which the parents of a node differ.
    fn synchronize(&mut self, tick: u64, node: &CausalNode) {
        let parents = self.nodes[tick].parents.clone();
        let [first, others @ ..] = &parents[..] else { return };
        // The units that another parent saw and the first did not.
        let mut units: BTreeSet<usize> = BTreeSet::new();
        for other in others {
            for (is_here, ticks) in self.branches_beyond(*other, *first) {
                match is_here && ticks.iter().all(|seen| *seen >= self.whole_from) {
                    true => ticks.iter().for_each(|seen| units.extend(&self.nodes[*seen].written)),
                    // The units that those nodes wrote are not here. One on which nothing differs is left as it is.
                    false => units.extend(0..self.units.len()),
                }
            }
        }
        // Members of what is a value behind the node are gone with it, so the members of the state come first.
        let (whole, members): (Vec<usize>, Vec<usize>) =
            units.into_iter().partition(|unit| self.units[*unit].path.tokens().count() == 1);
        for unit in whole.into_iter().chain(members) {
            self.decide(unit, tick, node);
        }
    }

    /// Decides a unit on which the parents of a node may differ.
    fn decide(&mut self, unit: usize, tick: u64, node: &CausalNode) {
        let newest = self.newest(unit, tick);
        let path = self.units[unit].path.clone();
        // A unit that one parent does not know is unknown after the node, whichever is taken.
        let unknown = self.unknown_in(unit, tick);
        if newest.len() > 1 && newest.iter().any(|write| write.is_unknown(&path)) {
            // Nothing is known to compete, so nothing is decided.
            return self.write(unit, tick, Content::Absent, unknown, node.confidence);
        }
        let is_equal = newest.iter().all(|write| write.content == newest[0].content);
        if newest.len() == 1 || is_equal && node.version < LEAVES_VERSION {
            return;
        }
        let dotted = path.dotted();
        let said = node.merge.of_unit(&dotted).into_iter().chain(self.rules.of_unit(&dotted)).flatten();
        let strategy = said.into_iter().next().unwrap_or_default();
        let has_leaves = node.version >= LEAVES_VERSION;
        let is_settled = |met: &Met| !met.is_open || strategy == SyncStrategy::Manual;
        let met = newest[0].met.as_ref().filter(|met| is_settled(met));
        if has_leaves && met.is_some() && newest.iter().all(|write| write.met.as_ref() == met) {
            // Several sync nodes met the same writes, and so does this one.
            return;
        }
        let newest = if has_leaves { self.newest_apart(unit, tick, strategy) } else { newest };
        let (content, mut origins, conflicts) = match has_leaves {
            true => self.decide_leaves(unit, &newest, strategy, tick),
            false => self.decide_whole(unit, &newest, strategy, tick),
        };
        if is_equal && conflicts.is_empty() {
            return;
        }
        let is_open = conflicts.iter().any(|conflict| conflict.taken.is_none());
        if is_open {
            origins = Origins::of(&[Stamp::own(tick, node.confidence)]);
        }
        let met = Met { strategy, is_open, ticks: newest.iter().map(|write| write.tick).collect() };
        if content != Content::Members {
            for below in self.below.get(&unit).cloned().unwrap_or_default() {
                let is_there =
                    |write: &Cow<'_, Write>| write.content != Content::Absent || !write.unknown.is_empty();
                if self.newest(below, tick).iter().any(is_there) {
                    self.write(below, tick, Content::Absent, Vec::new(), node.confidence);
                }
            }
        }
        let value = shown(&content);
        let own = self.branches[self.nodes[tick].agent].ticks.iter().rev().nth(1);
        let before = own.and_then(|own| shown(&self.content(unit, *own)));
        self.write_of(unit, tick, (content, unknown, origins), node.confidence);
        if has_leaves {
            let writes = self.units[unit].writes.get_mut(&self.nodes[tick].agent);
            writes.and_then(|writes| writes.last_mut()).expect("it was written").met = Some(met);
        }
        self.conflicts.extend(conflicts);
        self.merged.push(SyncWrite { at: tick, unit: path, value, before, strategy });
    }

    /// Takes one of several writes of a unit, or keeps all: the rules before [`LEAVES_VERSION`].
    fn decide_whole(
        &self,
        unit: usize,
        newest: &[Cow<'_, Write>],
        strategy: SyncStrategy,
        at: u64,
    ) -> (Content, Origins, Vec<SyncConflict>) {
        let side = |write: &Cow<'_, Write>| {
            let (agent, value) = (self.agent(write.tick).cloned(), self.shown_at(unit, write));
            SyncSide { tick: write.tick, agent, value, is_misread: false }
        };
        let values: Vec<SyncSide> = newest.iter().map(side).collect();
        let best = *self.ranked(strategy, newest).last().expect("a conflict has sides");
        let origins = newest[best].origins.decided(at);
        let (content, taken) = match strategy {
            SyncStrategy::Manual => (kept(&values), None),
            _ => (newest[best].content.clone(), Some(best)),
        };
        let path = self.units[unit].path.clone();
        (content, origins, vec![SyncConflict { at, path, values, strategy, taken, is_written: false }])
    }

    /// Merges several values of a unit, leaf by leaf if they are objects and a strategy decides.
    fn decide_leaves(
        &self,
        unit: usize,
        newest: &[Cow<'_, Write>],
        strategy: SyncStrategy,
        at: u64,
    ) -> (Content, Origins, Vec<SyncConflict>) {
        let has_members = newest.iter().any(|write| write.content == Content::Members);
        let (value, origins, decided) = self.sides(unit, newest, strategy, at, |sides| sides.merge());
        let conflict = |one: leaves::Decided| {
            let sides = one.sides.into_iter().enumerate();
            let mut values: Vec<(usize, SyncSide)> = sides
                .map(|(number, side)| {
                    let write = &newest[side.side];
                    let value = if has_members { self.shown_at(unit, write) } else { side.value };
                    (number, self.side(write, value, &side.stamps, strategy))
                })
                .collect();
            values.sort_by_key(|(_, side)| side.tick);
            let taken = values.iter().position(|(number, _)| Some(*number) == one.taken);
            let values = values.into_iter().map(|(_, side)| side).collect();
            SyncConflict { at, path: one.path, values, strategy, taken, is_written: false }
        };
        let conflicts: Vec<SyncConflict> = decided.into_iter().map(conflict).collect();
        let content = match (conflicts.first(), value) {
            (Some(conflict), _) if conflict.taken.is_none() => kept(&conflict.values),
            // The value of an object with units is empty here, and no other one is.
            (_, Some(value)) if has_members && value == Value::object() => Content::Members,
            (_, value) => value.map_or(Content::Absent, Content::Value),
        };
        (content, origins, conflicts)
    }

    /// Asks the sides of a unit.
    fn sides<T>(
        &self,
        unit: usize,
        newest: &[Cow<'_, Write>],
        strategy: SyncStrategy,
        at: u64,
        ask: impl FnOnce(&leaves::Sides<'_>) -> T,
    ) -> T {
        let writes: Vec<&Write> = newest.iter().map(|write| &**write).collect();
        let has_members = newest.iter().any(|write| write.content == Content::Members);
        ask(&leaves::Sides {
            unit: &self.units[unit].path,
            writes: &writes,
            strategy,
            is_whole: has_members || strategy == SyncStrategy::Manual,
            at,
            reaches: &|ancestor, tick| self.reaches(ancestor, tick),
            rank: &|stamp, value| self.rank(strategy, stamp, value).unwrap_or(0.0),
        })
    }

    /// The value that a write left in a unit.
    fn shown_at(&self, unit: usize, write: &Write) -> Option<Value> {
        match write.content {
            Content::Members => Some(self.members(unit, write.tick)),
            _ => shown(&write.content),
        }
    }

    /// A side of a conflict. If several agents wrote its parts, it is named by the write that put them together.
    fn side(
        &self,
        write: &Write,
        value: Option<Value>,
        stamps: &[Stamp],
        strategy: SyncStrategy,
    ) -> SyncSide {
        let newest = stamps.iter().map(|stamp| stamp.from).max().unwrap_or(write.tick);
        let is_ones = stamps.iter().all(|stamp| self.agent(stamp.from) == self.agent(newest));
        let tick = if is_ones { newest } else { write.tick };
        let is_misread = stamps.iter().any(|stamp| self.rank(strategy, stamp, value.as_ref()).is_none());
        SyncSide { tick, agent: self.agent(tick).cloned(), value, is_misread }
    }

    /// The members of a unit of one name, at a node.
    fn members(&self, whole: usize, tick: u64) -> Value {
        let mut members = Object::default();
        for below in self.below.get(&whole).into_iter().flatten() {
            if let Content::Value(value) = self.content(*below, tick) {
                members.set(&self.units[*below].path.tokens().nth(1).unwrap_or_default(), value);
            }
        }
        Value::Object(members)
    }

    /// The number by which a strategy takes a write with its value. `None` for a confidence that is no number from 0 to 1.
    fn rank(&self, strategy: SyncStrategy, stamp: &Stamp, value: Option<&Value>) -> Option<f64> {
        match strategy {
            SyncStrategy::Manual | SyncStrategy::Lww => Some(0.0),
            SyncStrategy::Confidence => match value.and_then(|value| value.get("confidence")) {
                Some(said) => said.as_f64(),
                None => Some(stamp.confidence),
            }
            .filter(|said| (0.0..=1.0).contains(said)),
            SyncStrategy::Policy => Some(self.role(stamp.from)),
        }
    }

    fn role(&self, tick: u64) -> f64 {
        self.agent(tick).and_then(|agent| self.rules.roles.get(agent)).copied().unwrap_or(0.0)
    }

    /// The numbers of several writes, the one that a strategy takes last, by the rules before [`LEAVES_VERSION`]: the tick, the
    /// confidence or the role is that of the node that wrote the unit or decided it.
    fn ranked(&self, strategy: SyncStrategy, writes: &[Cow<'_, Write>]) -> Vec<usize> {
        let rank = |write: &Write| match strategy {
            SyncStrategy::Manual | SyncStrategy::Lww => 0.0,
            SyncStrategy::Confidence => match &write.content {
                Content::Value(value) => value.get("confidence").and_then(Value::as_f64),
                _ => None,
            }
            .unwrap_or(if write.confidence == NO_NUMBER { 0.0 } else { write.confidence }),
            SyncStrategy::Policy => self.role(write.tick),
        };
        let mut ranked: Vec<usize> = (0..writes.len()).collect();
        ranked.sort_by(|a, b| {
            rank(&writes[*a])
                .total_cmp(&rank(&writes[*b]))
                .then_with(|| writes[*a].tick.cmp(&writes[*b].tick))
        });
        ranked
    }

    /// Whether there is, or may be, something at a unit.
    fn may_be(&self, unit: usize, tick: u64) -> bool {
        self.content(unit, tick) != Content::Absent || !self.unknown_in(unit, tick).is_empty()
    }

    /// Makes one change of the state of a node.
    fn change(&mut self, tick: u64, op: &Op, stamp: Stamp) {
        let confidence = stamp.confidence;
        let tokens: Vec<String> = op.path.tokens().map(|token| token.into_owned()).collect();
        let [top, below @ ..] = &tokens[..] else { return };
        if is_kernels(top) {
            return;
        }
        let whole = self.unit(Pointer::of([&**top]));
        let is_object = self.content(whole, tick) == Content::Members;
        match (below, op.action, &op.value) {
            ([], Action::Set, Some(value)) if value.as_object().is_some() => {
                let members = value.as_object().cloned().unwrap_or_default();
                self.write(whole, tick, Content::Members, Vec::new(), confidence);
                for unit in self.below.get(&whole).cloned().unwrap_or_default() {
                    let key = self.units[unit].path.tokens().nth(1).unwrap_or_default().into_owned();
                    if members.get(&key).is_none() && self.may_be(unit, tick) {
                        self.write(unit, tick, Content::Absent, Vec::new(), confidence);
                    }
                }
                for (key, value) in members.iter() {
                    let unit = self.unit(Pointer::of([&**top, key]));
                    let before = shown(&self.content(unit, tick));
                    let (sides, stamp) = ([before.as_ref(), Some(value)], Stamp::own(tick, confidence));
                    let origins = self.origins(unit, tick).changed(&[], sides, &stamp);
                    let content = Content::Value(value.clone());
                    self.write_of(unit, tick, (content, Vec::new(), origins), confidence);
                }
            }
            ([], action @ (Action::Set | Action::Remove), value) => {
                let content = match (action, value) {
                    (Action::Set, Some(value)) => Content::Value(value.clone()),
                    _ => Content::Absent,
                };
                self.write(whole, tick, content, Vec::new(), confidence);
                for unit in self.below.get(&whole).cloned().unwrap_or_default() {
                    if self.may_be(unit, tick) {
                        self.write(unit, tick, Content::Absent, Vec::new(), confidence);
                    }
                }
            }
            ([key, ..], ..) if is_object || self.content(whole, tick) == Content::Absent => {
                let unit = self.unit(Pointer::of([&**top, &**key]));
                self.change_below(tick, op, unit, stamp);
                if !is_object && self.content(unit, tick) != Content::Absent {
                    let unknown = self.unknown_in(whole, tick);
                    self.write(whole, tick, Content::Members, unknown, confidence);
                }
            }
            _ => self.change_below(tick, op, whole, stamp),
        }
    }

    /// Makes a change at or below a unit. One that does not fit what the ancestors left there makes its place unknown.
    fn change_below(&mut self, tick: u64, op: &Op, unit: usize, stamp: Stamp) {
        let (mut content, mut unknown) = (self.content(unit, tick), self.unknown_in(unit, tick));
        let (before, origins) = (shown(&content), self.origins(unit, tick));
        let path = &self.units[unit].path;
        applied(path, op, tick, &mut content, &mut unknown);
        let origins = changed(&origins, path, op, &[before, shown(&content)], stamp);
        self.write_of(unit, tick, (content, unknown, origins), stamp.confidence);
    }

    /// The state of the agent of a node, behind it: that of its causal ancestors, each counted once.
    pub fn state(&self, tick: u64) -> Value {
        let mut state = Object::default();
        for (whole, unit) in self.units.iter().enumerate().filter(|(_, unit)| unit.path.tokens().count() == 1)
        {
            let top = unit.path.tokens().next().unwrap_or_default();
            let members = self.members(whole, tick);
            let has_members = members.as_object().is_some_and(|members| !members.is_empty());
            match self.content(whole, tick) {
                Content::Value(value) => state.set(&top, value),
                Content::Absent if !has_members => {}
                Content::Members | Content::Absent => state.set(&top, members),
            }
        }
        Value::Object(state)
    }

    /// The places of the state of a node that are unknown, each with its cause.
    pub fn unknown(&self, tick: u64) -> Vec<(Pointer, Since)> {
        let mut unknown: Vec<_> =
            (0..self.units.len()).flat_map(|unit| self.unknown_in(unit, tick)).collect();
        unknown.sort_by(|a, b| a.0.cmp(&b.0));
        unknown.dedup_by(|a, b| a.0 == b.0);
        unknown
    }

    /// The units that a node writes, decided conflicts included.
    pub fn written(&self, tick: u64) -> impl Iterator<Item = &Pointer> {
        self.nodes[tick].written.iter().map(|unit| &self.units[*unit].path)
    }

    /// The units that a node writes, each with its value behind the node: `None` where it is absent. Those that are unknown behind
    /// it are left out.
    pub fn writes(&self, tick: u64) -> impl Iterator<Item = (&Pointer, Option<Value>)> {
        let is_known = move |unit: &&usize| {
            let path = &self.units[**unit].path;
            !self.newest(**unit, tick).iter().any(|write| write.is_unknown(path))
        };
        let written = self.nodes[tick].written.iter().filter(is_known);
        written.map(move |unit| (&self.units[*unit].path, shown(&self.content(*unit, tick))))
    }

    /// How many units differ between the states of several nodes.
    pub fn differing(&self, ticks: &[u64]) -> u64 {
        let differs = |unit: &usize| {
            // An object with members is no unit itself.
            let content = |tick: &u64| match self.content(*unit, *tick) {
                Content::Members if self.members(*unit, *tick) != Value::object() => Content::Absent,
                content => content,
            };
            let mut contents = ticks.iter().map(content);
            let first = contents.next();
            contents.any(|content| Some(content) != first)
        };
        (0..self.units.len()).filter(differs).count() as u64
    }
}

/// Makes a change at or below a unit. One that does not fit what is there makes its place unknown.
fn applied(unit: &Pointer, op: &Op, tick: u64, content: &mut Content, unknown: &mut Vec<(Pointer, Since)>) {
    let before = match &*content {
        Content::Value(value) => Delta(vec![Op::set(unit.clone(), value.clone())]).apply(&Value::object()),
        Content::Members => Delta(vec![Op::set(unit.clone(), Value::object())]).apply(&Value::object()),
        Content::Absent => Ok(Value::object()),
    };
    let after = before.and_then(|before| Delta(vec![op.clone()]).apply(&before));
    match after {
        Ok(after) => {
            *content = unit.get(&after).map_or(Content::Absent, |value| Content::Value(value.clone()));
            if op.action == Action::Set {
                unknown.retain(|(place, _)| !op.path.contains(place));
            }
        }
        // A unit that is to be removed is already gone.
        Err(_) if op.action == Action::Remove => {}
        Err(_) => {
            unknown.retain(|(known, _)| *known != op.path);
            unknown.push((op.path.clone(), Since { tick, code: NOT_CAUSAL.into() }));
        }
    }
}

/// The writes of a unit after a change of it, which led from one value to another.
fn changed(origins: &Origins, unit: &Pointer, op: &Op, sides: &[Option<Value>; 2], stamp: Stamp) -> Origins {
    let is_more = stamp.is_more && matches!(op.action, Action::Add | Action::Append);
    let [before, after] = sides;
    let steps = steps_below(unit, &op.path);
    origins.changed(&steps, [before.as_ref(), after.as_ref()], &Stamp { is_more, ..stamp })
}

/// The steps from a unit to a place in it.
fn steps_below(unit: &Pointer, place: &Pointer) -> Vec<String> {
    place.tokens().skip(unit.tokens().count()).map(|token| token.into_owned()).collect()
}

/// All sides of a conflict as a value.
fn kept(sides: &[SyncSide]) -> Content {
    let removed = || Value::record([(REMOVED, Value::from(true))]);
    let kept = sides.iter().map(|side| side.value.clone().unwrap_or_else(removed));
    Content::Value(Value::record([(CONFLICT, Value::from(true)), ("values", Value::array(kept))]))
}

/// Makes a change of a marker in what a write left in a unit that it touches.
fn marked(unit: &Pointer, op: &Op, tick: u64, content: &mut Content, unknown: &mut Vec<(Pointer, Since)>) {
    let depth = unit.tokens().count();
    let key = unit.tokens().nth(1);
    let is_set = op.action == Action::Set;
    let members = op.value.as_ref().and_then(Value::as_object);
    match (op.path.tokens().count(), key) {
        // The member of the state, as a whole: its units are its members.
        (1, None) if is_set && members.is_some() => (*content, *unknown) = (Content::Members, Vec::new()),
        (1, Some(key)) if matches!(op.action, Action::Set | Action::Remove) => {
            let member = members.filter(|_| is_set).and_then(|members| members.get(&key));
            (*content, *unknown) = (member.cloned().map_or(Content::Absent, Content::Value), Vec::new());
        }
        (1, Some(_)) => {}
        // A change of a member leaves an object an object.
        (2.., None) if *content == Content::Members => {}
        (2, None) if *content == Content::Absent && is_set => *content = Content::Members,
        (2.., None) if *content == Content::Absent => {}
        (2.., Some(_)) if depth == 2 && !op.path.overlaps(unit) => {}
        _ => applied(unit, op, tick, content, unknown),
    }
}

fn index(tick: u64) -> usize {
    usize::try_from(tick).expect("a tick of a graph in memory")
}

/// The unit that a place of an object lies in.
fn unit_of(place: &Pointer) -> Pointer {
    let tokens: Vec<_> = place.tokens().take(2).map(|token| token.into_owned()).collect();
    Pointer::of(tokens.iter().map(String::as_str))
}

fn shown(content: &Content) -> Option<Value> {
    match content {
        Content::Absent => None,
        Content::Members => Some(Value::object()),
        Content::Value(value) => Some(value.clone()),
    }
}
