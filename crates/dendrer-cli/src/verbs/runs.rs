//! `dendrer runs`

use clap::{Args, Subcommand, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use dendrer::ask::runs::RunsOrder;
use dendrer::ask::runs::question::RunsQuestion;
use dendrer::casebook::{self, DroppedRun};
use dendrer::source::{Asked as _, Desk};
use dendrer_object::Code;
use dendrer_view::casebook::DroppedAnswer;

use crate::context;
use crate::context::desk::CommandDesk;
use crate::failure::{Failure, Result};
use crate::global::{Global, word};
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
    /// forked, thread, graph, hypothetical, verified, updated (in UTC, like updated > "2026-03-01 12:00:00" or updated > "2h"), and
    /// the state at the tip
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
    #[arg(long, default_value = "updated", value_parser = word::<RunsOrder>(ORDERS))]
    pub(crate) sort: RunsOrder,
    /// At most N; 0 for all
    #[arg(short = 'n', long = "limit", default_value_t = 50)]
    pub(crate) limit: u64,
    /// Only runs after this one of the list
    #[arg(long, value_name = "RUN", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) after: Option<String>,
}

/// The words for the order of runs.
const ORDERS: &[(&str, &str)] = &[
    ("updated", "By the time of the newest record, newest first"),
    ("ticks", "Longest first"),
    ("name", "By name"),
];

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

/// Drops a run, or takes it back.
fn act(global: &Global, act: &RunsAct, out: &mut Out) -> Result {
    let RunsAct::Drop { run, reason, undo, by } = act;
    let at = context::runs::moment(global, run, out)?;
    if at.tick.is_some() {
        return Err(Failure::new(Code::E0106, "a run is dropped as a whole: name it without a tick")
            .note("nothing was changed"));
    }
    let reason = &reason.as_deref().map(|text| context::clean(global, &at.run, text)).transpose()?;
    let by = &context::clean(global, &at.run, by)?;
    let mut desk = CommandDesk::new(global, out);
    let recorded = (&mut desk as &mut dyn Desk).write_down(|store, world| match undo {
        true => casebook::undrop_run(store, &at.run, by, world),
        false => {
            let run = DroppedRun { at: at.clone(), reason: reason.clone(), by: by.clone() };
            casebook::drop_run(store, &run, world)
        }
    })?;
    drop(desk);
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
    let question = RunsQuestion {
        r#where: args.filter.clone(),
        stage: args.stage,
        unverified: args.unverified,
        all: args.all,
        tree: args.tree,
        sort: Some(args.sort),
        limit: Some(args.limit),
        after: args.after.clone(),
    };
    let mut desk = CommandDesk::new(global, out);
    desk.is_of(args.file.as_deref());
    let answer = question.ask(&mut desk)?;
    drop(desk);
    out.answer(&answer)
}
