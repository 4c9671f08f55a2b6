//! Addresses and ticks as flags take them.

use dendrer::Trace;
use dendrer_object::{Code, Pointer};

use crate::failure::{Failure, Result};

pub(crate) use dendrer::address::{Address as Rev, Position as Pos};

/// Reads a path of the state: `a.b[2]`, `a["x y"]`, `state.a.b`, or a JSON pointer.
pub(crate) fn state_path(text: &str) -> Result<Pointer> {
    Ok(dendrer::address::state_path(text)?)
}

/// Finds the tick that is named by a flag or in the address, and exactly once; `say` is what to do otherwise.
pub(crate) fn one_tick(flag: Option<&Pos>, rev: &Rev, trace: &Trace, say: &str) -> Result<u64> {
    match (flag, &rev.pos) {
        (Some(pos), None) | (None, Some(pos)) => Ok(pos.tick(trace)?),
        _ => Err(Failure::new(Code::E0106, say).note("nothing was changed")),
    }
}

/// Refuses a range that ends before it begins.
pub(crate) fn in_order(from: u64, to: u64) -> Result<()> {
    if from > to {
        return Err(Failure::new(Code::E0106, format!("--from tick {from} lies behind --to tick {to}")));
    }
    Ok(())
}
