//! Messages with roles and tool calls, as chat interfaces write them.
//!
//! Every member of a message is kept: under the name it has here, or in `intent.extra`. The shapes are in
//! `docs/import.md`. The invariant a newcomer would break: what the source says is never replaced by what it
//! seems to mean; a status that was read off a text says so.

use std::sync::Arc;

use dendrer_object::value::Object;
use dendrer_object::{Intent, TypeName, Value, json, tag};

use super::calls::{Answer, Call, Calls};
use super::note::{Note, NoteKind};

/// What one item becomes.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) intent: Intent,
    pub(super) notes: Vec<Note>,
    /// The calls it asks for.
    pub(super) calls: Vec<Call>,
    /// The record it answers.
    pub(super) cause: Option<dendrer_object::Digest>,
}

impl Step {
    pub(super) fn new(intent: Intent) -> Step {
        Step { intent, notes: Vec::new(), calls: Vec::new(), cause: None }
    }
}

/// Roles of what reaches an agent from outside. Any other role is an agent that speaks.
const OUTSIDE: &[&str] = &["user", "human", "system", "developer", "environment"];

/// Roles of messages that bring the result of a call.
const RESULT: &[&str] = &["tool", "function"];

/// The longest name of an agent, in bytes (as for any intent).
const AGENT_SIZE_MAX: usize = 256;

/// Tells whether a message in front of all others belongs to the run and not to any tick.
pub(super) fn is_preamble(item: &Value) -> bool {
    matches!(item.get("role").and_then(Value::as_str), Some("system" | "developer"))
}

/// Reads one message. `at` is its place, as a JSON pointer.
pub(super) fn read(item: &Value, at: &str, open: &mut Calls) -> Step {
    let Some(message) = plain_object(item) else {
        let note =
            Note::new(NoteKind::MessageUnreadable, at, format!("a message is an object, not {}", kind(item)));
        return Step { notes: vec![note], ..lost(item.clone()) };
    };
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    let is_one_of = |roles: &[&str]| roles.iter().any(|known| known.eq_ignore_ascii_case(role));
    let calls = asked(message);
    let is_result = is_one_of(RESULT);
    let mut step = if is_result {
        read_result(message, role, at, open)
    } else if !calls.is_empty() {
        read_request(message, role, at, &calls, open)
    } else {
        let type_name = if role.is_empty() || is_one_of(OUTSIDE) { "observation.add" } else { "plan.update" };
        let intent = Intent::new(name_of(type_name), &speaker(message, role));
        Step::new(intent.with("intent", words(message, &[])))
    };
    note_unread_calls(message, is_result, at, &mut step.notes);
    if role.is_empty() {
        step.notes.push(Note::new(NoteKind::MessageWithoutRole, at, "this message does not say who speaks"));
    }
    if has_unread_parts(message) {
        let path = format!("{at}/content");
        let text = "calls or results among the parts of this content are kept and not read as such";
        step.notes.push(Note::new(NoteKind::PartsNotRead, path, text));
    }
    step
}

/// The step of an item that is not there to be read.
pub(super) fn lost(content: Value) -> Step {
    let words = Value::record([("content", content), ("role", Value::Null)]);
    Step::new(Intent::new(name_of("observation.add"), "unknown").with("intent", words))
}

pub(super) fn name_of(text: &str) -> TypeName {
    text.parse().expect("a type of the ontology")
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "a tagged value",
        other => other.described(),
    }
}

/// An object that is not one of the format's tagged forms.
pub(super) fn plain_object(value: &Value) -> Option<&Object> {
    value.as_object().filter(|object| !object.iter().any(|(name, _)| tag::is_tag_name(name)))
}

/// Who speaks: the name, else the role up to its first blank.
fn speaker(message: &Object, role: &str) -> String {
    let name = message.get("name").and_then(Value::as_str).filter(|name| !name.trim().is_empty());
    let word = role.split_whitespace().next().unwrap_or("unknown");
    let mut text = name.unwrap_or(word).to_owned();
    while text.len() > AGENT_SIZE_MAX {
        text.pop();
    }
    text
}

/// What a message says: role, content, name, and under `extra` whatever else stands in it. `taken` are the other
/// members that have their place elsewhere.
fn words(message: &Object, taken: &[&str]) -> Value {
    let mut known = [taken, &["role", "content", "name"]].concat();
    known.extend(CALLS.into_iter().filter(|name| message.get(name).is_some_and(says_none)));
    let extra = rest(message, &known);
    let mut members = vec![("role", message.get("role").cloned().unwrap_or(Value::Null))];
    members.extend(message.get("content").map(|content| ("content", content.clone())));
    members.extend(message.get("name").map(|name| ("name", name.clone())));
    members.extend((!extra.is_empty()).then(|| ("extra", Value::record(extra))));
    Value::record(members)
}

