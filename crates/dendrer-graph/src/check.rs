//! The compiler: refuses a graph whose result could depend on anything that is neither an argument nor a recorded edge, with the
//! place, the rule, and what would differ between two replays.

use std::collections::{BTreeMap, BTreeSet};

use dendrer_object::Code;

use crate::eval::ROUNDS_MAX;
use crate::functions::{Functions, words};
use crate::{Argument, Graph, Reference, Statement, StatementBody, last_node};

dendrer_object::words! {
    /// A rule of the compiler.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum GraphRule {
        /// A clock is read that is no edge.
        AmbientClock = "ambient_clock",
        /// An environment is read.
        AmbientEnvironment = "ambient_environment",
        /// Chance is asked that is no edge.
        AmbientChance = "ambient_chance",
        /// A file is read that is no edge.
        AmbientFile = "ambient_file",
        /// The last line is missing.
        NoContract = "no_contract",
        /// The value of an edge is not recorded.
        NoRec = "no_rec",
        /// The place in the frontier is missing or another one.
        FrontierIndex = "frontier_index",
        /// A statement is named that is not there.
        UndefinedArgument = "undefined_argument",
        /// A statement is named that comes later.
        ForwardArgument = "forward_argument",
        /// A function is called that the pack does not define.
        UndefinedFunction = "undefined_function",
        /// A pure statement calls an effect.
        ImpureNode = "impure_node",
        /// An effect has no class.
        NoEffectClass = "no_effect_class",
        /// A repeat has no ceiling.
        UnboundedLoop = "unbounded_loop",
        /// The text is no graph.
        Syntax = "syntax",
    }
}

impl GraphRule {
    /// The code under which `dendrer explain` knows it.
    pub fn code(self) -> Code {
        match self {
            GraphRule::Syntax => Code::E0920,
            GraphRule::NoContract => Code::E0921,
            GraphRule::NoRec => Code::E0922,
            GraphRule::FrontierIndex => Code::E0923,
            GraphRule::UndefinedArgument => Code::E0924,
            GraphRule::ForwardArgument => Code::E0925,
            GraphRule::UndefinedFunction => Code::E0926,
            GraphRule::ImpureNode => Code::E0927,
            GraphRule::NoEffectClass => Code::E0928,
            GraphRule::UnboundedLoop => Code::E0929,
            GraphRule::AmbientClock => Code::E0930,
            GraphRule::AmbientEnvironment => Code::E0931,
            GraphRule::AmbientChance => Code::E0932,
            GraphRule::AmbientFile => Code::E0933,
        }
    }

    /// The difference between two replays, in one sentence.
    pub fn bug(self) -> &'static str {
        match self {
            GraphRule::Syntax => "nothing can be replayed that cannot be read",
            GraphRule::NoContract => {
                "a run that is never replayed may give another output the next time, and is called good all the same"
            }
            GraphRule::NoRec => {
                "the value is not recorded, so a replay would have to ask the world again, which answers otherwise"
            }
            GraphRule::FrontierIndex => {
                "two edges would claim one place in the frontier, or a replay would look in the wrong one"
            }
            GraphRule::UndefinedArgument => {
                "the value would come from nowhere, so each replay could take another one"
            }
            GraphRule::ForwardArgument => {
                "the value is not there yet when it is needed, so the result would depend on which came first"
            }
            GraphRule::UndefinedFunction => {
                "what the function does is not part of the record, so a later one could do something else"
            }
            GraphRule::ImpureNode => {
                "the effect would be called again at each replay, and its value is in no frontier"
            }
            GraphRule::NoEffectClass => {
                "it is not known whether the effect may be called twice, so a replay that asks again could act again"
            }
            GraphRule::UnboundedLoop => {
                "how often it runs is bounded by nothing on record, so a replay may never end"
            }
            GraphRule::AmbientClock => "the clock has moved on at the replay, so the value is another one",
            GraphRule::AmbientEnvironment => {
                "another machine has another environment, so the value is another one there"
            }
            GraphRule::AmbientChance => "chance gives another value each time",
            GraphRule::AmbientFile => "the file may have changed or be gone at the replay",
        }
    }
}

/// One thing that a graph is refused or warned for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphFinding {
    /// The rule.
    pub rule: GraphRule,
    /// The line, from 1; 0 where the graph was not text.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The id of the statement; empty for the whole graph.
    pub statement: String,
    /// The fault.
    pub message: String,
}

/// A construct that is legal and brittle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphWarning {
    /// The line, from 1.
    pub line: u32,
    /// The id of the statement.
    pub statement: String,
    /// The reason why it is brittle.
    pub message: String,
}

