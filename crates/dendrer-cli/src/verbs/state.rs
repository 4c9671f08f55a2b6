//! `dendrer state`

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::ask::state::question::StateQuestion;
use dendrer::kernel::predicate::Window;

use crate::context::desk;
use crate::failure::Result;
use crate::global::{Global, WINDOW, word};
use crate::offers;
use crate::out::Out;

/// `state`
#[derive(Debug, Args)]
pub(crate) struct State {
    /// What: RUN@TICK, or RUN:AGENT@TICK for the state of an agent along its causal ancestors
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) rev: String,
    /// One place of it, as with --path
    #[arg(value_name = "PLACE", conflicts_with = "path", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) place: Option<String>,
    /// One path of it
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) path: Option<String>,
    /// The state before the transition, or after it
    #[arg(long, default_value = "after", value_parser = word::<Window>(&WINDOW))]
    pub(crate) window: Window,
    /// Print what differs from the state there, instead of the state
    #[arg(long, value_name = "REV", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) base: Option<String>,
    /// How deep to print
    #[arg(long, conflicts_with = "base")]
    pub(crate) depth: Option<u64>,
    /// Cut each text, list and object that is longer than N bytes
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<u64>,
}

pub(crate) fn run(global: &Global, args: &State, out: &mut Out) -> Result {
    let question = StateQuestion {
        rev: args.rev.clone(),
        path: args.path.clone().or_else(|| args.place.clone()),
        window: Some(args.window),
        base: args.base.clone(),
        max: args.max,
        depth: args.depth,
    };
    desk::answer(global, &question, out)
}
