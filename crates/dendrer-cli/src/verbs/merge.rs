//! `dendrer merge`: a new run that begins with what was chosen from several others.

use clap::{Args, ValueEnum};
use dendrer::error::Error;
use dendrer::kernel::predicate::Verdict;
use dendrer::kernel::step::Head;
use dendrer::merge::{MergeError, Merged, Source, Standing, Strategy, Terms, merge};
use dendrer::recorder::World;
use dendrer_object::{Code, Digest, Value};
use dendrer_view::merge as view;
use dendrer_view::{count, document, quote};

use crate::address::Rev;
use crate::address::state_path;
use crate::context;
use crate::context::runs::new_name;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;
use crate::out::Style;

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
    /// author), policy (the run named first)
    #[arg(long, value_enum, default_value = "manual", hide_possible_values = true)]
    pub(crate) strategy: StrategyChoice,
    /// Take values alone; otherwise pack, policy rules and goal hold on, and must be the same in all runs
    #[arg(long)]
    pub(crate) seed_only: bool,
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
    Policy,
}

pub(crate) fn run(global: &Global, args: &Merge, out: &mut Out) -> Result {
    let revs: Vec<Rev> = args.from.iter().map(|text| Ok(Rev::parse(text)?)).collect::<Result<_>>()?;
    if revs.iter().any(|rev| rev.bundle.is_some()) {
        return Err(Failure::new(
            Code::E0106,
            "a run of a bundle is read; a merge is made of runs of the store",
        )
        .note("nothing was changed"));
    }
    // The sources are read through a handle of their own; the new run is written through another.
    let source = context::whole_store(global, out)?;
    let (reader, (progress, counted)) = (source.store(), source.watched(global, "merge"));
    let mut traces = Vec::with_capacity(revs.len());
    for rev in revs {
        let rev = rev.resolve(reader)?;
        let trace = source.trace_through(&counted, &rev)?;
        let tick = rev.pos.as_ref().map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
        traces.push((trace, tick));
    }
    let sources: Vec<Source<'_>> = traces.iter().map(|(trace, tick)| Source { trace, tick: *tick }).collect();
    let terms = Terms {
        run: new_name(Some(&args.new), "", &**reader)?,
        artifacts: args.artifact.iter().map(|path| state_path(path)).collect::<Result<_>>()?,
        strategy: match args.strategy {
            StrategyChoice::Manual => Strategy::Manual,
            StrategyChoice::Lww => Strategy::Lww,
            StrategyChoice::Confidence => Strategy::Confidence,
            StrategyChoice::Policy => Strategy::Policy,
        },
        seed_only: args.seed_only,
    };
    let world = Box::new(World::default());
    let (merged, unjudged, root, begin) = if args.dry_run {
        let store = &context::rehearse(global)?;
        let made = merge(&sources, store, &terms, world);
        let (mut recorder, merged) = made.map_err(|error| not_merged(args, error))?;
        let (unjudged, root) = (unjudged(recorder.head(), &merged), recorder.head().state().digest());
        recorder.discard();
        (merged, unjudged, root, None)
    } else {
        let repo = context::write_store(global)?;
        let store = repo.writer()?;
        repo.signing_key()?;
        let made = merge(&sources, store, &terms, world);
        let (mut recorder, merged) = made.map_err(|error| not_merged(args, error))?;
        let unjudged = unjudged(recorder.head(), &merged);
        let (root, begin) = (recorder.head().state().digest(), recorder.head().id());
        recorder.commit()?;
        drop(recorder);
        context::close(repo)?;
        (merged, unjudged, root, Some(begin))
    };
    drop(progress);
    match out.is_text() {
        true => print(args, &terms, &merged, out)?,
        false => out.document(&written(args, &terms, &merged, root, begin))?,
    }
    for (rule, why) in unjudged {
        let (rule, why) = (quote::escape(&rule), quote::escape(&why));
        out.say(format!("note: the rule {rule} holds on and counts as violated from tick 1: {why}"));
    }
    Ok(0)
}

