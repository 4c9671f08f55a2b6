//! Running a graph: every edge value goes through the door, and the run is closed good only after its replay gave the same output
//! (Mynd Labs research note R-001). A run that was interrupted goes on from its record (design, 14.5).
//!
//! Rule: an effect is asked only after its request is on record, and never twice unless its first call has ended by itself or the
//! caller asks for it; test `a_graph_run_that_is_killed_goes_on_and_acts_once`.

mod lock;
mod past;
mod records;
mod runner;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_graph::eval::EdgeRequest;
use dendrer_graph::{Graph, form};
use dendrer_kernel::step::{Outcome, Stage, Start};
use dendrer_object::delta::{Delta, Op};
use dendrer_object::record::{Author, Record};
use dendrer_object::value::first_difference;
use dendrer_object::{Digest, EDGE, Intent, Object, Pointer, REDACTION, RunName, Value};
use dendrer_store::Shared;

use crate::error::{Error, GraphRefused};
use crate::pack::{Files, Source};
use crate::record::recorder::{Environment, Recorder};
use crate::record::redacted;
use crate::redact::{Redactor, TakenSecrets};
use crate::repo::Repo;
use crate::run::frontier::{functions_of, graph_run};
use crate::run::trace::Trace;

use runner::Runner;

/// Asks an effect for the value of an edge.
pub type AskEdge<'e> = dyn Fn(&EdgeRequest) -> Result<Value, EdgeFailure> + Sync + 'e;

dendrer_object::words! {
    /// How the call of an effect ended that brought no value.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum EdgeEnd {
        /// It ended by itself: a command by its own exit code, a service by a status.
        Answered = "answered",
        /// A signal ended it, so that it may have acted in part.
        Killed = "killed",
        /// It was ended after the time that its tool may take.
        Timeout = "timeout",
        /// The connection was cut before the answer was there.
        Cut = "cut",
        /// It never began.
        NoStart = "no_start",
    }
}

/// Why an effect brought no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeFailure {
    /// The reason, in a sentence.
    pub why: String,
    /// The exit code of a command.
    pub exit: Option<i32>,
    /// The signal that ended a command.
    pub signal: Option<i32>,
    /// What a command wrote to stderr last. The end of it is on record, after secrets were taken out.
    pub stderr: Option<String>,
    /// How the call ended.
    pub ended: EdgeEnd,
}

impl EdgeFailure {
    /// A failure without an exit code.
    pub fn new(ended: EdgeEnd, why: impl Into<String>) -> EdgeFailure {
        EdgeFailure { why: why.into(), exit: None, signal: None, stderr: None, ended }
    }
}

/// How a graph is run.
#[derive(Debug)]
pub struct GraphTerms<'t> {
    /// The run's id.
    pub run: RunName,
    /// The graph.
    pub graph: &'t Graph,
    /// The graphs that it runs, by name.
    pub children: &'t BTreeMap<String, Graph>,
    /// The pack.
    pub pack: &'t Source,
    /// The inputs, by name. A run that goes on has those of its record, and these must be the same.
    pub inputs: BTreeMap<String, Value>,
    /// The stage at which it is recorded; that which the pack asks for if not given.
    pub stage: Option<Stage>,
    /// Takes secrets out of inputs and answers. The graph is given the redacted values, so that its replay is the same.
    pub redactor: Option<Arc<Redactor>>,
    /// How a run that is on record goes on; `None` begins a new one.
    pub resume: Option<GraphResume>,
}

/// How the run of a graph goes on that was interrupted.
#[derive(Debug, Clone, Default)]
pub struct GraphResume {
    /// Paths of edges that are asked again, though they may have acted.
    pub ask_again: BTreeSet<String>,
    /// Values of edges that were found out by hand, by path.
    pub set: BTreeMap<String, Value>,
    /// The effects that there is an executor for.
    pub answered: BTreeSet<String>,
}

impl GraphTerms<'_> {
    /// Notes on a record by which rules it was redacted. A value that is computed from redacted values has no secrets.
    fn noted(&self, intent: Intent, taken: &TakenSecrets) -> Intent {
        match &self.redactor {
            Some(redactor) => intent.carrying(REDACTION, redacted::sealed(redactor, taken)),
            None => intent,
        }
    }

    /// A value without its secrets.
    fn clean(&self, value: Value) -> (Value, TakenSecrets) {
        match &self.redactor {
            Some(redactor) => redactor.value(&value),
            None => (value, TakenSecrets::default()),
        }
    }

    /// A text without its secrets.
    fn clean_text(&self, text: &str) -> String {
        self.redactor.as_ref().map_or_else(|| text.to_owned(), |redactor| redactor.text(text).0)
    }
}

