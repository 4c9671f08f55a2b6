//! The states of a run, made again from the record.

use std::ops::ControlFlow;

use dendrer_kernel::replay::ReplayError;
use dendrer_kernel::step::RunState;
use dendrer_kernel::unknown::{self, Since};
use dendrer_object::{Digest, Pointer, RunName, Value};

use crate::error::Error;
use crate::run::replay::replay_range;
use crate::run::trace::Trace;

/// The state after one tick of a replay.
#[derive(Debug, Clone)]
pub struct ReplayedTick {
    /// The tick.
    pub tick: u64,
    /// The root of the state.
    pub root: Digest,
    /// The state or a value of it, if it was asked for.
    pub state: Option<Value>,
}

/// What a replay came to.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// The run.
    pub run: RunName,
    /// The last tick of the run.
    pub tip: u64,
    /// The last tick that was to be replayed.
    pub to: u64,
    /// How many ticks were replayed.
    pub ticks: u64,
    /// Whether each reduction was evaluated twice.
    pub twice: bool,
    /// The name of the reducer.
    pub reducer: String,
    /// The places of the last state that was made again that are unknown, each with its cause.
    pub unknown: Vec<(Pointer, Since)>,
    /// Why the replay ended early.
    pub error: Option<ReplayError>,
}

/// Replays a run up to a tick, and hands over the head after each transition until `f` breaks.
pub fn replay(
    trace: &Trace,
    to: u64,
    twice: bool,
    f: &mut dyn FnMut(&RunState) -> ControlFlow<()>,
) -> Result<Replayed, Error> {
    let reducer = crate::run::pack::reducer_of(trace)?;
    let mut last = None;
    let result = replay_range(trace, 0, to, &*reducer, twice, &mut |head, _| {
        last = Some(head.state().clone());
        f(head)
    })?;
    let ticks = match &result {
        Ok(ticks) => *ticks,
        Err(ReplayError::Divergence(divergence)) => divergence.tick.saturating_sub(1),
        Err(
            ReplayError::Erased { tick, .. }
            | ReplayError::Delta { tick, .. }
            | ReplayError::Seal { tick, .. },
        ) => tick.saturating_sub(1),
        Err(_) => 0,
    };
    Ok(Replayed {
        run: trace.name().clone(),
        tip: trace.tip(),
        to,
        ticks,
        twice,
        reducer: reducer.name().to_string(),
        unknown: last.map(|state| unknown::listed(&state)).unwrap_or_default(),
        error: result.err(),
    })
}
