//! `dendrer graph`: execution graphs, which are refused unless they can be replayed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::{Args, Subcommand};
use dendrer::Trace;
use dendrer::address::{Address, is_bundle_name};
use dendrer::ask::graphs::{self, GraphFrontierQuestion};
use dendrer::ask::runs::question::RunsQuestion;
use dendrer::ask::runs::{self, RunsOrder};
use dendrer::change::graph::{
    Callers, EdgeEnd, EdgeFailure, GraphResume, GraphTerms, with_functions, with_hosts,
};
use dendrer::error::GraphRefused;
use dendrer::graph::check::{GraphFinding, GraphRule, GraphWarning, check};
use dendrer::graph::eval::EdgeRequest;
use dendrer::graph::frontier::replay;
use dendrer::graph::functions::Functions;
use dendrer::graph::minimize::minimize;
use dendrer::graph::reads::effect_at;
use dendrer::graph::text::TEXT_SIZE_MAX;
use dendrer::graph::{Graph, StatementBody, form, text};
use dendrer::kernel::expr::{Expr, Scope};
use dendrer::kernel::pack::{Effect, Tool};
use dendrer::kernel::step::Stage;
use dendrer::pack;
use dendrer::problem::Problem;
use dendrer::repo::new_run::refuse_unreachable;
use dendrer::run::frontier::{self, GraphRun, functions_of, graph_run};
use dendrer::source::{Asked as _, Desk};
use dendrer::store::prelude::*;
use dendrer_object::{Code, Digest, RunName, Value, json, tag};
use dendrer_view::forms::{FindingsForm, GraphFindingsAnswer, GraphTestFindingsAnswer};
use dendrer_view::graphs::{
    GraphAnswer, GraphCheckAnswer, GraphDiffAnswer, GraphMinimizeAnswer, GraphRunAnswer, GraphTestAnswer,
    GraphTestError, GraphTested, drawing,
};

use crate::context;
use crate::context::desk::CommandDesk;
use crate::context::edges::{given_once, pair, substitutes};
use crate::context::executor::{Executor, pass_on_signals, value_of};
use crate::context::packs;
use crate::context::pool;
use crate::failure::{Failure, Result};
use crate::global::{Global, age_arg, now_ms};
use crate::out::drawing::draw;
use crate::out::{Out, files};

/// `graph`
#[derive(Debug, Subcommand)]
pub(crate) enum GraphVerb {
    /// Refuse a graph whose result could depend on anything that is neither an argument nor a recorded edge
    #[command(
        after_help = "Examples:\n  dendrer graph check note.graph --pack note.yaml\n  dendrer graph check note.graph --pack note.yaml --json"
    )]
    Check(GraphCheck),
    /// Print a graph, of a file or of a run
    #[command(
        after_help = "Examples:\n  dendrer graph show note.graph\n  dendrer graph show note.graph --json"
    )]
    Show(GraphShow),
    /// Run a graph: each edge asks its executor, is recorded, and a replay closes the run
    #[command(
        after_help = "Examples:\n  dendrer graph run day.graph --pack day.yaml --exec \"clock.now=date +%s\"\n  dendrer graph run day.graph --pack day.yaml --exec \"clock.now=date +%s\" --as monday\n  dendrer graph run day.graph --pack day.yaml --exec \"clock.now=date +%s\" --resume monday"
    )]
    Run(GraphRunArgs),
    /// List the recorded edge values of a graph's run, all that was impure in it; of another run, its requests and answers
    #[command(
        after_help = "Examples:\n  dendrer graph frontier run-84f2\n  dendrer graph frontier run-84f2 --json"
    )]
    Frontier {
        /// The run
        run: String,
    },
    /// Replay recorded frontiers, also against another graph or pack: the regression suite that traffic leaves behind
    #[command(
        after_help = "Examples:\n  dendrer graph test --runs 'name == \"run-84f2\"'\n  dendrer graph test --runs 'name == \"run-84f2\"' --graph note.graph --pack note.yaml"
    )]
    Test(GraphTest),
    /// Compare two graphs: statements that only one has, and those that say something else
    #[command(
        after_help = "Examples:\n  dendrer graph diff run-84f2 note.graph\n  dendrer graph diff run-84f2 note.graph --json"
    )]
    Diff {
        /// The graph in a file, or the run of one
        a: String,
        /// The other one
        b: String,
    },
    /// Find the fewest other edge values that flip a predicate of the output
    #[command(
        after_help = "Examples:\n  dendrer graph minimize run-84f2 --set e2=free.json --predicate \"state.output.meetings == 0\"\n  dendrer graph minimize run-84f2 --set e2=free.json --predicate \"state.output.meetings == 0\" --json"
    )]
    Minimize(GraphMinimize),
}

