//! Runs of LangSmith: messages in the serialized form of LangChain.

use super::model::{Dice, Model, Said, mild, output};
use super::quoted;
use super::traces::{Dialect, Kind, Span};

pub(super) const DIALECT: Dialect = Dialect { names_agents: false, format: "langsmith", failed, seen, write };

fn uuid(id: u64) -> String {
    format!("018f0000-0000-7000-8000-{id:012}")
}

/// How the run of a tool ends: whether it has an error, and the status in its message.
fn status(how: u64) -> (bool, Option<&'static str>) {
    match how / 20 % 4 {
        0 => (true, None),
        1 => (false, Some("error")),
        2 => (false, Some("success")),
        _ => (false, None),
    }
}

fn failed(how: u64) -> bool {
    status(how).0 || seen(how)
}

/// The output of a tool, and whether it states a failure.
fn said(how: u64) -> (String, bool) {
    output(if status(how).1 == Some("success") { mild(how / 16) } else { how / 16 })
}

/// Whether the message of a result states a failure.
fn seen(how: u64) -> bool {
    status(how).1.map_or(said(how).1, |word| word == "error")
}

fn constructor(kind: &str, members: &str) -> String {
    format!(
        r#"{{"lc":1,"type":"constructor","id":["langchain","schema","messages","{kind}"],"kwargs":{{{members}}}}}"#
    )
}

fn tool_message(model: &Model, at: usize) -> String {
    let Said::Result { call, .. } = &model.entries[at].said else { unreachable!() };
    let (how, call) = (model.entries[at].how, &model.calls[*call]);
    let status = status(how).1.map(|word| format!(r#","status":"{word}""#)).unwrap_or_default();
    let members = format!(
        r#""content":{},"type":"tool","name":"{}","tool_call_id":"{}"{status}"#,
        quoted(&said(how).0),
        call.tool,
        call.id.as_deref().unwrap_or_default()
    );
    constructor("ToolMessage", &members)
}

fn message(model: &Model, at: usize) -> String {
    match &model.entries[at].said {
        Said::Model { text, calls, usage, .. } => {
            let content = text.map_or(quoted(""), |_| quoted(model.words(at)));
            let calls = model.calls[calls.clone()].iter().map(|call| {
                let (id, n, tool) = (call.id.as_deref().unwrap_or_default(), call.params, call.tool);
                format!(r#"{{"name":"{tool}","args":{{"n":{n}}},"id":"{id}","type":"tool_call"}}"#)
            });
            let usage = usage.map(|[given, made]| {
                let all = given + made;
                format!(r#","usage_metadata":{{"input_tokens":{given},"output_tokens":{made},"total_tokens":{all}}}"#)
            });
            let members = format!(
                r#""content":{content},"type":"ai","id":"run-{at}","tool_calls":[{}],"invalid_tool_calls":[],"response_metadata":{{"model_name":"m"}}{}"#,
                calls.collect::<Vec<_>>().join(","),
                usage.unwrap_or_default()
            );
            constructor("AIMessage", &members)
        }
        Said::Result { .. } => tool_message(model, at),
        _ => constructor("HumanMessage", &format!(r#""content":{},"type":"human""#, quoted(model.words(at)))),
    }
}

fn run(model: &Model, span: &Span) -> String {
    let (kind, name, members) = match &span.kind {
        Kind::Agent(agent) => {
            let members =
                r#""inputs":{"messages":[]},"outputs":{},"total_tokens":2,"total_cost":0.5,"error":null"#;
            ("chain", *agent, members.to_owned())
        }
        Kind::Model { given, made } => {
            let given: Vec<String> = given.iter().map(|at| message(model, *at)).collect();
            let members = format!(
                r#""inputs":{{"messages":[[{}]]}},"outputs":{{"generations":[[{{"text":"","type":"ChatGeneration","message":{}}}]],"llm_output":{{"model_name":"m"}}}},"error":null"#,
                given.join(","),
                message(model, *made)
            );
            ("llm", "ChatOpenAI", members)
        }
        Kind::Tool { result, .. } => {
            let Said::Result { call, .. } = &model.entries[*result].said else { unreachable!() };
            let call = &model.calls[*call];
            let (has_error, _) = status(model.entries[*result].how);
            let end = match has_error {
                true => r#""outputs":null,"error":"ToolException('late')""#.to_owned(),
                false => format!(r#""outputs":{{"output":{}}},"error":null"#, tool_message(model, *result)),
            };
            let members = format!(r#""inputs":{{"input":"{{'n': {}}}"}},{end}"#, call.params);
            ("tool", call.tool, members)
        }
    };
    let order = |id: u64| format!("20240429T0049{id:02}000000Z{}", uuid(id));
    let (above, dotted) = match span.above {
        0 => ("null".to_owned(), order(span.id)),
        above => (quoted(&uuid(above)), format!("{}.{}", order(above), order(span.id))),
    };
    format!(
        r#"{{"id":"{}","trace_id":"{}","parent_run_id":{above},"dotted_order":"{dotted}","run_type":"{kind}","name":"{name}","start_time":"2024-04-29T00:49:{:02}.000000","extra":{{"metadata":{{"ls_provider":"openai"}}}},"tags":[],{members}}}"#,
        uuid(span.id),
        uuid(1),
        span.id
    )
}

fn write(dice: &mut Dice, model: &Model, spans: &[Span]) -> String {
    let mut runs: Vec<String> = spans.iter().map(|one| run(model, one)).collect();
    for at in (1..runs.len()).rev() {
        runs.swap(at, dice.below(at as u64 + 1) as usize);
    }
    match dice.below(2) {
        0 => format!("[{}]", runs.join(",")),
        _ => runs.join("\n"),
    }
}
