//! Execution graphs: findings of the compiler, runs, frontiers and replays, as lines and as documents.

use std::collections::{BTreeMap, BTreeSet};

use dendrer::ask::graphs::FrontierReply;
use dendrer::casebook::{self, Place};
use dendrer::change::graph::{EdgeNeed, GraphOutcome, Unanswered};
use dendrer::change::replay::GraphReplayed;
use dendrer::graph::check::{GraphFinding, GraphRule, GraphWarning};
use dendrer::graph::frontier::{DivergenceKind, Frontier, FrontierDivergence, RecordedEdge, Substituted};
use dendrer::graph::minimize::{Minimal, Minimality};
use dendrer::graph::{Argument, Graph, Statement, StatementBody};
use dendrer::problem::Problem;
use dendrer::run::calls::RecordedCall;
use dendrer::run::frontier::{FRONTIER_VERSION, GraphRun};
use dendrer::source::Desk;
use dendrer_object::document::{As, Either, Shape};
use dendrer_object::value::Object;
use dendrer_object::{Code, Digest, RunName, Value, document};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::graph::{Drawing, DrawnArrow, DrawnBox};
use crate::replay::{GraphReplay, ReplayDocument};
use crate::{count, quote};

/// The findings of the compiler in a graph.
#[derive(Debug, Clone)]
pub struct GraphCheckAnswer<'g> {
    /// The file.
    pub file: &'g str,
    /// The text, to show places in; empty for the JSON form.
    pub text: &'g str,
    /// The graph; `None` if the text cannot be read.
    pub graph: Option<&'g Graph>,
    /// The digest of the graph.
    pub digest: Option<Digest>,
    /// The reasons for which the graph is refused.
    pub findings: &'g [GraphFinding],
    /// Places that are legal and brittle.
    pub warnings: &'g [GraphWarning],
    /// The host functions that it calls.
    pub tested: &'g [String],
    /// Whether functions and effects were compared with a pack.
    pub has_pack: bool,
}

impl GraphCheckAnswer<'_> {
    /// The numbers of pure nodes and of edges.
    fn sizes(&self, graph: &Graph) -> (u64, u64) {
        let of = |first: char| {
            let each = graph.each().into_iter().filter(|statement| statement.id.starts_with(first));
            each.filter(|one| {
                one.call()
                    .is_none_or(|(call, _)| first == 'e' || !self.tested.iter().any(|name| name == call))
            })
            .count() as u64
        };
        (of('n'), of('e'))
    }
}

/// The label of host functions: what is known of them, and what is not.
fn tested_line(names: &[String]) -> Option<Line> {
    let words =
        format!("tested     {}: called twice and compared, not pure by construction", names.join(", "));
    (!names.is_empty()).then(|| Line::styled(Style::Warn, quote::escape(&words)))
}

