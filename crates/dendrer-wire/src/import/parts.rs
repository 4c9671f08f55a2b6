//! Messages whose content is a list of parts: calls and results among the parts become calls of the message and messages of
//! their own.
//!
//! A part is known by its `type`, or by the one member that holds it (`functionCall`, `toolUse`). A message without its results is
//! one item if anything is left of it, each result is one.

use std::sync::LazyLock;

use dendrer::kernel::unknown::{CALLS, FAILURES};
use dendrer_object::Value;
use dendrer_object::value::{Array, Object};

use super::account::{self, Of};
use super::note::ImportNote;

/// Kind of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Text,
    Call,
    Result,
    /// A call with its result, as far as there is one.
    Both,
    Kept,
    Unknown,
}

/// Types of parts that hold text.
pub(crate) const TEXTS: &[&str] = &["text", "input_text", "output_text", "summary_text", "reasoning_text"];

/// Types of parts that ask for a call.
pub(crate) const CALL_TYPES: &[&str] = &[
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
    "tool_call",
    "tool-call",
    "toolCall",
    "function_call",
    "server_tool_call",
];

/// Types of parts that bring the result of a call; a type that ends in `_tool_result` is one too.
pub(crate) const RESULT_TYPES: &[&str] = &[
    "tool_result",
    "tool-result",
    "toolResult",
    "mcp_tool_result",
    "tool_call_response",
    "server_tool_call_response",
    "function_call_output",
    "tool_response",
];

/// Types of parts that are kept: none states a call, a usage or a failure.
pub(crate) const KEPT_TYPES: &[(&str, &str)] = &[
    ("audio", "a medium"),
    ("blob", "a medium"),
    ("compaction", "a summary"),
    ("container_upload", "a file"),
    ("document", "a file"),
    ("file", "a file"),
    ("image", "a medium"),
    ("image_url", "a medium"),
    ("input_audio", "a medium"),
    ("input_file", "a file"),
    ("input_image", "a medium"),
    ("media", "a medium"),
    ("output_audio", "a medium"),
    ("reasoning", "a thought"),
    ("redacted_thinking", "a thought"),
    ("refusal", "words"),
    ("resource", "a file"),
    ("resource_link", "a file"),
    ("search_result", "a document"),
    ("source-document", "a document"),
    ("source-url", "a document"),
    ("source", "a document"),
    ("step-start", "a mark between two answers"),
    ("thinking", "a thought"),
    ("tool_reference", "a definition"),
    ("uri", "a file"),
    ("video", "a medium"),
    ("video_url", "a medium"),
];

/// Members that hold a call, of parts without a type.
const CALL_MEMBERS: &[&str] = &["functionCall", "function_call", "toolUse"];

/// Members that hold a result, of parts without a type.
const RESULT_MEMBERS: &[&str] = &["functionResponse", "function_response", "toolResult"];

/// Members that hold what is kept, of parts without a type.
const KEPT_MEMBERS: &[&str] = &[
    "text",
    "inlineData",
    "inline_data",
    "fileData",
    "file_data",
    "image",
    "document",
    "video",
    "cachePoint",
    "reasoningContent",
    "thought",
    "executableCode",
    "guardContent",
];

/// Members of parts that are read, or that hold what is data: words, media, arguments and outputs of tools, settings.
static MEMBERS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let all: &[&[&str]] = &[
        IDS,
        NAMES,
        INPUTS,
        OUTPUTS,
        CALL_MEMBERS,
        RESULT_MEMBERS,
        KEPT_MEMBERS,
        &[
            "type",
            "toolInvocation",
            "state",
            "errorText",
            "approval",
            "preliminary",
            "rawInput",
            "error_code",
        ],
        &["error", "is_error", "isError", "success", "exit_code", "status", "agent", "agent_id"],
        &["source", "data", "file", "image_url", "input_audio", "video_url", "url", "title", "summary"],
        &["citations", "annotations", "logprobs", "cache_control", "caller", "signature", "thinking"],
        &["providerMetadata", "callProviderMetadata", "resultProviderMetadata", "providerOptions"],
    ];
    all.concat()
});

/// The lists of parts that a message may have.
pub(crate) const LISTS: [&str; 3] = ["content", "parts", INVOCATIONS];

/// The list of calls with their results that a message may have next to its content; `parts` may have them as well.
const INVOCATIONS: &str = "toolInvocations";