/// `graph check`
#[derive(Debug, Args)]
pub(crate) struct GraphCheck {
    /// The graph, as text or in its JSON form
    pub(crate) file: String,
    #[command(flatten)]
    pub(crate) with: With,
}

/// What a graph needs beside its text.
#[derive(Debug, Args)]
pub(crate) struct With {
    /// The pack that defines the pure functions and says what each effect does to the world
    #[arg(long, value_name = "FILE")]
    pub(crate) pack: Option<String>,
    /// A graph that the graph runs, by its own name
    #[arg(long, value_name = "FILE")]
    pub(crate) child: Vec<String>,
}

/// `graph show`
#[derive(Debug, Args)]
pub(crate) struct GraphShow {
    /// The graph in a file, or the run of one
    pub(crate) what: String,
}

/// `graph run`
#[derive(Debug, Args)]
pub(crate) struct GraphRunArgs {
    /// The graph, as text or in its JSON form
    pub(crate) file: String,
    #[command(flatten)]
    pub(crate) with: With,
    /// The value of an input: a JSON file
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) input: Vec<String>,
    /// Who answers an effect: a command that reads a JSON line with `args`, `call` and `path`, and prints a JSON value or text
    #[arg(long, value_name = "CALL=CMD")]
    pub(crate) exec: Vec<String>,
    /// Who answers an effect: a service that is sent the same line by POST
    #[arg(long, value_name = "CALL=URL")]
    pub(crate) http: Vec<String>,
    /// A function of the host that the pack does not define: a command as for --exec, called twice and compared. Its result is
    /// tested, and not pure by construction
    #[arg(long, value_name = "NAME=CMD")]
    pub(crate) function: Vec<String>,
    /// What the run is called; the name of the graph if not given
    #[arg(long = "as", value_name = "RUN", conflicts_with = "resume")]
    pub(crate) new: Option<String>,
    /// Go on with a run that was interrupted: only what its record does not have is asked
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<String>,
    /// With --resume: ask the effect of an edge again, though it may have acted
    #[arg(long, value_name = "PATH", requires = "resume")]
    pub(crate) ask_again: Vec<String>,
    /// With --resume: the value of an edge that was found out by hand, a JSON file
    #[arg(long, value_name = "PATH=FILE", requires = "resume")]
    pub(crate) set: Vec<String>,
    /// The stage that it is recorded at; 2 if the pack asks for enforcement, else 1
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=3))]
    pub(crate) stage: Option<u64>,
}

/// `graph test`
#[derive(Debug, Args)]
pub(crate) struct GraphTest {
    /// Frontier files and bundles, or directories with *.frontier and *.dnd in them, at any depth
    #[arg(required_unless_present = "runs", conflicts_with = "runs")]
    pub(crate) files: Vec<String>,
    /// Runs of the store, by a condition as `runs --where` takes it
    #[arg(long, value_name = "EXPR")]
    pub(crate) runs: Option<String>,
    /// Another graph to evaluate over the recorded values
    #[arg(long, value_name = "FILE")]
    pub(crate) graph: Option<String>,
    /// Another pack to evaluate with
    #[arg(long, value_name = "FILE")]
    pub(crate) pack: Option<String>,
    /// With --graph: a graph that it runs, by its own name
    #[arg(long, value_name = "FILE", requires = "graph")]
    pub(crate) child: Vec<String>,
    /// With --runs: only those that were written to within this time, like 30d, 12h or 2w
    #[arg(long, value_name = "TIME", value_parser = age_arg, requires = "runs")]
    pub(crate) since: Option<u64>,
}

/// `graph minimize`
#[derive(Debug, Args)]
pub(crate) struct GraphMinimize {
    /// The run of a graph
    pub(crate) run: String,
    /// Another value of an edge: a JSON file
    #[arg(long, value_name = "ID=FILE", required_unless_present = "from", conflicts_with = "from")]
    pub(crate) set: Vec<String>,
    /// Another run of the graph: all edge values in which it differs
    #[arg(long, value_name = "RUN")]
    pub(crate) from: Option<String>,
    /// What the other values make true and the recorded ones do not, or the other way: over `state.output`, `state.nodes` and
    /// `state.edges`
    #[arg(long, value_name = "EXPR")]
    pub(crate) predicate: String,
}

