//! Why the causal graph of a run has no answer.

use dendrer_kernel::causal::CausalError;
use dendrer_object::{Code, Digest, RunName};

/// Why the causal graph of a run has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CausalRefused {
    /// An agent has no transition up to a tick.
    #[error("{agent} has no transition in {run} up to tick {tick}")]
    NoTransition {
        /// The run.
        run: RunName,
        /// The agent.
        agent: String,
        /// The tick.
        tick: u64,
    },
    /// The graph cannot be made.
    #[error(transparent)]
    Graph(#[from] CausalError),
    /// A line merges a record that is no transition of its run.
    #[error("merges {}: not a transition of {run}, and state of another run is not merged by a link", record.short())]
    OtherRun {
        /// The run.
        run: RunName,
        /// The record.
        record: Digest,
    },
    /// Agents of two runs have no graph together.
    #[error("{a} and {b} are two runs; agents of one run are compared")]
    TwoRuns {
        /// One run.
        a: RunName,
        /// The other.
        b: RunName,
    },
}

impl CausalRefused {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            CausalRefused::NoTransition { .. } => Code::E0102,
            CausalRefused::Graph(CausalError::Parent { .. }) => Code::E0301,
            CausalRefused::Graph(CausalError::TooManyAgents { .. }) => Code::E0601,
            CausalRefused::OtherRun { .. } => Code::E0209,
            CausalRefused::TwoRuns { .. } => Code::E0106,
        }
    }
}
