//! The casebook: its labels, its notes, and the records that a command added to it.

use std::collections::BTreeMap;

use dendrer::casebook::{self, CasebookNote, Place};
use dendrer_object::record::{Kind, Record};
use dendrer_object::{RunName, TypeName, Value};

use crate::answer::{Answer, Line, Page};
use crate::table::{Align, Table};
use crate::{count, document, quote};

/// The labels of a store, after a command.
#[derive(Debug, Clone)]
pub struct LabelsAnswer {
    /// The labels, by name.
    pub labels: BTreeMap<String, Place>,
    /// The record of the label that was added or removed; if there is one, it is all that is printed for people.
    pub recorded: Option<Record>,
}

/// The notes of a place, or of a store, after a command.
#[derive(Debug, Clone)]
pub struct NotesAnswer {
    /// The notes, oldest first.
    pub notes: Vec<CasebookNote>,
    /// The record of the note that was added; if there is one, it is all that is printed for people.
    pub recorded: Option<Record>,
}

impl Answer for LabelsAnswer {
    fn document(&self) -> Value {
        let items = self.labels.iter().map(|(name, at)| {
            Value::record([("name", Value::from(name.as_str()))].into_iter().chain(moment_json(at)))
        });
        let recorded = recorded_json(self.recorded.as_slice());
        document("labels", [("items", Value::array(items)), ("recorded", recorded)])
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        if self.recorded.is_some() {
            return recorded_lines(self.recorded.as_slice()).into_iter().map(Line::from).collect();
        }
        let mut table = Table::new(["label", "at", "hash"].map(|name| (name, Align::Left)));
        for (name, at) in &self.labels {
            table.row(vec![quote::escape(name), at.address(), at.id.short()]);
        }
        let mut lines = if self.labels.is_empty() { Vec::new() } else { page.table(&table) };
        lines.push(count(self.labels.len() as u64, "label", "labels").into());
        lines
    }
}

/// A run that was dropped, or taken back.
#[derive(Debug, Clone, Copy)]
pub struct DroppedAnswer<'d> {
    /// The run.
    pub run: &'d RunName,
    /// Why.
    pub reason: Option<&'d str>,
    /// Whether it is left out of lists now.
    pub is_dropped: bool,
    /// The record of the act.
    pub recorded: &'d Record,
}

impl Answer for DroppedAnswer<'_> {
    fn document(&self) -> Value {
        let members = [
            ("run", Value::from(self.run.as_str())),
            ("dropped", Value::from(self.is_dropped)),
            ("reason", Value::from(self.reason)),
            ("recorded", recorded_json(std::slice::from_ref(self.recorded))),
        ];
        document("dropped", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let run = self.run.as_str();
        let what = match self.is_dropped {
            true => format!("dropped {run}: `runs` leaves it out, and nothing was removed"),
            false => format!("{run} is in `runs` again"),
        };
        let recorded = recorded_lines(std::slice::from_ref(self.recorded)).into_iter().map(Line::from);
        let back = self.is_dropped.then(|| Line::help(["dendrer", "runs", "drop", run, "--undo"]));
        [Line::from(what)].into_iter().chain(recorded).chain(back).collect()
    }
}

impl Answer for NotesAnswer {
    fn document(&self) -> Value {
        let items = self.notes.iter().map(|note| {
            let own = [("by", Value::from(note.by.as_str())), ("text", Value::from(note.text.as_str()))];
            Value::record(own.into_iter().chain(moment_json(&note.at)))
        });
        let recorded = recorded_json(self.recorded.as_slice());
        document("notes", [("items", Value::array(items)), ("recorded", recorded)])
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        if self.recorded.is_some() {
            return recorded_lines(self.recorded.as_slice()).into_iter().map(Line::from).collect();
        }
        let line = |note: &CasebookNote| {
            let (at, by) = (note.at.address(), quote::escape(&note.by));
            format!("{at}  {by}  {}", quote::quoted(&note.text))
        };
        let sum = count(self.notes.len() as u64, "note", "notes");
        self.notes.iter().map(line).chain([sum]).map(Line::from).collect()
    }
}

fn moment_json(at: &Place) -> [(&'static str, Value); 3] {
    [("run", Value::from(at.run.as_str())), ("tick", Value::from(at.tick)), ("id", Value::from(at.id))]
}

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
