//! The graph that a run was compiled from, and its recorded frontier (Mynd Labs research note R-001).

use dendrer_object::question;

use crate::address::Address;
use crate::problem::Problem;
use crate::run::frontier::{GraphRun, graph_run};
use crate::source::{Asked, Desk};

question! {
    /// Asks for the graph of a run
    pub struct GraphShowQuestion: "graph-show-question" {
        /// The run of a graph
        pub run: String,
    }
}

question! {
    /// Asks for the recorded edge values of the run of a graph
    pub struct GraphFrontierQuestion: "graph-frontier-question" {
        /// The run of a graph
        pub run: String,
    }
}

/// Reads the graph and the recorded edge values of a run.
///
/// # Errors
///
/// A [`Problem`] if the run cannot be read, or is not one of a graph.
pub fn recorded(run: &str, desk: &mut dyn Desk) -> Result<GraphRun, Problem> {
    let address = Address::parse(run)?;
    let source = desk.open(&address)?;
    let trace = source.trace(&address.resolve(&source.store)?)?;
    desk.reads_run(&trace);
    Ok(graph_run(&trace)?)
}

impl Asked for GraphShowQuestion {
    type Reply = GraphRun;

    fn ask(&self, desk: &mut dyn Desk) -> Result<GraphRun, Problem> {
        recorded(&self.run, desk)
    }
}

impl Asked for GraphFrontierQuestion {
    type Reply = GraphRun;

    fn ask(&self, desk: &mut dyn Desk) -> Result<GraphRun, Problem> {
        recorded(&self.run, desk)
    }
}
