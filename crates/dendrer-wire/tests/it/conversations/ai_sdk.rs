//! Messages of a chat store: `UIMessage` with `parts`, whose tools have call and result together, and `ModelMessage`.

use super::facts::{Facts, Tokens};
use super::model::{Can, Dice, Ids, Model, Said, Text, output};
use super::{Written, quoted};

pub(super) const CAN: Can = Can {
    agents: 1,
    ids: &[Ids::Unique],
    names: false,
    late: false,
    twice: false,
    same: true,
    trees: false,
    again: false,
};

/// How a call ended: the members of its part, and whether it failed; `None` inside where it was denied.
fn ended(how: u64) -> (String, Option<bool>) {
    let (text, failed) = output(how / 16);
    match how % 6 {
        0 => (r#""state":"output-error","errorText":"no""#.to_owned(), Some(true)),
        1 => {
            let members =
                r#""state":"output-denied","approval":{"id":"a","approved":false,"reason":"not now"}"#;
            (members.to_owned(), None)
        }
        _ => {
            // The state is that of a call that gave an output: whether the tool failed is in the output.
            (format!(r#""state":"output-available","output":{}"#, quoted(&text)), Some(failed))
        }
    }
}

/// A part of a tool.
fn tool(model: &Model, call: usize, members: &str) -> String {
    let call = &model.calls[call];
    let (id, n, name) = (call.id.as_deref().unwrap_or_default(), call.params, call.tool);
    match n % 2 {
        0 => format!(r#"{{"type":"tool-{name}","toolCallId":"{id}","input":{{"n":{n}}},{members}}}"#),
        _ => format!(
            r#"{{"type":"dynamic-tool","toolName":"{name}","toolCallId":"{id}","input":{{"n":{n}}},{members}}}"#
        ),
    }
}

/// The result of a call, if it has one.
fn result_of(model: &Model, call: usize) -> Option<u64> {
    model.entries.iter().find_map(|entry| match entry.said {
        Said::Result { call: answered, .. } if answered == call => Some(entry.how),
        _ => None,
    })
}

/// The messages of one answer of the model: all entries up to the next turn of the user.
fn answer(model: &Model, entries: &[usize], facts: &mut Facts) -> Option<String> {
    let steps: Vec<usize> =
        entries.iter().copied().filter(|at| matches!(model.entries[*at].said, Said::Model { .. })).collect();
    let last = *steps.last()?;
    let Said::Model { usage, .. } = model.entries[last].said else { unreachable!() };
    let mut parts = Vec::new();
    for at in steps {
        let Said::Model { agent, text, calls, .. } = &model.entries[at].said else { unreachable!() };
        parts.push(r#"{"type":"step-start"}"#.to_owned());
        if model.entries[at].how.is_multiple_of(4) {
            parts.push(r#"{"type":"reasoning","text":"Look.","state":"done"}"#.to_owned());
        }
        if text.is_some() {
            parts.push(format!(r#"{{"type":"text","text":{},"state":"done"}}"#, quoted(model.words(at))));
        }
        let tokens = if at == last { Tokens::of(usage) } else { Tokens::None };
        match calls.is_empty() {
            // A tag in a text is looked for where the message has no call.
            true => facts.says(agent, text.unwrap_or(Text::Plain), tokens),
            false => facts.asks(model, calls.clone(), agent, tokens),
        }
        for call in calls.clone() {
            let Some(how) = result_of(model, call) else {
                parts.push(tool(model, call, r#""state":"input-available""#));
                continue;
            };
            let (members, failed) = ended(how);
            parts.push(tool(model, call, &members));
            match failed {
                Some(failed) => facts.answers(call, [true, false], Some(failed)),
                None => facts.denied(call),
            }
        }
    }
    let usage = usage.map(|[given, made]| {
        let all = given + made;
        format!(r#","metadata":{{"model":"m","totalUsage":{{"inputTokens":{given},"outputTokens":{made},"totalTokens":{all}}}}}"#)
    });
    Some(format!(
        r#"{{"id":"a{last}","role":"assistant","parts":[{}]{}}}"#,
        parts.join(","),
        usage.unwrap_or_default()
    ))
}

fn store(model: &Model, facts: &mut Facts) -> Vec<String> {
    let (mut messages, mut said) = (Vec::new(), Vec::new());
    for (at, entry) in model.entries.iter().enumerate() {
        let Said::User(text) = entry.said else {
            said.push(at);
            continue;
        };
        messages.extend(answer(model, &std::mem::take(&mut said), facts));
        facts.user(text);
        messages.push(format!(
            r#"{{"id":"u{at}","role":"user","parts":[{{"type":"text","text":{}}}]}}"#,
            quoted(model.words(at))
        ));
    }
    messages.extend(answer(model, &said, facts));
    messages
}

/// The output of a tool in a `ModelMessage`, and whether it is a failure.
fn output_of(how: u64) -> (String, bool) {
    let (text, failed) = output(how / 16);
    let text = quoted(&text);
    match how % 4 {
        0 => (format!(r#"{{"type":"error-text","value":{text}}}"#), true),
        1 => (r#"{"type":"error-json","value":{"code":3}}"#.to_owned(), true),
        2 => (r#"{"type":"json","value":{"error":"no"}}"#.to_owned(), true),
        _ => (format!(r#"{{"type":"text","value":{text}}}"#), failed),
    }
}

fn model_messages(model: &Model, facts: &mut Facts) -> Vec<String> {
    let mut messages = Vec::new();
    for (at, entry) in model.entries.iter().enumerate() {
        facts.entry(model, at, |how| Some(output_of(how).1));
        messages.push(match &entry.said {
            Said::Model { text, calls, usage, .. } => {
                let text = text.map(|_| format!(r#"{{"type":"text","text":{}}}"#, quoted(model.words(at))));
                let calls = model.calls[calls.clone()].iter().map(|call| {
                    let (id, n, tool) = (call.id.as_deref().unwrap_or_default(), call.params, call.tool);
                    format!(r#"{{"type":"tool-call","toolCallId":"{id}","toolName":"{tool}","input":{{"n":{n}}}}}"#)
                });
                let parts: Vec<String> = text.into_iter().chain(calls).collect();
                let usage = usage.map(|[given, made]| {
                    format!(r#","usage":{{"inputTokens":{given},"outputTokens":{made}}}"#)
                });
                format!(
                    r#"{{"role":"assistant","content":[{}]{}}}"#,
                    parts.join(","),
                    usage.unwrap_or_default()
                )
            }
            Said::Result { call, .. } => {
                let call = &model.calls[*call];
                let id = call.id.as_deref().unwrap_or_default();
                format!(
                    r#"{{"role":"tool","content":[{{"type":"tool-result","toolCallId":"{id}","toolName":"{}","output":{}}}]}}"#,
                    call.tool,
                    output_of(entry.how).0
                )
            }
            _ => format!(r#"{{"role":"user","content":{}}}"#, quoted(model.words(at))),
        });
    }
    messages
}

pub(super) fn write(dice: &mut Dice, model: &Model) -> Written {
    let mut facts = Facts::default();
    let messages = match dice.below(3) {
        0 => model_messages(model, &mut facts),
        _ => store(model, &mut facts),
    };
    let list = format!("[{}]", messages.join(","));
    let text = match dice.below(3) {
        0 => list,
        1 => messages.join("\n"),
        _ => format!(r#"{{"id":"chat","title":"t","messages":{list}}}"#),
    };
    Written { main: facts, ..Written::new("ai-sdk", text) }
}
