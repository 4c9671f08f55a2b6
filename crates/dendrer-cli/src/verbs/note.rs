//! `dendrer note`: remarks on places in runs, kept in the casebook.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::change::findings::NoteQuestion;

use crate::context::desk;
use crate::failure::Result;
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

pub(crate) fn run(global: &Global, args: &NoteArgs, out: &mut Out) -> Result {
    let (rev, text, by) = (args.rev.clone(), args.text.clone(), Some(args.by.clone()));
    desk::answer(global, &NoteQuestion { rev, text, by }, out)
}
