//! The contract of a store: one append-only log of records, read by position, id, run and tick.
//!
//! In six parts: [`ReadLog`], [`AppendLog`], [`KeepDerived`], [`SignLog`], [`EraseValues`] and [`KeepSecrets`]. A [`Store`] is all six.
//! Synchronous, and takes batches. Never retries, never resolves a conflict, never looks at a clock.
//!
//! Rule: [`AppendLog::append`] writes a group whole or not at all, and only after the heads that its records name. A
//! caller that gets [`StoreError::Stale`](crate::StoreError::Stale) has written nothing. Held by
//! [`fence::check`](crate::fence::check) and the conformance suite (feature `conformance`).

mod append;
mod derived;
mod erase;
mod head;
mod read;
pub(crate) mod secrets;
mod sign;
mod ticket;
mod writer;

use dendrer_object::note::VerifierKey;
use dendrer_object::{Digest, StoreId};

pub use append::AppendLog;
pub use append::check_heads;
pub use derived::{KeepDerived, KeptRow, KeptWhat, Slot, TilePlace};
pub use erase::EraseValues;
pub use head::Head;
pub(crate) use read::not_in_tree;
pub use read::take_key;
pub use read::{ReadLog, RunSummary, Skimmed};
pub use secrets::{Given, KeepSecrets, NewSecrets, SECRET_SIZE_MAX};
pub use sign::{LastRecord, MaySign, SignLog};
pub use ticket::{Ticket, WaitForSync};
pub use writer::{GroupEnd, LogWriter, SetAside, Tag, Tags, WriterSecret};

/// The newest format that this code reads and writes.
pub const FORMAT: u64 = 2;

/// The format of a store without encrypted values in its log.
const FIRST_FORMAT: u64 = 1;

/// Id, key and format of a store. Fixed when the store is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreInfo {
    /// The id, which every record of the store names in its header.
    pub id: StoreId,
    /// The key that the log began with. The key in force is that of [`ReadLog::keys`].
    pub key: VerifierKey,
    /// The format the store was last written in.
    pub format: u64,
    /// The lowest format that a reader must know.
    pub reader: u64,
    /// The lowest format that a writer must know.
    pub writer: u64,
}

impl StoreInfo {
    /// Describes a new store, in the first format: it becomes one of a later format when it needs to.
    pub fn new(id: StoreId, key: VerifierKey) -> StoreInfo {
        StoreInfo { id, key, format: FIRST_FORMAT, reader: FIRST_FORMAT, writer: FIRST_FORMAT }
    }

    /// Returns the same with the key in force: by that the secret half is found.
    #[must_use]
    pub fn under(&self, key: &VerifierKey) -> StoreInfo {
        StoreInfo { key: key.clone(), ..self.clone() }
    }
}

/// The log as one handle sees it: how many records, and the root of the tree over their entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeHead {
    /// The number of records.
    pub size: u64,
    /// The RFC 6962 root over their entries.
    pub root: Digest,
}

/// A place where records are kept: a type with all six parts.
///
/// The methods of the parts can be called on `dyn Store` without importing the parts; for a type of its own they are in
/// [`prelude`](crate::prelude).
pub trait Store: AppendLog + KeepDerived + SignLog + EraseValues + KeepSecrets {}

impl<S: AppendLog + KeepDerived + SignLog + EraseValues + KeepSecrets> Store for S {}
