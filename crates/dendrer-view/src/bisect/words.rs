//! Words of answers to a bisect that more than one form of it has.

use dendrer::bisect::{BisectReport, BisectSubject};
use dendrer::diff::is_marker;
use dendrer::kernel::predicate::Monotone;

use crate::answer::{Line, Style};
use crate::certainty::reasons_words;
use crate::quote;

/// Writes why no answer is known: each reason with its ticks.
pub(super) fn unjudged_lines(report: &BisectReport) -> Vec<Line> {
    let line = |words: String| Line::styled(Style::Warn, format!("UNKNOWN    {}", quote::escape(&words)));
    reasons_words(&report.unjudged).into_iter().map(line).collect()
}

/// Writes why nothing was found.
pub(super) fn never_words(question: &BisectSubject, report: &BisectReport) -> String {
    let high = report.high.0;
    if let BisectSubject::Divergence(found) = question {
        let other = &found.from;
        return match &found.first {
            Some(pair) if pair.b.as_ref().is_some_and(is_marker) => {
                format!("no divergence up to tick {high}: after it {other} changes the state by a marker")
            }
            Some(pair) if pair.a.is_none() => {
                format!("no divergence: only {other} goes on after tick {high}")
            }
            _ => format!("no divergence: each transition up to tick {high} is what {other} has beside it"),
        };
    }
    if let BisectSubject::PolicyFlip(about) = question {
        return match report.allowed {
            Some(tick) => format!(
                "no violation: {about} was allowed at tick {tick}, and never denied or escalated after"
            ),
            None => format!("no violation: {about} was never allowed, so nothing flipped"),
        };
    }
    let why = match question.monotone() {
        _ if report.standing.is_some() => {
            return format!("no violation: nothing was missed up to tick {high}");
        }
        Monotone::ByConstruction => "the predicate cannot recover in between",
        Monotone::Lifted | Monotone::Unknown => "every tick that wrote what it reads was checked",
    };
    format!("no violation: tick {} and tick {high} are both compliant, and {why}", report.low.0)
}

/// Returns the name of a question, or the text of one that has none.
pub(super) fn label(question: &BisectSubject) -> String {
    match question.predicate() {
        Some(predicate) if predicate.name() == "expression" => {
            predicate.expr().map_or_else(|| question.name(), |expr| expr.text().to_owned())
        }
        _ => question.name(),
    }
}
