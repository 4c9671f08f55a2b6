//! Running a graph: every edge value goes through the door, and the run is closed good only after its replay gave the same output
//! (Mynd Labs research note R-001). An interrupted run is resumed from its record (design, 14.5).
//!
//! Rule: an effect is asked only after its request is on record, and never twice unless its first call has ended by itself or the
//! caller asks for it; test `a_graph_run_that_is_killed_goes_on_and_acts_once`.

mod inject;
mod lock;
mod past;
mod records;
mod resume;
mod runner;
mod start;
mod terms;

use dendrer_graph::form;
use dendrer_kernel::step::Stage;
use dendrer_store::Shared;

use crate::error::{Error, GraphRefused};
use crate::record::recorder::{Environment, Recorder};
use crate::repo::Repo;
use crate::run::frontier::functions_of;

use runner::Runner;
use start::{beginning, redacted_inputs};

pub use inject::{Injected, inject};
pub use start::{with_functions, with_hosts};
pub use terms::{
    AnswerCall, AskEdge, Callers, EdgeEnd, EdgeFailure, EdgeNeed, GraphOutcome, GraphResume, GraphTerms,
    Unanswered,
};

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
    let hosts = functions.hosts_of(terms.children.values().chain([terms.graph]));
    if let (Some(name), true) = (hosts.first(), recorder.head().stage() > Stage::Replay) {
        return Err(GraphRefused::HostStage((*name).to_owned()).into());
    }
    recorder.commit()?;
    let parts = (terms.graph, terms.children, &functions, &inputs);
    let mut runner = Runner::new(store, terms, parts, form::digest(&form), recorder)?;
    runner.advance()?;
    runner.run(executor)
}
