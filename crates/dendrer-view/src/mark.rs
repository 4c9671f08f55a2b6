//! Words for the mark of a backup, in a backup and in a store.

use dendrer_object::Code;
use std::path::Path;

pub(crate) use dendrer::care::mark::CLOSED;
pub use dendrer::care::mark::{closes, hides, unfinished};
use dendrer::care::{HiddenLog, mark_places};

use crate::problem::Problem;

const FILE: &str = "backup.json";

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
