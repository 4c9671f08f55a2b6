//! A recorded frontier beside the graph that is evaluated over it: the first place at which they part.

use std::collections::{BTreeMap, BTreeSet};

use dendrer_object::{Digest, Value};

use crate::Graph;
use crate::eval::{EdgeRequest, GraphValues, NodeFault, evaluate};
use crate::functions::Functions;

/// A recorded edge value.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedEdge {
    /// The path of the edge.
    pub path: String,
    /// Its place in the frontier.
    pub index: String,
    /// The effect.
    pub call: String,
    /// The arguments.
    pub args: Vec<Value>,
    /// The digest of effect and arguments.
    pub asked: Digest,
    /// The value.
    pub value: Value,
    /// The digest of the value.
    pub digest: Digest,
}

dendrer_object::words! {
    /// How a graph and a frontier part.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum DivergenceKind {
        /// An edge is due, and no value of it is recorded.
        Missing = "missing",
        /// A value is recorded, and its edge is never due.
        Surplus = "surplus",
        /// Two values of one edge are recorded.
        Duplicate = "duplicate",
        /// Another edge's value is in the place of the one that is due.
        Reordered = "reordered",
        /// The value is not the one that its digest says.
        ChangedValue = "changed_value",
        /// The edge asks something else than was recorded.
        ChangedRequest = "changed_request",
        /// A node has another value.
        ChangedNode = "changed_node",
        /// The output is another one.
        ChangedOutput = "changed_output",
    }
}

/// The first place at which a graph and a frontier part.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontierDivergence {
    /// How.
    pub kind: DivergenceKind,
    /// The path of the edge or the node; `output` for the output.
    pub path: String,
    /// What the record says.
    pub expected: Value,
    /// What the graph says.
    pub got: Value,
}

/// A run as it was recorded.
#[derive(Debug, Clone)]
pub struct Frontier {
    /// The inputs.
    pub inputs: BTreeMap<String, Value>,
    /// The edge values, in the order of the record.
    pub edges: Vec<RecordedEdge>,
    /// The values of nodes, by path; empty if none were recorded.
    pub nodes: BTreeMap<String, Value>,
    /// The output.
    pub output: Option<Value>,
    /// Whether the order of the record is the canonical one, as in a frontier file. Effects that run at once commit in any order.
    pub is_ordered: bool,
}

/// The text of what an edge asks, to be shown beside another.
pub fn request(call: &str, args: &[Value]) -> Value {
    Value::record([("args", Value::array(args.iter().cloned())), ("call", Value::from(call))])
}

