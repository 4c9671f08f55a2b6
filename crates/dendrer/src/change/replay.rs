//! The question of `replay` as data.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer_graph::eval::{GraphValues, NodeFault};
use dendrer_graph::frontier::{
    DivergenceKind, FrontierDivergence, Substituted, replay as frontier_replay, substitute,
};
use dendrer_kernel::step::RunState;
use dendrer_object::{Code, Pointer, RunName, Value, question};

use crate::address::{Address, Position, state_path};
use crate::ask::replay::{Replayed, ReplayedTick, replay};
use crate::change::graph::inject;
use crate::problem::Problem;
use crate::repo::new_run::new_name;
use crate::run::declared;
use crate::run::frontier::{GraphRun, graph_run, is_graph};
use crate::run::trace::Trace;
use crate::source::{Asked, Desk, exclude, in_order};

dendrer_object::words! {
    /// Part of each tick that a replay lists.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum ReplayPrint {
        /// Nothing.
        #[default]
        None = "none",
        /// The state root.
        Hash = "hash",
        /// The state.
        State = "state",
    }
}

question! {
    /// Asks whether a run can be made again from its record
    pub struct ReplayQuestion: "replay-question" {
        /// The run, as an address
        pub run: String,
        /// The first tick that is listed
        pub from: Option<Position>,
        /// The last tick
        pub to: Option<Position>,
        /// Whether a divergence is a failure, as it is if neither is given
        pub strict: bool,
        /// Whether a divergence is reported and is no failure
        pub detect: bool,
        /// Whether each reduction is evaluated twice
        pub twice: bool,
        /// The part of each tick that is listed
        pub print: Option<ReplayPrint>,
        /// The only place of the states that are listed
        pub path: Option<String>,
        /// Other values of edges of a graph's run, by their paths
        pub set: BTreeMap<String, Value>,
        /// The name of a fork that is made with these values
        pub r#as: Option<String>,
        /// Whether a divergence of a graph's run is written into the casebook
        pub record: bool,
    }
}

/// The answer to a replay.
#[derive(Debug, Clone)]
pub enum ReplayReply {
    /// Ticks that are made again one by one.
    Ticks(Box<TicksToReplay>),
    /// A graph that was evaluated again.
    Graph(Box<GraphReplayed>),
}

/// The ticks of a run that a replay makes again.
#[derive(Debug, Clone)]
pub struct TicksToReplay {
    /// The run.
    pub trace: Trace,
    /// The last tick.
    pub to: u64,
    from: u64,
    twice: bool,
    print: ReplayPrint,
    path: Option<Pointer>,
}

