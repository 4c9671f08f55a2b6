//! `dendrer bisect`

use dendrer::Trace;
use dendrer::bisect::{Outcome, Query, Report, bisect};
use dendrer::kernel::Predicate;
use dendrer::kernel::predicate::{BUILT_IN, Monotone, Verdict};
use dendrer_object::Value;
use dendrer_view::bisect::{head_lines, probe_lines, to_json};
use dendrer_view::show::{Changed, changes};
use dendrer_view::{quote, thousands};

use crate::address::Rev;
use crate::args::{Bisect, Global};
use crate::failure::{Failure, Result};
use crate::open;
use crate::out::{Out, Style};

pub(crate) fn run(global: &Global, args: &Bisect, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.run)?;
    let source = open::source(global, &rev)?;
    let trace = source.trace(&rev)?;
    let predicate = predicate(args, &trace)?;
    let from = args.from.as_ref().map_or(Ok(0), |pos| pos.tick(&trace))?;
    let to = args.to.as_ref().or(rev.pos.as_ref()).map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
    if from > to {
        return Err(Failure::new("E0106", format!("--from tick {from} lies behind --to tick {to}")));
    }
    let query = Query { predicate: predicate.clone(), from, to, scan: args.scan };
    let report = bisect(&trace, &query)?;
    let refusal = refusal(args, &trace, &predicate, &report);
    if out.is_text() {
        text(args, &trace, &predicate, &report, out)?;
        if let Some(failure) = refusal {
            return Err(failure);
        }
    } else {
        let origin = onset(&report).map(|tick| origin_json(&trace, tick)).transpose()?;
        out.document(&to_json(trace.name().as_str(), &predicate, &report, origin))?;
        if let Some(failure) = refusal {
            return Ok(failure.exit());
        }
    }
    let found = onset(&report);
    if let Some(expected) = args.expect_onset {
        if found != Some(expected) {
            let found = found.map_or_else(|| "no onset".to_owned(), |tick| format!("tick {tick}"));
            let failure =
                Failure::new("E0510", format!("expected the onset at tick {expected}, found {found}"));
            return if out.is_text() { Err(failure) } else { Ok(failure.exit()) };
        }
        return Ok(0);
    }
    Ok(if found.is_some() { 0 } else { 1 })
}

fn onset(report: &Report) -> Option<u64> {
    match report.outcome {
        Outcome::Onset(tick) => Some(tick),
        Outcome::Initial => Some(report.low.0),
        _ => None,
    }
}

/// Finds or makes the predicate that was asked for.
fn predicate(args: &Bisect, trace: &Trace<'_>) -> Result<Predicate> {
    if let Some(kind) = &args.anomaly {
        return Ok(Predicate::anomaly(kind));
    }
    if let Some(text) = &args.holds {
        return Ok(Predicate::holds("expression", text)?);
    }
    let text = args.predicate.as_deref().unwrap_or_default();
    if let Some(built_in) = Predicate::built_in(text) {
        return Ok(built_in);
    }
    let pack = dendrer::pack::of_run(trace)?;
    if let Some(declared) = pack.as_ref().and_then(|pack| pack.predicate(text)) {
        return Ok(declared.clone());
    }
    let known: Vec<&str> =
        pack.iter().flat_map(|pack| &pack.predicates).map(|declared| declared.predicate.name()).collect();
    let known: Vec<&str> = BUILT_IN.iter().copied().chain(known).collect();
    // A dotted name that is not an expression over the state was meant as a name.
    let name_like = text.split('.').all(|word| {
        !word.is_empty()
            && word.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-' || c == b'/')
    });
    if name_like && text.contains('.') && !text.starts_with("state.") {
        let failure = Failure::new("E0511", format!("there is no predicate {text}"));
        return Err(match dendrer_object::text::nearest(text, known.iter().copied()) {
            Some(near) => failure.note(format!("did you mean {near}?")),
            None => {
                failure.note(format!("there are {}, or write an expression over state", known.join(" and ")))
            }
        });
    }
    Ok(Predicate::condition("expression", text)?)
}

/// What ends without an answer, and why.
fn refusal(args: &Bisect, trace: &Trace<'_>, predicate: &Predicate, report: &Report) -> Option<Failure> {
    match &report.outcome {
        Outcome::Recovers(turns) => {
            let turns: Vec<String> =
                turns.iter().take(8).map(|(tick, verdict)| format!("tick {tick} {verdict}")).collect();
            let failure = Failure::new("E0504", "refusing to bisect with a predicate that can recover")
                .at("turns", turns.join(", "))
                .note("a wrong tick would look exactly like a right one");
            Some(failure.help(&["dendrer", "bisect", &args.run, "--predicate", "kernel.anomaly_free"]))
        }
        Outcome::Uncertain(tick, why) => {
            let mut failure = Failure::new(
                "E0509",
                format!("the predicate cannot be judged at tick {tick} of {}", trace.name()),
            )
            .at("why", why.clone())
            .note("uncertain is never taken for ok");
            if let Some(path) = predicate.expr().read_set().first() {
                failure = failure.note(format!(
                    "say what a missing field means, like: has(state.{}) && ...",
                    path.dotted()
                ));
            }
            Some(failure)
        }
        _ => None,
    }
}