fn kind(part: &Value) -> Part {
    part.as_object().map_or(Part::Kept, kind_of)
}

fn kind_of(object: &Object) -> Part {
    let holds = |names: &[&str]| {
        names.iter().any(|name| object.get(name).is_some_and(|inner| inner.as_object().is_some()))
    };
    let has = |names: &[&str]| names.iter().any(|name| object.contains_key(name));
    let Some(name) = object.get("type").and_then(Value::as_str) else {
        return match () {
            () if holds(CALL_MEMBERS) => Part::Call,
            () if holds(RESULT_MEMBERS) => Part::Result,
            () if has(&["toolCallId"]) && has(&["state"]) => Part::Both,
            () if has(KEPT_MEMBERS) => Part::Kept,
            () => Part::Unknown,
        };
    };
    match name {
        name if TEXTS.contains(&name) => Part::Text,
        name if CALL_TYPES.contains(&name) => Part::Call,
        name if RESULT_TYPES.contains(&name) || name.ends_with("_tool_result") => Part::Result,
        "dynamic-tool" | "tool-invocation" => Part::Both,
        name if name.starts_with("tool-") && (has(&["toolCallId"]) || has(&["state"])) => Part::Both,
        name if KEPT_TYPES.iter().any(|(known, _)| *known == name) || name.starts_with("data-") => Part::Kept,
        _ => Part::Unknown,
    }
}

