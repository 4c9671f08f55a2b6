//! `dendrer backtrack`

use dendrer::ask_why::{self, BacktrackQuestion};

use crate::address::{self, Rev, state_path};
use crate::args::{Backtrack, Global};
use crate::failure::{Failure, Result};
use crate::open;
use crate::out::Out;

pub(crate) fn run(global: &Global, args: &Backtrack, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.run)?;
    let source = open::sound(global, &rev, out)?;
    let rev = rev.settle(source.store())?;
    let (progress, counted) = source.watched(global, "backtrack");
    let trace = source.trace_through(&counted, &rev)?;
    let path = state_path(&args.path)?;
    let from = args.from.as_ref().map_or(Ok(1), |pos| pos.tick(&trace))?;
    let to = args.to.as_ref().or(rev.pos.as_ref()).map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
    address::in_order(from, to)?;
    let question = BacktrackQuestion {
        path,
        from,
        to,
        agent: args.agent.clone(),
        limit: if args.last { 1 } else { args.limit },
        values: args.values,
        inputs: args.inputs,
    };
    let answer = ask_why::backtrack(&trace, &question)?.ok_or_else(|| {
        let (run, path) = (trace.name(), question.path.dotted());
        Failure::new("E0104", format!("no transition of {run} wrote {path}"))
            .note("nothing stands there, and nothing stood there when the run began")
            .help(&["dendrer", "state", &format!("{run}@{to}")])
    })?;
    drop(progress);
    out.answer(&answer)
}
