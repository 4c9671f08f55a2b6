//! `dendrer heatmap`: where the causal graph of runs branches, diverges, or is unsure.

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use dendrer::address::Address;
use dendrer::ask::compare::{self, HeatMetric};
use dendrer_view::compare::HeatmapAnswer;

use crate::context;
use crate::failure::Result;
use crate::global::Global;
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
    #[arg(long, value_enum, default_value = "branching", hide_possible_values = true)]
    pub(crate) metric: MetricChoice,
    /// At most N; 0 for all
    #[arg(short = 'n', long = "limit", default_value_t = 50)]
    pub(crate) limit: usize,
}

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricChoice {
    /// Children of a node.
    Branching,
    /// Units that differ between the children.
    Divergence,
    /// Anomalies.
    Anomaly,
    /// 1 minus the confidence.
    Confidence,
}

pub(crate) fn run(global: &Global, args: &Heatmap, out: &mut Out) -> Result {
    let metric = match args.metric {
        MetricChoice::Branching => HeatMetric::Branching,
        MetricChoice::Divergence => HeatMetric::Divergence,
        MetricChoice::Anomaly => HeatMetric::Anomaly,
        MetricChoice::Confidence => HeatMetric::Confidence,
    };
    let mut traces = Vec::with_capacity(args.runs.len());
    for text in &args.runs {
        let rev = Address::parse(text)?;
        let source = context::sound(global, &rev, out)?;
        traces.push(source.trace(&rev.resolve(&source.store)?)?);
    }
    let items = compare::heatmap(&traces, metric)?;
    out.answer(&HeatmapAnswer { metric, items: &items, limit: args.limit })
}