document! {
    /// The findings of the compiler in a graph
    pub object GraphCheckDocument: "graph-check" (answer: &GraphCheckAnswer<'_>) {
        let sizes = answer.graph.map(|graph| answer.sizes(graph));
        /// The file
        file: &str = answer.file,
        /// Whether the graph is accepted
        ok: bool = answer.findings.is_empty(),
        /// The digest of the graph; null if it cannot be read
        digest: Option<Digest> = answer.digest,
        /// The names of the inputs
        inputs: Vec<String> = answer.graph.map(Graph::inputs).unwrap_or_default(),
        /// The number of pure nodes; null if the graph cannot be read
        nodes: Option<u64> = sizes.map(|(nodes, _)| nodes),
        /// The number of edges; null if the graph cannot be read
        edges: Option<u64> = sizes.map(|(_, edges)| edges),
        /// The reasons for which the graph is refused
        items: Vec<GraphFindingObject> = answer.findings.iter().map(GraphFindingObject::of).collect(),
        /// The places that are legal and brittle
        warnings: Vec<GraphWarningObject> = answer.warnings.iter().map(GraphWarningObject::of).collect(),
        /// The names of host functions: each is called twice and compared, and is not pure by construction
        tested: &[String] = answer.tested,
        /// Whether functions and effects were compared with a pack
        has_pack: bool = answer.has_pack,
    }

    /// A reason for which a graph is refused
    object GraphFindingObject(finding: &GraphFinding) {
        /// The rule
        rule: GraphRule = finding.rule,
        /// The code
        code: Code = finding.rule.code(),
        /// The line, from 1; 0 if the graph was not text
        line: u32 = finding.line,
        /// The column, from 1
        column: u32 = finding.column,
        /// The id of the statement; empty for the whole graph
        statement: &str = &finding.statement,
        /// The fault in words
        message: &str = &finding.message,
        /// The error in a program that the rule prevents
        bug: &str = finding.rule.bug(),
    }

    /// A place of a graph that is legal and brittle
    object GraphWarningObject(warning: &GraphWarning) {
        /// The line, from 1
        line: u32 = warning.line,
        /// The id of the statement
        statement: &str = &warning.statement,
        /// The weakness in words
        message: &str = &warning.message,
    }

    /// The difference between two graphs
    pub object GraphDiffDocument: "graph-diff" (answer: &GraphDiffAnswer) {
        let [first, second] = answer.digests;
        let statements = answer.items.iter().map(|(path, a, b)| {
            StatementDifference::of(path, a.as_deref(), b.as_deref())
        });
        /// Whether the graphs have the same digest
        same: bool = first == second,
        /// The digest of the first graph
        a: Digest = first,
        /// The digest of the second graph
        b: Digest = second,
        /// The statements that differ
        items: Vec<StatementDifference> = statements.collect(),
    }

    /// A statement that differs between two graphs
    object StatementDifference(place: &str, first: Option<&str>, second: Option<&str>) {
        /// The ids on the way to the statement
        path: &str = place,
        /// The statement in the first graph; left out if it has none
        a?: &str = first,
        /// The statement in the second graph; left out if it has none
        b?: &str = second,
    }

    /// The fewest other edge values that flip a predicate
    pub object GraphMinimizeDocument: "graph-minimize" (answer: &GraphMinimizeAnswer<'_>) {
        let found = answer.minimal;
        /// The run
        run: &RunName = answer.run,
        /// The name of the predicate
        predicate: &str = answer.predicate,
        /// The verdict with the values on record; null if it is unknown
        recorded: Option<bool> = found.recorded,
        /// The verdict with all of the other values; null if it is unknown
        now: Option<bool> = found.now,
        /// Whether the values flip the predicate
        flips: bool = found.flips(),
        /// The edges whose other values flip it
        edges: Vec<EdgeValueObject> =
            found.edges.iter().map(|(path, value)| EdgeValueObject::of(path, value)).collect(),
        /// Whether no smaller set flips it, or only no set that is smaller by one
        minimal: ["smallest" | "1-minimal"] = answer.minimality(),
        /// The number of evaluations
        tried: u64 = found.tried,
    }

    /// Another value of an edge
    object EdgeValueObject(edge: &str, other: &Value) {
        /// The path of the edge
        path: &str = edge,
        /// The value
        value: &Value = other,
    }

    /// A graph in its JSON form
    pub object GraphDocument: "graph" (answer: &GraphAnswer<'_>) {
        /// The digest of the form
        digest: Digest = answer.digest,
        /// The form
        graph: As<Object> = As::new(answer.form.clone()),
        /// The names of host functions, which are tested and not pure by construction; left out for a file, which has no pack
        tested?: &[String] = answer.tested.as_deref(),
    }

    /// A graph that was run
    pub object GraphRunDocument: "graph-run" (answer: &GraphRunAnswer<'_>) {
        let outcome = answer.outcome;
        /// The run
        run: &RunName = &outcome.run,
        /// The name of the graph
        graph: &str = answer.graph,
        /// The digest of the graph
        digest: Digest = outcome.digest,
        /// The number of nodes that were computed
        nodes: u64 = outcome.nodes,
        /// The number of edge values that were recorded
        edges: u64 = outcome.edges,
        /// The names of the host functions that were called: each result is that of two equal runs, and not pure by construction
        tested: &[String] = &outcome.tested,
        /// The number of edges that were asked by this command, with the nodes that host functions compute
        asked: u64 = outcome.asked,
        /// The output; null if the run came to a limit, or is not closed
        output: Option<&Value> = outcome.output.as_ref(),
        /// The status with which the run was closed; null if it is open
        closed: ["good" | "limit" | null] = outcome.closed(),
        /// The path of the repeat that came to its limit and closed the run; null if none did
        limit: Option<&str> = outcome.limit.as_deref(),
        /// The paths of edges after that repeat that were under way before its limit, and have a value
        beside_limit: &[String] = &outcome.beside_limit,
        /// The edges for which it must be decided before the run is resumed, because their effects may have acted
        needs: Vec<EdgeNeedObject> = outcome.needs.iter().map(EdgeNeedObject::of).collect(),
    }

    /// An effectful edge of which it is not known whether it has acted
    object EdgeNeedObject(need: &EdgeNeed) {
        /// The path of the edge
        path: &str = &need.path,
        /// The name of the effect
        call: &str = &need.call,
        /// The reason for which it is not known
        why: Unanswered = need.why,
    }

    /// The first line of a frontier file
    object FrontierHeader(recorded: &GraphRun) {
        /// The version of the file
        frontier: u64 = FRONTIER_VERSION,
        /// The graph in its JSON form
        graph: &Value = &recorded.form,
        /// Whether values of edges are substitutes; left out if not
        hypothetical?: bool = recorded.hypothetical.then_some(true),
        /// The inputs by name
        inputs: &BTreeMap<String, Value> = &recorded.frontier.inputs,
        /// The path of the repeat that came to its limit and ended the run; null if none did
        limit: Option<&str> = recorded.frontier.limit.as_deref(),
        /// The values of the nodes by path
        nodes: &BTreeMap<String, Value> = &recorded.frontier.nodes,
        /// The output; null if the run did not end
        output: Option<&Value> = recorded.frontier.output.as_ref(),
        /// The pack
        pack: &Value = &recorded.pack,
        /// The run
        run: &RunName = &recorded.run,
    }

    /// The recorded edge values of the run of a graph, or the requests and answers of another run
    pub object FrontierDocument: "frontier" (name: &RunName, recorded: Option<&GraphRun>, calls: &[RecordedCall]) {
        let frontier = recorded.map(|run| &run.frontier);
        let edges = recorded.into_iter().flat_map(frontier_edges).map(Value::from);
        let calls = calls.iter().map(|call| FrontierCall::of(call).into());
        let items = Value::array(edges.chain(calls));
        let [all, pure, hosts] = recorded.map_or([0; 3], frontier_sizes);
        /// The run
        run: &RunName = name,
        /// The name of the graph; null for a run of no graph, whose calls are listed
        graph: Option<&str> = recorded.map(|run| &*run.graph.name),
        /// The number of edges; 0 for a run of no graph
        edges: usize = all,
        /// The number of pure nodes; 0 for a run of no graph
        nodes: usize = pure,
        /// The number of results of host functions, which are tested and not pure by construction
        tested: usize = hosts,
        /// The path of the repeat that came to its limit and ended the run; null if none did
        limit: Option<&str> = frontier.and_then(|frontier| frontier.limit.as_deref()),
        /// Whether the run of a graph did not end
        open: bool = frontier.is_some_and(Frontier::is_open),
        /// The edges in canonical order, then the requests of an open run without a value; or the calls in the order of the record
        items: As<Vec<Either<FrontierEdge, FrontierCall>>> = As::new(items),
    }

    /// A request of a run of no graph, with its answer; or one of an edge that has no value
    object FrontierCall(recorded: &RecordedCall) {
        /// The id of the call, the tick of its request if it has none, or the path of the edge
        path: &str = &recorded.path,
        /// The tool; empty if none is on record
        call: &str = &recorded.call,
        /// The parameters
        args: &Value = &recorded.params,
        /// The status of the answer; `no_answer` without one
        status: &str = &recorded.status,
        /// The tick of the request, or that of an answer to no request
        tick: u64 = recorded.tick,
        /// The tick of the answer; null without one
        answered: Option<u64> = recorded.answered,
        /// The digest of the value; null without one
        digest: Option<Digest> = recorded.value.as_ref().map(Value::digest),
        /// The output of the answer; null without one
        value: Option<&Value> = recorded.value.as_ref(),
    }

    /// A recorded edge value
    object FrontierEdge(edge: &RecordedEdge, class: &str) {
        /// The arguments
        args: &[Value] = &edge.args,
        /// The digest of effect and arguments
        asked: Digest = edge.asked,
        /// The name of the effect
        call: &str = &edge.call,
        /// The digest of the value
        digest: Digest = edge.digest,
        /// The class of the effect
        effect: &str = class,
        /// The place in the frontier
        index: &str = &edge.index,
        /// The path of the edge
        path: &str = &edge.path,
        /// The value
        value: &Value = &edge.value,
    }

    /// The first place at which a graph and a frontier differ
    pub object DivergenceObject(divergence: &FrontierDivergence) {
        /// The kind of the difference
        kind: DivergenceKind = divergence.kind,
        /// The path of the edge or the node; `output` for the output
        path: &str = &divergence.path,
        /// The value on record
        expected: &Value = &divergence.expected,
        /// The value of the graph
        got: &Value = &divergence.got,
    }

    /// Frontiers that were replayed
    pub object GraphTestDocument: "graph-test" (tested: &[GraphTested]) {
        let unended = tested.iter().filter(|one| one.is_open()).count();
        let failures = tested.iter().filter(|one| !one.is_ok()).count() - unended;
        /// The number of frontiers that replay
        passed: usize = tested.len() - failures - unended,
        /// The number of frontiers that do not
        failed: usize = failures,
        /// The number of frontiers of runs that did not end
        open: usize = unended,
        /// The frontiers
        items: Vec<GraphTestedObject> = tested.iter().map(GraphTestedObject::of).collect(),
    }

    /// A frontier that was replayed
    object GraphTestedObject(tested: &GraphTested) {
        /// The file
        file?: &str = tested.is_file.then_some(&tested.name),
        /// The run
        run?: &str = (!tested.is_file).then_some(&tested.name),
        /// Whether the frontier replays
        ok: bool = tested.is_ok(),
        /// Whether the run did not end, so that nothing is said of its output
        open: bool = tested.is_open(),
        /// The first difference
        divergence: Option<DivergenceObject> = tested.divergence.as_ref().map(DivergenceObject::of),
        /// The reason for which it cannot be replayed
        error: Option<GraphTestFault> = tested.error.as_ref().map(GraphTestFault::of),
    }

    /// The reason for which a frontier cannot be read or replayed
    object GraphTestFault(error: &GraphTestError) {
        /// The code
        code: Code = error.code,
        /// The fault in one sentence
        message: &str = &error.message,
    }
}

