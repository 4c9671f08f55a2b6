//! Messages with roles and tool calls, as chat interfaces write them.
//!
//! Every member of a message is kept: under the name it has here, or in `intent.extra`. The shapes are in
//! `docs/import.md`. A first pass reads the agent and the type of a message, its calls and its oddities; the intent
//! is built later, and only if it is used. Rule: the words of the source are never replaced by an interpretation; a
//! status that was inferred from a text is marked so.

mod outside;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io::Read;
use std::sync::Arc;

use dendrer::kernel::unknown::FAILURES;
use dendrer_object::value::{Array, Object};
use dendrer_object::{Digest, Intent, Value, json, tag};

use self::outside::Answer;
use crate::foreign::{Format, Head, Steps, Visit};
use crate::import::calls::{Answer as Given, Answers, Call, Calls, Paired};
use crate::import::chat::{self, ChatReader, OUTSIDE, RESULTS, is_one_of, is_preamble};
use crate::import::error::ImportError;
use crate::import::items::{self, Around, Item};
use crate::import::layout::{self, Layout};
use crate::import::note::{At, ImportNote, NoteKind};
use crate::import::once::{Short, short};
use crate::import::outcome::{self, Outcome};
use crate::import::scan::Sizes;
use crate::import::transition::{Step, name_of, plain_object};
use crate::import::usage::Usage;

/// The format.
pub(super) static OPENAI_CHAT: Format = OPENAI_CHAT_MESSAGES;

const OPENAI_CHAT_MESSAGES: Format = Format {
    detect: |has_map| !has_map,
    shape: "a list of messages with `role` and `content`",
    survey: |source, choice| layout::survey(source, choice, false),
    tables: || vec![("a message", chat::OF_LIBRARIES.clone())],
    items,
    ..Format::new("openai-chat", "Messages with roles and tool calls", |_| Box::new(Messages::default()))
};

/// Messages whose content is a list of parts with `tool_use` and `tool_result`, read as all messages are.
pub(super) static ANTHROPIC: Format = Format {
    name: "anthropic",
    about: "Messages with parts of the Messages API",
    detect: |_| false,
    sniff: |head| has_part(head, "content", |kind| matches!(kind, "tool_use" | "tool_result")),
    ..OPENAI_CHAT_MESSAGES
};

/// Messages with `parts`, as chat interfaces of one library keep them, read as all messages are.
pub(super) static AI_SDK: Format = Format {
    name: "ai-sdk",
    about: "Messages with parts of a chat store",
    detect: |_| false,
    sniff: |head| {
        let is_one = |kind: &str| kind == "step-start" || kind == "dynamic-tool" || kind.starts_with("tool-");
        has_part(head, "parts", is_one) || has_part(head, "content", |kind| kind == "tool-call")
    },
    ..OPENAI_CHAT_MESSAGES
};

/// Whether one of the first messages has a part of such a type.
fn has_part(head: &Head<'_>, list: &str, is_one: impl Fn(&str) -> bool) -> bool {
    head.any(|message| {
        let parts = message.get(list).filter(|_| message.contains_key("role")).and_then(Value::as_array);
        let mut kinds =
            parts.into_iter().flat_map(|parts| parts.iter()).filter_map(|part| part.get("type")?.as_str());
        kinds.any(&is_one)
    })
}

/// Messages as steps.
#[derive(Default)]
pub(crate) struct Messages {
    usage: Usage,
    /// The records of calls that may begin an agent, by the id of the call, and the ids of the newest message.
    begun: BTreeMap<String, Digest>,
    begins: Vec<String>,
}

