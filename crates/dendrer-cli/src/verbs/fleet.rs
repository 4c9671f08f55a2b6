//! `dendrer fleet`: questions about all runs of an export.

use clap::{Args, Subcommand, ValueEnum};
#[cfg(feature = "fleet")]
use dendrer::ask::fleet::FleetQuestion;
#[cfg(feature = "fleet")]
use dendrer::kernel::predicate::Polarity;
#[cfg(feature = "fleet")]
use dendrer_fleet::{FleetReader, ask};
use dendrer_object::Code;
#[cfg(feature = "fleet")]
use dendrer_view::answer::Answer as _;
#[cfg(feature = "fleet")]
use dendrer_view::fleet::{FleetBisectAnswer, FleetPredicateAnswer, fleet_picture};

use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::Out;

/// `fleet`
#[derive(Debug, Subcommand)]
pub(crate) enum FleetVerb {
    /// Find the first violation of each run
    #[command(
        after_help = "Examples:\n  dendrer fleet bisect --dir exp --holds \"state.counters.tool_errors == 0\"\n\nExit code: 0 a run has an onset, 1 none has, 6 a run cannot be judged."
    )]
    Bisect(FleetQuestionArgs),
    /// Print the verdicts of a predicate on each run, from tick to tick
    #[command(
        after_help = "Examples:\n  dendrer fleet predicate --dir exp --holds \"state.counters.tool_errors == 0\""
    )]
    Predicate(FleetQuestionArgs),
}

/// The program that reads the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FleetEngine {
    /// This program
    Local,
    /// Apache Spark
    Spark,
}

/// The question of a `fleet` verb.
#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("asked").required(true).args(["holds", "predicate"]))]
pub(crate) struct FleetQuestionArgs {
    /// The directory of the export
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: String,
    /// An expression that must be true
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) holds: Option<String>,
    /// An expression that names the violation
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) predicate: Option<String>,
    /// The first tick; if not given, the first at which the places that it reads are there
    #[arg(long, value_name = "TICK")]
    pub(crate) from: Option<u64>,
    /// The last tick
    #[arg(long, value_name = "TICK")]
    pub(crate) to: Option<u64>,
    /// The program that reads the export
    #[arg(long, value_enum, default_value = "local")]
    pub(crate) engine: FleetEngine,
}

#[cfg(not(feature = "fleet"))]
pub(crate) fn run(_: &Global, _: &FleetVerb, _: &mut Out) -> Result {
    Err(Failure::new(Code::E0818, "this program was built without exports as Parquet")
        .note("cargo install --features fleet builds them in; the program of the Python package has them"))
}

#[cfg(feature = "fleet")]
pub(crate) fn run(global: &Global, verb: &FleetVerb, out: &mut Out) -> Result {
    let (FleetVerb::Bisect(args) | FleetVerb::Predicate(args)) = verb;
    if args.engine == FleetEngine::Spark {
        return Err(Failure::new(Code::E0818, "this program has no engine but local")
            .note("Spark is asked from Python with the package `pyspark`; docs/fleet.md has the SQL"));
    }
    out.asks_nothing();
    let export = FleetReader::open(std::path::Path::new(&args.dir))?;
    let reply = ask(&export, &question(args))?;
    match verb {
        FleetVerb::Bisect(_) if global.format.as_deref() == Some("svg") => {
            out.bytes(fleet_picture(&reply).as_bytes())?;
            Ok(FleetBisectAnswer(&reply).end().exit())
        }
        FleetVerb::Bisect(_) => out.answer(&FleetBisectAnswer(&reply)),
        FleetVerb::Predicate(_) => out.answer(&FleetPredicateAnswer(&reply)),
    }
}

/// Returns the question of the flags.
#[cfg(feature = "fleet")]
fn question(args: &FleetQuestionArgs) -> FleetQuestion {
    let (polarity, text) = match (&args.holds, &args.predicate) {
        (Some(text), _) => (Polarity::Holds, text.clone()),
        (None, text) => (Polarity::Condition, text.clone().unwrap_or_default()),
    };
    FleetQuestion { polarity, text, from: args.from, to: args.to }
}
