//! The runtime receipt of a run (dendrer paper 7): BOOT, SPAWN, a line for every committed transition, DONE.
//!
//! What stands in a trace is never printed as it is: whatever is not plain ASCII is spelt out.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use dendrer::kernel::replay::ReplayError;
use dendrer::{Error, Trace, verify};
use dendrer_object::{Record, Value};

use crate::count;
use crate::log::came_from;

/// How many characters of a text stand in one line.
const WORDS_MAX: usize = 72;

/// Hands over the lines of the receipt until `f` breaks. The run is replayed for the last line; what came out of
/// that is returned, as the number of ticks or the reason why not.
pub fn receipt(
    trace: &Trace,
    f: &mut dyn FnMut(&str) -> ControlFlow<()>,
) -> Result<Result<u64, ReplayError>, Error> {
    let start = trace.start().content();
    let goal = start.get("goal").and_then(Value::as_str).unwrap_or_default();
    let (agents, artifact) = agents(trace, &start)?;
    let replayed = verify::replay(trace.store(), trace.name())?;
    let head = [
        format!("BOOT: goal=\"{}\"", plain(goal)),
        format!("SPAWN: {} ({})", count(agents.len() as u64, "agent", "agents"), agents.join(", ")),
        String::new(),
    ];
    let mut go_on = head.iter().try_for_each(|line| f(line));
    if go_on.is_continue() {
        trace.for_each(1, trace.tip(), &mut |tick, record| {
            go_on = f(&line(tick, &record, &record.content()));
            go_on
        })?;
    }
    if go_on.is_continue() {
        let done = format!(
            "DONE: artifact={} | replay_trace={}_transitions | replay_verified={}",
            artifact.as_deref().map_or("none".to_owned(), plain),
            trace.tip(),
            replayed == Ok(trace.tip())
        );
        let _ = ["", &done].iter().try_for_each(|line| f(line));
    }
    Ok(replayed)
}

/// The agents that the run was begun with and whoever else acted, and the last artifact that was named.
fn agents(trace: &Trace, start: &Value) -> Result<(Vec<String>, Option<String>), Error> {
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
    Ok((agents.iter().map(|agent| plain(agent)).collect(), artifact))
}

fn line(tick: u64, record: &Record, content: &Value) -> String {
    let type_name = record.header().type_name.as_ref().map_or("", |name| name.as_str());
    let columns: Vec<String> = [
        Some(format!("{type_name:<16}")),
        measure(content).map(|text| format!("{text:<16}")),
        words(content),
    ]
    .into_iter()
    .flatten()
    .collect();
    let line = columns.join(" | ");
    format!("TICK {tick:02}: {}", line.trim_end())
}
/// The second column: how sure the agent was, or how it came out.
fn measure(content: &Value) -> Option<String> {
    let at = |outer: &str, inner: &str| content.get(outer)?.get(inner).cloned();
    if let Some(confidence) = at("intent", "confidence").and_then(|value| value.as_f64()) {
        return Some(format!("confidence={confidence:.2}"));
    }
    let error = content.get("result").and_then(|result| result.get("error")?.get("kind")).cloned();
    let anomaly =
        content.get("anomalies").and_then(Value::as_array).and_then(|list| list.get(0)?.get("kind")).cloned();
    let word = error.or_else(|| at("result", "status")).or_else(|| at("policy", "decision")).or(anomaly)?;
    Some(plain(word.as_str()?))
}

/// The third column: how much nearer the goal came, and what came of the step; else what it says.
fn words(content: &Value) -> Option<String> {
    let says = |name: &str| content.get("intent")?.get(name)?.as_str().map(plain);
    let progress = content.get("metrics").and_then(|metrics| metrics.get("progress_delta")?.as_f64());
    let noted: Vec<String> =
        progress.map(|by| format!("progress={by:+.2}")).into_iter().chain(says("outcome")).collect();
    if !noted.is_empty() {
        return Some(noted.join(" -> "));
    }
    if let Some((run, tick, reason)) = came_from(content) {
        let reason = reason.map(|reason| format!(" \"{}\"", plain(reason))).unwrap_or_default();
        return Some(format!("from {}@{tick}{reason}", plain(run)));
    }
    let anomaly =
        || content.get("anomalies").and_then(Value::as_array)?.get(0)?.get("message")?.as_str().map(plain);
    let tool = || content.get("action").and_then(|action| action.get("tool")?.as_str()).map(plain);
    says("description").or_else(tool).or_else(anomaly)
}

/// Spells out what is not plain text, and cuts what is long.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == WORDS_MAX {
            out.push_str("...");
            break;
        }
        match c {
            ' ' | '!'..='[' | ']'..='~' => out.push(c),
            other => out.extend(other.escape_debug()),
        }
    }
    out
}