impl Steps for Messages {
    fn step<'i>(&mut self, item: &'i Item<'_>, calls: &mut Calls) -> Result<Step<'i>, ImportError> {
        if let Some((what, kind)) = other_kind(&item.value) {
            return Err(ImportError::OtherKind { what, kind, at: item.at.to_string() });
        }
        if let Some(policy) = &item.decision {
            // A call that was denied waits for no result.
            let id = policy.get("call_id").and_then(Value::as_str);
            let tool = policy.get("tool").and_then(Value::as_str);
            let paired = calls.pair(Answers { id, tool, agent: None }, item.at, &mut Vec::new());
            // The kernel takes a decision for all calls of the request that it is linked to.
            let cause = paired.cause.filter(|_| !paired.has_others);
            let agent = item.value.get("name").and_then(Value::as_str).unwrap_or("policy");
            let intent = Intent::new(name_of("policy.decision"), agent).by_runtime();
            let words = Value::record([("extra", item.value.clone())]);
            let intent = intent.with("intent", words).with("policy", policy.clone());
            let mut step = Step::new(intent);
            step.cause = cause;
            return Ok(step);
        }
        let mut step = read(item, calls);
        self.usage.of_message(&mut step, item);
        if let Some(call) = &item.begun_by {
            step.cause = step.cause.or(self.begun.get(call).copied());
        }
        self.begins = item.begins.clone();
        Ok(step)
    }

    fn recorded(&mut self, record: Digest) {
        self.begun.extend(self.begins.drain(..).map(|call| (call, record)));
    }

    fn is_preamble(&self, value: &Value) -> bool {
        is_preamble(value)
    }

    fn is_plain(&self) -> bool {
        true
    }
}

/// Hands over the messages of the list, and the answer outside it.
fn items(
    source: &mut dyn Read,
    layout: &Layout,
    hints: Sizes,
    visit: Visit<'_>,
) -> Result<Around, ImportError> {
    let mut last = Value::Null;
    let mut reader = ChatReader::new(chat::MESSAGE, &layout.found);
    let mut around = items::read(source, layout, hints, &mut |item| {
        last = item.value.clone();
        reader.take(item, visit)
    })?;
    let outside = around.meta.as_mut().map(|meta| outside::find(meta, &last)).unwrap_or_default();
    if let Some(Answer { at, message, usage }) = outside.answer {
        let (size, at) = (message.size() as usize, At { list: &at, number: None, within: "", part: None });
        reader.take(Item { usage, ..Item::new(message, at, size) }, visit)?;
    }
    around.left_out = outside.left_out;
    around.gathered = reader.end(around.meta.as_ref());
    Ok(around)
}

/// Roles of a person, whose words are their own (design, section 4).
const PEOPLE: &[&str] = &["user", "human"];

/// The longest name of an agent, in bytes (as for any intent).
const AGENT_SIZE_MAX: usize = 256;

/// Types of items that are no messages, of the Responses API.
const ITEMS: &[&str] = &[
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "reasoning",
    "item_reference",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "computer_call",
    "computer_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
];

/// Names an item that is of another kind than a message: its members are not read here, and would be counted as absent.
fn other_kind(item: &Value) -> Option<(String, &'static str)> {
    let item = item.as_object().filter(|item| !item.contains_key("role"))?;
    if let Some(known) = item.get("type").and_then(Value::as_str).filter(|known| ITEMS.contains(known)) {
        return Some((format!("an item of the Responses API ({known})"), "openai-responses"));
    }
    let is_span = ["span_id", "spanId", "trace_id", "traceId"].iter().any(|name| item.contains_key(name));
    is_span.then(|| ("a span".to_owned(), "otlp"))
}

/// Whether a role is that of a model: neither of what reaches it from outside, nor of a result.
fn is_role_of_a_model(role: &str) -> bool {
    !is_one_of(role, OUTSIDE) && !is_one_of(role, RESULTS)
}