/// The rule that a name breaks by reading the world around.
pub fn ambient(name: &str) -> Option<GraphRule> {
    let (first, is_member) = name.split_once('.').map_or((name, false), |(first, _)| (first, true));
    match first {
        "now" | "today" => Some(GraphRule::AmbientClock),
        "clock" if is_member => Some(GraphRule::AmbientClock),
        "getenv" | "argv" | "cwd" | "host" => Some(GraphRule::AmbientEnvironment),
        "env" if is_member => Some(GraphRule::AmbientEnvironment),
        "random" | "rand" | "uuid" => Some(GraphRule::AmbientChance),
        "chance" if is_member => Some(GraphRule::AmbientChance),
        "open" | "read_file" => Some(GraphRule::AmbientFile),
        "file" if is_member => Some(GraphRule::AmbientFile),
        _ => None,
    }
}

/// The kinds of effects: the first word of their names.
pub const KINDS: [&str; 6] = ["model", "tool", "clock", "chance", "file", "graph"];

/// The first ambient name in what a function computes: the function, the name, the rule. A parameter is no ambient name.
fn ambient_definition(functions: &Functions, call: &str) -> Option<(String, String, GraphRule)> {
    functions.unsound_texts_of(call).into_iter().find_map(|(name, text)| {
        let is_ambient = |word: &&str| ambient(word).is_some() && !functions.is_parameter(name, word);
        let word = words(text).into_iter().find(is_ambient)?;
        Some((name.to_owned(), word.to_owned(), ambient(word)?))
    })
}

/// Checks a graph under the functions of its pack. Findings come in the order of lines, an ambient one before any other of its line.
pub fn check(
    graph: &Graph,
    functions: &Functions,
    children: &BTreeMap<String, Graph>,
) -> (Vec<GraphFinding>, Vec<GraphWarning>) {
    let all = graph.each().into_iter().map(|statement| &*statement.id).collect();
    let (functions, findings, used) = (functions.clone(), Vec::new(), BTreeSet::new());
    let mut checker = Checker { all, functions, children, findings, used };
    checker.list(&graph.statements, "", &BTreeSet::new());
    let (line, column) = graph.statements.last().map_or((1, 1), |last| (last.line, last.column));
    let mut lacks = |rule, message: &str| {
        let (statement, message) = (String::new(), message.to_owned());
        checker.findings.push(GraphFinding { rule, line, column, statement, message });
    };
    if !graph.is_contract {
        let what = "the last line is missing: replay(graph, frontier) == output required";
        lacks(GraphRule::NoContract, what);
    }
    if graph.output().is_none() {
        lacks(GraphRule::UndefinedArgument, "there is no node, so there is no output");
    }
    let Checker { mut findings, used, .. } = checker;
    findings.sort_by_key(|finding| (finding.line, finding.rule));
    let mut warnings = Vec::new();
    let output = graph.output();
    for statement in &graph.statements {
        if !used.contains(&statement.id) && Some(&*statement.id) != output {
            let message = match statement.body {
                StatementBody::Edge { .. } => "its value is recorded and nothing uses it",
                _ => "nothing uses its value",
            };
            warnings.push(GraphWarning {
                line: statement.line,
                statement: statement.id.clone(),
                message: message.to_owned(),
            });
        }
    }
    (findings, warnings)
}

struct Checker<'c> {
    /// Every id of the graph.
    all: BTreeSet<&'c str>,
    /// With each function that was met made ready.
    functions: Functions,
    children: &'c BTreeMap<String, Graph>,
    findings: Vec<GraphFinding>,
    used: BTreeSet<String>,
}

