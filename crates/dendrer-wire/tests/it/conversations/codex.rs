//! Rollouts: a line an item, events that repeat items, and the usage of a request after its items.

use dendrer_object::json::parse_door;

use super::facts::{Asked, Facts, Tokens};
use super::model::{Can, Dice, Ids, Model, Said, Text, mild, output};
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

fn line(kind: &str, payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-03-01T10:00:00.000Z","type":"{kind}","payload":{payload}}}"#)
}

/// The lines of a result, and whether it failed.
fn outcome(how: u64, id: &str, output_type: &str) -> (Vec<String>, bool) {
    let has_code = how % 6 < 4;
    let (text, failed) = output(if has_code { mild(how / 16) } else { how / 16 });
    let made = |text: &str| {
        let text = quoted(text);
        line("response_item", &format!(r#"{{"type":"{output_type}","call_id":"{id}","output":{text}}}"#))
    };
    let event = |members: &str| line("event_msg", &format!(r#"{{"call_id":"{id}",{members}}}"#));
    let code = how / 128 % 3;
    match how % 6 {
        0 => {
            let end = event(&format!(
                r#""type":"exec_command_end","turn_id":"1","stdout":"x","stderr":"","exit_code":{code}"#
            ));
            let lines =
                if (how / 6).is_multiple_of(2) { vec![end, made(&text)] } else { vec![made(&text), end] };
            (lines, code != 0)
        }
        1 => {
            let json = format!(
                r#"{{"output":{},"metadata":{{"exit_code":{code},"duration_seconds":0.1}}}}"#,
                quoted(&text)
            );
            (vec![made(&json)], code != 0)
        }
        2 => (vec![made(&format!("Exit code: {code}\nWall time: 1 seconds\nOutput:\n{text}"))], code != 0),
        3 => {
            let end = event(&format!(
                r#""type":"mcp_tool_call_end","invocation":{{"server":"s","tool":"t"}},"result":{{"Ok":{{"content":[],"isError":{}}}}}"#,
                code != 0
            ));
            (vec![end, made(&text)], code != 0)
        }
        _ => (vec![made(&text)], failed),
    }
}

/// The lines of one request of the model, with its usage behind them.
fn request(model: &Model, at: usize, total: Option<&mut [u64; 2]>, facts: &mut Facts) -> Vec<String> {
    let Said::Model { text, calls, usage, .. } = &model.entries[at].said else { unreachable!() };
    let usage = usage.filter(|_| total.is_some());
    let how = model.entries[at].how;
    let has_text = text.is_some() || calls.is_empty();
    let is_thought = how.is_multiple_of(3);
    let mut left = usize::from(is_thought) + usize::from(has_text) + calls.len();
    let mut tokens = || {
        left -= 1;
        if left == 0 {
            Tokens::of(usage)
        } else if usage.is_some() {
            Tokens::None
        } else {
            Tokens::Unstated
        }
    };
    let mut lines = Vec::new();
    let item = |payload: String| line("response_item", &payload);
    if is_thought {
        lines.push(item(r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"Look."}],"content":null,"encrypted_content":"x"}"#.to_owned()));
        facts.says("main", Text::Plain, tokens());
    }
    if has_text {
        let words = quoted(model.words(at));
        if how.is_multiple_of(2) {
            lines.push(line("event_msg", &format!(r#"{{"type":"agent_message","message":{words}}}"#)));
        }
        lines.push(item(format!(
            r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":{words}}}]}}"#
        )));
        facts.says("main", text.unwrap_or(Text::Plain), tokens());
    }
    for place in calls.clone() {
        let call = &model.calls[place];
        let (id, n, tool) = (call.id.as_deref().unwrap_or_default(), call.params, call.tool);
        let params = if n % 5 == 0 { r#""*** Begin Patch""#.to_owned() } else { format!(r#"{{"n":{n}}}"#) };
        lines.push(item(match n % 5 {
            0 => format!(
                r#"{{"type":"custom_tool_call","status":"completed","call_id":"{id}","name":"{tool}","input":{params}}}"#
            ),
            _ => format!(
                r#"{{"type":"function_call","name":"{tool}","arguments":{},"call_id":"{id}"}}"#,
                quoted(&params)
            ),
        }));
        let params = parse_door(params.as_bytes()).unwrap();
        let one = facts.asks_for(vec![Asked::new(Some(id), tool, Some(params), "main")], tokens());
        facts.place(place, one);
    }
    if let (Some([given, made]), Some(total)) = (usage, total) {
        (total[0], total[1]) = (total[0] + given, total[1] + made);
        let usage = |given: u64, made: u64| {
            let all = given + made;
            format!(
                r#"{{"input_tokens":{given},"cached_input_tokens":0,"output_tokens":{made},"reasoning_output_tokens":0,"total_tokens":{all}}}"#
            )
        };
        let info = format!(
            r#"{{"type":"token_count","info":{{"total_token_usage":{},"last_token_usage":{},"model_context_window":9}},"rate_limits":null}}"#,
            usage(total[0], total[1]),
            usage(given, made)
        );
        let count = line("event_msg", &info);
        lines.push(count.clone());
        // The same statement again, for another limit of the rate.
        lines.extend(how.is_multiple_of(4).then_some(count));
    }
    lines
}

pub(super) fn write(_: &mut Dice, model: &Model) -> Written {
    let mut facts = Facts::default();
    let mut lines = vec![line(
        "session_meta",
        r#"{"id":"5e55","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/w","originator":"codex_cli_rs","cli_version":"0.1","instructions":null,"source":"cli","model_provider":"openai"}"#,
    )];
    let mut total = [0, 0];
    // A service states the usage of each request, or of none: a statement is that of all items before it.
    let states = model.entries.iter().all(|entry| !matches!(entry.said, Said::Model { usage: None, .. }));
    for (at, entry) in model.entries.iter().enumerate() {
        match &entry.said {
            Said::User(_) => {
                let words = quoted(model.words(at));
                facts.entry(model, at, |_| None);
                lines.push(line("event_msg", r#"{"type":"task_started","model_context_window":9}"#));
                if entry.how % 2 == 0 {
                    lines.push(line("turn_context", r#"{"cwd":"/w","approval_policy":"never","sandbox_policy":{"mode":"read-only"},"model":"m","summary":"auto"}"#));
                }
                lines.push(line("response_item", &format!(
                    r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":{words}}}]}}"#
                )));
                lines.push(line(
                    "event_msg",
                    &format!(r#"{{"type":"user_message","message":{words},"images":[]}}"#),
                ));
            }
            Said::Model { .. } => lines.extend(request(model, at, states.then_some(&mut total), &mut facts)),
            Said::Result { call, .. } => {
                let asked = &model.calls[*call];
                let kind = if asked.params.is_multiple_of(5) {
                    "custom_tool_call_output"
                } else {
                    "function_call_output"
                };
                let id = asked.id.as_deref().unwrap_or_default();
                let (made, failed) = outcome(entry.how, id, kind);
                facts.answers(*call, [false, false], Some(failed));
                lines.extend(made);
            }
            Said::Again(_) => unreachable!(),
        }
    }
    Written { main: facts, ..Written::new("codex", lines.join("\n")) }
}
