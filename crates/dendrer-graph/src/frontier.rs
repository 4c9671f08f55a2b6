//! A recorded frontier beside the graph that is evaluated over it: the first place at which they part.

use std::collections::{BTreeMap, BTreeSet};

use dendrer_object::{Digest, Value};

use crate::Graph;
use crate::eval::{EdgeRequest, GraphEvaluation, GraphValues, NodeFault};
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
    /// The value on record.
    pub expected: Value,
    /// The value of the graph.
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
    /// The path of the repeat that came to its limit and ended the run.
    pub limit: Option<String>,
    /// Whether the order of the record is the canonical one, as in a frontier file. Effects that run at once commit in any order.
    pub is_ordered: bool,
}

impl Frontier {
    /// Whether the run did not end: neither with an output nor at a limit.
    pub fn is_open(&self) -> bool {
        self.output.is_none() && self.limit.is_none()
    }
}

/// The text of what an edge asks, to be shown beside another.
pub fn request(call: &str, args: &[Value]) -> Value {
    Value::record([("args", Value::array(args.iter().cloned())), ("call", Value::from(call))])
}

/// The recorded edges of a frontier on the way through a replay.
struct Recorded<'f> {
    frontier: &'f Frontier,
    by_path: BTreeMap<&'f str, &'f RecordedEdge>,
    twice: BTreeSet<&'f str>,
    met: BTreeSet<String>,
    position: usize,
}

