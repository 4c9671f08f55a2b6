//! `dendrer why`

use clap::Args;
use dendrer::ask::why::question::WhyQuestion;

use crate::context::desk;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

/// `why`
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Where: RUN@TICK
    pub(crate) rev: String,
    /// The place: a.b[2] or /a/b/2; without it, why the action at the tick was taken
    pub(crate) path: Option<String>,
    /// How many steps to go down
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=64))]
    pub(crate) depth: u8,
    /// Go on from transitions of other agents
    #[arg(long)]
    pub(crate) cross_agent: bool,
}

pub(crate) fn run(global: &Global, args: &Why, out: &mut Out) -> Result {
    let question = WhyQuestion {
        rev: args.rev.clone(),
        path: args.path.clone(),
        depth: Some(args.depth.into()),
        cross_agent: args.cross_agent,
    };
    desk::answer(global, &question, out)
}
