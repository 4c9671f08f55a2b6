//! Why a text is no address, no range or no path.

use dendrer_object::pointer::PointerError;
use dendrer_object::text::count;
use dendrer_object::{Code, RunName};

/// Why a text is no address, no range or no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// A text is no address.
    #[error("\"{0}\" is not an address")]
    NotAnAddress(String),
    /// A text names an agent, and a tick of another one.
    #[error(
        "\"{agent}@{place}\" is an agent, and a tick of the agent \"{agent}\"; say {agent}@{place}@TICK for the first"
    )]
    TwoAgents {
        /// The other agent.
        agent: String,
        /// The tick.
        place: String,
    },
    /// A text with `..` is no range of ticks.
    #[error("\"{0}\" is not a range of ticks")]
    NotARange(String),
    /// A range of ticks is named where one tick is asked for.
    #[error("\"{0}\" names several ticks, not one")]
    Several(String),
    /// A text is no path of the state.
    #[error("\"{0}\" is not a path")]
    NotAPath(String),
    /// A run has no refusal with this number.
    #[error("{run} has {}, and none has the number {number}", count(*of, "refusal", "refusals"))]
    NoRefusal {
        /// The run.
        run: RunName,
        /// The number, from 1.
        number: u64,
        /// The number of refusals of the run.
        of: u64,
    },
    /// A refusal is named where a tick is asked for.
    #[error("refusal {number} of {run} has no tick")]
    RefusalWithoutTick {
        /// The run.
        run: RunName,
        /// The number of the refusal, from 1.
        number: u64,
    },
    /// A text that begins with `/` is no JSON pointer.
    #[error(transparent)]
    NotAPointer(#[from] PointerError),
}

impl AddressError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            AddressError::NotAnAddress(_)
            | AddressError::TwoAgents { .. }
            | AddressError::NotARange(_)
            | AddressError::Several(_)
            | AddressError::RefusalWithoutTick { .. } => Code::E0105,
            AddressError::NoRefusal { .. } => Code::E0102,
            AddressError::NotAPath(_) | AddressError::NotAPointer(_) => Code::E0104,
        }
    }
}
