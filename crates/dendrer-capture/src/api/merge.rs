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
            (Some(Value::String(before)), Value::String(more)) if !WHOLE.contains(&&**name) => {
                Value::from(format!("{before}{more}"))
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

/// Adds items to a list: to the one with their `index`, else to the end.
fn list<'m>(mut items: Vec<Value>, more: impl Iterator<Item = &'m Value>) -> Value {
    let index = |value: &Value| value.get("index").and_then(Value::as_u64);
    for one in more {
        let same = index(one).and_then(|wanted| items.iter().position(|item| index(item) == Some(wanted)));
        match (same.map(|at| &mut items[at]), one) {
            (Some(Value::Object(before)), Value::Object(piece)) => add(before, piece),
            _ => items.push(one.clone()),
        }
    }
    Value::array(items)
}
