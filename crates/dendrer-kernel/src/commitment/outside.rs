//! Why a call is outside of the contract of a delegated run.

use std::sync::Arc;

use dendrer_object::Value;

use crate::sealed::fact;

/// Why a call is outside of the contract of a delegated run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScopeFault {
    /// The tool is not allowed.
    Tool {
        /// The tool.
        tool: Arc<str>,
    },
    /// A file that it names is not allowed, or is no plain path.
    File {
        /// The tool.
        tool: Arc<str>,
        /// The place in the call, as a JSON pointer.
        at: Arc<str>,
        /// The path; empty for a value that is no text.
        file: Arc<str>,
    },
    /// Files are limited, and it shows none.
    NoFile {
        /// The tool.
        tool: Arc<str>,
    },
    /// The contract ended.
    Ended {
        /// The `deleg` of the parent.
        delegation: Arc<str>,
        /// How: a status, `over`, `missing` or `unreadable`.
        how: Arc<str>,
        /// The parent.
        run: Arc<str>,
        /// The tick of the parent, if one decided it.
        tick: Option<u64>,
    },
    /// The budget is used up.
    Budget {
        /// The `deleg` of the parent.
        delegation: Arc<str>,
        /// The use and the limit, by the unit that is counted.
        budget: Value,
    },
}

impl ScopeFault {
    /// The contract that it is about, if it is not the one of the run itself.
    pub(super) fn delegation(&self) -> Option<&Arc<str>> {
        match self {
            ScopeFault::Ended { delegation, .. } | ScopeFault::Budget { delegation, .. } => Some(delegation),
            _ => None,
        }
    }

    /// Whether the fault applies to every call, with any tool.
    pub(super) fn is_general(&self) -> bool {
        matches!(self, ScopeFault::Ended { .. } | ScopeFault::Budget { .. })
    }

    /// Returns what is put on record of it ([`crate::sealed`]).
    pub(crate) fn sealed(&self) -> Value {
        let text = |text: &Arc<str>| Value::String(Arc::clone(text));
        match self {
            ScopeFault::Tool { tool } => fact("scope_tool", [("tool", text(tool))]),
            ScopeFault::File { tool, at, file } => {
                fact("scope_file", [("at", text(at)), ("file", text(file)), ("tool", text(tool))])
            }
            ScopeFault::NoFile { tool } => fact("scope_no_file", [("tool", text(tool))]),
            ScopeFault::Ended { how, run, tick, .. } => {
                let cause = match &**how {
                    "over" => "contract_over",
                    "missing" | "unreadable" => "contract_unreadable",
                    _ => "contract_ended",
                };
                let tick = tick.map(|tick| ("tick", Value::from(tick)));
                fact(cause, [("how", text(how)), ("run", text(run))].into_iter().chain(tick))
            }
            ScopeFault::Budget { budget, .. } => fact("contract_budget", [("budget", budget.clone())]),
        }
    }
}
