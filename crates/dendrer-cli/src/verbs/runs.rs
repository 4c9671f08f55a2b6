//! `dendrer runs`

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use dendrer::address::Address;
use dendrer::casebook::{self, DroppedRun};
use dendrer_object::Code;
use dendrer_view::casebook::DroppedAnswer;
use std::collections::BTreeMap;

use dendrer::ask::runs::{self, RunsOrder, RunsQuestion};

use crate::context;
use crate::context::keys;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::offers;
use crate::out::Out;

/// `runs`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Runs {
    #[command(subcommand)]
    pub(crate) act: Option<RunsAct>,
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
    /// Dropped runs as well
    #[arg(long)]
    pub(crate) all: bool,
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

/// What is said of a run.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsAct {
    /// Leave a run out of lists, as a recorded act; its records stay, and every verb reads it by its name
    #[command(
        after_help = "Examples:\n  dendrer runs drop logistics-planner-1 --reason \"made by mistake\"\n  dendrer runs --all\n  dendrer runs drop logistics-planner-1 --undo"
    )]
    Drop {
        /// The run
        #[arg(add = ArgValueCompleter::new(offers::runs))]
        run: String,
        /// Why
        #[arg(long, conflicts_with = "undo")]
        reason: Option<String>,
        /// Take it back into lists
        #[arg(long)]
        undo: bool,
        /// Who says so; nobody checks that
        #[arg(long, value_name = "NAME", default_value = "person")]
        by: String,
    },
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

/// Drops a run, or takes it back.
fn act(global: &Global, act: &RunsAct, out: &mut Out) -> Result {
    let RunsAct::Drop { run, reason, undo, by } = act;
    let at = context::runs::moment(global, run, out)?;
    if at.tick.is_some() {
        return Err(Failure::new(Code::E0106, "a run is dropped as a whole: name it without a tick")
            .note("nothing was changed"));
    }
    let reason = &reason.as_deref().map(|text| context::clean(global, text)).transpose()?;
    let recorded = context::write_down(global, |store, world| match undo {
        true => casebook::undrop_run(store, &at.run, by, world),
        false => {
            let run = DroppedRun { at: at.clone(), reason: reason.clone(), by: by.clone() };
            casebook::drop_run(store, &run, world)
        }
    })?;
    out.answer(&DroppedAnswer {
        run: &at.run,
        reason: reason.as_deref(),
        is_dropped: !undo,
        recorded: &recorded,
    })
}

pub(crate) fn run(global: &Global, args: &Runs, out: &mut Out) -> Result {
    if let Some(said) = &args.act {
        return act(global, said, out);
    }
    // A file that does not look like a bundle is read as one all the same: an answer about the store would answer another
    // question.
    let rev = Address { bundle: args.file.clone(), run: None, pos: None };
    let source = context::source(global, &rev, out)?;
    let store = &source.store;
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
        all: args.all,
        limit: args.limit,
        verified: match &source.repo {
            Some(repo) => {
                let seen = keys::seen(store.info().id).zip(repo.dir());
                seen.map(|(seen, dir)| seen.known(dir)).unwrap_or_default()
            }
            None => BTreeMap::new(),
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
