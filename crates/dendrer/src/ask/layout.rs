//! The matter of a picture of a run: transitions, a compiled graph, commitments, steps, or the forks.

use dendrer_object::{RunName, question};

use crate::address::{Address, Position};
use crate::ask::commitments::{CommitmentsAt, commitments};
use crate::ask::graphs;
use crate::ask::runs::{ListedRun, question::RunsQuestion};
use crate::ask::steps::question::{StepsQuestion, StepsReply};
use crate::ask::steps::{ComposeBy, Composition};
use crate::problem::Problem;
use crate::run::causal::Causal;
use crate::run::frontier::GraphRun;
use crate::run::trace::Trace;
use crate::source::{Asked, Desk};

dendrer_object::words! {
    /// The matter of a picture.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum PictureOf {
        /// Transitions, each after those it came from.
        #[default]
        Causal = "causal",
        /// The statements of the graph that the run was compiled from.
        Compiled = "compiled",
        /// Atoms and commitments with what supports, refines, or ends them.
        Commitments = "commitments",
        /// Steps of chains, by the step that each names.
        Steps = "steps",
        /// Runs, each after the one that it was forked from.
        Forks = "forks",
    }
}

question! {
    /// Asks for the places of a picture of a run
    pub struct LayoutQuestion: "layout-question" {
        /// The run, as an address
        pub run: String,
        /// The kind of the picture; the transitions if not given
        pub of: Option<PictureOf>,
        /// The last tick that is drawn
        pub at: Option<Position>,
        /// The only node that is drawn, with those that lead there and on
        pub focus: Option<String>,
        /// How many edges away from that node others are drawn; 3 if not given
        pub depth: Option<u64>,
    }
}

/// The run that a picture is of, and the last tick that is drawn.
#[derive(Debug)]
pub struct PicturePlace {
    /// The run.
    pub trace: Trace,
    /// The last tick.
    pub at: u64,
}

/// The matter of a picture, as it was read.
#[derive(Debug)]
pub enum LayoutReply {
    /// Transitions.
    Causal(Box<PicturePlace>, Causal),
    /// A compiled graph.
    Compiled(Box<GraphRun>),
    /// Commitments.
    Commitments(Box<CommitmentsAt>),
    /// Steps of a run.
    Steps(RunName, Composition),
    /// All runs of the source, and the one that is asked about.
    Forks(RunName, Vec<ListedRun>),
}

impl LayoutQuestion {
    fn place(&self, desk: &mut dyn Desk) -> Result<PicturePlace, Problem> {
        let address = Address::parse(&self.run)?;
        let source = desk.look(&address)?;
        let address = address.resolve(&source.store)?;
        let trace = source.trace(&address)?;
        desk.reads_run(&trace);
        let at = self.at.as_ref().or(address.pos.as_ref());
        let at = at.map_or(Ok(trace.tip()), |position| position.tick(&trace))?;
        Ok(PicturePlace { trace, at })
    }
}

impl Asked for LayoutQuestion {
    type Reply = LayoutReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<LayoutReply, Problem> {
        Ok(match self.of.unwrap_or_default() {
            PictureOf::Causal => {
                let place = self.place(desk)?;
                let causal = Causal::of(&place.trace, place.at)?;
                LayoutReply::Causal(Box::new(place), causal)
            }
            PictureOf::Compiled => LayoutReply::Compiled(Box::new(graphs::recorded(&self.run, desk)?)),
            PictureOf::Commitments => {
                let place = self.place(desk)?;
                LayoutReply::Commitments(Box::new(commitments((&place.trace, place.at))?))
            }
            PictureOf::Steps => {
                let question = StepsQuestion {
                    runs: vec![self.run.clone()],
                    compose: Some(ComposeBy::Trace),
                    ..StepsQuestion::default()
                };
                let run = self.place(desk)?.trace.name().clone();
                match question.ask(desk)? {
                    StepsReply::Composition(made) => LayoutReply::Steps(run, made),
                    StepsReply::Steps(_) => LayoutReply::Steps(run, Composition::default()),
                }
            }
            PictureOf::Forks => {
                let run = self.place(desk)?.trace.name().clone();
                let question = RunsQuestion { all: true, limit: Some(0), ..RunsQuestion::default() };
                LayoutReply::Forks(run, question.ask(desk)?.runs)
            }
        })
    }
}
