//! GraphValues: the values of all nodes from inputs and edge values, and what the edges ask.
//!
//! The same walk serves a run and its replay: a run brings values as its effects answer, a replay those that were recorded.

use std::collections::BTreeMap;

use dendrer_object::{Digest, Value, json};

use crate::functions::Functions;
use crate::{Argument, Graph, Reference, Statement, StatementBody, last_node};

/// How many rounds a repeat may have, whatever its text says.
pub const ROUNDS_MAX: u64 = 100_000;

/// How deep graphs may run graphs.
pub const CHILD_DEPTH_MAX: usize = 32;

/// How many statements one evaluation may take, those of each round and each child counted.
pub const STATEMENTS_MAX: u64 = 10_000_000;

/// The request of an edge.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeRequest {
    /// The ids on the way to it: `e1`, `r1.3.e2`, `e3.e1`.
    pub path: String,
    /// Its place in the frontier: `1`, `2.3.1`, `3.1`.
    pub index: String,
    /// The effect.
    pub call: String,
    /// The arguments.
    pub args: Vec<Value>,
    /// The digest of both.
    pub asked: Digest,
}

impl EdgeRequest {
    /// The line that an executor reads.
    pub fn to_value(&self) -> Value {
        Value::record([
            ("args", Value::array(self.args.iter().cloned())),
            ("call", Value::from(self.call.as_str())),
            ("path", Value::from(self.path.as_str())),
        ])
    }
}

/// The digest of what an edge asks.
pub fn asked(call: &str, args: &[Value]) -> Digest {
    let whole = Value::record([("args", Value::array(args.iter().cloned())), ("call", Value::from(call))]);
    Digest::of_parts(&[b"dendrer/edge/v1\n", &json::to_vec(&whole)])
}

/// A node that cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct NodeFault {
    /// Its path.
    pub path: String,
    /// Why not.
    pub why: String,
}

fn fault(path: &str, why: impl Into<String>) -> NodeFault {
    NodeFault { path: path.to_owned(), why: why.into() }
}

/// The result of an evaluation.
#[derive(Debug, Clone, Default)]
pub struct GraphValues {
    /// The value of each node, by path, in canonical order.
    pub nodes: Vec<(String, Value)>,
    /// The request of each edge that was reached, in canonical order, and whether a value was there for it.
    pub edges: Vec<(EdgeRequest, bool)>,
    /// The paths of nodes and edges that wait for a value, in canonical order.
    pub waits: Vec<String>,
    /// The output, once every value is there.
    pub output: Option<Value>,
}

impl GraphValues {
    /// The edges whose value is not there yet.
    pub fn due(&self) -> impl Iterator<Item = &EdgeRequest> {
        self.edges.iter().filter(|(_, is_there)| !is_there).map(|(asked, _)| asked)
    }
}

/// Evaluates a graph. `values` brings the value of an edge, or nothing while it is not there; what depends on it then waits.
pub fn evaluate(
    graph: &Graph,
    children: &BTreeMap<String, Graph>,
    functions: &Functions,
    inputs: &BTreeMap<String, Value>,
    values: &mut dyn FnMut(&EdgeRequest) -> Option<Value>,
) -> Result<GraphValues, NodeFault> {
    let mut functions = functions.clone();
    for statement in graph.each().into_iter().chain(children.values().flat_map(|child| child.each())) {
        if let StatementBody::Node { call, args } = &statement.body {
            functions.prepare(call, args.len()).map_err(|why| fault(&statement.id, why))?;
        }
    }
    let found = GraphValues::default();
    let mut walk = Walk { children, functions: &functions, values, found, depth: 0, left: STATEMENTS_MAX };
    let mut scope = Scope { inputs, known: BTreeMap::new() };
    walk.list(&graph.statements, "", "", &mut scope)?;
    walk.found.output = graph.output().and_then(|id| scope.known.get(id).cloned().flatten());
    Ok(walk.found)
}

/// The values that statements see: `None` for one that is not there yet.
struct Scope<'s> {
    inputs: &'s BTreeMap<String, Value>,
    known: BTreeMap<String, Option<Value>>,
}

impl Scope<'_> {
    fn value(&self, reference: &Reference, path: &str) -> Result<Option<Value>, NodeFault> {
        let whole = match reference.is_statement() {
            true => self.known.get(&reference.name).cloned().flatten(),
            false => {
                let input = self.inputs.get(&reference.name).cloned();
                Some(input.ok_or_else(|| fault(path, format!("there is no input {}", reference.name)))?)
            }
        };
        let Some(mut value) = whole else { return Ok(None) };
        for name in &reference.path {
            let member = match value.as_array() {
                Some(items) => name.parse().ok().and_then(|at: usize| items.get(at).cloned()),
                None => value.get(name).cloned(),
            };
            value = member.ok_or_else(|| fault(path, format!("{} has no value", reference.text())))?;
        }
        Ok(Some(value))
    }

    fn arguments(&self, args: &[Argument], path: &str) -> Result<Option<Vec<Value>>, NodeFault> {
        let mut found = Vec::with_capacity(args.len());
        for arg in args {
            match arg {
                Argument::Literal(value) => found.push(value.clone()),
                Argument::Reference(reference) => match self.value(reference, path)? {
                    Some(value) => found.push(value),
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(found))
    }
}

struct Walk<'w> {
    children: &'w BTreeMap<String, Graph>,
    functions: &'w Functions,
    values: &'w mut dyn FnMut(&EdgeRequest) -> Option<Value>,
    found: GraphValues,
    /// How many graphs are around this one.
    depth: usize,
    left: u64,
}