pub(crate) fn run(global: &Global, verb: &GraphVerb, out: &mut Out) -> Result {
    match verb {
        GraphVerb::Check(args) => {
            let checked = Checked::of(&args.file, &args.with, &[])?;
            // A pack with problems is refused as by `run`; findings come first, because they name the statement.
            args.with
                .pack
                .iter()
                .filter(|_| checked.findings.is_empty())
                .try_for_each(|path| packs::load(path).map(|_| ()))?;
            let answer = &checked.answer(&args.file);
            match global.format.as_deref().and_then(FindingsForm::parse) {
                None => out.answer(answer),
                Some(form) => out.findings(form, &GraphFindingsAnswer { form, answer }),
            }
        }
        GraphVerb::Show(args) => show(global, args, out),
        GraphVerb::Run(args) => run_graph(global, args, out).map_err(|mut failure| {
            // The files of a program that calls this one as a library are gone when its error is read.
            failure.help.retain(|words| {
                global.callers.is_none() || words.get(1).is_none_or(|verb| verb != "graph" && verb != "pack")
            });
            failure
        }),
        GraphVerb::Frontier { run } => {
            let question = GraphFrontierQuestion { run: run.clone() };
            let reply = question.ask(&mut CommandDesk::new(global, out))?;
            out.answer(&reply)
        }
        GraphVerb::Test(args) => test(global, args, out),
        GraphVerb::Diff { a, b } => {
            let (before, after) = (either(global, a, out)?, either(global, b, out)?);
            out.answer(&GraphDiffAnswer::of(&before.1, &after.1))
        }
        GraphVerb::Minimize(args) => find_fewest(global, args, out),
    }
}

/// A graph that was read and checked.
struct Checked {
    text: String,
    graph: Option<Graph>,
    children: BTreeMap<String, Graph>,
    digest: Option<Digest>,
    findings: Vec<GraphFinding>,
    warnings: Vec<GraphWarning>,
    /// The host functions that the graph and its children call.
    tested: Vec<String>,
    has_pack: bool,
}

impl Checked {
    /// Reads and checks a graph, whose pack declares also some host functions.
    fn of(file: &str, with: &With, hosts: &[&str]) -> Result<Checked> {
        let text = read_text(file)?;
        let mut children = read_children(&with.child)?;
        let functions = match &with.pack {
            None => Functions::open(),
            Some(path) => {
                let read = pack::read_value(&packs::read_file(path)?, packs::beside(path));
                let value = read.map_err(|problems| pack::unsound(path, &problems))?;
                functions_of(&with_hosts(&value, hosts).map_err(dendrer::Error::from)?)
            }
        };
        let has_pack = with.pack.is_some();
        let (graph, own) = match read_graph(&text) {
            Ok(read) => read,
            Err(finding) => {
                let (findings, warnings) = (vec![finding], Vec::new());
                return Ok(Checked {
                    text,
                    graph: None,
                    children,
                    digest: None,
                    findings,
                    warnings,
                    tested: Vec::new(),
                    has_pack,
                });
            }
        };
        children.extend(own);
        let (mut findings, mut warnings) = check(&graph, &functions, &children);
        for child in children.values() {
            // Their lines are those of another text.
            let of = |line: u32, message: String| format!("graph {}, line {line}: {message}", child.name);
            let (more, brittle) = check(child, &functions, &children);
            findings.extend(more.into_iter().map(|finding| GraphFinding {
                message: of(finding.line, finding.message),
                line: 0,
                column: 0,
                ..finding
            }));
            warnings.extend(brittle.into_iter().map(|warning| GraphWarning {
                message: of(warning.line, warning.message),
                line: 0,
                ..warning
            }));
        }
        let digest = Some(form::digest(&form::to_value(&graph, &children)));
        let tested = functions.hosts_of(children.values().chain([&graph]));
        let tested = tested.into_iter().map(str::to_owned).collect();
        Ok(Checked { text, graph: Some(graph), children, digest, findings, warnings, tested, has_pack })
    }

    /// The graph, if nothing is wrong with it.
    fn sound(&self, file: &str, pack_file: &str) -> Result<&Graph> {
        let Some(first) = self.findings.first() else {
            return self.graph.as_ref().ok_or_else(|| Failure::new(Code::E0920, "the graph cannot be read"));
        };
        let many = self.findings.len();
        Err(Failure::new(first.rule.code(), format!("{}: {}", first.rule.as_str(), first.message))
            .at("line", first.line.to_string())
            .at("findings", many.to_string())
            .note(NOTHING)
            .help(&["dendrer", "graph", "check", file, "--pack", pack_file]))
    }

    fn answer<'c>(&'c self, file: &'c str) -> GraphCheckAnswer<'c> {
        GraphCheckAnswer {
            file,
            text: if self.text.trim_start().starts_with('{') { "" } else { &self.text },
            graph: self.graph.as_ref(),
            digest: self.digest,
            findings: &self.findings,
            warnings: &self.warnings,
            tested: &self.tested,
            has_pack: self.has_pack,
        }
    }
}