/// One item of a message.
#[derive(Debug)]
pub(crate) struct Piece {
    /// It as a message of its own, in the shape of a chat.
    pub(crate) value: Value,
    /// The list and the number of its part; `None` for the message without its results.
    pub(crate) part: Option<(&'static str, u64)>,
    /// The decision on a call that it states, in place of a message.
    pub(crate) decision: Option<Value>,
    /// Whether a later piece of the message states its usage.
    pub(crate) is_counted_elsewhere: bool,
}

impl Piece {
    fn new(value: Value, part: Option<(&'static str, u64)>) -> Piece {
        Piece { value, part, decision: None, is_counted_elsewhere: false }
    }
}

/// Notes the parts of a message that are in no table, and the members of its parts that show.
pub(crate) fn account(message: &Object, at: &dyn std::fmt::Display, notes: &mut Vec<ImportNote>) {
    for (list, part, number) in parts_of(message) {
        if kind(part) == Part::Unknown {
            let name = part.get("type").and_then(Value::as_str).unwrap_or("none");
            let text = format!("a part of the type {name} is in no table");
            notes.push(ImportNote::not_read(format!("{at}/{list}/{number}"), &[CALLS, FAILURES], text));
        } else if let Some(part) = part.as_object() {
            account_part(part, &format!("{at}/{list}/{number}"), notes);
        }
    }
}

/// Notes the members of a part that are in no table and show.
pub(crate) fn account_part(part: &Object, at: &dyn std::fmt::Display, notes: &mut Vec<ImportNote>) {
    let kind = kind_of(part);
    let of = match kind {
        Part::Result | Part::Both => Of::Result,
        Part::Call => Of::Model,
        Part::Text | Part::Kept | Part::Unknown => Of::Outside,
    };
    let known = &MEMBERS;
    account::within(known, of, part, at, notes);
    let held = match kind {
        Part::Call => inner(part, CALL_MEMBERS),
        Part::Result => inner(part, RESULT_MEMBERS),
        Part::Both => part.get("toolInvocation").and_then(Value::as_object).unwrap_or(part),
        Part::Text | Part::Kept | Part::Unknown => part,
    };
    if !std::ptr::eq(held, part) {
        account::within(known, of, held, at, notes);
    }
}

/// Notes the members of the calls that a message lists which are in no table and show.
pub(crate) fn account_calls(message: &Object, at: &dyn std::fmt::Display, notes: &mut Vec<ImportNote>) {
    let listed = message.get("tool_calls").and_then(Value::as_array);
    let listed = listed.into_iter().flat_map(|calls| calls.iter()).filter_map(Value::as_object);
    for (call, number) in listed.zip(0..) {
        let at = format!("{at}/tool_calls/{number}");
        let known = ["id", "type", "index", "function", "custom", "name", "arguments", "args", "input"];
        account::within(&known, Of::Model, call, &at, notes);
        for name in ["function", "custom"] {
            if let Some(inner) = call.get(name).and_then(Value::as_object) {
                account::within(&known, Of::Model, inner, &format!("{at}/{name}"), notes);
            }
        }
    }
}

/// The parts of the lists that a message has.
fn parts_of(message: &Object) -> impl Iterator<Item = (&'static str, &Value, u64)> {
    LISTS.into_iter().flat_map(move |list| {
        let parts = message.get(list).and_then(Value::as_array);
        parts
            .into_iter()
            .flat_map(|parts| parts.iter())
            .zip(0..)
            .filter(move |(part, _)| list != INVOCATIONS || !is_among_parts(message, part))
            .map(move |(part, number)| (list, part, number))
    })
}

/// Whether the parts of a message have a call with its result as well.
fn is_among_parts(message: &Object, invocation: &Value) -> bool {
    let parts = message.get("parts").and_then(Value::as_array);
    parts.is_some_and(|parts| parts.iter().any(|part| part.get("toolInvocation") == Some(invocation)))
}

/// Takes a message apart; `None` if no part of it is a call or a result and it is one answer.
pub(crate) fn split(message: &Object, of: Of) -> Option<Vec<Piece>> {
    let is_one = |part: &Value| matches!(kind(part), Part::Call | Part::Result | Part::Both);
    let answers = answers(message);
    if answers.len() < 2 && !parts_of(message).any(|(_, part, _)| is_one(part)) {
        return None;
    }
    let mut pieces: Vec<Piece> = Vec::new();
    let last = answers.len() - 1;
    for (index, answer) in answers.into_iter().enumerate() {
        let from = pieces.len();
        one_answer(message, answer, of, &mut pieces);
        let said = pieces[from..].iter_mut().find(|piece| piece.part.is_none()).filter(|_| index < last);
        if let Some(Piece { value: Value::Object(members), is_counted_elsewhere, .. }) = said {
            // The usage of a message is stated once, for all its answers.
            ["usage", "metadata", "metrics", "usage_metadata"]
                .iter()
                .for_each(|name| drop(members.remove(name)));
            *is_counted_elsewhere = true;
        }
    }
    Some(pieces)
}

/// The parts of one answer: a list, the number of the first part, and the parts.
type Answer<'m> = Vec<(&'static str, u64, &'m Value)>;

/// Divides the parts of a message where a step begins.
fn answers(message: &Object) -> Vec<Answer<'_>> {
    let mut answers: Vec<Answer<'_>> = vec![Vec::new()];
    for (list, part, number) in parts_of(message) {
        let begins = part.get("type").and_then(Value::as_str) == Some("step-start");
        if begins && answers.last().is_some_and(|answer| !answer.is_empty()) {
            answers.push(Vec::new());
        }
        if let Some(answer) = answers.last_mut() {
            answer.push((list, number, part));
        }
    }
    let is_mark = |part: &Value| part.get("type").and_then(Value::as_str) == Some("step-start");
    answers.retain(|answer| answer.iter().any(|(_, _, part)| !is_mark(part)));
    answers
}

fn one_answer(message: &Object, answer: Answer<'_>, of: Of, pieces: &mut Vec<Piece>) {
    let mut whole = message.clone();
    let mut asked: Vec<Value> = Vec::new();
    let mut results: Vec<Piece> = Vec::new();
    let mut leads = false;
    let mut left: Vec<(&'static str, &Value)> = Vec::new();
    for (list, number, part) in answer {
        match (kind(part), part.as_object()) {
            (Part::Call, Some(part)) => asked.push(call(part)),
            (Part::Result, Some(part)) => {
                leads |= asked.is_empty() && left.is_empty() && results.is_empty();
                results.push(Piece::new(result(part), Some((list, number))));
            }
            (Part::Both, Some(part)) => {
                let (call, result, decision) = both(part);
                asked.push(call);
                let piece = |value| Piece { decision, ..Piece::new(value, Some((list, number))) };
                results.extend(result.map(piece));
            }
            // The division shows in the items.
            _ if part.get("type").and_then(Value::as_str) == Some("step-start") => {}
            _ => left.push((list, part)),
        }
    }
    for list in
        LISTS.into_iter().filter(|list| message.get(list).is_some_and(|parts| parts.as_array().is_some()))
    {
        let left: Vec<&Value> = left.iter().filter(|(of, _)| *of == list).map(|(_, part)| *part).collect();
        match left.first().and_then(|only| only_text(only)).filter(|_| left.len() == 1) {
            Some(text) => {
                whole.remove(list);
                whole.set("content", text.clone());
            }
            None if left.is_empty() => drop(whole.remove(list)),
            None => whole.set(list, Value::array(left.into_iter().cloned())),
        }
    }
    words_in_content(&mut whole);
    let at = pieces.len();
    if add_calls(&mut whole, asked) || says_anything(&whole) {
        if !whole.contains_key("content") {
            whole.set("content", Value::Null);
        }
        // The rest of a message with results is not a result.
        if of == Of::Result {
            whole.set("role", Value::from("environment"));
        }
        pieces.push(Piece::new(Value::Object(whole), None));
    }
    let at = if leads { at } else { pieces.len() };
    pieces.splice(at..at, results);
}

/// Moves the parts of a message without content to its content: there the words of a message are looked for.
pub(crate) fn words_in_content(message: &mut Object) {
    if message.contains_key("content") {
        return;
    }
    if let Some(parts) = message.get("parts").filter(|parts| parts.as_array().is_some()).cloned() {
        let only = parts.as_array().filter(|parts| parts.len() == 1).and_then(|parts| parts.get(0));
        message.set("content", only.and_then(only_text).cloned().unwrap_or_else(|| parts.clone()));
        message.remove("parts");
    }
}

/// The text of a part that has nothing else.
fn only_text(part: &Value) -> Option<&Value> {
    let object = part.as_object()?;
    let is_plain = object.iter().all(|(name, _)| matches!(&**name, "type" | "text"));
    object.get("text").filter(|text| is_plain && text.as_str().is_some())
}

/// Adds calls to those that a message lists already; the same id is the same call. Returns whether there are any.
fn add_calls(message: &mut Object, asked: Vec<Value>) -> bool {
    let listed = message.get("tool_calls").and_then(Value::as_array).cloned().unwrap_or_else(Array::default);
    let has = |id: Option<&Value>| id.is_some() && listed.iter().any(|call| call.get("id") == id);
    let new = asked.iter().filter(|call| !has(call.get("id"))).cloned();
    let all: Vec<Value> = listed.iter().cloned().chain(new).collect();
    let any = !all.is_empty();
    if any {
        message.set("tool_calls", Value::array(all));
    }
    any
}

/// Whether a message states anything next to who speaks and which it is.
fn says_anything(message: &Object) -> bool {
    message.contains_key("content") || message.contains_key("parts")
}

/// The members of an object but these, after others.
fn with_rest(first: Vec<(&'static str, Option<Value>)>, rest: &Object, taken: &[&str]) -> Value {
    let mut made = Object::default();
    for (name, value) in first {
        if let Some(value) = value {
            made.set(name, value);
        }
    }
    for (name, value) in rest.iter() {
        if !taken.contains(&&**name) && !made.contains_key(name) {
            made.set(name, value.clone());
        }
    }
    Value::Object(made)
}

fn first<'o>(object: &'o Object, names: &[&str]) -> Option<&'o Value> {
    names.iter().find_map(|name| object.get(name))
}

/// The object of a part without a type that holds all it states.
fn inner<'o>(part: &'o Object, names: &[&str]) -> &'o Object {
    names.iter().find_map(|name| part.get(name)?.as_object()).unwrap_or(part)
}