impl Walk<'_> {
    fn list(
        &mut self,
        statements: &[Statement],
        path: &str,
        index: &str,
        scope: &mut Scope<'_>,
    ) -> Result<(), NodeFault> {
        let mut place = 0;
        for statement in statements {
            let here = format!("{path}{}", statement.id);
            let too_many = || fault(&here, format!("the graph takes more than {STATEMENTS_MAX} statements"));
            self.left = self.left.checked_sub(1).ok_or_else(too_many)?;
            if !matches!(statement.body, StatementBody::Node { .. }) {
                place += 1;
            }
            let holds = match &statement.condition {
                None => Some(true),
                Some(condition) => match scope.value(condition, &here)? {
                    None => None,
                    Some(value) => Some(value.as_bool().ok_or_else(|| {
                        fault(&here, format!("{} is no condition: {}", condition.text(), value.described()))
                    })?),
                },
            };
            let value = match (holds, &statement.body) {
                (None, _) => None,
                (Some(false), _) => Some(Value::Null),
                (_, StatementBody::Node { call, args }) => match scope.arguments(args, &here)? {
                    None => None,
                    Some(args) => {
                        let made = self.functions.call(call, &args);
                        Some(made.map_err(|why| fault(&here, format!("{call}: {why}")))?)
                    }
                },
                (_, StatementBody::Edge { call, args, .. }) => match scope.arguments(args, &here)? {
                    None => None,
                    Some(args) => self.edge(call, args, &here, &format!("{index}{place}"))?,
                },
                (_, StatementBody::Repeat { from, max, until, statements }) => {
                    let first = scope.arguments(std::slice::from_ref(from), &here)?;
                    match first.and_then(|mut values| values.pop()) {
                        None => None,
                        Some(first) => {
                            let most = max.unwrap_or(ROUNDS_MAX);
                            let repeat = Repeat { id: &statement.id, most, until, statements };
                            self.repeat(&repeat, first, &here, &format!("{index}{place}"), scope)?
                        }
                    }
                }
            };
            let is_child = statement.call().is_some_and(|(call, _)| call.starts_with("graph."));
            match (&statement.body, &value) {
                (StatementBody::Node { .. }, Some(value)) => self.found.nodes.push((here, value.clone())),
                (StatementBody::Node { .. } | StatementBody::Edge { .. }, None) if !is_child => {
                    self.found.waits.push(here);
                }
                _ => {}
            }
            scope.known.insert(statement.id.clone(), value);
        }
        Ok(())
    }

    fn edge(
        &mut self,
        call: &str,
        args: Vec<Value>,
        path: &str,
        index: &str,
    ) -> Result<Option<Value>, NodeFault> {
        if let Some(name) = call.strip_prefix("graph.") {
            let child = self.children.get(name);
            let child = child.ok_or_else(|| fault(path, format!("there is no graph {name}")))?;
            let names = child.inputs();
            if names.len() != args.len() {
                let why = format!("{name} takes {} inputs, and not {}", names.len(), args.len());
                return Err(fault(path, why));
            }
            let inputs: BTreeMap<String, Value> = names.into_iter().zip(args).collect();
            if self.depth == CHILD_DEPTH_MAX {
                let why = format!("graphs run graphs more than {CHILD_DEPTH_MAX} deep");
                return Err(fault(path, why));
            }
            let mut scope = Scope { inputs: &inputs, known: BTreeMap::new() };
            self.depth += 1;
            self.list(&child.statements, &format!("{path}."), &format!("{index}."), &mut scope)?;
            self.depth -= 1;
            return Ok(child.output().and_then(|id| scope.known.get(id).cloned().flatten()));
        }
        let asked = EdgeRequest {
            path: path.to_owned(),
            index: index.to_owned(),
            call: call.to_owned(),
            asked: asked(call, &args),
            args,
        };
        let value = (self.values)(&asked);
        self.found.edges.push((asked, value.is_some()));
        Ok(value)
    }

    fn repeat(
        &mut self,
        repeat: &Repeat<'_>,
        first: Value,
        path: &str,
        index: &str,
        scope: &mut Scope<'_>,
    ) -> Result<Option<Value>, NodeFault> {
        let mut value = first;
        for round in 1..=repeat.most {
            if round > ROUNDS_MAX {
                let why = format!("a repeat has {ROUNDS_MAX} rounds at most");
                return Err(fault(path, why));
            }
            let mut inner = Scope { inputs: scope.inputs, known: scope.known.clone() };
            inner.known.insert(repeat.id.to_owned(), Some(value));
            self.list(
                repeat.statements,
                &format!("{path}.{round}."),
                &format!("{index}.{round}."),
                &mut inner,
            )?;
            let of = |id: &str| inner.known.get(id).cloned().flatten();
            let Some(made) = last_node(repeat.statements).and_then(of) else { return Ok(None) };
            value = made;
            match of(repeat.until) {
                None => return Ok(None),
                Some(ends) if ends.as_bool() == Some(true) => break,
                Some(_) => {}
            }
        }
        Ok(Some(value))
    }
}

struct Repeat<'r> {
    id: &'r str,
    most: u64,
    until: &'r str,
    statements: &'r [Statement],
}
