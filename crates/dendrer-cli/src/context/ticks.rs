//! Ticks as flags and addresses name them.

use dendrer::Trace;
use dendrer::address::{Address, Position};
use dendrer_object::Code;

use crate::failure::{Failure, Result};

/// Finds the tick that either a flag or the address names. Both or neither is an error, with `say` as its message.
pub(crate) fn one_tick(flag: Option<&Position>, address: &Address, trace: &Trace, say: &str) -> Result<u64> {
    match (flag, &address.pos) {
        (Some(pos), None) | (None, Some(pos)) => Ok(pos.tick(trace)?),
        _ => Err(Failure::new(Code::E0106, say).note("nothing was changed")),
    }
}

pub(crate) use dendrer::source::in_order;
