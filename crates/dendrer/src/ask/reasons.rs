//! The reasons why ticks cannot be judged, in words.

use dendrer_kernel::predicate::Verdict;

use crate::run::timeline::Interval;

/// Names the ticks of a stretch: `tick 3`, or `ticks 3..5`.
pub fn ticks_words(from: u64, to: u64) -> String {
    if from == to { format!("tick {from}") } else { format!("ticks {from}..{to}") }
}

/// Writes why ticks cannot be judged, one reason a text: `ticks 3..5: state.a.x is missing`. The caller escapes them.
pub fn reasons_words(reasons: &[Interval]) -> Vec<String> {
    let words = |one: &Interval| match &one.verdict {
        Verdict::Uncertain(why) => Some(format!("{}: {}", ticks_words(one.from, one.to), why)),
        _ => None,
    };
    reasons.iter().filter_map(words).collect()
}

/// How many reasons are written in one line at most.
const REASONS_MAX: usize = 8;

/// Writes why ticks cannot be judged, in one line. The caller escapes it.
pub fn reasons_line(reasons: &[Interval]) -> String {
    let words = reasons_words(reasons);
    let more = words.len().saturating_sub(REASONS_MAX);
    let shown = words[..words.len() - more].join("; ");
    if more == 0 { shown } else { format!("{shown}; and {more} more reasons") }
}

/// As [`reasons_line`], where a single reason is written without its ticks.
pub fn reasons_list(first: &str, reasons: &[Interval]) -> String {
    if reasons_words(reasons).len() > 1 { reasons_line(reasons) } else { first.to_owned() }
}
