//! The causal graph of a recorded run, as its records and links say (forensic debugger specification, 1.1 and 3).
//!
//! The parents of a transition are the same agent's transition before it, the targets of its `merges` links and, if its agent has
//! none before it, those of `caused_by`, else the beginning of the run. No other link carries state.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::causal::{CausalCut, CausalGraph, CausalLinks, CausalNode, MergeRules, NO_NUMBER};
use dendrer_kernel::ontology::KERNEL;
use dendrer_kernel::step::LEAVES_VERSION;
use dendrer_kernel::unknown::{self, Since};
use dendrer_object::delta::Delta;
use dendrer_object::record::{Record, Rel};
use dendrer_object::{Digest, Pointer, Value};

use crate::address::Position;
use crate::error::Error;
use crate::error::{AddressError, CausalRefused};
use crate::run::declared;
use crate::run::trace::{Trace, read};

mod cuts;

use cuts::{CutKeeper, FoundCut, RECENT, rules};

/// The member of an imported node's `intent` with the whole node of its source.
pub const CFD: &str = "cfd";

/// The type of the marker of a fork.
const FORK: &str = "run.fork";

/// The agent of what the kernel of an imported source recorded, like the marker of a fork.
pub const SOURCE_KERNEL: &str = "source.kernel";

/// The causal graph of a run up to a tick.
#[derive(Debug)]
pub struct Causal {
    /// The graph.
    pub graph: CausalGraph,
    names: NodeNames,
}

/// The names and ids of the nodes of a run.
#[derive(Debug)]
struct NodeNames {
    /// The id of each record by tick.
    ids: Vec<Digest>,
    /// The `node_id` of imported nodes.
    imported: BTreeMap<u64, Arc<str>>,
}

impl NodeNames {
    fn beginning(trace: &Trace) -> NodeNames {
        NodeNames { ids: vec![trace.start().id()], imported: BTreeMap::new() }
    }

    /// Adds the next transition.
    fn push(&mut self, tick: u64, record: &Record) {
        self.imported.extend(imported_name(record).map(|name| (tick, name)));
        self.ids.push(record.id());
    }

    fn id(&self, tick: u64) -> Digest {
        self.ids[usize::try_from(tick).expect("a tick in memory")]
    }

    /// The `node_id` of an imported node, else 12 digits of its id.
    fn name(&self, tick: u64) -> Arc<str> {
        self.imported.get(&tick).cloned().unwrap_or_else(|| self.id(tick).short().into())
    }
}

/// The cause of what is unknown because its text was erased or withheld.
const ERASED: &str = "erased";

