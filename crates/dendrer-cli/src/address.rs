//! Addresses and ticks as flags take them.

use dendrer::Trace;
use dendrer_object::Pointer;

use crate::failure::{Failure, Result};

pub(crate) use dendrer::address::{Address as Rev, Position as Pos};

/// Reads a tick as flags take it: `12`, `tick:12`, `tip`, `-1`.
pub(crate) fn tick_arg(text: &str) -> std::result::Result<Pos, String> {
    Pos::parse(text)
        .ok_or_else(|| "a tick is a number, like 12 or tick:12, or tip, or -N before the tip".to_owned())
}

/// Reads the number of a tick that need not be there yet.
pub(crate) fn plain_tick_arg(text: &str) -> std::result::Result<u64, String> {
    let digits = text.strip_prefix("tick:").unwrap_or(text);
    digits.parse().map_err(|_| "a tick is a number, like 41".to_owned())
}

/// Reads which of several runs in a file is meant.
pub(crate) fn index_arg(text: &str) -> std::result::Result<u64, String> {
    text.parse().map_err(|_| "an index is the number of a run in the file, counted from 0".to_owned())
}

/// Reads a path of the state: `a.b[2]`, `a["x y"]`, `state.a.b`, or a JSON pointer.
pub(crate) fn state_path(text: &str) -> Result<Pointer> {
    Ok(dendrer::address::state_path(text)?)
}

/// Finds the tick that is named by a flag or in the address, and exactly once; `say` is what to do otherwise.
pub(crate) fn one_tick(flag: Option<&Pos>, rev: &Rev, trace: &Trace, say: &str) -> Result<u64> {
    match (flag, &rev.pos) {
        (Some(pos), None) | (None, Some(pos)) => Ok(pos.tick(trace)?),
        _ => Err(Failure::new("E0106", say).note("nothing was changed")),
    }
}

/// Refuses a range that ends before it begins.
pub(crate) fn in_order(from: u64, to: u64) -> Result<()> {
    if from > to {
        return Err(Failure::new("E0106", format!("--from tick {from} lies behind --to tick {to}")));
    }
    Ok(())
}
