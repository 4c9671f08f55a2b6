//! Messages that lie outside the list: the answer in a log of one exchange, such as `response.choices[0].message`.
//!
//! One answer is imported after the list. Where there are several, or where it is no answer, none is taken, and each is named as
//! left out: what was not read is not counted as absent.

use dendrer_object::{Pointer, Value, json};

/// How deep messages are looked for.
const DEPTH: usize = 8;

/// Messages outside the list.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// The answer that is imported after the list.
    pub(crate) answer: Option<Answer>,
    /// Places of messages and calls that are left out.
    pub(crate) left_out: Vec<String>,
}

/// A message that is imported after the list.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The place, as a JSON pointer.
    pub(crate) at: String,
    pub(crate) message: Value,
    /// The usage that is stated around it.
    pub(crate) usage: Option<Value>,
}

/// Finds the messages around a list, and takes the answer out of them. `last` is the last message of the list.
pub(crate) fn find(around: &mut Value, last: &Value) -> Outside {
    let mut found = Vec::new();
    let mut path = Vec::new();
    look(around, &mut path, None, &mut found);
    // A system message belongs to the run, and a copy of the last message adds nothing.
    found.retain(|one| {
        one.message.as_ref().is_none_or(|(message, _)| !super::is_preamble(message) && message != last)
    });
    if let [Found { path, message: Some((message, usage)) }] = &found[..]
        && is_answer(message)
    {
        let answer = Answer { at: pointer(path), message: message.clone(), usage: usage.clone() };
        remove(around, path);
        return Outside { answer: Some(answer), left_out: Vec::new() };
    }
    Outside { answer: None, left_out: found.iter().map(|one| pointer(&one.path)).collect() }
}

#[derive(Debug, Clone)]
enum Step {
    Name(std::sync::Arc<str>),
    Index(usize),
}

/// A place outside the list.
struct Found {
    path: Vec<Step>,
    /// The one message there, and a usage that is stated around it; `None` for several, or for calls or items of another kind.
    message: Option<(Value, Option<Value>)>,
}

impl Found {
    fn unread(path: &[Step]) -> Found {
        Found { path: path.to_vec(), message: None }
    }
}

fn look(value: &Value, path: &mut Vec<Step>, usage: Option<&Value>, found: &mut Vec<Found>) {
    if is_message(value) {
        // An item of a list is no answer, also where it is the only one.
        if let [list @ .., Step::Index(_)] = &path[..] {
            found.push(Found::unread(list));
            return;
        }
        found.push(Found { path: path.clone(), message: Some((value.clone(), usage.cloned())) });
        return;
    }
    if super::holds_calls(value) {
        // Of a list of items, the list is named.
        let end = path.iter().rposition(|step| matches!(step, Step::Name(_))).map_or(0, |at| at + 1);
        found.push(Found::unread(&path[..end]));
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
                found.push(Found::unread(path));
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
                found.push(Found::unread(path));
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

/// Whether a message is that of a model.
fn is_answer(message: &Value) -> bool {
    message.get("role").and_then(Value::as_str).is_some_and(super::is_role_of_a_model)
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

/// Removes the member at a path.
fn remove(value: &mut Value, path: &[Step]) {
    match (value, path) {
        (Value::Object(members), [Step::Name(gone)]) => {
            members.remove(gone);
        }
        (Value::Object(members), [Step::Name(name), rest @ ..]) => {
            if let Some(mut inner) = members.get(name).cloned() {
                remove(&mut inner, rest);
                members.set(name, inner);
            }
        }
        (Value::Array(items), [Step::Index(index), rest @ ..]) => {
            if let Some(mut inner) = items.get(*index).cloned() {
                remove(&mut inner, rest);
                items.set(*index, inner);
            }
        }
        _ => {}
    }
}
