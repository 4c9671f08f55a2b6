//! Observations of Langfuse: a list, lines, or the download of a trace.

use super::model::{Dice, Model, Said, output};
use super::quoted;
use super::traces::{Dialect, Kind, Span};

pub(super) const DIALECT: Dialect =
    Dialect { names_agents: true, format: "langfuse", failed, seen: |how| output(how / 16).1, write };

fn is_error(how: u64) -> bool {
    (how / 20).is_multiple_of(3)
}

fn failed(how: u64) -> bool {
    is_error(how) || output(how / 16).1
}

fn message(model: &Model, at: usize) -> String {
    match &model.entries[at].said {
        Said::Model { text, calls, .. } => {
            let content = text.map_or("null".to_owned(), |_| quoted(model.words(at)));
            let calls: Vec<String> = model.calls[calls.clone()]
                .iter()
                .map(|call| {
                    let (id, n, tool) = (call.id.as_deref().unwrap_or_default(), call.params, call.tool);
                    format!(
                        r#"{{"id":"{id}","type":"function","function":{{"name":"{tool}","arguments":"{{\"n\":{n}}}"}}}}"#
                    )
                })
                .collect();
            let calls = if calls.is_empty() {
                String::new()
            } else {
                format!(r#","tool_calls":[{}]"#, calls.join(","))
            };
            format!(r#"{{"role":"assistant","content":{content}{calls}}}"#)
        }
        Said::Result { call, .. } => format!(
            r#"{{"role":"tool","tool_call_id":"{}","content":{}}}"#,
            model.calls[*call].id.as_deref().unwrap_or_default(),
            quoted(&output(model.entries[at].how / 16).0)
        ),
        _ => format!(r#"{{"role":"user","content":{}}}"#, quoted(model.words(at))),
    }
}

fn observation(model: &Model, span: &Span, has_capitals: bool) -> String {
    let (mut level, mut why) = ("DEFAULT", "null");
    let (kind, name, members) = match &span.kind {
        Kind::Agent(agent) => (
            "AGENT",
            *agent,
            r#""input":"x","output":"y","totalCost":0.45,"usageDetails":{},"costDetails":{}"#.to_owned(),
        ),
        Kind::Model { given, made } => {
            let given: Vec<String> = given.iter().map(|at| message(model, *at)).collect();
            let Said::Model { usage, .. } = &model.entries[*made].said else { unreachable!() };
            let usage = usage.map_or(r#""usageDetails":{},"costDetails":{}"#.to_owned(), |[given, made]| {
                let all = given + made;
                format!(r#""usageDetails":{{"input":{given},"output":{made},"total":{all}}},"costDetails":{{"total":0.25}}"#)
            });
            let given = match made % 2 {
                0 => format!("[{}]", given.join(",")),
                _ => format!(r#"{{"messages":[{}],"tools":[]}}"#, given.join(",")),
            };
            ("GENERATION", "ask", format!(r#""input":{given},"output":{},{usage}"#, message(model, *made)))
        }
        Kind::Tool { result, .. } => {
            let Said::Result { call, .. } = &model.entries[*result].said else { unreachable!() };
            let (how, call) = (model.entries[*result].how, &model.calls[*call]);
            let output = quoted(&output(how / 16).0);
            if is_error(how) {
                (level, why) = ("ERROR", r#""timeout""#);
            }
            let members = format!(
                r#""input":{{"n":{}}},"output":{output},"usageDetails":{{}},"costDetails":{{}}"#,
                call.params
            );
            ("TOOL", call.tool, members)
        }
    };
    let above = if span.above == 0 { "null".to_owned() } else { format!(r#""o{}""#, span.above) };
    let text = format!(
        r#"{{"id":"o{}","traceId":"t1","type":"{kind}","name":"{name}","parentObservationId":{above},"startTime":"2025-03-01T10:00:{:02}.5Z","endTime":null,"level":"{level}","statusMessage":{why},"model":null,"metadata":{{}},{members}}}"#,
        span.id, span.id
    );
    if has_capitals { text } else { snake(&text) }
}

/// The names as an export spells them.
fn snake(text: &str) -> String {
    let names = [
        ("traceId", "trace_id"),
        ("parentObservationId", "parent_observation_id"),
        ("startTime", "start_time"),
        ("endTime", "end_time"),
        ("statusMessage", "status_message"),
        ("usageDetails", "usage_details"),
        ("costDetails", "cost_details"),
        ("totalCost", "total_cost"),
    ];
    names.iter().fold(text.to_owned(), |text, (one, other)| {
        text.replace(&format!("\"{one}\""), &format!("\"{other}\""))
    })
}

fn write(dice: &mut Dice, model: &Model, spans: &[Span]) -> String {
    let has_capitals = dice.below(2) == 0;
    let mut all: Vec<String> = spans.iter().map(|span| observation(model, span, has_capitals)).collect();
    for at in (1..all.len()).rev() {
        all.swap(at, dice.below(at as u64 + 1) as usize);
    }
    match dice.below(3) {
        0 => format!("[{}]", all.join(",")),
        1 => all.join("\n"),
        _ => format!(
            r#"{{"trace":{{"id":"t1","name":"shop","scores":[]}},"observations":[{}]}}"#,
            all.join(",")
        ),
    }
}
