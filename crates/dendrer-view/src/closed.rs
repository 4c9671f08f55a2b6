//! What was erased or withheld, for whoever lists what is left: a list that may lack something says so.

use std::collections::BTreeMap;

use dendrer_object::record::Record;
use dendrer_object::{Pointer, Value};

use crate::{count, quote};

/// Lists the fields of a record that cannot be read any more.
pub fn closed(record: &Record) -> Vec<Pointer> {
    let body = record.body();
    let closed = body.fields().iter().filter(|field| body.text(field).is_none());
    closed.map(|field| field.pointer.clone()).collect()
}

/// Counts in how many records each field is closed.
#[derive(Debug, Default)]
pub struct Closed(BTreeMap<Pointer, u64>);

impl Closed {
    /// Takes in what is closed of a record, as far as it matters.
    pub fn add(&mut self, record: &Record, matters: impl Fn(&Pointer) -> bool) {
        for pointer in closed(record).into_iter().filter(|pointer| matters(pointer)) {
            *self.0.entry(pointer).or_default() += 1;
        }
    }

    /// Says what is not known, in one line; `None` if nothing is closed.
    pub fn line(&self) -> Option<String> {
        let list = self.0.iter().map(|(pointer, records)| {
            format!("{} of {}", quote::path(pointer), count(*records, "record", "records"))
        });
        let list: Vec<String> = list.collect();
        (!list.is_empty()).then(|| {
            let list = list.join(", ");
            format!(
                "not known: {list} (erased or withheld), so what is listed and counted may lack something"
            )
        })
    }

    /// Returns the fields and counts as a list.
    pub fn to_json(&self) -> Value {
        Value::array(self.0.iter().map(|(pointer, records)| {
            Value::record([("path", Value::from(pointer.as_str())), ("records", Value::from(*records))])
        }))
    }
}
