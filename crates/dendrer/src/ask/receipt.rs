//! The receipt of a run: its goal, its agents, its artifact, and whether it replays.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use dendrer_kernel::replay::ReplayError;
use dendrer_object::Value;

use crate::{Error, Trace, verify};

/// What a receipt says besides a line for each transition.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// The goal; empty if the run names none.
    pub goal: String,
    /// The agents that the run began with, then the others that acted.
    pub agents: Vec<String>,
    /// The last artifact that was named.
    pub artifact: Option<String>,
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
        let named = content.get("intent").and_then(|intent| intent.get("artifact")).and_then(Value::as_str);
        artifact = named.map(str::to_owned).or(artifact.take());
        ControlFlow::Continue(())
    })?;
    let replayed = verify::replay(trace.store(), trace.name())?;
    let goal = start.get("goal").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Receipt { goal, agents, artifact, ticks: trace.tip(), replayed })
}
