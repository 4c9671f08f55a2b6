//! Running a graph: every edge value goes through the door, and the run is closed good only after its replay gave the same output
//! (Mynd Labs research note R-001). An interrupted run is resumed from its record (design, 14.5).
//!
//! Rule: an effect is asked only after its request is on record, and never twice unless its first call has ended by itself or the
//! caller asks for it; test `a_graph_run_that_is_killed_goes_on_and_acts_once`.

mod lock;
mod past;
mod records;
mod resume;
mod runner;
mod start;
mod terms;

use std::collections::BTreeMap;

use dendrer_graph::form;
use dendrer_object::delta::{Delta, Op};
use dendrer_object::record::{Author, Record};
use dendrer_object::{EDGE, Intent, Pointer, RunName, Value};
use dendrer_store::Shared;

use crate::error::{Error, GraphRefused};
use crate::record::recorder::{Environment, Recorder};
use crate::repo::Repo;
use crate::run::frontier::{functions_of, graph_run};
use crate::run::trace::Trace;

use records::propose;
use runner::Runner;
use start::{beginning, redacted_inputs};

pub use terms::{AskEdge, EdgeEnd, EdgeFailure, EdgeNeed, GraphOutcome, GraphResume, GraphTerms, Unanswered};

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

/// Runs a graph: begins a run with it or resumes one, asks each edge's effect, records request and value, and closes the run
/// after a replay from the record. Edges that do not wait for each other are asked at once, unless they are effectful. If an effect
/// fails, that is on record and the run stays open.
pub fn run_graph(
    store: &Shared,
    terms: &GraphTerms<'_>,
    executor: &AskEdge<'_>,
    surroundings: Box<dyn Environment>,
) -> Result<GraphOutcome, Error> {
    if let Some(resume) = &terms.resume {
        return resume::go_on(store, terms, resume, executor, surroundings);
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
    terms.injects = true;
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
