//! The casebook: its labels, its notes, and the records that a command added to it.

use dendrer::casebook::{self, CasebookNote, Place};
use dendrer::change::findings::{LabelReply, NoteReply};
use dendrer_object::document::As;
use dendrer_object::record::{Kind, Record};
use dendrer_object::{Digest, RunName, TypeName, Value, document};

use crate::answer::{Answer, Line, Page};
use crate::table::{Align, Table};
use crate::{count, quote};

impl Answer for LabelReply {
    fn document(&self) -> Value {
        LabelsDocument::of(self).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        if self.recorded.is_some() {
            return recorded_lines(self.recorded.as_slice()).into_iter().map(Line::from).collect();
        }
        let mut table = Table::new(["label", "at", "hash"].map(|name| (name, Align::Left)));
        for (name, at) in &self.labels {
            table.row(vec![quote::escape(name), at.address(), at.id.short()]);
        }
        let mut lines = if self.labels.is_empty() { Vec::new() } else { page.rows(&table) };
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
        DroppedDocument::of(self).into()
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

impl Answer for NoteReply {
    fn document(&self) -> Value {
        NotesDocument::of(self).into()
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

document! {
    /// A record of the casebook
    pub object RecordedObject(record: &Record) {
        let header = record.header();
        /// The id of the record
        id: Digest = record.id(),
        /// The casebook
        run: &str = casebook::NAME,
        /// The tick in the casebook
        tick: As<u64> = As::new(header.tick),
        /// The type
        type: As<str> = As::new(header.type_name.as_ref().map(TypeName::as_str)),
    }

    /// A place in the history of a run
    object PlaceObject(at: &Place) {
        /// The run
        run: &RunName = &at.run,
        /// The tick; null for the run as a whole
        tick: Option<u64> = at.tick,
        /// The id of the record
        id: Digest = at.id,
    }

    /// A label
    object LabelObject(label: &str, at: &Place) {
        /// The name of the label
        name: &str = label,
        ..PlaceObject = PlaceObject::of(at),
    }

    /// A note about a place
    object NoteObject(note: &CasebookNote) {
        /// The name of the writer
        by: &str = &note.by,
        /// The text
        text: &str = &note.text,
        ..PlaceObject = PlaceObject::of(&note.at),
    }

    /// The labels of the casebook
    pub object LabelsDocument: "labels" (answer: &LabelReply) {
        /// The labels, by name
        items: Vec<LabelObject> = answer.labels.iter().map(|(name, at)| LabelObject::of(name, at)).collect(),
        /// The records that the command added
        recorded: Vec<RecordedObject> = recorded_objects(answer.recorded.as_slice()),
    }

    /// Notes of the casebook
    pub object NotesDocument: "notes" (answer: &NoteReply) {
        /// The notes, oldest first
        items: Vec<NoteObject> = answer.notes.iter().map(NoteObject::of).collect(),
        /// The records that the command added
        recorded: Vec<RecordedObject> = recorded_objects(answer.recorded.as_slice()),
    }

    /// A run that was left out of lists, or taken back
    pub object DroppedDocument: "dropped" (answer: &DroppedAnswer<'_>) {
        /// The run
        run: &RunName = answer.run,
        /// Whether lists leave the run out now
        dropped: bool = answer.is_dropped,
        /// The reason that was given
        reason: Option<&str> = answer.reason,
        /// The records that the command added
        recorded: Vec<RecordedObject> = recorded_objects(std::slice::from_ref(answer.recorded)),
    }
}

/// Returns the findings among records for a document.
pub fn recorded_objects(recorded: &[Record]) -> Vec<RecordedObject> {
    let findings = recorded.iter().filter(|record| record.header().kind == Kind::Transition);
    findings.map(RecordedObject::of).collect()
}