/// Reads one message.
fn read<'m>(item: &'m Item<'_>, open: &mut Calls) -> Step<'m> {
    let (value, at, is_of_program) = (&item.value, item.at, item.is_of_program);
    let Some(message) = Message::of(value) else {
        return Step::unreadable(value, at, format!("a message is an object, not {}", kind(value)));
    };
    let role = message.role();
    let is_result = is_one_of(role, RESULTS);
    let mut step = if is_result {
        read_result(message, item, open)
    } else if message.asks() {
        read_request(message, at, open)
    } else {
        let type_name =
            if role.is_empty() || is_one_of(role, OUTSIDE) { "observation.add" } else { "plan.update" };
        Step::later(type_name, message.speaker().into(), false, move || {
            let intent = Intent::new(name_of(type_name), message.speaker());
            let is_person =
                !is_of_program && PEOPLE.iter().any(|role| role.eq_ignore_ascii_case(message.role()));
            let intent = if is_person { intent.by_user() } else { intent };
            intent.with("intent", words(message, &[]))
        })
    };
    note_unread_calls(message, is_result, at, &mut step.notes);
    if role.is_empty() {
        step.notes.push(ImportNote::new(
            NoteKind::MessageWithoutRole,
            at,
            "this message does not say who speaks",
        ));
    }
    step
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "a tagged value",
        other => other.described(),
    }
}

/// A message with the members that every kind of message may have, looked up once.
#[derive(Debug, Clone, Copy)]
struct Message<'m> {
    object: &'m Object,
    role: Option<&'m Value>,
    content: Option<&'m Value>,
    name: Option<&'m Value>,
    tool_calls: Option<&'m Value>,
    function_call: Option<&'m Value>,
}

impl<'m> Message<'m> {
    /// Takes a plain object.
    fn of(value: &'m Value) -> Option<Message<'m>> {
        let object = value.as_object()?;
        let mut message =
            Message { object, role: None, content: None, name: None, tool_calls: None, function_call: None };
        for (name, value) in object.iter() {
            let member = match &**name {
                "role" => &mut message.role,
                "content" => &mut message.content,
                "name" => &mut message.name,
                "tool_calls" => &mut message.tool_calls,
                "function_call" => &mut message.function_call,
                other if tag::is_tag_name(other) => return None,
                _ => continue,
            };
            *member = Some(value);
        }
        Some(message)
    }

    fn role(&self) -> &'m str {
        self.role.and_then(Value::as_str).unwrap_or_default()
    }

    /// Its name, if it is not empty.
    fn name(&self) -> Option<&'m str> {
        self.name.and_then(Value::as_str).filter(|name| !name.is_empty())
    }

    /// The speaker: the name, else the role up to its first blank.
    fn speaker(&self) -> &'m str {
        let name = chat::speaker(self.object).0;
        let text = name.unwrap_or_else(|| self.role().split_whitespace().next().unwrap_or("unknown"));
        let mut end = text.len().min(AGENT_SIZE_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        &text[..end]
    }

    /// The members that hold calls, and what they hold.
    fn calls(&self) -> [(&'static str, Option<&'m Value>); 2] {
        [("tool_calls", self.tool_calls), ("function_call", self.function_call)]
    }

    /// The list of calls, where there is one that holds some.
    fn listed(&self) -> Option<&'m Array> {
        self.tool_calls.and_then(Value::as_array).filter(|calls| !calls.is_empty())
    }

    /// The call outside any list.
    fn single(&self) -> Option<&'m Value> {
        self.function_call.filter(|call| call.as_object().is_some())
    }

    /// Whether it asks for calls.
    fn asks(&self) -> bool {
        self.listed().is_some() || self.single().is_some()
    }
}

/// Returns the words of a message: role, content, name, and all other members under `extra`. The members in `taken`
/// have their place elsewhere.
fn words(message: Message<'_>, taken: &[&str]) -> Value {
    let mut known = [taken, &["role", "content", "name"]].concat();
    let empty = message.calls().into_iter().filter(|(_, calls)| calls.is_some_and(says_none));
    known.extend(empty.map(|(name, _)| name));
    let extra = rest(message.object, &known);
    let mut members = vec![("role", message.role.cloned().unwrap_or(Value::Null))];
    for (name, value) in [("content", message.content), ("name", message.name)] {
        let value = value.filter(|_| !taken.contains(&name));
        members.extend(value.map(|value| (name, value.clone())));
    }
    members.extend((!extra.is_empty()).then(|| ("extra", Value::record(extra))));
    Value::record(members)
}

