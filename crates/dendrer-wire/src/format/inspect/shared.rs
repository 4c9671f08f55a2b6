//! Parts of a sample that its events share: texts that were moved to `attachments`, and messages of `events_data`.
//!
//! Resolves references from within the sample alone. Rule: what references grow to is counted, so that a small file does not become
//! a large run; test `references_that_grow_without_bound_are_refused`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer::kernel::unknown::{CALLS, FAILURES};
use dendrer_object::Value;
use dendrer_object::value::Object;

use super::message;
use crate::import::error::ImportError;
use crate::import::note::ImportNote;
use crate::import::once::Short;
use crate::import::spans::identity;
use crate::inflate;

/// Beginnings of a text that refers to an attachment; the second one is of older logs.
const REFERENCES: [&str; 2] = ["attachment://", "tc://"];

/// How many bytes a message takes that is referred to.
const REFERENCE_SIZE: u64 = 16;

/// The shared parts of a sample.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// How many bytes the sample has.
    size: u64,
    pub(super) attachments: BTreeMap<String, Arc<str>>,
    /// The messages of `events_data`, resolved, in the shape of a chat.
    messages: Vec<(Object, Short)>,
    pub(super) used: RefCell<Used>,
}

/// Parts that were referred to.
#[derive(Debug, Default)]
pub(super) struct Used {
    pub(super) attachments: BTreeSet<String>,
    pub(super) messages: BTreeSet<usize>,
    missing: Vec<String>,
    /// How many bytes references became.
    bytes: u64,
}

impl Shared {
    /// Takes the attachments of a sample of this size, and the messages that its events refer to.
    pub(super) fn new(size: usize, attachments: BTreeMap<String, Arc<str>>, messages: &[Value]) -> Shared {
        let mut shared = Shared { size: size as u64, attachments, ..Shared::default() };
        let resolved = messages.iter().map(|one| {
            let value = shared.resolved(one);
            let message = message(value.as_object().unwrap_or(&Object::default()));
            let said = identity(&message);
            (message, said)
        });
        shared.messages = resolved.collect();
        shared
    }

    pub(super) fn messages(&self) -> usize {
        self.messages.len()
    }

    /// A value with attachments in place of references to them.
    pub(super) fn resolved(&self, value: &Value) -> Value {
        self.changed(value).unwrap_or_else(|| value.clone())
    }

    /// The members of an object, resolved but for some.
    pub(super) fn members(&self, object: &Object, but: &[&str]) -> Object {
        let mut all = object.clone();
        for (name, value) in object.iter().filter(|(name, _)| !but.contains(&&***name)) {
            if let Some(new) = self.changed(value) {
                all.set(name, new);
            }
        }
        all
    }

    /// A value with its references resolved; `None` if it has none.
    fn changed(&self, value: &Value) -> Option<Value> {
        match value {
            Value::String(text) => self.text(text).map(Value::String),
            Value::Array(items) => {
                let mut all = None;
                for (index, item) in items.iter().enumerate() {
                    if let Some(new) = self.changed(item) {
                        all.get_or_insert_with(|| items.clone()).set(index, new);
                    }
                }
                all.map(Value::Array)
            }
            Value::Object(members) => {
                let mut all = None;
                for (name, value) in members.iter() {
                    if let Some(new) = self.changed(value) {
                        all.get_or_insert_with(|| members.clone()).set(name, new);
                    }
                }
                all.map(Value::Object)
            }
            _ => None,
        }
    }

    fn text(&self, text: &str) -> Option<Arc<str>> {
        let name = reference(text)?;
        let mut used = self.used.borrow_mut();
        let Some(found) = self.attachments.get(name) else {
            used.missing.push(name.to_owned());
            return None;
        };
        used.bytes += found.len() as u64;
        used.attachments.insert(name.to_owned());
        Some(Arc::clone(found))
    }

    /// The messages that ranges refer to, with their identities; notes those that are missing.
    pub(super) fn inputs(
        &self,
        ranges: &Value,
        at: &str,
        notes: &mut Vec<ImportNote>,
    ) -> Vec<(Object, Short)> {
        let mut found = Vec::new();
        let ranges = ranges.as_array().cloned().unwrap_or_default();
        for range in ranges.iter() {
            let end = |index: usize| range.as_array()?.get(index)?.as_u64()?.try_into().ok();
            let (from, to): (usize, usize) = (end(0).unwrap_or(1), end(1).unwrap_or(0));
            let Some(messages) = self.messages.get(from..to) else {
                let text = "this refers to messages that the sample does not have";
                notes.push(ImportNote::not_read(at, &[CALLS, FAILURES], text));
                continue;
            };
            let mut used = self.used.borrow_mut();
            used.bytes += REFERENCE_SIZE * messages.len() as u64;
            if !inflate::is_too_large(used.bytes, self.size) {
                used.messages.extend(from..to);
                found.extend(messages.iter().cloned());
            }
        }
        found
    }

    /// Notes attachments that are missing, of what was resolved since the last time.
    pub(super) fn note_missing(&self, at: &str, notes: &mut Vec<ImportNote>) {
        for name in self.used.borrow_mut().missing.drain(..).take(1) {
            let text = format!("the attachment {name} is not in the sample");
            notes.push(ImportNote::not_read(at, &[CALLS, FAILURES], text));
        }
    }

    /// Refuses a sample whose references grew to much more than its text.
    pub(super) fn check(&self) -> Result<(), ImportError> {
        match inflate::is_too_large(self.used.borrow().bytes, self.size) {
            true => {
                Err(super::too_large("its references to shared parts grow to more than 200 times its size"))
            }
            false => Ok(()),
        }
    }
}

/// The name of the attachment that a text refers to.
fn reference(text: &str) -> Option<&str> {
    REFERENCES.iter().find_map(|begin| text.strip_prefix(begin))
}

/// Adds the names of attachments that a value refers to.
pub(super) fn references(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => names.extend(reference(text).map(str::to_owned)),
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        Value::Object(members) => members.iter().for_each(|(_, value)| references(value, names)),
        _ => {}
    }
}
