//! A bisect report as lines and as a document.

use dendrer::bisect::{Outcome, Probe, Report};
use dendrer::kernel::predicate::{Monotone, Predicate, Verdict, Window};
use dendrer_object::Value;

use crate::{EXACT, count, document, quote};

/// The word for a verdict, and the mark beside it.
fn words(verdict: &Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Ok => ("compliant", "OK"),
        Verdict::Violation => ("violation", "FAIL"),
        Verdict::Uncertain(_) => ("uncertain", "SKIP"),
    }
}

/// Writes what is asked: the predicate, how it is known to be pure and monotone, and its polarity.
pub fn head_lines(predicate: &Predicate, report: &Report) -> Vec<String> {
    let monotone = match (predicate.monotone(), report.candidates) {
        (Monotone::ByConstruction, _) => "by construction".to_owned(),
        (Monotone::Unknown, Some(candidates)) => {
            format!(
                "on this run ({} checked for recovery)",
                count(candidates, "candidate tick", "candidate ticks")
            )
        }
        (Monotone::Unknown, None) => "not known".to_owned(),
    };
    let window = match predicate.window() {
        Window::Before => "before",
        Window::After => "after",
    };
    let digest = predicate.digest();
    vec![
        format!(
            "predicate  {} {}   pure: by construction   monotone: {monotone}   window: {window}",
            quote::escape(predicate.name()),
            predicate.version()
        ),
        format!("           {}   digest {}", quote::escape(&predicate.words()), digest.short()),
        format!("ends       {}      {}", end(&report.low), end(&report.high)),
    ]
}

fn end((tick, verdict): &(u64, Verdict)) -> String {
    let (word, mark) = words(verdict);
    format!("tick {tick} {word} {mark}")
}

/// Writes the probes, one a line, each with what is left afterwards.
pub fn probe_lines(report: &Report) -> Vec<String> {
    if report.probes.is_empty() {
        return Vec::new();
    }
    let range = report.high.0 - report.low.0;
    let mut lines = vec![format!(
        "search     {}, at most {}",
        count(range, "tick", "ticks"),
        count(u64::from(report.probes_max), "probe", "probes")
    )];
    let width = report.high.0.to_string().len();
    for (at, probe) in report.probes.iter().enumerate() {
        let (word, mark) = words(&probe.verdict);
        let left = match probe.left {
            (a, b) if a == b => format!("left {a}"),
            (a, b) => format!("left {a}..{b}"),
        };
        lines.push(format!(
            "  {}/{}  tick {:>width$}  {word}  {mark:<4}    {left}",
            at + 1,
            report.probes_max,
            probe.tick
        ));
    }
    lines
}

/// Returns the report as `dendrer.bisect/1`. `origin` is the transition at the onset, where there is one.
pub fn to_json(run: &str, predicate: &Predicate, report: &Report, origin: Option<Value>) -> Value {
    let verdict = |verdict: &Verdict| match verdict {
        Verdict::Uncertain(why) => {
            Value::record([("verdict", Value::from("uncertain")), ("why", Value::from(why.as_str()))])
        }
        other => Value::record([("verdict", Value::from(other.to_string()))]),
    };
    let at = |tick: u64, found: &Verdict| {
        let mut object = verdict(found).as_object().cloned().unwrap_or_default();
        object.set("tick", Value::from(tick));
        Value::Object(object)
    };
    let (outcome, onset, ticks) = match &report.outcome {
        Outcome::Onset(tick) => ("onset", Some(*tick), Value::Null),
        Outcome::Never => ("never", None, Value::Null),
        Outcome::Initial => ("initial", Some(report.low.0), Value::Null),
        Outcome::Recovers(turns) => {
            ("recovers", None, Value::array(turns.iter().map(|(tick, verdict)| at(*tick, verdict))))
        }
        Outcome::Uncertain(tick, why) => {
            ("uncertain", None, Value::array([at(*tick, &Verdict::Uncertain(why.clone()))]))
        }
    };
    let probe = |probe: &Probe| {
        let mut object = at(probe.tick, &probe.verdict).as_object().cloned().unwrap_or_default();
        object.set("left", Value::array([Value::from(probe.left.0), Value::from(probe.left.1)]));
        Value::Object(object)
    };
    let exact = matches!(report.outcome, Outcome::Onset(_) | Outcome::Never | Outcome::Initial);
    document(
        "bisect",
        [
            ("run", Value::from(run)),
            (
                "predicate",
                Value::record([
                    ("name", Value::from(predicate.name())),
                    ("version", Value::from(predicate.version())),
                    ("words", Value::from(predicate.words())),
                    ("digest", Value::from(predicate.digest())),
                    (
                        "monotone",
                        Value::from(match predicate.monotone() {
                            Monotone::ByConstruction => "by construction",
                            Monotone::Unknown => "checked on this run",
                        }),
                    ),
                ]),
            ),
            ("outcome", Value::from(outcome)),
            ("onset", Value::from(onset)),
            ("certainty", Value::from(if exact { EXACT } else { "unavailable" })),
            ("ends", Value::array([at(report.low.0, &report.low.1), at(report.high.0, &report.high.1)])),
            ("items", Value::array(report.probes.iter().map(probe))),
            ("probes_max", Value::from(u64::from(report.probes_max))),
            ("candidates", Value::from(report.candidates)),
            ("scan_onset", report.scan.map_or(Value::Null, Value::from)),
            ("ticks", ticks),
            ("origin", Value::from(origin)),
        ],
    )
}