dendrer_object::words! {
    /// Why it is not known whether an effect has acted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum NoAnswer {
        /// Its request is on record, and nothing else.
        NoAnswer = "no_answer",
        /// A signal or a cut connection ended its call.
        Killed = "killed",
        /// Its call took longer than its tool may take.
        Timeout = "timeout",
    }
}

/// An effectful edge of which it is not known whether it has acted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeNeed {
    /// Its path.
    pub path: String,
    /// The effect.
    pub call: String,
    /// Why it is not known.
    pub why: NoAnswer,
}

/// A graph that was run.
#[derive(Debug, Clone)]
pub struct GraphOutcome {
    /// The run.
    pub run: RunName,
    /// The digest of the graph.
    pub digest: Digest,
    /// The number of nodes that have a value.
    pub nodes: u64,
    /// The number of edges that have one.
    pub edges: u64,
    /// The output; `None` if the run came to a limit, or is not closed.
    pub output: Option<Value>,
    /// The path of the repeat that came to its limit and closed the run.
    pub limit: Option<String>,
    /// The edges for which the caller must decide before the run goes on; empty if it is closed.
    pub needs: Vec<EdgeNeed>,
    /// The number of edges that were asked by this call.
    pub asked: u64,
}

impl GraphOutcome {
    /// The status with which the run was closed; `None` if it is open.
    pub fn closed(&self) -> Option<&'static str> {
        match (self.needs.is_empty(), &self.limit) {
            (false, _) => None,
            (true, Some(_)) => Some("limit"),
            (true, None) => Some("good"),
        }
    }
}

impl Repo {
    /// Runs a graph, and records its frontier. One process at a time writes a run.
    ///
    /// # Errors
    ///
    /// E0943 if another process runs it.
    pub fn run_graph(&self, terms: &GraphTerms<'_>, executor: &AskEdge<'_>) -> Result<GraphOutcome, Error> {
        let _lock = self.dir().map(|dir| lock::take(dir, &terms.run)).transpose()?;
        run_graph(self.writer()?, terms, executor, self.environment())
    }
}

/// Runs a graph: begins a run with it or goes on with one, asks each edge's effect, records request and value, and closes the run
/// after a replay from the record. Edges that do not wait for each other are asked at once, unless they are effectful. If an effect
/// fails, that is on record and the run stays open.
pub fn run_graph(
    store: &Shared,
    terms: &GraphTerms<'_>,
    executor: &AskEdge<'_>,
    surroundings: Box<dyn Environment>,
) -> Result<GraphOutcome, Error> {
    if let Some(resume) = &terms.resume {
        return past::go_on(store, terms, resume, executor, surroundings);
    }
    if let Some(input) = terms.graph.inputs().into_iter().find(|input| !terms.inputs.contains_key(input)) {
        return Err(GraphRefused::NoInput(input).into());
    }
    let form = form::to_value(terms.graph, terms.children);
    let inputs = redacted_inputs(terms, &form)?;
    let functions = functions_of(terms.pack.pack.value());
    let start = beginning(terms, &form, &inputs)?;
    let mut recorder = Recorder::begin(store, &start, surroundings)?;
    recorder.commit()?;
    let parts = (terms.graph, terms.children, &functions, &inputs);
    let mut runner = Runner::new(store, terms, parts, form::digest(&form), recorder)?;
    runner.advance()?;
    runner.run(executor)
}

/// The start of a run, as it is recorded.
fn beginning(terms: &GraphTerms<'_>, form: &Value, inputs: &BTreeMap<String, Value>) -> Result<Start, Error> {
    let mut start =
        with_places(terms.pack)?.bind(Start { stage: terms.stage, ..Start::new(terms.run.clone()) })?;
    start.graph = Some(form.clone());
    let given = inputs.iter().map(|(name, value)| (name.as_str(), value.clone()));
    start.meta = Some(Value::record([("inputs", Value::record(given))]));
    Ok(match &terms.redactor {
        Some(redactor) => redacted::start(redactor, &start),
        None => start,
    })
}

