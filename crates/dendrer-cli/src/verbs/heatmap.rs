//! `dendrer heatmap`: where the causal graph of runs branches, diverges, or is unsure.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::ask::compare::HeatMetric;
use dendrer::ask::compare::question::HeatmapQuestion;

use crate::context::desk;
use crate::failure::Result;
use crate::global::{Global, word};
use crate::offers;
use crate::out::Out;

/// `heatmap`
#[derive(Debug, Args)]
pub(crate) struct Heatmap {
    /// The runs
    #[arg(required = true, add = ArgValueCompleter::new(offers::runs))]
    pub(crate) runs: Vec<String>,
    /// What is shown: children of a node (branching), units that differ between them (divergence), anomalies (anomaly), or 1
    /// minus the confidence (confidence)
    #[arg(long, default_value = "branching", value_parser = word::<HeatMetric>(METRICS), hide_possible_values = true)]
    pub(crate) metric: HeatMetric,
    /// At most N; 0 for all
    #[arg(short = 'n', long = "limit", default_value_t = 50)]
    pub(crate) limit: u64,
}

/// The words for what is shown.
const METRICS: &[(&str, &str)] = &[
    ("branching", "Children of a node"),
    ("divergence", "Units that differ between the children"),
    ("anomaly", "Anomalies"),
    ("confidence", "1 minus the confidence"),
];

pub(crate) fn run(global: &Global, args: &Heatmap, out: &mut Out) -> Result {
    let question =
        HeatmapQuestion { runs: args.runs.clone(), metric: Some(args.metric), limit: Some(args.limit) };
    desk::answer(global, &question, out)
}
