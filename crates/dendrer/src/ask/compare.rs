//! How two agents of a run parted: their lowest common ancestor, what each did since, and how their states differ (forensic
//! debugger specification, 4.3).

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_kernel::causal::CausalGraph;
use dendrer_kernel::unknown::Since;
use dendrer_object::{Pointer, RunName, Value};

use crate::error::CausalRefused;
use crate::error::Error;
use crate::run::causal::{self, Causal, CausalOrder};
use crate::run::trace::Trace;

use super::difference::differences;

pub mod question;

/// A node of the graph: its tick, and what it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedNode {
    /// The tick; 0 for the beginning of the run.
    pub tick: u64,
    /// The `node_id` of an imported node, else 12 digits of the id.
    pub node: String,
}

/// Two agents of a run, compared.
#[derive(Debug, Clone)]
pub struct AgentComparison {
    /// The run.
    pub run: RunName,
    /// The agents.
    pub agents: [String; 2],
    /// The newest transition of each.
    pub heads: [NamedNode; 2],
    /// All lowest common ancestors.
    pub ancestors: Vec<NamedNode>,
    /// The one of them with the greatest tick.
    pub ancestor: NamedNode,
    /// The ancestors of each head, itself included, without those of the other head.
    pub extensions: [Vec<NamedNode>; 2],
    /// The places at which the states differ, with the value on each side.
    pub variance: Vec<(Pointer, Option<Value>, Option<Value>)>,
    /// The unknown places of both states.
    pub unknown: Vec<(Pointer, Since)>,
    /// How many nodes of both paths were verified and made again, and how many of them came out the same; `None` if that was not
    /// asked for.
    pub made_again: Option<(u64, u64)>,
}

/// How many nodes are made again without being asked for: the work grows with the square.
pub const MADE_AGAIN_MAX: usize = 256;

/// Compares two agents of a run at their newest transitions up to a tick each. With `checks`, every node of both paths is verified
/// and its state is made again; otherwise that is done for short paths only.
pub fn compare(trace: &Trace, agents: [(&str, u64); 2], checks: bool) -> Result<AgentComparison, Error> {
    let upto = agents[0].1.max(agents[1].1);
    let order = CausalOrder::of(trace, upto)?;
    let links = &order.links;
    let heads = [order.head(trace, agents[0].0, agents[0].1)?, order.head(trace, agents[1].0, agents[1].1)?];
    let named = |tick: u64| NamedNode { tick, node: order.name(tick).to_string() };
    let ancestors = links.lowest_common(heads[0], heads[1]);
    let extensions = [links.extension(heads[0], heads[1]), links.extension(heads[1], heads[0])];
    let path: Vec<u64> = {
        let mut path = links.extension(heads[0], 0);
        path.extend(links.extension(heads[1], heads[0]));
        path.sort_unstable();
        path
    };
    let (sides, made_again) = match checks || path.len() <= MADE_AGAIN_MAX {
        true => {
            let graph = Causal::of(trace, upto)?.graph;
            let made_again = made_again(trace, &graph, &path, upto)?;
            (heads.map(|head| (graph.state(head), graph.unknown(head))), Some(made_again))
        }
        false => (states(trace, agents, heads)?, None),
    };
    let [(left, mut unknown), (right, others)] = sides;
    let variance = differences(&left, &right).into_iter();
    let mut variance: Vec<_> = variance.map(|change| (change.path, change.before, change.after)).collect();
    variance.sort_by(|a, b| a.0.cmp(&b.0));
    unknown.extend(others.into_iter().filter(|one| !unknown.contains(one)).collect::<Vec<_>>());
    let ancestor = ancestors.last().copied().unwrap_or(0);
    Ok(AgentComparison {
        run: trace.name().clone(),
        agents: [agents[0].0.to_owned(), agents[1].0.to_owned()],
        heads: heads.map(named),
        ancestors: ancestors.into_iter().map(named).collect(),
        ancestor: named(ancestor),
        extensions: extensions.map(|ticks| ticks.into_iter().map(named).collect()),
        variance,
        unknown,
        made_again,
    })
}

/// Refuses agents of two runs.
pub fn same_run(a: &Trace, b: &Trace) -> Result<(), Error> {
    match a.name() == b.name() {
        true => Ok(()),
        false => Err(CausalRefused::TwoRuns { a: a.name().clone(), b: b.name().clone() }.into()),
    }
}

/// A state, and its unknown places.
type Side = (Value, Vec<(Pointer, Since)>);

