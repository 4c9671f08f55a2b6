//! Messages as the libraries of models write them, in the shape of a chat: role, content, parts and calls under the names that a
//! chat has.
//!
//! Reads no usage and decides nothing: a member that is not known stays in the message under its own name.

use dendrer_object::value::Object;
use dendrer_object::{Value, json};

use super::spans::{of_role, plain};

/// Names that one library gives to its messages in place of a role.
const TYPES: &[(&str, &str)] = &[
    ("human", "user"),
    ("HumanMessage", "user"),
    ("HumanMessageChunk", "user"),
    ("ai", "assistant"),
    ("AIMessage", "assistant"),
    ("AIMessageChunk", "assistant"),
    ("system", "system"),
    ("SystemMessage", "system"),
    ("SystemMessageChunk", "system"),
    ("tool", "tool"),
    ("ToolMessage", "tool"),
    ("ToolMessageChunk", "tool"),
    ("function", "function"),
    ("FunctionMessage", "function"),
    ("FunctionMessageChunk", "function"),
];

fn role_of_type(name: &str) -> Option<&'static str> {
    TYPES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role)
}

/// Returns the messages that a value is: a list of them, one of them, an object that has them, or a text. A message without a role has
/// `role`.
pub(crate) fn messages(value: &Value, role: &str) -> Vec<Object> {
    match plain(value) {
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::Array(items) => of_list(&items.iter().cloned().collect::<Vec<_>>(), role),
        Value::Object(object) => of_object(&object, role),
        _ => vec![of_role(role, Some(value.clone()))],
    }
}

fn of_list(items: &[Value], role: &str) -> Vec<Object> {
    if !items.is_empty() && items.iter().all(|item| item.as_array().is_some()) {
        let lists = items.iter().filter_map(Value::as_array);
        return lists.flat_map(|list| of_list(&list.iter().cloned().collect::<Vec<_>>(), role)).collect();
    }
    let is_part = |item: &Value| {
        item.as_object()
            .is_some_and(|item| !is_message(item) && item.get("type").and_then(Value::as_str).is_some())
    };
    if !items.is_empty() && items.iter().all(is_part) {
        return vec![of_role(role, Some(content(items.iter().map(part).collect())))];
    }
    items
        .iter()
        .filter_map(|item| match item {
            Value::Null => None,
            Value::Object(object) if is_message(object) => Some(message(object, role)),
            other => Some(of_role(role, Some(other.clone()))),
        })
        .collect()
}

fn of_object(object: &Object, role: &str) -> Vec<Object> {
    if is_message(object) {
        return vec![message(object, role)];
    }
    for list in ["messages", "choices", "generations", "prompts", "prompt"] {
        let Some(inner) = object.get(list).filter(|inner| !matches!(inner, Value::Null)) else { continue };
        let system = object.get("system").map(|system| messages(system, "system")).unwrap_or_default();
        let of_list = match list {
            "choices" | "generations" => of_choices(inner, role),
            _ => messages(inner, role),
        };
        return system.into_iter().chain(of_list).collect();
    }
    vec![of_role(role, Some(Value::Object(object.clone())))]
}

/// The messages of choices: each has one, or a text.
fn of_choices(list: &Value, role: &str) -> Vec<Object> {
    let Some(items) = list.as_array() else { return messages(list, role) };
    let one = |item: &Value| match item {
        Value::Array(_) => of_choices(item, role),
        Value::Object(object) if object.get("message").is_some_and(|inner| inner.as_object().is_some()) => {
            vec![message(object, role)]
        }
        Value::Object(object) if object.get("text").and_then(Value::as_str).is_some() => {
            vec![of_role(role, object.get("text").cloned())]
        }
        other => messages(other, role),
    };
    items.iter().flat_map(one).collect()
}

/// Whether an object is a message, in one of its shapes.
fn is_message(object: &Object) -> bool {
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    let holds = |name: &str| object.get(name).is_some_and(|inner| inner.as_object().is_some());
    text("role").is_some()
        || holds("message")
        || (holds("kwargs") && object.contains_key("lc"))
        || (text("type").and_then(role_of_type).is_some()
            && (object.contains_key("content") || holds("data")))
}

/// A message in the shape of a chat.
pub(crate) fn message(object: &Object, role: &str) -> Object {
    if let Some(inner) = object.get("message").and_then(Value::as_object) {
        let mut made = message(inner, object.get("role").and_then(Value::as_str).unwrap_or(role));
        for (name, value) in object.iter().filter(|(name, _)| !matches!(&***name, "message" | "role")) {
            if !made.contains_key(name) {
                made.set(name, value.clone());
            }
        }
        return made;
    }
    if let Some(inner) = object.get("kwargs").and_then(Value::as_object).filter(|_| object.contains_key("lc"))
    {
        let named = object.get("id").and_then(Value::as_array).and_then(|id| id.iter().last()?.as_str());
        return of_library(inner, named.and_then(role_of_type), role);
    }
    let named = object.get("type").and_then(Value::as_str).and_then(role_of_type);
    if let Some(named) = named.filter(|_| !object.contains_key("role")) {
        let inner = object.get("data").and_then(Value::as_object).unwrap_or(object);
        return of_library(inner, Some(named), role);
    }
    plain_message(object, role)
}

