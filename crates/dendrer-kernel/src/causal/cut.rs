//! Cuts: what later nodes and questions need of a graph, as bytes.
//!
//! A cut at a tick has the newest nodes and the end of each branch, and of each unit the writes that these nodes see: for each
//! branch the newest one up to each place that one of them sees, with the nodes that their places are from. A unit that was taken
//! whole has the members that its write saw. A transition whose parents are among the nodes of a cut is added as to the whole graph.
//!
//! Rule: a state read from a cut equals that of the whole graph; test `a_cut_leads_to_the_same_states`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_object::delta::Delta;
use dendrer_object::{Pointer, Value, json};

use super::origins::Origins;
use super::{
    Branch, CausalError, CausalGraph, CausalNode, Content, MergeRules, Met, Node, Nodes, Since, SyncStrategy,
    Write,
};

/// The bytes of a cut, and its size.
#[derive(Debug, Clone)]
pub struct CutBytes {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The number of nodes and writes.
    pub entries: u64,
}

/// A graph that was read from a cut. It answers for its newest nodes alone.
#[derive(Debug)]
pub struct CausalCut(CausalGraph);

impl From<CausalGraph> for CausalCut {
    fn from(graph: CausalGraph) -> CausalCut {
        CausalCut(graph)
    }
}

impl CausalCut {
    /// Reads the bytes of [`CausalGraph::cut`], of a run that begins with a state. `None` for other bytes.
    pub fn read(initial: &Value, rules: MergeRules, bytes: &[u8]) -> Option<CausalCut> {
        let mut graph = CausalGraph::new(initial, rules);
        let mut input = Input(bytes);
        graph.read_cut(&mut input)?;
        input.0.is_empty().then_some(CausalCut(graph))
    }

    /// The ticks of the nodes that a later transition may have as parents, in order.
    pub fn recent(&self) -> Vec<u64> {
        self.0.recent(u64::MAX)
    }

    /// As [`CausalGraph::tip`].
    pub fn tip(&self) -> u64 {
        self.0.tip()
    }

    /// The newest transition of an agent.
    pub fn newest_of(&self, agent: &str) -> Option<u64> {
        self.0.branch(agent).last().copied()
    }

    /// As [`CausalGraph::push`]. The parents are among [`CausalCut::recent`].
    pub fn push(&mut self, node: CausalNode) -> Result<(), CausalError> {
        self.0.push(node)
    }

    /// As [`CausalGraph::marker_after`].
    pub fn marker_after(&self, tick: u64) -> Option<u64> {
        self.0.marker_after(tick)
    }

    /// As [`CausalGraph::state`], at the newest transition of an agent.
    pub fn state(&self, tick: u64) -> Value {
        self.0.state(tick)
    }

    /// As [`CausalGraph::unknown`], at the newest transition of an agent.
    pub fn unknown(&self, tick: u64) -> Vec<(Pointer, Since)> {
        self.0.unknown(tick)
    }

    /// As [`CausalGraph::cut`].
    pub fn cut(&self, recent: u64) -> CutBytes {
        self.0.cut(recent)
    }

    /// As [`CausalGraph::recent`].
    pub fn recent_of_cut(&self, recent: u64) -> Vec<u64> {
        self.0.recent(recent)
    }
}

/// The order of the nodes of a run, without what they wrote.
#[derive(Debug)]
pub struct CausalLinks(CausalGraph);

impl Default for CausalLinks {
    fn default() -> CausalLinks {
        CausalLinks(CausalGraph::new(&Value::object(), MergeRules::default()))
    }
}

impl CausalLinks {
    /// As [`CausalGraph::push`]; the change counts for nothing.
    pub fn push(&mut self, node: CausalNode) -> Result<(), CausalError> {
        let CausalNode { agent, parents, is_marker, .. } = node;
        self.0.push(CausalNode { parents, is_marker, ..CausalNode::idle(&agent) })
    }

    /// Adds nodes as [`CausalGraph::links`] wrote them, which follow the last one. `None` for other bytes: then nothing is added
    /// that counts, and the links are of no use any more.
    pub fn read(&mut self, bytes: &[u8]) -> Option<()> {
        let mut input = Input(bytes);
        self.0.read_links(&mut input)?;
        input.0.is_empty().then_some(())
    }

