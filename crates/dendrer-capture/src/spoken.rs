//! Requests and answers of an API: messages and items, by which a conversation is known again.

use dendrer_object::value::Object;
use dendrer_object::{Digest, Value, json};
use dendrer_wire::live::LiveItem;

/// An API whose calls are read.
#[derive(Debug)]
pub struct Api {
    /// Its name in records.
    pub name: &'static str,
    /// The ends of the paths of its calls.
    pub(crate) paths: &'static [&'static str],
    /// Reads a request.
    pub(crate) request: fn(&Object) -> Request,
    /// Reads an answer that came as one value.
    pub(crate) answer: fn(Value) -> Option<Said>,
    /// Puts an answer together that came as events; `None` if it is not whole.
    pub(crate) gather: fn(&[Value]) -> Option<Value>,
    /// Cuts an answer to a request into the events of a stream.
    pub(crate) stream: fn(&Object, &Object) -> Vec<StreamEvent>,
}

impl Api {
    /// Whether the path of a call asks for a stream.
    pub(crate) fn streams(path: &str) -> bool {
        path.split('?').next().is_some_and(|path| path.contains(":stream"))
    }
}

/// An event of a stream.
#[derive(Debug)]
pub(crate) struct StreamEvent {
    /// Its name; APIs that name none have none.
    pub(crate) name: Option<&'static str>,
    /// Its data, as text.
    pub(crate) data: String,
}

impl StreamEvent {
    /// An event that has its name in its data, too.
    pub(crate) fn named<'m>(
        name: &'static str,
        members: impl IntoIterator<Item = (&'m str, Value)>,
    ) -> StreamEvent {
        let members = members.into_iter().chain([("type", Value::from(name))]);
        StreamEvent { name: Some(name), data: json::to_string(&Value::record(members)) }
    }

    /// An event without a name.
    pub(crate) fn of(value: &Value) -> StreamEvent {
        StreamEvent { name: None, data: json::to_string(value) }
    }

    /// Its bytes (WHATWG HTML, server-sent events).
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let name = self.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {}\n\n", self.data).into_bytes()
    }
}

impl Api {
    /// Reads a request. The model may be named by its path alone: `/models/MODEL:VERB`.
    pub(crate) fn read_request(&self, path: &str, body: &Object) -> Request {
        let mut request = (self.request)(body);
        let path = path.split('?').next().unwrap_or_default();
        let named = path.rsplit('/').next().and_then(|last| last.rsplit_once(':'));
        if let (Some((model, _)), false) = (named, request.terms.contains_key("model")) {
            request.terms.set("model", Value::from(model));
        }
        request
    }
}

/// The messages of a request, and its terms.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// The words of the system, as far as they stand in front of the messages.
    pub(crate) preamble: Vec<Kept>,
    /// The messages or items after them.
    pub(crate) items: Vec<Kept>,
    /// All else.
    pub(crate) terms: Object,
    /// The id of the answer that the items come after.
    pub(crate) after: Option<String>,
}

impl Request {
    /// The identity of an agent: the words of its system, and its tools.
    pub(crate) fn agent(&self) -> Digest {
        let named = SYSTEM.map(|name| self.terms.get(name).cloned());
        let preamble = self.preamble.iter().map(|kept| kept.value.clone());
        let named = named.into_iter().map(|value| value.unwrap_or(Value::Null));
        Value::array(preamble.chain(named)).digest()
    }
}

/// Members of a request with the words of its system, or its tools.
const SYSTEM: [&str; 5] = ["system", "instructions", "systemInstruction", "system_instruction", "tools"];

/// The messages of an answer.
#[derive(Debug)]
pub(crate) struct Said {
    /// The answer as it is read.
    pub(crate) answer: Kept,
    /// The messages or items by which a later request repeats it.
    pub(crate) items: Vec<Kept>,
    /// Its id.
    pub(crate) id: Option<String>,
}

/// A message or an item.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) value: Value,
    pub(crate) shape: Shape,
}

/// How a message is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Message,
    Item,
    Response,
}

impl Kept {
    pub(crate) fn message(value: Value) -> Kept {
        Kept { value, shape: Shape::Message }
    }

    /// It as what came.
    pub(crate) fn came(&self) -> LiveItem<'_> {
        match (self.shape, self.value.as_object()) {
            (Shape::Item, Some(item)) => LiveItem::Item(item),
            (Shape::Response, Some(response)) => LiveItem::Response(response),
            _ => LiveItem::Message(&self.value, None),
        }
    }

    /// Whether it brings the result of a call.
    pub(crate) fn is_result(&self) -> bool {
        let text = |name: &str| self.value.get(name).and_then(Value::as_str).unwrap_or_default();
        let parts = |name: &str| self.value.get(name).and_then(Value::as_array);
        let brings = |part: &Value| {
            part.get("type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("tool_result"))
                || part.get("functionResponse").is_some()
                || part.get("function_response").is_some()
        };
        matches!(text("role"), "tool" | "function")
            || text("type").ends_with("_output")
            || ["content", "parts"].into_iter().filter_map(parts).any(|parts| parts.iter().any(brings))
    }

    /// Whether it is a thought alone: a client may leave it out when it repeats a conversation, or repeat it without its text.
    pub(crate) fn is_thought(&self) -> bool {
        self.shape == Shape::Item && is_thought(&self.value)
    }

    /// Whether it brings the result of one of some calls.
    pub(crate) fn answers_one_of(&self, calls: &[String]) -> bool {
        calls.iter().any(|call| result_in(&self.value, call).is_some())
    }

    /// A digest that is the same each time that a message is repeated.
    pub(crate) fn key(&self) -> Digest {
        match &self.value {
            Value::Object(message) => Value::Object(message_key(message)).digest(),
            other => other.digest(),
        }
    }
}