fn read_text(path: &str) -> Result<String> {
    let bytes = files::read(path, TEXT_SIZE_MAX)?;
    String::from_utf8(bytes).map_err(|_| Failure::new(Code::E0206, "a graph is UTF-8").at("file", path))
}

/// Reads a graph in either form, with the graphs that it brings.
fn read_graph(written: &str) -> std::result::Result<(Graph, BTreeMap<String, Graph>), GraphFinding> {
    let finding = |fault: text::SyntaxFault| GraphFinding {
        rule: GraphRule::Syntax,
        line: fault.line,
        column: fault.column,
        statement: fault.statement.split_whitespace().next().unwrap_or_default().to_owned(),
        message: fault.message,
    };
    if !written.trim_start().starts_with('{') {
        return text::parse(written).map(|graph| (graph, BTreeMap::new())).map_err(finding);
    }
    let value = json::parse_door(written.as_bytes()).map_err(|error| GraphFinding {
        rule: GraphRule::Syntax,
        line: 0,
        column: 0,
        statement: String::new(),
        message: error.to_string(),
    })?;
    // The answer of `graph show --json` holds the form.
    let whole = value
        .get("schema")
        .and_then(Value::as_str)
        .is_some_and(|schema| schema.starts_with("dendrer.graph/"));
    form::read(value.get("graph").filter(|_| whole).unwrap_or(&value)).map_err(finding)
}

/// Reads graphs that a graph runs, by their names.
fn read_children(paths: &[String]) -> Result<BTreeMap<String, Graph>> {
    let mut children = BTreeMap::new();
    for path in paths {
        let (child, _) = read_graph(&read_text(path)?).map_err(|finding| unread(path, &finding))?;
        given_once(&mut children, "--child", &child.name.clone(), child)?;
    }
    Ok(children)
}

fn unread(path: &str, finding: &GraphFinding) -> Failure {
    Failure::new(finding.rule.code(), finding.message.clone())
        .at("file", path)
        .at("line", finding.line.to_string())
}

/// Reads the graph of a run with its frontier.
fn recorded(global: &Global, text: &str, out: &mut Out) -> Result<GraphRun> {
    graphs::recorded(text, &mut CommandDesk::new(global, out))
}

/// Reads the graph of a file, or that of a run, with its JSON form; of a run, also the host functions that it calls.
fn either(global: &Global, what: &str, out: &mut Out) -> Result<(Graph, Value, Option<Vec<String>>)> {
    if !Path::new(what).is_file() || is_bundle_name(what) {
        let run = recorded(global, what, out)?;
        let hosts = run.hosts();
        return Ok((run.graph, run.form, Some(hosts)));
    }
    let (graph, children) = read_graph(&read_text(what)?).map_err(|finding| unread(what, &finding))?;
    let form = form::to_value(&graph, &children);
    Ok((graph, form, None))
}

fn show(global: &Global, args: &GraphShow, out: &mut Out) -> Result {
    let (graph, form, tested) = either(global, &args.what, out)?;
    if let Some(kind @ ("dot" | "svg")) = global.format.as_deref() {
        return draw(&drawing(&graph), kind, out, || {
            ("DOT has no limit", vec!["dendrer", "graph", "show", &args.what, "--format", "dot"])
        });
    }
    out.answer(&GraphAnswer { graph: &graph, digest: form::digest(&form), form: &form, tested })
}

fn find_fewest(global: &Global, args: &GraphMinimize, out: &mut Out) -> Result {
    let run = recorded(global, &args.run, out)?;
    let others = match &args.from {
        None => substitutes(&run, &args.set)?,
        Some(from) => {
            let from = recorded(global, from, out)?;
            let own: BTreeMap<&str, &Value> =
                run.frontier.edges.iter().map(|edge| (&*edge.path, &edge.value)).collect();
            let differs = from
                .frontier
                .edges
                .into_iter()
                .filter(|edge| own.get(&*edge.path).is_some_and(|value| **value != edge.value));
            differs.map(|edge| (edge.path, edge.value)).collect()
        }
    };
    let predicate = Expr::parse_condition(&args.predicate, &Scope::new()).map_err(dendrer::Error::from)?;
    let minimal = minimize(&run.graph, &run.children, &run.functions, &run.frontier, &others, &predicate);
    out.answer(&GraphMinimizeAnswer { run: &run.run, predicate: &args.predicate, minimal: &minimal })
}

/// Note on a run of a graph that fails before anything is done.
const NOTHING: &str = "nothing was called, and nothing was recorded";

