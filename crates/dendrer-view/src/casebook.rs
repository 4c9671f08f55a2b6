//! Records of the casebook as lines and as documents.

use dendrer::casebook;
use dendrer_object::record::{Kind, Record};
use dendrer_object::{TypeName, Value};

/// Returns a line for each finding that was recorded in the casebook.
pub fn recorded_lines(recorded: &[Record]) -> Vec<String> {
    let findings = recorded.iter().filter(|record| record.header().kind == Kind::Transition);
    let line = |record: &Record| {
        let header = record.header();
        let (tick, type_name) = (header.tick.unwrap_or(0), header.type_name.as_ref());
        let type_name = type_name.map_or("", TypeName::as_str);
        format!("RECORDED   {}@{tick}  {type_name}   hash {}", casebook::NAME, record.id().short())
    };
    findings.map(line).collect()
}

/// As [`recorded_lines`], for a document.
pub fn recorded_json(recorded: &[Record]) -> Value {
    let findings = recorded.iter().filter(|record| record.header().kind == Kind::Transition);
    Value::array(findings.map(|record| {
        let header = record.header();
        Value::record([
            ("id", Value::from(record.id())),
            ("run", Value::from(casebook::NAME)),
            ("tick", Value::from(header.tick)),
            ("type", Value::from(header.type_name.as_ref().map(TypeName::as_str))),
        ])
    }))
}
