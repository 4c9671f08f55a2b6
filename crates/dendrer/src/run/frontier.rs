//! The graph of a run and its recorded frontier, as the records say (Mynd Labs research note R-001).

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer_graph::Graph;
use dendrer_graph::check::{GraphFinding, check};
use dendrer_graph::eval::numbers_of_index;
use dendrer_graph::form;
use dendrer_graph::frontier::{Frontier, RecordedEdge};
use dendrer_graph::functions::Functions;
use dendrer_kernel::step::MARKERS_VERSION;
use dendrer_object::intent::ForkType;
use dendrer_object::record::Author;
use dendrer_object::{Digest, EDGE, ORIGIN, Object, RunName, Value};

use crate::error::Error;
use crate::error::GraphRefused;
use crate::run::pack;
use crate::run::trace::Trace;

/// The member of a `run` record with the graph, in its JSON form.
pub const GRAPH: &str = "graph";

/// The member of an observation's `intent` that closes a run at the limit of a repeat: its `path` and its `max`.
pub const LIMIT: &str = "limit";

/// The member of an observation's `intent` about a node that could not be computed: its `path` and the `error`.
pub const NODE_FAILED: &str = "node_failed";

/// The run of a graph, as it was recorded.
#[derive(Debug, Clone)]
pub struct GraphRun {
    /// The run.
    pub run: RunName,
    /// The graph.
    pub graph: Graph,
    /// The graphs that it runs, by name.
    pub children: BTreeMap<String, Graph>,
    /// The graph in its JSON form.
    pub form: Value,
    /// The digest of that.
    pub digest: Digest,
    /// The pack.
    pub pack: Value,
    /// The functions of the pack.
    pub functions: Functions,
    /// Inputs, edge values, nodes and output.
    pub frontier: Frontier,
    /// The tick of the result of each edge, by path.
    pub ticks: BTreeMap<String, u64>,
    /// The class of each effect that was called, by name.
    pub effects: BTreeMap<String, String>,
    /// Whether values of edges are substitutes: [`is_hypothetical`].
    pub hypothetical: bool,
    /// The first tick of an answer that was replaced after a node could not be computed with it.
    pub renewed_at: Option<u64>,
}

impl GraphRun {
    /// The recorded edges in canonical order: by their places in the frontier.
    pub fn edges(&self) -> Vec<&RecordedEdge> {
        let mut edges: Vec<&RecordedEdge> = self.frontier.edges.iter().collect();
        edges.sort_by_key(|edge| numbers_of_index(&edge.index));
        edges
    }

    /// The host functions that the graph calls.
    pub fn hosts(&self) -> Vec<String> {
        let names = self.functions.hosts_of(self.children.values().chain([&self.graph]));
        names.into_iter().map(str::to_owned).collect()
    }

    /// The host function of each recorded value that one computed.
    pub fn tested(&self) -> Vec<&str> {
        let calls = self.frontier.edges.iter().map(|edge| &*edge.call);
        calls.filter(|call| self.functions.is_host(call)).collect()
    }
}

/// The functions and effects of a pack, with the engine that runs modules.
pub fn functions_of(pack: &Value) -> Functions {
    Functions::of(pack, &dendrer_wasm::Engine::default())
}

/// Whether a run was recorded by a graph.
pub fn is_graph(trace: &Trace) -> bool {
    trace.start().body().value(&format!("/{GRAPH}")).is_some()
}