impl Answer for GraphCheckAnswer<'_> {
    fn document(&self) -> Value {
        GraphCheckDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = Vec::new();
        let written: Vec<&str> = self.text.lines().collect();
        for finding in self.findings {
            let GraphFinding { rule, line, column, message, .. } = finding;
            let place =
                if *line == 0 { self.file.to_owned() } else { format!("{}:{line}:{column}", self.file) };
            let what =
                format!("{place}: error[{}]: {}: {}", rule.code(), rule.as_str(), quote::escape(message));
            lines.push(Line::styled(Style::Bad, what));
            if let Some(text) = (*line as usize).checked_sub(1).and_then(|at| written.get(at)) {
                lines.push(format!("  | {}", quote::escape(text)).into());
                lines.push(format!("  | {}^", " ".repeat((*column as usize).saturating_sub(1))).into());
            }
            lines.push(format!("  = {}", rule.bug()).into());
        }
        for warning in self.warnings {
            let what = format!(
                "{}:{}: warning: {}: {}",
                self.file, warning.line, warning.statement, warning.message
            );
            lines.push(Line::styled(Style::Warn, quote::escape(&what)));
        }
        lines.push(match (self.graph, self.findings.len()) {
            (Some(graph), 0) => {
                let (nodes, edges) = self.sizes(graph);
                let digest = self.digest.map(|digest| digest.short()).unwrap_or_default();
                let sizes =
                    format!("{}, {}", count(nodes, "pure node", "pure nodes"), count(edges, "edge", "edges"));
                let name = quote::escape(&graph.name);
                Line::styled(Style::Good, format!("OK    {name}: {sizes}, graph {digest}"))
            }
            (_, found) => {
                let all = count(found as u64, "finding", "findings");
                Line::styled(Style::Bad, format!("REFUSED   {}: {all}", self.file))
            }
        });
        lines.extend(tested_line(self.tested).filter(|_| self.findings.is_empty()));
        if !self.has_pack {
            lines.push(Line::note(
                "note: without --pack, functions and classes of effects were not looked at",
            ));
        }
        lines
    }

    fn end(&self) -> End {
        if self.findings.is_empty() { End::Answered } else { End::No }
    }
}

