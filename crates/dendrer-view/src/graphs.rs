//! Execution graphs: what the compiler found, runs, frontiers and replays, as lines and as documents.

use dendrer::graph::Graph;
use dendrer::graph::check::{GraphFinding, GraphWarning};
use dendrer::graph::frontier::{FrontierDivergence, RecordedEdge, Substituted};
use dendrer::run::frontier::GraphRun;
use dendrer_object::{Code, Digest, RunName, Value};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::{count, document, quote};

/// What the compiler found in a graph.
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
    /// What it is refused for.
    pub findings: &'g [GraphFinding],
    /// What is legal and brittle.
    pub warnings: &'g [GraphWarning],
    /// Whether functions and effects were held against a pack.
    pub has_pack: bool,
}

fn sizes(graph: &Graph) -> (u64, u64) {
    let all = graph.each();
    let of = |first: char| all.iter().filter(|statement| statement.id.starts_with(first)).count() as u64;
    (of('n'), of('e'))
}

impl Answer for GraphCheckAnswer<'_> {
    fn document(&self) -> Value {
        let (nodes, edges) = self.graph.map(sizes).unzip();
        let items = self.findings.iter().map(|finding| {
            Value::record([
                ("rule", Value::from(finding.rule.as_str())),
                ("code", Value::from(finding.rule.code())),
                ("line", Value::from(u64::from(finding.line))),
                ("column", Value::from(u64::from(finding.column))),
                ("statement", Value::from(finding.statement.as_str())),
                ("message", Value::from(finding.message.as_str())),
                ("bug", Value::from(finding.rule.bug())),
            ])
        });
        let warnings = self.warnings.iter().map(|warning| {
            Value::record([
                ("line", Value::from(u64::from(warning.line))),
                ("statement", Value::from(warning.statement.as_str())),
                ("message", Value::from(warning.message.as_str())),
            ])
        });
        let inputs = self.graph.map(Graph::inputs).unwrap_or_default();
        let members = [
            ("file", Value::from(self.file)),
            ("ok", Value::from(self.findings.is_empty())),
            ("digest", Value::from(self.digest)),
            ("inputs", Value::array(inputs.into_iter().map(Value::from))),
            ("nodes", Value::from(nodes)),
            ("edges", Value::from(edges)),
            ("items", Value::array(items)),
            ("warnings", Value::array(warnings)),
            ("has_pack", Value::from(self.has_pack)),
        ];
        document("graph-check", members)
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
                let (nodes, edges) = sizes(graph);
                let digest = self.digest.map(|digest| digest.short()).unwrap_or_default();
                let sizes =
                    format!("{}, {}", count(nodes, "pure node", "pure nodes"), count(edges, "edge", "edges"));
                Line::styled(Style::Good, format!("OK    {}: {sizes}, graph {digest}", graph.name))
            }
            (_, found) => {
                let all = count(found as u64, "finding", "findings");
                Line::styled(Style::Bad, format!("REFUSED   {}: {all}", self.file))
            }
        });
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

/// A graph in its JSON form.
#[derive(Debug, Clone)]
pub struct GraphAnswer<'g> {
    /// The graph.
    pub graph: &'g Graph,
    /// Its JSON form.
    pub form: &'g Value,
    /// The digest of that.
    pub digest: Digest,
}

impl Answer for GraphAnswer<'_> {
    fn document(&self) -> Value {
        document("graph", [("digest", Value::from(self.digest)), ("graph", self.form.clone())])
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = vec![format!("graph {}", quote::escape(&self.graph.name)).into()];
        let list = |name: &str, value: &Value| value.get(name).and_then(Value::as_array).cloned();
        fn walk(statements: &Value, depth: usize, lines: &mut Vec<Line>) {
            let argument = |value: &Value| match value.get("ref").and_then(Value::as_str) {
                Some(reference) => reference.to_owned(),
                None => value.get("value").map(quote::value).unwrap_or_default(),
            };
            for one in statements.as_array().into_iter().flat_map(|list| list.iter()) {
                let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default();
                let pad = "  ".repeat(depth);
                let when =
                    one.get("if").and_then(Value::as_str).map(|id| format!(" if {id}")).unwrap_or_default();
                if let Some(repeat) = one.get("repeat") {
                    let from = repeat.get("from").map(argument).unwrap_or_default();
                    let max = repeat.get("max").map(quote::value).unwrap_or_default();
                    let until = repeat.get("until").and_then(Value::as_str).unwrap_or_default();
                    lines.push(format!("{pad}{} repeat({from}) max {max} until {until}", text("id")).into());
                    if let Some(inner) = one.get("statements") {
                        walk(inner, depth + 1, lines);
                    }
                    lines.push(format!("{pad}end {}", text("id")).into());
                    continue;
                }
                let args = one.get("args").and_then(Value::as_array);
                let args = args
                    .into_iter()
                    .flat_map(|args| args.iter())
                    .map(argument)
                    .collect::<Vec<_>>()
                    .join(", ");
                let tail = match one.get("rec").and_then(Value::as_str) {
                    Some(rec) => format!("-> rec frontier[{rec}]"),
                    None => "pure".to_owned(),
                };
                lines.push(
                    quote::escape(&format!("{pad}{} {}({args}){when} {tail}", text("id"), text("call")))
                        .into(),
                );
            }
        }
        if let Some(statements) = list("statements", self.form) {
            walk(&Value::Array(statements), 0, &mut lines);
        }
        lines.push("replay(graph, frontier) == output required".into());
        lines.push(Line::note(format!("digest {}", self.digest)));
        lines
    }
}

