//! `dendrer note`: remarks on places in runs, kept in the casebook.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::casebook::{self, CasebookNote};
use dendrer_object::Code;
use dendrer_view::casebook::NotesAnswer;

use crate::context;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::offers;
use crate::out::Out;

/// `note`
#[derive(Debug, Args)]
pub(crate) struct NoteArgs {
    /// What it is about: RUN or RUN@TICK
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) rev: Option<String>,
    /// What to write down; without it, what was written down is listed
    pub(crate) text: Option<String>,
    /// Who says so; nobody checks that
    #[arg(long, value_name = "NAME", default_value = "person")]
    pub(crate) by: String,
}

/// The longest note, in bytes: more belongs into a file whose digest is noted.
const NOTE_MAX: usize = 64 << 10;

pub(crate) fn run(global: &Global, args: &NoteArgs, out: &mut Out) -> Result {
    let at = args.rev.as_deref().map(|rev| context::runs::moment(global, rev, out)).transpose()?;
    let recorded = match (&at, &args.text) {
        (Some(_), Some(text)) if text.len() > NOTE_MAX || text.trim().is_empty() => {
            let failure = Failure::new(Code::E0106, "a note is a text of 1 byte to 64 KiB");
            return Err(failure.note("nothing was changed"));
        }
        (Some(at), Some(text)) => {
            let note =
                CasebookNote { at: at.clone(), text: context::clean(global, text)?, by: args.by.clone() };
            Some(context::write_down(global, |store, world| casebook::note(store, &note, world))?)
        }
        _ => None,
    };
    let notes = casebook::notes_of(&context::read_store(global)?, at.as_ref())?;
    out.answer(&NotesAnswer { notes, recorded })
}