/// The states of the heads of two agents, without the nodes of the path to them.
fn states(trace: &Trace, agents: [(&str, u64); 2], heads: [u64; 2]) -> Result<[Side; 2], Error> {
    let upto = agents[0].1.max(agents[1].1);
    let newest = causal::newest(trace, upto)?;
    let side = |at: usize| -> Result<Side, Error> {
        let (agent, own) = agents[at];
        match newest.newest_of(agent) == Some(heads[at]) {
            true => Ok((newest.state(heads[at]), newest.unknown(heads[at]))),
            false => {
                let graph = causal::newest(trace, own)?;
                Ok((graph.state(heads[at]), graph.unknown(heads[at])))
            }
        }
    };
    Ok([side(0)?, side(1)?])
}

/// Verifies each node of a path and makes it again from the path alone, in one pass with nothing kept. Returns how many there are,
/// and how many are borne out: what a node wrote and decided is the same, and so is the state at the end of a branch.
fn made_again(trace: &Trace, graph: &CausalGraph, path: &[u64], upto: u64) -> Result<(u64, u64), Error> {
    let (alone, places) = causal::again(trace, path, upto)?;
    // The order of the units that a node decides is that of the whole graph.
    let writes = |graph: &CausalGraph, tick: u64| -> BTreeMap<Pointer, Option<Value>> {
        graph.writes(tick).map(|(unit, value)| (unit.clone(), value)).collect()
    };
    let same = path.iter().filter(|tick| {
        let Some(place) = places.get(tick) else { return false };
        let is_last = |agent: &Arc<str>| alone.branch(agent).last() == Some(place);
        let is_end = alone.agent(*place).is_some_and(is_last);
        writes(&alone, *place) == writes(graph, **tick)
            && (!is_end || alone.state(*place) == graph.state(**tick))
    });
    Ok((path.len() as u64, same.count() as u64))
}

dendrer_object::words! {
    /// What a heatmap shows (forensic debugger specification, 4.2).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum HeatMetric {
        /// How many children a node has, where there are several.
        Branching = "branching",
        /// How many units differ between the states of its children.
        Divergence = "divergence",
        /// How many anomalies it has.
        Anomaly = "anomaly",
        /// 1 minus its confidence.
        Confidence = "confidence",
    }
}

/// A node of a heatmap.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatItem {
    /// The run.
    pub run: RunName,
    /// The node.
    pub node: NamedNode,
    /// Its agent; `None` for the beginning of the run.
    pub agent: Option<String>,
    /// Its value.
    pub value: f64,
}

/// The nodes of some runs by a metric, the highest value first, then by tick.
pub fn heatmap(traces: &[Trace], metric: HeatMetric) -> Result<Vec<HeatItem>, Error> {
    let mut items = Vec::new();
    for trace in traces {
        let causal = Causal::of(trace, trace.tip())?;
        let values = values(trace, &causal, metric)?;
        items.extend(values.into_iter().filter(|(_, value)| *value > 0.0).map(|(tick, value)| HeatItem {
            run: trace.name().clone(),
            node: NamedNode { tick, node: causal.name(tick).to_string() },
            agent: causal.graph.agent(tick).map(ToString::to_string),
            value,
        }));
    }
    items.sort_by(|a, b| b.value.total_cmp(&a.value).then_with(|| a.node.tick.cmp(&b.node.tick)));
    Ok(items)
}

fn values(trace: &Trace, causal: &Causal, metric: HeatMetric) -> Result<BTreeMap<u64, f64>, Error> {
    let mut values = BTreeMap::new();
    match metric {
        HeatMetric::Branching | HeatMetric::Divergence => {
            for (tick, children) in (0..).zip(causal.graph.children()) {
                if children.len() > 1 {
                    let value = match metric {
                        HeatMetric::Branching => children.len() as u64,
                        _ => causal.graph.differing(&children),
                    };
                    values.insert(tick, value as f64);
                }
            }
        }
        HeatMetric::Anomaly | HeatMetric::Confidence => {
            trace.for_each(1, trace.tip(), &mut |tick, record| {
                let body = record.body();
                let value = match metric {
                    HeatMetric::Anomaly => {
                        body.value("/anomalies").and_then(|noted| Some(noted.as_array()?.len() as f64))
                    }
                    _ => body.value("/intent/confidence").and_then(|value| Some(1.0 - value.as_f64()?)),
                };
                values.extend(value.map(|value| (tick, value)));
                std::ops::ControlFlow::Continue(())
            })?;
        }
    }
    Ok(values)
}