fn text(
    args: &Bisect,
    trace: &Trace<'_>,
    predicate: &Predicate,
    report: &Report,
    out: &mut Out,
) -> Result<()> {
    for line in head_lines(predicate, report) {
        out.line(line)?;
    }
    for line in probe_lines(report) {
        let style = if line.contains("  FAIL") { Style::Bad } else { Style::Good };
        let line = if line.starts_with("  ") { out.paint(style, &line) } else { line };
        out.line(line)?;
    }
    match &report.outcome {
        Outcome::Onset(tick) => origin(args, trace, *tick, out)?,
        Outcome::Initial => {
            out.line(format!(
                "ORIGIN (exact)  tick {}  the initial state of the range is in violation",
                report.low.0
            ))?;
            if report.low.0 == 0 {
                out.line("  no transition brought it about: the run began with it")?;
            }
        }
        Outcome::Never => {
            let why = match predicate.monotone() {
                Monotone::ByConstruction => "the predicate cannot recover in between".to_owned(),
                Monotone::Unknown => "every tick that wrote what it reads was checked".to_owned(),
            };
            out.line(format!(
                "no violation: tick {} and tick {} are both compliant, and {why}",
                report.low.0, report.high.0
            ))?;
        }
        Outcome::Recovers(turns) => {
            for (tick, verdict) in turns.iter().take(12) {
                let mark = if *verdict == Verdict::Violation {
                    "FAIL"
                } else {
                    "OK     <- recovered: binary search could return a wrong tick"
                };
                out.line(format!("  tick {tick}  {verdict}  {mark}"))?;
            }
            if turns.len() > 12 {
                out.line(format!("  ({} more turns)", turns.len() - 12))?;
            }
        }
        Outcome::Uncertain(..) => {}
    }
    if let Some(found) = report.scan {
        let word =
            found.map_or_else(|| "no violation".to_owned(), |tick| format!("first violation at tick {tick}"));
        out.line(format!("scan       {} ticks judged: {word}", thousands(report.high.0 - report.low.0 + 1)))?;
    }
    Ok(())
}

/// Prints the transition at the onset: what it said and what it wrote.
fn origin(args: &Bisect, trace: &Trace<'_>, tick: u64, out: &mut Out) -> Result<()> {
    let record = trace.record(tick)?;
    let content = record.content();
    let row = dendrer_view::log::row(&record);
    let title = out.paint(Style::Strong, &format!("ORIGIN (exact)  tick {tick}  {}", row.type_name));
    out.line(format!("{title}  by {}   hash {}", row.agent, record.id().short()))?;
    let at = |outer: &str, inner: &str| content.get(outer).and_then(|value| value.get(inner));
    if let Some(description) = at("intent", "description") {
        out.line(format!("  intent {}", quote::value(description)))?;
    }
    if let Some(confidence) = at("intent", "confidence").and_then(Value::as_f64) {
        out.line(format!("  confidence {confidence:.3}"))?;
    }
    if let Some(notes) = at("intent", "uncertainty_notes").filter(|notes| **notes != Value::Null) {
        out.line(format!("  uncertainty {}", quote::value(notes)))?;
    }
    for change in origin_changes(trace, tick)? {
        out.line(format!("  {}", change.line(out.width().map(|width| width / 3))))?;
    }
    if tick == 1 {
        out.line("  violated from the first commitment on: no state of this run is from before the problem")?;
    }
    out.say(format!("help: dendrer show {}@{tick}", args.run.split('@').next().unwrap_or(&args.run)));
    Ok(())
}

fn origin_changes(trace: &Trace<'_>, tick: u64) -> Result<Vec<Changed>> {
    let record = trace.record(tick)?;
    Ok(changes(&record, &trace.at(tick - 1)?.state, &trace.at(tick)?.state))
}

fn origin_json(trace: &Trace<'_>, tick: u64) -> Result<Value> {
    let record = trace.record(tick)?;
    let row = dendrer_view::log::row(&record).to_json(&record);
    let writes = if tick == 0 { Vec::new() } else { origin_changes(trace, tick)? };
    let mut origin = row.as_object().cloned().unwrap_or_default();
    origin.set("changes", Value::array(writes.iter().map(Changed::to_json)));
    Ok(Value::Object(origin))
}
