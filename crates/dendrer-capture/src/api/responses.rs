//! The Responses API of OpenAI.

use dendrer_object::Value;
use dendrer_object::value::Object;

use crate::spoken::{Api, Kept, Request, Said, Shape, StreamEvent, list, terms, text};

pub(super) static RESPONSES: Api =
    Api { name: "openai-responses", paths: &["/responses"], request, answer, gather, stream };

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
    if text(&body, "status").as_deref() == Some("failed") {
        return None;
    }
    let (items, id) = (list(body.get("output")).map(item).collect(), text(&body, "id"));
    Some(Said { answer: Kept { shape: Shape::Response, ..Kept::message(body) }, items, id })
}

fn gather(events: &[Value]) -> Option<Value> {
    let ends = ["response.completed", "response.incomplete", "response.failed"];
    let last = events.iter().find(|event| ends.contains(&text(event, "type").as_deref().unwrap_or_default()));
    let mut response = last?.get("response")?.as_object()?.clone();
    // Some leave the items out of the last event, and send each by itself.
    if list(response.get("output")).next().is_none() {
        let done = |event: &&Value| text(event, "type").as_deref() == Some("response.output_item.done");
        let items = events.iter().filter(done).filter_map(|event| event.get("item").cloned());
        response.set("output", Value::array(items.collect::<Vec<Value>>()));
    }
    Some(Value::Object(response))
}

fn stream(_: &Object, answer: &Object) -> Vec<StreamEvent> {
    let mut events = Events::default();
    let mut begun = answer.clone();
    begun.set("output", Value::array([]));
    begun.set("status", Value::from("in_progress"));
    events.add("response.created", [("response", Value::Object(begun))]);
    for (index, item) in list(answer.get("output")).enumerate() {
        events.item(Value::from(index as u64), item);
    }
    events.add("response.completed", [("response", Value::Object(answer.clone()))]);
    events.0
}

/// Events of a response, which are numbered.
#[derive(Default)]
struct Events(Vec<StreamEvent>);

impl Events {
    fn add<'m>(&mut self, name: &'static str, members: impl IntoIterator<Item = (&'m str, Value)>) {
        let number = ("sequence_number", Value::from(self.0.len() as u64));
        self.0.push(StreamEvent::named(name, members.into_iter().chain([number])));
    }

    fn item(&mut self, index: Value, item: Value) {
        let index = || ("output_index", index.clone());
        let mut begun = item.as_object().cloned().unwrap_or_default();
        let cut = [("content", Value::array([])), ("arguments", Value::from(""))];
        for (name, empty) in cut.into_iter().filter(|(name, _)| item.get(name).is_some()) {
            begun.set(name, empty);
        }
        self.add("response.output_item.added", [("item", Value::Object(begun)), index()]);
        let id = || ("item_id", item.get("id").cloned().unwrap_or(Value::Null));
        for (at, part) in list(item.get("content")).enumerate() {
            let at = || [("content_index", Value::from(at as u64)), id(), index()];
            let mut begun = part.as_object().cloned().unwrap_or_default();
            let words =
                part.get("text").cloned().filter(|_| text(&part, "type").as_deref() == Some("output_text"));
            words.iter().for_each(|_| begun.set("text", Value::from("")));
            let begun = ("part", Value::Object(begun));
            self.add("response.content_part.added", at().into_iter().chain([begun]));
            if let Some(words) = words {
                self.add("response.output_text.delta", at().into_iter().chain([("delta", words.clone())]));
                self.add("response.output_text.done", at().into_iter().chain([("text", words)]));
            }
            self.add("response.content_part.done", at().into_iter().chain([("part", part)]));
        }
        if let Some(arguments) = item.get("arguments") {
            let of = |name| [(name, arguments.clone()), id(), index()];
            self.add("response.function_call_arguments.delta", of("delta"));
            self.add("response.function_call_arguments.done", of("arguments"));
        }
        self.add("response.output_item.done", [("item", item.clone()), index()]);
    }
}
