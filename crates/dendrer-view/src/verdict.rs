//! Words for verdicts, and short lists.

use dendrer::bisect::BisectQuestion;
use dendrer::kernel::predicate::{Monotone, Verdict};
use dendrer::timeline::{Interval, Timeline};
use dendrer_object::Value;

/// The word for a verdict, and the mark beside it.
pub fn words(verdict: &Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Ok => ("compliant", "OK"),
        Verdict::Violation => ("violation", "FAIL"),
        Verdict::Uncertain(_) => ("uncertain", "SKIP"),
    }
}

/// The word for a verdict in documents.
pub fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Violation => "violation",
        Verdict::Uncertain(_) => "uncertain",
    }
}

/// Writes the first so many of a list, and how many more there are.
pub fn list(items: &[String], most: usize) -> Option<String> {
    let more = items.len().saturating_sub(most);
    let shown = items[..items.len() - more].join(", ");
    match (items.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(shown),
        (false, more) => Some(format!("{shown} and {more} more")),
    }
}

/// Sums the verdicts of a range up: the first violation, and what cannot be judged.
pub fn sum_up(line: &Timeline) -> String {
    let intervals = line.intervals();
    let unknown = intervals.iter().filter(|interval| matches!(interval.verdict, Verdict::Uncertain(_)));
    let unknown: Vec<String> = unknown
        .map(
            |&Interval { from, to, .. }| {
                if from == to { from.to_string() } else { format!("{from} to {to}") }
            },
        )
        .collect();
    let word = if unknown.len() == 1 && !unknown[0].contains(' ') { "tick" } else { "ticks" };
    let unknown = list(&unknown, 8).map(|ticks| format!("uncertain at {word} {ticks}"));
    match (line.onset(), unknown) {
        (Some(0), None) => "first violated at tick 0 (the initial state)".to_owned(),
        (Some(tick), None) => format!("first violated at tick {tick}"),
        (Some(tick), Some(unknown)) if line.may_hide_onset() => {
            format!("violated at tick {tick}, and perhaps before; {unknown}")
        }
        (Some(tick), Some(unknown)) => format!("first violated at tick {tick}; {unknown}"),
        (None, None) => "never violated".to_owned(),
        (None, Some(unknown)) => format!("not violated where it can be judged; {unknown}"),
    }
}

/// Returns the stretches as `[from, to, word]`.
pub fn intervals_json(intervals: &[Interval]) -> Value {
    Value::array(intervals.iter().map(|Interval { from, to, verdict }| {
        Value::array([Value::from(*from), Value::from(*to), Value::from(word(verdict))])
    }))
}

/// Returns what identifies a question.
pub fn question_json(question: &BisectQuestion) -> Value {
    Value::record([
        ("name", Value::from(question.name())),
        ("version", Value::from(question.version())),
        ("words", Value::from(question.words())),
        ("digest", Value::from(question.digest())),
        (
            "monotone",
            Value::from(match question.monotone() {
                Monotone::ByConstruction => "by construction",
                Monotone::Lifted => "lifted",
                Monotone::Unknown => "checked on this run",
            }),
        ),
    ])
}
