//! `dendrer conflicts`: the conflicts of merged runs and of agents of one run.

use clap::{Args, Subcommand};
use dendrer::change::conflicts::question::{ConflictsListQuestion, ConflictsShowQuestion, ResolveQuestion};

use crate::context::desk;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

/// `conflicts`
#[derive(Debug, Subcommand)]
pub(crate) enum ConflictsVerb {
    /// List what the runs of a merge, or the agents of a run, had different values for, and how each stands
    #[command(
        after_help = "Examples:\n  dendrer merge --as both --from logistics-run-47 --from trip-planner-a --seed-only\n  dendrer conflicts list both"
    )]
    List {
        /// The run
        run: String,
        /// List the places that a strategy decided: the sides, the winner and the rule
        #[arg(long)]
        decided: bool,
    },
    /// Show one of them with all its values
    #[command(
        after_help = "Examples:\n  dendrer merge --as both --from logistics-run-47 --from trip-planner-a --seed-only\n  dendrer conflicts show both risk_score"
    )]
    Show {
        /// The run that was made by a merge, or a fork of it
        run: String,
        /// The place
        path: String,
    },
    /// Decide one, as a transition with its reason
    #[command(
        after_help = "Examples:\n  dendrer merge --as both --from logistics-run-47 --from trip-planner-a --seed-only\n  dendrer conflicts resolve both risk_score --take b --reason \"the later one was measured\""
    )]
    Resolve(ConflictsResolve),
}

/// `conflicts resolve`
#[derive(Debug, Args)]
pub(crate) struct ConflictsResolve {
    /// The run that was made by a merge, or a fork of it
    pub(crate) run: String,
    /// The place
    pub(crate) path: String,
    /// What is put there: the name of a side (a, b, ... or its run), or a value in JSON
    #[arg(long, value_name = "a|b|JSON", allow_hyphen_values = true)]
    pub(crate) take: String,
    /// Why
    #[arg(long)]
    pub(crate) reason: String,
    /// Who decides, as the record names it
    #[arg(long, default_value = "operator")]
    pub(crate) agent: String,
    /// Ask the run, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(global: &Global, verb: &ConflictsVerb, out: &mut Out) -> Result {
    match verb {
        ConflictsVerb::List { run, decided } => {
            desk::answer(global, &ConflictsListQuestion { run: run.clone(), decided: *decided }, out)
        }
        ConflictsVerb::Show { run, path } => {
            let question = ConflictsShowQuestion { run: run.clone(), path: path.clone() };
            desk::answer(global, &question, out)
        }
        ConflictsVerb::Resolve(args) => {
            let question = ResolveQuestion {
                run: args.run.clone(),
                path: args.path.clone(),
                take: args.take.clone(),
                reason: args.reason.clone(),
                agent: Some(args.agent.clone()),
                dry_run: args.dry_run,
            };
            desk::answer(global, &question, out)
        }
    }
}
