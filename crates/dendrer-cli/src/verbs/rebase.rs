//! `dendrer rebase`: the intents of one run, proposed again on the state of another.

use clap::{Args, ValueEnum};
use dendrer::address::Address;
use dendrer::rebase::RebaseTerms;
use dendrer_object::Code;
use dendrer_view::rebase::RebaseAnswer;

use crate::context;
use crate::context::choice::Choice;
use crate::context::runs::new_name;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

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
    /// Take in once more what is in the history of the base already
    #[arg(long)]
    pub(crate) again: bool,
    #[command(flatten)]
    pub(crate) choice: Choice,
    /// Say what would be made, but write nothing
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

pub(crate) fn run(global: &Global, args: &Rebase, out: &mut Out) -> Result {
    let text = args.run.as_deref().or(args.source.as_deref()).ok_or_else(|| {
        Failure::new(Code::E0106, "say which run is rebased: dendrer rebase RUN --onto BASE")
            .note("nothing was changed")
    })?;
    let (rev, onto) = (Address::parse(text)?, Address::parse(&args.onto)?);
    if rev.bundle.is_some() || onto.bundle.is_some() {
        return Err(Failure::new(
            Code::E0106,
            "a run of a bundle is read; a rebase is made of runs of the store",
        )
        .note("nothing was changed"));
    }
    if rev.pos.is_some() {
        return Err(Failure::new(
            Code::E0106,
            "all that a run has of its own is rebased: name it without a tick",
        )
        .note("nothing was changed"));
    }
    // Both are read through a handle of their own; the new run is written through another.
    let reader = context::sound(global, &rev, out)?;
    let onto = onto.resolve(&reader.store)?;
    let (progress, counted) = context::watched(global, &reader, "rebase");
    let (source, base) = (reader.trace_through(&counted, &rev)?, reader.trace_through(&counted, &onto)?);
    let tick = onto.pos.as_ref().map_or(Ok(base.tip()), |pos| pos.tick(&base))?;
    let is_dry = args.plan || args.dry_run;
    let name = new_name(args.new.as_deref(), &format!("{}-rebase", source.name()), &**&reader.store)?;
    let mut terms = RebaseTerms::new(name);
    terms.reason =
        args.reason.as_deref().map(|text| context::clean(global, text)).transpose()?.map(Into::into);
    terms.stop_on_effectful = args.stop_on.contains(&StopOn::Effectful);
    terms.stop_on_context = args.stop_on.contains(&StopOn::Context);
    terms.keep = !is_dry;
    terms.again = args.again;
    terms.selection = args.choice.selection();
    let repo = context::target(global, &reader, is_dry)?;
    let (mut recorder, rebased) = repo.rebase(&source, &base, tick, &terms, None)?;
    // A run that has nothing but its origin is of no use.
    let tip = if is_dry || rebased.carried() == 0 { None } else { Some(recorder.head().tick()) };
    match tip {
        Some(_) => drop(recorder.commit()?),
        None => drop(recorder.discard()),
    }
    drop(recorder);
    context::close(repo)?;
    drop(progress);
    out.answer(&RebaseAnswer {
        rebased: &rebased,
        run: &terms.run,
        onto: base.name(),
        tick,
        reason: args.reason.as_deref(),
        tip,
        plan: args.plan,
        dry_run: args.dry_run,
    })
}
