//! The arguments of `predicate`.

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use dendrer::address::Position;
use dendrer::kernel::predicate::Window;

use crate::global::tick_arg;
use crate::global::{WINDOW, word};
use crate::offers;

/// `predicate`
#[derive(Debug, Subcommand)]
pub(crate) enum PredicateVerb {
    /// Put a predicate on record under a name
    #[command(
        after_help = "Examples:\n  dendrer predicate register acme.risk_bounded --holds \"state.risk_score <= 0.75\" --verify-monotone --sample-trace logistics-run-47\n  dendrer predicate register acme.risk_bounded --lift monotone"
    )]
    Register(PredicateRegister),
    /// List the names that predicates have
    List(PredicateList),
    /// Show every version of a name
    Show(PredicateShow),
    /// Print what a predicate says of a run, from tick to tick
    #[command(
        after_help = "Examples:\n  dendrer predicate test kernel.policy_compliant logistics-run-47\n  dendrer predicate test \"state.risk_score <= 0.75\" logistics-run-47 --holds --at tick 22\n\nExit code with --at: 0 ok, 1 violation, 6 uncertain. Without: 0."
    )]
    Test(PredicateTest),
    /// End a name: it means nothing until it is registered again
    Retire(PredicateRetire),
}

/// `predicate register`
#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("form").args(["holds", "condition", "file", "module"]))]
pub(crate) struct PredicateRegister {
    /// The name, like acme.tax_compliance_v2; or a module NAME.wasm, registered under that name
    #[arg(value_name = "NAME|MODULE.wasm")]
    pub(crate) name: String,
    /// An expression that must be true
    #[arg(long, value_name = "EXPR")]
    pub(crate) holds: Option<String>,
    /// An expression that names the violation
    #[arg(long, value_name = "EXPR", visible_alias = "expr")]
    pub(crate) condition: Option<String>,
    /// A JSON file {"holds": ..} or {"condition": ..}, with a window and a lift if need be; without any of these
    /// four, the newest registration of the name is taken up again
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<String>,
    /// A WebAssembly module that says ok or violation of a state
    #[arg(long, value_name = "MODULE.wasm", value_hint = ValueHint::FilePath)]
    pub(crate) module: Option<String>,
    /// Which state of a transition it looks at
    #[arg(long, value_parser = word::<Window>(&WINDOW))]
    pub(crate) window: Option<Window>,
    /// The version; the next one of the name if not given
    #[arg(long, value_name = "V")]
    pub(crate) version: Option<String>,
    /// Reject it if it is seen to recover
    #[arg(long)]
    pub(crate) verify_monotone: bool,
    /// A run to verify it on
    #[arg(long, value_name = "RUN", requires = "verify_monotone")]
    pub(crate) sample_trace: Vec<String>,
    /// Ask for the first violation, whatever comes after it
    #[arg(long, value_enum, value_name = "LIFT")]
    pub(crate) lift: Option<LiftChoice>,
}

/// How a predicate that recovers is made one that does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LiftChoice {
    /// Violated from the first violation on.
    Monotone,
}

/// `predicate list`
#[derive(Debug, Args)]
pub(crate) struct PredicateList {
    /// A bundle to read instead of a store
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<String>,
    /// Retired names and older versions, too
    #[arg(long)]
    pub(crate) all: bool,
    /// What the pack of this run declares, too
    #[arg(long, value_name = "RUN", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) run: Option<String>,
}

/// `predicate show`
#[derive(Debug, Args)]
pub(crate) struct PredicateShow {
    /// The name
    pub(crate) name: String,
    /// A bundle to read instead of a store
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<String>,
    /// What the pack of this run declares under the name, too
    #[arg(long, value_name = "RUN", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) run: Option<String>,
}

/// `predicate test`
#[derive(Debug, Args)]
pub(crate) struct PredicateTest {
    /// A registered predicate, or an expression that names the violation
    #[arg(value_name = "NAME|EXPR")]
    pub(crate) predicate: String,
    /// The run
    pub(crate) run: String,
    /// The expression is what must be true
    #[arg(long)]
    pub(crate) holds: bool,
    /// Which state of a transition an expression looks at: after (as if not given) or before
    #[arg(long, value_parser = word::<Window>(&WINDOW))]
    pub(crate) window: Option<Window>,
    /// Only this tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true, conflicts_with_all = ["from", "to"])]
    pub(crate) at: Option<Position>,
    /// A row for every tick: its type, what the predicate says, and what happened
    #[arg(long)]
    pub(crate) ticks: bool,
    /// The first tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Position>,
    /// The last tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Position>,
}

/// `predicate retire`
#[derive(Debug, Args)]
pub(crate) struct PredicateRetire {
    /// The name
    pub(crate) name: String,
}
