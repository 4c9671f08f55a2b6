//! What the verbs that make a run of another take.

use clap::{Args, Subcommand, ValueHint};

use crate::address::{Pos, plain_tick_arg, tick_arg};

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

/// `contract`
#[derive(Debug, Subcommand)]
pub(crate) enum ContractVerb {
    /// Say what of a run its contracts would have refused, and which violations happened
    #[command(
        after_help = "Examples:\n  dendrer contract check financial-agent-A\n  dendrer contract check financial-agent-B --from tick 5 --to tick 12"
    )]
    Check(ContractCheck),
    /// Add to the contract of a run from a tick on, with an approval
    #[command(
        after_help = "Examples:\n  dendrer contract extend financial-agent-B --file kyc.yaml --effective-from tick 40 --approved-by j.doe -n"
    )]
    Extend(ContractExtend),
    /// Make the key of an approver, and print the line for the pack
    #[command(after_help = "Examples:\n  dendrer contract keygen j.doe j.doe.key")]
    Keygen(ContractKeygen),
}

/// `contract keygen`
#[derive(Debug, Args)]
pub(crate) struct ContractKeygen {
    /// What the approver is called
    pub(crate) name: String,
    /// Where the key is kept; a new file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: String,
}

/// `contract extend`
#[derive(Debug, Args)]
pub(crate) struct ContractExtend {
    /// The run
    pub(crate) run: String,
    /// The extension, as YAML or JSON
    #[arg(long, value_name = "EXT", value_hint = ValueHint::FilePath)]
    pub(crate) file: String,
    /// From which tick on it holds, whatever the file says
    #[arg(long, value_parser = plain_tick_arg, value_name = "TICK")]
    pub(crate) effective_from: Option<u64>,
    /// Who approved it, whatever the file says
    #[arg(long, value_name = "ID")]
    pub(crate) approved_by: Option<String>,
    /// The signed note of the approver
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) signature: Option<String>,
    /// Sign as the approver, with the key in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "signature")]
    pub(crate) approver_key: Option<String>,
    /// Check it, and write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

/// `contract check`
#[derive(Debug, Args)]
pub(crate) struct ContractCheck {
    /// The run
    pub(crate) run: String,
    /// The first tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Pos>,
    /// The last tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Pos>,
    /// Only transitions of this type; violations are of states and have none
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) type_name: Option<String>,
    /// List every stretch of a violation, and not the first alone
    #[arg(long)]
    pub(crate) all_violations: bool,
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