fn run_graph(global: &Global, args: &GraphRunArgs, out: &mut Out) -> Result {
    let Some(pack_file) = &args.with.pack else {
        return Err(Failure::new(Code::E0934, "a graph runs with a pack: --pack FILE").note(NOTHING));
    };
    let hosts = hosts_of(args, global.callers.as_ref())?;
    let checked = Checked::of(&args.file, &args.with, &hosts)?;
    let graph = checked.sound(&args.file, pack_file)?;
    let source = with_functions(packs::load(pack_file)?, &hosts)?;
    let inputs = inputs_of(graph, args)?;
    let executors = executors_of(args, global.callers.as_ref(), &source.pack.tools)?;
    let mut effects = effects_of(graph, &checked.children);
    effects.extend(checked.tested.iter().map(String::as_str));
    refuse_unasked(&effects, &executors)?;
    let is_called = global.callers.is_some();
    let resume = resume_of(args, (graph, &checked.children), &source.pack.tools, &executors, is_called)?;
    if resume.is_none() {
        refuse_unanswered(&effects, &executors, is_called)?;
    }
    let name = args.resume.as_ref().or(args.new.as_ref()).unwrap_or(&graph.name);
    let name: RunName = name.parse().map_err(|error: dendrer_object::name::NameError| {
        Failure::new(error.code(), error.to_string()).note("--as gives the run a name")
    })?;
    let repo = context::write_store(global)?;
    let going_on = going_on(args, pack_file, name.as_str());
    let going_on: Vec<&str> = going_on.iter().map(String::as_str).collect();
    let goes_on = goes_on(global, &name);
    if resume.is_none() {
        if repo.writer()?.run(&name)?.is_some() {
            return Err(Failure::new(Code::E0939, format!("{name} exists already"))
                .note(NOTHING)
                .note(goes_on)
                .help(&going_on));
        }
        refuse_unreachable(&name)?;
    }
    context::say_no_key(&repo, out)?;
    let redactor = Some(repo.redactor(Some(source.pack.value()))?);
    let (children, stage) = (&checked.children, args.stage.and_then(Stage::from_number));
    let run = name.clone();
    let terms = GraphTerms { run, graph, children, pack: &source, inputs, stage, redactor, resume };
    let executor = |asked: &EdgeRequest| match executors.get(&*asked.call) {
        Some(executor) => executor.ask(asked),
        None => Err(EdgeFailure::new(EdgeEnd::NoStart, format!("nothing answers {}", asked.call))),
    };
    // Signals of a process that calls the program as a library are its own.
    if !is_called {
        pass_on_signals();
    }
    let made = repo.run_graph(&terms, &executor);
    context::close(repo)?;
    let tools = &source.pack.tools;
    let outcome =
        made.map_err(|error| failure_of_run(error, &name, (graph, children), tools, (&goes_on, &going_on)))?;
    out.answer(&GraphRunAnswer { graph: &graph.name, outcome: &outcome })
}

/// The way in which a run is resumed.
fn goes_on(global: &Global, name: &RunName) -> String {
    let way =
        if global.callers.is_some() { format!("resume=\"{name}\"") } else { format!("--resume {name}") };
    format!("{way} goes on with it")
}

/// The failure of a run, with the command that resumes it.
fn failure_of_run(
    error: dendrer::Error,
    name: &RunName,
    graphs: (&Graph, &BTreeMap<String, Graph>),
    tools: &[Tool],
    (goes_on, going_on): (&str, &[&str]),
) -> Failure {
    let failure = match error.code() {
        Code::E0111 => {
            return Failure::new(Code::E0939, format!("{name} was begun meanwhile")).note(NOTHING);
        }
        Code::E0101 | Code::E0934 | Code::E0938 | Code::E0941 | Code::E0942 | Code::E0943 | Code::E0946 => {
            return Failure::from(error).note(NOTHING);
        }
        Code::E0940 => Failure::from(error).note(NOTHING).note(
            "--set gives the answer of each edge that it waits for; where it asks something else, it is named as well",
        ),
        Code::E0935 => node_failure(error, graphs, tools, going_on),
        Code::E0936 | Code::E0945 => {
            Failure::from(error).note(format!("what was recorded stays; {goes_on}")).help(going_on)
        }
        _ => Failure::from(error).note("what was recorded stays"),
    };
    failure.help(&["dendrer", "log", name.as_str()])
}

/// Reads the inputs of a graph. A resumed run has its own.
fn inputs_of(graph: &Graph, args: &GraphRunArgs) -> Result<BTreeMap<String, Value>> {
    let (mut inputs, names) = (BTreeMap::new(), graph.inputs());
    for text in &args.input {
        let (name, file) = pair("--input", "NAME=FILE", text)?;
        given_once(&mut inputs, "--input", name, files::json(file)?)?;
    }
    let missing = names.iter().find(|name| !inputs.contains_key(*name));
    if let Some(name) = missing.filter(|_| args.resume.is_none()) {
        return Err(Failure::new(Code::E0934, format!("the graph has an input {name}: --input {name}=FILE"))
            .note(NOTHING));
    }
    if let Some(name) = inputs.keys().find(|name| !names.contains(name)) {
        return Err(Failure::new(Code::E0934, format!("the graph has no input {name}")).note(NOTHING));
    }
    Ok(inputs)
}

