//! Where records are kept: the store contract, a store in memory, and the embedded store on disk.
//!
//! A store knows records, runs and one log. It does not know what a state, a contract or a reducer is, and never
//! decides whether a transition should happen; it decides whether it still fits behind the head it was made for.
//!
//! The invariant a newcomer would break: what a store hands out was sealed again from what was read, and its id
//! compared. There is no way to get a record that differs from the one that was committed.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod contract;
mod descriptor;
pub mod disk;
pub mod embedded;
pub mod error;
#[cfg(any(test, feature = "faulty"))]
pub mod faulty;
mod fence;
mod frame;
mod index;
mod layout;
pub mod memory;
mod ordered;
mod scan;
mod segments;
pub mod shared;
mod syncs;
mod tail;
mod values;

pub use contract::{Head, MaySign, RunSummary, Skimmed, Store, StoreInfo, Submission, SyncTicket, TreeHead};
pub use embedded::{
    Copied, CopyAs, Copying, Embedded, IndexState, KeptRow, KeptWhat, Leftover, Mark, Options, Report,
    TilesState, VerifyOptions, WalkItem,
};
pub use error::{Damage, DamageKind, Place, StoreError};
pub use index::IndexDifference;
pub use layout::{RawField, RawRecord, Unsealed};
pub use memory::Memory;
pub use shared::Shared;
pub use values::split;
