//! Messages with roles and tool calls, in each layout of `docs/import.md`.

use dendrer_wire::import::Choice;

use super::facts::{Facts, Tokens};
use super::model::{Can, Dice, Ids, Model, Said, Text, output};
use super::{Written, quoted};

pub(super) const CAN: Can = Can {
    agents: 3,
    ids: &[Ids::Unique, Ids::Unique, Ids::Anew, Ids::Anew, Ids::None],
    names: true,
    late: true,
    // `smallest.rs` has results that are there twice.
    twice: false,
    same: true,
    trees: false,
    again: true,
};

/// A result goes with its call, so no call is answered on one branch alone.
pub(super) const TREES: Can = Can { ids: &[Ids::Unique], late: false, twice: false, trees: true, ..CAN };

/// The members of a result beside its call, and whether they state a failure.
fn outcome(how: u64) -> (String, Option<bool>) {
    let prose = |text: &str| format!(r#""content":{}"#, quoted(text));
    match how % 16 {
        0 => (format!(r#"{},"status":"error""#, prose("no")), Some(true)),
        1 => (format!(r#"{},"status":"success""#, prose("Error: all is well")), Some(false)),
        2 => (format!(r#"{},"is_error":true"#, prose("no")), Some(true)),
        3 => (format!(r#"{},"isError":false"#, prose("Error: old")), Some(false)),
        4 => (format!(r#"{},"success":false"#, prose("no")), Some(true)),
        5 => (format!(r#"{},"exit_code":2"#, prose("no")), Some(true)),
        6 => (format!(r#"{},"status":"on hold""#, prose("x")), None),
        7 => (format!(r#"{},"error":"no""#, prose("")), Some(true)),
        8 => {
            let part = r#""content":[{"type":"text","text":"Traceback (most recent call last): x"}]"#;
            (part.to_owned(), Some(true))
        }
        9 => (r#""content":null"#.to_owned(), Some(false)),
        _ => {
            let (text, failed) = output(how / 16);
            (prose(&text), Some(failed))
        }
    }
}

/// What a message of a model used, in one of the places in which it may be.
fn usage(how: u64, usage: Option<[u64; 2]>) -> String {
    let Some([given, made]) = usage else { return String::new() };
    let all = given + made;
    match how % 6 {
        0 => format!(r#","usage":{{"total_tokens":{all}}}"#),
        1 => format!(r#","usage":{{"prompt_tokens":{given},"completion_tokens":{made}}}"#),
        2 => format!(r#","usage_metadata":{{"input_tokens":{given},"output_tokens":{made}}}"#),
        3 => format!(r#","response_metadata":{{"token_usage":{{"total_tokens":{all}}}}}"#),
        4 => format!(r#","token_usage":{{"total_tokens":{all}}}"#),
        _ => format!(r#","total_tokens":{all}"#),
    }
}

fn message(model: &Model, at: usize) -> String {
    let entry = &model.entries[at];
    match &entry.said {
        Said::User(_) => format!(r#""role":"user","content":{}"#, quoted(model.words(at))),
        Said::Model { agent, text, calls, usage: used } => {
            let content = text.map_or("null".to_owned(), |_| quoted(model.words(at)));
            let mut listed = Vec::new();
            for call in &model.calls[calls.clone()] {
                let id = call.id.as_ref().map(|id| format!(r#""id":"{id}","#)).unwrap_or_default();
                let (tool, n) = (call.tool, call.params);
                listed.push(match n % 3 {
                    0 => format!(r#"{{{id}"function":"{tool}","args":{{"n":{n}}}}}"#),
                    _ => format!(
                        r#"{{{id}"type":"function","function":{{"name":"{tool}","arguments":"{{\"n\":{n}}}"}}}}"#
                    ),
                });
            }
            let calls = if listed.is_empty() {
                String::new()
            } else {
                format!(r#","tool_calls":[{}]"#, listed.join(","))
            };
            format!(
                r#""role":"assistant","name":"{agent}","content":{content}{calls}{}"#,
                usage(entry.how, *used)
            )
        }
        Said::Result { call, names_tool, names_agent, .. } => {
            let call = &model.calls[*call];
            let id = call.id.as_ref().map(|id| format!(r#""tool_call_id":"{id}","#)).unwrap_or_default();
            let tool = if *names_tool { format!(r#""name":"{}","#, call.tool) } else { String::new() };
            let agent = if *names_agent { format!(r#""agent":"{}","#, call.agent) } else { String::new() };
            format!(r#""role":"tool",{id}{tool}{agent}{}"#, outcome(entry.how).0)
        }
        Said::Again(at) => message(model, *at),
    }
}

/// What lies beside the list.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    Answer,
    Copy,
    Several,
}

pub(super) fn write(dice: &mut Dice, model: &Model) -> Written {
    let is_tree = model.leaves().len() > 1;
    let has_again = model.entries.iter().any(|entry| matches!(entry.said, Said::Again(_)));
    let has_ids = is_tree || has_again || dice.below(4) == 0;
    let mut messages: Vec<String> = Vec::new();
    for at in 0..model.entries.len() {
        let same = |at: usize| if let Said::Again(first) = model.entries[at].said { first } else { at };
        let one = same(at);
        let id = if has_ids { format!(r#""id":"m{one}","#) } else { String::new() };
        let parent =
            model.entries[one].before.map_or("null".to_owned(), |before| format!("\"m{}\"", same(before)));
        let parent = if is_tree { format!(r#""parent":{parent},"#) } else { String::new() };
        messages.push(format!("{{{id}{parent}{}}}", message(model, at)));
    }
    let branches = model.leaves().into_iter().rev();
    let mut branches: Vec<Facts> = branches
        .map(|leaf| {
            let mut facts = Facts::default();
            model.path(leaf).into_iter().for_each(|at| facts.entry(model, at, |how| outcome(how).1));
            facts
        })
        .collect();
    let mut main = branches.remove(0);
    branches.reverse();
    let mut has_other_kind = false;
    if dice.below(40) == 0 {
        let at = dice.below(messages.len() as u64 + 1) as usize;
        let item = dice.one(&[
            r#"{"type":"function_call","call_id":"x","name":"pay","arguments":"{}"}"#,
            r#"{"type":"reasoning","summary":[]}"#,
            r#"{"span_id":"7","name":"tool"}"#,
        ]);
        messages.insert(at, item.to_owned());
        has_other_kind = true;
    }
    let last = messages.last().cloned().unwrap_or_default();
    if dice.below(3) == 0 {
        messages.insert(0, r#"{"role":"system","content":"be brief"}"#.to_owned());
    }
    let (text, choice, beside) = laid_out(dice, &messages, &last, is_tree);
    match beside {
        Beside::Answer => main.says("assistant", Text::Plain, Tokens::Unstated),
        Beside::Several => {
            let last = main.list.len() - 1;
            main.list[last].notes.push("message_outside");
        }
        Beside::Nothing | Beside::Copy => {}
    }
    let may_fail = has_other_kind.then_some(messages.len() < 4);
    Written { choice, main, branches, may_fail, ..Written::new("openai-chat", text) }
}

/// One of the layouts; where the list is a member, with something beside it.
fn laid_out(dice: &mut Dice, messages: &[String], last: &str, is_tree: bool) -> (String, Choice, Beside) {
    let list = format!("[{}]", messages.join(","));
    let mut choice = Choice::default();
    let answer = r#"{"role":"assistant","content":"last words"}"#;
    let layout = dice.below(5);
    if layout < 2 {
        return (if layout == 0 { list } else { messages.join("\n") }, choice, Beside::Nothing);
    }
    let kinds = [Beside::Nothing, Beside::Nothing, Beside::Answer, Beside::Copy, Beside::Several];
    let beside = if is_tree { Beside::Nothing } else { dice.one(&kinds) };
    let more = match beside {
        Beside::Nothing => r#""model":"small""#.to_owned(),
        Beside::Answer => format!(r#""response":{{"choices":[{{"index":0,"message":{answer}}}]}}"#),
        Beside::Copy => format!(r#""last":{last}"#),
        Beside::Several => {
            format!(r#""response":{{"choices":[{{"message":{answer}}},{{"message":{answer}}}]}}"#)
        }
    };
    let run = dice.one(&["messages", "history", "a b"]);
    let run = match dice.below(2) {
        0 => format!(r#"{{"{run}":{list},{more}}}"#),
        _ => format!(r#"{{"request":{{"{run}":{list}}},{more}}}"#),
    };
    let text = match layout {
        2 => run,
        3 => {
            choice.index = Some(1);
            format!(r#"[{{"messages":[{answer}]}},{run}]"#)
        }
        _ => {
            choice.index = Some(0);
            format!("{run}\n{{\"messages\":[{answer}]}}")
        }
    };
    (text, choice, beside)
}