fn text_of<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Writes a statement of the JSON form as the text form does, without those of its rounds.
fn statement_text(one: &Value) -> String {
    let argument = |value: &Value| match value.get("ref").and_then(Value::as_str) {
        Some(reference) => reference.to_owned(),
        None => value.get("value").map(quote::value).unwrap_or_default(),
    };
    let id = text_of(one, "id");
    if let Some(repeat) = one.get("repeat") {
        let from = repeat.get("from").map(argument).unwrap_or_default();
        let max = repeat.get("max").map(quote::value).unwrap_or_default();
        let or_limit = match repeat.get("or_limit").and_then(Value::as_bool) {
            Some(true) => " or limit",
            _ => "",
        };
        let until = text_of(repeat, "until");
        return quote::escape(&format!("{id} repeat({from}) max {max} until {until}{or_limit}"));
    }
    let when = one.get("if").and_then(Value::as_str).map(|id| format!(" if {id}")).unwrap_or_default();
    let args = one.get("args").and_then(Value::as_array);
    let args: Vec<String> = args.into_iter().flat_map(|args| args.iter()).map(argument).collect();
    let tail = match one.get("rec").and_then(Value::as_str) {
        Some(rec) => match one.get("at_once").and_then(Value::as_bool) {
            Some(true) => format!("-> rec frontier[{rec}] at once"),
            _ => format!("-> rec frontier[{rec}]"),
        },
        None => "pure".to_owned(),
    };
    quote::escape(&format!("{id} {}({}){when} {tail}", text_of(one, "call"), args.join(", ")))
}

/// The lines of a graph with how deep they are in repeats.
fn statement_lines(form: &Value) -> Vec<(usize, String)> {
    fn walk(statements: Option<&Value>, depth: usize, lines: &mut Vec<(usize, String)>) {
        for one in statements.and_then(Value::as_array).into_iter().flat_map(|list| list.iter()) {
            lines.push((depth, statement_text(one)));
            if one.get("repeat").is_some() {
                walk(one.get("statements"), depth + 1, lines);
                lines.push((depth, format!("end {}", quote::escape(text_of(one, "id")))));
            }
        }
    }
    let mut lines = Vec::new();
    walk(form.get("statements"), 0, &mut lines);
    lines
}

/// Draws a graph: a box for each input, node, edge and repeat, and an arrow for each argument and condition.
pub fn drawing(graph: &Graph) -> Drawing {
    fn add(statements: &[Statement], drawing: &mut Drawing, places: &mut BTreeMap<String, usize>) {
        for statement in statements {
            let (what, args): (&str, &[Argument]) = match &statement.body {
                StatementBody::Node { call, args } | StatementBody::Edge { call, args, .. } => (call, args),
                StatementBody::Repeat { from, .. } => ("repeat", std::slice::from_ref(from)),
            };
            let to = drawing.boxes.len();
            let kind = match &statement.body {
                StatementBody::Node { .. } => "node",
                StatementBody::Edge { .. } => "edge",
                StatementBody::Repeat { .. } => "repeat",
            };
            drawing.boxes.push(DrawnBox {
                name: statement.id.clone(),
                label: format!("{} {what}", statement.id),
                kind: kind.to_owned(),
                ..DrawnBox::default()
            });
            let named = args.iter().filter_map(|arg| match arg {
                Argument::Reference(reference) => Some(reference),
                Argument::Literal(_) => None,
            });
            let from: BTreeSet<usize> = named
                .chain(&statement.condition)
                .filter_map(|reference| places.get(&reference.name).copied())
                .collect();
            drawing.arrows.extend(from.into_iter().map(|from| DrawnArrow { from, to, rel: "argument" }));
            places.insert(statement.id.clone(), to);
            if let StatementBody::Repeat { statements, .. } = &statement.body {
                add(statements, drawing, places);
                // Behind its end, its id is the value of the last round, which its last node made.
                let is_node = |inner: &&Statement| matches!(inner.body, StatementBody::Node { .. });
                let last = statements.iter().rev().find(is_node).and_then(|inner| places.get(&inner.id));
                if let Some(last) = last.copied() {
                    places.insert(statement.id.clone(), last);
                }
            }
        }
    }
    let mut drawing = Drawing { title: graph.name.clone(), ..Drawing::default() };
    let mut places = BTreeMap::new();
    for input in graph.inputs() {
        places.insert(input.clone(), drawing.boxes.len());
        let (name, kind) = (input.clone(), "input".to_owned());
        drawing.boxes.push(DrawnBox { name, label: input, kind, ..DrawnBox::default() });
    }
    add(&graph.statements, &mut drawing, &mut places);
    drawing
}

