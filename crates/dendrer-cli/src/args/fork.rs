//! What the verbs that make a run of another take.

use clap::Args;

use crate::address::Pos;
use crate::global::tick_arg;

/// `fork`
#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The run, or RUN@TICK
    #[arg(value_name = "RUN", required_unless_present = "run", conflicts_with = "run")]
    pub(crate) source: Option<String>,
    /// The run
    #[arg(long)]
    pub(crate) run: Option<String>,
    /// The last tick that both share
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Pos>,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// KEY=VALUE: a constant of the pack or a value that a policy rule reads, enforced; other words are for the agent
    #[arg(long, value_name = "TEXT|KEY=VALUE")]
    pub(crate) policy: Vec<String>,
    /// Words for the agent on its tools
    #[arg(long, value_name = "TEXT")]
    pub(crate) tool_policy: Vec<String>,
    /// Words for whoever reads it
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Vec<String>,
    /// Another answer of a tool, for --replay-rest: the parent's tick and a JSON file with the output; in a run without
    /// rules, with "output" and "delta"
    #[arg(long, value_name = "TICK=FILE", requires = "replay_rest")]
    pub(crate) tool_output: Vec<String>,
    /// A place of the state and what stands there from here on
    #[arg(long, value_name = "PATH=JSON")]
    pub(crate) set: Vec<String>,
    /// The pack that is in force from here on
    #[arg(long, value_name = "FILE")]
    pub(crate) contract: Option<String>,
    /// The agent that went wrong, where this restores it from before that
    #[arg(long, value_name = "AGENT")]
    pub(crate) restore: Option<String>,
    /// What the new run is called; RUN-fork-1 and so on if not given
    #[arg(long = "as", value_name = "NEW")]
    pub(crate) new: Option<String>,
    /// Let the parent's later intents go through the door again, until one was decided on something else
    #[arg(long)]
    pub(crate) replay_rest: bool,
    /// Go on with it live: a command whose standard output is intents, a JSON line each, and which reads what became of them
    #[arg(long, value_name = "CMD")]
    pub(crate) exec: Option<String>,
    /// Say what would be made, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

/// `cherrypick`
#[derive(Debug, Args)]
pub(crate) struct Cherrypick {
    /// What is imported: RUN@TICK, or RUN with --tick
    #[arg(value_name = "RUN", required_unless_present = "run", conflicts_with = "run")]
    pub(crate) source: Option<String>,
    /// The run it comes from
    #[arg(long)]
    pub(crate) run: Option<String>,
    /// Its tick there
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) tick: Option<Pos>,
    /// The run that takes it in, at its last tick
    #[arg(long, value_name = "RUN")]
    pub(crate) into: String,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Print the context hash in full
    #[arg(long)]
    pub(crate) show_hash: bool,
    /// Check only: write nothing, no refusal either
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

/// `reduce`
#[derive(Debug, Args)]
pub(crate) struct Reduce {
    /// The run
    pub(crate) run: String,
    /// The pack whose rules make the states
    #[arg(long, value_name = "FILE")]
    pub(crate) pack: String,
    /// What the new run is called
    #[arg(long = "as", value_name = "NEW")]
    pub(crate) new: String,
    /// A JSON file with the state that the pack's init is given; that of the run if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<String>,
}
