//! `dendrer compare`: how two agents of a run parted.

use clap::{Args, ValueEnum};
use dendrer::address::Address;
use dendrer::ask::compare;
use dendrer::run::causal;
use dendrer_object::Code;
use dendrer_view::compare::CompareAnswer;

use crate::context;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::Out;

/// `compare`
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// An agent of a run: RUN:AGENT, or RUN:AGENT@TICK for its newest transition up to there
    #[arg(value_name = "RUN:AGENT")]
    pub(crate) a: String,
    /// Another agent of the same run
    #[arg(value_name = "RUN:AGENT")]
    pub(crate) b: String,
    /// Print the block of the forensic debugger specification, and nothing else
    #[arg(long, value_name = "cfd")]
    pub(crate) profile: Option<CompareProfile>,
    /// Verify every node of both paths and make its state again, however many there are
    #[arg(long)]
    pub(crate) check: bool,
}

/// Whose block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareProfile {
    /// The forensic debugger specification, 5.
    Cfd,
}

pub(crate) fn run(global: &Global, args: &Compare, out: &mut Out) -> Result {
    let of = |text: &str| {
        Address::of_agent(text)?.map(|(rev, agent)| (rev, agent.to_owned())).ok_or_else(|| {
            Failure::new(Code::E0105, format!("{text} names no agent: RUN:AGENT or RUN:AGENT@TICK"))
                .note("two runs are compared by diff")
        })
    };
    let ((a_rev, a), (b_rev, b)) = (of(&args.a)?, of(&args.b)?);
    let source = context::sound(global, &a_rev, out)?;
    let (progress, counted) = context::watched(global, &source, "compare");
    let trace = source.trace_through(&counted, &a_rev.resolve(&source.store)?)?;
    let other = source.trace(&b_rev.resolve(&source.store)?)?;
    compare::same_run(&trace, &other)?;
    let is_profile = args.profile.is_some();
    if !is_profile {
        out.asks(&trace);
    }
    let agents = [causal::agent_of(&trace, &a)?, causal::agent_of(&trace, &b)?];
    let found = compare::compare(&trace, agents, args.check || is_profile)?;
    drop(progress);
    out.answer(&CompareAnswer { found: &found, is_profile })
}
