//! Names at the top of a state that belong to the kernel.
//!
//! No pack declares a field with one of these names, and no intent or reducer writes below it: a later writer could
//! otherwise change the kernel's own record of a run. Test `a_run_cannot_begin_with_what_only_the_kernel_writes`.

use dendrer_object::Pointer;

/// Members of the state that only the kernel writes (design, section 5).
pub const KERNEL_PATHS: [&str; 4] = ["kernel_anomalies", UNKNOWN, "policy", "progress"];

/// Member of the state that holds its unknown places ([`crate::unknown`]).
pub const UNKNOWN: &str = "kernel_unknown";

/// Name under which expressions read the derived counters. A member of the state with this name would make
/// `state.counters` ambiguous.
pub const COUNTERS: &str = "counters";

/// Members at the top of a state that need no declaration (design, section 5), [`COUNTERS`] among them.
pub const STATE_FIELDS: [&str; 9] = [
    "beliefs",
    "context_stack",
    COUNTERS,
    "goals",
    "kernel_anomalies",
    UNKNOWN,
    "memory",
    "policy",
    "progress",
];

/// Whether a path lies where only the kernel writes.
pub(crate) fn is_kernel_path(path: &Pointer) -> bool {
    path.tokens().next().is_some_and(|first| KERNEL_PATHS.contains(&&*first))
}

/// Whether a path lies where expressions read the derived counters.
pub(crate) fn is_counters_path(path: &Pointer) -> bool {
    path.tokens().next().is_some_and(|first| first == COUNTERS)
}

/// The kind of the note on what was committed though a rule could not be judged.
pub(crate) const CANNOT_BE_JUDGED: &str = "cannot_be_judged";

/// Name under which expressions read the statuses of commitments, unless the pack declares a field of this name.
pub(crate) const COMMITMENTS: &str = "commitments";

/// The member of the served counters that holds these statuses. No expression can name it.
pub(crate) const SERVED_COMMITMENTS: &str = "\0commitments";
