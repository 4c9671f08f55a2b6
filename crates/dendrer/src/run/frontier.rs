//! The graph of a run and its recorded frontier, as the records say (Mynd Labs research note R-001).

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer_graph::Graph;
use dendrer_graph::check::{GraphFinding, check};
use dendrer_graph::form;
use dendrer_graph::frontier::{Frontier, RecordedEdge};
use dendrer_graph::functions::Functions;
use dendrer_object::{Digest, EDGE, Object, RunName, Value};

use crate::error::Error;
use crate::error::GraphRefused;
use crate::run::pack;
use crate::run::trace::Trace;

/// The member of a `run` record with the graph, in its JSON form.
pub const GRAPH: &str = "graph";

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
}

impl GraphRun {
    /// The recorded edges in canonical order: by their places in the frontier.
    pub fn edges(&self) -> Vec<&RecordedEdge> {
        let key =
            |index: &str| index.split('.').map(|part| part.parse().unwrap_or(u64::MAX)).collect::<Vec<u64>>();
        let mut edges: Vec<&RecordedEdge> = self.frontier.edges.iter().collect();
        edges.sort_by_key(|edge| key(&edge.index));
        edges
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

/// Reads the graph of a run and its frontier.
pub fn graph_run(trace: &Trace) -> Result<GraphRun, Error> {
    let run = trace.name().clone();
    let content = trace.start().content();
    let form = content.get(GRAPH).cloned().ok_or_else(|| GraphRefused::NotGraph(run.clone()))?;
    let malformed = |why: String| GraphRefused::Malformed { run: run.clone(), why };
    let (graph, children) = form::read(&form).map_err(|fault| malformed(fault.message))?;
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
    let (mut ticks, mut effects) = (BTreeMap::new(), BTreeMap::new());
    let mut withheld = None;
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
                ticks.insert(edge.path.clone(), tick);
                frontier.edges.push(edge);
            }
        }
        ControlFlow::Continue(())
    })?;
    if let Some(tick) = withheld {
        return Err(GraphRefused::Withheld { run, tick }.into());
    }
    let state = trace.state(trace.tip())?;
    let nodes = state.get("nodes").and_then(Value::as_object).cloned().unwrap_or_default();
    frontier.nodes = nodes.iter().map(|(path, value)| (path.to_string(), value.clone())).collect();
    frontier.output = state.get("output").cloned();
    let digest = form::digest(&form);
    Ok(GraphRun { run, graph, children, form, digest, pack, functions, frontier, ticks, effects })
}

/// The value of an edge, as its result says; nothing for one that failed.
fn recorded(content: &Value) -> Option<RecordedEdge> {
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

/// Reads a line of a frontier file.
fn edge_of_line(edge: &Value) -> Option<RecordedEdge> {
    let text = |name: &str| edge.get(name)?.as_str().map(str::to_owned);
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

/// Reads the lines of a frontier file: a header, then one for each edge in canonical order. The error is a sentence with its line.
pub fn read_file(lines: &[Value]) -> Result<GraphRun, String> {
    let (header, edges) = lines.split_first().ok_or("line 1: a frontier file begins with its header")?;
    if header.get("frontier").and_then(Value::as_u64) != Some(1) {
        return Err("line 1: a frontier file begins with {\"frontier\":1,...}".to_owned());
    }
    let form = header.get(GRAPH).cloned().ok_or("line 1: it has no graph")?;
    let (graph, children) = form::read(&form).map_err(|fault| format!("line 1: {}", fault.message))?;
    let pack = header.get("pack").cloned().unwrap_or_else(Value::object);
    let run = header.get("run").and_then(Value::as_str).and_then(|name| name.parse().ok());
    let functions = functions_of(&pack);
    for name in ["inputs", "nodes", "output", "pack"] {
        header.get(name).ok_or_else(|| format!("line 1: it has no {name}"))?;
    }
    let findings = std::iter::once(&graph)
        .chain(children.values())
        .flat_map(|graph| check(graph, &functions, &children).0);
    if let Some(GraphFinding { rule, statement, message, .. }) = findings.into_iter().next() {
        return Err(format!("line 1: its graph is refused: {} at {statement}: {message}", rule.as_str()));
    }
    let named = |name: &str| {
        let members = header.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        members.iter().map(|(name, value)| (name.to_string(), value.clone())).collect::<BTreeMap<_, _>>()
    };
    let mut frontier = Frontier {
        inputs: named("inputs"),
        edges: Vec::with_capacity(edges.len()),
        nodes: named("nodes"),
        output: header.get("output").cloned(),
        limit: None,
        is_ordered: true,
    };
    let mut effects = BTreeMap::new();
    for (line, edge) in (2..).zip(edges) {
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
        frontier.edges.push(read);
    }
    let run = run.ok_or("line 1: it has no name of a run")?;
    let digest = form::digest(&form);
    Ok(GraphRun {
        run,
        graph,
        children,
        form,
        digest,
        pack,
        functions,
        frontier,
        ticks: BTreeMap::new(),
        effects,
    })
}
