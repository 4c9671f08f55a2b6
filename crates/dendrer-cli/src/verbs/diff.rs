//! `dendrer diff`

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer::Trace;
use dendrer::address::{Address, Position};
use dendrer::ask::diff::place::{ignored_place, place};
use dendrer::ask::named::resolve;
use dendrer::ask::predicates::PredicateTested;
use dendrer::ask::steps::coherence_summary;
use dendrer::casebook::{self, Place};
use dendrer::diff::{self, DiffAlign, DiffKind, DiffQuestion};
use dendrer::source::QuestionSource;
use dendrer::store::Store;
use dendrer_object::Code;
use dendrer_object::record::Record;
use dendrer_view::diff::{DiffAnswer, DiffForm, DiffFound};
use dendrer_view::steps::CoherenceDiffAnswer;

use crate::context;
use crate::context::compared::AlignChoice;
use crate::context::ticks;
use crate::failure::{Failure, Result};
use crate::global::{Format, Global, tick_arg};
use crate::offers;
use crate::out::Out;
use crate::progress::Progress;

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
    pub(crate) from: Option<Position>,
    /// The last tick of a; what b has behind the transition beside it is left alone
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Position>,
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
    /// Show the verdicts of a predicate on both runs: a name, or an expression that names the violation
    #[arg(long, value_name = "NAME|EXPR", conflicts_with_all = ["only_changes", "record"], add = ArgValueCompleter::new(offers::predicates))]
    pub(crate) predicate: Option<String>,
    /// Compare the coherence of their steps instead: means of phi, q_hat and crystallizations
    #[arg(long, conflicts_with_all = ["from", "kinds", "ignore", "path", "predicate", "only_changes", "stat", "summary", "record"])]
    pub(crate) coherence: bool,
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
    pub(crate) fn kind(self) -> DiffKind {
        match self {
            KindChoice::Structural => DiffKind::Structural,
            KindChoice::Semantic => DiffKind::Semantic,
            KindChoice::Confidence => DiffKind::Confidence,
            KindChoice::Outcome => DiffKind::Outcome,
        }
    }
}