/// The difference between two graphs.
#[derive(Debug, Clone)]
pub struct GraphDiffAnswer {
    digests: [Digest; 2],
    /// The path of each statement that differs, as it is written in the one and in the other.
    items: Vec<(String, Option<String>, Option<String>)>,
}

impl GraphDiffAnswer {
    /// Compares two graphs in their JSON form, statement by statement, by the ids on the way to each.
    pub fn of(a: &Value, b: &Value) -> GraphDiffAnswer {
        let (before, after) = (statements_of(a), statements_of(b));
        let find = |list: &[(String, String)], path: &str| {
            list.iter().find(|(own, _)| own == path).map(|(_, text)| text.clone())
        };
        let gone = before.iter().filter_map(|(path, text)| {
            let other = find(&after, path);
            (other.as_ref() != Some(text)).then(|| (path.clone(), Some(text.clone()), other))
        });
        let added = after
            .iter()
            .filter(|(path, _)| find(&before, path).is_none())
            .map(|(path, text)| (path.clone(), None, Some(text.clone())));
        let digests = [a, b].map(dendrer::graph::form::digest);
        GraphDiffAnswer { digests, items: gone.chain(added).collect() }
    }
}

/// The statements of a graph and of the graphs that it runs, by path.
fn statements_of(form: &Value) -> Vec<(String, String)> {
    fn walk(statements: Option<&Value>, prefix: &str, found: &mut Vec<(String, String)>) {
        for one in statements.and_then(Value::as_array).into_iter().flat_map(|list| list.iter()) {
            let path = format!("{prefix}{}", text_of(one, "id"));
            found.push((path.clone(), statement_text(one)));
            walk(one.get("statements"), &format!("{path}."), found);
        }
    }
    let mut found = Vec::new();
    walk(form.get("statements"), "", &mut found);
    for (name, child) in
        form.get("children").and_then(Value::as_object).into_iter().flat_map(|all| all.iter())
    {
        walk(child.get("statements"), &format!("graph.{name}/"), &mut found);
    }
    found
}

impl Answer for GraphDiffAnswer {
    fn document(&self) -> Value {
        GraphDiffDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = Vec::new();
        for (path, a, b) in &self.items {
            let deep = path.rfind(['.', '/']).map_or("", |at| &path[..=at]);
            let line = |sign: &str, text: &str| Line::from(format!("{sign} {}{text}", quote::escape(deep)));
            lines.extend(a.as_deref().map(|text| line("-", text)));
            lines.extend(b.as_deref().map(|text| line("+", text)));
        }
        lines.push(match (self.digests[0] == self.digests[1], self.items.len()) {
            (true, _) => format!("the same graph {}", self.digests[0].short()).into(),
            (false, 0) => "the same statements, and another name".into(),
            (false, many) => count(many as u64, "statement differs", "statements differ").into(),
        });
        lines
    }
}

/// The fewest other edge values that flip a predicate.
#[derive(Debug, Clone, Copy)]
pub struct GraphMinimizeAnswer<'g> {
    /// The run.
    pub run: &'g RunName,
    /// The predicate.
    pub predicate: &'g str,
    /// The values.
    pub minimal: &'g Minimal,
}

impl GraphMinimizeAnswer<'_> {
    fn minimality(&self) -> &'static str {
        match self.minimal.minimality {
            Minimality::Smallest => "smallest",
            Minimality::OneMinimal => "1-minimal",
        }
    }
}

impl Answer for GraphMinimizeAnswer<'_> {
    fn document(&self) -> Value {
        GraphMinimizeDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let found = self.minimal;
        let word = |said: Option<bool>| match said {
            Some(true) => "true",
            Some(false) => "false",
            None => "unknown",
        };
        let predicate = quote::escape(self.predicate);
        let mut lines: Vec<Line> = vec![
            format!("recorded     {predicate} is {}", word(found.recorded)).into(),
            format!("all of them  {}", word(found.now)).into(),
        ];
        let tried = count(found.tried, "evaluation", "evaluations");
        if !found.flips() {
            lines.push(Line::styled(Style::Warn, format!("no set of these values flips it ({tried})")));
            if found.minimality == Minimality::OneMinimal {
                lines.push(Line::note("note: larger sets were not all tried"));
            }
            return lines;
        }
        for (path, value) in &found.edges {
            lines.push(Line::from(format!("flips        {} = {}", quote::escape(path), quote::value(value))));
        }
        lines.push(match found.minimality {
            Minimality::Smallest => format!("smallest     no smaller set does ({tried})").into(),
            Minimality::OneMinimal => {
                format!("1-minimal    without any of them it does not; a smaller set of others may ({tried})")
                    .into()
            }
        });
        lines
    }

    fn end(&self) -> End {
        if self.minimal.flips() { End::Answered } else { End::No }
    }
}

