//! The arguments of `contract`.

use clap::{Args, Subcommand, ValueHint};
use dendrer::address::Position;

use crate::global::plain_tick_arg;
use crate::global::tick_arg;

/// `contract`
#[derive(Debug, Subcommand)]
pub(crate) enum ContractVerb {
    /// Say what of a run its contracts would have refused, and which violations happened
    #[command(
        after_help = "Examples:\n  dendrer contract check financial-agent-A\n  dendrer contract check financial-agent-B --from tick 5 --to tick 12"
    )]
    Check(ContractCheck),
    /// List the contracts that the runs of the store are under
    #[command(after_help = "Examples:\n  dendrer contract list\n  dendrer contract list --json")]
    List,
    /// Show what a contract says: what each type needs, who may write what, what must never be and how that is known
    #[command(
        after_help = "Examples:\n  dendrer contract show financial-agent-A\n  dendrer contract show acme.financial/v1 --type execute_transaction"
    )]
    Show(ContractShow),
    /// Say what one contract asks that another does not: stricter, looser, or neither
    #[command(
        after_help = "Examples:\n  dendrer contract diff acme.financial/v1 financial-agent-B\n  dendrer contract diff acme.financial/v1 orders.yaml --json"
    )]
    Diff(ContractDiff),
    /// Look for what in a contract is allowed and most likely not meant
    #[command(
        after_help = "Examples:\n  dendrer contract lint orders.yaml\n  dendrer contract lint financial-agent-A --json"
    )]
    Lint {
        /// A pack file, NAME/VERSION, RUN or RUN@TICK
        contract: String,
    },
    /// Look in recorded runs for fields that decide what happens and that no contract names
    #[command(
        after_help = "Examples:\n  dendrer contract suggest financial-agent-A financial-agent-B financial-agent-C\n  dendrer contract suggest financial-agent-A financial-agent-B --type execute_transaction --json"
    )]
    Suggest(ContractSuggest),
    /// Add to the contract of a run from a tick on, with an approval
    #[command(
        after_help = "Examples:\n  dendrer contract extend financial-agent-B --file kyc.yaml --effective-from tick 40 --approved-by j.doe -n"
    )]
    Extend(ContractExtend),
    /// Make the key of an approver, and print the line for the pack
    #[command(after_help = "Examples:\n  dendrer contract keygen j.doe j.doe.key")]
    Keygen {
        /// What the approver is called
        name: String,
        /// Where the key is kept; a new file
        #[arg(value_hint = ValueHint::FilePath)]
        file: String,
    },
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
    /// Another contract than the ones in force: a pack file, NAME/VERSION or RUN
    #[arg(long, value_name = "CONTRACT")]
    pub(crate) contract: Option<String>,
    /// The first tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Position>,
    /// The last tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Position>,
    /// Only transitions of this type; violations are of states and have none
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) type_name: Option<String>,
    /// List every stretch of a violation, and not the first alone
    #[arg(long)]
    pub(crate) all_violations: bool,
}

/// `contract show`
#[derive(Debug, Args)]
pub(crate) struct ContractShow {
    /// A pack file, NAME/VERSION of a contract that runs are under, or a run: RUN, RUN@TICK
    pub(crate) contract: String,
    /// Only this type
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) type_name: Option<String>,
}

/// `contract diff`
#[derive(Debug, Args)]
pub(crate) struct ContractDiff {
    /// The one: a pack file, NAME/VERSION, RUN or RUN@TICK
    pub(crate) a: String,
    /// The other, which is said to be stricter or looser
    pub(crate) b: String,
    /// End with 1 where they differ
    #[arg(long)]
    pub(crate) exit_code: bool,
}

/// `contract suggest`
#[derive(Debug, Args)]
pub(crate) struct ContractSuggest {
    /// The runs; values of one are tried in the states of the others
    #[arg(required = true)]
    pub(crate) runs: Vec<String>,
    /// Only transitions of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) type_name: Option<String>,
    /// How many times a transition is decided again with another value, at most
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub(crate) tries: u64,
}
