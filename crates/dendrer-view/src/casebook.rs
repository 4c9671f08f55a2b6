//! Findings that were written into the casebook of a store, as lines and as documents.

use dendrer::casebook;
use dendrer_object::record::{Kind, Record};
use dendrer_object::{TypeName, Value};

/// Writes what was recorded, one finding a line.
pub fn recorded_lines(recorded: &[Record]) -> Vec<String> {
    let line = |record: &Record| {
        let header = record.header();
        let (tick, type_name) = (header.tick.unwrap_or(0), header.type_name.as_ref());
        let type_name = type_name.map_or("", TypeName::as_str);
        format!("RECORDED   {}@{tick}  {type_name}   hash {}", casebook::NAME, record.id().short())
    };
    findings(recorded).map(line).collect()
}

/// Returns what was recorded as a list.
pub fn recorded_json(recorded: &[Record]) -> Value {
    Value::array(findings(recorded).map(|record| {
        let header = record.header();
        Value::record([
            ("id", Value::from(record.id())),
            ("run", Value::from(casebook::NAME)),
            ("tick", Value::from(header.tick)),
            ("type", Value::from(header.type_name.as_ref().map(TypeName::as_str))),
        ])
    }))
}

/// Leaves out the record that begins the casebook.
fn findings(recorded: &[Record]) -> impl Iterator<Item = &Record> {
    recorded.iter().filter(|record| record.header().kind == Kind::Transition)
}
