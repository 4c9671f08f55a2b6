//! The graph that a run was compiled from, and its recorded frontier (Mynd Labs research note R-001). Of any other run, the requests
//! and answers on record.

use dendrer_object::{RunName, question};

use crate::address::Address;
use crate::problem::Problem;
use crate::run::calls::{RecordedCall, calls_of, edges_without_value};
use crate::run::frontier::{GraphRun, graph_run, is_graph};
use crate::run::trace::Trace;
use crate::source::{Asked, Desk};

question! {
    /// Asks for the graph of a run
    pub struct GraphShowQuestion: "graph-show-question" {
        /// The run of a graph
        pub run: String,
    }
}

question! {
    /// Asks for the recorded edge values of the run of a graph, or the requests and answers of another run
    pub struct GraphFrontierQuestion: "graph-frontier-question" {
        /// The run
        pub run: String,
    }
}

/// Reads the graph and the recorded edge values of a run.
///
/// # Errors
///
/// A [`Problem`] if the run cannot be read, or is not one of a graph.
pub fn recorded(run: &str, desk: &mut dyn Desk) -> Result<GraphRun, Problem> {
    Ok(graph_run(&read(run, desk)?)?)
}

fn read(run: &str, desk: &mut dyn Desk) -> Result<Trace, Problem> {
    let address = Address::parse(run)?;
    let source = desk.open(&address)?;
    let trace = source.trace(&address.resolve(&source.store)?)?;
    desk.reads_run(&trace);
    Ok(trace)
}

/// The answer to [`GraphFrontierQuestion`].
#[derive(Debug, Clone)]
pub enum FrontierReply {
    /// The frontier of a graph's run. If it did not end, the requests of edges without a value.
    Graph(Box<GraphRun>, Vec<RecordedCall>),
    /// The requests and answers of a run of no graph, in the order of the record.
    Calls(RunName, Vec<RecordedCall>),
}

impl Asked for GraphShowQuestion {
    type Reply = GraphRun;

    fn ask(&self, desk: &mut dyn Desk) -> Result<GraphRun, Problem> {
        recorded(&self.run, desk)
    }
}

impl Asked for GraphFrontierQuestion {
    type Reply = FrontierReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<FrontierReply, Problem> {
        let trace = read(&self.run, desk)?;
        Ok(match is_graph(&trace) {
            true => {
                let run = graph_run(&trace)?;
                let calls =
                    if run.frontier.is_open() { edges_without_value(&trace, &run)? } else { Vec::new() };
                FrontierReply::Graph(Box::new(run), calls)
            }
            false => FrontierReply::Calls(trace.name().clone(), calls_of(&trace)?),
        })
    }
}