/// The members of a message that hold calls.
const CALLS: [&str; 2] = ["tool_calls", "function_call"];

/// Whether a member that holds calls holds none.
fn says_none(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Notes what may be calls and stands where none is read: it is kept, and nobody asks for it.
fn note_unread_calls(message: &Object, is_result: bool, at: &str, notes: &mut Vec<Note>) {
    let listed = message.get("tool_calls").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    for name in CALLS {
        let Some(value) = message.get(name).filter(|value| !says_none(value)) else { continue };
        let why = match name {
            _ if is_result => "calls in a result are kept and not read".to_owned(),
            "tool_calls" if !listed => format!("tool_calls is a list, not {}", kind(value)),
            "function_call" if listed => "a call beside tool_calls is kept and not read".to_owned(),
            "function_call" if value.as_object().is_none() => {
                format!("function_call is an object, not {}", kind(value))
            }
            _ => continue,
        };
        notes.push(Note::new(NoteKind::CallUnreadable, format!("{at}/{name}"), why));
    }
}

/// What stands where the id of a call is to stand.
enum Id<'m> {
    None,
    /// The id as it stands, and the word under which it is paired. An empty text is none.
    Read(&'m Value, String),
    /// Neither text nor number: it cannot be the id of anything.
    Unreadable,
}

impl<'m> Id<'m> {
    /// Reads an id, and notes one that is not text.
    fn of(value: Option<&'m Value>, path: String, notes: &mut Vec<Note>) -> Id<'m> {
        let id = match value {
            None | Some(Value::Null) => Id::None,
            Some(Value::String(text)) if text.is_empty() => Id::None,
            Some(value @ Value::String(text)) => return Id::Read(value, text.to_string()),
            Some(number @ Value::Number(_)) => Id::Read(number, json::to_string(number)),
            Some(_) => Id::Unreadable,
        };
        let what = value.map_or("", Value::type_name);
        match &id {
            Id::None => {}
            Id::Read(..) => {
                let text = format!("an id is text, and this is a {what}; it is compared by its digits");
                notes.push(Note::new(NoteKind::CallIdNotText, path, text));
            }
            Id::Unreadable => {
                let text = format!("an id is text, and this is a {what}; it is kept and names no call");
                notes.push(Note::new(NoteKind::CallIdNotText, path, text));
            }
        }
        id
    }

    fn word(&self) -> Option<&str> {
        match self {
            Id::Read(_, word) => Some(word),
            _ => None,
        }
    }

    fn value(&self) -> Option<Value> {
        match self {
            Id::Read(value, _) => Some((*value).clone()),
            _ => None,
        }
    }
}

/// The calls that a message asks for, as they stand in it.
fn asked(message: &Object) -> Vec<Value> {
    if let Some(calls) = message.get("tool_calls").and_then(Value::as_array).filter(|calls| !calls.is_empty())
    {
        return calls.iter().cloned().collect();
    }
    message.get("function_call").filter(|call| call.as_object().is_some()).cloned().into_iter().collect()
}

fn read_request(message: &Object, role: &str, at: &str, asked: &[Value], open: &Calls) -> Step {
    let agent = speaker(message, role);
    let from_list = message.get("tool_calls").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let taken = if from_list { "tool_calls" } else { "function_call" };
    let mut step = Step::new(Intent::new(name_of("action.request"), &agent));
    let mut actions = Vec::with_capacity(asked.len());
    for (index, asked) in asked.iter().enumerate() {
        let path = if from_list { format!("{at}/tool_calls/{index}") } else { format!("{at}/function_call") };
        let (action, call) = read_call(asked, &path, &agent, index, &mut step.notes);
        if let Some(id) = &call.id
            && (open.is_open(id) || step.calls.iter().any(|other| other.id.as_ref() == Some(id)))
        {
            let text =
                format!("a call with the id {id:?} is open already; a result answers the older one first");
            step.notes.push(Note::new(NoteKind::CallIdRepeated, path, text));
        }
        actions.push(action);
        step.calls.push(call);
    }
    let action = match actions.len() {
        1 => actions.remove(0),
        _ => Value::record([("calls", Value::array(actions))]),
    };
    step.intent = step.intent.with("intent", words(message, &[taken])).with("action", action);
    step
}

/// Reads one call: what it becomes in the action, and what is remembered until it is answered.
fn read_call(asked: &Value, at: &str, agent: &str, index: usize, notes: &mut Vec<Note>) -> (Value, Call) {
    let mut call = Call { id: None, tool: None, params: None, agent: agent.into(), index };
    let Some(object) = plain_object(asked) else {
        notes.push(Note::new(
            NoteKind::CallUnreadable,
            at,
            format!("a call is an object, not {}", kind(asked)),
        ));
        return (Value::record([("extra", asked.clone())]), call);
    };
    // The name and the arguments stand in `function`, or beside it, or there is no such object.
    let inner = object.get("function").and_then(plain_object);
    let (holder, names): (&Object, &[&str]) = match inner {
        Some(inner) => (inner, &["name"]),
        None => (object, &["function", "name"]),
    };
    let tool = names.iter().find_map(|name| Some((*name, holder.get(name)?.as_str()?)));
    let arguments = ["arguments", "args"].into_iter().find_map(|name| Some((name, holder.get(name)?)));
    let mut is_text = false;
    let params = arguments.map(|(name, value)| match value.as_str() {
        None => value.clone(),
        Some(text) => json::parse_door(text.as_bytes()).unwrap_or_else(|error| {
            is_text = true;
            let path = if inner.is_some() { format!("{at}/function/{name}") } else { format!("{at}/{name}") };
            notes.push(Note::new(
                NoteKind::ArgumentsNotJson,
                path,
                format!("these arguments stay text: {error}"),
            ));
            value.clone()
        }),
    });
    if tool.is_none() {
        notes.push(Note::new(NoteKind::CallUnreadable, at, "this call names no tool"));
    }
    let id = Id::of(object.get("id"), format!("{at}/id"), notes);
    call.id = id.word().map(Arc::from);
    call.tool = tool.map(|(_, tool)| Arc::from(tool));
    call.params = params.clone();
    let mut taken: Vec<&str> =
        tool.iter().map(|(name, _)| *name).chain(arguments.map(|(name, _)| name)).collect();
    let mut extra = Vec::new();
    if let Some(inner) = inner {
        let rest = rest(inner, &taken);
        extra.extend((!rest.is_empty()).then(|| ("function".into(), Value::record(rest))));
        taken = vec!["function"];
    }
    taken.extend(call.id.is_some().then_some("id"));
    // That a call is one of a function is said by where it stands.
    taken.extend((object.get("type").and_then(Value::as_str) == Some("function")).then_some("type"));
    extra.extend(rest(object, &taken));
    let members = [
        ("call_id", id.value()),
        ("extra", (!extra.is_empty()).then(|| Value::record(extra))),
        ("params", params),
        ("params_are_text", is_text.then(|| Value::from(true))),
        ("tool", call.tool.as_deref().map(Value::from)),
    ];
    (Value::record(members.into_iter().filter_map(|(name, value)| Some((name, value?)))), call)
}

/// The members of an object but these.
fn rest(object: &Object, taken: &[&str]) -> Vec<(Arc<str>, Value)> {
    let kept = object.iter().filter(|(name, _)| !taken.contains(&&***name));
    kept.map(|(name, value)| (Arc::clone(name), value.clone())).collect()
}

fn read_result(message: &Object, role: &str, at: &str, open: &mut Calls) -> Step {
    let text = |name: &str| message.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut notes = Vec::new();
    // Some repeat the call that they answer.
    let mut unused = Vec::new();
    let repeated = message
        .get("tool_call")
        .filter(|value| plain_object(value).is_some())
        .map(|call| read_call(call, at, role, 0, &mut unused).1);
    let mut id = Id::of(message.get("tool_call_id"), format!("{at}/tool_call_id"), &mut notes);
    let own_id = matches!(id, Id::Read(..));
    if let (Id::None, Some(call)) = (&id, message.get("tool_call").and_then(plain_object)) {
        id = Id::of(call.get("id"), format!("{at}/tool_call/id"), &mut notes);
    }
    let tool = text("name").or(repeated.as_ref().and_then(|call| call.tool.as_deref()));
    let (call, cause) = match id {
        // By name and order it might answer another call than the one that it names.
        Id::Unreadable => {
            let text = "this result names its call by something that is no id";
            notes.push(Note::new(NoteKind::ResultWithoutCall, at, text));
            (None, None)
        }
        _ => pair(open, id.word(), tool, at, &mut notes),
    };
    let agent = call.as_ref().map_or_else(|| role.into(), |call| Arc::clone(&call.agent));
    let mut step = Step::new(Intent::new(name_of("action.result"), &agent).by_runtime());
    step.cause = cause;
    step.notes = notes;
    let same =
        |a: &Call, b: &Call| a.tool == b.tool && a.params == b.params && (a.id == b.id || b.id.is_none());
    let says_more = match (&call, &repeated) {
        (Some(call), Some(repeated)) => !same(call, repeated) || has_extra(message.get("tool_call")),
        (None, Some(_)) => has_extra(message.get("tool_call")),
        (_, None) => true,
    };
    let source = call.as_ref().or(repeated.as_ref());
    let action = [
        ("call_id", id.value()),
        ("params", source.and_then(|call| call.params.clone())),
        ("tool", source.and_then(|call| call.tool.as_deref()).or(tool).map(Value::from)),
    ];
    let action: Vec<_> = action.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let mut taken = vec!["error"];
    taken.extend(own_id.then_some("tool_call_id"));
    taken.extend((!says_more).then_some("tool_call"));
    let mut words = words(message, &taken);
    if let Value::Object(object) = &mut words {
        // What a result says stands in `result`, once; so does the name of its tool in `action`.
        object.remove("content");
        let tool_in_action = source.and_then(|call| call.tool.as_deref()).or(tool);
        if text("name").is_some() && text("name") == tool_in_action {
            object.remove("name");
        }
    }
    step.intent = step.intent.with("intent", words).with("result", result_of(message));
    if !action.is_empty() {
        step.intent = step.intent.with("action", Value::record(action));
    }
    step
}

/// Finds the call that a result answers, and notes what does not fit.
pub(super) fn pair(
    open: &mut Calls,
    id: Option<&str>,
    tool: Option<&str>,
    at: &str,
    notes: &mut Vec<Note>,
) -> (Option<Call>, Option<dendrer_object::Digest>) {
    match open.answer(id, tool) {
        Answer::Found(call, request) => {
            if let (Some(asked), Some(named)) = (call.tool.as_deref(), tool)
                && asked != named
            {
                let text = format!("its call is to {asked:?}, and this result names {named:?}");
                notes.push(Note::new(NoteKind::ResultNameDiffers, at, text));
            }
            (Some(call), Some(request))
        }
        Answer::None => {
            let what = match (id, tool) {
                (Some(id), _) => format!("no open call has the id {id:?}"),
                (None, Some(tool)) => format!("no open call is to {tool:?}"),
                (None, None) => "no call is open".to_owned(),
            };
            notes.push(Note::new(NoteKind::ResultWithoutCall, at, what));
            (None, None)
        }
        Answer::Several(count) => {
            let text = format!("{count} calls are open, and this result names none of them");
            notes.push(Note::new(NoteKind::ResultAmbiguous, at, text));
            (None, None)
        }
    }
}

/// Whether a repeated call says something that its action does not.
fn has_extra(call: Option<&Value>) -> bool {
    let mut unused = Vec::new();
    call.is_some_and(|call| read_call(call, "", "", 0, &mut unused).0.get("extra").is_some())
}

/// What came back: the output as it stands, and whether it is an error.
fn result_of(message: &Object) -> Value {
    let output = message.get("content").cloned();
    let error = message.get("error");
    let is_set =
        |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && value.as_str() != Some("");
    let flag = message.get("is_error").and_then(Value::as_bool);
    // Without any flag, a text that begins with the word Error is what there is to go by.
    let by_text = output.as_ref().and_then(Value::as_str).is_some_and(|text| {
        text.strip_prefix("Error").is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    });
    let (is_error, from) = match (error, flag) {
        (None, None) => (by_text, "text"),
        (error, flag) => (error.is_some_and(is_set) || flag == Some(true), "flag"),
    };
    let members = [
        ("error", error.cloned()),
        ("output", output),
        ("status", Some(Value::from(if is_error { "error" } else { "ok" }))),
        ("status_from", Some(Value::from(from))),
    ];
    Value::record(members.into_iter().filter_map(|(name, value)| Some((name, value?))))
}

fn has_unread_parts(message: &Object) -> bool {
    let parts = message.get("content").and_then(Value::as_array);
    parts.into_iter().flat_map(|parts| parts.iter()).any(|part| {
        matches!(part.get("type").and_then(Value::as_str), Some("tool_use" | "tool_result" | "tool_call"))
    })
}
