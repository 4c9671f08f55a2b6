//! Words for verdicts, and short lists.

use dendrer::kernel::predicate::Verdict;

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
