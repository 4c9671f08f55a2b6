//! The questions of `compare` and `heatmap` as data.

use dendrer_object::{Code, question};

use crate::address::Address;
use crate::ask::compare::{self, AgentComparison, HeatItem, HeatMetric};
use crate::problem::Problem;
use crate::run::causal;
use crate::source::{Asked, Desk, some_run};

question! {
    /// Asks how two agents of a run parted
    pub struct CompareQuestion: "compare-question" {
        /// An agent of a run, RUN:AGENT, or RUN:AGENT@TICK for its newest transition up to there
        pub a: String,
        /// Another agent of the same run
        pub b: String,
        /// Whether every node of both paths is verified and its state made again, however many there are
        pub check: bool,
    }

    /// Asks where the agents of runs branch, diverge, note anomalies or are unsure
    pub struct HeatmapQuestion: "heatmap-question" {
        /// The runs, as addresses
        pub runs: Vec<String>,
        /// The value of a node; its number of children if not given
        pub metric: Option<HeatMetric>,
        /// The number of nodes at most; 0 for all, 50 if not given
        pub limit: Option<u64>,
    }
}

/// The number of nodes if no limit is given.
const LIMIT: u64 = 50;

/// A heatmap of some runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Heatmap {
    /// The value of a node.
    pub metric: HeatMetric,
    /// The nodes, the highest value first.
    pub items: Vec<HeatItem>,
    /// How many nodes are listed at most; 0 for all.
    pub limit: u64,
}

impl Heatmap {
    /// Returns the nodes that are listed.
    pub fn listed(&self) -> &[HeatItem] {
        match self.limit {
            0 => &self.items,
            limit => &self.items[..self.items.len().min(limit as usize)],
        }
    }
}

impl Asked for CompareQuestion {
    type Reply = AgentComparison;

    fn ask(&self, desk: &mut dyn Desk) -> Result<AgentComparison, Problem> {
        let of = |text: &str| {
            Address::of_agent(text)?.map(|(address, agent)| (address, agent.to_owned())).ok_or_else(|| {
                // Two runs are compared by `diff`.
                Problem::new(Code::E0105, format!("{text} names no agent: RUN:AGENT or RUN:AGENT@TICK"))
                    .help(&["dendrer", "diff", &self.a, &self.b])
            })
        };
        let ((a_address, a), (b_address, b)) = (of(&self.a)?, of(&self.b)?);
        let source = desk.judged(&a_address)?;
        let run = desk.run_in(source, &a_address, "compare")?;
        let other = run.source.trace(&b_address.resolve(&run.source.store)?)?;
        compare::same_run(&run.trace, &other)?;
        desk.asks(&run.trace);
        let agents = [causal::agent_of(&run.trace, &a)?, causal::agent_of(&run.trace, &b)?];
        Ok(compare::compare(&run.trace, agents, self.check)?)
    }
}

impl Asked for HeatmapQuestion {
    type Reply = Heatmap;

    fn ask(&self, desk: &mut dyn Desk) -> Result<Heatmap, Problem> {
        some_run(&self.runs)?;
        let mut traces = Vec::with_capacity(self.runs.len());
        for text in &self.runs {
            let address = Address::parse(text)?;
            let source = desk.judged(&address)?;
            traces.push(source.trace(&address.resolve(&source.store)?)?);
        }
        let metric = self.metric.unwrap_or(HeatMetric::Branching);
        let items = compare::heatmap(&traces, metric)?;
        Ok(Heatmap { metric, items, limit: self.limit.unwrap_or(LIMIT) })
    }
}
