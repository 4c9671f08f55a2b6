//! One transition in full, with what it changed.

use dendrer_object::delta::Delta;
use dendrer_object::record::Record;
use dendrer_object::{Pointer, Value};

use crate::quote;

/// One place that a transition wrote, with both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The place.
    pub path: Pointer,
    /// What stood there.
    pub before: Option<Value>,
    /// What stands there now.
    pub after: Option<Value>,
}

/// Lists what a transition wrote, each place once, in order of first writing.
pub fn changes(record: &Record, before: &Value, after: &Value) -> Vec<Changed> {
    let delta =
        record.body().value("/delta").and_then(|delta| Delta::from_value(&delta).ok()).unwrap_or_default();
    let mut found: Vec<Changed> = Vec::new();
    for path in delta.paths() {
        if found.iter().any(|changed| changed.path == *path) {
            continue;
        }
        let (before, after) = (path.get(before).cloned(), path.get(after).cloned());
        found.push(Changed { path: path.clone(), before, after });
    }
    found
}

impl Changed {
    /// Writes the change on one line: `~ path  before -> after`, `+` for new, `-` for gone, `=` for written alike.
    pub fn line(&self, width: Option<usize>) -> String {
        let path = match self.path.as_str() {
            "" => "state".to_owned(),
            _ => quote::path(&self.path),
        };
        let show = |value: &Value| match width {
            Some(width) => quote::shorten(&quote::value(value), width),
            None => quote::value(value),
        };
        match (&self.before, &self.after) {
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

    /// Returns the change as an item of `dendrer.show/1`. A side is left out where nothing stood.
    pub fn to_json(&self) -> Value {
        let sides = [("before", &self.before), ("after", &self.after)];
        let sides = sides.into_iter().filter_map(|(name, side)| Some((name, side.clone()?)));
        Value::record([("path", Value::from(self.path.as_str()))].into_iter().chain(sides))
    }
}
