//! Items of the Responses API: a response, responses, items, or the items of a conversation.
//!
//! One item is one message, a call that its server answered is a call and its result. The usage of a response counts once, at its
//! last item of the model.

use dendrer::kernel::unknown::{CALLS, FAILURES, USAGE};
use dendrer_object::value::Object;
use dendrer_object::{Value, json};

use super::openai_chat::{self, Messages};
use crate::foreign::{Format, Head};
use crate::import::account::{ANY, Account, Of, Row, kept, read};
use crate::import::chat::Turn;
use crate::import::error::ImportError;
use crate::import::layout;
use crate::import::native::{self, Native};
use crate::import::note::{At, ImportNote};

/// The format.
pub(super) static OPENAI_RESPONSES: Format = Format {
    tables: || vec![("an item", ITEM.to_vec()), ("a response", RESPONSE.to_vec())],
    sniff,
    shape: "items with a `type` of the Responses API, or responses with `output`",
    survey: |source, _| layout::survey_top(source),
    items: |source, layout, hints, visit| native::read(source, layout, hints, &mut Responses, visit),
    ..Format::new("openai-responses", "Responses and items of the Responses API", |_| {
        Box::new(Messages::default())
    })
};

/// The members of an item.
static ITEM: &[Row] = &[
    read("type", ANY, "the kind of the item"),
    read("role", ANY, "who speaks"),
    read("content", ANY, "the words"),
    read("name", ANY, "the tool"),
    read("arguments", ANY, "the parameters"),
    read("input", ANY, "the parameters"),
    read("action", ANY, "the parameters"),
    read("code", ANY, "the parameters"),
    read("queries", ANY, "the parameters"),
    read("operation", ANY, "the parameters"),
    read("call_id", ANY, "the call"),
    read("output", ANY, "the output of a tool"),
    read("outputs", ANY, "the output of a tool"),
    read("result", ANY, "the output of a tool"),
    read("results", ANY, "the output of a tool"),
    read("error", ANY, "whether the call failed"),
    read("status", ANY, "whether the call failed"),
    read("approve", ANY, "a decision"),
    read("reason", ANY, "a decision"),
    read("approval_request_id", ANY, "a decision"),
    kept("tools", ANY, "definitions"),
    kept("acknowledged_safety_checks", ANY, "checks of the caller"),
    kept("pending_safety_checks", ANY, "checks of the caller"),
];

/// The members of a response around its items.
static RESPONSE: &[Row] = &[
    read("output", ANY, "the items"),
    read("usage", ANY, "tokens"),
    kept("error", ANY, "the failure of the response, and of no call"),
    kept("incomplete_details", ANY, "the end of the response"),
    kept("tools", ANY, "definitions"),
    kept("tool_choice", ANY, "a setting"),
    kept("parallel_tool_calls", ANY, "a setting"),
    kept("max_output_tokens", ANY, "a setting"),
    kept("max_tool_calls", ANY, "a setting"),
    kept("instructions", ANY, "a setting"),
    kept("status", ANY, "the end of the response"),
    kept("text", ANY, "a setting"),
    kept("reasoning", ANY, "a setting"),
    kept("metadata", ANY, "labels of the caller"),
];

/// Types of items that ask for a call and are answered by another item.
const CALLS_OF_CLIENTS: &[&str] = &[
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "tool_search_call",
];

/// Types of items with a call that a server has answered.
const CALLS_OF_SERVERS: &[&str] =
    &["mcp_call", "code_interpreter_call", "web_search_call", "file_search_call", "image_generation_call"];

/// Types of items that state none of what is counted.
const KEPT: &[&str] =
    &["reasoning", "compaction", "compaction_summary", "mcp_list_tools", "mcp_approval_request"];

fn sniff(head: &Head<'_>) -> bool {
    head.any(|object| {
        let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
        let is_item = !object.contains_key("role") || kind == "message";
        (is_item && is_type(kind) && kind != "message" && !object.contains_key("payload"))
            || object.get("object").and_then(Value::as_str) == Some("response")
            || object.get("data").and_then(Value::as_array).is_some_and(|items| {
                let kind = |item: &Value| item.get("type").and_then(Value::as_str).is_some_and(is_type);
                object.get("object").and_then(Value::as_str) == Some("list") && items.iter().any(kind)
            })
    }) || (head.values.is_empty()
        && head.bytes.starts_with(b"{")
        && head.names("output")
        && head.names("response"))
}

fn is_type(kind: &str) -> bool {
    kind == "message"
        || kind == "item_reference"
        || CALLS_OF_CLIENTS.contains(&kind)
        || CALLS_OF_SERVERS.contains(&kind)
        || KEPT.contains(&kind)
        || is_output(kind)
}

fn is_output(kind: &str) -> bool {
    kind.strip_suffix("_output").is_some_and(|call| CALLS_OF_CLIENTS.contains(&call))
}

/// Makes messages of responses and items.
struct Responses;

