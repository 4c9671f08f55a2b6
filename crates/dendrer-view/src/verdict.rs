//! Words for verdicts, and short lists.

use dendrer::bisect::BisectSubject;
use dendrer::kernel::predicate::{Monotone, Verdict};
use dendrer::timeline::{Interval, Timeline};
use dendrer_object::document::{Shape, one_of};
pub use dendrer_object::text::list;
use dendrer_object::{Digest, Value, document};

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

/// A verdict as a document has it: a word.
#[derive(Debug, Clone, Copy)]
pub struct VerdictWord<'v>(pub &'v Verdict);

impl Shape for VerdictWord<'_> {
    fn schema() -> Value {
        one_of(&["ok", "violation", "uncertain"])
    }

    fn to_value(&self) -> Value {
        Value::from(word(self.0))
    }
}

/// A stretch of ticks with one verdict, as `[from, to, word]`.
pub type Stretch<'v> = (u64, u64, VerdictWord<'v>);

/// Returns stretches for a document.
pub fn stretches(intervals: &[Interval]) -> Vec<Stretch<'_>> {
    intervals.iter().map(|one| (one.from, one.to, VerdictWord(&one.verdict))).collect()
}

document! {
    /// A verdict at a tick
    pub object TickVerdict(at: u64, judged: &Verdict) {
        /// The tick
        tick: u64 = at,
        /// The verdict
        verdict: VerdictWord<'_> = VerdictWord(judged),
        /// The reason why the tick cannot be judged
        why?: &str = uncertain(judged),
    }

    /// The question that was asked of a run
    pub object AskedObject(question: &BisectSubject) {
        /// The name of the predicate, or of the kind of question
        name: String = question.name(),
        /// The version of the predicate
        version: &str = question.version(),
        /// The question in words
        words: String = question.words(),
        /// The digest of the question
        digest: Digest = question.digest(),
        /// The evidence that the predicate stays violated once it is
        monotone: &str = match question.monotone() {
            Monotone::ByConstruction => "by construction",
            Monotone::Lifted => "lifted",
            Monotone::Unknown => "checked on this run",
        },
    }
}

/// Returns the reason of a verdict that is uncertain.
pub fn uncertain(verdict: &Verdict) -> Option<&str> {
    match verdict {
        Verdict::Uncertain(why) => Some(why),
        _ => None,
    }
}
