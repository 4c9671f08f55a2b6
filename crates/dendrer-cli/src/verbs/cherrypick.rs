//! `dendrer cherrypick`: a transition of one run into another that has what it was decided on.

use clap::Args;
use dendrer::address::Address;
use dendrer::address::Position;
use dendrer::cherrypick::{Candidate, PickTerms};
use dendrer_object::Code;
use dendrer_view::cherrypick::CherrypickAnswer;

use crate::context;
use crate::context::ticks::one_tick;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::global::tick_arg;
use crate::out::Out;

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
    pub(crate) tick: Option<Position>,
    /// The run that takes it in, at its last tick
    #[arg(long, value_name = "RUN")]
    pub(crate) into: String,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Print the context hash in full
    #[arg(long)]
    pub(crate) show_hash: bool,
    /// Take it in once more, also if the target has it already
    #[arg(long)]
    pub(crate) again: bool,
    /// Check only: write nothing, no refusal either
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(global: &Global, args: &Cherrypick, out: &mut Out) -> Result {
    let text = args.run.as_deref().or(args.source.as_deref()).ok_or_else(|| {
        Failure::new(Code::E0106, "say what is imported: dendrer cherrypick --run RUN --tick N --into TARGET")
    })?;
    let rev = Address::parse(text)?;
    if rev.bundle.is_some() {
        return Err(Failure::new(
            Code::E0106,
            "a run of a bundle is read; what is imported is of a run of the store",
        )
        .note("nothing was changed"));
    }
    let into = Address::parse(&args.into)?;
    if into.bundle.is_some() || into.pos.is_some() {
        return Err(Failure::new(
            Code::E0106,
            "a target is a run of the store; it takes in at its last tick",
        )
        .note("nothing was changed"));
    }
    let source = context::sound(global, &rev, out)?;
    let rev = rev.resolve(&source.store)?;
    let (progress, counted) = context::watched(global, &source, "cherrypick");
    let trace = source.trace_through(&counted, &rev)?;
    let say = "say once which tick is imported: --tick N, or RUN@N";
    let tick = one_tick(args.tick.as_ref(), &rev, &trace, say)?;
    let candidate = Candidate::read(&trace, tick)?;
    let target = source.trace_through(&counted, &into)?;
    let mut pick = candidate.check(&target, target.tip())?;
    pick.reason =
        args.reason.as_deref().map(|text| context::clean(global, text)).transpose()?.map(Into::into);
    let (into, tip) = (target.name(), target.tip());
    // A dry run asks the door as well, and nothing is written.
    let repo = context::target(global, &source, args.dry_run)?;
    let imported =
        repo.cherrypick(into, &mut pick, tip, PickTerms { dry: args.dry_run, again: args.again })?;
    context::close(repo)?;
    drop(progress);
    let (show_hash, dry_run) = (args.show_hash, args.dry_run);
    let answer = CherrypickAnswer { pick: &pick, into, tip, imported: &imported, show_hash, dry_run };
    out.answer_or(&answer, answer.problem())
}
