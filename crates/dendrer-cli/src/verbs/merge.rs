//! `dendrer merge`: a new run that begins with what was chosen from several others.

use clap::Args;
use dendrer::merge::Strategy;
use dendrer::merge::question::MergeQuestion;

use crate::context::desk;
use crate::failure::Result;
use crate::global::{Global, word};
use crate::out::Out;

/// `merge`
#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// What the new run is called
    #[arg(long = "as", value_name = "NEW")]
    pub(crate) new: String,
    /// A run to take from: RUN@TICK, or RUN for its last tick; at least twice, the first is called a, the second b
    #[arg(long, value_name = "RUN[@TICK]", required = true)]
    pub(crate) from: Vec<String>,
    /// A place of the state to take; all of it if none is given
    #[arg(long, value_name = "PATH")]
    pub(crate) artifact: Vec<String>,
    /// Who decides where values differ: manual (somebody, later), lww (the value committed last), confidence (the surest
    /// author), first (the run named first)
    #[arg(long, value_parser = word::<Strategy>(&STRATEGIES), default_value = "manual", hide_possible_values = true)]
    pub(crate) strategy: Strategy,
    /// Take values alone; otherwise pack, policy rules and goal hold on, and must be the same in all runs
    #[arg(long)]
    pub(crate) seed_only: bool,
    /// Begin it although its state breaks a rule that no source breaks; the reason is put on record
    #[arg(long, value_name = "REASON")]
    pub(crate) although: Option<String>,
    /// Print for each place on which they differ what it was, what each run has, and what is taken; write nothing
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) plan: bool,
    /// Say what would be made, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

/// The help of each [`Strategy`].
const STRATEGIES: [(&str, &str); 4] = [
    ("manual", "Somebody, later"),
    ("lww", "The value committed last"),
    ("confidence", "The surest author"),
    ("first", "The run named first"),
];

pub(crate) fn run(global: &Global, args: &Merge, out: &mut Out) -> Result {
    let question = MergeQuestion {
        r#as: args.new.clone(),
        from: args.from.clone(),
        artifact: args.artifact.clone(),
        strategy: Some(args.strategy),
        seed_only: args.seed_only,
        although: args.although.clone(),
        plan: args.plan,
        dry_run: args.dry_run,
    };
    desk::answer(global, &question, out)
}
