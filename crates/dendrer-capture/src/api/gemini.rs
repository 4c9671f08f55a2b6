//! Content of Gemini, `generateContent` and `streamGenerateContent` of the API of Google.
//!
//! A stream cuts texts into parts, and its libraries repeat them as they were cut, each piece as a content of its own if a
//! chat keeps them so. Contents are therefore put together before they are compared: [`whole`].

use dendrer_object::Value;
use dendrer_object::value::Object;

use crate::spoken::{Api, Kept, Request, Said, StreamEvent, list, terms, text};

pub(super) static CONTENT: Api = Api {
    name: "gemini",
    paths: &[":generateContent", ":streamGenerateContent"],
    request,
    answer,
    gather,
    stream,
};

/// The author of contents that a model wrote.
const MODEL: &str = "model";

fn request(body: &Object) -> Request {
    let mut items: Vec<Value> = Vec::new();
    for content in list(body.get("contents")) {
        match (items.last_mut(), &content) {
            (Some(last), _) if is_of_model(last) && is_of_model(&content) => *last = both(last, &content),
            _ => items.push(content),
        }
    }
    let items = items.iter().map(|content| Kept::message(whole(content))).collect();
    Request { preamble: Vec::new(), items, terms: terms(body, &["contents"]), after: None }
}

fn is_of_model(content: &Value) -> bool {
    text(content, "role").as_deref() == Some(MODEL)
}

/// Two contents of a model as one.
fn both(one: &Value, other: &Value) -> Value {
    let parts = list(one.get("parts")).chain(list(other.get("parts")));
    let mut all = one.as_object().cloned().unwrap_or_default();
    all.set("parts", Value::array(parts));
    Value::Object(all)
}

/// A content with its author named, and with one part for texts that come one after another.
fn whole(content: &Value) -> Value {
    let Some(content) = content.as_object() else { return content.clone() };
    let mut content = content.clone();
    if !content.contains_key("role") {
        content.set("role", Value::from("user"));
    }
    if content.get("parts").is_some_and(|parts| parts.as_array().is_some()) {
        let mut parts: Vec<Value> = Vec::new();
        for part in list(content.get("parts")) {
            match parts.last_mut().and_then(|last| joined(last, &part)) {
                Some(longer) => {
                    parts.pop();
                    parts.push(longer);
                }
                None => parts.push(part),
            }
        }
        content.set("parts", Value::array(parts));
    }
    Value::Object(content)
}

/// Two texts as one, if both are words, or both are thoughts. The later one may bring the signature.
fn joined(one: &Value, other: &Value) -> Option<Value> {
    let (first, more) = (one.as_object()?, other.as_object()?);
    let is_text =
        |part: &Object| part.iter().all(|(name, _)| matches!(&**name, "text" | "thought" | SIGNATURE));
    let thinks = |part: &Object| part.get("thought").and_then(Value::as_bool).unwrap_or(false);
    let goes_on = is_text(first) && is_text(more) && thinks(first) == thinks(more);
    if !goes_on || first.contains_key(SIGNATURE) {
        return None;
    }
    let mut longer = first.clone();
    more.iter().for_each(|(name, value)| longer.set(name, value.clone()));
    longer.set("text", Value::from(text(one, "text")? + &text(other, "text")?));
    Some(Value::Object(longer))
}

/// The member by which a model knows its own thought again.
const SIGNATURE: &str = "thoughtSignature";

fn answer(body: Value) -> Option<Said> {
    // Without `alt=sse` a stream is one list.
    let body = match body.as_array() {
        Some(pieces) => gather(&pieces.iter().cloned().collect::<Vec<_>>())?,
        None => body,
    };
    let candidates: Vec<Value> = list(body.get("candidates")).collect();
    let mut message = whole(candidates.first()?.get("content")?).as_object()?.clone();
    message.set("role", Value::from(MODEL));
    let repeated = Kept::message(Value::Object(message.clone()));
    // Only one of several is repeated by a later request, and which one is not known.
    let others: Vec<Value> =
        candidates[1..].iter().filter_map(|candidate| candidate.get("content").map(whole)).collect();
    if !others.is_empty() {
        message.set("other_choices", Value::array(others));
    }
    if let Some(usage) = body.get("usageMetadata") {
        message.set("usageMetadata", usage.clone());
    }
    Some(Said {
        answer: Kept::message(Value::Object(message)),
        items: vec![repeated],
        id: text(&body, "responseId"),
    })
}

fn gather(events: &[Value]) -> Option<Value> {
    let mut all = Object::default();
    let mut candidates: Vec<Object> = Vec::new();
    for event in events.iter().filter_map(Value::as_object) {
        if event.contains_key("error") {
            return None;
        }
        // Each piece states the tokens up to its end, and the last one counts.
        terms(event, &["candidates"]).iter().for_each(|(name, value)| all.set(name, value.clone()));
        for candidate in list(event.get("candidates")) {
            let piece = candidate.as_object()?.clone();
            let index = |candidate: &Object| candidate.get("index").and_then(Value::as_u64).unwrap_or(0);
            match candidates.iter_mut().find(|known| index(known) == index(&piece)) {
                Some(known) => grow(known, &piece),
                None => candidates.push(piece),
            }
        }
    }
    let is_done = |candidate: &Object| candidate.get("finishReason").is_some_and(|why| *why != Value::Null);
    if candidates.is_empty() || !candidates.iter().all(is_done) {
        return None;
    }
    all.set("candidates", Value::array(candidates.into_iter().map(Value::Object)));
    Some(Value::Object(all))
}

/// Adds a piece to a candidate: its parts after those before.
fn grow(candidate: &mut Object, piece: &Object) {
    let content = match (candidate.get("content"), piece.get("content")) {
        (Some(before), Some(more)) => Some(both(before, more)),
        (before, more) => more.or(before).cloned(),
    };
    piece.iter().for_each(|(name, value)| candidate.set(name, value.clone()));
    if let Some(content) = content {
        candidate.set("content", content);
    }
}

/// One event has all of it.
fn stream(_: &Object, answer: &Object) -> Vec<StreamEvent> {
    vec![StreamEvent::of(&Value::Object(answer.clone()))]
}