impl<'f> Recorded<'f> {
    fn new(frontier: &'f Frontier) -> Recorded<'f> {
        let (mut by_path, mut twice) = (BTreeMap::new(), BTreeSet::new());
        for edge in &frontier.edges {
            if by_path.insert(&*edge.path, edge).is_some() {
                twice.insert(&*edge.path);
            }
        }
        Recorded { frontier, by_path, twice, met: BTreeSet::new(), position: 0 }
    }

    /// Returns the recorded value of an edge, or how the edge and the record differ: recorded, asked.
    fn value(&mut self, asked: &EdgeRequest) -> Result<Value, (DivergenceKind, Value, Value)> {
        let own = request(&asked.call, &asked.args);
        self.met.insert(asked.path.clone());
        let Some(edge) = self.by_path.get(&*asked.path) else {
            return Err((DivergenceKind::Missing, Value::Null, own));
        };
        if self.twice.contains(&*asked.path) {
            return Err((DivergenceKind::Duplicate, edge.value.clone(), own));
        }
        if self.frontier.is_ordered {
            let there = self.frontier.edges.get(self.position);
            self.position += 1;
            if there.is_none_or(|there| there.path != asked.path) {
                let there = there.map_or(Value::Null, |there| Value::from(there.path.as_str()));
                return Err((DivergenceKind::Reordered, there, Value::from(asked.path.as_str())));
            }
        }
        if edge.index != asked.index {
            let (expected, got) = (Value::from(edge.index.as_str()), Value::from(asked.index.as_str()));
            return Err((DivergenceKind::Reordered, expected, got));
        }
        let digest = edge.value.digest();
        if digest != edge.digest {
            return Err((DivergenceKind::ChangedValue, Value::from(edge.digest), Value::from(digest)));
        }
        if edge.asked != asked.asked || edge.call != asked.call || edge.args != asked.args {
            return Err((DivergenceKind::ChangedRequest, request(&edge.call, &edge.args), own));
        }
        Ok(edge.value.clone())
    }

    /// Compares the nodes and the output with the record, and finds edges that were never due.
    fn differs(&self, found: &GraphValues) -> Option<FrontierDivergence> {
        let Frontier { edges, nodes, output, limit, .. } = self.frontier;
        let parted = |kind, path: &str, expected: Option<&Value>, got: Option<&Value>| {
            let [expected, got] = [expected, got].map(|value| value.cloned().unwrap_or(Value::Null));
            FrontierDivergence { kind, path: path.to_owned(), expected, got }
        };
        if let Some(edge) = edges.iter().find(|edge| !self.met.contains(&edge.path)) {
            let expected = request(&edge.call, &edge.args);
            return Some(parted(DivergenceKind::Surplus, &edge.path, Some(&expected), None));
        }
        let is_other = |(path, value): &&(String, Value)| {
            nodes.get(path).map_or(!nodes.is_empty(), |recorded| recorded != value)
        };
        if let Some((path, value)) = found.nodes.iter().find(is_other) {
            return Some(parted(DivergenceKind::ChangedNode, path, nodes.get(path), Some(value)));
        }
        let made: BTreeSet<&str> = found.nodes.iter().map(|(path, _)| &**path).collect();
        if let Some((path, recorded)) = nodes.iter().find(|(path, _)| !made.contains(&***path)) {
            return Some(parted(DivergenceKind::ChangedNode, path, Some(recorded), None));
        }
        if limit != &found.limit && (output.is_some() || limit.is_some()) {
            let said = |limit: &Option<String>, output: &Option<Value>| match limit {
                Some(path) => Value::record([("limit", Value::from(path.as_str()))]),
                None => output.clone().unwrap_or(Value::Null),
            };
            let (expected, got) = (said(limit, output), said(&found.limit, &found.output));
            return Some(parted(DivergenceKind::ChangedOutput, "output", Some(&expected), Some(&got)));
        }
        let recorded = output.as_ref().filter(|recorded| found.output.as_ref() != Some(*recorded))?;
        Some(parted(DivergenceKind::ChangedOutput, "output", Some(recorded), found.output.as_ref()))
    }
}

/// Evaluates a graph over a recorded frontier, and returns its values and the first divergence in canonical order. A recorded
/// value is never given to an edge that asks something else. A node that was recorded and can no longer be computed is a
/// divergence; one that never was is the error.
pub fn replay(
    graph: &Graph,
    children: &BTreeMap<String, Graph>,
    functions: &Functions,
    frontier: &Frontier,
) -> Result<(GraphValues, Option<FrontierDivergence>), NodeFault> {
    let mut recorded = Recorded::new(frontier);
    let mut first: Option<FrontierDivergence> = None;
    let mut first_there: Option<FrontierDivergence> = None;
    let mut values = |asked: &EdgeRequest| {
        let note = |(kind, expected, got)| {
            let divergence = FrontierDivergence { kind, path: asked.path.clone(), expected, got };
            if kind != DivergenceKind::Missing {
                first_there.get_or_insert_with(|| divergence.clone());
            }
            first.get_or_insert(divergence);
        };
        recorded.value(asked).map_err(note).ok()
    };
    let paths = frontier.edges.iter().map(|edge| &edge.path).chain(frontier.nodes.keys());
    let begun = GraphEvaluation::new(graph, children, functions, &frontier.inputs)?;
    let mut evaluation = begun.with_recorded(paths.cloned().collect());
    match evaluation.advance(&mut values) {
        Ok(()) => {
            let found = evaluation.values();
            // A run that a repeat ended has not asked what else was due.
            let first = if found.limit.is_some() { first_there } else { first };
            let first = first.or_else(|| recorded.differs(&found));
            Ok((found, first))
        }
        Err(_) if first.is_some() => Ok((GraphValues::default(), first)),
        Err(fault) if frontier.nodes.is_empty() => Err(fault),
        Err(NodeFault { path, why }) => {
            let expected = frontier.nodes.get(&path).cloned().unwrap_or(Value::Null);
            let (kind, got) = (DivergenceKind::ChangedNode, Value::record([("error", Value::from(why))]));
            Ok((GraphValues::default(), Some(FrontierDivergence { kind, path, expected, got })))
        }
    }
}

/// The consequences of other values of some edges.
#[derive(Debug, Clone, Default)]
pub struct Substituted {
    /// The first path that differs: the recorded value, the value now. The value of a path that cannot be computed is `{"error"}`.
    pub first: Option<(String, Value, Value)>,
    /// Nodes that differ, and paths that cannot be computed, in canonical order.
    pub reaches: Vec<String>,
    /// Nodes that do not.
    pub same: Vec<String>,
    /// Edges whose request is the recorded one.
    pub asked: Vec<String>,
    /// The paths that cannot be computed, each with the reason.
    pub failed: Vec<NodeFault>,
    /// Edges that are asked something else now, and everything that depends on them or on a path that cannot be computed.
    pub unknown: Vec<String>,
    /// The limit of the repeat that came to it and ends the graph.
    pub max: Option<u64>,
    /// The values of the evaluation.
    pub found: GraphValues,
}

/// Evaluates a graph over a frontier in which some edges have another value. A recorded value is not given to an edge that is asked
/// something else now: what depends on it is unknown. A path that cannot be computed does not end the evaluation.
///
/// # Errors
///
/// A [`NodeFault`] if the graph cannot be evaluated over any values.
pub fn substitute(
    graph: &Graph,
    children: &BTreeMap<String, Graph>,
    functions: &Functions,
    frontier: &Frontier,
    others: &BTreeMap<String, Value>,
) -> Result<Substituted, NodeFault> {
    let by_path: BTreeMap<&str, &RecordedEdge> =
        frontier.edges.iter().map(|edge| (&*edge.path, edge)).collect();
    let recorded =
        |asked: &EdgeRequest| by_path.get(&*asked.path).copied().filter(|edge| edge.asked == asked.asked);
    let made_with = |others: &BTreeMap<String, Value>| {
        let mut evaluation = GraphEvaluation::new(graph, children, functions, &frontier.inputs)?;
        let failed = evaluation.advance_past_faults(&mut |asked: &EdgeRequest| {
            let other = others.get(&asked.path);
            other.or_else(|| recorded(asked).map(|edge| &edge.value)).cloned()
        });
        let max = evaluation.limit().map(|(_, max)| max);
        Ok((evaluation.values(), failed, max))
    };
    let (found, failed, max) = made_with(others)?;
    // A run that did not end has no nodes on record.
    let before = match frontier.nodes.is_empty() {
        false => frontier.nodes.clone(),
        true => made_with(&BTreeMap::new())?.0.nodes.into_iter().collect(),
    };
    let is_failed = |path: &str| failed.iter().any(|fault| fault.path == path);
    let asked = found.edges.iter().filter(|(asked, _)| recorded(asked).is_some());
    let mut answer = Substituted {
        unknown: found.waits.iter().filter(|path| !is_failed(path)).cloned().collect(),
        asked: asked.map(|(asked, _)| asked.path.clone()).collect(),
        max,
        ..Substituted::default()
    };
    for (path, value) in &found.nodes {
        match before.get(path) {
            Some(recorded) if recorded == value => answer.same.push(path.clone()),
            recorded => {
                let before = recorded.cloned().unwrap_or(Value::Null);
                answer.first.get_or_insert_with(|| (path.clone(), before, value.clone()));
                answer.reaches.push(path.clone());
            }
        }
    }
    (answer.found, answer.failed) = (found, failed);
    Ok(answer)
}