impl Native for Responses {
    fn item(&mut self, item: &Object, at: At<'_>, account: &mut Account) -> Result<Vec<Turn>, ImportError> {
        let is_response = item.get("output").and_then(Value::as_array).is_some();
        if is_response && !item.contains_key("type") {
            return Ok(response(item, at, account));
        }
        let is_list = item.get("object").and_then(Value::as_str) == Some("list");
        if let Some(items) = item.get("data").and_then(Value::as_array).filter(|_| is_list) {
            let items = items.iter().zip(0..).filter_map(|(one, number)| Some((one.as_object()?, number)));
            return Ok(items
                .flat_map(|(one, number)| one_item(one, At { part: Some(("data", number)), ..at }, account))
                .collect());
        }
        Ok(one_item(item, at, account))
    }
}

/// The items of a response. Its usage is that of its last item of the model.
pub(crate) fn response(response: &Object, at: At<'_>, account: &mut Account) -> Vec<Turn> {
    let items = response.get("output").and_then(Value::as_array).into_iter().flat_map(|items| items.iter());
    let mut notes = Vec::new();
    account.item(RESPONSE, Of::Model, response, &at, &mut notes);
    let mut turns: Vec<Turn> = Vec::new();
    for (item, number) in items.zip(0..) {
        let at = At { part: Some(("output", number)), ..at };
        match item.as_object() {
            Some(item) => turns.append(&mut one_item(item, at, account)),
            None => notes.push(ImportNote::not_read(at, &[CALLS, FAILURES], "this item is no object")),
        }
    }
    let text = |name: &str| response.get(name).and_then(Value::as_str).map(str::to_owned);
    let rest: Object = response
        .iter()
        .filter(|(name, _)| !matches!(&***name, "output" | "usage"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if turns.is_empty() {
        turns.push(Turn { message: said("assistant", &[("content", Value::Null)]), ..Turn::default() });
    }
    let is_of_model = |turn: &Turn| turn.message.get("role").and_then(Value::as_str) == Some("assistant");
    let last = turns.iter().rposition(is_of_model);
    if let (Some(last), Some(usage)) = (last, response.get("usage")) {
        // The statements of the others are this one.
        turns[last].message.set("usage", usage.clone());
    }
    for (index, turn) in turns.iter_mut().enumerate().filter(|(_, turn)| is_of_model(turn)) {
        turn.is_counted_elsewhere = Some(index) != last;
    }
    // Items without an id are known by that of the response.
    for (index, turn) in turns.iter_mut().enumerate().filter(|(_, turn)| turn.answer.is_none()) {
        turn.answer = text("id").map(|id| format!("response {id} {index}"));
    }
    let first = &mut turns[0];
    first.message.set("response", Value::Object(rest));
    (first.id, first.parent) = (text("id"), text("previous_response_id"));
    first.notes.append(&mut notes);
    turns
}

/// A message with a role and members.
fn said(role: &str, members: &[(&str, Value)]) -> Object {
    let mut message = Object::default();
    message.set("role", Value::from(role));
    members.iter().for_each(|(name, value)| message.set(name, value.clone()));
    message
}

/// The messages of one item.
pub(crate) fn one_item(item: &Object, at: At<'_>, account: &mut Account) -> Vec<Turn> {
    let kind = item.get("type").and_then(Value::as_str).unwrap_or("message");
    let of = match kind {
        kind if is_output(kind) => Of::Result,
        "message" => Of::Outside,
        _ => Of::Model,
    };
    let mut notes = Vec::new();
    account.item(ITEM, of, item, &at, &mut notes);
    let mut turns = match kind {
        "message" => vec![message(item)],
        kind if CALLS_OF_CLIENTS.contains(&kind) => {
            vec![Turn { message: call(item, kind, &[]), ..Turn::default() }]
        }
        kind if is_output(kind) => vec![Turn { message: output(item), is_output: true, ..Turn::default() }],
        kind if CALLS_OF_SERVERS.contains(&kind) => served(item, kind),
        "mcp_approval_response" if item.get("approve").and_then(Value::as_bool) == Some(false) => {
            vec![denied(item)]
        }
        kind => {
            if !KEPT.contains(&kind) && kind != "mcp_approval_response" {
                let may: &[&str] = match kind {
                    "item_reference" => &[CALLS, FAILURES, USAGE],
                    _ => &[CALLS, FAILURES],
                };
                let text = format!("an item of the type {kind} is in no table");
                let note = ImportNote::not_read(at, may, text);
                account.not_read(&at, &note);
                notes.push(note);
            }
            let rest = rest(item, &["type"]);
            let name = if kind == "reasoning" { "reasoning" } else { "item" };
            let all = if kind == "reasoning" { rest } else { item.clone() };
            let message = said("assistant", &[("content", Value::Null), (name, Value::Object(all))]);
            vec![Turn { message, ..Turn::default() }]
        }
    };
    let id = item.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
    for turn in &mut turns {
        turn.part = turn.part.or(at.part);
        let role = turn.message.get("role").and_then(Value::as_str).unwrap_or_default();
        turn.answer = id.map(|id| format!("item {id} {role}"));
    }
    if let Some(first) = turns.first_mut() {
        first.notes.append(&mut notes);
    }
    turns
}

fn rest(item: &Object, taken: &[&str]) -> Object {
    openai_chat::rest(item, taken).into_iter().collect()
}

fn message(item: &Object) -> Turn {
    let mut message = rest(item, &["type", "status"]);
    if !message.contains_key("role") {
        message.set("role", Value::from("assistant"));
    }
    // One text with nothing next to it is the text.
    let parts = message.get("content").and_then(Value::as_array).cloned();
    if let Some(parts) = parts.filter(|parts| parts.len() == 1)
        && let Some(part) = parts.get(0).and_then(Value::as_object)
        && part
            .iter()
            .all(|(name, value)| matches!(&**name, "type" | "text") || openai_chat::says_none(value))
        && let Some(text @ Value::String(_)) = part.get("text")
    {
        message.set("content", text.clone());
    }
    Turn { message, ..Turn::default() }
}

/// A call in the shape of a chat.
fn call(item: &Object, kind: &str, more: &[&str]) -> Object {
    let params = ["arguments", "input", "action", "operation", "queries", "code"];
    let name =
        item.get("name").cloned().unwrap_or_else(|| Value::from(kind.strip_suffix("_call").unwrap_or(kind)));
    let id = item.get("call_id").or_else(|| item.get("id")).cloned();
    let mut call = Object::default();
    call.set("name", name);
    id.into_iter().for_each(|id| call.set("id", id));
    // Other members of a server's call are its parameters.
    let named = params.iter().find_map(|name| item.get(name));
    named.into_iter().for_each(|value| {
        let name = if kind == "custom_tool_call" { "input" } else { "arguments" };
        match name {
            "input" => {
                let mut custom = Object::default();
                custom.set("name", call.get("name").cloned().unwrap_or(Value::Null));
                custom.set("input", value.clone());
                call.remove("name");
                call.set("custom", Value::Object(custom));
                call.set("type", Value::from("custom"));
            }
            name => call.set(name, value.clone()),
        }
    });
    let taken = [&params[..], &["type", "name", "call_id", "status"], more].concat();
    let mut message =
        said("assistant", &[("content", Value::Null), ("tool_calls", Value::array([Value::Object(call)]))]);
    let left = rest(item, &taken);
    left.iter().for_each(|(name, value)| message.set(&format!("item_{name}"), value.clone()));
    message
}

/// Whether the status of an item states that its call failed. A complete item states nothing of its call.
fn failed(item: &Object) -> Option<Value> {
    let status = item.get("status").and_then(Value::as_str);
    matches!(status, Some("failed" | "incomplete" | "error")).then(|| Value::from(true))
}

fn output(item: &Object) -> Object {
    let members = [
        ("tool_call_id", item.get("call_id").cloned()),
        ("content", item.get("output").cloned()),
        ("is_error", failed(item)),
    ];
    let mut message = said("tool", &[]);
    members
        .into_iter()
        .for_each(|(name, value)| value.into_iter().for_each(|value| message.set(name, value)));
    let left = rest(item, &["type", "call_id", "output", "status"]);
    left.iter().for_each(|(name, value)| message.set(&format!("item_{name}"), value.clone()));
    message
}

/// The call of a server and its result, which one item has together.
fn served(item: &Object, kind: &str) -> Vec<Turn> {
    let outputs = ["output", "outputs", "result", "results"];
    let asked = Turn { message: call(item, kind, &[&outputs[..], &["error"]].concat()), ..Turn::default() };
    let output = outputs.iter().find_map(|name| item.get(name)).filter(|value| **value != Value::Null);
    let error = item.get("error").filter(|error| **error != Value::Null);
    let ended =
        matches!(item.get("status").and_then(Value::as_str), Some("completed" | "failed" | "incomplete"));
    if output.is_none() && error.is_none() && !ended {
        return vec![asked];
    }
    let members = [
        ("tool_call_id", item.get("call_id").or_else(|| item.get("id")).cloned()),
        ("content", Some(output.cloned().unwrap_or(Value::Null))),
        (
            "error",
            error
                .map(|error| error.as_str().map_or_else(|| Value::from(json::to_string(error)), Value::from)),
        ),
        ("is_error", failed(item)),
    ];
    let mut message = said("tool", &[]);
    members
        .into_iter()
        .for_each(|(name, value)| value.into_iter().for_each(|value| message.set(name, value)));
    vec![asked, Turn { message, is_output: true, ..Turn::default() }]
}

/// The word of a person who does not let a call happen.
fn denied(item: &Object) -> Turn {
    let members = [
        ("call_id", item.get("approval_request_id").cloned()),
        ("decision", Some(Value::from("deny"))),
        ("reason", item.get("reason").cloned()),
    ];
    let decision = Value::record(members.into_iter().filter_map(|(name, value)| Some((name, value?))));
    Turn { message: item.clone(), decision: Some(decision), ..Turn::default() }
}