/// Says why runs are not merged, and what there is to do.
fn not_merged(args: &Merge, error: Error) -> Failure {
    let (is_nothing, is_open) = match &error {
        Error::Merge(MergeError::Nothing(_)) => (true, false),
        Error::Merge(MergeError::OpenUnderRules(_)) => (false, true),
        _ => (false, false),
    };
    let failure = Failure::from(error);
    match (is_nothing, is_open) {
        (true, _) => args.from.iter().fold(
            failure.note("nothing was changed; a place to take is one of the state of a run"),
            |failure, run| failure.help(&["dendrer", "state", run]),
        ),
        (_, true) => {
            let mut argv = vec!["dendrer", "merge", "--as", args.new.as_str()];
            argv.extend(args.from.iter().flat_map(|run| ["--from", run.as_str()]));
            argv.extend(args.artifact.iter().flat_map(|path| ["--artifact", path.as_str()]));
            let with = |more: &[&'static str]| [argv.as_slice(), more].concat();
            failure
                .note("nothing was changed; let the value committed last win, or take values alone and decide later")
                .help(&with(&["--strategy", "lww"]))
                .help(&with(&["--seed-only"]))
        }
        _ => failure,
    }
}

/// The rules that cannot be judged because nobody chose what they read, with the reason. Where that waits for a decision,
/// the decision comes first.
fn unjudged(head: &Head, merged: &Merged) -> Vec<(String, String)> {
    let waits = |path| {
        merged.conflicts.iter().any(|conflict| conflict.taken.is_none() && conflict.path.overlaps(path))
    };
    let rules = head.policy().iter().filter(|rule| !rule.reads_counters());
    let rules = rules.filter(|rule| !rule.read_set().iter().any(waits));
    let unjudged = rules.filter_map(|rule| match rule.verdict(head.state(), None) {
        Verdict::Uncertain(why) => Some((rule.name().to_owned(), why)),
        _ => None,
    });
    unjudged.collect()
}

fn print(args: &Merge, terms: &Terms, merged: &Merged, out: &mut Out) -> Result<()> {
    let ok = out.paint(Style::Good, "OK");
    for source in &merged.sources {
        let (name, run, tick) = (&source.name, &source.run, source.tick);
        let root = source.state_root.short();
        out.line(format!("source     {name} {run}@{tick}   replayed {ok}, state {root}"))?;
    }
    let word = if args.dry_run { "would make" } else { "created   " };
    let places = count(merged.seeded.len() as u64, "place", "places");
    let sources = merged.sources.len();
    out.line(format!(
        "{word} {}: a new run, seeded with {places} of {sources} runs. This is not a history merge.",
        terms.run
    ))?;
    if terms.seed_only {
        out.line("terms      none: values alone, without pack, policy rules and goal")?;
    }
    for conflict in &merged.conflicts {
        let how = match &conflict.taken {
            Some(name) => format!("{} taken", quote::escape(name)),
            None if terms.strategy == Strategy::Manual => "all kept, none taken".to_owned(),
            None => "it does not tell them apart: all kept, none taken".to_owned(),
        };
        let path = quote::path(&conflict.path);
        let line =
            format!("conflict   {path}   {}   strategy {}: {how}", view::values(conflict), merged.strategy);
        let line = out.paint(Style::Warn, &line);
        out.line(line)?;
    }
    if args.dry_run {
        out.say("nothing was written (dry run)");
        return Ok(());
    }
    if let Some(open) = merged.conflicts.iter().find(|conflict| conflict.taken.is_none()) {
        let (run, path) = (terms.run.as_str(), open.path.dotted());
        let first = open.values.first().map_or("a", |(from, _)| &*from.source);
        out.help(&["dendrer", "conflicts", "resolve", run, &path, "--take", first, "--reason", "..."]);
    }
    Ok(())
}

fn written(args: &Merge, terms: &Terms, merged: &Merged, root: Digest, begin: Option<Digest>) -> Value {
    let conflicts = merged.conflicts.iter().map(|conflict| {
        let standing = conflict.taken.clone().map_or(Standing::Open, Standing::Taken);
        view::conflict(conflict, &standing)
    });
    let open = merged.conflicts.iter().filter(|conflict| conflict.taken.is_none()).count();
    document(
        "merge",
        [
            ("run", Value::from(terms.run.as_str())),
            ("sources", view::sources(merged)),
            ("strategy", Value::from(&*merged.strategy)),
            ("seed_only", Value::from(merged.seed_only)),
            ("state_root", Value::from(root)),
            ("begin", Value::from(begin)),
            ("seeded", view::seeded(merged)),
            ("items", Value::array(conflicts)),
            ("open", Value::from(open as u64)),
            ("dry_run", Value::from(args.dry_run)),
        ],
    )
}