/// The members of a message or item that have its meaning.
const SAYS: &[&str] = &[
    "role",
    "name",
    "content",
    "parts",
    "tool_calls",
    "function_call",
    "tool_call_id",
    "type",
    "call_id",
    "arguments",
    "input",
    "output",
    "summary",
    "encrypted_content",
    "action",
];

/// Members of parts and of calls that a client adds or leaves out when it repeats them.
const ADDED: &[&str] = &[
    "cache_control",
    "annotations",
    "logprobs",
    "status",
    "index",
    "citations",
    "caller",
    "refusal",
    "obfuscation",
    "parsed",
    "parsed_arguments",
    // Written in another alphabet of base64 when it is repeated.
    "thoughtSignature",
];

/// Members of parts and of calls with what a tool gets or gives: each member of it counts.
const DATA: &[&str] = &["args", "input", "response"];

fn message_key(message: &Object) -> Object {
    let mut key = Object::default();
    for (name, value) in message.iter().filter(|(name, _)| SAYS.contains(&&***name)) {
        // Messages of one API have a type, which other APIs leave out.
        let is_plain_type = &**name == "type" && value.as_str() == Some("message");
        let part = part_key(name, value);
        if !is_plain_type && !is_empty(&part) {
            key.set(name, part);
        }
    }
    key
}

/// Whether a part or an item is a thought of a model.
fn is_thought(value: &Value) -> bool {
    let kind = value.get("type").and_then(Value::as_str);
    matches!(kind, Some("thinking" | "redacted_thinking" | "reasoning"))
        || value.get("thought").and_then(Value::as_bool) == Some(true)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// A value as it counts: texts alone or in a part, arguments as JSON however they are written.
fn part_key(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if name == "content" || name == "output" => {
            Value::array([Value::record([("text", Value::String(text.clone()))])])
        }
        Value::String(text) if name == "arguments" => {
            json::parse_door(text.as_bytes()).unwrap_or_else(|_| value.clone())
        }
        Value::Array(items) => {
            Value::array(items.iter().filter(|item| !is_thought(item)).map(|item| part_key("", item)))
        }
        Value::Object(object) => {
            let mut key = Object::default();
            let kept = object.iter().filter(|(name, value)| !ADDED.contains(&&***name) && !is_empty(value));
            for (name, value) in kept {
                let is_text = matches!(value.as_str(), Some("text" | "input_text" | "output_text"));
                if DATA.contains(&&**name) {
                    key.set(name, value.clone());
                } else if !(&**name == "type" && is_text) {
                    key.set(name, part_key(name, value));
                }
            }
            Value::Object(key)
        }
        other => other.clone(),
    }
}

/// The members of a request but for some.
pub(crate) fn terms(request: &Object, without: &[&str]) -> Object {
    let kept = request.iter().filter(|(name, _)| !without.contains(&&***name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The values of a list; empty for any other value.
pub(crate) fn list(value: Option<&Value>) -> impl Iterator<Item = Value> {
    value.and_then(Value::as_array).cloned().into_iter().flat_map(|items| {
        let items: Vec<Value> = items.iter().cloned().collect();
        items
    })
}

/// A text member.
pub(crate) fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// The result of a call of a tool in a value.
pub(crate) fn result_in(value: &Value, call: &str) -> Option<Value> {
    match value {
        Value::Array(items) => items.iter().find_map(|item| result_in(item, call)),
        Value::Object(object) => match result_place(object, call) {
            Some(place) => object.get(place).cloned(),
            None => object.iter().find_map(|(_, value)| result_in(value, call)),
        },
        _ => None,
    }
}

/// The member in which an object has the result of a call of a tool.
fn result_place(object: &Object, call: &str) -> Option<&'static str> {
    let is = |name: &str| object.get(name).and_then(Value::as_str) == Some(call);
    let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
    match () {
        () if is("tool_call_id") => Some("content"),
        () if is("tool_use_id") && kind.ends_with("tool_result") => Some("content"),
        () if is("call_id") && kind.ends_with("_output") => Some("output"),
        () if is("id") && object.contains_key("response") => Some("response"),
        () => None,
    }
}

/// A value with another result in the place of that of a call of a tool; `None` if it has no result of it.
///
/// A text stays a text: another value than a text becomes the text of its JSON.
pub(crate) fn with_result(value: &Value, call: &str, result: &Value) -> Option<Value> {
    match value {
        Value::Array(items) => {
            let changed: Vec<Option<Value>> =
                items.iter().map(|item| with_result(item, call, result)).collect();
            changed.iter().any(Option::is_some).then(|| {
                Value::array(
                    changed
                        .into_iter()
                        .zip(items.iter())
                        .map(|(new, old)| new.unwrap_or_else(|| old.clone())),
                )
            })
        }
        Value::Object(object) => {
            let Some(place) = result_place(object, call) else { return inside(object, call, result) };
            let mut changed = object.clone();
            let is_text = !matches!(object.get(place), Some(Value::Object(_) | Value::Array(_)));
            let result = match result {
                Value::String(_) => result.clone(),
                other if is_text => Value::from(json::to_string(other)),
                other => other.clone(),
            };
            changed.set(place, result);
            Some(Value::Object(changed))
        }
        _ => None,
    }
}

/// An object with another result in one of its members.
fn inside(object: &Object, call: &str, result: &Value) -> Option<Value> {
    let changed = object.iter();
    let changed = changed.filter_map(|(name, value)| Some((name.clone(), with_result(value, call, result)?)));
    let changed: Vec<_> = changed.collect();
    (!changed.is_empty()).then(|| {
        let mut whole = object.clone();
        changed.into_iter().for_each(|(name, value)| whole.set(&*name, value));
        Value::Object(whole)
    })
}