/// Whether a run of a graph may have values that no effect gave: a fork of its lineage was begun with other values, or has a line
/// that was not carried over from the run.
pub fn is_hypothetical(trace: &Trace) -> Result<bool, Error> {
    let first = trace.lineage().first().map_or(0, |(_, end)| *end);
    let mut is_so = false;
    if !is_graph(trace) || trace.lineage().len() == 1 || first >= trace.tip() {
        return Ok(false);
    }
    trace.for_each(first + 1, trace.tip(), &mut |_, record| {
        let kind = record.body().value("/fork_type");
        let is_injected = kind.is_some_and(|kind| kind.as_str() == Some(ForkType::Injection.as_str()));
        let is_own =
            record.header().author != Author::Kernel && record.body().value(&format!("/{ORIGIN}")).is_none();
        is_so = is_injected || is_own;
        if is_so { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(is_so)
}

/// Graphs as they were understood before a repeat at its limit ended the run.
fn with_or_limit(graph: Graph, children: BTreeMap<String, Graph>) -> (Graph, BTreeMap<String, Graph>) {
    let children = children.into_iter().map(|(name, child)| (name, child.with_or_limit()));
    (graph.with_or_limit(), children.collect())
}

/// Reads the graph of a run and its frontier.
pub fn graph_run(trace: &Trace) -> Result<GraphRun, Error> {
    let run = trace.name().clone();
    let content = trace.start().content();
    let form = content.get(GRAPH).cloned().ok_or_else(|| GraphRefused::NotGraph(run.clone()))?;
    let malformed = |why: String| GraphRefused::Malformed { run: run.clone(), why };
    let (graph, children) = form::read(&form).map_err(|fault| malformed(fault.message))?;
    let (graph, children) = match trace.rules_version(0) < MARKERS_VERSION {
        true => with_or_limit(graph, children),
        false => (graph, children),
    };
    let pack = pack::of_segment(trace, trace.segment(trace.tip()))?;
    let pack = pack.map_or_else(Value::object, |pack| pack.value().clone());
    let functions = functions_of(&pack);
    let given = content.get("meta").and_then(|meta| meta.get("inputs")?.as_object().cloned());
    let inputs = given.iter().flat_map(Object::iter).map(|(name, value)| (name.to_string(), value.clone()));
    let mut frontier = Frontier {
        inputs: inputs.collect(),
        edges: Vec::new(),
        nodes: BTreeMap::new(),
        output: None,
        limit: None,
        is_ordered: false,
    };
    let (mut ticks, mut effects) = (BTreeMap::<String, u64>::new(), BTreeMap::new());
    let (mut withheld, mut has_failed, mut renewed_at) = (None, false, None::<u64>);
    trace.for_each(1, trace.tip(), &mut |tick, record| {
        let content = record.content();
        let type_name = record.header().type_name.as_ref().map_or("", |name| name.as_str());
        if type_name == "action.result" && content.get(EDGE).is_some() {
            let class = content.get("effect").and_then(Value::as_str).unwrap_or("effectful").to_owned();
            let says = |name: &str| content.get("result")?.get(name);
            let is_ok = says("status").and_then(Value::as_str) == Some("ok");
            if is_ok && says("output").is_none() {
                withheld.get_or_insert(tick);
            }
            if let Some(edge) = recorded(&content) {
                effects.insert(edge.call.clone(), class);
                // The answer of an edge counts until there is a newer one after a node could not be computed.
                if let Some(older) = ticks.get(&edge.path).filter(|_| has_failed) {
                    frontier.edges.retain(|older| older.path != edge.path);
                    renewed_at = Some(renewed_at.map_or(*older, |first| first.min(*older)));
                }
                ticks.insert(edge.path.clone(), tick);
                frontier.edges.push(edge);
            }
        }
        if type_name == "observation.add" && record.header().author == Author::Runtime {
            if content.get("intent").is_some_and(|intent| intent.get(NODE_FAILED).is_some()) {
                has_failed = true;
            }
            let path =
                |content: &Value| content.get("intent")?.get(LIMIT)?.get("path")?.as_str().map(str::to_owned);
            frontier.limit = frontier.limit.take().or_else(|| path(&content));
        }
        ControlFlow::Continue(())
    })?;
    if let Some(tick) = withheld {
        return Err(GraphRefused::Withheld { run, tick }.into());
    }
    let state = trace.state(trace.tip())?;
    // The end of a run takes out of the state the answers that it does not read any more.
    frontier.edges.retain(|edge| state.get("edges").is_some_and(|edges| edges.get(&edge.path).is_some()));
    let nodes = state.get("nodes").and_then(Value::as_object).cloned().unwrap_or_default();
    frontier.nodes = nodes.iter().map(|(path, value)| (path.to_string(), value.clone())).collect();
    frontier.output = state.get("output").cloned();
    let digest = form::digest(&form);
    let hypothetical = is_hypothetical(trace)?;
    Ok(GraphRun {
        run,
        graph,
        children,
        form,
        digest,
        pack,
        functions,
        frontier,
        ticks,
        effects,
        hypothetical,
        renewed_at,
    })
}

/// The value of an edge in its result; `None` for one that failed.
pub(crate) fn recorded(content: &Value) -> Option<RecordedEdge> {
    let (edge, action, result) = (content.get(EDGE)?, content.get("action")?, content.get("result")?);
    if result.get("status").and_then(Value::as_str) != Some("ok") {
        return None;
    }
    let text = |name: &str| edge.get(name)?.as_str().map(str::to_owned);
    let value = result.get("output")?.clone();
    Some(RecordedEdge {
        path: text("path")?,
        index: text("index")?,
        call: action.get("tool")?.as_str()?.to_owned(),
        args: action.get("params")?.as_array()?.iter().cloned().collect(),
        asked: text("asked")?.parse().ok()?,
        digest: value.digest(),
        value,
    })
}

/// The version of frontier files. In files of the first one, a repeat at its limit does not end the run.
pub const FRONTIER_VERSION: u64 = 2;

/// The members of the first line of a frontier file; the first version has no `limit`, and only a hypothetical run `hypothetical`.
const HEADER: [&str; 9] =
    ["frontier", "graph", "hypothetical", "inputs", "limit", "nodes", "output", "pack", "run"];

/// The members of the line of an edge.
const EDGE_LINE: [&str; 8] = ["args", "asked", "call", "digest", "effect", "index", "path", "value"];

/// Refuses a member that a line of a frontier file does not have. The error is a sentence.
fn only(line: u64, value: &Value, known: &[&str]) -> Result<(), String> {
    let members = value.as_object().ok_or_else(|| format!("line {line}: it is no object"))?;
    match members.iter().find(|(name, _)| !known.contains(&&***name)) {
        Some((name, _)) => Err(format!("line {line}: it has a member {name}, which no such line has")),
        None => Ok(()),
    }
}

/// Reads a line of a frontier file.
fn edge_of_line(edge: &Value) -> Option<RecordedEdge> {
    let text = |name: &str| edge.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    Some(RecordedEdge {
        path: text("path")?,
        index: text("index")?,
        call: text("call")?,
        args: edge.get("args")?.as_array()?.iter().cloned().collect(),
        asked: text("asked")?.parse().ok()?,
        digest: text("digest")?.parse().ok()?,
        value: edge.get("value")?.clone(),
    })
}

/// Reads the edges of a frontier file, each with its class.
fn edges_of_file(
    lines: &[Value],
    functions: &Functions,
) -> Result<(Vec<RecordedEdge>, BTreeMap<String, String>), String> {
    let (mut edges, mut effects) = (Vec::with_capacity(lines.len()), BTreeMap::new());
    for (line, edge) in (2..).zip(lines) {
        only(line, edge, &EDGE_LINE)?;
        let read = edge_of_line(edge).ok_or_else(|| {
            format!("line {line}: an edge has path, index, call, args, asked, digest and value")
        })?;
        let effect = edge.get("effect").and_then(Value::as_str).map(str::to_owned);
        let declared = functions.effect(&read.call);
        if effect.as_deref() != declared {
            let (effect, declared) = (effect.unwrap_or_default(), declared.unwrap_or("nothing"));
            return Err(format!("line {line}: its effect is {effect:?}, and the pack says {declared}"));
        }
        effects.insert(read.call.clone(), effect.unwrap_or_default());
        edges.push(read);
    }
    Ok((edges, effects))
}

/// Inputs, nodes, output and limit of a frontier file. An emptied member would pass where the whole one fails.
fn frontier_of_header(header: &Value, graph: &Graph, version: u64) -> Result<Frontier, String> {
    let named = |name: &str| {
        let members = header.get(name).and_then(Value::as_object);
        let members = members.ok_or_else(|| format!("line 1: {name} is no object"))?;
        let members = members.iter().map(|(name, value)| (name.to_string(), value.clone()));
        Ok::<_, String>(members.collect::<BTreeMap<_, _>>())
    };
    let (inputs, nodes) = (named("inputs")?, named("nodes")?);
    if let Some(name) = graph.inputs().into_iter().find(|name| !inputs.contains_key(name)) {
        return Err(format!("line 1: inputs has no {name}, and the graph takes it"));
    }
    let taken = graph.inputs();
    if let Some(name) = inputs.keys().find(|name| !taken.contains(name)) {
        return Err(format!("line 1: inputs has {name}, and the graph takes no such input"));
    }
    let output = header.get("output").ok_or("line 1: it has no output")?.clone();
    let limit = match header.get("limit") {
        None if version == 1 => None,
        Some(Value::Null) if version > 1 => None,
        Some(Value::String(path)) if version > 1 && !path.is_empty() => Some(path.to_string()),
        _ => return Err("line 1: limit is the path of a repeat, or null".to_owned()),
    };
    let has_end = limit.is_some() || !matches!(output, Value::Null);
    if nodes.is_empty() && has_end {
        return Err("line 1: nodes is empty, and the run ended".to_owned());
    }
    Ok(Frontier {
        inputs,
        edges: Vec::new(),
        // A run that did not end has no nodes on record, and no output.
        output: (!nodes.is_empty() && limit.is_none()).then_some(output),
        nodes,
        limit,
        is_ordered: true,
    })
}

/// Reads the lines of a frontier file: a header, then one for each edge in canonical order. The error is a sentence with its line.
pub fn read_file(lines: &[Value]) -> Result<GraphRun, String> {
    let (header, edges) = lines.split_first().ok_or("line 1: a frontier file begins with its header")?;
    let version = header.get("frontier").and_then(Value::as_u64);
    let version = version.filter(|version| (1..=FRONTIER_VERSION).contains(version)).ok_or_else(|| {
        format!("line 1: a frontier file begins with {{\"frontier\":{FRONTIER_VERSION},...}}")
    })?;
    only(1, header, &HEADER)?;
    let form = header.get(GRAPH).cloned().ok_or("line 1: it has no graph")?;
    let (graph, children) = form::read(&form).map_err(|fault| format!("line 1: {}", fault.message))?;
    let (graph, children) = match version {
        1 => with_or_limit(graph, children),
        _ => (graph, children),
    };
    let pack = header.get("pack").filter(|pack| pack.as_object().is_some());
    let pack = pack.cloned().ok_or("line 1: pack is no object")?;
    let run = header.get("run").and_then(Value::as_str).and_then(|name| name.parse().ok());
    let run = run.ok_or("line 1: it has no name of a run")?;
    let functions = functions_of(&pack);
    let findings = std::iter::once(&graph)
        .chain(children.values())
        .flat_map(|graph| check(graph, &functions, &children).0);
    if let Some(GraphFinding { rule, statement, message, .. }) = findings.into_iter().next() {
        return Err(format!("line 1: its graph is refused: {} at {statement}: {message}", rule.as_str()));
    }
    let frontier = frontier_of_header(header, &graph, version)?;
    let (edges, effects) = edges_of_file(edges, &functions)?;
    let frontier = Frontier { edges, ..frontier };
    let hypothetical = match header.get("hypothetical") {
        None => false,
        Some(said) => said.as_bool().ok_or("line 1: hypothetical is true or false")?,
    };
    let (digest, ticks) = (form::digest(&form), BTreeMap::new());
    Ok(GraphRun {
        run,
        graph,
        children,
        form,
        digest,
        pack,
        functions,
        frontier,
        ticks,
        effects,
        hypothetical,
        renewed_at: None,
    })
}
