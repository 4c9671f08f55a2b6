//! `dendrer conflicts`: the conflicts that a merge left open.

use clap::{Args, Subcommand};
use dendrer::address::{Address, state_path};
use dendrer::change::conflicts::question::{ConflictsListQuestion, ConflictsShowQuestion};
use dendrer::change::conflicts::{ResolvedConflict, decide};
use dendrer::merge::{Resolution, Take};
use dendrer::recorder::World;
use dendrer_object::{Code, json};

use crate::context;
use crate::context::desk;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::Out;

/// `conflicts`
#[derive(Debug, Subcommand)]
pub(crate) enum ConflictsVerb {
    /// List what the runs of a merge had different values for, and how each stands
    #[command(
        after_help = "Examples:\n  dendrer merge --as both --from logistics-run-47 --from trip-planner-a --seed-only\n  dendrer conflicts list both"
    )]
    List {
        /// The run that was made by a merge, or a fork of it
        run: String,
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
        ConflictsVerb::List { run } => desk::answer(global, &ConflictsListQuestion { run: run.clone() }, out),
        ConflictsVerb::Show { run, path } => {
            let question = ConflictsShowQuestion { run: run.clone(), path: path.clone() };
            desk::answer(global, &question, out)
        }
        ConflictsVerb::Resolve(args) => {
            let rev = Address::parse(&args.run)?;
            if rev.bundle.is_some() || rev.pos.is_some() {
                let what = "a conflict is resolved at the last tick of a run of the store";
                return Err(Failure::new(Code::E0106, what).note("nothing was changed"));
            }
            if args.agent.is_empty() || args.reason.trim().is_empty() {
                let what = "a decision has a reason and somebody who took it";
                return Err(Failure::new(Code::E0106, what).note("nothing was changed"));
            }
            let resolution = Resolution {
                path: state_path(&args.path)?,
                take: take(&args.take),
                reason: context::clean(global, &args.reason)?.into(),
                agent: args.agent.as_str().into(),
            };
            let refused = |error| not_resolved(&args.run, &args.path, error);
            out.answer(&resolve(global, &rev, &resolution, args.dry_run, refused)?)
        }
    }
}

/// Decides a conflict; `refused` words why it cannot be decided.
fn resolve(
    global: &Global,
    rev: &Address,
    resolution: &Resolution,
    dry_run: bool,
    refused: impl Fn(dendrer::Error) -> Failure,
) -> Result<ResolvedConflict> {
    let world = Box::new(World::default());
    if dry_run {
        let store = &context::rehearse(global)?;
        let name = rev.run_in(store, &[])?;
        return decide(store, &name, resolution, world, true).map_err(refused);
    }
    let repo = context::write_store(global)?;
    let store = repo.writer()?;
    repo.signing_key()?;
    let name = rev.run_in(store, &[])?;
    let resolved = decide(store, &name, resolution, world, false);
    // A refusal is recorded as well, so there is something to sign either way.
    let closed = context::close(repo);
    let resolved = resolved.map_err(refused)?;
    closed.map(|()| resolved)
}

/// Words why a conflict is not resolved, with the command that shows how it is decided now.
fn not_resolved(run: &str, path: &str, error: dendrer::Error) -> Failure {
    let code = error.code();
    let failure = Failure::from(error);
    match code {
        Code::E0445 => failure.note("nothing was changed").help(&["dendrer", "conflicts", "list", run]),
        Code::E0446 => failure
            .note("nothing was changed; what is to stand there now is a change like any other")
            .help(&["dendrer", "conflicts", "show", run, path]),
        _ => failure,
    }
}

/// Reads the value of `--take`: one letter is a side, then JSON is a value, and anything else is the name of a run.
fn take(text: &str) -> Take {
    let is_letter = text.len() == 1 && text.bytes().all(|c| c.is_ascii_lowercase());
    match json::parse_door(text.as_bytes()) {
        Ok(value) if !is_letter => Take::Value(value),
        _ => Take::Side(text.to_owned()),
    }
}
