//! The state of a run at a tick, or one value of it, and the difference between two states.

use dendrer_kernel::predicate::Window;
use dendrer_kernel::replay::ReplayError;
use dendrer_kernel::unknown::Since;
use dendrer_object::{Code, Digest, Pointer, RunName, Value};

use crate::address::Address;
use crate::ask::show::{PlaceChange, missing_words};
use crate::error::Error;
use crate::problem::Problem;
use crate::run::trace::Trace;

pub use crate::ask::derived::{is_derived, unknown_at, value_at};
pub use crate::ask::difference::differences;

mod cut;
pub mod question;

pub use cut::CutLimits;

/// A value of the state of a run.
#[derive(Debug, Clone)]
pub struct StateAnswer {
    /// The run.
    pub run: RunName,
    /// The agent, if the state is that along its causal ancestors.
    pub agent: Option<String>,
    /// The tick.
    pub tick: u64,
    /// Whether the state before or after the tick is meant.
    pub window: Window,
    /// The place; empty for the whole state.
    pub path: Pointer,
    /// The root of the whole state.
    pub root: Digest,
    /// The value; null if the place is unknown and nothing is there.
    pub value: Value,
    /// Whether the value is derived from the record and lies outside the root, as counters do.
    pub derived: bool,
    /// The unknown places that the value meets, each with its cause.
    pub unknown: Vec<(Pointer, Since)>,
    /// Whether no pack makes the state, and nothing is in it.
    pub is_bare: bool,
    /// How much of the value a document has.
    pub limits: CutLimits,
}

/// The difference between the states of two places.
#[derive(Debug, Clone)]
pub struct StateDifference {
    /// The run and tick that is compared.
    pub place: (RunName, u64),
    /// The run and tick it is compared with.
    pub base: (RunName, u64),
    /// Whether the state before or after the tick is meant.
    pub window: Window,
    /// The only place that is compared; empty for the whole state.
    pub path: Pointer,
    /// Each place that differs, the base as the side before.
    pub changes: Vec<PlaceChange>,
    /// The unknown places of both states that the comparison meets, each with its cause.
    pub unknown: Vec<(Pointer, Since)>,
}

/// Reports which missing value leaves the state after a tick unknown.
pub(crate) fn unknown_state(error: Error, trace: &Trace, address: &Address, tick: u64) -> Problem {
    match error {
        Error::Replay(ReplayError::Erased { tick: first, pointer }) => {
            Problem::new(Code::E0311, format!("the state of {} after tick {tick} is not known", trace.name()))
                .at("why", missing_words(first, pointer.as_ref()))
                .note("show and log print what is left of each transition")
                .help(&["dendrer", "show", &address.beside(trace.name(), first)])
        }
        error => error.into(),
    }
}