/// The names of the functions of the host that are given.
fn hosts_of<'a>(args: &'a GraphRunArgs, callers: Option<&'a Callers>) -> Result<Vec<&'a str>> {
    let given = args.function.iter().map(|text| Ok(pair("--function", "NAME=CMD", text)?.0));
    given.chain(callers.iter().flat_map(|callers| &callers.functions).map(|name| Ok(&**name))).collect()
}

/// The executors of a command line, and those of a program that calls this one as a library, by effect.
fn executors_of<'a>(
    args: &'a GraphRunArgs,
    callers: Option<&'a Callers>,
    tools: &[Tool],
) -> Result<BTreeMap<&'a str, Executor<'a>>> {
    let tool = |call: &str| tools.iter().find(|tool| *tool.name == *call);
    let mut executors: BTreeMap<&str, Executor<'_>> = BTreeMap::new();
    for (flag, text) in args
        .exec
        .iter()
        .map(|text| ("--exec", text))
        .chain(args.function.iter().map(|text| ("--function", text)))
    {
        let (call, command) = pair(flag, "CALL=CMD", text)?;
        refuse_second(call, executors.insert(call, Executor::command(command, tool(call))))?;
    }
    if let Some(callers) = callers {
        for call in callers.effects.iter().chain(&callers.functions) {
            refuse_second(call, executors.insert(call, Executor::caller(callers, tool(call))))?;
        }
    }
    for text in &args.http {
        let (call, url) = pair("--http", "CALL=URL", text)?;
        refuse_second(call, executors.insert(call, Executor::service(url, tool(call))?))?;
    }
    Ok(executors)
}

fn refuse_second(call: &str, before: Option<Executor<'_>>) -> Result<()> {
    let twice = || format!("{call} has two executors; --exec or --http, once");
    before.map_or(Ok(()), |_| Err(Failure::new(Code::E0106, twice()).note(NOTHING)))
}

/// The command that resumes a run, with the children and the names of the executors that it was given.
fn going_on(args: &GraphRunArgs, pack_file: &str, run: &str) -> Vec<String> {
    let mut words: Vec<String> =
        ["dendrer", "graph", "run", &args.file, "--pack", pack_file].map(str::to_owned).into();
    words.extend(args.with.child.iter().flat_map(|child| ["--child".to_owned(), child.clone()]));
    words.extend(["--resume".to_owned(), run.to_owned()]);
    let flags = [("--exec", &args.exec), ("--http", &args.http), ("--function", &args.function)];
    for (flag, text) in flags.into_iter().flat_map(|(flag, texts)| texts.iter().map(move |text| (flag, text)))
    {
        let call = text.split_once('=').map_or(&**text, |(call, _)| call);
        words.extend([flag.to_owned(), format!("{call}=..")]);
    }
    words
}

/// The failure of a node, with the command that asks an edge again which it reads.
fn node_failure(
    error: dendrer::Error,
    (graph, children): (&Graph, &BTreeMap<String, Graph>),
    tools: &[Tool],
    going_on: &[&str],
) -> Failure {
    let edges = match &error {
        dendrer::Error::Graph(GraphRefused::Failed { edges, .. }) => edges.clone(),
        _ => Vec::new(),
    };
    let failure = Failure::from(error).note("what was recorded stays");
    let is_effectful = |path: &str| {
        let call = effect_at(graph, children, path).unwrap_or_default();
        tools.iter().find(|tool| *tool.name == *call).is_none_or(|tool| tool.class() == Effect::Effectful)
    };
    let asked = edges.iter().rev().find(|path| !is_effectful(path)).or(edges.last());
    let Some(path) = asked else { return failure };
    let (is, set) = (is_effectful(path), format!("{path}=.."));
    let more = if is { ["--set", &set] } else { ["--ask-again", path] };
    let note =
        format!("it reads {}: --ask-again asks such an edge again, --set gives its value", edges.join(", "));
    failure.note(note).help(&[going_on, &more].concat())
}

/// The effects that a graph and its children ask.
fn effects_of<'g>(graph: &'g Graph, children: &'g BTreeMap<String, Graph>) -> BTreeSet<&'g str> {
    let statements = std::iter::once(graph).chain(children.values()).flat_map(Graph::each);
    let effects = statements.filter_map(|statement| match &statement.body {
        StatementBody::Edge { call, .. } if !call.starts_with("graph.") => Some(&**call),
        _ => None,
    });
    effects.collect()
}

