//! `dendrer label`: names for places in runs, kept in the casebook.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::casebook;
use dendrer_object::Code;
use dendrer_view::casebook::LabelsAnswer;

use crate::context;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::offers;
use crate::out::Out;

/// `label`
#[derive(Debug, Args)]
pub(crate) struct Label {
    /// The label; all are listed without one
    pub(crate) name: Option<String>,
    /// What it is put on: RUN or RUN@TICK
    #[arg(conflicts_with = "remove", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) rev: Option<String>,
    /// Put it on another moment
    #[arg(long, requires = "rev")]
    pub(crate) r#move: bool,
    /// Take it off
    #[arg(long, requires = "name")]
    pub(crate) remove: bool,
    /// Who says so; nobody checks that
    #[arg(long, value_name = "NAME", default_value = "person")]
    pub(crate) by: String,
}

pub(crate) fn run(global: &Global, args: &Label, out: &mut Out) -> Result {
    let by = &args.by;
    let recorded = match (&args.name, &args.rev) {
        (None, _) => None,
        (Some(name), None) if args.remove => {
            Some(context::write_down(global, |store, world| casebook::unlabel(store, name, by, world))?)
        }
        (Some(name), Some(rev)) => {
            let at = context::runs::moment(global, rev, out)?;
            Some(context::write_down(global, |store, world| {
                casebook::label(store, name, &at, by, args.r#move, world)
            })?)
        }
        (Some(name), None) => {
            let failure =
                Failure::new(Code::E0106, "say what the label is put on: dendrer label NAME RUN@TICK")
                    .note("nothing was changed");
            let is_there = casebook::labels_of(&context::read_store(global)?)?.contains_key(name);
            return Err(match is_there {
                true => failure.help(&["dendrer", "label", name, "--remove"]),
                false => failure,
            });
        }
    };
    let labels = casebook::labels_of(&context::read_store(global)?)?;
    out.answer(&LabelsAnswer { labels, recorded })
}