pub(crate) fn run(global: &Global, args: &Diff, out: &mut Out) -> Result {
    let is_stream = out.format() == Format::Jsonl;
    let forms = [
        ("--stat", args.stat && is_stream),
        ("--summary", args.summary && is_stream),
        ("--only-changes", args.only_changes),
        ("--side-by-side", args.side_by_side),
    ];
    refuse_forms(&forms, out)?;
    if args.coherence {
        let traces = context::traces(global, &[args.a.clone(), args.b.clone()], out)?;
        let [a, b] = &traces[..] else { unreachable!("two runs are two traces") };
        let (a, b) = (coherence_summary((&a.0, a.1))?, coherence_summary((&b.0, b.1))?);
        return out.answer(&CoherenceDiffAnswer { a, b });
    }
    let (rev_a, rev_b) = (Address::parse(&args.a)?, Address::parse(&args.b)?);
    if args.record && (rev_a.bundle.is_some() || rev_b.bundle.is_some()) {
        return Err(Failure::new(Code::E0601, "a bundle has no casebook to write into")
            .note("--record writes into the store that both runs are recorded in"));
    }
    let source_a = context::sound(global, &rev_a, out)?;
    // Two runs of one place are read from one place.
    let other = (rev_a.bundle != rev_b.bundle).then(|| context::sound(global, &rev_b, out)).transpose()?;
    let source_b = other.as_ref().unwrap_or(&source_a);
    let progress = Progress::start(global, "diff", "records", None);
    let (store_a, store_b) = (counted_of(&source_a, &progress), counted_of(source_b, &progress));
    let rev_a = rev_a.resolve(&source_a.store)?;
    let rev_b = rev_b.resolve(&source_b.store)?;
    let a = Trace::open(&store_a, &rev_a.run_in(&source_a.store, &source_a.runs)?)?;
    let b = Trace::open(&store_b, &rev_b.run_in(&source_b.store, &source_b.runs)?)?;
    out.asks(&a);
    out.asks(&b);
    let end = |trace: &Trace, rev: &Address| rev.pos.as_ref().map_or(Ok(trace.tip()), |pos| pos.tick(trace));
    let ends = (end(&a, &rev_a)?, end(&b, &rev_b)?);
    let (from, to) = ticks(&a, ends.0, args.from.as_ref(), args.to.as_ref())?;
    let question = DiffQuestion {
        ends,
        from,
        to,
        align: args.align.align(),
        kinds: match args.kinds.as_slice() {
            [] => DiffKind::ALL.to_vec(),
            kinds => kinds.iter().copied().map(KindChoice::kind).collect(),
        },
        ignore: args.ignore.iter().map(|text| ignored_place(text)).collect::<Result<_>>()?,
        path: args.path.as_deref().map(place).transpose()?,
    };
    question.check(&a, &b)?;
    let predicate = args.predicate.as_deref();
    let tested =
        predicate.map(|text| Ok::<_, Failure>([tested(text, &a, ends.0)?, tested(text, &b, ends.1)?]));
    let tested = tested.transpose()?;
    let form = DiffForm {
        stat: args.stat,
        summary: args.summary,
        only_changes: args.only_changes,
        side_by_side: args.side_by_side,
        tail_in_one: question.align == DiffAlign::Tick && !args.side_by_side,
        limit: if args.limit == 0 { usize::MAX } else { args.limit },
        fails: args.exit_code,
    };
    let mut answer = DiffAnswer::new(form);
    let mut taken = Ok(());
    let report = diff::diff(&a, &b, &question, &mut |pair| {
        taken = out.take(&mut answer, pair);
        if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    taken?;
    drop(progress);
    let (a_name, b_name) = (a.name().clone(), b.name().clone());
    let mut found = DiffFound { a: a_name, b: b_name, question, report, tested, recorded: None };
    if args.record {
        found.recorded = Some(record(global, (&a, &b), &found)?);
    }
    answer.ends(found);
    out.end(&mut answer)
}

/// Judges one run up to its end; a name is resolved for each run by itself.
fn tested(text: &str, trace: &Trace, end: u64) -> Result<PredicateTested> {
    let named = resolve(trace, text)?;
    Ok(PredicateTested::of(trace, named.predicate, 0, end, None)?)
}

/// Writes the answer into the casebook, without the pairs.
fn record(global: &Global, (a, b): (&Trace, &Trace), found: &DiffFound) -> Result<Vec<Record>> {
    let ends = found.question.ends;
    let runs = [Place::of(a, Some(ends.0))?, Place::of(b, Some(ends.1))?];
    let value = found.casebook_value([runs[0].id, runs[1].id]);
    context::write_down(global, |store, world| {
        casebook::record_diff(store, [&runs[0], &runs[1]], &value, world)
    })
}

fn counted_of(source: &QuestionSource, progress: &Progress) -> Arc<dyn Store> {
    progress.watch().over(&source.store)
}

/// Refuses a form of the text that was asked for together with a document.
fn refuse_forms(forms: &[(&str, bool)], out: &Out) -> Result<()> {
    let form = match out.format() {
        Format::Text => return Ok(()),
        Format::Json => "one document",
        Format::Jsonl => "a stream of items",
    };
    match forms.iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            Err(Failure::new(Code::E0106, format!("{flag} is another form of the answer than {form}")))
        }
        None => Ok(()),
    }
}

/// Finds the first and the last tick that are compared.
fn ticks(
    a: &Trace,
    end: u64,
    from: Option<&Position>,
    to: Option<&Position>,
) -> Result<(Option<u64>, Option<u64>)> {
    let tick = |pos: Option<&Position>| pos.map(|pos| pos.tick(a)).transpose();
    let (from, to) = (tick(from)?, tick(to)?);
    ticks::in_order(from.unwrap_or(0), to.unwrap_or(end))?;
    let to = to.map(|to| to.min(end));
    ticks::in_order(from.unwrap_or(0), to.unwrap_or(end))?;
    Ok((from, to))
}
