//! Messages of the Messages API, as programs keep them: a list, a request, or a request with its answer.

use super::facts::{Asked, Facts, Tokens};
use super::model::{Can, Dice, Ids, Model, Said, Text, mild, output};
use super::{Written, quoted};

pub(super) const CAN: Can = Can {
    agents: 1,
    ids: &[Ids::Unique, Ids::Unique, Ids::Anew],
    names: false,
    late: true,
    // `smallest.rs` has results that are there twice.
    twice: false,
    same: true,
    trees: false,
    again: false,
};

/// The members of a result, and whether they state a failure.
fn outcome(how: u64) -> (String, bool) {
    let (text, failed) = output(if how / 3 % 5 == 1 { mild(how / 16) } else { how / 16 });
    let content = match how % 3 {
        0 => format!(r#"[{{"type":"text","text":{}}}]"#, quoted(&text)),
        _ => quoted(&text),
    };
    match how / 3 % 5 {
        0 => (format!(r#""content":{content},"is_error":true"#), true),
        1 => (format!(r#""content":{content},"is_error":false"#), false),
        2 if text.is_empty() => (String::new(), false),
        _ => (format!(r#""content":{content}"#), failed),
    }
}

/// A call that the server answers in the same message: its parts.
fn served(how: u64, at: usize) -> (String, bool) {
    let id = format!("srvtoolu_{at}");
    let failed = how.is_multiple_of(3);
    let content = match failed {
        true => r#"{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}"#,
        false => {
            r#"[{"type":"web_search_result","url":"https://x.example","title":"Error: a title","encrypted_content":"x","page_age":null}]"#
        }
    };
    let parts = format!(
        r#"{{"type":"server_tool_use","id":"{id}","name":"web_search","input":{{"query":"lamps"}}}},{{"type":"web_search_tool_result","tool_use_id":"{id}","content":{content}}}"#
    );
    (parts, failed)
}

fn assistant(model: &Model, at: usize, facts: &mut Facts) -> String {
    let Said::Model { agent, text, calls, usage } = &model.entries[at].said else { unreachable!() };
    let how = model.entries[at].how;
    let mut parts = Vec::new();
    if how.is_multiple_of(4) {
        parts.push(r#"{"type":"thinking","thinking":"Look <tool_call>{","signature":"c2ln"}"#.to_owned());
    }
    if text.is_some() {
        parts.push(format!(r#"{{"type":"text","text":{}}}"#, quoted(model.words(at))));
    }
    for call in &model.calls[calls.clone()] {
        let id = call.id.as_deref().unwrap_or_default();
        let (tool, n) = (call.tool, call.params);
        parts.push(format!(r#"{{"type":"tool_use","id":"{id}","name":"{tool}","input":{{"n":{n}}}}}"#));
    }
    let tokens = Tokens::of(*usage);
    if !calls.is_empty() {
        facts.asks(model, calls.clone(), agent, tokens);
    } else if how.is_multiple_of(7) {
        let (served, failed) = served(how / 7, at);
        let params = dendrer_object::json::parse_door(br#"{"query":"lamps"}"#).unwrap();
        let call = Asked::new(Some(&format!("srvtoolu_{at}")), "web_search", Some(params), agent);
        let place = facts.asks_for(vec![call], tokens);
        facts.answers_place(place, [false, false], Some(failed));
        parts.insert(0, served);
    } else {
        facts.says(agent, text.unwrap_or(Text::Plain), tokens);
    }
    let usage = usage.map(|[given, made]| {
        let (new, read) = (given / 2, given - given / 2);
        format!(r#","usage":{{"input_tokens":{new},"cache_creation_input_tokens":0,"cache_read_input_tokens":{read},"output_tokens":{made},"service_tier":"standard"}}"#)
    });
    let content = match (&parts[..], text) {
        ([_], Some(_)) if how % 2 == 1 => quoted(model.words(at)),
        _ => format!("[{}]", parts.join(",")),
    };
    // A program keeps the whole answer, or what it sends back.
    let more = match &usage {
        Some(usage) => format!(
            r#""id":"msg_{at}","type":"message","model":"claude-x","stop_reason":"end_turn","stop_sequence":null{usage},"#
        ),
        None => String::new(),
    };
    format!(r#"{{{more}"role":"assistant","content":{content}}}"#)
}

pub(super) fn write(dice: &mut Dice, model: &Model) -> Written {
    let mut facts = Facts::default();
    let mut messages: Vec<String> = Vec::new();
    // The parts of a message of the user that is not complete.
    let mut parts: Vec<String> = Vec::new();
    for (at, entry) in model.entries.iter().enumerate() {
        let ends = matches!(entry.said, Said::Model { .. }) || (dice.below(3) == 0 && !parts.is_empty());
        if ends && !parts.is_empty() {
            messages.push(format!(r#"{{"role":"user","content":[{}]}}"#, parts.join(",")));
            parts.clear();
        }
        match &entry.said {
            Said::User(_) if parts.is_empty() => {
                facts.entry(model, at, |_| None);
                messages.push(format!(r#"{{"role":"user","content":{}}}"#, quoted(model.words(at))));
            }
            Said::User(text) => {
                // Words after results.
                parts.push(format!(r#"{{"type":"text","text":{}}}"#, quoted(model.words(at))));
                facts.user(*text);
                messages.push(format!(r#"{{"role":"user","content":[{}]}}"#, parts.join(",")));
                parts.clear();
            }
            Said::Model { .. } => {
                let message = assistant(model, at, &mut facts);
                messages.push(message);
            }
            Said::Result { call, .. } => {
                let (said, failed) = outcome(entry.how);
                let id = model.calls[*call].id.as_deref().unwrap_or_default();
                let said = if said.is_empty() { said } else { format!(",{said}") };
                parts.push(format!(r#"{{"type":"tool_result","tool_use_id":"{id}"{said}}}"#));
                facts.answers(*call, [false, false], Some(failed));
            }
            Said::Again(_) => unreachable!(),
        }
    }
    if !parts.is_empty() {
        messages.push(format!(r#"{{"role":"user","content":[{}]}}"#, parts.join(",")));
    }
    let list = format!("[{}]", messages.join(","));
    let answer = r#"{"id":"msg_last","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"Last."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":1,"cache_read_input_tokens":0,"output_tokens":2}}"#;
    let text = match dice.below(4) {
        0 => list,
        1 => messages.join("\n"),
        2 => format!(
            r#"{{"model":"claude-x","max_tokens":9,"system":"Be brief.","tools":[{{"name":"pay","input_schema":{{}}}}],"messages":{list}}}"#
        ),
        _ => {
            facts.says("assistant", Text::Plain, Tokens::Is(6));
            format!(r#"{{"request":{{"model":"claude-x","messages":{list}}},"response":{answer}}}"#)
        }
    };
    Written { main: facts, ..Written::new("anthropic", text) }
}
