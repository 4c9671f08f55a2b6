//! Chat completions of OpenAI, and of all who speak as it does.

use dendrer_object::Value;
use dendrer_object::value::Object;

use super::merge;
use crate::spoken::{Api, Kept, Request, Said, StreamEvent, list, terms, text};

pub(super) static CHAT: Api =
    Api { name: "openai-chat", paths: &["/chat/completions"], request, answer, gather, stream };

fn request(body: &Object) -> Request {
    let messages: Vec<Kept> = list(body.get("messages")).map(Kept::message).collect();
    let of_system =
        |kept: &Kept| matches!(text(&kept.value, "role").as_deref(), Some("system" | "developer"));
    let begins = messages.iter().position(|kept| !of_system(kept)).unwrap_or(messages.len());
    let mut preamble = messages;
    let items = preamble.split_off(begins);
    let mut terms = terms(body, &["messages"]);
    if !preamble.is_empty() {
        terms.set("system", Value::array(preamble.iter().map(|kept| kept.value.clone())));
    }
    Request { preamble, items, terms, after: None }
}

fn answer(body: Value) -> Option<Said> {
    let choices: Vec<Value> = list(body.get("choices")).collect();
    let mut message = choices.first()?.get("message")?.as_object()?.clone();
    // Only one of several is repeated by a later request, and which one is not known.
    let others = choices[1..].iter().filter_map(|choice| choice.get("message").cloned());
    let others: Vec<Value> = others.collect();
    let repeated = Kept::message(Value::Object(message.clone()));
    // Why an answer ended is kept if it did not end by itself.
    let why = choices.first().and_then(|choice| text(choice, "finish_reason"));
    if let Some(why) = why.filter(|why| !["stop", "tool_calls", "function_call"].contains(&why.as_str())) {
        message.set("finish_reason", Value::from(why));
    }
    if !others.is_empty() {
        message.set("other_choices", Value::array(others));
    }
    if let Some(usage) = body.get("usage").filter(|usage| **usage != Value::Null) {
        message.set("usage", usage.clone());
    }
    Some(Said { answer: Kept::message(Value::Object(message)), items: vec![repeated], id: text(&body, "id") })
}

fn gather(events: &[Value]) -> Option<Value> {
    let mut whole = Object::default();
    let mut is_whole = false;
    for event in events {
        match event.as_object() {
            None => is_whole |= event.as_str() == Some("[DONE]"),
            Some(event) if event.contains_key("error") => return None,
            Some(event) => merge::add(&mut whole, event),
        }
    }
    let choices = list(whole.get("choices")).filter_map(|choice| {
        let mut choice = choice.as_object()?.clone();
        let mut message = choice.remove("delta")?.as_object()?.clone();
        if let Some(calls) = message.get("tool_calls").and_then(Value::as_array).cloned() {
            let calls = calls.iter().map(|call| match call {
                Value::Object(call) => Value::Object(terms(call, &["index"])),
                other => other.clone(),
            });
            message.set("tool_calls", Value::array(calls));
        }
        choice.set("message", Value::Object(message));
        Some(Value::Object(choice))
    });
    let choices: Vec<Value> = choices.collect();
    let is_done = |choice: &Value| choice.get("finish_reason").is_some_and(|why| *why != Value::Null);
    if choices.is_empty() || !(is_whole || choices.iter().all(is_done)) {
        return None;
    }
    whole.set("choices", Value::array(choices));
    Some(Value::Object(whole))
}

fn stream(request: &Object, answer: &Object) -> Vec<StreamEvent> {
    let mut head = terms(answer, &["choices", "usage"]);
    head.set("object", Value::from("chat.completion.chunk"));
    let event = |choices: Vec<Value>, usage: Option<Value>| {
        let mut chunk = head.clone();
        chunk.set("choices", Value::array(choices));
        usage.into_iter().for_each(|usage| chunk.set("usage", usage));
        StreamEvent::of(&Value::Object(chunk))
    };
    let choice = |index: usize, delta: Value, why: Value| {
        let index = Value::from(index as u64);
        Value::record([("delta", delta), ("finish_reason", why), ("index", index)])
    };
    let mut events = Vec::new();
    for (index, one) in list(answer.get("choices")).enumerate() {
        let mut delta = one.get("message").and_then(Value::as_object).cloned().unwrap_or_default();
        let calls = list(delta.get("tool_calls")).enumerate().map(|(index, call)| match call {
            Value::Object(mut call) => {
                call.set("index", Value::from(index as u64));
                Value::Object(call)
            }
            other => other,
        });
        let calls: Vec<Value> = calls.collect();
        if !calls.is_empty() {
            delta.set("tool_calls", Value::array(calls));
        }
        events.push(event(vec![choice(index, Value::Object(delta), Value::Null)], None));
        let why = one.get("finish_reason").cloned().unwrap_or_else(|| Value::from("stop"));
        events.push(event(vec![choice(index, Value::object(), why)], None));
    }
    let wants_usage = request.get("stream_options").and_then(|options| options.get("include_usage"));
    if let (Some(Value::Bool(true)), Some(usage)) = (wants_usage, answer.get("usage")) {
        events.push(event(Vec::new(), Some(usage.clone())));
    }
    events.push(StreamEvent { name: None, data: "[DONE]".to_owned() });
    events
}
