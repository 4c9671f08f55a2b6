//! The runtime receipt of a run (dendrer paper 7): BOOT, SPAWN, a line for every committed transition, DONE.
//!
//! Text of a trace is never printed as it is: every character that is not plain ASCII is spelt out.

use dendrer::ask::receipt::Receipt;
use dendrer::kernel::sealed;
use dendrer_object::{Record, Value};

use crate::answer::Line;
use crate::count;
use crate::row::came_from;

/// How many characters of a text stand in one line.
const WORDS_MAX: usize = 72;

/// Writes the lines before the first transition.
pub fn first_lines(receipt: &Receipt) -> Vec<Line> {
    let agents: Vec<String> = receipt.agents.iter().map(|agent| plain(agent)).collect();
    let number = count(agents.len() as u64, "agent", "agents");
    vec![
        format!("BOOT: goal=\"{}\"", plain(&receipt.goal)).into(),
        format!("SPAWN: {number} ({})", agents.join(", ")).into(),
        Line::from(""),
    ]
}

/// Writes the line of a transition of the run of a receipt.
pub fn record_line(receipt: &Receipt, tick: u64, record: &Record) -> Line {
    let progress = receipt.progress.as_ref().and_then(|progress| progress.get(&tick));
    line(tick, record, &record.content(), progress.copied()).into()
}

/// Writes the lines after the last transition.
pub fn last_lines(receipt: &Receipt) -> Vec<Line> {
    let artifact = receipt.artifact.as_deref().map_or("none".to_owned(), plain);
    let (ticks, verified) = (receipt.ticks, receipt.replayed == Ok(receipt.ticks));
    let done =
        format!("DONE: artifact={artifact} | replay_trace={ticks}_transitions | replay_verified={verified}");
    vec![Line::from(""), done.into()]
}

fn line(tick: u64, record: &Record, content: &Value, progress: Option<f64>) -> String {
    let type_name = record.header().type_name.as_ref().map_or("", |name| name.as_str());
    let columns: Vec<String> = [
        Some(format!("{type_name:<16}")),
        measure(content).map(|text| format!("{text:<16}")),
        words(content, progress),
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
fn words(content: &Value, progress: Option<f64>) -> Option<String> {
    let says = |name: &str| content.get("intent")?.get(name)?.as_str().map(plain);
    let noted: Vec<String> =
        progress.map(|by| format!("progress={by:+.2}")).into_iter().chain(says("outcome")).collect();
    if !noted.is_empty() {
        return Some(noted.join(" -> "));
    }
    if let Some((run, tick, reason)) = came_from(content) {
        let reason = reason.map(|reason| format!(" \"{}\"", plain(reason))).unwrap_or_default();
        return Some(format!("from {}@{tick}{reason}", plain(run)));
    }
    let anomaly = || {
        sealed::words(content.get("anomalies").and_then(Value::as_array)?.get(0)?).map(|words| plain(&words))
    };
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
