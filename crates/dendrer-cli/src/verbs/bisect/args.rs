//! The arguments of `bisect`.

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use dendrer::address::Position;
use dendrer::casebook::diagnosis::DiagnosisClass;
use dendrer::diff::DiffAlign;
use dendrer::kernel::predicate::Window;

use crate::global::{ALIGN, WINDOW, tick_arg, word};
use crate::offers;

/// `bisect`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("question").required(true).args(["predicate", "holds", "anomaly", "policy_flip", "divergence", "regression", "all_of"]))]
pub(crate) struct Bisect {
    /// The run
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) run: String,
    /// A registered predicate, or an expression that names the violation
    #[arg(long, value_name = "NAME|EXPR", add = ArgValueCompleter::new(offers::predicates))]
    pub(crate) predicate: Option<String>,
    /// An expression that must be true. Several are asked at once, each with an answer of its own; the worst exit
    /// code counts
    #[arg(long, value_name = "EXPR")]
    pub(crate) holds: Vec<String>,
    /// A kind of anomaly
    #[arg(long, value_name = "KIND")]
    pub(crate) anomaly: Option<String>,
    /// The first deny or escalate for this type after an allow for it
    #[arg(long, value_name = "TYPE")]
    pub(crate) policy_flip: Option<String>,
    /// The first transition that is not what this run has beside it
    #[arg(long, value_name = "RUN", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) divergence: Option<String>,
    /// With --divergence: leave out what differs there, like agent_id or state.memory
    #[arg(long, value_name = "P", requires = "divergence", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) ignore: Vec<String>,
    /// With --divergence: how transitions are lined up, one by one behind what is shared (tick, as if not given) or by what they mean
    #[arg(long, requires = "divergence", value_parser = word::<DiffAlign>(&ALIGN))]
    pub(crate) align: Option<DiffAlign>,
    /// A heuristic: where a score is first lower than it was before. progress, constraint_satisfaction,
    /// skeptic_survival_rate or a progress contract, as the pack of the run declares them
    #[arg(long, value_name = "METRIC", conflicts_with_all = ["lift", "scan", "contributors", "diagnosis", "record"])]
    pub(crate) regression: Option<String>,
    /// Every predicate of a pack, or of a JSON file {"predicates":[{"name":..,"holds":..}]}; standard, a word: those of the pack in
    /// force, the policy, anomalies, failed calls and denied ones. The worst exit code counts
    #[arg(long, value_name = "standard|PACK|FILE", conflicts_with = "expect_onset")]
    pub(crate) all_of: Option<String>,
    /// Find the first violation even if the predicate recovers from it
    #[arg(long)]
    pub(crate) lift: bool,
    /// Which state of a transition an expression looks at: after (as if not given) or before
    #[arg(long, value_parser = word::<Window>(&WINDOW), conflicts_with_all = ["anomaly", "policy_flip", "divergence", "regression", "all_of"])]
    pub(crate) window: Option<Window>,
    /// The first tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Position>,
    /// The last tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Position>,
    /// Do not follow the onset forward
    #[arg(long)]
    pub(crate) no_chain: bool,
    /// How many transitions of the causal chain to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) chain_limit: usize,
    /// Judge every tick, too, and compare
    #[arg(long)]
    pub(crate) scan: bool,
    /// Fail with exit code 1 unless the onset is this tick
    #[arg(long, value_name = "N")]
    pub(crate) expect_onset: Option<u64>,
    /// Find the smallest set of earlier transitions without which it would not come about, by reducing the run again
    /// without them; for a policy flip the decisions that allowed it before
    #[arg(long, conflicts_with_all = ["all_of", "divergence"])]
    pub(crate) contributors: bool,
    /// What you take the failure for, whatever is offered
    #[arg(long, value_enum, value_name = "CLASS", conflicts_with_all = ["all_of", "divergence"])]
    pub(crate) diagnosis: Option<DiagnosisChoice>,
    /// Write the answer into the casebook of the store
    #[arg(long, conflicts_with = "all_of")]
    pub(crate) record: bool,
}

impl Bisect {
    /// Whether several questions are asked at once, each with an answer of its own.
    pub(crate) fn asks_several(&self) -> bool {
        self.all_of.is_some() || self.holds.len() > 1
    }
}

/// What a person takes a failure for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiagnosisChoice {
    /// Ask, on a terminal.
    Ask,
    /// The state held bad data.
    ContingentState,
    /// The policy let pass what it should not have, or the other way round.
    ContingentPolicy,
    /// The goal, the prompt or the pack is at fault.
    Foundational,
}

impl DiagnosisChoice {
    /// The class; `None` if a person is asked.
    pub(crate) fn class(self) -> Option<DiagnosisClass> {
        match self {
            DiagnosisChoice::Ask => None,
            DiagnosisChoice::ContingentState => Some(DiagnosisClass::ContingentState),
            DiagnosisChoice::ContingentPolicy => Some(DiagnosisClass::ContingentPolicy),
            DiagnosisChoice::Foundational => Some(DiagnosisClass::Foundational),
        }
    }
}
