//! `dendrer bisect --regression`: where a score fell, beside what the invariants say (dendrer paper, appendix D).

use dendrer::Trace;
use dendrer::bisect::{Outcome, Question, Range, Report};
use dendrer::kernel::predicate::Predicate;
use dendrer::progress::{Metric, Regression, regression};
use dendrer_object::Value;
use dendrer_object::text::nearest;
use dendrer_view::bisect::{evaluation_json, evaluation_words, head_lines};
use dendrer_view::quote;

use super::args::Bisect;
use super::ask;
use super::exit;
use super::origin;
use super::probes;
use super::report_json;
use crate::failure::Failure;
use crate::failure::Result;
use crate::out::Out;
use crate::out::Style;
use crate::progress::Progress;

/// The invariant that is asked beside every score, and that is right where they differ.
const INVARIANT: &str = "kernel.anomaly_free";

const HEURISTIC: &str =
    "HEURISTIC  a score says how far along a run seems to be; nothing that is called exact rests on it";

pub(super) fn run(
    args: &Bisect,
    trace: &Trace,
    name: &str,
    range: &Range,
    progress: Progress,
    out: &mut Out,
) -> Result {
    let Some(pack) = dendrer::pack::of_run(trace)? else {
        let message = format!("{} carries no pack, so nothing of it is scored", trace.name());
        return Err(without(args, Failure::new("E0515", message)));
    };
    let Some(metric) = Metric::find(&pack, name) else {
        let names = Metric::names(&pack);
        let failure = Failure::new("E0515", format!("the pack {} declares no score {name}", pack.name));
        let failure = match (nearest(name, names.iter().map(String::as_str)), names.is_empty()) {
            (Some(near), _) => failure.note(format!("did you mean {near}?")),
            (None, true) => failure.note("it declares none at all"),
            (None, false) => failure.note(format!("there are {}", names.join(", "))),
        };
        return Err(without(args, failure));
    };
    let invariant = Predicate::built_in(INVARIANT).expect("it is built in");
    let questions = [regression(trace, &pack, &metric, range)?, Question::Predicate(invariant)];
    let mut reports = ask(trace, &questions, range)?.into_iter();
    let [report, beside] = [reports.next(), reports.next()].map(|report| report.expect("one for each"));
    drop(progress);
    let [question @ Question::Regression(found), _] = &questions else { unreachable!("as it was made") };
    let agree = report.onset() == beside.onset() && !matches!(report.outcome, Outcome::Uncertain(..));
    // What is exact takes precedence: by it go the exit code, and whoever expects an onset.
    let decisive = if agree { &report } else { &beside };
    if out.is_text() {
        text(args, trace, question, found, &report, &beside, agree, out)?;
    } else {
        let document = report_json(trace, question, &report)?;
        let mut document = document.as_object().cloned().unwrap_or_default();
        if !matches!(report.outcome, Outcome::Uncertain(..)) {
            document.set("certainty", Value::from("heuristic"));
        }
        document.set("onset", Value::from(decisive.onset()));
        let ends = [(range.from, &found.first), (range.to, &found.last)];
        let fell = found.fell.as_ref().map(|fell| (fell.tick, &fell.said));
        let said = ends.into_iter().chain(fell).map(|(tick, said)| evaluation_json(tick, said));
        document.set("evaluations", Value::array(said));
        document.set("regression", json(found, &report, &beside, agree));
        out.document(&Value::Object(document))?;
    }
    if let Some(expected) = args.expect_onset {
        if decisive.onset() == Some(expected) {
            return Ok(0);
        }
        let onset = decisive.onset().map_or_else(|| "no onset".to_owned(), |tick| format!("tick {tick}"));
        let failure = Failure::new("E0510", format!("expected the onset at tick {expected}, found {onset}"));
        return if out.is_text() { Err(failure) } else { Ok(failure.exit()) };
    }
    match &report.outcome {
        Outcome::Uncertain(tick, why) if out.is_text() => {
            Err(Failure::new("E0509", format!("{name} cannot be said at tick {tick} of {}", trace.name()))
                .at("why", why.clone())
                .note(format!("what is sound is what {INVARIANT} says above")))
        }
        _ => Ok(exit(decisive)),
    }
}

