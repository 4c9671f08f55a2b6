//! The values of all nodes from inputs and edge values, and what the edges ask.
//!
//! One [`GraphEvaluation`] serves a run and its replay: a run brings values as its effects answer, a replay those that were recorded.
//! Each value that is brought makes the statements go on that waited for it, and no other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_object::{Digest, Value, json};

use crate::branches::{branch_only, reads};
use crate::functions::{BUILT_IN, Functions};
use crate::{Argument, Graph, Reference, Statement, StatementBody, last_node};

/// How many rounds a repeat may have, whatever its text has.
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
    /// Its place in the frontier: `1`, `2.3.1`, `3.1`; `1+2` for the second node after edge 1, if a host function computes it.
    pub index: String,
    /// The effect.
    pub call: String,
    /// The arguments.
    pub args: Vec<Value>,
    /// The digest of both.
    pub asked: Digest,
    /// Whether its statement lets it overlap with others, though it is effectful.
    pub at_once: bool,
    /// Whether it is the second call of a host function, whose result is compared with the first.
    pub again: bool,
}

impl EdgeRequest {
    /// The line that an executor reads.
    pub fn to_value(&self) -> Value {
        let again = self.again.then_some(("again", Value::from(true)));
        let members = [
            ("args", Value::array(self.args.iter().cloned())),
            ("call", Value::from(self.call.as_str())),
            ("path", Value::from(self.path.as_str())),
        ];
        Value::record(again.into_iter().chain(members))
    }
}

/// The numbers of a place in the frontier, by which places are in canonical order: `2.3.1`. A host function is after everything
/// in the edge before it.
pub fn numbers_of_index(index: &str) -> Vec<u64> {
    let number = |text: &str| text.parse().unwrap_or(u64::MAX);
    let numbers = index.split('.').flat_map(|part| match part.split_once('+') {
        None => vec![number(part)],
        Some((edge, node)) => vec![number(edge), u64::MAX, number(node)],
    });
    numbers.collect()
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
    /// The path of the repeat that came to its limit and ends the graph.
    pub limit: Option<String>,
    /// The paths of edges after that repeat that have a value: each was under way before the limit.
    pub beside_limit: Vec<String>,
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
    let mut evaluation = GraphEvaluation::new(graph, children, functions, inputs)?;
    evaluation.advance(values)?;
    Ok(evaluation.values())
}

/// A place in the order of a graph: positions of statements, and numbers of rounds. Canonical order is that of places.
type Place = Vec<u64>;

/// A statement of a scope, each by its number.
type Instance = (usize, usize);

/// A list of statements on the way: the graph, a graph that it runs, or a round of a repeat.
#[derive(Debug)]
struct Scope<'g> {
    statements: &'g [Statement],
    positions: BTreeMap<&'g str, usize>,
    /// Of each statement, how many edges and repeats there are up to it.
    indices: Vec<u64>,
    values: Vec<Option<Value>>,
    /// The statements that wait for the value of one.
    waiting: BTreeMap<usize, Vec<Instance>>,
    inputs: Arc<BTreeMap<String, Value>>,
    /// Of a round: its repeat, and the value of the round before.
    round: Option<(Instance, Value)>,
    place: Place,
    path: String,
    index: String,
    /// How many graphs are around this one.
    depth: usize,
}

