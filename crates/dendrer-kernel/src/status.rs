//! Words of a `status` (design, section 9).

/// Words that say that a call was answered, in lower case.
const OK: &[&str] = &["ok", "success", "succeeded", "successful", "completed", "complete", "done", "passed"];

/// Words that say that it failed.
const FAILED: &[&str] = &[
    "error",
    "errored",
    "failed",
    "failure",
    "fail",
    "timeout",
    "timed_out",
    "cancelled",
    "canceled",
    "aborted",
    "denied",
    "rejected",
    "exception",
    "incomplete",
];

/// Whether a status says that a call failed; false if it is in no list, so that no failure is made up.
pub fn is_failed(word: &str) -> bool {
    is_failure(word) == Some(true)
}

/// Whether a status says that a call failed; `None` if it is in no list.
pub fn is_failure(word: &str) -> Option<bool> {
    let is_in = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
    match (is_in(OK), is_in(FAILED)) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    }
}
