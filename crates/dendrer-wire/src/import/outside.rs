//! Messages that lie outside the list: the answer in a log of one exchange, such as `response.choices[0].message`.
//!
//! One answer is imported behind the list. Where there are several, or where it is no answer, none is taken, and each is named as
//! left out: what was not read is not counted as absent.

use dendrer_object::{Pointer, Value, json};

/// How deep messages are looked for.
const DEPTH: usize = 8;

/// What lies outside the list.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// The answer that is imported behind the list.
    pub(crate) answer: Option<Answer>,
    /// The places of what is left out.
    pub(crate) left_out: Vec<String>,
}

/// A message behind the list.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The place, as a JSON pointer.
    pub(crate) at: String,
    pub(crate) message: Value,
    /// The usage that is stated around it.
    pub(crate) usage: Option<Value>,
}

/// Finds the messages in what lies around a list, and takes the answer out of it. `last` is the last message of the list.
pub(crate) fn find(around: &mut Value, last: &Value) -> Outside {
    let mut found = Vec::new();
    let mut path = Vec::new();
    look(around, &mut path, None, &mut found);
    // A system message says what holds for the run, and a copy of the last message says nothing new.
    found.retain(|one| match one {
        Found::Message { message, .. } => {
            !crate::format::openai_chat::is_preamble(message) && message != last
        }
        Found::Several { .. } | Found::Unread { .. } => true,
    });
    if let [Found::Message { path, message, usage }] = &found[..]
        && is_answer(message)
    {
        let (at, message, usage) = (pointer(path), message.clone(), usage.clone());
        *around = without(around, path);
        return Outside { answer: Some(Answer { at, message, usage }), left_out: Vec::new() };
    }
    let left_out = found.iter().map(
        |(Found::Message { path, .. } | Found::Several { path } | Found::Unread { path })| pointer(path),
    );
    Outside { answer: None, left_out: left_out.collect() }
}

#[derive(Debug, Clone)]
enum Step {
    Name(std::sync::Arc<str>),
    Index(usize),
}

enum Found {
    /// Calls, or items of another kind than messages.
    Unread {
        path: Vec<Step>,
    },
    Message {
        path: Vec<Step>,
        message: Value,
        usage: Option<Value>,
    },
    /// Several in one list.
    Several {
        path: Vec<Step>,
    },
}

fn look(value: &Value, path: &mut Vec<Step>, usage: Option<&Value>, found: &mut Vec<Found>) {
    if is_message(value) {
        // An item of a list is no answer, also where it is the only one.
        if let [list @ .., Step::Index(_)] = &path[..] {
            found.push(Found::Several { path: list.to_vec() });
            return;
        }
        found.push(Found::Message { path: path.clone(), message: value.clone(), usage: usage.cloned() });
        return;
    }
    if crate::format::openai_chat::holds_calls(value) {
        // Of a list of items, the list is named.
        let end = path.iter().rposition(|step| matches!(step, Step::Name(_))).map_or(0, |at| at + 1);
        found.push(Found::Unread { path: path[..end].to_vec() });
        return;
    }
    if path.len() == DEPTH {
        return;
    }
    match value {
        // An answer that was kept as the text it came in.
        Value::String(text) if is_json_of_messages(text) => {
            let mut within = Vec::new();
            let read = json::parse_door(text.trim_ascii().as_bytes());
            read.iter().for_each(|read| look(read, &mut Vec::new(), None, &mut within));
            if !within.is_empty() {
                found.push(Found::Unread { path: path.clone() });
            }
        }
        Value::Object(members) => {
            let usage = members.get("usage").filter(|usage| usage.as_object().is_some()).or(usage);
            for (name, member) in members.iter() {
                path.push(Step::Name(name.clone()));
                look(member, path, usage, found);
                path.pop();
            }
        }
        Value::Array(items) => {
            let before = found.len();
            for (index, item) in items.iter().enumerate() {
                path.push(Step::Index(index));
                look(item, path, usage, found);
                path.pop();
                if found.len() > before + 1 {
                    break;
                }
            }
            if found.len() > before + 1 {
                found.truncate(before);
                found.push(Found::Several { path: path.clone() });
            }
        }
        _ => {}
    }
}

/// Whether a text may be JSON that holds messages or calls.
fn is_json_of_messages(text: &str) -> bool {
    text.trim_ascii_start().starts_with(['{', '['])
        && ["\"role\"", "tool_calls", "function_call", "functionCall", "tool_use"]
            .iter()
            .any(|name| text.contains(name))
}

/// As in the layout: an object with a text `role` and something said.
fn is_message(value: &Value) -> bool {
    let Some(object) = value.as_object() else { return false };
    object.get("role").and_then(Value::as_str).is_some()
        && ["content", "tool_calls", "function_call"].iter().any(|name| object.contains_key(name))
}

/// Whether a model says it.
fn is_answer(message: &Value) -> bool {
    message.get("role").and_then(Value::as_str).is_some_and(crate::format::openai_chat::is_role_of_a_model)
}

fn pointer(path: &[Step]) -> String {
    let names: Vec<String> = path
        .iter()
        .map(|step| match step {
            Step::Name(name) => name.to_string(),
            Step::Index(index) => index.to_string(),
        })
        .collect();
    Pointer::of(names.iter().map(String::as_str)).as_str().to_owned()
}

/// A value without what is at a path.
fn without(value: &Value, path: &[Step]) -> Value {
    match (value, path) {
        (Value::Object(members), [Step::Name(gone), rest @ ..]) => {
            let kept = members.iter().filter_map(|(name, member)| match (**name == **gone, rest) {
                (false, _) => Some((name.clone(), member.clone())),
                (true, []) => None,
                (true, _) => Some((name.clone(), without(member, rest))),
            });
            Value::Object(kept.collect())
        }
        (Value::Array(items), [Step::Index(gone), rest @ ..]) => {
            let kept = items.iter().enumerate().filter_map(|(index, item)| match (index == *gone, rest) {
                (false, _) => Some(item.clone()),
                (true, []) => None,
                (true, _) => Some(without(item, rest)),
            });
            Value::array(kept)
        }
        _ => value.clone(),
    }
}