/// A graph that was run.
#[derive(Debug, Clone)]
pub struct GraphRunAnswer<'g> {
    /// The run.
    pub run: &'g RunName,
    /// The name of the graph.
    pub graph: &'g str,
    /// The digest of the graph.
    pub digest: Digest,
    /// How many nodes were computed.
    pub nodes: u64,
    /// How many edge values were recorded.
    pub edges: u64,
    /// The output.
    pub output: Value,
}

impl Answer for GraphRunAnswer<'_> {
    fn document(&self) -> Value {
        let members = [
            ("run", Value::from(self.run.as_str())),
            ("graph", Value::from(self.graph)),
            ("digest", Value::from(self.digest)),
            ("nodes", Value::from(self.nodes)),
            ("edges", Value::from(self.edges)),
            ("output", self.output.clone()),
            ("closed", Value::from("good")),
        ];
        document("graph-run", members)
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let (nodes, edges) = (count(self.nodes, "node", "nodes"), count(self.edges, "edge", "edges"));
        vec![
            format!("ran        graph {} as {}: {nodes}, {edges}", quote::escape(self.graph), self.run)
                .into(),
            page.fit(&format!("output     {}", quote::value(&self.output))),
            Line::styled(Style::Good, "closed     good: its replay from the record gave the same output"),
            Line::help(["dendrer", "replay", self.run.as_str()]),
        ]
    }
}

/// Writes an edge as a frontier file does.
pub fn edge_json(edge: &RecordedEdge, effect: &str) -> Value {
    Value::record([
        ("args", Value::array(edge.args.iter().cloned())),
        ("asked", Value::from(edge.asked)),
        ("call", Value::from(edge.call.as_str())),
        ("digest", Value::from(edge.digest)),
        ("effect", Value::from(effect)),
        ("index", Value::from(edge.index.as_str())),
        ("path", Value::from(edge.path.as_str())),
        ("value", edge.value.clone()),
    ])
}

/// The lines of a frontier file: a header, then one for each edge in canonical order.
pub fn frontier_file(run: &GraphRun) -> Vec<Value> {
    let record = |map: &std::collections::BTreeMap<String, Value>| {
        Value::record(map.iter().map(|(name, value)| (name.as_str(), value.clone())))
    };
    let header = Value::record([
        ("frontier", Value::from(1u64)),
        ("graph", run.form.clone()),
        ("inputs", record(&run.frontier.inputs)),
        ("nodes", record(&run.frontier.nodes)),
        ("output", run.frontier.output.clone().unwrap_or(Value::Null)),
        ("pack", run.pack.clone()),
        ("run", Value::from(run.run.as_str())),
    ]);
    let effect = |call: &str| run.effects.get(call).map_or("effectful", String::as_str);
    std::iter::once(header)
        .chain(run.edges().into_iter().map(|edge| edge_json(edge, effect(&edge.call))))
        .collect()
}

/// The frontier of a run.
#[derive(Debug, Clone, Copy)]
pub struct FrontierAnswer<'g>(pub &'g GraphRun);

impl Answer for FrontierAnswer<'_> {
    fn document(&self) -> Value {
        let lines = frontier_file(self.0);
        let members = [
            ("run", Value::from(self.0.run.as_str())),
            ("items", Value::array(lines.into_iter().skip(1))),
            ("edges", Value::from(self.0.frontier.edges.len() as u64)),
            ("nodes", Value::from(self.0.frontier.nodes.len() as u64)),
        ];
        document("frontier", members)
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let mut lines = Vec::new();
        for edge in self.0.edges() {
            let args: Vec<String> = edge.args.iter().map(quote::value).collect();
            let call = format!("{}({})", edge.call, args.join(", "));
            let line = format!(
                "frontier[{}]  {}  {} = {}",
                edge.index,
                edge.path,
                quote::escape(&call),
                quote::value(&edge.value)
            );
            lines.push(page.fit(&line));
        }
        let edges = count(self.0.frontier.edges.len() as u64, "edge", "edges");
        let nodes = count(self.0.frontier.nodes.len() as u64, "pure node", "pure nodes");
        lines.push(format!("{edges}, {nodes}, nothing else").into());
        lines
    }
}