/// Offers the question that needs no score.
fn without(args: &Bisect, failure: Failure) -> Failure {
    failure.help(&["dendrer", "bisect", &args.run, "--predicate", INVARIANT])
}

#[expect(clippy::too_many_arguments, reason = "each is a part of one answer")]
fn text(
    args: &Bisect,
    trace: &Trace,
    question: &Question,
    found: &Regression,
    report: &Report,
    beside: &Report,
    agree: bool,
    out: &mut Out,
) -> Result<()> {
    let heuristic = out.paint(Style::Warn, HEURISTIC);
    out.line(heuristic)?;
    for line in head_lines(question, report) {
        out.line(line)?;
    }
    for (tick, said) in [(report.low.0, &found.first), (report.high.0, &found.last)] {
        out.line(format!("evaluated  tick {tick}  {}", evaluation_words(said)))?;
    }
    probes(report, out)?;
    match (&found.fell, &report.outcome) {
        (_, Outcome::Uncertain(tick, why)) => {
            out.line(format!(
                "UNKNOWN    {} cannot be said at tick {tick}: {}",
                found.metric,
                quote::escape(why)
            ))?;
        }
        (Some(fell), _) => {
            if fell.tick > 0 {
                origin(trace, fell.tick, "heuristic", out)?;
            }
            let best = found
                .best
                .map_or_else(String::new, |(score, tick)| format!("{score:.3} at tick {tick}, then "));
            out.line(format!("  {}  {best}{}", found.metric, evaluation_words(&fell.said)))?;
        }
        (None, _) => {
            out.line(format!("no regression: {} never fell up to tick {}", found.metric, report.high.0))?
        }
    }
    let invariant = match (&beside.outcome, beside.onset()) {
        (_, Some(tick)) => format!("first violated at tick {tick} (exact)"),
        (Outcome::Initial, None) => format!("in violation already at tick {} (exact)", beside.low.0),
        (Outcome::Uncertain(tick, why), _) => {
            format!("cannot be judged at tick {tick}: {}", quote::escape(why))
        }
        _ => "not violated (exact)".to_owned(),
    };
    out.line(format!("INVARIANT  {INVARIANT} v1: {invariant}"))?;
    if agree {
        out.line("AGREE      the score and the invariant name the same tick, or neither names one")?;
    } else {
        let line = match beside.onset() {
            Some(tick) => format!("the invariant result takes precedence: the onset is tick {tick}"),
            None => "the invariant result takes precedence: no onset; a score that fell is a hint".to_owned(),
        };
        let line = out.paint(Style::Warn, &format!("DISAGREE   {line}"));
        out.line(line)?;
    }
    if beside.onset().is_some() {
        out.help(&["dendrer", "bisect", &args.run, "--predicate", INVARIANT]);
    }
    Ok(())
}

fn json(found: &Regression, report: &Report, beside: &Report, agree: bool) -> Value {
    let outcome = match &beside.outcome {
        Outcome::Onset(_) => "onset",
        Outcome::Never => "never",
        Outcome::Initial => "initial",
        Outcome::Recovers(_) | Outcome::Uncertain(..) => "uncertain",
    };
    Value::record([
        ("metric", Value::from(found.metric.as_str())),
        ("tolerance", Value::from(found.tolerance)),
        ("best", Value::from(found.best.map(|(score, _)| score))),
        ("best_tick", Value::from(found.best.map(|(_, tick)| tick))),
        ("invariant", Value::from(INVARIANT)),
        ("invariant_outcome", Value::from(outcome)),
        ("invariant_onset", Value::from(beside.onset())),
        ("agree", Value::from(agree)),
        ("score_onset", Value::from(report.onset())),
        ("takes_precedence", Value::from(INVARIANT)),
    ])
}
