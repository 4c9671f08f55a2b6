//! The Messages API of Anthropic.

use dendrer_object::value::Object;
use dendrer_object::{Value, json};

use super::merge;
use crate::spoken::{Api, Kept, Request, Said, StreamEvent, list, terms, text};

pub(super) static MESSAGES: Api =
    Api { name: "anthropic", paths: &["/messages"], request, answer, gather, stream };

fn request(body: &Object) -> Request {
    let items = list(body.get("messages")).map(Kept::message).collect();
    Request { preamble: Vec::new(), items, terms: terms(body, &["messages"]), after: None }
}

fn answer(body: Value) -> Option<Said> {
    body.get("content")?.as_array()?;
    let (id, answer) = (text(&body, "id"), Kept::message(body));
    Some(Said { items: vec![answer.clone()], answer, id })
}

fn gather(events: &[Value]) -> Option<Value> {
    let kind = |event: &Value| text(event, "type").unwrap_or_default();
    let begun = events.iter().find(|event| kind(event) == "message_start")?;
    let mut message = begun.get("message")?.as_object()?.clone();
    let mut blocks: Vec<Object> = Vec::new();
    let mut is_whole = false;
    for event in events {
        let at = event.get("index").and_then(Value::as_u64).map(|at| at as usize);
        match (kind(event).as_str(), at) {
            ("content_block_start", _) => {
                blocks.push(event.get("content_block")?.as_object()?.clone());
            }
            ("content_block_delta", Some(at)) => {
                grow(blocks.get_mut(at)?, event.get("delta")?);
            }
            ("message_delta", _) => {
                let stated = event.as_object().map(|event| terms(event, &["type", "delta"]));
                merge::add(&mut message, &stated.unwrap_or_default());
                event.get("delta").and_then(Value::as_object).into_iter().for_each(|delta| {
                    delta.iter().for_each(|(name, value)| message.set(name, value.clone()));
                });
            }
            ("message_stop", _) => is_whole = true,
            ("error", _) => return None,
            _ => {}
        }
    }
    for block in &mut blocks {
        // The parameters of a call come as a text.
        if let Some(text) = block.remove(INPUT).as_ref().and_then(Value::as_str) {
            let input = if text.is_empty() { Ok(Value::object()) } else { json::parse_door(text.as_bytes()) };
            block.set("input", input.unwrap_or_else(|_| Value::from(text)));
        }
    }
    message.set("content", Value::array(blocks.into_iter().map(Value::Object)));
    is_whole.then_some(Value::Object(message))
}

/// The member that gathers the text of the parameters of a call.
const INPUT: &str = "partial_json";

/// Adds a piece to a block.
fn grow(block: &mut Object, delta: &Value) {
    let Some(delta) = delta.as_object() else { return };
    for (name, value) in delta.iter().filter(|(name, _)| &***name != "type") {
        let mut more = Object::default();
        match &**name {
            "citation" => more.set("citations", Value::array([value.clone()])),
            name => more.set(name, value.clone()),
        }
        merge::add(block, &more);
    }
}

fn stream(_: &Object, answer: &Object) -> Vec<StreamEvent> {
    let mut message = answer.clone();
    message.set("content", Value::array([]));
    message.set("stop_reason", Value::Null);
    // No model counted, and libraries read a count.
    let none = || Value::record(["input_tokens", "output_tokens"].map(|name| (name, Value::from(0_u64))));
    let usage = answer.get("usage").cloned().unwrap_or_else(none);
    message.set("usage", usage.clone());
    let mut events = vec![StreamEvent::named("message_start", [("message", Value::Object(message))])];
    for (index, block) in list(answer.get("content")).enumerate() {
        let index = || ("index", Value::from(index as u64));
        let (begun, deltas) = cut(block);
        events.push(StreamEvent::named("content_block_start", [("content_block", begun), index()]));
        let deltas = deltas.into_iter().map(|(kind, name, value)| {
            let delta = Value::record([(name, value), ("type", Value::from(kind))]);
            StreamEvent::named("content_block_delta", [("delta", delta), index()])
        });
        events.extend(deltas);
        events.push(StreamEvent::named("content_block_stop", [index()]));
    }
    let ends = ["stop_reason", "stop_sequence"].map(|name| (name, answer.get(name).cloned()));
    let ends = ends.map(|(name, value)| (name, value.unwrap_or(Value::Null)));
    events.push(StreamEvent::named("message_delta", [("delta", Value::record(ends)), ("usage", usage)]));
    events.push(StreamEvent::named("message_stop", []));
    events
}

/// The type of a delta, the member that it has, and its value.
type BlockDelta = (&'static str, &'static str, Value);

/// Cuts a block into its beginning and what is added to it.
fn cut(block: Value) -> (Value, Vec<BlockDelta>) {
    let Value::Object(mut begun) = block else { return (block, Vec::new()) };
    let texts = [("text_delta", "text"), ("thinking_delta", "thinking"), ("signature_delta", "signature")];
    let mut deltas = Vec::new();
    for (kind, name) in texts {
        if let Some(Value::String(text)) = begun.get(name).cloned() {
            begun.set(name, Value::from(""));
            deltas.push((kind, name, Value::String(text)));
        }
    }
    if let Some(input) = begun.get("input").cloned() {
        begun.set("input", Value::object());
        deltas.push(("input_json_delta", INPUT, Value::from(json::to_string(&input))));
    }
    (Value::Object(begun), deltas)
}
