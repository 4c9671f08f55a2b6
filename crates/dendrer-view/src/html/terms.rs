//! Parts that a file shows of its bundle.

use dendrer::address::Position;
use dendrer_object::RunName;

/// The name of the file in the commands that the page shows: the same whatever the reader calls it.
pub const FILE: &str = "FILE.html";
/// The size of a file at most if no other is given.
pub const MAX_BYTES: u64 = 20_000_000;

/// Parts that a file shows of its bundle.
#[derive(Debug, Clone)]
pub struct HtmlTerms {
    /// The runs that are shown; the bundle has them.
    pub runs: Vec<RunName>,
    /// The run that each of them is compared with; the bundle has it.
    pub with: Option<RunName>,
    /// The ticks that are shown; all if not given.
    pub range: Option<(Position, Position)>,
    /// Expressions that must be true.
    pub holds: Vec<String>,
    /// Registered predicates.
    pub predicate: Vec<String>,
    /// The title; the names of the runs if not given.
    pub title: Option<String>,
    /// Whether the bundle is in the file.
    pub has_bundle: bool,
    /// The size of the file at most.
    pub max_bytes: u64,
}