/// A graph in its JSON form.
#[derive(Debug, Clone)]
pub struct GraphAnswer<'g> {
    /// The graph.
    pub graph: &'g Graph,
    /// Its JSON form.
    pub form: &'g Value,
    /// The digest of that.
    pub digest: Digest,
    /// The host functions that the graph of a run calls; `None` of a file, which has no pack.
    pub tested: Option<Vec<String>>,
}

impl Answer for GraphAnswer<'_> {
    fn document(&self) -> Value {
        GraphDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = vec![format!("graph {}", quote::escape(&self.graph.name)).into()];
        for (depth, text) in statement_lines(self.form) {
            lines.push(format!("{}{text}", "  ".repeat(depth)).into());
        }
        lines.push("replay(graph, frontier) == output required".into());
        lines.extend(self.tested.as_deref().and_then(tested_line));
        lines.push(Line::note(format!("digest {}", self.digest)));
        lines
    }
}

/// A graph that was run.
#[derive(Debug, Clone)]
pub struct GraphRunAnswer<'g> {
    /// The name of the graph.
    pub graph: &'g str,
    /// The result.
    pub outcome: &'g GraphOutcome,
}

impl Answer for GraphRunAnswer<'_> {
    fn document(&self) -> Value {
        GraphRunDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let GraphOutcome { run, nodes, edges, tested, output, limit, beside_limit, needs, .. } = self.outcome;
        let (nodes, edges) = (count(*nodes, "node", "nodes"), count(*edges, "edge", "edges"));
        let name = quote::escape(self.graph);
        if !needs.is_empty() {
            let mut lines: Vec<Line> = vec![format!("open       {run}: nothing was asked").into()];
            lines.extend(needs.iter().map(|need| {
                let EdgeNeed { path, call, why } = need;
                let what = format!("{path} {call} may have acted: {}", no_answer_words(*why));
                Line::styled(Style::Warn, format!("needs      {}", quote::escape(&what)))
            }));
            lines.push(Line::note(
                "note: --ask-again PATH asks it once more; --set PATH=FILE gives the value that it had",
            ));
            return lines;
        }
        let mut lines: Vec<Line> = vec![format!("ran        graph {name} as {run}: {nodes}, {edges}").into()];
        lines.extend(tested_line(tested));
        match limit {
            None => {
                let output = output.as_ref().map(quote::value).unwrap_or_default();
                lines.push(Line::from(format!("output     {output}")));
                let words = "closed     good: its replay from the record gave the same output";
                lines.push(Line::styled(Style::Good, words));
            }
            Some(path) => {
                let asked = match beside_limit.is_empty() {
                    true => "nothing after it was asked".to_owned(),
                    false => format!("{} was under way beside it", beside_limit.join(", ")),
                };
                let words = format!("closed     limit: {path} came to its limit, and {asked}");
                lines.push(Line::styled(Style::Warn, quote::escape(&words)));
                lines.push(Line::note("note: `or limit` at the end of the repeat lets the graph go on"));
            }
        }
        lines.push(Line::help(["dendrer", "replay", run.as_str()]));
        lines
    }

    fn end(&self) -> End {
        match self.outcome.closed() {
            Some("good") => End::Answered,
            Some(_) => End::No,
            None => End::Problem(Code::E0940),
        }
    }
}

fn no_answer_words(why: Unanswered) -> &'static str {
    match why {
        Unanswered::Unanswered => "its request is on record, and no answer that can be read",
        Unanswered::Killed => "its call was killed or cut",
        Unanswered::Timeout => "its call took longer than its timeout",
    }
}

/// Returns the lines of a frontier file: a header, then one for each edge in canonical order.
pub fn frontier_file(run: &GraphRun) -> Vec<Value> {
    let edges = frontier_edges(run).map(Value::from);
    std::iter::once(FrontierHeader::of(run).into()).chain(edges).collect()
}

/// Returns the numbers of edges, of pure nodes, and of results of host functions.
fn frontier_sizes(run: &GraphRun) -> [usize; 3] {
    let hosts = run.tested().len();
    let nodes = run.frontier.nodes.len();
    [run.frontier.edges.len() - hosts, nodes.saturating_sub(hosts), hosts]
}

/// Returns the edges of a run in canonical order.
fn frontier_edges(run: &GraphRun) -> impl Iterator<Item = FrontierEdge> {
    let effect = |call: &str| run.effects.get(call).map_or("effectful", String::as_str);
    run.edges().into_iter().map(move |edge| FrontierEdge::of(edge, effect(&edge.call)))
}

