//! `dendrer runs`

use clap::{Args, ValueEnum, ValueHint};
use dendrer::address::Address;
use dendrer_object::Code;
use std::collections::BTreeMap;

use dendrer::ask::runs::{self, RunsOrder, RunsQuestion};

use crate::context::keys;
use crate::context::{self, Source};
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::Out;

/// `runs`
#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// A bundle to read instead of a store
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<String>,
    /// Only runs of which this is true: an expression over name, ticks, stage, goal, refusals, ended, synthetic,
    /// forked, verified, and the state at the tip
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Only runs recorded at this stage
    #[arg(long, value_name = "N")]
    pub(crate) stage: Option<u64>,
    /// Only runs that were not found intact here as they are now
    #[arg(long)]
    pub(crate) unverified: bool,
    /// Forks below what they were forked from
    #[arg(long)]
    pub(crate) tree: bool,
    /// The order
    #[arg(long, value_enum, default_value = "updated")]
    pub(crate) sort: RunSort,
    /// At most N; 0 for all
    #[arg(short = 'n', long = "limit", default_value_t = 50)]
    pub(crate) limit: usize,
}

/// The order of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunSort {
    /// Newest first.
    Updated,
    /// Longest first.
    Ticks,
    /// By name.
    Name,
}

pub(crate) fn run(global: &Global, args: &Runs, out: &mut Out) -> Result {
    // A file that does not look like a bundle is read as one all the same: an answer about the store would answer another
    // question.
    let rev = Address { bundle: args.file.clone(), run: None, pos: None };
    let source = context::source(global, &rev, out)?;
    let store = source.store();
    let question = RunsQuestion {
        filter: args.filter.clone(),
        stage: args.stage,
        unverified: args.unverified,
        order: match args.sort {
            RunSort::Updated => RunsOrder::Updated,
            RunSort::Ticks => RunsOrder::Ticks,
            RunSort::Name => RunsOrder::Name,
        },
        tree: args.tree,
        limit: args.limit,
        verified: match &source {
            Source::Store(repo, _) => {
                let seen = keys::seen(store.info().id).zip(repo.dir());
                seen.map(|(seen, dir)| seen.known(dir)).unwrap_or_default()
            }
            Source::Bundle(_) => BTreeMap::new(),
        },
    };
    let answer = runs::runs(store, &question)?;
    // A condition that cannot be judged for any run is no condition on runs.
    if let Some((run, why)) = answer.unclear.first().filter(|_| answer.unclear.len() == answer.total) {
        let what = format!("the condition cannot be judged for any run, such as {run}");
        return Err(Failure::new(Code::E0509, what)
            .at("why", why.clone())
            .note("a condition is true or false, like ticks > 100"));
    }
    out.answer(&answer)
}