const IDS: &[&str] =
    &["tool_use_id", "tool_call_id", "toolCallId", "toolUseId", "call_id", "toolUseID", "id"];
const NAMES: &[&str] = &["name", "toolName", "tool_name"];
const INPUTS: &[&str] = &["input", "args", "arguments", "params", "parameters"];
const OUTPUTS: &[&str] = &["content", "output", "result", "response"];

/// A call in the shape of a chat.
fn call(part: &Object) -> Value {
    let held = inner(part, CALL_MEMBERS);
    let said = [
        ("arguments", first(held, INPUTS).cloned()),
        ("id", first(held, &["id", "toolCallId", "toolUseId", "call_id", "tool_call_id"]).cloned()),
        ("name", first(held, NAMES).cloned()),
    ];
    let mut taken = [INPUTS, NAMES, &["toolCallId", "toolUseId", "call_id", "tool_call_id"]].concat();
    let is_plain = held.get("type").and_then(Value::as_str);
    taken.extend(
        is_plain.is_some_and(|name| !name.contains("server") && !name.contains("mcp")).then_some("type"),
    );
    with_rest(said.to_vec(), held, &taken)
}

/// Whether a part is the result of a call.
pub(crate) fn is_result(part: &Object) -> bool {
    kind_of(part) == Part::Result
}

