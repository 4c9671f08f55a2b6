//! `dendrer compare`: how two agents of a run parted.

use clap::{Args, ValueEnum};
use dendrer::ask::compare::question::CompareQuestion;
use dendrer_view::compare::CompareAnswer;

use crate::context::desk;
use crate::failure::Result;
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
    let is_profile = args.profile.is_some();
    let question = CompareQuestion { a: args.a.clone(), b: args.b.clone(), check: args.check || is_profile };
    let found = desk::ask(global, &question, out)?;
    if is_profile {
        out.asks_nothing();
    }
    out.answer(&CompareAnswer { found: &found, is_profile })
}