impl Causal {
    /// Reads the graph of a run up to a tick.
    pub fn of(trace: &Trace, upto: u64) -> Result<Causal, Error> {
        let (rules, digest) = rules(trace, upto)?;
        let mut keeper = CutKeeper::new(trace, upto, digest, 0);
        let graph = CausalGraph::new(&trace.state(0)?, rules);
        let mut causal = Causal { graph, names: NodeNames::beginning(trace) };
        let mut ticks = HashMap::from([(causal.id(0), 0)]);
        trace.try_each::<Error>(1, upto, &mut |tick, record| {
            let is_first = |agent: &str| causal.graph.branch(agent).is_empty();
            let node = node(&record, trace.rules_version(tick), &ticks, &is_first).0;
            ticks.insert(record.id(), tick);
            causal.names.push(tick, &record);
            causal.graph.push(node).map_err(|error| Error::Causal(error.into()))?;
            keeper.take(tick, record.id(), &|| {
                let recent = causal.graph.recent(RECENT);
                (causal.graph.cut(RECENT), recent.into_iter().map(|tick| causal.id(tick)).collect())
            });
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(causal)
    }

    /// The name of a node for people.
    pub fn name(&self, tick: u64) -> Arc<str> {
        self.names.name(tick)
    }

    /// The id of the record of a node.
    pub fn id(&self, tick: u64) -> Digest {
        self.names.id(tick)
    }

    /// The newest transition of an agent up to a tick.
    pub fn head(&self, trace: &Trace, agent: &str, upto: u64) -> Result<u64, Error> {
        head_of(self.graph.branch(agent), trace, agent, upto)
    }
}

/// The order of the nodes of a run up to a tick, and their names. Blocks that are kept are not read again.
#[derive(Debug)]
pub struct CausalOrder {
    /// The order.
    pub links: CausalLinks,
    names: NodeNames,
}

impl CausalOrder {
    /// Reads the order of a run up to a tick.
    pub fn of(trace: &Trace, upto: u64) -> Result<CausalOrder, Error> {
        let mut order = CausalOrder { links: CausalLinks::default(), names: NodeNames::beginning(trace) };
        while order.links.tip() < upto {
            let last = cuts::end_of_block(order.links.tip() + 1);
            match (last <= upto)
                .then(|| cuts::read_links(trace, last, &mut order.links, &mut order.names))
                .flatten()
            {
                Some(true) => {}
                Some(false) => return CausalOrder::of(&trace.clone().without_snapshots(), upto),
                None => {
                    order.read_on(trace, upto)?;
                    break;
                }
            }
        }
        Ok(order)
    }

    /// Reads the records of the blocks from the newest node on, up to a tick at most, and keeps each block that ends.
    fn read_on(&mut self, trace: &Trace, upto: u64) -> Result<(), Error> {
        let ids = (0..).zip(&self.names.ids);
        let mut ticks: HashMap<Digest, u64> = ids.map(|(tick, id)| (*id, tick)).collect();
        trace.try_each::<Error>(self.links.tip() + 1, upto, &mut |tick, record| {
            let is_first = |agent: &str| self.links.branch(agent).is_empty();
            let node = node(&record, trace.rules_version(tick), &ticks, &is_first).0;
            ticks.insert(record.id(), tick);
            self.names.push(tick, &record);
            self.links.push(node).map_err(|error| Error::Causal(error.into()))?;
            if tick == cuts::end_of_block(tick) {
                cuts::keep_links(trace, &self.links, &self.names);
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// As [`Causal::name`].
    pub fn name(&self, tick: u64) -> Arc<str> {
        self.names.name(tick)
    }

    /// As [`Causal::head`].
    pub fn head(&self, trace: &Trace, agent: &str, upto: u64) -> Result<u64, Error> {
        head_of(self.links.branch(agent), trace, agent, upto)
    }
}

fn head_of(branch: &[u64], trace: &Trace, agent: &str, upto: u64) -> Result<u64, Error> {
    match branch.partition_point(|tick| *tick <= upto).checked_sub(1) {
        Some(at) => Ok(branch[at]),
        None => Err(no_transition(trace, agent, upto)?),
    }
}

fn no_transition(trace: &Trace, agent: &str, tick: u64) -> Result<Error, Error> {
    declared::agents(trace, [agent])?;
    let (run, agent) = (trace.name().clone(), agent.to_owned());
    Ok(CausalRefused::NoTransition { run, agent, tick }.into())
}

/// Finds the agent and the tick that `AGENT` or `AGENT@POSITION` means; the tip of the run without a position. An agent whose name
/// has an `@` is taken first, unless the part before it is one as well.
pub fn agent_of<'t>(trace: &Trace, text: &'t str) -> Result<(&'t str, u64), Error> {
    match text.rsplit_once('@') {
        Some((agent, place)) if declared::agents(trace, [text]).is_err() => {
            let place = Position::parse(place).ok_or_else(|| AddressError::NotAnAddress(text.to_owned()))?;
            declared::agents(trace, [agent])?;
            Ok((agent, place.tick(trace)?))
        }
        Some((agent, place))
            if Position::parse(place).is_some() && declared::agents(trace, [agent]).is_ok() =>
        {
            Err(AddressError::TwoAgents { agent: agent.to_owned(), place: place.to_owned() }.into())
        }
        _ => {
            declared::agents(trace, [text])?;
            Ok((text, trace.tip()))
        }
    }
}

/// The `node_id` of an imported node.
fn imported_name(record: &Record) -> Option<Arc<str>> {
    let imported = has_intent(record).then(|| record.body().value(&format!("/intent/{CFD}"))).flatten();
    imported.as_ref().and_then(|node| node.get("node_id")?.as_str().map(Arc::from))
}

/// Returns what a record adds to the graph, by a version of the rules, and whether each link that carries state leads to one of
/// `ticks`, those of the records before it. `is_first` is whether an agent has none of them.
fn node(
    record: &Record,
    version: u64,
    ticks: &HashMap<Digest, u64>,
    is_first: &dyn Fn(&str) -> bool,
) -> (CausalNode, bool) {
    let (body, tick) = (record.body(), record.header().tick.unwrap_or_default());
    let agent: Arc<str> =
        body.value("/agent_id").and_then(|agent| agent.as_str().map(Arc::from)).unwrap_or_default();
    let to = |rel: Rel| {
        let links = record.header().links.iter().filter(move |link| link.rel == rel);
        links.map(|link| ticks.get(&link.hash).copied())
    };
    let mut parents: Vec<Option<u64>> = to(Rel::Merges).collect();
    if is_first(&agent) {
        parents.extend(to(Rel::CausedBy));
    }
    let is_whole = parents.iter().all(Option::is_some);
    let field = |name: &str| body.fields().iter().find(|field| field.pointer.as_str() == name);
    let is_erased = field("/delta").is_some_and(|field| body.text(field).is_none());
    let mut unknown = match unknown::is_touched_by(record) {
        true => unknown::made_by(record),
        false => Vec::new(),
    };
    if is_erased {
        unknown.push((Pointer::root(), Since { tick, code: ERASED.into() }));
    }
    let merge = has_intent(record).then(|| body.value("/intent/merge")).flatten();
    let confidence = has_intent(record).then(|| body.value("/intent/confidence")).flatten();
    let is_marker = is_marker(record, &agent);
    let node = CausalNode {
        agent,
        parents: parents.into_iter().flatten().collect(),
        delta: body.value("/delta").and_then(|delta| Delta::from_value(&delta).ok()).unwrap_or_default(),
        unknown,
        confidence: confidence.map_or(0.0, |value| value.as_f64().unwrap_or(NO_NUMBER)),
        merge: MergeRules { roles: Default::default(), ..MergeRules::of(merge.as_ref()) },
        version,
        is_marker: version >= LEAVES_VERSION && is_marker,
    };
    (node, is_whole)
}

/// Whether a record is the marker of a fork that sets values, or an imported one.
fn is_marker(record: &Record, agent: &str) -> bool {
    let is_fork = match agent {
        KERNEL => record.header().type_name.as_ref().is_some_and(|name| name.as_str() == FORK),
        SOURCE_KERNEL => {
            let node = record.body().value(&format!("/intent/{CFD}"));
            let named = node.as_ref().and_then(|node| node.get("event")?.get("transition_type")?.as_str());
            named == Some(FORK)
        }
        _ => false,
    };
    is_fork && record.delta().is_some_and(|delta| !delta.0.is_empty())
}

/// Whether a record has an `intent`: most have none, and what is not there is not looked for.
fn has_intent(record: &Record) -> bool {
    record.body().fields().iter().any(|field| field.pointer.as_str().starts_with("/intent"))
}

/// The state of an agent behind its newest transition up to a tick.
#[derive(Debug, Clone)]
pub struct AgentState {
    /// The tick of the transition.
    pub tick: u64,
    /// The state along its causal ancestors.
    pub state: Value,
    /// The unknown places, each with its cause.
    pub unknown: Vec<(Pointer, Since)>,
}

/// Reads the state of an agent at its newest transition up to a tick: from the newest cut of the graph that is kept, else from the
/// beginning of the run.
pub fn state_of(trace: &Trace, agent: &str, upto: u64) -> Result<AgentState, Error> {
    state_in(&mut newest(trace, upto)?, trace, agent, upto)
}

/// As [`state_of`], in a graph that ends with the tick.
fn state_in(graph: &mut CausalCut, trace: &Trace, agent: &str, upto: u64) -> Result<AgentState, Error> {
    let Some(mut tick) = graph.newest_of(agent) else { return Err(no_transition(trace, agent, upto)?) };
    let mut at = tick;
    if let Some(marker) = graph.marker_after(tick) {
        // The state with which the agent continues: that of a transition that does nothing.
        graph.push(CausalNode::idle(agent)).map_err(|error| Error::Causal(error.into()))?;
        (tick, at) = (marker, graph.tip());
    }
    Ok(AgentState { tick, state: graph.state(at), unknown: graph.unknown(at) })
}

/// The newest nodes of the graph up to a tick: from the newest cut that is kept, else from the beginning of the run.
pub(crate) fn newest(trace: &Trace, upto: u64) -> Result<CausalCut, Error> {
    if let Some(found) = cuts::find(trace, upto)?
        && let Some(graph) = continued(trace, found, upto)?
    {
        return Ok(graph);
    }
    Ok(CausalCut::from(Causal::of(trace, upto)?.graph))
}

/// Adds the transitions after a cut up to a tick. `None` if the cut does not have a parent of one of them.
fn continued(trace: &Trace, found: FoundCut, upto: u64) -> Result<Option<CausalCut>, Error> {
    let FoundCut { mut cut, mut ticks, entries } = found;
    let mut ids: HashMap<u64, Digest> = ticks.iter().map(|(id, tick)| (*tick, *id)).collect();
    let mut keeper = CutKeeper::new(trace, upto, rules(trace, upto)?.1, entries);
    let mut is_whole = true;
    trace.try_each::<Error>(cut.tip() + 1, upto, &mut |tick, record| {
        let is_first = |agent: &str| cut.newest_of(agent).is_none();
        let (node, leads) = node(&record, trace.rules_version(tick), &ticks, &is_first);
        is_whole = leads;
        if !is_whole {
            return Ok(ControlFlow::Break(()));
        }
        ticks.insert(record.id(), tick);
        ids.insert(tick, record.id());
        cut.push(node).map_err(|error| Error::Causal(error.into()))?;
        keeper.take(tick, record.id(), &|| {
            let recent = cut.recent_of_cut(RECENT);
            (cut.cut(RECENT), recent.into_iter().filter_map(|tick| ids.get(&tick).copied()).collect())
        });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(is_whole.then_some(cut))
}

/// Makes the nodes of a path again, which has the ancestors of each of them: a graph of these and of nothing else, from records
/// that are found by their ids. Returns it with the place in it of each node whose record was found.
pub(crate) fn again(
    trace: &Trace,
    path: &[u64],
    upto: u64,
) -> Result<(CausalGraph, BTreeMap<u64, u64>), Error> {
    let (rules, _) = rules(trace, upto)?;
    let mut graph = CausalGraph::new(&trace.state(0)?, rules);
    // Ticks are other places in the smaller graph, in the same order.
    let (mut ids, mut places) = (HashMap::from([(trace.start().id(), 0)]), BTreeMap::new());
    for (place, tick) in (1..).zip(path) {
        let record = trace.record(*tick)?;
        let is_first = |agent: &str| graph.branch(agent).is_empty();
        let node = node(&record, trace.rules_version(*tick), &ids, &is_first).0;
        ids.insert(record.id(), place);
        graph.push(node).map_err(|error| Error::Causal(error.into()))?;
        let position = trace.store().find(&record.id())?;
        if position.is_some_and(|position| {
            read(&**trace.store(), position).is_ok_and(|found| found.id() == record.id())
        }) {
            places.insert(*tick, place);
        }
    }
    Ok((graph, places))
}