/// Whether a member that holds a list holds nothing.
pub(super) fn says_none(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Notes members that may be calls in a place where no call is read: they are kept, and not paired.
fn note_unread_calls(message: Message<'_>, is_result: bool, at: At<'_>, notes: &mut Vec<ImportNote>) {
    let listed = message.listed().is_some();
    for (name, value) in message.calls() {
        let Some(value) = value.filter(|value| !says_none(value)) else { continue };
        let why = match name {
            _ if is_result => "calls in a result are kept and not read".to_owned(),
            "tool_calls" if !listed => format!("tool_calls is a list, not {}", kind(value)),
            "function_call" if listed => "a call beside tool_calls is kept and not read".to_owned(),
            "function_call" if value.as_object().is_none() => {
                format!("function_call is an object, not {}", kind(value))
            }
            _ => continue,
        };
        notes.push(ImportNote::new(NoteKind::CallUnreadable, format!("{at}/{name}"), why));
    }
}

/// The id of a call, as the source has it.
#[derive(Debug)]
enum Id<'m> {
    None,
    /// The id as written, and the word under which it is paired. An empty text is [`Id::None`].
    Read(&'m Value, Cow<'m, str>),
    /// Neither text nor number: it cannot be the id of anything.
    Unreadable,
}

impl<'m> Id<'m> {
    /// Reads an id, and notes one that is not text.
    fn of(value: Option<&'m Value>, path: fmt::Arguments<'_>, notes: &mut Vec<ImportNote>) -> Id<'m> {
        let id = match value {
            None | Some(Value::Null) => return Id::None,
            Some(Value::String(text)) if text.is_empty() => return Id::None,
            Some(value @ Value::String(text)) => return Id::Read(value, Cow::Borrowed(text)),
            Some(number @ Value::Number(_)) => Id::Read(number, json::to_string(number).into()),
            Some(_) => Id::Unreadable,
        };
        let end = match id {
            Id::Unreadable => "kept and names no call",
            _ => "compared by its digits",
        };
        let what = value.map_or("", Value::type_name);
        let text = format!("an id is text, and this is a {what}; it is {end}");
        notes.push(ImportNote::new(NoteKind::CallIdNotText, path, text));
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

fn read_request<'m>(message: Message<'m>, at: At<'_>, open: &Calls) -> Step<'m> {
    let agent: Arc<str> = message.speaker().into();
    let listed = message.listed();
    let single = message.single().filter(|_| listed.is_none());
    let taken = if listed.is_some() { "tool_calls" } else { "function_call" };
    let mut asked = Vec::new();
    let mut known: Vec<Call> = Vec::new();
    let mut ids = HashSet::new();
    let mut notes = Vec::new();
    for (index, call) in listed.into_iter().flat_map(Array::iter).chain(single).enumerate() {
        let place = CallAt { message: at, member: taken, index: listed.map(|_| index) };
        let one = read_call(call, &place, &mut notes);
        let call = one.call(&agent, index);
        if let Some(id) = &call.id
            && (!ids.insert(Arc::clone(id)) || open.is_open(id, &agent))
        {
            let text =
                format!("a call with the id {id:?} is open already; a result with it may answer either");
            notes.push(ImportNote::new(NoteKind::CallIdRepeated, &place, text));
        }
        asked.push(one);
        known.push(call);
    }
    let mut step = Step::later("action.request", message.speaker().into(), false, move || {
        let mut actions: Vec<Value> = asked.into_iter().map(Asked::action).collect();
        let action = match actions.len() {
            1 => actions.remove(0),
            _ => Value::record([("calls", Value::array(actions))]),
        };
        let intent = Intent::new(name_of("action.request"), message.speaker());
        intent.with("intent", words(message, &[taken])).with("action", action)
    });
    (step.notes, step.calls) = (notes, known);
    step
}

/// The place of a call in a message.
struct CallAt<'a> {
    message: At<'a>,
    member: &'static str,
    /// Which of a list.
    index: Option<usize>,
}

impl fmt::Display for CallAt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.message, self.member)?;
        self.index.map_or(Ok(()), |index| write!(f, "/{index}"))
    }
}