impl Checker<'_> {
    fn fault(&mut self, statement: &Statement, rule: GraphRule, message: impl Into<String>) {
        let (line, column, id) = (statement.line, statement.column, statement.id.clone());
        self.findings.push(GraphFinding { rule, line, column, statement: id, message: message.into() });
    }

    /// Checks the statements of a graph or of a round. `prefix` is the place of the list in the frontier, `above` what is known from
    /// around it.
    fn list(&mut self, statements: &[Statement], prefix: &str, above: &BTreeSet<String>) {
        let mut known = above.clone();
        let mut place = 0;
        for statement in statements {
            if known.contains(&statement.id) && !above.contains(&statement.id) || self.all.is_empty() {
                self.fault(statement, GraphRule::Syntax, format!("{} stands twice", statement.id));
            }
            match &statement.body {
                StatementBody::Node { call, args } => {
                    self.arguments(statement, args, &known);
                    self.function(statement, call, args.len());
                }
                StatementBody::Edge { call, args, is_recorded, index, .. } => {
                    place += 1;
                    self.arguments(statement, args, &known);
                    let due = format!("{prefix}{place}");
                    if !is_recorded {
                        let what = format!("the value of {call} is not recorded: -> rec frontier[{due}]");
                        self.fault(statement, GraphRule::NoRec, what);
                    } else if index.as_deref() != Some(&due) {
                        let got = index.as_deref().unwrap_or("no place");
                        let what = format!("its place is frontier[{due}], and it names {got}");
                        self.fault(statement, GraphRule::FrontierIndex, what);
                    }
                    match call.strip_prefix("graph.") {
                        Some(child) if !self.children.contains_key(child) => {
                            let what = format!("there is no graph {child}: --child FILE brings it");
                            self.fault(statement, GraphRule::UndefinedFunction, what);
                        }
                        Some(child) => self.child(statement, child, args.len()),
                        None if self.functions.effect(call).is_none() && !self.functions.is_open() => {
                            let what =
                                format!("`tools` of the pack does not say what {call} does to the world");
                            self.fault(statement, GraphRule::NoEffectClass, what);
                        }
                        None if self.functions.is_host(call) => {
                            let what =
                                format!("{call} is a function of the host, and no effect; make it a node");
                            self.fault(statement, GraphRule::NoEffectClass, what);
                        }
                        None => {}
                    }
                }
                StatementBody::Repeat { from, max, until, statements, .. } => {
                    place += 1;
                    self.arguments(statement, std::slice::from_ref(from), &known);
                    if max.is_none_or(|max| max > ROUNDS_MAX) {
                        let what = format!("a repeat has a ceiling: max N, {ROUNDS_MAX} at most");
                        self.fault(statement, GraphRule::UnboundedLoop, what);
                    }
                    let mut inner = known.clone();
                    inner.insert(statement.id.clone());
                    self.list(statements, &format!("{prefix}{place}.*."), &inner);
                    if !statements.iter().any(|inner| inner.id == *until) {
                        let what = format!("{until} is no statement of its round");
                        self.fault(statement, GraphRule::UndefinedArgument, what);
                    }
                    self.used.insert(until.clone());
                    self.used.extend(last_node(statements).map(str::to_owned));
                    if last_node(statements).is_none() {
                        self.fault(
                            statement,
                            GraphRule::UndefinedArgument,
                            "a round has no node, so it has no value",
                        );
                    }
                }
            }
            if let Some(condition) = &statement.condition {
                self.reference(statement, condition, &known);
            }
            known.insert(statement.id.clone());
        }
    }

    /// Checks a call of a graph that is there: its inputs, and that it does not come back to itself.
    fn child(&mut self, statement: &Statement, name: &str, arity: usize) {
        let inputs = self.children[name].inputs().len();
        if inputs != arity {
            let what = format!("{name} takes {inputs} inputs, and not {arity}");
            self.fault(statement, GraphRule::UndefinedArgument, what);
        }
        let (mut met, mut pending) = (BTreeSet::new(), vec![name]);
        while let Some(next) = pending.pop() {
            let each = self.children.get(next).map(Graph::each).unwrap_or_default();
            for called in each.into_iter().filter_map(|inner| inner.call()?.0.strip_prefix("graph.")) {
                if called == name {
                    let what = format!("graph {name} runs itself, and nothing bounds it");
                    return self.fault(statement, GraphRule::UnboundedLoop, what);
                }
                if met.insert(called) {
                    pending.push(called);
                }
            }
        }
    }

    fn arguments(&mut self, statement: &Statement, args: &[Argument], known: &BTreeSet<String>) {
        for arg in args {
            if let Argument::Reference(reference) = arg {
                self.reference(statement, reference, known);
            }
        }
    }

    fn reference(&mut self, statement: &Statement, reference: &Reference, known: &BTreeSet<String>) {
        let name = &reference.name;
        if !reference.is_statement() {
            if let Some(rule) = ambient(&reference.text()) {
                let name = reference.text();
                let what = format!(
                    "{name} is read beside the record; make it an edge, or give the input another name"
                );
                self.fault(statement, rule, what);
            }
            return;
        }
        self.used.insert(name.clone());
        if known.contains(name) {
            return;
        }
        let (rule, what) = match self.all.contains(&**name) {
            true => (GraphRule::ForwardArgument, format!("{name} has no value here yet")),
            false => (GraphRule::UndefinedArgument, format!("there is no statement {name}")),
        };
        self.fault(statement, rule, what);
    }

    fn function(&mut self, statement: &Statement, call: &str, arity: usize) {
        if let Some(rule) = ambient(call) {
            return self.fault(statement, rule, format!("{call} reads the world around; make it an edge"));
        }
        let kind = call.split('.').next().unwrap_or_default();
        let is_effect = self.functions.effect(call).is_some() && !self.functions.is_host(call);
        if is_effect || (call.contains('.') && KINDS.contains(&kind)) {
            let what = format!("{call} is an effect; make it an edge: -> rec frontier[...]");
            return self.fault(statement, GraphRule::ImpureNode, what);
        }
        if !self.functions.has(call) {
            let what =
                format!("`define` of the pack has no function {call}, and no function of the host is given");
            return self.fault(statement, GraphRule::UndefinedFunction, what);
        }
        if let Some((name, word, rule)) = ambient_definition(&self.functions, call) {
            return self.fault(statement, rule, format!("{name} reads {word}; make it an edge"));
        }
        if self.functions.is_open() {
            return;
        }
        if let Err(why) = self.functions.prepare(call, arity) {
            self.fault(statement, GraphRule::UndefinedFunction, why);
        }
    }
}
