//! Keeping bytes that are derived from the log.

use std::sync::Arc;

use dendrer_object::note::SigningKey;
use dendrer_object::{Digest, RunName};

use crate::error::StoreError;

/// The place of derived bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot<'a> {
    /// A snapshot of a run at a tick.
    Snapshot(&'a RunName, u64),
    /// The verdicts of a question along a run, by the digest of the question.
    Verdicts(&'a RunName, &'a Digest),
    /// The sums of a tile of a run.
    Tile {
        /// The run that owns every tick of the tile.
        run: &'a RunName,
        /// The ticks.
        place: TilePlace,
        /// The size of the log before the first record of the tile was read; `None` for a recorder, which has the records
        /// themselves. Sums from before an erasure are not kept. Without meaning for a reader.
        seen: Option<u64>,
    },
}

/// The ticks of a tile: `1 << level` of them, from the multiple `number` of that on. Tick 0 is no transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TilePlace {
    /// The power of two.
    pub level: u8,
    /// The number of the tile among those of its level.
    pub number: u64,
}

impl<'a> Slot<'a> {
    /// The run.
    pub fn run(&self) -> &'a RunName {
        match self {
            Slot::Snapshot(run, _) | Slot::Verdicts(run, _) | Slot::Tile { run, .. } => run,
        }
    }
}

/// A row that is kept because it was dear to work out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRow {
    /// The run that it is about.
    pub run: RunName,
    /// Its content.
    pub what: KeptWhat,
    /// How many bytes that is.
    pub bytes: u64,
}

/// The content of a kept row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptWhat {
    /// The state at a tick.
    Snapshot(u64),
    /// The verdicts of a predicate along the run, by the digest of the question.
    Verdicts(Digest),
}

/// The part of a store that keeps derived bytes.
///
/// Kept bytes may be forgotten at any time, and are emptied by every erasure. A store keeps them as anyone may have left
/// them: a reader must be able to tell that they are genuine.
pub trait KeepDerived {
    /// The key of the store, if the opener of the store had it. Kept bytes that no record binds count under this key
    /// alone: an index can be written by any process.
    fn key(&self) -> Option<&Arc<SigningKey>>;

    /// Keeps bytes in a slot, in place of those that were there.
    fn keep(&self, slot: Slot<'_>, bytes: &[u8]) -> Result<(), StoreError>;

    /// Returns kept bytes and their tick: of a snapshot the newest at or before the tick of the slot. Verdicts have one
    /// entry for each question, and sums one for each tile; their tick is 0.
    fn kept(&self, slot: Slot<'_>) -> Result<Option<(u64, Vec<u8>)>, StoreError>;
}
