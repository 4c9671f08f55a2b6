//! `dendrer rebase`: the intents of one run, proposed again on the state of another.

use clap::Args;
use dendrer::rebase::question::{RebaseQuestion, StopOn};

use crate::context::choice::Choice;
use crate::context::desk;
use crate::failure::Result;
use crate::global::{Global, word};
use crate::out::Out;

/// `rebase`
#[derive(Debug, Args)]
pub(crate) struct Rebase {
    /// The run whose intents are proposed again
    #[arg(value_name = "RUN", required_unless_present = "run", conflicts_with = "run")]
    pub(crate) source: Option<String>,
    /// The run whose intents are proposed again
    #[arg(long)]
    pub(crate) run: Option<String>,
    /// The base: RUN@TICK, or RUN for its last tick
    #[arg(long, value_name = "RUN[@TICK]")]
    pub(crate) onto: String,
    /// What the new run is called; RUN-rebase-1 and so on if not given
    #[arg(long = "as", value_name = "NEW")]
    pub(crate) new: Option<String>,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Say what would become of each intent, and write nothing
    #[arg(long, conflicts_with_all = ["new", "dry_run"])]
    pub(crate) plan: bool,
    /// End before the first answer of a tool that acts, or before the first decision of which nothing says what it was made
    /// on; what is known not to hold ends it in any case
    #[arg(long, value_parser = word::<StopOn>(&STOP_ON), value_name = "WHAT")]
    pub(crate) stop_on: Vec<StopOn>,
    /// Take in once more what is in the history of the base already
    #[arg(long)]
    pub(crate) again: bool,
    #[command(flatten)]
    pub(crate) choice: Choice,
    /// Say what would be made, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

/// The help of each kind of [`StopOn`].
const STOP_ON: [(&str, &str); 2] = [
    ("effectful", "The answer of a tool that acts"),
    ("context", "A decision of which nothing says what it was made on"),
];

pub(crate) fn run(global: &Global, args: &Rebase, out: &mut Out) -> Result {
    let question = RebaseQuestion {
        run: args.run.clone().or_else(|| args.source.clone()).unwrap_or_default(),
        onto: args.onto.clone(),
        r#as: args.new.clone(),
        reason: args.reason.clone(),
        plan: args.plan,
        stop_on: args.stop_on.clone(),
        again: args.again,
        skip: args.choice.skip,
        only: args.choice.types(),
        dry_run: args.dry_run,
    };
    desk::answer(global, &question, out)
}
