//! `dendrer bisect`

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use dendrer::Trace;
use dendrer::address::Address;
use dendrer::ask::bisect::gather::{BisectAnswer, BisectDetails, BisectFound};
use dendrer::ask::named::{NamedPredicate, anomaly, expression, resolve};
use dendrer::bisect::{BisectOutcome, BisectQuestion, BisectReport, Range, bisect_each};
use dendrer::casebook::{self, Bisected, Place};
use dendrer::diff::{DiffAlign, DiffQuestion};
use dendrer::kernel::predicate::{Polarity, Predicate, Verdict};
use dendrer::watch::Watch;
use dendrer_object::record::Record;
use dendrer_object::{Code, TypeName, Value};
use dendrer_view::bisect::{BisectAll, BisectCommand, BisectShown, list};
use dendrer_view::certainty::reasons_list;
use dendrer_view::thousands;

use self::args::DiagnosisChoice;
use crate::context::compared::{AlignChoice, ignored_place};
use crate::context::named::{not_named, of_file, window, with_hint};
use crate::context::ticks;
use crate::context::{self, Source};
use crate::failure::{Failure, Result};
use crate::global::{Global, WindowChoice};
use crate::out::Out;
use crate::progress::Progress;

pub(crate) use self::args::Bisect;

mod args;
mod causes;
mod regression;