    /// As [`CausalGraph::links`].
    pub fn links(&self, from: u64) -> Vec<u8> {
        self.0.links(from)
    }

    /// As [`CausalGraph::tip`].
    pub fn tip(&self) -> u64 {
        self.0.tip()
    }

    /// As [`CausalGraph::branch`].
    pub fn branch(&self, agent: &str) -> &[u64] {
        self.0.branch(agent)
    }

    /// As [`CausalGraph::extension`].
    pub fn extension(&self, tick: u64, of: u64) -> Vec<u64> {
        self.0.extension(tick, of)
    }

    /// As [`CausalGraph::lowest_common`].
    pub fn lowest_common(&self, a: u64, b: u64) -> Vec<u64> {
        self.0.lowest_common(a, b)
    }
}

/// The writes of a cut: for each unit and agent their places in the list of that agent's writes.
type Wanted = BTreeMap<(usize, usize), BTreeSet<usize>>;

impl CausalGraph {
    /// The ticks of the nodes of a cut that a later transition may have as parents: so many of the newest ones, the last of each
    /// branch and the newest marker, and whatever follows one of these in its branch.
    pub fn recent(&self, recent: u64) -> Vec<u64> {
        let from = self.nodes.end().saturating_sub(recent);
        let marker = self.markers.last().map(|(tick, _)| *tick);
        let of_branch = |branch: &Branch| {
            let first = branch.ticks.partition_point(|tick| *tick < from);
            let first = first.min(branch.ticks.len().saturating_sub(1));
            let marker = marker.and_then(|marker| branch.ticks.binary_search(&marker).ok());
            branch.ticks[marker.map_or(first, |marker| first.min(marker))..].to_vec()
        };
        let mut ticks: Vec<u64> = self.branches.iter().flat_map(of_branch).collect();
        ticks.sort_unstable();
        ticks
    }

    /// Cuts the graph at its newest node, with [`CausalGraph::recent`] nodes at its end.
    pub fn cut(&self, recent: u64) -> CutBytes {
        let whole_from = self.nodes.end().saturating_sub(recent).max(self.whole_from);
        let recent = self.recent(recent);
        let wanted = self.wanted(&recent);
        let mut nodes: BTreeSet<u64> = recent.iter().copied().collect();
        for ((unit, agent), places) in &wanted {
            for write in places.iter().map(|at| &self.units[*unit].writes[agent][*at]) {
                let stamps = write.origins.all().into_iter().flat_map(|stamp| [stamp.by, stamp.from]);
                let met = write.met.iter().flat_map(|met| met.ticks.iter().copied());
                nodes.extend(stamps.chain(met).chain([write.tick]).filter(|tick| *tick > 0));
            }
        }
        nodes.extend(self.markers.iter().map(|(tick, _)| *tick));
        let mut out = Output::default();
        out.number(self.tip());
        out.number(whole_from);
        out.number(self.agents.len() as u64);
        self.agents.iter().for_each(|agent| out.bytes(agent.as_bytes()));
        out.number(self.units.len() as u64);
        self.units.iter().for_each(|unit| out.bytes(unit.path.as_str().as_bytes()));
        out.number(self.markers.len() as u64);
        for (tick, change) in &self.markers {
            out.number(*tick);
            out.bytes(&json::to_vec(&change.to_value()));
        }
        self.write_nodes(&nodes, &recent, &mut out);
        out.number(wanted.len() as u64);
        let mut entries = nodes.len() as u64;
        for ((unit, agent), places) in &wanted {
            entries += places.len() as u64;
            out.number(*unit as u64);
            out.number(*agent as u64);
            out.number(places.len() as u64);
            places.iter().for_each(|at| out.write(&self.units[*unit].writes[agent][*at]));
        }
        CutBytes { bytes: out.0, entries }
    }

