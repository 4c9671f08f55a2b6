//! What the verbs that make one run of several take.

use clap::{Args, Subcommand, ValueEnum};

/// `rebase`
#[derive(Debug, Args)]
pub(crate) struct Rebase {
    /// The run whose intents are proposed again
    #[arg(value_name = "RUN", required_unless_present = "run", conflicts_with = "run")]
    pub(crate) source: Option<String>,
    /// The run whose intents are proposed again
    #[arg(long)]
    pub(crate) run: Option<String>,
    /// The base: RUN@TICK, or RUN for its last tick
    #[arg(long, value_name = "RUN[@TICK]")]
    pub(crate) onto: String,
    /// What the new run is called; RUN-rebase-1 and so on if not given
    #[arg(long = "as", value_name = "NEW")]
    pub(crate) new: Option<String>,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Say what would become of each intent, and write nothing
    #[arg(long, conflicts_with_all = ["new", "dry_run"])]
    pub(crate) plan: bool,
    /// End before the first answer of a tool that acts, or before the first decision of which nothing says what it was made
    /// on; what is known not to hold ends it in any case
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) stop_on: Vec<StopOn>,
    /// Say what would be made, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

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
    /// author), policy (the run named first)
    #[arg(long, value_enum, default_value = "manual", hide_possible_values = true)]
    pub(crate) strategy: StrategyChoice,
    /// Take values alone; otherwise pack, policy rules and goal hold on, and must be the same in all runs
    #[arg(long)]
    pub(crate) seed_only: bool,
    /// Say what would be made, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

/// Who decides where values differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyChoice {
    /// Somebody, later.
    Manual,
    /// The value committed last.
    Lww,
    /// The surest author.
    Confidence,
    /// The run named first.
    Policy,
}

/// `conflicts`
#[derive(Debug, Subcommand)]
pub(crate) enum ConflictsVerb {
    /// List what the runs of a merge had different values for, and how each stands
    #[command(
        after_help = "Examples:\n  dendrer merge --as both --from logistics-run-47 --from trip-planner-a --seed-only\n  dendrer conflicts list both"
    )]
    List(ConflictsList),
    /// Show one of them with all its values
    #[command(
        after_help = "Examples:\n  dendrer merge --as both --from logistics-run-47 --from trip-planner-a --seed-only\n  dendrer conflicts show both risk_score"
    )]
    Show(ConflictsShow),
    /// Decide one, as a transition with its reason
    #[command(
        after_help = "Examples:\n  dendrer merge --as both --from logistics-run-47 --from trip-planner-a --seed-only\n  dendrer conflicts resolve both risk_score --take b --reason \"the later one was measured\""
    )]
    Resolve(ConflictsResolve),
}

/// `conflicts list`
#[derive(Debug, Args)]
pub(crate) struct ConflictsList {
    /// The run that was made by a merge, or a fork of it
    pub(crate) run: String,
}

/// `conflicts show`
#[derive(Debug, Args)]
pub(crate) struct ConflictsShow {
    /// The run that was made by a merge, or a fork of it
    pub(crate) run: String,
    /// The place
    pub(crate) path: String,
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

/// What ends a rebase beside what must.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StopOn {
    /// The answer of a tool that acts.
    Effectful,
    /// A decision of which nothing says what it was made on.
    Context,
}
