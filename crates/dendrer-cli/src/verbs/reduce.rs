//! `dendrer reduce`: a recorded run once more, under another pack, as a new run.

use clap::Args;
use dendrer::address::Address;
use dendrer::error::Error;
use dendrer::kernel::step::{ExtensionFault, Stage};
use dendrer::store::prelude::*;
use dendrer_object::{Code, RunName};
use dendrer_view::reduce::ReduceAnswer;

use crate::context;
use crate::context::packs::load;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;
use crate::out::files;

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
    /// The stage of the new run, 0 to 3: what happened is kept, and the stage is enforced from the tick after it on. That of
    /// the run if not given, 1 at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=3))]
    pub(crate) stage: Option<u64>,
}

pub(crate) fn run(global: &Global, args: &Reduce, out: &mut Out) -> Result {
    let rev = Address::parse(&args.run)?;
    if rev.pos.is_some() {
        return Err(Failure::new(Code::E0105, "a whole run is reduced again; leave out the tick"));
    }
    let name: RunName = args
        .new
        .parse()
        .map_err(|error: dendrer_object::name::NameError| Failure::new(error.code(), error.to_string()))?;
    let pack = load(&args.pack)?;
    let s0 = args.state.as_deref().map(files::json).transpose()?;
    // The source is read through a handle of its own; the new run is written through another.
    let source = context::sound(global, &rev, out)?;
    let (progress, counted) = context::watched(global, &source, "reduce");
    let trace = source.trace_through(&counted, &rev)?;
    let repo = context::write_store(global)?;
    if repo.writer()?.run(&name)?.is_some() {
        return Err(Failure::new(Code::E0111, format!("{name} exists already")).note("nothing was changed"));
    }
    repo.signing_key()?;
    let stage = args.stage.and_then(Stage::from_number);
    let reduced = repo.reduce(&trace, &pack, name.clone(), s0, stage);
    let reduced = reduced.map_err(|error| not_reduced(error, rev.bundle.is_some(), &args.pack))?;
    context::close(repo)?;
    drop(progress);
    out.answer(&ReduceAnswer { run: &name, source: trace.name(), pack: &pack.pack, reduced: &reduced })
}

/// Says why a run is not reduced, and what there is to do where an extension of its contract stands in the way.
fn not_reduced(error: Error, is_bundle: bool, file: &str) -> Failure {
    let Error::NotRetold { run, tick, error: why } = &error else { return error.into() };
    let (run, tick) = (run.to_string(), *tick);
    let step = match why.faults.first().map(ExtensionFault::code) {
        Some(Code::E0414) => {
            "an extension goes with the contract that it names: give the pack that name and version"
        }
        Some(Code::E0423) => {
            "an approval is signed for one run, and this is another; without `approvers` in the pack it is recorded as it is said"
        }
        _ => {
            "what it adds has to fit the pack: take out of the pack what the extension adds, or says otherwise"
        }
    };
    let failure = Failure::from(error).note(step).note("nothing was written");
    // A fork is made of a run of the store.
    if is_bundle {
        return failure;
    }
    let (from, short) = ((tick - 1).to_string(), format!("{run}-before-{tick}"));
    let reduced = format!("{short}.reduced");
    failure
        .note("or leave it out: reduce what came before it, in a fork")
        .help(&["dendrer", "fork", "--run", &run, "--from", "tick", &from, "--as", &short])
        .help(&["dendrer", "reduce", &short, "--pack", file, "--as", &reduced])
}