/// A message of a library that has roles as types.
fn of_library(inner: &Object, named: Option<&str>, role: &str) -> Object {
    let own = inner.get("type").and_then(Value::as_str).and_then(role_of_type);
    let mut made = plain_message(inner, named.or(own).unwrap_or(role));
    if own.is_some() {
        made.remove("type");
    }
    let has_calls = |object: &Object| {
        object.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty())
    };
    let beside = inner.get("additional_kwargs").and_then(Value::as_object);
    if let Some(beside) = beside.filter(|beside| has_calls(beside) && !has_calls(&made)) {
        made.set("tool_calls", beside.get("tool_calls").cloned().unwrap_or(Value::Null));
    }
    if let Some(call) = beside.and_then(|beside| beside.get("function_call")).filter(|_| !has_calls(&made)) {
        made.set("function_call", call.clone());
    }
    // Calls whose arguments the library could not read: the model asked for them all the same.
    if let Some(more) =
        inner.get("invalid_tool_calls").and_then(Value::as_array).filter(|more| !more.is_empty())
    {
        let listed = made.get("tool_calls").and_then(Value::as_array).cloned().unwrap_or_default();
        made.set("tool_calls", Value::array(listed.iter().chain(more.iter()).cloned()));
        made.remove("invalid_tool_calls");
    }
    made
}

fn plain_message(object: &Object, role: &str) -> Object {
    let mut made = object.clone();
    if object.get("role").and_then(Value::as_str).is_none_or(str::is_empty) {
        made.set("role", Value::from(role));
    }
    if let Some(parts) = made.remove("parts") {
        match parts.as_array() {
            Some(list) => made.set("content", content(list.iter().map(part).collect())),
            None => made.set("content", parts),
        }
    }
    if let Some(list) = made.get("contents").and_then(Value::as_array).cloned() {
        made.remove("contents");
        made.set("content", content(list.iter().map(of_contents).collect()));
    }
    if let Some(list) = made.get("content").and_then(Value::as_array).cloned() {
        made.set("content", Value::array(list.iter().map(part)));
    }
    // Some write a list of parts as text.
    if let Some(text) = made.get("content").and_then(Value::as_str)
        && text.trim_ascii_start().starts_with('[')
        && let Ok(Value::Array(list)) = json::parse_door(text.as_bytes())
        && !list.is_empty()
        && list.iter().all(|part| part.get("type").and_then(Value::as_str).is_some())
    {
        made.set("content", Value::array(list.iter().map(part)));
    }
    if let Some(calls) = made.get("tool_calls").and_then(Value::as_array).cloned() {
        made.set(
            "tool_calls",
            Value::array(calls.iter().map(|call| call.get("tool_call").unwrap_or(call).clone())),
        );
    }
    if let Some(name) = made.get("function_call_name").cloned() {
        let arguments = made.remove("function_call_arguments_json").unwrap_or(Value::Null);
        made.remove("function_call_name");
        made.set("function_call", Value::record([("name", name), ("arguments", arguments)]));
    }
    made
}

/// The content that parts are: the text alone, if there is nothing else.
fn content(parts: Vec<Value>) -> Value {
    let plain = |part: &Value| {
        let object = part.as_object()?;
        let is_text = object.get("type").and_then(Value::as_str) == Some("text") && object.len() == 2;
        object.get("text").filter(|text| is_text && text.as_str().is_some()).cloned()
    };
    match &parts[..] {
        [] => Value::Null,
        [only] => plain(only).unwrap_or_else(|| Value::array(parts)),
        _ => Value::array(parts),
    }
}

/// A part with the names that a chat has.
fn part(part: &Value) -> Value {
    let Some(object) = part.as_object() else { return part.clone() };
    let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
    let mut made = object.clone();
    let moved = |made: &mut Object, from: &str, to: &str| {
        if !made.contains_key(to)
            && let Some(value) = made.remove(from)
        {
            made.set(to, value);
        }
    };
    match kind {
        "text" => moved(&mut made, "content", "text"),
        "server_tool_call" => moved(&mut made, "server_tool_call", "arguments"),
        "server_tool_call_response" => moved(&mut made, "server_tool_call_response", "response"),
        _ => return part.clone(),
    }
    Value::Object(made)
}

/// A part whose members have the name of the part in front.
fn of_contents(item: &Value) -> Value {
    item.get("message_content").map_or_else(|| part(item), part)
}
