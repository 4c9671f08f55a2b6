//! The questions of `label` and `note` as data.

use std::collections::BTreeMap;

use dendrer_object::{Code, Record, RunName, question};

use crate::address::Address;
use crate::casebook::{CasebookNote, Place, label, labels_of, note, notes_of, unlabel};
use crate::problem::Problem;
use crate::source::{Asked, Desk, clean_name, clean_text, exclude};

question! {
    /// Asks for the labels of a store, after one was added or removed
    pub struct LabelQuestion: "label-question" {
        /// The label; all are listed without one
        pub name: Option<String>,
        /// The place that the label is put on, as an address
        pub rev: Option<String>,
        /// Whether a label may be moved from another place
        pub r#move: bool,
        /// Whether the label is removed
        pub remove: bool,
        /// The author, not checked; person if not given
        pub by: Option<String>,
    }

    /// Asks for the notes of a place or a store, after one was added
    pub struct NoteQuestion: "note-question" {
        /// The place, as an address; all notes are listed without one
        pub rev: Option<String>,
        /// The text of a new note
        pub text: Option<String>,
        /// The author, not checked; person if not given
        pub by: Option<String>,
    }
}

/// The author if none is given.
pub const PERSON: &str = "person";

/// The longest note, in bytes: more belongs into a file whose digest is noted.
const NOTE_MAX: usize = 64 << 10;

/// The labels of a store, after a command.
#[derive(Debug, Clone)]
pub struct LabelReply {
    /// The labels, by name.
    pub labels: BTreeMap<String, Place>,
    /// The record of the label that was added or removed; if there is one, it is all that is printed for people.
    pub recorded: Option<Record>,
}

/// The notes of a place, or of a store, after a command.
#[derive(Debug, Clone)]
pub struct NoteReply {
    /// The notes, oldest first.
    pub notes: Vec<CasebookNote>,
    /// The record of the note that was added; if there is one, it is all that is printed for people.
    pub recorded: Option<Record>,
}

/// Finds the place in the store that an address means.
///
/// # Errors
///
/// E0601 for a bundle, or a [`Problem`] if there is no such place.
pub fn moment(desk: &mut dyn Desk, text: &str) -> Result<Place, Problem> {
    let address = Address::parse(text)?;
    if address.bundle.is_some() {
        return Err(Problem::new(Code::E0601, "a bundle has no casebook to write into")
            .note("labels and notes are of runs of the store"));
    }
    let source = desk.open(&address)?;
    let address = address.resolve(&source.store)?;
    let trace = source.trace(&address)?;
    let tick = address.pos.as_ref().map(|pos| pos.tick(&trace)).transpose()?;
    Ok(Place::of(&trace, tick)?)
}

fn refused(what: impl Into<String>) -> Problem {
    Problem::new(Code::E0106, what).note("nothing was changed")
}

/// The author as it is recorded.
fn author(desk: &mut dyn Desk, run: Option<&RunName>, by: Option<&str>) -> Result<String, Problem> {
    match by {
        None | Some(PERSON) => Ok(PERSON.to_owned()),
        Some(by) => clean_text(&desk.store()?, run, by),
    }
}

impl Asked for LabelQuestion {
    type Reply = LabelReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<LabelReply, Problem> {
        exclude(("REV", self.rev.is_some()), &[("--remove", self.remove)])?;
        let needs = [
            ("--move", self.r#move && self.rev.is_none(), "REV"),
            ("--remove", self.remove && self.name.is_none(), "NAME"),
            ("REV", self.rev.is_some() && self.name.is_none(), "NAME"),
        ];
        if let Some((flag, _, other)) = needs.into_iter().find(|(_, lacks, _)| *lacks) {
            return Err(refused(format!("{flag} needs {other}")));
        }
        let at = match &self.rev {
            Some(rev) if self.name.is_some() => Some(moment(desk, rev)?),
            _ => None,
        };
        let run = at.as_ref().map(|at| &at.run);
        let by = author(desk, run, self.by.as_deref())?;
        let name = self.name.as_deref().map(|name| clean_name(&desk.store()?, run, name)).transpose()?;
        let recorded = match (&name, at) {
            (None, _) => None,
            (Some(name), None) if self.remove => {
                Some(desk.write_down(|store, environment| unlabel(store, name, &by, environment))?)
            }
            (Some(name), Some(at)) => {
                let write = |store: &_, environment| label(store, name, &at, &by, self.r#move, environment);
                Some(desk.write_down(write)?)
            }
            (Some(name), None) => {
                let problem = refused("label NAME needs a place: RUN@TICK");
                return Err(match labels_of(&desk.store()?.reader()?)?.contains_key(name) {
                    true => problem.help(&["dendrer", "label", name, "--remove"]),
                    // The newest run, at its tip.
                    false => problem.help(&["dendrer", "label", name, "@"]),
                });
            }
        };
        Ok(LabelReply { labels: labels_of(&desk.store()?.reader()?)?, recorded })
    }
}

impl Asked for NoteQuestion {
    type Reply = NoteReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<NoteReply, Problem> {
        if self.text.is_some() && self.rev.is_none() {
            return Err(refused("TEXT needs REV"));
        }
        let at = self.rev.as_deref().map(|rev| moment(desk, rev)).transpose()?;
        let recorded = match (&at, &self.text) {
            (Some(_), Some(text)) if text.len() > NOTE_MAX || text.trim().is_empty() => {
                return Err(refused("a note is a text of 1 byte to 64 KiB"));
            }
            (Some(at), Some(text)) => {
                let by = author(desk, Some(&at.run), self.by.as_deref())?;
                let text = clean_text(&desk.store()?, Some(&at.run), text)?;
                let written = CasebookNote { at: at.clone(), text, by };
                Some(desk.write_down(|store, environment| note(store, &written, environment))?)
            }
            _ => None,
        };
        Ok(NoteReply { notes: notes_of(&desk.store()?.reader()?, at.as_ref())?, recorded })
    }
}
