//! Why a delegation cannot be made or decided.

use std::sync::Arc;

use dendrer_kernel::commitment::CommitmentFault;
use dendrer_object::{Code, RunName};

/// Why a delegation cannot be made or decided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DelegationError {
    /// The run has no contract.
    #[error("{0} is not delegated: its `run` record has no contract")]
    NotDelegated(RunName),
    /// The goal of the scope is no commitment of the parent.
    #[error("{run} has no goal {goal}")]
    NoGoal {
        /// The parent.
        run: RunName,
        /// The id.
        goal: String,
    },
    /// It would let the child do what its parent may not.
    #[error("{run} may not use {what} itself, so it cannot delegate it")]
    OutsideScope {
        /// The parent.
        run: RunName,
        /// The tool, or the pattern of files.
        what: Arc<str>,
    },
    /// A member of the scope does not fit the pack of the parent.
    #[error("the scope{}: {}", .0.path, .0.message)]
    Scope(CommitmentFault),
    /// The id of the delegation is used in the parent, for something else.
    #[error("{run} has another commitment {id}; a delegation has an id of its own")]
    IdUsed {
        /// The parent.
        run: RunName,
        /// The id.
        id: Arc<str>,
    },
}

impl DelegationError {
    /// The code under which `dendrer explain` knows it.
    pub fn code(&self) -> Code {
        match self {
            DelegationError::NoGoal { .. } => Code::E0101,
            DelegationError::Scope(fault) => fault.code,
            DelegationError::OutsideScope { .. } => Code::E0452,
            DelegationError::NotDelegated(_) | DelegationError::IdUsed { .. } => Code::E0106,
        }
    }
}