impl TicksToReplay {
    /// Makes the states again, and hands over each tick, with what is listed of it.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the run cannot be read, or that of `take`.
    pub fn each(
        &self,
        take: &mut dyn FnMut(u64, Option<ReplayedTick>) -> Result<(), Problem>,
    ) -> Result<Replayed, Problem> {
        let mut taken = Ok(());
        let replayed = replay(&self.trace, self.to, self.twice, &mut |head| {
            let is_listed = head.tick() >= self.from && self.print != ReplayPrint::None;
            taken = take(head.tick(), is_listed.then(|| self.listed(head)));
            if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        taken.map(|()| replayed)
    }

    fn listed(&self, head: &RunState) -> ReplayedTick {
        let state = (self.print == ReplayPrint::State).then(|| {
            let value = self.path.as_ref().map_or(Some(head.state()), |path| path.get(head.state()));
            value.cloned().unwrap_or(Value::Null)
        });
        ReplayedTick { tick: head.tick(), root: head.state().digest(), state }
    }
}

/// The replay of a graph's run.
#[derive(Debug, Clone)]
pub struct GraphReplayed {
    /// The run.
    pub trace: Trace,
    /// The run, as its graph.
    pub run: GraphRun,
    /// The number of nodes that were computed again.
    pub nodes: u64,
    /// The output that was made.
    pub output: Option<Value>,
    /// The path of the repeat that ended it at its limit.
    pub limit: Option<String>,
    /// The first divergence.
    pub divergence: Option<FrontierDivergence>,
    /// The consequences of other values, if some were given.
    pub substituted: Option<Substituted>,
    /// The fork that was made of it.
    pub fork: Option<RunName>,
    /// Why the fork that was asked for was not made.
    pub not_made: Option<String>,
}

impl GraphReplayed {
    /// Whether the run did not end: it has no output, and at most a value that is not there yet.
    pub fn is_open(&self) -> bool {
        let is_missing = |one: &FrontierDivergence| one.kind == DivergenceKind::Missing;
        self.substituted.is_none()
            && self.run.frontier.is_open()
            && self.divergence.as_ref().is_none_or(is_missing)
    }
}

impl Asked for ReplayQuestion {
    type Reply = ReplayReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<ReplayReply, Problem> {
        self.ask_of(false, desk)
    }
}

impl ReplayQuestion {
    /// As [`Asked::ask`]; if tools are called again, the run of a graph is made again tick by tick.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if members do not go together, or the run cannot be read.
    pub fn ask_of(&self, calls_tools: bool, desk: &mut dyn Desk) -> Result<ReplayReply, Problem> {
        self.check()?;
        let address = Address::parse(&self.run)?;
        let source = desk.open(&address)?;
        let address = address.resolve(&source.store)?;
        let trace = source.trace(&address)?;
        desk.reads_run(&trace);
        let print = self.print.unwrap_or_default();
        let is_in_part = self.from.is_some() || self.to.is_some() || address.pos.is_some() || self.twice;
        let is_in_part = is_in_part || print != ReplayPrint::None || calls_tools;
        if is_graph(&trace) && !is_in_part {
            return Ok(ReplayReply::Graph(Box::new(self.graph(&trace, desk)?)));
        }
        if !self.set.is_empty() || self.record {
            let what = format!("{} is not the run of a graph, so it has no edges", trace.name());
            let problem = Problem::new(Code::E0938, what);
            return Err(problem.help(&["dendrer", "graph", "frontier", trace.name().as_str()]));
        }
        let from = self.from.as_ref().map_or(Ok(1), |position| position.tick(&trace))?;
        let to = self.to.as_ref().or(address.pos.as_ref());
        let to = to.map_or(Ok(trace.tip()), |position| position.tick(&trace))?;
        if self.from.is_some() {
            in_order(from, to)?;
        }
        let path = self.path.as_deref().map(state_path).transpose()?;
        path.iter().try_for_each(|path| declared::place(&[&trace], path))?;
        let ticks = TicksToReplay { trace, to, from, twice: self.twice, print, path };
        Ok(ReplayReply::Ticks(Box::new(ticks)))
    }

    /// Refuses members that do not go together.
    fn check(&self) -> Result<(), Problem> {
        let set = ("--set", !self.set.is_empty());
        exclude(("--detect", self.detect), &[("--strict", self.strict)])?;
        exclude(
            set,
            &[("--from", self.from.is_some()), ("--to", self.to.is_some()), ("--twice", self.twice)],
        )?;
        match self.r#as {
            Some(_) if !set.1 => Err(Problem::new(Code::E0106, "--as is for --set")),
            _ => Ok(()),
        }
    }

    /// Evaluates the graph of a run again over its recorded frontier, and over other values of its edges.
    fn graph(&self, trace: &Trace, desk: &mut dyn Desk) -> Result<GraphReplayed, Problem> {
        let run = graph_run(trace)?;
        let node = |fault: NodeFault| Problem::new(Code::E0935, fault.to_string());
        let made = frontier_replay(&run.graph, &run.children, &run.functions, &run.frontier);
        let (found, divergence) = match made {
            // Other values may be those that the node can be computed from.
            Err(_) if !self.set.is_empty() => (GraphValues::default(), None),
            made => made.map_err(node)?,
        };
        let mut replayed = GraphReplayed {
            trace: trace.clone(),
            run,
            nodes: found.nodes.len() as u64,
            output: found.output,
            limit: found.limit,
            divergence,
            substituted: None,
            fork: None,
            not_made: None,
        };
        if self.set.is_empty() || (replayed.divergence.is_some() && !replayed.is_open()) {
            return Ok(replayed);
        }
        let run = &replayed.run;
        let made = substitute(&run.graph, &run.children, &run.functions, &run.frontier, &self.set);
        let mut made = made.map_err(node)?;
        let is_due = |path: &String| made.found.edges.iter().any(|(asked, _)| asked.path == *path);
        self.set.keys().filter(|path| !is_due(path)).try_for_each(|path| known_edge(run, path))?;
        if let Some(name) = &self.r#as {
            let repo = desk.writable()?;
            let name = new_name(Some(name), "", repo.writer()?)?;
            let injected = inject(&repo, trace, run, name.clone(), &self.set)?;
            desk.close(repo)?;
            (made, replayed.not_made) = (injected.substituted, injected.not_made);
            replayed.fork = replayed.not_made.is_none().then_some(name);
        }
        replayed.divergence = None;
        replayed.nodes = (made.found.nodes.len() - made.failed.len()) as u64;
        replayed.output = made.found.output.clone();
        replayed.limit = made.found.limit.clone();
        replayed.substituted = Some(made);
        Ok(replayed)
    }
}

/// Refuses the path of an edge that a graph's run does not have.
///
/// # Errors
///
/// E0938.
pub fn known_edge(run: &GraphRun, path: &str) -> Result<(), Problem> {
    if run.frontier.edges.iter().any(|edge| edge.path == path) {
        return Ok(());
    }
    let problem = Problem::new(Code::E0938, format!("{} has no edge {path}", run.run));
    Err(problem.help(&["dendrer", "graph", "frontier", run.run.as_str()]))
}