/// The inputs without secrets. The graph is the program, so one with a secret in it is refused.
fn redacted_inputs(terms: &GraphTerms<'_>, form: &Value) -> Result<BTreeMap<String, Value>, GraphRefused> {
    let mut inputs = terms.inputs.clone();
    let Some(redactor) = &terms.redactor else { return Ok(inputs) };
    if let Some(held) = first_difference(form, &redactor.value(form).0) {
        return Err(GraphRefused::HoldsSecret(held.path.dotted()));
    }
    for (name, value) in &mut inputs {
        let named = redactor.value(&Value::record([(name.as_str(), value.clone())])).0;
        *value = named.get(name).cloned().unwrap_or(Value::Null);
    }
    Ok(inputs)
}

/// The places of the state that a graph writes.
const PLACES: [&str; 3] = ["edges", "nodes", "output"];

/// A pack under which a graph brings the changes of state itself, and which declares what it writes.
fn with_places(pack: &Source) -> Result<Source, Error> {
    let mut value = pack.pack.value().as_object().cloned().unwrap_or_default();
    let has_rules = value.get("rules").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    if has_rules || value.get("reducer").is_some_and(|reducer| reducer.as_str() != Some("delta/1")) {
        return Err(GraphRefused::Rules.into());
    }
    value.set("reducer", Value::from("delta/1"));
    let mut state = value.get("state").and_then(Value::as_object).cloned().unwrap_or_else(Object::default);
    for place in PLACES.into_iter().filter(|place| !state.contains_key(place)).collect::<Vec<_>>() {
        // The places that a graph computes belong to the runtime.
        state.set(place, Value::record([("writers", Value::array([Value::from("runtime")]))]));
    }
    value.set("state", Value::Object(state));
    let value = Value::Object(value);
    let text = crate::pack::text_of(&value);
    let read = crate::pack::read_with(text.as_bytes(), Files::Of(&value));
    read.map_err(|problems| {
        GraphRefused::Pack(problems.first().map(|one| one.message.clone()).unwrap_or_default()).into()
    })
}

/// Proposes what the runtime writes; one that the door refuses is an error.
fn propose(recorder: &mut Recorder, intent: &Intent, path: &str) -> Result<Record, Error> {
    match recorder.propose(intent)? {
        Outcome::Committed(record) | Outcome::Violated { record, .. } => Ok(record),
        Outcome::Refused(refused) => {
            recorder.commit()?;
            let (code, why) = (refused.reason.code(), refused.reason.to_string());
            Err(GraphRefused::Turned { path: path.to_owned(), code, why }.into())
        }
    }
}

/// Forks the run of a graph before the first of some edges, with another value of each: an injection.
pub fn inject(
    repo: &Repo,
    trace: &Trace,
    name: RunName,
    others: &BTreeMap<String, Value>,
) -> Result<Record, Error> {
    let recorded = graph_run(trace)?;
    let mut ticks = Vec::with_capacity(others.len());
    for path in others.keys() {
        let tick = recorded.ticks.get(path).copied();
        ticks.push(
            tick.ok_or_else(|| GraphRefused::NoEdge { run: trace.name().clone(), path: path.clone() })?,
        );
    }
    ticks.sort_unstable();
    let first = ticks.first().copied().unwrap_or(trace.tip());
    let mut terms = crate::change::fork::ForkTerms::new(name);
    terms.reason = Some("other values of edges".into());
    let (mut recorder, _) = repo.fork(trace, first - 1, &terms)?;
    let mut last = None;
    for tick in ticks {
        let content = trace.record(tick)?.content();
        let path = content
            .get(EDGE)
            .and_then(|edge| edge.get("path")?.as_str().map(str::to_owned))
            .unwrap_or_default();
        let value = others.get(&path).cloned().unwrap_or(Value::Null);
        let agent = content.get("agent_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut intent = Intent::new("action.result".parse().expect("a type of the ontology"), &agent);
        intent.author = Author::Runtime;
        let member = |name: &str| content.get(name).cloned().unwrap_or(Value::Null);
        let set = Op::set(Pointer::of(["edges", &path]), value.clone());
        let intent = intent
            .with("action", member("action"))
            .carrying(EDGE, member(EDGE))
            .with("fork_type", Value::from("injection"))
            .with("result", Value::record([("output", value), ("status", Value::from("ok"))]))
            .with_delta(Delta(vec![set]));
        last = Some(propose(&mut recorder, &intent, &path)?);
    }
    recorder.commit()?;
    last.ok_or_else(|| GraphRefused::NoEdge { run: trace.name().clone(), path: String::new() }.into())
}
