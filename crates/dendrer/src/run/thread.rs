//! Names in the runs of threads of checkpoints, by which other rooms know such a run.

/// The agent of the transitions of a thread.
pub(crate) const AGENT: &str = "langgraph";

/// The member of a run's `meta` with the thread that it is of.
pub(crate) const THREAD: &str = "thread_id";

/// The beginning of the name of a run whose thread has a name that no run can have.
pub(crate) const NAMED_BY_DIGEST: &str = "lg-";
