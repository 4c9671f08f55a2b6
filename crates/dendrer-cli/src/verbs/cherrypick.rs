//! `dendrer cherrypick`: a transition of one run into another that has what it was decided on.

use clap::Args;
use dendrer::address::Position;
use dendrer::cherrypick::question::CherrypickQuestion;
use dendrer_view::cherrypick::CherrypickAnswer;

use crate::context::desk;
use crate::failure::Result;
use crate::global::{Global, tick_arg};
use crate::out::Out;

/// `cherrypick`
#[derive(Debug, Args)]
pub(crate) struct Cherrypick {
    /// What is imported: RUN@TICK, or RUN with --tick
    #[arg(value_name = "RUN", required_unless_present = "run", conflicts_with = "run")]
    pub(crate) source: Option<String>,
    /// The run it comes from
    #[arg(long)]
    pub(crate) run: Option<String>,
    /// Its tick there
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) tick: Option<Position>,
    /// The run that takes it in, at its last tick
    #[arg(long, value_name = "RUN")]
    pub(crate) into: String,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Print the context hash in full
    #[arg(long)]
    pub(crate) show_hash: bool,
    /// Take it in once more, also if the target has it already
    #[arg(long)]
    pub(crate) again: bool,
    /// Check only: write nothing, no refusal either
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(global: &Global, args: &Cherrypick, out: &mut Out) -> Result {
    let question = CherrypickQuestion {
        run: args.run.clone().or_else(|| args.source.clone()).unwrap_or_default(),
        tick: args.tick.clone(),
        into: args.into.clone(),
        reason: args.reason.clone(),
        again: args.again,
        dry_run: args.dry_run,
    };
    let reply = &desk::ask(global, &question, out)?;
    let answer = CherrypickAnswer { reply, show_hash: args.show_hash };
    out.answer_or(&answer, answer.problem())
}
