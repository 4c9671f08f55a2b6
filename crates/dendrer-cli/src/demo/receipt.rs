//! The runtime receipt of a run (dendrer paper 7): one line for every committed transition.
//!
//! What stands in a trace is never printed as it is: whatever a terminal could take for a command is spelt out.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::ControlFlow;

use dendrer::{Error, Trace, verify};
use dendrer_object::{Record, Value};

/// How many characters of a text stand in one line.
const WORDS_MAX: usize = 72;

/// Writes the receipt: BOOT, SPAWN, a TICK line for each transition, DONE. The run is replayed for the last line.
pub(crate) fn receipt(trace: &Trace<'_>) -> Result<String, Error> {
    let start = trace.start().content();
    let goal = start.get("goal").and_then(Value::as_str).unwrap_or_default();
    let mut lines = String::new();
    let mut seen: Vec<String> = Vec::new();
    let mut artifact = None;
    trace.for_each(1, trace.tip(), &mut |tick, record| {
        let content = record.content();
        let agent = content.get("agent_id").and_then(Value::as_str).unwrap_or_default();
        if agent != "kernel" && !seen.iter().any(|known| known == agent) {
            seen.push(agent.to_owned());
        }
        let named = content.get("intent").and_then(|intent| intent.get("artifact")).and_then(Value::as_str);
        artifact = named.map(str::to_owned).or(artifact.take());
        line(&mut lines, tick, &record, &content);
        ControlFlow::Continue(())
    })?;
    let agents = agents(&start, seen);
    let replayed = verify::replay(trace.store(), trace.name())? == Ok(trace.tip());
    let artifact = artifact.as_deref().map_or("none".to_owned(), plain);
    Ok(format!(
        "BOOT: goal=\"{}\"\nSPAWN: {} agents ({})\n\n{lines}\nDONE: artifact={artifact} | replay_trace={}_transitions | replay_verified={replayed}\n",
        plain(goal),
        agents.len(),
        agents.join(", "),
        trace.tip(),
    ))
}

/// The agents that the run was begun with, and whoever else acted.
fn agents(start: &Value, seen: Vec<String>) -> Vec<String> {
    let begun = start.get("meta").and_then(|meta| meta.get("agents")).and_then(Value::as_array);
    let begun = begun.into_iter().flat_map(|list| list.iter()).filter_map(Value::as_str).map(str::to_owned);
    let mut known = BTreeSet::new();
    begun.chain(seen).filter(|agent| known.insert(agent.clone())).map(|agent| plain(&agent)).collect()
}

fn line(lines: &mut String, tick: u64, record: &Record, content: &Value) {
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
    writeln!(lines, "TICK {tick:02}: {}", line.trim_end()).expect("a string takes what is written");
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