/// A result as a message of its own, in the shape of a chat.
pub(crate) fn result(part: &Object) -> Value {
    let held = inner(part, RESULT_MEMBERS);
    let output = first(held, OUTPUTS);
    let (content, is_error) = match output.and_then(Value::as_object).and_then(tagged_output) {
        Some((content, is_error)) => (content, is_error),
        None => (output.cloned(), error_in(output)),
    };
    let said = [
        ("role", Some(Value::from("tool"))),
        ("content", content),
        ("is_error", is_error.filter(|_| !held.contains_key("is_error")).map(Value::from)),
        ("name", first(held, NAMES).cloned()),
        ("tool_call_id", first(held, IDS).cloned()),
    ];
    let mut taken = [OUTPUTS, NAMES, IDS].concat();
    taken.extend(has_plain_type(held).then_some("type"));
    with_rest(said.to_vec(), held, &taken)
}

fn has_plain_type(part: &Object) -> bool {
    let name = part.get("type").and_then(Value::as_str);
    name.is_some_and(|name| RESULT_TYPES.contains(&name))
}

/// Reads an output that states by its type what it is, as the parts of one library do: its value, and whether the call failed.
fn tagged_output(output: &Object) -> Option<(Option<Value>, Option<bool>)> {
    let name = output.get("type")?.as_str()?;
    let value = output.get("value").cloned();
    match name {
        // A result came: whether the tool failed is in its content.
        "text" | "json" | "content" if value.is_some() => Some((value, None)),
        "error-text" | "error-json" => Some((value, Some(true))),
        "execution-denied" => Some((Some(Value::Object(output.clone())), Some(true))),
        _ => None,
    }
}

/// Reads whether the content of a server's tool is an error: `{"type":"..._error","error_code":..}`.
fn error_in(output: Option<&Value>) -> Option<bool> {
    let object = output?.as_object()?;
    let name = object.get("type")?.as_str()?;
    (name.ends_with("_error") && object.contains_key("error_code")).then_some(true)
}

/// The call of a part that has both, its result or what a decision states in its place, and that decision.
fn both(part: &Object) -> (Value, Option<Value>, Option<Value>) {
    let held = part.get("toolInvocation").and_then(Value::as_object).unwrap_or(part);
    let named = held.get("type").and_then(Value::as_str).and_then(|name| name.strip_prefix("tool-"));
    let tool = first(held, NAMES).cloned().or_else(|| named.map(Value::from));
    let id = first(held, &["toolCallId", "tool_call_id", "id"]).cloned();
    let state = held.get("state").and_then(Value::as_str).unwrap_or_default();
    let said = [
        ("arguments", first(held, &["input", "args", "rawInput"]).cloned()),
        ("id", id.clone()),
        ("name", tool.clone()),
    ];
    let of_result = ["output", "result", "errorText", "state", "preliminary", "approval", "type"];
    let ids = ["toolCallId", "tool_call_id", "toolName", "input", "args", "rawInput"];
    // An output that a later one replaces is kept with the call.
    let is_preliminary = held.get("preliminary").and_then(Value::as_bool) == Some(true);
    let of_result = if is_preliminary { &of_result[6..] } else { &of_result[..] };
    let call = with_rest(said.to_vec(), held, &[of_result, &ids[..]].concat());
    let is_denied = state == "output-denied";
    if is_denied {
        let reason = held.get("approval").and_then(|approval| approval.get("reason")).cloned();
        let members = [
            ("call_id", id.clone()),
            ("decision", Some(Value::from("deny"))),
            ("reason", reason),
            ("tool", tool.clone()),
        ];
        let decision = Value::record(members.into_iter().filter_map(|(name, value)| Some((name, value?))));
        return (call, Some(Value::Object(part.clone())), Some(decision));
    }
    let is_error = state == "output-error" || held.contains_key("errorText");
    let output = first(held, &["output", "result"]);
    if !is_error && (output.is_none() || is_preliminary) {
        return (call, None, None);
    }
    let said = [
        ("role", Some(Value::from("tool"))),
        ("content", held.get("errorText").or(output).cloned()),
        // Another state says that a result came, and its content whether the tool failed.
        ("is_error", is_error.then(|| Value::from(true))),
        ("name", tool),
        ("tool_call_id", id),
    ];
    (call, Some(with_rest(said.to_vec(), &Object::default(), &[])), None)
}