    fn write_nodes(&self, nodes: &BTreeSet<u64>, recent: &[u64], out: &mut Output) {
        let (mut clocks, mut numbers): (Vec<&Arc<[u32]>>, BTreeMap<*const u32, u64>) = Default::default();
        for tick in nodes {
            let clock = &self.nodes[*tick].others;
            numbers.entry(clock.as_ptr()).or_insert_with(|| {
                clocks.push(clock);
                clocks.len() as u64 - 1
            });
        }
        out.number(clocks.len() as u64);
        for clock in clocks {
            out.number(clock.len() as u64);
            clock.iter().for_each(|seen| out.number(u64::from(*seen)));
        }
        out.number(nodes.len() as u64);
        let mut before = 0;
        for tick in nodes {
            let node = &self.nodes[*tick];
            let is_recent = u64::from(recent.binary_search(tick).is_ok());
            out.number(tick - before);
            out.number((node.agent as u64) << 1 | is_recent);
            out.number(u64::from(node.index));
            out.number(numbers[&node.others.as_ptr()]);
            before = *tick;
        }
    }

    /// The order of the nodes from a tick on, as bytes that follow those of the nodes before.
    pub fn links(&self, from: u64) -> Vec<u8> {
        let mut out = Output::default();
        let is_new = |branch: &&Branch| branch.ticks.first().is_none_or(|first| *first >= from);
        let known = self.branches.iter().take_while(|branch| !is_new(branch)).count();
        out.number((self.agents.len() - known) as u64);
        self.agents[known..].iter().for_each(|agent| out.bytes(agent.as_bytes()));
        let markers: Vec<u64> =
            self.markers.iter().map(|(tick, _)| *tick).filter(|tick| *tick >= from).collect();
        out.number(markers.len() as u64);
        markers.iter().for_each(|tick| out.number(*tick));
        let nodes: BTreeSet<u64> = (from..=self.tip()).collect();
        self.write_nodes(&nodes, &[], &mut out);
        for tick in nodes {
            let parents = self.parents(tick);
            out.number(parents.len() as u64);
            parents.iter().for_each(|parent| out.number(tick - parent));
        }
        out.0
    }

    fn read_links(&mut self, input: &mut Input<'_>) -> Option<()> {
        for _ in 0..input.number()? {
            let name: Arc<str> = input.text()?.into();
            self.agent_of(&name);
        }
        for _ in 0..input.number()? {
            self.markers.push((input.number()?, Delta::default()));
        }
        let clocks = self.read_clocks(input)?;
        let (mut last, count) = (0, input.number()?);
        for _ in 0..count {
            let (tick, (node, _)) = (self.nodes.end(), self.read_node(&mut last, &clocks, input)?);
            let branch = &mut self.branches[node.agent];
            branch.ticks.push(tick);
            (last == tick && branch.ticks.len() as u64 == u64::from(node.index)).then_some(())?;
            self.nodes.rest.push(node);
        }
        for tick in self.nodes.end().checked_sub(count)?..self.nodes.end() {
            for _ in 0..input.number()? {
                let parent =
                    input.number().filter(|back| *back > 0).and_then(|back| tick.checked_sub(back))?;
                self.nodes[tick].parents.push(parent);
            }
        }
        Some(())
    }