/// Writes a divergence.
pub fn divergence_json(divergence: &FrontierDivergence) -> Value {
    Value::record([
        ("kind", Value::from(divergence.kind.as_str())),
        ("path", Value::from(divergence.path.as_str())),
        ("expected", divergence.expected.clone()),
        ("got", divergence.got.clone()),
    ])
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

/// The replay of a graph.
#[derive(Debug, Clone)]
pub struct GraphReplayAnswer<'g> {
    /// The run.
    pub run: &'g GraphRun,
    /// How many nodes were made again.
    pub nodes: u64,
    /// The output that was made.
    pub output: Option<&'g Value>,
    /// The first divergence.
    pub divergence: Option<&'g FrontierDivergence>,
    /// What follows from other values, if some were given.
    pub substituted: Option<&'g Substituted>,
    /// The fork that was made of it.
    pub fork: Option<&'g RunName>,
}

impl Answer for GraphReplayAnswer<'_> {
    fn document(&self) -> Value {
        let run = self.run;
        let members = vec![
            ("run", Value::from(run.run.as_str())),
            ("made", Value::from("graph")),
            ("graph", Value::from(run.graph.name.as_str())),
            ("digest", Value::from(run.digest)),
            ("nodes", Value::from(self.nodes)),
            ("edges", Value::from(run.frontier.edges.len() as u64)),
            ("output", self.output.cloned().unwrap_or(Value::Null)),
            ("ok", Value::from(self.divergence.is_none())),
            ("divergence", self.divergence.map_or(Value::Null, divergence_json)),
        ];
        let list = |paths: &[String]| Value::array(paths.iter().map(|path| Value::from(path.as_str())));
        let more = self.substituted.map(|found| {
            let first = found.first.as_ref().map(|(node, recorded, now)| {
                Value::record([
                    ("node", Value::from(node.as_str())),
                    ("recorded", recorded.clone()),
                    ("now", now.clone()),
                ])
            });
            vec![
                ("first", first.unwrap_or(Value::Null)),
                ("reaches", list(&found.reaches)),
                ("same", list(&found.same)),
                ("unknown", list(&found.unknown)),
                ("fork", Value::from(self.fork.map(RunName::as_str))),
            ]
        });
        document("replay", members.into_iter().chain(more.into_iter().flatten()))
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let run = self.run;
        let nodes = count(self.nodes, "node", "nodes");
        let values = count(run.frontier.edges.len() as u64, "recorded value", "recorded values");
        let mut lines: Vec<Line> = vec![
            format!("made again   {nodes} of graph {} from {values}", quote::escape(&run.graph.name)).into(),
        ];
        if let Some(divergence) = self.divergence {
            lines.extend(divergence_lines(divergence));
            return lines;
        }
        match self.substituted {
            None => {
                let output = self.output.map(quote::value).unwrap_or_default();
                lines.push(page.fit(&format!("output       {output}")));
                lines.push(Line::styled(
                    Style::Good,
                    "replay(graph, frontier) == output   OK, no model and no tool was called",
                ));
            }
            Some(found) => {
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
                for (word, paths) in
                    [("reaches", &found.reaches), ("same", &found.same), ("unknown", &found.unknown)]
                {
                    let paths = if paths.is_empty() {
                        "nothing".to_owned()
                    } else {
                        quote::escape(&paths.join(", "))
                    };
                    lines.push(page.fit(&format!("{word:<12} {paths}")));
                }
                if !found.unknown.is_empty() {
                    lines.push(Line::note(
                        "note: a recorded answer is never given to an edge that asks something else",
                    ));
                }
                lines.extend(self.fork.map(|fork| format!("forked       {fork}").into()));
            }
        }
        lines
    }

    fn end(&self) -> End {
        if self.divergence.is_some() { End::Problem(DIVERGED) } else { End::Answered }
    }
}

/// A frontier that was replayed.
#[derive(Debug, Clone)]
pub struct GraphTested {
    /// The file or the run.
    pub name: String,
    /// Whether it is a file.
    pub is_file: bool,
    /// The first divergence, or why the graph cannot be evaluated.
    pub divergence: Option<FrontierDivergence>,
}

/// Frontiers that were replayed.
#[derive(Debug, Clone)]
pub struct GraphTestAnswer(pub Vec<GraphTested>);

impl Answer for GraphTestAnswer {
    fn document(&self) -> Value {
        let failed = self.0.iter().filter(|one| one.divergence.is_some()).count() as u64;
        let items = self.0.iter().map(|one| {
            Value::record([
                (if one.is_file { "file" } else { "run" }, Value::from(one.name.as_str())),
                ("ok", Value::from(one.divergence.is_none())),
                ("divergence", one.divergence.as_ref().map_or(Value::Null, divergence_json)),
            ])
        });
        let members = [
            ("passed", Value::from(self.0.len() as u64 - failed)),
            ("failed", Value::from(failed)),
            ("items", Value::array(items)),
        ];
        document("graph-test", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = Vec::new();
        // Frontiers that part in the same way are one group.
        let mut groups: std::collections::BTreeMap<(&str, &str), Vec<&GraphTested>> = Default::default();
        for one in &self.0 {
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
        let failed = self.0.iter().filter(|one| one.divergence.is_some()).count();
        lines.push(format!("{} passed, {failed} failed", self.0.len() - failed).into());
        lines
    }

    fn end(&self) -> End {
        if self.0.iter().any(|one| one.divergence.is_some()) { End::Problem(DIVERGED) } else { End::Answered }
    }
}