/// One call, as it was read.
#[derive(Debug)]
struct Asked<'m> {
    value: &'m Value,
    /// The members of the call; `None` if it is no object.
    object: Option<&'m Object>,
    /// The object `function` or `custom` in it, which holds name and arguments where there is one.
    inner: Option<(&'static str, &'m Object)>,
    /// The tool, and the member that names it.
    tool: Option<(&'static str, &'m str)>,
    /// The member that holds the arguments.
    arguments: Option<&'static str>,
    params: Option<Value>,
    params_are_text: bool,
    id: Id<'m>,
}

/// Reads one call.
fn read_call<'m>(asked: &'m Value, at: &dyn fmt::Display, notes: &mut Vec<ImportNote>) -> Asked<'m> {
    let Some(object) = plain_object(asked) else {
        let text = format!("a call is an object, not {}", kind(asked));
        notes.push(ImportNote::new(NoteKind::CallUnreadable, at, text));
        return Asked {
            value: asked,
            object: None,
            inner: None,
            tool: None,
            arguments: None,
            params: None,
            params_are_text: false,
            id: Id::None,
        };
    };
    // The name and the arguments are in `function` or `custom`, or there is no such object.
    let inner =
        ["function", "custom"].into_iter().find_map(|name| Some((name, plain_object(object.get(name)?)?)));
    let (holder, names): (&'m Object, &[&'static str]) = match inner {
        Some((_, inner)) => (inner, &["name"]),
        None => (object, &["function", "name"]),
    };
    let tool = names.iter().find_map(|name| Some((*name, holder.get(name)?.as_str()?)));
    let named: &[&'static str] = match inner {
        Some(("custom", _)) => &["input"],
        _ => &["arguments", "args"],
    };
    let arguments = named.iter().find_map(|name| Some((*name, holder.get(name)?)));
    let mut params_are_text = false;
    let params = arguments.map(|(name, value)| match value.as_str() {
        None => value.clone(),
        // The input of a custom tool is text, also if it looks like JSON.
        Some(_) if name == "input" => {
            params_are_text = true;
            value.clone()
        }
        Some(text) => json::parse_door(text.as_bytes()).unwrap_or_else(|error| {
            params_are_text = true;
            let path = match inner {
                Some((inner, _)) => format!("{at}/{inner}/{name}"),
                None => format!("{at}/{name}"),
            };
            let text = format!("these arguments stay text: {error}");
            notes.push(ImportNote::new(NoteKind::ArgumentsNotJson, path, text));
            value.clone()
        }),
    });
    if tool.is_none() {
        notes.push(ImportNote::new(NoteKind::CallUnreadable, at, "this call names no tool"));
    }
    let id = Id::of(object.get("id"), format_args!("{at}/id"), notes);
    let arguments = arguments.map(|(name, _)| name);
    Asked { value: asked, object: Some(object), inner, tool, arguments, params, params_are_text, id }
}

impl Asked<'_> {
    fn tool(&self) -> Option<&str> {
        self.tool.map(|(_, tool)| tool)
    }

    /// The part of a call that is remembered until its answer.
    fn call(&self, agent: &Arc<str>, index: usize) -> Call {
        let (id, tool) = (self.id.word().map(Arc::from), self.tool().map(Arc::from));
        Call { id, tool, params: self.params.clone(), agent: Arc::clone(agent), index }
    }

    /// The action that a call becomes.
    fn action(self) -> Value {
        let Asked { value, object, inner, tool, arguments, params, params_are_text, id } = self;
        let Some(object) = object else { return Value::record([("extra", value.clone())]) };
        let mut taken: Vec<&str> = tool.iter().map(|(name, _)| *name).chain(arguments).collect();
        let mut extra = Vec::new();
        let named = inner.map_or("function", |(name, _)| name);
        if let Some((name, inner)) = inner {
            let rest = rest(inner, &taken);
            extra.extend((!rest.is_empty()).then(|| (name.into(), Value::record(rest))));
            taken = vec![name];
        }
        taken.extend(id.word().is_some().then_some("id"));
        // A `type` of the same name is dropped: it repeats the place of the call.
        taken.extend((object.get("type").and_then(Value::as_str) == Some(named)).then_some("type"));
        extra.extend(rest(object, &taken));
        let members = [
            ("call_id", id.value()),
            ("extra", (!extra.is_empty()).then(|| Value::record(extra))),
            ("params", params),
            ("params_are_text", params_are_text.then(|| Value::from(true))),
            ("tool", tool.map(|(_, tool)| Value::from(tool))),
        ];
        Value::record(members.into_iter().filter_map(|(name, value)| Some((name, value?))))
    }
}

