//! `dendrer backtrack`

use clap::Args;
use dendrer::address::{Address, Position, state_path};
use dendrer::ask::why::gather::{self, BacktrackQuestion, CausalPath};
use dendrer::run::{causal, declared};
use dendrer_object::Code;

use crate::context;
use crate::context::ticks;
use crate::failure::{Failure, Result};
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
    let (rev, agent) = match Address::of_agent(&args.run)? {
        Some((rev, agent)) => (rev, Some(agent)),
        None => (Address::parse(&args.run)?, None),
    };
    if agent.is_some() && (args.values || args.inputs) {
        return Err(Failure::new(
            Code::E0106,
            "--values and --inputs are of the state of the run, and not of an agent's",
        )
        .note("the state of an agent at one of its ticks is that of: dendrer state RUN:AGENT@TICK"));
    }
    let source = context::sound(global, &rev, out)?;
    let rev = rev.resolve(source.store())?;
    let (progress, counted) = source.watched(global, "backtrack");
    let trace = source.trace_through(&counted, &rev)?;
    out.asks(&trace);
    let path = state_path(&args.path)?;
    let from = args.from.as_ref().map_or(Ok(1), |pos| pos.tick(&trace))?;
    let to = args.to.as_ref().or(rev.pos.as_ref()).map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
    let (along, to) = match agent {
        None => (None, to),
        Some(text) => {
            let (agent, upto) = causal::agent_of(&trace, text)?;
            let to = upto.min(to);
            (Some(CausalPath::of(&trace, agent, to)?), to)
        }
    };
    ticks::in_order(from, to)?;
    let question = BacktrackQuestion {
        path,
        from,
        to,
        agent: args.agent.clone(),
        along,
        limit: if args.last { 1 } else { args.limit },
        values: args.values,
        inputs: args.inputs,
    };
    let Some(answer) = gather::backtrack(&trace, &question)? else {
        declared::place(&[&trace], &question.path)?;
        let (run, path) = (trace.name(), question.path.dotted());
        return Err(Failure::new(Code::E0104, format!("no transition of {run} wrote {path}"))
            .note("it has no value, and had none when the run began")
            .help(&["dendrer", "state", &format!("{run}@{to}")]));
    };
    drop(progress);
    out.answer(&answer)
}
