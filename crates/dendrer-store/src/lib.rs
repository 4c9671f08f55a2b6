//! The stores of records:
//!
//! A store knows records, runs and one log. It does not know what a state, a contract or a reducer is, and never
//! decides whether a transition should happen; it decides whether the transition still fits the head it was made for.
//!
//! Rule: every record that a store returns was sealed again from the bytes that were read, and its id compared. There
//! is no way to get a record that differs from the one that was committed.

pub mod checks;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod descriptor;
pub mod disk;
pub mod embedded;
pub mod error;
#[cfg(any(test, feature = "faulty"))]
pub mod faulty;
pub mod fence;
mod frame;
pub mod group;
mod index;
mod layout;
pub mod memory;
mod meter;
mod ordered;
mod scan;
mod segments;
mod store;
mod tail;
mod values;

pub use embedded::{
    Copied, CopyAs, Copying, Embedded, IndexState, Leftover, LogReport, Mark, Options, TilesState,
    VerifyOptions, WalkItem,
};
pub use error::{Damage, DamageKind, DamagePlace, StoreError};
pub use group::shared::{self, Shared};
pub use index::IndexDifference;
pub use layout::{RawField, RawRecord, Unsealed};
pub use memory::Memory;
pub use meter::Meter;
pub use store::{
    AppendLog, EraseValues, FORMAT, Given, GroupEnd, Head, KeepDerived, KeepSecrets, KeptRow, KeptWhat,
    LastRecord, LogWriter, MaySign, NewSecrets, ReadLog, RunSummary, SECRET_SIZE_MAX, SetAside, SignLog,
    Skimmed, Slot, Store, StoreInfo, Tag, Tags, Ticket, TilePlace, TreeHead, WaitForSync, WriterSecret,
};
pub use values::{split, split_within};

/// The parts of a [`Store`], for callers that have a store of a type of its own.
pub mod prelude {
    pub use crate::store::{AppendLog, EraseValues, KeepDerived, KeepSecrets, ReadLog, SignLog, Store};
}
