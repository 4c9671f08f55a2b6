//! Fields of records that were erased or withheld, counted: a list that may lack something can say so.

use std::collections::BTreeMap;

use dendrer_object::Pointer;
use dendrer_object::record::Record;

/// Lists the fields of a record that cannot be read any more.
pub fn closed(record: &Record) -> Vec<Pointer> {
    let body = record.body();
    let closed = body.fields().iter().filter(|field| body.text(field).is_none());
    closed.map(|field| field.pointer.clone()).collect()
}

/// The number of records in which each field is closed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Closed(pub BTreeMap<Pointer, u64>);

impl Closed {
    /// Counts the closed fields of a record that matter.
    pub fn add(&mut self, record: &Record, matters: impl Fn(&Pointer) -> bool) {
        for pointer in closed(record).into_iter().filter(|pointer| matters(pointer)) {
            *self.0.entry(pointer).or_default() += 1;
        }
    }
}