impl Answer for FrontierReply {
    fn document(&self) -> Value {
        match self {
            FrontierReply::Graph(run, calls) => FrontierDocument::of(&run.run, Some(run), calls).into(),
            FrontierReply::Calls(run, calls) => FrontierDocument::of(run, None, calls).into(),
        }
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let (recorded, calls) = match self {
            FrontierReply::Graph(run, calls) => (run, calls),
            FrontierReply::Calls(run, calls) => return call_lines(run, calls),
        };
        let mut lines = Vec::new();
        for edge in recorded.edges() {
            let args: Vec<String> = edge.args.iter().map(quote::value).collect();
            let call = format!("{}({})", edge.call, args.join(", "));
            let label = if recorded.functions.is_host(&edge.call) { "  tested" } else { "" };
            let line = format!(
                "frontier[{}]  {}  {} = {}{label}",
                edge.index,
                edge.path,
                quote::escape(&call),
                quote::value(&edge.value)
            );
            lines.push(Line::from(line));
        }
        lines.extend(recorded.frontier.limit.as_ref().map(|path| {
            Line::styled(
                Style::Warn,
                quote::escape(&format!("limit        {path} came to its limit and ended the run")),
            )
        }));
        let [edges, nodes, tested] = frontier_sizes(recorded).map(|size| size as u64);
        let edges = count(edges, "edge", "edges");
        let mut nodes = count(nodes, "pure node", "pure nodes");
        if tested > 0 {
            nodes = format!("{nodes}, {}", count(tested, "tested node", "tested nodes"));
        }
        lines.extend(calls.iter().map(call_line));
        lines.push(match recorded.frontier.is_open() {
            false => format!("{edges}, {nodes}, nothing else").into(),
            true => {
                let requests = count(calls.len() as u64, "request", "requests");
                let what = format!("OPEN         {edges}, {requests} without a value; the run did not end");
                Line::styled(Style::Warn, what)
            }
        });
        lines
    }
}

fn call_line(recorded: &RecordedCall) -> Line {
    let RecordedCall { path, call, params, status, value, .. } = recorded;
    let value = match value {
        Some(value) => format!(" {} = {}", value.digest().short(), quote::value(value)),
        None => String::new(),
    };
    let [path, call, status] = [path, call, status].map(|text| quote::escape(text));
    format!("{path}  {call}({})  {status}{value}", quote::value(params)).into()
}

/// The requests and answers of a run of no graph.
fn call_lines(run: &RunName, calls: &[RecordedCall]) -> Vec<Line> {
    let mut lines: Vec<Line> = calls.iter().map(call_line).collect();
    let answers = calls.iter().filter(|call| call.answered.is_some()).count() as u64;
    let (all, answers) = (count(calls.len() as u64, "call", "calls"), count(answers, "answer", "answers"));
    lines.push(format!("{all}, {answers}: {run} is not the run of a graph").into());
    lines.push(Line::note("note: nothing shows what else was impure in it, so it is no frontier to replay"));
    lines
}

fn divergence_lines(divergence: &FrontierDivergence) -> [Line; 3] {
    let FrontierDivergence { kind, path, expected, got } = divergence;
    [
        Line::styled(Style::Bad, format!("DIVERGED   {} at {}", kind.as_str(), quote::escape(path))),
        format!("  expected {}", quote::value(expected)).into(),
        format!("  got      {}", quote::value(got)).into(),
    ]
}

/// The code of a frontier that its graph does not bear out.
const DIVERGED: Code = Code::E0937;

/// Writes the divergence of a graph's run into the casebook, if it has one.
///
/// # Errors
///
/// A [`Problem`] if the store cannot be written.
pub fn record_divergence(replayed: &GraphReplayed, desk: &mut dyn Desk) -> Result<(), Problem> {
    let divergence = replayed.divergence.as_ref().filter(|_| replayed.substituted.is_none());
    let Some(divergence) = divergence.filter(|_| !replayed.is_open()) else { return Ok(()) };
    let place = Place::of(&replayed.trace, None)?;
    let value = DivergenceObject::of(divergence).into();
    desk.write_down(|store, environment| casebook::record_divergence(store, &place, &value, environment))?;
    Ok(())
}

/// The consequences of other values of edges.
fn substituted_lines(replayed: &GraphReplayed, found: &Substituted) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    lines.push(match &found.first {
        None => "first        nothing differs".into(),
        Some((node, recorded, now)) => Line::styled(
            Style::Warn,
            format!(
                "first        {} {} -> {}",
                quote::escape(node),
                quote::value(recorded),
                quote::value(now)
            ),
        ),
    });
    for (word, paths) in [("reaches", &found.reaches), ("same", &found.same), ("unknown", &found.unknown)] {
        let paths = if paths.is_empty() { "nothing".to_owned() } else { quote::escape(&paths.join(", ")) };
        lines.push(Line::from(format!("{word:<12} {paths}")));
    }
    lines.extend(found.failed.iter().map(|fault| {
        Line::styled(Style::Warn, format!("fails        {}", quote::escape(&fault.to_string())))
    }));
    if !found.unknown.is_empty() {
        lines.push(Line::note("note: a recorded answer is never given to an edge that asks something else"));
    }
    lines.extend(replayed.fork.as_ref().map(|fork| format!("forked       {fork}, hypothetical").into()));
    lines.extend(replayed.not_made.as_ref().map(|why| {
        let words = format!("not forked   it would not replay: {why}");
        Line::styled(Style::Bad, quote::escape(&words))
    }));
    lines
}

