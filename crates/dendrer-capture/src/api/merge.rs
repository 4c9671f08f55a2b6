//! Puts pieces of a value together.

use dendrer_object::Value;
use dendrer_object::value::Object;

/// Members that each piece has whole.
const WHOLE: &[&str] = &[
    "id",
    "type",
    "role",
    "index",
    "model",
    "object",
    "service_tier",
    "system_fingerprint",
    "finish_reason",
    "provider",
];

/// Adds a piece to a value: texts go on, items of lists by their `index`, other values replace those before.
pub(super) fn add(whole: &mut Object, piece: &Object) {
    for (name, value) in piece.iter() {
        let value = match (whole.get(name), value) {
            (Some(_), Value::Null) => continue,
            // Some repeat the name of a call with each piece.
            (Some(Value::String(before)), Value::String(more)) if &**name == "name" && before == more => {
                Value::String(before.clone())
            }
            (Some(Value::String(before)), Value::String(more)) if !WHOLE.contains(&&**name) => {
                Value::from(format!("{before}{more}"))
            }
            // Some send words as a text, and as a list of parts.
            (Some(Value::String(before)), Value::Array(more)) if &**name == "content" => {
                let before = part(before).into_iter().collect();
                list(before, more.iter())
            }
            (Some(Value::Array(before)), Value::String(more)) if &**name == "content" => {
                list(before.iter().cloned().collect(), part(more).iter())
            }
            (Some(Value::String(before)), Value::String(more)) if more.is_empty() => {
                Value::String(before.clone())
            }
            (Some(Value::Object(before)), Value::Object(more)) => {
                let mut both = before.clone();
                add(&mut both, more);
                Value::Object(both)
            }
            (before, Value::Array(more)) => {
                let before = before.and_then(Value::as_array).map(|items| items.iter().cloned().collect());
                list(before.unwrap_or_default(), more.iter())
            }
            (_, value) => value.clone(),
        };
        whole.set(name, value);
    }
}

/// A text as a part of a list; `None` if it is empty.
fn part(text: &str) -> Option<Value> {
    let members = [("text", Value::from(text)), ("type", Value::from("text"))];
    (!text.is_empty()).then(|| Value::record(members))
}

/// Adds items to a list: to the newest one with their `index`, else to the end. An id of its own begins a new item. A piece of a
/// call without index and id belongs to the newest call.
fn list<'m>(mut items: Vec<Value>, more: impl Iterator<Item = &'m Value>) -> Value {
    let index = |value: &Value| value.get("index").and_then(Value::as_u64);
    let id = |value: &Value| {
        value.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned)
    };
    for one in more {
        let own = id(one);
        let is_same = |item: &Value| match (index(one), &own) {
            (Some(wanted), _) if index(item) != Some(wanted) => false,
            (None, None) => one.get("function").is_some() && item.get("function").is_some(),
            (None, Some(own)) => id(item).as_ref() == Some(own),
            (Some(_), own) => own.is_none() || id(item).is_none() || id(item) == *own,
        };
        let same = items.iter().rposition(is_same);
        match (same.map(|at| &mut items[at]), one) {
            (Some(Value::Object(before)), Value::Object(piece)) => add(before, piece),
            (_, Value::Object(piece)) => {
                // Its own lists may hold several pieces of one item.
                let mut new = Object::default();
                add(&mut new, piece);
                items.push(Value::Object(new));
            }
            _ => items.push(one.clone()),
        }
    }
    Value::array(items)
}