/// Evaluates a graph over a recorded frontier, and returns what it made and the first divergence in canonical order. A recorded
/// value is never given to an edge that asks something else. A node that was recorded and can no longer be computed is a
/// divergence; one that never was is the error.
pub fn replay(
    graph: &Graph,
    children: &BTreeMap<String, Graph>,
    functions: &Functions,
    frontier: &Frontier,
) -> Result<(GraphValues, Option<FrontierDivergence>), NodeFault> {
    let mut by_path: BTreeMap<&str, &RecordedEdge> = BTreeMap::new();
    let mut twice = BTreeSet::new();
    for edge in &frontier.edges {
        if by_path.insert(&edge.path, edge).is_some() {
            twice.insert(&*edge.path);
        }
    }
    let mut first: Option<FrontierDivergence> = None;
    let mut met: BTreeSet<String> = BTreeSet::new();
    let mut position = 0;
    let mut note = |found: FrontierDivergence| {
        first.get_or_insert(found);
    };
    let mut values = |asked: &EdgeRequest| -> Option<Value> {
        let own = request(&asked.call, &asked.args);
        met.insert(asked.path.clone());
        let part = |kind, expected, got| FrontierDivergence { kind, path: asked.path.clone(), expected, got };
        let Some(edge) = by_path.get(&*asked.path) else {
            note(part(DivergenceKind::Missing, Value::Null, own));
            return None;
        };
        if twice.contains(&*asked.path) {
            note(part(DivergenceKind::Duplicate, edge.value.clone(), own));
            return None;
        }
        if frontier.is_ordered {
            let there = frontier.edges.get(position);
            position += 1;
            if there.is_none_or(|there| there.path != asked.path) {
                let there = there.map_or(Value::Null, |there| Value::from(there.path.as_str()));
                note(part(DivergenceKind::Reordered, there, Value::from(asked.path.as_str())));
                return None;
            }
        }
        if edge.index != asked.index {
            let (expected, got) = (Value::from(edge.index.as_str()), Value::from(asked.index.as_str()));
            note(part(DivergenceKind::Reordered, expected, got));
            return None;
        }
        if edge.value.digest() != edge.digest {
            let (expected, got) = (Value::from(edge.digest), Value::from(edge.value.digest()));
            note(part(DivergenceKind::ChangedValue, expected, got));
            return None;
        }
        if edge.asked != asked.asked || edge.call != asked.call || edge.args != asked.args {
            note(part(DivergenceKind::ChangedRequest, request(&edge.call, &edge.args), own));
            return None;
        }
        Some(edge.value.clone())
    };
    let found = match evaluate(graph, children, functions, &frontier.inputs, &mut values) {
        Ok(found) => found,
        Err(_) if first.is_some() => return Ok((GraphValues::default(), first)),
        Err(fault) if frontier.nodes.is_empty() => return Err(fault),
        Err(NodeFault { path, why }) => {
            let expected = frontier.nodes.get(&path).cloned().unwrap_or(Value::Null);
            let (kind, got) = (DivergenceKind::ChangedNode, Value::record([("error", Value::from(why))]));
            return Ok((GraphValues::default(), Some(FrontierDivergence { kind, path, expected, got })));
        }
    };
    if first.is_some() {
        return Ok((found, first));
    }
    if let Some(edge) = frontier.edges.iter().find(|edge| !met.contains(&edge.path)) {
        let kind = DivergenceKind::Surplus;
        let expected = request(&edge.call, &edge.args);
        return Ok((
            found,
            Some(FrontierDivergence { kind, path: edge.path.clone(), expected, got: Value::Null }),
        ));
    }
    let differs = found.nodes.iter().find(|(path, value)| {
        frontier.nodes.get(path).map_or(!frontier.nodes.is_empty(), |recorded| recorded != value)
    });
    if let Some((path, value)) = differs {
        let expected = frontier.nodes.get(path).cloned().unwrap_or(Value::Null);
        let kind = DivergenceKind::ChangedNode;
        return Ok((
            found.clone(),
            Some(FrontierDivergence { kind, path: path.clone(), expected, got: value.clone() }),
        ));
    }
    let made: BTreeSet<&str> = found.nodes.iter().map(|(path, _)| &**path).collect();
    if let Some((path, recorded)) = frontier.nodes.iter().find(|(path, _)| !made.contains(&***path)) {
        let (kind, path, expected) = (DivergenceKind::ChangedNode, path.clone(), recorded.clone());
        return Ok((found, Some(FrontierDivergence { kind, path, expected, got: Value::Null })));
    }
    if let Some(recorded) = &frontier.output
        && found.output.as_ref() != Some(recorded)
    {
        let got = found.output.clone().unwrap_or(Value::Null);
        let kind = DivergenceKind::ChangedOutput;
        let expected = recorded.clone();
        return Ok((found, Some(FrontierDivergence { kind, path: "output".to_owned(), expected, got })));
    }
    Ok((found, None))
}

/// What follows from other values of some edges.
#[derive(Debug, Clone, Default)]
pub struct Substituted {
    /// The first node that differs: its path, the recorded value, the value now.
    pub first: Option<(String, Value, Value)>,
    /// Nodes that differ, in canonical order.
    pub reaches: Vec<String>,
    /// Nodes that do not.
    pub same: Vec<String>,
    /// Edges that are asked something else now, and everything that depends on them.
    pub unknown: Vec<String>,
    /// What was evaluated.
    pub found: GraphValues,
}

/// Evaluates a graph over a frontier in which some edges have another value. A recorded value is not given to an edge that is asked
/// something else now: what depends on it is unknown.
pub fn substitute(
    graph: &Graph,
    children: &BTreeMap<String, Graph>,
    functions: &Functions,
    frontier: &Frontier,
    others: &BTreeMap<String, Value>,
) -> Result<Substituted, NodeFault> {
    let by_path: BTreeMap<&str, &RecordedEdge> =
        frontier.edges.iter().map(|edge| (&*edge.path, edge)).collect();
    let found = evaluate(graph, children, functions, &frontier.inputs, &mut |asked: &EdgeRequest| {
        if let Some(other) = others.get(&asked.path) {
            return Some(other.clone());
        }
        let recorded = by_path.get(&*asked.path).filter(|edge| edge.asked == asked.asked);
        recorded.map(|edge| edge.value.clone())
    })?;
    let mut answer = Substituted { unknown: found.waits.clone(), ..Substituted::default() };
    for (path, value) in &found.nodes {
        match frontier.nodes.get(path) {
            Some(recorded) if recorded == value => answer.same.push(path.clone()),
            recorded => {
                let before = recorded.cloned().unwrap_or(Value::Null);
                answer.first.get_or_insert_with(|| (path.clone(), before, value.clone()));
                answer.reaches.push(path.clone());
            }
        }
    }
    answer.found = found;
    Ok(answer)
}
