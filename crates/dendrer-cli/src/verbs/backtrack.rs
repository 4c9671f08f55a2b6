//! `dendrer backtrack`

use clap::Args;
use dendrer::address::Position;
use dendrer::ask::why::question::BacktrackQuestion;

use crate::context::desk;
use crate::failure::Result;
use crate::global::{Global, tick_arg};
use crate::out::Out;

/// `backtrack`
#[derive(Debug, Args)]
pub(crate) struct Backtrack {
    /// The run, or RUN:AGENT[@TICK] for the writes among the causal ancestors of an agent's newest transition
    pub(crate) run: String,
    /// The place: a.b[2] or /a/b/2
    pub(crate) path: String,
    /// The first tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Position>,
    /// The last tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Position>,
    /// Only writes of this agent
    #[arg(long, value_name = "A")]
    pub(crate) agent: Option<String>,
    /// Only the newest
    #[arg(long)]
    pub(crate) last: bool,
    /// What each write rests on, too
    #[arg(long)]
    pub(crate) inputs: bool,
    /// What stood there before and after
    #[arg(long)]
    pub(crate) values: bool,
    /// At most N; 0 for all
    #[arg(short = 'n', long = "limit", default_value_t = 50)]
    pub(crate) limit: usize,
}

pub(crate) fn run(global: &Global, args: &Backtrack, out: &mut Out) -> Result {
    let question = BacktrackQuestion {
        run: args.run.clone(),
        path: args.path.clone(),
        from: args.from.clone(),
        to: args.to.clone(),
        agent: args.agent.clone(),
        last: args.last,
        inputs: args.inputs,
        values: args.values,
        limit: Some(args.limit as u64),
    };
    desk::answer(global, &question, out)
}
