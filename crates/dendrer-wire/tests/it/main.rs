//! The importer through its public face: sources as text in, the records of a memory store out.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod carl;
mod claude_code;
mod codex;
mod conversations;
mod examples;
mod faults;
mod formats;
mod inspect;
mod langfuse;
mod langsmith;
mod layouts;
mod names;
mod otlp;
mod pairing;
mod pieces;
mod smallest;
mod spans;
mod stopped;

use std::io::Cursor;
use std::ops::ControlFlow;

use dendrer::Trace;
use dendrer::kernel::step::Start;
use dendrer::recorder::Fixed;
use dendrer_object::record::Rel;
use dendrer_object::{Record, Value};
use dendrer_testkit::memory;
use dendrer_wire::format;
use dendrer_wire::import::{self, Choice, ImportError, ImportOptions, ImportPlan, Map, OnGap};

/// Options for a source of the format with a name.
pub(crate) fn of(format: &str) -> ImportOptions {
    let format = format::named(format).unwrap();
    let choice = Choice::default();
    ImportOptions { format, map: None, choice, on_gap: OnGap::Mark, name: None, kept: Vec::new() }
}

pub(crate) fn chat() -> ImportOptions {
    of("openai-chat")
}

pub(crate) fn mapped(map: Map) -> ImportOptions {
    ImportOptions { map: Some(map), ..of("jsonl") }
}

/// Imports a source and returns the plan and all records of the run, the beginning in front.
pub(crate) fn import(
    source: &[u8],
    options: ImportOptions,
) -> Result<(ImportPlan, Vec<Record>), ImportError> {
    let store = memory(1);
    let start = Start::new("r".parse().unwrap());
    let plan = import::plan(&mut Cursor::new(source), options, start)?;
    let surroundings = Box::new(Fixed::new("import", 0, 1));
    let mut settled = 0;
    let tip =
        import::record(&store, &mut Cursor::new(source), &plan, surroundings, &mut |more| settled += more)?;
    assert_eq!(settled, plan.tally.ticks);
    assert_eq!(import::find_twin(&store, &plan).unwrap(), Some("r".parse().unwrap()));
    let trace = Trace::open(&store, &"r".parse().unwrap()).unwrap();
    assert_eq!(trace.tip(), plan.tally.ticks, "one item is one tick");
    let mut records = vec![trace.start().clone()];
    trace
        .for_each(1, trace.tip(), &mut |_, record| {
            records.push(record.clone());
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(records.last().unwrap().id(), tip);
    Ok((plan, records))
}

/// Shows a transition as docs/import.md does: what the source gives, without what the kernel adds.
pub(crate) fn shown(records: &[Record], tick: usize) -> Value {
    let record = &records[tick];
    let header = record.header();
    let mut value = record.content();
    let Value::Object(object) = &mut value else { panic!("content is an object") };
    for name in ["delta", "seq", "state_root"] {
        object.remove(name);
    }
    object.set("type", Value::from(header.type_name.as_ref().unwrap().as_str()));
    object.set("author", Value::from(header.author.as_str()));
    for link in header.links.iter().filter(|link| link.rel == Rel::CausedBy) {
        let asked = records.iter().position(|other| other.id() == link.hash).unwrap();
        object.set("caused_by", Value::from(asked as u64));
    }
    value
}