/// Refuses an executor of an effect that the graph does not ask.
fn refuse_unasked(effects: &BTreeSet<&str>, executors: &BTreeMap<&str, Executor<'_>>) -> Result<()> {
    match executors.keys().find(|call| !effects.contains(**call)) {
        None => Ok(()),
        Some(call) => {
            let what = format!("the graph does not ask {call}, so nothing answers it");
            Err(Failure::new(Code::E0106, what).note(NOTHING))
        }
    }
}

/// Refuses a graph with an effect that no executor answers.
fn refuse_unanswered(
    effects: &BTreeSet<&str>,
    executors: &BTreeMap<&str, Executor<'_>>,
    is_called: bool,
) -> Result<()> {
    let Some(call) = effects.iter().find(|call| !executors.contains_key(**call)) else { return Ok(()) };
    let way = match is_called {
        true => format!("effects={{\"{call}\": ..}}"),
        false => format!("--exec {call}=CMD or --http {call}=URL"),
    };
    Err(Failure::new(Code::E0934, format!("nothing answers {call}: {way}")).note(NOTHING))
}

/// The terms of `--resume`, if it was given.
fn resume_of(
    args: &GraphRunArgs,
    (graph, children): (&Graph, &BTreeMap<String, Graph>),
    tools: &[Tool],
    executors: &BTreeMap<&str, Executor<'_>>,
    is_called: bool,
) -> Result<Option<GraphResume>> {
    if args.resume.is_none() {
        let given = [("--set", &args.set), ("--ask-again", &args.ask_again)];
        return match given.iter().find(|(_, given)| !given.is_empty()) {
            None => Ok(None),
            Some((flag, _)) => {
                Err(Failure::new(Code::E0106, format!("{flag} goes with --resume RUN")).note(NOTHING))
            }
        };
    }
    let mut set = BTreeMap::new();
    for text in &args.set {
        let (path, file) = pair("--set", "PATH=FILE", text)?;
        if args.ask_again.iter().any(|again| again == path) {
            let what = format!("{path} is asked again or its value is set; --ask-again or --set, once");
            return Err(Failure::new(Code::E0106, what).note(NOTHING));
        }
        // Read as what the effect had printed.
        let call = effect_at(graph, children, path).unwrap_or_default();
        let is_json = is_called || tools.iter().any(|tool| *tool.name == *call && tool.is_json);
        let value = value_of(files::read(file, json::DOCUMENT_SIZE_MAX)?, is_json);
        let value =
            value.map_err(|failed| Failure::new(Code::E0203, failed.why).at("file", file).note(NOTHING))?;
        given_once(&mut set, "--set", path, value)?;
    }
    let ask_again = args.ask_again.iter().cloned().collect();
    let answered = executors.keys().map(|call| (*call).to_owned()).collect();
    Ok(Some(GraphResume { ask_again, set, answered }))
}

/// What is to be tested.
enum Untested {
    /// A frontier file.
    File,
    /// A run that was read, of a bundle or of the store.
    Read {
        /// The run, or why it cannot be read.
        run: Box<std::result::Result<GraphRun, GraphTestError>>,
        /// Whether it is that of a file.
        is_file: bool,
    },
}