    /// The writes that a cut with some nodes at its end has.
    fn wanted(&self, recent: &[u64]) -> Wanted {
        // The places up to which some node of the end sees a branch.
        let mut seen: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); self.agents.len()];
        let mut clocks = BTreeSet::new();
        for node in recent.iter().map(|tick| &self.nodes[*tick]) {
            seen[node.agent].insert(node.index);
            if clocks.insert(node.others.as_ptr()) {
                for (seen, place) in seen.iter_mut().zip(node.others.iter()) {
                    seen.insert(*place);
                }
            }
        }
        let newest =
            |writes: &[Write], seen: u32| writes.partition_point(|write| write.index <= seen).checked_sub(1);
        let mut first = Wanted::new();
        for (number, unit) in self.units.iter().enumerate() {
            for (agent, writes) in &unit.writes {
                let places: BTreeSet<usize> =
                    seen[*agent].iter().filter_map(|seen| newest(writes, *seen)).collect();
                if !places.is_empty() {
                    first.insert((number, *agent), places);
                }
            }
        }
        let of_unit = |unit: usize| {
            let agents = first.range((unit, 0)..=(unit, usize::MAX));
            agents.flat_map(move |((_, agent), places)| {
                places.iter().map(move |at| self.units[unit].writes[agent][*at].tick)
            })
        };
        let mut wanted = first.clone();
        for (number, unit) in self.units.iter().enumerate() {
            // A unit that was taken whole has the members that its write saw.
            let whole = self.whole_of(number);
            let writes: BTreeSet<u64> = whole.into_iter().flat_map(of_unit).collect();
            for (agent, own) in &unit.writes {
                let places = writes.iter().filter_map(|tick| newest(own, self.seen(*tick, *agent)));
                let places: BTreeSet<usize> = places.collect();
                if !places.is_empty() {
                    wanted.entry((number, *agent)).or_default().extend(places);
                }
            }
        }
        self.add_met(&mut wanted);
        wanted
    }

    /// Adds the writes that sync nodes put together to those that are there.
    fn add_met(&self, wanted: &mut Wanted) {
        let all =
            wanted.iter().flat_map(|((unit, agent), places)| places.iter().map(|at| (*unit, *agent, *at)));
        let mut left: Vec<(usize, usize, usize)> = all.collect();
        while let Some((unit, agent, at)) = left.pop() {
            let met = self.units[unit].writes[&agent][at].met.iter().flat_map(|met| &met.ticks);
            for (agent, at) in met.filter_map(|tick| self.place_of(unit, *tick)) {
                if wanted.entry((unit, agent)).or_default().insert(at) {
                    left.push((unit, agent, at));
                }
            }
        }
    }

    /// The member of the state that a unit is a member of.
    fn whole_of(&self, unit: usize) -> Option<usize> {
        let path = &self.units[unit].path;
        let top = path.tokens().next().filter(|_| path.tokens().count() == 2)?;
        self.by_path.get(&Pointer::of([&*top])).copied()
    }

    fn read_cut(&mut self, input: &mut Input<'_>) -> Option<()> {
        let tip = input.number()?;
        self.whole_from = input.number()?;
        for _ in 0..input.number()? {
            let name: Arc<str> = input.text()?.into();
            self.agent_of(&name);
        }
        for number in 0..input.number()? {
            let unit = self.unit(input.text()?.parse().ok()?);
            (unit as u64 == number).then_some(())?;
        }
        for _ in 0..input.number()? {
            let tick = input.number()?;
            self.markers.push((tick, Delta::from_value(&input.value()?).ok()?));
        }
        self.read_nodes(tip, input)?;
        for _ in 0..input.number()? {
            let (unit, agent) = (input.place(self.units.len())?, input.place(self.agents.len())?);
            let mut writes: Vec<Write> = Vec::new();
            for _ in 0..input.number()? {
                let few = &self.nodes.few;
                let is_known = |tick: u64| few.binary_search_by_key(&tick, |(tick, _)| *tick).is_ok();
                let mut write = input.write(&is_known)?;
                let at = self.nodes.few.binary_search_by_key(&write.tick, |(tick, _)| *tick).ok()?;
                let node = &mut self.nodes.few[at].1;
                write.index = node.index;
                let follows = writes.last().is_none_or(|last| last.index < write.index);
                (node.agent == agent && follows).then_some(())?;
                node.written.push(unit);
                writes.push(write);
            }
            self.units[unit].writes.insert(agent, writes);
        }
        for at in 0..self.markers.len() {
            let tick = self.markers[at].0;
            if let Ok(place) = self.nodes.few.binary_search_by_key(&tick, |(tick, _)| *tick) {
                self.nodes.few[place].1.written = self.touched(tick.checked_sub(1)?, tick);
            }
        }
        Some(())
    }

    fn read_clocks(&mut self, input: &mut Input<'_>) -> Option<Vec<Arc<[u32]>>> {
        let mut clocks: Vec<Arc<[u32]>> = Vec::new();
        for _ in 0..input.number()? {
            let mut clock = Vec::new();
            for _ in 0..input.place(self.agents.len() + 1)? {
                clock.push(u32::try_from(input.number()?).ok()?);
            }
            self.clocks += clock.len();
            clocks.push(clock.into());
        }
        Some(clocks)
    }

    /// Reads a node, and whether it is among the newest. `tick` is that of the node before, and becomes its own.
    fn read_node(
        &self,
        tick: &mut u64,
        clocks: &[Arc<[u32]>],
        input: &mut Input<'_>,
    ) -> Option<(Node, bool)> {
        *tick = input.number().filter(|step| *step > 0)?.checked_add(*tick)?;
        let agent = input.place(self.agents.len() * 2)?;
        let index = u32::try_from(input.number()?).ok().filter(|index| *index > 0)?;
        let others = Arc::clone(clocks.get(input.place(clocks.len())?)?);
        let node = Node { agent: agent >> 1, index, parents: Vec::new(), others, written: Vec::new() };
        Some((node, agent & 1 == 1))
    }

    fn read_nodes(&mut self, tip: u64, input: &mut Input<'_>) -> Option<()> {
        let clocks = self.read_clocks(input)?;
        let beginning = std::mem::take(&mut self.nodes.rest).pop()?;
        self.nodes = Nodes { few: vec![(0, beginning)], from: tip.checked_add(1)?, rest: Vec::new() };
        let mut tick = 0;
        for _ in 0..input.number()? {
            let (node, is_recent) = self.read_node(&mut tick, &clocks, input)?;
            (tick <= tip).then_some(())?;
            let branch = &mut self.branches[node.agent];
            if is_recent {
                if branch.ticks.is_empty() {
                    branch.skipped = node.index - 1;
                }
                let place = u64::from(branch.skipped) + branch.ticks.len() as u64 + 1;
                (place == u64::from(node.index)).then_some(())?;
                branch.ticks.push(tick);
            }
            self.nodes.few.push((tick, node));
        }
        Some(())
    }
}