impl<'g> Scope<'g> {
    fn new(statements: &'g [Statement], inputs: Arc<BTreeMap<String, Value>>) -> Scope<'g> {
        let mut count = 0;
        let indices = statements.iter().map(|statement| {
            count += u64::from(!matches!(statement.body, StatementBody::Node { .. }));
            count
        });
        let positions = statements.iter().enumerate().map(|(position, statement)| (&*statement.id, position));
        Scope {
            indices: indices.collect(),
            positions: positions.collect(),
            values: vec![None; statements.len()],
            waiting: BTreeMap::new(),
            statements,
            inputs,
            round: None,
            place: Place::new(),
            path: String::new(),
            index: String::new(),
            depth: 0,
        }
    }

    fn place_of(&self, position: usize) -> Place {
        let mut place = self.place.clone();
        place.push(position as u64);
        place
    }

    fn path_of(&self, position: usize) -> String {
        format!("{}{}", self.path, self.statements[position].id)
    }

    fn index_of(&self, position: usize) -> String {
        let is_node = |one: &&Statement| matches!(one.body, StatementBody::Node { .. });
        let place = format!("{}{}", self.index, self.indices[position]);
        match self.statements[..=position].iter().rev().take_while(is_node).count() {
            0 => place,
            node => format!("{place}+{node}"),
        }
    }
}

/// The outcome of a statement in an evaluation.
enum Step {
    /// It has a value.
    Done(Value),
    /// It waits for the value of another one.
    Waits(Instance),
    /// It waits for a value from outside, or came to its limit.
    Rests,
}

/// A graph that is evaluated as values come.
#[derive(Debug)]
pub struct GraphEvaluation<'g> {
    children: &'g BTreeMap<String, Graph>,
    functions: Functions,
    scopes: Vec<Scope<'g>>,
    /// The statements that can go on, in canonical order.
    ready: BTreeSet<(Place, Instance)>,
    /// The scope that each repeat or child is in, and its round.
    inner: BTreeMap<Instance, (usize, u64)>,
    nodes: BTreeMap<Place, (String, Value)>,
    edges: BTreeMap<Place, (EdgeRequest, bool)>,
    /// The edges that were asked, by path.
    asked: BTreeMap<String, (Place, Instance)>,
    /// Those without a value.
    due: BTreeSet<Place>,
    /// The repeats that came to their limit, each with its path and its limit.
    limits: BTreeMap<Place, (String, u64)>,
    output: Option<&'g str>,
    left: u64,
    /// The statements that wait until a branch that reads them is taken.
    dormant: BTreeSet<Instance>,
    /// Paths on record: what was asked or computed is evaluated in any branch.
    recorded: BTreeSet<String>,
}

