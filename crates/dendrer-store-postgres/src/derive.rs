//! Bytes that others derive from the log: kept with the lookups of the handle, and gone with them.

use std::sync::Arc;

use dendrer_object::note::SigningKey;
use dendrer_store::{KeepDerived, Slot, StoreError};

use crate::store::Postgres;

impl KeepDerived for Postgres {
    fn key(&self) -> Option<&Arc<SigningKey>> {
        self.key.as_ref()
    }

    fn keep(&self, slot: Slot<'_>, bytes: &[u8]) -> Result<(), StoreError> {
        match slot {
            Slot::Snapshot(run, tick) => self.local.keep(("snapshot", run, &[], tick), bytes),
            Slot::Verdicts(run, question) => self.local.keep(("verdicts", run, &question.0, 0), bytes),
            Slot::Tile { run, place, seen } => {
                // Sums from before an erasure are of values that are gone.
                if seen.is_some_and(|seen| seen < self.erased_at) {
                    return Ok(());
                }
                let key = [&[place.level][..], &place.number.to_be_bytes()].concat();
                self.local.keep(("tile", run, &key, 0), bytes)
            }
        }
    }

    fn kept(&self, slot: Slot<'_>) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        match slot {
            Slot::Snapshot(run, tick) => self.local.kept(("snapshot", run, &[], tick)),
            Slot::Verdicts(run, question) => self.local.kept(("verdicts", run, &question.0, 0)),
            Slot::Tile { run, place, .. } => {
                let key = [&[place.level][..], &place.number.to_be_bytes()].concat();
                self.local.kept(("tile", run, &key, 0))
            }
        }
    }
}
