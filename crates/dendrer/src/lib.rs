//! The repository: record a run, read it, replay it, verify it, find where it first went wrong, compare it, hand it over.
//!
//! Everything here works on any [`Store`](dendrer_store::Store), a bundle included. Nothing here judges an
//! intent: that is the kernel's part, and there is one door to it.

pub mod ask_bisect;
pub mod ask_log;
pub mod ask_named;
pub mod ask_predicates;
pub mod ask_receipt;
pub mod ask_replay;
pub mod ask_runs;
pub mod ask_show;
pub mod ask_state;
pub mod ask_why;
pub mod bisect;
pub mod bundle;
pub mod casebook;
pub mod cherrypick;
pub mod closed;
pub mod contract;
pub mod contributors;
pub mod diagnosis;
pub mod diff;
mod difference;
pub mod error;
pub mod extension;
pub mod fork;
pub mod keep;
pub mod merge;
pub mod pack;
pub mod profile;
pub mod progress;
pub mod provenance;
pub mod rebase;
pub mod recorder;
pub mod registry;
pub mod timeline;
pub mod tools;
pub mod trace;
mod verdicts;
pub mod verify;
pub mod why;

pub use error::Error;
pub use recorder::Recorder;
pub use trace::Trace;

pub use dendrer_kernel as kernel;
pub use dendrer_store as store;
pub use dendrer_wasm as wasm;