/// Numbers, texts and values in a row.
#[derive(Default)]
struct Output(Vec<u8>);

impl Output {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn write(&mut self, write: &Write) {
        self.number(write.tick);
        self.number(write.confidence.to_bits());
        match &write.content {
            Content::Absent => self.number(0),
            Content::Members => self.number(1),
            Content::Value(value) => {
                self.number(2);
                self.bytes(&json::to_vec(value));
            }
        }
        self.bytes(&json::to_vec(&write.origins.to_value()));
        let ticks = write.met.as_ref().map_or(&[][..], |met| &met.ticks);
        self.number(ticks.len() as u64);
        ticks.iter().for_each(|tick| self.number(*tick));
        if let Some(met) = &write.met {
            self.bytes(met.strategy.to_string().as_bytes());
            self.number(u64::from(met.is_open));
        }
        self.number(write.unknown.len() as u64);
        for (place, since) in &write.unknown {
            self.bytes(place.as_str().as_bytes());
            self.number(since.tick);
            self.bytes(since.code.as_bytes());
        }
    }
}

/// The rest of the bytes of a cut.
struct Input<'b>(&'b [u8]);

impl<'b> Input<'b> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// A number below another one.
    fn place(&mut self, end: usize) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|place| *place < end)
    }

    fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'b str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn value(&mut self) -> Option<Value> {
        json::parse_canonical(self.bytes()?).ok()
    }

    fn write(&mut self, is_known: &dyn Fn(u64) -> bool) -> Option<Write> {
        let (tick, confidence) = (self.number()?, f64::from_bits(self.number()?));
        let content = match self.number()? {
            0 => Content::Absent,
            1 => Content::Members,
            2 => Content::Value(self.value()?),
            _ => return None,
        };
        let origins = Origins::read(&self.value()?, is_known).filter(|origins| !origins.here().is_empty())?;
        let met = self.met(is_known)?;
        let mut unknown = Vec::new();
        for _ in 0..self.number()? {
            let place = self.text()?.parse().ok()?;
            unknown.push((place, Since { tick: self.number()?, code: self.text()?.into() }));
        }
        Some(Write { index: 0, tick, content, unknown, confidence, origins, met })
    }

    fn met(&mut self, is_known: &dyn Fn(u64) -> bool) -> Option<Option<Met>> {
        let mut ticks = Vec::new();
        for _ in 0..self.number()? {
            ticks.push(self.number().filter(|tick| is_known(*tick))?);
        }
        if ticks.is_empty() {
            return Some(None);
        }
        let strategy = SyncStrategy::from_word(self.text()?)?;
        Some(Some(Met { strategy, is_open: self.number()? == 1, ticks }))
    }
}
