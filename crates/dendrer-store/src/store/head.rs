//! The end of a run.

use std::fmt;

use dendrer_object::Digest;

/// The end of a run: the record that the next one must name as its `prev`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The tick. For a fork without own ticks, the tick it branched off at; `None` if that is not known here.
    pub tick: Option<u64>,
    /// The id of the newest chain record, or of the `run` record.
    pub id: Digest,
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tick {
            Some(tick) => write!(f, "tick {tick} ({})", self.id.short()),
            None => write!(f, "{}", self.id.short()),
        }
    }
}