fn test(global: &Global, args: &GraphTest, out: &mut Out) -> Result {
    let mut found: Vec<(String, Untested)> = Vec::new();
    let untested = |failure: Failure| GraphTestError { code: failure.code, message: failure.message.into() };
    for path in paths(&args.files)? {
        if !is_bundle_name(&path) {
            found.push((path, Untested::File));
            continue;
        }
        let runs = runs_of_bundle(path, &mut CommandDesk::new(global, out));
        for path in runs {
            let run = Box::new(recorded(global, &path, out).map_err(untested));
            found.push((path, Untested::Read { run, is_file: true }));
        }
    }
    if let Some(filter) = &args.runs {
        let now = u64::try_from(now_ms()).unwrap_or(0);
        let since = args.since.map_or(0, |age| now.saturating_sub(age).max(1));
        let store = context::read_store(global)?;
        let question = RunsQuestion {
            r#where: Some(filter.clone()),
            sort: Some(RunsOrder::Name),
            limit: Some(0),
            ..RunsQuestion::default()
        };
        for run in runs::runs(&store, &question, &BTreeMap::new())?.runs {
            let trace = Trace::open(&store, &run.summary.name)?;
            let written = || trace.record(trace.tip()).map(|record| record.header().ts.ms());
            if frontier::is_graph(&trace) && (since == 0 || written()? >= since) {
                let run_graph = graph_run(&trace).map_err(|error| untested(Failure::from(error)));
                let run_graph = Untested::Read { run: Box::new(run_graph), is_file: false };
                found.push((run.summary.name.to_string(), run_graph));
            }
        }
    }
    let graph = match &args.graph {
        None => None,
        Some(path) => {
            let (graph, own) = read_graph(&read_text(path)?).map_err(|finding| unread(path, &finding))?;
            let mut children = read_children(&args.child)?;
            children.extend(own);
            Some((graph, children))
        }
    };
    let functions =
        args.pack.as_ref().map(|path| Ok::<_, Failure>(functions_of(packs::load(path)?.pack.value())));
    let functions = functions.transpose()?;
    if found.is_empty() {
        return Err(Failure::new(Code::E0938, "there is no frontier to replay"));
    }
    let one = |run: &GraphRun| {
        let functions = functions.as_ref().unwrap_or(&run.functions);
        let (graph, children) = match &graph {
            Some((graph, children)) => (graph, children),
            None => (&run.graph, &run.children),
        };
        if run.hypothetical {
            let message = "it is hypothetical: values of edges are none that an effect gave".to_owned();
            return Err(GraphTestError { code: Code::E0944, message });
        }
        let refused = std::iter::once(graph)
            .chain(children.values())
            .find_map(|graph| check(graph, functions, children).0.into_iter().next());
        if let Some(GraphFinding { rule, statement, message, .. }) = refused {
            let message = format!("the graph is refused: {} at {statement}: {message}", rule.as_str());
            return Err(GraphTestError { code: rule.code(), message });
        }
        let replayed = replay(graph, children, functions, &run.frontier);
        replayed
            .map(|(_, divergence)| (divergence, !run.frontier.is_open()))
            .map_err(|fault| GraphTestError { code: Code::E0935, message: fault.to_string() })
    };
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let tested = pool::each(&found, jobs, |(name, run)| {
        // A frontier file is read by the worker that replays it: reading takes as long as replaying.
        let (is_file, result) = match run {
            Untested::File => (true, read_frontier(name).map_err(untested).and_then(|run| one(&run))),
            Untested::Read { run, is_file } => {
                (*is_file, run.as_ref().as_ref().map_err(Clone::clone).and_then(one))
            }
        };
        let ((divergence, is_ended), error) = match result {
            Ok(tested) => (tested, None),
            Err(error) => ((None, false), Some(error)),
        };
        GraphTested { name: name.clone(), is_file, is_ended, divergence, error }
    });
    let answer = &GraphTestAnswer(tested);
    match global.format.as_deref().and_then(FindingsForm::parse) {
        None => out.answer(answer),
        Some(form) => out.findings(form, &GraphTestFindingsAnswer { form, answer }),
    }
}

/// The address of each run of a bundle. One that cannot be read is named as it is.
fn runs_of_bundle(path: String, desk: &mut dyn Desk) -> Vec<String> {
    let opened = Address::parse(&path).map_err(Problem::from).and_then(|address| desk.open(&address));
    match opened {
        Ok(source) if source.runs.len() > 1 => {
            source.runs.iter().map(|run| format!("{path}#{run}")).collect()
        }
        _ => vec![path],
    }
}

fn read_frontier(path: &str) -> Result<GraphRun> {
    let lines = files::read(path, json::DOCUMENT_SIZE_MAX)?;
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    // It is what dendrer printed, tagged forms included.
    let read = |line| json::parse_door(line).map(|value| tag::from_user_names(&value));
    let values = lines.map(read).collect::<std::result::Result<Vec<Value>, _>>();
    let values = values.map_err(|error| Failure::new(error.code(), error.to_string()))?;
    frontier::read_file(&values).map_err(|why| Failure::new(Code::E0203, why))
}

/// Frontier files and bundles that are named, and those in directories, at any depth.
fn paths(named: &[String]) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for path in named {
        if !Path::new(path).is_dir() {
            paths.push(path.clone());
            continue;
        }
        let (mut inside, mut left) = (Vec::new(), vec![path.clone()]);
        while let Some(directory) = left.pop() {
            let unread = |error| files::cannot_read(&directory, &error);
            for entry in std::fs::read_dir(&directory).map_err(unread)? {
                let entry = entry.map_err(unread)?;
                let path = entry.path().to_string_lossy().into_owned();
                // A link to a directory may lead back to one above it, and a directory with a dot is that of a program.
                if entry.file_type().map_err(unread)?.is_dir() {
                    left.extend((!entry.file_name().as_encoded_bytes().starts_with(b".")).then_some(path));
                } else if path.ends_with(".frontier") || path.ends_with(".dnd") {
                    inside.push(path);
                }
            }
        }
        inside.sort();
        paths.extend(inside);
    }
    Ok(paths)
}
