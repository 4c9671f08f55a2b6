//! The receipt of a run: its goal, its agents, its artifact, and whether it replays.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use dendrer_kernel::progress::{Evaluation, Signal};
use dendrer_kernel::replay::ReplayError;
use dendrer_object::Value;

use crate::ask::regression::{Metric, MetricReading, readings};
use crate::error::Error;
use crate::evidence::verify;
use crate::run::trace::Trace;

/// What a receipt says besides a line for each transition.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// The goal; empty if the run names none.
    pub goal: String,
    /// The agents that the run began with, then the others that acted.
    pub agents: Vec<String>,
    /// The last artifact that was named.
    pub artifact: Option<String>,
    /// By how much each tick changed the composite progress signal; `None` if the pack of the run declares no progress.
    pub progress: Option<BTreeMap<u64, f64>>,
    /// How many ticks the run has.
    pub ticks: u64,
    /// How many ticks were replayed, or why the replay ended early.
    pub replayed: Result<u64, ReplayError>,
}

/// Reads and replays a run for its receipt.
pub fn receipt(trace: &Trace) -> Result<Receipt, Error> {
    let start = trace.start().content();
    let begun = start.get("meta").and_then(|meta| meta.get("agents")).and_then(Value::as_array);
    let begun = begun.into_iter().flat_map(|list| list.iter()).filter_map(Value::as_str);
    let mut agents: Vec<String> = begun.map(str::to_owned).collect();
    let mut known: BTreeSet<String> = agents.iter().cloned().collect();
    let mut artifact = None;
    trace.for_each(1, trace.tip(), &mut |_, record| {
        let content = record.content();
        let agent = content.get("agent_id").and_then(Value::as_str).unwrap_or_default();
        if !agent.is_empty() && agent != "kernel" && known.insert(agent.to_owned()) {
            agents.push(agent.to_owned());
        }
        let is_written =
            record.header().type_name.as_ref().is_some_and(|name| name.as_str() == "artifact.write");
        let says = |name: &str| content.get("intent")?.get(name)?.as_str();
        // An artifact that is written is named by its path if it has no other name.
        let named = says("artifact").or_else(|| says("path").filter(|_| is_written));
        artifact = named.map(str::to_owned).or(artifact.take());
        ControlFlow::Continue(())
    })?;
    let replayed = verify::replay(trace.store(), trace.name())?;
    let progress = progress(trace)?;
    let goal = start.get("goal").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Receipt { goal, agents, artifact, progress, ticks: trace.tip(), replayed })
}

/// Computes the changes of the progress signal by the plan of the pack; a tick without a score has no change.
fn progress(trace: &Trace) -> Result<Option<BTreeMap<u64, f64>>, Error> {
    let pack = crate::run::pack::of_run(trace)?;
    let signal = Signal::Progress.as_str();
    let Some(metric) = pack.as_ref().and_then(|pack| Metric::find(pack, signal)) else { return Ok(None) };
    let said = readings(trace, &metric, 0, trace.tip())?;
    let score = |said: &Evaluation| if let Evaluation::Ok(score) = said { Some(*score) } else { None };
    let change = |pair: &[MetricReading]| Some((pair[1].tick, score(&pair[1].said)? - score(&pair[0].said)?));
    Ok(Some(said.windows(2).filter_map(change).collect()))
}
