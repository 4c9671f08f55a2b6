//! The Responses API of OpenAI.

use dendrer_object::Value;
use dendrer_object::value::Object;

use crate::spoken::{Api, Kept, Request, Said, Shape, list, terms, text};

pub(super) static RESPONSES: Api =
    Api { name: "openai-responses", paths: &["/responses"], request, answer, gather };

fn request(body: &Object) -> Request {
    let items: Vec<Kept> = match body.get("input") {
        Some(Value::String(words)) => {
            let said = [("role", Value::from("user")), ("content", Value::String(words.clone()))];
            vec![item(Value::record(said))]
        }
        input => list(input).map(item).collect(),
    };
    let after = body.get("previous_response_id").and_then(Value::as_str).map(str::to_owned);
    let terms = terms(body, &["input", "previous_response_id"]);
    Request { preamble: Vec::new(), items, terms, after }
}

fn item(value: Value) -> Kept {
    Kept { shape: Shape::Item, ..Kept::message(value) }
}

fn answer(body: Value) -> Option<Said> {
    body.get("output")?.as_array()?;
    let (items, id) = (list(body.get("output")).map(item).collect(), text(&body, "id"));
    Some(Said { answer: Kept { shape: Shape::Response, ..Kept::message(body) }, items, id })
}

fn gather(events: &[Value]) -> Option<Value> {
    let ends = ["response.completed", "response.incomplete", "response.failed"];
    let last = events.iter().find(|event| ends.contains(&text(event, "type").as_deref().unwrap_or_default()));
    last?.get("response").cloned()
}
