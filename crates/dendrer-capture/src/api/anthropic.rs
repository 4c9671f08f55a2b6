//! The Messages API of Anthropic.

use dendrer_object::value::Object;
use dendrer_object::{Value, json};

use super::merge;
use crate::spoken::{Api, Kept, Request, Said, list, terms, text};

pub(super) static MESSAGES: Api = Api { name: "anthropic", paths: &["/messages"], request, answer, gather };

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