/// The members of an object but these.
pub(super) fn rest(object: &Object, taken: &[&str]) -> Vec<(Arc<str>, Value)> {
    let kept = object.iter().filter(|(name, _)| !taken.contains(&&***name));
    kept.map(|(name, value)| (Arc::clone(name), value.clone())).collect()
}

/// A message that brings the result of a call.
#[derive(Debug)]
struct Answered<'m> {
    message: Message<'m>,
    id: Id<'m>,
    /// Whether the id is the message's own, and not that of a call repeated in it.
    own_id: bool,
    /// The call that it answers, as far as it is known.
    call: Option<Call>,
    /// The call as some repeat it.
    repeated: Option<Asked<'m>>,
    outcome: Outcome,
}

fn read_result<'m>(message: Message<'m>, item: &Item<'_>, open: &mut Calls) -> Step<'m> {
    let (at, mut notes) = (item.at, Vec::new());
    // Some repeat the call that they answer.
    let call = message.object.get("tool_call").filter(|value| plain_object(value).is_some());
    let repeated = call.map(|call| read_call(call, &at, &mut Vec::new()));
    let mut id = Id::of(message.object.get("tool_call_id"), format_args!("{at}/tool_call_id"), &mut notes);
    let own_id = matches!(id, Id::Read(..));
    if let (Id::None, Some(call)) = (&id, call) {
        id = Id::of(call.get("id"), format_args!("{at}/tool_call/id"), &mut notes);
    }
    let tool = message.name().or(repeated.as_ref().and_then(Asked::tool));
    let agent = ["agent", "agent_id"].iter().find_map(|name| message.object.get(name)?.as_str());
    let before = notes.len();
    let outcome = match item.outcome {
        Some(Outcome::Flag(failed)) => outcome::beside_content(failed, message.content, at, &mut notes),
        Some(outcome) => outcome,
        None => outcome::of_message(message.object, message.content, at, &mut notes),
    };
    let answer = Given { number: at.number, content: identity(message, outcome) };
    match id.word().and_then(|word| open.answer(word)) {
        Some(known) if known.content == answer.content => return answered_again(message, known.number, item),
        Some(_) => {
            let text = "its call is answered already, with another result";
            notes.push(ImportNote::not_read(at, &[FAILURES], text));
        }
        None => {}
    }
    let mut of_outcome = notes.split_off(before);
    let Paired { call, cause, contested, .. } = match id {
        // By name and order it might answer another call than the one that it names.
        Id::Unreadable => {
            let text = "this result names its call by something that is no id";
            notes.push(ImportNote::new(NoteKind::ResultWithoutCall, at, text));
            Paired::default()
        }
        _ => open.pair(Answers { id: id.word(), tool, agent }, at, &mut notes),
    };
    notes.append(&mut of_outcome);
    if let Some(word) = id.word().filter(|_| cause.is_some()) {
        open.keep_answer(word, answer);
    }
    let answered = Answered { message, id, own_id, call, repeated, outcome };
    let agent = answered.agent().to_owned().into();
    let mut step = Step::later("action.result", agent, outcome.is_failure(), move || answered.intent());
    (step.notes, step.cause, step.contested) = (notes, cause, contested);
    step
}

/// The identity of a result: its output, its error and its status.
fn identity(message: Message<'_>, outcome: Outcome) -> Short {
    short(json::to_string(&result_of(message, outcome)).as_bytes())
}

