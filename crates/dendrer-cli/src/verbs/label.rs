//! `dendrer label`: names for places in runs, kept in the casebook.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::change::findings::LabelQuestion;

use crate::context::desk;
use crate::failure::Result;
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
    let question = LabelQuestion {
        name: args.name.clone(),
        rev: args.rev.clone(),
        r#move: args.r#move,
        remove: args.remove,
        by: Some(args.by.clone()),
    };
    desk::answer(global, &question, out)
}
