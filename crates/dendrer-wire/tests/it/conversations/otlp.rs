//! Spans of OpenTelemetry by the current conventions, as a file exporter writes them: children end first.

use super::model::{Dice, Model, Said, mild, output};
use super::quoted;
use super::traces::{Dialect, Kind, Span};

pub(super) const DIALECT: Dialect =
    Dialect { names_agents: true, format: "otlp", failed, seen: |how| said(how).1, write };

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// How the span of a tool ends: its status, an attribute, and whether it failed.
fn status(how: u64) -> (&'static str, &'static str, Option<bool>) {
    match how / 20 % 5 {
        0 => (r#","status":{"code":2,"message":"timeout"}"#, r#","error.type":"TimeoutError""#, Some(true)),
        1 => (r#","status":{"code":2}"#, "", Some(true)),
        2 => (r#","status":{"code":1}"#, "", Some(false)),
        3 => (r#","status":{}"#, "", None),
        _ => ("", "", None),
    }
}

/// The output of a tool, and whether it states a failure.
fn said(how: u64) -> (String, bool) {
    output(if status(how).2 == Some(false) { mild(how / 16) } else { how / 16 })
}

fn failed(how: u64) -> bool {
    status(how).2.unwrap_or_else(|| said(how).1)
}

/// An object of plain values as attributes.
fn attributes(members: &str) -> String {
    let value = dendrer_object::json::parse_door(format!("{{{members}}}").as_bytes()).unwrap();
    let any = |value: &dendrer_object::Value| match value {
        dendrer_object::Value::String(_) => format!(r#"{{"stringValue":{value}}}"#),
        dendrer_object::Value::Array(items) => {
            let items: Vec<String> =
                items.iter().map(|item| format!(r#"{{"stringValue":{item}}}"#)).collect();
            format!(r#"{{"arrayValue":{{"values":[{}]}}}}"#, items.join(","))
        }
        number => format!(r#"{{"intValue":"{number}"}}"#),
    };
    let all: Vec<String> = value
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| format!(r#"{{"key":{},"value":{}}}"#, quoted(name), any(value)))
        .collect();
    format!("[{}]", all.join(","))
}

fn message(model: &Model, at: usize, is_answer: bool) -> String {
    let text = |text: &str| format!(r#"{{"type":"text","content":{}}}"#, quoted(text));
    let (role, parts) = match &model.entries[at].said {
        Said::Model { text: said, calls, .. } => {
            let said = said.map(|_| text(model.words(at)));
            let calls = model.calls[calls.clone()].iter().map(|call| {
                let (id, n, tool) = (call.id.as_deref().unwrap_or_default(), call.params, call.tool);
                format!(r#"{{"type":"tool_call","id":"{id}","name":"{tool}","arguments":{{"n":{n}}}}}"#)
            });
            ("assistant", said.into_iter().chain(calls).collect::<Vec<_>>())
        }
        Said::Result { call, .. } => {
            let id = model.calls[*call].id.as_deref().unwrap_or_default();
            let said = quoted(&said(model.entries[at].how).0);
            ("tool", vec![format!(r#"{{"type":"tool_call_response","id":"{id}","response":{said}}}"#)])
        }
        _ => ("user", vec![text(model.words(at))]),
    };
    let end = match (is_answer, &model.entries[at].said) {
        (true, Said::Model { calls, .. }) if !calls.is_empty() => r#","finish_reason":"tool_call""#,
        (true, _) => r#","finish_reason":"stop""#,
        (false, _) => "",
    };
    format!(r#"{{"role":"{role}","parts":[{}]{end}}}"#, parts.join(","))
}

fn span(model: &Model, span: &Span) -> String {
    let mut more = "";
    let (name, named) = match &span.kind {
        Kind::Agent(agent) => {
            let members = format!(
                r#""gen_ai.operation.name":"invoke_agent","gen_ai.agent.name":"{agent}","gen_ai.usage.input_tokens":1,"gen_ai.usage.output_tokens":1"#
            );
            (format!("invoke_agent {agent}"), members)
        }
        Kind::Model { given, made } => {
            let given: Vec<String> = given.iter().map(|at| message(model, *at, false)).collect();
            let given = quoted(&format!("[{}]", given.join(",")));
            let answer = quoted(&format!("[{}]", message(model, *made, true)));
            let Said::Model { usage, .. } = &model.entries[*made].said else { unreachable!() };
            let usage = usage.map(|[given, made]| {
                format!(r#","gen_ai.usage.input_tokens":{given},"gen_ai.usage.output_tokens":{made},"gen_ai.usage.cache_read.input_tokens":1"#)
            });
            let members = format!(
                r#""gen_ai.operation.name":"chat","gen_ai.provider.name":"openai","gen_ai.request.model":"m","gen_ai.request.max_tokens":100,"gen_ai.response.id":"resp_{made}","gen_ai.input.messages":{given},"gen_ai.output.messages":{answer}{}"#,
                usage.unwrap_or_default()
            );
            ("chat m".to_owned(), members)
        }
        Kind::Tool { result, has_id } => {
            let Said::Result { call, .. } = &model.entries[*result].said else { unreachable!() };
            let (how, call) = (model.entries[*result].how, &model.calls[*call]);
            let (status, error, _) = status(how);
            more = status;
            let id =
                call.id.as_ref().filter(|_| *has_id).map(|id| format!(r#","gen_ai.tool.call.id":"{id}""#));
            let members = format!(
                r#""gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"{}"{},"gen_ai.tool.call.arguments":"{{\"n\":{}}}","gen_ai.tool.call.result":{}{error}"#,
                call.tool,
                id.unwrap_or_default(),
                call.params,
                quoted(&said(how).0)
            );
            (format!("execute_tool {}", call.tool), members)
        }
    };
    let above =
        if span.above == 0 { String::new() } else { format!(r#","parentSpanId":"{:016x}""#, span.above) };
    format!(
        r#"{{"traceId":"{TRACE}","spanId":"{:016x}"{above},"name":"{name}","kind":1,"startTimeUnixNano":"{}","endTimeUnixNano":"{}","attributes":{}{more}}}"#,
        span.id,
        1_000_000 + span.id * 10,
        1_000_005 + span.id * 10,
        attributes(&named)
    )
}

fn write(dice: &mut Dice, model: &Model, spans: &[Span]) -> String {
    let mut spans: Vec<String> = spans.iter().map(|one| span(model, one)).collect();
    // The order in a file is that of their ends; a span may be sent twice.
    for at in (1..spans.len()).rev() {
        spans.swap(at, dice.below(at as u64 + 1) as usize);
    }
    let request = |spans: &str| {
        format!(
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"shop"}}}}]}},"scopeSpans":[{{"scope":{{"name":"lib"}},"spans":[{spans}]}}]}}]}}"#
        )
    };
    match dice.below(2) {
        0 => request(&spans.join(",")),
        _ => spans.iter().map(|span| request(span)).collect::<Vec<_>>().join("\n"),
    }
}