impl<'g> GraphEvaluation<'g> {
    /// Begins the evaluation of a graph.
    pub fn new(
        graph: &'g Graph,
        children: &'g BTreeMap<String, Graph>,
        functions: &Functions,
        inputs: &BTreeMap<String, Value>,
    ) -> Result<GraphEvaluation<'g>, NodeFault> {
        let mut functions = functions.clone();
        for statement in graph.each().into_iter().chain(children.values().flat_map(|child| child.each())) {
            if let StatementBody::Node { call, args } = &statement.body {
                functions.prepare(call, args.len()).map_err(|why| fault(&statement.id, why))?;
            }
        }
        let mut evaluation = GraphEvaluation {
            children,
            functions,
            scopes: Vec::new(),
            ready: BTreeSet::new(),
            inner: BTreeMap::new(),
            nodes: BTreeMap::new(),
            edges: BTreeMap::new(),
            asked: BTreeMap::new(),
            due: BTreeSet::new(),
            limits: BTreeMap::new(),
            output: graph.output(),
            left: STATEMENTS_MAX,
            dormant: BTreeSet::new(),
            recorded: BTreeSet::new(),
        };
        let whole = Scope::new(&graph.statements, Arc::new(inputs.clone()));
        evaluation.begin(whole)?;
        Ok(evaluation)
    }

    /// Evaluates statements on record also if only branches that are not taken read them, as programs did that evaluated all.
    pub fn with_recorded(mut self, paths: BTreeSet<String>) -> GraphEvaluation<'g> {
        self.recorded = paths;
        for (number, position) in std::mem::take(&mut self.dormant) {
            self.wait_or_begin((number, position));
        }
        self
    }

    /// Begins a statement that only branches read if it is on record, and else once a branch is taken.
    fn wait_or_begin(&mut self, instance: Instance) {
        let (number, position) = instance;
        let path = self.scopes[number].path_of(position);
        let inside = format!("{path}.");
        let is_recorded = self.recorded.contains(&path)
            || self.recorded.range(inside.clone()..).next().is_some_and(|next| next.starts_with(&inside));
        match is_recorded {
            true => drop(self.ready.insert((self.scopes[number].place_of(position), instance))),
            false => drop(self.dormant.insert(instance)),
        }
    }

    /// Evaluates as far as values are there. `values` brings the value of an edge that is reached, or nothing while it is not there.
    pub fn advance(
        &mut self,
        values: &mut dyn FnMut(&EdgeRequest) -> Option<Value>,
    ) -> Result<(), NodeFault> {
        while let Some((place, instance)) = self.ready.pop_first() {
            self.follow_one(instance, place, values)?;
        }
        Ok(())
    }

    /// As [`GraphEvaluation::advance`], and evaluates past statements that cannot be computed: each has the value `{"error"}` among
    /// the nodes, and what depends on it waits. Returns their faults.
    pub fn advance_past_faults(
        &mut self,
        values: &mut dyn FnMut(&EdgeRequest) -> Option<Value>,
    ) -> Vec<NodeFault> {
        let mut faults = Vec::new();
        while let Some((place, instance)) = self.ready.pop_first() {
            if let Err(fault) = self.follow_one(instance, place.clone(), values) {
                let error = Value::record([("error", Value::from(&*fault.why))]);
                self.nodes.insert(place, (fault.path.clone(), error));
                faults.push(fault);
            }
        }
        faults
    }

    fn follow_one(
        &mut self,
        instance: Instance,
        place: Place,
        values: &mut dyn FnMut(&EdgeRequest) -> Option<Value>,
    ) -> Result<(), NodeFault> {
        match self.step(instance, &place, values)? {
            Step::Done(value) => self.done(instance, place, value),
            Step::Waits((scope, position)) => {
                if self.dormant.remove(&(scope, position)) {
                    self.ready.insert((self.scopes[scope].place_of(position), (scope, position)));
                }
                self.scopes[scope].waiting.entry(position).or_default().push(instance);
            }
            Step::Rests => {}
        }
        Ok(())
    }

    /// Brings the value of an edge that is due; [`GraphEvaluation::advance`] uses it. Returns whether there is such an edge.
    pub fn bring(&mut self, path: &str, value: Value) -> bool {
        let Some((place, instance)) = self.asked.get(path).cloned() else { return false };
        let is_due = self.due.remove(&place);
        if is_due {
            if let Some((_, is_there)) = self.edges.get_mut(&place) {
                *is_there = true;
            }
            self.done(instance, place, value);
        }
        is_due
    }

    /// The paths of the edges that have a value.
    pub fn answered(&self) -> BTreeSet<String> {
        let answered = self.edges.values().filter(|(_, is_there)| *is_there);
        answered.map(|(asked, _)| asked.path.clone()).collect()
    }

    /// The edges whose value is not there yet, in canonical order.
    pub fn due(&self) -> impl Iterator<Item = &EdgeRequest> {
        self.due.iter().filter_map(|place| self.edges.get(place).map(|(asked, _)| asked))
    }

    /// The path and the limit of the first repeat that came to it and ends the graph.
    pub fn limit(&self) -> Option<(&str, u64)> {
        self.limits.values().next().map(|(path, max)| (&**path, *max))
    }

    /// The effects that may be asked yet, whatever values come; none once a limit ends the graph.
    pub fn open_calls(&self) -> BTreeSet<&'g str> {
        let mut open = BTreeSet::new();
        if self.limit().is_none() {
            for (number, scope) in self.scopes.iter().enumerate() {
                let mut left: Vec<&Statement> = Vec::new();
                for (position, statement) in scope.statements.iter().enumerate().rev() {
                    let is_dormant = self.dormant.contains(&(number, position));
                    let may_be_read = || left.iter().any(|later| reads(later, &statement.id));
                    if scope.values[position].is_none() && (!is_dormant || may_be_read()) {
                        self.calls_of(statement, &mut open);
                        left.push(statement);
                    }
                }
            }
        }
        open.retain(|call| !call.starts_with("graph."));
        open
    }

    /// Adds the effects of a statement, and of the statements and graphs inside; graphs are in the set too, so that each is walked once.
    fn calls_of(&self, statement: &'g Statement, open: &mut BTreeSet<&'g str>) {
        let inside = match &statement.body {
            StatementBody::Node { call, .. } => {
                open.extend(self.functions.is_host(call).then_some(&**call));
                return;
            }
            StatementBody::Repeat { statements, .. } => statements,
            StatementBody::Edge { call, .. } => {
                let child = call.strip_prefix("graph.").and_then(|name| self.children.get(name));
                match (open.insert(call), child) {
                    (true, Some(child)) => &child.statements,
                    _ => return,
                }
            }
        };
        inside.iter().for_each(|statement| self.calls_of(statement, open));
    }

    /// The values so far.
    pub fn values(self) -> GraphValues {
        let (limit, limit_at) = (self.limit().map(|(path, _)| path.to_owned()), self.limits.keys().next());
        let is_after = |place: &Place| limit_at.is_some_and(|at| place > at && !place.starts_with(at));
        let beside = self.edges.iter().filter(|(place, (_, is_there))| *is_there && is_after(place));
        let beside_limit = beside.map(|(_, (asked, _))| asked.path.clone()).collect();
        let mut waits: Vec<(Place, String)> = Vec::new();
        for (number, scope) in self.scopes.iter().enumerate() {
            for (position, statement) in scope.statements.iter().enumerate() {
                let is_child = statement.call().is_some_and(|(call, _)| call.starts_with("graph."));
                let is_repeat = matches!(statement.body, StatementBody::Repeat { .. });
                let is_dormant = self.dormant.contains(&(number, position));
                if scope.values[position].is_none() && !is_child && !is_repeat && !is_dormant {
                    waits.push((scope.place_of(position), scope.path_of(position)));
                }
            }
        }
        waits.sort_unstable();
        let whole = &self.scopes[0];
        let output = self.output.and_then(|id| whole.values[whole.positions[id]].clone());
        GraphValues {
            nodes: self.nodes.into_values().collect(),
            edges: self.edges.into_values().collect(),
            waits: waits.into_iter().map(|(_, path)| path).collect(),
            output: output.filter(|_| limit.is_none()),
            limit,
            beside_limit,
        }
    }

    /// Begins a list of statements, and returns its number.
    fn begin(&mut self, scope: Scope<'g>) -> Result<usize, NodeFault> {
        let number = self.scopes.len();
        let count = scope.statements.len();
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            fault(&scope.path, format!("the graph takes more than {STATEMENTS_MAX} statements"))
        })?;
        let until = scope.round.as_ref().and_then(|((outer, position), _)| {
            match &self.scopes[*outer].statements[*position].body {
                StatementBody::Repeat { until, .. } => Some(&**until),
                _ => None,
            }
        });
        let only = branch_only(scope.statements, until);
        let places: Vec<Place> = (0..count).map(|position| scope.place_of(position)).collect();
        self.scopes.push(scope);
        for (position, (place, is_branch_only)) in places.into_iter().zip(only).enumerate() {
            match is_branch_only {
                true => self.wait_or_begin((number, position)),
                false => drop(self.ready.insert((place, (number, position)))),
            }
        }
        Ok(number)
    }

    /// Keeps the value of a statement, and lets those that wait for it go on.
    fn done(&mut self, instance: Instance, place: Place, value: Value) {
        let (number, position) = instance;
        let scope = &mut self.scopes[number];
        if matches!(scope.statements[position].body, StatementBody::Node { .. }) {
            self.nodes.insert(place, (scope.path_of(position), value.clone()));
        }
        scope.values[position] = Some(value);
        for (scope, position) in scope.waiting.remove(&position).unwrap_or_default() {
            self.ready.insert((self.scopes[scope].place_of(position), (scope, position)));
        }
    }

    fn step(
        &mut self,
        instance: Instance,
        place: &Place,
        values: &mut dyn FnMut(&EdgeRequest) -> Option<Value>,
    ) -> Result<Step, NodeFault> {
        let (number, position) = instance;
        let statement = &self.scopes[number].statements[position];
        if let Some(&(inner, round)) = self.inner.get(&instance) {
            return self.follow(instance, place, inner, round);
        }
        let here = || self.scopes[number].path_of(position);
        if let Some(condition) = &statement.condition {
            match self.value(number, condition, &here)? {
                Err(waits) => return Ok(Step::Waits(waits)),
                // Skipped statements are null, and so are those that depend on them by `if`.
                Ok(value) if matches!(value, Value::Null) || value.as_bool() == Some(false) => {
                    return Ok(Step::Done(Value::Null));
                }
                Ok(value) if value.as_bool() == Some(true) => {}
                Ok(value) => {
                    let why = format!("{} is no condition: {}", condition.text(), value.described());
                    return Err(fault(&here(), why));
                }
            }
        }
        match &statement.body {
            StatementBody::Node { call, args } if BUILT_IN.contains(&&**call) => {
                match self.chosen(number, call, args, &here)? {
                    Err(waits) => Ok(Step::Waits(waits)),
                    Ok(value) => Ok(Step::Done(value)),
                }
            }
            StatementBody::Node { call, args } => match self.arguments(number, args, &here)? {
                Err(waits) => Ok(Step::Waits(waits)),
                Ok(args) if self.functions.is_host(call) => Ok(self.ask(instance, place, call, args, values)),
                Ok(args) => {
                    let made = self.functions.call(call, &args);
                    Ok(Step::Done(made.map_err(|why| fault(&here(), format!("{call}: {why}")))?))
                }
            },
            StatementBody::Edge { call, args, .. } => match self.arguments(number, args, &here)? {
                Err(waits) => Ok(Step::Waits(waits)),
                Ok(args) => match call.strip_prefix("graph.") {
                    Some(name) => {
                        self.child(instance, name, args)?;
                        self.step(instance, place, values)
                    }
                    None => Ok(self.ask(instance, place, call, args, values)),
                },
            },
            StatementBody::Repeat { from, .. } => {
                let first = match from {
                    Argument::Literal(value) => Ok(value.clone()),
                    Argument::Reference(reference) => self.value(number, reference, &here)?,
                };
                match first {
                    Err(waits) => Ok(Step::Waits(waits)),
                    Ok(first) => {
                        self.round(instance, 1, first)?;
                        self.step(instance, place, values)
                    }
                }
            }
        }
    }

    /// The value of a reference, or the statement that has none yet.
    fn value(
        &self,
        number: usize,
        reference: &Reference,
        path: &dyn Fn() -> String,
    ) -> Result<Result<Value, Instance>, NodeFault> {
        let whole = match reference.is_statement() {
            true => match self.statement(number, &reference.name) {
                Some(Ok(value)) => value,
                Some(Err(waits)) => return Ok(Err(waits)),
                None => return Err(fault(&path(), format!("there is no statement {}", reference.name))),
            },
            false => {
                let input = self.scopes[number].inputs.get(&reference.name);
                input.ok_or_else(|| fault(&path(), format!("there is no input {}", reference.name)))?
            }
        };
        let mut value = whole;
        for name in &reference.path {
            let member = match value.as_array() {
                Some(items) => name.parse().ok().and_then(|at: usize| items.get(at)),
                None => value.get(name),
            };
            value = member.ok_or_else(|| fault(&path(), format!("{} has no value", reference.text())))?;
        }
        Ok(Ok(value.clone()))
    }

    /// The value of a statement in a scope and those around it; the statement, if it has none yet; `None` if the id is unknown.
    fn statement(&self, mut number: usize, id: &str) -> Option<Result<&Value, Instance>> {
        loop {
            let scope = &self.scopes[number];
            if let Some(&position) = scope.positions.get(id) {
                return Some(scope.values[position].as_ref().ok_or((number, position)));
            }
            let ((outer, position), before) = scope.round.as_ref()?;
            if self.scopes[*outer].statements[*position].id == id {
                return Some(Ok(before));
            }
            number = *outer;
        }
    }

    fn argument(
        &self,
        number: usize,
        arg: &Argument,
        path: &dyn Fn() -> String,
    ) -> Result<Result<Value, Instance>, NodeFault> {
        match arg {
            Argument::Literal(value) => Ok(Ok(value.clone())),
            Argument::Reference(reference) => self.value(number, reference, path),
        }
    }

    fn arguments(
        &self,
        number: usize,
        args: &[Argument],
        path: &dyn Fn() -> String,
    ) -> Result<Result<Vec<Value>, Instance>, NodeFault> {
        let mut found = Vec::with_capacity(args.len());
        for arg in args {
            match self.argument(number, arg, path)? {
                Ok(value) => found.push(value),
                Err(waits) => return Ok(Err(waits)),
            }
        }
        Ok(Ok(found))
    }

    /// The value of `select` or `switch`: the condition and the branch that is taken are evaluated, and no other.
    fn chosen(
        &self,
        number: usize,
        call: &str,
        args: &[Argument],
        path: &dyn Fn() -> String,
    ) -> Result<Result<Value, Instance>, NodeFault> {
        let (Some(first), Some(last)) = (args.first(), args.last()) else {
            return Err(fault(&path(), format!("{call} takes arguments")));
        };
        let on = match self.argument(number, first, path)? {
            Ok(value) => value,
            Err(waits) => return Ok(Err(waits)),
        };
        if call == "select" {
            let is = on.as_bool().ok_or_else(|| {
                fault(&path(), format!("select: it takes true or false, and not {}", on.described()))
            })?;
            return self.argument(number, &args[if is { 1 } else { 2 }], path);
        }
        for pair in args[1..args.len() - 1].chunks(2) {
            match self.argument(number, &pair[0], path)? {
                Ok(case) if case == on => return self.argument(number, &pair[1], path),
                Ok(_) => {}
                Err(waits) => return Ok(Err(waits)),
            }
        }
        self.argument(number, last, path)
    }

    fn ask(
        &mut self,
        instance: Instance,
        place: &Place,
        call: &str,
        args: Vec<Value>,
        values: &mut dyn FnMut(&EdgeRequest) -> Option<Value>,
    ) -> Step {
        let (number, position) = instance;
        let scope = &self.scopes[number];
        let request = EdgeRequest {
            path: scope.path_of(position),
            index: scope.index_of(position),
            call: call.to_owned(),
            asked: asked(call, &args),
            args,
            at_once: matches!(scope.statements[position].body, StatementBody::Edge { at_once: true, .. }),
            again: false,
        };
        let value = values(&request);
        self.asked.insert(request.path.clone(), (place.clone(), instance));
        self.edges.insert(place.clone(), (request, value.is_some()));
        match value {
            Some(value) => Step::Done(value),
            None => {
                self.due.insert(place.clone());
                Step::Rests
            }
        }
    }

    /// Begins a graph that an edge runs.
    fn child(&mut self, instance: Instance, name: &str, args: Vec<Value>) -> Result<(), NodeFault> {
        let (number, position) = instance;
        let scope = &self.scopes[number];
        let path = scope.path_of(position);
        let child = self.children.get(name);
        let child = child.ok_or_else(|| fault(&path, format!("there is no graph {name}")))?;
        let names = child.inputs();
        if names.len() != args.len() {
            let why = format!("{name} takes {} inputs, and not {}", names.len(), args.len());
            return Err(fault(&path, why));
        }
        if scope.depth == CHILD_DEPTH_MAX {
            return Err(fault(&path, format!("graphs run graphs more than {CHILD_DEPTH_MAX} deep")));
        }
        let inner = Scope {
            place: scope.place_of(position),
            index: format!("{}.", scope.index_of(position)),
            depth: scope.depth + 1,
            path: format!("{path}."),
            ..Scope::new(&child.statements, Arc::new(names.into_iter().zip(args).collect()))
        };
        let inner = self.begin(inner)?;
        self.inner.insert(instance, (inner, 0));
        Ok(())
    }

    /// Begins a round of a repeat.
    fn round(&mut self, instance: Instance, round: u64, before: Value) -> Result<(), NodeFault> {
        let (number, position) = instance;
        let scope = &self.scopes[number];
        let StatementBody::Repeat { statements, .. } = &scope.statements[position].body else {
            return Ok(());
        };
        let path = scope.path_of(position);
        if round > ROUNDS_MAX {
            return Err(fault(&path, format!("a repeat has {ROUNDS_MAX} rounds at most")));
        }
        let mut place = scope.place_of(position);
        place.push(round);
        let inner = Scope {
            place,
            index: format!("{}.{round}.", scope.index_of(position)),
            depth: scope.depth,
            path: format!("{path}.{round}."),
            round: Some((instance, before)),
            ..Scope::new(statements, Arc::clone(&scope.inputs))
        };
        let inner = self.begin(inner)?;
        self.inner.insert(instance, (inner, round));
        Ok(())
    }

    /// Steps the statement around a scope: a child has the value of its last node, a repeat ends or begins its next round.
    fn follow(
        &mut self,
        instance: Instance,
        place: &Place,
        inner: usize,
        round: u64,
    ) -> Result<Step, NodeFault> {
        let scope = &self.scopes[inner];
        let of = |id: &str| {
            let position = scope.positions.get(id).copied();
            position.map(|position| scope.values[position].clone().ok_or((inner, position)))
        };
        let made = match last_node(scope.statements).and_then(of) {
            Some(Ok(made)) => made,
            Some(Err(waits)) => return Ok(Step::Waits(waits)),
            None => return Ok(Step::Rests),
        };
        let StatementBody::Repeat { max, until, or_limit, .. } =
            &self.scopes[instance.0].statements[instance.1].body
        else {
            return Ok(Step::Done(made));
        };
        let ends = match of(until) {
            Some(Ok(Value::Null)) => false,
            Some(Ok(ends)) => ends.as_bool().ok_or_else(|| {
                let path = self.scopes[instance.0].path_of(instance.1);
                fault(&path, format!("until {until}: it takes true or false, and not {}", ends.described()))
            })?,
            Some(Err(waits)) => return Ok(Step::Waits(waits)),
            None => return Ok(Step::Rests),
        };
        let is_last = max.is_some_and(|max| round >= max);
        if ends || (is_last && *or_limit) {
            return Ok(Step::Done(made));
        }
        if is_last {
            self.limits.insert(place.clone(), (self.scopes[instance.0].path_of(instance.1), round));
            return Ok(Step::Rests);
        }
        self.forget(inner);
        self.round(instance, round + 1, made)?;
        self.follow(instance, place, self.inner[&instance].0, round + 1)
    }

    /// Drops a round of which every value is there; its nodes and edges are kept.
    fn forget(&mut self, inner: usize) {
        let scope = &mut self.scopes[inner];
        // A round inside may still look for values here.
        let is_flat = !scope.statements.iter().any(|one| matches!(one.body, StatementBody::Repeat { .. }));
        let is_done =
            |(at, value): (usize, &Option<Value>)| value.is_some() || self.dormant.contains(&(inner, at));
        if is_flat && scope.values.iter().enumerate().all(is_done) {
            self.dormant.retain(|(number, _)| *number != inner);
            *scope = Scope { round: scope.round.take(), ..Scope::new(&[], Arc::clone(&scope.inputs)) };
        }
    }
}
