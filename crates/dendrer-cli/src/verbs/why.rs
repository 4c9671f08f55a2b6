//! `dendrer why`

use dendrer::ask_why;
use dendrer::why::Reach;

use crate::address::{Pos, Rev, state_path};
use crate::args::{Global, Why};
use crate::failure::{Failure, Result};
use crate::open;
use crate::out::Out;

pub(crate) fn run(global: &Global, args: &Why, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.rev)?;
    let source = open::sound(global, &rev, out)?;
    let rev = rev.settle(source.store())?;
    let (progress, counted) = source.watched(global, "why");
    let trace = source.trace_through(&counted, &rev)?;
    let tick = rev.pos.as_ref().unwrap_or(&Pos::Tip).tick(&trace)?;
    let path = state_path(&args.path)?;
    let reach = Reach { depth: usize::from(args.depth), cross_agent: args.cross_agent };
    let answer = ask_why::why(&trace, tick, &path, reach)?.ok_or_else(|| {
        let run = trace.name();
        let what = format!("no transition of {run} up to tick {tick} wrote {}", path.dotted());
        Failure::new("E0104", what).help(&["dendrer", "state", &format!("{run}@{tick}")])
    })?;
    drop(progress);
    out.answer(&answer)
}
