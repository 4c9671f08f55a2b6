//! `dendrer merge`: a new run that begins with what was chosen from several others.

use clap::{Args, ValueEnum};
use dendrer::address::Address;
use dendrer::address::state_path;
use dendrer::error::Error;
use dendrer::merge::{self, MergeError, MergeInput, MergeTerms, Strategy};
use dendrer_object::Code;
use dendrer_view::merge::{MergeAnswer, unjudged_notes};

use crate::context;
use crate::context::runs::new_name;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

/// `merge`
#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// What the new run is called
    #[arg(long = "as", value_name = "NEW")]
    pub(crate) new: String,
    /// A run to take from: RUN@TICK, or RUN for its last tick; at least twice, the first is called a, the second b
    #[arg(long, value_name = "RUN[@TICK]", required = true)]
    pub(crate) from: Vec<String>,
    /// A place of the state to take; all of it if none is given
    #[arg(long, value_name = "PATH")]
    pub(crate) artifact: Vec<String>,
    /// Who decides where values differ: manual (somebody, later), lww (the value committed last), confidence (the surest
    /// author), first (the run named first)
    #[arg(long, value_enum, default_value = "manual", hide_possible_values = true)]
    pub(crate) strategy: StrategyChoice,
    /// Take values alone; otherwise pack, policy rules and goal hold on, and must be the same in all runs
    #[arg(long)]
    pub(crate) seed_only: bool,
    /// Print for each place on which they differ what it was, what each run has, and what is taken; write nothing
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) plan: bool,
    /// Say what would be made, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

/// Who decides where values differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyChoice {
    /// Somebody, later.
    Manual,
    /// The value committed last.
    Lww,
    /// The surest author.
    Confidence,
    /// The run named first.
    First,
}

pub(crate) fn run(global: &Global, args: &Merge, out: &mut Out) -> Result {
    let revs: Vec<Address> = args.from.iter().map(|text| Ok(Address::parse(text)?)).collect::<Result<_>>()?;
    if revs.iter().any(|rev| rev.bundle.is_some()) {
        return Err(Failure::new(
            Code::E0106,
            "a run of a bundle is read; a merge is made of runs of the store",
        )
        .note("nothing was changed"));
    }
    // The sources are read through a handle of their own; the new run is written through another.
    let source = context::whole_store(global, out)?;
    let (reader, (progress, counted)) = (&source.store, context::watched(global, &source, "merge"));
    let mut traces = Vec::with_capacity(revs.len());
    for rev in revs {
        let rev = rev.resolve(reader)?;
        let trace = source.trace_through(&counted, &rev)?;
        let tick = rev.pos.as_ref().map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
        traces.push((trace, tick));
    }
    let sources: Vec<MergeInput<'_>> =
        traces.iter().map(|(trace, tick)| MergeInput { trace, tick: *tick }).collect();
    let terms = MergeTerms {
        run: new_name(Some(&args.new), "", &**reader)?,
        artifacts: args
            .artifact
            .iter()
            .map(|path| state_path(path))
            .collect::<std::result::Result<_, _>>()?,
        strategy: match args.strategy {
            StrategyChoice::Manual => Strategy::Manual,
            StrategyChoice::Lww => Strategy::Lww,
            StrategyChoice::Confidence => Strategy::Confidence,
            StrategyChoice::First => Strategy::First,
        },
        seed_only: args.seed_only,
    };
    let is_dry = args.dry_run || args.plan;
    let repo = context::target(global, &source, is_dry)?;
    let made = repo.merge(&sources, &terms);
    let (mut recorder, merged) =
        made.map_err(|error| not_merged(error, &args.new, &args.from, &args.artifact))?;
    let head = recorder.head();
    let (unjudged, state_root) = (merge::unjudged(head, &merged), head.state().digest());
    let begin = (!is_dry).then(|| head.id());
    let plan = args.plan.then(|| merge::plan(&sources, &merged, head.state())).transpose()?;
    match is_dry {
        true => drop(recorder.discard()),
        false => drop(recorder.commit()?),
    }
    drop(recorder);
    context::close(repo)?;
    drop(progress);
    let code = out.answer(&MergeAnswer {
        run: &terms.run,
        merged: &merged,
        state_root,
        begin,
        plan: plan.as_deref(),
    })?;
    // Notes beside the document as well: the rules count from the first transition on.
    out.print(unjudged_notes(&unjudged))?;
    Ok(code)
}

/// Says why runs are not merged, and what there is to do.
fn not_merged(error: Error, new: &str, from: &[String], artifacts: &[String]) -> Failure {
    let (is_nothing, is_open) = match &error {
        Error::Merge(MergeError::Nothing(_)) => (true, false),
        Error::Merge(MergeError::OpenUnderRules(_)) => (false, true),
        _ => (false, false),
    };
    let failure = Failure::from(error);
    match (is_nothing, is_open) {
        (true, _) => from.iter().fold(
            failure.note("nothing was changed; a place to take is one of the state of a run"),
            |failure, run| failure.help(&["dendrer", "state", run]),
        ),
        (_, true) => {
            let mut argv = vec!["dendrer", "merge", "--as", new];
            argv.extend(from.iter().flat_map(|run| ["--from", run.as_str()]));
            argv.extend(artifacts.iter().flat_map(|path| ["--artifact", path.as_str()]));
            let with = |more: &[&'static str]| [argv.as_slice(), more].concat();
            failure
                .note("nothing was changed; let the value committed last win, or take values alone and decide later")
                .help(&with(&["--strategy", "lww"]))
                .help(&with(&["--seed-only"]))
        }
        _ => failure,
    }
}
