//! A change of one place of the state, as a line and as a document.

use dendrer::ask::show::PlaceChange;
use dendrer_object::{Delta, Pointer, Record, Value, document};

use crate::quote;

/// Writes a change on one line: `~ path  before -> after`, `+` for new, `-` for gone, `=` for an equal value.
pub fn change_line(change: &PlaceChange, width: Option<usize>) -> String {
    let path = match change.path.as_str() {
        "" => "state".to_owned(),
        _ => quote::path(&change.path),
    };
    let show = |value: &Value| match width {
        Some(width) => quote::shorten(&quote::value(value), width),
        None => quote::value(value),
    };
    match (&change.before, &change.after) {
        (Some(before), Some(after)) if before == after => format!("= {path}  {}", show(after)),
        (Some(Value::Array(before)), Some(Value::Array(after))) if after.len() == before.len() + 1 => {
            let last = after.get(before.len()).map(show).unwrap_or_default();
            format!("+ {path}[{}]  {last}", before.len())
        }
        (Some(before), Some(after)) => format!("~ {path}  {} -> {}", show(before), show(after)),
        (None, Some(after)) => format!("+ {path}  {}", show(after)),
        (Some(before), None) => format!("- {path}  {}", show(before)),
        (None, None) => format!("= {path}  (made and removed)"),
    }
}

/// Returns the content of a record as answers show it: the paths of its delta have the names of the user, as its values have.
pub fn content_json(record: &Record) -> Value {
    let mut content = record.content();
    let delta = content.get("delta").and_then(|delta| Delta::from_value(delta).ok());
    if let (Some(delta), Value::Object(members)) = (delta, &mut content) {
        members.set("delta", delta.written());
    }
    content
}

document! {
    /// A change of one place of the state
    pub object ChangeObject(change: &PlaceChange) {
        /// The place
        path: &Pointer = &change.path,
        /// The value before; absent if there was none
        before?: &Value = change.before.as_ref(),
        /// The value after; absent if it is missing
        after?: &Value = change.after.as_ref(),
    }
}