/// The step of a result whose call the same result has answered: it is kept, and states nothing.
fn answered_again<'m>(message: Message<'m>, first: Option<u64>, item: &Item<'_>) -> Step<'m> {
    let words = Value::record([("repeated", item.value.clone())]);
    let mut step = Step::new(Intent::new(name_of("observation.add"), message.role()).with("intent", words));
    let first = At { number: first, part: None, ..item.at };
    let text = format!("{first} has this result of this call");
    let note = ImportNote::new(NoteKind::Repeated, item.at, text);
    step.notes = vec![note.with("first", Value::from(first.to_string()))];
    step
}

impl Answered<'_> {
    /// Returns the agent that asked for it; the role of the message if the call is unknown.
    fn agent(&self) -> &str {
        self.call.as_ref().map_or_else(|| self.message.role(), |call| &call.agent)
    }

    fn intent(self) -> Intent {
        let intent = Intent::new(name_of("action.result"), self.agent()).by_runtime();
        let Answered { message, id, own_id, call, repeated, outcome } = self;
        let name = message.name();
        let tool = name.or(repeated.as_ref().and_then(Asked::tool)).map(str::to_owned);
        let same =
            |a: &Call, b: &Call| a.tool == b.tool && a.params == b.params && (a.id == b.id || b.id.is_none());
        let repeated = repeated.map(|repeated| {
            let call = repeated.call(&intent.agent, 0);
            (call, repeated.action().get("extra").is_some())
        });
        let says_more = match (&call, &repeated) {
            (Some(call), Some((repeated, has_extra))) => !same(call, repeated) || *has_extra,
            // Its tool and params stand in the action; its id, where it is the one that this result names.
            (None, Some((repeated, has_extra))) => {
                *has_extra || (repeated.id.is_some() && repeated.id.as_deref() != id.word())
            }
            (_, None) => true,
        };
        let source = call.as_ref().or(repeated.as_ref().map(|(repeated, _)| repeated));
        let tool = source.and_then(|call| call.tool.as_deref()).or(tool.as_deref());
        let action = [
            ("call_id", id.value()),
            ("params", source.and_then(|call| call.params.clone())),
            ("tool", tool.map(Value::from)),
        ];
        let action: Vec<_> = action.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        // The text of a result is in `result`, once; the name of its tool is in `action`.
        let mut taken = vec!["error", "content"];
        taken.extend(own_id.then_some("tool_call_id"));
        taken.extend((!says_more).then_some("tool_call"));
        taken.extend((name.is_some() && name == tool).then_some("name"));
        let intent =
            intent.with("intent", words(message, &taken)).with("result", result_of(message, outcome));
        if action.is_empty() { intent } else { intent.with("action", Value::record(action)) }
    }
}

/// Returns the result of a call: the output as written, and its status as far as it is stated.
fn result_of(message: Message<'_>, outcome: Outcome) -> Value {
    let members = [
        ("error", message.object.get("error").cloned()),
        ("output", message.content.cloned()),
        ("status", outcome.status().map(Value::from)),
        ("status_from", outcome.status().map(|_| Value::from(outcome.from()))),
    ];
    Value::record(members.into_iter().filter_map(|(name, value)| Some((name, value?))))
}

/// Whether a part of a content holds a call or a result.
fn is_call_in_parts(part: &Value) -> bool {
    let kind = part.get("type").and_then(Value::as_str);
    matches!(kind, Some("tool_use" | "tool_result" | "tool_call" | "function_call" | "function_call_output"))
        || ["functionCall", "functionResponse", "function_call", "function_response", "toolUse", "toolResult"]
            .iter()
            .any(|name| part.get(name).is_some_and(|call| call.as_object().is_some()))
}

/// Whether a value outside the list has calls or items that are not read: calls without a role, parts with calls, an item of the Responses API.
fn holds_calls(value: &Value) -> bool {
    let Some(object) = value.as_object() else { return false };
    let is_list =
        |name: &str| object.get(name).and_then(Value::as_array).is_some_and(|calls| !calls.is_empty());
    is_list("tool_calls")
        || is_call_in_parts(value)
        || object.get("type").and_then(Value::as_str).is_some_and(|kind| ITEMS.contains(&kind))
}
