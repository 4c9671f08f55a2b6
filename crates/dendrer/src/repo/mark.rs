//! Words for the mark of a backup, in a backup and in a store.

use dendrer_object::text::thousands;
use dendrer_store::Mark;

/// The file that marks a directory as a backup.
pub(crate) const MARK_FILE: &str = "backup.json";

/// What is said of a mark in a store that hides nothing.
pub const CLOSED: &str = "a backup is in the place of a store (backup.json), and nothing is written to it";

/// Says which records a mark in a store hides, if it hides any.
pub fn hides(mark: &Mark) -> Option<String> {
    mark.hides().then(|| {
        format!(
            "the mark of a backup ({MARK_FILE}) ends the log at {}, and {} of it stand behind that",
            count(mark.size, "record"),
            count(mark.behind, "byte")
        )
    })
}

/// Says that a mark in a store hides nothing, if that is so.
pub fn closes(mark: &Mark) -> Option<String> {
    (mark.in_store && mark.behind == 0).then(|| CLOSED.to_owned())
}

/// Returns the warning that the log of a backup continues after its end, if it does.
pub fn unfinished(mark: &Mark) -> Option<String> {
    (!mark.in_store && mark.behind > 0).then(|| {
        format!(
            "{} behind the end of this backup, which nobody reads: a later one was cut off, or it is a store and {MARK_FILE} does not belong there",
            count(mark.behind, "byte")
        )
    })
}

fn count(number: u64, unit: &str) -> String {
    format!("{} {unit}{}", thousands(number), if number == 1 { "" } else { "s" })
}
