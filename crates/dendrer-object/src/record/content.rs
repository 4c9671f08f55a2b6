//! Cutting content into fields, and putting it together again.

use std::sync::{Arc, LazyLock};

use super::Body;
use crate::pointer::Pointer;
use crate::value::{Object, Value};

/// The members of content that are cut one level deeper (design, section 3 "Fields").
const CUT_DEEPER: [&str; 4] = ["action", "intent", "result", "state"];

/// Objects with more members than this are committed whole, so that a header stays small.
const CUT_MEMBERS_MAX: usize = 64;

/// Cuts content into the fields that are committed one by one: one per top-level member, and one level below
/// `state`, `intent`, `action` and `result`. Sorted by pointer.
///
/// An object is cut only if all its names can stand in a header as they are: 1 to 64 members, names of 1 to 64
/// printable ASCII characters without `"` and `\`. Otherwise it is one field.
pub fn cut(content: &Object) -> Vec<(Pointer, Value)> {
    places(content).into_iter().map(|(pointer, value)| (pointer, value.clone())).collect()
}

/// As [`cut`], with the values where they are.
pub(super) fn places(content: &Object) -> Vec<(Pointer, &Value)> {
    let mut fields = Vec::with_capacity(16);
    for (name, value) in content.iter() {
        match value {
            Value::Object(members) if CUT_DEEPER.contains(&&**name) && can_be_cut(members) => {
                for (member, value) in members.iter() {
                    fields.push((pointer(&[name, member]), value));
                }
            }
            _ => fields.push((pointer(&[name]), value)),
        }
    }
    // Escaping and the slash between two names can change the order that the names alone had.
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields
}

/// The places that nearly every record has.
const KNOWN: [&[&str]; 16] = [
    &["agent_id"],
    &["delta"],
    &["seq"],
    &["state_root"],
    &["goal_id"],
    &["policy"],
    &["metrics"],
    &["anomalies"],
    &["context"],
    &["action", "tool"],
    &["action", "params"],
    &["result", "status"],
    &["result", "output"],
    &["intent", "description"],
    &["intent", "confidence"],
    &["intent", "uncertainty_notes"],
];

/// Returns the pointer of a path of names. Those that nearly every record has are made once and shared.
fn pointer(names: &[&str]) -> Pointer {
    static MADE: LazyLock<[Pointer; KNOWN.len()]> =
        LazyLock::new(|| KNOWN.map(|names| Pointer::of(names.iter().copied())));
    let last = names.last().map_or("", |name| name);
    // Most names differ in length, so that hardly any text is compared.
    let known = KNOWN.iter().position(|known| {
        known.len() == names.len()
            && known.last().is_some_and(|name| name.len() == last.len())
            && *known == names
    });
    known.map_or_else(|| Pointer::of(names.iter().copied()), |at| MADE[at].clone())
}

fn can_be_cut(members: &Object) -> bool {
    let plain = |name: &str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|c| c.is_ascii_graphic() && c != b'"' && c != b'\\')
    };
    (1..=CUT_MEMBERS_MAX).contains(&members.len())
        && members.entries().all(|entry| plain(&entry.key))
        // A tagged value is one value, whatever it looks like.
        && !members.entries().any(|entry| crate::tag::is_tag_name(&entry.key))
}

/// Members of an object under way.
type Members = Vec<(Arc<str>, Value)>;

/// Puts the content together from its fields. Erased and withheld values are missing.
pub fn content_from_fields(body: &Body) -> Value {
    content_of(body.fields().iter().filter_map(|field| {
        let text = body.text(field)?;
        Some((&field.pointer, crate::json::parse_canonical(text).expect("texts of a body are canonical")))
    }))
}

/// Puts content together from places and values, sorted by place.
pub(super) fn content_of<'a>(fields: impl IntoIterator<Item = (&'a Pointer, Value)>) -> Value {
    let mut top = Members::with_capacity(16);
    // Fields are sorted, so those below one place stand side by side: the objects that lead to the last one.
    let mut open: Vec<(Arc<str>, Members)> = Vec::new();
    for (pointer, value) in fields {
        let tokens: Vec<_> = pointer.tokens().collect();
        let Some((last, above)) = tokens.split_last() else { continue };
        let shared = open.iter().zip(above).take_while(|((name, _), token)| **name == ***token).count();
        close(&mut open, shared, &mut top);
        open.extend(above[shared..].iter().map(|token| (Arc::from(&**token), Members::new())));
        innermost(&mut open, &mut top).push((Arc::from(&**last), value));
    }
    close(&mut open, 0, &mut top);
    Value::record(top)
}

/// Puts objects into those around them until no more than `depth` are under way.
fn close(open: &mut Vec<(Arc<str>, Members)>, depth: usize, top: &mut Members) {
    while open.len() > depth {
        let Some((name, members)) = open.pop() else { break };
        innermost(open, top).push((name, Value::record(members)));
    }
}

fn innermost<'a>(open: &'a mut [(Arc<str>, Members)], top: &'a mut Members) -> &'a mut Members {
    open.last_mut().map_or(top, |(_, members)| members)
}
