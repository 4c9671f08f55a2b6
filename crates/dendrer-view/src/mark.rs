//! Words for the mark of a backup, in a backup and in a store.

use dendrer_object::Code;
use std::path::Path;

use dendrer::care::{HiddenLog, mark_places};
use dendrer::store::Mark;

use crate::count;
use crate::problem::Problem;

const FILE: &str = "backup.json";

/// Says which records a mark in a store hides, if it hides any.
pub fn hides(mark: &Mark) -> Option<String> {
    mark.hides().then(|| {
        format!(
            "the mark of a backup ({FILE}) ends the log at {}, and {} of it stand behind that",
            count(mark.size, "record", "records"),
            count(mark.behind, "byte", "bytes")
        )
    })
}

/// Says that a mark in a store hides nothing.
pub(crate) const CLOSED: &str =
    "a backup is in the place of a store (backup.json), and nothing is written to it";

/// Says that a mark in a store hides nothing, if that is so.
pub fn closes(mark: &Mark) -> Option<String> {
    (mark.in_store && mark.behind == 0).then(|| CLOSED.to_owned())
}

/// Returns that the log of a backup continues after its end; `None` if it does not.
pub fn unfinished(mark: &Mark) -> Option<String> {
    (!mark.in_store && mark.behind > 0).then(|| {
        format!(
            "{} behind the end of this backup, which nobody reads: a later one was cut off, or it is a store and {FILE} does not belong there",
            count(mark.behind, "byte", "bytes")
        )
    })
}

/// Returns the command that takes the mark out of a directory.
pub fn unmark(dir: &Path) -> [String; 3] {
    let [from, to] = mark_places(dir).map(|path| path.display().to_string());
    ["mv".to_owned(), from, to]
}

/// Adds to a problem the command that takes the mark out of the store that it met.
pub fn explain(problem: Problem, dir: &Path) -> Problem {
    problem
        .note(format!("with {FILE} out of the way it is a store again, with all of its records; dendrer fsck looks at them"))
        .help(&unmark(dir).each_ref().map(String::as_str))
}

/// Returns the problem of a log that a mark cuts short; `nothing` is the note on what was not done.
pub(crate) fn problem(code: Code, hidden: &HiddenLog, nothing: &str) -> Problem {
    let why = hides(&hidden.mark).unwrap_or_default();
    let message = format!("{}: {why}", hidden.dir.display());
    explain(Problem::new(code, message).note(nothing), &hidden.dir)
}