impl Answer for GraphReplayed {
    fn document(&self) -> Value {
        let is_open = self.is_open();
        let substituted = self.substituted.as_ref();
        let fork = (self.fork.as_ref(), self.not_made.as_deref());
        let unknown = substituted.map(|found| found.unknown.to_value());
        let divergence = self.divergence.as_ref().map(|one| DivergenceObject::of(one).into());
        let is_same = divergence.is_none() && !is_open;
        let made = (self.output.as_ref(), self.limit.as_deref());
        let graph = GraphReplay::of(&self.run, self.nodes, made, is_open, substituted, fork);
        ReplayDocument::of(&self.run.run, is_same, divergence, unknown, None, Some(graph), None).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let run = &self.run;
        let nodes = count(self.nodes, "node", "nodes");
        let values = count(run.frontier.edges.len() as u64, "recorded value", "recorded values");
        let mut lines: Vec<Line> = vec![
            format!("made again   {nodes} of graph {} from {values}", quote::escape(&run.graph.name)).into(),
        ];
        if self.is_open() {
            let at = match &self.divergence {
                None => "it has no output on record, so there is nothing to compare".to_owned(),
                Some(divergence) => format!("there is no value for {}", quote::escape(&divergence.path)),
            };
            lines.push(Line::styled(Style::Bad, format!("OPEN         the run did not end: {at}")));
            return lines;
        }
        if let Some(divergence) = &self.divergence {
            lines.extend(divergence_lines(divergence));
            return lines;
        }
        match &self.substituted {
            None => {
                let output = self.output.as_ref().map(quote::value).unwrap_or_default();
                lines.push(match &self.limit {
                    None => Line::from(format!("output       {output}")),
                    Some(path) => {
                        let what = format!("limit        {path} came to its limit and ended the run");
                        Line::styled(Style::Warn, quote::escape(&what))
                    }
                });
                lines.push(Line::styled(
                    Style::Good,
                    "replay(graph, frontier) == output   OK, no model and no tool was called",
                ));
            }
            Some(found) => lines.extend(substituted_lines(self, found)),
        }
        lines
    }

    fn end(&self) -> End {
        let is_other = self.divergence.is_some() || self.is_open() || self.not_made.is_some();
        if is_other { End::Problem(DIVERGED) } else { End::Answered }
    }
}

/// A frontier that was replayed.
#[derive(Debug, Clone)]
pub struct GraphTested {
    /// The file or the run.
    pub name: String,
    /// Whether it is a file.
    pub is_file: bool,
    /// Whether the run ended, with an output or at a limit.
    pub is_ended: bool,
    /// The first divergence.
    pub divergence: Option<FrontierDivergence>,
    /// The reason for which it cannot be replayed.
    pub error: Option<GraphTestError>,
}

impl GraphTested {
    /// Whether the run did not end, and what is on record of it replays.
    pub(crate) fn is_open(&self) -> bool {
        let is_missing = |one: &FrontierDivergence| one.kind == DivergenceKind::Missing;
        !self.is_ended && self.error.is_none() && self.divergence.as_ref().is_none_or(is_missing)
    }

    fn is_ok(&self) -> bool {
        self.is_ended && self.divergence.is_none() && self.error.is_none()
    }
}

/// The reason for which a frontier cannot be read or replayed.
#[derive(Debug, Clone)]
pub struct GraphTestError {
    /// The code.
    pub code: Code,
    /// The message.
    pub message: String,
}

/// Frontiers that were replayed.
#[derive(Debug, Clone)]
pub struct GraphTestAnswer(pub Vec<GraphTested>);

impl Answer for GraphTestAnswer {
    fn document(&self) -> Value {
        GraphTestDocument::of(&self.0).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = Vec::new();
        // Frontiers that part in the same way are one group.
        let mut groups: BTreeMap<(&str, &str), Vec<&GraphTested>> = Default::default();
        for one in &self.0 {
            if let Some(GraphTestError { code, message }) = &one.error {
                let what = format!("FAIL  {code} at {}: {message}", one.name);
                lines.push(Line::styled(Style::Bad, quote::escape(&what)));
                continue;
            }
            if one.is_open() {
                let what = format!("OPEN  {}: the run did not end", one.name);
                lines.push(Line::styled(Style::Bad, quote::escape(&what)));
                continue;
            }
            match &one.divergence {
                None => lines.push(Line::styled(Style::Good, format!("OK    {}", quote::escape(&one.name)))),
                Some(divergence) => {
                    groups.entry((divergence.kind.as_str(), &divergence.path)).or_default().push(one);
                }
            }
        }
        for ((kind, path), group) in &groups {
            let names: Vec<String> = group.iter().map(|one| quote::escape(&one.name)).collect();
            let what = format!("FAIL  {kind} at {}: {}", quote::escape(path), names.join(", "));
            lines.push(Line::styled(Style::Bad, what));
            if let Some(divergence) = &group[0].divergence {
                lines.extend(divergence_lines(divergence).into_iter().skip(1));
            }
        }
        let open = self.0.iter().filter(|one| one.is_open()).count();
        let failed = self.0.iter().filter(|one| !one.is_ok()).count() - open;
        let passed = self.0.len() - failed - open;
        lines.push(match open {
            0 => format!("{passed} passed, {failed} failed").into(),
            _ => format!("{passed} passed, {failed} failed, {open} open").into(),
        });
        lines
    }

    fn end(&self) -> End {
        if self.0.iter().any(|one| !one.is_ok()) { End::Problem(DIVERGED) } else { End::Answered }
    }
}
