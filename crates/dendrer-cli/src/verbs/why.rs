//! `dendrer why`

use clap::Args;
use dendrer::address::{Address, Position, state_path};
use dendrer::ask::why::gather;
use dendrer::run::declared;
use dendrer::why::Reach;
use dendrer_object::Code;

use crate::context;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::Out;

/// `why`
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Where: RUN@TICK
    pub(crate) rev: String,
    /// The place: a.b[2] or /a/b/2
    pub(crate) path: String,
    /// How many steps to go down
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=64))]
    pub(crate) depth: u8,
    /// Go on from transitions of other agents
    #[arg(long)]
    pub(crate) cross_agent: bool,
}

pub(crate) fn run(global: &Global, args: &Why, out: &mut Out) -> Result {
    let rev = Address::parse(&args.rev)?;
    let source = context::sound(global, &rev, out)?;
    let rev = rev.resolve(source.store())?;
    let (progress, counted) = source.watched(global, "why");
    let trace = source.trace_through(&counted, &rev)?;
    out.asks(&trace);
    let tick = rev.pos.as_ref().unwrap_or(&Position::Tip).tick(&trace)?;
    let path = state_path(&args.path)?;
    let reach = Reach { depth: usize::from(args.depth), cross_agent: args.cross_agent };
    let Some(answer) = gather::why(&trace, tick, &path, reach)? else {
        declared::place(&[&trace], &path)?;
        let run = trace.name();
        let what = format!("no transition of {run} up to tick {tick} wrote {}", path.dotted());
        return Err(Failure::new(Code::E0104, what).help(&["dendrer", "state", &format!("{run}@{tick}")]));
    };
    drop(progress);
    out.answer(&answer)
}
