//! Items of the Responses API: a list of them, those of a conversation, or a log of items and whole responses.

use dendrer_object::json::parse_door;

use super::facts::{Asked, Facts, Tokens};
use super::model::{Can, Dice, Ids, Model, Said, Text, output};
use super::{Written, quoted};

pub(super) const CAN: Can = Can {
    agents: 1,
    ids: &[Ids::Unique],
    names: false,
    late: true,
    // `smallest.rs` has results that are there twice.
    twice: false,
    same: true,
    trees: false,
    again: true,
};

fn outcome(how: u64) -> (String, bool) {
    let (text, failed) = output(how / 16);
    let text = quoted(&text);
    match how % 5 {
        0 => (format!(r#""output":{text},"status":"incomplete""#), true),
        1 => (format!(r#""output":[{{"type":"input_text","text":{text}}}],"status":"completed""#), failed),
        _ => (format!(r#""output":{text}"#), failed),
    }
}

/// A call that the server answers: the item, the name of its tool and its parameters, and whether it failed.
fn served(how: u64, at: usize) -> (String, &'static str, &'static str, bool) {
    let failed = how.is_multiple_of(2);
    match how / 2 % 3 {
        0 => {
            let end = if failed { r#""output":null,"error":"down""# } else { r#""output":"6","error":null"# };
            let item = format!(
                r#"{{"type":"mcp_call","id":"mcp_{at}","name":"roll","server_label":"dice","arguments":"{{\"n\":1}}",{end}}}"#
            );
            (item, "roll", r#"{"n":1}"#, failed)
        }
        1 => {
            let status = if failed { "failed" } else { "completed" };
            let item = format!(
                r#"{{"type":"web_search_call","id":"ws_{at}","status":"{status}","action":{{"type":"search","query":"lamps"}}}}"#
            );
            (item, "web_search", r#"{"query":"lamps","type":"search"}"#, failed)
        }
        _ => {
            let status = if failed { "failed" } else { "completed" };
            let item = format!(
                r#"{{"type":"code_interpreter_call","id":"ci_{at}","status":"{status}","code":"1+1","container_id":"c","outputs":[{{"type":"logs","logs":"2"}}]}}"#
            );
            (item, "code_interpreter", r#""1+1""#, failed)
        }
    }
}

/// The items of a message of the model. `is_response`: a response around them states the usage, on its last item.
fn items(model: &Model, at: usize, is_response: bool, facts: &mut Facts) -> Vec<String> {
    let Said::Model { agent, text, calls, usage } = &model.entries[at].said else { unreachable!() };
    let how = model.entries[at].how;
    let server = how.is_multiple_of(5).then(|| served(how / 5, at));
    let has_text = text.is_some() || (calls.is_empty() && server.is_none());
    let is_thought = how.is_multiple_of(3);
    let count = usize::from(is_thought) + usize::from(server.is_some()) + usize::from(has_text) + calls.len();
    let mut left = count;
    let mut tokens = || {
        left -= 1;
        match (is_response, left) {
            (false, _) => Tokens::Unstated,
            (true, 0) => Tokens::of(*usage),
            (true, _) => Tokens::None,
        }
    };
    let mut items = Vec::new();
    if is_thought {
        items.push(format!(r#"{{"type":"reasoning","id":"rs_{at}","summary":[],"encrypted_content":"x"}}"#));
        facts.says(agent, Text::Plain, tokens());
    }
    if let Some((item, tool, params, failed)) = server {
        let id = parse_door(item.as_bytes()).unwrap().get("id").unwrap().as_str().unwrap().to_owned();
        let params = parse_door(params.as_bytes()).unwrap();
        // Code stays text.
        let place = facts.asks_for(vec![Asked::new(Some(&id), tool, Some(params), agent)], tokens());
        facts.answers_place(place, [false, false], Some(failed));
        items.push(item);
    }
    if has_text {
        items.push(format!(
            r#"{{"type":"message","id":"msg_{at}","role":"assistant","status":"completed","content":[{{"type":"output_text","text":{},"annotations":[],"logprobs":[]}}]}}"#,
            quoted(model.words(at))
        ));
        facts.says(agent, text.unwrap_or(Text::Plain), tokens());
    }
    for place in calls.clone() {
        let call = &model.calls[place];
        let (id, n, tool) = (call.id.as_deref().unwrap_or_default(), call.params, call.tool);
        items.push(format!(
            r#"{{"type":"function_call","id":"fc_{place}","call_id":"{id}","name":"{tool}","arguments":"{{\"n\":{n}}}","status":"completed"}}"#
        ));
        facts.asks(model, std::iter::once(place), agent, tokens());
    }
    items
}

pub(super) fn write(dice: &mut Dice, model: &Model) -> Written {
    let layout = dice.below(3);
    let is_log = layout == 2;
    let mut facts = Facts::default();
    // The values at the top of a log, or the items of each entry.
    let mut all: Vec<Vec<String>> = Vec::new();
    let mut response = "null".to_owned();
    for (at, entry) in model.entries.iter().enumerate() {
        let made = match &entry.said {
            Said::User(text) => {
                facts.user(*text);
                let kind = if entry.how % 2 == 0 { r#""type":"message","# } else { "" };
                vec![format!(r#"{{{kind}"role":"user","content":{}}}"#, quoted(model.words(at)))]
            }
            Said::Model { usage, .. } => {
                let items = items(model, at, is_log, &mut facts);
                if is_log {
                    let usage = usage.map_or("null".to_owned(), |[given, made]| {
                        let all = given + made;
                        format!(
                            r#"{{"input_tokens":{given},"input_tokens_details":{{"cached_tokens":0}},"output_tokens":{made},"output_tokens_details":{{"reasoning_tokens":0}},"total_tokens":{all}}}"#
                        )
                    });
                    let before = std::mem::replace(&mut response, format!("\"resp_{at}\""));
                    vec![format!(
                        r#"{{"id":"resp_{at}","object":"response","created_at":1,"status":"completed","error":null,"incomplete_details":null,"instructions":null,"model":"m","previous_response_id":{before},"tools":[{{"type":"function","name":"pay","parameters":{{}}}}],"tool_choice":"auto","output":[{}],"usage":{usage}}}"#,
                        items.join(",")
                    )]
                } else {
                    items
                }
            }
            Said::Result { call, .. } => {
                let (said, failed) = outcome(entry.how);
                let id = model.calls[*call].id.as_deref().unwrap_or_default();
                facts.answers(*call, [false, false], Some(failed));
                vec![format!(r#"{{"type":"function_call_output","id":"fco_{at}","call_id":"{id}",{said}}}"#)]
            }
            Said::Again(first) => {
                let again = all[*first].clone();
                let is_named = again.iter().all(|item| item.contains(r#""id":"#));
                let ticks = if is_named { facts.ticks_of(*first) } else { 0 };
                (0..ticks).for_each(|_| facts.again(None));
                if is_named { again } else { Vec::new() }
            }
        };
        facts.ends(at);
        all.push(made);
    }
    let items: Vec<String> = all.concat();
    let text = match layout {
        0 => format!("[{}]", items.join(",")),
        1 => format!(r#"{{"object":"list","data":[{}],"first_id":"x","has_more":false}}"#, items.join(",")),
        _ => items.join("\n"),
    };
    Written { main: facts, ..Written::new("openai-responses", text) }
}
