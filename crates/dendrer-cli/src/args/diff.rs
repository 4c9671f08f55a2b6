//! The flags of `diff`.

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use dendrer::diff::Kind;

use crate::address::Pos;
use crate::global::tick_arg;
use crate::offers;

/// `diff`
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// One run, or RUN@TICK to end it there; called a in the answer
    #[arg(value_name = "RUN_A", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) a: String,
    /// The other, called b
    #[arg(value_name = "RUN_B", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) b: String,
    /// The first tick of a to compare
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Pos>,
    /// The last tick of a; what b has behind the transition beside it is left alone
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Pos>,
    /// Only these kinds of difference
    #[arg(long = "type", value_enum, value_delimiter = ',', value_name = "KIND")]
    pub(crate) kinds: Vec<KindChoice>,
    /// How transitions are lined up: one by one behind what is shared, or by what they mean
    #[arg(long, value_enum, default_value = "tick")]
    pub(crate) align: AlignChoice,
    /// Leave out what differs there, like agent_id or state.memory
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) ignore: Vec<String>,
    /// Only what differs there
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) path: Option<String>,
    /// Print the differences alone, without headline and counts
    #[arg(long, conflicts_with_all = ["stat", "summary"])]
    pub(crate) only_changes: bool,
    /// Count by type of transition, and list no pairs
    #[arg(long, conflicts_with = "summary")]
    pub(crate) stat: bool,
    /// Only the counts
    #[arg(long)]
    pub(crate) summary: bool,
    /// End with exit code 1 if the runs differ
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// Both transitions of each pair in two columns
    #[arg(long, conflicts_with_all = ["stat", "summary"])]
    pub(crate) side_by_side: bool,
    /// Write the answer, without the pairs, into the casebook of the store
    #[arg(long)]
    pub(crate) record: bool,
    /// At most N pairs; 0 for all
    #[arg(short = 'n', long = "limit", default_value_t = 1000)]
    pub(crate) limit: usize,
}

/// A kind of difference (dendrer paper 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindChoice {
    /// Another type of transition at the same place, or none.
    Structural,
    /// The same type, and another intent, action, result, policy or change of state.
    Semantic,
    /// Another confidence.
    Confidence,
    /// Another state in the end.
    Outcome,
}

impl KindChoice {
    /// The kind that is meant.
    pub(crate) fn kind(self) -> Kind {
        match self {
            KindChoice::Structural => Kind::Structural,
            KindChoice::Semantic => Kind::Semantic,
            KindChoice::Confidence => Kind::Confidence,
            KindChoice::Outcome => Kind::Outcome,
        }
    }
}

/// How transitions are lined up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlignChoice {
    /// One by one behind what is shared, markers passed over.
    Tick,
    /// By the longest sequence of transitions that mean the same.
    Content,
}