/// The question as the flags name it.
enum Subject<'a> {
    Predicate(&'a str),
    Holds(&'a str),
    Anomaly(&'a str),
    PolicyFlip(&'a str),
}

/// One question, and what its name resolved to.
struct Asked {
    question: BisectQuestion,
    named: Option<NamedPredicate>,
}

pub(crate) fn run(global: &Global, args: &Bisect, out: &mut Out) -> Result {
    let rev = Address::parse(&args.run)?;
    let source = context::sound(global, &rev, out)?;
    let several = args.holds.len() > 1;
    let flags = [
        ("--contributors", args.contributors && several),
        ("--diagnosis", args.diagnosis.is_some() && several),
        ("--record", args.record && several),
    ];
    if let Some((flag, _)) = flags.into_iter().find(|(_, given)| *given) {
        return Err(Failure::new(Code::E0106, format!("{flag} is for one --holds, and there are several")));
    }
    if args.record && rev.bundle.is_some() {
        return Err(Failure::new(Code::E0601, "a bundle has no casebook to write into")
            .note("--record writes into the store that the run is recorded in"));
    }
    let rev = rev.resolve(source.store())?;
    let run = rev.run_in(source.store(), source.named())?;
    // How many records the probes take depends on where snapshots lie, so no remaining time is told.
    let progress = Progress::start(global, "bisect", "records", None);
    let counted = progress.watch().over(source.store());
    let trace = Trace::open(&counted, &run)?;
    out.asks(&trace);
    let from = args.from.as_ref().map_or(Ok(0), |pos| pos.tick(&trace))?;
    let to = args.to.as_ref().or(rev.pos.as_ref()).map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
    ticks::in_order(from, to)?;
    let range = Range { scan: args.scan, ..Range::new(from, to) };
    let lift = |predicate: Predicate| if args.lift { predicate.lifted() } else { predicate };
    let predicates = match &args.all_of {
        Some(path) => Some(all_of(path, &trace)?),
        None if !several => None,
        None if args.expect_onset.is_some() => {
            return Err(Failure::new(
                Code::E0106,
                "--expect-onset is for one --holds, and there are several",
            ));
        }
        None => Some(all_hold(&args.holds, args.window, &trace)?),
    };
    if let Some(predicates) = predicates {
        let questions: Vec<BisectQuestion> =
            predicates.into_iter().map(|predicate| BisectQuestion::Predicate(lift(predicate))).collect();
        let reports = bisect_each(&trace, &questions, &range)?;
        let found = questions.into_iter().zip(reports);
        let found = found.map(|(question, report)| Ok(BisectFound::of(&trace, question, report)?));
        let answer = BisectAll { run: trace.name().clone(), found: found.collect::<Result<_>>()? };
        drop(progress);
        return out.answer(&answer);
    }
    if let Some(metric) = &args.regression {
        return regression::run(&args.run, &trace, metric, &range, args.expect_onset, progress, out);
    }
    let asked = match (&args.divergence, &args.policy_flip, &args.anomaly, args.holds.first()) {
        (Some(other), ..) => divergence(
            global,
            args,
            (&source, &rev, &trace),
            (range.from, range.to),
            other,
            progress.counter(),
            out,
        )?,
        (_, Some(about), ..) => question(Subject::PolicyFlip(about), args.window, &trace)?,
        (.., Some(kind), _) => question(Subject::Anomaly(kind), args.window, &trace)?,
        (.., Some(text)) => question(Subject::Holds(text), args.window, &trace)?,
        _ => {
            let text = args.predicate.as_deref().unwrap_or_default();
            question(Subject::Predicate(text), args.window, &trace)?
        }
    };
    let question = match asked.question {
        BisectQuestion::Predicate(predicate) => BisectQuestion::Predicate(lift(predicate)),
        other => other,
    };
    // An extension may have brought the predicate in; the ticks before were judged by the contract of their time.
    let since = asked.named.as_ref().and_then(|named| named.since).filter(|_| args.from.is_none());
    let range = match since {
        Some(since) if since > to => {
            let text = args.predicate.as_deref().unwrap_or_default();
            let what = format!(
                "{text} is part of the contract from tick {since} on, and the range ends at tick {to}"
            );
            return Err(Failure::new(Code::E0106, what).note("--from 0 asks of the ticks before, too"));
        }
        Some(since) => {
            out.say(format!(
                "note: it is part of the contract from tick {since} on; --from 0 asks of the ticks before"
            ));
            Range { scan: range.scan, ..Range::since(since, to) }
        }
        None => range,
    };
    let report = dendrer::bisect::bisect(&trace, &question, &range)?;
    let (report, since) = match since {
        None if args.from.is_none() => once_there(&trace, &question, report, &range, out)?,
        _ => (report, since),
    };
    drop(progress);
    if let (true, Some(tick)) = (global.verbose, report.known_to) {
        let known = format!("verdicts up to tick {} were worked out before", thousands(tick));
        // Ignored: there is no other place to report a closed stderr.
        let _ = writeln!(std::io::stderr(), "{known}, and signed by the key of the store");
    }
    let named = [
        ("--holds", args.holds.first()),
        ("--predicate", args.predicate.as_ref()),
        ("--anomaly", args.anomaly.as_ref()),
        ("--policy-flip", args.policy_flip.as_ref()),
        ("--divergence", args.divergence.as_ref()),
    ];
    let named = named.into_iter().filter_map(|(flag, text)| Some([flag.to_owned(), text?.clone()]));
    let lifted = args.lift.then(|| "--lift".to_owned());
    let command = BisectCommand {
        run: args.run.clone(),
        question: named.flatten().chain(lifted).collect(),
        records: args.record,
    };
    let details = BisectDetails {
        contributors: args.contributors,
        chain_limit: if args.no_chain { 0 } else { args.chain_limit },
        may_fork: rev.bundle.is_none(),
    };
    let mut answer = BisectAnswer::of(&trace, question, report, details)?;
    answer.since = since;
    if let Some(named) = asked.named {
        (answer.registered, answer.other_in_pack) = (named.registered, named.other_in_pack);
    }
    finish(global, &trace, answer, &command, args.diagnosis, args.expect_onset, out)
}

/// Asks again from the tick at which the places that a predicate reads are there, where the run begins without one: of the ticks before,
/// nothing can be said.
fn once_there(
    trace: &Trace,
    question: &BisectQuestion,
    report: BisectReport,
    range: &Range,
    out: &mut Out,
) -> Result<(BisectReport, Option<u64>)> {
    let (BisectOutcome::Uncertain(..), BisectQuestion::Predicate(predicate)) = (&report.outcome, question)
    else {
        return Ok((report, None));
    };
    let Some(since) = dendrer::bisect::there_since(trace, predicate, range.to)? else {
        return Ok((report, None));
    };
    let again = Range { scan: range.scan, ..Range::since(since, range.to) };
    let found = dendrer::bisect::bisect(trace, question, &again)?;
    // What is violated, or cannot be judged, as soon as it is there has no tick before it that is known to be well.
    if found.low.1 != Verdict::Ok {
        return Ok((report, None));
    }
    out.say(format!(
        "note: it cannot be judged before tick {since}, which is the first with every place that it reads; --from 0 asks of those ticks too"
    ));
    Ok((found, Some(since)))
}

/// Has a person decide on the class, records the answer and prints it.
fn finish(
    global: &Global,
    trace: &Trace,
    mut answer: BisectAnswer,
    command: &BisectCommand,
    diagnosis: Option<DiagnosisChoice>,
    expected: Option<u64>,
    out: &mut Out,
) -> Result {
    answer.decided = causes::decide(diagnosis, answer.offer.as_ref(), command)?;
    let refused = refusal(command, trace, &answer);
    let shown = BisectShown { answer: &answer, command, recorded: &[] };
    let recorded = match command.records && refused.is_none() {
        true => record(global, trace, &shown)?,
        false => Vec::new(),
    };
    let failure = refused.or_else(|| unexpected(expected, &answer.found.report));
    out.answer_or(&BisectShown { recorded: &recorded, ..shown }, failure)
}

/// Reports an onset that is not the expected one.
fn unexpected(expected: Option<u64>, report: &BisectReport) -> Option<Failure> {
    let found = report.onset();
    let expected = expected.filter(|expected| found != Some(*expected))?;
    let found = found.map_or_else(|| "no onset".to_owned(), |tick| format!("tick {tick}"));
    Some(Failure::new(Code::E0510, format!("expected the onset at tick {expected}, found {found}")))
}

/// Writes the answer into the casebook.
fn record(global: &Global, trace: &Trace, shown: &BisectShown<'_>) -> Result<Vec<Record>> {
    let mut answer = shown.casebook_object();
    let chain = answer.remove("chain").filter(|chain| *chain != Value::Null);
    let report = &shown.answer.found.report;
    let found = Bisected {
        run: Place::of(trace, Some(report.high.0))?,
        onset: report.onset().map(|tick| Place::of(trace, Some(tick))).transpose()?,
        answer: Value::Object(answer),
        chain,
    };
    context::write_down(global, |store, surroundings| casebook::record_bisect(store, &found, surroundings))
}

/// Finds where the run first differs from another, which may be in another place.
fn divergence(
    global: &Global,
    args: &Bisect,
    (source, rev, trace): (&Source, &Address, &Trace),
    (from, to): (u64, u64),
    other: &str,
    counter: Arc<AtomicU64>,
    out: &mut Out,
) -> Result<Asked> {
    let named = Address::parse(other)?;
    let elsewhere = (named.bundle != rev.bundle).then(|| context::sound(global, &named, out)).transpose()?;
    let place = elsewhere.as_ref().unwrap_or(source);
    let named = named.resolve(place.store())?;
    if named.pos.is_some() {
        return Err(Failure::new(Code::E0106, "--divergence takes a run, and this is a place in one")
            .note("RUN@TICK ends the run that is asked about, and --to as well"));
    }
    let counted = Watch::counting(counter).over(place.store());
    let other = Trace::open(&counted, &named.run_in(place.store(), place.named())?)?;
    let asked = DiffQuestion {
        ends: (to, other.tip()),
        from: args.from.is_some().then_some(from),
        align: args.align.map_or(DiffAlign::Tick, AlignChoice::align),
        ignore: args.ignore.iter().map(|text| ignored_place(text)).collect::<Result<_>>()?,
        ..DiffQuestion::new(trace, &other)
    };
    Ok(Asked { question: dendrer::bisect::divergence(trace, &other, asked)?, named: None })
}

/// Reads the predicates of a file.
fn all_of(path: &str, trace: &Trace) -> Result<Vec<Predicate>> {
    let predicates = of_file(path, trace)?;
    if predicates.is_empty() {
        return Err(Failure::new(Code::E0512, format!("{path} has no predicates")));
    }
    Ok(predicates)
}

/// Makes a predicate of each expression that must be true.
fn all_hold(texts: &[String], side: Option<WindowChoice>, trace: &Trace) -> Result<Vec<Predicate>> {
    let made = texts.iter().map(|text| {
        let failure = |error| Failure::from(error).at("expression", text.as_str());
        let made = NamedPredicate::plain(expression(trace, Polarity::Holds, text).map_err(failure)?);
        Ok(made.at_window(side.map(window)).map_err(not_named)?.predicate)
    });
    made.collect()
}

/// Finds or makes the question.
fn question(subject: Subject<'_>, side: Option<WindowChoice>, trace: &Trace) -> Result<Asked> {
    let named = match subject {
        Subject::PolicyFlip(about) => {
            let about: TypeName = about.parse().map_err(|_| {
                Failure::new(Code::E0210, format!("\"{about}\" is not a transition type"))
                    .note("types are lower-case words joined by dots, like action.request")
            })?;
            return Ok(Asked { question: BisectQuestion::PolicyFlip(about), named: None });
        }
        Subject::Anomaly(kind) => anomaly(trace, kind)?,
        Subject::Holds(text) => NamedPredicate::plain(expression(trace, Polarity::Holds, text)?),
        Subject::Predicate(text) => resolve(trace, text).map_err(not_named)?,
    };
    let named = named.at_window(side.map(window)).map_err(not_named)?;
    Ok(Asked { question: BisectQuestion::Predicate(named.predicate.clone()), named: Some(named) })
}

/// Reports why the onset cannot be relied on.
fn refusal(command: &BisectCommand, trace: &Trace, answer: &BisectAnswer) -> Option<Failure> {
    let BisectFound { question, report, .. } = &answer.found;
    match &report.outcome {
        BisectOutcome::Recovers(turns) => {
            let turns: Vec<String> =
                turns.iter().map(|(tick, verdict)| format!("tick {tick} {verdict}")).collect();
            let failure = Failure::new(Code::E0504, "refusing to bisect with a predicate that can recover")
                .at("turns", list(&turns, 8).unwrap_or_default())
                .note("a wrong tick would look exactly like a right one");
            let [flag @ ("--holds" | "--predicate"), text] =
                command.question.iter().take(2).map(String::as_str).collect::<Vec<_>>()[..]
            else {
                return Some(failure);
            };
            let mut test = vec!["dendrer", "predicate", "test", text, &command.run];
            test.extend((flag == "--holds").then_some("--holds"));
            Some(failure.help(&["dendrer", "bisect", &command.run, flag, text, "--lift"]).help(&test))
        }
        BisectOutcome::Uncertain(tick, why) => {
            let what = format!("the predicate cannot be judged at tick {tick} of {}", trace.name());
            let failure = Failure::new(Code::E0509, what)
                .at("why", reasons_list(why, &report.unjudged))
                .note("uncertain is never taken for ok");
            let failure = match report.first_certain {
                Some(certain) => failure.note(format!(
                    "the onset is between tick {tick} and tick {certain}, the first that is known to be violated"
                )),
                None => failure.note(format!("the onset is not known from tick {tick} on")),
            };
            Some(match question.predicate() {
                Some(predicate) => with_hint(failure, trace, predicate, why),
                None => failure,
            })
        }
        _ => None,
    }
}
